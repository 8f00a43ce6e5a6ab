/*
 * What was read or decoded once, kept in memory by sample number: encoded bytes, or whole images.
 *
 * A cache fills until its limit and then stays as it is. Samples are visited once an epoch in
 * random order, so evicting one for another gains nothing and costs the hits that least recently
 * used would have thrown away (CoorDL's MinIO: Mohan et al., "Analyzing and mitigating data stalls
 * in DNN training", VLDB 2021, section 4.1). It is anonymous memory of this process: a crash leaves
 * nothing behind.
 *
 * The limit is exact: the table of samples and each block's header count, and address space is all
 * that is taken before blocks are filled.
 *
 * Threads: any number at once, without locks; create and destroy on one.
 */
#ifndef DL2_LOADER_CACHE_H
#define DL2_LOADER_CACHE_H

#include "common/error.h"
#include "common/memory.h"

#include <stddef.h>
#include <stdint.h>

/* One sample. Valid, and never moved or changed, until the cache is destroyed. */
struct dl2_cache_block {
    size_t size;                      /* bytes of data */
    uint32_t width, height, channels; /* of a decoded image, rows without padding; else 0 */
    _Alignas(DL2_ALIGNMENT) uint8_t data[];
};

struct dl2_cache;

/*
 * For samples 0 .. count-1 and at most `limit` bytes. DL2_ERR_ARGUMENT where that is less than the
 * table of samples takes (8 bytes each).
 */
int dl2_cache_create(size_t count, uint64_t limit, struct dl2_cache **out, struct dl2_error *error);
void dl2_cache_destroy(struct dl2_cache *cache);

/* The sample's block, or NULL where there is none (yet). */
const struct dl2_cache_block *dl2_cache_find(const struct dl2_cache *cache, size_t index);

/*
 * Room for a sample that is not in the cache: a block of `size` bytes to be filled by the caller,
 * who then publishes or withdraws it. NULL where it is there already, another thread is at it, or
 * there is no room. Until it is published nobody else sees it.
 */
struct dl2_cache_block *dl2_cache_offer(struct dl2_cache *cache, size_t index, size_t size);
void dl2_cache_publish(struct dl2_cache *cache, size_t index, struct dl2_cache_block *block);
/* Filling it failed. Its room is reused only where nothing was offered since. */
void dl2_cache_withdraw(struct dl2_cache *cache, size_t index, struct dl2_cache_block *block);

struct dl2_cache_stats {
    uint64_t count; /* samples in it */
    uint64_t bytes; /* of its limit that are taken, table and headers included */
};
void dl2_cache_get_stats(const struct dl2_cache *cache, struct dl2_cache_stats *stats);

#endif
