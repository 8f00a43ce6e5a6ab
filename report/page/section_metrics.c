/* SPDX-License-Identifier: BSD-2-Clause */
/* What the metrics tell of accuracy: which one should a quality be chosen by? */
#include "common/json.h"
#include "common/scope.h"
#include "report/metric_trust.h"
#include "report/page/accuracy_plot.h"
#include "report/page/parts.h"
#include "report/page/sections.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

/* ---- A table of the images that variants break, against the metrics' scores of them */

/* SSIM where it was scored, else the first metric. */
static size_t main_metric(const struct dl2_metric_names *metrics)
{
    for (size_t m = 0; m < metrics->count; m++)
        if (strcmp(metrics->names[m], "ssim") == 0)
            return m;
    return 0;
}

/* The table of one network: breakages[variant_count]. Writes nothing where none is known. */
static void breakage_table(json_t *parent, const struct dl2_study *study,
                           const struct dl2_metric_names *metrics,
                           const struct dl2_breakage *breakages)
{
    const size_t first = main_metric(metrics);
    bool any = false;
    for (size_t v = 0; v < study->variant_count; v++)
        any |= breakages[v].seeds && breakages[v].metrics[first].kept;
    if (!any)
        return;
    dl2_block_text(parent, "heading",
                   "Are the images that a variant breaks those that it scores low?");
    json_t *table = dl2_table_add(parent, "variant|images\nbroken|mended|kept");
    dl2_table_head(table, "median, broken:\n%s", dl2_metric_title(study, metrics->names[first]));
    dl2_table_head(table, "median, kept:\n%s", dl2_metric_title(study, metrics->names[first]));
    for (size_t m = 0; m < metrics->count; m++)
        dl2_table_head(table, "broken worse:\n%s", dl2_metric_title(study, metrics->names[m]));
    for (size_t v = 0; v < study->variant_count; v++) {
        const struct dl2_breakage *breakage = &breakages[v];
        if (!breakage->seeds)
            continue;
        dl2_table_row(table, study->variants[v].name);
        dl2_table_number(table, (double)breakage->broken, 0);
        dl2_table_number(table, (double)breakage->mended, 0);
        dl2_table_number(table, (double)breakage->kept, 0);
        dl2_table_number(table, breakage->metrics[first].broken_median, 4);
        dl2_table_number(table, breakage->metrics[first].kept_median, 4);
        for (size_t m = 0; m < metrics->count; m++)
            dl2_part_ratio(table, breakage->metrics[m].worse, breakage->metrics[m].low,
                           breakage->metrics[m].high);
    }
    dl2_block_text(
        parent, "note",
        "A variant breaks a validation image if the network trained on the original gets it right "
        "and the one trained on the variant gets it wrong, in more than half of the seeds. Mended "
        "is the reverse, which chance alone brings about: where a variant breaks no more than it "
        "mends, it does no harm that can be seen. Kept are those which the original gets right in "
        "more than half of the seeds, without the broken. “Broken worse” is the probability that a "
        "broken image has a worse score than a kept one (Mann-Whitney; 0.5 is chance), with its "
        "95%% interval (Newcombe 2006, method 5), which tells of the choice of images.");
}

/* ---- Tables of metrics, of one network: how they order the variants, and all their figures */

static const char *title_of(const struct dl2_study *study, const struct dl2_guide *figure)
{
    return figure->metric ? dl2_metric_title(study, figure->metric) : "bits per pixel";
}

static void ranking_table(json_t *parent, const struct dl2_study *study,
                          const struct dl2_guides *guides)
{
    json_t *table = dl2_table_add(
        parent, dl2_accuracy_words(dl2_study_accuracy(study),
                                   "variants ordered by|Kendall's tau\nwith accuracy|interval|"
                                   "pairs ordered\nas by accuracy|of those that\nare told apart"));
    for (size_t i = 0; i < guides->count; i++) {
        const struct dl2_ranking *ranking = &guides->items[i].ranking;
        if (!isfinite(ranking->tau))
            continue;
        json_t *row = dl2_table_row(table, title_of(study, &guides->items[i]));
        if (guides->items[i].metric)
            dl2_block_set(json_array_get(json_object_get(row, "cells"), 0), "detail", "%s",
                          guides->items[i].title);
        dl2_table_number(table, ranking->tau, 2);
        dl2_table_interval(dl2_table_value(table, ranking->low, "%s to %s",
                                           dl2_table_fixed(ranking->low, 2),
                                           dl2_table_fixed(ranking->high, 2)),
                           ranking->low, ranking->high);
        dl2_table_value(table, (double)ranking->alike, "%zu of %zu", ranking->alike,
                        ranking->pairs);
        dl2_table_value(table, (double)ranking->told_alike, "%zu of %zu", ranking->told_alike,
                        ranking->told);
    }
}

