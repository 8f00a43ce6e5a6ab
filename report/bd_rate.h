/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Bjontegaard's comparison of two curves of size over quality: the logarithm of the size is
 * interpolated over the quality, and its mean difference is taken over the qualities that both
 * curves have, never beyond. Interpolation is PCHIP (Fritsch and Butland 1984, as in SciPy), which
 * does not overshoot.
 *
 * A quality is any finite number that rises as it gets better; a size any number above 0, such as
 * bytes or seconds.
 */
#ifndef DL2_REPORT_BD_RATE_H
#define DL2_REPORT_BD_RATE_H

#include <math.h>
#include <stddef.h>

enum { DL2_BD_POINTS = 256 };

/* Log sizes by rising quality. */
struct dl2_bd_curve {
    size_t count;
    double quality[DL2_BD_POINTS], log_size[DL2_BD_POINTS];
};

/* Adds a point. One without a finite quality or without a size adds none; of points of one quality
 * the smallest size counts; those beyond DL2_BD_POINTS are left out. */
void dl2_bd_add(struct dl2_bd_curve *curve, double quality, double size);

/* The same of a size whose logarithm is known. */
void dl2_bd_add_log(struct dl2_bd_curve *curve, double quality, double log_size);

/* Qualities to compare at. */
struct dl2_bd_range {
    double low, high;
};
#define DL2_BD_EVERYWHERE                                                                          \
    (struct dl2_bd_range)                                                                          \
    {                                                                                              \
        -INFINITY, INFINITY                                                                        \
    }

/* The mean of log(own size / anchor's size) over the range's part that both curves cover; NAN if
 * there is none, or a curve has fewer than two points. *overlap is that part's share of what either
 * curve covers of the range, 0 to 1. */
double dl2_bd_log_ratio(const struct dl2_bd_curve *own, const struct dl2_bd_curve *anchor,
                        const struct dl2_bd_range *range, double *overlap);

#endif
