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
static void write_uncertainty(struct dl2_bytes *html, const struct dl2_page *page,
                              const struct dl2_analysis *analysis, size_t pick)
{
    const struct dl2_comparison *comparison = &analysis->comparisons[pick];
    const double half = dl2_comparison_half(comparison);
    dl2_html_markup(html, "<p>");
    dl2_html_format(html, "It %s. ", dl2_changes_text(analysis, pick));
    if (comparison->verdict == DL2_VERDICT_WITHIN) {
        dl2_html_format(html,
                        dl2_accuracy_words(analysis->kind,
                                           "That it loses less than %s is claimed by a rule that "
                                           "makes any wrong claim in at most %g%% of such studies"),
                        dl2_tolerance_text(analysis), 100 * DL2_CLAIMS_LEVEL);
        if (isfinite(comparison->bound))
            dl2_html_format(
                html,
                dl2_accuracy_words(analysis->kind,
                                   ": its bound, with an error of %.2g%%, is %s points"),
                100 * comparison->level, dl2_signed(analysis->kind, comparison->bound));
        dl2_html_markup(html, ". ");
    } else if (isfinite(half)) {
        dl2_html_format(html, "%s%s ",
                        comparison->difference - half < -analysis->question.tolerance
                            ? "The interval reaches beyond the tolerance. "
                            : "",
                        dl2_blocks_text(page->study, analysis, pick));
    }
    dl2_html_format(html, "%s", dl2_control_text(page->study, analysis, pick));
    dl2_html_markup(html, "</p>\n");
}

static void write_sentence(struct dl2_bytes *html, const struct dl2_page *page, size_t arch)
{
    const struct dl2_study *study = page->study;
    const struct dl2_analysis *analysis = &page->analyses[arch];
    const struct dl2_advice *advice = &analysis->smallest;
    const size_t none = study->variant_count;
    const size_t pick = dl2_advice_pick(advice, study);
    const char *name = dl2_part_arch(page, arch);
    dl2_html_markup(html, "<p class='headline'>");
    if (name)
        dl2_html_element(html, "small", "%s: ", name);
    if (pick == none) {
        dl2_html_format(html, "%s", advice->text);
        dl2_html_markup(html, "</p>\n");
        return;
    }
    const struct dl2_study_variant *variant = &study->variants[pick];
    const struct dl2_comparison *comparison = &analysis->comparisons[pick];
    dl2_html_element(html, "strong", "%s", variant->name);
    if (pick == advice->sure && comparison->difference - dl2_comparison_half(comparison) > 0)
        dl2_html_format(html, dl2_accuracy_words(analysis->kind, " gains %.1f points"),
                        comparison->difference);
    else
        dl2_html_format(html,
                        dl2_accuracy_words(analysis->kind, pick == advice->sure
                                                               ? " loses less than %s"
                                                               : " may lose less than %s"),
                        dl2_tolerance_text(analysis));
    dl2_html_format(html, " of %s, at ", analysis->kind->title);
    dl2_html_element(html, "strong", "%.3g%%", 100 * variant->ratio);
    dl2_html_format(html, " of the original's bytes (%s).", dl2_size_text(study, pick));
    dl2_html_markup(html, "</p>\n");
    write_uncertainty(html, page, analysis, pick);
}

/* The worst class of the variant that is shown, and what is not known of it. */
static void write_worst_class(struct dl2_bytes *html, const struct dl2_page *page, size_t arch)
{
    const struct dl2_page_classes *found = &page->classes[arch];
    const struct dl2_accuracy_kind *kind = dl2_study_accuracy(page->study);
    if (found->shown < page->study->variant_count && found->classes.count > 1) {
        dl2_html_markup(html, "<p>");
        dl2_html_format(html, "%s",
                        dl2_class_harm_brief(&found->harms[found->shown], &found->classes));
        dl2_html_markup(html, " <a href='#classes'>Which classes lose</a></p>\n");
    } else if (page->study->as_it_is || kind->is_foreign) {
        dl2_html_element(html, "p class='note'", "The worst class is not known: %s.",
                         kind->is_foreign ? "that takes the classes that a network predicts"
                                          : "it is judged from several trainings");
    } else if (kind == &dl2_accuracy_top1) {
        dl2_html_element(html, "p class='note'",
                         "The worst class is not known: that takes predictions of two trainings of "
                         "the original and of a variant.");
    }
}

/* What is open, of each network. */
static void write_open(struct dl2_bytes *html, const struct dl2_page *page)
{
    for (size_t a = 0; a < page->study->arch_count; a++) {
        const char *open = page->briefs[a].open, *name = dl2_part_arch(page, a);
        if (!open)
            continue;
        dl2_html_markup(html, "<p class='wide'>");
        if (name)
            dl2_html_element(html, "small", "%s: ", name);
        dl2_html_format(html, "%s", open);
        dl2_html_markup(html,
                        page->briefs[a].open_count ? " <a href='#open'>All</a></p>\n" : "</p>\n");
    }
}

static void write_first_screen(struct dl2_bytes *html, const struct dl2_page *page)
{
    const struct dl2_study *study = page->study;
    DL2_AUTO_FREE double *ratios = dl2_room(study->variant_count, sizeof *ratios, "variants");
    dl2_html_markup(html, "<div class='first'><div>\n");
    for (size_t a = 0; a < study->arch_count; a++) {
        write_sentence(html, page, a);
        write_worst_class(html, page, a);
    }
    dl2_html_markup(html, "</div>\n");
    struct dl2_part_figures figures = {.page = page, .html = html};
    for (size_t v = 0; v < study->variant_count; v++)
        ratios[v] = 100 * study->variants[v].ratio;
    for (size_t a = 0; a < study->arch_count; a++)
        dl2_accuracy_plot(
            &figures, a,
            &(struct dl2_accuracy_axis){
                "bytes", dl2_accuracy_words(dl2_study_accuracy(study), "Accuracy against size"),
                "bytes, % of the original''s (logarithmic)", ratios, true, DL2_FRONT_LOW});
    dl2_part_figures_end(&figures);
    dl2_html_markup(html, "</div>\n");
    if (figures.shown)
        dl2_html_markup(html, dl2_accuracy_words(
                                  dl2_study_accuracy(study),
                                  "<p class='note wide'>Bands and bars: 95% intervals; stripe: the "
                                  "tolerance; numbers: qualities; rings: on the Pareto front, none "
                                  "is measured as small and as accurate.</p>\n"));
    write_open(html, page);
}

void dl2_section_answer(const struct dl2_page *page, struct dl2_bytes *html)
{
    const struct dl2_study *study = page->study;
    if (study->arch_count == 0) {
        if (!study->variant_count && page->search.report)
            return; /* a search is all that there is */
        dl2_html_element(
            html, "p class='warning'", "%s",
            study->variant_count
                ? "Nothing was trained yet, so nothing can be said of accuracy: only size "
                  "and image quality are known."
                : "There are no results here yet.");
        return;
    }
    write_first_screen(html, page);
}
