/* SPDX-License-Identifier: BSD-2-Clause */
/* What the metrics tell of accuracy: which one should a quality be chosen by? */
#include "common/json.h"
#include "common/memory.h"
#include "report/metric_trust.h"
#include "report/page/accuracy_plot.h"
#include "report/page/sections.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* What variants are ordered by: a metric's aggregate, or bits per pixel. */
struct figure {
    const char *metric; /* NULL: bits per pixel */
    const char *part;   /* "mean" */
    const char *title;  /* "mean" */
    bool lower_is_better;
};

static double figure_of(const struct dl2_study_variant *variant, const struct figure *figure)
{
    return figure->metric ? dl2_metric_aggregate(variant, figure->metric, figure->part)
                          : variant->bits_per_pixel;
}

/* "PSNR RGB" of "psnr_rgb"; its own name where dl2-quality has not told. */
static const char *title_of(const struct dl2_study *study, const char *metric)
{
    return dl2_json_get_text(study->metric_titles, metric, metric);
}

enum { MAX_FIGURES = 2 * DL2_MAX_METRICS + 1 };

static size_t list_figures(const struct dl2_metric_names *metrics, struct figure *figures)
{
    size_t count = 0;
    for (size_t m = 0; m < metrics->count; m++) {
        const bool lower = metrics->lower_is_better[m];
        figures[count++] = (struct figure){metrics->names[m], "mean", "mean", lower};
        figures[count++] = (struct figure){metrics->names[m], lower ? "p95" : "p5",
                                           lower ? "95th percentile" : "5th percentile", lower};
    }
    figures[count++] = (struct figure){NULL, NULL, NULL, false};
    return count;
}

static void write_figure_title(struct dl2_html *html, const struct dl2_study *study,
                               const struct figure *figure)
{
    dl2_html_format(html, "%s",
                    figure->metric ? title_of(study, figure->metric) : "bits per pixel");
    if (figure->metric)
        dl2_html_element(html, "small", " %s", figure->title);
}

static void write_rankings(struct dl2_html *html, const struct dl2_study *study,
                           const struct figure *figures, const struct dl2_ranking *rankings,
                           size_t count)
{
    struct dl2_table table = {.html = html};
    dl2_table_heads(&table, "variants ordered by|Kendall's tau\nwith accuracy|interval|"
                            "pairs ordered\nas by accuracy|of those that\nare told apart");
    for (size_t i = 0; i < count; i++) {
        const struct dl2_ranking *ranking = &rankings[i];
        char text[2][32];
        if (!isfinite(ranking->tau))
            continue;
        dl2_table_bare_row(&table, "");
        dl2_html_markup(html, "<th scope='row'>");
        write_figure_title(html, study, &figures[i]);
        dl2_html_markup(html, "</th>");
        dl2_html_element(html, "td", "%s", dl2_part_fixed(ranking->tau, 2, text[0]));
        dl2_html_element(html, "td", "%s to %s", dl2_part_fixed(ranking->low, 2, text[0]),
                         dl2_part_fixed(ranking->high, 2, text[1]));
        dl2_html_element(html, "td", "%zu of %zu", ranking->alike, ranking->pairs);
        dl2_html_element(html, "td", "%zu of %zu", ranking->told_alike, ranking->told);
    }
    dl2_table_end(&table);
}

/* Is it of a metric, and of as high a tau as the best? */
static bool is_best(const struct figure *figures, const struct dl2_ranking *rankings, size_t i,
                    double best)
{
    return figures[i].metric && rankings[i].tau >= best;
}

