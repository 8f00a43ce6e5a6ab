/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Trainings under other conditions than the study's own, for example within a time. They lie in
 * FOLDER/GOAL/CONDITION/train as the study's own do in FOLDER/train. Each condition is collected as
 * a study of its own, so that trainings are compared within it alone.
 */
#ifndef DL2_REPORT_CONDITIONS_H
#define DL2_REPORT_CONDITIONS_H

#include "report/analysis.h"

struct dl2_condition {
    const char *goal;       /* "time" */
    char *name;             /* "10m" */
    struct dl2_study study; /* without sizes, quality and loading: those are the study's own */
    /* [study.arch_count], of goals whose variants are compared with the original under the same
     * condition; NULL of the others, and before dl2_conditions_analyze(). */
    struct dl2_analysis *analyses;
};

struct dl2_conditions {
    struct dl2_condition *items; /* by goal; its conditions in the order of `ls -v` */
    size_t count;
};

/*
 * Collects what lies below `folder` of the variants in `variants` (ends with NULL; NULL: all). A
 * condition without results is none. What went wrong is added to `study`, too.
 */
struct dl2_conditions dl2_conditions_collect(const char *folder, char *const *variants,
                                             struct dl2_study *study);
/* Compares the trainings within each condition, with the question's tolerance. */
void dl2_conditions_analyze(const struct dl2_conditions *conditions,
                            const struct dl2_question *question);
/* Seconds of the condition "90s", "30m" or "2h" of goal "time"; NAN for anything else. */
double dl2_time_of_condition(const char *name);

/* -- trainings that ended when a time had passed (make study-time) -- */

/* One network within one time. */
struct dl2_time_budget {
    const struct dl2_condition *condition; /* its name is the time: "90s", "30m" or "2h" */
    double seconds;
    const struct dl2_analysis *analysis;
};

/* One network's. */
struct dl2_time_budgets {
    const char *arch;              /* borrowed */
    struct dl2_time_budget *items; /* the shortest first */
    size_t count;
    const char **names; /* the variants of all of these times, raw first; borrowed */
    size_t name_count;
};

/* All networks: [*count], kept. */
struct dl2_time_budgets *dl2_time_budgets_find(const struct dl2_conditions *conditions,
                                               size_t *count);

/* A variant within a time; NULL: the time has none of that name. */
const struct dl2_comparison *dl2_time_budget_find(const struct dl2_time_budget *budget,
                                                  const char *name);
/* Its trainings; without any where the time has none of that name. */
struct dl2_runs dl2_time_budget_runs(const struct dl2_time_budget *budget, const char *name);

/* -- regimens: trainings in stages, on one variant after the other, of as many epochs -- */

/* Regimens of as many epochs, and the original alone: one network's. */
struct dl2_regimens {
    const struct dl2_condition *condition; /* its name is the number of epochs */
    const struct dl2_analysis *analysis;
};

/* The trainings of a regimen. */
struct dl2_runs dl2_regimen_runs(const struct dl2_regimens *group, size_t v);
/* A regimen as REGIMENS has it, "jpeg-10:20,raw:10:freeze"; fit for a plot's script. Kept. */
const char *dl2_regimen_label(const struct dl2_regimens *group, size_t v);

#endif
