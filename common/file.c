#include "common/file.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

char *dl2_path_join(const char *folder, const char *name)
{
    size_t a = strlen(folder), b = strlen(name);
    while (a > 1 && folder[a - 1] == '/')
        a--;
    const bool slash = a > 0 && folder[a - 1] != '/';
    char *path = dl2_calloc(a + b + 2, 1);
    if (!path)
        return NULL;
    memcpy(path, folder, a);
    if (slash)
        path[a] = '/';
    memcpy(path + a + slash, name, b);
    return path;
}

const char *dl2_path_base(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash ? slash + 1 : path;
}

size_t dl2_path_stem_length(const char *path)
{
    const char *base = dl2_path_base(path);
    const char *dot = strrchr(base, '.');
    return dot && dot != base ? (size_t)(dot - path) : strlen(path);
}

const char *dl2_path_extension(const char *path)
{
    const char *end = path + dl2_path_stem_length(path);
    return *end ? end + 1 : end;
}

bool dl2_is_folder(const char *path)
{
    struct stat info;
    return stat(path, &info) == 0 && S_ISDIR(info.st_mode);
}

bool dl2_is_file(const char *path)
{
    struct stat info;
    return stat(path, &info) == 0 && S_ISREG(info.st_mode);
}

int dl2_file_read(const char *path, uint64_t max_bytes, struct dl2_bytes *bytes,
                  struct dl2_error *error)
{
    int file = open(path, O_RDONLY | O_CLOEXEC);
    if (file < 0)
        return dl2_error_system(error, "%s: can't be opened", path);
    struct stat info;
    int status = DL2_OK;
    if (fstat(file, &info) != 0) {
        status = dl2_error_system(error, "%s: can't be read", path);
    } else if (!S_ISREG(info.st_mode)) {
        status = dl2_error_set(error, DL2_ERR_ARGUMENT, "%s: not a regular file", path);
    } else if ((uint64_t)info.st_size > max_bytes || (uint64_t)info.st_size > SIZE_MAX / 2) {
        status = dl2_error_set(error, DL2_ERR_LIMIT, "%s: %lld bytes pass the limit of %llu", path,
                               (long long)info.st_size, (unsigned long long)max_bytes);
    } else {
        status = dl2_bytes_resize(bytes, (size_t)info.st_size, error);
    }
    size_t got = 0;
    while (status == DL2_OK && got < bytes->size) {
        ssize_t count = read(file, bytes->data + got, bytes->size - got);
        if (count > 0)
            got += (size_t)count;
        else if (count == 0)
            bytes->size = got; /* it shrank while being read; its reader will notice */
        else if (errno != EINTR)
            status = dl2_error_system(error, "%s: can't be read", path);
    }
    close(file);
    return status;
}

static bool write_all(int file, const char *data, size_t size)
{
    while (size) {
        ssize_t count = write(file, data, size);
        if (count < 0 && errno != EINTR)
            return false;
        if (count > 0) {
            data += count;
            size -= (size_t)count;
        }
    }
    return true;
}

/* Gives an open file without a name one; the second way is for kernels where the first takes a
 * capability. */
static bool name_file(int file, const char *path)
{
    char self[32];
    snprintf(self, sizeof self, "/proc/self/fd/%d", file);
    return linkat(file, "", AT_FDCWD, path, AT_EMPTY_PATH) == 0 ||
           (errno == ENOENT && linkat(AT_FDCWD, self, AT_FDCWD, path, AT_SYMLINK_FOLLOW) == 0);
}

/*
 * Into a file that has no name before it is whole: cheaper than a rename, and nothing is left of it
 * after a kill. False where that can't be done, for whatever reason.
 */
static bool write_unnamed(const char *folder, const char *temporary, const char *path,
                          const void *data, size_t size)
{
    int file = open(folder, O_WRONLY | O_TMPFILE | O_CLOEXEC, 0666);
    if (file < 0)
        return false;
    bool written = write_all(file, data, size);
    if (written && !name_file(file, path))
        written = errno == EEXIST && name_file(file, temporary) && rename(temporary, path) == 0;
    return close(file) == 0 && written;
}

