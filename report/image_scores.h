/* SPDX-License-Identifier: BSD-2-Clause */
/* What dl2-quality measured of each image in each variant, read from the variants' files. */
#ifndef DL2_REPORT_IMAGE_SCORES_H
#define DL2_REPORT_IMAGE_SCORES_H

#include "report/metric_trust.h"
#include "report/study.h"

/* One metric over the images of a variant; NAN: not known. */
struct dl2_score_spread {
    size_t images;         /* with a score */
    double mean;           /* of them, or of the file's aggregate if nothing is known of images */
    double low, high;      /* its 95% interval, Student's t over images, each by itself */
    double percentiles[5]; /* 5, 25, 50, 75 and 95 */
};

struct dl2_image_scores {
    struct dl2_metric_names metrics;
    char **keys; /* [count], sorted */
    size_t count;
    double *scores;                   /* [variant][metric][image], NAN where there is none */
    double *bytes;                    /* [variant][image] */
    struct dl2_score_spread *spreads; /* [variant][metric] */
};

/* The images are those of variant `first`, or, if that has no scores, of the first that has. What
 * is pointed to is kept. */
struct dl2_image_scores dl2_image_scores_read(const struct dl2_study *study, size_t first);

/* [count] */
double *dl2_image_scores_at(const struct dl2_image_scores *scores, size_t variant, size_t metric);

#endif
