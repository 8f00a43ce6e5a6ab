/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Codecs compared with the first one: size at equal image quality, and what encoding and loading
 * take (make study-codec).
 */
#include "common/json.h"
#include "report/codec_sizes.h"
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

static void write_codec(struct dl2_table *table, const struct dl2_study *study, size_t first,
                        size_t reference)
{
    struct dl2_html *html = table->html;
    static const size_t fields[] = {offsetof(struct dl2_study_variant, psnr_rgb),
                                    offsetof(struct dl2_study_variant, ssim)};
    const size_t end = dl2_study_end_of_codec(study, first);
    char text[32];
    dl2_table_row(table, study->variants[first].codec);
    for (size_t f = 0; f < sizeof fields / sizeof *fields; f++) {
        const double size = dl2_codec_relative_size(study, first, reference, fields[f]);
        dl2_html_element(html, "td", "%s%s", dl2_part_fixed(size, 0, text),
                         isfinite(size) ? " %" : "");
    }
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
    dl2_plot_script(&plot, "set xrange [0:*]\nset logscale y\nset offsets 0, graph 0.05, 0, 0\n");
    for (size_t v = 0, end; v < study->variant_count; v = end) {
        const char *codec = study->variants[v].codec;
        end = dl2_study_end_of_codec(study, v);
        if (!dl2_study_starts_codec(study, v))
            continue;
        struct dl2_curve curve = {
            .plot = &plot, .name = codec, .colour = dl2_part_codec_colour(study, v)};
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

void dl2_section_codecs(const struct dl2_page *page, struct dl2_html *html)
{
    const struct dl2_study *study = page->study;
    size_t first = study->variant_count, codecs = 0;
    bool external = false, copies = false;
    for (size_t v = study->variant_count; v-- > 0;) {
        const json_t *encoder = json_object_get(study->variants[v].made, "encoder");
        external |= json_object_get(encoder, "decode") != NULL;
        copies |= dl2_json_get_real(study->variants[v].made, "copied", 0) > 0;
        if (!dl2_study_starts_codec(study, v))
            continue;
        first = v;
        codecs++;
    }
    if (codecs < 2)
        return;
    for (size_t v = 0; v < study->variant_count; v++) /* jpeg is what most datasets are in */
        if (dl2_study_starts_codec(study, v) && strcmp(study->variants[v].codec, "jpeg") == 0)
            first = v;
    dl2_html_markup(html, "<h2>Codecs</h2>\n");
    struct dl2_table table = {.html = html};
    dl2_table_heads(&table, "codec");
    dl2_table_head(&table, "size at equal PSNR, of %s", study->variants[first].codec);
    dl2_table_head(&table, "size at equal SSIM, of %s", study->variants[first].codec);
    dl2_table_heads(&table, "encoding,\nCPU ms an image|loads, img/s\nand core");
    for (size_t v = 0; v < study->variant_count; v++)
        if (dl2_study_starts_codec(study, v))
            write_codec(&table, study, v, first);
    dl2_table_end(&table);
    dl2_html_markup(html, "<p class='note'>Sizes are geometric means over the range of the metric "
                          "that both codecs' variants cover, interpolated linearly in the "
                          "logarithm of the size. Ranges are over the qualities.");
    if (copies)
        dl2_html_markup(html, " Files that were copied from the source count in the sizes, but "
                              "have no PSNR.");
    if (external)
        dl2_html_markup(html, " An external codec starts a process for each image, which counts in "
                              "encoding and loading.");
    dl2_html_markup(html, "</p>\n");
    struct dl2_part_figures figures = {.page = page, .html = html};
    plot_loading(&figures);
    dl2_part_figures_end(&figures);
}
