/* SPDX-License-Identifier: BSD-2-Clause */
#include "study/goals.h"

#include <string.h>

/* The build lists the files of study/goals/ there, and puts their goals into `found`. */
#include "study/goals_found.h"

const struct dl2_goal *dl2_goal_at(size_t index)
{
    return index < sizeof found / sizeof *found ? found[index] : NULL;
}

const struct dl2_goal *dl2_goal_find(const char *name)
{
    for (size_t i = 0; dl2_goal_at(i); i++)
        if (strcmp(dl2_goal_at(i)->name, name) == 0)
            return dl2_goal_at(i);
    return NULL;
}

const char *dl2_goal_value(const struct dl2_study_settings *study, const char *goal,
                           size_t variable)
{
    size_t i = 0;
    while (strcmp(found[i]->name, goal) != 0)
        i++;
    return study->options.of_goals[i].at[variable];
}

_Static_assert(sizeof found / sizeof *found <= DL2_MAX_GOALS, "DL2_MAX_GOALS is too small");
