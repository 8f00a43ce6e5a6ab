/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Accuracy of what was trained on one variant and validated on another: top-1 in percent, as means
 * over seeds. Either of all variants on both axes, by the evaluations of `make matrix`, or of the
 * sets that trainings themselves validated on.
 */
#ifndef DL2_REPORT_MATRIX_H
#define DL2_REPORT_MATRIX_H

#include "report/analysis.h"

struct dl2_matrix {
    size_t count;               /* of the study's variants */
    struct dl2_estimate *cells; /* [trained on * count + validated on] */
    bool *rows, *columns;       /* which of the variants have any */
    double original;            /* trained and validated on the original; NAN: not known */
    double most;                /* largest difference to that, points */
};

/* Were networks of two or more variants evaluated? */
bool dl2_matrix_exists(const struct dl2_study *study, const char *arch);
/* Free with dl2_matrix_free(), on failure too. */
int dl2_matrix_make(const struct dl2_study *study, const char *arch, struct dl2_matrix *matrix,
                    struct dl2_error *error);
void dl2_matrix_free(struct dl2_matrix *matrix);

/* Sets that trainings validated on: their own variant's, the original's, and any other. */
enum { DL2_MATRIX_ITSELF, DL2_MATRIX_MAX_SETS = 32 };

struct dl2_matrix_sets {
    struct dl2_val_set sets[DL2_MATRIX_MAX_SETS]; /* the first is not used */
    size_t count, original;                       /* the original's number, 0: none */
};

/* False where no training validated on another set than its own. */
bool dl2_matrix_sets_find(const struct dl2_study *study, const char *arch,
                          struct dl2_matrix_sets *sets);
/* Top-1 of the trainings on variant `v` on a set. `values` has room for all runs. */
struct dl2_estimate dl2_matrix_sets_top1(const struct dl2_study *study, const char *arch,
                                         const struct dl2_matrix_sets *sets, size_t v, size_t set,
                                         double *values);

#endif
