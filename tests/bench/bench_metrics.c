/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * How fast the metrics are, and whether the fast code says what the plain code says. Every path is
 * forced through DL2_SIMD, in a process of its own; for each image size it prints megapixels a
 * second of one core for the whole metric, from two 8-bit RGB images. Exit status 1 where a path
 * differs from plain C.
 *
 *     make tests/bench/bench_metrics && ./tests/bench/bench_metrics [SECONDS]
 */
#include "common/clock.h"
#include "common/simd.h"
#include "quality/metric.h"
#include "tests/quality/pattern.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static const uint32_t sizes[][2] = {{128, 128}, {500, 375}, {768, 512}, {4000, 3000}};
enum { SIZES = sizeof sizes / sizeof sizes[0] };

struct figures {
    double value, rate; /* the score; MP/s */
};

struct results {
    char path[16];
    struct figures figures[SIZES][DL2_METRIC_COUNT];
};

static double best_rate(struct dl2_scorer *scorer, const struct dl2_metric *metric,
                        const struct dl2_image *variant, double seconds)
{
    const double pixels = (double)variant->width * variant->height;
    const int rounds = 1 + (int)(1e6 / pixels);
    double best = INFINITY;
    const double end = dl2_clock_thread_cpu() + seconds;
    struct dl2_score score;
    do {
        const double start = dl2_clock_thread_cpu();
        for (int i = 0; i < rounds; i++)
            dl2_scorer_score(scorer, metric, variant, &score, NULL);
        const double took = (dl2_clock_thread_cpu() - start) / rounds;
        best = took < best ? took : best;
    } while (dl2_clock_thread_cpu() < end);
    return pixels / best / 1e6;
}

static int measure(struct results *results, double seconds)
{
    struct dl2_scorer *scorer;
    snprintf(results->path, sizeof results->path, "%s", dl2_simd_name());
    if (dl2_scorer_create(&scorer, NULL) < 0)
        return 1;
    for (size_t s = 0; s < SIZES; s++) {
        struct dl2_image reference = DL2_IMAGE_INIT, variant = DL2_IMAGE_INIT;
        if (dl2_image_reshape(&reference, sizes[s][0], sizes[s][1], 3, NULL) < 0 ||
            dl2_image_reshape(&variant, sizes[s][0], sizes[s][1], 3, NULL) < 0)
            return 1;
        pattern_fill(&reference, 0, 0);
        pattern_fill(&variant, 10, 0);
        for (unsigned m = 0; dl2_metric_at(m); m++) {
            const struct dl2_metric *metric = dl2_metric_at(m);
            struct figures *figures = &results->figures[s][m];
            struct dl2_score score;
            if (strncmp(metric->name, "butteraugli", 11) == 0 && s == SIZES - 1) {
                figures->value = NAN; /* takes minutes, and has none of our kernels */
                continue;
            }
            dl2_scorer_set_reference(scorer, &reference);
            if (dl2_scorer_score(scorer, metric, &variant, &score, NULL) < 0)
                return 1;
            figures->value = score.value;
            figures->rate = best_rate(scorer, metric, &variant, seconds);
        }
        dl2_image_free(&reference);
        dl2_image_free(&variant);
    }
    dl2_scorer_free(scorer);
    return 0;
}

/* In a process of its own, so that DL2_SIMD is seen whatever the code remembers. */
static bool measure_path(const char *path, struct results *results, double seconds)
{
    int ends[2], status;
    if (pipe(ends) < 0)
        return false;
    pid_t child = fork();
    if (child < 0)
        return false;
    if (child == 0) {
        memset(results, 0, sizeof *results);
        setenv("DL2_SIMD", path, 1);
        if (measure(results, seconds) ||
            write(ends[1], results, sizeof *results) != (ssize_t)sizeof *results)
            _exit(1);
        _exit(0);
    }
    close(ends[1]);
    const bool whole = read(ends[0], results, sizeof *results) == (ssize_t)sizeof *results;
    close(ends[0]);
    return waitpid(child, &status, 0) == child && status == 0 && whole;
}

int main(int argc, char **argv)
{
    static const char *const paths[] = {"c", "neon", "avx2", "avx512"};
    const double seconds = argc > 1 ? atof(argv[1]) : 0.2;
    struct results plain, results;
    int status = 0;
    printf("%-7s %10s  %-9s %10s  %s\n", "path", "size", "metric", "MP/s", "off plain C by");
    for (size_t p = 0; p < sizeof paths / sizeof paths[0]; p++) {
        if (!measure_path(paths[p], &results, seconds)) {
            fprintf(stderr, "bench_metrics: %s could not be measured\n", paths[p]);
            return 1;
        }
        if (strcmp(results.path, paths[p])) {
            printf("%-7s not on this machine\n", paths[p]);
            continue;
        }
        if (p == 0)
            plain = results;
        for (unsigned m = 0; dl2_metric_at(m); m++)
            for (size_t s = 0; s < SIZES; s++) {
                const struct figures *figures = &results.figures[s][m];
                const double off = fabs(figures->value - plain.figures[s][m].value);
                if (isnan(figures->value) && isnan(plain.figures[s][m].value))
                    continue; /* too small */
                printf("%-7s %5ux%-4u  %-9s %10.0f  %.1e\n", paths[p], (unsigned)sizes[s][0],
                       (unsigned)sizes[s][1], dl2_metric_at(m)->name, figures->rate, off);
                if (!(off <= (dl2_metric_at(m)->of_mse ? 0 : 5e-7)))
                    status = 1;
            }
    }
    if (status)
        fprintf(stderr, "bench_metrics: paths differ\n");
    return status;
}
