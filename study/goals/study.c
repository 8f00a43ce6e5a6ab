/* SPDX-License-Identifier: BSD-2-Clause */
#include "study/goals.h"

static void plan_study(struct dl2_study_plan *plan, const struct dl2_goal_values *values)
{
    dl2_goal_find("report")->plan(plan, values);
}

static const struct dl2_goal goal_study = {
    .name = "study",
    .summary = "every stage that does not say otherwise, and the report (the default)",
    .section = "answer",
    .plan = plan_study,
};
