/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Slurm as the engine: one job a step. Steps that are alike and wait for the same are an array of
 * jobs, which begins once the arrays that it waits for have succeeded. OUT, the programs and the
 * dataset lie where all nodes see them. A job whose node is lost goes back to the queue.
 */
#include "common/file.h"
#include "common/json.h"
#include "study/child.h"
#include "study/engine.h"
#include "study/progress.h"
#include "study/work.h"

#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

/* Slurm's own limit is 1001 unless its settings say otherwise. */
enum { MAX_ARRAY = 1000 };

/* The name of the array that a step belongs to: the first part of the step's own, and a number
 * behind the first MAX_ARRAY. */
static const char *array_of(const json_t *step, json_t *arrays)
{
    const char *name = dl2_json_get_text(step, "name", "");
    const char *kind = dl2_text("%.*s", (int)strcspn(name, "/"), name), *array = kind;
    for (int part = 2; json_array_size(json_object_get(arrays, array)) >= MAX_ARRAY; part++)
        array = dl2_text("%s-%d", kind, part);
    return array;
}

static void depend_on(json_t *on, const json_t *paths, const json_t *array_by_output,
                      const char *own)
{
    size_t i;
    json_t *path;
    json_array_foreach(paths, i, path)
    {
        const char *array = dl2_json_get_text(array_by_output, json_string_value(path), NULL);
        if (array && strcmp(array, own) != 0)
            json_object_set_new(on, array, json_true());
    }
}

static void write_array(FILE *out, const struct dl2_study_plan *plan, const char *program,
                        const char *array, const json_t *steps, const json_t *on)
{
    const struct dl2_study_settings *study = plan->study;
    const json_t *first = json_array_get(steps, 0);
    const bool alone = json_is_true(json_object_get(first, "alone"));
    const char *dependency = "", *before;
    json_t *unused;
    json_object_foreach((json_t *)on, before, unused)
    {
        dependency = dl2_text("%s:$(job %s)", dependency, before);
    }
    fprintf(out, "\nsubmit %s --array=0-%zu --requeue --kill-on-invalid-dep=yes", array,
            json_array_size(steps) - 1);
    if (*dependency)
        fprintf(out, " \\\n    --dependency=afterok%s", dependency);
    fprintf(out, " \\\n    --nodes=1 --cpus-per-task=%lld%s%s \\\n",
            alone ? (long long)study->jobs : dl2_json_get_integer(first, "threads", 1),
            alone ? " --exclusive" : "",
            strncmp(study->options.device, "cuda", 4) == 0 &&
                    json_is_true(json_object_get(first, "uses_device"))
                ? " --gpus=1"
                : "");
    fprintf(out, "    --output=%s/jobs/%s-%%a.log --wrap=%s\n", dl2_shell_quote(study->out), array,
            dl2_shell_quote(dl2_text("exec %s do %s @%s", dl2_shell_quote(program),
                                     dl2_shell_quote(study->out), array)));
}

static void save_steps(const struct dl2_study_plan *plan, const char *array, const json_t *steps)
{
    struct dl2_words names = {0};
    size_t i;
    json_t *step;
    json_array_foreach(steps, i, step)
    {
        dl2_words_add(&names, dl2_json_get_text(step, "name", ""));
    }
    dl2_text_save(dl2_text("%s/jobs/%s", plan->study->out, array),
                  dl2_text("%s\n", dl2_words_join(names, "\n")));
}

