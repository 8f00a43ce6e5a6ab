/*
 * A tree of files. All strings lie in one block, one after the other:
 *
 *   path "ROOT/train/rose/0017.jpg"   name: behind "ROOT/"   key "train/rose/0017"
 *
 * so opening costs a few allocations however many files there are.
 */
#include "dataset/source.h"

#include "common/file.h"

#include <stdlib.h>
#include <string.h>

/* Largest encoded sample that is read, bytes. */
#define MAX_SAMPLE_BYTES ((uint64_t)1 << 31)

enum part { PART_NONE, PART_TRAIN, PART_VAL };

struct entry {
    const char *path, *key;
    uint64_t bytes;
    int64_t mtime_ns;
    int label;
    enum part part;
};

struct folder {
    struct entry *entries; /* while opening: of all splits */
    size_t count;
    char *strings;
    size_t name_offset; /* strlen("ROOT/") */
};

/* A class name within a path. */
struct span {
    const char *text;
    size_t length;
};

static int compare_spans(const void *left, const void *right)
{
    const struct span *a = left, *b = right;
    size_t common = a->length < b->length ? a->length : b->length;
    int order = memcmp(a->text, b->text, common);
    return order ? order : (a->length > b->length) - (a->length < b->length);
}

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

/* The first part of `name` if it is a folder. */
static struct span first_folder(const char *name)
{
    const char *slash = strchr(name, '/');
    return (struct span){name, slash ? (size_t)(slash - name) : 0};
}

static bool span_is(struct span span, const char *text)
{
    return span.length == strlen(text) && !memcmp(span.text, text, span.length);
}

/*
 * Is this a tree with train/ and val/? Either both are there, or one of them and no other folder: a
 * dataset of vehicles may well have a class "train".
 */
static bool find_parts(struct folder *folder)
{
    bool train = false, val = false, other = false;
    for (size_t i = 0; i < folder->count; i++) {
        struct entry *entry = &folder->entries[i];
        struct span top = first_folder(name_of(folder, entry));
        entry->part = span_is(top, "train") ? PART_TRAIN
                      : span_is(top, "val") ? PART_VAL
                                            : PART_NONE;
        train |= entry->part == PART_TRAIN;
        val |= entry->part == PART_VAL;
        other |= entry->part == PART_NONE && top.length;
    }
    return (train && val) || ((train || val) && !other);
}

static struct span class_of(const struct folder *folder, const struct entry *entry, bool has_parts)
{
    const char *name = name_of(folder, entry);
    if (!has_parts)
        return first_folder(name);
    if (entry->part == PART_NONE)
        return (struct span){name, 0};
    return first_folder(strchr(name, '/') + 1);
}

static int list_classes(struct dl2_dataset *dataset, const struct span *spans, size_t count,
                        struct dl2_error *error)
{
    size_t size = 0;
    for (size_t i = 0; i < count; i++)
        size += spans[i].length + 1;
    char *text = dl2_realloc(NULL, size, 1);
    const char **names = dl2_calloc(count, sizeof *names);
    int status = DL2_OK;
    if (!text || !names || count > INT32_MAX)
        status = dl2_error_set(error, DL2_ERR_MEMORY, "out of memory for %zu classes", count);
    for (size_t i = 0, at = 0; status == DL2_OK && i < count; i++) {
        names[i] = text + at;
        memcpy(text + at, spans[i].text, spans[i].length);
        at += spans[i].length;
        text[at++] = '\0';
    }
    if (status == DL2_OK)
        status = dl2_dataset_set_classes(dataset, names, (unsigned)count, error);
    free(names);
    free(text);
    return status;
}

/*
 * Samples come sorted by path, so a class is a run of them, in each of train/ and val/: only the
 * runs are sorted and searched.
 */
static int label_entries(struct dl2_dataset *dataset, struct folder *folder, bool has_parts,
                         struct dl2_error *error)
{
    struct span *runs = dl2_realloc(NULL, folder->count, sizeof *runs);
    if (!runs)
        return dl2_error_set(error, DL2_ERR_MEMORY, "out of memory for classes");
    size_t run_count = 0;
    struct span last = {"", 0};
    for (size_t i = 0; i < folder->count; i++) {
        struct span class = class_of(folder, &folder->entries[i], has_parts);
        if (class.length && compare_spans(&class, &last))
            runs[run_count++] = last = class;
    }
    qsort(runs, run_count, sizeof *runs, compare_spans);
    size_t classes = 0;
    for (size_t i = 0; i < run_count; i++)
        if (!classes || compare_spans(&runs[i], &runs[classes - 1]))
            runs[classes++] = runs[i];
    last = (struct span){"", 0};
    int label = -1;
    for (size_t i = 0; i < folder->count; i++) {
        struct span class = class_of(folder, &folder->entries[i], has_parts);
        if (compare_spans(&class, &last)) {
            const struct span *found =
                class.length ? bsearch(&class, runs, classes, sizeof *runs, compare_spans) : NULL;
            label = found ? (int)(found - runs) : -1;
            last = class;
        }
        folder->entries[i].label = label;
    }
    int status = classes ? list_classes(dataset, runs, classes, error) : DL2_OK;
    free(runs);
    return status;
}

static int split_entries(struct folder *folder, const struct dl2_dataset_options *options,
                         struct dl2_error *error)
{
    const char **keys = dl2_realloc(NULL, folder->count, sizeof *keys);
    int *labels = dl2_realloc(NULL, folder->count, sizeof *labels);
    bool *is_val = dl2_realloc(NULL, folder->count, sizeof *is_val);
    int status = DL2_OK;
    if (!keys || !labels || !is_val)
        status = dl2_error_set(error, DL2_ERR_MEMORY, "out of memory for a split");
    for (size_t i = 0; status == DL2_OK && i < folder->count; i++) {
        keys[i] = folder->entries[i].key;
        labels[i] = folder->entries[i].label;
    }
    if (status == DL2_OK)
        status = dl2_split_by_rule(options, keys, labels, folder->count, is_val, error);
    for (size_t i = 0; status == DL2_OK && i < folder->count; i++)
        folder->entries[i].part = is_val[i] ? PART_VAL : PART_TRAIN;
    free(keys);
    free(labels);
    free(is_val);
    return status;
}

static void keep_part(struct folder *folder, enum part part, bool classless_too)
{
    size_t kept = 0;
    for (size_t i = 0; i < folder->count; i++)
        if (folder->entries[i].part == part && (classless_too || folder->entries[i].label >= 0))
            folder->entries[kept++] = folder->entries[i];
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
    const bool has_parts = find_parts(folder);
    DL2_TRY(label_entries(dataset, folder, has_parts, error));
    if (options->split != DL2_SPLIT_ALL) {
        if (!has_parts)
            DL2_TRY(split_entries(folder, options, error));
        keep_part(folder, options->split == DL2_SPLIT_TRAIN ? PART_TRAIN : PART_VAL,
                  dataset->class_count == 0);
    }
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
    .looks_for = "a folder of images, CLASS/FILE or {train,val}/CLASS/FILE",
    .probe = probe,
    .open = open_folder,
    .close = close_folder,
    .sample = sample_of_folder,
    .read = read_from_folder,
    .locate = locate_in_folder,
};