static int write_named(const char *temporary, const char *path, const void *data, size_t size,
                       struct dl2_error *error)
{
    int file = open(temporary, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
    if (file < 0)
        return dl2_error_system(error, "%s: can't be written", path);
    int status = DL2_OK;
    if (!write_all(file, data, size))
        status = dl2_error_system(error, "%s: can't be written", path);
    if (close(file) != 0 && status == DL2_OK)
        status = dl2_error_system(error, "%s: can't be written", path);
    if (status == DL2_OK && rename(temporary, path) != 0)
        status = dl2_error_system(error, "%s: can't be put in its place", path);
    if (status != DL2_OK)
        unlink(temporary);
    return status;
}

int dl2_file_write(const char *path, const void *data, size_t size, struct dl2_error *error)
{
    const char *base = dl2_path_base(path);
    char *folder = base > path ? strndup(path, (size_t)(base - path)) : strdup(".");
    char *temporary = NULL;
    int status = DL2_OK;
    if (!folder ||
        asprintf(&temporary, "%.*s.%s" DL2_TEMPORARY_SUFFIX, (int)(base - path), path, base) < 0) {
        status = dl2_error_set(error, DL2_ERR_MEMORY, "%s: out of memory", path);
        temporary = NULL;
    } else if (!write_unnamed(folder, temporary, path, data, size)) {
        status = write_named(temporary, path, data, size, error);
    }
    free(folder);
    free(temporary);
    return status;
}

int dl2_make_folders(const char *path, struct dl2_error *error)
{
    if (dl2_is_folder(path))
        return DL2_OK;
    char *copy = strdup(path);
    if (!copy)
        return dl2_error_set(error, DL2_ERR_MEMORY, "%s: out of memory", path);
    int status = DL2_OK;
    for (char *p = copy + 1; status == DL2_OK; p++) {
        if (*p != '/' && *p != '\0')
            continue;
        char kept = *p;
        *p = '\0';
        if (mkdir(copy, 0777) != 0 && errno != EEXIST)
            status = dl2_error_system(error, "%s: can't be made", copy);
        *p = kept;
        if (!kept)
            break;
    }
    free(copy);
    if (status == DL2_OK && !dl2_is_folder(path))
        status = dl2_error_set(error, DL2_ERR_SYSTEM, "%s: is in the way, not a folder", path);
    return status;
}

/* A folder being listed, and those above it, to recognise a loop of symbolic links. */
struct level {
    const struct level *above;
    dev_t device;
    ino_t inode;
};

struct entry {
    char *path;
    uint64_t bytes;
    int64_t mtime_ns;
};

struct listing {
    struct entry *entries;
    size_t count, capacity;
};

static int add_file(struct listing *listing, char *path, const struct stat *info,
                    struct dl2_error *error)
{
    if (listing->count == listing->capacity) {
        size_t capacity = listing->capacity ? 2 * listing->capacity : 1024;
        struct entry *grown = dl2_realloc(listing->entries, capacity, sizeof *grown);
        if (!grown)
            return dl2_error_set(error, DL2_ERR_MEMORY, "out of memory for %zu file names",
                                 capacity);
        listing->entries = grown;
        listing->capacity = capacity;
    }
    listing->entries[listing->count++] =
        (struct entry){path, (uint64_t)info->st_size,
                       (int64_t)info->st_mtim.tv_sec * 1000000000 + info->st_mtim.tv_nsec};
    return DL2_OK;
}

/* Lists the open folder `descriptor` (closed here), called `relative` below the root ("" for
 * itself). */
static int list_folder(int descriptor, const char *root, const char *relative,
                       const struct level *above, struct listing *listing, struct dl2_error *error)
{
    struct stat self;
    DIR *folder = fdopendir(descriptor);
    if (!folder) {
        int status = dl2_error_system(error, "%s/%s: can't be listed", root, relative);
        close(descriptor);
        return status;
    }
    int status = DL2_OK;
    if (fstat(descriptor, &self) != 0)
        status = dl2_error_system(error, "%s/%s: can't be listed", root, relative);
    for (const struct level *l = above; l && status == DL2_OK; l = l->above)
        if (l->device == self.st_dev && l->inode == self.st_ino)
            status = dl2_error_set(error, DL2_ERR_FORMAT,
                                   "%s/%s: a symbolic link leads back to a folder above it", root,
                                   relative);
    const struct level level = {above, self.st_dev, self.st_ino};
    while (status == DL2_OK) {
        errno = 0;
        const struct dirent *found = readdir(folder);
        if (!found) {
            if (errno)
                status = dl2_error_system(error, "%s/%s: can't be listed", root, relative);
            break;
        }
        if (found->d_name[0] == '.')
            continue;
        char *path = *relative ? dl2_path_join(relative, found->d_name) : strdup(found->d_name);
        if (!path) {
            status = dl2_error_set(error, DL2_ERR_MEMORY, "out of memory for file names");
            break;
        }
        struct stat info;
        if (fstatat(descriptor, found->d_name, &info, 0) != 0) {
            /* A dangling link or a file that has just gone is no file; the rest is an error. */
            if (errno != ENOENT)
                status = dl2_error_system(error, "%s/%s: can't be looked at", root, path);
        } else if (S_ISREG(info.st_mode)) {
            status = add_file(listing, path, &info, error);
            if (status == DL2_OK)
                continue; /* the listing owns the path now */
        } else if (S_ISDIR(info.st_mode)) {
            int inner = openat(descriptor, found->d_name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
            if (inner < 0)
                status = dl2_error_system(error, "%s/%s: can't be opened", root, path);
            else
                status = list_folder(inner, root, path, &level, listing, error);
        }
        free(path);
    }
    closedir(folder);
    return status;
}

static int compare_entries(const void *a, const void *b)
{
    return strcmp(((const struct entry *)a)->path, ((const struct entry *)b)->path);
}

int dl2_list_files(const char *root, struct dl2_file_list *list, struct dl2_error *error)
{
    *list = (struct dl2_file_list){0};
    int descriptor = open(root, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (descriptor < 0)
        return dl2_error_system(error, "%s: can't be opened as a folder", root);
    struct listing listing = {0};
    int status = list_folder(descriptor, root, "", NULL, &listing, error);
    if (status == DL2_OK) {
        list->paths = dl2_calloc(listing.count, sizeof *list->paths);
        list->bytes = dl2_calloc(listing.count, sizeof *list->bytes);
        list->mtime_ns = dl2_calloc(listing.count, sizeof *list->mtime_ns);
        if (!list->paths || !list->bytes || !list->mtime_ns)
            status = dl2_error_set(error, DL2_ERR_MEMORY, "out of memory for file names");
    }
    if (status != DL2_OK) {
        for (size_t i = 0; i < listing.count; i++)
            free(listing.entries[i].path);
        free(listing.entries);
        dl2_file_list_free(list);
        return status;
    }
    if (listing.count)
        qsort(listing.entries, listing.count, sizeof *listing.entries, compare_entries);
    for (size_t i = 0; i < listing.count; i++) {
        list->paths[i] = listing.entries[i].path;
        list->bytes[i] = listing.entries[i].bytes;
        list->mtime_ns[i] = listing.entries[i].mtime_ns;
    }
    list->count = listing.count;
    free(listing.entries);
    return DL2_OK;
}

void dl2_file_list_free(struct dl2_file_list *list)
{
    for (size_t i = 0; i < list->count; i++)
        free(list->paths[i]);
    free(list->paths);
    free(list->bytes);
    free(list->mtime_ns);
    *list = (struct dl2_file_list){0};
}
