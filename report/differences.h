/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What trainings on a variant gain or lose against those on the original, image by image: the
 * tables that report/inference.h is about. A training is paired with that of the original from the
 * same seed.
 */
#ifndef DL2_REPORT_DIFFERENCES_H
#define DL2_REPORT_DIFFERENCES_H

#include "report/inference.h"
#include "report/study.h"

/* What is compared of an image. */
enum dl2_measure {
    DL2_MEASURE_OUTCOME,     /* its part in the accuracy; of each variant's own images */
    DL2_MEASURE_ON_ORIGINAL, /* the same, of the original's images in both trainings */
    DL2_MEASURE_LOSS,        /* cross-entropy, nats */
};

struct dl2_run_pair {
    const struct dl2_study_run *own, *original;
};

/* The pairs of a variant and a network, by seed. `pairs` has room for study->run_count. Returns how
 * many there are; none of the original with itself. */
size_t dl2_pairs_find(const struct dl2_study *study, const char *arch, size_t variant,
                      struct dl2_run_pair *pairs);

/* How alike images of a group are taken to be at least: what a variant does to them may be more
 * alike than how easy they are. */
#define DL2_LEAST_ALIKE 0.3

struct dl2_differences {
    double *cells;   /* [seeds][images]: own less original */
    size_t seeds;    /* pairs */
    size_t images;   /* that all of these trainings could read; 0: one has no predictions */
    uint32_t *image; /* [images]: rows of the network's prediction table, growing */
    uint32_t *of;    /* [images]: groups of images that are not independent; NULL: all are */
    size_t of_count; /* groups, none of them empty */
    double step;     /* by which one image may change */
    double alike;    /* struct dl2_groups: by which images are right in all of these trainings */
};

/* The differences of pairs on the images `reference`. Free them with dl2_differences_free(). */
struct dl2_differences dl2_differences_make(const struct dl2_run_pair *pairs, size_t count,
                                            enum dl2_measure measure,
                                            const struct dl2_prediction_table *reference);

/* The part of `all` that has the columns `chosen`, [count] and growing. Free it, too. */
struct dl2_differences dl2_differences_choose(const struct dl2_differences *all,
                                              const uint32_t *chosen, size_t count);

/* Mean squares of a table with images. */
struct dl2_mean_squares dl2_differences_squares(const struct dl2_differences *table);
void dl2_differences_free(struct dl2_differences *table);

#endif
