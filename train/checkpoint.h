/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Checkpoints: a run's weights, batch norm's statistics, moments, averages and position, and the
 * settings that must stay the same. Random numbers have no state: the seed and the position select
 * each of them.
 *
 * Threads: only the device's.
 */
#ifndef DL2_TRAIN_CHECKPOINT_H
#define DL2_TRAIN_CHECKPOINT_H

#include "loader/loader.h"
#include "network/network.h"
#include "network/safetensors.h"
#include "ranks/world.h"
#include "train/trainer.h"

#include <jansson.h>
#include <stdint.h>

/* A member of an identity that checkpoints of older versions lack: hashes of the training images.
 */
#define DL2_IDENTITY_IMAGES "training images"

struct dl2_run_state {
    uint64_t pass;     /* number of the pass: selects the loader's random numbers */
    size_t stage;      /* the stage of the pass */
    double pass_start; /* position where it began, epochs */
    uint64_t batch;    /* batches of it that are done */
    /* For each rank {next, missing} of its struct dl2_loader_position; NULL: on all ranks the
     * batches that are done are the first ones of the pass's order. */
    json_t *missing;
    /* With partitions: how many there are, and the numbers, from 0, of those that the pass has
     * visited, in order; the last one's visit may be unfinished. NULL: there are no partitions. */
    unsigned partitions;
    json_t *visits;
    bool trained;   /* its training is done; validation comes next */
    bool completed; /* the run has come to its end */
    uint64_t step;  /* batches in all: selects mixup's and dropout's random numbers */
    uint64_t updates;
    /* Updates, less those that a loss scale had skipped, when the optimizer began anew. */
    uint64_t optimizer_begun;
    double elapsed; /* seconds, over all parts of the run */
    /* This pass so far. */
    struct dl2_loss_sums sums;
    json_t *rank_sums; /* what each of several ranks has of them, in the middle of a pass */
    double seconds, data_wait, lr;
    struct dl2_loss_scale loss_scale; /* the device's; a scale of 0: it has none */
    double joules;                    /* NAN where the card does not report them */
    uint64_t images;
    json_t *epochs; /* the report's records of finished passes */
    /* Figures of these passes: the last one's validation (its names are borrowed, from the run or
     * from `epochs`), and the best one, as in struct dl2_train_summary. */
    struct dl2_train_val *val;
    size_t val_count;
    uint64_t best_epoch;
    double best_score;
    bool images_unknown; /* when loaded: its identity has no DL2_IDENTITY_IMAGES */
    /* The images of the first set that the first of these validations had. Others compare only if
     * they had the same. */
    bool validated;
    uint64_t images_sum; /* 0: not known, from an older version */
    json_t *part;        /* dl2_run_part() of the part that saved it; NULL: not known */
};

/* Does a validation on these images (struct dl2_train_val) compare with those before? */
bool dl2_run_state_compares(const struct dl2_run_state *state, uint64_t images_sum);
/* Keeps an epoch as the best one if its top-1 on the first validation set is; below 0: none. */
void dl2_run_state_rank(struct dl2_run_state *state, uint64_t epoch, double top1,
                        uint64_t images_sum);

/*
 * `identity` is an object of the settings that define the run. On loading it must equal the
 * checkpoint's, or DL2_ERR_ARGUMENT names what differs. Loading replaces *state, without freeing
 * what it held.
 */
void dl2_run_state_free(struct dl2_run_state *state);
int dl2_checkpoint_save(const struct dl2_run_state *state, const json_t *identity,
                        struct dl2_network *network, const char *path, struct dl2_error *error);
int dl2_checkpoint_load(const char *path, const json_t *identity, struct dl2_network *network,
                        struct dl2_run_state *state, struct dl2_error *error);

/* The same in memory: a checkpoint's bytes; and one that dl2_safetensors_parse() has read, whose
 * identity tells which network it is of. *out of dl2_checkpoint_identity() is a new reference. */
int dl2_checkpoint_format(const struct dl2_run_state *state, const json_t *identity,
                          struct dl2_network *network, struct dl2_bytes *out,
                          struct dl2_error *error);
int dl2_checkpoint_identity(const struct dl2_safetensors *checkpoint, json_t **out,
                            struct dl2_error *error);
int dl2_checkpoint_restore(const struct dl2_safetensors *checkpoint, const json_t *identity,
                           struct dl2_network *network, struct dl2_run_state *state,
                           struct dl2_error *error);

/* Sends rank 0's state, weights, moments and averages to all ranks. Collective. */
int dl2_checkpoint_share(struct dl2_run_state *state, struct dl2_network *network,
                         const struct dl2_world *world, struct dl2_error *error);

/* Sends rank 0's running means and variances and their averages to all ranks: validation uses them
 * on all ranks, and the checkpoint holds them. Collective. */
int dl2_checkpoint_share_statistics(struct dl2_network *network, const struct dl2_world *world,
                                    struct dl2_error *error);

/* Collects the ranks' parts of state->sums in state->rank_sums. Collective. */
int dl2_checkpoint_set_sums(struct dl2_run_state *state, const struct dl2_loss_sums *own,
                            const struct dl2_world *world, struct dl2_error *error);
/* This rank's part. */
struct dl2_loss_sums dl2_checkpoint_get_sums(const struct dl2_run_state *state,
                                             const struct dl2_world *world);

/* Collects the positions of all ranks' loaders in state->missing. Collective. */
int dl2_checkpoint_set_missing(struct dl2_run_state *state, const struct dl2_loader_position *at,
                               const struct dl2_world *world, struct dl2_error *error);
/* This rank's position. *missing is to free(); NULL: the rank is at the beginning of a batch. */
int dl2_checkpoint_get_missing(const struct dl2_run_state *state, const struct dl2_world *world,
                               struct dl2_loader_position *at, uint32_t **missing,
                               struct dl2_error *error);

/*
 * What a checkpoint or exported weights say of their run: {"identity", "part", "epoch",
 * "completed"}, as dl2_run_identity() and dl2_run_part() made them. Members are absent where the
 * file does not have them, all of them in other programs' files. *out is a new reference.
 */
int dl2_checkpoint_origin(const char *path, json_t **out, struct dl2_error *error);
/* The same for the metadata of exported weights. */
void dl2_checkpoint_note_origin(json_t *texts, const json_t *identity, const json_t *part,
                                double epoch, bool completed);

/* Visits with numbers from 1, as users see them: a new reference. */
json_t *dl2_visits_shown(const json_t *visits);

/* A run's position alone, from the head of its checkpoint, whose checksum is not looked at; free it
 * with dl2_run_state_free(). */
int dl2_checkpoint_peek(const char *path, struct dl2_run_state *state, struct dl2_error *error);

/* Is there a readable checkpoint at `path` of a run that is not completed? */
bool dl2_checkpoint_unfinished(const char *path);

#endif
