/* SPDX-License-Identifier: BSD-2-Clause */
/* What to choose for speed, what is open, and how that was decided. */
#include "report/advice.h"
#include "report/page/parts.h"
#include "report/page/sections.h"
#include "report/sentence.h"

#include <math.h>
#include <stdlib.h>

/* ---- Cards: what to choose */

static void write_advice(json_t *cards, const struct dl2_page *page, size_t arch, const char *title,
                         const struct dl2_advice *advice)
{
    const struct dl2_analysis *analysis = &page->analyses[arch];
    const struct dl2_study *study = page->study;
    const size_t none = study->variant_count;
    const size_t pick = dl2_advice_pick(advice, study);
    json_t *card = dl2_block_append(cards, "cards", json_object());
    dl2_block_set(card, "title", "%s%s", title, dl2_part_arch_after(page, " · ", arch));
    if (pick < none) {
        dl2_table_badge(card, analysis->comparisons[pick].verdict, "%s",
                        advice->sure < none ? "within tolerance" : "could be within tolerance");
        dl2_block_set(card, "gain", "%s", advice->gain);
    }
    dl2_block_set(card, "name", "%s", pick < none ? study->variants[pick].name : "none");
    dl2_block_set(card, "text", "%s", advice->text);
}

/* ---- What is open */

static void write_open(json_t *section, const struct dl2_page *page)
{
    const struct dl2_study *study = page->study;
    json_t *fold = NULL, *list = NULL;
    for (size_t a = 0; a < study->arch_count; a++)
        for (size_t v = 0; v < study->variant_count; v++) {
            const char *text = dl2_outlook_text(study, &page->analyses[a], v);
            if (!*text)
                continue;
            if (!fold) {
                fold = dl2_block_fold(section, "What is open, and what would settle it");
                dl2_block_set(fold, "id", "open");
                dl2_block_flag(fold, "open");
                list = dl2_block_add(fold, "list");
            }
            dl2_block_item(list, "%s%s", text, dl2_part_arch_after(page, " With ", a));
        }
    if (fold)
        dl2_block_text(fold, "note",
                       dl2_accuracy_words(dl2_study_accuracy(study),
                                          "The limit is a loss of %s. The probabilities allow for "
                                          "true changes that differ from the measured ones: of "
                                          "variants that are worth another study, many were lucky "
                                          "in this one."),
                       dl2_tolerance_text(&page->analyses[0]));
}

/* ---- How the answer was decided: what the verdicts mean, and which chances the intervals count */

/* Variants that were trained from fewer seeds than the original. */
static void write_short_of_seeds(json_t *text, const struct dl2_page *page)
{
    const struct dl2_study *study = page->study;
    for (size_t a = 0; a < study->arch_count; a++)
        for (size_t v = 0; v < study->variant_count; v++) {
            const struct dl2_analysis *analysis = &page->analyses[a];
            const struct dl2_comparison *comparison = &analysis->comparisons[v];
            if (comparison->verdict == DL2_VERDICT_NONE || comparison->pairs == analysis->seeds)
                continue;
            dl2_block_say(text, "%s was trained from %zu of the original's %zu seeds%s. ",
                          study->variants[v].name, comparison->pairs, analysis->seeds,
                          dl2_part_arch_after(page, ", with ", a));
        }
}

/* "1 point of accuracy", "2% of the original's accuracy (1.5 points with a, 1.4 with b)". */
static const char *tolerance_of(const struct dl2_page *page)
{
    const struct dl2_analysis *first = &page->analyses[0];
    if (!(first->question.percent > 0))
        return dl2_text("%s of %s", dl2_count_points(first->kind, first->question.tolerance),
                        dl2_accuracy_words(first->kind, "accuracy"));
    const char *text = "";
    for (size_t a = 0; a < page->study->arch_count; a++)
        text = dl2_text("%s%s%s%s", text, a ? ", " : "",
                        dl2_count_points(
                            first->kind,
                            strtod(dl2_number("%.3g", page->analyses[a].question.tolerance), NULL)),
                        dl2_part_arch_after(page, " with ", a));
    return dl2_text("%g%% of the original's measured %s (%s)", first->question.percent,
                    dl2_accuracy_words(first->kind, "accuracy"), text);
}

