/* SPDX-License-Identifier: BSD-2-Clause */
#include "study/goals.h"

static struct dl2_words plan_study_quality(struct dl2_study_plan *plan)
{
    struct dl2_words files = dl2_plan_variants(plan);
    dl2_words_add_all(&files, dl2_plan_quality(plan));
    dl2_words_add_all(&files, dl2_plan_trainings(plan, NULL));
    return files;
}

static const struct dl2_goal goal_study_quality = {
    .name = "study-quality",
    .summary = "the study's own trainings, and how many files of each variant are the source's own",
    .question = "What accuracy does a quality keep?",
    .hypothesis = "H2a",
    .section = "quality",
    .plan = plan_study_quality,
};
