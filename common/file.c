/* SPDX-License-Identifier: BSD-2-Clause */
#include "common/file.h"

#include "common/memory.h"
#include "common/quote.h"
#include "common/scope.h"
#include "common/thread.h"

#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <limits.h>
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

int dl2_path_folder_length(const char *folder)
{
    size_t length = strlen(folder);
    while (length && folder[length - 1] == '/')
        length--;
    return length > INT_MAX ? INT_MAX : (int)length;
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

void dl2_path_tidy(char *path)
{
    char *out = path;
    for (const char *part = path; *part;) {
        const char *end = strchrnul(part, '/');
        const size_t length = (size_t)(end - part);
        if (length && !(length == 1 && part[0] == '.')) {
            if (out != path)
                *out++ = '/';
            memmove(out, part, length);
            out += length;
        }
        part = *end ? end + 1 : end;
    }
    *out = '\0';
}

const char *dl2_path_extension(const char *path)
{
    const char *end = path + dl2_path_stem_length(path);
    return *end ? end + 1 : end;
}

char *dl2_folder_of(const char *path)
{
    const size_t length = (size_t)(dl2_path_base(path) - path);
    return length ? strndup(path, length) : strdup(".");
}

static int folder_of(const char *path, char **folder, struct dl2_error *error)
{
    *folder = dl2_folder_of(path);
    return *folder ? DL2_OK : dl2_error_memory(error, "a path");
}

void dl2_close_file(const int *descriptor)
{
    if (*descriptor >= 0)
        close(*descriptor);
}

void dl2_close_folder(DIR **folder)
{
    if (*folder)
        closedir(*folder);
}

DIR *dl2_open_folder(int at, const char *name)
{
    const int descriptor = openat(at, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *folder = descriptor < 0 ? NULL : fdopendir(descriptor);
    if (!folder)
        dl2_close_file(&descriptor);
    return folder;
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

int64_t dl2_read_at(int fd, uint64_t offset, void *out, size_t size)
{
    size_t got = 0;
    while (got < size) {
        const ssize_t count = pread(fd, (char *)out + got, size - got, (off_t)(offset + got));
        if (count == 0)
            break;
        if (count > 0)
            got += (size_t)count;
        else if (errno != EINTR)
            return -1;
    }
    return (int64_t)got;
}

int dl2_file_read(const char *path, uint64_t max_bytes, struct dl2_bytes *bytes,
                  struct dl2_error *error)
{
    DL2_CLEANUP(dl2_close_file) const int file = open(path, O_RDONLY | O_CLOEXEC);
    struct stat info;
    if (file < 0)
        return dl2_error_system(error, "%s: can't be opened", path);
    if (fstat(file, &info) != 0)
        return dl2_error_system(error, "%s: can't be read", path);
    if (!S_ISREG(info.st_mode))
        return dl2_error_set(error, DL2_ERR_ARGUMENT, "%s: not a regular file", path);
    if ((uint64_t)info.st_size > max_bytes || (uint64_t)info.st_size > SIZE_MAX / 2)
        return dl2_error_set(error, DL2_ERR_LIMIT, "%s: %lld bytes pass the limit of %llu", path,
                             (long long)info.st_size, (unsigned long long)max_bytes);
    DL2_TRY(dl2_bytes_resize(bytes, (size_t)info.st_size, error));
    const int64_t got = dl2_read_at(file, 0, bytes->data, bytes->size);
    if (got < 0)
        return dl2_error_system(error, "%s: can't be read", path);
    bytes->size = (size_t)got; /* fewer if it shrank meanwhile; its reader will notice */
    return DL2_OK;
}

bool dl2_file_has(const char *path, const void *data, size_t size)
{
    DL2_CLEANUP(dl2_bytes_free) struct dl2_bytes there = DL2_BYTES_INIT;
    struct stat info;
    return stat(path, &info) == 0 && S_ISREG(info.st_mode) && (uint64_t)info.st_size == size &&
           dl2_file_read(path, size, &there, NULL) == DL2_OK && there.size == size &&
           (!size || !memcmp(there.data, data, size));
}

size_t dl2_text_mark(const void *text, size_t size)
{
    return size >= 3 && !memcmp(text, "\xef\xbb\xbf", 3) ? 3 : 0;
}

int dl2_text_begin(struct dl2_bytes *text, struct dl2_error *error)
{
    const size_t mark = dl2_text_mark(text->data, text->size);
    const bool wide = text->size >= 2 &&
                      (!memcmp(text->data, "\xff\xfe", 2) || !memcmp(text->data, "\xfe\xff", 2));
    if (wide)
        return dl2_error_set(error, DL2_ERR_FORMAT, "it is UTF-16; save it as UTF-8");
    const uint8_t *zero = text->size ? memchr(text->data, 0, text->size) : NULL;
    if (zero)
        return dl2_error_set(error, DL2_ERR_FORMAT, "it is not a text: byte %zu is zero",
                             (size_t)(zero - text->data) + 1);
    DL2_TRY(dl2_bytes_append(text, "", 1, error));
    text->size -= 1 + mark;
    memmove(text->data, text->data + mark, text->size + 1);
    return DL2_OK;
}

bool dl2_write_all(int fd, const void *data, size_t size)
{
    for (const char *at = data; size;) {
        const ssize_t count = write(fd, at, size);
        if (count < 0 && errno != EINTR)
            return false;
        at += count > 0 ? count : 0;
        size -= count > 0 ? (size_t)count : 0;
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
    bool written = dl2_write_all(file, data, size);
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
    const bool written = dl2_write_all(file, data, size);
    int status = close(file) == 0 && written
                     ? DL2_OK
                     : dl2_error_system(error, "%s: can't be written", path);
    if (status == DL2_OK && rename(temporary, path) != 0)
        status = dl2_error_system(error, "%s: can't be put in its place", path);
    if (status != DL2_OK)
        unlink(temporary);
    return status;
}

/* Is it a device or a pipe, such as /dev/null or /dev/stdout, which no file may replace? */
static bool is_special(const char *path)
{
    struct stat info;
    return stat(path, &info) == 0 && !S_ISREG(info.st_mode) && !S_ISDIR(info.st_mode);
}

static int write_into(const char *path, const void *data, size_t size, struct dl2_error *error)
{
    const int file = open(path, O_WRONLY | O_CLOEXEC | O_NOCTTY);
    const bool written = file >= 0 && dl2_write_all(file, data, size);
    return (file < 0 || close(file) == 0) && written
               ? DL2_OK
               : dl2_error_system(error, "%s: can't be written", path);
}

int dl2_file_write(const char *path, const void *data, size_t size, struct dl2_error *error)
{
    if (is_special(path))
        return write_into(path, data, size, error);
    const char *base = dl2_path_base(path);
    DL2_AUTO_FREE char *folder = NULL, *temporary = NULL;
    DL2_TRY(folder_of(path, &folder, error));
    DL2_TRY(dl2_format(&temporary, error, "%.*s.%s" DL2_TEMPORARY_SUFFIX, (int)(base - path), path,
                       base));
    return write_unnamed(folder, temporary, path, data, size)
               ? DL2_OK
               : write_named(temporary, path, data, size, error);
}

int64_t dl2_mtime_ns(const struct stat *info)
{
    return (int64_t)info->st_mtim.tv_sec * 1000000000 + info->st_mtim.tv_nsec;
}

int dl2_make_folders(const char *path, struct dl2_error *error)
{
    if (dl2_is_folder(path))
        return DL2_OK;
    DL2_AUTO_FREE char *copy = NULL;
    DL2_TRY(dl2_format(&copy, error, "%s", path));
    for (char *end = copy; *end;) {
        end += strspn(end, "/");
        end += strcspn(end, "/");
        const char kept = *end;
        *end = '\0';
        if (mkdir(copy, 0777) != 0 && errno != EEXIST)
            return dl2_error_system(error, "%s: can't be made", copy);
        *end = kept;
    }
    return dl2_is_folder(path)
               ? DL2_OK
               : dl2_error_set(error, DL2_ERR_SYSTEM, "%s: is in the way, not a folder", path);
}

int dl2_make_folder_of(const char *path, struct dl2_error *error)
{
    DL2_AUTO_FREE char *folder = NULL;
    DL2_TRY(folder_of(path, &folder, error));
    return dl2_make_folders(folder, error);
}

int dl2_folder_expect(const char *folder, struct dl2_error *error)
{
    DL2_TRY(dl2_make_folders(folder, error));
    return access(folder, W_OK | X_OK) == 0
               ? DL2_OK
               : dl2_error_system(error, "%s: can't be written to", folder);
}

int dl2_file_expect(const char *path, struct dl2_error *error)
{
    DL2_AUTO_FREE char *folder = NULL;
    DL2_TRY(folder_of(path, &folder, error));
    DL2_TRY(dl2_make_folders(folder, error));
    if (dl2_is_folder(path))
        return dl2_error_set(error, DL2_ERR_SYSTEM, "%s: is a folder, not a file", path);
    return (is_special(path) ? access(path, W_OK) : access(folder, W_OK | X_OK)) == 0
               ? DL2_OK
               : dl2_error_system(error, "%s: can't be written", path);
}

/* A folder being listed, and those above it, to recognize a loop of symbolic links. */
struct level {
    const struct level *above;
    dev_t device;
    ino_t inode;
    int descriptor;
    const char *path; /* from the root, with a slash at its end; "": the root */
};

/*
 * What a folder holds. Folders have a slash behind their names: sorted so, and each gone through in
 * its place, files come in the byte order of their whole paths, and only a folder's own short names
 * are ever compared.
 */
struct folder {
    struct dl2_bytes names, order; /* one after the other; pointers to them, sorted */
    size_t count;
};

struct listing {
    const char *root;
    struct dl2_bytes strings; /* the paths, one after the other */
    struct dl2_bytes offsets; /* where each starts */
    size_t count;
    struct dl2_bytes folders; /* their paths */
    size_t dangling;          /* as in dl2_file_list */
    char *first_dangling;
};

static int cannot(const struct listing *listing, const struct level *level, const char *name,
                  const char *what, struct dl2_error *error)
{
    return dl2_error_system(error, "%.*s/%s%s: can't be %s", dl2_path_folder_length(listing->root),
                            listing->root, level->path, name, what);
}

/* What is not there any more when it is looked at: a dangling link, or a file that has just gone.
 */
static int note_missing(struct listing *listing, const struct level *level, const char *name,
                        struct dl2_error *error)
{
    struct stat info;
    if (fstatat(level->descriptor, name, &info, AT_SYMLINK_NOFOLLOW) != 0 || !S_ISLNK(info.st_mode))
        return DL2_OK;
    return listing->dangling++
               ? DL2_OK
               : dl2_format(&listing->first_dangling, error, "%s%s", level->path, name);
}

/* Adds what `found` is to the folder, if it is a file or a folder. */
static int look_at(struct listing *listing, const struct level *level, const struct dirent *found,
                   struct folder *folder, struct dl2_error *error)
{
    const char *name = found->d_name;
    struct stat info = {.st_mode = found->d_type == DT_DIR ? S_IFDIR : S_IFREG};
    if (found->d_type != DT_DIR && found->d_type != DT_REG &&
        fstatat(level->descriptor, name, &info, 0) != 0)
        return errno == ENOENT ? note_missing(listing, level, name, error)
                               : cannot(listing, level, name, "looked at", error);
    if (!S_ISREG(info.st_mode) && !S_ISDIR(info.st_mode))
        return DL2_OK;
    DL2_TRY(dl2_bytes_append(&folder->names, name, strlen(name), error));
    folder->count++;
    return S_ISDIR(info.st_mode) ? dl2_bytes_append(&folder->names, "/", 2, error)
                                 : dl2_bytes_append(&folder->names, "", 1, error);
}

static int read_folder(struct listing *listing, const struct level *level, DIR *stream,
                       struct folder *folder, struct dl2_error *error)
{
    for (;;) {
        errno = 0;
        const struct dirent *found = readdir(stream);
        if (!found && errno)
            return cannot(listing, level, "", "listed", error);
        if (!found)
            break;
        if (found->d_name[0] != '.')
            DL2_TRY(look_at(listing, level, found, folder, error));
    }
    DL2_TRY(dl2_bytes_resize(&folder->order, folder->count * sizeof(char *), error));
    const char **order = (const char **)folder->order.data;
    const char *name = (const char *)folder->names.data;
    for (size_t i = 0; i < folder->count; i++, name += strlen(name) + 1)
        order[i] = name;
    if (folder->count)
        qsort(order, folder->count, sizeof *order, dl2_compare_texts);
    return DL2_OK;
}

static int add_file(struct listing *listing, const struct level *level, const char *name,
                    struct dl2_error *error)
{
    const size_t start = listing->strings.size;
    DL2_TRY(dl2_bytes_append(&listing->strings, level->path, strlen(level->path), error));
    DL2_TRY(dl2_bytes_append(&listing->strings, name, strlen(name) + 1, error));
    DL2_TRY(dl2_bytes_append(&listing->offsets, &start, sizeof start, error));
    listing->count++;
    return DL2_OK;
}

static void free_folder(struct folder *folder)
{
    dl2_bytes_free(&folder->names);
    dl2_bytes_free(&folder->order);
}

/* Lists the folder `name` of the one above, or where there is none the root. */
static int list_folder(struct listing *listing, const struct level *above, const char *name,
                       struct dl2_error *error)
{
    struct stat self;
    DL2_AUTO_FREE char *path = NULL;
    DL2_CLEANUP(free_folder) struct folder folder = {0};
    DL2_TRY(dl2_format(&path, error, "%s%s", above ? above->path : "", name));
    DL2_CLEANUP(dl2_close_folder)
    DIR *stream =
        dl2_open_folder(above ? above->descriptor : AT_FDCWD, above ? name : listing->root);
    if (!stream && !above)
        return dl2_error_system(error, "%s: can't be opened as a folder", listing->root);
    if (!stream)
        return errno == ENOENT ? DL2_OK : cannot(listing, above, name, "opened", error);
    struct level here = {.above = above, .descriptor = dirfd(stream), .path = path};
    if (fstat(here.descriptor, &self) != 0)
        return cannot(listing, &here, "", "listed", error);
    for (const struct level *l = above; l; l = l->above)
        if (l->device == self.st_dev && l->inode == self.st_ino)
            return dl2_error_set(error, DL2_ERR_FORMAT,
                                 "%s/%.*s: a symbolic link leads back to a folder above it",
                                 listing->root, (int)strlen(path) - 1, path);
    here.device = self.st_dev;
    here.inode = self.st_ino;
    if (above)
        DL2_TRY(dl2_bytes_append(&listing->folders, path, strlen(path) + 1, error));
    DL2_TRY(read_folder(listing, &here, stream, &folder, error));
    char *const *order = (char *const *)folder.order.data;
    for (size_t i = 0; i < folder.count; i++)
        DL2_TRY(strchr(order[i], '/') ? list_folder(listing, &here, order[i], error)
                                      : add_file(listing, &here, order[i], error));
    return DL2_OK;
}

/*
 * Sizes and times are most of a listing's cost: a system call for each file. So several threads ask
 * for them.
 */
enum { FILES_AT_ONCE = 1024 };

struct asking {
    const char *root;
    int descriptor; /* of the root */
    struct dl2_file_list *list;
};

static int ask(void *context, unsigned worker, size_t slot, size_t item, struct dl2_error *error)
{
    const struct asking *asking = context;
    struct dl2_file_list *list = asking->list;
    (void)worker, (void)slot;
    const size_t end = (item + 1) * FILES_AT_ONCE;
    for (size_t i = item * FILES_AT_ONCE; i < end && i < list->count; i++) {
        struct stat info;
        if (fstatat(asking->descriptor, list->paths[i], &info, 0) == 0) {
            list->bytes[i] = (uint64_t)info.st_size;
            list->mtime_ns[i] = dl2_mtime_ns(&info);
        } else if (errno == ENOENT) {
            list->paths[i] = NULL; /* it has just gone */
        } else {
            return dl2_error_system(error, "%.*s/%s: can't be looked at",
                                    dl2_path_folder_length(asking->root), asking->root,
                                    list->paths[i]);
        }
    }
    return DL2_OK;
}

static int ask_all(const char *root, struct dl2_file_list *list, struct dl2_error *error)
{
    DL2_CLEANUP(dl2_close_file) const int folder = open(root, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    struct asking asking = {root, folder, list};
    const struct dl2_parallel loop = {.jobs = list->count <= FILES_AT_ONCE ? 1 : 0,
                                      .count = (list->count + FILES_AT_ONCE - 1) / FILES_AT_ONCE,
                                      .work = ask,
                                      .context = &asking};
    if (folder < 0)
        return dl2_error_system(error, "%s: can't be opened as a folder", root);
    const int status = dl2_parallel_run(&loop, error);
    size_t kept = 0;
    for (size_t i = 0; i < list->count; i++) {
        if (!list->paths[i])
            continue;
        list->paths[kept] = list->paths[i];
        list->bytes[kept] = list->bytes[i];
        list->mtime_ns[kept++] = list->mtime_ns[i];
    }
    list->count = kept;
    return status;
}

int dl2_list_files(const char *root, struct dl2_file_list *list, struct dl2_error *error)
{
    *list = (struct dl2_file_list){0};
    struct listing listing = {.root = root};
    int status = list_folder(&listing, NULL, "", error);
    list->strings = (char *)listing.strings.data;
    list->folders = (char *)listing.folders.data;
    list->folders_size = listing.folders.size;
    list->dangling = listing.dangling;
    list->first_dangling = listing.first_dangling;
    if (status == DL2_OK) {
        list->paths = dl2_calloc(listing.count, sizeof *list->paths);
        list->bytes = dl2_calloc(listing.count, sizeof *list->bytes);
        list->mtime_ns = dl2_calloc(listing.count, sizeof *list->mtime_ns);
        if (!list->paths || !list->bytes || !list->mtime_ns)
            status = dl2_error_memory(error, "file names");
    }
    if (status == DL2_OK) {
        for (size_t i = 0; i < listing.count; i++)
            list->paths[i] = list->strings + ((const size_t *)listing.offsets.data)[i];
        list->count = listing.count;
        status = ask_all(root, list, error);
    }
    dl2_bytes_free(&listing.offsets);
    if (status < 0)
        dl2_file_list_free(list);
    return status;
}

void dl2_file_list_free(struct dl2_file_list *list)
{
    free(list->paths);
    free(list->strings);
    free(list->folders);
    free(list->first_dangling);
    free(list->bytes);
    free(list->mtime_ns);
    *list = (struct dl2_file_list){0};
}

static int is_visible(const struct dirent *entry)
{
    return entry->d_name[0] != '.';
}

int dl2_list_names(const char *folder, char ***names, struct dl2_error *error)
{
    struct dirent **entries = NULL;
    const int found = scandir(folder, &entries, is_visible, versionsort);
    const size_t count = found > 0 ? (size_t)found : 0;
    char **list = found < 0 && errno == ENOMEM ? NULL : dl2_calloc(count + 1, sizeof *list);
    for (size_t i = 0; i < count; i++) {
        if (list && !(list[i] = strdup(entries[i]->d_name))) {
            dl2_free_list(list);
            list = NULL;
        }
        free(entries[i]);
    }
    free(entries);
    *names = list;
    return list ? DL2_OK : dl2_error_memory(error, "the names in %s", folder);
}

static int remove_entry(const char *path, const struct stat *info, int type, struct FTW *place)
{
    (void)info;
    (void)type;
    (void)place;
    remove(path);
    return 0;
}

void dl2_remove_tree(const char *folder)
{
    nftw(folder, remove_entry, 8, FTW_DEPTH | FTW_PHYS);
}
