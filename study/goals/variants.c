/* SPDX-License-Identifier: BSD-2-Clause */
#include "study/goals.h"

static void plan_variants(struct dl2_study_plan *plan, const struct dl2_goal_values *values)
{
    (void)values;
    const struct dl2_words files = dl2_plan_variants(plan);
    dl2_plan_ask_for(plan, &files);
}

static const struct dl2_goal goal_variants = {
    .name = "variants",
    .summary = "the dataset transcoded with every codec at every quality",
    .section = "variants",
    .folders = "variants",
    .plan = plan_variants,
};
