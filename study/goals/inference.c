/* SPDX-License-Identifier: BSD-2-Clause */
#include "study/goals.h"
#include "study/trainer.h"

static void check_inference(const struct dl2_study_settings *study, bool is_asked)
{
    if (is_asked && !(study->trainer && study->trainer->evaluates))
        dl2_study_fail(DL2_EXIT_USAGE,
                       "inference needs EVALUATE_WITH, for example EVALUATE_WITH='python3 eval.py "
                       "--data %%v --out %%o', or WEIGHTS, a network of dl2-train's");
}

/* An evaluation stands where a training would, with one seed. */
static struct dl2_words plan_inference(struct dl2_study_plan *plan)
{
    return dl2_plan_trainings(plan, NULL);
}

static const struct dl2_goal goal_inference = {
    .name = "inference",
    .summary = "a network that exists, by EVALUATE_WITH or WEIGHTS, is evaluated on every variant "
               "and on the original; nothing is trained",
    .question = "How far may images be compressed for a network as it is?",
    .section = "answer",
    .folders = "train",
    .check = check_inference,
    .plan = plan_inference,
};
