/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Which images are worth a look: by each metric that all variants have scores of, the worst, the
 * median and the best by the mean of their scores over the variants.
 */
#ifndef DL2_QUALITY_CROP_CHOICE_H
#define DL2_QUALITY_CROP_CHOICE_H

#include "common/error.h"
#include "dataset/dataset.h"

#include <jansson.h>

enum { DL2_CROP_METRICS = 16 };

/* An image, and why it was chosen. */
struct dl2_crop_pick {
    const char *key; /* of the scores */
    json_t *of;      /* [{metric, kind}]: kind is "worst", "median" or "best" */
};

struct dl2_crop_choice {
    size_t metric_count; /* SSIM first, if it is among them */
    char metrics[DL2_CROP_METRICS][64];
    bool lower_is_better[DL2_CROP_METRICS];
    struct dl2_crop_pick picks[3 * DL2_CROP_METRICS]; /* no image twice; in the metrics' order */
    size_t count;
};

/*
 * `scores` are files of dl2-quality/1, [count] and at least one, each of one variant. Images that
 * have no score in one of them, or are not in the reference, are not chosen by that metric. Keys
 * are borrowed from the scores. Free with dl2_crop_choice_free(), on failure too.
 */
int dl2_crop_choose(json_t *const *scores, size_t count, const struct dl2_dataset *reference,
                    struct dl2_crop_choice *choice, struct dl2_error *error);
void dl2_crop_choice_free(struct dl2_crop_choice *choice);

/* The images' rows in a file of scores, and the row of a key; borrowed, or NULL. */
const json_t *dl2_crop_rows(const json_t *scores);
const json_t *dl2_crop_row(const json_t *scores, const char *key);

/* The dataset's sample of this key; its number, or the dataset's count if there is none. */
size_t dl2_crop_find(const struct dl2_dataset *dataset, const char *key, struct dl2_sample *sample);

#endif
