/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The cache below has four entries a sample, one for each reduction. A codec that cannot reduce an
 * image decodes it finer than it was asked to; the entries of both reductions then have one block.
 * Where it is known that no request is reduced, all four have it.
 *
 *     block: | struct dl2_decoded_image | first plane | second | third |
 */
#include "loader/decoded.h"

#include "common/memory.h"
#include "common/scope.h"
#include "loader/cache.h"

#include <stdlib.h>
#include <string.h>

enum { REDUCTIONS = 4 };

struct dl2_decoded_cache {
    struct dl2_cache *entries;
};

int dl2_decoded_create(size_t count, uint64_t limit, struct dl2_decoded_cache **out,
                       struct dl2_error *error)
{
    size_t entries;
    *out = NULL;
    DL2_AUTO_FREE struct dl2_decoded_cache *cache = NULL;
    if (!dl2_size_mul(count, REDUCTIONS, &entries))
        return dl2_error_memory(error, "a cache of decoded images");
    DL2_TRY(DL2_NEW(&cache, 1, "a cache of decoded images", error));
    DL2_TRY(dl2_cache_create(entries, limit, &cache->entries, error));
    *out = cache;
    cache = NULL;
    return DL2_OK;
}

void dl2_decoded_destroy(struct dl2_decoded_cache *cache)
{
    if (cache)
        dl2_cache_destroy(cache->entries);
    free(cache);
}

static size_t entry_of(size_t index, uint32_t reduction)
{
    const size_t halvings = reduction >= 8 ? 3 : reduction >= 4 ? 2 : reduction >= 2 ? 1 : 0;
    return index * REDUCTIONS + halvings;
}

static const struct dl2_decoded_image *image_at(const struct dl2_decoded_cache *cache, size_t entry)
{
    const struct dl2_cache_block *block = dl2_cache_find(cache->entries, entry);
    return block ? (const struct dl2_decoded_image *)(const void *)block->data : NULL;
}

const struct dl2_decoded_image *dl2_decoded_find(const struct dl2_decoded_cache *cache,
                                                 size_t index, uint32_t reduction)
{
    return image_at(cache, entry_of(index, reduction));
}

const struct dl2_decoded_image *dl2_decoded_find_any(const struct dl2_decoded_cache *cache,
                                                     size_t index)
{
    const struct dl2_decoded_image *any = NULL;
    for (size_t i = 0; i < REDUCTIONS && !any; i++)
        any = image_at(cache, index * REDUCTIONS + i);
    return any;
}

bool dl2_decoded_claim(struct dl2_decoded_cache *cache, size_t index, uint32_t reduction,
                       uint32_t width, uint32_t height, uint32_t channels)
{
    const uint64_t pixels = ((uint64_t)width + reduction - 1) / reduction *
                            (((uint64_t)height + reduction - 1) / reduction);
    if (pixels > SIZE_MAX / 8)
        return false;
    return dl2_cache_claim(cache->entries, entry_of(index, reduction),
                           dl2_cache_align(sizeof(struct dl2_decoded_image)) +
                               (size_t)pixels * channels);
}

void dl2_decoded_unclaim(struct dl2_decoded_cache *cache, size_t index, uint32_t reduction)
{
    dl2_cache_unclaim(cache->entries, entry_of(index, reduction));
}

/* Bytes of a row of a plane. */
static size_t row_of(const struct dl2_raster *raster, const struct dl2_plane *plane)
{
    return (size_t)plane->width * (raster->color == DL2_COLOR_RGB ? 3 : 1);
}

size_t dl2_decoded_size(const struct dl2_raster *raster)
{
    size_t size = dl2_cache_align(sizeof(struct dl2_decoded_image));
    for (unsigned p = 0; p < dl2_raster_planes(raster); p++)
        size += row_of(raster, &raster->planes[p]) * raster->planes[p].height;
    return size;
}

static void copy_image(const struct dl2_decoded_image *image, uint8_t *data)
{
    struct dl2_decoded_image *copy = (struct dl2_decoded_image *)(void *)data;
    uint8_t *to = data + dl2_cache_align(sizeof *image);
    *copy = *image;
    for (unsigned p = 0; p < dl2_raster_planes(&image->raster); p++) {
        const struct dl2_plane *plane = &image->raster.planes[p];
        const size_t row = row_of(&image->raster, plane);
        copy->raster.planes[p].data = to;
        copy->raster.planes[p].stride = row;
        for (uint32_t y = 0; y < plane->height; y++, to += row)
            memcpy(to, plane->data + y * plane->stride, row);
    }
}

void dl2_decoded_keep(struct dl2_decoded_cache *cache, size_t index, uint32_t reduction,
                      bool reduces, const struct dl2_decoded_image *image)
{
    const struct dl2_raster *raster = &image->raster;
    const size_t claimed = entry_of(index, reduction);
    const size_t entry = entry_of(index, raster->planes[0].step_x);
    const size_t size = dl2_decoded_size(raster);
    struct dl2_cache_block *block =
        entry == claimed ? NULL : (struct dl2_cache_block *)dl2_cache_find(cache->entries, entry);
    if (!block && (entry == claimed || dl2_cache_claim(cache->entries, entry, size)) &&
        (block = dl2_cache_fill(cache->entries, entry, size))) {
        copy_image(image, block->data);
        for (size_t other = reduces ? entry : entry + REDUCTIONS - 1; other > entry; other--)
            dl2_cache_publish(cache->entries, other, block);
        dl2_cache_publish(cache->entries, entry, block);
    }
    if (entry != claimed && block)
        dl2_cache_publish(cache->entries, claimed, block);
    else if (entry != claimed)
        dl2_cache_unclaim(cache->entries, claimed);
}

uint64_t dl2_decoded_bytes(const struct dl2_decoded_cache *cache)
{
    struct dl2_cache_stats stats;
    dl2_cache_get_stats(cache->entries, &stats);
    return stats.bytes;
}
