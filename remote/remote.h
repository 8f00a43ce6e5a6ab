/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Files behind HTTP and objects of S3, as the readers of containers see them. Files of this room,
 * from the inside out:
 *
 *     address.c, credentials.c   what a user gives
 *     transport_curl.c           requests: many at once, again after a failure
 *     listing.c                  the XML of S3
 *     disk_cache.c               a folder that keeps what was read
 *     remote.c                   all of it together
 *     upload.c                   writing objects of S3
 *
 * Threads: any number at once; open and close on one. The child of a fork may read what its parent
 * opened: it has connections of its own.
 */
#ifndef DL2_REMOTE_H
#define DL2_REMOTE_H

#include "common/error.h"
#include "common/memory.h"
#include "remote/access.h"
#include "remote/listing.h"

#include <stdatomic.h>

struct dl2_remote;

/* DL2_ERR_UNSUPPORTED in a build without libcurl. Sends no request. */
int dl2_remote_open(const char *address, const struct dl2_remote_options *options,
                    struct dl2_remote **out, struct dl2_error *error);
void dl2_remote_close(struct dl2_remote *remote);

/* Can it list its files? S3 can. */
bool dl2_remote_lists(const struct dl2_remote *remote);
bool dl2_remote_has_cache(const struct dl2_remote *remote);
/* How many requests may be under way at once. */
unsigned dl2_remote_requests(const struct dl2_remote *remote);

/* A file that is read in parts. */
struct dl2_remote_file {
    struct dl2_remote *remote;
    char *name;           /* path from the address */
    uint64_t bytes;       /* DL2_REMOTE_UNKNOWN until it is known */
    _Atomic(char *) etag; /* NULL until it is known */
};
#define DL2_REMOTE_UNKNOWN UINT64_MAX

/* `etag` may be NULL or "". To be freed also after an error. */
int dl2_remote_file_init(struct dl2_remote *remote, const char *name, uint64_t bytes,
                         const char *etag, struct dl2_remote_file *file, struct dl2_error *error);
void dl2_remote_file_free(struct dl2_remote_file *file);

/*
 * The name that `url` has below the remote's address, perhaps with "../" in front, and its path on
 * the server or in the bucket, decoded: two strings to be freed. DL2_ERR_ARGUMENT for an address on
 * another server or in another bucket, and for one that is none.
 */
int dl2_remote_name_of(const struct dl2_remote *remote, const char *url, char **name, char **path,
                       struct dl2_error *error);

/*
 * Asks for the sizes and ETags of those files whose sizes are not known, and for the times when
 * they were changed, nanoseconds since 1970, into times_ns[]. *failed: the file that an error is
 * about.
 */
int dl2_remote_look(struct dl2_remote_file *files, int64_t *times_ns, size_t count, size_t *failed,
                    struct dl2_error *error);

/* Asks for the ETags of files that have none yet, and compares their sizes. */
int dl2_remote_identify(struct dl2_remote_file *files, size_t count, struct dl2_error *error);

/*
 * One read of a part of a file, which must not end behind the file. Zero it, set the first part,
 * and call begin: true, and it is over; or false, and done() will be called, on another thread.
 * Then call end, which may take a while, on any thread but that of done(), and always: it sets
 * data[0 .. size-1], or tells what failed.
 */
struct dl2_remote_read {
    struct dl2_remote_file *file;
    uint64_t offset;
    size_t size;
    uint8_t *data;
    uint64_t unit; /* where the sample begins in the file that the part is of */
    bool urgent;   /* before those that are not */
    bool is_fresh; /* not from the cache */
    void (*done)(void *context);
    void *context;

    struct dl2_remote_reading *own;
};
bool dl2_remote_read_begin(struct dl2_remote_read *read);
int dl2_remote_read_end(struct dl2_remote_read *read, struct dl2_error *error);

/* The same, waiting for it. */
int dl2_remote_read(struct dl2_remote_file *file, uint64_t unit, uint64_t offset, void *data,
                    size_t size, struct dl2_error *error);

/* Removes from the cache what was read wrongly: the next read asks the server. */
void dl2_remote_forget(struct dl2_remote_file *file, uint64_t unit);

/* How all of a file is read. */
enum dl2_load_flags {
    DL2_LOAD_OPTIONAL = 1, /* it counts as missing also if a store does not tell (status 403) */
    DL2_LOAD_FRESH = 2     /* not from the cache */
};

/* Reads all of a file: 1, or 0 if there is none of this name. DL2_ERR_LIMIT above max_bytes. */
int dl2_remote_load(struct dl2_remote *remote, const char *name, uint64_t max_bytes, unsigned flags,
                    struct dl2_bytes *out, struct dl2_error *error);

/* All objects below the address; keys are paths from there, sorted by byte value. */
int dl2_remote_list(struct dl2_remote *remote, struct dl2_listing *listing,
                    struct dl2_error *error);
void dl2_listing_free(struct dl2_listing *listing);
/* The object of this path, or NULL. Only of what dl2_remote_list() made. */
const struct dl2_listed_object *dl2_listing_find(const struct dl2_listing *listing,
                                                 const char *name);

/*
 * Writes an object of S3, in parts if it is large: afterwards it is there whole, or what was there
 * before is. DL2_ERR_ARGUMENT for HTTP. `data` may be NULL if there is nothing in it.
 */
int dl2_remote_store(struct dl2_remote *remote, const char *name, const void *data, size_t size,
                     struct dl2_error *error);
/* The same with the bytes of a file, which nobody may change meanwhile. */
int dl2_remote_store_file(struct dl2_remote *remote, const char *name, const char *path,
                          struct dl2_error *error);
/* Writes an object of few bytes where there is none: 1, or 0 where there is one. A server without
 * conditional writes (status 501) overwrites it, and another may ignore the condition. */
int dl2_remote_store_new(struct dl2_remote *remote, const char *name, const void *data, size_t size,
                         struct dl2_error *error);
/* Removes an object of S3, if there is one. */
int dl2_remote_remove(struct dl2_remote *remote, const char *name, struct dl2_error *error);

void dl2_remote_get_stats(struct dl2_remote *remote, struct dl2_remote_stats *stats);

/* For upload.c: a file's URL, and its name for messages, strings to free or NULL; sends requests
 * and waits for all, where the first error counts; reads what S3 replied. */
struct dl2_remote_transfer;
char *dl2_remote_url(const struct dl2_remote *remote, const char *name);
char *dl2_remote_shown(const struct dl2_remote *remote, const char *name);
int dl2_remote_run(struct dl2_remote *remote, struct dl2_remote_transfer *transfers, size_t count,
                   struct dl2_error *error);
void dl2_remote_read_reply(const struct dl2_remote *remote, const struct dl2_bytes *body,
                           struct dl2_store_error *out);

#endif