/* Which metrics come first, and whether the study can tell them from the others. */
static void write_best(struct dl2_html *html, const struct dl2_study *study,
                       const struct figure *figures, const struct dl2_ranking *rankings,
                       size_t count)
{
    double best = -INFINITY;
    size_t first = count, equals = 0, others = 0, reach = 0;
    for (size_t i = 0; i < count; i++)
        if (figures[i].metric && rankings[i].tau > best) {
            best = rankings[i].tau;
            first = i;
        }
    if (first == count)
        return;
    for (size_t i = 0; i < count; i++) {
        equals += is_best(figures, rankings, i, best);
        if (!figures[i].metric || is_best(figures, rankings, i, best) || isnan(rankings[i].tau))
            continue;
        others++;
        reach += !(rankings[i].high < rankings[first].low);
    }
    char size[64] = ""; /* bits per pixel comes last */
    if (isfinite(rankings[count - 1].tau) && rankings[count - 1].told == rankings[first].told)
        snprintf(size, sizeof size, ", size alone %zu", rankings[count - 1].told_alike);
    dl2_html_markup(html, "<p>");
    dl2_html_format(html, "Of the %zu pairs of %zu variants, ", rankings[first].pairs,
                    rankings[first].variants);
    for (size_t i = 0, written = 0; i < count; i++) {
        if (!is_best(figures, rankings, i, best))
            continue;
        dl2_html_format(html, "%s%s (%s)",
                        !written               ? ""
                        : written + 1 < equals ? ", "
                                               : " and ",
                        title_of(study, figures[i].metric), figures[i].title);
        written++;
    }
    dl2_html_format(html, "%s %zu as accuracy does", equals == 1 ? " orders" : " each order",
                    rankings[first].alike);
    if (isfinite(rankings[count - 1].tau))
        dl2_html_format(html, "; size alone orders %zu", rankings[count - 1].alike);
    dl2_html_format(html, ".");
    if (rankings[first].told)
        dl2_html_format(html, " Of the %zu whose accuracies can be told apart, %s %zu%s.",
                        rankings[first].told, equals == 1 ? "it orders" : "each orders",
                        rankings[first].told_alike, size);
    if (equals + others > 1 && (equals > 1 || reach))
        dl2_html_format(html,
                        " %s, so this study does not show that one metric is a better guide "
                        "than another.",
                        reach ? "The intervals overlap" : "They are equal");
    dl2_html_markup(html, "</p>\n");
}

static void write_notes(struct dl2_html *html, const struct dl2_accuracy_order *order)
{
    dl2_html_format(html, "Kendall's tau-b is 1 for the same order, 0 for chance, −1 for the "
                          "reverse. ");
    if (order->signs)
        dl2_html_format(
            html,
            "Two variants are told apart if the 95%% interval of the difference between their "
            "accuracies, by the chance of training%s, is on one side of 0. Tau's interval counts "
            "all other pairs against the metric, then for it. The choice of the variants is not in "
            "it: with other qualities or codecs, the order may be another.",
            order->images ? " and the choice of images"
                          : " alone (without predictions, the choice of images is not in it)");
    else
        dl2_html_format(html, "One training each gives no interval.");
}

/* All metrics beside the change in accuracy. */
static void write_figures(struct dl2_html *html, const struct dl2_page *page, size_t arch,
                          const struct figure *figures, size_t count)
{
    const struct dl2_study *study = page->study;
    struct dl2_table table = {.html = html};
    dl2_html_markup(html, "<details><summary>Every metric of every variant</summary>");
    dl2_table_heads(&table, "variant|top-1, points\nto the original");
    for (size_t i = 0; i < count; i++) {
        dl2_html_markup(html, "<th scope='col'>");
        write_figure_title(html, study, &figures[i]);
        dl2_html_markup(html, "</th>");
    }
    for (size_t v = 0; v < study->variant_count; v++) {
        const double difference = page->analyses[arch].comparisons[v].difference;
        char text[32];
        if (!study->variants[v].scored)
            continue;
        dl2_table_row(&table, study->variants[v].name);
        dl2_html_element(html, "td", "%s",
                         isfinite(difference) ? dl2_part_signed(difference, text) : "–");
        for (size_t i = 0; i < count; i++) {
            const double value = figure_of(&study->variants[v], &figures[i]);
            if (isinf(value))
                dl2_html_markup(html, "<td>lossless</td>");
            else
                dl2_part_cell(html, value, fabs(value) < 2 ? 4 : 2);
        }
    }
    dl2_table_end(&table);
    dl2_html_markup(html, "</details>\n");
}

/* ---- Single images */