/* Every metric of every variant, beside the change in accuracy; folded up. */
static void metric_table(json_t *parent, const struct dl2_study *study,
                         const struct dl2_analysis *analysis, const struct dl2_guides *guides)
{
    json_t *table = dl2_table_add(
        dl2_block_fold(parent, "Every metric of every variant"),
        dl2_accuracy_words(analysis->kind, "variant|accuracy, points\nto the original"));
    for (size_t i = 0; i < guides->count; i++)
        dl2_table_head(table, "%s\n%s", title_of(study, &guides->items[i]),
                       guides->items[i].metric ? guides->items[i].title : "");
    for (size_t v = 0; v < study->variant_count; v++) {
        if (!study->variants[v].scored)
            continue;
        dl2_table_row(table, study->variants[v].name);
        dl2_part_interval(table, analysis->kind, analysis->comparisons[v].difference, NAN, NAN);
        for (size_t i = 0; i < guides->count; i++) {
            const double value = dl2_guide_value(&guides->items[i], &study->variants[v]);
            if (isinf(value))
                dl2_table_text(table, "lossless");
            else
                dl2_table_number(table, value, fabs(value) < 2 ? 4 : 2);
        }
    }
}

/* ---- The section */

static void write_notes(json_t *text, const struct dl2_accuracy_kind *kind,
                        const struct dl2_accuracy_order *order)
{
    dl2_block_say(text, "Kendall's tau-b is 1 for the same order, 0 for chance, −1 for the "
                        "reverse. ");
    if (order->signs)
        dl2_block_say(
            text,
            dl2_accuracy_words(
                kind,
                "Two variants are told apart if the 95%% interval of the difference between their "
                "accuracies, by the chance of training%s, is on one side of 0. Tau's interval "
                "counts all other pairs against the metric, then for it. The choice of the "
                "variants is not in it: with other qualities or codecs, the order may be another."),
            order->images ? " and the choice of images"
                          : " alone (without predictions, the choice of images is not in it)");
    else
        dl2_block_say(text, "%s", dl2_accuracy_words(kind, "There are too few trainings for an interval."));
}

/* Accuracy against each metric. */
static void plot_metrics(struct dl2_part_figures *plots, size_t arch,
                         const struct dl2_metric_names *metrics)
{
    const struct dl2_study *study = plots->page->study;
    DL2_AUTO_FREE double *values = dl2_room(study->variant_count, sizeof *values, "variants");
    for (size_t m = 0; m < metrics->count; m++) {
        const char *metric = metrics->names[m];
        char title[128], label[64];
        const char *unit = dl2_json_get_text(json_object_get(study->quality, "units"), metric, "");
        snprintf(title, sizeof title, "%s%s%s", dl2_metric_title(study, metric), *unit ? ", " : "",
                 unit);
        dl2_plot_label(title, label, sizeof label);
        snprintf(title, sizeof title,
                 dl2_accuracy_words(dl2_study_accuracy(study), "Accuracy against %s"),
                 dl2_metric_title(study, metric));
        for (size_t v = 0; v < study->variant_count; v++)
            values[v] = dl2_metric_aggregate(&study->variants[v], metric, "mean");
        dl2_accuracy_plot(
            plots, arch,
            &(struct dl2_accuracy_axis){metric, title, label, values, false, DL2_FRONT_NONE});
    }
}

static void write_network(const struct dl2_page *page, json_t *section, size_t arch,
                          const struct dl2_metric_names *metrics,
                          const struct dl2_breakage *breakages)
{
    const struct dl2_analysis *analysis = &page->analyses[arch];
    const struct dl2_accuracy_order order = dl2_accuracy_order_make(page->study, analysis, arch);
    const struct dl2_guides guides = dl2_guides_make(page->study, analysis, &order, metrics);
    if (guides.any) {
        char answer[2048];
        dl2_part_arch_heading(section, page, arch);
        dl2_guides_say(&guides, page->study, answer, sizeof answer);
        if (answer[0])
            dl2_block_text(section, "paragraph", "%s", answer);
        ranking_table(section, page->study, &guides);
        write_notes(dl2_block_add(section, "note"), analysis->kind, &order);
        metric_table(section, page->study, analysis, &guides);
        breakage_table(section, page->study, metrics, breakages);
    }
    plot_metrics(&(struct dl2_part_figures){.page = page, .parent = section}, arch, metrics);
}

void dl2_section_metrics(const struct dl2_page *page, json_t *section)
{
    const struct dl2_study *study = page->study;
    struct dl2_metric_names metrics;
    dl2_metric_names_find(study, &metrics);
    bool trained = false;
    for (size_t a = 0; a < study->arch_count; a++)
        for (size_t v = 0; v < study->variant_count; v++)
            trained |= page->analyses[a].comparisons[v].verdict != DL2_VERDICT_NONE;
    if (!metrics.count || !trained)
        return;
    const struct dl2_breakage *breakages = dl2_breakages_find(study, &metrics);
    dl2_block_set(section, "heading", "%s",
                  dl2_accuracy_words(dl2_study_accuracy(study), "Which metric predicts accuracy?"));
    for (size_t a = 0; a < study->arch_count; a++)
        write_network(page, section, a, &metrics, breakages + a * study->variant_count);
}
