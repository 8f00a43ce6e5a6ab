/* SPDX-License-Identifier: BSD-2-Clause */
/* What encoding and loading take, by codec (make study-codec). */
#include "common/json.h"
#include "report/page/parts.h"
#include "report/page/sections.h"

#include <math.h>

static void write_codec(json_t *table, const struct dl2_study *study, size_t first)
{
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
    dl2_part_range(table, encoding[0], encoding[1], 1, "", "–");
    dl2_part_range(table, loading[0], loading[1], 0, "", "–");
}

static void plot_loading(struct dl2_part_figures *figures)
{
    const struct dl2_study *study = figures->page->study;
    struct dl2_plot plot = dl2_plot_begin("Loading speed against size",
                                          "bits-per-pixel images-a-second-and-core quality variant",
                                          DL2_PLOT_HEIGHT, "loading-codecs");
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

void dl2_section_codecs(const struct dl2_page *page, json_t *section)
{
    const struct dl2_study *study = page->study;
    size_t codecs = 0;
    bool external = false;
    for (size_t v = 0; v < study->variant_count; v++) {
        const json_t *encoder = json_object_get(study->variants[v].made, "encoder");
        external |= json_object_get(encoder, "decode") != NULL;
        codecs += dl2_study_starts_codec(study, v);
    }
    if (codecs < 2)
        return;
    dl2_block_set(section, "heading", "Codecs");
    json_t *table =
        dl2_table_add(section, "codec|encoding,\nCPU ms an image|loads, img/s\nand core");
    for (size_t v = 0; v < study->variant_count; v++)
        if (dl2_study_starts_codec(study, v))
            write_codec(table, study, v);
    dl2_block_text(section, "note", "Ranges are over the qualities.%s",
                   external ? " An external codec starts a process for each image, which counts in "
                              "encoding and loading."
                            : "");
    plot_loading(&(struct dl2_part_figures){.page = page, .parent = section});
}
