/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * How long augmentations take on a 224x224 image: prints a line for each, microseconds of CPU time
 * an image, the best of 20 rounds of 200 images, each with random numbers of its own. FILE holds
 * 224 * 224 * 3 bytes. compare_augment.py runs it beside torchvision.
 *
 *     make tests/bench/bench_augment && ./tests/bench/bench_augment FILE randaugment [NAME...]
 */
#include "common/clock.h"
#include "pixels/augment.h"

#include <stdio.h>
#include <string.h>

enum { SIDE = 224, ROUNDS = 20, IMAGES = 200 };

static double measure(const struct dl2_augmentation *augmentation, const uint8_t *image,
                      struct dl2_pixels *pixels)
{
    double best = 0;
    for (int round = 0; round < ROUNDS; round++) {
        double seconds = 0;
        for (uint64_t i = 0; i < IMAGES; i++) {
            struct dl2_random random;
            dl2_random_init(&random, 1, DL2_RANDOM_AUGMENT, 0, i);
            memcpy(pixels->data, image, SIDE * SIDE * 3);
            const double start = dl2_clock_process_cpu();
            (void)dl2_augmentation_run(augmentation, &random, pixels, NULL);
            seconds += dl2_clock_process_cpu() - start;
        }
        best = round && best < seconds ? best : seconds;
    }
    return 1e6 * best / IMAGES;
}

int main(int argc, char **argv)
{
    static uint8_t image[SIDE * SIDE * 3];
    struct dl2_error error = DL2_ERROR_INIT;
    struct dl2_pixels pixels = {0};
    FILE *in = argc > 2 ? fopen(argv[1], "rb") : NULL;
    if (!in || fread(image, 1, sizeof image, in) != sizeof image || fclose(in) != 0) {
        fprintf(stderr, "usage: bench_augment FILE NAME..., FILE of %zu bytes\n", sizeof image);
        return 2;
    }
    int status = dl2_pixels_init(&pixels, SIDE, SIDE, 3, &error);
    for (int i = 2; i < argc && status == DL2_OK; i++) {
        struct dl2_augmentation *augmentation;
        status = dl2_augmentation_parse(argv[i], &augmentation, &error);
        if (status == DL2_OK)
            status = dl2_augmentation_check(augmentation, false, &error);
        if (status == DL2_OK)
            printf("%s %.1f\n", argv[i], measure(augmentation, image, &pixels));
        dl2_augmentation_free(augmentation);
    }
    if (status < 0)
        fprintf(stderr, "bench_augment: %s\n", error.message);
    dl2_pixels_free(&pixels);
    return status < 0;
}
