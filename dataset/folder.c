/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Folders of image files. dl2-transcode writes each file by itself, so there is no writer here.
 *
 * All strings lie in one block, so that opening takes a few allocations for any number of files:
 *
 *   path "ROOT/train/rose/0017.jpg", with the name behind "ROOT/"; then key "train/rose/0017"
 *
 * Files that are no samples have entries, too, if they lie beside a sample.
 */
#include "dataset/container.h"

#include "common/file.h"
#include "common/quote.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <xxhash.h>

/* Largest encoded sample that is read, bytes. */
#define MAX_SAMPLE_BYTES ((uint64_t)1 << 31)

struct entry {
    const char *path, *key;
    uint64_t bytes;
    int64_t mtime_ns;
    int label;
    uint8_t part;
};

/* A file beside a sample. */
struct companion {
    const char *path, *extension;
    uint64_t bytes;
    int64_t mtime_ns;
    size_t owner; /* number of the sample; SIZE_MAX: none */
};

struct folder {
    struct entry *entries;
    size_t count;
    struct companion *companions; /* by owner and extension, once the folder is open */
    size_t companion_count;
    size_t ignored; /* other files */
    char *strings;
    size_t name_offset; /* strlen("ROOT/") */
};

/* Files that are neither samples nor beside one. */
static bool folder_hides(const char *path)
{
    const char *base = dl2_path_base(path);
    return base[0] == '.' || !strcmp(base, "dl2-variant.json") ||
           !strcmp(base, "dl2-variant.jsonl");
}

/* Does a file's name end in a dot and one of the extensions? */
static bool folder_has_extension(const char *base, const char *extensions)
{
    const size_t whole = strlen(base);
    for (const char *at = extensions; at && *at;) {
        const size_t length = strcspn(at, ",");
        if (length && whole > length + 1 && base[whole - length - 1] == '.' &&
            !strncmp(base + whole - length, at, length))
            return true;
        at += length + (at[length] == ',');
    }
    return false;
}

static bool folder_is_sample(const char *path, const struct dl2_dataset_options *options)
{
    return !folder_has_extension(dl2_path_base(path), options->sidecars) &&
           (!options->keep || options->keep(path));
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
    folder->companions = dl2_realloc(NULL, list->count, sizeof *folder->companions);
    if (!folder->strings || !folder->entries || !folder->companions)
        return dl2_error_memory(error, "a dataset");
    char *at = folder->strings;
    for (size_t i = 0; i < list->count; i++) {
        const size_t length = strlen(list->paths[i]);
        char *path = at;
        memcpy(path, root, root_length);
        if (slash)
            path[root_length] = '/';
        memcpy(path + folder->name_offset, list->paths[i], length + 1);
        if (folder_hides(path))
            continue;
        char *key = path + folder->name_offset + length + 1;
        if (!folder_is_sample(path, options)) {
            folder->companions[folder->companion_count++] = (struct companion){
                .path = path, .bytes = list->bytes[i], .mtime_ns = list->mtime_ns[i]};
            at = key;
            continue;
        }
        const size_t stem = dl2_path_stem_length(list->paths[i]);
        memcpy(key, list->paths[i], stem);
        key[stem] = '\0';
        at = key + stem + 1;
        folder->entries[folder->count++] = (struct entry){
            .path = path, .key = key, .bytes = list->bytes[i], .mtime_ns = list->mtime_ns[i]};
    }
    return DL2_OK;
}

/* ---- What lies beside the samples */

struct by_key {
    const char *key;
    size_t number;
};

static int folder_compare_keys(const void *a, const void *b)
{
    const struct by_key *one = a, *two = b;
    const int order = strcmp(one->key, two->key);
    return order ? order : (one->number > two->number) - (one->number < two->number);
}

static int folder_compare_companions(const void *a, const void *b)
{
    const struct companion *one = a, *two = b;
    if (one->owner != two->owner)
        return one->owner < two->owner ? -1 : 1;
    return strcmp(one->path, two->path);
}

/* The first sample that has the first `length` bytes of a name as its key, or SIZE_MAX. */
static size_t folder_find_key(const struct by_key *keys, size_t count, const char *name,
                              size_t length)
{
    size_t low = 0, high = count;
    while (low < high) {
        const size_t middle = low + (high - low) / 2;
        if (strncmp(keys[middle].key, name, length) < 0)
            low = middle + 1;
        else
            high = middle;
    }
    const bool found =
        low < count && !strncmp(keys[low].key, name, length) && !keys[low].key[length];
    return found ? keys[low].number : SIZE_MAX;
}

