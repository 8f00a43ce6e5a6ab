/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * How large would a study have to be to show what this one measured? Arithmetic alone: no files, no
 * text.
 *
 * The probability is that a new study, of other seeds and other images, makes a claim. It is taken
 * over what this study doesn't know (assurance: O'Hagan, Stevens & Campbell, "Assurance in clinical
 * trial design", Pharmaceutical Statistics 4, 2005): the variances, for one that was estimated with
 * two degrees of freedom may well be five times as large; and the differences, for what is worth
 * another study was often lucky in this one. A claim needs all claims before it in its codec.
 */
#ifndef DL2_REPORT_POWER_H
#define DL2_REPORT_POWER_H

#include "report/inference.h"

enum { DL2_MAX_BLOCKERS = 32, DL2_MAX_SEEDS_NEEDED = 32, DL2_MAX_TIMES_IMAGES = 32 };

/* One test that has to pass. */
struct dl2_prospect {
    double margin;         /* between the measured difference and the limit */
    double seed_variance;  /* of the difference of one pair of trainings */
    double seed_freedom;   /* of its estimate, above 0 */
    double image_variance; /* of the mean, by the choice of this study's images */
};

struct dl2_prospects {
    struct dl2_prospect tests[DL2_MAX_BLOCKERS];
    size_t count;
    double level;           /* of each one-sided test */
    struct dl2_noise noise; /* of one training, from all variants; freedom 0: none but the pair's */
    size_t units; /* images of this study, or groups of them; 0: their choice doesn't count */
    size_t seeds; /* of this study, which measured the margins; 0: they are true */
};

/* The probability that all tests pass with so many seeds, at least 2, and times the images. */
double dl2_power(const struct dl2_prospects *prospects, size_t seeds, double times_images);

struct dl2_study_size {
    size_t few, many;    /* seeds for a probability of about 75 and 80%; 0: none */
    double times_images; /* of this study's */
};

/*
 * The seeds that it takes with this study's images. Where DL2_MAX_SEEDS_NEEDED are too few, with
 * the number of images for which seeds times images are fewest. `few` is 0 where that is beyond
 * DL2_MAX_TIMES_IMAGES.
 */
struct dl2_study_size dl2_study_size_needed(const struct dl2_prospects *prospects);

#endif
