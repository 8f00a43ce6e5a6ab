/* SPDX-License-Identifier: BSD-2-Clause */
/* What a training did, second by second. */
#include "report/page/parts.h"
#include "report/page/sections.h"
#include "report/page/timeline_panels.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#define MAX_SAMPLES 10000 /* of a timeline */
#define MAX_RANKS   16    /* whose timelines are drawn */

static struct dl2_plot begin_plot(const struct dl2_study *study, const struct dl2_study_run *run,
                                  size_t rank)
{
    const char *variant = study->variants[run->variant].name;
    char title[256], suffix[32] = "", of_rank[32] = "";
    if (json_array_size(json_object_get(run->report, "rank_timelines")) > 1)
        snprintf(of_rank, sizeof of_rank, ", rank %zu", rank);
    if (rank)
        snprintf(suffix, sizeof suffix, "-rank-%zu", rank);
    snprintf(title, sizeof title, "Training on %s, seed %llu%s",
             strcmp(variant, "raw") ? variant : "the original", (unsigned long long)run->seed,
             of_rank);
    struct dl2_plot plot = dl2_plot_begin(title, DL2_TIMELINE_COLUMNS, 0, "timeline-%s-%s%s",
                                          run->arch, variant, suffix);
    dl2_plot_block(&plot, variant);
    return plot;
}

/* The timeline of a rank of a run. */
static void plot_timeline(struct dl2_part_figures *figures, size_t arch,
                          const struct dl2_study_run *run, size_t rank)
{
    const json_t *columns = dl2_timeline_of(run, rank);
    const size_t all = dl2_timeline_samples(columns), count = all < MAX_SAMPLES ? all : MAX_SAMPLES;
    const double end = count ? dl2_timeline_seconds(columns, count - 1) : NAN;
    const struct dl2_timeline_span span = dl2_timeline_span(end);
    double values[DL2_TIMELINE_CURVES], most[DL2_TIMELINE_CURVES];
    if (count < 2 || !(end > 0))
        return;
    struct dl2_plot plot = begin_plot(figures->page->study, run, rank);
    for (size_t c = 0; c < DL2_TIMELINE_CURVES; c++)
        most[c] = -INFINITY;
    for (size_t i = 0; i < count; i++) {
        for (size_t c = 0; c < DL2_TIMELINE_CURVES; c++)
            values[c] = dl2_timeline_curve(c)->of_card && dl2_study_run_shared(run)
                            ? NAN
                            : dl2_timeline_value(run->report, columns, dl2_timeline_curve(c), i);
        dl2_timeline_row(&plot, dl2_timeline_seconds(columns, i) / span.unit, values, most);
    }
    dl2_timeline_draw(&plot, most, &span, 0);
    dl2_plot_script(&plot, "unset multiplot");
    dl2_part_figure(figures, &plot, dl2_part_arch(figures->page, arch));
}

/* Whether a variant is the original or the one that is recommended. */
static bool stands_out(const struct dl2_page *page, size_t arch, size_t v)
{
    return v == dl2_study_find(page->study, "raw") ||
           v == dl2_advice_pick(&page->analyses[arch].smallest, page->study);
}

/* Plots rank 0's of what stands out; with `others` the rest of those, and rank 0's of the rest. */
static void plot_timelines(struct dl2_part_figures *figures, size_t arch, size_t v, bool others)
{
    const struct dl2_study *study = figures->page->study;
    const struct dl2_study_run *run = dl2_study_runs(study, v, study->archs[arch]).at;
    const bool out = stands_out(figures->page, arch, v);
    if (run && out == !others)
        plot_timeline(figures, arch, run, 0);
    if (!run || !out || !others)
        return;
    const size_t ranks = json_array_size(json_object_get(run->report, "rank_timelines"));
    for (size_t rank = 1; rank < ranks && rank < MAX_RANKS; rank++)
        plot_timeline(figures, arch, run, rank);
}

void dl2_section_timelines(const struct dl2_page *page, json_t *section)
{
    for (int others = 0; others < 2; others++) {
        struct dl2_part_figures figures = {
            .page = page, .parent = section, .summary = others ? "The other timelines" : NULL};
        for (size_t arch = 0; arch < page->study->arch_count; arch++)
            for (size_t v = 0; v < page->study->variant_count; v++)
                plot_timelines(&figures, arch, v, others);
    }
}
