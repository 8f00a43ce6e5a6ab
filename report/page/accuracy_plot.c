/* SPDX-License-Identifier: BSD-2-Clause */
#include "report/page/accuracy_plot.h"

#include "common/scope.h"
#include "report/analysis.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

/* What is drawn of one network. */
struct accuracy_view {
    const struct dl2_study *study;
    const struct dl2_analysis *analysis;
    const struct dl2_accuracy_axis *axis;
    size_t raw;
    double opacity; /* of bands: less where there are many */
};

static double difference_of(const struct accuracy_view *view, size_t v)
{
    return dl2_pareto_gain(view->study, view->analysis, v);
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
    const double room =
        fmax(0.06 * (y->to - y->from), 0.1 * pow(10, -view->analysis->kind->digits));
    y->from -= room;
    y->to += room;
}

static void add_codec(struct dl2_plot *plot, const struct accuracy_view *view, size_t first)
{
    const size_t end = dl2_study_end_of_codec(view->study, first);
    const bool raw = first == view->raw;
    struct dl2_curve curve = dl2_part_codec_curve(plot, view->study, first);
    curve.title = raw ? "original" : NULL;
    curve.bars = "1:2:3";
    for (size_t v = first; v < end; v++)
        if (is_shown(view, v))
            dl2_curve_point(&curve,
                            (const double[]){view->axis->values[v], difference_of(view, v),
                                             half_of(view, v), view->study->variants[v].quality},
                            4, view->study->variants[v].name);
    if (!curve.count)
        return;
    dl2_curve_draw_band(&curve, "1:($2-$3):($2+$3)", view->opacity);
    dl2_curve_draw_as(&curve, raw ? "points" : "linespoints");
}

/* Rings around the front's points, and its edge. */
static void add_front(struct dl2_plot *plot, const struct accuracy_view *view)
{
    const size_t count = view->study->variant_count;
    DL2_AUTO_FREE double *costs = dl2_room(count, sizeof *costs, "%zu variants", count);
    DL2_AUTO_FREE bool *front = dl2_room(count, sizeof *front, "%zu variants", count);
    struct dl2_curve curve = {.plot = plot, .name = "Pareto front", .color = DL2_PLOT_INK};
    for (size_t v = 0; v < count; v++)
        costs[v] = !is_shown(view, v)                    ? NAN
                   : view->axis->front == DL2_FRONT_HIGH ? -view->axis->values[v]
                                                         : view->axis->values[v];
    dl2_pareto_find(view->study, view->analysis, costs, front);
    for (double last = -INFINITY;;) { /* by rising costs */
        size_t next = count;
        for (size_t v = 0; v < count; v++)
            if (front[v] && (next == count || costs[v] < costs[next]))
                next = v;
        if (next == count)
            break;
        front[next] = false;
        if (costs[next] > last)
            dl2_curve_point(&curve,
                            (const double[]){view->axis->values[next], difference_of(view, next)},
                            2, view->study->variants[next].name);
        last = costs[next];
    }
    if (curve.count)
        dl2_plot_curve(plot,
                       "using 1:2 with steps linecolor rgb '" DL2_PLOT_SOFT_INK
                       "' linewidth 1 notitle, '' index %zu using 1:2 with points linecolor rgb "
                       "'" DL2_PLOT_INK "' linewidth 1.3 pointtype 6 pointsize 1.25 title "
                       "'Pareto front'",
                       plot->blocks - 1);
}

/* Labels are qualities, or names where a codec has none, in the codec's color. */
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
                       dl2_part_codec_color(view->study, v));
    }
    dl2_plot_labels(plot);
}

void dl2_accuracy_plot(struct dl2_part_figures *figures, size_t arch,
                       const struct dl2_accuracy_axis *axis)
{
    const struct dl2_page *page = figures->page;
    struct accuracy_view view = {page->study, &page->analyses[arch], axis,
                                 dl2_study_find(page->study, "raw"), 0};
    size_t shown = 0, curves = 0;
    for (size_t v = 0; v < page->study->variant_count; v++) {
        shown += v != view.raw && is_shown(&view, v);
        curves += dl2_study_starts_codec(page->study, v);
    }
    if (!shown)
        return;
    view.opacity = curves > 3 ? 0.48 / (double)curves : 0.16;
    struct dl2_plot plot =
        dl2_plot_begin(axis->title, "x difference half-width-of-95%-interval quality variant",
                       DL2_PLOT_HEIGHT, "accuracy-%s-%s", axis->name, page->study->archs[arch]);
    struct dl2_plot_range x, y;
    find_ranges(&view, &x, &y);
    dl2_part_codec_key(&plot, page->study, axis->front != DL2_FRONT_NONE ? 2 : 1);
    char label[128];
    dl2_plot_axes(
        &plot, axis->label,
        dl2_plot_label(dl2_accuracy_words(view.analysis->kind, "accuracy, points to the original"),
                       label, sizeof label));
    dl2_plot_frame(&plot, &x, &y);
    if (x.logarithmic)
        dl2_plot_script(&plot,
                        "set xtics (0.1, 0.2, 0.5, 1, 2, 5, 10, 20, 50, 100, 200, 500, 1000)\n");
    dl2_curve_reference(&plot, 'y', 0, -view.analysis->question.tolerance);
    add_labels(&plot, &view);
    for (size_t v = 0; v < page->study->variant_count; v++)
        if (v == view.raw || dl2_study_starts_codec(page->study, v))
            add_codec(&plot, &view, v);
    if (axis->front != DL2_FRONT_NONE)
        add_front(&plot, &view);
    dl2_part_figure(figures, &plot, dl2_part_arch(page, arch));
}
