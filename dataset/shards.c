/* The shards that lie at a path: which there are, and a scan through them. */
#include "common/file.h"
#include "dataset/dataset.h"
#include "dataset/packed.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* A folder whose first entries hold no shard is no packed dataset: photographs by the million. */
enum { LOOK_AT_ENTRIES = 1000 };

static int no_memory(struct dl2_error *error)
{
    return dl2_error_set(error, DL2_ERR_MEMORY, "out of memory for a packed dataset");
}

/* ---- Which there are */

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

/* What lies in a folder and its folders that are named after splits, by names. */
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
        const bool part = top && dl2_part_of_folder(name, strlen(name));
        int inner = part ? openat(descriptor, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC) : -1;
        if (inner >= 0)
            survey_folder(inner, false, survey);
        else if (entry->d_type == DT_DIR)
            survey->other_folders = true;
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

/* What the keys of a shard's samples start with, where its own name says of which split it is. */
static const char *key_part_of_shard(const char *name)
{
    static const char *const key_parts[DL2_PARTS] = {"", "train/", "val/", "test/"};
    return key_parts[dl2_part_of_shard(name)];
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
        file->key_part = key_part_of_shard(name);
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
                                   "%.*s/%s: samples of a compressed tar file can't be read one by "
                                   "one; decompress it (images hardly get smaller anyway)",
                                   dl2_path_folder_length(path), path, name);
        }
    }
    if (open_folder)
        closedir(open_folder);
    free(path);
    return status;
}

static int compare_texts(const void *left, const void *right)
{
    return strcmp(*(const char *const *)left, *(const char *const *)right);
}

static int add_place(struct dl2_shard_files *list, const char *name, struct dl2_error *error)
{
    char **grown = dl2_realloc(list->folders, list->folder_count + 1, sizeof *grown);
    if (!grown)
        return no_memory(error);
    list->folders = grown;
    if (asprintf(&grown[list->folder_count], "%s%s", name, *name ? "/" : "") < 0)
        return no_memory(error);
    list->folder_count++;
    return DL2_OK;
}

/* The folder itself, and those in it that are named after splits, sorted. */
static int list_places(struct dl2_shard_files *list, struct dl2_error *error)
{
    DL2_TRY(add_place(list, "", error));
    DIR *folder = opendir(list->root);
    if (!folder)
        return dl2_error_system(error, "%s: can't be listed", list->root);
    int status = DL2_OK;
    const struct dirent *entry;
    while (status == DL2_OK && (entry = readdir(folder))) {
        struct stat info;
        if (dl2_part_of_folder(entry->d_name, strlen(entry->d_name)) &&
            fstatat(dirfd(folder), entry->d_name, &info, 0) == 0 && S_ISDIR(info.st_mode))
            status = add_place(list, entry->d_name, error);
    }
    closedir(folder);
    qsort(list->folders, list->folder_count, sizeof *list->folders, compare_texts);
    return status;
}

static int list_shards(struct dl2_shard_files *list, struct dl2_error *error)
{
    struct dl2_shard_files metas = {.kind = list->kind, .root = list->root};
    int status = list_places(list, error);
    for (size_t i = 0; status == DL2_OK && i < list->folder_count; i++)
        status = list_folder(list, &metas, list->folders[i], error);
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
    DL2_TRY(add_place(list, "", error));
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
        const int length = dl2_path_folder_length(path);
        list->root = strndup(path, length ? (size_t)length : 1);
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
    for (size_t i = 0; i < list->folder_count; i++)
        free(list->folders[i]);
    free(list->folders);
    free(list->files);
    free(list->root);
    *list = (struct dl2_shard_files){0};
}

/* ---- What is in them */

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
    *mtime_ns = dl2_mtime_ns(&info);
    if (!file->meta)
        return DL2_OK;
    DL2_TRY(stat_inside(list->root, file->meta, &meta, error));
    const int64_t time = dl2_mtime_ns(&meta);
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
        const size_t length = (size_t)(dl2_path_base(file->name) - file->name);
        result = dl2_tar_scan(scan, fd, bytes, file->key_part,
                              dl2_scan_classes(scan, file->name, length), error);
        if (result < 0)
            dl2_error_prefix(error, "%s", path);
    }
    if (fd >= 0)
        close(fd);
    free(path);
    return result;
}

int dl2_shard_files_scan(const struct dl2_shard_files *list, struct dl2_scan *scan,
                         struct dl2_error *error)
{
    scan->draft.kind = list->kind;
    for (size_t i = 0; i < list->folder_count; i++)
        DL2_TRY(list->kind == DL2_INDEX_GULP
                    ? dl2_gulp_read_classes(scan, list->root, list->folders[i], error)
                    : dl2_tar_read_classes(scan, list->root, list->folders[i], error));
    for (size_t i = 0; i < list->count; i++)
        DL2_TRY(scan_shard(scan, list, &list->files[i], error));
    return dl2_scan_finish(scan, error);
}