static void write_share(struct dl2_html *html, double worse, double low, double high)
{
    char text[3][32];
    dl2_html_markup(html, "<td>");
    dl2_html_text(html, dl2_part_fixed(worse, 2, text[0]));
    if (isfinite(worse))
        dl2_html_element(html, "small", " (%s to %s)", dl2_part_fixed(low, 2, text[1]),
                         dl2_part_fixed(high, 2, text[2]));
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

static void write_breakages(struct dl2_html *html, const struct dl2_page *page,
                            const struct dl2_metric_names *metrics,
                            const struct dl2_breakage *breakages)
{
    const struct dl2_study *study = page->study;
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
    dl2_table_head(&table, "median, broken:\n%s", title_of(study, metrics->names[first]));
    dl2_table_head(&table, "median, kept:\n%s", title_of(study, metrics->names[first]));
    for (size_t m = 0; m < metrics->count; m++)
        dl2_table_head(&table, "broken worse:\n%s", title_of(study, metrics->names[m]));
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

/* ---- The section */

static void write_network(struct dl2_part_figures *plots, size_t arch,
                          const struct dl2_metric_names *metrics,
                          const struct dl2_breakage *breakages)
{
    const struct dl2_page *page = plots->page;
    const struct dl2_study *study = page->study;
    struct dl2_html *html = plots->html;
    struct figure figures[MAX_FIGURES];
    struct dl2_ranking rankings[MAX_FIGURES];
    const size_t count = list_figures(metrics, figures);
    struct dl2_accuracy_order order = {.signs = NULL};
    double *values = dl2_calloc(study->variant_count + 1, sizeof *values);
    int status = values ? DL2_OK : dl2_error_memory(html->error, "the metrics");
    if (status == DL2_OK)
        status = dl2_accuracy_order_make(study, &page->analyses[arch], &order, html->error);
    bool any = false;
    for (size_t i = 0; status == DL2_OK && i < count; i++) {
        for (size_t v = 0; v < study->variant_count; v++)
            values[v] =
                figure_of(&study->variants[v], &figures[i]) * (figures[i].lower_is_better ? -1 : 1);
        status = dl2_ranking_make(study, &page->analyses[arch], &order, values, &rankings[i],
                                  html->error);
        any |= status == DL2_OK && isfinite(rankings[i].tau);
    }
    dl2_html_check(html, status);
    const char *name = dl2_part_arch(page, arch);
    if (status == DL2_OK && any) {
        if (name)
            dl2_html_element(html, "h3", "%s", name);
        write_best(html, study, figures, rankings, count);
        write_rankings(html, study, figures, rankings, count);
        dl2_html_markup(html, "<p class='note'>");
        write_notes(html, &order);
        dl2_html_markup(html, "</p>\n");
        write_figures(html, page, arch, figures, count);
        write_breakages(html, page, metrics, breakages);
    }
    for (size_t m = 0; values && m < metrics->count; m++) {
        char title[128], label[64];
        const char *unit = dl2_json_get_text(study->metric_units, metrics->names[m], "");
        snprintf(title, sizeof title, "%s%s%s", title_of(study, metrics->names[m]),
                 *unit ? ", " : "", unit);
        dl2_plot_plain(title, label, sizeof label);
        snprintf(title, sizeof title, "Top-1 accuracy against %s",
                 title_of(study, metrics->names[m]));
        for (size_t v = 0; v < study->variant_count; v++)
            values[v] = dl2_metric_aggregate(&study->variants[v], metrics->names[m], "mean");
        dl2_accuracy_plot(
            plots, arch,
            &(struct dl2_accuracy_axis){metrics->names[m], title, label, values, false});
    }
    dl2_part_figures_end(plots);
    dl2_accuracy_order_free(&order);
    free(values);
}

void dl2_section_metrics(const struct dl2_page *page, struct dl2_html *html)
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
    struct dl2_breakage *breakages =
        dl2_calloc(study->arch_count, study->variant_count * sizeof *breakages);
    const int status = breakages
                           ? dl2_breakages_find(study, &metrics, breakages, html->error)
                           : dl2_error_memory(html->error, "%zu variants", study->variant_count);
    if (status == DL2_OK) {
        dl2_html_markup(html, "<h2 id='metrics'>Which metric tells of accuracy?</h2>\n");
        for (size_t a = 0; a < study->arch_count; a++) {
            struct dl2_part_figures plots = {.page = page, .html = html};
            write_network(&plots, a, &metrics, breakages + a * study->variant_count);
        }
    }
    dl2_html_check(html, status);
    free(breakages);
}
