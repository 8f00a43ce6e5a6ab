/* SPDX-License-Identifier: BSD-2-Clause */
#include "study/work.h"

#include "common/clock.h"
#include "common/file.h"
#include "common/machine_log.h"
#include "common/option.h"
#include "study/progress.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* ---- Commands that need no more */

/* `says`, then the commands. Standard output of the last goes to `output`, everything else to
 * `log`, which is shown if one fails. The outputs are removed before. */
static int run_commands(const char *study, const struct dl2_step *step)
{
    (void)study;
    if (step->says)
        dl2_work_say("%s", step->says);
    if (step->clears)
        dl2_remove_tree(step->clears);
    for (size_t i = 0; i < step->outputs.count; i++) {
        unlink(step->outputs.at[i]);
        dl2_work_make_folder_of(step->outputs.at[i]);
    }
    const int log = step->log ? dl2_work_open(step->log) : -1;
    int status = 0;
    for (size_t i = 0; i < step->commands.count && status == 0; i++) {
        const bool is_last = i + 1 == step->commands.count;
        const int out = step->output && is_last ? dl2_work_open(step->output) : log;
        status = dl2_work_run(step->commands.at[i], out, log);
        if (out != log)
            close(out);
        if (status == 1 && step->may_fail_in_part && is_last)
            status = 0;
    }
    if (log >= 0)
        close(log);
    dl2_progress_line_clear();
    if (status && step->log)
        dl2_work_show(step->log, STDERR_FILENO);
    return status ? DL2_EXIT_FAILED : DL2_EXIT_OK;
}

/* An answer that names broken results isn't up to date; it is printed at once, and any other one at
 * the end of its goal, also if there was nothing to do. */
static int report(const char *study, const struct dl2_step *step)
{
    const char *page = step->outputs.at[0];
    (void)study;
    dl2_work_make_folder_of(page);
    const int out = dl2_work_open(step->output);
    const int status = dl2_work_run(step->commands.at[0], out, -1);
    close(out);
    if (!status)
        return DL2_EXIT_OK;
    dl2_work_show(step->output, STDOUT_FILENO);
    const struct timespec old[2] = {{0, 0}, {0, 0}};
    utimensat(AT_FDCWD, page, old, 0);
    return DL2_EXIT_FAILED;
}

/* ---- */

static const struct {
    const char *name;
    int (*run)(const char *out, const struct dl2_step *step);
} works[] = {
    {"run", run_commands},
    {"dataset", dl2_work_dataset},
    {"variants", dl2_work_variants},
    {"measure", dl2_work_measure},
    {"training", dl2_work_training},
    {"trainer", dl2_work_trainer},
    {"report", report},
};

static bool has_made_all(const struct dl2_step *step)
{
    for (size_t i = 0; i < step->outputs.count; i++)
        if (!dl2_is_file(step->outputs.at[i])) {
            fprintf(stderr, "%s could not be made: see above\n", step->outputs.at[i]);
            return false;
        }
    return true;
}

int dl2_work_do(const struct dl2_study_plan *plan, const struct dl2_step *step)
{
    const double began = dl2_clock_wall();
    size_t kind = 0;
    while (kind < sizeof works / sizeof *works && strcmp(works[kind].name, step->work) != 0)
        kind++;
    if (kind == sizeof works / sizeof *works)
        dl2_study_fail(DL2_EXIT_USAGE, "%s: there is no work %s", step->name, step->work);
    struct dl2_error error = DL2_ERROR_INIT;
    if (plan->timeline && dl2_machine_log_begin(dl2_text("%s/timelines", plan->out), "dl2-study",
                                                step->name, &error) < 0)
        dl2_study_fail(DL2_EXIT_FAILED, "TIMELINE: %s", error.message);
    const int status = works[kind].run(plan->out, step);
    if (status != DL2_EXIT_OK || !has_made_all(step))
        return DL2_EXIT_FAILED;
    dl2_progress_note(plan, step->name, dl2_clock_wall() - began);
    return DL2_EXIT_OK;
}
