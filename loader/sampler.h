/* The order in which an epoch visits a dataset's samples. */
#ifndef DL2_LOADER_SAMPLER_H
#define DL2_LOADER_SAMPLER_H

#include "common/error.h"

#include <stdint.h>

struct dl2_sampler {
    uint32_t count;
    uint32_t *order; /* sample number at each position of the epoch */
    bool shuffle;
    uint64_t seed;
};

int dl2_sampler_init(struct dl2_sampler *sampler, uint32_t count, bool shuffle, uint64_t seed,
                     struct dl2_error *error);
/* A permutation that (seed, epoch) alone decide, or 0, 1, 2... */
void dl2_sampler_set_epoch(struct dl2_sampler *sampler, uint64_t epoch);
void dl2_sampler_free(struct dl2_sampler *sampler);

#endif
