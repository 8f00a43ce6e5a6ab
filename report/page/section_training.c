/* SPDX-License-Identifier: BSD-2-Clause */
/* How training went: accuracy by epoch, and every training in a table. */
#include "report/page/parts.h"
#include "report/page/sections.h"
#include "report/study.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

static size_t most_epochs(const struct dl2_study *study, const char *arch)
{
    size_t epochs = 0;
    for (size_t i = 0; i < study->run_count; i++)
        if (strcmp(study->runs[i].arch, arch) == 0 && study->runs[i].epochs > epochs)
            epochs = study->runs[i].epochs;
    return epochs;
}

/* Mean over the seeds of a variant's validation accuracy after each epoch. */
static bool add_curve_points(struct dl2_plot *plot, const struct dl2_study *study, size_t v,
                             const char *arch)
{
    const struct dl2_runs runs = dl2_study_runs(study, v, arch);
    const size_t epochs = dl2_runs_epochs(runs);
    struct dl2_curve curve = {.plot = plot, .name = study->variants[v].name};
    for (size_t e = 0; e < epochs; e++) {
        const double accuracy = dl2_runs_accuracy(runs, e);
        if (isfinite(accuracy)) /* else it was not validated after this one */
            dl2_curve_point(
                &curve,
                (const double[]){(double)e + 1,
                                 dl2_accuracy_shown(dl2_study_accuracy(study), accuracy)},
                2, NULL);
    }
    return curve.count > 0;
}

/* One plot a codec, so that the curves can be told apart. */
static void plot_curves(struct dl2_part_figures *figures, size_t arch, size_t first)
{
    const struct dl2_study *study = figures->page->study;
    const char *codec = study->variants[first].codec;
    const struct dl2_accuracy_kind *kind = dl2_study_accuracy(study);
    char name[256], title[256], label[128];
    snprintf(title, sizeof title, dl2_accuracy_words(kind, "Validation accuracy by epoch: %s"),
             codec);
    struct dl2_plot plot = dl2_plot_begin(title, "epoch accuracy", DL2_PLOT_HEIGHT, "curves-%s-%s",
                                          study->archs[arch], codec);
    dl2_plot_axes(
        &plot, "epoch",
        dl2_plot_label(dl2_accuracy_words(kind, "validation accuracy, %"), label, sizeof label));
    dl2_plot_script(&plot,
                    "set key outside right center vertical\nset offsets 0, 0, graph 0.04, 0\n"
                    "set style data lines\n");
    const size_t epochs = most_epochs(study, study->archs[arch]);
    dl2_plot_script(&plot, "set xtics 0, %d\n",
                    epochs <= 10    ? 1
                    : epochs <= 20  ? 2
                    : epochs <= 50  ? 5
                    : epochs <= 100 ? 10
                                    : 50);
    const size_t last = dl2_study_end_of_codec(study, first);
    for (size_t v = first; v < last; v++) {
        if (!add_curve_points(&plot, study, v, study->archs[arch]))
            continue;
        dl2_plot_curve(&plot, "using 1:2 linecolor rgb '%s' linewidth 2 title '%s'",
                       dl2_plot_ramp(v - first, last - first),
                       dl2_plot_plain(study->variants[v].name, name, sizeof name));
    }
    const size_t raw = dl2_study_find(study, "raw");
    if (plot.curves && raw < study->variant_count &&
        add_curve_points(&plot, study, raw, study->archs[arch]))
        dl2_plot_curve(&plot, "using 1:2 linecolor rgb '" DL2_PLOT_INK
                              "' linewidth 2 dashtype (6,4) title 'original'");
    dl2_part_figure(figures, &plot, dl2_part_arch(figures->page, arch));
}

void dl2_section_training(const struct dl2_page *page, json_t *section)
{
    struct dl2_part_figures figures = {
        .page = page,
        .parent = section,
        .note = dl2_accuracy_words(dl2_study_accuracy(page->study),
                                   "Accuracy on validation after each epoch, mean over seeds.")};
    dl2_block_set(section, "heading", "Training");
    for (size_t arch = 0; arch < page->study->arch_count; arch++)
        for (size_t v = 0; v < page->study->variant_count; v++)
            if (dl2_study_starts_codec(page->study, v))
                plot_curves(&figures, arch, v);
}

void dl2_section_trainings(const struct dl2_page *page, json_t *section)
{
    const struct dl2_study *study = page->study;
    const struct dl2_accuracy_kind *kind = dl2_study_accuracy(study);
    if (!study->run_count)
        return;
    json_t *table =
        dl2_table_add(dl2_block_fold(section, dl2_accuracy_words(kind, "Every training")),
                      dl2_accuracy_words(kind, "trained on|<network|seed|epochs|accuracy, %"));
    dl2_table_heads(table, kind->is_foreign ? "seconds" : "top-5, %|seconds");
    for (size_t i = 0; i < study->run_count; i++) {
        const struct dl2_study_run *run = &study->runs[i];
        dl2_table_row(table, study->variants[run->variant].name);
        dl2_table_text(table, "%s", run->arch);
        dl2_table_value(table, (double)run->seed, "%llu", (unsigned long long)run->seed);
        dl2_table_number(table, (double)run->epochs, 0);
        dl2_part_accuracy(table, kind, 100 * run->accuracy, 2);
        if (!kind->is_foreign)
            dl2_table_number(table, 100 * run->top5, 2);
        dl2_table_number(table, run->seconds, 1);
    }
}
