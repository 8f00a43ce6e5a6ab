/* SPDX-License-Identifier: BSD-2-Clause */
#include "report/page/decided.h"

#include "report/page/parts.h"

#include <math.h>

/* Variants that were trained from fewer seeds than the original. */
static void write_short_of_seeds(struct dl2_html *html, const struct dl2_page *page)
{
    const struct dl2_study *study = page->study;
    for (size_t a = 0; a < study->arch_count; a++)
        for (size_t v = 0; v < study->variant_count; v++) {
            const struct dl2_analysis *analysis = &page->analyses[a];
            const struct dl2_comparison *comparison = &analysis->comparisons[v];
            char text[320];
            if (comparison->verdict == DL2_VERDICT_NONE || comparison->pairs == analysis->seeds)
                continue;
            dl2_html_format(html, "%s was trained from %zu of the original's %zu seeds%s. ",
                            study->variants[v].name, comparison->pairs, analysis->seeds,
                            dl2_part_arch_after(page, ", with ", a, text));
        }
}

/* What the verdicts mean. */
static void write_rules(struct dl2_html *html, const struct dl2_page *page)
{
    const struct dl2_analysis *first = &page->analyses[0];
    dl2_html_format(html,
                    "Tolerance: %g point%s of top-1 accuracy, the share of validation images whose "
                    "class the network found. “Within” is claimed: each codec's variants are "
                    "tested from the largest file to the smallest, the first that fails ends its "
                    "codec, and in at most 2.5%% of such studies any claim is wrong",
                    page->tolerance, page->tolerance == 1 ? "" : "s");
    if (first->codecs > 1)
        dl2_html_format(html, ", which %zu codecs share", first->codecs);
    dl2_html_format(html, ". “Could be”: the measured difference is within, but it is not claimed; "
                          "“looks worse”: the measured difference is beyond, but its interval "
                          "reaches within; “worse”: all of its interval is beyond. Intervals are "
                          "95%%, of each variant by itself. ");
    if (first->question.looks.count < 2) {
        dl2_html_format(html,
                        "All looks at a study share the 2.5%%; this one, look %zu, has %.2g%%. An "
                        "interval is that of this look alone. ",
                        page->plan->look, 100 * DL2_CLAIMS_LEVEL * first->question.looks.share[0]);
        return;
    }
    dl2_html_format(html, "Seeds were added to the next variant of each codec until it was "
                          "decided, with looks after ");
    for (size_t i = 0; i < first->question.looks.count; i++)
        dl2_html_format(html, "%s%zu",
                        !i                                    ? ""
                        : i + 1 < first->question.looks.count ? ", "
                                                              : " and ",
                        first->question.looks.seeds[i]);
    dl2_html_format(html,
                    "; all looks share the 2.5%%, and an interval holds at all of them together. ");
}

static void write_noise(struct dl2_html *html, const struct dl2_analysis *first)
{
    if (first->seeds < 2) {
        dl2_html_format(html, "One training each can't tell chance from effect. ");
        return;
    }
    if (!isfinite(first->noise.deviation))
        return;
    dl2_html_format(html,
                    "Trainings from %zu seeds each, compared seed by seed; the noise of a single "
                    "training, estimated from all variants together (%zu degrees of freedom), is "
                    "%.2f points. A variant is judged by its own noise, which is drawn towards "
                    "that by the weight of a quarter of a degree of freedom. ",
                    first->seeds, first->noise.freedom, first->noise.deviation);
    if (first->seeds < 4)
        dl2_html_format(html, "With so few seeds the intervals are wide. ");
}

/* The intervals without the choice of images, of trainings that kept predictions. */
static void write_training_chance(struct dl2_html *html, const struct dl2_page *page)
{
    const struct dl2_study *study = page->study;
    const char *before = "By the chance of training alone the intervals are ";
    for (size_t a = 0; a < study->arch_count; a++)
        for (size_t v = 0; v < study->variant_count; v++) {
            const struct dl2_comparison *comparison = &page->analyses[a].comparisons[v];
            char text[72], with[320];
            if (comparison->verdict == DL2_VERDICT_NONE || !comparison->images ||
                !isfinite(comparison->half))
                continue;
            dl2_html_format(html, "%s%s for %s%s", before,
                            dl2_interval(comparison->difference, comparison->half, 1, text),
                            study->variants[v].name, dl2_part_arch_after(page, " with ", a, with));
            before = ", ";
        }
    dl2_html_markup(html, *before == ',' ? ". " : "");
}

/* What a single training on the recommended variant might show. */
static void write_single(struct dl2_html *html, const struct dl2_page *page)
{
    const struct dl2_study *study = page->study;
    for (size_t a = 0; a < study->arch_count; a++) {
        const size_t pick = dl2_advice_pick(&page->analyses[a].smallest, study);
        if (pick == study->variant_count)
            continue;
        const struct dl2_comparison *comparison = &page->analyses[a].comparisons[pick];
        const double half = dl2_comparison_single(comparison);
        char text[2][32], of[320];
        if (comparison->pairs && isfinite(half))
            dl2_html_format(html,
                            "One new training%s on %s would end between %s and %s points of one "
                            "on the original, on these images (95%% prediction interval). ",
                            dl2_part_arch_after(page, " of ", a, of), study->variants[pick].name,
                            dl2_signed(comparison->difference - half, text[0]),
                            dl2_signed(comparison->difference + half, text[1]));
    }
}

/* Which intervals cover the choice of validation images. */
static void write_images(struct dl2_html *html, const struct dl2_page *page)
{
    const struct dl2_study *study = page->study;
    size_t with = 0, without = 0;
    for (size_t a = 0; a < study->arch_count; a++)
        for (size_t v = 0; v < study->variant_count; v++) {
            const struct dl2_comparison *comparison = &page->analyses[a].comparisons[v];
            if (comparison->verdict != DL2_VERDICT_NONE)
                *(comparison->images ? &with : &without) += 1;
        }
    double val = NAN;
    for (size_t i = 0; i < study->run_count && !(val > 0); i++)
        val = study->runs[i].val_images;
    if (!(val > 0))
        return;
    if (with)
        dl2_html_format(html,
                        "Verdicts and the table's intervals count two sources of chance: new "
                        "trainings, and new validation images in place of these %.0f. They hold "
                        "for this training set, recipe and split. ",
                        val);
    write_training_chance(html, page);
    if (with && without)
        dl2_html_format(html, "Where predictions are missing they count the trainings alone. ");
    else if (without)
        dl2_html_format(html,
                        "The trainings kept no predictions (earlier versions keep none), so the "
                        "intervals tell of the chance of training alone, not of the choice of the "
                        "%.0f validation images, of which one is %.2g points. ",
                        val, 100 / val);
}

void dl2_write_decided(const struct dl2_page *page, struct dl2_html *html)
{
    dl2_html_markup(html, "<details><summary>How this was decided</summary><p class='note'>");
    write_rules(html, page);
    write_noise(html, &page->analyses[0]);
    write_short_of_seeds(html, page);
    write_images(html, page);
    write_single(html, page);
    dl2_html_markup(html, "</p></details>\n");
}
