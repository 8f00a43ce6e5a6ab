/* SPDX-License-Identifier: BSD-2-Clause */
#include "study/goals.h"

#include <string.h>

/* The subset has the part of the original's bytes that the variant has, as its training says. */
static struct dl2_words plan_study_bytes(struct dl2_study_plan *plan)
{
    const struct dl2_study_settings *study = plan->study;
    const struct dl2_study_options *o = &study->options;
    struct dl2_words files = {0};
    const char *settings =
        dl2_text("%s %s %s %s %s", o->epochs, o->image_size, o->batch, o->device, o->train_flags);
    dl2_plan_trainings(plan, NULL);
    for (size_t r = 0; r < plan->runs.count; r++) {
        const char *run = plan->runs.at[r];
        struct dl2_training training = dl2_training_of_run(plan, run, "bytes", NULL);
        if (strcmp(training.name, "raw") == 0)
            continue;
        const char *twin = dl2_text("%s/train/%s/experiment_report.json", study->out, run);
        const char *raw = dl2_text("%s/train/raw/%s/seed-%s/experiment_report.json", study->out,
                                   training.arch, training.seed);
        training.root = dl2_text("%s/bytes/%s", study->out, training.name);
        training.name = training.validated = "raw";
        training.on = dl2_training_on(study, "raw");
        dl2_words_more(&training.on, "--subset", "{subset}", NULL);
        dl2_words_more(&training.lasting, "--epochs", o->epochs, NULL);
        training.inputs = (struct dl2_words){0};
        dl2_words_more(&training.inputs, twin, raw, NULL);
        dl2_words_add(&files, dl2_plan_training(plan, &training, settings, twin));
    }
    return files;
}

static const struct dl2_goal goal_study_bytes = {
    .name = "study-bytes",
    .summary = "for each of TRAIN_ON trainings on as many of the original's images as have the "
               "variant's bytes (OUT/bytes)",
    .question = "Strong compression or fewer images?",
    .hypothesis = "H2c",
    .section = "bytes",
    .folders = "bytes",
    .by_dl2_train = "whose trainings on a part of the images are dl2-train's",
    .plan = plan_study_bytes,
};
