/* SPDX-License-Identifier: BSD-2-Clause */
#include "study/goals.h"

static const struct dl2_option time_variables[] = {
    {DL2_OPTION_PARSE, "budgets", 0, "LIST", "Of study-time: times, for example '10m 30m 2h'",
     offsetof(struct dl2_goal_values, at[0]), .parse = dl2_setting_parse_times, .unset = "none"},
    {DL2_OPTION_END}};

static void check_time(const struct dl2_study_settings *study, bool is_asked)
{
    const char *budgets = dl2_goal_value(study, "study-time", 0);
    if (is_asked && (!budgets || !*budgets))
        dl2_study_fail(DL2_EXIT_USAGE,
                       "study-time needs BUDGETS, for example BUDGETS=\"10m 30m 2h\"");
}

static struct dl2_words plan_study_time(struct dl2_study_plan *plan)
{
    const struct dl2_study_settings *study = plan->study;
    const struct dl2_study_options *o = &study->options;
    const struct dl2_words budgets = dl2_words_split(dl2_goal_value(study, "study-time", 0));
    struct dl2_words files = {0};
    const char *settings =
        dl2_text("%s %s %s %u %s", o->image_size, o->batch, o->device, study->jobs, o->train_flags);
    dl2_plan_variants(plan);
    for (size_t b = 0; b < budgets.count; b++)
        for (size_t r = 0; r < plan->runs.count; r++) {
            struct dl2_training training = dl2_training_of_run(
                plan, plan->runs.at[r], "time", dl2_text("%s/time/%s", study->out, budgets.at[b]));
            dl2_words_more(&training.lasting, "--time-budget", budgets.at[b], NULL);
            training.alone = true;
            dl2_words_add(&files, dl2_plan_training(plan, &training, settings, NULL));
        }
    return files;
}

static const struct dl2_goal goal_study_time = {
    .name = "study-time",
    .summary = "trainings that end after BUDGETS, each with the machine to itself (OUT/time)",
    .question = "What accuracy does a time buy?",
    .hypothesis = "H2b",
    .section = "time",
    .folders = "time",
    .variables = time_variables,
    .check = check_time,
    .by_dl2_train = "whose trainings for a time are dl2-train's",
    .plan = plan_study_time,
};
