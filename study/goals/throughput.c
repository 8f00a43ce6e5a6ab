/* SPDX-License-Identifier: BSD-2-Clause */
#include "study/goals.h"

static void plan_throughput(struct dl2_study_plan *plan, const struct dl2_goal_values *values)
{
    (void)values;
    dl2_words_add(&plan->targets, dl2_plan_throughput(plan));
}

static const struct dl2_goal goal_throughput = {
    .name = "throughput",
    .summary = "how fast each variant loads and trains, measured with the machine to itself, in "
               "rounds of all variants (OUT/throughput)",
    .section = "throughput",
    .folders = "throughput",
    .plan = plan_throughput,
};
