/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A folder that keeps what was read from a server (docs/loading.md). Each entry is one range of
 * bytes of a unit: a sample, or another part of a file that is read as such. It grows as more of
 * the unit is read. Processes share a folder without locks: an entry is written under a name of its
 * own and then renamed, and its check sum is compared when it is read. The entries that were used
 * least recently make room for others. Only the files of this room include this header.
 *
 * Threads: any number at once; open and close on one.
 */
#ifndef DL2_DISK_CACHE_H
#define DL2_DISK_CACHE_H

#include "common/error.h"
#include "common/memory.h"
#include "remote/access.h"

#include <stdint.h>

struct dl2_disk_cache;

/* Makes the folder if need be; `limit`: bytes of all its entries. */
int dl2_disk_cache_open(const char *folder, uint64_t limit, struct dl2_disk_cache **out,
                        struct dl2_error *error);
void dl2_disk_cache_close(struct dl2_disk_cache *cache);

/* Which unit: `object` is a text that changes with the file's contents (address and ETag), and
 * `start` where the unit begins in the file. */
struct dl2_cache_unit {
    const char *object;
    uint64_t start;
};

/* Reads the entry of a unit, which holds bytes->size bytes of the file from *offset on; false if
 * there is none. A damaged one is removed. */
bool dl2_disk_cache_get(struct dl2_disk_cache *cache, const struct dl2_cache_unit *unit,
                        struct dl2_bytes *bytes, uint64_t *offset);

/* Replaces the entry of a unit. That it cannot be written is counted, and no error: the folder's
 * disk may be full. */
void dl2_disk_cache_put(struct dl2_disk_cache *cache, const struct dl2_cache_unit *unit,
                        uint64_t offset, const uint8_t *data, size_t size);

/* Removes the entry of a unit, whose bytes are not those that were wanted. */
void dl2_disk_cache_remove(struct dl2_disk_cache *cache, const struct dl2_cache_unit *unit);

/* Sets cache_damaged, cache_lost and cache_reason. */
void dl2_disk_cache_get_stats(const struct dl2_disk_cache *cache, struct dl2_remote_stats *stats);

#endif
