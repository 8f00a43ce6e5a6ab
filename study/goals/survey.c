/* SPDX-License-Identifier: BSD-2-Clause */
#include "study/goals.h"

static struct dl2_words plan_survey(struct dl2_study_plan *plan)
{
    const struct dl2_words files = dl2_plan_survey(plan);
    dl2_words_add(&plan->shown, dl2_text("%s/survey.txt", plan->study->out));
    return (struct dl2_words){files.at, 1};
}

static const struct dl2_goal goal_survey = {
    .name = "survey",
    .summary =
        "what is in the dataset: formats, sizes, JPEG qualities, near duplicates, unreadable "
        "files (OUT/survey.txt); not a part of `study`",
    .section = "survey",
    .folders = "survey.json survey.txt survey-groups.tsv",
    .plan = plan_survey,
};
