/* SPDX-License-Identifier: BSD-2-Clause */
#include "study/goals.h"

static void plan_study_quality(struct dl2_study_plan *plan, const struct dl2_goal_values *values)
{
    (void)values;
    struct dl2_words files = dl2_plan_variants(plan);
    const struct dl2_words scores = dl2_plan_quality(plan);
    const struct dl2_words trainings = dl2_plan_trainings(plan, NULL);
    dl2_words_add_all(&files, &scores);
    dl2_words_add_all(&files, &trainings);
    dl2_plan_report(plan, &files);
}

static const struct dl2_goal goal_study_quality = {
    .name = "study-quality",
    .summary = "the study's own trainings, and how many files of each variant are the source's own",
    .question = "What accuracy does a quality keep?",
    .hypothesis = "H2a",
    .section = "quality",
    .plan = plan_study_quality,
};
