/* SPDX-License-Identifier: BSD-2-Clause */
#include "study/goals.h"

#include <string.h>

static const struct dl2_option forecast_variables[] = {
    {DL2_OPTION_TEXT, "tuning", 0, "OPTIONS", "Of forecast: options of dl2-train for its tuning",
     offsetof(struct dl2_goal_values, at[0]), .unset = "--epochs 1"},
    {DL2_OPTION_END}};

/* Two trainings on the original tell how much chance there is: those of DECIDE's first look. */
struct dl2_words dl2_plan_forecast(struct dl2_study_plan *plan)
{
    const struct dl2_study_settings *study = plan->study;
    const struct dl2_study_options *o = &study->options;
    const struct dl2_words seeds = dl2_seeds_in_order(study);
    const char *own = dl2_goal_value(study, "forecast", 0), *tuning = own ? own : "--epochs 1";
    const char *settings =
        dl2_text("%s %s %s %s %s", o->image_size, o->batch, o->device, tuning, o->train_flags);
    struct dl2_words files = {0}, runs = {0}, all = plan->runs;
    for (size_t a = 0; a < study->archs.count; a++)
        for (size_t s = 0; s < seeds.count && s < 2; s++)
            dl2_words_add(&runs, dl2_text("raw/%s/seed-%s", study->archs.at[a], seeds.at[s]));
    plan->runs = runs;
    const struct dl2_words matrix = dl2_plan_matrix(plan);
    plan->runs = all;
    for (size_t n = 0; n < study->train_on.count + 1; n++) {
        const char *name = n ? study->train_on.at[n - 1] : "raw";
        for (size_t r = 0; r < runs.count; r++) {
            const char *folder = dl2_text("%s/train/%s", study->out, runs.at[r]);
            struct dl2_training training =
                dl2_training_of_run(plan, dl2_text("%s%s", name, strchr(runs.at[r], '/')),
                                    "forecast", dl2_text("%s/forecast/tuned", study->out));
            dl2_words_more(&training.lasting, "--pretrained",
                           dl2_text("%s/checkpoint.safetensors", folder), NULL);
            dl2_words_add_command(&training.lasting, tuning);
            dl2_words_add(&training.inputs, dl2_text("%s/experiment_report.json", folder));
            dl2_words_add(&files, dl2_plan_training(plan, &training, settings, NULL));
        }
    }
    dl2_words_add_all(&files, matrix);
    return files;
}

static const struct dl2_goal goal_forecast = {
    .name = "forecast",
    .summary = "trainings on the original are validated on every variant, and tuned on it "
               "(OUT/forecast)",
    .question = "What would training on each variant cost?",
    .section = "forecast",
    .folders = "forecast",
    .variables = forecast_variables,
    .by_dl2_train = "which tunes and validates networks of dl2-train",
    .plan = dl2_plan_forecast,
};
