/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Predictions of videos of which the loader has several clips (config.val_clips): the probabilities
 * of a video are the means of its clips' softmax outputs, as in TSN. The loss is the negative
 * logarithm of the label's mean probability, and top-1 and top-5 rank these means.
 *
 * Threads: one, the device's.
 */
#ifndef DL2_TRAIN_CLIP_MEANS_H
#define DL2_TRAIN_CLIP_MEANS_H

#include "loader/loader.h"
#include "network/network.h"

struct dl2_clip_means;

/* For batches of a loader with this config (uint8, NHWC, with channels) and a network of `batch`
 * clips and `classes`. Free it after an error, too. */
int dl2_clip_means_create(const struct dl2_loader_config *loader, unsigned batch, unsigned classes,
                          struct dl2_clip_means **out, struct dl2_error *error);
void dl2_clip_means_free(struct dl2_clip_means *means);

/*
 * Evaluates all clips of a batch of videos, at most `batch` at a time, and adds the videos that
 * have a label to the sums. *losses [count] (0 without a label) and *logits [count][classes], the
 * logarithms of the mean probabilities, are valid until the next call. Waits for the device, whose
 * own sums stay as they were.
 */
int dl2_clip_means_evaluate(struct dl2_clip_means *means, struct dl2_network *network,
                            const struct dl2_batch *videos, const float **losses,
                            const float **logits, struct dl2_error *error);

/* Of all videos since it was made. */
struct dl2_loss_sums dl2_clip_means_sums(const struct dl2_clip_means *means);

#endif
