/* SPDX-License-Identifier: BSD-2-Clause */
#include "study/goals.h"

static const struct dl2_goal goal_matrix = {
    .name = "matrix",
    .summary = "each of these networks validated on every variant and on the original, without "
               "training (train/.../evaluation); not a part of `study`",
    .section = "matrix",
    .by_dl2_train = "which validates networks of dl2-train on every variant",
    .plan = dl2_plan_matrix,
};
