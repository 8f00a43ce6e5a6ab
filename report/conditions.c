/* SPDX-License-Identifier: BSD-2-Clause */
#include "report/conditions.h"

#include "common/file.h"
#include "common/json.h"
#include "common/scope.h"
#include "report/sentence.h"

#include <ctype.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* The goals of a study whose trainings have conditions. */
static const struct {
    const char *name;
    bool own_names; /* what was trained on are not variants alone, so that none is left out */
    bool analyzed;  /* the page shows differences to the original */
} goals[] = {{"time", false, true},
             {"forecast", false, false},
             {"regimens", true, true},
             {"bytes", false, false}};

double dl2_time_of_condition(const char *name)
{
    char *end;
    const double number = strtod(name, &end);
    if (end == name || !(number > 0) || strlen(end) != 1)
        return NAN;
    return number * (*end == 's' ? 1 : *end == 'm' ? 60 : *end == 'h' ? 3600 : NAN);
}

static void add_condition(const char *folder, const char *goal, const char *name,
                          char *const *variants, struct dl2_study *study,
                          struct dl2_conditions *conditions)
{
    if (strcmp(goal, "time") == 0 && !isfinite(dl2_time_of_condition(name))) {
        dl2_study_leave_out(study, "%s/%s: no time such as 90s, 30m or 2h", goal, name);
        return;
    }
    const struct dl2_study_selection selection = {.variants = variants, .is_condition = true};
    const char *where = dl2_text("%s/%s", goal, name);
    struct dl2_condition own = {.goal = goal, .name = dl2_text_copy(name)};
    struct dl2_error why = DL2_ERROR_INIT;
    const int status =
        dl2_study_collect(dl2_text("%s/%s", folder, where), &selection, &own.study, &why);
    if (status == DL2_ERR_ARGUMENT || status == DL2_ERR_FORMAT)
        return; /* no folder, or nothing in it yet */
    dl2_study_note_broken(study, &why);
    if (status < 0)
        return;
    conditions->items = dl2_keep_more(conditions->items, conditions->count, sizeof own);
    conditions->items[conditions->count++] = own;
    dl2_study_add_notes(study, &own.study, where);
}

struct dl2_conditions dl2_conditions_collect(const char *folder, char *const *variants,
                                             struct dl2_study *study)
{
    struct dl2_conditions conditions = {NULL, 0};
    for (size_t g = 0; g < sizeof goals / sizeof *goals; g++) {
        DL2_AUTO_LIST char **names = NULL;
        struct dl2_error why = DL2_ERROR_INIT;
        const char *path = dl2_text("%s/%s", folder, goals[g].name);
        dl2_unless_memory(dl2_list_names(path, &names, &why), &why);
        for (size_t i = 0; names[i]; i++)
            add_condition(folder, goals[g].name, names[i], goals[g].own_names ? NULL : variants,
                          study, &conditions);
    }
    return conditions;
}

void dl2_conditions_analyze(const struct dl2_conditions *conditions,
                            const struct dl2_question *asked)
{
    const struct dl2_question question = {.tolerance = asked->tolerance, .percent = asked->percent};
    for (size_t i = 0; i < conditions->count; i++)
        for (size_t g = 0; g < sizeof goals / sizeof *goals; g++)
            if (goals[g].analyzed && strcmp(goals[g].name, conditions->items[i].goal) == 0)
                conditions->items[i].analyses =
                    dl2_analyze_all(&conditions->items[i].study, &question);
}

/* ---- Times */

static int by_seconds(const void *left, const void *right)
{
    const struct dl2_time_budget *a = left, *b = right;
    return (a->seconds > b->seconds) - (a->seconds < b->seconds);
}

/* The variants that the budgets do not have yet. */
static void add_names(struct dl2_time_budgets *budgets, const struct dl2_study *study)
{
    for (size_t v = 0; v < study->variant_count; v++) {
        size_t known = 0;
        while (known < budgets->name_count &&
               strcmp(budgets->names[known], study->variants[v].name) != 0)
            known++;
        if (known < budgets->name_count)
            continue;
        budgets->names = dl2_keep_more(budgets->names, known, sizeof *budgets->names);
        budgets->names[budgets->name_count++] = study->variants[v].name;
    }
}

