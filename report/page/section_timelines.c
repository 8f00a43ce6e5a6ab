/* SPDX-License-Identifier: BSD-2-Clause */
/* What a training did, second by second. */
#include "report/page/parts.h"
#include "report/page/sections.h"
#include "report/timeline.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#define MAX_SAMPLES 10000 /* of a timeline */
#define MAX_RANKS   16    /* whose timelines are drawn */

enum { IMAGES_PANEL, PERCENT_PANEL, MEMORY_PANEL, NETWORK_PANEL, POWER_PANEL, PANELS };

static const struct {
    enum dl2_timeline_figure figure;
    int panel;
    const char *title, *colour;
} timeline_curves[] = {
    {DL2_TIMELINE_IMAGES_RATE, IMAGES_PANEL, "", DL2_PLOT_BLUE},
    {DL2_TIMELINE_CPU, PERCENT_PANEL, "processors", DL2_PLOT_BLUE},
    {DL2_TIMELINE_CARD, PERCENT_PANEL, "card", DL2_PLOT_GREEN},
    {DL2_TIMELINE_WAIT, PERCENT_PANEL, "data wait", DL2_PLOT_RED},
    {DL2_TIMELINE_PROCESS_GB, MEMORY_PANEL, "process", DL2_PLOT_BLUE},
    {DL2_TIMELINE_CARD_GB, MEMORY_PANEL, "card", DL2_PLOT_GREEN},
    {DL2_TIMELINE_RECEIVED, NETWORK_PANEL, "received", DL2_PLOT_BLUE},
    {DL2_TIMELINE_SENT, NETWORK_PANEL, "sent", DL2_PLOT_GREEN},
    {DL2_TIMELINE_CARD_WATTS, POWER_PANEL, "", DL2_PLOT_ORANGE},
};
#define TIMELINE_CURVES (sizeof timeline_curves / sizeof *timeline_curves)

/* The largest of 1, 2 and 5 times a power of ten that is not above `step`; 1 for none. */
static double round_step(double step)
{
    if (!(step > 0) || !isfinite(step))
        return 1;
    const double power = pow(10, floor(log10(step)));
    return power * (step >= 5 * power ? 5 : step >= 2 * power ? 2 : 1);
}

/* A rank's timeline, and what of it is drawn. */
struct timeline {
    const struct dl2_study_run *run;
    const json_t *columns;
    size_t count; /* samples */
    double end;   /* seconds */
    bool known[TIMELINE_CURVES];
    bool panel[PANELS];
    double most[PANELS];
};

/* False where there is nothing to draw. */
static bool take_timeline(const struct dl2_study_run *run, size_t rank, struct timeline *t)
{
    *t = (struct timeline){.run = run};
    t->columns = dl2_timeline_of(run, rank);
    const size_t all = dl2_timeline_samples(t->columns);
    t->count = all < MAX_SAMPLES ? all : MAX_SAMPLES;
    t->end = t->count ? dl2_timeline_seconds(t->columns, t->count - 1) : NAN;
    if (t->count < 2 || !(t->end > 0))
        return false;
    for (size_t c = 0; c < TIMELINE_CURVES; c++) {
        const int p = timeline_curves[c].panel;
        for (size_t i = 0; i < t->count; i++) {
            const double value = dl2_timeline_value(run, t->columns, timeline_curves[c].figure, i);
            t->known[c] |= isfinite(value);
            t->most[p] = isfinite(value) ? fmax(t->most[p], value) : t->most[p];
        }
        t->panel[p] |= t->known[c];
    }
    t->most[PERCENT_PANEL] = 100;
    t->panel[NETWORK_PANEL] = t->most[NETWORK_PANEL] >= 0.1; /* else nobody uses it */
    return true;
}

/* Seconds in a unit of the time axis. */
static double timeline_unit(const struct timeline *t)
{
    return t->end > 600 ? 60 : 1;
}

static void begin_plot(const struct dl2_part_figures *figures, size_t arch,
                       const struct dl2_study_run *run, size_t rank, int height,
                       struct dl2_plot *plot)
{
    const struct dl2_study *study = figures->page->study;
    const char *variant = study->variants[run->variant].name;
    char name[256], title[256], suffix[32] = "", of_rank[32] = "";
    if (json_array_size(json_object_get(run->report, "rank_timelines")) > 1)
        snprintf(of_rank, sizeof of_rank, ", rank %zu", rank);
    if (rank)
        snprintf(suffix, sizeof suffix, "-rank-%zu", rank);
    snprintf(name, sizeof name, "timeline-%s-%s%s", study->archs[arch], variant, suffix);
    snprintf(title, sizeof title, "Training on %s, seed %llu%s",
             strcmp(variant, "raw") ? variant : "the original", (unsigned long long)run->seed,
             of_rank);
    dl2_plot_begin(plot, name, title,
                   "time images/s processors-% card-% waiting-% process-GB card-GB received-MB/s "
                   "sent-MB/s power-W",
                   height, figures->html->error);
    dl2_plot_block(plot, variant);
}

