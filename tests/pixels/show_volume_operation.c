/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * show_volume_operation CHANNELS DEPTH HEIGHT WIDTH OPERATION NUMBER...: for comparing with other
 * software. Reads float32 voxels and uint8 labels from stdin and writes both, as the operation
 * leaves them, to stdout. `elastic POINTS MOST` writes the offsets of its control points before.
 */
#include "pixels/volume_operations.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void run(struct dl2_voxels *voxels, const char *name, char **numbers)
{
    static struct dl2_elastic elastic;
    static const size_t at[3];
    const double first = atof(numbers[0]);
    struct dl2_random random;
    dl2_random_init(&random, 1, DL2_RANDOM_AUGMENT, 2, 3);
    if (!strcmp(name, "flip"))
        dl2_voxels_flip(voxels, (unsigned)first);
    else if (!strcmp(name, "noise"))
        dl2_voxels_noise(voxels, &random, first);
    else if (!strcmp(name, "brightness"))
        dl2_voxels_brightness(voxels, first);
    else if (!strcmp(name, "gamma"))
        dl2_voxels_gamma(voxels, first);
    else if (!strcmp(name, "blur"))
        dl2_voxels_blur(voxels, first);
    else if (!strcmp(name, "zscore"))
        dl2_voxels_zscore(voxels, at, voxels->size);
    else if (!strcmp(name, "elastic")) {
        const unsigned side = (unsigned)first + 2;
        dl2_elastic_draw(&elastic, &random, (unsigned)first, atof(numbers[1]));
        for (int axis = 0; axis < 3; axis++)
            for (unsigned z = 0; z < side; z++)
                for (unsigned y = 0; y < side; y++)
                    fwrite(elastic.offsets[axis][z][y], sizeof(float), side, stdout);
        dl2_voxels_elastic(voxels, &elastic);
    }
}

int main(int argc, char **argv)
{
    if (argc < 7)
        return 2;
    size_t size[3], count = (size_t)atoi(argv[1]);
    for (int i = 0; i < 3; i++) {
        size[i] = (size_t)atoi(argv[2 + i]);
        count *= size[i];
    }
    struct dl2_voxels voxels;
    struct dl2_error error = DL2_ERROR_INIT;
    const size_t labels = size[0] * size[1] * size[2];
    if (dl2_voxels_init(&voxels, (size_t)atoi(argv[1]), size, true, &error) < 0 ||
        fread(voxels.data, sizeof(float), count, stdin) != count ||
        fread(voxels.labels, 1, labels, stdin) != labels)
        return 1;
    run(&voxels, argv[5], argv + 6);
    fwrite(voxels.data, sizeof(float), count, stdout);
    fwrite(voxels.labels, 1, labels, stdout);
    dl2_voxels_free(&voxels);
    return fflush(stdout) != 0;
}
