/* SPDX-License-Identifier: BSD-2-Clause */
/* The answer: what to choose, and how sure that is. */
#include "report/page/accuracy_plot.h"
#include "report/page/compared.h"
#include "report/page/decided.h"
#include "report/page/sections.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

static void write_advice(struct dl2_html *html, const struct dl2_page *page, size_t arch,
                         const char *kicker, const struct dl2_advice *advice)
{
    const struct dl2_analysis *analysis = &page->analyses[arch];
    const struct dl2_study *study = page->study;
    const size_t none = study->variant_count;
    const size_t pick = dl2_advice_pick(advice, study);
    char text[320];
    dl2_html_markup(html, "<div class='card'><div class='kicker'>");
    dl2_html_element(html, "span", "%s%s", kicker, dl2_part_arch_after(page, " · ", arch, text));
    if (pick < none)
        dl2_html_element(html, dl2_part_badge(analysis->comparisons[pick].verdict), "%s",
                         advice->sure < none ? "within tolerance" : "could be within tolerance");
    dl2_html_markup(html, "</div>");
    if (pick < none) {
        dl2_html_element(html, "div class='name'", "%s", study->variants[pick].name);
        dl2_html_element(html, "div class='gain'", "%s", advice->gain);
    } else {
        dl2_html_element(html, "div class='name'", "none");
    }
    dl2_html_element(html, "p", "%s", advice->text);
    dl2_html_markup(html, "</div>\n");
}

/* ---- The first screen: one sentence a network, its uncertainty, one picture */

/* The second question: what was trained on the variant, validated on the original's images. */
static void write_on_original(struct dl2_html *html, const struct dl2_analysis *analysis,
                              size_t pick, const char *points)
{
    const struct dl2_comparison *comparison =
        analysis->on_original ? &analysis->on_original[pick] : NULL;
    if (!comparison || comparison->verdict == DL2_VERDICT_NONE)
        return;
    const double half = dl2_comparison_half(comparison);
    char text[72];
    dl2_html_format(html, "Validated on the original's images it %s %s",
                    comparison->verdict == DL2_VERDICT_WITHIN   ? "loses less than"
                    : comparison->verdict == DL2_VERDICT_BEYOND ? "loses more than"
                                                                : "is not shown to lose less than",
                    points);
    if (isfinite(half))
        dl2_html_format(html, " (%s)", dl2_interval(comparison->difference, half, 1, text));
    dl2_html_markup(html, ". ");
}

/* Why that may be said, or why it is not. */
static void write_uncertainty(struct dl2_html *html, const struct dl2_page *page,
                              const struct dl2_analysis *analysis, size_t pick)
{
    const struct dl2_comparison *comparison = &analysis->comparisons[pick];
    const double half = dl2_comparison_half(comparison);
    char text[72], points[32];
    dl2_html_markup(html, "<p>");
    if (comparison->verdict == DL2_VERDICT_WITHIN)
        dl2_html_format(
            html,
            "That is said by a rule that makes any wrong claim in at most %g%% of such studies. ",
            100 * DL2_CLAIMS_LEVEL);
    else if (!isfinite(half))
        dl2_html_format(html, "One training each gives no interval. ");
    else if (comparison->difference - half < -page->tolerance)
        dl2_html_format(html, "The interval reaches beyond the tolerance. ");
    else
        dl2_html_format(html, "It is not certain enough to be claimed. ");
    if (isfinite(half))
        dl2_html_format(html, "95%% interval of the change in top-1: %s points. ",
                        dl2_interval(comparison->difference, half, 1, text));
    write_on_original(html, analysis, pick, dl2_count_points(points, page->tolerance));
    dl2_html_markup(html, "</p>\n");
}

