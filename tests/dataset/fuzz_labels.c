/* SPDX-License-Identifier: BSD-2-Clause */
/* Any bytes as a list of the labels of videos: an error, or a dataset with a class for each video
 * or frame. */
#include "dataset/dataset.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* The videos and frames that lists may name; nothing opens them. They are gone when the process
 * ends. */
static char root[] = "fuzz_labels.XXXXXX";
static const char *const names[] = {"1.webm",  "2.mp4",   "abc_000001_000011.mp4",
                                    "a b.avi", "3/1.jpg", "3/2.jpg"};

static void remove_videos(void)
{
    char path[64];
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        snprintf(path, sizeof path, "%s/%s", root, names[i]);
        remove(path);
    }
    snprintf(path, sizeof path, "%s/3", root);
    remove(path);
    remove(root);
}

static void make_videos(void)
{
    char path[64];
    if (!mkdtemp(root))
        abort();
    atexit(remove_videos);
    snprintf(path, sizeof path, "%s/3", root);
    if (mkdir(path, 0777) < 0)
        abort();
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        snprintf(path, sizeof path, "%s/%s", root, names[i]);
        FILE *file = fopen(path, "w");
        if (!file || fclose(file) != 0)
            abort();
    }
}

static bool is_frame(const char *path)
{
    return strstr(path, ".jpg");
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static char lists[64];
    static int fd;
    if (!fd) {
        make_videos();
        fd = memfd_create("fuzz_labels", MFD_CLOEXEC);
        snprintf(lists, sizeof lists, "/proc/self/fd/%d", fd);
    }
    if (fd < 0 || ftruncate(fd, 0) != 0 || pwrite(fd, data, size, 0) != (ssize_t)size)
        abort();
    const struct dl2_dataset_options options = {
        .split = "all", .keep = is_frame, .takes_videos = true, .labels = lists};
    struct dl2_error error = DL2_ERROR_INIT;
    struct dl2_dataset *dataset;
    struct dl2_sample sample;
    if (dl2_dataset_open(root, &options, &dataset, &error) < 0) {
        if (!error.message[0])
            abort();
        return 0;
    }
    if (dl2_dataset_kind(dataset) == DL2_SAMPLE_VOLUME)
        abort();
    for (size_t i = 0; i < dl2_dataset_count(dataset); i++) {
        dl2_dataset_sample(dataset, i, &sample);
        const char *class =
            sample.label < 0 ? NULL : dl2_dataset_class_name(dataset, (unsigned)sample.label);
        if ((class && !strstr(sample.key, class)) || strncmp(sample.path, root, strlen(root)) != 0)
            abort();
    }
    dl2_dataset_close(dataset);
    return 0;
}
