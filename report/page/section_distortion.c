/* SPDX-License-Identifier: BSD-2-Clause */
/* Image quality against size. */
#include "report/page/parts.h"
#include "report/page/sections.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

/* A figure of all variants. */
struct rate_view {
    const struct dl2_study *study;
    size_t field; /* its offset in struct dl2_study_variant */
};

static double value_of(const struct rate_view *view, size_t v)
{
    return *(const double *)((const char *)&view->study->variants[v] + view->field);
}

static bool is_shown(const struct rate_view *view, size_t v)
{
    return isfinite(value_of(view, v)) && isfinite(view->study->variants[v].bits_per_pixel);
}

/* Fixes the frame around all points and places the labels. False where there are none. */
static bool add_frame(struct dl2_plot *plot, const struct rate_view *view)
{
    const struct dl2_study *study = view->study;
    struct dl2_plot_range x = {0, 0, false}, y = {INFINITY, -INFINITY, false};
    for (size_t v = 0; v < study->variant_count; v++)
        if (is_shown(view, v)) {
            x.to = fmax(x.to, 1.05 * study->variants[v].bits_per_pixel);
            y.from = fmin(y.from, value_of(view, v));
            y.to = fmax(y.to, value_of(view, v));
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
        dl2_plot_point(plot, variant->bits_per_pixel, value_of(view, v), joined,
                       variant->quality ? label : variant->name, dl2_part_codec_colour(study, v));
    }
    dl2_plot_labels(plot);
    return true;
}

/* Adds the points of the codec whose first variant is `first`. */
static void add_codec(struct dl2_plot *plot, const struct rate_view *view, size_t first)
{
    const struct dl2_study *study = view->study;
    const size_t end = dl2_study_end_of_codec(study, first);
    struct dl2_curve curve = dl2_part_codec_curve(plot, study, first);
    curve.size = 0.55;
    for (size_t i = first; i < end; i++) {
        const struct dl2_study_variant *variant = &study->variants[i];
        if (is_shown(view, i))
            dl2_curve_point(
                &curve,
                (const double[]){variant->bits_per_pixel, value_of(view, i), variant->quality}, 3,
                variant->name);
    }
    dl2_curve_draw(&curve);
}

void dl2_section_distortion(const struct dl2_page *page, struct dl2_html *html)
{
    static const struct {
        const char *name, *title, *axis;
        size_t field;
    } plots[] = {
        {"rate-psnr", "PSNR against bits per pixel, by codec and quality", "PSNR of RGB, dB",
         offsetof(struct dl2_study_variant, psnr_rgb)},
        {"rate-ssim", "SSIM against bits per pixel, by codec and quality", "SSIM of luma",
         offsetof(struct dl2_study_variant, ssim)},
    };
    const struct dl2_study *study = page->study;
    struct dl2_part_figures figures = {
        .page = page, .html = html, .heading = "Rate and distortion"};
    for (size_t i = 0; i < sizeof plots / sizeof *plots; i++) {
        struct dl2_plot plot;
        dl2_plot_begin(&plot, plots[i].name, plots[i].title, "bits-per-pixel value quality variant",
                       DL2_PLOT_HEIGHT, html->error);
        dl2_plot_axes(&plot, "bits per pixel", plots[i].axis);
        const struct rate_view view = {study, plots[i].field};
        const bool any = add_frame(&plot, &view);
        for (size_t v = 0; any && v < study->variant_count; v++)
            if (dl2_study_starts_codec(study, v))
                add_codec(&plot, &view, v);
        dl2_part_figure(&figures, &plot, NULL);
    }
    dl2_part_figures_end(&figures);
}
