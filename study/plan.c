/* SPDX-License-Identifier: BSD-2-Clause */
#include "study/plan.h"

#include "common/file.h"
#include "common/json.h"
#include "study/paths.h"

#include <stdarg.h>
#include <string.h>
#include <sys/stat.h>
#include <xxhash.h>

static void put(json_t *object, const char *key, json_t *value)
{
    if (json_object_set_new(object, key, dl2_need(value)) < 0)
        dl2_study_fail(DL2_EXIT_FAILED, "out of memory");
}

static json_t *text_json(const char *text)
{
    json_t *json = json_string(text);
    if (!json)
        dl2_study_fail(DL2_EXIT_USAGE, "\"%s\" is not UTF-8, and a plan's texts are", text);
    return json;
}

void dl2_plan_begin(struct dl2_study_plan *plan, const struct dl2_study_settings *study,
                    struct dl2_words goals)
{
    *plan = (struct dl2_study_plan){.study = study,
                                    .goals = goals,
                                    .steps = dl2_need(json_array()),
                                    .stages = dl2_need(json_object()),
                                    .changed = dl2_need(json_object()),
                                    .coming = dl2_need(json_object())};
    for (size_t n = 0; n < study->train_on.count + 1; n++)
        for (size_t a = 0; a < study->archs.count; a++)
            for (size_t s = 0; s < study->seeds.count; s++)
                dl2_words_add(&plan->runs,
                              dl2_text("%s/%s/seed-%s", n ? study->train_on.at[n - 1] : "raw",
                                       study->archs.at[a], study->seeds.at[s]));
}

void dl2_plan_discard(struct dl2_study_plan *plan)
{
    json_decref(plan->settings);
    json_decref(plan->steps);
    json_decref(plan->stages);
    json_decref(plan->changed);
    json_decref(plan->coming);
}

/* ---- Steps */

json_t *dl2_plan_step(struct dl2_study_plan *plan, const char *name, const char *work,
                      const char *output)
{
    size_t i;
    json_t *step;
    json_array_foreach(plan->steps, i, step)
    {
        if (strcmp(dl2_json_get_text(step, "name", ""), name) == 0)
            return NULL;
    }
    step = dl2_need(json_object());
    put(step, "name", text_json(name));
    put(step, "work", text_json(work));
    put(step, "needed", json_false());
    put(step, "alone", json_true());
    static const char *const lists[] = {"outputs", "inputs", "after", "commands"};
    for (i = 0; i < sizeof lists / sizeof *lists; i++)
        put(step, lists[i], json_array());
    if (output)
        dl2_step_add(step, "outputs", output);
    if (json_array_append_new(plan->steps, step) < 0)
        dl2_need(NULL);
    return step;
}

void dl2_step_add(json_t *step, const char *list, const char *path)
{
    json_t *array = json_object_get(step, list), *have;
    size_t i;
    json_array_foreach(array, i, have)
    {
        if (strcmp(json_string_value(have), path) == 0)
            return;
    }
    if (json_array_append_new(array, text_json(path)) < 0)
        dl2_need(NULL);
}

void dl2_step_add_all(json_t *step, const char *list, struct dl2_words paths)
{
    for (size_t i = 0; i < paths.count; i++)
        dl2_step_add(step, list, paths.at[i]);
}

void dl2_step_set(json_t *step, const char *key, const char *text)
{
    put(step, key, text_json(text));
}

void dl2_step_command(json_t *step, struct dl2_words command)
{
    if (json_array_append_new(json_object_get(step, "commands"), dl2_words_json(command)) < 0)
        dl2_need(NULL);
}

const char *dl2_plan_stage(const struct dl2_study_plan *plan, const char *stage)
{
    return dl2_text("%s/.make/%s", plan->study->out, stage);
}

void dl2_plan_settings(struct dl2_study_plan *plan, json_t *step, const char *stage,
                       const char *text)
{
    const char *path = dl2_plan_stage(plan, stage);
    const char *now = dl2_words_join(dl2_words_split(text), " ");
    const char *before = dl2_text_of_file(path);
    if (!before || strcmp(before, dl2_text("%s\n", now)) != 0) {
        put(plan->changed, stage, text_json(now));
        put(plan->coming, path, text_json("settings"));
    }
    put(plan->stages, stage, text_json(now));
    dl2_step_add(step, "inputs", path);
    dl2_step_set(step, "settings", now);
    char sum[17];
    snprintf(sum, sizeof sum, "%016llx", (unsigned long long)XXH64(now, strlen(now), 0));
    dl2_step_set(step, "fingerprint", sum);
}

