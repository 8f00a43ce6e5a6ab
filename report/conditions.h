/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Trainings under other conditions than the study's own, for example within a time. They lie in
 * FOLDER/GOAL/CONDITION/train as the study's own do in FOLDER/train. Each condition is collected as
 * a study of its own, so that trainings are compared within it alone.
 */
#ifndef DL2_REPORT_CONDITIONS_H
#define DL2_REPORT_CONDITIONS_H

#include "report/analysis.h"
#include "report/collect.h"

struct dl2_condition {
    const char *goal;       /* "time" */
    char *name;             /* "10m" */
    struct dl2_study study; /* without sizes, quality and loading: those are the study's own */
    /* [study.arch_count], of goals whose variants are compared with the original under the same
     * condition; NULL of the others, and before dl2_conditions_analyse(). */
    struct dl2_analysis *analyses;
};

struct dl2_conditions {
    struct dl2_condition *items; /* by goal; its conditions in the order of `ls -v` */
    size_t count;
};

/*
 * Collects what lies below `folder` of the variants in `variants` (ends with NULL; NULL: all). A
 * condition without results is none. What went wrong is added to `study`, too. Fails only where
 * memory runs out. Free with dl2_conditions_free(), on failure too.
 */
int dl2_conditions_collect(const char *folder, char *const *variants, struct dl2_study *study,
                           struct dl2_conditions *conditions, struct dl2_error *error);
/* Compares the trainings within each condition, with a tolerance in points. */
int dl2_conditions_analyse(struct dl2_conditions *conditions, double tolerance,
                           struct dl2_error *error);
/* Seconds of the condition "90s", "30m" or "2h" of goal "time"; NAN for anything else. */
double dl2_time_of_condition(const char *name);
void dl2_conditions_free(struct dl2_conditions *conditions);

#endif
