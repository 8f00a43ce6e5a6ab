/* SPDX-License-Identifier: BSD-2-Clause */
/* What the metrics tell of accuracy: which one should a quality be chosen by? */
#include "common/json.h"
#include "common/scope.h"
#include "report/metric_trust.h"
#include "report/page/accuracy_plot.h"
#include "report/page/html.h"
#include "report/page/parts.h"
#include "report/page/sections.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

/* ---- A table of the images that variants break, against the metrics' scores of them */

static void write_share(struct dl2_bytes *html, double worse, double low, double high)
{
    dl2_html_markup(html, "<td>");
    dl2_html_text(html, dl2_part_fixed(worse, 2));
    if (isfinite(worse))
        dl2_html_element(html, "small", " (%s to %s)", dl2_part_fixed(low, 2),
                         dl2_part_fixed(high, 2));
    dl2_html_markup(html, "</td>");
}

/* SSIM where it was scored, else the first metric. */
static size_t main_metric(const struct dl2_metric_names *metrics)
{
    for (size_t m = 0; m < metrics->count; m++)
        if (strcmp(metrics->names[m], "ssim") == 0)
            return m;
    return 0;
}

/* The table of one network: breakages[variant_count]. Writes nothing where none is known. */
static void breakage_table(struct dl2_bytes *html, const struct dl2_study *study,
                           const struct dl2_metric_names *metrics,
                           const struct dl2_breakage *breakages)
{
    const size_t first = main_metric(metrics);
    bool any = false;
    for (size_t v = 0; v < study->variant_count; v++)
        any |= breakages[v].seeds && breakages[v].metrics[first].kept;
    if (!any)
        return;
    struct dl2_table table = {.html = html};
    dl2_html_markup(html,
                    "<h3>Are the images that a variant breaks those that it scores low?</h3>");
    dl2_table_heads(&table, "variant|images\nbroken|mended|kept");
    dl2_table_head(&table, "median, broken:\n%s", dl2_metric_title(study, metrics->names[first]));
    dl2_table_head(&table, "median, kept:\n%s", dl2_metric_title(study, metrics->names[first]));
    for (size_t m = 0; m < metrics->count; m++)
        dl2_table_head(&table, "broken worse:\n%s", dl2_metric_title(study, metrics->names[m]));
    for (size_t v = 0; v < study->variant_count; v++) {
        const struct dl2_breakage *breakage = &breakages[v];
        if (!breakage->seeds)
            continue;
        dl2_table_row(&table, study->variants[v].name);
        dl2_html_element(html, "td", "%zu", breakage->broken);
        dl2_html_element(html, "td", "%zu", breakage->mended);
        dl2_html_element(html, "td", "%zu", breakage->kept);
        dl2_part_cell(html, breakage->metrics[first].broken_median, 4);
        dl2_part_cell(html, breakage->metrics[first].kept_median, 4);
        for (size_t m = 0; m < metrics->count; m++)
            write_share(html, breakage->metrics[m].worse, breakage->metrics[m].low,
                        breakage->metrics[m].high);
    }
    dl2_table_end(&table);
    dl2_html_markup(
        html, "<p class='note'>A variant breaks a validation image if the "
              "network trained on the original gets it right and the one trained on the variant "
              "gets it wrong, in more than half of the seeds. Mended is the reverse, which chance "
              "alone brings about: where a variant breaks no more than it mends, it does no harm "
              "that can be seen. Kept are those which the original gets right in more than half "
              "of the seeds, without the broken. “Broken worse” is the probability that a broken "
              "image has a worse score than a kept one (Mann-Whitney; 0.5 is chance), with its 95% "
              "interval (Newcombe 2006, method 5), which tells of the choice of images.</p>\n");
}

/* ---- Tables of metrics, of one network: how they order the variants, and all their figures */

static void write_figure_title(struct dl2_bytes *html, const struct dl2_study *study,
                               const struct dl2_guide *figure)
{
    dl2_html_format(html, "%s",
                    figure->metric ? dl2_metric_title(study, figure->metric) : "bits per pixel");
    if (figure->metric)
        dl2_html_element(html, "small", " %s", figure->title);
}

static void ranking_table(struct dl2_bytes *html, const struct dl2_study *study,
                          const struct dl2_guides *guides)
{
    struct dl2_table table = {.html = html};
    dl2_table_heads(
        &table, dl2_accuracy_words(dl2_study_accuracy(study),
                                   "variants ordered by|Kendall's tau\nwith accuracy|interval|"
                                   "pairs ordered\nas by accuracy|of those that\nare told apart"));
    for (size_t i = 0; i < guides->count; i++) {
        const struct dl2_ranking *ranking = &guides->items[i].ranking;
        if (!isfinite(ranking->tau))
            continue;
        dl2_table_bare_row(&table, "");
        dl2_html_markup(html, "<th scope='row'>");
        write_figure_title(html, study, &guides->items[i]);
        dl2_html_markup(html, "</th>");
        dl2_html_element(html, "td", "%s", dl2_part_fixed(ranking->tau, 2));
        dl2_html_element(html, "td", "%s to %s", dl2_part_fixed(ranking->low, 2),
                         dl2_part_fixed(ranking->high, 2));
        dl2_html_element(html, "td", "%zu of %zu", ranking->alike, ranking->pairs);
        dl2_html_element(html, "td", "%zu of %zu", ranking->told_alike, ranking->told);
    }
    dl2_table_end(&table);
}

