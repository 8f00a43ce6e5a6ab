/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Training without a dataset: images come one at a time, from a caller that has them, and a model
 * is a checkpoint in memory, which holds its settings, too. PostgreSQL's extension trains with it.
 *
 * A model of dl2_fit_make() has its place in a run of `epochs` epochs of `images` images each.
 * Training goes on from there, batch by batch, in the order in which the images come; an image's
 * crop is drawn from the seed, the epoch and the image's number. So images in the order of an epoch
 * of dl2-train, with their numbers in its dataset, give the weights of dl2-train, bit for bit, on
 * the same device with one thread. A model of a run with partitions (trainer.h) trains on the
 * partition whose visit was begun, to the visit's end.
 *
 * The last images of a call that make no full batch are left out, unless an epoch has fewer images
 * than a batch.
 *
 * Threads: one for each struct dl2_fit; it starts none. Several may exist.
 */
#ifndef DL2_TRAIN_FIT_H
#define DL2_TRAIN_FIT_H

#include "common/error.h"
#include "common/memory.h"

#include <stdint.h>

struct dl2_fit;

struct dl2_fit_limits {
    uint64_t memory;     /* bytes that a model may take with all that its training needs */
    uint64_t max_pixels; /* of an image */
};

enum dl2_fit_kind { DL2_FIT_TRAIN, DL2_FIT_EVALUATE };

struct dl2_fit_figures {
    uint64_t bad;      /* images that could not be decoded */
    uint64_t images;   /* that were evaluated */
    double loss, top1; /* means over these; NAN where there are none */
};

/*
 * Makes a fresh model. `settings` is a JSON object of dl2-train's options on network, images and
 * optimization, by name; "classes" and "images" are needed. DL2_ERR_ARGUMENT for settings that are
 * unknown or wrong, DL2_ERR_LIMIT where it takes too much memory.
 */
int dl2_fit_make(const char *settings, const struct dl2_fit_limits *limits, struct dl2_bytes *out,
                 struct dl2_error *error);

/*
 * Opens a model to train or to evaluate. `options` is a JSON object that may have "device", "cpu"
 * or "ref"; "on-bad", "skip" or "stop"; and for a model of a run with partitions "visit": [BEGIN,
 * END, ALL], the visit's batches in the epoch, which has ALL. The model's bytes are copied.
 * DL2_ERR_FORMAT for bytes that are no model, DL2_ERR_ARGUMENT for a model whose run is over.
 */
int dl2_fit_open(enum dl2_fit_kind kind, const void *model, size_t size, const char *options,
                 const struct dl2_fit_limits *limits, struct dl2_fit **out,
                 struct dl2_error *error);
void dl2_fit_close(struct dl2_fit *fit);

/*
 * Adds an image of class `label`, from 0. `number` selects its random numbers. Returns 1 for an
 * image that cannot be decoded: the next good one takes its place, too; *error says why.
 */
int dl2_fit_add(struct dl2_fit *fit, const void *image, size_t size, int label, uint32_t number,
                struct dl2_error *error);

/* Trains or evaluates what is left. No image comes after it. */
int dl2_fit_end(struct dl2_fit *fit, struct dl2_fit_figures *figures, struct dl2_error *error);
/* The trained model, after dl2_fit_end(). */
int dl2_fit_save(struct dl2_fit *fit, struct dl2_bytes *out, struct dl2_error *error);

/*
 * The order of an epoch of dl2-train, on one rank: the numbers of `count` training images, from 0,
 * to order[0] to order[count - 1]. Options that change what an epoch has (--balanced, --repeats,
 * --num-samples, --shuffle-chunk) are left out.
 */
int dl2_fit_order(uint32_t count, uint64_t seed, uint64_t epoch, uint32_t *order,
                  struct dl2_error *error);

#endif
