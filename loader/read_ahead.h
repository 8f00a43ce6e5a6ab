/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Read-ahead: reads for loader/fetch.c the samples that come next in the order. It promises
 * nothing: a sample that is not there, because it was not planned, did not fit or could not be
 * read, is read by its taker. So nothing here reports read errors, and nobody waits for a read that
 * has not begun.
 *
 * Threads: call start while no take is under way; the rest on any number of threads at once.
 */
#ifndef DL2_LOADER_READ_AHEAD_H
#define DL2_LOADER_READ_AHEAD_H

#include "loader/cache.h"
#include "loader/fetch.h"

struct dl2_read_ahead;
struct dl2_read_request;

/*
 * config->io is DL2_IO_THREADS, DL2_IO_URING, or DL2_IO_AUTO for the best one that works here.
 * Samples in `cached`, which may be NULL, and those whose plan has the decoded image are not read.
 * The planner must outlive it.
 */
int dl2_read_ahead_create(const struct dl2_planner *planner, const struct dl2_fetch_config *config,
                          const struct dl2_cache *cached, struct dl2_read_ahead **out,
                          struct dl2_error *error);
/* Waits for reads that are under way. All requests must have been given back. */
void dl2_read_ahead_destroy(struct dl2_read_ahead *ahead);

/* Sets the order of what comes next, as dl2_fetch_start() does. */
void dl2_read_ahead_start(struct dl2_read_ahead *ahead, const uint32_t *order, size_t count);

/*
 * DL2_IO_AUTO: records how long a direct read of `bytes` took. Read-ahead goes on and off by that;
 * see loader/read_ahead.c.
 */
void dl2_read_ahead_observe(struct dl2_read_ahead *ahead, double seconds, size_t bytes);

/*
 * Hands over the plan of the sample at `position`, and the bytes that were read for it. They were
 * not verified; they are valid until the request is given back. Without a request nothing was read:
 * the caller reads, unless the plan has the decoded image. False: the sample was not planned.
 */
bool dl2_read_ahead_acquire(struct dl2_read_ahead *ahead, size_t position, uint32_t index,
                            struct dl2_sample_plan *plan, struct dl2_fetched *fetched);
void dl2_read_ahead_release(struct dl2_read_ahead *ahead, struct dl2_read_request *request);

/* Sets bytes_read, requests and memory. */
void dl2_read_ahead_get_stats(struct dl2_read_ahead *ahead, struct dl2_fetch_stats *stats);

#endif
