/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A cache in memory, by sample number, of encoded bytes or of decoded images.
 *
 * A cache fills up to its limit and then stays as it is. Each sample is visited once an epoch in
 * random order, so evicting one sample for another gains nothing, and evicting the least recently
 * used one loses hits (CoorDL's MinIO: Mohan et al., "Analyzing and
 * mitigating data stalls in DNN training", VLDB 2021, section 4.1). The memory is anonymous memory
 * of this process: a crash leaves nothing behind.
 *
 * The limit is exact: the table of samples and the header of each block count. Creating a cache
 * takes only address space; memory is used when blocks are filled.
 *
 * Threads: any number at once, without locks; create and destroy on one.
 */
#ifndef DL2_LOADER_CACHE_H
#define DL2_LOADER_CACHE_H

#include "common/error.h"
#include "common/memory.h"

#include <stddef.h>
#include <stdint.h>

/* One sample. It is valid, and never moved or changed, until the cache is destroyed. */
struct dl2_cache_block {
    size_t size;                      /* bytes of data */
    uint32_t width, height, channels; /* of a decoded image, whose rows have no padding; else 0 */
    _Alignas(DL2_ALIGNMENT) uint8_t data[];
};

struct dl2_cache;

/*
 * For samples 0 .. count-1 and at most `limit` bytes. DL2_ERR_ARGUMENT if the limit is below the
 * table of samples (8 bytes each).
 */
int dl2_cache_create(size_t count, uint64_t limit, struct dl2_cache **out, struct dl2_error *error);
void dl2_cache_destroy(struct dl2_cache *cache);

/* The sample's block; NULL if it is not in the cache. */
const struct dl2_cache_block *dl2_cache_find(const struct dl2_cache *cache, size_t index);

/*
 * Returns a block of `size` bytes for a sample that is not in the cache. The caller fills it and
 * then publishes or withdraws it; no other thread sees it before. NULL if the sample is in the
 * cache already, if another thread fills its block, or if there is no room.
 */
struct dl2_cache_block *dl2_cache_offer(struct dl2_cache *cache, size_t index, size_t size);
void dl2_cache_publish(struct dl2_cache *cache, size_t index, struct dl2_cache_block *block);
/* For a block that could not be filled. Its room is reused only if no block was offered since. */
void dl2_cache_withdraw(struct dl2_cache *cache, size_t index, struct dl2_cache_block *block);

struct dl2_cache_stats {
    uint64_t count; /* samples in the cache */
    uint64_t bytes; /* bytes of the limit that are used, with table and headers */
};
void dl2_cache_get_stats(const struct dl2_cache *cache, struct dl2_cache_stats *stats);

#endif
