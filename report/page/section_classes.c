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
static void class_table_of_variants(json_t *parent, const struct dl2_study *study,
                                    const struct dl2_classes *classes,
                                    const struct dl2_class_harm *harms)
{
    char losers[1024];
    json_t *table = dl2_table_add(parent, "variant|loss not\nexcluded, points|<by the interval of|"
                                          "<worst measured|<shown to lose");
    for (size_t v = 0; v < study->variant_count; v++) {
        const struct dl2_class_harm *harm = &harms[v];
        if (!harm->judged)
            continue;
        const struct dl2_class_change *bounding = &harm->changes[harm->bounding];
        dl2_table_row(table, study->variants[v].name);
        dl2_table_number(table, harm->bound, 1);
        dl2_table_text(table, "%s, %zu images", classes->names[bounding->class], bounding->images);
        dl2_table_text(table, "%s, %s", classes->names[harm->changes[0].class],
                       dl2_signed(&dl2_accuracy_top1, harm->changes[0].difference));
        dl2_class_harm_losers(harm, classes, losers, sizeof losers);
        dl2_table_text(table, "%s", losers[0] ? losers : "none");
    }
}

/* The worst classes of a variant. */
static void class_table(json_t *parent, const struct dl2_classes *classes,
                        const struct dl2_class_harm *harm)
{
    const size_t rows = harm->judged < MAX_ROWS ? harm->judged : MAX_ROWS;
    json_t *table = dl2_table_add(parent, "class|validation\nimages|original's\nrecall, %|"
                                          "<difference, points");
    for (size_t c = 0; c < rows; c++) {
        const struct dl2_class_change *change = &harm->changes[c];
        dl2_table_row(table, classes->names[change->class]);
        dl2_table_number(table, (double)change->images, 0);
        dl2_table_number(table, change->original, 1);
        json_t *cell = dl2_part_interval(table, &dl2_accuracy_top1, change->difference, change->low,
                                         change->high);
        if (change->loses)
            dl2_table_badge(cell, DL2_VERDICT_BEYOND, "loses");
    }
    if (rows < harm->judged)
        dl2_block_text(parent, "note",
                       "The %zu worst by measurement; %zu other classes are left out of the table.",
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

static void write_network(json_t *section, const struct view *view, size_t shown)
{
    const struct dl2_study *study = view->page->study;
    struct dl2_part_figures figures = {.page = view->page, .parent = section};
    char words[4096];
    dl2_part_arch_heading(section, view->page, view->arch);
    json_t *text = dl2_block_add(section, "paragraph");
    dl2_class_harm_say(&view->harms[shown], &view->classes, words, sizeof words);
    dl2_block_mark(text, "strong", "%s:", study->variants[shown].name);
    dl2_block_say(text, " %s", words);
    class_table(section, &view->classes, &view->harms[shown]);
    class_plot(&figures, view->arch, shown, &view->classes, &view->harms[shown]);
    json_t *fold = dl2_block_fold(section, "Classes, every variant");
    class_table_of_variants(fold, study, &view->classes, view->harms);
    for (size_t v = 0; v < study->variant_count; v++)
        if (v != shown && view->harms[v].judged) {
            dl2_block_text(fold, "heading", "%s", study->variants[v].name);
            class_table(fold, &view->classes, &view->harms[v]);
        }
}

void dl2_section_classes(const struct dl2_page *page, json_t *section)
{
    const struct dl2_study *study = page->study;
    dl2_block_set(section, "heading", "Which classes lose");
    for (size_t a = 0; a < study->arch_count; a++) {
        const struct dl2_page_classes *found = &page->classes[a];
        if (found->shown < study->variant_count && found->classes.count > 1)
            write_network(section, &(struct view){page, a, found->classes, found->harms},
                          found->shown);
    }
    if (!dl2_block_is_empty(section))
        dl2_block_text(section, "note",
                       "Recall is the share of a class's validation images whose class the network "
                       "found. Intervals are 95%%, of each class by itself, with both sources of "
                       "chance. The loss that is not excluded is the lowest end of all of them, "
                       "which holds in at least 97.5%% of such studies, of each variant by itself. "
                       "“Shown to lose” holds for all classes of a variant together, so that an "
                       "interval below 0 is not enough.");
}
