/* SPDX-License-Identifier: BSD-2-Clause */
#include "report/page/class_tables.h"

enum { MAX_ROWS = 10 }; /* of a table: the worst */

void dl2_class_table_of_variants(struct dl2_html *html, const struct dl2_study *study,
                                 const struct dl2_classes *classes,
                                 const struct dl2_class_harm *harms)
{
    char text[32], losers[1024];
    struct dl2_table table = {.html = html};
    dl2_table_heads(&table, "variant|no class loses\nmore than, points|<by the interval of|"
                            "<worst measured|<certainly lose");
    for (size_t v = 0; v < study->variant_count; v++) {
        const struct dl2_class_harm *harm = &harms[v];
        if (!harm->judged)
            continue;
        const struct dl2_class_change *bounding = &harm->changes[harm->bounding];
        dl2_table_row(&table, study->variants[v].name);
        dl2_part_cell(html, harm->bound, 1);
        dl2_html_element(html, "td class='l'", "%s, %zu images", classes->names[bounding->class],
                         bounding->images);
        dl2_html_element(html, "td class='l'", "%s, %s", classes->names[harm->changes[0].class],
                         dl2_signed(harm->changes[0].difference, text));
        dl2_html_markup(html, "<td class='l'>");
        dl2_class_harm_losers(harm, classes, losers, sizeof losers);
        dl2_html_text(html, losers[0] ? losers : "none");
        dl2_html_markup(html, "</td>");
    }
    dl2_table_end(&table);
}

void dl2_class_table(struct dl2_html *html, const struct dl2_classes *classes,
                     const struct dl2_class_harm *harm)
{
    const size_t rows = harm->judged < MAX_ROWS ? harm->judged : MAX_ROWS;
    struct dl2_table table = {.html = html};
    dl2_table_heads(&table, "class|validation\nimages|original&#39;s\nrecall, %|"
                            "<difference, points");
    for (size_t c = 0; c < rows; c++) {
        const struct dl2_class_change *change = &harm->changes[c];
        dl2_table_row(&table, classes->names[change->class]);
        dl2_html_element(html, "td", "%zu", change->images);
        dl2_part_cell(html, change->original, 1);
        dl2_html_markup(html, "<td class='l'>");
        dl2_part_interval(html, change->difference, change->low, change->high);
        if (change->loses) {
            dl2_html_markup(html, " ");
            dl2_html_element(html, dl2_part_badge(DL2_VERDICT_BEYOND), "loses");
        }
        dl2_html_markup(html, "</td>");
    }
    dl2_table_end(&table);
    if (rows == harm->judged)
        dl2_html_markup(html, "<p></p>\n");
    else
        dl2_html_element(html, "p class='note'",
                         "The %zu worst by measurement; %zu other classes are left out of the "
                         "table.",
                         rows, harm->judged - rows);
}
