/* SPDX-License-Identifier: BSD-2-Clause */
/* Files and folders. Paths are bytes as the system gives them; '/' separates. */
#ifndef DL2_COMMON_FILE_H
#define DL2_COMMON_FILE_H

#include "common/error.h"
#include "common/memory.h"

#include <dirent.h>
#include <stddef.h>
#include <stdint.h>

/* Suffix of every temporary name that dl2_file_write() uses. */
#define DL2_TEMPORARY_SUFFIX ".dl2-tmp"

/* "a" + "b" -> "a/b". A new string to free, or NULL when memory runs out. */
char *dl2_path_join(const char *folder, const char *name);

/* The length of a folder's path without slashes at its end, 0 for "/": for "%.*s/%s". */
int dl2_path_folder_length(const char *folder);

/* The folder that a file lies in, "." where the path has none: to free. NULL: no memory. */
char *dl2_folder_of(const char *path);

/* The part behind the last '/', and the length of a path without its extension (".jpg"). */
const char *dl2_path_base(const char *path);
size_t dl2_path_stem_length(const char *path);
/* The extension without its dot, "" where there is none (a leading dot starts none). */
const char *dl2_path_extension(const char *path);
/* Drops "./", "//", a "/" at the end, and at the start of the path, in place. */
void dl2_path_tidy(char *path);

/* For DL2_CLEANUP() of common/scope.h: close a descriptor that is not -1, a folder that is not
 * NULL. */
void dl2_close_file(const int *descriptor);
void dl2_close_folder(DIR **folder);

/* Opens a folder by its path from the folder `at` (AT_FDCWD: the current one), or NULL with errno
 * set. */
DIR *dl2_open_folder(int at, const char *name);

bool dl2_is_folder(const char *path);
bool dl2_is_file(const char *path);

/* Reads `size` bytes at `offset`: how many there were, fewer at the end of the file, or -1 with
 * errno set. Any number of threads at once. */
int64_t dl2_read_at(int fd, uint64_t offset, void *out, size_t size);

/* Writes all of it; false with errno set. */
bool dl2_write_all(int fd, const void *data, size_t size);

/* Replaces bytes->data by the file's contents. DL2_ERR_LIMIT above max_bytes. */
int dl2_file_read(const char *path, uint64_t max_bytes, struct dl2_bytes *bytes,
                  struct dl2_error *error);

/* Is `path` a file with these bytes? */
bool dl2_file_has(const char *path, const void *data, size_t size);

/*
 * Whoever reads text that others wrote begins with one of these two. Editors of other systems, and
 * spreadsheets, put a byte order mark before UTF-8: the first says how many bytes it has, 3 or 0.
 * The second removes it and puts a zero behind the text, which `size` does not count;
 * DL2_ERR_FORMAT, without the file's name, for a zero byte and for UTF-16.
 */
size_t dl2_text_mark(const void *text, size_t size);
int dl2_text_begin(struct dl2_bytes *text, struct dl2_error *error);

/*
 * Writes a file without a name, where the file system has such (O_TMPFILE), and names it; else, or
 * to take an old file's place, under the temporary name "FOLDER/.NAME.dl2-tmp", then renames. At no
 * moment does `path` hold half a file, even if the process is killed. (No fsync: a power cut may
 * lose what was written last.) The temporary name is fixed, so what a killed run left behind is
 * overwritten by the next; two writers of one path at once must be kept apart by the caller.
 */
int dl2_file_write(const char *path, const void *data, size_t size, struct dl2_error *error);

/* When it was last modified, nanoseconds since 1970. */
struct stat;
int64_t dl2_mtime_ns(const struct stat *info);

/* mkdir -p; of the path itself, or of the folder that a file lies in. */
int dl2_make_folders(const char *path, struct dl2_error *error);
int dl2_make_folder_of(const char *path, struct dl2_error *error);

/*
 * For a file that is to be written at the end of long work: makes the folders above it, and says
 * now what would be in its way then.
 */
int dl2_file_expect(const char *path, struct dl2_error *error);
/* The same for a folder that files are to be written to. */
int dl2_folder_expect(const char *folder, struct dl2_error *error);

/*
 * All regular files below `root`, symbolic links followed, as paths relative to it, sorted by byte
 * value. Names that start with a dot are left out, folders too. A folder that was met on the way
 * down (a loop of links) is an error that names it.
 */
struct dl2_file_list {
    char **paths;      /* into `strings` */
    uint64_t *bytes;   /* size of each */
    int64_t *mtime_ns; /* modification time of each, nanoseconds since 1970 */
    size_t count;
    char *strings;
    /* The paths of all folders below `root`, each with a slash and a zero at its end, one after the
     * other in the same order. */
    char *folders;
    size_t folders_size;
    /* Symbolic links that lead to nothing, which are no files: their number, and the first met. */
    size_t dangling;
    char *first_dangling;
};
int dl2_list_files(const char *root, struct dl2_file_list *list, struct dl2_error *error);
void dl2_file_list_free(struct dl2_file_list *list);

/*
 * The names in a folder but those that start with a dot, in the order of `ls -v`. Ends with NULL,
 * and is empty where there is no such folder. Free with dl2_free_list().
 */
int dl2_list_names(const char *folder, char ***names, struct dl2_error *error);

/* rm -rf: removes a folder with all that is in it, as far as that may be removed. */
void dl2_remove_tree(const char *folder);

#endif
