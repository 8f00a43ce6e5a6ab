/*
 * Where a run is, and its way into a checkpoint and back: weights, batch norm's buffers, moments,
 * averages, position, and the settings that must stay the same. Random numbers have no state of
 * their own: each is named by the seed and the position.
 *
 * Threads: the device's.
 */
#ifndef DL2_TRAIN_CHECKPOINT_H
#define DL2_TRAIN_CHECKPOINT_H

#include "loader/loader.h"
#include "network/network.h"
#include "ranks/world.h"
#include "train/trainer.h"

#include <jansson.h>
#include <stdint.h>

struct dl2_run_state {
    uint64_t pass;     /* number of the pass: names the loader's random numbers */
    size_t stage;      /* that it belongs to */
    double pass_start; /* position where it began, epochs */
    uint64_t batch;    /* batches of it that are done */
    /* Where they were not the first ones in the pass's order: for each rank {next, missing} of its
     * struct dl2_loader_position; NULL: they were, on all. */
    json_t *missing;
    bool trained;   /* its training is done; validation comes next */
    bool completed; /* the run has come to its end */
    uint64_t step;  /* batches in all: names mixup's and dropout's random numbers */
    uint64_t updates;
    double elapsed; /* seconds, over all parts of the run */
    /* Of this pass so far. */
    struct dl2_loss_sums sums;
    double seconds, data_wait, lr;
    struct dl2_loss_scale loss_scale; /* the device's; a scale of 0: it has none */
    double joules;                    /* NAN where the card doesn't tell */
    uint64_t images;
    json_t *epochs; /* the report's records of finished passes */
    /* Figures of these passes: the last one's validation (its names are borrowed, from the run or
     * from `epochs`), and the best one, as in struct dl2_train_summary. */
    struct dl2_train_val *val;
    size_t val_count;
    uint64_t best_epoch;
    double best_top1;
    json_t *part; /* dl2_run_part() of the part that saved it; NULL: not known */
};

/* Keeps an epoch as the best one if its top-1 on the first validation set is; below 0: none. */
void dl2_run_state_rank(struct dl2_run_state *state, uint64_t epoch, double top1);

/*
 * `identity` is an object of what makes the run what it is. On loading it must equal the
 * checkpoint's, or DL2_ERR_ARGUMENT names what differs. Loading replaces *state, without freeing
 * what it held.
 */
void dl2_run_state_free(struct dl2_run_state *state);
int dl2_checkpoint_save(const struct dl2_run_state *state, const json_t *identity,
                        struct dl2_network *network, const char *path, struct dl2_error *error);
int dl2_checkpoint_load(const char *path, const json_t *identity, struct dl2_network *network,
                        struct dl2_run_state *state, struct dl2_error *error);

/* Rank 0's state, weights, moments and averages, to all. Collective. */
int dl2_checkpoint_share(struct dl2_run_state *state, struct dl2_network *network,
                         const struct dl2_world *world, struct dl2_error *error);

/* Only its running means and variances, and their averages, as what validates on all ranks, and
 * what the checkpoint has.
 */
int dl2_checkpoint_share_statistics(struct dl2_network *network, const struct dl2_world *world,
                                    struct dl2_error *error);

/* Where this rank's loader is, with what the others have, into state->missing. Collective. */
int dl2_checkpoint_set_missing(struct dl2_run_state *state, const struct dl2_loader_position *at,
                               const struct dl2_world *world, struct dl2_error *error);
/* This rank's part of it: *missing, to free(), NULL where it has none, which is to say that it is
 * at a batch's beginning. */
int dl2_checkpoint_get_missing(const struct dl2_run_state *state, const struct dl2_world *world,
                               struct dl2_loader_position *at, uint32_t **missing,
                               struct dl2_error *error);

/* Is there a checkpoint at `path` of a run that has not come to its end? An unreadable one counts
 * as none. */
bool dl2_checkpoint_unfinished(const char *path);

#endif
