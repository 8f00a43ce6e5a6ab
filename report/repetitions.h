/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What a network's accuracies might have been: repetitions of the study. The validation images are
 * drawn anew (where predictions are there), in their groups, the same for all variants, and each
 * variant's accuracy gets the chance of training, which is Student's t with the noise that all
 * variants together show.
 */
#ifndef DL2_REPORT_REPETITIONS_H
#define DL2_REPORT_REPETITIONS_H

#include "report/analysis.h"

enum { DL2_REPETITIONS = 1000 };

struct dl2_repetitions {
    size_t variants;
    double *accuracy; /* [variants][DL2_REPETITIONS], percent; NAN where a variant was not trained
                     on. NULL: nothing is known of chance */
    bool images;      /* the choice of images is among the chances */
};

/* The analysis is of the network `arch` of the study. Always the same draws. The accuracies are to
 * free(). */
struct dl2_repetitions dl2_repetitions_draw(const struct dl2_study *study,
                                            const struct dl2_analysis *analysis, size_t arch);

#endif
