/* SPDX-License-Identifier: BSD-2-Clause */
#include "report/page/regimen_plots.h"

#include "common/json.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

/* What each regimen gains or loses, one below the other. */
static void plot_differences(struct dl2_part_figures *figures, const struct dl2_regimens *group,
                             const char *detail)
{
    const struct dl2_study *study = &group->condition->study;
    char name[160], title[160], label[DL2_REGIMEN_LABEL];
    size_t count = 0, row = 0;
    for (size_t v = 0; v < study->variant_count; v++)
        count += isfinite(group->analysis->comparisons[v].difference);
    if (!count)
        return;
    struct dl2_plot plot;
    snprintf(name, sizeof name, "regimens-%s-%s", group->condition->name, group->analysis->arch);
    snprintf(title, sizeof title, "Regimens of %s epochs against the original alone",
             group->condition->name);
    dl2_plot_begin(&plot, name, title, "row difference half-interval",
                   110 + 30 * (int)(count < 40 ? count : 40), figures->html->error);
    dl2_plot_axes(&plot, "difference in top-1, percentage points", "");
    dl2_curve_reference(&plot, 'x', 0, -group->analysis->question.tolerance);
    dl2_plot_script(&plot,
                    "set yrange [%.8g:0.5] reverse\nset offsets graph 0.05, graph 0.05, 0, 0\n"
                    "set grid noytics xtics\nset ytics (",
                    (double)count + 0.5);
    for (size_t v = 0; v < study->variant_count; v++)
        if (isfinite(group->analysis->comparisons[v].difference)) {
            dl2_plot_script(&plot, "%s'%s' %zu", row ? ", " : "",
                            dl2_regimen_label(group, v, label), row + 1);
            row++;
        }
    dl2_plot_script(&plot, ")\n");
    struct dl2_curve curve = {.plot = &plot, .name = "regimens", .bars = "2:1:3"};
    for (size_t v = 0; v < study->variant_count; v++) {
        const struct dl2_comparison *comparison = &group->analysis->comparisons[v];
        if (isfinite(comparison->difference))
            dl2_curve_point(&curve,
                            (const double[]){(double)curve.count + 1, comparison->difference,
                                             dl2_comparison_half(comparison)},
                            3, NULL);
    }
    if (curve.intervals)
        dl2_plot_curve(&plot, "using 2:1:3 with xerrorbars linecolor rgb '" DL2_PLOT_INK
                              "' linewidth 2 pointtype 0 notitle");
    dl2_plot_curve(&plot, "using 2:1 with points linecolor rgb '" DL2_PLOT_INK
                          "' pointtype 7 pointsize 0.7 notitle");
    dl2_part_figure(figures, &plot, detail);
}

static void plot_curves(struct dl2_part_figures *figures, const struct dl2_regimens *group,
                        const char *detail)
{
    const struct dl2_study *study = &group->condition->study;
    char name[160], label[DL2_REGIMEN_LABEL];
    struct dl2_plot plot;
    snprintf(name, sizeof name, "regimens-curves-%s-%s", group->condition->name,
             group->analysis->arch);
    dl2_plot_begin(&plot, name, "Validation top-1 by epoch, by regimen", "epoch top1",
                   DL2_PLOT_HEIGHT, figures->html->error);
    dl2_plot_axes(&plot, "epoch", "validation top-1, %");
    dl2_plot_script(&plot, "set key inside bottom right vertical\n"
                           "set offsets 0, 0, graph 0.04, 0\n");
    for (size_t v = 0; v < study->variant_count; v++) {
        const struct dl2_study_run *run = dl2_regimen_run(group, v);
        const struct dl2_run_means means = dl2_regimen_means(group, v);
        struct dl2_curve curve =
            dl2_part_variant_curve(&plot, study->variants[v].name, v, study->variant_count);
        curve.title = run ? dl2_regimen_label(group, v, label) : NULL;
        for (size_t e = 0; run && e < run->epochs; e++) {
            const json_t *epoch = json_array_get(json_object_get(run->report, "epochs"), e);
            const double top1 = dl2_run_means_top1(&means, e);
            if (isfinite(top1))
                dl2_curve_point(
                    &curve,
                    (const double[]){dl2_json_get_real(epoch, "position", (double)e + 1), top1}, 2,
                    NULL);
        }
        if (curve.count)
            dl2_curve_draw_as(&curve, "lines");
    }
    dl2_part_figure(figures, &plot, detail);
}

void dl2_regimen_plots(struct dl2_part_figures *figures, const struct dl2_regimens *group,
                       const char *detail)
{
    plot_differences(figures, group, detail);
    plot_curves(figures, group, detail);
}
