/* SPDX-License-Identifier: BSD-2-Clause */
#include "report/page/accuracy_plot.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

/* What is drawn of one network. */
struct accuracy_view {
    const struct dl2_study *study;
    const struct dl2_analysis *analysis;
    const struct dl2_accuracy_axis *axis;
    size_t raw;
};

/* The original is at 0, without an interval of its own. */
static double difference_of(const struct accuracy_view *view, size_t v)
{
    const struct dl2_comparison *comparison = &view->analysis->comparisons[v];
    if (v == view->raw)
        return comparison->top1.count ? 0 : NAN;
    return comparison->difference;
}

static double half_of(const struct accuracy_view *view, size_t v)
{
    const double half = v == view->raw ? NAN : dl2_comparison_half(&view->analysis->comparisons[v]);
    return isfinite(half) ? half : NAN;
}

static bool is_shown(const struct accuracy_view *view, size_t v)
{
    const double x = view->axis->values[v];
    return isfinite(x) && (x > 0 || !view->axis->logarithmic) && isfinite(difference_of(view, v));
}

/* Ranges that hold all points and intervals, with some room. */
static void find_ranges(const struct accuracy_view *view, struct dl2_plot_range *x,
                        struct dl2_plot_range *y)
{
    *x = (struct dl2_plot_range){INFINITY, -INFINITY, view->axis->logarithmic};
    *y = (struct dl2_plot_range){-view->analysis->question.tolerance, 0, false};
    for (size_t v = 0; v < view->study->variant_count; v++) {
        if (!is_shown(view, v))
            continue;
        const double difference = difference_of(view, v);
        const double half = isfinite(half_of(view, v)) ? half_of(view, v) : 0;
        x->from = fmin(x->from, view->axis->values[v]);
        x->to = fmax(x->to, view->axis->values[v]);
        y->from = fmin(y->from, difference - half);
        y->to = fmax(y->to, difference + half);
    }
    if (x->logarithmic) {
        const double room = fmax(1.1, pow(x->to / x->from, 0.06));
        x->from /= room;
        x->to *= room;
    } else {
        const double room = fmax(0.06 * (x->to - x->from), 0.001 * fabs(x->to));
        x->from -= room > 0 ? room : 1;
        x->to += room > 0 ? room : 1;
    }
    const double room = fmax(0.06 * (y->to - y->from), 0.1);
    y->from -= room;
    y->to += room;
}

/* Can the codec's intervals be a band: are its points two or more, in the order of x? */
static bool makes_band(const struct accuracy_view *view, size_t first, size_t end)
{
    size_t count = 0, rises = 0, falls = 0;
    double last = NAN;
    for (size_t v = first; v < end; v++) {
        if (!is_shown(view, v) || !isfinite(half_of(view, v)))
            continue;
        count++;
        rises += view->axis->values[v] > last;
        falls += view->axis->values[v] < last;
        last = view->axis->values[v];
    }
    return count > 1 && (rises == count - 1 || falls == count - 1);
}

static void add_codec(struct dl2_plot *plot, const struct accuracy_view *view, size_t first)
{
    const size_t end = dl2_study_end_of_codec(view->study, first);
    const bool raw = first == view->raw;
    const char *codec = view->study->variants[first].codec;
    char clean[256];
    struct dl2_curve curve = {.plot = plot,
                              .name = codec,
                              .colour = dl2_part_codec_colour(view->study, first),
                              .bars = "1:2:3"};
    for (size_t v = first; v < end; v++)
        if (is_shown(view, v))
            dl2_curve_point(&curve,
                            (const double[]){view->axis->values[v], difference_of(view, v),
                                             half_of(view, v), view->study->variants[v].quality},
                            4, view->study->variants[v].name);
    if (!curve.count)
        return;
    if (makes_band(view, first, end))
        dl2_plot_curve(plot,
                       "using 1:($2-$3):($2+$3) with filledcurves linecolor rgb '%s' fillstyle "
                       "transparent solid 0.16 noborder notitle",
                       curve.colour);
    else
        dl2_curve_draw_bars(&curve);
    dl2_plot_curve(plot,
                   "using 1:2 with %s linecolor rgb '%s' %s pointtype 7 pointsize 0.6 title '%s'",
                   raw ? "points" : "linespoints", curve.colour, raw ? "" : "linewidth 2",
                   raw ? "original" : dl2_plot_plain(codec, clean, sizeof clean));
}

/* Labels are qualities, or names where a codec has none, in the codec's colour. */
static void add_labels(struct dl2_plot *plot, const struct accuracy_view *view)
{
    const char *codec = NULL;
    for (size_t v = 0; v < view->study->variant_count; v++) {
        const struct dl2_study_variant *variant = &view->study->variants[v];
        char label[32];
        if (!is_shown(view, v))
            continue;
        const bool joined = codec && strcmp(codec, variant->codec) == 0;
        codec = variant->codec;
        snprintf(label, sizeof label, "%d", variant->quality);
        dl2_plot_point(plot, view->axis->values[v], difference_of(view, v), joined,
                       v == view->raw     ? NULL
                       : variant->quality ? label
                                          : variant->name,
                       dl2_part_codec_colour(view->study, v));
    }
    dl2_plot_labels(plot);
}

void dl2_accuracy_plot(struct dl2_part_figures *figures, size_t arch,
                       const struct dl2_accuracy_axis *axis)
{
    const struct dl2_page *page = figures->page;
    const struct accuracy_view view = {page->study, &page->analyses[arch], axis,
                                       dl2_study_find(page->study, "raw")};
    size_t shown = 0;
    for (size_t v = 0; v < page->study->variant_count; v++)
        shown += v != view.raw && is_shown(&view, v);
    if (!shown)
        return;
    char name[256];
    snprintf(name, sizeof name, "accuracy-%s-%s", axis->name, page->study->archs[arch]);
    struct dl2_plot plot;
    dl2_plot_begin(&plot, name, axis->title,
                   "x difference-in-points half-width-of-95%-interval quality variant",
                   DL2_PLOT_HEIGHT, figures->html->error);
    struct dl2_plot_range x, y;
    find_ranges(&view, &x, &y);
    dl2_plot_axes(&plot, axis->label, "top-1, points to the original");
    dl2_plot_frame(&plot, &x, &y);
    if (x.logarithmic)
        dl2_plot_script(&plot,
                        "set xtics (0.1, 0.2, 0.5, 1, 2, 5, 10, 20, 50, 100, 200, 500, 1000)\n");
    dl2_curve_reference(&plot, 'y', 0, -view.analysis->question.tolerance);
    add_labels(&plot, &view);
    for (size_t v = 0; v < page->study->variant_count; v++)
        if (v == view.raw || dl2_study_starts_codec(page->study, v))
            add_codec(&plot, &view, v);
    dl2_part_figure(figures, &plot, dl2_part_arch(page, arch));
}
