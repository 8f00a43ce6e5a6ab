#include "common/file.h"
#include "dataset/dataset.h"
#include "dataset/packed.h"
#include "dataset/tree.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <xxhash.h>

enum {
    /* A folder whose first entries hold no shard is no packed dataset: photographs by the million.
     */
    LOOK_AT_ENTRIES = 1000,
    /* Classes that are only known by numbers. */
    MAX_NUMBERED_CLASSES = 100000,
};

static int no_memory(struct dl2_error *error)
{
    return dl2_error_set(error, DL2_ERR_MEMORY, "out of memory for a packed dataset");
}

/* ---- The shards on disk */

static const char *const parts[] = {"", "train/", "val/"};
enum { PARTS = sizeof parts / sizeof *parts };

static bool ends_with(const char *text, const char *end)
{
    const size_t length = strlen(text), tail = strlen(end);
    return length > tail && !strcmp(text + length - tail, end);
}

static bool is_compressed_tar(const char *name)
{
    static const char *const ends[] = {".tar.gz", ".tgz",     ".tar.zst",
                                       ".tar.xz", ".tar.bz2", ".tar.lz4"};
    for (size_t i = 0; i < sizeof ends / sizeof *ends; i++)
        if (ends_with(name, ends[i]))
            return true;
    return false;
}

static bool is_chunk(const char *name)
{
    return !strncmp(name, "data", 4) && ends_with(name, ".gulp");
}

static bool is_chunk_meta(const char *name)
{
    return !strncmp(name, "meta", 4) && ends_with(name, ".gmeta");
}

/* What lies in a folder and its train/ and val/, by names. */
struct survey {
    bool index, unfinished;
    bool chunks, tars;  /* anywhere */
    bool other_folders; /* a folder at the top that holds no shards: this is a tree of files */
};

static void survey_folder(int descriptor, bool top, struct survey *survey)
{
    DIR *folder = fdopendir(descriptor);
    if (!folder) {
        close(descriptor);
        return;
    }
    bool chunks = false, tars = false;
    const struct dirent *entry;
    for (unsigned i = 0; (entry = readdir(folder)); i++) {
        const char *name = entry->d_name;
        if (top && !strcmp(name, DL2_INDEX_NAME))
            survey->index = true;
        if (top && !strcmp(name, DL2_UNFINISHED_NAME))
            survey->unfinished = true;
        if (name[0] == '.')
            continue;
        chunks |= is_chunk(name);
        tars |= ends_with(name, ".tar") || is_compressed_tar(name);
        if (!chunks && !tars && i >= LOOK_AT_ENTRIES)
            break;
        if (entry->d_type == DT_DIR) {
            const bool part = top && (!strcmp(name, "train") || !strcmp(name, "val"));
            int inner = part ? openat(descriptor, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC) : -1;
            if (inner >= 0)
                survey_folder(inner, false, survey);
            else
                survey->other_folders = true;
        }
    }
    if (!top && !chunks && !tars)
        survey->other_folders = true;
    survey->chunks |= chunks;
    survey->tars |= tars;
    closedir(folder);
}

static void look_around(const char *path, struct survey *survey)
{
    *survey = (struct survey){0};
    int descriptor = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (descriptor >= 0)
        survey_folder(descriptor, true, survey);
}

static bool is_tar_file(const char *path)
{
    return (ends_with(path, ".tar") || is_compressed_tar(path)) && dl2_is_file(path);
}

bool dl2_dataset_is_packed(const char *path)
{
    if (is_tar_file(path))
        return true;
    struct survey survey;
    look_around(path, &survey);
    return survey.index || survey.unfinished || survey.chunks ||
           (survey.tars && !survey.other_folders);
}

/* Is "train" a word of "imagenet-train-000042.tar"? */
static bool has_word(const char *name, const char *word)
{
    const size_t length = strlen(word);
    for (const char *at = name; *at;) {
        const size_t part = strcspn(at, "-_.");
        if (part == length && !memcmp(at, word, length))
            return true;
        at += part + (at[part] != '\0');
    }
    return false;
}

