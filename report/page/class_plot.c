/* SPDX-License-Identifier: BSD-2-Clause */
#include "report/page/class_plot.h"

#include <math.h>
#include <stdio.h>

enum { MAX_LABELS = 40 }; /* of the axis */

void dl2_class_plot(struct dl2_part_figures *figures, size_t arch, size_t v,
                    const struct dl2_classes *classes, const struct dl2_class_harm *harm)
{
    const struct dl2_study *study = figures->page->study;
    const bool named = harm->judged <= MAX_LABELS;
    char name[256], title[256], clean[256];
    struct dl2_plot plot;
    snprintf(name, sizeof name, "classes-%s-%s", study->archs[arch], study->variants[v].name);
    snprintf(title, sizeof title, "Recall by class: %s against the original",
             study->variants[v].name);
    dl2_plot_begin(&plot, name, title, "row difference low high images class",
                   110 + 20 * (int)(named ? harm->judged : MAX_LABELS), figures->html->error);
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
        struct dl2_curve curve = {.plot = &plot, .name = loses ? "certainly lose" : "others"};
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
                           loses ? "title 'certainly lose'" : "notitle");
    }
    dl2_part_figure(figures, &plot, dl2_part_arch(figures->page, arch));
}
