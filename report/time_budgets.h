/* SPDX-License-Identifier: BSD-2-Clause */
/* Trainings that ended when a time had passed: what `make study-time` leaves in FOLDER/time. */
#ifndef DL2_REPORT_TIME_BUDGETS_H
#define DL2_REPORT_TIME_BUDGETS_H

#include "report/conditions.h"
#include "report/run_means.h"

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

/* All networks: [*count]. Free with dl2_time_budgets_free(), on failure too. */
int dl2_time_budgets_find(const struct dl2_conditions *conditions, struct dl2_time_budgets **list,
                          size_t *count, struct dl2_error *error);
void dl2_time_budgets_free(struct dl2_time_budgets *list, size_t count);

/* A variant within a time; NULL: the time has none of that name. */
const struct dl2_comparison *dl2_time_budget_find(const struct dl2_time_budget *budget,
                                                  const char *name);
/* Its trainings; without any where the time has none of that name. */
struct dl2_run_means dl2_time_budget_means(const struct dl2_time_budget *budget, const char *name);

#endif
