/* SPDX-License-Identifier: BSD-2-Clause */
#include "tests/dataset/scratch.h"

#include "common/file.h"

char root[256];

int make_root(void **state)
{
    (void)state;
    const char *base = getenv("TMPDIR");
    snprintf(root, sizeof root, "%s/dl2-dataset.XXXXXX", base ? base : "/tmp");
    return mkdtemp(root) ? 0 : -1;
}

int remove_root(void **state)
{
    (void)state;
    remove_folder("");
    return 0;
}

const char *at(const char *name)
{
    static char paths[8][600];
    static unsigned next;
    char *path = paths[next++ % 8];
    snprintf(path, sizeof paths[0], *name ? "%s/%s" : "%s", root, name);
    return path;
}

void put_bytes(const char *name, const void *data, size_t size)
{
    struct dl2_error error = DL2_ERROR_INIT;
    char folder[600];
    snprintf(folder, sizeof folder, "%s", at(name));
    *strrchr(folder, '/') = '\0';
    if (dl2_make_folders(folder, &error) < 0 || dl2_file_write(at(name), data, size, &error) < 0)
        fail_msg("%s", error.message);
}

void put_text(const char *name, const char *text)
{
    put_bytes(name, text, strlen(text));
}

void put(const char *name)
{
    put_text(name, name);
}

void load(const char *name, struct dl2_bytes *bytes)
{
    assert_int_equal(dl2_file_read(at(name), 1 << 20, bytes, NULL), 0);
}

void remove_folder(const char *name)
{
    char command[1300];
    snprintf(command, sizeof command, "chmod -R u+rwX '%s' && rm -r '%s'", at(name), at(name));
    assert_int_equal(system(command), 0);
}

struct dl2_dataset *open_with(const char *name, const struct dl2_dataset_options *options)
{
    struct dl2_dataset *dataset;
    struct dl2_error error = DL2_ERROR_INIT;
    if (dl2_dataset_open(at(name), options, &dataset, &error) < 0)
        fail_msg("%s", error.message);
    return dataset;
}

struct dl2_dataset *open_split(const char *name, const char *split)
{
    struct dl2_dataset_options options = DL2_DATASET_DEFAULTS;
    options.split = split;
    return open_with(name, &options);
}

struct dl2_dataset *open_any(const char *name, const char *split)
{
    struct dl2_dataset_options options = DL2_DATASET_DEFAULTS;
    options.split = split;
    struct dl2_dataset *dataset;
    dl2_dataset_open(at(name), &options, &dataset, NULL);
    return dataset;
}

void refuse_split(const char *name, const char *split, int status, const char *word)
{
    struct dl2_dataset_options options = DL2_DATASET_DEFAULTS;
    options.split = split;
    struct dl2_dataset *dataset;
    struct dl2_error error = DL2_ERROR_INIT;
    const int got = dl2_dataset_open(at(name), &options, &dataset, &error);
    if (got != status || !strstr(error.message, word) || !strstr(error.message, root))
        fail_msg("status %d, \"%s\"; wanted %d with \"%s\"", got, error.message, status, word);
    assert_null(dataset);
}

void refuse(const char *name, int status, const char *word)
{
    refuse_split(name, "all", status, word);
}

struct dl2_sample sample_of(const struct dl2_dataset *dataset, size_t index)
{
    struct dl2_sample sample;
    dl2_dataset_sample(dataset, index, &sample);
    return sample;
}

void expect_sample(const struct dl2_dataset *dataset, size_t index, const void *data, size_t size)
{
    struct dl2_bytes scratch = DL2_BYTES_INIT;
    struct dl2_error error = DL2_ERROR_INIT;
    const uint8_t *found;
    size_t found_size;
    if (dl2_dataset_read(dataset, index, &scratch, &found, &found_size, &error) < 0)
        fail_msg("%s", error.message);
    assert_int_equal(found_size, size);
    assert_memory_equal(found, data, size);
    dl2_bytes_free(&scratch);
}

const char *describe(const struct dl2_dataset *dataset)
{
    static char text[4096];
    size_t used = 0;
    text[0] = '\0';
    for (size_t i = 0; i < dl2_dataset_count(dataset); i++) {
        const struct dl2_sample sample = sample_of(dataset, i);
        used += (size_t)snprintf(text + used, sizeof text - used, "%s%s:%d", i ? " " : "",
                                 sample.key, sample.label);
    }
    return text;
}

void expect_split(const char *name, const char *split, const char *description)
{
    struct dl2_dataset *dataset = open_split(name, split);
    assert_string_equal(describe(dataset), description);
    dl2_dataset_close(dataset);
}

void expect_count(const char *name, size_t count)
{
    struct dl2_dataset *dataset = open_split(name, "all");
    assert_int_equal(dl2_dataset_count(dataset), count);
    dl2_dataset_close(dataset);
}
