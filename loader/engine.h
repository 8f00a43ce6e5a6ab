/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Engines carry out the reads that loader/read_ahead.c plans. An engine is one or more threads that
 * ask dl2_read_ahead_next() for requests, read them, and report each with dl2_read_ahead_done().
 * The two sides call each other by design: read_ahead.c starts, wakes and stops an engine through
 * its table.
 */
#ifndef DL2_LOADER_ENGINE_H
#define DL2_LOADER_ENGINE_H

#include "loader/read_ahead.h"

#include <pthread.h>

enum dl2_request_state {
    DL2_REQUEST_FREE,
    DL2_REQUEST_QUEUED,
    DL2_REQUEST_UNDER_WAY,
    DL2_REQUEST_READ,
    DL2_REQUEST_FAILED
};

/* One read: a whole file, or samples that lie near each other in one file. */
struct dl2_read_request {
    /* For the engine. */
    const char *path;
    int fd; /* -1: open `path`, and close it afterwards */
    uint64_t offset;
    size_t bytes;
    bool whole;      /* a file of its own: the read fails if the file doesn't end after `bytes` */
    uint8_t *buffer; /* room for bytes + 1 */
    bool evict;      /* drop the bytes from the page cache after the read */
    /* If not NULL, a batch is read instead (dl2_dataset_read_batch()): these samples, `count`. */
    uint32_t *samples;
    size_t count;
    const struct dl2_dataset *dataset;
    /* If not NULL, this is read instead of `path` (dl2_remote_read()); its unit begins at `start`.
     */
    struct dl2_remote_file *remote;
    uint64_t start;

    /* Private to loader/read_ahead.c. */
    enum dl2_request_state state;
    unsigned users;     /* entries that point here, takers, and the thread that reads it */
    size_t page, pages; /* of the arena */
    size_t first;       /* the earliest position in it */
    struct dl2_read_request *before, *after; /* in the queue; `after` also in the free list */
    pthread_cond_t done;
};

struct dl2_read_engine {
    enum dl2_io io;
    /* Starts the engine's threads. */
    int (*start)(struct dl2_read_ahead *ahead, void **state, struct dl2_error *error);
    /* There may be something to do. Called on any thread with read-ahead's mutex held, so it must
     * be quick and not call back. NULL for engines that wait in dl2_read_ahead_next(). */
    void (*wake)(void *state);
    /* Joins the threads; dl2_read_ahead_next() has told them that it is over. */
    void (*stop)(void *state);
};

extern const struct dl2_read_engine dl2_read_engine_threads, dl2_read_engine_uring,
    dl2_read_engine_remote;

/*
 * Returns the next request to read, planning more when the queue is empty. The caller passes it to
 * dl2_read_ahead_done() afterwards. NULL: nothing to read now, or with `wait` only when *over.
 */
struct dl2_read_request *dl2_read_ahead_next(struct dl2_read_ahead *ahead, bool wait, bool *over);
void dl2_read_ahead_done(struct dl2_read_ahead *ahead, struct dl2_read_request *request, bool read);
/* Keeps the request's memory from being reused until the end: the kernel may still write to it. */
void dl2_read_ahead_hold(struct dl2_read_ahead *ahead, struct dl2_read_request *request);

/* How many requests a remote dataset may have under way at once. */
unsigned dl2_read_ahead_requests(const struct dl2_read_ahead *ahead);

/* Reads with plain system calls, or from a server. False where bytes are missing or the file's
 * length changed. */
bool dl2_request_read(const struct dl2_read_request *request);

/* The whole pages that a part of a file touches, which neighbors in the file may share. */
struct dl2_extent {
    uint64_t start, bytes;
};
struct dl2_extent dl2_extent_of_pages(uint64_t offset, uint64_t bytes);
/* Drops those pages from the page cache. */
void dl2_evict_extent(int fd, uint64_t offset, uint64_t bytes);

#endif
