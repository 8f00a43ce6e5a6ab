/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What accuracy is: top-1 of networks that learn the class of an image or clip, the mean IoU of
 * those that learn the class of each pixel, and the mean Dice of those that learn that of each
 * voxel. Epochs are ranked by it, and studies judge by it. All are fractions in dl2-train's results
 * (docs/formats.md, dl2-experiment/1), and percent in the report.
 */
#ifndef DL2_COMMON_ACCURACY_KIND_H
#define DL2_COMMON_ACCURACY_KIND_H

#include <jansson.h>

struct dl2_accuracy_kind {
    const char *key;   /* of dl2-train's results: "top1" */
    const char *name;  /* "top-1" */
    const char *title; /* "top-1 accuracy" */
    const char *what;  /* the title, and how it is defined */
};

/* Top-1 is also that of a study without trainings. */
extern const struct dl2_accuracy_kind dl2_accuracy_top1, dl2_accuracy_miou, dl2_accuracy_dice;

/* Of the results on one validation set. */
const struct dl2_accuracy_kind *dl2_accuracy_kind_of(const json_t *result);
/* A fraction, NAN where there is none. */
double dl2_accuracy_of(const json_t *result);

#endif