bool dl2_plan_wants(const struct dl2_study_plan *plan, const char *output, const json_t *inputs,
                    bool again)
{
    struct stat made, input;
    if (again || stat(output, &made) < 0)
        return true;
    size_t i;
    json_t *path;
    json_array_foreach(inputs, i, path)
    {
        if (json_object_get(plan->coming, json_string_value(path)) ||
            (stat(json_string_value(path), &input) == 0 &&
             dl2_mtime_ns(&input) > dl2_mtime_ns(&made)))
            return true;
    }
    return false;
}

void dl2_plan_close(struct dl2_study_plan *plan, json_t *step, bool again)
{
    const json_t *outputs = json_object_get(step, "outputs");
    size_t i;
    json_t *path;
    bool wanted = false;
    json_array_foreach(outputs, i, path)
    {
        wanted |=
            dl2_plan_wants(plan, json_string_value(path), json_object_get(step, "inputs"), again);
    }
    if (again)
        put(step, "again", json_true());
    put(step, "needed", json_boolean(wanted));
    if (!wanted)
        return;
    json_array_foreach(outputs, i, path)
    {
        put(plan->coming, json_string_value(path), json_incref(json_object_get(step, "name")));
    }
}

/* Whether the step makes one of the files. */
static bool makes_any(const json_t *step, const json_t *files)
{
    size_t i;
    json_t *path;
    json_array_foreach(json_object_get(step, "outputs"), i, path)
    {
        if (json_object_get(files, json_string_value(path)))
            return true;
    }
    return false;
}

static void want_all(json_t *files, const json_t *paths)
{
    size_t i;
    json_t *path;
    json_array_foreach(paths, i, path)
    {
        put(files, json_string_value(path), json_true());
    }
}

void dl2_plan_end(struct dl2_study_plan *plan)
{
    json_auto_t *files = dl2_need(json_object());
    json_t *settings;
    const char *stage;
    void *next;
    for (size_t i = 0; i < plan->targets.count; i++)
        put(files, plan->targets.at[i], json_true());
    for (size_t i = json_array_size(plan->steps); i--;) {
        const json_t *step = json_array_get(plan->steps, i);
        if (!makes_any(step, files)) {
            json_array_remove(plan->steps, i);
            continue;
        }
        want_all(files, json_object_get(step, "inputs"));
        want_all(files, json_object_get(step, "after"));
    }
    json_object_foreach_safe(plan->changed, next, stage, settings)
    {
        if (!json_object_get(files, dl2_plan_stage(plan, stage)))
            json_object_del(plan->changed, stage);
    }
}

/* ---- Commands */

struct dl2_words dl2_study_words(const struct dl2_study_settings *study, const char *program, ...)
{
    struct dl2_words words = {0};
    dl2_words_add(&words, dl2_study_program(study, program));
    va_list args;
    va_start(args, program);
    for (const char *word; (word = va_arg(args, const char *));)
        dl2_words_add(&words, word);
    va_end(args);
    return words;
}

/* ---- The file */

size_t dl2_plan_needed(const struct dl2_study_plan *plan)
{
    size_t needed = 0, i;
    json_t *step;
    json_array_foreach(plan->steps, i, step)
    {
        needed += json_is_true(json_object_get(step, "needed"));
    }
    return needed;
}

const char *dl2_plan_summary(const struct dl2_study_plan *plan)
{
    return dl2_text("%zu steps, %zu to be done", json_array_size(plan->steps),
                    dl2_plan_needed(plan));
}

void dl2_plan_save(const struct dl2_study_plan *plan, const char *path)
{
    const struct dl2_study_settings *study = plan->study;
    json_t *json = dl2_need(json_object());
    put(json, "schema", text_json("dl2-study-plan/1"));
    put(json, "goals", dl2_words_json(plan->goals));
    put(json, "folder", text_json(dl2_path_absolute(".")));
    put(json, "out", text_json(study->out));
    put(json, "settings", json_incref(plan->settings));
    put(json, "trainings", dl2_words_json(plan->runs));
    put(json, "interim", plan->interim ? text_json(plan->interim) : json_null());
    put(json, "quiet", json_boolean(plan->quiet));
    put(json, "trainers", json_integer(study->trainers));
    put(json, "targets", dl2_words_json(plan->targets));
    put(json, "steps", json_incref(plan->steps));
    struct dl2_error error = DL2_ERROR_INIT;
    if (dl2_json_save_new(path, json, &error) < 0)
        dl2_study_fail(DL2_EXIT_FAILED, "%s", error.message);
}
