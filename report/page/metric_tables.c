/* SPDX-License-Identifier: BSD-2-Clause */
#include "report/page/metric_tables.h"

#include <math.h>

static void write_figure_title(struct dl2_html *html, const struct dl2_study *study,
                               const struct dl2_guide *figure)
{
    dl2_html_format(html, "%s",
                    figure->metric ? dl2_metric_title(study, figure->metric) : "bits per pixel");
    if (figure->metric)
        dl2_html_element(html, "small", " %s", figure->title);
}

void dl2_ranking_table(struct dl2_html *html, const struct dl2_study *study,
                       const struct dl2_guides *guides)
{
    struct dl2_table table = {.html = html};
    dl2_table_heads(&table, "variants ordered by|Kendall's tau\nwith accuracy|interval|"
                            "pairs ordered\nas by accuracy|of those that\nare told apart");
    for (size_t i = 0; i < guides->count; i++) {
        const struct dl2_ranking *ranking = &guides->items[i].ranking;
        char text[2][32];
        if (!isfinite(ranking->tau))
            continue;
        dl2_table_bare_row(&table, "");
        dl2_html_markup(html, "<th scope='row'>");
        write_figure_title(html, study, &guides->items[i]);
        dl2_html_markup(html, "</th>");
        dl2_html_element(html, "td", "%s", dl2_part_fixed(ranking->tau, 2, text[0]));
        dl2_html_element(html, "td", "%s to %s", dl2_part_fixed(ranking->low, 2, text[0]),
                         dl2_part_fixed(ranking->high, 2, text[1]));
        dl2_html_element(html, "td", "%zu of %zu", ranking->alike, ranking->pairs);
        dl2_html_element(html, "td", "%zu of %zu", ranking->told_alike, ranking->told);
    }
    dl2_table_end(&table);
}

void dl2_metric_table(struct dl2_html *html, const struct dl2_study *study,
                      const struct dl2_analysis *analysis, const struct dl2_guides *guides)
{
    struct dl2_table table = {.html = html};
    dl2_html_markup(html, "<details><summary>Every metric of every variant</summary>");
    dl2_table_heads(&table, "variant|top-1, points\nto the original");
    for (size_t i = 0; i < guides->count; i++) {
        dl2_html_markup(html, "<th scope='col'>");
        write_figure_title(html, study, &guides->items[i]);
        dl2_html_markup(html, "</th>");
    }
    for (size_t v = 0; v < study->variant_count; v++) {
        const double difference = analysis->comparisons[v].difference;
        char text[32];
        if (!study->variants[v].scored)
            continue;
        dl2_table_row(&table, study->variants[v].name);
        dl2_html_element(html, "td", "%s",
                         isfinite(difference) ? dl2_signed(difference, text) : "–");
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
