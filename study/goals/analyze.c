/* SPDX-License-Identifier: BSD-2-Clause */
#include "study/goals.h"

#include <stdlib.h>

/* The device's rate from noise, of which thirty batches do; the first of four passes does not
 * count. */
static void plan_analysis(struct dl2_study_plan *plan, const char *arch)
{
    const struct dl2_study_settings *study = plan->study;
    const struct dl2_study_options *o = &study->options;
    const char *jobs = dl2_text("%u", study->jobs);
    const char *folder = dl2_text("%s/analysis/%s", study->out, arch);
    const char *file = dl2_text("%s.json", folder), *table = dl2_text("%s.txt", folder);
    const struct dl2_words variants = dl2_plan_variants(plan), scores = dl2_plan_quality(plan);
    dl2_words_add(&plan->targets, file);
    dl2_words_add(&plan->shown, table);
    struct dl2_step *step = dl2_plan_step(plan, dl2_text("analysis/%s", arch), "run", file);
    if (!step)
        return;
    dl2_files_add_all(&step->inputs, variants);
    dl2_files_add_all(&step->inputs, scores);
    dl2_plan_settings(
        plan, step, "analyze",
        dl2_text("%s %s %s %s %s", o->image_size, o->batch, jobs, o->device, o->train_flags));
    struct dl2_words command =
        dl2_study_words(study, "dl2-train", "--restart", "--loader", "synthetic", "--images",
                        dl2_text("%llu", 30 * strtoull(o->batch, NULL, 10)), "--arch", arch,
                        "--epochs", "4", "--batch", o->batch, "--image-size", o->image_size,
                        "--device", o->device, "--threads", jobs, "--out", folder, "--quiet", NULL);
    dl2_words_add_command(&command, o->train_flags);
    dl2_commands_add(&step->commands, command);
    command = dl2_study_words(study, "dl2-load", "analyze", "-j", jobs, "--quiet", NULL);
    dl2_words_add_all(&command, study->decoding);
    dl2_words_more(&command, "--device-report", dl2_text("%s/experiment_report.json", folder),
                   "--quality", dl2_text("%s/quality", study->out), "--json", file, study->data,
                   NULL);
    for (size_t v = 0; v < study->variants.count; v++)
        dl2_words_add(&command, dl2_study_place(study, study->variants.at[v]));
    dl2_commands_add(&step->commands, command);
    step->uses_device = true;
    step->says = dl2_text("Analyzing %s", arch);
    step->output = table;
    step->log = dl2_text("%s/log", folder);
    step->may_fail_in_part = true;
    dl2_plan_close(plan, step, false);
}

static struct dl2_words plan_analyze(struct dl2_study_plan *plan)
{
    for (size_t a = 0; a < plan->study->archs.count; a++)
        plan_analysis(plan, plan->study->archs.at[a]);
    return (struct dl2_words){0};
}

static const struct dl2_goal goal_analyze = {
    .name = "analyze",
    .summary =
        "what training from each variant would wait for, without training: storage, decoding "
        "or the device (OUT/analysis/NETWORK.txt); not a part of `study`",
    .folders = "analysis",
    .by_dl2_train = "which measures the parts of dl2-train",
    .plan = plan_analyze,
};
