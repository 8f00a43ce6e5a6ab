/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * make_images DIR CLASSES TRAIN VAL SIDE [gray] [SEED]: writes DIR/{train,val}/cK/N.ppm, TRAIN and
 * VAL images a class; where VAL is 0, DIR/cK/N.ppm. A class has its own mean color, or gray, under
 * noise.
 */
#include "common/error.h"
#include "common/file.h"
#include "common/random.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int write_image(const char *path, unsigned class, unsigned classes, size_t side, bool gray,
                       struct dl2_random *random, struct dl2_error *error)
{
    uint8_t file[64 + 3 * 64 * 64];
    int used = snprintf((char *)file, 64, "P%d\n%zu %zu\n255\n", gray ? 5 : 6, side, side);
    uint8_t *p = file + used;
    for (size_t i = 0; i < side * side; i++) {
        for (unsigned c = 0; c < (gray ? 1u : 3u); c++) {
            unsigned level = 40 + 176 * ((class * (c + 1)) % classes) / classes;
            *p++ = (uint8_t)(level + dl2_random_below(random, 60) - 20);
        }
    }
    return dl2_file_write(path, file, (size_t)(p - file), error);
}

int main(int argc, char **argv)
{
    if (argc < 6)
        return 2;
    unsigned classes = (unsigned)atoi(argv[2]);
    unsigned counts[2] = {(unsigned)atoi(argv[3]), (unsigned)atoi(argv[4])};
    size_t side = (size_t)atoi(argv[5]);
    bool gray = argc > 6 && strcmp(argv[6], "gray") == 0;
    uint64_t seed = argc > 7 ? (uint64_t)atoi(argv[7]) : 0;
    struct dl2_error error = DL2_ERROR_INIT;
    struct dl2_random random;
    if (side < 1 || side > 64)
        return 2;
    for (unsigned k = 0; k < classes; k++) {
        for (unsigned split = 0; split < 2; split++) {
            const char *folder = counts[1] == 0 ? "" : split ? "val/" : "train/";
            char path[1024];
            snprintf(path, sizeof path, "%s/%sc%u", argv[1], folder, k);
            if (counts[split] && dl2_make_folders(path, &error) < 0)
                break;
            for (unsigned i = 0; i < counts[split]; i++) {
                dl2_random_init(&random, seed, DL2_RANDOM_TEST, k, 2 * i + split);
                snprintf(path, sizeof path, "%s/%sc%u/%03u.%s", argv[1], folder, k, i,
                         gray ? "pgm" : "ppm");
                write_image(path, k, classes, side, gray, &random, &error);
            }
        }
    }
    if (error.status < 0)
        fprintf(stderr, "make_images: %s\n", error.message);
    return error.status < 0;
}
