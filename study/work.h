/* SPDX-License-Identifier: BSD-2-Clause */
/* Does one step of a plan, as a rule of make or a job of a cluster asks for it. */
#ifndef DL2_STUDY_WORK_H
#define DL2_STUDY_WORK_H

#include "study/text.h"

/* A step that is being done. */
struct dl2_work {
    const char *out; /* the study's folder */
    const json_t *step;
    bool is_job; /* of a cluster, whose resources say what runs beside it */
};

/* Does the step `name` of OUT/study-plan.json, or with "@ARRAY" the one of a job of Slurm's; alone
 * on the machine or beside other trainings, as the plan says; says what failed on stderr. Returns
 * an exit status. */
int dl2_work_do(const char *out, const char *name);

/* ---- For the kinds of work */

const char *dl2_work_text(const struct dl2_work *work, const char *key); /* or NULL */
struct dl2_words dl2_work_list(const struct dl2_work *work, const char *key);
/* The step's command of that number, with {KEY} words replaced by NULL-ended pairs KEY, VALUE. */
struct dl2_words dl2_work_command(const json_t *words, ...) __attribute__((sentinel));
/* Opens a file for a program's output. */
int dl2_work_open(const char *path);
/* Copies a file to stdout or stderr. */
void dl2_work_show(const char *path, int fd);
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

/* They return exit statuses. */
int dl2_work_dataset(const struct dl2_work *work);
int dl2_work_variants(const struct dl2_work *work);
int dl2_work_measure(const struct dl2_work *work);
int dl2_work_training(const struct dl2_work *work);
int dl2_work_report(const struct dl2_work *work);

#endif
