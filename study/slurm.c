/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Slurm as the engine: one job a step. Steps that are alike and wait for the same are an array of
 * jobs, which begins once the arrays that it waits for have succeeded. OUT, the programs and the
 * dataset lie where all nodes see them. A job whose node is lost goes back to the queue.
 */
#include "common/file.h"
#include "study/child.h"
#include "study/engine.h"
#include "study/progress.h"
#include "study/work.h"

#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

/* Slurm's own limit is 1001 unless its settings say otherwise. */
enum { MAX_ARRAY = 1000 };

/* An array of jobs: steps whose names begin alike. */
struct array {
    const char *name;       /* what their names begin with; of a further one with a number */
    const char *job;        /* its number, once it is submitted */
    struct dl2_words steps; /* their names */
    const struct dl2_step *first;
    bool *needs; /* which of the arrays before it */
};

struct arrays {
    struct array *at;
    size_t count;
    size_t *of_step; /* the position of a step's array */
};

/* The array that a step joins, from position `first` on; it may be a new one. */
static size_t find_array(struct arrays *arrays, const struct dl2_step *step, size_t first)
{
    const size_t length = strcspn(step->name, "/");
    size_t parts = 1;
    for (size_t i = 0; i < arrays->count; i++) {
        const struct dl2_step *other = arrays->at[i].first;
        if (strcspn(other->name, "/") != length || strncmp(other->name, step->name, length) != 0)
            continue;
        if (i >= first && other->uses_device == step->uses_device &&
            arrays->at[i].steps.count < MAX_ARRAY)
            return i;
        parts++;
    }
    const char *kind = dl2_text("%.*s", (int)length, step->name);
    arrays->at = dl2_keep_more(arrays->at, arrays->count, sizeof *arrays->at);
    arrays->at[arrays->count] = (struct array){
        .name = parts > 1 ? dl2_text("%s-%zu", kind, parts) : kind,
        .first = step,
        .needs = dl2_keep(arrays->count + 1, sizeof(bool), "the jobs"),
    };
    return arrays->count++;
}

/* A step comes behind all arrays that have something it needs. */
static struct arrays divide(const struct dl2_study_plan *plan)
{
    struct arrays arrays = {.of_step = dl2_keep(plan->count + 1, sizeof(size_t), "the steps")};
    for (size_t i = 0; i < plan->count; i++) {
        const struct dl2_step *step = plan->steps[i];
        if (!step->needed)
            continue;
        size_t first = 0;
        for (size_t n = 0; n < step->need_count; n++)
            if (arrays.of_step[step->needs[n]] >= first)
                first = arrays.of_step[step->needs[n]] + 1;
        arrays.of_step[i] = find_array(&arrays, step, first);
        struct array *array = &arrays.at[arrays.of_step[i]];
        dl2_words_add(&array->steps, step->name);
        for (size_t n = 0; n < step->need_count; n++)
            array->needs[arrays.of_step[step->needs[n]]] = true;
    }
    return arrays;
}

/* "OUT/jobs/train-%a.log": a percent sign of OUT is written twice. */
static const char *log_of(const char *out, const char *array)
{
    const char *path = "";
    for (; *out; out++)
        path = dl2_text(*out == '%' ? "%s%%%c" : "%s%c", path, *out);
    return dl2_text("%s/jobs/%s-%%a.log", path, array);
}

/* What sbatch reads from SBATCH_PARTITION and the like holds, too. */
static struct dl2_words submission(const struct dl2_study_plan *plan, const char *program,
                                   const struct arrays *arrays, const struct array *array)
{
    const struct dl2_study_settings *study = plan->study;
    const struct dl2_step *first = array->first;
    struct dl2_words command = {0}, job = {0};
    const char *dependency = "afterok";
    for (size_t i = 0; array != &arrays->at[i]; i++)
        if (array->needs[i])
            dependency = dl2_text("%s:%s", dependency, arrays->at[i].job);
    dl2_words_more(&job, "exec", program, "do", plan->out, dl2_text("@%s", array->name), NULL);
    dl2_words_more(&command, "sbatch", "--parsable", dl2_text("--job-name=dl2-%s", array->name),
                   dl2_text("--array=0-%zu", array->steps.count - 1), "--requeue",
                   "--kill-on-invalid-dep=yes", "--nodes=1",
                   dl2_text("--cpus-per-task=%u", first->alone ? study->jobs : first->threads),
                   dl2_text("--output=%s", log_of(plan->out, array->name)),
                   dl2_text("--wrap=%s", dl2_shell_command(job)), NULL);
    if (strchr(dependency, ':'))
        dl2_words_add(&command, dl2_text("--dependency=%s", dependency));
    if (first->alone)
        dl2_words_add(&command, "--exclusive");
    if (first->uses_device && strncmp(study->options.device, "cuda", 4) == 0)
        dl2_words_add(&command, dl2_text("--gpus=%u", study->gpus_each));
    return command;
}

