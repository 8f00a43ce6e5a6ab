/* SPDX-License-Identifier: BSD-2-Clause */
/* The answer: what to choose, and how sure that is. */
#include "common/json.h"
#include "common/scope.h"
#include "report/advice.h"
#include "report/divergence.h"
#include "report/page/accuracy_plot.h"
#include "report/page/page.h"
#include "report/page/parts.h"
#include "report/page/sections.h"
#include "report/sentence.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

/* ---- The first screen's small print: what was trained, on what, and what the original is */

/* What a training's samples are, by its options. */
static const char *name_samples(const json_t *arguments)
{
    const char *size = dl2_json_get_text(arguments, "image-size", "");
    const char *across = strchr(size, 'x');
    return dl2_json_get_integer(arguments, "frames", 0) > 0 ? "clips"
           : across && strchr(across + 1, 'x')              ? "volumes"
                                                            : "images";
}

/* A network's settings, as the first of its trainings has them: all that are here have the same. */
static void write_network(struct dl2_bytes *html, const struct dl2_page *page, size_t arch)
{
    const struct dl2_study *study = page->study;
    const struct dl2_analysis *analysis = &page->analyses[arch];
    const struct dl2_study_run *run = NULL;
    for (size_t i = 0; i < study->run_count && !run; i++)
        if (strcmp(study->runs[i].arch, study->archs[arch]) == 0)
            run = &study->runs[i];
    if (!run)
        return;
    const json_t *arguments = json_object_get(run->report, "arguments");
    const json_t *size = json_object_get(arguments, "image-size");
    dl2_html_text(html, study->archs[arch]);
    if (json_is_integer(size))
        dl2_html_format(html, ", input of %lld pixels squared",
                        (long long)json_integer_value(size));
    else if (json_is_string(size))
        dl2_html_format(html, ", input of %s pixels", json_string_value(size));
    dl2_html_format(html, ", %zu epoch%s, %zu seed%s", run->epochs, run->epochs == 1 ? "" : "s",
                    analysis->seeds, analysis->seeds == 1 ? "" : "s");
    if (run->train_images > 0 && run->val_images > 0)
        dl2_html_format(html, "; trained on %.0f %s, validated on %.0f", run->train_images,
                        name_samples(arguments), run->val_images);
    dl2_html_markup(html, ". ");
}

/* "Times smaller" than what? A variant loses less on top of what the original has lost already. */
static void write_original(struct dl2_bytes *html, const struct dl2_study *study)
{
    const size_t raw = dl2_study_find(study, "raw");
    const double bits = raw < study->variant_count ? study->variants[raw].bits_per_pixel : NAN;
    const char *original = dl2_original_text(study);
    if (!isfinite(bits))
        return;
    dl2_html_format(html, "The original has %.3g bits per pixel", bits);
    if (original)
        dl2_html_format(html, " (%s)", original);
    if (dl2_is_hardly_compressed(study))
        dl2_html_markup(html, ": a JPEG of high quality would be several times smaller already");
    else if (original)
        dl2_html_markup(html, ": variants lose once more");
    dl2_html_markup(html, ". ");
}

static void write_compared(const struct dl2_page *page, struct dl2_bytes *html)
{
    bool both = false;
    dl2_html_markup(html, "<p class='note'>");
    for (size_t a = 0; a < page->study->arch_count; a++) {
        write_network(html, page, a);
        both |= page->analyses[a].on_original != NULL;
    }
    dl2_html_format(html, "Accuracy is %s. Each variant is validated on its own images%s. ",
                    dl2_study_accuracy(page->study)->name,
                    both ? ", and as a second question on the original's" : "");
    write_original(html, page->study);
    dl2_html_markup(html, "</p>\n");
}

/* ---- How the answer was decided: what the verdicts mean, and which chances the intervals count */

/* Variants that were trained from fewer seeds than the original. */
static void write_short_of_seeds(struct dl2_bytes *html, const struct dl2_page *page)
{
    const struct dl2_study *study = page->study;
    for (size_t a = 0; a < study->arch_count; a++)
        for (size_t v = 0; v < study->variant_count; v++) {
            const struct dl2_analysis *analysis = &page->analyses[a];
            const struct dl2_comparison *comparison = &analysis->comparisons[v];
            if (comparison->verdict == DL2_VERDICT_NONE || comparison->pairs == analysis->seeds)
                continue;
            dl2_html_format(html, "%s was trained from %zu of the original's %zu seeds%s. ",
                            study->variants[v].name, comparison->pairs, analysis->seeds,
                            dl2_part_arch_after(page, ", with ", a));
        }
}