/* The budgets of a network: new ones at the end of the list, where it has none yet. */
static struct dl2_time_budgets *find_arch(struct dl2_time_budgets **list, size_t *count,
                                          const char *arch)
{
    for (size_t i = 0; i < *count; i++)
        if (strcmp((*list)[i].arch, arch) == 0)
            return &(*list)[i];
    *list = dl2_keep_more(*list, *count, sizeof **list);
    (*list)[*count] = (struct dl2_time_budgets){.arch = arch};
    return &(*list)[(*count)++];
}

struct dl2_time_budgets *dl2_time_budgets_find(const struct dl2_conditions *conditions,
                                               size_t *count)
{
    struct dl2_time_budgets *list = NULL;
    *count = 0;
    for (size_t i = 0; i < conditions->count; i++) {
        const struct dl2_condition *condition = &conditions->items[i];
        const struct dl2_study *study = &condition->study;
        for (size_t a = 0; strcmp(condition->goal, "time") == 0 && a < study->arch_count; a++) {
            struct dl2_time_budgets *budgets = find_arch(&list, count, study->archs[a]);
            budgets->items = dl2_keep_more(budgets->items, budgets->count, sizeof *budgets->items);
            budgets->items[budgets->count++] = (struct dl2_time_budget){
                condition, dl2_time_of_condition(condition->name), &condition->analyses[a]};
        }
    }
    for (size_t i = 0; i < *count; i++) {
        qsort(list[i].items, list[i].count, sizeof *list[i].items, by_seconds);
        for (size_t b = 0; b < list[i].count; b++)
            add_names(&list[i], &list[i].items[b].condition->study);
    }
    return list;
}

const struct dl2_comparison *dl2_time_budget_find(const struct dl2_time_budget *budget,
                                                  const char *name)
{
    const struct dl2_study *study = &budget->condition->study;
    const size_t v = dl2_study_find(study, name);
    return v < study->variant_count ? &budget->analysis->comparisons[v] : NULL;
}

struct dl2_runs dl2_time_budget_runs(const struct dl2_time_budget *budget, const char *name)
{
    const struct dl2_study *study = &budget->condition->study;
    return dl2_study_runs(study, dl2_study_find(study, name), budget->analysis->arch);
}

/* ---- Regimens */

struct dl2_runs dl2_regimen_runs(const struct dl2_regimens *group, size_t v)
{
    return dl2_study_runs(&group->condition->study, v, group->analysis->arch);
}

/* What reports call the original: its folder's name. */
static const char *name_of_original(const struct dl2_regimens *group)
{
    const struct dl2_runs runs =
        dl2_regimen_runs(group, dl2_study_find(&group->condition->study, "raw"));
    return runs.count ? dl2_json_get_text(runs.at->report, "variant", "") : "";
}

const char *dl2_regimen_label(const struct dl2_regimens *group, size_t v)
{
    const struct dl2_study *study = &group->condition->study;
    const struct dl2_runs runs = dl2_regimen_runs(group, v);
    enum { SIZE = 256 };
    char *out = dl2_keep(SIZE, 1, "a regimen");
    struct dl2_sentence label = {out, SIZE, 0};
    size_t i;
    json_t *stage;
    if (strcmp(study->variants[v].name, "raw") == 0)
        return strcpy(out, "original");
    json_array_foreach(runs.count ? json_object_get(runs.at->report, "stages") : NULL, i, stage)
    {
        const json_t *size = json_object_get(stage, "image_size");
        const char *variant = dl2_json_get_text(stage, "variant", "?");
        if (strcmp(variant, name_of_original(group)) == 0)
            variant = "raw";
        dl2_say(&label, "%s%s:%g", i ? "," : "", variant, dl2_json_get_real(stage, "epochs", NAN));
        if (json_is_string(size))
            dl2_say(&label, ":size=%s", json_string_value(size));
        else if (size)
            dl2_say(&label, ":size=%g", json_number_value(size));
        if (json_is_true(json_object_get(stage, "freeze")))
            dl2_say(&label, ":freeze");
    }
    for (char *c = out; *c; c++)
        if (!isalnum((unsigned char)*c) && !strchr(":,=.-+@", *c))
            *c = '_';
    return out;
}
