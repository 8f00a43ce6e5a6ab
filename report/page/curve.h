/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A curve of a plot, with or without intervals:
 *
 *     struct dl2_curve curve = {.plot = &plot, .name = "jpeg", .colour = colour, .bars = "1:2:3"};
 *     dl2_curve_point(&curve, (const double[]){x, y, half}, 3, "jpeg-50");   ... any number
 *     dl2_curve_draw(&curve);
 *
 * Its points are a block of the data, a line each. Without a point nothing is drawn.
 */
#ifndef DL2_REPORT_CURVE_H
#define DL2_REPORT_CURVE_H

#include "report/page/plot.h"

struct dl2_curve {
    struct dl2_plot *plot;
    const char *name;  /* of the block */
    const char *title; /* in the plot's key, as gnuplot reads it; NULL: the name */
    const char *colour;
    const char *columns; /* of the points; NULL: "1:2" */
    const char *bars;    /* columns of the intervals, which a point has where its third number is
                          * finite; NULL: the curve has none */
    double size;         /* of points; 0: 0.6 */
    const char *dash;    /* "(6,4)"; NULL: a solid line */
    int point;           /* gnuplot's type of points; 0: 7, a disc */
    size_t count;        /* of its points */
    size_t rises, falls; /* of x from point to point */
    double last;         /* x */
    bool intervals;      /* has any of them one? */
};

/* `note` ends the line of the data: what the point is of; or NULL. */
void dl2_curve_point(struct dl2_curve *curve, const double *numbers, size_t count,
                     const char *note);
/* Draws the intervals as a band between two columns ("1:4:5") if x rises, or falls, from point to
 * point; as bars otherwise. */
void dl2_curve_draw_band(const struct dl2_curve *curve, const char *columns, double opacity);
/* Draws points, and the line that joins them; "points" or "linespoints". */
void dl2_curve_draw_as(const struct dl2_curve *curve, const char *style);
/* Draws intervals, points and the line that joins them. */
void dl2_curve_draw(const struct dl2_curve *curve);

/* What curves are compared with: a dashed line at `at`, and the tolerance from `from` to there
 * (NAN: none), shaded. On the axis of x or y. */
void dl2_curve_reference(struct dl2_plot *plot, char axis, double at, double from);

#endif
