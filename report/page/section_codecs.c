/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Codecs compared with the first one: size at equal image quality, and what encoding and loading
 * take (make study-codec).
 */
#include "common/json.h"
#include "report/page/parts.h"
#include "report/page/sections.h"

#include <math.h>
#include <string.h>

static void write_range(struct dl2_html *html, double least, double most, int digits)
{
    char low[32], high[32];
    if (!(most >= least)) {
        dl2_html_element(html, "td", "–");
        return;
    }
    dl2_part_fixed(least, digits, low);
    dl2_part_fixed(most, digits, high);
    if (strcmp(low, high) != 0)
        dl2_html_element(html, "td", "%s to %s", low, high);
    else
        dl2_html_element(html, "td", "%s", low);
}

static void write_codec(struct dl2_table *table, const struct dl2_study *study, size_t first)
{
    struct dl2_html *html = table->html;
    const size_t end = dl2_study_end_of_codec(study, first);
    dl2_table_row(table, study->variants[first].codec);
    double encoding[2] = {INFINITY, -INFINITY}, loading[2] = {INFINITY, -INFINITY};
    for (size_t v = first; v < end; v++) {
        const struct dl2_study_variant *variant = &study->variants[v];
        const double each = 1000 * variant->encode_seconds / variant->images;
        if (isfinite(each)) {
            encoding[0] = fmin(encoding[0], each);
            encoding[1] = fmax(encoding[1], each);
        }
        if (isfinite(variant->load_rate)) {
            loading[0] = fmin(loading[0], variant->load_rate);
            loading[1] = fmax(loading[1], variant->load_rate);
        }
    }
    write_range(html, encoding[0], encoding[1], 1);
    write_range(html, loading[0], loading[1], 0);
}

static void plot_loading(struct dl2_part_figures *figures)
{
    const struct dl2_study *study = figures->page->study;
    struct dl2_plot plot;
    dl2_plot_begin(&plot, "loading-codecs", "Loading speed against size",
                   "bits-per-pixel images-a-second-and-core quality variant", DL2_PLOT_HEIGHT,
                   figures->html->error);
    dl2_plot_axes(&plot, "bits per pixel", "images a second and core (logarithmic)");
    dl2_part_codec_key(&plot, study, 0);
    dl2_plot_script(&plot, "set xrange [0:*]\nset logscale y\nset offsets 0, graph 0.05, 0, 0\n");
    for (size_t v = 0, end; v < study->variant_count; v = end) {
        end = dl2_study_end_of_codec(study, v);
        if (!dl2_study_starts_codec(study, v))
            continue;
        struct dl2_curve curve = dl2_part_codec_curve(&plot, study, v);
        for (size_t i = v; i < end; i++) {
            const struct dl2_study_variant *variant = &study->variants[i];
            if (isfinite(variant->bits_per_pixel) && variant->load_rate > 0)
                dl2_curve_point(
                    &curve,
                    (const double[]){variant->bits_per_pixel, variant->load_rate, variant->quality},
                    3, variant->name);
        }
        dl2_curve_draw(&curve);
    }
    dl2_part_figure(figures, &plot, NULL);
}

static void write_percent(struct dl2_html *html, double value, int digits)
{
    char text[32];
    dl2_html_element(html, "td", "%s%s", dl2_part_fixed(value, digits, text),
                     isfinite(value) ? " %" : "");
}

/* Below this, what is compared is a small part of what the codecs were tried at. */
enum { LEAST_OVERLAP = 75 };