static int add_file(struct dl2_shard_files *list, const char *folder, const char *name,
                    struct dl2_error *error)
{
    struct dl2_shard_file *grown = dl2_realloc(list->files, list->count + 1, sizeof *grown);
    if (!grown)
        return no_memory(error);
    list->files = grown;
    struct dl2_shard_file *file = &grown[list->count];
    *file = (struct dl2_shard_file){.key_part = folder};
    if (asprintf(&file->name, "%s%s", folder, name) < 0) {
        file->name = NULL;
        return no_memory(error);
    }
    list->count++;
    if (list->kind == DL2_INDEX_GULP) {
        const char *digits = name + strcspn(name, "0123456789");
        const size_t length = strspn(digits, "0123456789");
        if (!length || length > 18)
            return dl2_error_set(error, DL2_ERR_FORMAT,
                                 "%s/%s: a chunk's name has a number, as in data_0.gulp",
                                 list->root, file->name);
        file->number = strtoull(digits, NULL, 10);
    } else if (!*folder) {
        file->key_part = has_word(name, "train") ? parts[1] : has_word(name, "val") ? parts[2] : "";
    }
    return DL2_OK;
}

static int compare_files(const void *left, const void *right)
{
    const struct dl2_shard_file *a = left, *b = right;
    const int order = strcmp(a->key_part, b->key_part);
    if (order)
        return order;
    if (a->number != b->number)
        return a->number < b->number ? -1 : 1;
    return strcmp(a->name, b->name);
}

/* Gives each chunk its meta file: both sorted, the same numbers. */
static int pair_chunks(struct dl2_shard_files *list, struct dl2_shard_files *metas,
                       struct dl2_error *error)
{
    qsort(metas->files, metas->count, sizeof *metas->files, compare_files);
    for (size_t i = 0; i < list->count || i < metas->count; i++) {
        const struct dl2_shard_file *data = i < list->count ? &list->files[i] : NULL;
        const struct dl2_shard_file *meta = i < metas->count ? &metas->files[i] : NULL;
        const struct dl2_shard_file *twin = i ? &list->files[i - 1] : NULL;
        if (data && twin && twin->number == data->number && twin->key_part == data->key_part)
            return dl2_error_set(error, DL2_ERR_FORMAT, "%s: %s and %s have the same number",
                                 list->root, twin->name, data->name);
        if (!data || !meta || data->number != meta->number || data->key_part != meta->key_part)
            return dl2_error_set(error, DL2_ERR_FORMAT, "%s: %s has no %s of its number beside it",
                                 list->root, data ? data->name : meta->name,
                                 data ? "meta file (.gmeta)" : "data file (.gulp)");
        list->files[i].meta = metas->files[i].name;
        metas->files[i].name = NULL;
    }
    return DL2_OK;
}

static int list_folder(struct dl2_shard_files *list, struct dl2_shard_files *metas,
                       const char *folder, struct dl2_error *error)
{
    char *path = dl2_path_join(list->root, folder);
    if (!path)
        return no_memory(error);
    int status = DL2_OK;
    DIR *open_folder = opendir(path);
    if (!open_folder && errno != ENOENT)
        status = dl2_error_system(error, "%s: can't be listed", path);
    const struct dirent *entry;
    while (open_folder && status == DL2_OK && (entry = readdir(open_folder))) {
        const char *name = entry->d_name;
        if (name[0] == '.')
            continue;
        if (list->kind == DL2_INDEX_GULP) {
            if (is_chunk(name))
                status = add_file(list, folder, name, error);
            else if (is_chunk_meta(name))
                status = add_file(metas, folder, name, error);
        } else if (ends_with(name, ".tar")) {
            status = add_file(list, folder, name, error);
        } else if (is_compressed_tar(name)) {
            status = dl2_error_set(error, DL2_ERR_UNSUPPORTED,
                                   "%s/%s: samples of a compressed tar file can't be read one by "
                                   "one; decompress it (images hardly get smaller anyway)",
                                   path, name);
        }
    }
    if (open_folder)
        closedir(open_folder);
    free(path);
    return status;
}

static int list_shards(struct dl2_shard_files *list, struct dl2_error *error)
{
    struct dl2_shard_files metas = {.kind = list->kind, .root = list->root};
    int status = DL2_OK;
    for (size_t i = 0; status == DL2_OK && i < PARTS; i++)
        status = list_folder(list, &metas, parts[i], error);
    if (list->count)
        qsort(list->files, list->count, sizeof *list->files, compare_files);
    if (status == DL2_OK && list->kind == DL2_INDEX_GULP)
        status = pair_chunks(list, &metas, error);
    metas.root = NULL;
    dl2_shard_files_free(&metas);
    return status;
}

