/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Counter-based random numbers: Philox4x32-10 (Salmon, Moraes, Dror, Shaw: "Parallel random
 * numbers: as easy as 1, 2, 3", SC 2011). A stream is named by a seed and two numbers, never by a
 * thread, so a sample gets the same numbers on any thread.
 */
#ifndef DL2_COMMON_RANDOM_H
#define DL2_COMMON_RANDOM_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* The bare function: ten rounds over `counter` with `key`. */
void dl2_philox(const uint32_t counter[4], const uint32_t key[2], uint32_t out[4]);

/* Plain data: copying it saves the state. */
struct dl2_random {
    uint32_t key[2];
    uint32_t counter[4];
    uint32_t block[4]; /* the block that numbers are being taken from */
    uint32_t used;     /* how many of it are gone */
};

/* The use of a stream, so that two uses of one seed never share numbers. */
enum dl2_random_use {
    DL2_RANDOM_SHUFFLE = 1, /* order of an epoch: a = epoch */
    /* One sample: a = epoch, b = index; if it may come several times in an epoch, b has 1 + its
     * place in the epoch of all ranks above bit 32. */
    DL2_RANDOM_AUGMENT = 2,
    DL2_RANDOM_INIT = 3,    /* initial weights: a = parameter number */
    DL2_RANDOM_DROPOUT = 4, /* a = step, b = layer */
    DL2_RANDOM_MIXUP = 5,   /* a = step */
    DL2_RANDOM_SPLIT = 6,   /* train/val rule */
    DL2_RANDOM_TEST = 7,
    DL2_RANDOM_BOOTSTRAP = 8,
    DL2_RANDOM_SYNTHETIC = 9,
    DL2_RANDOM_SUBSET = 10, /* which training samples are taken */
    DL2_RANDOM_SEARCH = 11, /* a configuration: a = its number, b = the setting; or their order: a =
                               b = UINT64_MAX */
    DL2_RANDOM_PARTITION = 12,   /* of samples: a = number of `partitions` neighbors */
    DL2_RANDOM_HOP = 13,         /* which model next: a = partition, b = visit */
    DL2_RANDOM_TARGET = 14,      /* images of whose scores dl2-transcode makes mean curves */
    DL2_RANDOM_SENSITIVITY = 15, /* labels from predictions: a = batch */
    DL2_RANDOM_TABLES = 16,      /* crops that tables are fitted to: a = image */
    DL2_RANDOM_PACK = 17,        /* order of a packed dataset */
    DL2_RANDOM_PAUSE = 18,       /* before a failed request is sent again */
    DL2_RANDOM_ROUND = 19,       /* the order that epochs walk round a dataset in: b = partition */
};

/*
 * A stream for (seed, use, a, b). Streams with different names are independent: the seed is the
 * key; use, a (below 2^48) and b (below 2^40) share the counter with the position.
 */
void dl2_random_init(struct dl2_random *random, uint64_t seed, enum dl2_random_use use, uint64_t a,
                     uint64_t b);

uint32_t dl2_random_u32(struct dl2_random *random);
double dl2_random_uniform(struct dl2_random *random);               /* [0, 1), 53 bits */
uint32_t dl2_random_below(struct dl2_random *random, uint32_t end); /* [0, end), unbiased */
double dl2_random_normal(struct dl2_random *random);                /* mean 0, variance 1 */

/* Fisher-Yates. */
void dl2_random_shuffle(struct dl2_random *random, uint32_t *items, uint32_t count);
/* order[0 .. count-1] becomes a permutation of 0 .. count-1. */
void dl2_random_permutation(struct dl2_random *random, uint32_t *order, uint32_t count);

#ifdef __cplusplus
}
#endif

#endif
