/* SPDX-License-Identifier: BSD-2-Clause */
#include "study/goals.h"

static void plan_quality(struct dl2_study_plan *plan, const struct dl2_goal_values *values)
{
    (void)values;
    const struct dl2_words files = dl2_plan_quality(plan);
    dl2_plan_ask_for(plan, &files);
}

static const struct dl2_goal goal_quality = {
    .name = "quality",
    .summary = "PSNR and SSIM of every variant, whole and as the networks see it",
    .section = "distortion",
    .folders = "quality crops",
    .plan = plan_quality,
};
