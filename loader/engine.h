/* What lies between loader/ahead.c, which plans reads, and those that carry them out. */
#ifndef DL2_LOADER_ENGINE_H
#define DL2_LOADER_ENGINE_H

#include "loader/ahead.h"

#include <pthread.h>

enum dl2_read_run_state {
    DL2_RUN_FREE,
    DL2_RUN_QUEUED,
    DL2_RUN_READING,
    DL2_RUN_READ,
    DL2_RUN_FAILED
};

/* One read: of a file as a whole, or of samples that lie near each other in one. */
struct dl2_read_run {
    /* For the engine. */
    const char *path;
    int fd; /* or -1: to be opened, and closed */
    uint64_t offset;
    size_t bytes;
    bool whole;      /* a file of its own; if it doesn't end there it changed: it failed */
    uint8_t *buffer; /* room for bytes + 1 */
    bool evict;      /* from the page cache, when it was read */

    /* loader/ahead.c's own. */
    enum dl2_read_run_state state;
    unsigned users;                      /* places that point here, takers, and whoever reads it */
    size_t page, pages;                  /* of the arena */
    size_t first;                        /* the earliest position in it */
    struct dl2_read_run *before, *after; /* in the queue, or after: in the list of free ones */
    pthread_cond_t done;
};

struct dl2_engine {
    enum dl2_io io;
    /* Starts its threads. */
    int (*start)(struct dl2_ahead *ahead, void **state, struct dl2_error *error);
    /* There may be something to do, for one that doesn't wait in dl2_ahead_next(); NULL: it does.
     * Any thread; must be quick and not call back. */
    void (*wake)(void *state);
    /* dl2_ahead_next() says that it is over: ends the threads when all is read. */
    void (*stop)(void *state);
};

extern const struct dl2_engine dl2_engine_threads, dl2_engine_uring;

/*
 * The next run to read, which then must be passed to dl2_ahead_done(). NULL: nothing now. Who waits
 * gets NULL only when it is over. Plans on the way.
 */
struct dl2_read_run *dl2_ahead_next(struct dl2_ahead *ahead, bool wait, bool *over);
void dl2_ahead_done(struct dl2_ahead *ahead, struct dl2_read_run *run, bool read);
/* The run's memory isn't to be used again before the end: the kernel may yet write to it. */
void dl2_ahead_hold(struct dl2_ahead *ahead, struct dl2_read_run *run);

/* Reads a run with plain system calls; false where not all of it came or the file is another. */
bool dl2_run_read(const struct dl2_read_run *run);

/* The whole pages that a part of a file touches: neighbours' too, so that they are cold as well. */
struct dl2_extent {
    uint64_t start, bytes;
};
struct dl2_extent dl2_run_pages(uint64_t offset, uint64_t bytes);
/* Takes them out of the page cache. */
void dl2_run_evict(int fd, uint64_t offset, uint64_t bytes);

#endif
