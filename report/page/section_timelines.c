/* SPDX-License-Identifier: BSD-2-Clause */
/* What a training did, second by second. */
#include "report/page/parts.h"
#include "report/page/sections.h"
#include "report/timeline.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MAX_SAMPLES 10000 /* of a timeline */
#define MAX_RANKS   16    /* whose timelines are drawn */

enum { PANEL_HEIGHT = 88, PANEL_STEP = 110, PANELS = 6, CURVES = 13 };

/* The columns of the data behind the time, panel by panel. */
static const struct {
    struct dl2_timeline_figure figure;
    int panel;
    const char *title, *color;
} curves[CURVES] = {
    {{"images", 1, .is_rate = true}, 0, "", DL2_PLOT_BLUE},
    {{"cpu_percent", 0}, 1, "process", DL2_PLOT_BLUE},
    {{"machine_cpu_percent", 0}, 1, "machine", DL2_PLOT_TEAL},
    {{"server_cpu_percent", 0}, 1, "server", DL2_PLOT_VIOLET},
    {{"card_percent", 1, .of_card = true}, 1, "card", DL2_PLOT_GREEN},
    {{"data_wait_seconds", 1, .is_rate = true, .is_share = true}, 1, "data wait", DL2_PLOT_RED},
    {{"rss_bytes", 1e9}, 2, "process", DL2_PLOT_BLUE},
    {{"card_memory_bytes", 1e9, .of_card = true}, 2, "card", DL2_PLOT_GREEN},
    {{"network_received_bytes", 1e6, .is_rate = true}, 3, "received", DL2_PLOT_BLUE},
    {{"network_sent_bytes", 1e6, .is_rate = true}, 3, "sent", DL2_PLOT_GREEN},
    {{"machine_disk_read_bytes", 1e6, .is_rate = true}, 4, "read", DL2_PLOT_BLUE},
    {{"machine_disk_write_bytes", 1e6, .is_rate = true}, 4, "written", DL2_PLOT_GREEN},
    {{"card_watts", 1, .of_card = true}, 5, "", DL2_PLOT_ORANGE},
};

static const struct {
    const char *label, *most; /* of the axis; "*": of the data */
    double least;             /* below this nothing is drawn */
} panels[PANELS] = {{"images/s", "*", 0},        {"% of time", "100", 0}, {"memory, GB", "*", 0},
                    {"network, MB/s", "*", 0.1}, /* else nobody uses it */
                    {"disks, MB/s", "*", 0.1},   {"power, W", "*", 0}};

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
    struct dl2_plot plot =
        dl2_plot_begin(title,
                       "time images/s process-% machine-% server-% card-% waiting-% process-GB "
                       "card-GB received-MB/s sent-MB/s read-MB/s written-MB/s power-W",
                       0, "timeline-%s-%s%s", run->arch, variant, suffix);
    dl2_plot_block(&plot, variant);
    return plot;
}

/* Writes the data, time in `unit` seconds; most[] is the largest value of each column, -INFINITY
 * where there is none. */
static void write_samples(struct dl2_plot *plot, const struct dl2_study_run *run,
                          const json_t *columns, size_t count, double unit, double most[CURVES])
{
    for (size_t c = 0; c < CURVES; c++)
        most[c] = -INFINITY;
    for (size_t i = 0; i < count; i++) {
        dl2_plot_number(plot, dl2_timeline_seconds(columns, i) / unit);
        for (size_t c = 0; c < CURVES; c++) {
            const double value = dl2_timeline_value(run, columns, &curves[c].figure, i);
            dl2_plot_number(plot, value);
            most[c] = isfinite(value) ? fmax(most[c], value) : most[c];
        }
        dl2_plot_data(plot, "\n");
    }
}

static bool has_panel(const double most[CURVES], int p)
{
    bool any = false;
    for (size_t c = 0; c < CURVES; c++)
        any |= curves[c].panel == p && most[c] >= panels[p].least;
    return any;
}

/* The largest of 1, 2 and 5 times a power of ten that is not above `step`; 1 for none. */
static double round_step(double step)
{
    if (!(step > 0) || !isfinite(step))
        return 1;
    const double power = pow(10, floor(log10(step)));
    return power * (step >= 5 * power ? 5 : step >= 2 * power ? 2 : 1);
}

/* `top`: of the panel, pixels from the plot's lower edge; the last panel has the time axis. */
static void draw_panel(struct dl2_plot *plot, int p, int top, const double most[CURVES])
{
    double largest = atof(panels[p].most); /* 0 for "*" */
    for (size_t c = 0; c < CURVES; c++)
        largest = curves[c].panel == p ? fmax(largest, most[c]) : largest;
    dl2_plot_script(plot,
                    "set tmargin at screen %.4f\nset bmargin at screen %.4f\n"
                    "set ylabel '%s' textcolor rgb '" DL2_PLOT_SOFT_INK
                    "'\nset yrange [0:%s]\nset ytics "
                    "%.8g\n",
                    (double)top / plot->height, (double)(top - PANEL_HEIGHT) / plot->height,
                    panels[p].label, panels[p].most, round_step(largest / 2));
    plot->curves = 0;
    for (size_t c = 0; c < CURVES; c++)
        if (isfinite(most[c]) && curves[c].panel == p)
            dl2_plot_curve(plot, "using 1:%zu linecolor rgb '%s' linewidth 1.5 title '%s'", c + 2,
                           curves[c].color, curves[c].title);
    dl2_plot_script(plot, "\n");
}

/* The timeline of a rank of a run: a panel for each unit, one above the other. */
static void plot_timeline(struct dl2_part_figures *figures, size_t arch,
                          const struct dl2_study_run *run, size_t rank)
{
    const json_t *columns = dl2_timeline_of(run, rank);
    const size_t all = dl2_timeline_samples(columns), count = all < MAX_SAMPLES ? all : MAX_SAMPLES;
    const double end = count ? dl2_timeline_seconds(columns, count - 1) : NAN;
    const double unit = end > 600 ? 60 : 1;
    double most[CURVES];
    int left = 0;
    if (count < 2 || !(end > 0))
        return;
    struct dl2_plot plot = begin_plot(figures->page->study, run, rank);
    write_samples(&plot, run, columns, count, unit, most);
    for (int p = 0; p < PANELS; p++)
        left += has_panel(most, p);
    plot.height = 46 + PANEL_STEP * left;
    dl2_plot_script(&plot,
                    "set multiplot\nset lmargin at screen 0.15\nset rmargin at screen 0.78\n"
                    "set offsets 0, 0, 0, 0\nset xrange [0:%.8g]\nset style data lines\n"
                    "set key at screen 0.79, graph 1 left top vertical Left reverse samplen 1.2\n"
                    "set format x ''\n",
                    end / unit);
    for (int p = 0, top = plot.height - 12; p < PANELS; p++) {
        if (!has_panel(most, p))
            continue;
        if (--left == 0)
            dl2_plot_script(&plot,
                            "set format x '%%g'\nset xlabel '%s' textcolor rgb '" DL2_PLOT_SOFT_INK
                            "'\n",
                            unit > 1 ? "minutes" : "seconds");
        draw_panel(&plot, p, top, most);
        top -= PANEL_STEP;
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
