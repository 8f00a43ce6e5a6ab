/* SPDX-License-Identifier: BSD-2-Clause */
#include "study/goals.h"

static void plan_matrix(struct dl2_study_plan *plan, const struct dl2_goal_values *values)
{
    (void)values;
    const struct dl2_words files = dl2_plan_matrix(plan, &plan->runs);
    dl2_plan_ask_for(plan, &files);
}

static const struct dl2_goal goal_matrix = {
    .name = "matrix",
    .summary = "each of these networks validated on every variant and on the original, without "
               "training (train/.../evaluation); not a part of `study`",
    .section = "matrix",
    .plan = plan_matrix,
};
