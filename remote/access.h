/* SPDX-License-Identifier: BSD-2-Clause */
/* What users of datasets at addresses, http://, https:// and s3://, say and see. */
#ifndef DL2_REMOTE_ACCESS_H
#define DL2_REMOTE_ACCESS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Is this an address http://..., https://... or s3://...? Asks no server. */
bool dl2_is_address(const char *path);
/*
 * Do two such addresses lie in each other, however they are written, one perhaps as s3:// and one
 * as the URL that this leads to? Asks no server, so other names of a host are others. False if one
 * is none.
 */
bool dl2_addresses_share_prefix(const char *a, const char *b);

/* How what lies there is read; zero: the defaults. */
struct dl2_remote_options {
    /* A folder, of this machine's processes together, that keeps what was read. NULL: none. */
    const char *cache_dir;
    uint64_t cache_bytes; /* its size; 0: 10 GiB */
    unsigned requests;    /* under way at once; 0: 64 */
    double time_limit;    /* of one request, seconds; 0: 30 */
};

/* What a remote dataset has asked for since it was opened, in this process. */
struct dl2_remote_stats {
    uint64_t requests; /* with those that were repeated */
    uint64_t retries;
    uint64_t bytes; /* received, whatever became of them */
    /* The cache in a folder: reads that it had all of, other reads, bytes that it had. */
    uint64_t cache_hits, cache_misses, cache_bytes;
    uint64_t cache_damaged; /* entries that were not as they were written, and were read again */
    uint64_t cache_lost;    /* entries that could not be written; errno of the last */
    int cache_reason;
};
/* The name of count `number` of these in reports, and its value; NULL after the last. */
const char *dl2_remote_stats_count(const struct dl2_remote_stats *stats, size_t number,
                                   uint64_t *count);

#ifdef __cplusplus
}
#endif

#endif
