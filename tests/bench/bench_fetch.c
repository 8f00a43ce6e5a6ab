/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * How fast encoded samples come from storage (loader/fetch.h):
 *
 *     bench_fetch PHOTOS SCRATCH [COPIES [WORK]]
 *
 * Copies a dataset's samples COPIES times (default 4) into a class folder and into tar shards below
 * SCRATCH, which is removed at the end, then lets one worker take epochs of them, by every way to
 * read, with the files in the page cache and evicted from it. The worker computes for WORK
 * microseconds a sample (default 0), as a decoder would. The ways take turns; printed is the
 * median of five rounds: samples and megabytes a second, CPU microseconds a sample (of the whole
 * process, system calls included, without WORK), samples a request, and the part that was read
 * ahead.
 *
 * Orders: "shuffled", uniformly; "quasi", chunks of 16 neighbors, shuffled among 16 chunks.
 */
#include "common/clock.h"
#include "common/file.h"
#include "dataset/write/writer.h"
#include "loader/fetch.h"
#include "loader/loader.h"
#include "loader/sampler.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { ROUNDS = 5 };

static const struct {
    enum dl2_io io;
    const char *name;
} ways[] = {{DL2_IO_DIRECT, "direct"},
            {DL2_IO_THREADS, "threads"},
            {DL2_IO_URING, "uring"},
            {DL2_IO_AUTO, "auto"}};

#define WAYS (sizeof ways / sizeof ways[0])

struct result {
    double seconds, cpu, per_request, ahead, resident;
};

static int compare_results(const void *left, const void *right)
{
    const struct result *a = left, *b = right;
    return (a->seconds > b->seconds) - (a->seconds < b->seconds);
}

static int write_copies(const struct dl2_dataset *from, const char *root, unsigned copies,
                        struct dl2_error *error)
{
    char *folder = dl2_path_join(root, "folder"), *tar = dl2_path_join(root, "tar");
    const struct dl2_writer_options options = {.container = "tar"};
    const char *class = "photo";
    struct dl2_writer *writer = NULL;
    struct dl2_bytes scratch = DL2_BYTES_INIT;
    int status = folder && tar ? DL2_OK : dl2_error_set(error, DL2_ERR_MEMORY, "out of memory");
    if (status == DL2_OK)
        status = dl2_make_folders(tar, error);
    if (status == DL2_OK)
        status = dl2_writer_open(tar, &options, &class, 1, &writer, error);
    for (unsigned copy = 0; status == DL2_OK && copy < copies; copy++) {
        char below[32], key[32], name[40];
        snprintf(below, sizeof below, "photo/%03u", copy);
        char *place = dl2_path_join(folder, below);
        status = dl2_make_folders(place, error);
        for (size_t i = 0; status == DL2_OK && i < dl2_dataset_count(from); i++) {
            const uint8_t *data;
            size_t size;
            snprintf(key, sizeof key, "%06zu", i);
            snprintf(name, sizeof name, "%s.jpg", key);
            char *path = dl2_path_join(place, name), *whole = dl2_path_join(below, key);
            status = dl2_dataset_read(from, i, &scratch, &data, &size, error);
            if (status == DL2_OK)
                status = dl2_file_write(path, data, size, error);
            if (status == DL2_OK)
                status = dl2_writer_add(writer, whole, "jpg", 0, data, size, error);
            free(path);
            free(whole);
        }
        free(place);
    }
    if (status == DL2_OK)
        status = dl2_writer_finish(writer, error);
    if (writer)
        dl2_writer_close(writer);
    dl2_bytes_free(&scratch);
    free(folder);
    free(tar);
    return status;
}

static void spend(double seconds)
{
    const double end = dl2_clock_thread_cpu() + seconds;
    while (seconds > 0 && dl2_clock_thread_cpu() < end)
        ;
}

static int run(const struct dl2_dataset *dataset, const struct dl2_sampler *sampler, enum dl2_io io,
               bool cold, double work, struct result *result, struct dl2_error *error)
{
    const struct dl2_fetch_config config = {.io = io};
    const struct dl2_loader_config loader = DL2_LOADER_DEFAULTS;
    const struct dl2_planner planner = dl2_planner_of(dataset, &loader);
    struct dl2_sample_plan plan = {.epoch_position = 0};
    struct dl2_fetch *fetch;
    struct dl2_fetched fetched = {0};
    struct dl2_fetch_stats stats;
    DL2_TRY(dl2_fetch_create(&planner, &config, &fetch, error));
    int status = DL2_OK;
    if (cold)
        status = dl2_fetch_evict(dataset, &result->resident, error);
    const double start = dl2_clock_wall(), cpu = dl2_clock_process_cpu();
    dl2_fetch_start(fetch, sampler->order, sampler->positions);
    volatile unsigned sum = 0;
    for (uint32_t i = 0; status == DL2_OK && i < sampler->positions; i++) {
        status = dl2_fetch_acquire(fetch, i, sampler->order[i], &plan, &fetched, error);
        if (status == DL2_OK)
            for (size_t at = 0; at < fetched.size; at += 64)
                sum += fetched.data[at];
        spend(work);
        dl2_fetch_release(fetch, &fetched);
    }
    result->seconds = dl2_clock_wall() - start;
    result->cpu = dl2_clock_process_cpu() - cpu - work * sampler->positions;
    dl2_fetch_get_stats(fetch, &stats);
    result->per_request = (double)sampler->positions / (double)stats.requests;
    result->ahead = (double)stats.ahead / sampler->positions;
    dl2_bytes_free(&fetched.scratch);
    dl2_fetch_destroy(fetch);
    return status;
}

