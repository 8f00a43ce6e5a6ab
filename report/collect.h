/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A study's results: every JSON file of docs/formats.md below its folder, put together by variant
 * and by training. What is missing is left out; what is broken is noted, and the rest still counts.
 *
 * A folder may hold results of several studies: with other codecs, seeds or epochs. Only those that
 * were asked for are taken, and of them only those that can be compared: trainings of one network
 * that differ in nothing but data, seed and what can't bear on accuracy, on variants that were made
 * from the same images with the same settings, and loading that was measured as the original's was.
 * All else is named in `left_out`.
 */
#ifndef DL2_REPORT_COLLECT_H
#define DL2_REPORT_COLLECT_H

#include "common/error.h"
#include "report/study.h"

/* The parts of a study. Lists end with NULL; a list that is NULL: all there is. */
struct dl2_study_selection {
    char *const *variants;  /* "raw", "jpeg-50" */
    char *const *trainings; /* "jpeg-50/resnet10/seed-1" */
};

/*
 * Reads what lies below `folder` and is in `selection` (NULL: all). Fails only where there's no
 * such folder or memory runs out; for all else look at `broken`. Free with dl2_study_free(), on
 * failure too.
 */
int dl2_study_collect(const char *folder, const struct dl2_study_selection *selection,
                      struct dl2_study *study, struct dl2_error *error);

#endif
