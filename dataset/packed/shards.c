/* SPDX-License-Identifier: BSD-2-Clause */
/* The shards that lie at a path: finding them, and scanning them all. */
#include "common/file.h"
#include "common/quote.h"
#include "common/scope.h"
#include "dataset/packed/packed.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum {
    /* A folder with no shard among so many entries is not packed: it may hold a million images. */
    LOOK_AT_ENTRIES = 1000,
    MAX_CLASSES_BYTES = 64 << 20,
    MAX_COMPANION_BYTES = 1 << 30
};

/* ---- Which container is it? */

/* The files in a folder and in its folders that are named after splits, told by their names. */
struct survey {
    bool index, unfinished;
    bool other_folders; /* a folder at the top holds no shards: this may be a tree of files */
    bool is_other;      /* of a folder at the top: its name is no word for a split */
    unsigned shards;    /* bit i: there are shards of container i */
};

static unsigned containers_of_name(const char *name)
{
    unsigned found = 0;
    const struct dl2_container *container;
    for (unsigned i = 0; (container = dl2_container_at(i)); i++) {
        const enum dl2_file_role role =
            container->shards ? container->shards->role(name) : DL2_FILE_OTHER;
        found |= (unsigned)(role == DL2_FILE_SHARD || role == DL2_FILE_COMPRESSED ||
                            role == DL2_FILE_REFUSED)
                 << i;
    }
    return found;
}

static void survey_folder(DIR *folder, bool top, struct survey *survey)
{
    unsigned shards = 0;
    const struct dirent *entry;
    for (unsigned i = 0; (entry = readdir(folder)); i++) {
        const char *name = entry->d_name;
        if (top && !strcmp(name, DL2_INDEX_NAME))
            survey->index = true;
        if (top && !strcmp(name, DL2_UNFINISHED_NAME))
            survey->unfinished = true;
        if (name[0] == '.' || (top && !strcmp(name, "annotations"))) /* COCO's folder of these */
            continue;
        shards |= containers_of_name(name);
        if (!shards && i >= LOOK_AT_ENTRIES)
            break;
        if (top)
            survey->is_other = !dl2_part_of_folder(name, strlen(name));
        /* One other folder without shards is enough to know. */
        const bool look =
            top && (!survey->is_other || (entry->d_type == DT_DIR && !survey->other_folders));
        DL2_CLEANUP(dl2_close_folder)
        DIR *inner = look ? dl2_open_folder(dirfd(folder), name) : NULL;
        if (inner)
            survey_folder(inner, false, survey);
        else if (entry->d_type == DT_DIR)
            survey->other_folders = true;
    }
    if (!top && !shards)
        survey->other_folders = true;
    /* What is in other folders alone makes no packed dataset. */
    survey->shards |= !top && survey->is_other ? 0 : shards;
}

const struct dl2_container *dl2_shards_probe(const char *path)
{
    struct survey survey = {.shards = 0};
    const unsigned by_name = containers_of_name(dl2_path_base(path));
    const bool is_file = by_name && dl2_is_file(path);
    DL2_CLEANUP(dl2_close_folder) DIR *folder = is_file ? NULL : opendir(path);
    if (folder)
        survey_folder(folder, true, &survey);
    const bool marked = survey.index || survey.unfinished;
    const struct dl2_container *container, *found = NULL, *any = NULL;
    for (unsigned i = 0; (container = dl2_container_at(i)); i++) {
        const struct dl2_shard_format *format = container->shards;
        if (!format)
            continue;
        any = any ? any : container;
        if (is_file ? by_name >> i & 1 && format->is_alone
                    : survey.shards >> i & 1 &&
                          (marked || format->among_folders || !survey.other_folders))
            found = container;
    }
    return found || !marked ? found : any;
}

bool dl2_dataset_is_packed(const char *path)
{
    return dl2_shards_probe(path) != NULL;
}

/* ---- Listing shards */

static int add_shard_file(struct dl2_shard_files *list, const char *folder, const char *name,
                          enum dl2_file_role role, struct dl2_error *error)
{
    static const char *const starts[DL2_PARTS] = {"", "train/", "val/", "test/"};
    DL2_TRY(dl2_grow(&list->files, list->count, sizeof *list->files, error));
    struct dl2_shard_file *file = &list->files[list->count];
    *file = (struct dl2_shard_file){.role = role, .folder = folder, .key_start = folder};
    DL2_TRY(dl2_format(&file->name, error, "%s%s", folder, name));
    list->count++;
    if (!list->container->shards->companion.start) {
        /* A shard may say by its own name of which split it is. */
        if (!*folder)
            file->key_start = starts[dl2_part_of_shard(name)];
        return DL2_OK;
    }
    const char *digits = name + strcspn(name, "0123456789");
    const size_t length = strspn(digits, "0123456789");
    if (!length || length > 18)
        return dl2_error_set(error, DL2_ERR_FORMAT, "%s/%s: the name has no number, as %s0%s has",
                             list->root, file->name, list->container->shards->shard.start,
                             list->container->shards->shard.end);
    file->number = strtoull(digits, NULL, 10);
    return DL2_OK;
}