static int compare_ways(const struct dl2_dataset *dataset, const char *container, bool quasi,
                        bool cold, double work, struct dl2_error *error)
{
    struct dl2_sampler sampler;
    struct result results[WAYS][ROUNDS] = {{{0}}};
    uint64_t bytes = 0;
    const uint32_t count = (uint32_t)dl2_dataset_count(dataset);
    const struct dl2_loader_config order = {.batch = 1,
                                            .train = true,
                                            .shuffle_chunk = quasi ? 16 : 0,
                                            .shuffle_window = quasi ? 16 : 0};
    for (uint32_t i = 0; i < count; i++) {
        struct dl2_sample sample;
        dl2_dataset_sample(dataset, i, &sample);
        bytes += sample.bytes;
    }
    DL2_TRY(dl2_sampler_init(&sampler, &order, count, error));
    int status = DL2_OK;
    for (unsigned round = 0; status == DL2_OK && round < ROUNDS; round++)
        for (unsigned w = 0; status == DL2_OK && w < WAYS; w++) {
            status = run(dataset, &sampler, ways[w].io, cold, work, &results[w][round], error);
            if (status == DL2_ERR_UNSUPPORTED) {
                dl2_error_clear(error);
                status = DL2_OK;
            }
        }
    for (unsigned w = 0; status == DL2_OK && w < WAYS; w++) {
        qsort(results[w], ROUNDS, sizeof results[w][0], compare_results);
        const struct result *result = &results[w][ROUNDS / 2];
        if (!result->seconds) {
            printf("| %s | %s | %s | %s | not here |\n", container, quasi ? "quasi" : "shuffled",
                   cold ? "cold" : "warm", ways[w].name);
            continue;
        }
        double resident = 0;
        for (unsigned i = 0; i < ROUNDS; i++)
            if (results[w][i].resident > resident)
                resident = results[w][i].resident;
        printf("| %s | %s | %s | %s | %.0f | %.0f | %.1f | %.1f | %.0f%% |", container,
               quasi ? "quasi" : "shuffled", cold ? "cold" : "warm", ways[w].name,
               count / result->seconds, (double)bytes * 1e-6 / result->seconds,
               result->cpu / count * 1e6, result->per_request, result->ahead * 100);
        if (resident > 0.001)
            printf(" %.1f%% of it was still in the page cache", resident * 100);
        printf("\n");
        fflush(stdout);
    }
    dl2_sampler_free(&sampler);
    return status;
}

static int measure(const char *root, const char *container, double work, struct dl2_error *error)
{
    const struct dl2_dataset_options options = DL2_DATASET_DEFAULTS;
    struct dl2_dataset *dataset = NULL;
    char *path = dl2_path_join(root, container);
    int status = dl2_dataset_open(path, &options, &dataset, error);
    for (unsigned i = 0; status == DL2_OK && i < 4; i++)
        if (!(i & 1) || strcmp(container, "folder")) /* files of their own have no neighbors */
            status = compare_ways(dataset, container, i & 1, i & 2, work, error);
    if (dataset)
        dl2_dataset_close(dataset);
    free(path);
    return status;
}

static int bench(const char *photos, const char *root, unsigned copies, double work,
                 struct dl2_error *error)
{
    const struct dl2_dataset_options options = DL2_DATASET_DEFAULTS;
    struct dl2_dataset *dataset;
    DL2_TRY(dl2_dataset_open(photos, &options, &dataset, error));
    int status = write_copies(dataset, root, copies, error);
    dl2_dataset_close(dataset);
    DL2_TRY(status);
    sync();
    printf("| container | order | files | way | samples/s | MB/s | CPU us a sample | samples a "
           "request | ahead |\n|---|---|---|---|---|---|---|---|---|\n");
    DL2_TRY(measure(root, "folder", work, error));
    return measure(root, "tar", work, error);
}

int main(int argc, char **argv)
{
    struct dl2_error error = DL2_ERROR_INIT;
    if (argc < 3) {
        fprintf(stderr, "usage: bench_fetch PHOTOS SCRATCH [COPIES [WORK]]\n");
        return 2;
    }
    char *root = dl2_path_join(argv[2], "bench_fetch.XXXXXX");
    if (!root || !mkdtemp(root)) {
        perror(argv[2]);
        return 1;
    }
    const int status = bench(argv[1], root, argc > 3 ? (unsigned)atoi(argv[3]) : 4,
                             argc > 4 ? atof(argv[4]) * 1e-6 : 0, &error);
    if (status < 0)
        fprintf(stderr, "bench_fetch: %s\n", error.message);
    char command[4096];
    snprintf(command, sizeof command, "rm -rf '%s'", root);
    if (system(command) != 0)
        fprintf(stderr, "bench_fetch: %s is left behind\n", root);
    free(root);
    return status < 0;
}