/* Gives a file to the sample with the longest name, and says as what. */
static void folder_find_owner(const struct folder *folder, const struct by_key *keys,
                              struct companion *companion)
{
    const char *name = companion->path + folder->name_offset, *base = dl2_path_base(name);
    companion->owner = SIZE_MAX;
    for (size_t dot = strlen(name); dot-- > (size_t)(base - name) + 1;) {
        if (name[dot] != '.' || !name[dot + 1] || name[dot + 1] == '.')
            continue;
        companion->extension = name + dot + 1;
        companion->owner = folder_find_key(keys, folder->count, name, dot);
        if (companion->owner != SIZE_MAX)
            return;
    }
}

size_t dl2_dataset_mask_stem(const char *key)
{
    static const char *const marks[] = {".mask", ".seg"};
    const size_t length = strlen(key);
    for (size_t i = 0; i < sizeof marks / sizeof *marks; i++) {
        const size_t mark = strlen(marks[i]);
        if (length > mark && !strcmp(key + length - mark, marks[i]))
            return length - mark;
    }
    return 0;
}

static struct by_key *folder_sort_keys(const struct folder *folder)
{
    struct by_key *keys = dl2_calloc(folder->count, sizeof *keys);
    for (size_t i = 0; keys && i < folder->count; i++)
        keys[i] = (struct by_key){folder->entries[i].key, i};
    if (keys && folder->count > 1)
        qsort(keys, folder->count, sizeof *keys, folder_compare_keys);
    return keys;
}

/* Masks of other samples are no samples. */
static int folder_take_masks(struct folder *folder, struct dl2_error *error)
{
    bool any = false;
    for (size_t i = 0; i < folder->count && !any; i++)
        any = dl2_dataset_mask_stem(folder->entries[i].key);
    if (!any)
        return DL2_OK;
    struct by_key *keys = folder_sort_keys(folder);
    if (!keys)
        return dl2_error_memory(error, "a dataset");
    const size_t count = folder->count;
    folder->count = 0;
    for (size_t i = 0; i < count; i++) {
        const struct entry entry = folder->entries[i];
        const size_t stem = dl2_dataset_mask_stem(entry.key);
        if (stem && folder_find_key(keys, count, entry.key, stem) != SIZE_MAX)
            folder->companions[folder->companion_count++] = (struct companion){
                .path = entry.path, .bytes = entry.bytes, .mtime_ns = entry.mtime_ns};
        else
            folder->entries[folder->count++] = entry;
    }
    free(keys);
    return DL2_OK;
}

static int folder_give_companions(struct folder *folder, struct dl2_error *error)
{
    size_t kept = 0;
    if (!folder->companion_count)
        return DL2_OK;
    struct by_key *keys = folder_sort_keys(folder);
    if (!keys)
        return dl2_error_memory(error, "a dataset");
    for (size_t i = 0; i < folder->companion_count; i++) {
        struct companion *companion = &folder->companions[i];
        folder_find_owner(folder, keys, companion);
        if (companion->owner == SIZE_MAX)
            folder->ignored++;
        else
            folder->companions[kept++] = *companion;
    }
    free(keys);
    folder->companion_count = kept;
    if (kept > 1)
        qsort(folder->companions, kept, sizeof *folder->companions, folder_compare_companions);
    return DL2_OK;
}

/* The companions of a sample: *count of them. */
static const struct companion *folder_companions_of(const struct folder *folder, size_t number,
                                                    size_t *count)
{
    size_t low = 0, high = folder->companion_count;
    while (low < high) {
        const size_t middle = low + (high - low) / 2;
        if (folder->companions[middle].owner < number)
            low = middle + 1;
        else
            high = middle;
    }
    for (*count = 0; low + *count < folder->companion_count &&
                     folder->companions[low + *count].owner == number;)
        ++*count;
    return folder->companions + low;
}

static int folder_read_sidecars(const struct dl2_dataset *dataset, size_t number,
                                struct dl2_sidecars *out, struct dl2_error *error)
{
    size_t count;
    const struct companion *companions = folder_companions_of(dataset->state, number, &count);
    for (size_t i = 0; i < count; i++) {
        struct dl2_sidecar *item;
        DL2_TRY(dl2_sidecars_add(out, companions[i].extension, 0, &item, error));
        DL2_TRY(dl2_file_read(companions[i].path, DL2_BESIDE_MAX_BYTES - out->bytes, &item->bytes,
                              error));
        out->bytes += item->bytes.size;
    }
    return DL2_OK;
}

static uint64_t folder_sidecar_sum(const struct dl2_dataset *dataset, size_t number)
{
    size_t count;
    const struct companion *companions = folder_companions_of(dataset->state, number, &count);
    uint64_t sum = 0;
    for (size_t i = 0; i < count; i++) {
        const uint64_t facts[] = {htole64(sum), htole64(companions[i].bytes),
                                  htole64((uint64_t)companions[i].mtime_ns)};
        sum = XXH3_64bits_withSeed(companions[i].extension, strlen(companions[i].extension),
                                   XXH3_64bits(facts, sizeof facts));
        sum += !sum;
    }
    return sum;
}