void dl2_slurm_save(const struct dl2_study_plan *plan, const char *program)
{
    json_t *arrays = dl2_keep_json(json_object()), *by_output = dl2_keep_json(json_object());
    json_t *step, *steps;
    char *text = NULL;
    size_t size, i, k;
    FILE *out = dl2_need(open_memstream(&text, &size));
    fprintf(
        out,
        "#!/bin/sh\n"
        "# Submits a study's steps to Slurm, as dl2-study planned them; `make ... ENGINE=slurm`\n"
        "# runs it and waits. What sbatch reads from SBATCH_PARTITION and the like holds, too.\n"
        "#   %s\n"
        "set -eu\n"
        "jobs=%s/jobs/submitted\n"
        ": >\"$jobs\"\n"
        "submit() { # ARRAY OPTION...\n"
        "    array=$1\n"
        "    shift\n"
        "    number=$(sbatch --parsable --job-name=\"dl2-$array\" \"$@\")\n"
        "    echo \"$array ${number%%%%;*}\" >>\"$jobs\"\n"
        "}\n"
        "job() { while read -r array number; do [ \"$array\" != \"$1\" ] || echo \"$number\"; "
        "done <\"$jobs\"; }\n",
        plan->command, dl2_shell_quote(plan->study->out));
    json_array_foreach(plan->steps, i, step)
    {
        if (!json_is_true(json_object_get(step, "needed")))
            continue;
        const char *array = array_of(step, arrays);
        if (!json_object_get(arrays, array))
            json_object_set_new(arrays, array, json_array());
        json_array_append(json_object_get(arrays, array), step);
        json_t *path;
        json_array_foreach(json_object_get(step, "outputs"), k, path)
        {
            json_object_set_new(by_output, json_string_value(path), json_string(array));
        }
    }
    const char *array;
    json_object_foreach(arrays, array, steps)
    {
        json_auto_t *on = json_object();
        json_array_foreach(steps, i, step)
        {
            depend_on(on, json_object_get(step, "inputs"), by_output, array);
            depend_on(on, json_object_get(step, "after"), by_output, array);
        }
        save_steps(plan, array, steps);
        write_array(out, plan, program, array, steps, on);
    }
    const char *path = dl2_text("%s/jobs.sh", plan->study->out);
    dl2_need(fclose(out) == 0 ? text : NULL);
    dl2_text_save(path, text);
    chmod(path, 0777);
    free(text);
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
    const char *text = dl2_text_of_file(dl2_text("%s/jobs/submitted", plan->study->out));
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
    fprintf(stderr, "Jobs %s of %s are canceled\n", numbers, plan->study->out);
    dl2_words_add(&command, "scancel");
    dl2_words_add_all(&command, dl2_words_split(jobs));
    dl2_child_ask(command, &unused, &unused);
}

/* Files of settings have no job. */
static void save_settings(const struct dl2_study_plan *plan)
{
    const char *stage;
    json_t *settings;
    json_object_foreach(plan->changed, stage, settings)
    {
        dl2_text_save(dl2_plan_stage(plan, stage), dl2_text("%s\n", json_string_value(settings)));
    }
}

/* Names the steps that have not ended well, and shows the output of the first. */
static int judge(const struct dl2_study_plan *plan)
{
    const char *out = plan->study->out;
    const char *done = dl2_text_of_file(dl2_text("%s/.make/done", out));
    char **names;
    size_t i, failed = 0;
    json_t *step;
    done = dl2_text("\n%s", done ? done : "");
    json_array_foreach(plan->steps, i, step)
    {
        const char *name = dl2_json_get_text(step, "name", "");
        if (!json_is_true(json_object_get(step, "needed")) ||
            strstr(done, dl2_text("\n%s\t", name)))
            continue;
        fprintf(stderr, "%s was not done\n", name);
        failed++;
    }
    if (!failed)
        return DL2_EXIT_OK;
    const char *folder = dl2_text("%s/jobs", out);
    if (dl2_list_names(folder, &names, NULL) == DL2_OK) {
        for (char **name = names; *name; name++)
            if (strstr(*name, ".log")) {
                const char *path = dl2_text("%s/%s", folder, *name);
                fprintf(stderr, "%s:\n", path);
                dl2_work_show(path, STDERR_FILENO);
            }
        dl2_free_list(names);
    }
    dl2_progress_tell_failed(out, plan->steps);
    return DL2_EXIT_FAILED;
}

int dl2_slurm_run(const struct dl2_study_plan *plan, const char *program)
{
    const char *out = plan->study->out, *shown = "", *jobs = "";
    json_t *saved = dl2_need(
        json_pack("{sOsI}", "steps", plan->steps, "trainers", (json_int_t)plan->study->trainers));
    cancel(plan, submitted(plan)); /* those of a run that was killed */
    dl2_remove_tree(dl2_text("%s/jobs", out));
    save_settings(plan);
    dl2_slurm_save(plan, program);
    struct dl2_words command = {0};
    dl2_words_more(&command, "sh", dl2_text("%s/jobs.sh", out), NULL);
    const struct sigaction action = {.sa_handler = stop};
    sigaction(SIGINT, &action, NULL);
    sigaction(SIGTERM, &action, NULL);
    const int status = dl2_child_run(command, -1, -1);
    const char *numbers = submitted(plan);
    if (status)
        is_stopped = 1;
    while (!is_stopped && (!(jobs = queued(numbers)) || *jobs)) {
        const char *text = dl2_progress_text(out, saved);
        if (!plan->quiet && strcmp(text, shown) != 0) {
            dl2_progress_line_clear();
            fprintf(stderr, isatty(STDERR_FILENO) ? "%s" : "%s\n", text);
            shown = text;
        }
        nanosleep(&(struct timespec){1, 0}, NULL);
    }
    dl2_progress_line_clear();
    json_decref(saved);
    if (is_stopped) {
        cancel(plan, numbers);
        return DL2_EXIT_FAILED;
    }
    return judge(plan);
}
