/* SPDX-License-Identifier: BSD-2-Clause */
#include "transcode/variant/output_folder.h"

#include "common/file.h"
#include "common/scope.h"
#include "dataset/write/writer.h"
#include "transcode/variant/variant.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <time.h>
#include <unistd.h>

#define LOCK_NAME ".dl2-transcode.lock"

/* How often a part looks at a lock, 50 ms apart, before it says that it is waiting. */
enum { LOCK_POLLS = 40 };

static char *add_slash(const char *path)
{
    const size_t length = strlen(path);
    char *with_slash = NULL;
    if (asprintf(&with_slash, "%s%s", path, length && path[length - 1] == '/' ? "" : "/") < 0) {
        errno = ENOMEM;
        return NULL;
    }
    return with_slash;
}

/* `path` with links resolved, and "/" at its end. A string to free, or NULL with errno. */
static char *resolve(const char *path)
{
    char *real = realpath(path, NULL);
    char *with_slash = real ? add_slash(real) : NULL;
    free(real);
    return with_slash;
}

/* Appends a name to the folder *path, which ends in "/"; "." and ".." lead where they say. */
static bool descend(char **path, const char *name, size_t length)
{
    if (length == 0 || (length == 1 && name[0] == '.'))
        return true;
    if (length == 2 && name[0] == '.' && name[1] == '.') {
        const size_t end = strlen(*path) - 1;
        if (end > 0) { /* else it is the root */
            (*path)[end] = '\0';
            strrchr(*path, '/')[1] = '\0';
        }
        return true;
    }
    char *longer = NULL;
    if (asprintf(&longer, "%s%.*s/", *path, (int)length, name) < 0)
        return false;
    free(*path);
    *path = longer;
    return true;
}

/* The same of a folder that need not be there yet: what its path will lead to once it is made. */
static char *resolve_new(const char *path)
{
    char *start = strdup(path), *resolved = NULL;
    size_t there = strlen(path);
    /* Names are cut off until the rest is there. What is made below that has no links in it. */
    while (start && !(resolved = resolve(there ? start : ".")) && there &&
           (errno == ENOENT || errno == EINVAL)) {
        while (there && start[there - 1] == '/')
            there--;
        while (there && start[there - 1] != '/')
            there--;
        start[there] = '\0';
    }
    free(start);
    for (const char *name = path + there; resolved && *name;) {
        const size_t length = strcspn(name, "/");
        if (!descend(&resolved, name, length)) {
            free(resolved);
            errno = ENOMEM;
            return NULL;
        }
        name += length + (name[length] == '/');
    }
    return resolved;
}

/* Is a resolved path the resolved folder, or does it lie in it? */
static bool lies_in(const char *path, const char *folder)
{
    return !strncmp(path, folder, strlen(folder));
}

/* Resolves the places of SOURCE and DEST: two strings to free, NULL before. */
static int resolve_both(const char *source, const char *dest, char **real_source, char **real_dest,
                        struct dl2_error *error)
{
    *real_source = resolve(source);
    if (!*real_source)
        return dl2_error_system(error, "%s: can't be read", source);
    *real_dest = resolve_new(dest);
    return *real_dest ? DL2_OK : dl2_error_system(error, "%s: can't be made", dest);
}

bool dl2_output_is_folder(const char *dest)
{
    return !dl2_dataset_is_database(dest) && !dl2_is_address(dest);
}

static bool are_folders(const char *source, const char *dest)
{
    return dl2_output_is_folder(source) && dl2_output_is_folder(dest);
}

/* Refuses what cannot be written at an address. */
static int check_address(const char *dest, const char *container, struct dl2_error *error)
{
    DL2_TRY(dl2_writer_check_place(dest, error));
    if (dl2_is_address(dest) && !dl2_container_is_packed(container))
        return dl2_error_set(error, DL2_ERR_ARGUMENT,
                             "%s: only packed datasets are written to a store: add --container=tar",
                             dest);
    return DL2_OK;
}

