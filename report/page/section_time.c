/* SPDX-License-Identifier: BSD-2-Clause */
/* What accuracy a time buys: trainings that ended when a time had passed, and their curves. */
#include "report/conditions.h"
#include "report/page/parts.h"
#include "report/page/sections.h"

#include <math.h>
#include <stdint.h>
#include <stdio.h>

static void write_table(json_t *section, const struct dl2_accuracy_kind *kind,
                        const struct dl2_time_budgets *budgets)
{
    json_t *table = dl2_table_add(section, "trained on");
    for (size_t b = 0; b < budgets->count; b++) {
        dl2_table_head(table, "epochs\nwithin %s", budgets->items[b].condition->name);
        dl2_table_heads(table, dl2_accuracy_words(kind, "accuracy, %|<difference,\npoints"));
    }
    for (size_t n = 0; n < budgets->name_count; n++) {
        dl2_table_row(table, dl2_part_variant_name(budgets->names[n]));
        for (size_t b = 0; b < budgets->count; b++) {
            static const struct dl2_comparison none = {.accuracy = {NAN, NAN, 0}};
            const struct dl2_comparison *comparison =
                dl2_time_budget_find(&budgets->items[b], budgets->names[n]);
            comparison = comparison ? comparison : &none;
            dl2_table_number(
                table, dl2_runs_seen(dl2_time_budget_runs(&budgets->items[b], budgets->names[n])),
                1);
            dl2_part_accuracy_estimate(table, kind, &comparison->accuracy);
            dl2_part_difference(table, kind, comparison);
        }
    }
}

static struct dl2_plot begin_plot(const struct dl2_time_budgets *budgets, const char *kind,
                                  const char *title, const char *axis)
{
    struct dl2_plot plot = dl2_plot_begin(title, "time accuracy from to", DL2_PLOT_HEIGHT, "%s-%s",
                                          kind, budgets->arch);
    char label[128];
    dl2_plot_axes(&plot, axis,
                  dl2_plot_label(dl2_accuracy_words(budgets->items[0].analysis->kind,
                                                    "validation accuracy, %"),
                                 label, sizeof label));
    dl2_plot_script(&plot, "set key outside right center vertical\n");
    return plot;
}

/* Accuracy against the time, a curve a variant. */
static void plot_budgets(struct dl2_part_figures *figures, const struct dl2_time_budgets *budgets,
                         const char *detail)
{
    char text[128];
    struct dl2_plot plot =
        begin_plot(budgets, "time", "Accuracy by the time of training", "time of training");
    dl2_plot_script(&plot, "set yrange [0<*:*<100]\nset logscale x\nset xtics (");
    for (size_t b = 0; b < budgets->count; b++)
        dl2_plot_script(&plot, "%s'%s' %.8g", b ? ", " : "",
                        dl2_plot_plain(budgets->items[b].condition->name, text, sizeof text),
                        budgets->items[b].seconds);
    dl2_plot_script(&plot, ")\nset xrange [%.8g:%.8g]\n", budgets->items[0].seconds / 1.3,
                    budgets->items[budgets->count - 1].seconds * 1.3);
    for (size_t n = 0; n < budgets->name_count; n++) {
        const double aside = 1 + 0.05 * ((double)n - (double)(budgets->name_count - 1) / 2);
        struct dl2_curve curve =
            dl2_part_variant_curve(&plot, budgets->names[n], n, budgets->name_count);
        curve.bars = "1:2:3:4";
        for (size_t b = 0; b < budgets->count; b++) {
            const struct dl2_comparison *comparison =
                dl2_time_budget_find(&budgets->items[b], budgets->names[n]);
            const struct dl2_estimate none = {NAN, NAN, 0};
            const struct dl2_estimate accuracy = comparison ? comparison->accuracy : none;
            const struct dl2_accuracy_kind *kind_of = dl2_study_accuracy(figures->page->study);
            const double low = dl2_accuracy_shown(kind_of, accuracy.mean - accuracy.half);
            const double high = dl2_accuracy_shown(kind_of, accuracy.mean + accuracy.half);
            if (isfinite(accuracy.mean))
                dl2_curve_point(&curve,
                                (const double[]){budgets->items[b].seconds * aside,
                                                 dl2_accuracy_shown(kind_of, accuracy.mean),
                                                 isfinite(low) ? fmax(0, low) : NAN,
                                                 isfinite(high) ? fmin(100, high) : NAN},
                                4, NULL);
        }
        dl2_curve_draw(&curve);
    }
    dl2_part_figure(figures, &plot, detail);
}

/* Accuracy by the time since the start, within the longest time. */
static void plot_progress(struct dl2_part_figures *figures, const struct dl2_time_budgets *budgets,
                          const char *detail)
{
    const struct dl2_time_budget *budget = &budgets->items[budgets->count - 1];
    const double unit = budget->seconds <= 300 ? 1 : budget->seconds <= 10800 ? 60 : 3600;
    char title[160];
    const struct dl2_accuracy_kind *of = dl2_study_accuracy(figures->page->study);
    snprintf(title, sizeof title,
             dl2_accuracy_words(of, "Validation accuracy on the way, within %s"),
             budget->condition->name);
    struct dl2_plot plot = begin_plot(budgets, "time-curves", title,
                                      unit == 1    ? "seconds"
                                      : unit == 60 ? "minutes"
                                                   : "hours");
    dl2_plot_script(&plot, "set xrange [0:*]\n");
    for (size_t n = 0; n < budgets->name_count; n++) {
        const struct dl2_runs runs = dl2_time_budget_runs(budget, budgets->names[n]);
        struct dl2_curve curve =
            dl2_part_variant_curve(&plot, budgets->names[n], n, budgets->name_count);
        const size_t epochs = dl2_runs_epochs(runs);
        double seconds, accuracy, end, final;
        curve.size = 0.3;
        if (!dl2_runs_at(runs, SIZE_MAX, &end, &final))
            continue;
        for (size_t e = 0; e < epochs; e++) /* not all are validated */
            if (dl2_runs_at(runs, e, &seconds, &accuracy) && seconds < end)
                dl2_curve_point(
                    &curve,
                    (const double[]){seconds / unit, dl2_accuracy_shown(of, 100 * accuracy)}, 2,
                    NULL);
        dl2_curve_point(&curve, (const double[]){end / unit, 100 * final}, 2, NULL);
        dl2_curve_draw(&curve);
    }
    dl2_part_figure(figures, &plot, detail);
}

void dl2_section_time(const struct dl2_page *page, json_t *section)
{
    const struct dl2_accuracy_kind *kind = dl2_study_accuracy(page->study);
    size_t count;
    const struct dl2_time_budgets *list = dl2_time_budgets_find(&page->conditions, &count);
    dl2_block_set(section, "heading", "%s", dl2_accuracy_words(kind, "Accuracy within a time"));
    for (size_t i = 0; i < count; i++) {
        const char *detail = count > 1 ? list[i].arch : NULL;
        struct dl2_part_figures figures = {.page = page, .parent = section};
        write_table(section, kind, &list[i]);
        if (i == 0)
            dl2_block_text(section, "note", "%s",
                           dl2_accuracy_words(
                               kind, "Trainings that ended when the time had passed, validation "
                                     "included, each with the machine to itself and its schedule "
                                     "played to its end. Accuracies are means over seeds with 95% "
                                     "intervals; differences are to the original within the same "
                                     "time. Another machine does other numbers of epochs."));
        if (list[i].count > 1)
            plot_budgets(&figures, &list[i], detail);
        plot_progress(&figures, &list[i], detail);
    }
}
