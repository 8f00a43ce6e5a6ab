/* SPDX-License-Identifier: BSD-2-Clause */
#include "report/conditions.h"

#include "common/file.h"
#include "common/scope.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The goals of a study whose trainings have conditions. */
static const struct {
    const char *name;
    bool own_names; /* what was trained on are not variants alone, so that none is left out */
    bool analysed;  /* the page shows differences to the original */
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

static int add_condition(const char *folder, const char *goal, const char *name,
                         char *const *variants, struct dl2_study *study,
                         struct dl2_conditions *conditions, struct dl2_error *error)
{
    char path[4096], where[512];
    if (strcmp(goal, "time") == 0 && !isfinite(dl2_time_of_condition(name)))
        return dl2_study_leave_out(study, error, "%s/%s: no time such as 90s, 30m or 2h", goal,
                                   name);
    snprintf(path, sizeof path, "%s/%s/%s", folder, goal, name);
    const struct dl2_study_selection selection = {.variants = variants};
    struct dl2_condition own = {.goal = goal};
    struct dl2_error why = DL2_ERROR_INIT;
    int status = dl2_study_collect(path, &selection, &own.study, &why);
    if (status == DL2_OK)
        status = dl2_copy_text(name, &own.name, &why);
    if (status == DL2_OK)
        status = dl2_grow(&conditions->items, conditions->count, sizeof own, &why);
    if (status < 0) {
        free(own.name);
        dl2_study_free(&own.study);
        /* No folder, or nothing in it yet. */
        return status == DL2_ERR_ARGUMENT || status == DL2_ERR_FORMAT
                   ? DL2_OK
                   : dl2_study_note_broken(study, &why, error);
    }
    conditions->items[conditions->count++] = own;
    snprintf(where, sizeof where, "%s/%s", goal, name);
    return dl2_study_add_notes(study, &own.study, where, error);
}

int dl2_conditions_collect(const char *folder, char *const *variants, struct dl2_study *study,
                           struct dl2_conditions *conditions, struct dl2_error *error)
{
    *conditions = (struct dl2_conditions){NULL, 0};
    for (size_t g = 0; g < sizeof goals / sizeof *goals; g++) {
        DL2_AUTO_LIST char **names = NULL;
        char path[4096];
        snprintf(path, sizeof path, "%s/%s", folder, goals[g].name);
        DL2_TRY(dl2_list_names(path, &names, error));
        for (size_t i = 0; names[i]; i++)
            DL2_TRY(add_condition(folder, goals[g].name, names[i],
                                  goals[g].own_names ? NULL : variants, study, conditions, error));
    }
    return DL2_OK;
}

static int analyse_condition(struct dl2_condition *condition, double tolerance,
                             struct dl2_error *error)
{
    const struct dl2_question question = {.tolerance = tolerance};
    const struct dl2_study *study = &condition->study;
    DL2_TRY(DL2_NEW(&condition->analyses, study->arch_count + 1, "analyses", error));
    for (size_t a = 0; a < study->arch_count; a++)
        DL2_TRY(dl2_analyse(study, study->archs[a], &question, &condition->analyses[a], error));
    return DL2_OK;
}

int dl2_conditions_analyse(struct dl2_conditions *conditions, double tolerance,
                           struct dl2_error *error)
{
    for (size_t i = 0; i < conditions->count; i++)
        for (size_t g = 0; g < sizeof goals / sizeof *goals; g++)
            if (goals[g].analysed && strcmp(goals[g].name, conditions->items[i].goal) == 0)
                DL2_TRY(analyse_condition(&conditions->items[i], tolerance, error));
    return DL2_OK;
}

void dl2_conditions_free(struct dl2_conditions *conditions)
{
    for (size_t i = 0; i < conditions->count; i++) {
        struct dl2_condition *condition = &conditions->items[i];
        for (size_t a = 0; condition->analyses && a < condition->study.arch_count; a++)
            dl2_analysis_free(&condition->analyses[a]);
        free(condition->analyses);
        free(condition->name);
        dl2_study_free(&condition->study);
    }
    free(conditions->items);
    *conditions = (struct dl2_conditions){NULL, 0};
}
