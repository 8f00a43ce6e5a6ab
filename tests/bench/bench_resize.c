/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * How long the fused transform takes from decoded planes to 224x224 pixels of a batch, by each
 * path, forced through DL2_SIMD in a process of its own: microseconds of CPU time an image, best of
 * many rounds, each with another crop, filters included. Exit status 1 where a path's bytes are not
 * those of plain C.
 *
 *     make tests/bench/bench_resize && ./tests/bench/bench_resize [SECONDS]
 */
#include "common/clock.h"
#include "common/simd.h"
#include "pixels/resize.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum { SIDE = 224, CROPS = 16, LARGEST = 640 };

static const struct scene {
    const char *name;
    enum dl2_color color;
    uint32_t chroma, width, height;
    enum dl2_dtype dtype;
    enum dl2_layout layout;
    enum dl2_interpolation interpolation;
} scenes[] = {
    {"4:2:0, 150x150", DL2_COLOR_YCBCR, 2, 150, 150, DL2_UINT8, DL2_NHWC},
    {"4:2:0, 300x300", DL2_COLOR_YCBCR, 2, 300, 300, DL2_UINT8, DL2_NHWC},
    {"4:2:0, 448x448", DL2_COLOR_YCBCR, 2, 448, 448, DL2_UINT8, DL2_NHWC},
    {"4:2:0, 500x375", DL2_COLOR_YCBCR, 2, 500, 375, DL2_UINT8, DL2_NHWC},
    {"4:4:4, 300x300", DL2_COLOR_YCBCR, 1, 300, 300, DL2_UINT8, DL2_NHWC},
    {"gray, 300x300", DL2_COLOR_GRAY, 1, 300, 300, DL2_UINT8, DL2_NHWC},
    {"RGB, 150x150", DL2_COLOR_RGB, 1, 150, 150, DL2_UINT8, DL2_NHWC},
    {"RGB, 300x300", DL2_COLOR_RGB, 1, 300, 300, DL2_UINT8, DL2_NHWC},
    {"RGB, 448x448", DL2_COLOR_RGB, 1, 448, 448, DL2_UINT8, DL2_NHWC},
    {"RGB, 500x375", DL2_COLOR_RGB, 1, 500, 375, DL2_UINT8, DL2_NHWC},
    {"4:2:0, 300x300, uint8 NCHW", DL2_COLOR_YCBCR, 2, 300, 300, DL2_UINT8, DL2_NCHW},
    {"4:2:0, 300x300, float32 NHWC", DL2_COLOR_YCBCR, 2, 300, 300, DL2_FLOAT32, DL2_NHWC},
    {"4:2:0, 300x300, bfloat16 NCHW", DL2_COLOR_YCBCR, 2, 300, 300, DL2_BFLOAT16, DL2_NCHW},
    {"4:2:0, 300x300, float16 NCHW", DL2_COLOR_YCBCR, 2, 300, 300, DL2_FLOAT16, DL2_NCHW},
    {"4:2:0, 300x300, nearest", DL2_COLOR_YCBCR, 2, 300, 300, DL2_UINT8, DL2_NHWC, DL2_NEAREST},
    {"4:2:0, 300x300, box", DL2_COLOR_YCBCR, 2, 300, 300, DL2_UINT8, DL2_NHWC, DL2_BOX},
    {"4:2:0, 300x300, bicubic", DL2_COLOR_YCBCR, 2, 300, 300, DL2_UINT8, DL2_NHWC, DL2_BICUBIC},
    {"4:2:0, 300x300, lanczos", DL2_COLOR_YCBCR, 2, 300, 300, DL2_UINT8, DL2_NHWC, DL2_LANCZOS},
};
enum { SCENES = sizeof scenes / sizeof *scenes };

struct results {
    char path[16];
    double microseconds[SCENES];
    uint64_t sums[SCENES]; /* of all bytes of all crops */
};

static uint64_t sum_of(const uint8_t *data, size_t size)
{
    uint64_t sum = 14695981039346656037u; /* FNV-1a */
    for (size_t i = 0; i < size; i++)
        sum = (sum ^ data[i]) * 1099511628211u;
    return sum;
}

