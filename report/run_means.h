/* SPDX-License-Identifier: BSD-2-Clause */
/* How the trainings of a variant with a network went: means over their seeds. */
#ifndef DL2_REPORT_RUN_MEANS_H
#define DL2_REPORT_RUN_MEANS_H

#include "report/study.h"

/* The trainings that means are over. */
struct dl2_run_means {
    const struct dl2_study *study;
    size_t variant;
    const char *arch;
};

/* The epochs of the longest; 0: there is none. */
size_t dl2_run_means_epochs(const struct dl2_run_means *means);

/* Validation accuracy after epoch `epoch`, percent; NAN: none was validated then. */
double dl2_run_means_accuracy(const struct dl2_run_means *means, size_t epoch);

/* Seconds of training; NAN: there is none, or others shared the machine. */
double dl2_run_means_seconds(const struct dl2_run_means *means);

/* Epochs that were seen, parts of one included; NAN: there are none. */
double dl2_run_means_seen(const struct dl2_run_means *means);

/*
 * Seconds since the start, validation included, and accuracy, a fraction, after epoch `epoch` of
 * each, or after its last one (SIZE_MAX). False: one has no such epoch, or was not validated then.
 */
bool dl2_run_means_at(const struct dl2_run_means *means, size_t epoch, double *seconds,
                      double *accuracy);

#endif
