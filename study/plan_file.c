/* SPDX-License-Identifier: BSD-2-Clause */
/* A plan for others to read: OUT/study-plan.json, and the commands as a shell takes them. */
#include "common/json.h"
#include "study/paths.h"
#include "study/plan.h"

#include <stdio.h>

enum kind { TEXT, WORDS, COMMANDS, FLAG, NUMBER, OBJECT };

struct field {
    const char *key;
    enum kind kind;
    size_t offset;
};

#define STEP(what, member)                                                                         \
    {                                                                                              \
        .key = #member, .kind = what, .offset = offsetof(struct dl2_step, member)                  \
    }
#define CELL(what, member)                                                                         \
    {                                                                                              \
        .key = #member, .kind = what, .offset = offsetof(struct dl2_measurement, member)           \
    }

static const struct field step_fields[] = {
    STEP(TEXT, name),
    STEP(TEXT, work),
    STEP(WORDS, outputs),
    STEP(WORDS, inputs),
    STEP(WORDS, after),
    STEP(COMMANDS, commands),
    STEP(FLAG, needed),
    STEP(FLAG, may_fail_in_part),
    STEP(TEXT, settings),
    STEP(TEXT, says),
    STEP(TEXT, log),
    STEP(TEXT, output),
    STEP(FLAG, alone),
    STEP(FLAG, uses_device),
    STEP(NUMBER, threads),
    STEP(FLAG, asks),
    STEP(TEXT, clears),
    STEP(TEXT, identity),
    STEP(WORDS, identify),
    STEP(FLAG, elsewhere),
    STEP(TEXT, label),
    STEP(TEXT, subset_of),
    STEP(OBJECT, trainer),
    STEP(NUMBER, retries),
    STEP(NUMBER, limit),
    STEP(NUMBER, rounds),
    {0},
};

static const struct field cell_fields[] = {
    CELL(TEXT, path),   CELL(WORDS, command), CELL(TEXT, cache),
    CELL(FLAG, trains), CELL(FLAG, once), CELL(FLAG, may_fail), {0},
};

/* ---- To write it */

static json_t *commands_json(const struct dl2_commands *commands)
{
    json_t *array = dl2_need(json_array());
    for (size_t i = 0; i < commands->count; i++)
        if (json_array_append_new(array, dl2_words_json(commands->at[i])) < 0)
            dl2_need(NULL);
    return array;
}

/* What is not there is left out. */
static json_t *fields_json(const struct field *fields, const void *from)
{
    json_t *object = dl2_need(json_object());
    for (; fields->key; fields++) {
        const void *at = (const char *)from + fields->offset;
        const char *text = fields->kind == TEXT ? *(const char *const *)at : NULL;
        if (text)
            dl2_put(object, fields->key, dl2_text_json(text));
        else if (fields->kind == WORDS)
            dl2_put(object, fields->key, dl2_words_json(*(const struct dl2_words *)at));
        else if (fields->kind == COMMANDS)
            dl2_put(object, fields->key, commands_json(at));
        else if (fields->kind == FLAG && *(const bool *)at)
            dl2_put(object, fields->key, json_true());
        else if (fields->kind == NUMBER && *(const unsigned *)at)
            dl2_put(object, fields->key, json_integer(*(const unsigned *)at));
        else if (fields->kind == OBJECT && *(json_t *const *)at)
            dl2_put(object, fields->key, json_incref(*(json_t *const *)at));
    }
    return object;
}

static json_t *step_json(const struct dl2_step *step)
{
    json_t *object = fields_json(step_fields, step), *cells = dl2_need(json_array());
    for (size_t i = 0; i < step->cell_count; i++)
        if (json_array_append_new(cells, fields_json(cell_fields, &step->cells[i])) < 0)
            dl2_need(NULL);
    if (step->cell_count)
        dl2_put(object, "cells", cells);
    else
        json_decref(cells);
    return object;
}

static const char *file_of(const char *out)
{
    return dl2_text("%s/study-plan.json", out);
}