static int compare_shard_files(const void *left, const void *right)
{
    const struct dl2_shard_file *a = left, *b = right;
    const int order = strcmp(a->key_start, b->key_start);
    if (order)
        return order;
    if (a->number != b->number)
        return a->number < b->number ? -1 : 1;
    if (a->role != b->role)
        return a->role < b->role ? -1 : 1;
    return strcmp(a->name, b->name);
}

/* Gives each shard its companion, which is the file behind it in the sorted list. */
static int pair_companions(struct dl2_shard_files *list, struct dl2_error *error)
{
    const struct dl2_shard_format *format = list->container->shards;
    size_t kept = 0;
    for (size_t i = 0; i < list->count; i += 2) {
        struct dl2_shard_file *file = &list->files[i];
        struct dl2_shard_file *next = i + 1 < list->count ? file + 1 : NULL;
        if (next && (next->folder != file->folder || next->number != file->number))
            next = NULL;
        if (next && file->role == DL2_FILE_SHARD && next->role == DL2_FILE_SHARD)
            return dl2_error_set(error, DL2_ERR_FORMAT, "%s: %s and %s have the same number",
                                 list->root, file->name, next->name);
        if (!next || file->role != DL2_FILE_SHARD)
            return dl2_error_set(error, DL2_ERR_FORMAT, "%s: %s has no %s of its number beside it",
                                 list->root, file->name,
                                 file->role == DL2_FILE_SHARD ? format->companion.what
                                                              : format->shard.what);
        file->companion = next->name;
        next->name = NULL;
        const struct dl2_shard_file paired = *file;
        *file = (struct dl2_shard_file){0};
        list->files[kept++] = paired;
    }
    list->count = kept;
    return DL2_OK;
}

static bool is_refused(const struct dl2_shard_files *list, enum dl2_file_role role)
{
    return role == DL2_FILE_REFUSED || (role == DL2_FILE_COMPRESSED && !list->in_order);
}

static int refuse_file(const struct dl2_shard_files *list, const char *folder, const char *name,
                       enum dl2_file_role role, struct dl2_error *error)
{
    const struct dl2_shard_format *format = list->container->shards;
    return dl2_error_set(
        error, DL2_ERR_UNSUPPORTED, "%.*s/%s%s: %s", dl2_path_folder_length(list->root), list->root,
        folder, name, role == DL2_FILE_COMPRESSED ? format->compressed_refusal : format->refusal);
}

/* Looks at a folder with a name of its own, which shards need not be in: true if some are, and
 * nothing that cannot be read. */
static bool has_shards(const struct dl2_shard_files *list, const char *name)
{
    DL2_AUTO_FREE char *path = dl2_path_join(list->root, name);
    DL2_CLEANUP(dl2_close_folder) DIR *folder = path ? opendir(path) : NULL;
    const struct dirent *entry;
    bool found = false, refused = false;
    for (unsigned i = 0; folder && !refused && (entry = readdir(folder)); i++) {
        const enum dl2_file_role role =
            entry->d_name[0] == '.' ? DL2_FILE_OTHER : list->container->shards->role(entry->d_name);
        refused = is_refused(list, role);
        found = found || role == DL2_FILE_SHARD || (role == DL2_FILE_COMPRESSED && !refused);
        if (!found && i >= LOOK_AT_ENTRIES)
            break;
    }
    return found && !refused;
}

static int list_shard_folder(struct dl2_shard_files *list, const char *folder,
                             struct dl2_error *error)
{
    DL2_AUTO_FREE char *path = dl2_path_join(list->root, folder);
    if (!path)
        return dl2_error_memory(error, "a dataset");
    DL2_CLEANUP(dl2_close_folder) DIR *open_folder = opendir(path);
    if (!open_folder)
        return errno == ENOENT ? DL2_OK : dl2_error_system(error, "%s: cannot be listed", path);
    const struct dirent *entry;
    while ((entry = readdir(open_folder))) {
        const char *name = entry->d_name;
        const enum dl2_file_role role =
            name[0] == '.' ? DL2_FILE_OTHER : list->container->shards->role(name);
        if (is_refused(list, role))
            return refuse_file(list, folder, name, role, error);
        if (role != DL2_FILE_OTHER)
            DL2_TRY(add_shard_file(list, folder, name, role, error));
    }
    return DL2_OK;
}

