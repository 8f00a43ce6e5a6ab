/* SPDX-License-Identifier: BSD-2-Clause */
#include "common/stats.h"

#include <math.h>
#include <stdlib.h>

static int compare_doubles(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

void dl2_sort(double *values, size_t count)
{
    if (count)
        qsort(values, count, sizeof *values, compare_doubles);
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
    dl2_sort(values, count);
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

/*
 * The continued fraction of the regularized incomplete beta function I_x(a, b), by Lentz's method:
 * https://dlmf.nist.gov/8.17#E22. It converges fast for x < (a + 1) / (a + b + 2).
 */
static double beta_fraction(double x, double a, double b)
{
    double value = 1, above = 1, below = 0;
    for (int step = 1; step < 10000; step++) {
        const double m = step / 2;
        const double term = step % 2 ? -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1))
                                     : m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m));
        below = 1 / (1 + term * below);
        above = 1 + term / above;
        value *= above * below;
        if (fabs(above * below - 1) < 1e-15)
            break;
    }
    return 1 / value;
}

/* log(gamma(a + 1/2) / gamma(a)); the difference of two large logarithms would lose digits. */
static double log_gamma_step(double a)
{
    int sign;
    if (a < 100)
        return lgamma_r(a + 0.5, &sign) - lgamma_r(a, &sign);
    return log(a) / 2 - 1 / (8 * a) + 1 / (192 * a * a * a);
}

double dl2_student_tail(double t, double freedom)
{
    if (isinf(freedom))
        return erfc(t / sqrt(2)) / 2;
    const double a = freedom / 2, x = freedom / (freedom + t * t), rest = t * t / (freedom + t * t);
    const double front =
        exp(log_gamma_step(a) + a * (rest < 0.5 ? log1p(-rest) : log(x))) * sqrt(rest / M_PI);
    double tail;
    if (x < (a + 1) / (a + 2.5))
        tail = front * beta_fraction(x, a, 0.5) / a / 2;
    else
        tail = 0.5 - front * beta_fraction(rest, 0.5, a);
    return t < 0 ? 1 - tail : tail;
}

static double student_density(double t, double freedom)
{
    if (isinf(freedom))
        return exp(-t * t / 2) / sqrt(2 * M_PI);
    return exp(log_gamma_step(freedom / 2) - (freedom + 1) / 2 * log1p(t * t / freedom)) /
           sqrt(freedom * M_PI);
}

/* Newton's steps from 0: the tail is convex there, so that no step passes the root. */
double dl2_student_quantile(double tail, double freedom)
{
    if (!(tail > 0 && tail < 1) || !(freedom > 0))
        return tail == 0 ? INFINITY : NAN;
    if (tail > 0.5)
        return -dl2_student_quantile(1 - tail, freedom);
    double t = 0;
    for (int i = 0; i < 2000; i++) {
        const double step = (dl2_student_tail(t, freedom) - tail) / student_density(t, freedom);
        t += step;
        if (!(step > 1e-12 * t))
            break;
    }
    return t;
}

double dl2_confidence95(double stddev, size_t count)
{
    if (count < 2)
        return INFINITY;
    return dl2_student_quantile(0.025, (double)count - 1) * stddev / sqrt((double)count);
}
