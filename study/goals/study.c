/* SPDX-License-Identifier: BSD-2-Clause */
#include "study/goals.h"

static struct dl2_words plan_study(struct dl2_study_plan *plan)
{
    return dl2_goal_find("report")->plan(plan);
}

static const struct dl2_goal goal_study = {
    .name = "study",
    .summary = "every stage that does not say otherwise, and the report (the default)",
    .section = "answer",
    .plan = plan_study,
};
