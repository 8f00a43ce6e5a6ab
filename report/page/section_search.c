/* SPDX-License-Identifier: BSD-2-Clause */
/* A search for settings: what it found, two plots, and a table of its models. */
#include "common/json.h"
#include "report/page/search_plots.h"
#include "report/page/sections.h"

#include <stdlib.h>

static void write_settings(struct dl2_html *html, const json_t *settings)
{
    const char *key, *comma = "";
    json_t *value;
    json_object_foreach((json_t *)settings, key, value)
    {
        char *text = json_dumps(value, JSON_ENCODE_ANY | JSON_COMPACT | JSON_REAL_PRECISION(6));
        const char *plain = json_is_string(value) ? json_string_value(value) : text;
        dl2_html_format(html, "%s%s %s", comma, key, plain ? plain : "");
        free(text);
        comma = ", ";
    }
}

static void write_answer(const struct dl2_search_results *search, struct dl2_html *html)
{
    const json_t *report = search->report;
    dl2_html_markup(html, "<p>");
    dl2_html_format(html,
                    "The search (%s) trained %zu models, %.4g epochs in all; with every model to "
                    "its end it would have been %.4g. ",
                    dl2_json_get_text(json_object_get(report, "search"), "algorithm", "unknown"),
                    search->count, dl2_json_get_real(report, "epochs", 0),
                    dl2_json_get_real(report, "all_epochs", 0));
    if (search->best) {
        dl2_html_format(html, "The best is %s, top-1 %.2f%%: ", search->best->name,
                        100 * search->best->top1);
        write_settings(html, search->best->settings);
        dl2_html_markup(html, ". It was chosen on these validation images, so this top-1 is too "
                              "high for new ones.");
    } else {
        dl2_html_text(html, json_is_true(json_object_get(report, "completed"))
                                ? "All of them diverged."
                                : "It has not come to its end.");
    }
    dl2_html_markup(html, "</p>\n");
}

static void write_table(const struct dl2_search_results *search, struct dl2_html *html)
{
    struct dl2_table table = {.html = html};
    dl2_html_markup(html, "<details><summary>Every model of the search</summary>");
    dl2_table_heads(&table, "rank|model|<settings|<status|epochs|top-1, %|loss");
    for (size_t i = 0; i < search->count; i++) {
        const struct dl2_searched *model = &search->models[search->ranked[i]];
        dl2_table_bare_row(&table, "");
        dl2_part_cell(html, model->rank, 0);
        dl2_html_element(html, "th scope='row'", "%s", model->name);
        dl2_html_markup(html, "<td class='l'>");
        write_settings(html, model->settings);
        dl2_html_markup(html, "</td>");
        dl2_html_element(html, "td class='l'", "%s",
                         model == search->best ? "trained, the best" : model->status);
        dl2_part_cell(html, model->epochs, 2);
        dl2_part_cell(html, 100 * model->top1, 2);
        dl2_part_cell(html, model->loss, 4);
    }
    dl2_table_end(&table);
    dl2_html_markup(html, "</details>\n");
}

void dl2_section_search(const struct dl2_page *page, struct dl2_html *html)
{
    struct dl2_part_figures figures = {.page = page, .html = html};
    if (!page->search || !page->search->report)
        return;
    dl2_html_markup(html, "<h2>Search for settings</h2>\n");
    write_answer(page->search, html);
    dl2_search_plots(&figures);
    dl2_part_figures_end(&figures);
    write_table(page->search, html);
}
