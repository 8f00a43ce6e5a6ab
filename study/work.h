/* SPDX-License-Identifier: BSD-2-Clause */
/* Does one step of a plan. */
#ifndef DL2_STUDY_WORK_H
#define DL2_STUDY_WORK_H

#include "study/plan.h"

/* Does the step and notes that it is done (study/progress.h); says what failed on stderr. Returns
 * an exit status. */
int dl2_work_do(const struct dl2_study_plan *plan, const struct dl2_step *step);

/* ---- For the kinds of work, which return exit statuses */

int dl2_work_dataset(const char *out, const struct dl2_step *step);
int dl2_work_variants(const char *out, const struct dl2_step *step);
int dl2_work_measure(const char *out, const struct dl2_step *step);
int dl2_work_training(const char *out, const struct dl2_step *step);
int dl2_work_trainer(const char *out, const struct dl2_step *step);

/* The command, with {KEY} words replaced by NULL-ended pairs KEY, VALUE. */
struct dl2_words dl2_work_command(struct dl2_words command, ...) __attribute__((sentinel));
/* Opens a file for a program's output. */
int dl2_work_open(const char *path);
/* Copies a file to stdout or stderr. */
void dl2_work_show(const char *path, int fd);
/* The last lines of one, to a few kilobytes. */
void dl2_work_show_end(const char *path, int fd);
/* A line on stdout, clear of the progress line. */
void dl2_work_say(const char *format, ...) __attribute__((format(printf, 1, 2)));
/* A JSON file, which must be there and whole; a new reference. */
json_t *dl2_work_load(const char *path, const char *schema);
/* Whether the JSON file says `key: true`. */
bool dl2_work_is_true(const char *path, const char *key);
/* Modification time in nanoseconds, or -1. */
long long dl2_work_time(const char *path);
void dl2_work_make_folder_of(const char *path);
/* Runs a command; prints it first where V=1 asks for that. */
int dl2_work_run(struct dl2_words command, int out, int err);
/* Runs the command of a training once, by dl2_child_keep(), within the step's limit. NULL if its
 * exit status is 0, else why it failed. */
const char *dl2_work_attempt(const struct dl2_step *step, struct dl2_words command, int log);

#endif
