/* SPDX-License-Identifier: BSD-2-Clause */
/* What the metrics tell of accuracy: which one should a quality be chosen by? */
#include "common/json.h"
#include "common/memory.h"
#include "report/page/accuracy_plot.h"
#include "report/page/breakage_table.h"
#include "report/page/metric_tables.h"
#include "report/page/sections.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

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

/* Accuracy against each metric. */
static void plot_metrics(struct dl2_part_figures *plots, size_t arch,
                         const struct dl2_metric_names *metrics)
{
    const struct dl2_study *study = plots->page->study;
    double *values = dl2_html_calloc(plots->html, study->variant_count + 1, sizeof *values);
    for (size_t m = 0; values && m < metrics->count; m++) {
        const char *metric = metrics->names[m];
        char title[128], label[64];
        const char *unit = dl2_json_get_text(study->metric_units, metric, "");
        snprintf(title, sizeof title, "%s%s%s", dl2_metric_title(study, metric), *unit ? ", " : "",
                 unit);
        dl2_plot_label(title, label, sizeof label);
        snprintf(title, sizeof title, "Top-1 accuracy against %s", dl2_metric_title(study, metric));
        for (size_t v = 0; v < study->variant_count; v++)
            values[v] = dl2_metric_aggregate(&study->variants[v], metric, "mean");
        dl2_accuracy_plot(
            plots, arch,
            &(struct dl2_accuracy_axis){metric, title, label, values, false, DL2_FRONT_NONE});
    }
    free(values);
    dl2_part_figures_end(plots);
}

static void write_guides(struct dl2_html *html, const struct dl2_page *page, size_t arch,
                         const struct dl2_guides *guides, const struct dl2_accuracy_order *order)
{
    const char *name = dl2_part_arch(page, arch);
    char answer[2048];
    if (name)
        dl2_html_element(html, "h3", "%s", name);
    dl2_guides_say(guides, page->study, answer, sizeof answer);
    if (answer[0])
        dl2_html_element(html, "p", "%s", answer);
    dl2_html_markup(html, answer[0] ? "\n" : "");
    dl2_ranking_table(html, page->study, guides);
    dl2_html_markup(html, "<p class='note'>");
    write_notes(html, order);
    dl2_html_markup(html, "</p>\n");
    dl2_metric_table(html, page->study, &page->analyses[arch], guides);
}

static void write_network(const struct dl2_page *page, struct dl2_html *html, size_t arch,
                          const struct dl2_metric_names *metrics,
                          const struct dl2_breakage *breakages)
{
    struct dl2_part_figures plots = {.page = page, .html = html};
    struct dl2_accuracy_order order = {.signs = NULL};
    struct dl2_guides guides;
    int status =
        dl2_accuracy_order_make(page->study, &page->analyses[arch], arch, &order, html->error);
    if (status == DL2_OK)
        status = dl2_guides_make(page->study, &page->analyses[arch], &order, metrics, &guides,
                                 html->error);
    dl2_html_check(html, status);
    if (status == DL2_OK && guides.any) {
        write_guides(html, page, arch, &guides, &order);
        dl2_breakage_table(html, page->study, metrics, breakages);
    }
    plot_metrics(&plots, arch, metrics);
    dl2_accuracy_order_free(&order);
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
        for (size_t a = 0; a < study->arch_count; a++)
            write_network(page, html, a, &metrics, breakages + a * study->variant_count);
    }
    dl2_html_check(html, status);
    free(breakages);
}