/* Neither SOURCE nor DEST of a copy may lie in the other. */
static int check_copy(const char *source, const char *dest, const char *container,
                      struct dl2_error *error)
{
    DL2_AUTO_FREE char *real_source = NULL, *real_dest = NULL;
    DL2_TRY(check_address(dest, container, error));
    if (dl2_addresses_share_prefix(source, dest))
        return dl2_error_set(error, DL2_ERR_ARGUMENT,
                             "%s: DEST and SOURCE lie in each other; name another prefix", dest);
    if (!are_folders(source, dest)) {
        bool same;
        DL2_TRY(dl2_facts_same_table(source, dest, &same, error));
        return same ? dl2_error_set(error, DL2_ERR_ARGUMENT,
                                    "%s: DEST is SOURCE itself; name another table", dest)
                    : DL2_OK;
    }
    DL2_TRY(resolve_both(source, dest, &real_source, &real_dest, error));
    return !lies_in(real_source, real_dest) && !lies_in(real_dest, real_source)
               ? DL2_OK
               : dl2_error_set(error, DL2_ERR_ARGUMENT,
                               "%s: DEST and SOURCE lie in each other; name another folder", dest);
}

/* Refuses a table of a variant that is SOURCE itself, or a prefix in a store that lies in SOURCE,
 * or around it. */
static int check_place(const char *source, const struct dl2_variant *variant,
                       struct dl2_error *error)
{
    bool same;
    if (dl2_addresses_share_prefix(source, variant->root))
        return dl2_error_set(error, DL2_ERR_ARGUMENT,
                             "%s: the variant %s and SOURCE would lie in each other; name another "
                             "DEST",
                             variant->root, variant->name);
    DL2_TRY(dl2_facts_same_table(source, variant->root, &same, error));
    return same ? dl2_error_set(error, DL2_ERR_ARGUMENT,
                                "%s: the variant %s would be written over its own source; name "
                                "another table",
                                variant->root, variant->name)
                : DL2_OK;
}

/* The same of a variant's folder, which a link may have led elsewhere than DEST. */
static int check_root(const char *source, const char *real_source,
                      const struct dl2_variant *variant, struct dl2_error *error)
{
    DL2_AUTO_FREE char *root = resolve_new(variant->root);
    if (!root)
        return dl2_error_system(error, "%s: can't be made", variant->root);
    if (lies_in(real_source, root))
        return dl2_error_set(error, DL2_ERR_ARGUMENT,
                             "%s would be written over its own source %s; name another DEST",
                             variant->root, source);
    return lies_in(root, real_source)
               ? dl2_error_set(error, DL2_ERR_ARGUMENT,
                               "%s leads into SOURCE; remove that link, or name another DEST",
                               variant->root)
               : DL2_OK;
}

int dl2_output_check_variants(const char *source, const char *dest, const char *container,
                              const struct dl2_variant *variants, size_t count,
                              struct dl2_error *error)
{
    DL2_AUTO_FREE char *real_source = NULL, *real_dest = NULL;
    const bool folders = are_folders(source, dest);
    DL2_TRY(check_address(dest, container, error));
    if (folders)
        DL2_TRY(resolve_both(source, dest, &real_source, &real_dest, error));
    if (folders && !strcmp(real_source, real_dest))
        return dl2_error_set(error, DL2_ERR_ARGUMENT,
                             "%s: DEST is SOURCE itself; name another folder", dest);
    if (folders && lies_in(real_dest, real_source))
        return dl2_error_set(error, DL2_ERR_ARGUMENT,
                             "%s lies within SOURCE, whose images would then be those of the "
                             "variants, too; name a DEST elsewhere",
                             dest);
    for (size_t v = 0; v < count; v++)
        DL2_TRY(folders ? check_root(source, real_source, &variants[v], error)
                        : check_place(source, &variants[v], error));
    return DL2_OK;
}

