/* SPDX-License-Identifier: BSD-2-Clause */
#include "study/goals.h"

static void check_codec(const struct dl2_study_settings *study, bool is_asked)
{
    if (is_asked && !study->external && dl2_words_split(study->options.codecs).count < 2)
        dl2_study_fail(DL2_EXIT_USAGE,
                       "study-codec needs EXTERNAL, for example EXTERNAL='cjxl=cjxl %%i %%o -q "
                       "%%q; djxl %%i %%o', or two codecs in CODECS");
}

static struct dl2_words plan_study_codec(struct dl2_study_plan *plan)
{
    struct dl2_words files = dl2_plan_variants(plan);
    dl2_words_add_all(&files, dl2_plan_quality(plan));
    dl2_words_add_all(&files, dl2_plan_load(plan));
    dl2_words_add_all(&files, dl2_plan_trainings(plan, NULL));
    return files;
}

static const struct dl2_goal goal_study_codec = {
    .name = "study-codec",
    .summary = "the variants of EXTERNAL and of each of CODECS are scored, loaded and trained on",
    .question = "Is another codec better?",
    .hypothesis = "H5",
    .section = "codecs",
    .check = check_codec,
    .plan = plan_study_codec,
};