/* Submits all, and notes the numbers of jobs in OUT/jobs/submitted. An exit status. */
static int submit(const struct dl2_study_plan *plan, const char *program)
{
    struct arrays arrays = divide(plan);
    const char *numbers = "", *output;
    for (size_t i = 0; i < arrays.count; i++) {
        struct array *array = &arrays.at[i];
        dl2_text_save(dl2_text("%s/jobs/%s", plan->out, array->name),
                      dl2_text("%s\n", dl2_words_join(array->steps, "\n")));
        if (dl2_child_ask(submission(plan, program, &arrays, array), &output, NULL) != 0)
            return DL2_EXIT_FAILED;
        array->job = dl2_text("%.*s", (int)strspn(output, "0123456789"), output);
        numbers = dl2_text("%s%s %s\n", numbers, array->name, array->job);
        dl2_text_save(dl2_text("%s/jobs/submitted", plan->out), numbers);
    }
    return DL2_EXIT_OK;
}

/* ---- A job */

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

int dl2_slurm_do(const char *out, const char *step)
{
    struct dl2_study_plan plan;
    if (*step == '@')
        step = step_of_job(out, step + 1);
    dl2_plan_read(&plan, out);
    size_t i = 0;
    while (i < plan.count && strcmp(plan.steps[i]->name, step) != 0)
        i++;
    if (i == plan.count)
        dl2_study_fail(DL2_EXIT_USAGE, "%s/study-plan.json has no step %s", out, step);
    const int status = dl2_work_do(&plan, plan.steps[i]);
    if (status)
        dl2_progress_note_failed(out, step);
    return status;
}

/* ---- To wait for them */

static volatile sig_atomic_t is_stopped;

static void stop(int signal)
{
    (void)signal;
    is_stopped = 1;
}

/* Numbers of the jobs that were submitted, with commas between them; "": none. */
static const char *submitted(const struct dl2_study_plan *plan)
{
    const char *text = dl2_text_of_file(dl2_text("%s/jobs/submitted", plan->out));
    const struct dl2_words words = dl2_words_split(text ? text : "");
    struct dl2_words numbers = {0};
    for (size_t i = 1; i < words.count; i += 2)
        dl2_words_add(&numbers, words.at[i]);
    return dl2_words_join(numbers, ",");
}

/* Jobs of this study that wait or run, a line each; NULL: Slurm's controller does not answer. */
static const char *queued(const char *numbers)
{
    struct dl2_words command = {0};
    const char *output, *messages;
    if (!*numbers)
        return "";
    dl2_words_more(&command, "squeue", "-h", "-o", "%i", "-j", numbers, NULL);
    if (dl2_child_ask(command, &output, &messages) == 0)
        return output;
    return strstr(messages, "Invalid job id") ? "" : NULL;
}

static void cancel(const struct dl2_study_plan *plan, const char *numbers)
{
    const char *jobs = queued(numbers), *unused;
    struct dl2_words command = {0};
    if (!jobs || !*jobs)
        return;
    fprintf(stderr, "Jobs %s of %s are canceled\n", numbers, plan->out);
    dl2_words_add(&command, "scancel");
    dl2_words_add_all(&command, dl2_words_split(jobs));
    dl2_child_ask(command, &unused, &unused);
}

/* Shows what all jobs have printed if one has failed. */
static int judge(const struct dl2_study_plan *plan)
{
    const char *folder = dl2_text("%s/jobs", plan->out);
    char **names;
    if (dl2_progress_is_done(plan))
        return DL2_EXIT_OK;
    if (dl2_list_names(folder, &names, NULL) == DL2_OK) {
        for (char **name = names; *name; name++)
            if (strstr(*name, ".log")) {
                const char *path = dl2_text("%s/%s", folder, *name);
                fprintf(stderr, "%s:\n", path);
                dl2_work_show(path, STDERR_FILENO);
            }
        dl2_free_list(names);
    }
    dl2_progress_tell_failed(plan);
    return DL2_EXIT_FAILED;
}

int dl2_slurm_run(const struct dl2_study_plan *plan, const char *program)
{
    const char *shown = "", *jobs = "";
    cancel(plan, submitted(plan)); /* those of a run that was killed */
    dl2_remove_tree(dl2_text("%s/jobs", plan->out));
    dl2_plan_save_settings(plan);
    const struct sigaction action = {.sa_handler = stop};
    sigaction(SIGINT, &action, NULL);
    sigaction(SIGTERM, &action, NULL);
    if (signal(SIGHUP, SIG_IGN) != SIG_IGN) /* nohup */
        sigaction(SIGHUP, &action, NULL);
    if (submit(plan, program) != DL2_EXIT_OK)
        is_stopped = 1;
    const char *numbers = submitted(plan);
    while (!is_stopped && (!(jobs = queued(numbers)) || *jobs)) {
        const char *text = dl2_progress_text(plan);
        if (strcmp(text, shown) != 0)
            dl2_progress_say(plan);
        shown = text;
        nanosleep(&(struct timespec){1, 0}, NULL);
    }
    dl2_progress_line_clear();
    if (!is_stopped)
        return judge(plan);
    cancel(plan, numbers);
    return DL2_EXIT_FAILED;
}