/* What the verdicts mean. */
static void write_rules(struct dl2_bytes *html, const struct dl2_page *page)
{
    const struct dl2_analysis *first = &page->analyses[0];
    dl2_html_format(html,
                    "Tolerance: %g point%s of accuracy, which is %s. “Within” is claimed: each "
                    "codec's variants are "
                    "tested from the largest file to the smallest, the first that fails ends its "
                    "codec, and in at most 2.5%% of such studies any claim is wrong",
                    page->tolerance, page->tolerance == 1 ? "" : "s",
                    dl2_study_accuracy(page->study)->what);
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
                        page->plan.look, 100 * DL2_CLAIMS_LEVEL * first->question.looks.share[0]);
        return;
    }
    dl2_html_format(html, "Seeds were added to the next variant of each codec until it was "
                          "decided, with looks after ");
    for (size_t i = 0; i < first->question.looks.count; i++)
        dl2_html_format(html, "%s%zu", dl2_joint(i, first->question.looks.count),
                        first->question.looks.seeds[i]);
    dl2_html_format(html,
                    "; all looks share the 2.5%%, and an interval holds at all of them together. ");
}

static void write_noise(struct dl2_bytes *html, const struct dl2_analysis *first)
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
static void write_training_chance(struct dl2_bytes *html, const struct dl2_page *page)
{
    const struct dl2_study *study = page->study;
    const char *before = "By the chance of training alone the intervals are ";
    for (size_t a = 0; a < study->arch_count; a++)
        for (size_t v = 0; v < study->variant_count; v++) {
            const struct dl2_comparison *comparison = &page->analyses[a].comparisons[v];
            if (comparison->verdict == DL2_VERDICT_NONE || !comparison->images ||
                !isfinite(comparison->half))
                continue;
            dl2_html_format(html, "%s%s for %s%s", before,
                            dl2_interval(comparison->difference, comparison->half, 1),
                            study->variants[v].name, dl2_part_arch_after(page, " with ", a));
            before = ", ";
        }
    dl2_html_markup(html, *before == ',' ? ". " : "");
}

/* What a single training on the recommended variant might show. */
static void write_single(struct dl2_bytes *html, const struct dl2_page *page)
{
    const struct dl2_study *study = page->study;
    for (size_t a = 0; a < study->arch_count; a++) {
        const size_t pick = dl2_advice_pick(&page->analyses[a].smallest, study);
        if (pick == study->variant_count)
            continue;
        const struct dl2_comparison *comparison = &page->analyses[a].comparisons[pick];
        const double half = dl2_comparison_single(comparison);
        if (comparison->pairs && isfinite(half))
            dl2_html_format(html,
                            "One new training%s on %s would end between %s and %s points of one "
                            "on the original, on these images (95%% prediction interval). ",
                            dl2_part_arch_after(page, " of ", a), study->variants[pick].name,
                            dl2_signed(comparison->difference - half),
                            dl2_signed(comparison->difference + half));
    }
}

/* Which intervals cover the choice of validation images. */
static void write_images(struct dl2_bytes *html, const struct dl2_page *page)
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
    else if (without && dl2_study_accuracy(study) != &dl2_accuracy_top1)
        dl2_html_format(
            html,
            "Trainings on masks and on volumes keep no predictions, so the intervals tell of the "
            "chance of training alone, not of the choice of the %.0f for validation. ",
            val);
    else if (without)
        dl2_html_format(html,
                        "The trainings kept no predictions (earlier versions keep none), so the "
                        "intervals tell of the chance of training alone, not of the choice of the "
                        "%.0f validation images, of which one is %.2g points. ",
                        val, 100 / val);
}

static void write_decided(const struct dl2_page *page, struct dl2_bytes *html)
{
    dl2_html_markup(html, "<details><summary>How this was decided</summary><p class='note'>");
    write_rules(html, page);
    write_noise(html, &page->analyses[0]);
    write_short_of_seeds(html, page);
    write_images(html, page);
    write_single(html, page);
    dl2_html_markup(html, "</p></details>\n");
}

/* ---- Cards: what to choose */