void dl2_plan_save(const struct dl2_study_plan *plan)
{
    json_t *json = dl2_need(json_object()), *steps = dl2_need(json_array());
    dl2_put(json, "schema", dl2_text_json("dl2-study-plan/1"));
    dl2_put(json, "goals", dl2_words_json(plan->goals));
    dl2_put(json, "folder", dl2_text_json(dl2_path_absolute(".")));
    dl2_put(json, "out", dl2_text_json(plan->out));
    dl2_put(json, "settings", dl2_study_settings_json(plan->study));
    dl2_put(json, "trainings", dl2_words_json(plan->runs));
    dl2_put(json, "interim", plan->interim ? dl2_text_json(plan->interim) : json_null());
    dl2_put(json, "quiet", json_boolean(plan->quiet));
    dl2_put(json, "trainers", json_integer(plan->trainers));
    dl2_put(json, "targets", dl2_words_json(plan->targets));
    for (size_t i = 0; i < plan->count; i++)
        if (json_array_append_new(steps, step_json(plan->steps[i])) < 0)
            dl2_need(NULL);
    dl2_put(json, "steps", steps);
    struct dl2_error error = DL2_ERROR_INIT;
    if (dl2_json_save_new(file_of(plan->out), json, &error) < 0)
        dl2_study_fail(DL2_EXIT_FAILED, "%s", error.message);
}

/* ---- To read it */

static void read_fields(const struct field *fields, const json_t *object, void *to)
{
    for (; fields->key; fields++) {
        const json_t *value = json_object_get(object, fields->key), *words;
        void *at = (char *)to + fields->offset;
        size_t i;
        if (fields->kind == TEXT)
            *(const char **)at = json_string_value(value);
        else if (fields->kind == WORDS)
            *(struct dl2_words *)at = dl2_words_of_json(value);
        else if (fields->kind == FLAG)
            *(bool *)at = json_is_true(value);
        else if (fields->kind == NUMBER)
            *(unsigned *)at = (unsigned)json_integer_value(value);
        else if (fields->kind == OBJECT)
            *(json_t **)at = json_object_get(object, fields->key);
        else
            json_array_foreach(value, i, words)
            {
                dl2_commands_add(at, dl2_words_of_json(words));
            }
    }
}

void dl2_plan_read(struct dl2_study_plan *plan, const char *out)
{
    json_t *json, *object, *cell;
    struct dl2_error error = DL2_ERROR_INIT;
    size_t i, c;
    if (dl2_json_load(file_of(out), "dl2-study-plan/1", &json, &error) < 0)
        dl2_study_fail(DL2_EXIT_FAILED, "%s", error.message);
    dl2_keep_json(json);
    *plan = (struct dl2_study_plan){
        .out = out,
        .trainers = (unsigned)dl2_json_get_integer(json, "trainers", 1),
        .quiet = json_is_true(json_object_get(json, "quiet")),
        .timeline = *dl2_json_get_text(json_object_get(json, "settings"), "timeline", ""),
        .count = json_array_size(json_object_get(json, "steps")),
    };
    plan->steps = dl2_keep(plan->count + 1, sizeof(struct dl2_step *), "the steps");
    json_array_foreach(json_object_get(json, "steps"), i, object)
    {
        const json_t *cells = json_object_get(object, "cells");
        struct dl2_step *step = plan->steps[i] = dl2_keep(1, sizeof *step, "a step");
        read_fields(step_fields, object, step);
        if (!step->name || !step->work || !step->outputs.count)
            dl2_study_fail(DL2_EXIT_FAILED, "%s: step %zu has no name, work or output",
                           file_of(out), i + 1);
        step->cell_count = json_array_size(cells);
        step->cells = dl2_keep(step->cell_count + 1, sizeof *step->cells, "the cells");
        json_array_foreach(cells, c, cell)
        {
            read_fields(cell_fields, cell, &step->cells[c]);
        }
    }
}

/* ---- To look at */

void dl2_plan_print(const struct dl2_study_plan *plan)
{
    for (size_t i = 0; i < plan->count; i++) {
        const struct dl2_step *step = plan->steps[i];
        if (!step->needed)
            continue;
        printf("%s%s\n", step->name, step->alone ? "" : ", beside others");
        for (size_t c = 0; c < step->commands.count; c++)
            printf("    %s\n", dl2_shell_command(step->commands.at[c]));
        for (size_t c = 0; c < step->cell_count; c++)
            printf("    %s\n", dl2_shell_command(step->cells[c].command));
    }
    printf("%zu steps, %zu to be done\n", plan->count, dl2_plan_needed(plan));
}
