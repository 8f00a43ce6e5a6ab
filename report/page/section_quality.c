/* SPDX-License-Identifier: BSD-2-Clause */
/* Accuracy at each quality, and the files that were taken over unchanged (make study-quality). */
#include "common/json.h"
#include "report/page/parts.h"
#include "report/page/sections.h"

#include <math.h>

static bool is_shown(const struct dl2_study_variant *variant, const struct dl2_comparison *result)
{
    return variant->quality > 0 && isfinite(result->accuracy.mean);
}

/* A codec with one place in the plot has no curve. */
static void plot_codec(struct dl2_plot *plot, const struct dl2_study *study,
                       const struct dl2_analysis *analysis, size_t first)
{
    const size_t end = dl2_study_end_of_codec(study, first);
    size_t shown = 0;
    for (size_t v = first; v < end; v++)
        shown += is_shown(&study->variants[v], &analysis->comparisons[v]);
    if (shown < 2)
        return;
    struct dl2_curve curve = dl2_part_codec_curve(plot, study, first);
    curve.bars = "1:2:3";
    for (size_t v = first; v < end; v++) {
        const struct dl2_estimate *accuracy = &analysis->comparisons[v].accuracy;
        if (is_shown(&study->variants[v], &analysis->comparisons[v]))
            dl2_curve_point(&curve,
                            (const double[]){study->variants[v].quality,
                                             dl2_accuracy_shown(analysis->kind, accuracy->mean),
                                             accuracy->half},
                            3, study->variants[v].name);
    }
    dl2_curve_draw(&curve);
}

static void plot_qualities(struct dl2_part_figures *figures, size_t arch)
{
    const struct dl2_study *study = figures->page->study;
    const struct dl2_analysis *analysis = &figures->page->analyses[arch];
    const size_t raw = dl2_study_find(study, "raw");
    const double original =
        raw < study->variant_count ? analysis->comparisons[raw].accuracy.mean : NAN;
    struct dl2_plot plot =
        dl2_plot_begin(dl2_accuracy_words(analysis->kind, "Accuracy by quality"),
                       "quality accuracy half-width-of-95%-interval variant", DL2_PLOT_HEIGHT,
                       "accuracy-quality-%s", study->archs[arch]);
    char label[128];
    dl2_plot_axes(
        &plot, "quality, on each codec''s own scale",
        dl2_plot_label(dl2_accuracy_words(analysis->kind, "accuracy, %"), label, sizeof label));
    dl2_plot_script(&plot, "set xrange [0:100]\nset offsets 0, 0, graph 0.08, graph 0.06\n");
    dl2_part_codec_key(&plot, study, 0);
    if (isfinite(original))
        dl2_curve_reference(
            &plot, 'y', dl2_accuracy_shown(analysis->kind, original),
            dl2_accuracy_shown(analysis->kind, original - analysis->question.tolerance));
    for (size_t v = 0; v < study->variant_count; v++)
        if (dl2_study_starts_codec(study, v))
            plot_codec(&plot, study, analysis, v);
    dl2_part_figure(figures, &plot, dl2_part_arch(figures->page, arch));
}

/* How many files of each variant are the source's, in one sentence; nothing if none are. */
static void write_copies(const struct dl2_page *page, json_t *section)
{
    const struct dl2_study *study = page->study;
    json_t *text = NULL;
    for (size_t v = 0; v < study->variant_count; v++) {
        const struct dl2_study_variant *variant = &study->variants[v];
        const double copied = dl2_json_get_real(variant->made, "copied", 0);
        if (!(copied > 0))
            continue;
        if (!text)
            text = dl2_block_text(section, "note",
                                  "Files of a variant may be the source's own, where recompression "
                                  "would save nothing: in ");
        else
            dl2_block_say(text, ", ");
        dl2_block_say(text, "%s %.0f of %.0f", variant->name, copied, variant->images);
    }
    if (text)
        dl2_block_say(text, ".");
}

void dl2_section_quality(const struct dl2_page *page, json_t *section)
{
    const struct dl2_accuracy_kind *kind = dl2_study_accuracy(page->study);
    struct dl2_part_figures figures = {
        .page = page,
        .parent = section,
        .note = dl2_accuracy_words(kind,
                                   "The same number is not the same quality in two codecs. Bars "
                                   "are 95% intervals over seeds. The line: the original; shaded: "
                                   "the tolerance.")};
    dl2_block_set(section, "heading", "%s", dl2_accuracy_words(kind, "Accuracy at a quality"));
    for (size_t arch = 0; arch < page->study->arch_count; arch++)
        plot_qualities(&figures, arch);
    if (figures.shown)
        write_copies(page, section);
}
