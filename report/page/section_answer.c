/* SPDX-License-Identifier: BSD-2-Clause */
/* The first screen: what is recommended, the worst class, one picture, and what is open. */
#include "common/scope.h"
#include "report/advice.h"
#include "report/page/accuracy_plot.h"
#include "report/page/page.h"
#include "report/page/parts.h"
#include "report/page/sections.h"

#include <math.h>

/* How accuracy changes, and why that may be said, or why it is not. */
static void write_uncertainty(json_t *parent, const struct dl2_page *page,
                              const struct dl2_analysis *analysis, size_t pick)
{
    const struct dl2_comparison *comparison = &analysis->comparisons[pick];
    const double half = dl2_comparison_half(comparison);
    json_t *text = dl2_block_text(parent, "paragraph", "It %s. ", dl2_changes_text(analysis, pick));
    if (comparison->verdict == DL2_VERDICT_WITHIN) {
        dl2_block_say(text,
                      dl2_accuracy_words(analysis->kind,
                                         "That it loses less than %s is claimed by a rule that "
                                         "makes any wrong claim in at most %g%% of such studies"),
                      dl2_tolerance_text(analysis), 100 * DL2_CLAIMS_LEVEL);
        if (isfinite(comparison->bound))
            dl2_block_say(text,
                          dl2_accuracy_words(analysis->kind,
                                             ": its bound, with an error of %.2g%%, is %s points"),
                          100 * comparison->level, dl2_signed(analysis->kind, comparison->bound));
        dl2_block_say(text, ". ");
    } else if (isfinite(half)) {
        dl2_block_say(text, "%s%s ",
                      comparison->difference - half < -analysis->question.tolerance
                          ? "The interval reaches beyond the tolerance. "
                          : "",
                      dl2_blocks_text(page->study, analysis, pick));
    }
    dl2_block_say(text, "%s", dl2_control_text(page->study, analysis, pick));
}

/* A text that begins with the network's name, if there are several. */
static json_t *begin_text(json_t *parent, const char *kind, const struct dl2_page *page,
                          size_t arch)
{
    json_t *text = dl2_block_add(parent, kind);
    if (dl2_part_arch(page, arch))
        dl2_block_mark(text, "small", "%s: ", dl2_part_arch(page, arch));
    return text;
}

static void write_sentence(json_t *parent, const struct dl2_page *page, size_t arch)
{
    const struct dl2_study *study = page->study;
    const struct dl2_analysis *analysis = &page->analyses[arch];
    const struct dl2_advice *advice = &analysis->smallest;
    const size_t pick = dl2_advice_pick(advice, study);
    json_t *text = begin_text(parent, "headline", page, arch);
    if (pick == study->variant_count) {
        dl2_block_say(text, "%s", advice->text);
        return;
    }
    const struct dl2_study_variant *variant = &study->variants[pick];
    const struct dl2_comparison *comparison = &analysis->comparisons[pick];
    dl2_block_mark(text, "strong", "%s", variant->name);
    if (pick == advice->sure && comparison->difference - dl2_comparison_half(comparison) > 0)
        dl2_block_say(text, dl2_accuracy_words(analysis->kind, " gains %.1f points"),
                      comparison->difference);
    else
        dl2_block_say(text,
                      dl2_accuracy_words(analysis->kind, pick == advice->sure
                                                             ? " loses less than %s"
                                                             : " may lose less than %s"),
                      dl2_tolerance_text(analysis));
    dl2_block_say(text, " of %s, at ", analysis->kind->title);
    dl2_block_mark(text, "strong", "%.3g%%", 100 * variant->ratio);
    dl2_block_say(text, " of the original's bytes (%s).", dl2_size_text(study, pick));
    write_uncertainty(parent, page, analysis, pick);
}

/* The worst class of the variant that is shown, and what is not known of it. */
static void write_worst_class(json_t *parent, const struct dl2_page *page, size_t arch)
{
    const struct dl2_page_classes *found = &page->classes[arch];
    const struct dl2_accuracy_kind *kind = dl2_study_accuracy(page->study);
    if (found->shown < page->study->variant_count && found->classes.count > 1) {
        json_t *text =
            dl2_block_text(parent, "paragraph", "%s ",
                           dl2_class_harm_brief(&found->harms[found->shown], &found->classes));
        dl2_block_link(text, "classes", "Which classes lose");
    } else if (page->study->as_it_is || kind->is_foreign) {
        dl2_block_text(parent, "note", "The worst class is not known: %s.",
                       kind->is_foreign ? "that takes the classes that a network predicts"
                                        : "it is judged from several trainings");
    } else if (kind == &dl2_accuracy_top1) {
        dl2_block_text(parent, "note",
                       "The worst class is not known: that takes predictions of two trainings of "
                       "the original and of a variant.");
    }
}

/* What is open, of each network. */
static void write_open(json_t *section, const struct dl2_page *page)
{
    for (size_t a = 0; a < page->study->arch_count; a++) {
        if (!page->briefs[a].open)
            continue;
        json_t *text = begin_text(section, "paragraph", page, a);
        dl2_block_say(text, "%s ", page->briefs[a].open);
        if (page->briefs[a].open_count)
            dl2_block_link(text, "open", "All");
    }
}

void dl2_section_answer(const struct dl2_page *page, json_t *section)
{
    const struct dl2_study *study = page->study;
    if (study->arch_count == 0) {
        if (study->variant_count || !page->search.report) /* else a search is all that there is */
            dl2_block_text(section, "warning", "%s",
                           study->variant_count
                               ? "Nothing was trained yet, so nothing can be said of accuracy: "
                                 "only size and image quality are known."
                               : "There are no results here yet.");
        return;
    }
    json_t *columns = dl2_block_add(section, "columns");
    json_t *left = dl2_block_append(columns, "columns", json_object());
    for (size_t a = 0; a < study->arch_count; a++) {
        write_sentence(left, page, a);
        write_worst_class(left, page, a);
    }
    struct dl2_part_figures figures = {
        .page = page, .parent = dl2_block_append(columns, "columns", json_object())};
    DL2_AUTO_FREE double *ratios = dl2_room(study->variant_count, sizeof *ratios, "variants");
    for (size_t v = 0; v < study->variant_count; v++)
        ratios[v] = 100 * study->variants[v].ratio;
    for (size_t a = 0; a < study->arch_count; a++)
        dl2_accuracy_plot(
            &figures, a,
            &(struct dl2_accuracy_axis){
                "bytes", dl2_accuracy_words(dl2_study_accuracy(study), "Accuracy against size"),
                "bytes, % of the original''s (logarithmic)", ratios, true, DL2_FRONT_LOW});
    if (figures.shown)
        dl2_block_text(section, "note", "%s",
                       dl2_accuracy_words(dl2_study_accuracy(study),
                                          "Bands and bars: 95% intervals; stripe: the tolerance; "
                                          "numbers: qualities; rings: on the Pareto front, none is "
                                          "measured as small and as accurate."));
    write_open(section, page);
}
