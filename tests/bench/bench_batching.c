/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What the order of finished samples is worth when some are slow (loader/loader.h, enum
 * dl2_batching):
 *
 *     bench_batching [sleep|compute] [WORKERS] [BATCH] [FACTOR] [DEPTH]
 *
 * Writes 480 tiny images, then loads them with two operations of the caller's that each wait (or
 * compute) 0.1 ms, and FACTOR times as long with 0, 5, 25, 50, 75 and 100% of the samples. Each
 * mode has the same number of threads. The modes take turns; printed is the median of five rounds
 * of two epochs, after one to warm up: images a second, and the longest of 95% of the waits for a
 * batch.
 */
#include "common/clock.h"
#include "common/file.h"
#include "loader/loader.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { IMAGES = 480, ROUNDS = 5, EPOCHS = 2, MODES = 2 };

static const double fast = 100e-6; /* seconds an operation */

struct load {
    bool compute;
    unsigned percent, factor;
};

/* The same samples are slow in every epoch, spread evenly over the dataset. */
static bool is_slow(const struct load *load, uint32_t index)
{
    return index * 37u % 100 < load->percent;
}

static void spend(double seconds, bool compute)
{
    if (compute) {
        const double end = dl2_clock_thread_cpu() + seconds;
        while (dl2_clock_thread_cpu() < end)
            ;
    } else {
        const struct timespec time = {(time_t)seconds, (long)(fmod(seconds, 1) * 1e9)};
        nanosleep(&time, NULL);
    }
}

static int operate(void *context, uint32_t index, struct dl2_random *random, uint8_t *pixels,
                   unsigned width, unsigned height, unsigned channels, struct dl2_error *error)
{
    (void)random, (void)pixels, (void)width, (void)height, (void)channels, (void)error;
    const struct load *load = context;
    spend(is_slow(load, index) ? fast * load->factor : fast, load->compute);
    return 0;
}

static int write_images(const char *root, struct dl2_error *error)
{
    uint8_t data[13 + 16 * 16 * 3] = "P6\n16 16\n255\n";
    for (unsigned i = 0; i < IMAGES; i++) {
        char path[300];
        snprintf(path, sizeof path, "%s/c%u", root, i % 2);
        DL2_TRY(dl2_make_folders(path, error));
        snprintf(path, sizeof path, "%s/c%u/%04u.ppm", root, i % 2, i);
        DL2_TRY(dl2_file_write(path, data, sizeof data, error));
    }
    return DL2_OK;
}

/* Seconds of one epoch; waits[] gets what each batch took to come. */
static double run_epoch(struct dl2_loader *loader, uint64_t epoch, double *waits, size_t *count,
                        struct dl2_error *error)
{
    struct dl2_batch *batch;
    unsigned images = 0;
    const double start = dl2_clock_wall();
    if (dl2_loader_start_epoch(loader, epoch, 0, error) < 0)
        return -1;
    for (double last = start;;) {
        const int status = dl2_loader_next(loader, &batch, error);
        if (status < 0)
            return -1;
        if (status == 0)
            break;
        const double now = dl2_clock_wall();
        waits[(*count)++] = now - last;
        last = now;
        images += batch->count;
        dl2_loader_release(loader, batch);
    }
    if (images != IMAGES) {
        dl2_error_set(error, DL2_ERR_FORMAT, "%u images instead of %u", images, IMAGES);
        return -1;
    }
    return dl2_clock_wall() - start;
}

static int ascending(const void *left, const void *right)
{
    const double *a = left, *b = right;
    return (*a > *b) - (*a < *b);
}

static double quantile(double *values, size_t count, double part)
{
    qsort(values, count, sizeof *values, ascending);
    return values[(size_t)((double)(count - 1) * part)];
}

