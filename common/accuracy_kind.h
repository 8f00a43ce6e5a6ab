/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What accuracy is: top-1 of networks that learn the class of an image or clip, the mean IoU of
 * those that learn the class of each pixel, the mean Dice of those that learn that of each voxel,
 * or the metric that somebody else's trainer hands back: mAP, AUC, BLEU, a loss. Epochs are ranked
 * by it, and studies judge by it.
 *
 * In code an accuracy is a number of which more is better, and of which the report shows 100 times:
 * a fraction, which it shows in percent; of a metric in another unit a hundredth of the value; and
 * of one of which less is better, that with the sign turned. So nothing but what reads a value, and
 * what shows one, knows of units and directions.
 */
#ifndef DL2_COMMON_ACCURACY_KIND_H
#define DL2_COMMON_ACCURACY_KIND_H

#include <jansson.h>
#include <stdbool.h>

struct dl2_accuracy_kind {
    const char *key;   /* of dl2-train's results: "top1"; of others "value" */
    const char *name;  /* "top-1", "mAP" */
    const char *title; /* "top-1 accuracy", "mAP" */
    const char *what;  /* the title, and how it is defined */
    /* The unit of differences: "points" of percent, "nats", or "" for a metric without one. */
    const char *unit;
    bool is_foreign; /* of a trainer that is not dl2-train */
    bool is_percent; /* the report shows it in percent */
    bool is_lower_better;
    bool is_as_it_is; /* of networks as they are, which nothing was trained for */
    /* Digits that are shown in addition to those of percent; 0 where values are about as large. */
    int digits;
};

/* Top-1 is also that of a study without trainings. */
extern const struct dl2_accuracy_kind dl2_accuracy_top1, dl2_accuracy_miou, dl2_accuracy_dice;

/* The kind of results on one validation set. A foreign metric's is kept, and has no `digits`. */
const struct dl2_accuracy_kind *dl2_accuracy_kind_of(const json_t *result);
/* NAN where there is none. */
double dl2_accuracy_of(const json_t *result);
/* A value of the result's metric, as its trainer writes it, as an accuracy. */
double dl2_accuracy_of_value(const json_t *result, double value);

/* May a metric, or its unit, be called so? Names are written into pages, plots and formats as they
 * are: none of these or a control character, and at most so many bytes. */
#define DL2_ODD_IN_METRIC_NAMES "<>&\"'\\|%{}^`$;"
#define DL2_MAX_METRIC_NAME     64
bool dl2_accuracy_name_is_plain(const char *name);

/* The largest value that a metric in this unit, as its trainer writes it, may have: 1, 100, or
 * INFINITY where the unit has no range. */
double dl2_accuracy_most(const char *unit);

/* One metric: of the same name, unit and direction. */
bool dl2_accuracy_kinds_equal(const struct dl2_accuracy_kind *a, const struct dl2_accuracy_kind *b);

/* Digits that tell values of this size apart as percent with one digit are told. */
int dl2_accuracy_digits(double value);

/*
 * What the report shows of 100 times an accuracy, or of a mean of them: the trainer's value, in
 * percent if it is a fraction.
 */
double dl2_accuracy_shown(const struct dl2_accuracy_kind *kind, double value);

#endif
