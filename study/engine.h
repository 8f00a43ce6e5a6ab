/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What does the steps of a plan: this machine, or a cluster. A step begins when all that it needs
 * is done. One that fails takes with it those that need it; the others go on, since hours of
 * trainings are not given up for one.
 */
#ifndef DL2_STUDY_ENGINE_H
#define DL2_STUDY_ENGINE_H

#include "study/plan.h"

/*
 * Does the steps that are to be done in processes of this machine: of those that may begin the
 * first of the plan. Of steps that are not alone `at_once` run beside each other.
 *
 * SIGINT, SIGTERM and SIGHUP end the programs that run, which keep what they keep; the function
 * waits for them, and then the signal ends this process. A second signal kills them. Returns an
 * exit status.
 */
int dl2_local_run(const struct dl2_study_plan *plan, unsigned at_once);

/* Has jobs of Slurm do them and waits until the last has ended. `program` is dl2-study's own path.
 * Returns an exit status. */
int dl2_slurm_run(const struct dl2_study_plan *plan, const char *program);
/* Does a step of OUT/study-plan.json; "@ARRAY": the one that this job of Slurm's is for. */
int dl2_slurm_do(const char *out, const char *step);

#endif
