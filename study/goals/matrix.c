/* SPDX-License-Identifier: BSD-2-Clause */
#include "study/goals.h"

static const struct dl2_goal goal_matrix = {
    .name = "matrix",
    .summary = "each of these networks validated on every variant and on the original, without "
               "training (train/.../evaluation); not a part of `study`",
    .section = "matrix",
    .plan = dl2_plan_matrix,
};
