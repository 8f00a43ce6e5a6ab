/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What a study can be asked for. A goal is one file in study/goals/, called as the goal is; the
 * registry is made of the files that are there.
 */
#ifndef DL2_STUDY_GOALS_H
#define DL2_STUDY_GOALS_H

#include "study/plan.h"

struct dl2_goal {
    const char *name;         /* "study-time" */
    const char *summary;      /* what it makes, for --help */
    const char *question;     /* that it answers; NULL: it is a stage of the others */
    const char *hypothesis;   /* of (DL)2, ICDE 2023: "H2b"; or NULL */
    const char *section;      /* of the report that shows it, as page/section_NAME.c; or NULL */
    const char *folders;      /* in OUT that are its results, separated by blanks */
    const char *by_dl2_train; /* why no other trainer can do it, ", which ..."; or NULL */
    const struct dl2_option *variables; /* of struct dl2_goal_values; or NULL */
    bool asks_hypotheses; /* asking for it asks for all goals that have a hypothesis, too */
    /* Sets what was not given, before the dataset's own defaults are; or NULL. */
    void (*defaults)(struct dl2_study_options *options);
    /* Refuses wrong variables, which may be those of another goal, and so not needed; or NULL. */
    void (*check)(const struct dl2_study_settings *study, bool is_asked);
    /* Adds its steps to the plan, and returns the files that are to be made. A goal with a question
     * ends with a report of them and of all that is there. */
    struct dl2_words (*plan)(struct dl2_study_plan *plan);
    /* What is done before the first step, and after the last, with what this one's exit status is
     * so far; returns that of all. Or NULL. */
    void (*begin)(const struct dl2_study_plan *plan);
    int (*finish)(const struct dl2_study_plan *plan, int status);
};

/* All goals, in the order of their names; NULL beyond the last. */
const struct dl2_goal *dl2_goal_at(size_t index);
const struct dl2_goal *dl2_goal_find(const char *name);

/* The goals that are asked for: those of `names`, and those that they ask for. */
struct dl2_words dl2_goals_asked(struct dl2_words names);

/* Sets a goal's variable where it was not given. */
void dl2_goal_default(struct dl2_study_options *options, const char *goal, size_t variable,
                      const char *text);
/* The goal's own variable of that number, NULL where it was not given. */
const char *dl2_goal_value(const struct dl2_study_settings *study, const char *goal,
                           size_t variable);

/* The forecast's trainings, and the matrix of those on the original (study/goals/forecast.c). */
struct dl2_words dl2_plan_forecast(struct dl2_study_plan *plan);

#endif