static int add_shard_folder(struct dl2_shard_files *list, const char *name, struct dl2_error *error)
{
    DL2_TRY(dl2_grow(&list->folders, list->folder_count, sizeof *list->folders, error));
    DL2_TRY(dl2_format(&list->folders[list->folder_count], error, "%s%s", name, *name ? "/" : ""));
    list->folder_count++;
    return DL2_OK;
}

/* Adds the folders in the root whose names are words for splits, or the others that hold shards. */
static int list_split_folders(struct dl2_shard_files *list, bool others, struct dl2_error *error)
{
    DL2_CLEANUP(dl2_close_folder) DIR *folder = opendir(list->root);
    if (!folder)
        return dl2_error_system(error, "%s: cannot be listed", list->root);
    const struct dirent *entry;
    while ((entry = readdir(folder))) {
        struct stat info;
        const bool other = !dl2_part_of_folder(entry->d_name, strlen(entry->d_name));
        if (other == others && entry->d_name[0] != '.' && strcmp(entry->d_name, "all") != 0 &&
            fstatat(dirfd(folder), entry->d_name, &info, 0) == 0 && S_ISDIR(info.st_mode) &&
            (!other || has_shards(list, entry->d_name)))
            DL2_TRY(add_shard_folder(list, entry->d_name, error));
    }
    return DL2_OK;
}

/* The folder itself, and those in it that are splits, sorted. */
static int list_shard_folders(struct dl2_shard_files *list, struct dl2_error *error)
{
    DL2_TRY(add_shard_folder(list, "", error));
    int status = list_split_folders(list, false, error);
    if (status == DL2_OK && list->folder_count > 1)
        status = list_split_folders(list, true, error);
    qsort(list->folders, list->folder_count, sizeof *list->folders, dl2_compare_texts);
    return status;
}

static int list_shards(struct dl2_shard_files *list, struct dl2_error *error)
{
    DL2_TRY(list_shard_folders(list, error));
    for (size_t i = 0; i < list->folder_count; i++)
        DL2_TRY(list_shard_folder(list, list->folders[i], error));
    if (list->count)
        qsort(list->files, list->count, sizeof *list->files, compare_shard_files);
    return list->container->shards->companion.start ? pair_companions(list, error) : DL2_OK;
}

/* A shard that is a dataset by itself: all of it is one split, so its name says nothing. */
static int list_one(struct dl2_shard_files *list, const char *name, struct dl2_error *error)
{
    const enum dl2_file_role role = list->container->shards->role(name);
    if (is_refused(list, role))
        return refuse_file(list, "", name, role, error);
    DL2_TRY(add_shard_folder(list, "", error));
    DL2_TRY(add_shard_file(list, list->folders[0], name, role, error));
    list->files[0].key_start = "";
    return DL2_OK;
}

int dl2_shards_list(const struct dl2_container *container, const char *path, bool in_order,
                    struct dl2_shard_files *list, struct dl2_error *error)
{
    const char *base = dl2_path_base(path);
    const bool one = dl2_is_file(path);
    int length = dl2_path_folder_length(path);
    if (one)
        length = (int)(base - path);
    *list = (struct dl2_shard_files){.container = container, .in_order = in_order};
    list->root = one && !length ? strdup(".") : strndup(path, length ? (size_t)length : 1);
    int status = !list->root ? dl2_error_memory(error, "a dataset")
                 : one       ? list_one(list, base, error)
                             : list_shards(list, error);
    if (status < 0)
        dl2_shards_free(list);
    return status;
}

void dl2_shards_free(struct dl2_shard_files *list)
{
    for (size_t i = 0; i < list->count; i++) {
        free(list->files[i].name);
        free(list->files[i].companion);
    }
    for (size_t i = 0; i < list->folder_count; i++)
        free(list->folders[i]);
    free(list->folders);
    free(list->files);
    free(list->root);
    *list = (struct dl2_shard_files){0};
}

/* ---- Scanning them */

int dl2_shard_stat(const struct dl2_shard_files *list, const struct dl2_shard_file *file,
                   uint64_t *bytes, int64_t *mtime_ns, struct dl2_error *error)
{
    *mtime_ns = INT64_MIN;
    for (int i = file->companion ? 1 : 0; i >= 0; i--) { /* the shard last, for its size */
        struct stat info;
        DL2_AUTO_FREE char *path = dl2_path_join(list->root, i ? file->companion : file->name);
        if (!path)
            return dl2_error_memory(error, "a dataset");
        if (stat(path, &info) != 0)
            return dl2_error_system(error, "%s: cannot be read", path);
        if (!S_ISREG(info.st_mode))
            return dl2_error_set(error, DL2_ERR_FORMAT, "%s: not a regular file", path);
        *bytes = (uint64_t)info.st_size;
        *mtime_ns = dl2_mtime_ns(&info) > *mtime_ns ? dl2_mtime_ns(&info) : *mtime_ns;
    }
    return DL2_OK;
}