/* One tar file is a dataset, too. */
static int list_one(const char *path, struct dl2_shard_files *list, struct dl2_error *error)
{
    list->kind = DL2_INDEX_TAR;
    const char *base = dl2_path_base(path);
    list->root = base == path ? strdup(".") : strndup(path, (size_t)(base - path));
    if (!list->root)
        return no_memory(error);
    if (is_compressed_tar(path))
        return dl2_error_set(error, DL2_ERR_UNSUPPORTED,
                             "%s: samples of a compressed tar file can't be read one by one; "
                             "decompress it (images hardly get smaller anyway)",
                             path);
    DL2_TRY(add_file(list, "", base, error));
    list->files[0].key_part = "";
    return DL2_OK;
}

int dl2_shard_files_list(const char *path, struct dl2_shard_files *list, struct dl2_error *error)
{
    *list = (struct dl2_shard_files){0};
    int status;
    if (is_tar_file(path)) {
        status = list_one(path, list, error);
    } else {
        struct survey survey;
        look_around(path, &survey);
        list->kind = survey.chunks ? DL2_INDEX_GULP : DL2_INDEX_TAR;
        list->root = strdup(path);
        status = list->root ? list_shards(list, error) : no_memory(error);
    }
    if (status < 0)
        dl2_shard_files_free(list);
    return status;
}

void dl2_shard_files_free(struct dl2_shard_files *list)
{
    for (size_t i = 0; i < list->count; i++) {
        free(list->files[i].name);
        free(list->files[i].meta);
    }
    free(list->files);
    free(list->root);
    *list = (struct dl2_shard_files){0};
}

/* ---- A scan */

static uint32_t hash_text(const char *text)
{
    return (uint32_t)XXH3_64bits(text, strlen(text));
}

static int grow_slots(struct dl2_scan *scan, struct dl2_error *error)
{
    const uint32_t count = scan->slot_count ? 2 * scan->slot_count : 256;
    uint32_t *slots = dl2_calloc(count, sizeof *slots);
    char **labels = dl2_realloc(scan->labels, count, sizeof *labels);
    if (labels)
        scan->labels = labels;
    if (!slots || !labels) {
        free(slots);
        return no_memory(error);
    }
    for (uint32_t i = 0; i < scan->label_count; i++) {
        uint32_t at = hash_text(labels[i]) & (count - 1);
        while (slots[at])
            at = (at + 1) & (count - 1);
        slots[at] = i + 1;
    }
    free(scan->slots);
    scan->slots = slots;
    scan->slot_count = count;
    return DL2_OK;
}

/* The number of a label's text, a new one where it has not come yet. */
static int number_label(struct dl2_scan *scan, const char *label, int32_t *number,
                        struct dl2_error *error)
{
    if (2 * scan->label_count >= scan->slot_count)
        DL2_TRY(grow_slots(scan, error));
    uint32_t at = hash_text(label) & (scan->slot_count - 1);
    for (; scan->slots[at]; at = (at + 1) & (scan->slot_count - 1)) {
        if (strcmp(scan->labels[scan->slots[at] - 1], label) != 0)
            continue;
        *number = (int32_t)(scan->slots[at] - 1);
        return DL2_OK;
    }
    if (scan->label_count >= INT32_MAX / 4)
        return dl2_error_set(error, DL2_ERR_LIMIT, "too many classes");
    if (!(scan->labels[scan->label_count] = strdup(label)))
        return no_memory(error);
    *number = (int32_t)scan->label_count++;
    scan->slots[at] = scan->label_count;
    return DL2_OK;
}

int dl2_scan_add(struct dl2_scan *scan, const struct dl2_index_entry *entry, const char *label,
                 struct dl2_error *error)
{
    int32_t number = -1;
    if (!dl2_index_is_key(entry->key))
        return dl2_error_set(error, DL2_ERR_FORMAT, "\"%.200s\" is no name for a sample",
                             entry->key);
    if (label)
        DL2_TRY(number_label(scan, label, &number, error));
    DL2_TRY(dl2_bytes_append(&scan->label_of, &number, sizeof number, error));
    return dl2_index_draft_add(&scan->draft, entry, error);
}

