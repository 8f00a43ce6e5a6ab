/* SPDX-License-Identifier: BSD-2-Clause */
#include "study/goals.h"

static struct dl2_words plan_train(struct dl2_study_plan *plan)
{
    struct dl2_words files = {0};
    /* Groups of images go into DECIDE's decisions, so they are there before the first. */
    if (plan->interim && plan->study->group_is_survey)
        files = dl2_plan_survey(plan);
    dl2_words_add_all(&files, dl2_plan_trainings(plan, NULL));
    return files;
}

static const struct dl2_goal goal_train = {
    .name = "train",
    .summary = "every network, from every seed, on every variant and on the original",
    .section = "training",
    .folders = "train",
    .plan = plan_train,
};
