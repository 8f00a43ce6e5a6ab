/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Keeps volumes of compressed files (.nii.gz), and their labels, decompressed in memory, so that
 * each is decompressed once and not for each patch. It fills up to its limit and then keeps what it
 * has, as loader/cache.h says. A file that cannot be decompressed to its end, or has changed since,
 * is read as without a cache; but its room is used.
 *
 * Threads: any number at once, each with volumes of its own; create and destroy on one.
 */
#ifndef DL2_LOADER_VOLUME_CACHE_H
#define DL2_LOADER_VOLUME_CACHE_H

#include "common/error.h"
#include "volumes/volume.h"

#include <stdbool.h>

struct dl2_volume_cache;

/* For `samples` volumes with labels, and at most `limit` bytes in all. Takes only address space.
 * DL2_ERR_ARGUMENT if the limit is below 16 bytes for each. */
int dl2_volume_cache_create(size_t samples, uint64_t limit, struct dl2_volume_cache **out,
                            struct dl2_error *error);
/* Volumes that were looked up must be closed. */
void dl2_volume_cache_destroy(struct dl2_volume_cache *cache);
/* Bytes that it holds now. */
uint64_t dl2_volume_cache_bytes(const struct dl2_volume_cache *cache);

enum dl2_volume_kept {
    DL2_VOLUME_READ, /* from its file */
    DL2_VOLUME_KEPT, /* from the cache, where it has just been decompressed */
    DL2_VOLUME_FOUND /* from the cache, where it was */
};

/* Makes a volume that was just opened, sample `index` or its labels, read from the cache, where it
 * is decompressed now if there is room. Does nothing without a cache or a volume, or where the
 * volume is not compressed. */
enum dl2_volume_kept dl2_volume_cache_use(struct dl2_volume_cache *cache, size_t index, bool labels,
                                          struct dl2_volume *volume);

#endif
