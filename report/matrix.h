/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Accuracy of what was trained on one variant and validated on another, in percent, as means
 * over seeds. Either of all variants on both axes, by the evaluations of `make matrix`, or of the
 * sets that trainings themselves validated on.
 */
#ifndef DL2_REPORT_MATRIX_H
#define DL2_REPORT_MATRIX_H

#include "report/analysis.h"

struct dl2_matrix {
    size_t rows, columns;       /* rows are the study's variants; no columns: there is no matrix */
    size_t compared;            /* the first columns, of the study's own images; others are not */
    struct dl2_estimate *cells; /* [trained on * columns + validated on] */
    const char **names;         /* [columns]: borrowed from the study, or literals */
    bool *has_row, *has_column; /* which have any */
    bool evaluated;             /* columns are variants, too; else the first is each row's own */
    double original;            /* trained and validated on the original; NAN: not known */
    double most;                /* largest difference to that, points */
};

/* By the evaluations if networks of two or more variants have any. What is pointed to is kept. */
struct dl2_matrix dl2_matrix_make(const struct dl2_study *study, const char *arch);

/* The column of the images that a row was trained on. */
size_t dl2_matrix_own(const struct dl2_matrix *matrix, size_t row);

#endif