static void write_advice(struct dl2_bytes *html, const struct dl2_page *page, size_t arch,
                         const char *kicker, const struct dl2_advice *advice)
{
    const struct dl2_analysis *analysis = &page->analyses[arch];
    const struct dl2_study *study = page->study;
    const size_t none = study->variant_count;
    const size_t pick = dl2_advice_pick(advice, study);
    dl2_html_markup(html, "<div class='card'><div class='kicker'>");
    dl2_html_element(html, "span", "%s%s", kicker, dl2_part_arch_after(page, " · ", arch));
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
                        "That it loses less than %s is claimed by a rule that makes any wrong "
                        "claim in at most %g%% of such studies",
                        dl2_count_points(page->tolerance), 100 * DL2_CLAIMS_LEVEL);
        if (isfinite(comparison->bound))
            dl2_html_format(html, ": its bound, with an error of %.2g%%, is %s points",
                            100 * comparison->level, dl2_signed(comparison->bound));
        dl2_html_markup(html, ". ");
    } else if (isfinite(half)) {
        dl2_html_format(html, "%s%s ",
                        comparison->difference - half < -page->tolerance
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
        dl2_html_format(html, " gains %.1f points", comparison->difference);
    else
        dl2_html_format(html, " %s less than %s", pick == advice->sure ? "loses" : "may lose",
                        dl2_count_points(page->tolerance));
    dl2_html_format(html, " of %s, at ", dl2_study_accuracy(study)->title);
    dl2_html_element(html, "strong", "%.3g%%", 100 * variant->ratio);
    dl2_html_format(html, " of the original's bytes (%s).", dl2_size_text(study, pick));
    dl2_html_markup(html, "</p>\n");
    write_uncertainty(html, page, analysis, pick);
}

static void write_first_screen(struct dl2_bytes *html, const struct dl2_page *page)
{
    const struct dl2_study *study = page->study;
    DL2_AUTO_FREE double *ratios = dl2_room(study->variant_count, sizeof *ratios, "variants");
    for (size_t i = 0; i < page->plan.note_count; i++)
        dl2_html_element(html, "p class='note changed'", "%s", page->plan.notes[i]);
    for (size_t a = 0; a < study->arch_count; a++) {
        const char *diverged = dl2_divergence_text(study, &page->analyses[a]);
        if (diverged)
            dl2_html_element(html, "p class='warning'", "%s%s%s",
                             study->arch_count > 1 ? study->archs[a] : "",
                             study->arch_count > 1 ? ": " : "", diverged);
    }
    dl2_html_markup(html, "<div class='first'><div>\n");
    for (size_t a = 0; a < study->arch_count; a++)
        write_sentence(html, page, a);
    write_compared(page, html);
    dl2_html_markup(html, "</div>\n");
    struct dl2_part_figures figures = {.page = page, .html = html};
    for (size_t v = 0; v < study->variant_count; v++)
        ratios[v] = 100 * study->variants[v].ratio;
    for (size_t a = 0; a < study->arch_count; a++)
        dl2_accuracy_plot(&figures, a,
                          &(struct dl2_accuracy_axis){"bytes", "Accuracy against size",
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
}

/* ---- What is open */

static void write_open(struct dl2_bytes *html, const struct dl2_page *page)
{
    const struct dl2_study *study = page->study;
    bool any = false;
    for (size_t a = 0; a < study->arch_count; a++)
        for (size_t v = 0; v < study->variant_count; v++) {
            const char *text = dl2_outlook_text(study, &page->analyses[a], v);
            if (!*text)
                continue;
            if (!any)
                dl2_html_markup(html, "<details open='open'><summary>What is open, and what would "
                                      "settle it</summary>\n<ul class='plain'>\n");
            any = true;
            dl2_html_element(html, "li", "%s%s", text, dl2_part_arch_after(page, " With ", a));
        }
    if (!any)
        return;
    dl2_html_markup(html, "</ul>\n");
    dl2_html_element(html, "p class='note'",
                     "The limit is a loss of %s. The probabilities allow for true changes that "
                     "differ from the measured ones: of variants that are worth another study, "
                     "many were lucky in this one.",
                     dl2_count_points(page->tolerance));
    dl2_html_markup(html, "</details>\n");
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
    dl2_html_markup(html, "<div class='cards'>\n");
    for (size_t a = 0; a < study->arch_count; a++) {
        const struct dl2_speeds *speeds = &page->speeds[a];
        char accuracy[64];
        snprintf(accuracy, sizeof accuracy, "Fastest to %.1f%% %s", speeds->accuracy,
                 dl2_study_accuracy(study)->name);
        const char *const kickers[] = {[DL2_SPEED_LOAD] = "Fastest to load",
                                       [DL2_SPEED_TRAIN] = "Fastest to train on",
                                       [DL2_SPEED_ACCURACY] = accuracy};
        write_advice(html, page, a, "Smallest", &page->analyses[a].smallest);
        for (int kind = 0; kind < DL2_SPEED_KINDS; kind++)
            if (kind == DL2_SPEED_LOAD || speeds->rounds) /* else training was not measured */
                write_advice(html, page, a, kickers[kind], &speeds->fastest[kind]);
    }
    dl2_html_markup(html, "</div>\n");
    write_open(html, page);
    write_decided(page, html);
}
