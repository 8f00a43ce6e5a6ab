/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * How far a study is: the plan says what is to be done, OUT/.make/done what was, a line for each
 * step: its name, a tab, its seconds; and OUT/.make/failed the names of those that failed.
 */
#ifndef DL2_STUDY_PROGRESS_H
#define DL2_STUDY_PROGRESS_H

#include "study/plan.h"

/* Nothing of the plan was done yet. */
void dl2_progress_reset(const char *out);
/* A step was done: notes it, and tells how far the study is. */
void dl2_progress_note(const struct dl2_study_plan *plan, const char *step, double seconds);
/* A step failed. */
void dl2_progress_note_failed(const char *out, const char *step);
/* Whether all of the plan was done; else lists on stderr the steps that failed, with what they were
 * to make and the files of their output. */
bool dl2_progress_is_done(const struct dl2_study_plan *plan);
void dl2_progress_tell_failed(const struct dl2_study_plan *plan);
/* Removes the line from a terminal. */
void dl2_progress_line_clear(void);
/* "12 of 57 steps done, about 3 min left" */
const char *dl2_progress_text(const struct dl2_study_plan *plan);
/* Says that on stderr: on a terminal in a line that the next one replaces, else in a line of its
 * own. */
void dl2_progress_say(const struct dl2_study_plan *plan);

#endif
