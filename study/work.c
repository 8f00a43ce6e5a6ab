/* SPDX-License-Identifier: BSD-2-Clause */
#include "study/work.h"

#include "common/clock.h"
#include "common/file.h"
#include "common/json.h"
#include "common/option.h"
#include "study/child.h"
#include "study/progress.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

/* ---- Commands that need no more */

/* `says`, then the commands. Standard output of the last goes to `output`, everything else to
 * `log`, which is shown if one fails. The outputs are removed before, and must be there then. */
static int run_commands(const struct dl2_work *work)
{
    const json_t *commands = json_object_get(work->step, "commands");
    const bool may_fail = json_is_true(json_object_get(work->step, "may_fail_in_part"));
    const char *says = dl2_work_text(work, "says"), *log = dl2_work_text(work, "log");
    const char *output = dl2_work_text(work, "output"), *clears = dl2_work_text(work, "clears");
    const struct dl2_words outputs = dl2_work_list(work, "outputs");
    if (says)
        dl2_work_say("%s", says);
    if (clears)
        dl2_remove_tree(clears);
    for (size_t i = 0; i < outputs.count; i++) {
        unlink(outputs.at[i]);
        dl2_work_make_folder_of(outputs.at[i]);
    }
    const int log_fd = log ? dl2_work_open(log) : -1;
    int status = 0;
    for (size_t i = 0; i < json_array_size(commands) && status == 0; i++) {
        const struct dl2_words command = dl2_words_of_json(json_array_get(commands, i));
        const bool is_last = i + 1 == json_array_size(commands);
        const int out = output && is_last ? dl2_work_open(output) : log_fd;
        status = dl2_work_run(command, out, log_fd);
        if (out != log_fd)
            close(out);
        if (status == 1 && may_fail && is_last)
            status = 0;
    }
    const char *missing = NULL;
    for (size_t i = 0; i < outputs.count && !status && !missing; i++)
        missing = dl2_is_file(outputs.at[i]) ? NULL : outputs.at[i];
    if (log_fd >= 0)
        close(log_fd);
    if (!status && !missing)
        return DL2_EXIT_OK;
    dl2_progress_line_clear();
    if (log)
        dl2_work_show(log, STDERR_FILENO);
    if (missing)
        fprintf(stderr, "%s could not be made: see above\n", missing);
    return DL2_EXIT_FAILED;
}

/* An answer that names broken results isn't up to date; it is printed at once, and any other one at
 * the end of its goal, also if there was nothing to do. */
int dl2_work_report(const struct dl2_work *work)
{
    const struct dl2_words command =
        dl2_words_of_json(json_array_get(json_object_get(work->step, "commands"), 0));
    const char *page = dl2_work_list(work, "outputs").at[0],
               *answer = dl2_work_text(work, "output");
    dl2_work_make_folder_of(page);
    const int out = dl2_work_open(answer);
    const int status = dl2_work_run(command, out, -1);
    close(out);
    if (!status)
        return DL2_EXIT_OK;
    dl2_work_show(answer, STDOUT_FILENO);
    const struct timespec old[2] = {{0, 0}, {0, 0}};
    utimensat(AT_FDCWD, page, old, 0);
    return DL2_EXIT_FAILED;
}

/* ---- Who may run beside whom */

static int lock(const char *path, int how)
{
    const int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0666);
    if (fd < 0)
        dl2_study_fail(DL2_EXIT_FAILED, "%s: can't be written: %s", path, strerror(errno));
    int status;
    while ((status = flock(fd, how)) < 0 && errno == EINTR)
        ;
    if (status == 0)
        return fd;
    close(fd);
    return -1;
}

/*
 * What uses all processors, or measures time, runs alone; TRAINERS trainings share the machine;
 * whatever make's -j says. The locks go with the process.
 */
static void wait_for_turn(const struct dl2_work *work, unsigned trainers)
{
    if (work->is_job)
        return;
    const bool alone = json_is_true(json_object_get(work->step, "alone"));
    lock(dl2_text("%s/.make/machine.lock", work->out), alone ? LOCK_EX : LOCK_SH);
    for (unsigned n = 1; !alone; n = n % trainers + 1) {
        if (lock(dl2_text("%s/.make/trainer-%u.lock", work->out, n), LOCK_EX | LOCK_NB) >= 0)
            return;
        if (n == trainers)
            nanosleep(&(struct timespec){0, 50000000}, NULL);
    }
}

/* ---- */

static const struct {
    const char *name;
    int (*run)(const struct dl2_work *work);
} works[] = {
    {"run", run_commands},         {"dataset", dl2_work_dataset},   {"variants", dl2_work_variants},
    {"measure", dl2_work_measure}, {"training", dl2_work_training}, {"report", dl2_work_report},
};

/* The step of an array of jobs that this job is to do. */
static const char *step_of_job(const char *out, const char *array)
{
    const char *number = getenv("SLURM_ARRAY_TASK_ID");
    const char *list = dl2_text_of_file(dl2_text("%s/jobs/%s", out, array));
    const struct dl2_words names = dl2_words_split(list ? list : "");
    const unsigned long index = number ? strtoul(number, NULL, 10) : 0;
    if (!number || index >= names.count)
        dl2_study_fail(DL2_EXIT_USAGE, "%s/jobs/%s has no job %s", out, array,
                       number ? number : "without Slurm");
    return names.at[index];
}

int dl2_work_do(const char *out, const char *name)
{
    struct dl2_work work = {.out = out, .is_job = *name == '@'};
    if (work.is_job)
        name = step_of_job(out, name + 1);
    json_auto_t *plan = dl2_work_load(dl2_text("%s/study-plan.json", out), "dl2-study-plan/1");
    json_t *step;
    size_t i;
    json_array_foreach(json_object_get(plan, "steps"), i, step)
    {
        if (strcmp(dl2_json_get_text(step, "name", ""), name) == 0)
            work.step = step;
    }
    if (!work.step)
        dl2_study_fail(DL2_EXIT_USAGE, "%s/study-plan.json has no step %s", out, name);
    wait_for_turn(&work, (unsigned)dl2_json_get_integer(plan, "trainers", 1));
    const double began = dl2_clock_wall();
    int status = DL2_EXIT_USAGE;
    for (i = 0; i < sizeof works / sizeof *works; i++)
        if (strcmp(works[i].name, dl2_work_text(&work, "work")) == 0)
            status = works[i].run(&work);
    if (status == DL2_EXIT_OK)
        dl2_progress_note(out, plan, name, dl2_clock_wall() - began);
    else
        dl2_progress_note_failed(out, name);
    return status;
}