static void write_sizes(struct dl2_html *html, const struct dl2_page *page)
{
    const struct dl2_study *study = page->study;
    const struct dl2_metric_names *metrics = &page->sizes->metrics;
    struct dl2_table table = {.html = html};
    size_t narrow = 0, left_out = 0;
    dl2_table_heads(
        &table, "codec|<metric|per image\n(95% interval)|images that\nare smaller|"
                "images|pooled\n(95% interval)|encoding\ntime|loading\ntime|qualities\nin common");
    for (size_t v = 0; v < study->variant_count; v++)
        for (size_t m = 0; m < metrics->count; m++) {
            const struct dl2_codec_size *size = dl2_codec_size_at(study, page->sizes, m, v);
            if (!size)
                continue;
            if (!table.rows)
                dl2_html_element(html, "h3", "Size at equal quality, of %s",
                                 study->variants[page->sizes->anchor].codec);
            dl2_table_row(&table, study->variants[v].codec);
            dl2_html_element(
                html, "td class='l'", "%s",
                dl2_json_get_text(study->metric_titles, metrics->names[m], metrics->names[m]));
            dl2_part_percent_cell(html, size->per_image, size->low, size->high);
            write_percent(html, size->smaller, 0);
            dl2_html_element(html, "td", "%zu", size->images);
            dl2_part_percent_cell(html, size->pooled, size->pooled_low, size->pooled_high);
            write_percent(html, size->encoding, 0);
            write_percent(html, size->loading, 0);
            write_percent(html, size->overlap, 0);
            narrow += size->overlap < LEAST_OVERLAP;
            left_out = size->left_out > left_out ? size->left_out : left_out;
        }
    dl2_table_end(&table);
    if (!table.rows)
        return;
    dl2_html_markup(html, "<p class='note'>");
    if (narrow)
        dl2_html_format(
            html,
            "Warning: in %zu row%s the codecs have less than %d%% of their qualities in "
            "common, and the size speaks of these alone; more qualities of each codec "
            "would tell more. ",
            narrow, narrow == 1 ? "" : "s", LEAST_OVERLAP);
    dl2_html_markup(html,
                    "Bjontegaard's comparison, as a size: BD-rate is this less 100 %. The "
                    "logarithm of the size is interpolated over the quality (PCHIP; SSIM and "
                    "MS-SSIM in dB) and compared over the qualities that both codecs have. Per "
                    "image: the mean of every image's own comparison. Pooled: one comparison of "
                    "all bytes at the mean quality, over the images that have a score in every "
                    "variant of both codecs. Times are CPU time, as percent of the "
                    "anchor's at equal mean quality, over the qualities. The 95% intervals are of "
                    "the choice of images "
                    "(bootstrap, 1,000 draws).");
    if (left_out)
        dl2_html_format(html,
                        " Up to %zu images are not compared one by one: they have no qualities in "
                        "common, or no score because they are lossless or too small.",
                        left_out);
    if (page->codecs.metric)
        dl2_html_format(html, " Of %s only qualities from %g to %g are compared.",
                        page->codecs.metric, page->codecs.range.low, page->codecs.range.high);
    dl2_html_markup(html, "</p>\n");
}

void dl2_section_codecs(const struct dl2_page *page, struct dl2_html *html)
{
    const struct dl2_study *study = page->study;
    size_t codecs = 0;
    bool external = false;
    for (size_t v = study->variant_count; v-- > 0;) {
        const json_t *encoder = json_object_get(study->variants[v].made, "encoder");
        external |= json_object_get(encoder, "decode") != NULL;
        if (!dl2_study_starts_codec(study, v))
            continue;
        codecs++;
    }
    if (codecs < 2)
        return;
    dl2_html_markup(html, "<h2>Codecs</h2>\n");
    struct dl2_table table = {.html = html};
    dl2_table_heads(&table, "codec");
    dl2_table_heads(&table, "encoding,\nCPU ms an image|loads, img/s\nand core");
    for (size_t v = 0; v < study->variant_count; v++)
        if (dl2_study_starts_codec(study, v))
            write_codec(&table, study, v);
    dl2_table_end(&table);
    dl2_html_markup(html, "<p class='note'>Ranges are over the qualities.");
    if (external)
        dl2_html_markup(html, " An external codec starts a process for each image, which counts in "
                              "encoding and loading.");
    dl2_html_markup(html, "</p>\n");
    write_sizes(html, page);
    struct dl2_part_figures figures = {.page = page, .html = html};
    plot_loading(&figures);
    dl2_part_figures_end(&figures);
}