static size_t folder_ignored(const struct dl2_dataset *dataset)
{
    const struct folder *folder = dataset->state;
    return folder->ignored;
}

/* ---- Reading */

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
    int status = dl2_tree_read(names, folder->count, NULL, &tree, error);
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
    dataset->parts = tree.names;
    tree.classes = NULL;
    tree.names = (struct dl2_part_list){0};
    dl2_tree_free(&tree);
    return DL2_OK;
}

/* Is a folder of the listing at the place of a class: CLASS/, or with splits SPLIT/CLASS/? */
static bool folder_is_of_class(const struct dl2_dataset *dataset, const char *path)
{
    const size_t top = strcspn(path, "/") + 1;
    if (!dataset->has_parts)
        return !path[top];
    return dl2_part_find(&dataset->parts, path, top - 1) && path[top] &&
           !path[top + strcspn(path + top, "/") + 1];
}

/* Samples are sorted by name. */
static bool folder_has_sample(const struct folder *folder, const char *path)
{
    const size_t length = strlen(path);
    size_t low = 0, high = folder->count;
    while (low < high) {
        const size_t middle = low + (high - low) / 2;
        if (strncmp(folder_name_of(folder, &folder->entries[middle]), path, length) < 0)
            low = middle + 1;
        else
            high = middle;
    }
    return low < folder->count &&
           !strncmp(folder_name_of(folder, &folder->entries[low]), path, length);
}

/* Names the folders of classes that hold no sample. */
static int folder_remark_empty(struct dl2_dataset *dataset, const struct folder *folder,
                               const struct dl2_file_list *list, struct dl2_error *error)
{
    enum { NAMED = 5 };
    char names[1024] = "";
    size_t count = 0;
    for (size_t at = 0; dataset->class_count && at < list->folders_size;
         at += strlen(list->folders + at) + 1) {
        const char *path = list->folders + at;
        if (folder_is_of_class(dataset, path) && !folder_has_sample(folder, path) &&
            count++ < NAMED)
            dl2_list_name(names, sizeof names, path);
    }
    if (count && asprintf(&dataset->remark,
                          "%zu class folder%s no image: %s%s; a class needs one, and other loaders "
                          "may refuse such folders, or give the classes other numbers",
                          count, count == 1 ? " holds" : "s hold", names,
                          count > NAMED ? ", ..." : "") < 0) {
        dataset->remark = NULL;
        return dl2_error_memory(error, "a dataset");
    }
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
    if (status == DL2_OK && options->keep)
        status = folder_take_masks(folder, error);
    if (status == DL2_OK)
        status = folder_give_companions(folder, error);
    dataset->count = folder->count;
    if (status == DL2_OK)
        status = folder_read_names(dataset, folder, error);
    if (status == DL2_OK)
        status = folder_remark_empty(dataset, folder, &list, error);
    dl2_file_list_free(&list);
    return status;
}

static void folder_close(struct dl2_dataset *dataset)
{
    struct folder *folder = dataset->state;
    free(folder->entries);
    free(folder->companions);
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

static int folder_read_sidecar(const struct dl2_dataset *dataset, size_t number,
                               const char *extension, struct dl2_bytes *out,
                               struct dl2_error *error)
{
    const struct folder *folder = dataset->state;
    const char *path = folder->entries[number].path;
    char *sidecars;
    if (asprintf(&sidecars, "%.*s.%s", (int)dl2_path_stem_length(path), path, extension) < 0)
        return dl2_error_memory(error, "a path");
    const bool there = dl2_is_file(sidecars);
    const int status = there ? dl2_file_read(sidecars, MAX_SAMPLE_BYTES, out, error) : DL2_OK;
    free(sidecars);
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
    .read_sidecar = folder_read_sidecar,
    .read_sidecars = folder_read_sidecars,
    .sidecar_sum = folder_sidecar_sum,
    .ignored = folder_ignored,
    .locate = folder_locate,
};

const struct dl2_container dl2_container_folder = {
    .name = "folder",
    .extensions = "-",
    .summary = "class folders of image files",
    .looks_for = "a folder of images, CLASS/FILE or {train,val,test,...}/CLASS/FILE",
    .can_write = true,
    .has_clip_paths = true,
    .has_class_folders = true,
    .leaves_out = "in a folder they would be images of their own, or another image's",
    .reader = &folder_reader,
    .probe = dl2_is_folder,
};
