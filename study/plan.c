/* SPDX-License-Identifier: BSD-2-Clause */
#include "study/plan.h"

#include "common/file.h"
#include "common/json.h"
#include "study/paths.h"

#include <stdarg.h>
#include <string.h>
#include <sys/stat.h>

void dl2_plan_begin(struct dl2_study_plan *plan, const struct dl2_study_settings *study,
                    struct dl2_words goals)
{
    *plan = (struct dl2_study_plan){.study = study,
                                    .out = study->out,
                                    .trainers = study->trainers,
                                    .goals = goals,
                                    .timeline = *study->options.timeline,
                                    .changed = dl2_keep_json(json_object()),
                                    .coming = dl2_keep_json(json_object())};
    for (size_t n = 0; n < study->train_on.count + 1; n++)
        for (size_t a = 0; a < study->archs.count; a++)
            for (size_t s = 0; s < study->seeds.count; s++)
                dl2_words_add(&plan->runs,
                              dl2_text("%s/%s/seed-%s", n ? study->train_on.at[n - 1] : "raw",
                                       study->archs.at[a], study->seeds.at[s]));
}

/* ---- Steps */

struct dl2_step *dl2_plan_step(struct dl2_study_plan *plan, const char *name, const char *work,
                               const char *output)
{
    for (size_t i = 0; i < plan->count; i++)
        if (strcmp(plan->steps[i]->name, name) == 0)
            return NULL;
    struct dl2_step *step = dl2_keep(1, sizeof *step, "a step");
    step->name = name;
    step->work = work;
    step->alone = true;
    if (output)
        dl2_words_add(&step->outputs, output);
    plan->steps = dl2_keep_more(plan->steps, plan->count, sizeof(struct dl2_step *));
    plan->steps[plan->count++] = step;
    return step;
}

void dl2_files_add(struct dl2_words *files, const char *path)
{
    if (!dl2_words_have(*files, path))
        dl2_words_add(files, path);
}

void dl2_files_add_all(struct dl2_words *files, struct dl2_words paths)
{
    for (size_t i = 0; i < paths.count; i++)
        dl2_files_add(files, paths.at[i]);
}

void dl2_commands_add(struct dl2_commands *commands, struct dl2_words command)
{
    commands->at = dl2_keep_more(commands->at, commands->count, sizeof *commands->at);
    commands->at[commands->count++] = command;
}

const char *dl2_plan_stage(const struct dl2_study_plan *plan, const char *stage)
{
    return dl2_text("%s/.make/%s", plan->out, stage);
}

/* The text without needless blanks, which are those outside of quotes. */
static const char *without_blanks(const char *text)
{
    char *tidy = dl2_text_copy(text), *end = tidy, quote = '\0';
    for (; *text; text++) {
        if (quote ? *text == quote : *text == '"' || *text == '\'')
            quote = quote ? '\0' : *text;
        const bool is_blank = !quote && strchr(" \t\r\n", *text);
        if (!is_blank)
            *end++ = *text;
        else if (end > tidy && end[-1] != ' ')
            *end++ = ' ';
    }
    end -= end > tidy && end[-1] == ' ';
    *end = '\0';
    return tidy;
}

void dl2_plan_settings(struct dl2_study_plan *plan, struct dl2_step *step, const char *stage,
                       const char *text)
{
    const char *path = dl2_plan_stage(plan, stage);
    const char *now = without_blanks(text), *before = dl2_text_of_file(path);
    if (!before || strcmp(before, dl2_text("%s\n", now)) != 0) {
        dl2_put(plan->changed, stage, dl2_text_json(now));
        dl2_put(plan->coming, path, json_true());
    }
    dl2_files_add(&step->inputs, path);
    step->settings = now;
}

bool dl2_plan_wants(const struct dl2_study_plan *plan, const char *output, struct dl2_words inputs,
                    bool again)
{
    struct stat made, input;
    if (again || stat(output, &made) < 0)
        return true;
    for (size_t i = 0; i < inputs.count; i++)
        if (json_object_get(plan->coming, inputs.at[i]) ||
            (stat(inputs.at[i], &input) == 0 && dl2_mtime_ns(&input) > dl2_mtime_ns(&made)))
            return true;
    return false;
}

void dl2_plan_close(struct dl2_study_plan *plan, struct dl2_step *step, bool again)
{
    for (size_t i = 0; i < step->outputs.count; i++)
        step->needed |= dl2_plan_wants(plan, step->outputs.at[i], step->inputs, again);
    for (size_t i = 0; i < step->outputs.count && step->needed; i++)
        dl2_put(plan->coming, step->outputs.at[i], json_true());
}

