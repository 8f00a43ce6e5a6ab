/* SPDX-License-Identifier: BSD-2-Clause */
/* Which classes a variant harms: a bound on the worst one, and those that certainly lose. */
#include "report/class_harm.h"
#include "report/page/class_plot.h"
#include "report/page/sections.h"

#include <stdlib.h>

enum {
    MAX_ROWS = 10, /* of a table: the worst */
    MAX_NAMES = 5  /* of a sentence */
};

/* One network's. */
struct view {
    const struct dl2_page *page;
    size_t arch;
    struct dl2_classes classes;
    struct dl2_class_harm *harms; /* [variant_count] */
};

static const char *name_of(const struct view *view, const struct dl2_class_change *change)
{
    return view->classes.names[change->class];
}

/* "rose, tulip and 3 more": the classes that certainly lose, the worst first. */
static void write_losers(struct dl2_html *html, const struct view *view,
                         const struct dl2_class_harm *harm)
{
    size_t written = 0;
    for (size_t c = 0; c < harm->judged && written < MAX_NAMES; c++)
        if (harm->changes[c].loses) {
            const size_t left = harm->losers - written;
            dl2_html_format(html, "%s%s",
                            !written    ? ""
                            : left == 1 ? " and "
                                        : ", ",
                            name_of(view, &harm->changes[c]));
            written++;
        }
    if (harm->losers > written)
        dl2_html_format(html, " and %zu more", harm->losers - written);
}

/* ---- All variants */

static void write_variants(struct dl2_html *html, const struct view *view)
{
    const struct dl2_study *study = view->page->study;
    char text[32];
    struct dl2_table table = {.html = html};
    dl2_table_heads(&table, "variant|no class loses\nmore than, points|<by the interval of|"
                            "<worst measured|<certainly lose");
    for (size_t v = 0; v < study->variant_count; v++) {
        const struct dl2_class_harm *harm = &view->harms[v];
        if (!harm->judged)
            continue;
        const struct dl2_class_change *bounding = &harm->changes[harm->bounding];
        dl2_table_row(&table, study->variants[v].name);
        dl2_part_cell(html, harm->bound, 1);
        dl2_html_element(html, "td class='l'", "%s, %zu images", name_of(view, bounding),
                         bounding->images);
        dl2_html_element(html, "td class='l'", "%s, %s", name_of(view, &harm->changes[0]),
                         dl2_signed(harm->changes[0].difference, text));
        dl2_html_markup(html, "<td class='l'>");
        if (harm->losers)
            write_losers(html, view, harm);
        else
            dl2_html_markup(html, "none");
        dl2_html_markup(html, "</td>");
    }
    dl2_table_end(&table);
}

/* ---- One variant */

static void write_verdict(struct dl2_html *html, const struct view *view, size_t v)
{
    const struct dl2_class_harm *harm = &view->harms[v];
    const struct dl2_class_change *bounding = &harm->changes[harm->bounding];
    char text[32];
    dl2_html_markup(html, "<p>");
    dl2_html_element(html, "strong", "%s: no class loses more than %.1f points",
                     view->page->study->variants[v].name, harm->bound);
    dl2_html_format(html,
                    " of recall (top-1 within the class), by a rule that is wrong in at most 2.5%% "
                    "of such studies. That is the lower end of the interval of %s, which has %zu "
                    "validation images",
                    name_of(view, bounding), bounding->images);
    if (bounding->units < bounding->images)
        dl2_html_format(html, " in %zu groups", bounding->units);
    dl2_html_format(html, "; a class of few images has a wide interval. ");
    if (harm->losers) {
        dl2_html_format(html, "%zu class%s certainly: ", harm->losers,
                        harm->losers == 1 ? " loses" : "es lose");
        write_losers(html, view, harm);
        dl2_html_format(html, ". ");
    } else {
        dl2_html_format(html, "No class certainly loses. ");
    }
    dl2_html_format(
        html,
        "The worst measured is %s (%s points). The worst of %zu measurements is biased: "
        "that class probably loses less.",
        name_of(view, &harm->changes[0]), dl2_signed(harm->changes[0].difference, text),
        harm->judged);
    if (harm->judged < harm->count)
        dl2_html_format(
            html,
            " %zu class%s fewer than two validation images (or groups of them): nothing "
            "is said of %s.",
            harm->count - harm->judged, harm->count - harm->judged == 1 ? " has" : "es have",
            harm->count - harm->judged == 1 ? "it" : "them");
    dl2_html_markup(html, "</p>\n");
}

static void write_classes(struct dl2_html *html, const struct view *view,
                          const struct dl2_class_harm *harm)
{
    const size_t rows = harm->judged < MAX_ROWS ? harm->judged : MAX_ROWS;
    struct dl2_table table = {.html = html};
    dl2_table_heads(&table, "class|validation\nimages|original&#39;s\nrecall, %|"
                            "<difference, points");
    for (size_t c = 0; c < rows; c++) {
        const struct dl2_class_change *change = &harm->changes[c];
        dl2_table_row(&table, name_of(view, change));
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

static void write_network(struct dl2_html *html, const struct view *view, size_t shown)
{
    const struct dl2_study *study = view->page->study;
    struct dl2_part_figures figures = {.page = view->page, .html = html};
    if (dl2_part_arch(view->page, view->arch))
        dl2_html_element(html, "h3", "%s", study->archs[view->arch]);
    write_verdict(html, view, shown);
    write_classes(html, view, &view->harms[shown]);
    dl2_class_plot(&figures, view->arch, shown, &view->classes, &view->harms[shown]);
    dl2_part_figures_end(&figures);
    dl2_html_markup(html, "<details><summary>Classes, every variant</summary>\n");
    write_variants(html, view);
    for (size_t v = 0; v < study->variant_count; v++)
        if (v != shown && view->harms[v].judged) {
            dl2_html_element(html, "h4", "%s", study->variants[v].name);
            write_classes(html, view, &view->harms[v]);
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
