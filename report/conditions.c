/* SPDX-License-Identifier: BSD-2-Clause */
#include "report/conditions.h"

#include "common/file.h"
#include "common/memory.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The goals whose trainings have conditions: study/goals.mk's. */
static const struct {
    const char *name;
    bool own_names; /* what was trained on are not variants alone, so that none is left out */
} goals[] = {{"time", false}, {"forecast", false}, {"regimens", true}, {"bytes", false}};

static int add_condition(const char *folder, const char *goal, const char *name,
                         char *const *variants, struct dl2_study *study,
                         struct dl2_conditions *conditions, struct dl2_error *error)
{
    char path[4096], where[512];
    snprintf(path, sizeof path, "%s/%s/%s", folder, goal, name);
    const struct dl2_study_selection selection = {.variants = variants};
    struct dl2_condition own = {.goal = goal};
    struct dl2_error why = DL2_ERROR_INIT;
    int status = dl2_study_collect(path, &selection, &own.study, &why);
    struct dl2_condition *grown = NULL;
    if (status == DL2_OK && (own.name = strdup(name)))
        grown = dl2_realloc(conditions->items, conditions->count + 1, sizeof *grown);
    if (!grown) {
        free(own.name);
        dl2_study_free(&own.study);
        if (status == DL2_OK || status == DL2_ERR_MEMORY)
            return dl2_error_memory(error, "the trainings in %s", path);
        return DL2_OK; /* no folder, or nothing in it yet */
    }
    conditions->items = grown;
    conditions->items[conditions->count++] = own;
    snprintf(where, sizeof where, "%s/%s", goal, name);
    return dl2_study_add_notes(study, &own.study, where, error);
}

int dl2_conditions_collect(const char *folder, char *const *variants, struct dl2_study *study,
                           struct dl2_conditions *conditions, struct dl2_error *error)
{
    *conditions = (struct dl2_conditions){NULL, 0};
    int status = DL2_OK;
    for (size_t g = 0; g < sizeof goals / sizeof *goals; g++) {
        char path[4096], **names = NULL;
        snprintf(path, sizeof path, "%s/%s", folder, goals[g].name);
        if (status == DL2_OK)
            status = dl2_list_names(path, &names, error);
        for (size_t i = 0; status == DL2_OK && names[i]; i++)
            status = add_condition(folder, goals[g].name, names[i],
                                   goals[g].own_names ? NULL : variants, study, conditions, error);
        dl2_free_list(names);
    }
    return status;
}

void dl2_conditions_free(struct dl2_conditions *conditions)
{
    for (size_t i = 0; i < conditions->count; i++) {
        free(conditions->items[i].name);
        dl2_study_free(&conditions->items[i].study);
    }
    free(conditions->items);
    *conditions = (struct dl2_conditions){NULL, 0};
}
