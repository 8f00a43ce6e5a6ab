/* SPDX-License-Identifier: BSD-2-Clause */
/* Regimens: trainings in stages, on one variant after the other, of as many epochs. */
#ifndef DL2_REPORT_REGIMENS_H
#define DL2_REPORT_REGIMENS_H

#include "report/conditions.h"
#include "report/run_means.h"

/* Regimens of as many epochs, and the original alone: one network's. */
struct dl2_regimens {
    const struct dl2_condition *condition; /* its name is the number of epochs */
    const struct dl2_analysis *analysis;
};

enum { DL2_REGIMEN_LABEL = 256 };

/* The first training; NULL: there is none. */
const struct dl2_study_run *dl2_regimen_run(const struct dl2_regimens *group, size_t v);
/* A regimen as REGIMENS has it, "jpeg-10:20,raw:10:freeze"; fit for a plot's script. */
const char *dl2_regimen_label(const struct dl2_regimens *group, size_t v,
                              char out[DL2_REGIMEN_LABEL]);
struct dl2_run_means dl2_regimen_means(const struct dl2_regimens *group, size_t v);
/* Seconds of training; NAN: not known. */
double dl2_regimen_seconds(const struct dl2_regimens *group, size_t v);

#endif
