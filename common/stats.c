/* SPDX-License-Identifier: BSD-2-Clause */
#include "common/stats.h"

#include <math.h>
#include <stdlib.h>

static int compare_doubles(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

double dl2_percentile(const double *sorted, size_t count, double p)
{
    if (count == 0)
        return 0;
    double place = p * (double)(count - 1);
    size_t below = (size_t)place;
    if (below + 1 >= count)
        return sorted[count - 1];
    return sorted[below] + (place - (double)below) * (sorted[below + 1] - sorted[below]);
}

void dl2_summarize(double *values, size_t count, struct dl2_summary *summary)
{
    *summary = (struct dl2_summary){.count = count};
    if (count == 0)
        return;
    qsort(values, count, sizeof *values, compare_doubles);
    double sum = 0;
    for (size_t i = 0; i < count; i++)
        sum += values[i];
    summary->mean = sum / (double)count;
    double squares = 0;
    for (size_t i = 0; i < count; i++)
        squares += (values[i] - summary->mean) * (values[i] - summary->mean);
    summary->stddev = count > 1 ? sqrt(squares / (double)(count - 1)) : 0;
    summary->min = values[0];
    summary->p5 = dl2_percentile(values, count, 0.05);
    summary->median = dl2_percentile(values, count, 0.5);
    summary->p95 = dl2_percentile(values, count, 0.95);
    summary->max = values[count - 1];
}

/* Two-sided 95% quantiles of Student's t; beyond the table the normal's is within 2%. */
static const double student95[] = {0,     12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365,
                                   2.306, 2.262,  2.228, 2.201, 2.179, 2.160, 2.145, 2.131,
                                   2.120, 2.110,  2.101, 2.093, 2.086, 2.080, 2.074, 2.069,
                                   2.064, 2.060,  2.056, 2.052, 2.048, 2.045, 2.042};

double dl2_confidence95(double stddev, size_t count)
{
    if (count < 2)
        return INFINITY;
    size_t freedom = count - 1;
    size_t last = sizeof student95 / sizeof *student95 - 1;
    double t = freedom <= last ? student95[freedom] : 1.96 + 2.4 / (double)freedom;
    return t * stddev / sqrt((double)count);
}
