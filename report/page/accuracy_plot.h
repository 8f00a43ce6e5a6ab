/* SPDX-License-Identifier: BSD-2-Clause */
/* A plot of what accuracy each variant keeps, against any figure. */
#ifndef DL2_REPORT_ACCURACY_PLOT_H
#define DL2_REPORT_ACCURACY_PLOT_H

#include "report/page/parts.h"

/* Which end of the axis is the better one, for a Pareto front. */
enum dl2_accuracy_front { DL2_FRONT_NONE, DL2_FRONT_LOW, DL2_FRONT_HIGH };

struct dl2_accuracy_axis {
    const char *name;     /* of the figure, for files: "bytes" makes accuracy-bytes-ARCH.svg */
    const char *title;    /* "Accuracy against size" */
    const char *label;    /* of the axis, as gnuplot reads it: '' stands for a quote */
    const double *values; /* [variant_count]; variants whose value is not finite are left out */
    bool logarithmic;     /* then only those above 0 are shown */
    enum dl2_accuracy_front front;
};

/* Draws the differences to the original of a network's variants, with the intervals that verdicts
 * go by, as bands along each codec's curve, and rings around those on the Pareto front, if any.
 * Without any difference to show it draws nothing. */
void dl2_accuracy_plot(struct dl2_part_figures *figures, size_t arch,
                       const struct dl2_accuracy_axis *axis);

#endif
