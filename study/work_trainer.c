/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A training by a command of the user's. Its results go to `out` in the training's folder; once it
 * has exited with status 0 and has handed back its metric, the report is written beside it, whole.
 *
 * `began` in the training's folder has the number of the attempt. Its time is when the first
 * attempt began: what is older in `out` is not of this training, and where an input is newer the
 * training begins anew.
 */
#include "common/accuracy_kind.h"
#include "common/clock.h"
#include "common/file.h"
#include "common/json.h"
#include "common/machine.h"
#include "study/paths.h"
#include "study/progress.h"
#include "study/result.h"
#include "study/trainer.h"
#include "study/work.h"

#include <dirent.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

struct training {
    const struct dl2_step *step;
    const char *report, *folder, *out, *began;
    const char *why; /* it failed */
};

/* ---- Attempts */

/* How many there were of this very training whose files are there. */
static unsigned earlier_attempts(const struct training *training)
{
    const char *text = dl2_text_of_file(training->began);
    const long long began = dl2_work_time(training->began);
    if (training->step->clears || !text || !dl2_is_folder(training->out))
        return 0;
    for (size_t i = 0; i < training->step->inputs.count; i++)
        if (dl2_work_time(training->step->inputs.at[i]) > began)
            return 0;
    return (unsigned)strtoul(text, NULL, 10);
}

/* Makes the folder, and returns the attempt's number. */
static unsigned begin_attempt(const struct training *training)
{
    const unsigned attempt = earlier_attempts(training) + 1;
    struct stat info;
    struct dl2_error error = DL2_ERROR_INIT;
    const bool goes_on = attempt > 1 && stat(training->began, &info) == 0;
    if (!goes_on)
        dl2_remove_tree(training->out);
    if (dl2_make_folders(training->out, &error) < 0)
        dl2_study_fail(DL2_EXIT_FAILED, "%s", error.message);
    dl2_text_save(training->began, dl2_text("%u\n", attempt));
    if (goes_on)
        utimensat(AT_FDCWD, training->began, (const struct timespec[2]){info.st_mtim, info.st_mtim},
                  0);
    return attempt;
}

/* The files that results depend on are those that the study was planned with. */
static const char *changed_file(const struct dl2_step *step)
{
    const json_t *files = json_object_get(json_object_get(step->trainer, "trainer"), "files");
    const char *path;
    json_t *sum;
    json_object_foreach((json_t *)files, path, sum)
    {
        const char *now = dl2_trainer_sum(path);
        if (!now || strcmp(now, json_string_value(sum)) != 0)
            return path;
    }
    return NULL;
}

/* ---- Copies */

/* Have two reports the same figures, to the last digit? *certain: no chance does that. */
static bool are_alike(const json_t *one, const json_t *other, bool *certain)
{
    const json_t *own = json_array_get(json_object_get(one, "final"), 0);
    const json_t *others = json_array_get(json_object_get(other, "final"), 0);
    const json_t *epochs = json_object_get(one, "epochs");
    const double value = dl2_json_get_real(own, "value", 0);
    double before = value;
    size_t i, different = 0;
    json_t *epoch;
    if (value != dl2_json_get_real(others, "value", value + 1) ||
        json_array_size(epochs) != json_array_size(json_object_get(other, "epochs")))
        return false;
    json_array_foreach(epochs, i, epoch)
    {
        const json_t *twin = json_array_get(json_object_get(other, "epochs"), i);
        const double at =
            dl2_json_get_real(json_array_get(json_object_get(epoch, "val"), 0), "value", 0);
        if (at != dl2_json_get_real(json_array_get(json_object_get(twin, "val"), 0), "value", 0))
            return false;
        different += at != before;
        before = at;
    }
    /* Networks that learnt nothing, or all, may well be alike. */
    *certain = different > 0;
    return *certain || (value != 0 && value != dl2_accuracy_most(dl2_json_get_text(
                                                   json_object_get(own, "metric"), "unit", "")));
}

/* The seed whose figures this training has; two that are alike by one number alone may be so by
 * chance, three are not. */