int dl2_output_remove(const char *root, const char *name, bool *removed, struct dl2_error *error)
{
    DL2_AUTO_FREE char *path = dl2_path_join(root, name), *real = resolve(root), *folder = NULL;
    *removed = false;
    if (!path || !real)
        return dl2_error_memory(error, "a path");
    char *slash = strrchr(path, '/');
    *slash = '\0';
    folder = resolve(path);
    *slash = '/';
    *removed = folder && lies_in(folder, real);
    if (!*removed)
        return DL2_OK;
    if (unlink(path) != 0 && errno != ENOENT)
        return dl2_error_system(error, "%s: can't be removed", path);
    while ((slash = strrchr(path, '/')) && (size_t)(slash - path) > strlen(root)) {
        *slash = '\0';
        if (rmdir(path) != 0)
            break;
    }
    return DL2_OK;
}

static int refuse_clips(const struct dl2_dataset *dataset, const char *source,
                        const char *container, struct dl2_error *error)
{
    if (dl2_dataset_kind(dataset) == DL2_SAMPLE_IMAGE || dl2_container_holds_clips(container))
        return DL2_OK;
    return dl2_error_set(error, DL2_ERR_UNSUPPORTED,
                         "%s: it holds clips, and the container '%s' holds images alone; "
                         "--samples images makes each frame an image of its own",
                         source, container);
}

/* A folder has no classes but its folders. */
static int check_classes(const struct dl2_dataset *dataset, const char *source,
                         struct dl2_progress *progress, struct dl2_error *error)
{
    size_t lost;
    DL2_TRY(dl2_dataset_check_class_folders(dataset, &lost, error));
    if (lost)
        dl2_progress_message(progress,
                             "%s: %zu of %zu images lie in no folder of their class, and lose it "
                             "in a folder; --container=tar keeps it",
                             source, lost, dl2_dataset_count(dataset));
    return DL2_OK;
}

bool dl2_output_has_clips(const char *path)
{
    const struct dl2_dataset_options options = DL2_DATASET_DEFAULTS;
    struct dl2_dataset *dataset;
    if (dl2_dataset_open(path, &options, &dataset, NULL) < 0)
        return false;
    const bool clips = dl2_container_has_clip_items(dl2_dataset_container(dataset)) &&
                       dl2_dataset_kind(dataset) == DL2_SAMPLE_CLIP;
    dl2_dataset_close(dataset);
    return clips;
}

int dl2_output_check_source(const struct dl2_dataset *dataset, const char *source,
                            const char *container, struct dl2_progress *progress,
                            struct dl2_error *error)
{
    DL2_TRY(refuse_clips(dataset, source, container, error));
    if (dl2_container_is_packed(container) ||
        dl2_container_has_class_folders(dl2_dataset_container(dataset)))
        return DL2_OK;
    return check_classes(dataset, source, progress, error);
}

/* As flock(), again where a signal interrupts it. Waiting for others is no error: 1. */
static int lock_file(const struct dl2_output_lock *lock, int how, struct dl2_error *error)
{
    while (flock(lock->fd, how) != 0) {
        if (errno == EWOULDBLOCK)
            return 1;
        if (errno != EINTR)
            return dl2_error_system(error, "the folder of the variants can't be locked; that "
                                           "needs a file system with flock()");
    }
    return DL2_OK;
}

static int open_lock(const char *dest, struct dl2_output_lock *lock, struct dl2_error *error)
{
    DL2_AUTO_FREE char *path = NULL;
    DL2_TRY(dl2_format(&path, error, "%s/" LOCK_NAME, dest));
    lock->fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0666);
    return lock->fd < 0 ? dl2_error_system(error, "%s: can't be written", path) : DL2_OK;
}

static void tell_waiting(const char *dest, struct dl2_progress *progress)
{
    dl2_progress_message(progress, "%s: another dl2-transcode is writing here; waiting for it",
                         dest);
}