static int run(const struct dl2_dataset *dataset, struct dl2_loader_config *config,
               struct load *load, struct dl2_error *error)
{
    static const enum dl2_batching batching[MODES] = {DL2_BATCHING_STRICT, DL2_BATCHING_COMPLETION};
    static double rates[MODES][ROUNDS], waits[MODES][ROUNDS * EPOCHS * IMAGES], unused[IMAGES];
    struct dl2_loader *loaders[MODES] = {NULL};
    size_t count[MODES] = {0};
    const struct dl2_operation operations[] = {{"first", operate, load}, {"second", operate, load}};
    config->operations = operations;
    config->operation_count = 2;
    int status = DL2_OK;
    for (unsigned m = 0; m < MODES && status == DL2_OK; m++) {
        size_t none = 0;
        config->batching = batching[m];
        status = dl2_loader_create(dataset, config, &loaders[m], error);
        if (status == DL2_OK && run_epoch(loaders[m], 0, unused, &none, error) < 0)
            status = error->status;
    }
    for (unsigned r = 0; r < ROUNDS; r++)
        for (unsigned m = 0; m < MODES && status == DL2_OK; m++) {
            double seconds = 0;
            for (unsigned e = 0; e < EPOCHS && status == DL2_OK; e++) {
                const double took =
                    run_epoch(loaders[m], 1 + r * EPOCHS + e, waits[m], &count[m], error);
                status = took < 0 ? (int)error->status : DL2_OK;
                seconds += took;
            }
            rates[m][r] = EPOCHS * IMAGES / seconds;
        }
    if (status == DL2_OK) {
        double middle[MODES];
        for (unsigned m = 0; m < MODES; m++)
            middle[m] = quantile(rates[m], ROUNDS, 0.5);
        printf("| %u%% | %.0f | %.0f | %.2f |", load->percent, middle[0], middle[1],
               middle[1] / middle[0]);
        for (unsigned m = 0; m < MODES; m++)
            printf(" %.1f |", 1e3 * quantile(waits[m], count[m], 0.95));
        printf("\n");
        fflush(stdout);
    }
    for (unsigned m = 0; m < MODES; m++)
        dl2_loader_destroy(loaders[m]);
    return status;
}

int main(int argc, char **argv)
{
    struct load load = {.compute = argc > 1 && !strcmp(argv[1], "compute")};
    struct dl2_loader_config config = DL2_LOADER_DEFAULTS;
    config.workers = argc > 2 ? (unsigned)atoi(argv[2]) : 12;
    config.batch = argc > 3 ? (unsigned)atoi(argv[3]) : 4;
    load.factor = argc > 4 ? (unsigned)atoi(argv[4]) : 40;
    config.depth = argc > 5 ? (unsigned)atoi(argv[5]) : config.depth;
    config.height = 16;
    char root[] = "/tmp/bench-batching.XXXXXX", command[300];
    struct dl2_error error = DL2_ERROR_INIT;
    struct dl2_dataset *dataset = NULL;
    struct dl2_dataset_options options = DL2_DATASET_DEFAULTS;
    if (!mkdtemp(root))
        return 1;
    int status = write_images(root, &error);
    if (status == DL2_OK)
        status = dl2_dataset_open(root, &options, &dataset, &error);
    printf(
        "%u workers, %u batches of %u, slow samples %ux, %s\n"
        "| slow | strict | completion | completion/strict | wait of strict, ms | of completion |\n"
        "|---|---|---|---|---|---|\n",
        config.workers, config.depth, config.batch, load.factor,
        load.compute ? "computing" : "sleeping");
    static const unsigned percents[] = {0, 5, 25, 50, 75, 100};
    for (size_t i = 0; i < sizeof percents / sizeof *percents && status == DL2_OK; i++) {
        load.percent = percents[i];
        status = run(dataset, &config, &load, &error);
    }
    if (status < 0)
        fprintf(stderr, "bench_batching: %s\n", error.message);
    if (dataset)
        dl2_dataset_close(dataset);
    snprintf(command, sizeof command, "rm -rf %s", root);
    return system(command) || status < 0;
}
