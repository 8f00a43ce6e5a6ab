/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What opening a dataset costs, and holding samples against their check sums. Not a test.
 *
 *   bench_dataset make CONTAINER PATH COUNT BYTES   makes COUNT samples in 1000 classes
 *   bench_dataset open PATH   times opening it, whole and its training split
 *   bench_dataset read PATH   times reading all samples, and computing their check sums
 */
#include "common/clock.h"
#include "dataset/dataset.h"
#include "dataset/write/writer.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { CLASSES = 1000 };

static int make(const char *container, const char *path, size_t count, size_t bytes,
                struct dl2_error *error)
{
    const struct dl2_writer_options options = {.container = container};
    static char names[CLASSES][8];
    const char *classes[CLASSES];
    for (int i = 0; i < CLASSES; i++) {
        snprintf(names[i], sizeof names[i], "n%05d", i);
        classes[i] = names[i];
    }
    uint8_t *data = malloc(bytes);
    struct dl2_writer *writer;
    if (!data)
        return DL2_ERR_MEMORY;
    for (size_t i = 0; i < bytes; i++)
        data[i] = (uint8_t)(i * 2654435761u >> 24);
    int status = dl2_writer_open(path, &options, classes, CLASSES, &writer, error);
    for (size_t i = 0; status == DL2_OK && i < count; i++) {
        char key[64];
        const size_t class = i * CLASSES / count;
        snprintf(key, sizeof key, "%s/%s_%08zu", names[class], names[class], i);
        status = dl2_writer_add(writer, key, "jpg", (int)class, data, bytes, error);
    }
    if (status == DL2_OK)
        status = dl2_writer_finish(writer, error);
    dl2_writer_close(writer);
    free(data);
    return status;
}

static int open_it(const char *path, struct dl2_error *error)
{
    static const char *const names[] = {"all", "train"};
    for (int split = 0; split < 2; split++) {
        struct dl2_dataset_options options = DL2_DATASET_DEFAULTS;
        options.split = names[split];
        struct dl2_dataset *dataset;
        const double start = dl2_clock_wall(), cpu = dl2_clock_thread_cpu();
        DL2_TRY(dl2_dataset_open(path, &options, &dataset, error));
        const double took = dl2_clock_wall() - start, used = dl2_clock_thread_cpu() - cpu;
        printf("%s: %-5s %zu samples in %.1f ms (%.1f ms CPU), container %s\n", path, names[split],
               dl2_dataset_count(dataset), took * 1e3, used * 1e3, dl2_dataset_container(dataset));
        dl2_dataset_close(dataset);
    }
    return DL2_OK;
}

static int read_it(const char *path, struct dl2_error *error)
{
    const struct dl2_dataset_options options = DL2_DATASET_DEFAULTS;
    struct dl2_dataset *dataset;
    DL2_TRY(dl2_dataset_open(path, &options, &dataset, error));
    struct dl2_bytes scratch = DL2_BYTES_INIT;
    double all = 0, sums = 0, bytes = 0;
    const double begin = dl2_clock_wall();
    int status = DL2_OK;
    const size_t count = dl2_dataset_count(dataset);
    for (size_t i = 0; status == DL2_OK && i < count; i++) {
        const uint8_t *data;
        size_t size;
        const double start = dl2_clock_thread_cpu();
        status = dl2_dataset_read(dataset, i, &scratch, &data, &size, error);
        const double between = dl2_clock_thread_cpu();
        if (status == DL2_OK)
            status = dl2_dataset_verify(dataset, i, data, size, error);
        sums += dl2_clock_thread_cpu() - between;
        all += between - start;
        bytes += (double)size;
    }
    if (status == DL2_OK)
        printf("%s: %zu samples of %.0f bytes: %.2f us CPU to read one, %.2f us of that for its "
               "check sum (%.1f GB/s); %.0f MB/s in all\n",
               path, count, bytes / (double)count, 1e6 * all / (double)count,
               1e6 * sums / (double)count, bytes / sums / 1e9,
               bytes / (dl2_clock_wall() - begin) / 1e6);
    dl2_bytes_free(&scratch);
    dl2_dataset_close(dataset);
    return status;
}

int main(int argc, char **argv)
{
    struct dl2_error error = DL2_ERROR_INIT;
    int status = DL2_ERR_ARGUMENT;
    if (argc == 6 && !strcmp(argv[1], "make"))
        status = make(argv[2], argv[3], strtoull(argv[4], NULL, 10), strtoull(argv[5], NULL, 10),
                      &error);
    else if (argc == 3 && !strcmp(argv[1], "open"))
        status = open_it(argv[2], &error);
    else if (argc == 3 && !strcmp(argv[1], "read"))
        status = read_it(argv[2], &error);
    else
        dl2_error_set(&error, status, "see the head of bench_dataset.c for how to use it");
    if (status < 0)
        fprintf(stderr, "%s\n", error.message);
    return status < 0;
}