static void write_sentence(struct dl2_html *html, const struct dl2_page *page, size_t arch)
{
    const struct dl2_study *study = page->study;
    const struct dl2_analysis *analysis = &page->analyses[arch];
    const struct dl2_advice *advice = &analysis->smallest;
    const size_t none = study->variant_count;
    const size_t pick = dl2_advice_pick(advice, study);
    const char *name = dl2_part_arch(page, arch);
    char points[32];
    dl2_html_markup(html, "<p class='headline'>");
    if (name)
        dl2_html_element(html, "small", "%s: ", name);
    if (pick == none) {
        dl2_html_format(html, "%s", advice->text);
        dl2_html_markup(html, "</p>\n");
        return;
    }
    const struct dl2_study_variant *variant = &study->variants[pick];
    dl2_html_element(html, "strong", "%s", variant->name);
    dl2_html_format(html, " %s less than %s of top-1 accuracy, at ",
                    pick == advice->sure ? "loses" : "may lose",
                    dl2_count_points(points, page->tolerance));
    dl2_html_element(html, "strong", "%.3g%%", 100 * variant->ratio);
    dl2_html_format(html, " of the original's bytes (%.3g times smaller).", 1 / variant->ratio);
    dl2_html_markup(html, "</p>\n");
    write_uncertainty(html, page, analysis, pick);
}

static void write_first_screen(struct dl2_html *html, const struct dl2_page *page)
{
    const struct dl2_study *study = page->study;
    double *ratios = dl2_html_calloc(html, study->variant_count + 1, sizeof *ratios);
    if (!ratios)
        return;
    for (size_t i = 0; i < page->plan->note_count; i++)
        dl2_html_element(html, "p class='note changed'", "%s", page->plan->notes[i]);
    dl2_html_markup(html, "<div class='first'><div>\n");
    for (size_t a = 0; a < study->arch_count; a++)
        write_sentence(html, page, a);
    dl2_write_compared(page, html);
    dl2_html_markup(html, "</div>\n");
    struct dl2_part_figures figures = {.page = page, .html = html};
    for (size_t v = 0; v < study->variant_count; v++)
        ratios[v] = 100 * study->variants[v].ratio;
    for (size_t a = 0; a < study->arch_count; a++)
        dl2_accuracy_plot(&figures, a,
                          &(struct dl2_accuracy_axis){"bytes", "Top-1 accuracy against size",
                                                      "bytes, % of the original''s (logarithmic)",
                                                      ratios, true, DL2_FRONT_LOW});
    dl2_part_figures_end(&figures);
    dl2_html_markup(html, "</div>\n");
    if (figures.shown)
        dl2_html_markup(html, "<p class='note'>Bands and bars are 95% intervals. The line at 0 "
                              "is the original, the shaded stripe below it the tolerance. Numbers "
                              "are qualities. Rings are on the Pareto front: no other variant is "
                              "measured as small and as accurate, which chance may decide where "
                              "intervals overlap.</p>\n");
    free(ratios);
}

void dl2_section_answer(const struct dl2_page *page, struct dl2_html *html)
{
    const struct dl2_study *study = page->study;
    if (study->arch_count == 0) {
        if (!study->variant_count && page->search && page->search->report)
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
    dl2_html_markup(html, "<div class='cards'>\n");
    for (size_t a = 0; a < study->arch_count; a++) {
        const struct dl2_speeds *speeds = &page->speeds[a];
        char accuracy[64];
        snprintf(accuracy, sizeof accuracy, "Fastest to %.1f%% top-1", speeds->accuracy);
        const char *const kickers[] = {[DL2_SPEED_LOAD] = "Fastest to load",
                                       [DL2_SPEED_TRAIN] = "Fastest to train on",
                                       [DL2_SPEED_ACCURACY] = accuracy};
        write_advice(html, page, a, "Smallest", &page->analyses[a].smallest);
        for (int kind = 0; kind < DL2_SPEED_KINDS; kind++)
            if (kind == DL2_SPEED_LOAD || speeds->rounds) /* else training was not measured */
                write_advice(html, page, a, kickers[kind], &speeds->fastest[kind]);
    }
    dl2_html_markup(html, "</div>\n");
    dl2_write_decided(page, html);
}
