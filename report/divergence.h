/* SPDX-License-Identifier: BSD-2-Clause */
/* Trainings that diverged: which, and what the answer is without them. */
#ifndef DL2_REPORT_DIVERGENCE_H
#define DL2_REPORT_DIVERGENCE_H

#include "report/analysis.h"

/*
 * What readers are told of a network's diverged trainings, in whole sentences: each with its
 * accuracy and that of the other seeds, and how the variants that it bears on change, and what is
 * recommended, with and without all of them. Kept; NULL: none has diverged.
 */
const char *dl2_divergence_text(const struct dl2_study *study, const struct dl2_analysis *analysis);

#endif
