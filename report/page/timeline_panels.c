/* SPDX-License-Identifier: BSD-2-Clause */
#include "report/page/timeline_panels.h"

#include <math.h>
#include <stdlib.h>

enum { PANEL_HEIGHT = 88, PANEL_STEP = 110, PANELS = 6, CURVES = DL2_TIMELINE_CURVES };

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
} panels[PANELS] = {{"images/s", "*", 0},        {"% of time", "103", 0}, {"memory, GB", "*", 0},
                    {"network, MB/s", "*", 0.1}, /* else nobody uses it */
                    {"disks, MB/s", "*", 0.1},   {"power, W", "*", 0}};

const struct dl2_timeline_figure *dl2_timeline_curve(size_t c)
{
    return &curves[c].figure;
}

struct dl2_timeline_span dl2_timeline_span(double end)
{
    return end > 3 * 3600  ? (struct dl2_timeline_span){end, 3600, "hours"}
           : end > 10 * 60 ? (struct dl2_timeline_span){end, 60, "minutes"}
                           : (struct dl2_timeline_span){end, 1, "seconds"};
}

void dl2_timeline_row(struct dl2_plot *plot, double time, const double values[CURVES],
                      double most[CURVES])
{
    dl2_plot_number(plot, time);
    for (size_t c = 0; c < CURVES; c++) {
        dl2_plot_number(plot, values[c]);
        most[c] = isfinite(values[c]) ? fmax(most[c], values[c]) : most[c];
    }
    dl2_plot_data(plot, "\n");
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

void dl2_timeline_draw(struct dl2_plot *plot, const double most[CURVES],
                       const struct dl2_timeline_span *span, int above)
{
    int left = 0;
    for (int p = 0; p < PANELS; p++)
        left += has_panel(most, p);
    plot->height = above + 46 + PANEL_STEP * left;
    dl2_plot_script(plot,
                    "set multiplot\nset lmargin at screen 0.15\nset rmargin at screen 0.78\n"
                    "set offsets 0, 0, 0, 0\nset xrange [0:%.8g]\nset style data lines\n"
                    "set key at screen 0.79, graph 1 left top vertical Left reverse samplen 1.2\n"
                    "set format x ''\n",
                    span->end / span->unit);
    for (int p = 0, top = plot->height - 12 - above; p < PANELS; p++) {
        if (!has_panel(most, p))
            continue;
        if (--left == 0)
            dl2_plot_script(
                plot, "set format x '%%g'\nset xlabel '%s' textcolor rgb '" DL2_PLOT_SOFT_INK "'\n",
                span->label);
        draw_panel(plot, p, top, most);
        top -= PANEL_STEP;
    }
}
