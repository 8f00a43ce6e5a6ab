/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Model hopping (Cerebro: Nakandala, Zhang, Kumar, "Cerebro: a data system for optimized deep
 * learning model selection", 2020): the training images are divided into as many partitions as
 * there are ranks. Each rank keeps to its partition, and the models go from rank to rank: in an
 * epoch each of them visits every partition once, and trains on its images.
 *
 * A model is at one place at a time, which is its checkpoint. A rank takes the model by a lock,
 * goes on from the checkpoint, trains on its partition, and writes the checkpoint before it lets go
 * of the lock. So checkpoints carry weights, the optimizer's moments, averages and the position in
 * the schedule from rank to rank, and all that a killed rank loses is its visit. There is no
 * scheduler that could fail: each rank chooses the next model by itself, out of those that are free
 * and have not visited its partition in their epoch, the one that is furthest behind. The rank of
 * an epoch's last visit validates the model. In a search a plan says which models train, and how
 * far; a rank that has none of them asks it for another.
 *
 * All ranks need to see the folder of the runs, on a file system with locks (fcntl).
 *
 * Task parallel training is the same without partitions: a visit is a model's whole run on all
 * images, so that nothing moves but the checkpoint of a model whose rank was killed.
 */
#ifndef DL2_TRAIN_HOP_H
#define DL2_TRAIN_HOP_H

#include "train/trainer.h"

/* A line for each visit (docs/formats/train.md, "Visits"). The locks are on it, too. */
#define DL2_VISITS_FILE "visits.jsonl"

enum dl2_hop_order {
    DL2_HOP_RANDOM, /* among those that are equally far */
    /* Model i visits partitions i, i + 1... modulo their number: the same weights in every run. */
    DL2_HOP_FIXED,
};
extern const char *const dl2_hop_order_words[];

/* Who trains, and how far, where that is decided while models train (train/several/search.h). */
struct dl2_hop_plan {
    void *context;
    /*
     * Sets wanted[model] where the model is to train on, to its config.stop_at, which it sets, too.
     * models[].result.diverged is known. `idle`: this rank has none of these to train, and another
     * may be chosen; one rank at a time calls it so. Returns 1 where no model trains any more, 0,
     * or an error.
     */
    int (*look)(void *context, bool idle, bool *wanted, struct dl2_error *error);
};

struct dl2_hop_options {
    bool whole;                      /* task parallel */
    const struct dl2_hop_plan *plan; /* NULL: all models train to their end */
    enum dl2_hop_order order;
    uint64_t seed;                 /* of a random order */
    const char *out;               /* folder of DL2_VISITS_FILE */
    const struct dl2_world *world; /* NULL: one rank, with all images */
    void (*note)(const char *text);
};

/* On rank 0, of all ranks together. */
struct dl2_hop_result {
    uint64_t visits, bytes_moved; /* bytes of checkpoints that went to another rank; both also of
                                     the parts before a --resume */
    double busy;                  /* part of the ranks' time that they were on visits */
    bool stopped;                 /* by *config->stop */
    bool common;                  /* the error, if any, is every rank's */
};

/*
 * Collective. Trains the models, whose configs are as for dl2_train_models(); sets what depends on
 * the rank in them. Rank 0's models have results. Where *config->resume is set, goes on; a model
 * that has diverged stays so.
 */
int dl2_train_hopping(struct dl2_train_model *models, size_t count,
                      const struct dl2_hop_options *options, struct dl2_hop_result *result,
                      struct dl2_error *error);

#endif
