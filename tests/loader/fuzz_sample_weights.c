/* SPDX-License-Identifier: BSD-2-Clause */
/* Any bytes as a file of weights: an error, or a number of at least 0 for each sample. */
#include "loader/sample_weights.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const char *const names[] = {"a", "a/x.jpg", "a/y.jpg", "b c", "b c/z 1.jpg"};

/* A dataset without an image: its keys are all that counts here. */
static struct dl2_dataset *make_dataset(void)
{
    char root[] = "fuzz_sample_weights.XXXXXX", path[64];
    struct dl2_dataset *dataset;
    if (!mkdtemp(root))
        abort();
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        snprintf(path, sizeof path, "%s/%s", root, names[i]);
        if (i == 0 || i == 3) {
            if (mkdir(path, 0700) != 0)
                abort();
            continue;
        }
        FILE *file = fopen(path, "w");
        if (!file || fputs("x", file) < 0 || fclose(file) != 0)
            abort();
    }
    const struct dl2_dataset_options options = {.split = "all"};
    const int status = dl2_dataset_open(root, &options, &dataset, NULL);
    for (size_t i = sizeof names / sizeof *names; i-- > 0;) {
        snprintf(path, sizeof path, "%s/%s", root, names[i]);
        remove(path);
    }
    remove(root);
    if (status < 0 || dl2_dataset_count(dataset) != 3)
        abort();
    return dataset;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static struct dl2_dataset *dataset;
    static char path[32];
    static int fd;
    if (!dataset) {
        dataset = make_dataset();
        fd = memfd_create("fuzz_sample_weights", MFD_CLOEXEC);
        snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
    }
    if (fd < 0 || ftruncate(fd, 0) != 0 || pwrite(fd, data, size, 0) != (ssize_t)size)
        abort();
    struct dl2_error error = DL2_ERROR_INIT;
    double *weights;
    if (dl2_sample_weights_read(path, dataset, &weights, &error) < 0) {
        if (!error.message[0] || weights)
            abort();
        return 0;
    }
    for (size_t i = 0; i < dl2_dataset_count(dataset); i++)
        if (!(weights[i] >= 0 && isfinite(weights[i])))
            abort();
    free(weights);
    return 0;
}
