/* SPDX-License-Identifier: BSD-2-Clause */
/* Which classes a variant harms: a bound on the worst one, and those that certainly lose. */
#include "report/class_harm.h"
#include "report/page/class_plot.h"
#include "report/page/class_tables.h"
#include "report/page/sections.h"

#include <stdlib.h>

/* One network's. */
struct view {
    const struct dl2_page *page;
    size_t arch;
    struct dl2_classes classes;
    struct dl2_class_harm *harms; /* [variant_count] */
};

static void write_verdict(struct dl2_html *html, const struct view *view, size_t v)
{
    char text[4096];
    dl2_class_harm_say(&view->harms[v], &view->classes, text, sizeof text);
    dl2_html_markup(html, "<p>");
    dl2_html_element(html, "strong", "%s: no class loses more than %.1f points",
                     view->page->study->variants[v].name, view->harms[v].bound);
    dl2_html_text(html, text);
    dl2_html_markup(html, "</p>\n");
}

static void write_network(struct dl2_html *html, const struct view *view, size_t shown)
{
    const struct dl2_study *study = view->page->study;
    struct dl2_part_figures figures = {.page = view->page, .html = html};
    if (dl2_part_arch(view->page, view->arch))
        dl2_html_element(html, "h3", "%s", study->archs[view->arch]);
    write_verdict(html, view, shown);
    dl2_class_table(html, &view->classes, &view->harms[shown]);
    dl2_class_plot(&figures, view->arch, shown, &view->classes, &view->harms[shown]);
    dl2_part_figures_end(&figures);
    dl2_html_markup(html, "<details><summary>Classes, every variant</summary>\n");
    dl2_class_table_of_variants(html, study, &view->classes, view->harms);
    for (size_t v = 0; v < study->variant_count; v++)
        if (v != shown && view->harms[v].judged) {
            dl2_html_element(html, "h4", "%s", study->variants[v].name);
            dl2_class_table(html, &view->classes, &view->harms[v]);
        }
    dl2_html_markup(html, "</details>\n");
}

static void write_note(struct dl2_html *html)
{
    dl2_html_markup(
        html, "<p class='note'>Recall is the share of a class&#39;s validation images whose class "
              "the network found. Intervals are 95%, of each class by itself, with both sources "
              "of chance. No class loses more than the lowest end of all of them, in at least "
              "97.5% of such studies, of each variant by itself. “Certainly loses” holds for all "
              "classes of a variant together, so that an interval below 0 is not enough.</p>\n");
}

void dl2_section_classes(const struct dl2_page *page, struct dl2_html *html)
{
    const struct dl2_study *study = page->study;
    struct dl2_class_harm *harms = dl2_html_calloc(html, study->variant_count + 1, sizeof *harms);
    bool any = false;
    for (size_t a = 0; harms && a < study->arch_count && html->status == DL2_OK; a++) {
        struct view view = {.page = page, .arch = a, .harms = harms};
        html->status = dl2_classes_find(&study->images[a], &view.classes, html->error);
        if (html->status == DL2_OK)
            html->status = dl2_class_harm_make(study, &page->analyses[a], a, &view.classes, harms,
                                               html->error);
        const size_t shown = html->status == DL2_OK
                                 ? dl2_class_harm_shown(study, &page->analyses[a], harms)
                                 : study->variant_count;
        if (shown < study->variant_count && view.classes.count > 1) {
            dl2_html_markup(html, any ? "" : "<h2>Which classes lose</h2>\n");
            write_network(html, &view, shown);
            any = true;
        }
        for (size_t v = 0; v < study->variant_count; v++)
            dl2_class_harm_free(&harms[v]);
        dl2_classes_free(&view.classes);
    }
    if (any)
        write_note(html);
    free(harms);
}
