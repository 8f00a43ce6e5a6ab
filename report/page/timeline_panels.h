/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Samples over time, drawn as panels one above the other: one for each unit.
 *
 *     struct dl2_plot plot = dl2_plot_begin("...", DL2_TIMELINE_COLUMNS, 0, "timeline");
 *     dl2_plot_block(&plot, "samples");
 *     double most[DL2_TIMELINE_CURVES] = ...;   the largest value of each; -INFINITY: it has none
 *     dl2_timeline_row(&plot, time, values, most);   ... any number
 *     dl2_timeline_draw(&plot, most, &span, 0);
 *     dl2_plot_script(&plot, "unset multiplot");
 */
#ifndef DL2_REPORT_TIMELINE_PANELS_H
#define DL2_REPORT_TIMELINE_PANELS_H

#include "report/page/plot.h"
#include "report/timeline.h"

enum { DL2_TIMELINE_CURVES = 13 };

/* What the columns of the data behind the time are. */
const struct dl2_timeline_figure *dl2_timeline_curve(size_t c);

#define DL2_TIMELINE_COLUMNS                                                                       \
    "time images/s process-% machine-% server-% card-% waiting-% process-GB card-GB "              \
    "received-MB/s sent-MB/s read-MB/s written-MB/s power-W"

/* The time axis, from 0 to `end` seconds; its unit is that of the data. */
struct dl2_timeline_span {
    double end, unit; /* unit: seconds */
    const char *label;
};
struct dl2_timeline_span dl2_timeline_span(double end);

/* A row of the data, NAN where a value is not known; raises most[]. */
void dl2_timeline_row(struct dl2_plot *plot, double time, const double values[DL2_TIMELINE_CURVES],
                      double most[DL2_TIMELINE_CURVES]);

/* Sets the plot's height and draws the panels that have values, `above` pixels below the upper
 * edge. The plot is a multiplot then, which the caller ends. */
void dl2_timeline_draw(struct dl2_plot *plot, const double most[DL2_TIMELINE_CURVES],
                       const struct dl2_timeline_span *span, int above);

#endif
