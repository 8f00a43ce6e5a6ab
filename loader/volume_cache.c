/* SPDX-License-Identifier: BSD-2-Clause */
#include "loader/volume_cache.h"

#include "common/scope.h"
#include "loader/cache.h"

#include <stdlib.h>
#include <sys/stat.h>

struct dl2_volume_cache {
    struct dl2_cache *entries; /* of each sample its volume's, then its labels' */
};

/* What a block of the cache holds. */
struct plain {
    bool whole;                         /* it could be decompressed */
    int64_t size, seconds, nanoseconds; /* of the file, and when it was changed last */
    _Alignas(DL2_ALIGNMENT) uint8_t bytes[];
};

int dl2_volume_cache_create(size_t samples, uint64_t limit, struct dl2_volume_cache **out,
                            struct dl2_error *error)
{
    size_t entries;
    *out = NULL;
    DL2_AUTO_FREE struct dl2_volume_cache *cache = NULL;
    if (!dl2_size_mul(samples, 2, &entries))
        return dl2_error_memory(error, "a cache of volumes");
    DL2_TRY(DL2_NEW(&cache, 1, "a cache of volumes", error));
    DL2_TRY(dl2_cache_create(entries, limit, &cache->entries, error));
    *out = cache;
    cache = NULL;
    return DL2_OK;
}

void dl2_volume_cache_destroy(struct dl2_volume_cache *cache)
{
    if (cache)
        dl2_cache_destroy(cache->entries);
    free(cache);
}

uint64_t dl2_volume_cache_bytes(const struct dl2_volume_cache *cache)
{
    struct dl2_cache_stats stats;
    dl2_cache_get_stats(cache->entries, &stats);
    return stats.bytes;
}

static bool is_of_file(const struct plain *plain, const struct stat *file)
{
    return plain->whole && plain->size == file->st_size && plain->seconds == file->st_mtim.tv_sec &&
           plain->nanoseconds == file->st_mtim.tv_nsec;
}

/* Decompresses a volume into a block that it may fill; NULL if there is no room, or another worker
 * does so. */
static const struct plain *fill(struct dl2_cache *entries, size_t entry, const struct stat *file,
                                struct dl2_volume *volume)
{
    const uint64_t bytes = dl2_volume_plain_size(volume);
    if (bytes > SIZE_MAX / 2)
        return NULL;
    struct dl2_cache_block *block =
        dl2_cache_offer(entries, entry, sizeof(struct plain) + (size_t)bytes);
    if (!block)
        return NULL;
    struct plain *plain = (struct plain *)(void *)block->data;
    plain->size = file->st_size;
    plain->seconds = file->st_mtim.tv_sec;
    plain->nanoseconds = file->st_mtim.tv_nsec;
    plain->whole = dl2_volume_decompress(volume, plain->bytes, NULL) == DL2_OK;
    dl2_cache_publish(entries, entry, block);
    return plain;
}

enum dl2_volume_kept dl2_volume_cache_use(struct dl2_volume_cache *cache, size_t index, bool labels,
                                          struct dl2_volume *volume)
{
    struct stat file;
    if (!cache || !volume || !dl2_volume_info(volume)->compressed ||
        fstat(dl2_volume_file(volume), &file) < 0)
        return DL2_VOLUME_READ;
    const size_t entry = 2 * index + labels;
    const struct dl2_cache_block *block = dl2_cache_find(cache->entries, entry);
    const struct plain *plain = block ? (const struct plain *)(const void *)block->data
                                      : fill(cache->entries, entry, &file, volume);
    if (!plain || !is_of_file(plain, &file))
        return DL2_VOLUME_READ;
    dl2_volume_use_plain(volume, plain->bytes);
    return block ? DL2_VOLUME_FOUND : DL2_VOLUME_KEPT;
}
