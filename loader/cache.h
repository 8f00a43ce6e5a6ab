/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A cache in memory, by sample number, of encoded bytes or of decoded images (loader/decoded.h).
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

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* One sample. It is valid, and never moved or changed, until the cache is destroyed. */
struct dl2_cache_block {
    size_t size; /* bytes of data */
    _Alignas(DL2_ALIGNMENT) uint8_t data[];
};

struct dl2_cache;

/* The next multiple of DL2_ALIGNMENT. */
size_t dl2_cache_align(size_t size);

/*
 * For samples 0 .. count-1 and at most `limit` bytes. DL2_ERR_ARGUMENT if the limit is below the
 * table of samples (8 bytes each).
 */
int dl2_cache_create(size_t count, uint64_t limit, struct dl2_cache **out, struct dl2_error *error);
void dl2_cache_destroy(struct dl2_cache *cache);
/* The limit with which `count` samples of `bytes` in all fit in any case. */
uint64_t dl2_cache_most(uint64_t count, uint64_t bytes);

/* The sample's block; NULL if it is not in the cache. */
const struct dl2_cache_block *dl2_cache_find(const struct dl2_cache *cache, size_t index);

/*
 * Returns a block of `size` bytes for a sample that is not in the cache. The caller fills it and
 * then publishes it; no other thread sees it before. NULL if the sample is in the
 * cache already, if another thread fills its block, or if there is no room.
 */
struct dl2_cache_block *dl2_cache_offer(struct dl2_cache *cache, size_t index, size_t size);
/*
 * The same in two steps, for a size that is known later. True if the sample is the caller's to fill
 * and there is room for `most` bytes now; then call dl2_cache_fill() or dl2_cache_unclaim().
 */
bool dl2_cache_claim(struct dl2_cache *cache, size_t index, size_t most);
/* NULL: there is no room for `size` bytes, and the claim is over. */
struct dl2_cache_block *dl2_cache_fill(struct dl2_cache *cache, size_t index, size_t size);
void dl2_cache_unclaim(struct dl2_cache *cache, size_t index);
/* `block` is the caller's own, or one that is published already, which two samples have then. */
void dl2_cache_publish(struct dl2_cache *cache, size_t index, struct dl2_cache_block *block);

struct dl2_cache_stats {
    uint64_t count; /* samples in the cache */
    uint64_t bytes; /* bytes of the limit that are used, with table and headers */
};
void dl2_cache_get_stats(const struct dl2_cache *cache, struct dl2_cache_stats *stats);

#endif
