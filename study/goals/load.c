/* SPDX-License-Identifier: BSD-2-Clause */
#include "study/goals.h"

static const struct dl2_goal goal_load = {
    .name = "load",
    .summary = "the input pipeline's speed on every variant and on the original",
    .section = "variants",
    .folders = "load",
    .plan = dl2_plan_load,
};
