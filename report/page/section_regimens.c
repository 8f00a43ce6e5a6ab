/* SPDX-License-Identifier: BSD-2-Clause */
/* Trainings in stages, on one variant after the other, against the original alone. */
#include "report/page/regimen_plots.h"
#include "report/page/sections.h"

#include <math.h>
#include <string.h>

static void write_table(struct dl2_html *html, const struct dl2_regimens *group)
{
    const struct dl2_study *study = &group->condition->study;
    char label[DL2_REGIMEN_LABEL];
    bool timed = false;
    for (size_t v = 0; v < study->variant_count; v++)
        timed |= isfinite(dl2_regimen_seconds(group, v));
    struct dl2_table table = {.html = html};
    dl2_table_head(&table, "%s epochs on", group->condition->name);
    dl2_table_heads(&table, "top-1, %|<difference, points");
    dl2_table_heads(&table, timed ? "training, s" : "");
    for (size_t v = 0; v < study->variant_count; v++) {
        const struct dl2_comparison *comparison = &group->analysis->comparisons[v];
        if (!dl2_regimen_run(group, v))
            continue;
        dl2_table_row(&table, dl2_regimen_label(group, v, label));
        dl2_part_estimate_cell(html, &comparison->top1, 1);
        dl2_part_difference_cell(html, comparison);
        if (timed)
            dl2_part_cell(html, dl2_regimen_seconds(group, v), 1);
    }
    dl2_table_end(&table);
}

static void write_group(const struct dl2_page *page, struct dl2_html *html,
                        const struct dl2_regimens *group, bool first)
{
    const char *detail = group->condition->study.arch_count > 1 ? group->analysis->arch : NULL;
    struct dl2_part_figures figures = {.page = page, .html = html};
    dl2_html_markup(html, first ? "<h2>Regimens</h2>\n" : "");
    write_table(html, group);
    dl2_html_markup(
        html, first ? "<p class='note'>Trainings in stages, each on a variant for a number of "
                      "epochs, under one schedule; the original alone was trained for as many "
                      "epochs. Validated on the images of the last stage's variant. Bars are "
                      "95% intervals, of each regimen by itself. Shaded: the tolerance.</p>\n"
                    : "<p></p>\n");
    dl2_regimen_plots(&figures, group, detail);
    dl2_part_figures_end(&figures);
}

void dl2_section_regimens(const struct dl2_page *page, struct dl2_html *html)
{
    bool first = true;
    for (size_t i = 0; i < page->conditions.count; i++) {
        const struct dl2_condition *condition = &page->conditions.items[i];
        if (strcmp(condition->goal, "regimens") != 0)
            continue;
        for (size_t a = 0; a < condition->study.arch_count; a++) {
            write_group(page, html, &(struct dl2_regimens){condition, &condition->analyses[a]},
                        first);
            first = false;
        }
    }
}