void dl2_scan_cut(struct dl2_scan *scan, size_t count)
{
    if (count >= scan->draft.count)
        return;
    scan->draft.strings.size = dl2_index_draft_entry(&scan->draft, count)->key;
    scan->draft.entries.size = count * sizeof(struct dl2_index_draft_entry);
    scan->draft.count = count;
    scan->label_of.size = count * sizeof(int32_t);
}

static void free_names(char **names, uint32_t count)
{
    for (uint32_t i = 0; names && i < count; i++)
        free(names[i]);
    free(names);
}

int dl2_scan_add_classes(struct dl2_scan *scan, const char *folder, char **names, uint32_t count,
                         struct dl2_error *error)
{
    struct dl2_class_list *grown = dl2_realloc(scan->lists, scan->list_count + 1, sizeof *grown);
    char *copy = strdup(folder);
    if (grown)
        scan->lists = grown;
    if (!grown || !copy) {
        free(copy);
        free_names(names, count);
        return no_memory(error);
    }
    grown[scan->list_count++] = (struct dl2_class_list){copy, names, count};
    return DL2_OK;
}

const struct dl2_class_list *dl2_scan_classes(const struct dl2_scan *scan, const char *folder)
{
    for (size_t i = 0; i < scan->list_count; i++)
        if (!strcmp(scan->lists[i].folder, folder))
            return &scan->lists[i];
    return NULL;
}

static bool same_lists(const struct dl2_scan *scan)
{
    for (size_t i = 0; i < scan->list_count; i++) {
        const struct dl2_class_list *list = &scan->lists[i], *first = &scan->lists[0];
        if (!list->names || list->count != first->count)
            return false;
        for (uint32_t n = 0; n < list->count; n++)
            if (strcmp(list->names[n], first->names[n]) != 0)
                return false;
    }
    return scan->list_count > 0;
}

/* The value of a label that is a number, below the limit; -1: it is none, or there are lists. */
static int64_t numbered(const struct dl2_scan *scan, uint32_t label)
{
    const char *text = scan->labels[label];
    const size_t digits = strspn(text, "0123456789");
    if (!digits || text[digits] || digits > 9 || scan->list_count)
        return -1;
    const int64_t value = strtoll(text, NULL, 10);
    return value < MAX_NUMBERED_CLASSES ? value : -1;
}

/* 0, 1, 2... up to the largest, written with equally many digits; names_of[label] is its class. */
static int number_classes(struct dl2_scan *scan, int64_t largest, int32_t *class_of,
                          struct dl2_error *error)
{
    const uint32_t count = (uint32_t)largest + 1;
    char(*texts)[8] = dl2_calloc(count, sizeof *texts);
    const char **names = dl2_calloc(count, sizeof *names);
    int status = texts && names ? DL2_OK : no_memory(error);
    const int digits = largest > 9999  ? 5
                       : largest > 999 ? 4
                       : largest > 99  ? 3
                       : largest > 9   ? 2
                                       : 1;
    for (uint32_t i = 0; status == DL2_OK && i < count; i++) {
        snprintf(texts[i], sizeof texts[i], "%0*" PRIu32, digits, i % MAX_NUMBERED_CLASSES);
        names[i] = texts[i];
    }
    for (uint32_t i = 0; i < scan->label_count; i++)
        class_of[i] = (int32_t)numbered(scan, i);
    if (status == DL2_OK)
        status = dl2_index_draft_set_classes(&scan->draft, names, count, error);
    free(names);
    free(texts);
    return status;
}

