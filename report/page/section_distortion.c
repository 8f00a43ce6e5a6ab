/* SPDX-License-Identifier: BSD-2-Clause */
/* Image quality against size, by every metric: means, and on demand the spread over the images. */
#include "common/json.h"
#include "report/metric_trust.h"
#include "report/page/parts.h"
#include "report/page/sections.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

/* One metric of all variants. */
struct rate_view {
    const struct dl2_page *page;
    size_t metric;
    bool spread; /* percentiles in the place of the mean */
};

/* What is drawn of a variant, by gnuplot's numbers of columns from 4 on. */
enum { LOW, HIGH, LOWER, UPPER, VALUES };

static double value_of(const struct rate_view *view, size_t v, double values[VALUES])
{
    const struct dl2_image_scores *scores = &view->page->scores;
    const struct dl2_score_spread *spread =
        &scores->spreads[v * scores->metrics.count + view->metric];
    values[LOW] = view->spread ? spread->percentiles[0] : spread->low;
    values[HIGH] = view->spread ? spread->percentiles[4] : spread->high;
    values[LOWER] = spread->percentiles[1];
    values[UPPER] = spread->percentiles[3];
    return view->spread ? spread->percentiles[2] : spread->mean;
}

static bool is_shown(const struct rate_view *view, size_t v)
{
    double values[VALUES];
    return isfinite(value_of(view, v, values)) &&
           isfinite(view->page->study->variants[v].bits_per_pixel);
}

/* Fixes the frame around all points and places the labels. False where there are none. */
static bool add_frame(struct dl2_plot *plot, const struct rate_view *view)
{
    const struct dl2_study *study = view->page->study;
    struct dl2_plot_range x = {0, 0, false}, y = {INFINITY, -INFINITY, false};
    double values[VALUES];
    for (size_t v = 0; v < study->variant_count; v++)
        if (is_shown(view, v)) {
            const double value = value_of(view, v, values);
            x.to = fmax(x.to, 1.05 * study->variants[v].bits_per_pixel);
            y.from = fmin(y.from, fmin(value, values[LOW])); /* passes over NAN */
            y.to = fmax(y.to, fmax(value, values[HIGH]));
        }
    if (!(x.to > 0) || !(y.from <= y.to))
        return false;
    const double room = fmax(0.08 * (y.to - y.from), 1e-3 * fabs(y.to));
    y.from -= room;
    y.to += room;
    dl2_part_codec_key(plot, study, 0);
    dl2_plot_frame(plot, &x, &y);
    const char *codec = NULL;
    for (size_t v = 0; v < study->variant_count; v++) {
        const struct dl2_study_variant *variant = &study->variants[v];
        char label[16];
        if (!is_shown(view, v))
            continue;
        const bool joined = codec && strcmp(codec, variant->codec) == 0;
        codec = variant->codec;
        snprintf(label, sizeof label, "%d", variant->quality);
        dl2_plot_point(plot, variant->bits_per_pixel, value_of(view, v, values), joined,
                       variant->quality ? label : variant->name, dl2_part_codec_color(study, v));
    }
    dl2_plot_labels(plot);
    return true;
}

/* Adds the points of the codec whose first variant is `first`. */
static void add_codec(struct dl2_plot *plot, const struct rate_view *view, size_t first)
{
    const struct dl2_study *study = view->page->study;
    struct dl2_curve curve = dl2_part_codec_curve(plot, study, first);
    curve.size = 0.55;
    curve.bars = "1:2:4:5";
    for (size_t i = first; i < dl2_study_end_of_codec(study, first); i++) {
        const struct dl2_study_variant *variant = &study->variants[i];
        double values[VALUES];
        if (!is_shown(view, i))
            continue;
        const double value = value_of(view, i, values);
        dl2_curve_point(&curve,
                        (const double[]){variant->bits_per_pixel, value, variant->quality,
                                         values[LOW], values[HIGH], values[LOWER], values[UPPER]},
                        7, variant->name);
    }
    if (!curve.count)
        return;
    if (view->spread) {
        dl2_plot_curve(plot, "using 1:2:4:5 with yerrorbars linecolor rgb '%s' pointtype 0 notitle",
                       curve.color);
        dl2_plot_curve(plot,
                       "using 1:2:6:7 with yerrorbars linecolor rgb '%s' linewidth 5 pointtype 0 "
                       "notitle",
                       curve.color);
    } else {
        dl2_curve_draw_band(&curve, "1:4:5", 0.25);
    }
    dl2_curve_draw_as(&curve, view->spread ? "points" : "linespoints");
}

static void plot_metric(struct dl2_part_figures *figures, size_t metric, bool spread)
{
    const struct dl2_study *study = figures->page->study;
    const struct dl2_metric_names *metrics = &figures->page->scores.metrics;
    const char *name = metrics->names[metric];
    const char *label = dl2_metric_title(study, name);
    const char *unit = dl2_json_get_text(json_object_get(study->quality, "units"), name, "");
    const struct rate_view view = {figures->page, metric, spread};
    char title[128], axis[128], clean[128];
    snprintf(title, sizeof title, "%s against bits per pixel", label);
    snprintf(axis, sizeof axis, "%s%s%s%s", label, *unit ? ", " : "", unit,
             metrics->lower_is_better[metric] ? " (lower is better)" : "");
    struct dl2_plot plot =
        dl2_plot_begin(title,
                       spread ? "bits-per-pixel median quality p5 p95 p25 p75 variant"
                              : "bits-per-pixel mean quality low high p25 p75 variant",
                       DL2_PLOT_HEIGHT, "%s-%s", spread ? "spread" : "rate", name);
    dl2_plot_axes(&plot, "bits per pixel", dl2_plot_label(axis, clean, sizeof clean));
    const bool any = add_frame(&plot, &view);
    for (size_t v = 0; any && v < study->variant_count; v++)
        if (dl2_study_starts_codec(study, v))
            add_codec(&plot, &view, v);
    dl2_part_figure(figures, &plot, NULL);
}

void dl2_section_distortion(const struct dl2_page *page, json_t *section)
{
    const size_t count = page->scores.metrics.count;
    struct dl2_part_figures means = {
        .page = page,
        .parent = section,
        .note = "Means over the images; bands are their 95% intervals, each image by itself. Where "
                "no scores of single images are there, no band is drawn. Numbers are qualities."};
    dl2_block_set(section, "heading", "Rate and distortion");
    for (size_t m = 0; m < count; m++)
        plot_metric(&means, m, false);
    struct dl2_part_figures spreads = {
        .page = page,
        .parent = section,
        .summary = "Spread over the images: medians, with half of the images in the thick line "
                   "and 90% in the thin one"};
    for (size_t m = 0; m < count && page->scores.count; m++)
        plot_metric(&spreads, m, true);
}