/* Every metric of every variant, beside the change in accuracy; folded up. */
static void metric_table(struct dl2_bytes *html, const struct dl2_study *study,
                         const struct dl2_analysis *analysis, const struct dl2_guides *guides)
{
    struct dl2_table table = {.html = html};
    dl2_html_markup(html, "<details><summary>Every metric of every variant</summary>");
    dl2_table_heads(
        &table, dl2_accuracy_words(analysis->kind, "variant|accuracy, points\nto the original"));
    for (size_t i = 0; i < guides->count; i++) {
        dl2_html_markup(html, "<th scope='col'>");
        write_figure_title(html, study, &guides->items[i]);
        dl2_html_markup(html, "</th>");
    }
    for (size_t v = 0; v < study->variant_count; v++) {
        const double difference = analysis->comparisons[v].difference;
        if (!study->variants[v].scored)
            continue;
        dl2_table_row(&table, study->variants[v].name);
        dl2_html_element(html, "td", "%s",
                         isfinite(difference) ? dl2_signed(analysis->kind, difference) : "–");
        for (size_t i = 0; i < guides->count; i++) {
            const double value = dl2_guide_value(&guides->items[i], &study->variants[v]);
            if (isinf(value))
                dl2_html_markup(html, "<td>lossless</td>");
            else
                dl2_part_cell(html, value, fabs(value) < 2 ? 4 : 2);
        }
    }
    dl2_table_end(&table);
    dl2_html_markup(html, "</details>\n");
}

/* ---- The section */

static void write_notes(struct dl2_bytes *html, const struct dl2_accuracy_kind *kind,
                        const struct dl2_accuracy_order *order)
{
    dl2_html_format(html, "Kendall's tau-b is 1 for the same order, 0 for chance, −1 for the "
                          "reverse. ");
    if (order->signs)
        dl2_html_format(
            html,
            dl2_accuracy_words(
                kind,
                "Two variants are told apart if the 95%% interval of the difference between their "
                "accuracies, by the chance of training%s, is on one side of 0. Tau's interval "
                "counts all other pairs against the metric, then for it. The choice of the "
                "variants is not in it: with other qualities or codecs, the order may be another."),
            order->images ? " and the choice of images"
                          : " alone (without predictions, the choice of images is not in it)");
    else
        dl2_html_format(html, "%s",
                        dl2_accuracy_words(kind, "One training each gives no interval."));
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
    dl2_part_figures_end(plots);
}

static void write_guides(struct dl2_bytes *html, const struct dl2_page *page, size_t arch,
                         const struct dl2_guides *guides, const struct dl2_accuracy_order *order)
{
    char answer[2048];
    dl2_part_arch_heading(html, page, arch);
    dl2_guides_say(guides, page->study, answer, sizeof answer);
    if (answer[0])
        dl2_html_element(html, "p", "%s", answer);
    dl2_html_markup(html, answer[0] ? "\n" : "");
    ranking_table(html, page->study, guides);
    dl2_html_markup(html, "<p class='note'>");
    write_notes(html, page->analyses[arch].kind, order);
    dl2_html_markup(html, "</p>\n");
    metric_table(html, page->study, &page->analyses[arch], guides);
}

static void write_network(const struct dl2_page *page, struct dl2_bytes *html, size_t arch,
                          const struct dl2_metric_names *metrics,
                          const struct dl2_breakage *breakages)
{
    struct dl2_part_figures plots = {.page = page, .html = html};
    const struct dl2_analysis *analysis = &page->analyses[arch];
    const struct dl2_accuracy_order order = dl2_accuracy_order_make(page->study, analysis, arch);
    const struct dl2_guides guides = dl2_guides_make(page->study, analysis, &order, metrics);
    if (guides.any) {
        write_guides(html, page, arch, &guides, &order);
        breakage_table(html, page->study, metrics, breakages);
    }
    plot_metrics(&plots, arch, metrics);
}

void dl2_section_metrics(const struct dl2_page *page, struct dl2_bytes *html)
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
    dl2_html_markup(html,
                    dl2_accuracy_words(dl2_study_accuracy(study),
                                       "<h2 id='metrics'>Which metric predicts accuracy?</h2>\n"));
    for (size_t a = 0; a < study->arch_count; a++)
        write_network(page, html, a, &metrics, breakages + a * study->variant_count);
}
