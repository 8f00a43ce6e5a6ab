/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The read stage: encoded bytes of samples, from the cache, from read-ahead or directly. Samples
 * that come next in the order are read early (by io_uring where the kernel has it, else by
 * threads; from a server by many requests at once), neighbors in one packed file by one read.
 * Samples are kept in memory (loader/cache.h) while they fit.
 *
 * Threads: call start on one thread while no take is under way; take and give on any number at
 * once.
 */
#ifndef DL2_LOADER_FETCH_H
#define DL2_LOADER_FETCH_H

#include "common/memory.h"
#include "loader/sample_plan.h"

struct dl2_cache;        /* loader/cache.h */
struct dl2_read_request; /* loader/engine.h */

struct dl2_fetch_stats {
    uint64_t bytes_read; /* from the dataset */
    uint64_t requests;   /* reads; one read may be of several neighbors in one file */
    uint64_t ahead;      /* samples that were read before they were taken */
    uint64_t cache_hits, cached;
    uint64_t cached_bytes; /* bytes of the cache's limit that are used */
    uint64_t memory;       /* bytes held: buffers, tables, and the filled part of the cache */
};

struct dl2_fetch;

/* The planner and its dataset must outlive it. A planner that plans slices needs
 * config->cache_bytes 0. */
int dl2_fetch_create(const struct dl2_planner *planner, const struct dl2_fetch_config *config,
                     struct dl2_fetch **out, struct dl2_error *error);
void dl2_fetch_destroy(struct dl2_fetch *fetch);

/*
 * Sets the order of what comes next: samples order[0 .. count-1]. The array stays the caller's and
 * must not change until the next start or destroy. To change it or the planner's epoch, call start
 * with NULL and 0 before. What is left of the previous order is dropped.
 */
void dl2_fetch_start(struct dl2_fetch *fetch, const uint32_t *order, size_t count);

/* The bytes of one sample, while they are held. Zero it first; one per thread, reused. */
struct dl2_fetched {
    const uint8_t *data;
    size_t size;
    struct dl2_bytes scratch;
    struct dl2_read_request *request; /* private: where the bytes were read ahead */
};

/*
 * Takes sample `index` as number `position` of the order; of clips (but for videos, which are read
 * whole), frame plan->frame, which the caller has set, as number `position` of the order of all
 * frames that are loaded: its plan, and the bytes that the plan asks for: none if it has the
 * decoded image. Blocks until they are there.
 * Positions may be taken in any order, but about one after the other: a position that is not taken
 * is dropped once later ones need its room. A sample that stands elsewhere in the order, or was
 * taken already, is planned and read at once; the sample that replaces a bad one is read so.
 * plan->epoch_position is set by the caller. Errors name the sample.
 */
int dl2_fetch_acquire(struct dl2_fetch *fetch, size_t position, uint32_t index,
                      struct dl2_sample_plan *plan, struct dl2_fetched *fetched,
                      struct dl2_error *error);
/* Gives the bytes back; needed after an error, too. */
void dl2_fetch_release(struct dl2_fetch *fetch, struct dl2_fetched *fetched);

/* Counts what was read past this file, of volumes. */
void dl2_fetch_count(struct dl2_fetch *fetch, uint64_t bytes, uint64_t requests);

void dl2_fetch_get_stats(struct dl2_fetch *fetch, struct dl2_fetch_stats *stats);

#endif
