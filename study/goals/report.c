/* SPDX-License-Identifier: BSD-2-Clause */
#include "study/goals.h"

/* Trainings come last: what is measured or waited for shouldn't stand in their queue. */
static struct dl2_words plan_report(struct dl2_study_plan *plan)
{
    struct dl2_words inputs = dl2_plan_variants(plan), before = dl2_plan_quality(plan);
    dl2_words_add_all(&before, dl2_plan_load(plan));
    dl2_words_add_all(&before, dl2_plan_throughput(plan));
    const struct dl2_words trainings = dl2_plan_trainings(plan, &before);
    dl2_words_add_all(&inputs, before);
    if (!plan->study->volumes)
        dl2_words_add(&inputs, dl2_text("%s/crops/crops.json", plan->study->out));
    dl2_words_add_all(&inputs, trainings);
    dl2_plan_report(plan, inputs);
    return (struct dl2_words){0};
}

static const struct dl2_goal goal_report = {
    .name = "report",
    .summary = "OUT/report/report.html and the plots beside it",
    .section = "answer",
    .folders = "report",
    .plan = plan_report,
};