/* ---- The graph */

/* Finds files by name: {PATH: the position of the step that makes it, or any number}. */
static void mark(json_t *files, struct dl2_words paths, size_t position)
{
    for (size_t i = 0; i < paths.count; i++)
        dl2_put(files, paths.at[i], json_integer((json_int_t)position));
}

static bool makes_any(const struct dl2_step *step, const json_t *files)
{
    for (size_t i = 0; i < step->outputs.count; i++)
        if (json_object_get(files, step->outputs.at[i]))
            return true;
    return false;
}

/* Drops the steps that make nothing of what is wanted: the targets, and what other steps need. */
static void keep_wanted(struct dl2_study_plan *plan)
{
    json_auto_t *files = dl2_need(json_object());
    size_t first = plan->count;
    mark(files, plan->targets, 0);
    for (size_t i = plan->count; i--;) {
        struct dl2_step *step = plan->steps[i];
        if (!makes_any(step, files))
            continue;
        mark(files, step->inputs, 0);
        mark(files, step->after, 0);
        plan->steps[--first] = step;
    }
    plan->steps += first;
    plan->count -= first;
    const char *stage;
    json_t *settings;
    void *next;
    json_object_foreach_safe(plan->changed, next, stage, settings)
    {
        if (!json_object_get(files, dl2_plan_stage(plan, stage)))
            json_object_del(plan->changed, stage);
    }
}

/* Adds the makers of the files to what the step needs; marked[N] is the last step that got N. */
static void add_needs(struct dl2_step *step, const json_t *makers, struct dl2_words files,
                      size_t *marked, size_t position)
{
    for (size_t i = 0; i < files.count; i++) {
        const json_t *maker = json_object_get(makers, files.at[i]);
        const size_t at = maker ? (size_t)json_integer_value(maker) : 0;
        if (!maker || marked[at] == position + 1)
            continue;
        marked[at] = position + 1;
        step->needs = dl2_keep_more(step->needs, step->need_count, sizeof *step->needs);
        step->needs[step->need_count++] = at;
    }
}

void dl2_plan_end(struct dl2_study_plan *plan)
{
    keep_wanted(plan);
    json_auto_t *makers = dl2_need(json_object());
    size_t *marked = dl2_keep(plan->count + 1, sizeof *marked, "the steps");
    for (size_t i = 0; i < plan->count; i++) {
        struct dl2_step *step = plan->steps[i];
        if (!step->needed)
            continue;
        add_needs(step, makers, step->inputs, marked, i);
        add_needs(step, makers, step->after, marked, i);
        mark(makers, step->outputs, i);
    }
}

bool dl2_plan_is_removed(const char *facts)
{
    return strcmp(dl2_path_base(facts), "dl2-variant.json") == 0 &&
           dl2_is_file(dl2_text("%s/" DL2_IMAGES_REMOVED, dl2_path_folder(facts)));
}

bool dl2_plan_is_late(const char *facts)
{
    json_auto_t *variant = NULL;
    return dl2_is_file(facts) && dl2_json_load(facts, NULL, &variant, NULL) == DL2_OK &&
           json_object_get(variant, "time_limit");
}

static bool has_removed(struct dl2_words files)
{
    for (size_t i = 0; i < files.count; i++)
        if (dl2_plan_is_removed(files.at[i]))
            return true;
    return false;
}

bool dl2_plan_misses(const struct dl2_study_plan *plan)
{
    for (size_t i = 0; i < plan->count; i++) {
        const struct dl2_step *step = plan->steps[i];
        const bool makes = strcmp(step->work, "variants") == 0; /* all, by one command */
        if (step->needed && !step->reads_facts &&
            (has_removed(step->inputs) || has_removed(step->after) || makes))
            return true;
    }
    return false;
}

size_t dl2_plan_needed(const struct dl2_study_plan *plan)
{
    size_t needed = 0;
    for (size_t i = 0; i < plan->count; i++)
        needed += plan->steps[i]->needed;
    return needed;
}

void dl2_plan_save_settings(const struct dl2_study_plan *plan)
{
    const char *stage;
    json_t *settings;
    json_object_foreach(plan->changed, stage, settings)
    {
        dl2_text_save(dl2_plan_stage(plan, stage), dl2_text("%s\n", json_string_value(settings)));
    }
}

/* ---- Commands */

const char *dl2_study_program(const struct dl2_study_settings *study, const char *name)
{
    return *study->options.programs ? dl2_text("%s/%s", study->options.programs, name) : name;
}

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
