/* SPDX-License-Identifier: BSD-2-Clause */
#include "study/goals.h"

static void plan_train(struct dl2_study_plan *plan, const struct dl2_goal_values *values)
{
    (void)values;
    /* Groups of images go into DECIDE's decisions, so they are there before the first. */
    if (plan->interim && plan->study->group_is_survey) {
        const struct dl2_words survey = dl2_plan_survey(plan);
        dl2_plan_ask_for(plan, &survey);
    }
    const struct dl2_words files = dl2_plan_trainings(plan, NULL);
    dl2_plan_ask_for(plan, &files);
}

static const struct dl2_goal goal_train = {
    .name = "train",
    .summary = "every network, from every seed, on every variant and on the original",
    .section = "training",
    .folders = "train",
    .plan = plan_train,
};
