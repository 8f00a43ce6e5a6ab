/* SPDX-License-Identifier: BSD-2-Clause */
#include "study/goals.h"

static void plan_load(struct dl2_study_plan *plan, const struct dl2_goal_values *values)
{
    (void)values;
    const struct dl2_words files = dl2_plan_load(plan);
    dl2_plan_ask_for(plan, &files);
}

static const struct dl2_goal goal_load = {
    .name = "load",
    .summary = "the input pipeline's speed on every variant and on the original",
    .section = "variants",
    .folders = "load",
    .plan = plan_load,
};
