/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What a training's network scores on the validation images of every variant: the evaluation that
 * `make matrix` leaves beside its report (dl2-evaluation/1, docs/formats.md).
 */
#ifndef DL2_REPORT_EVALUATION_H
#define DL2_REPORT_EVALUATION_H

#include "common/error.h"
#include "report/study.h"

/*
 * Sets accuracy[v] (a fraction) for each variant `v` of the study that `run` was evaluated on, and
 * NAN for the others. *found is false where the run has no evaluation. `original` is the name that
 * reports have for the validation images of the original, or NULL. DL2_ERR_ARGUMENT where the
 * evaluation is older than the training, and another error where it can't be read; both name the
 * file.
 */
int dl2_evaluation_read(const struct dl2_study *study, const struct dl2_study_run *run,
                        const char *original, double *accuracy, bool *found,
                        struct dl2_error *error);

#endif
