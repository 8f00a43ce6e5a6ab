/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What encoding JPEGs takes, by libjpeg-turbo (DL2_JPEG=libjpeg) and by our own encoder, in turns.
 *
 *     bench_encode EFFORT QUALITY,... ROUNDS IMAGE...
 *
 * encodes the images (any that dl2 reads) at 4:2:0 without restart intervals, all qualities of an
 * image at once. Prints CPU time, the least of the rounds, and the median of the rounds' ratios.
 *
 * From how many qualities on plain C encodes (codec/jpeg/jpeg_sweep.h) follows from these ratios,
 * ours to libjpeg-turbo's, of 60 photographs. DL2_SIMD=c JSIMD_FORCESSE2=1, which stands for
 * libjpeg-turbo with vectors, with 1, 2, 3 and 5 qualities: 1.84, 1.19, 0.98, 0.78 at effort 0, and
 * 1.04, 0.79, 0.69, 0.60 at effort 1. DL2_SIMD=c JSIMD_FORCENONE=1, without vectors: 0.47, 0.30,
 * 0.24, 0.20, and 0.46, 0.33, 0.29, 0.25.
 */
#include "codec/codec.h"
#include "common/clock.h"
#include "common/file.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_QUALITIES = 16, MAX_ROUNDS = 100 };

static void check(int status, const struct dl2_error *error)
{
    if (status < 0) {
        fprintf(stderr, "bench_encode: %s\n", error->message);
        exit(1);
    }
}

static void load(const char *path, struct dl2_image *image)
{
    const struct dl2_decode_options options = DL2_DECODE_DEFAULTS;
    struct dl2_error error = DL2_ERROR_INIT;
    struct dl2_bytes file = DL2_BYTES_INIT;
    struct dl2_image scratch = {0};
    check(dl2_file_read(path, SIZE_MAX, &file, &error), &error);
    check(dl2_image_decode(file.data, file.size, &options, image, &scratch, &error), &error);
    dl2_image_free(&scratch);
    dl2_bytes_free(&file);
}

static int compare(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

int main(int argc, char **argv)
{
    struct dl2_encode_options options = DL2_ENCODE_DEFAULTS;
    struct dl2_bytes files[MAX_QUALITIES] = {{0}};
    double best[2] = {1e9, 1e9}, ratios[MAX_ROUNDS];
    int qualities[MAX_QUALITIES];
    size_t count = 0;
    const int rounds = argc > 4 ? atoi(argv[3]) : 0, images = argc - 4;
    if (rounds < 1 || rounds > MAX_ROUNDS) {
        fprintf(stderr, "usage: bench_encode EFFORT QUALITY,... ROUNDS IMAGE...\n");
        return 2;
    }
    options.effort = atoi(argv[1]);
    options.subsampling = "420";
    options.restart = "none";
    for (char *text = strtok(argv[2], ","); text && count < MAX_QUALITIES; text = strtok(NULL, ","))
        qualities[count++] = atoi(text);
    struct dl2_image *const all = calloc((size_t)images, sizeof *all);
    if (!all)
        return 1;
    for (int i = 0; i < images; i++)
        load(argv[4 + i], &all[i]);
    for (int round = 0; round < rounds; round++) {
        double seconds[2];
        for (int own = 0; own < 2; own++) {
            struct dl2_error error = DL2_ERROR_INIT;
            setenv("DL2_JPEG", own ? "own" : "libjpeg", 1);
            const double start = dl2_clock_thread_cpu();
            for (int i = 0; i < images; i++)
                check(dl2_image_encode_sweep(dl2_codec_find("jpeg"), &all[i], &options, qualities,
                                             files, count, &error),
                      &error);
            seconds[own] = dl2_clock_thread_cpu() - start;
            best[own] = seconds[own] < best[own] ? seconds[own] : best[own];
        }
        ratios[round] = seconds[1] / seconds[0];
    }
    qsort(ratios, (size_t)rounds, sizeof *ratios, compare);
    printf("libjpeg-turbo %.4f s, our own %.4f s, ratio %.2f\n", best[0], best[1],
           ratios[rounds / 2]);
    for (size_t i = 0; i < count; i++)
        dl2_bytes_free(&files[i]);
    for (int i = 0; i < images; i++)
        dl2_image_free(&all[i]);
    free(all);
    return 0;
}
