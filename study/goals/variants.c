/* SPDX-License-Identifier: BSD-2-Clause */
#include "study/goals.h"

static const struct dl2_goal goal_variants = {
    .name = "variants",
    .summary = "the dataset transcoded with every codec at every quality",
    .section = "variants",
    .folders = "variants",
    .plan = dl2_plan_variants,
};
