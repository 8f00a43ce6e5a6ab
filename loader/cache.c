/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * One mapping of the size of the limit, handed out from front to back:
 *
 *     | block pointers, one a sample | header, data | header, data | ... not touched yet ... |
 *                                                                  ^ used            limit ^
 *
 * Pages that were never written cost nothing, so no slabs are needed. What is left at the end goes
 * to samples that are small enough.
 */
#include "loader/cache.h"

#include "common/scope.h"

#include <inttypes.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/mman.h>

struct dl2_cache {
    uint8_t *memory;
    size_t count, limit;
    _Atomic(struct dl2_cache_block *) *blocks; /* at the start of `memory` */
    atomic_size_t used, published;
};

/* Marks in the table a block that is being filled; nothing is ever read from it. */
static struct dl2_cache_block being_filled;

size_t dl2_cache_align(size_t size)
{
    return (size + DL2_ALIGNMENT - 1) / DL2_ALIGNMENT * DL2_ALIGNMENT;
}

int dl2_cache_create(size_t count, uint64_t limit, struct dl2_cache **out, struct dl2_error *error)
{
    *out = NULL;
    size_t table;
    if (limit > SIZE_MAX / 2)
        limit = SIZE_MAX / 2;
    if (!dl2_size_mul(count, sizeof(struct dl2_cache_block *), &table) || table > limit)
        return dl2_error_set(error, DL2_ERR_ARGUMENT,
                             "a cache of %" PRIu64 " bytes can't even hold the table of its %zu "
                             "samples",
                             limit, count);
    DL2_AUTO_FREE struct dl2_cache *cache = NULL;
    DL2_TRY(DL2_NEW(&cache, 1, "a cache", error));
    cache->count = count;
    cache->limit = (size_t)limit;
    cache->memory = mmap(NULL, cache->limit ? cache->limit : 1, PROT_READ | PROT_WRITE,
                         MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (cache->memory == MAP_FAILED)
        return dl2_error_set(error, DL2_ERR_MEMORY,
                             "no address space for a cache of %" PRIu64 " bytes", limit);
    /* Fresh pages are zero, so all pointers are null. */
    cache->blocks = (_Atomic(struct dl2_cache_block *) *)(void *)cache->memory;
    atomic_init(&cache->used, dl2_cache_align(table));
    *out = cache;
    cache = NULL;
    return DL2_OK;
}

void dl2_cache_destroy(struct dl2_cache *cache)
{
    if (!cache)
        return;
    munmap(cache->memory, cache->limit ? cache->limit : 1);
    free(cache);
}

const struct dl2_cache_block *dl2_cache_find(const struct dl2_cache *cache, size_t index)
{
    if (index >= cache->count)
        return NULL;
    struct dl2_cache_block *block =
        atomic_load_explicit(&cache->blocks[index], memory_order_acquire);
    return block == &being_filled ? NULL : block;
}

static size_t room_of(size_t size)
{
    return dl2_cache_align(sizeof(struct dl2_cache_block) + size);
}

uint64_t dl2_cache_most(uint64_t count, uint64_t bytes)
{
    const uint64_t around = sizeof(void *) + sizeof(struct dl2_cache_block) + DL2_ALIGNMENT;
    return bytes + (count + 1) * around;
}

/* Are `room` bytes left when `used` are? */
static bool has_room(const struct dl2_cache *cache, size_t used, size_t room)
{
    return used <= cache->limit && room <= cache->limit - used;
}

bool dl2_cache_claim(struct dl2_cache *cache, size_t index, size_t most)
{
    const size_t used = atomic_load_explicit(&cache->used, memory_order_relaxed);
    struct dl2_cache_block *none = NULL;
    return index < cache->count && most <= cache->limit && has_room(cache, used, room_of(most)) &&
           atomic_compare_exchange_strong(&cache->blocks[index], &none, &being_filled);
}

void dl2_cache_unclaim(struct dl2_cache *cache, size_t index)
{
    atomic_store(&cache->blocks[index], NULL);
}

struct dl2_cache_block *dl2_cache_fill(struct dl2_cache *cache, size_t index, size_t size)
{
    size_t used = atomic_load_explicit(&cache->used, memory_order_relaxed);
    const size_t room = room_of(size);
    do {
        if (size > cache->limit || !has_room(cache, used, room)) {
            dl2_cache_unclaim(cache, index);
            return NULL;
        }
    } while (!atomic_compare_exchange_weak(&cache->used, &used, used + room));
    struct dl2_cache_block *block = (struct dl2_cache_block *)(void *)(cache->memory + used);
    *block = (struct dl2_cache_block){.size = size};
    return block;
}

struct dl2_cache_block *dl2_cache_offer(struct dl2_cache *cache, size_t index, size_t size)
{
    return dl2_cache_claim(cache, index, size) ? dl2_cache_fill(cache, index, size) : NULL;
}

void dl2_cache_publish(struct dl2_cache *cache, size_t index, struct dl2_cache_block *block)
{
    atomic_fetch_add_explicit(&cache->published, 1, memory_order_relaxed);
    atomic_store_explicit(&cache->blocks[index], block, memory_order_release);
}

void dl2_cache_get_stats(const struct dl2_cache *cache, struct dl2_cache_stats *stats)
{
    stats->count = atomic_load_explicit(&cache->published, memory_order_relaxed);
    stats->bytes = atomic_load_explicit(&cache->used, memory_order_relaxed);
    if (stats->bytes > cache->limit) /* the padding of the table may exceed the limit */
        stats->bytes = cache->limit;
}
