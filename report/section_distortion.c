/* SPDX-License-Identifier: BSD-2-Clause */
/* Image quality against size. */
#include "report/parts.h"
#include "report/sections.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

/* Adds the points of the codec whose first variant is `first`. */
static void add_codec(struct dl2_plot *plot, const struct dl2_study *study, size_t first,
                      size_t field, size_t *codecs)
{
    const char *codec = study->variants[first].codec;
    char clean[256];
    size_t count = 0;
    for (size_t i = first; i < study->variant_count; i++) {
        const struct dl2_study_variant *variant = &study->variants[i];
        if (strcmp(variant->codec, codec) != 0)
            break;
        const double value = *(const double *)((const char *)variant + field);
        if (!isfinite(value) || !isfinite(variant->bits_per_pixel))
            continue;
        if (count++ == 0)
            dl2_plot_block(plot, codec);
        dl2_plot_number(plot, variant->bits_per_pixel);
        dl2_plot_number(plot, value);
        dl2_plot_data(plot, "%d %s\n", variant->quality,
                      dl2_plot_plain(variant->name, clean, sizeof clean));
    }
    if (!count)
        return;
    dl2_plot_curve(plot,
                   "using 1:2 with linespoints linecolor rgb '%s' linewidth 2 pointtype 7 "
                   "pointsize 0.55 title '%s'",
                   dl2_plot_codec_colour(codec, (*codecs)++),
                   dl2_plot_plain(codec, clean, sizeof clean));
    dl2_plot_curve(plot, "using 1:2:3 with labels right offset -0.4,0.6 font ',10' textcolor "
                         "rgb '" DL2_PLOT_SOFT_INK "' notitle");
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
        dl2_plot_script(&plot, "set xrange [0:*]\n");
        for (size_t v = 0, codecs = 0; v < study->variant_count; v++)
            if (dl2_study_starts_codec(study, v))
                add_codec(&plot, study, v, plots[i].field, &codecs);
        dl2_part_figure(&figures, &plot, NULL);
    }
    dl2_part_figures_end(&figures);
}
