/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Threads: a loop over numbered items that many workers share.
 *
 * Nothing here changes a result with the number of threads: work is numbered, and what must come
 * out in order does.
 */
#ifndef DL2_COMMON_THREAD_H
#define DL2_COMMON_THREAD_H

#include "common/error.h"

#include <stddef.h>
#include <stdint.h>

/* Processors this process may run on (its affinity mask), at least 1. */
unsigned dl2_cpu_count(void);

/*
 * Work on items 0 .. count-1.
 *
 * work() runs on any of the workers, each item once, in no order; `worker` (0 .. jobs-1) names
 * the worker's own scratch state. emit() runs in item order, never twice at once, after that
 * item's work; it may be NULL. Items in flight, worked on but not emitted, are bounded by `window`
 * (0: four a worker), so `slot` (0 .. window-1) can name a place for the item's result. The
 * first work() or emit() to return an error stops the loop; its error is copied to the caller's.
 */
struct dl2_parallel {
    unsigned jobs; /* 0: dl2_cpu_count() */
    size_t window; /* 0: 4 * jobs */
    size_t count;
    int (*work)(void *context, unsigned worker, size_t slot, size_t item, struct dl2_error *error);
    int (*emit)(void *context, size_t slot, size_t item, struct dl2_error *error);
    void *context;
};

/* Replaces jobs and window by the numbers in use, for sizing the scratch and the slots. */
void dl2_parallel_resolve(struct dl2_parallel *loop);

/* Blocks until all is done or something failed and all workers have ended. */
int dl2_parallel_run(const struct dl2_parallel *loop, struct dl2_error *error);

#endif
