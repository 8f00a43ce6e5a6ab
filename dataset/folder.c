/*
 * A tree of files. All strings lie in one block, one after the other:
 *
 *   path "ROOT/train/rose/0017.jpg"   name: behind "ROOT/"   key "train/rose/0017"
 *
 * so opening costs a few allocations however many files there are.
 */
#include "dataset/source.h"

#include "common/file.h"
#include "dataset/tree.h"

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
    struct entry *entries; /* while opening: of all splits */
    size_t count;
    char *strings;
    size_t name_offset; /* strlen("ROOT/") */
};

static bool probe(const char *path)
{
    return dl2_is_folder(path);
}

static bool is_sample(const char *path, const struct dl2_dataset_options *options)
{
    const char *base = dl2_path_base(path);
    if (base[0] == '.' || !strcmp(base, "dl2-variant.json") || !strcmp(base, "dl2-variant.jsonl"))
        return false;
    return !options->keep || options->keep(path);
}

static const char *name_of(const struct folder *folder, const struct entry *entry)
{
    return entry->path + folder->name_offset;
}

/* Fills in folder->entries but for part and label. */
static int collect(struct folder *folder, const char *root, const struct dl2_file_list *list,
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
        return dl2_error_set(error, DL2_ERR_MEMORY, "out of memory for %zu files", list->count);
    char *at = folder->strings;
    for (size_t i = 0; i < list->count; i++) {
        const size_t length = strlen(list->paths[i]);
        char *path = at;
        memcpy(path, root, root_length);
        if (slash)
            path[root_length] = '/';
        memcpy(path + folder->name_offset, list->paths[i], length + 1);
        if (!is_sample(path, options))
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

/* Parts and labels, and the dataset's classes. */
static int describe(struct dl2_dataset *dataset, struct folder *folder, struct dl2_error *error)
{
    const char **names = dl2_calloc(folder->count, sizeof *names);
    if (!names)
        return dl2_error_set(error, DL2_ERR_MEMORY, "out of memory for classes");
    for (size_t i = 0; i < folder->count; i++)
        names[i] = name_of(folder, &folder->entries[i]);
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

static int split_entries(struct dl2_dataset *dataset, struct folder *folder,
                         const struct dl2_dataset_options *options, struct dl2_error *error)
{
    const char **keys = dl2_realloc(NULL, folder->count, sizeof *keys);
    int *labels = dl2_realloc(NULL, folder->count, sizeof *labels);
    uint8_t *parts = dl2_calloc(folder->count, sizeof *parts);
    int status = DL2_OK;
    if (!keys || !labels || !parts)
        status = dl2_error_set(error, DL2_ERR_MEMORY, "out of memory for a split");
    for (size_t i = 0; status == DL2_OK && i < folder->count; i++) {
        keys[i] = folder->entries[i].key;
        labels[i] = folder->entries[i].label;
    }
    if (status == DL2_OK)
        status =
            dl2_dataset_assign_parts(dataset, options, keys, labels, folder->count, parts, error);
    for (size_t i = 0; status == DL2_OK && i < folder->count; i++)
        folder->entries[i].part = parts[i];
    free(keys);
    free(labels);
    free(parts);
    return status;
}

static void keep_split(struct dl2_dataset *dataset, struct folder *folder, enum dl2_split split)
{
    size_t kept = 0;
    for (size_t i = 0; i < folder->count; i++) {
        const struct entry *entry = &folder->entries[i];
        dl2_dataset_note(dataset, entry->part, entry->label, name_of(folder, entry));
        if (dl2_dataset_wants(dataset, split, entry->part, entry->label))
            folder->entries[kept++] = *entry;
    }
    folder->count = kept;
}

static int open_list(struct dl2_dataset *dataset, const char *path,
                     const struct dl2_dataset_options *options, const struct dl2_file_list *list,
                     struct dl2_error *error)
{
    struct folder *folder = dl2_calloc(1, sizeof *folder);
    if (!folder)
        return dl2_error_set(error, DL2_ERR_MEMORY, "out of memory for a dataset");
    dataset->state = folder;
    DL2_TRY(collect(folder, path, list, options, error));
    DL2_TRY(describe(dataset, folder, error));
    if (options->split != DL2_SPLIT_ALL && !dataset->has_parts)
        DL2_TRY(split_entries(dataset, folder, options, error));
    keep_split(dataset, folder, options->split);
    dataset->count = folder->count;
    return DL2_OK;
}

static int open_folder(struct dl2_dataset *dataset, const char *path,
                       const struct dl2_dataset_options *options, struct dl2_error *error)
{
    struct dl2_file_list list;
    DL2_TRY(dl2_list_files(path, &list, error));
    int status = open_list(dataset, path, options, &list, error);
    dl2_file_list_free(&list);
    return status;
}

static void close_folder(struct dl2_dataset *dataset)
{
    struct folder *folder = dataset->state;
    if (!folder)
        return;
    free(folder->entries);
    free(folder->strings);
    free(folder);
}

static void sample_of_folder(const struct dl2_dataset *dataset, size_t index,
                             struct dl2_sample *sample)
{
    const struct folder *folder = dataset->state;
    const struct entry *entry = &folder->entries[index];
    *sample = (struct dl2_sample){
        .key = entry->key,
        .path = entry->path,
        .name = name_of(folder, entry),
        .extension = dl2_path_extension(entry->path),
        .label = entry->label,
        .bytes = entry->bytes,
        .mtime_ns = entry->mtime_ns,
    };
}

static int read_from_folder(const struct dl2_dataset *dataset, size_t index,
                            struct dl2_bytes *scratch, const uint8_t **data, size_t *size,
                            struct dl2_error *error)
{
    const struct folder *folder = dataset->state;
    DL2_TRY(dl2_file_read(folder->entries[index].path, MAX_SAMPLE_BYTES, scratch, error));
    *data = scratch->data;
    *size = scratch->size;
    return DL2_OK;
}

static bool locate_in_folder(const struct dl2_dataset *dataset, size_t index,
                             struct dl2_location *location)
{
    const struct folder *folder = dataset->state;
    const struct entry *entry = &folder->entries[index];
    *location = (struct dl2_location){entry->path, -1, 0, entry->bytes};
    return true;
}

const struct dl2_source dl2_source_folder = {
    .name = "folder",
    .looks_for = "a folder of images, CLASS/FILE or {train,val,test}/CLASS/FILE",
    .probe = probe,
    .open = open_folder,
    .close = close_folder,
    .sample = sample_of_folder,
    .read = read_from_folder,
    .locate = locate_in_folder,
};
