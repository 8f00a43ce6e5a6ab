/*
 * Encoded bytes, ahead of those who decode them: reads of the samples that come next are issued
 * early (io_uring where the kernel has it, threads otherwise), neighbours in one packed file in one
 * read, and what fits is kept in memory (loader/cache.h).
 *
 * Threads: start on one while no take is under way; take and give on any number at once.
 */
#ifndef DL2_LOADER_FETCH_H
#define DL2_LOADER_FETCH_H

#include "common/error.h"
#include "dataset/dataset.h"

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

enum dl2_io {
    DL2_IO_AUTO, /* uring where present, else threads; workers read themselves while that is fast */
    DL2_IO_DIRECT,  /* each worker reads what it needs when it needs it */
    DL2_IO_THREADS, /* read-ahead by threads */
    DL2_IO_URING,   /* read-ahead by io_uring; DL2_ERR_UNSUPPORTED where the kernel refuses */
};

struct dl2_cache;        /* loader/cache.h */
struct dl2_read_request; /* loader/engine.h */

struct dl2_fetch_config {
    enum dl2_io io;
    unsigned ahead;       /* samples read ahead at most; 0: a default */
    uint64_t ahead_bytes; /* and bytes; 0: a default */
    uint64_t cache_bytes; /* limit of the cache of encoded bytes; 0: none */
    bool drop_behind;     /* evict what was read from the page cache, so that every epoch is cold */
    /* Samples that are in it won't be asked for, so they are not read ahead; NULL: none. */
    const struct dl2_cache *decoded;
    /*
     * Only some slices of sample `index` (dl2_dataset_cuts()) will be asked for: true, and which;
     * false: all of it. On any thread, for whatever is in the order; the same for each that takes
     * it. NULL: samples are always read whole. Not together with a cache of encoded bytes.
     */
    bool (*slices)(const void *context, uint32_t index, struct dl2_slice_range *range);
    const void *context;
    bool whole; /* read samples whole where parts would do, to see what that costs */
};

struct dl2_fetch_stats {
    uint64_t bytes_read; /* from the dataset */
    uint64_t requests;   /* reads that were issued, neighbours in one file together being one */
    uint64_t ahead;      /* samples that were read ahead of the one who took them */
    uint64_t cache_hits, cached, cached_bytes; /* bytes: exactly what it takes of its limit */
    uint64_t memory; /* bytes held: buffers, tables, and of the cache what is filled */
    double wait;     /* wall seconds that takes read or waited for bytes, summed */
};

struct dl2_fetch;

/* The dataset must outlive it. */
int dl2_fetch_create(const struct dl2_dataset *dataset, const struct dl2_fetch_config *config,
                     struct dl2_fetch **out, struct dl2_error *error);
void dl2_fetch_destroy(struct dl2_fetch *fetch);

/* What comes next: samples order[0 .. count-1], which stays the caller's and must stay as it is
 * until the next start or destroy; to change it in place, start with NULL and 0 before. What was
 * left of the last order is dropped. */
void dl2_fetch_start(struct dl2_fetch *fetch, const uint32_t *order, size_t count);

/* The bytes of one sample, while they are held. Zeroed at first; one for each thread, reused. */
struct dl2_fetched {
    const uint8_t *data;
    size_t size;
    struct dl2_bytes scratch;
    struct dl2_read_request *request; /* private: where the bytes were read ahead */
};

/*
 * Sample `index`, wanted as number `position` of the order; blocks until it is there. Positions may
 * be taken in any order, about one after the other; a sample that stands elsewhere in the order, or
 * that was taken already, is read at once (a bad one's place is filled so). A position that is
 * never taken is dropped once later ones need its room. The error names the sample. `slices`: what
 * config.slices() said of the sample; NULL: all of it.
 */
int dl2_fetch_take(struct dl2_fetch *fetch, size_t position, uint32_t index,
                   const struct dl2_slice_range *slices, struct dl2_fetched *fetched,
                   struct dl2_error *error);
/* Gives the bytes back; after an error too. */
void dl2_fetch_give(struct dl2_fetch *fetch, struct dl2_fetched *fetched);

void dl2_fetch_get_stats(struct dl2_fetch *fetch, struct dl2_fetch_stats *stats);

/*
 * Evicts the files of a dataset from the page cache, without root, so that what is measured next is
 * cold. *resident is the part of their pages, 0 to 1, that is still there afterwards, as mincore()
 * has it: pages that somebody else maps or locks stay, and for files that are neither ours nor ours
 * to write the kernel won't tell and all count as there. DL2_ERR_UNSUPPORTED where a dataset lies
 * in memory as a whole (IDX).
 */
int dl2_fetch_evict(const struct dl2_dataset *dataset, double *resident, struct dl2_error *error);

#ifdef __cplusplus
}
#endif

#endif
