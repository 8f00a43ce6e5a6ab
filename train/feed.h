/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The source of a trainer's batches: the loader, or one fixed batch of noise that comes again and
 * again, which costs nothing and so shows how fast the training itself can be.
 *
 * Threads: one consumer, as for the loader.
 */
#ifndef DL2_TRAIN_FEED_H
#define DL2_TRAIN_FEED_H

#include "loader/loader.h"

struct dl2_feed;

/* From `dataset`, which must outlive it. */
int dl2_feed_create(const struct dl2_dataset *dataset, const struct dl2_loader_config *config,
                    struct dl2_feed **out, struct dl2_error *error);
/* Noise with labels below `classes`, drawn from config->seed, of images or, with `pixels`, of each
 * of their pixels; as many batches as `images` come to. */
int dl2_feed_create_synthetic(uint64_t images, unsigned classes, bool pixels,
                              const struct dl2_loader_config *config, struct dl2_feed **out,
                              struct dl2_error *error);
void dl2_feed_destroy(struct dl2_feed *feed);

/* These do what the loader's functions of the same names do. */
uint64_t dl2_feed_steps(const struct dl2_feed *feed);
int dl2_feed_start_epoch(struct dl2_feed *feed, uint64_t epoch, uint64_t first_step,
                         struct dl2_error *error);
int dl2_feed_get_position(struct dl2_feed *feed, struct dl2_loader_position *position,
                          struct dl2_error *error);
int dl2_feed_resume(struct dl2_feed *feed, const struct dl2_loader_position *position,
                    struct dl2_error *error);
int dl2_feed_next(struct dl2_feed *feed, struct dl2_batch **out, struct dl2_error *error);
void dl2_feed_release(struct dl2_feed *feed, struct dl2_batch *batch);
void dl2_feed_get_stats(const struct dl2_feed *feed, struct dl2_loader_stats *stats);
void dl2_feed_stats_reset(struct dl2_feed *feed);
const char *const *dl2_feed_bad(const struct dl2_feed *feed, size_t *count);
const char *dl2_feed_shares_note(const struct dl2_feed *feed);
/* As dl2_loader_epoch_bad(): samples, and bad ones. */
void dl2_feed_epoch_bad(const struct dl2_feed *feed, double out[2]);

#endif