static const char *twin_of(const struct training *training, const json_t *report)
{
    const char *others = dl2_path_folder(training->folder), *first = NULL;
    size_t alike = 0;
    bool certain = false;
    char **names;
    if (dl2_list_names(others, &names, NULL) < 0)
        return NULL;
    for (char **name = names; *name && !certain; name++) {
        const char *path = dl2_text("%s/%s/experiment_report.json", others, *name);
        json_auto_t *other = NULL;
        if (strcmp(*name, dl2_path_base(training->folder)) == 0 || !dl2_is_file(path) ||
            dl2_json_load(path, NULL, &other, NULL) < 0 ||
            !json_equal(json_object_get(report, "comparable"),
                        json_object_get(other, "comparable")) ||
            !are_alike(report, other, &certain))
            continue;
        alike++;
        first = dl2_text("%s", *name);
    }
    dl2_free_list(names);
    return certain || alike > 1 ? first : NULL;
}

/* ---- The report */

static const char *shown_value(const json_t *report)
{
    const json_t *set = json_array_get(json_object_get(report, "final"), 0);
    const struct dl2_accuracy_kind *kind = dl2_accuracy_kind_of(set);
    const double shown = dl2_accuracy_shown(kind, 100 * dl2_accuracy_of(set));
    return dl2_text("%s %.4g%s%s", kind->name, shown,
                    kind->is_percent ? "%"
                    : *kind->unit    ? " "
                                     : "",
                    kind->is_percent ? "" : kind->unit);
}

/* Reads what the training has handed back, and writes the report. */
static bool finish(struct training *training, double seconds)
{
    json_auto_t *report = dl2_need(json_deep_copy(training->step->trainer));
    const struct dl2_result_source source = {.out = training->out,
                                             .kept = training->folder,
                                             .began_ns = dl2_work_time(training->began),
                                             .seed =
                                                 (uint64_t)dl2_json_get_integer(report, "seed", 0)};
    const char *result =
        dl2_json_get_text(json_object_get(report, "trainer"), "result", DL2_RESULT_FILE);
    struct dl2_error error = DL2_ERROR_INIT;
    if (dl2_result_take(report, result, &source, &error) < 0) {
        training->why = dl2_text("%s", error.message);
        return false;
    }
    const char *twin = twin_of(training, report);
    if (twin) {
        training->why =
            dl2_text("its result, %s, is that of %s to the last digit: most likely the command "
                     "has the seed and the script does not use it",
                     shown_value(report), twin);
        return false;
    }
    dl2_put(report, "machine", dl2_machine_describe());
    dl2_put(report, "seconds", json_real(seconds));
    dl2_put(report, "completed", json_true());
    if (dl2_json_save(training->report, report, &error) < 0)
        dl2_study_fail(DL2_EXIT_FAILED, "%s", error.message);
    unlink(training->began);
    dl2_work_say("%s %s: %s",
                 json_is_true(json_object_get(report, "inference")) ? "Evaluated" : "Trained",
                 training->step->label, shown_value(report));
    return true;
}

/* ---- */

/* Runs the command once; what it prints goes to `log`. */
static bool attempt(struct training *training, int log)
{
    const struct dl2_step *step = training->step;
    const char *file = changed_file(step);
    training->why =
        file ? dl2_text("%s is not what it was when the study was planned: run it again, and leave "
                        "its files alone until it ends",
                        file)
             : dl2_work_attempt(
                   step, dl2_trainer_attempt(step->commands.at[0], begin_attempt(training)), log);
    return !training->why;
}

int dl2_work_trainer(const char *study, const struct dl2_step *step)
{
    const char *report = step->outputs.at[0], *folder = dl2_path_folder(report);
    struct training training = {.step = step,
                                .report = report,
                                .folder = folder,
                                .out = dl2_text("%s/out", folder),
                                .began = dl2_text("%s/began", folder)};
    (void)study;
    unlink(report);
    const int log = dl2_work_open(step->log);
    const double began = dl2_clock_wall();
    bool done = attempt(&training, log);
    for (unsigned i = 0; i < step->retries && !done; i++) {
        dl2_work_say("Training %s again: %s", step->label, training.why);
        done = attempt(&training, log);
    }
    close(log);
    done = done && finish(&training, dl2_clock_wall() - began);
    if (done)
        return DL2_EXIT_OK;
    dl2_progress_line_clear();
    dl2_work_show_end(step->log, STDERR_FILENO);
    fprintf(stderr, "Training %s failed: %s\nThe end of its output is above, all of it in %s\n",
            step->label, training.why, step->log);
    return DL2_EXIT_FAILED;
}