/* Reads the list of classes in a folder, if there is one. */
static int read_classes(const struct dl2_shard_files *list, const char *folder,
                        struct dl2_scan *scan, struct dl2_error *error)
{
    const struct dl2_shard_format *format = list->container->shards;
    DL2_CLEANUP(dl2_bytes_free) struct dl2_bytes text = DL2_BYTES_INIT;
    DL2_AUTO_FREE char *path = NULL;
    char **names = NULL;
    uint32_t count = 0;
    DL2_TRY(dl2_format(&path, error, "%s/%s%s", list->root, folder, format->classes_name));
    if (!dl2_is_file(path))
        return DL2_OK;
    DL2_TRY(dl2_file_read(path, MAX_CLASSES_BYTES, &text, error));
    const int status = format->read_classes(&text, &names, &count, error);
    dl2_error_prefix(error, "%s", path);
    return status == 1 ? dl2_scan_add_classes(scan, folder, names, count, error) : status;
}

static const struct dl2_class_list *find_classes(const struct dl2_scan *scan, const char *folder)
{
    for (size_t i = 0; i < scan->list_count; i++)
        if (!strcmp(scan->lists[i].folder, folder))
            return &scan->lists[i];
    return NULL;
}

/* Makes a compressed file the input's source. Its size is that of what it decompresses to. */
static int open_compressed(const char *path, struct dl2_shard_input *input, struct dl2_error *error)
{
    const int status = dl2_gzip_measure(path, &input->bytes, error);
    dl2_error_prefix(error, "%s", path);
    DL2_TRY(status);
    input->source.path = path;
    input->source.gzip = dl2_gzip_files_new(error);
    return input->source.gzip ? DL2_OK : DL2_ERR_MEMORY;
}

static void free_input(struct dl2_shard_input *input)
{
    dl2_close_file(&input->source.fd);
    dl2_gzip_files_free(input->source.gzip);
    dl2_bytes_free(&input->companion);
}

static int scan_shard(struct dl2_scan *scan, const struct dl2_shard_files *list,
                      const struct dl2_shard_file *file, struct dl2_error *error)
{
    DL2_CLEANUP(free_input)
    struct dl2_shard_input input = {
        .source.fd = -1, .key_start = file->key_start, .classes = find_classes(scan, file->folder)};
    int64_t mtime_ns;
    DL2_TRY(dl2_shard_stat(list, file, &input.bytes, &mtime_ns, error));
    DL2_AUTO_FREE char *path = dl2_path_join(list->root, file->name);
    DL2_AUTO_FREE char *companion =
        file->companion ? dl2_path_join(list->root, file->companion) : NULL;
    if (!path || (file->companion && !companion))
        return dl2_error_memory(error, "a dataset");
    if (file->role == DL2_FILE_COMPRESSED)
        DL2_TRY(open_compressed(path, &input, error));
    else if ((input.source.fd = open(path, O_RDONLY | O_CLOEXEC)) < 0)
        return dl2_error_system(error, "%s: cannot be read", path);
    DL2_TRY(dl2_index_draft_add_shard(&scan->draft, file->name, input.bytes, mtime_ns, error));
    if (list->container->shards->keys_are_shards)
        scan->draft.shards[scan->draft.shard_count - 1].key_start = file->key_start;
    if (companion)
        DL2_TRY(dl2_file_read(companion, MAX_COMPANION_BYTES, &input.companion, error));
    const int status = list->container->shards->scan(scan, &input, error);
    dl2_error_prefix(error, "%s", companion ? companion : path);
    return status;
}

int dl2_shards_scan(const struct dl2_shard_files *list, const struct dl2_member_choice *members,
                    struct dl2_scan *scan, struct dl2_error *error)
{
    scan->draft.container = list->container;
    /* Those of an old index may be of tar shards which other shards have replaced. */
    if (list->container->shards->has_members)
        DL2_TRY(dl2_index_draft_set_members(&scan->draft, members, error));
    for (size_t i = 0; i < list->folder_count; i++)
        DL2_TRY(read_classes(list, list->folders[i], scan, error));
    for (size_t i = 0; i < list->count; i++)
        DL2_TRY(scan_shard(scan, list, &list->files[i], error));
    int status = dl2_scan_finish(scan, error);
    if (status == DL2_OK)
        status = dl2_index_draft_sort(&scan->draft, error);
    dl2_error_prefix(error, "%s", list->root);
    return status;
}
