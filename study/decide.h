/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * DECIDE: trains from the first two seeds, then from more where the verdict is open, until none is,
 * no seed is left, or BUDGET is spent. With FORECAST, variants that are forecast to be beyond the
 * tolerance have to wait until all others are decided.
 */
#ifndef DL2_STUDY_DECIDE_H
#define DL2_STUDY_DECIDE_H

#include "study/plan.h"

/* Returns an exit status; *runs are the trainings that were made. `run` runs the goal `train`, or
 * the trainings of `forecast`, of these trainings, and returns an exit status. */
int dl2_decide(const struct dl2_study_settings *study,
               int (*run)(const struct dl2_words *runs, bool forecasts), struct dl2_words *runs);
/* The trainings of the first round without a forecast: all variants, from two seeds. */
void dl2_decide_first(const struct dl2_study_settings *study, struct dl2_words *runs);
/* The numbers of seeds after which a study looks: "2,3,4". */
const char *dl2_decide_interim(const struct dl2_study_settings *study);

#endif
