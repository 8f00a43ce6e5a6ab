/* SPDX-License-Identifier: BSD-2-Clause */
#include "report/time_budgets.h"

#include "common/memory.h"

#include <stdlib.h>
#include <string.h>

static int by_seconds(const void *left, const void *right)
{
    const struct dl2_time_budget *a = left, *b = right;
    return (a->seconds > b->seconds) - (a->seconds < b->seconds);
}

/* The variants that the budgets do not have yet. */
static int add_names(struct dl2_time_budgets *budgets, const struct dl2_study *study,
                     struct dl2_error *error)
{
    for (size_t v = 0; v < study->variant_count; v++) {
        size_t known = 0;
        while (known < budgets->name_count &&
               strcmp(budgets->names[known], study->variants[v].name) != 0)
            known++;
        if (known < budgets->name_count)
            continue;
        DL2_TRY(dl2_grow(&budgets->names, known, sizeof *budgets->names, error));
        budgets->names[budgets->name_count++] = study->variants[v].name;
    }
    return DL2_OK;
}

/* The budgets of a network: new ones at the end of the list, where it has none yet. */
static struct dl2_time_budgets *find_arch(struct dl2_time_budgets **list, size_t *count,
                                          const char *arch, struct dl2_error *error)
{
    for (size_t i = 0; i < *count; i++)
        if (strcmp((*list)[i].arch, arch) == 0)
            return &(*list)[i];
    if (dl2_grow(list, *count, sizeof **list, error) < 0)
        return NULL;
    (*list)[*count] = (struct dl2_time_budgets){.arch = arch};
    return &(*list)[(*count)++];
}

static int add_budget(struct dl2_time_budgets **list, size_t *count,
                      const struct dl2_condition *condition, size_t arch, struct dl2_error *error)
{
    const double seconds = dl2_time_of_condition(condition->name);
    struct dl2_time_budgets *budgets = find_arch(list, count, condition->study.archs[arch], error);
    if (!budgets)
        return DL2_ERR_MEMORY;
    DL2_TRY(dl2_grow(&budgets->items, budgets->count, sizeof *budgets->items, error));
    budgets->items[budgets->count++] =
        (struct dl2_time_budget){condition, seconds, &condition->analyses[arch]};
    return DL2_OK;
}

int dl2_time_budgets_find(const struct dl2_conditions *conditions, struct dl2_time_budgets **list,
                          size_t *count, struct dl2_error *error)
{
    *list = NULL;
    *count = 0;
    for (size_t i = 0; i < conditions->count; i++) {
        const struct dl2_condition *condition = &conditions->items[i];
        for (size_t a = 0; strcmp(condition->goal, "time") == 0 && a < condition->study.arch_count;
             a++)
            DL2_TRY(add_budget(list, count, condition, a, error));
    }
    for (size_t i = 0; i < *count; i++) {
        struct dl2_time_budgets *budgets = &(*list)[i];
        qsort(budgets->items, budgets->count, sizeof *budgets->items, by_seconds);
        for (size_t b = 0; b < budgets->count; b++)
            DL2_TRY(add_names(budgets, &budgets->items[b].condition->study, error));
    }
    return DL2_OK;
}

void dl2_time_budgets_free(struct dl2_time_budgets *list, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        free(list[i].items);
        free((void *)list[i].names);
    }
    free(list);
}

const struct dl2_comparison *dl2_time_budget_find(const struct dl2_time_budget *budget,
                                                  const char *name)
{
    const struct dl2_study *study = &budget->condition->study;
    const size_t v = dl2_study_find(study, name);
    return v < study->variant_count ? &budget->analysis->comparisons[v] : NULL;
}

struct dl2_run_means dl2_time_budget_means(const struct dl2_time_budget *budget, const char *name)
{
    const struct dl2_study *study = &budget->condition->study;
    return (struct dl2_run_means){study, dl2_study_find(study, name), budget->analysis->arch};
}
