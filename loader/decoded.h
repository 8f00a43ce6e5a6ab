/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A cache (loader/cache.h) of decoded images. An image is kept whole, as its decoder gives it: its
 * planes before colors are converted, and at each reduction that a crop was decoded at. So a crop
 * of a cached image has the pixels that decoding the crop alone gives, bit for bit.
 *
 * Loaders of one dataset may share a cache, each with an order and crops of its own. They have the
 * same number of channels and the same max_pixels.
 *
 * Threads: any number at once, without locks; create and destroy on one.
 */
#ifndef DL2_LOADER_DECODED_H
#define DL2_LOADER_DECODED_H

#include "common/error.h"
#include "pixels/raster.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* It is valid, and never moved or changed, until the cache is destroyed. */
struct dl2_decoded_image {
    uint32_t width, height; /* of the upright image at full resolution */
    struct dl2_raster raster;
};

struct dl2_decoded_cache;

/* For samples 0 .. count-1 and at most `limit` bytes. The errors of dl2_cache_create(). */
int dl2_decoded_create(size_t count, uint64_t limit, struct dl2_decoded_cache **out,
                       struct dl2_error *error);
/* NULL is allowed. */
void dl2_decoded_destroy(struct dl2_decoded_cache *cache);

/* The image as a request for `reduction`, 1, 2, 4 or 8, gives it; NULL: it is not in the cache. */
const struct dl2_decoded_image *dl2_decoded_find(const struct dl2_decoded_cache *cache,
                                                 size_t index, uint32_t reduction);
/* The same at any reduction, for its size. */
const struct dl2_decoded_image *dl2_decoded_find_any(const struct dl2_decoded_cache *cache,
                                                     size_t index);

/*
 * True if the image is the caller's to decode, and there is room even if its planes are all at the
 * resolution of the first; then call dl2_decoded_keep() or dl2_decoded_unclaim(). `reduction` is
 * that of the request, 1, 2, 4 or 8. False: it is there, another thread decodes it, or there is no
 * room.
 */
bool dl2_decoded_claim(struct dl2_decoded_cache *cache, size_t index, uint32_t reduction,
                       uint32_t width, uint32_t height, uint32_t channels);
/* Keeps a copy of the whole image that a request for `reduction` gave, if there is room. `reduces`
 * is false if a request for any other would give the same; `reduction` is 1 then. */
void dl2_decoded_keep(struct dl2_decoded_cache *cache, size_t index, uint32_t reduction,
                      bool reduces, const struct dl2_decoded_image *image);
void dl2_decoded_unclaim(struct dl2_decoded_cache *cache, size_t index, uint32_t reduction);

/* Bytes of the limit that such an image takes. */
size_t dl2_decoded_size(const struct dl2_raster *raster);
/* Bytes of the limit that are used. */
uint64_t dl2_decoded_bytes(const struct dl2_decoded_cache *cache);

#endif
