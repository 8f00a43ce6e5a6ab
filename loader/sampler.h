/*
 * The order in which an epoch visits a dataset's samples, and one rank's share of it. A function of
 * the settings and the epoch's number alone.
 *
 * Ranks take turns within a step: its global batch is the next world * batch samples of the epoch's
 * order, and rank r has the r-th `batch` of them. So the ranks' batches of a step, one behind the
 * other, are the batch of a single rank with batches of world * batch, whatever the world's size;
 * and the epoch's last global batch is cut into equal parts:
 *
 *     order   |  rank 0  |  rank 1  |  rank 0  |  rank 1  | 0 | 1 |.
 *             |        step 0       |        step 1       | step 2| left out in training
 *
 * In training each rank has floor(count / world) samples; what doesn't go round is left out,
 * another few each epoch. In validation nothing is: parts of the last step differ by one at most,
 * and may be empty. Every rank has the same number of steps.
 */
#ifndef DL2_LOADER_SAMPLER_H
#define DL2_LOADER_SAMPLER_H

#include "common/error.h"
#include "loader/loader.h"

#include <stdint.h>

struct dl2_sampler_config {
    uint32_t count; /* samples of the dataset */
    uint32_t batch; /* of one rank */
    bool shuffle;   /* training; else 0, 1, 2... */
    bool drop_last; /* leave out a last step that is not full */
    uint64_t seed;
    uint32_t rank, world; /* world 0: 1 */
    /* As in struct dl2_loader_config: runs of neighbours, shuffled so many runs at a time. */
    uint32_t chunk, window;
};

struct dl2_sampler {
    struct dl2_sampler_config config;
    uint64_t steps;     /* of every rank */
    uint32_t positions; /* of this rank, in those steps */
    uint32_t size;   /* this rank's share of the epoch, with what drop_last leaves out at its end */
    uint32_t *order; /* [size]: sample number at each position */
    uint32_t *all;   /* [count]: of all ranks; the same as order where there is one */
    uint32_t *chunks; /* scratch of the quasi-random order */
};

/* What a loader of `count` samples wants. */
struct dl2_sampler_config dl2_sampler_config_of(const struct dl2_loader_config *config,
                                                uint32_t count);

/* DL2_ERR_ARGUMENT where a rank would have nothing: fewer samples than ranks, or than a full step
 * with drop_last. */
int dl2_sampler_init(struct dl2_sampler *sampler, const struct dl2_sampler_config *config,
                     struct dl2_error *error);
void dl2_sampler_set_epoch(struct dl2_sampler *sampler, uint64_t epoch);
void dl2_sampler_free(struct dl2_sampler *sampler);

#endif
