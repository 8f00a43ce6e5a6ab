/* SPDX-License-Identifier: BSD-2-Clause */
#include "report/page/curve.h"

#include <math.h>

void dl2_curve_point(struct dl2_curve *curve, const double *numbers, size_t count, const char *note)
{
    char clean[256];
    if (curve->count++ == 0)
        dl2_plot_block(curve->plot, curve->name);
    curve->rises += curve->count > 1 && numbers[0] > curve->last;
    curve->falls += curve->count > 1 && numbers[0] < curve->last;
    curve->last = numbers[0];
    for (size_t i = 0; i < count; i++)
        dl2_plot_number(curve->plot, numbers[i]);
    dl2_plot_data(curve->plot, "%s\n", note ? dl2_plot_plain(note, clean, sizeof clean) : "");
    curve->intervals |= curve->bars && isfinite(numbers[2]);
}

static void draw_bars(const struct dl2_curve *curve)
{
    if (curve->intervals)
        dl2_plot_curve(curve->plot,
                       "using %s with yerrorbars linecolor rgb '%s' linewidth 1 pointtype 0 "
                       "notitle",
                       curve->bars, curve->colour);
}

void dl2_curve_draw_band(const struct dl2_curve *curve, const char *columns, double opacity)
{
    const size_t steps = curve->count - 1;
    if (curve->intervals && steps && (curve->rises == steps || curve->falls == steps))
        dl2_plot_curve(curve->plot,
                       "using %s with filledcurves linecolor rgb '%s' fillstyle transparent solid "
                       "%.2f noborder notitle",
                       columns, curve->colour, opacity);
    else
        draw_bars(curve);
}

void dl2_curve_draw_as(const struct dl2_curve *curve, const char *style)
{
    char clean[256];
    dl2_plot_curve(curve->plot,
                   "using %s with %s linecolor rgb '%s' linewidth 2 %s%s pointtype %d "
                   "pointsize %g title '%s'",
                   curve->columns ? curve->columns : "1:2", style, curve->colour,
                   curve->dash ? "dashtype " : "", curve->dash ? curve->dash : "",
                   curve->point ? curve->point : 7, curve->size > 0 ? curve->size : 0.6,
                   curve->title ? curve->title : dl2_plot_plain(curve->name, clean, sizeof clean));
}

void dl2_curve_draw(const struct dl2_curve *curve)
{
    if (!curve->count)
        return;
    draw_bars(curve); /* first: gnuplot clears the line below each bar's point */
    dl2_curve_draw_as(curve, "linespoints");
}

void dl2_curve_reference(struct dl2_plot *plot, char axis, double at, double from)
{
    const char *before = axis == 'y' ? "graph 0, " : "", *after = axis == 'y' ? "" : ", graph 0";
    const char *before_end = axis == 'y' ? "graph 1, " : "";
    const char *after_end = axis == 'y' ? "" : ", graph 1";
    if (isfinite(from)) {
        dl2_plot_script(plot,
                        "set arrow 2 from %sfirst %.8g%s to %sfirst %.8g%s nohead dashtype (2,3) "
                        "linecolor rgb '" DL2_PLOT_GREEN "' # the tolerance\n",
                        before, from, after, before_end, from, after_end);
        dl2_plot_script(plot,
                        "set object 1 rectangle from %sfirst %.8g%s to %sfirst %.8g%s behind "
                        "fillcolor rgb '" DL2_PLOT_BAND
                        "' fillstyle solid noborder # the tolerance\n",
                        before, from, after, before_end, at, after_end);
    }
    dl2_plot_script(plot,
                    "set arrow 1 from %sfirst %.8g%s to %sfirst %.8g%s nohead dashtype (6,4) "
                    "linecolor rgb '" DL2_PLOT_AXIS "' # the original\n",
                    before, at, after, before_end, at, after_end);
}
