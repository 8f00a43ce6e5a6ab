/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What a network says of each image of a validation set: the class, whether it is right, and the
 * loss. The file (docs/formats/train.md, "Predictions") opens with numpy.load().
 *
 * Threads: one, the device's.
 */
#ifndef DL2_TRAIN_PREDICTIONS_H
#define DL2_TRAIN_PREDICTIONS_H

#include "dataset/dataset.h"
#include "loader/loader.h"
#include "network/network.h"
#include "ranks/world.h"

struct dl2_predictions;

/* The file's name in a run's folder, "predictions-0.npy" for the first set, written to `out`. */
#define DL2_PREDICTIONS_NAME 48
const char *dl2_predictions_name(size_t set, char out[DL2_PREDICTIONS_NAME]);

/* Nothing is known of any image yet. `dataset` must outlive it. */
int dl2_predictions_create(const struct dl2_dataset *dataset, unsigned classes, unsigned batch,
                           struct dl2_predictions **out, struct dl2_error *error);
void dl2_predictions_free(struct dl2_predictions *predictions);

/* The rank from 0 of a class among the logits, as the devices count it: equal ones rank by class
 * number; DL2_RANK_NAN if one is NaN. */
unsigned dl2_rank_of(const float *logits, unsigned classes, unsigned target);

/* Adds those of a batch: losses [count], and logits [count][classes]. */
void dl2_predictions_take(struct dl2_predictions *predictions, const struct dl2_batch *batch,
                          const float *losses, const float *logits);
/* Adds those of the batch that the network has just evaluated. Waits for the device. */
int dl2_predictions_add(struct dl2_predictions *predictions, struct dl2_network *network,
                        const struct dl2_batch *batch, struct dl2_error *error);

/* Collects those of all ranks on each. Collective. */
int dl2_predictions_gather(struct dl2_predictions *predictions, const struct dl2_world *world,
                           struct dl2_error *error);

/* Writes the file whole or not at all. An image that could not be read has class -1. */
int dl2_predictions_save(const struct dl2_predictions *predictions, const char *path,
                         struct dl2_error *error);

#endif
