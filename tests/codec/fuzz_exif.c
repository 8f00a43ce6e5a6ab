/* SPDX-License-Identifier: BSD-2-Clause */
/* The EXIF reader, and what makes it upright, on any bytes. */
#include "codec/exif.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    int orientation = dl2_exif_orientation(data, size);
    if (orientation < 1 || orientation > 8)
        abort();
    uint8_t *copy = malloc(size + !size);
    if (!copy)
        return 0;
    memcpy(copy, data, size);
    if (dl2_exif_make_upright(copy, size) && dl2_exif_orientation(copy, size) != 1)
        abort();
    free(copy);
    return 0;
}
