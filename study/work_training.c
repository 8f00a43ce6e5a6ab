/* SPDX-License-Identifier: BSD-2-Clause */
#include "common/accuracy_kind.h"
#include "common/json.h"
#include "common/option.h"
#include "study/progress.h"
#include "study/work.h"

#include <math.h>
#include <string.h>
#include <unistd.h>

/* What was interrupted is resumed, unless options or images have changed since. */
static bool can_resume(const struct dl2_step *step, const char *report)
{
    json_auto_t *json = NULL;
    bool can = dl2_json_load(report, NULL, &json, NULL) == DL2_OK &&
               json_is_false(json_object_get(json, "completed"));
    for (size_t i = 0; i < step->inputs.count; i++)
        can = can && dl2_work_time(step->inputs.at[i]) <= dl2_work_time(report);
    return can;
}

/* The bytes that a training of the study trained on. */
static double bytes_of(const char *report)
{
    json_auto_t *json = dl2_work_load(report, NULL);
    return dl2_json_get_real(json, "train_bytes", 0);
}

/* As many of the original's images as have the variant's bytes. */
static const char *subset(const struct dl2_step *step)
{
    if (!step->subset_of)
        return "";
    double raw = 0;
    for (size_t i = 0; i < step->inputs.count; i++)
        if (strstr(step->inputs.at[i], "/train/raw/"))
            raw = bytes_of(step->inputs.at[i]);
    const double own = bytes_of(step->subset_of);
    return dl2_text("%.6g%%", own < raw ? 100 * own / raw : 100);
}

static const char *accuracy_of(const char *report)
{
    json_auto_t *json = NULL;
    if (dl2_json_load(report, NULL, &json, NULL) < 0)
        return "";
    const json_t *final = json_array_get(json_object_get(json, "final"), 0);
    const double accuracy = dl2_accuracy_of(final);
    return isfinite(accuracy)
               ? dl2_text("%s %.1f%%", dl2_accuracy_kind_of(final)->name, 100 * accuracy)
               : "not validated";
}

/* Runs the command once; what it prints goes to `log`. NULL, or why it failed. */
static const char *attempt(const struct dl2_step *step, const char *report, int log)
{
    const char *began = dl2_text("%s.began", step->log);
    const struct dl2_words command = dl2_work_command(
        step->commands.at[0], "{start}", can_resume(step, report) ? "--resume" : "--restart",
        "{subset}", subset(step), NULL);
    close(dl2_work_open(began));
    const char *why = dl2_work_attempt(step, command, log);
    if (!why &&
        (dl2_work_time(report) < dl2_work_time(began) || !dl2_work_is_true(report, "completed")))
        why = dl2_text("%s does not say that it is complete", report);
    unlink(began);
    return why;
}

int dl2_work_training(const char *out, const struct dl2_step *step)
{
    const char *report = step->outputs.at[0];
    (void)out;
    dl2_work_make_folder_of(report);
    const int log = dl2_work_open(step->log);
    const char *why = attempt(step, report, log);
    for (unsigned i = 0; i < step->retries && why; i++) {
        dl2_work_say("Training %s again: %s", step->label, why);
        why = attempt(step, report, log);
    }
    close(log);
    if (!why) {
        dl2_work_say("Trained %s: %s", step->label, accuracy_of(report));
        return DL2_EXIT_OK;
    }
    dl2_progress_line_clear();
    dl2_work_show(step->log, STDERR_FILENO);
    fprintf(stderr, "Training %s failed: %s\nIts output is above, and in %s\n", step->label, why,
            step->log);
    return DL2_EXIT_FAILED;
}
