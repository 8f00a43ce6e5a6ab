/* SPDX-License-Identifier: BSD-2-Clause */
#include "report/bd_rate.h"

void dl2_bd_add(struct dl2_bd_curve *curve, double quality, double size)
{
    dl2_bd_add_log(curve, quality, size > 0 ? log(size) : NAN);
}

void dl2_bd_add_log(struct dl2_bd_curve *curve, double quality, double log_size)
{
    size_t at = 0;
    if (!isfinite(quality) || !isfinite(log_size))
        return;
    while (at < curve->count && curve->quality[at] < quality)
        at++;
    if (at < curve->count && curve->quality[at] == quality) {
        curve->log_size[at] = fmin(curve->log_size[at], log_size);
        return;
    }
    if (curve->count == DL2_BD_POINTS)
        return;
    for (size_t i = curve->count++; i > at; i--) {
        curve->quality[i] = curve->quality[i - 1];
        curve->log_size[i] = curve->log_size[i - 1];
    }
    curve->quality[at] = quality;
    curve->log_size[at] = log_size;
}

/* The slope at an end, by three points, without overshoot. */
static double end_slope(double h0, double h1, double s0, double s1)
{
    const double slope = ((2 * h0 + h1) * s0 - h0 * s1) / (h0 + h1);
    if (slope * s0 <= 0)
        return 0;
    return s0 * s1 < 0 && fabs(slope) > 3 * fabs(s0) ? 3 * s0 : slope;
}

static void find_slopes(const struct dl2_bd_curve *curve, double slopes[DL2_BD_POINTS])
{
    const size_t last = curve->count - 1;
    double width[DL2_BD_POINTS], secant[DL2_BD_POINTS];
    for (size_t i = 0; i < last; i++) {
        width[i] = curve->quality[i + 1] - curve->quality[i];
        secant[i] = (curve->log_size[i + 1] - curve->log_size[i]) / width[i];
    }
    if (last == 1) {
        slopes[0] = slopes[1] = secant[0];
        return;
    }
    slopes[0] = end_slope(width[0], width[1], secant[0], secant[1]);
    slopes[last] = end_slope(width[last - 1], width[last - 2], secant[last - 1], secant[last - 2]);
    for (size_t i = 1; i < last; i++) { /* the weighted harmonic mean of both secants */
        const double a = 2 * width[i] + width[i - 1], b = width[i] + 2 * width[i - 1];
        slopes[i] =
            secant[i - 1] * secant[i] > 0 ? (a + b) / (a / secant[i - 1] + b / secant[i]) : 0;
    }
}

/* The integral of a piece of cubic from its left end to the share t of its width. */
static double piece_integral(double width, double y0, double y1, double d0, double d1, double t)
{
    const double t2 = t * t, t3 = t2 * t, t4 = t2 * t2;
    return width * (y0 * (t4 / 2 - t3 + t) + y1 * (t3 - t4 / 2) +
                    width * (d0 * (t4 / 4 - 2 * t3 / 3 + t2 / 2) + d1 * (t4 / 4 - t3 / 3)));
}

/* The integral of the curve's log size over [low, high], which lies within its qualities. */
static double integral(const struct dl2_bd_curve *curve, double low, double high)
{
    double slopes[DL2_BD_POINTS], sum = 0;
    find_slopes(curve, slopes);
    for (size_t i = 0; i + 1 < curve->count; i++) {
        const double x0 = curve->quality[i], x1 = curve->quality[i + 1];
        const double a = fmax(x0, low), b = fmin(x1, high);
        if (!(b > a))
            continue;
        const double ends[2] = {(a - x0) / (x1 - x0), (b - x0) / (x1 - x0)};
        for (int end = 0; end < 2; end++)
            sum +=
                (end ? 1 : -1) * piece_integral(x1 - x0, curve->log_size[i], curve->log_size[i + 1],
                                                slopes[i], slopes[i + 1], ends[end]);
    }
    return sum;
}

double dl2_bd_log_ratio(const struct dl2_bd_curve *own, const struct dl2_bd_curve *anchor,
                        const struct dl2_bd_range *range, double *overlap)
{
    *overlap = 0;
    if (own->count < 2 || anchor->count < 2)
        return NAN;
    const double own_low = own->quality[0], own_high = own->quality[own->count - 1];
    const double anchor_low = anchor->quality[0];
    const double anchor_high = anchor->quality[anchor->count - 1];
    const double low = fmax(fmax(own_low, anchor_low), range->low);
    const double high = fmin(fmin(own_high, anchor_high), range->high);
    const double least = fmax(fmin(own_low, anchor_low), range->low);
    const double most = fmin(fmax(own_high, anchor_high), range->high);
    if (!(high > low))
        return NAN;
    *overlap = (high - low) / (most - least);
    return (integral(own, low, high) - integral(anchor, low, high)) / (high - low);
}