/* What the verdicts mean. */
static void write_rules(json_t *text, const struct dl2_page *page)
{
    const struct dl2_analysis *first = &page->analyses[0];
    dl2_block_say(text,
                  "Tolerance: %s, which is %s. “Within” is claimed: each codec's variants are "
                  "tested from the largest file to the smallest, the first that fails ends its "
                  "codec, and in at most 2.5%% of such studies any claim is wrong",
                  tolerance_of(page), first->kind->what);
    if (first->codecs > 1)
        dl2_block_say(text, ", which %zu codecs share", first->codecs);
    dl2_block_say(text, ". “Could be”: the measured difference is within, but it is not claimed; "
                        "“looks worse”: the measured difference is beyond, but its interval "
                        "reaches within; “worse”: all of its interval is beyond. Intervals are "
                        "95%%, of each variant by itself. ");
    if (first->question.looks.count < 2) {
        dl2_block_say(text,
                      "All looks at a study share the 2.5%%; this one, look %zu, has %.2g%%. An "
                      "interval is that of this look alone. ",
                      page->plan.look, 100 * DL2_CLAIMS_LEVEL * first->question.looks.share[0]);
        return;
    }
    dl2_block_say(text, "Seeds were added to the next variant of each codec until it was "
                        "decided, with looks after ");
    for (size_t i = 0; i < first->question.looks.count; i++)
        dl2_block_say(text, "%s%zu", dl2_joint(i, first->question.looks.count),
                      first->question.looks.seeds[i]);
    dl2_block_say(text,
                  "; all looks share the 2.5%%, and an interval holds at all of them together. ");
}

static void write_noise(json_t *text, const struct dl2_analysis *first)
{
    if (first->kind->is_as_it_is)
        return;
    if (first->seeds < 2) {
        dl2_block_say(text, "One training each can't tell chance from effect. ");
        return;
    }
    if (!isfinite(first->noise.deviation))
        return;
    dl2_block_say(text,
                  dl2_accuracy_words(
                      first->kind,
                      "Trainings from %zu seeds each, compared seed by seed; the noise of a "
                      "single training, estimated from all variants together (%zu degrees of "
                      "freedom), is %.2f points. A variant is judged by its own noise, which is "
                      "drawn towards that by the weight of a quarter of a degree of freedom. "),
                  first->seeds, first->noise.freedom, first->noise.deviation);
    if (first->seeds < 4)
        dl2_block_say(text, "With so few seeds the intervals are wide. ");
}

/* The intervals without the choice of images, of trainings that kept predictions. */
static void write_training_chance(json_t *text, const struct dl2_page *page)
{
    const struct dl2_study *study = page->study;
    const char *before = "By the chance of training alone the intervals are ";
    for (size_t a = 0; a < study->arch_count; a++)
        for (size_t v = 0; v < study->variant_count; v++) {
            const struct dl2_comparison *comparison = &page->analyses[a].comparisons[v];
            if (study->as_it_is || comparison->verdict == DL2_VERDICT_NONE ||
                !dl2_counts_images(comparison) || !isfinite(comparison->half))
                continue;
            dl2_block_say(
                text, "%s%s for %s%s", before,
                dl2_interval(dl2_study_accuracy(study), comparison->difference, comparison->half),
                study->variants[v].name, dl2_part_arch_after(page, " with ", a));
            before = ", ";
        }
    dl2_block_say(text, *before == ',' ? ". " : "");
}

/* What a single training on the recommended variant might show. */
static void write_single(json_t *text, const struct dl2_page *page)
{
    const struct dl2_study *study = page->study;
    for (size_t a = 0; a < study->arch_count; a++) {
        const size_t pick = dl2_advice_pick(&page->analyses[a].smallest, study);
        if (pick == study->variant_count || study->as_it_is)
            continue;
        const struct dl2_accuracy_kind *kind = page->analyses[a].kind;
        const struct dl2_comparison *comparison = &page->analyses[a].comparisons[pick];
        const double half = dl2_comparison_single(comparison);
        if (comparison->pairs && isfinite(half))
            dl2_block_say(text,
                          dl2_accuracy_words(kind,
                                             "One new training%s on %s would end between %s and "
                                             "%s points of one on the original, on these images "
                                             "(95%% prediction interval). "),
                          dl2_part_arch_after(page, " of ", a), study->variants[pick].name,
                          dl2_signed(kind, comparison->difference - half),
                          dl2_signed(kind, comparison->difference + half));
    }
}

