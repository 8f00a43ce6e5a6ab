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

struct dl2_words dl2_goals_asked(struct dl2_words names)
{
    struct dl2_words all = {0};
    dl2_words_add_all(&all, names);
    for (size_t i = 0; i < names.count; i++)
        for (size_t g = 0; dl2_goal_find(names.at[i])->asks_hypotheses && dl2_goal_at(g); g++)
            if (dl2_goal_at(g)->hypothesis && !dl2_words_have(all, dl2_goal_at(g)->name))
                dl2_words_add(&all, dl2_goal_at(g)->name);
    return all;
}

static size_t index_of(const char *goal)
{
    size_t i = 0;
    while (strcmp(found[i]->name, goal) != 0)
        i++;
    return i;
}

void dl2_goal_default(struct dl2_study_options *options, const char *goal, size_t variable,
                      const char *text)
{
    const char **value = &options->of_goals[index_of(goal)].at[variable];
    if (!*value)
        *value = text;
}

const char *dl2_goal_value(const struct dl2_study_settings *study, const char *goal,
                           size_t variable)
{
    return study->options.of_goals[index_of(goal)].at[variable];
}

_Static_assert(sizeof found / sizeof *found <= DL2_MAX_GOALS, "DL2_MAX_GOALS is too small");