static int compare_texts(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

/* The class of each label among sorted or listed names; false where one is not there. */
static bool find_classes(const struct dl2_scan *scan, const char *const *names, uint32_t count,
                         const uint32_t *place, int32_t *class_of)
{
    for (uint32_t i = 0; i < scan->label_count; i++) {
        const char *text = scan->labels[i];
        const char *const *found = bsearch(&text, names, count, sizeof *names, compare_texts);
        if (!found)
            return false;
        const size_t at = (size_t)(found - names);
        class_of[i] = (int32_t)(place ? place[at] : at);
    }
    return true;
}

/* By the list that all folders agree on. False where a label is not in it. */
static int listed_classes(struct dl2_scan *scan, int32_t *class_of, bool *done,
                          struct dl2_error *error)
{
    const struct dl2_class_list *list = &scan->lists[0];
    struct place {
        const char *name;
        uint32_t number;
    } *places = dl2_calloc(list->count, sizeof *places);
    const char **names = dl2_calloc(list->count, sizeof *names);
    uint32_t *numbers = dl2_calloc(list->count, sizeof *numbers);
    int status = places && names && numbers ? DL2_OK : no_memory(error);
    if (status == DL2_OK) {
        for (uint32_t i = 0; i < list->count; i++)
            places[i] = (struct place){list->names[i], i};
        qsort(places, list->count, sizeof *places, compare_texts); /* by its first member */
        for (uint32_t i = 0; i < list->count; i++) {
            names[i] = places[i].name;
            numbers[i] = places[i].number;
        }
        *done = find_classes(scan, names, list->count, numbers, class_of);
        if (*done)
            status = dl2_index_draft_set_classes(&scan->draft, (const char *const *)list->names,
                                                 list->count, error);
    }
    free(places);
    free(names);
    free(numbers);
    return status;
}

/* All names that occur in labels and lists, sorted. */
static int sorted_classes(struct dl2_scan *scan, int32_t *class_of, struct dl2_error *error)
{
    size_t room = scan->label_count;
    for (size_t i = 0; i < scan->list_count; i++)
        room += scan->lists[i].names ? scan->lists[i].count : 0;
    const char **names = dl2_calloc(room, sizeof *names);
    if (!names)
        return no_memory(error);
    size_t count = 0;
    for (uint32_t i = 0; i < scan->label_count; i++)
        names[count++] = scan->labels[i];
    for (size_t i = 0; i < scan->list_count; i++)
        for (uint32_t n = 0; scan->lists[i].names && n < scan->lists[i].count; n++)
            names[count++] = scan->lists[i].names[n];
    qsort(names, count, sizeof *names, compare_texts);
    size_t kept = 0;
    for (size_t i = 0; i < count; i++)
        if (!kept || strcmp(names[kept - 1], names[i]) != 0)
            names[kept++] = names[i];
    find_classes(scan, names, (uint32_t)kept, NULL, class_of);
    int status = dl2_index_draft_set_classes(&scan->draft, names, (uint32_t)kept, error);
    free(names);
    return status;
}

static int make_classes(struct dl2_scan *scan, int32_t *class_of, struct dl2_error *error)
{
    bool done = false;
    if (same_lists(scan))
        DL2_TRY(listed_classes(scan, class_of, &done, error));
    if (done)
        return DL2_OK;
    int64_t largest = -1;
    bool all = true;
    for (uint32_t i = 0; i < scan->label_count; i++) {
        const int64_t value = numbered(scan, i);
        all = all && value >= 0;
        largest = value > largest ? value : largest;
    }
    return all ? number_classes(scan, largest, class_of, error)
               : sorted_classes(scan, class_of, error);
}

int dl2_scan_finish(struct dl2_scan *scan, struct dl2_error *error)
{
    struct dl2_index_draft *draft = &scan->draft;
    if (!draft->count)
        return DL2_OK;
    const char **names = dl2_calloc(draft->count, sizeof *names);
    int32_t *class_of = dl2_calloc((size_t)scan->label_count + 1, sizeof *class_of);
    struct dl2_tree tree = {0};
    int status = names && class_of ? DL2_OK : no_memory(error);
    for (size_t i = 0; status == DL2_OK && i < draft->count; i++)
        names[i] = dl2_index_draft_key(draft, i);
    if (status == DL2_OK)
        status = dl2_tree_read(names, draft->count, &tree, error);
    /* GulpIO's ids are no paths, if they look like it. */
    const bool by_names = !scan->label_count && draft->kind == DL2_INDEX_TAR;
    if (status == DL2_OK && scan->label_count)
        status = make_classes(scan, class_of, error);
    else if (status == DL2_OK && by_names)
        status = dl2_index_draft_set_classes(draft, (const char *const *)tree.classes,
                                             tree.class_count, error);
    draft->has_parts = tree.has_parts;
    for (size_t i = 0; status == DL2_OK && i < draft->count; i++) {
        int32_t label;
        memcpy(&label, scan->label_of.data + i * sizeof label, sizeof label);
        struct dl2_index_draft_entry *entry = dl2_index_draft_entry(draft, i);
        entry->part = tree.parts[i];
        entry->label = by_names ? tree.labels[i] : label < 0 ? -1 : class_of[label];
    }
    dl2_tree_free(&tree);
    free(names);
    free(class_of);
    return status;
}

void dl2_scan_free(struct dl2_scan *scan)
{
    dl2_index_draft_free(&scan->draft);
    dl2_bytes_free(&scan->label_of);
    free_names(scan->labels, scan->label_count);
    free(scan->slots);
    for (size_t i = 0; i < scan->list_count; i++) {
        free(scan->lists[i].folder);
        free_names(scan->lists[i].names, scan->lists[i].count);
    }
    free(scan->lists);
    *scan = (struct dl2_scan){0};
}

static int stat_inside(const char *root, const char *name, struct stat *info,
                       struct dl2_error *error)
{
    char *path = dl2_path_join(root, name);
    int status = path ? DL2_OK : no_memory(error);
    if (path && stat(path, info) != 0)
        status = dl2_error_system(error, "%s: can't be read", path);
    else if (path && !S_ISREG(info->st_mode))
        status = dl2_error_set(error, DL2_ERR_FORMAT, "%s: not a regular file", path);
    free(path);
    return status;
}

int dl2_shard_file_stat(const struct dl2_shard_files *list, const struct dl2_shard_file *file,
                        uint64_t *bytes, int64_t *mtime_ns, struct dl2_error *error)
{
    struct stat info, meta;
    DL2_TRY(stat_inside(list->root, file->name, &info, error));
    *bytes = (uint64_t)info.st_size;
    *mtime_ns = (int64_t)info.st_mtim.tv_sec * 1000000000 + info.st_mtim.tv_nsec;
    if (!file->meta)
        return DL2_OK;
    DL2_TRY(stat_inside(list->root, file->meta, &meta, error));
    const int64_t time = (int64_t)meta.st_mtim.tv_sec * 1000000000 + meta.st_mtim.tv_nsec;
    *mtime_ns = time > *mtime_ns ? time : *mtime_ns;
    return DL2_OK;
}

static int scan_shard(struct dl2_scan *scan, const struct dl2_shard_files *list,
                      const struct dl2_shard_file *file, struct dl2_error *error)
{
    char *path = dl2_path_join(list->root, file->name);
    if (!path)
        return no_memory(error);
    uint64_t bytes;
    int64_t mtime_ns;
    int fd = -1, result = dl2_shard_file_stat(list, file, &bytes, &mtime_ns, error);
    if (result == DL2_OK && (fd = open(path, O_RDONLY | O_CLOEXEC)) < 0)
        result = dl2_error_system(error, "%s: can't be read", path);
    if (result == DL2_OK)
        result = dl2_index_draft_add_shard(&scan->draft, file->name, bytes, mtime_ns, error);
    if (result == DL2_OK && list->kind == DL2_INDEX_GULP) {
        result = dl2_gulp_scan(scan, list, file, bytes, error);
    } else if (result == DL2_OK) {
        char folder[8];
        snprintf(folder, sizeof folder, "%.*s", (int)(dl2_path_base(file->name) - file->name),
                 file->name);
        result =
            dl2_tar_scan(scan, fd, bytes, file->key_part, dl2_scan_classes(scan, folder), error);
        if (result < 0)
            dl2_error_prefix(error, "%s", path);
    }
    if (fd >= 0)
        close(fd);
    free(path);
    return result;
}

int dl2_scan_all(const struct dl2_shard_files *list, struct dl2_scan *scan, struct dl2_error *error)
{
    scan->draft.kind = list->kind;
    for (size_t i = 0; i < PARTS; i++)
        DL2_TRY(list->kind == DL2_INDEX_GULP
                    ? dl2_gulp_read_classes(scan, list->root, parts[i], error)
                    : dl2_tar_read_classes(scan, list->root, parts[i], error));
    for (size_t i = 0; i < list->count; i++)
        DL2_TRY(scan_shard(scan, list, &list->files[i], error));
    return dl2_scan_finish(scan, error);
}