static void write_samples(const struct timeline *t, struct dl2_plot *plot)
{
    for (size_t i = 0; i < t->count; i++) {
        dl2_plot_number(plot, dl2_timeline_seconds(t->columns, i) / timeline_unit(t));
        for (size_t c = 0; c < TIMELINE_CURVES; c++)
            dl2_plot_number(plot,
                            dl2_timeline_value(t->run, t->columns, timeline_curves[c].figure, i));
        dl2_plot_data(plot, "\n");
    }
}

/* `top`: of the panel, pixels from the plot's lower edge; the lowest panel has the time axis. */
static void draw_panel(const struct timeline *t, int p, int top, bool lowest, struct dl2_plot *plot)
{
    static const char *const labels[] = {"images/s", "% of time", "memory, GB", "network, MB/s",
                                         "power, W"};
    dl2_plot_script(plot,
                    "set tmargin at screen %.4f\nset bmargin at screen %.4f\n"
                    "set ylabel '%s' textcolor rgb '" DL2_PLOT_SOFT_INK
                    "'\nset yrange [0:%.8g]\nset ytics %.8g\n",
                    (double)top / plot->height, (double)(top - 88) / plot->height, labels[p],
                    t->most[p] > 0 ? t->most[p] * (p == PERCENT_PANEL ? 1 : 1.05) : 1,
                    round_step(t->most[p] / 2));
    if (lowest)
        dl2_plot_script(
            plot, "set format x '%%g'\nset xlabel '%s' textcolor rgb '" DL2_PLOT_SOFT_INK "'\n",
            timeline_unit(t) > 1 ? "minutes" : "seconds");
    plot->curves = 0;
    for (size_t c = 0; c < TIMELINE_CURVES; c++)
        if (t->known[c] && timeline_curves[c].panel == p)
            dl2_plot_curve(plot, "using 1:%zu linecolor rgb '%s' linewidth 1.5 %s%s%s", c + 2,
                           timeline_curves[c].colour,
                           timeline_curves[c].title[0] ? "title '" : "notitle",
                           timeline_curves[c].title, timeline_curves[c].title[0] ? "'" : "");
    dl2_plot_script(plot, "\n");
}

/* The timeline of a rank of a run: a panel for each unit, one above the other. */
static void plot_timeline(struct dl2_part_figures *figures, size_t arch,
                          const struct dl2_study_run *run, size_t rank)
{
    struct timeline t;
    struct dl2_plot plot;
    int panels = 0, drawn = 0;
    if (!take_timeline(run, rank, &t))
        return;
    for (int p = 0; p < PANELS; p++)
        panels += t.panel[p];
    if (!panels)
        return;
    const int height = 46 + 110 * panels;
    begin_plot(figures, arch, run, rank, height, &plot);
    write_samples(&t, &plot);
    dl2_plot_script(&plot,
                    "set multiplot\nset lmargin at screen 0.15\nset rmargin at screen 0.78\n"
                    "set offsets 0, 0, 0, 0\nset xrange [0:%.8g]\nset style data lines\n"
                    "set key at screen 0.79, graph 1 left top vertical Left reverse samplen 1.2\n"
                    "set format x ''\n",
                    t.end / timeline_unit(&t));
    for (int p = 0; p < PANELS; p++)
        if (t.panel[p]) {
            const int top = height - 12 - 110 * drawn++;
            draw_panel(&t, p, top, drawn == panels, &plot);
        }
    dl2_plot_script(&plot, "unset multiplot");
    dl2_part_figure(figures, &plot, dl2_part_arch(figures->page, arch));
}

/* Whether a variant is the original or the one that is recommended. */
static bool stands_out(const struct dl2_page *page, size_t arch, size_t v)
{
    return v == dl2_study_find(page->study, "raw") ||
           v == dl2_advice_pick(&page->analyses[arch].smallest, page->study);
}

/* Of what stands out, rank 0's; of the others, what is left of those, and rank 0's of the rest. */
static void plot_timelines(struct dl2_part_figures *figures, size_t arch, size_t v, bool others)
{
    const struct dl2_study_run *run =
        dl2_study_first_run(figures->page->study, v, figures->page->study->archs[arch]);
    const bool out = stands_out(figures->page, arch, v);
    if (run && out == !others)
        plot_timeline(figures, arch, run, 0);
    if (!run || !out || !others)
        return;
    const size_t ranks = json_array_size(json_object_get(run->report, "rank_timelines"));
    for (size_t rank = 1; rank < ranks && rank < MAX_RANKS; rank++)
        plot_timeline(figures, arch, run, rank);
}

void dl2_section_timelines(const struct dl2_page *page, struct dl2_html *html)
{
    for (int others = 0; others < 2; others++) {
        struct dl2_part_figures figures = {
            .page = page, .html = html, .summary = others ? "The other timelines" : NULL};
        for (size_t arch = 0; arch < page->study->arch_count; arch++)
            for (size_t v = 0; v < page->study->variant_count; v++)
                plot_timelines(&figures, arch, v, others);
        dl2_part_figures_end(&figures);
    }
}
