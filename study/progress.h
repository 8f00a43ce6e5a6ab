/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * How far a study is: the plan says what is to be done, OUT/.make/done what was, a line for each
 * step: its name, a tab, its seconds; and OUT/.make/failed the names of those that failed.
 */
#ifndef DL2_STUDY_PROGRESS_H
#define DL2_STUDY_PROGRESS_H

#include <jansson.h>

/* Nothing of the plan was done yet. */
void dl2_progress_reset(const char *out);
/* A step was done: notes it, and says on stderr how far the study is: on a terminal in a line that
 * the next one replaces, else in a line of its own. */
void dl2_progress_note(const char *out, const json_t *plan, const char *step, double seconds);
/* A step failed. */
void dl2_progress_note_failed(const char *out, const char *step);
/* Lists on stderr the steps that failed, with the files of their output; nothing where none did. */
void dl2_progress_tell_failed(const char *out, const json_t *steps);
/* Removes the line from a terminal. */
void dl2_progress_line_clear(void);
/* "12 of 57 steps done, about 3 min left" */
const char *dl2_progress_text(const char *out, const json_t *plan);

#endif
