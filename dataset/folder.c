/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Folders of image files. dl2-transcode writes each file by itself, so there is no writer here.
 *
 * All strings lie in one block, so that opening takes a few allocations for any number of files:
 *
 *   path "ROOT/train/rose/0017.jpg", with the name behind "ROOT/"; then key "train/rose/0017"
 */
#include "dataset/container.h"

#include "common/file.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Largest encoded sample that is read, bytes. */
#define MAX_SAMPLE_BYTES ((uint64_t)1 << 31)

struct entry {
    const char *path, *key;
    uint64_t bytes;
    int64_t mtime_ns;
    int label;
    uint8_t part; /* enum dl2_part */
};

struct folder {
    struct entry *entries;
    size_t count;
    char *strings;
    size_t name_offset; /* strlen("ROOT/") */
};

static bool folder_is_sample(const char *path, const struct dl2_dataset_options *options)
{
    const char *base = dl2_path_base(path);
    if (base[0] == '.' || !strcmp(base, "dl2-variant.json") || !strcmp(base, "dl2-variant.jsonl"))
        return false;
    return !options->keep || options->keep(path);
}

static const char *folder_name_of(const struct folder *folder, const struct entry *entry)
{
    return entry->path + folder->name_offset;
}

/* Fills in folder->entries, all but part and label. */
static int folder_collect(struct folder *folder, const char *root, const struct dl2_file_list *list,
                          const struct dl2_dataset_options *options, struct dl2_error *error)
{
    size_t root_length = strlen(root);
    while (root_length > 1 && root[root_length - 1] == '/')
        root_length--;
    const bool slash = root[root_length - 1] != '/';
    folder->name_offset = root_length + slash;
    size_t size = 0;
    for (size_t i = 0; i < list->count; i++)
        size += folder->name_offset + 2 * (strlen(list->paths[i]) + 1);
    folder->strings = dl2_realloc(NULL, size, 1);
    folder->entries = dl2_realloc(NULL, list->count, sizeof *folder->entries);
    if (!folder->strings || !folder->entries)
        return dl2_error_memory(error, "a dataset");
    char *at = folder->strings;
    for (size_t i = 0; i < list->count; i++) {
        const size_t length = strlen(list->paths[i]);
        char *path = at;
        memcpy(path, root, root_length);
        if (slash)
            path[root_length] = '/';
        memcpy(path + folder->name_offset, list->paths[i], length + 1);
        if (!folder_is_sample(path, options))
            continue;
        char *key = path + folder->name_offset + length + 1;
        const size_t stem = dl2_path_stem_length(list->paths[i]);
        memcpy(key, list->paths[i], stem);
        key[stem] = '\0';
        at = key + stem + 1;
        folder->entries[folder->count++] = (struct entry){
            .path = path, .key = key, .bytes = list->bytes[i], .mtime_ns = list->mtime_ns[i]};
    }
    return DL2_OK;
}

/* Sets parts and labels of all entries, and the dataset's classes. */
static int folder_read_names(struct dl2_dataset *dataset, struct folder *folder,
                             struct dl2_error *error)
{
    const char **names = dl2_calloc(folder->count, sizeof *names);
    if (!names)
        return dl2_error_memory(error, "a dataset");
    for (size_t i = 0; i < folder->count; i++)
        names[i] = folder_name_of(folder, &folder->entries[i]);
    struct dl2_tree tree;
    int status = dl2_tree_read(names, folder->count, &tree, error);
    free(names);
    if (status < 0)
        return status;
    for (size_t i = 0; i < folder->count; i++) {
        folder->entries[i].part = tree.parts[i];
        folder->entries[i].label = tree.labels[i];
    }
    dataset->has_parts = tree.has_parts;
    dataset->classes = tree.classes;
    dataset->class_count = tree.class_count;
    tree.classes = NULL;
    dl2_tree_free(&tree);
    return DL2_OK;
}

static int folder_open(struct dl2_dataset *dataset, const char *path,
                       const struct dl2_dataset_options *options, struct dl2_error *error)
{
    struct folder *folder = dl2_calloc(1, sizeof *folder);
    if (!folder)
        return dl2_error_memory(error, "a dataset");
    dataset->state = folder;
    struct dl2_file_list list;
    DL2_TRY(dl2_list_files(path, &list, error));
    int status = folder_collect(folder, path, &list, options, error);
    dl2_file_list_free(&list);
    dataset->count = folder->count;
    return status < 0 ? status : folder_read_names(dataset, folder, error);
}

static void folder_close(struct dl2_dataset *dataset)
{
    struct folder *folder = dataset->state;
    free(folder->entries);
    free(folder->strings);
    free(folder);
}

static void folder_describe(const struct dl2_dataset *dataset, size_t number, struct dl2_entry *out)
{
    const struct folder *folder = dataset->state;
    const struct entry *entry = &folder->entries[number];
    *out = (struct dl2_entry){.key = entry->key,
                              .name = folder_name_of(folder, entry),
                              .label = entry->label,
                              .part = entry->part};
}

static void folder_sample(const struct dl2_dataset *dataset, size_t number,
                          struct dl2_sample *sample)
{
    const struct folder *folder = dataset->state;
    const struct entry *entry = &folder->entries[number];
    *sample = (struct dl2_sample){
        .key = entry->key,
        .path = entry->path,
        .name = folder_name_of(folder, entry),
        .extension = dl2_path_extension(entry->path),
        .label = entry->label,
        .bytes = entry->bytes,
        .mtime_ns = entry->mtime_ns,
    };
}

static int folder_read(const struct dl2_dataset *dataset, size_t number,
                       const struct dl2_slice_range *slices, struct dl2_bytes *scratch,
                       const uint8_t **data, size_t *size, struct dl2_error *error)
{
    (void)slices; /* files are not cut */
    const struct folder *folder = dataset->state;
    DL2_TRY(dl2_file_read(folder->entries[number].path, MAX_SAMPLE_BYTES, scratch, error));
    *data = scratch->data;
    *size = scratch->size;
    return DL2_OK;
}

static int folder_read_beside(const struct dl2_dataset *dataset, size_t number,
                              const char *extension, struct dl2_bytes *out, struct dl2_error *error)
{
    const struct folder *folder = dataset->state;
    const char *path = folder->entries[number].path;
    char *beside;
    if (asprintf(&beside, "%.*s.%s", (int)dl2_path_stem_length(path), path, extension) < 0)
        return dl2_error_memory(error, "a path");
    const bool there = dl2_is_file(beside);
    const int status = there ? dl2_file_read(beside, MAX_SAMPLE_BYTES, out, error) : DL2_OK;
    free(beside);
    return status < 0 ? status : there;
}

static bool folder_locate(const struct dl2_dataset *dataset, size_t number,
                          const struct dl2_slice_range *slices, struct dl2_location *location)
{
    (void)slices;
    const struct folder *folder = dataset->state;
    const struct entry *entry = &folder->entries[number];
    *location = (struct dl2_location){entry->path, -1, 0, entry->bytes};
    return true;
}

static const struct dl2_reader folder_reader = {
    .open = folder_open,
    .close = folder_close,
    .describe = folder_describe,
    .sample = folder_sample,
    .read = folder_read,
    .read_beside = folder_read_beside,
    .locate = folder_locate,
};

const struct dl2_container dl2_container_folder = {
    .name = "folder",
    .extensions = "-",
    .summary = "class folders of image files",
    .looks_for = "a folder of images, CLASS/FILE or {train,val,test}/CLASS/FILE",
    .can_write = true,
    .reader = &folder_reader,
    .probe = dl2_is_folder,
};