/* Which intervals cover the choice of validation images. */
static void write_images(json_t *text, const struct dl2_page *page)
{
    const struct dl2_study *study = page->study;
    size_t with = 0, without = 0, resamples = 0;
    for (size_t a = 0; a < study->arch_count; a++)
        for (size_t v = 0; v < study->variant_count; v++) {
            const struct dl2_comparison *comparison = &page->analyses[a].comparisons[v];
            resamples = comparison->resamples ? comparison->resamples : resamples;
            if (comparison->verdict != DL2_VERDICT_NONE)
                *(dl2_counts_images(comparison) ? &with : &without) += 1;
        }
    double val = NAN;
    for (size_t i = 0; i < study->run_count && !(val > 0); i++)
        val = study->runs[i].val_images;
    if (!(val > 0) && !dl2_study_accuracy(study)->is_foreign && !study->as_it_is)
        return;
    if (study->as_it_is) {
        if (with && resamples)
            dl2_block_say(text,
                          "Verdicts and intervals count one source of chance: new images, by the "
                          "differences on %zu resamples of these. ",
                          resamples);
        else if (with)
            dl2_block_say(text,
                          "Verdicts and intervals count one source of chance: new images in "
                          "place of these %.0f. ",
                          val);
        if (without)
            dl2_block_say(text, "A number alone says nothing of chance: without outcomes of "
                                "images or resamples there are no intervals, and no claims. ");
        return;
    }
    if (with && resamples)
        dl2_block_say(text,
                      "Verdicts and the table's intervals count two sources of chance: new "
                      "trainings, and new validation images, by the differences on %zu "
                      "resamples of these. They hold for this training set, recipe and split. ",
                      resamples);
    else if (with)
        dl2_block_say(text,
                      "Verdicts and the table's intervals count two sources of chance: new "
                      "trainings, and new validation images in place of these %.0f. They hold "
                      "for this training set, recipe and split. ",
                      val);
    write_training_chance(text, page);
    if (with && without)
        dl2_block_say(text, "%s",
                      dl2_accuracy_words(dl2_study_accuracy(study),
                                         "Where predictions are missing they count the "
                                         "trainings alone. "));
    else if (without && dl2_study_accuracy(study)->is_foreign)
        dl2_block_say(
            text,
            "Verdicts and intervals count the chance of training alone: the trainer hands back a "
            "number for each training, so the chance of which validation images there are is not "
            "in them. ");
    else if (without && dl2_study_accuracy(study) != &dl2_accuracy_top1)
        dl2_block_say(
            text,
            "Trainings on masks and on volumes keep no predictions, so the intervals tell of the "
            "chance of training alone, not of the choice of the %.0f for validation. ",
            val);
    else if (without)
        dl2_block_say(text,
                      "The trainings kept no predictions (earlier versions keep none), so the "
                      "intervals tell of the chance of training alone, not of the choice of the "
                      "%.0f validation images, of which one is %.2g points. ",
                      val, 100 / val);
}

void dl2_section_choices(const struct dl2_page *page, json_t *section)
{
    const struct dl2_study *study = page->study;
    if (!study->arch_count)
        return;
    json_t *cards = dl2_block_add(section, "cards");
    for (size_t a = 0; a < study->arch_count; a++) {
        const struct dl2_speeds *speeds = &page->speeds[a];
        const char *accuracy =
            dl2_text("Fastest to %s", dl2_accuracy_named(page->analyses[a].kind, speeds->accuracy));
        const char *const titles[] = {[DL2_SPEED_LOAD] = "Fastest to load",
                                      [DL2_SPEED_TRAIN] = "Fastest to train on",
                                      [DL2_SPEED_ACCURACY] = accuracy};
        for (int kind = 0; kind < DL2_SPEED_KINDS; kind++)
            if (kind == DL2_SPEED_LOAD || speeds->rounds) /* else training was not measured */
                write_advice(cards, page, a, titles[kind], &speeds->fastest[kind]);
    }
    write_open(section, page);
    json_t *text = dl2_block_add(dl2_block_fold(section, "How this was decided"), "note");
    write_rules(text, page);
    write_noise(text, &page->analyses[0]);
    write_short_of_seeds(text, page);
    write_images(text, page);
    write_single(text, page);
}
