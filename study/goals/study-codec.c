/* SPDX-License-Identifier: BSD-2-Clause */
#include "study/goals.h"

static void check_codec(const struct dl2_study_settings *study,
                        const struct dl2_goal_values *values, bool is_asked)
{
    (void)values;
    if (is_asked && !study->external)
        dl2_study_fail(DL2_EXIT_USAGE, "study-codec needs EXTERNAL, for example "
                                       "EXTERNAL='cjxl=cjxl %%i %%o -q %%q; djxl %%i %%o'");
}

static void plan_study_codec(struct dl2_study_plan *plan, const struct dl2_goal_values *values)
{
    (void)values;
    struct dl2_words files = dl2_plan_variants(plan);
    const struct dl2_words scores = dl2_plan_quality(plan), loads = dl2_plan_load(plan);
    const struct dl2_words trainings = dl2_plan_trainings(plan, NULL);
    dl2_words_add_all(&files, &scores);
    dl2_words_add_all(&files, &loads);
    dl2_words_add_all(&files, &trainings);
    dl2_plan_report(plan, &files);
}

static const struct dl2_goal goal_study_codec = {
    .name = "study-codec",
    .summary = "EXTERNAL's variants are scored, loaded and trained on beside those of CODECS",
    .question = "Is another codec better?",
    .hypothesis = "H5",
    .section = "codecs",
    .check = check_codec,
    .plan = plan_study_codec,
};