int dl2_output_lock(const char *dest, struct dl2_progress *progress, struct dl2_output_lock *lock,
                    struct dl2_error *error)
{
    DL2_TRY(open_lock(dest, lock, error));
    int status = lock_file(lock, LOCK_EX | LOCK_NB, error);
    if (status != 1)
        return status;
    tell_waiting(dest, progress);
    return lock_file(lock, LOCK_EX, error);
}

int dl2_output_begin_copy(const struct dl2_transcode_options *options, struct dl2_output_lock *lock,
                          struct dl2_error *error)
{
    DL2_TRY(check_copy(options->source, options->dest, options->pack.container, error));
    if (!dl2_output_is_folder(options->dest))
        return DL2_OK;
    DL2_TRY(dl2_make_folders(options->dest, error));
    return dl2_output_lock(options->dest, options->progress, lock, error);
}

int dl2_output_open_copy(const struct dl2_transcode_options *options,
                         const struct dl2_dataset *dataset, struct dl2_writer **writer,
                         struct dl2_error *error)
{
    if (dl2_container_is_packed(options->pack.container))
        return dl2_writer_open_like(options->dest, &options->pack, dataset, writer, error);
    return dl2_dataset_is_packed(options->dest)
               ? dl2_error_set(error, DL2_ERR_ARGUMENT,
                               "%s holds a packed dataset; name another DEST, or remove it",
                               options->dest)
               : DL2_OK;
}

/* Compares the digest of the part that had the lock alone. */
static int check_digest(const char *dest, const char *digest, const struct dl2_output_lock *lock,
                        struct dl2_error *error)
{
    char text[64] = "";
    const ssize_t size = pread(lock->fd, text, sizeof text - 1, 0);
    if (size < 0)
        return dl2_error_system(error, "%s: its lock can't be read", dest);
    return !strcmp(text, digest)
               ? DL2_OK
               : dl2_error_set(error, DL2_ERR_CANCELED,
                               "%s: parts of another run are at work here: with other options, "
                               "another number of parts, or other versions of dl2 or of the "
                               "codecs' libraries; wait for them, or name another DEST",
                               dest);
}

int dl2_output_lock_part(const char *dest, const char *digest, struct dl2_progress *progress,
                         struct dl2_output_lock *lock, bool *joins, struct dl2_error *error)
{
    unsigned waits = 0;
    *joins = false;
    DL2_TRY(open_lock(dest, lock, error));
    for (;;) {
        int status = lock_file(lock, LOCK_EX | LOCK_NB, error);
        if (status == DL2_OK)
            break;
        if (status == 1 && (status = lock_file(lock, LOCK_SH | LOCK_NB, error)) == DL2_OK) {
            *joins = true;
            return check_digest(dest, digest, lock, error);
        }
        if (status < 0)
            return status;
        if (waits++ < LOCK_POLLS) { /* most often another part that puts things in order */
            nanosleep(&(struct timespec){.tv_nsec = 50000000}, NULL);
            continue;
        }
        tell_waiting(dest, progress);
        DL2_TRY(lock_file(lock, LOCK_SH, error)); /* waits */
        DL2_TRY(lock_file(lock, LOCK_UN, error));
    }
    const size_t size = strlen(digest);
    return ftruncate(lock->fd, 0) == 0 && pwrite(lock->fd, digest, size, 0) == (ssize_t)size
               ? DL2_OK
               : dl2_error_system(error, "%s: its lock can't be written", dest);
}

int dl2_output_share(struct dl2_output_lock *lock, struct dl2_error *error)
{
    return lock_file(lock, LOCK_SH, error);
}

int dl2_output_take_over(struct dl2_output_lock *lock, bool *alone, struct dl2_error *error)
{
    /* Given up first: of two that end together, each would see the other's share. */
    DL2_TRY(lock_file(lock, LOCK_UN, error));
    const int status = lock_file(lock, LOCK_EX | LOCK_NB, error);
    *alone = status == DL2_OK;
    return status < 0 ? status : DL2_OK;
}

void dl2_output_unlock(struct dl2_output_lock *lock)
{
    if (lock->fd >= 0)
        close(lock->fd);
    lock->fd = -1;
}
