/* SPDX-License-Identifier: BSD-2-Clause */
#include "study/goals.h"

static const struct dl2_goal goal_throughput = {
    .name = "throughput",
    .summary = "how fast each variant loads and trains, measured with the machine to itself, in "
               "rounds of all variants (OUT/throughput)",
    .section = "throughput",
    .folders = "throughput",
    .plan = dl2_plan_throughput,
};
