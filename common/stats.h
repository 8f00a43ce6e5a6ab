/* SPDX-License-Identifier: BSD-2-Clause */
/* Statistics of a list of numbers. */
#ifndef DL2_COMMON_STATS_H
#define DL2_COMMON_STATS_H

#include "common/error.h"

#include <stddef.h>

struct dl2_summary {
    size_t count;
    double mean, stddev; /* stddev: sample (n - 1); 0 for one value */
    double min, p5, median, p95, max;
};

/* Ascending. */
void dl2_sort(double *values, size_t count);
/* `values` is sorted in place. All zero for no values. */
void dl2_summarize(double *values, size_t count, struct dl2_summary *summary);

/* Linear interpolation between order statistics, as NumPy's default; `sorted` ascending, 0 <= p
 * <= 1. */
double dl2_percentile(const double *sorted, size_t count, double p);

/*
 * Student's t: the probability of a value above `t`, and the value that is exceeded with
 * probability `tail`. `freedom` need not be whole; INFINITY is the normal distribution. To 10
 * digits or better.
 */
double dl2_student_tail(double t, double freedom);
double dl2_student_quantile(double tail, double freedom);

/* Half the width of the two-sided 95% confidence interval of a mean (Student's t). INFINITY
 * below 2. */
double dl2_confidence95(double stddev, size_t count);

#endif
