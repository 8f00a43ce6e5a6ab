/* SPDX-License-Identifier: BSD-2-Clause */
/* What does the steps of a plan: make, or a cluster. */
#ifndef DL2_STUDY_ENGINE_H
#define DL2_STUDY_ENGINE_H

#include "study/plan.h"

/* Writes the plan as rules for make: one for each step, which names the step's files and has its
 * commands as a comment. `program` is dl2-study's own path. */
void dl2_rules_save(const struct dl2_study_plan *plan, const char *path, const char *program);

/* Runs make on rules, for `targets` or all that the goals ask for. Returns an exit status. */
int dl2_make_run(const struct dl2_study_plan *plan, const char *rules, struct dl2_words targets);

/* Writes OUT/jobs.sh, which submits the plan's needed steps to Slurm. */
void dl2_slurm_save(const struct dl2_study_plan *plan, const char *program);
/* Submits them and waits until the last has ended. Returns an exit status. */
int dl2_slurm_run(const struct dl2_study_plan *plan, const char *program);

#endif
