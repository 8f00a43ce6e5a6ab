/* SPDX-License-Identifier: BSD-2-Clause */
#include "study/goals.h"

/* Trainings come last: what is measured or waited for shouldn't stand in their queue. */
static void plan_report(struct dl2_study_plan *plan, const struct dl2_goal_values *values)
{
    (void)values;
    struct dl2_words inputs = dl2_plan_variants(plan), before = {0};
    const struct dl2_words scores = dl2_plan_quality(plan), loads = dl2_plan_load(plan);
    dl2_words_add_all(&before, &scores);
    dl2_words_add_all(&before, &loads);
    dl2_words_add(&before, dl2_plan_throughput(plan));
    const struct dl2_words trainings = dl2_plan_trainings(plan, &before);
    dl2_words_add_all(&inputs, &before);
    dl2_words_add(&inputs, dl2_text("%s/crops/crops.json", plan->study->out));
    dl2_words_add_all(&inputs, &trainings);
    dl2_plan_report(plan, &inputs);
}

static const struct dl2_goal goal_report = {
    .name = "report",
    .summary = "OUT/report/report.html and the plots beside it",
    .section = "answer",
    .folders = "report",
    .plan = plan_report,
};
