/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The order stage: in which order an epoch visits the samples of a dataset, and one rank's share of
 * it. It depends on the settings and the epoch's number alone.
 *
 * Ranks take turns within a step. The global batch of a step is the next world * batch samples of
 * the epoch's order, and rank r has the r-th `batch` of them. So for any number of ranks, the
 * batches of a step, concatenated, are the batch that a single rank with batches of world * batch
 * would have. The epoch's last global batch is divided into equal parts:
 *
 *     order   |  rank 0  |  rank 1  |  rank 0  |  rank 1  | 0 | 1 |.
 *             |        step 0       |        step 1       | step 2| left out in training
 *
 * In training each rank has floor(count / world) samples; the few others, which differ each epoch,
 * are left out. In validation nothing is left out: parts of the last step differ by at most one
 * sample and may be empty. Every rank has the same number of steps.
 *
 * With repeats, the copies of a sample are neighbors in the epoch's order, and the ranks take
 * turns by samples within a step's global batch: rank r has every world-th of it from the r-th on.
 *
 * With shares, an epoch has of each of the joined datasets the samples that follow those of the
 * epoch before in an order of the dataset's own, which begins again behind its last sample. So an
 * epoch is known by its number alone, and no sample comes once more often than another of its
 * dataset. All of them together are then shuffled.
 *
 * With partitions, all of this is about the samples of one of them. Of each `partitions` samples
 * that are neighbors in the dataset, every partition has one, drawn at random: so every class of a
 * sorted dataset is in every partition. The partitions of a table of a database stay as they are,
 * if they are as many (dl2_partition_of()).
 */
#ifndef DL2_LOADER_SAMPLER_H
#define DL2_LOADER_SAMPLER_H

#include "common/error.h"
#include "loader/loader_config.h"

#include <stdint.h>

struct dl2_sampler {
    struct dl2_loader_config config; /* with world and shuffle_window at least 1 */
    uint32_t count;                  /* samples in the dataset */
    uint32_t population;             /* of its partition */
    uint32_t *members;               /* [population]: their numbers; NULL: all of the dataset */
    uint32_t taken;                  /* in an epoch of all ranks */
    uint64_t steps;                  /* in an epoch, the same on every rank */
    uint32_t positions;              /* samples of this rank in those steps */
    uint32_t size;   /* samples of this rank, with those that drop_last leaves out */
    uint32_t *order; /* [size]: sample number at each position */
    uint32_t
        *all; /* [taken]: the order of all ranks; the same array as `order` if there is one rank */
    uint32_t *chunks; /* scratch of the quasi-random order */
    /* Epochs that do not have each sample once use these: */
    uint32_t *epoch_positions; /* [size]: where each position is in `all`; else NULL */
    uint32_t *once;            /* [population]: the order of different samples; NULL with weights */
    /* Draws by weight, in constant time: sample i or, if a number from [0, 1) is not below its
     * share, the other (Walker's aliases, by Vose's method). NULL: no weights. */
    struct dl2_alias {
        double share;
        uint32_t other;
    } * aliases;
    /* With shares: the population by datasets, each in the order that epochs walk round it in; and
     * of each dataset where it begins, its samples, and those of them in an epoch. */
    uint32_t *rounds;
    struct dl2_round {
        uint32_t first, size, taken;
    } * by_dataset;
    char *shares_note; /* dl2_loader_shares_note() */
};

/*
 * For a dataset of `count` samples. Uses the settings batch, train (which shuffles), drop_last,
 * seed, rank, world, partition, partitions, shuffle_chunk, shuffle_window, weights, repeats and
 * draws; shares need a dataset. DL2_ERR_ARGUMENT if a rank would have no sample: if there are fewer
 * samples than ranks, or with drop_last fewer than in a full step; for weights that are none; and
 * for shares that are not one for each dataset, or by which an epoch has no sample of one.
 */
int dl2_sampler_init(struct dl2_sampler *sampler, const struct dl2_loader_config *config,
                     uint32_t count, struct dl2_error *error);
/* The same for a dataset, which may have partitions of its own. */
int dl2_sampler_init_for(struct dl2_sampler *sampler, const struct dl2_loader_config *config,
                         const struct dl2_dataset *dataset, struct dl2_error *error);
/* dl2_loader_order.shares */
uint64_t dl2_sampler_shares(const struct dl2_sampler *sampler);
void dl2_sampler_set_epoch(struct dl2_sampler *sampler, uint64_t epoch);
void dl2_sampler_free(struct dl2_sampler *sampler);

/* The number of samples of a partition; 0 where there is no such partition. */
uint32_t dl2_partition_size(uint32_t count, unsigned partition, unsigned partitions);

/*
 * The same for a dataset. The table of a database that has just so many partitions keeps its own:
 * *members are then the samples of this one, else NULL.
 */
uint32_t dl2_partition_of(const struct dl2_dataset *dataset, unsigned partition,
                          unsigned partitions, const uint32_t **members);

#endif