static int measure_scene(const struct scene *scene, const uint8_t *noise, uint8_t *out,
                         double seconds, double *microseconds, uint64_t *sum)
{
    struct dl2_raster raster = {.color = scene->color};
    for (unsigned p = 0; p < dl2_raster_planes(&raster); p++) {
        const uint32_t step = p ? scene->chroma : 1;
        raster.planes[p] = (struct dl2_plane){
            noise + p * 1000, LARGEST * 3, LARGEST / step, LARGEST / step, 0, 0, step, step};
    }
    const struct dl2_resize_output output = {.data = out,
                                             .width = SIDE,
                                             .height = SIDE,
                                             .channels = 3,
                                             .dtype = scene->dtype,
                                             .layout = scene->layout,
                                             .interpolation = scene->interpolation,
                                             .mean = {0.485f, 0.456f, 0.406f},
                                             .std = {0.229f, 0.224f, 0.225f}};
    struct dl2_resizer resizer = {.kernels = NULL};
    double best = INFINITY;
    *sum = 0;
    const double end = dl2_clock_thread_cpu() + seconds;
    for (int round = 0; round == 0 || dl2_clock_thread_cpu() < end; round++) {
        const double start = dl2_clock_thread_cpu();
        for (unsigned i = 0; i < CROPS; i++) {
            const double width = scene->width - CROPS / 2 + i;
            const double height = scene->height + CROPS / 2 - i;
            const struct dl2_box box = {i, 3 * i, i + width, 3 * i + height};
            if (dl2_resize_raster(&resizer, &raster, &box, &box, &output, NULL) < 0)
                return -1;
            if (round == 0)
                *sum += sum_of(out, (size_t)3 * SIDE * SIDE * dl2_dtype_size(scene->dtype));
        }
        const double took = (dl2_clock_thread_cpu() - start) / CROPS;
        best = round && took < best ? took : best;
    }
    dl2_resizer_free(&resizer);
    *microseconds = best * 1e6;
    return 0;
}

static int measure(struct results *results, double seconds)
{
    const size_t size = (size_t)(LARGEST + 4) * LARGEST * 3;
    uint8_t *noise = malloc(size), *out = malloc((size_t)SIDE * SIDE * 3 * 4);
    snprintf(results->path, sizeof results->path, "%s", dl2_simd_name());
    if (!noise || !out)
        return 1;
    uint32_t state = 1;
    for (size_t i = 0; i < size; i++) {
        state = state * 1664525 + 1013904223;
        noise[i] = (uint8_t)(state >> 24);
    }
    for (size_t s = 0; s < SCENES; s++)
        if (measure_scene(&scenes[s], noise, out, seconds, &results->microseconds[s],
                          &results->sums[s]) < 0)
            return 1;
    free(noise);
    free(out);
    return 0;
}

/* The dispatch is by environment variable, so each path has a process of its own. */
static int measure_path(const char *path, double seconds, struct results *results)
{
    int ends[2];
    if (pipe(ends) < 0)
        return -1;
    const pid_t child = fork();
    if (child < 0)
        return -1;
    if (child == 0) {
        static struct results mine;
        setenv("DL2_SIMD", path, 1);
        const int status = measure(&mine, seconds);
        _exit(status || write(ends[1], &mine, sizeof mine) != (ssize_t)sizeof mine);
    }
    close(ends[1]);
    const ssize_t got = read(ends[0], results, sizeof *results);
    close(ends[0]);
    int status;
    if (waitpid(child, &status, 0) < 0 || status || got != (ssize_t)sizeof *results)
        return -1;
    return 0;
}

int main(int argc, char **argv)
{
    static const char *const paths[] = {"c", "neon", "avx2", "avx512"};
    static struct results results[4];
    const double seconds = argc > 1 ? atof(argv[1]) : 0.1;
    unsigned count = 0;
    int status = 0;
    for (unsigned i = 0; i < 4; i++) {
        if (measure_path(paths[i], seconds, &results[count]) < 0) {
            fprintf(stderr, "measuring %s failed\n", paths[i]);
            return 1;
        }
        /* What this processor lacks falls back to what it has. */
        if (!strcmp(results[count].path, paths[i]))
            count++;
    }
    printf("microseconds an image to %dx%dx3", SIDE, SIDE);
    for (unsigned i = 0; i < count; i++)
        printf(", %s", results[i].path);
    putchar('\n');
    for (size_t s = 0; s < SCENES; s++) {
        printf("| %s |", scenes[s].name);
        for (unsigned i = 0; i < count; i++) {
            printf(" %.0f |", results[i].microseconds[s]);
            if (results[i].sums[s] != results[0].sums[s]) {
                fprintf(stderr, "%s: %s differs from %s\n", scenes[s].name, results[i].path,
                        results[0].path);
                status = 1;
            }
        }
        putchar('\n');
    }
    return status;
}
