/* SPDX-License-Identifier: BSD-2-Clause */
#include "study/goals.h"

static const struct dl2_goal goal_quality = {
    .name = "quality",
    .summary = "PSNR and SSIM of every variant, whole and as the networks see it",
    .section = "distortion",
    .folders = "quality crops",
    .plan = dl2_plan_quality,
};
