/* SPDX-License-Identifier: BSD-2-Clause */
/* Which classes a variant harms: a bound on the worst one, and those that are shown to lose. */
#include "report/class_harm.h"
#include "report/page/parts.h"
#include "report/page/sections.h"

#include <math.h>
#include <stdio.h>

/* ---- A plot of what all classes of a network gain and lose on a variant */

enum { MAX_LABELS = 40 }; /* of the axis */

/* The worst class is on top; those that are shown to lose stand out. */
static void class_plot(struct dl2_part_figures *figures, size_t arch, size_t v,
                       const struct dl2_classes *classes, const struct dl2_class_harm *harm)
{
    const struct dl2_study *study = figures->page->study;
    const bool named = harm->judged <= MAX_LABELS;
    char title[256], clean[256];
    snprintf(title, sizeof title, "Recall by class: %s against the original",
             study->variants[v].name);
    struct dl2_plot plot =
        dl2_plot_begin(title, "row difference low high images class",
                       110 + 20 * (int)(named ? harm->judged : MAX_LABELS), "classes-%s-%s",
                       study->archs[arch], study->variants[v].name);
    dl2_plot_axes(&plot, "difference in recall, percentage points",
                  named ? "" : "classes, the worst measured on top");
    dl2_curve_reference(&plot, 'x', 0, NAN);
    dl2_plot_script(&plot,
                    "set yrange [%.8g:0.5] reverse\nset offsets graph 0.05, graph 0.05, 0, 0\n"
                    "set grid noytics xtics\n",
                    (double)harm->judged + 0.5);
    dl2_plot_script(&plot, named ? "set ytics (" : "unset ytics\n");
    for (size_t c = 0; named && c < harm->judged; c++)
        dl2_plot_script(&plot, "%s'%s' %zu", c ? ", " : "",
                        dl2_plot_plain(classes->names[harm->changes[c].class], clean, sizeof clean),
                        c + 1);
    dl2_plot_script(&plot, named ? ")\n" : "");
    for (int loses = 1; loses >= 0; loses--) {
        struct dl2_curve curve = {.plot = &plot, .name = loses ? "shown to lose" : "others"};
        for (size_t c = 0; c < harm->judged; c++) {
            const struct dl2_class_change *change = &harm->changes[c];
            if (change->loses == (bool)loses)
                dl2_curve_point(&curve,
                                (const double[]){(double)c + 1, change->difference, change->low,
                                                 change->high, (double)change->images},
                                5, classes->names[change->class]);
        }
        if (curve.count)
            dl2_plot_curve(&plot,
                           "using 2:1:3:4 with xerrorbars linecolor rgb '%s' linewidth 1 "
                           "pointtype 7 pointsize %s %s",
                           loses ? DL2_PLOT_RED : DL2_PLOT_INK, named ? "0.6" : "0.2",
                           loses ? "title 'shown to lose'" : "notitle");
    }
    dl2_part_figure(figures, &plot, dl2_part_arch(figures->page, arch));
}

/* ---- Tables of the classes that variants harm */

enum { MAX_ROWS = 10 }; /* of a table: the worst */

/* A row for each variant: harms[study->variant_count]. */
static void class_table_of_variants(struct dl2_bytes *html, const struct dl2_study *study,
                                    const struct dl2_classes *classes,
                                    const struct dl2_class_harm *harms)
{
    char losers[1024];
    struct dl2_table table = {.html = html};
    dl2_table_heads(&table, "variant|loss not\nexcluded, points|<by the interval of|"
                            "<worst measured|<shown to lose");
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
                         dl2_signed(&dl2_accuracy_top1, harm->changes[0].difference));
        dl2_html_markup(html, "<td class='l'>");
        dl2_class_harm_losers(harm, classes, losers, sizeof losers);
        dl2_html_text(html, losers[0] ? losers : "none");
        dl2_html_markup(html, "</td>");
    }
    dl2_table_end(&table);
}

/* The worst classes of a variant. */
static void class_table(struct dl2_bytes *html, const struct dl2_classes *classes,
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
        dl2_part_interval(html, &dl2_accuracy_top1, change->difference, change->low, change->high);
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

/* ---- The section */

/* One network's. */
struct view {
    const struct dl2_page *page;
    size_t arch;
    struct dl2_classes classes;
    struct dl2_class_harm *harms; /* [variant_count] */
};

static void write_verdict(struct dl2_bytes *html, const struct view *view, size_t v)
{
    char text[4096];
    dl2_class_harm_say(&view->harms[v], &view->classes, text, sizeof text);
    dl2_html_markup(html, "<p>");
    dl2_html_element(html, "strong", "%s:", view->page->study->variants[v].name);
    dl2_html_format(html, " %s", text);
    dl2_html_markup(html, "</p>\n");
}

static void write_network(struct dl2_bytes *html, const struct view *view, size_t shown)
{
    const struct dl2_study *study = view->page->study;
    struct dl2_part_figures figures = {.page = view->page, .html = html};
    dl2_part_arch_heading(html, view->page, view->arch);
    write_verdict(html, view, shown);
    class_table(html, &view->classes, &view->harms[shown]);
    class_plot(&figures, view->arch, shown, &view->classes, &view->harms[shown]);
    dl2_part_figures_end(&figures);
    dl2_html_markup(html, "<details><summary>Classes, every variant</summary>\n");
    class_table_of_variants(html, study, &view->classes, view->harms);
    for (size_t v = 0; v < study->variant_count; v++)
        if (v != shown && view->harms[v].judged) {
            dl2_html_element(html, "h4", "%s", study->variants[v].name);
            class_table(html, &view->classes, &view->harms[v]);
        }
    dl2_html_markup(html, "</details>\n");
}

static void write_note(struct dl2_bytes *html)
{
    dl2_html_markup(
        html, "<p class='note'>Recall is the share of a class&#39;s validation images whose class "
              "the network found. Intervals are 95%, of each class by itself, with both sources "
              "of chance. The loss that is not excluded is the lowest end of all of them, which "
              "holds in at least 97.5% of such studies, of each variant by itself. “Shown to "
              "lose” holds for all classes of a variant together, so that an interval below 0 is "
              "not enough.</p>\n");
}

void dl2_section_classes(const struct dl2_page *page, struct dl2_bytes *html)
{
    const struct dl2_study *study = page->study;
    bool any = false;
    for (size_t a = 0; a < study->arch_count; a++) {
        const struct dl2_page_classes *found = &page->classes[a];
        if (found->shown == study->variant_count || found->classes.count < 2)
            continue;
        dl2_html_markup(html, any ? "" : "<h2 id='classes'>Which classes lose</h2>\n");
        write_network(html, &(struct view){page, a, found->classes, found->harms}, found->shown);
        any = true;
    }
    if (any)
        write_note(html);
}
