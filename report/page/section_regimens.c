/* SPDX-License-Identifier: BSD-2-Clause */
/* Trainings in stages, on one variant after the other, against the original alone. */
#include "common/json.h"
#include "common/keep.h"
#include "report/conditions.h"
#include "report/page/parts.h"
#include "report/page/sections.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

/* ---- Plots of regimens: what each gains or loses, and its accuracy by epoch */

/* What each regimen gains or loses, one below the other. */
static void plot_differences(struct dl2_part_figures *figures, const struct dl2_regimens *group,
                             const char *detail)
{
    const struct dl2_study *study = &group->condition->study;
    char title[160];
    size_t count = 0, row = 0;
    for (size_t v = 0; v < study->variant_count; v++)
        count += isfinite(group->analysis->comparisons[v].difference);
    if (!count)
        return;
    snprintf(title, sizeof title, "Regimens of %s epochs against the original alone",
             group->condition->name);
    struct dl2_plot plot = dl2_plot_begin(
        title, "row difference half-interval", 110 + 30 * (int)(count < 40 ? count : 40),
        "regimens-%s-%s", group->condition->name, group->analysis->arch);
    char label[128];
    dl2_plot_axes(&plot,
                  dl2_plot_label(dl2_accuracy_words(group->analysis->kind,
                                                    "difference in accuracy, percentage points"),
                                 label, sizeof label),
                  "");
    dl2_curve_reference(&plot, 'x', 0, -group->analysis->question.tolerance);
    dl2_plot_script(&plot,
                    "set yrange [%.8g:0.5] reverse\nset offsets graph 0.05, graph 0.05, 0, 0\n"
                    "set grid noytics xtics\nset ytics (",
                    (double)count + 0.5);
    for (size_t v = 0; v < study->variant_count; v++)
        if (isfinite(group->analysis->comparisons[v].difference)) {
            dl2_plot_script(&plot, "%s'%s' %zu", row ? ", " : "", dl2_regimen_label(group, v),
                            row + 1);
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
    struct dl2_plot plot = dl2_plot_begin(
        dl2_accuracy_words(group->analysis->kind, "Validation accuracy by epoch, by regimen"),
        "epoch accuracy", DL2_PLOT_HEIGHT, "regimens-curves-%s-%s", group->condition->name,
        group->analysis->arch);
    char label[128];
    dl2_plot_axes(
        &plot, "epoch",
        dl2_plot_label(dl2_accuracy_words(group->analysis->kind, "validation accuracy, %"), label,
                       sizeof label));
    dl2_plot_script(&plot, "set key inside bottom right vertical\n"
                           "set offsets 0, 0, graph 0.04, 0\n");
    for (size_t v = 0; v < study->variant_count; v++) {
        const struct dl2_runs runs = dl2_regimen_runs(group, v);
        const struct dl2_study_run *run = runs.at;
        struct dl2_curve curve =
            dl2_part_variant_curve(&plot, study->variants[v].name, v, study->variant_count);
        curve.title = run ? dl2_regimen_label(group, v) : NULL;
        for (size_t e = 0; run && e < run->epochs; e++) {
            const json_t *epoch = json_array_get(json_object_get(run->report, "epochs"), e);
            const double accuracy = dl2_runs_accuracy(runs, e);
            if (isfinite(accuracy))
                dl2_curve_point(
                    &curve,
                    (const double[]){dl2_json_get_real(epoch, "position", (double)e + 1),
                                     dl2_accuracy_shown(group->analysis->kind, accuracy)},
                    2, NULL);
        }
        if (curve.count)
            dl2_curve_draw_as(&curve, "lines");
    }
    dl2_part_figure(figures, &plot, detail);
}

/* ---- The section */

static void write_table(json_t *section, const struct dl2_regimens *group)
{
    const struct dl2_study *study = &group->condition->study;
    const struct dl2_accuracy_kind *kind = group->analysis->kind;
    bool timed = false;
    for (size_t v = 0; v < study->variant_count; v++)
        timed |= isfinite(dl2_runs_seconds(dl2_regimen_runs(group, v)));
    json_t *table = dl2_table_add(section, dl2_text("%s epochs on", group->condition->name));
    dl2_table_heads(table, dl2_accuracy_words(kind, "accuracy, %|<difference, points"));
    dl2_table_heads(table, timed ? "training, s" : "");
    for (size_t v = 0; v < study->variant_count; v++) {
        const struct dl2_comparison *comparison = &group->analysis->comparisons[v];
        const struct dl2_runs runs = dl2_regimen_runs(group, v);
        if (!runs.count)
            continue;
        dl2_table_row(table, dl2_regimen_label(group, v));
        dl2_part_accuracy_estimate(table, kind, &comparison->accuracy);
        dl2_part_difference(table, kind, comparison);
        if (timed)
            dl2_table_number(table, dl2_runs_seconds(runs), 1);
    }
}

void dl2_section_regimens(const struct dl2_page *page, json_t *section)
{
    dl2_block_set(section, "heading", "Regimens");
    for (size_t i = 0; i < page->conditions.count; i++) {
        const struct dl2_condition *condition = &page->conditions.items[i];
        for (size_t a = 0; !strcmp(condition->goal, "regimens") && a < condition->study.arch_count;
             a++) {
            const struct dl2_regimens group = {condition, &condition->analyses[a]};
            const char *detail = condition->study.arch_count > 1 ? group.analysis->arch : NULL;
            struct dl2_part_figures figures = {.page = page, .parent = section};
            const bool first = dl2_block_is_empty(section);
            write_table(section, &group);
            if (first)
                dl2_block_text(section, "note",
                               "Trainings in stages, each on a variant for a number of epochs, "
                               "under one schedule; the original alone was trained for as many "
                               "epochs. Validated on the images of the last stage's variant. Bars "
                               "are 95%% intervals, of each regimen by itself. Shaded: the "
                               "tolerance.");
            plot_differences(&figures, &group, detail);
            plot_curves(&figures, &group, detail);
        }
    }
}
