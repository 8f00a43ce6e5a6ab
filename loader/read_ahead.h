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
 * config->io is DL2_IO_THREADS, DL2_IO_URING, or DL2_IO_AUTO for the best of them that there is.
 * `cached`, or NULL, has encoded samples that need not be read.
 */
int dl2_read_ahead_create(const struct dl2_dataset *dataset, const struct dl2_fetch_config *config,
                          const struct dl2_cache *cached, struct dl2_read_ahead **out,
                          struct dl2_error *error);
/* Waits for what is being read. All that was taken must have been given back. */
void dl2_read_ahead_destroy(struct dl2_read_ahead *ahead);

/* What comes next, as dl2_fetch_start() has it. */
void dl2_read_ahead_start(struct dl2_read_ahead *ahead, const uint32_t *order, size_t count);

/*
 * DL2_IO_AUTO: a direct read of `bytes` took so long. Read-ahead goes on and off by this and by its
 * own reads; see loader/read_ahead.c.
 */
void dl2_read_ahead_observe(struct dl2_read_ahead *ahead, double seconds, size_t bytes);

/*
 * The bytes of a sample, as they were on the disk (nobody compared check sums), until the run is
 * given back; NULL: read it yourself.
 */
struct dl2_read_request *dl2_read_ahead_take(struct dl2_read_ahead *ahead, size_t position,
                                             uint32_t index, const uint8_t **data, size_t *size);
void dl2_read_ahead_give(struct dl2_read_ahead *ahead, struct dl2_read_request *request);

struct dl2_read_ahead_stats {
    uint64_t bytes, requests;
    size_t memory;
};
void dl2_read_ahead_get_stats(struct dl2_read_ahead *ahead, struct dl2_read_ahead_stats *stats);

#endif
