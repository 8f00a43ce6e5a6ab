/* SPDX-License-Identifier: BSD-2-Clause */
/* make_image FILE WIDTH HEIGHT CHANNELS STRENGTH SHIFT: pattern.h's image as a PGM or PPM file. */
#include "tests/quality/pattern.h"

#include <stdio.h>
#include <stdlib.h>

int main(int argc, char **argv)
{
    if (argc != 7)
        return 2;
    struct dl2_image image = {.width = (uint32_t)atoi(argv[2]),
                              .height = (uint32_t)atoi(argv[3]),
                              .channels = (uint32_t)atoi(argv[4])};
    image.stride = (size_t)image.width * image.channels;
    image.data = malloc(image.stride * image.height);
    FILE *file = fopen(argv[1], "wb");
    if (!image.data || !file)
        return 1;
    pattern_fill(&image, (uint32_t)atoi(argv[5]), atoi(argv[6]));
    fprintf(file, "P%c\n%u %u\n255\n", image.channels == 1 ? '5' : '6', (unsigned)image.width,
            (unsigned)image.height);
    fwrite(image.data, image.stride, image.height, file);
    free(image.data);
    return fclose(file) ? 1 : 0;
}
