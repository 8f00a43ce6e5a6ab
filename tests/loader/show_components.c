/* SPDX-License-Identifier: BSD-2-Clause */
/* show_components FILE MASK_FILL: a line "CLASS Z Y X Z Y X" for each connected component of a
 * volume of labels: the first voxel of its bounding box, and the first one behind it. */
#include "loader/components.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

int main(int argc, char **argv)
{
    struct dl2_error error = DL2_ERROR_INIT;
    struct dl2_volume *volume = NULL;
    struct dl2_component *found = NULL;
    uint32_t count = 0;
    if (argc != 3)
        return 2;
    int status = dl2_volume_open(argv[1], NULL, &volume, &error);
    if (status == DL2_OK)
        status = dl2_components_find(volume, (unsigned)atoi(argv[2]), &found, &count, &error);
    for (uint32_t i = 0; i < count; i++)
        printf("%u %" PRIu32 " %" PRIu32 " %" PRIu32 " %" PRIu32 " %" PRIu32 " %" PRIu32 "\n",
               found[i].class, found[i].first[0], found[i].first[1], found[i].first[2],
               found[i].end[0], found[i].end[1], found[i].end[2]);
    if (status < 0)
        fprintf(stderr, "show_components: %s\n", error.message);
    free(found);
    dl2_volume_close(volume);
    return status < 0;
}
