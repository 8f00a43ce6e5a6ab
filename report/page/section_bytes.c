/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Strong compression or fewer images? Each variant beside trainings on as many of the original's
 * images as have its bytes (make study-bytes).
 */
#include "common/keep.h"
#include "report/equal_bytes.h"
#include "report/page/parts.h"
#include "report/page/sections.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

static void add_point(struct dl2_curve *curve, const struct dl2_accuracy_kind *kind, double percent,
                      const struct dl2_estimate *accuracy, const char *name)
{
    const double mean = dl2_accuracy_shown(kind, accuracy->mean);
    dl2_curve_point(curve, (const double[]){percent, mean, accuracy->half}, 3, name);
}

/* All images, compressed: a curve a codec. */
static void plot_compressed(struct dl2_plot *plot, const struct dl2_study *study,
                            const struct dl2_equal_bytes *pairs, size_t count)
{
    for (size_t v = 0; v < study->variant_count; v++) {
        const char *codec = study->variants[v].codec;
        char clean[256], title[300];
        if (!dl2_study_starts_codec(study, v))
            continue;
        snprintf(title, sizeof title, "all images, %s", dl2_plot_plain(codec, clean, sizeof clean));
        struct dl2_curve curve = {.plot = plot,
                                  .name = codec,
                                  .title = title,
                                  .color = dl2_part_codec_color(study, v),
                                  .bars = "1:2:3"};
        for (size_t p = 0; p < count; p++)
            if (strcmp(study->variants[pairs[p].variant].codec, codec) == 0)
                add_point(&curve, dl2_study_accuracy(study), pairs[p].percent, &pairs[p].accuracy,
                          study->variants[pairs[p].variant].name);
        dl2_curve_draw(&curve);
    }
}

static void plot_bytes(struct dl2_part_figures *figures, size_t arch,
                       const struct dl2_equal_bytes *pairs, size_t count)
{
    const struct dl2_study *study = figures->page->study;
    const size_t raw = dl2_study_find(study, "raw");
    const struct dl2_estimate *original = &figures->page->analyses[arch].comparisons[raw].accuracy;
    const struct dl2_accuracy_kind *kind = dl2_study_accuracy(study);
    char label[128];
    struct dl2_plot plot =
        dl2_plot_begin(dl2_accuracy_words(kind, "Accuracy at equal bytes"),
                       "bytes-in-percent-of-the-original accuracy half-width-of-95%-interval name",
                       DL2_PLOT_HEIGHT, "accuracy-equal-bytes-%s", study->archs[arch]);
    dl2_plot_axes(&plot, "bytes of the training images, % of the original''s (logarithmic)",
                  dl2_plot_label(dl2_accuracy_words(kind, "accuracy, %"), label, sizeof label));
    dl2_plot_script(&plot,
                    "set logscale x\nset xtics (0.1, 0.2, 0.5, 1, 2, 5, 10, 20, 50, 100, 200)\n"
                    "set xrange [%.8g:130]\n"
                    "set offsets 0, 0, graph 0.08, graph 0.06\n",
                    pairs[0].subset_percent / 1.3);
    dl2_curve_reference(&plot, 'y', dl2_accuracy_shown(kind, original->mean), NAN);
    plot_compressed(&plot, study, pairs, count);
    struct dl2_curve subsets = {.plot = &plot,
                                .name = "subset",
                                .title = "fewer images, as they were",
                                .color = DL2_PLOT_INK,
                                .bars = "1:2:3"};
    for (size_t p = 0; p < count; p++)
        add_point(&subsets, kind, pairs[p].subset_percent, &pairs[p].subset_accuracy,
                  study->variants[pairs[p].variant].name);
    add_point(&subsets, kind, 100, original, "original");
    dl2_curve_draw(&subsets);
    dl2_part_figure(figures, &plot, dl2_part_arch(figures->page, arch));
}

static void write_rows(json_t *table, const struct dl2_page *page, size_t arch,
                       const struct dl2_equal_bytes *pairs, size_t count)
{
    const struct dl2_accuracy_kind *kind = dl2_study_accuracy(page->study);
    for (size_t p = 0; p < count; p++) {
        const struct dl2_equal_bytes *pair = &pairs[p];
        const double mean = pair->difference.mean, half = pair->difference.half;
        dl2_table_row(table, page->study->variants[pair->variant].name);
        dl2_part_arch_cell(table, page, arch);
        dl2_part_percent(table, pair->percent, 1, NAN, NAN);
        dl2_part_accuracy_estimate(table, kind, &pair->accuracy);
        dl2_table_value(table, pair->subset_images, "%.0f of %.0f", pair->subset_images,
                        pair->images);
        dl2_part_percent(table, pair->subset_percent, 1, NAN, NAN);
        dl2_part_accuracy_estimate(table, kind, &pair->subset_accuracy);
        dl2_part_interval(table, kind, mean, mean - half, mean + half);
    }
}

void dl2_section_bytes(const struct dl2_page *page, json_t *section)
{
    const struct dl2_study *study = page->study;
    struct dl2_part_figures figures = {.page = page, .parent = section};
    json_t *table = NULL;
    dl2_block_set(section, "heading", "Strong compression or fewer images?");
    for (size_t arch = 0; arch < study->arch_count; arch++) {
        size_t count;
        const struct dl2_equal_bytes *pairs =
            dl2_equal_bytes_find(study, &page->conditions, study->archs[arch], &count);
        if (!count)
            continue;
        if (!table) {
            dl2_block_text(section, "note",
                           "At equal bytes: all images, compressed, against a part of the images "
                           "as they were, the same part of each class. Both are trained alike, for "
                           "as many epochs; an epoch of fewer images has fewer steps. Bars are "
                           "95%% intervals over seeds.");
            table = dl2_part_arch_table(section, page, "variant");
            dl2_table_heads(table,
                            dl2_accuracy_words(dl2_study_accuracy(study),
                                               "bytes|accuracy, %|images of\nthe original|bytes|"
                                               "accuracy, %|<compression ahead\nby, points"));
        }
        plot_bytes(&figures, arch, pairs, count);
        write_rows(table, page, arch, pairs, count);
    }
}
