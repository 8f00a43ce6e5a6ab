/* SPDX-License-Identifier: BSD-2-Clause */
/* How the machines were used over the whole study. */
#include "report/machine_logs.h"
#include "report/page/parts.h"
#include "report/page/sections.h"
#include "report/page/timeline_panels.h"

#include <math.h>
#include <string.h>

enum { BINS = 400, MAX_HOSTS = 16, MAX_STAGES = 16, STAGE_HEIGHT = 16 };

/* Means over the samples of each bin of time. */
struct bins {
    double sums[BINS][DL2_TIMELINE_CURVES];
    unsigned counts[BINS][DL2_TIMELINE_CURVES];
    bool starts[BINS]; /* nothing was at work right before */
};

static bool is_of_machine(size_t c)
{
    const char *column = dl2_timeline_curve(c)->column;
    return strncmp(column, "machine_", 8) == 0 || strncmp(column, "network_", 8) == 0 ||
           strncmp(column, "server_", 7) == 0;
}

/* Of logs at the same time the first one's samples count: all tell of the same machine. */
static void fill_bins(const struct dl2_machine_logs *logs, const char *host, double end,
                      struct bins *bins)
{
    double covered = -INFINITY;
    for (size_t l = 0; l < logs->count; l++) {
        const struct dl2_machine_log *log = &logs->items[l];
        if (strcmp(log->host, host) != 0 || log->to <= covered)
            continue;
        if (log->from - covered > end / BINS)
            bins->starts[(size_t)fmin(BINS * log->from / end, BINS - 1)] = true;
        for (size_t i = 0; i < dl2_timeline_samples(log->timeline); i++) {
            const double at = log->from + dl2_timeline_seconds(log->timeline, i);
            const double bin = fmin(BINS * at / end, BINS - 1);
            for (size_t c = 0; at > covered && bin >= 0 && c < DL2_TIMELINE_CURVES; c++) {
                const double value =
                    dl2_timeline_value(log->report, log->timeline, dl2_timeline_curve(c), i);
                if (!is_of_machine(c) || !isfinite(value))
                    continue;
                bins->sums[(size_t)bin][c] += value;
                bins->counts[(size_t)bin][c]++;
            }
        }
        covered = fmax(covered, log->to);
    }
}

static void write_bins(struct dl2_plot *plot, const struct bins *bins,
                       const struct dl2_timeline_span *span, double most[DL2_TIMELINE_CURVES])
{
    double values[DL2_TIMELINE_CURVES];
    for (size_t c = 0; c < DL2_TIMELINE_CURVES; c++)
        most[c] = -INFINITY;
    for (size_t b = 0; b < BINS; b++) {
        bool any = false;
        for (size_t c = 0; c < DL2_TIMELINE_CURVES; c++) {
            values[c] = bins->counts[b][c] ? bins->sums[b][c] / bins->counts[b][c] : NAN;
            any |= isfinite(values[c]);
        }
        if (bins->starts[b])
            dl2_plot_data(plot, "\n"); /* ends the line */
        if (any)
            dl2_timeline_row(plot, ((double)b + 0.5) * span->end / BINS / span->unit, values, most);
    }
    for (size_t c = 0; c < DL2_TIMELINE_CURVES; c++)
        if (strncmp(dl2_timeline_curve(c)->column, "server_", 7) == 0 && most[c] <= 0)
            most[c] = -INFINITY; /* there was none */
}

/* The stages that were at work on a host, by their starts; all behind the last but one are it. */
static size_t list_stages(const struct dl2_machine_logs *logs, const char *host,
                          const char *stages[MAX_STAGES])
{
    size_t count = 0;
    for (size_t l = 0; l < logs->count; l++) {
        size_t s = 0;
        while (s < count && strcmp(stages[s], logs->items[l].stage) != 0)
            s++;
        if (s < count || strcmp(logs->items[l].host, host) != 0 || count == MAX_STAGES)
            continue;
        stages[count] = count + 1 < MAX_STAGES ? logs->items[l].stage : "others";
        count++;
    }
    return count;
}

/* A row for each stage, the first on top, with a bar for each time that it was at work. */
static void draw_stages(struct dl2_plot *plot, const struct dl2_machine_logs *logs,
                        const char *host, const struct dl2_timeline_span *span,
                        const char *const stages[], size_t count)
{
    char clean[64];
    dl2_plot_block(plot, "stages");
    for (size_t l = 0; l < logs->count; l++) {
        const struct dl2_machine_log *log = &logs->items[l];
        size_t s = 0;
        while (s + 1 < count && strcmp(stages[s], log->stage) != 0)
            s++;
        if (strcmp(log->host, host) == 0)
            dl2_plot_data(plot, "%.8g %zu %.8g %s\n", log->from / span->unit, s,
                          fmax(log->to - log->from, span->end / 300) / span->unit,
                          dl2_plot_plain(log->stage, clean, sizeof clean));
    }
    dl2_plot_script(plot,
                    "set tmargin at screen %.4f\nset bmargin at screen %.4f\nset format x ''\n"
                    "unset xlabel\nunset ylabel\nunset key\nset yrange [%g:-0.5]\nset ytics (",
                    1 - 6.0 / plot->height, 1 - (6.0 + STAGE_HEIGHT * (double)count) / plot->height,
                    (double)count - 0.5);
    for (size_t s = 0; s < count; s++)
        dl2_plot_script(plot, "%s'%s' %zu", s ? ", " : "",
                        dl2_plot_plain(stages[s], clean, sizeof clean), s);
    dl2_plot_script(plot, ") font ',11'\n");
    plot->curves = 0;
    dl2_plot_curve(plot, "using 1:2:3:(0) with vectors nohead linewidth 8 linecolor rgb '%s'",
                   DL2_PLOT_ORANGE);
    dl2_plot_script(plot, "\nunset multiplot");
}

static void plot_host(struct dl2_part_figures *figures, const struct dl2_machine_logs *logs,
                      const char *host, size_t number, double end)
{
    const struct dl2_timeline_span span = dl2_timeline_span(end);
    const char *stages[MAX_STAGES];
    const size_t count = list_stages(logs, host, stages);
    struct bins *bins = dl2_keep(1, sizeof *bins, "a timeline");
    double most[DL2_TIMELINE_CURVES];
    struct dl2_plot plot = dl2_plot_begin(dl2_text("The machine %s", host), DL2_TIMELINE_COLUMNS, 0,
                                          "machine-%zu", number);
    dl2_plot_block(&plot, host);
    fill_bins(logs, host, end, bins);
    write_bins(&plot, bins, &span, most);
    dl2_timeline_draw(&plot, most, &span, STAGE_HEIGHT * (int)count + 6);
    draw_stages(&plot, logs, host, &span, stages, count);
    dl2_part_figure(figures, &plot, NULL);
}

void dl2_section_machine(const struct dl2_page *page, json_t *section)
{
    const struct dl2_machine_logs logs = dl2_machine_logs_read(page->folder);
    struct dl2_words hosts = {0};
    double end = 0;
    for (size_t i = 0; i < logs.broken.count; i++)
        dl2_block_text(section, "warning", "%s", logs.broken.at[i]);
    for (size_t l = 0; l < logs.count; l++) {
        size_t h = 0;
        while (h < hosts.count && strcmp(hosts.at[h], logs.items[l].host) != 0)
            h++;
        if (h == hosts.count)
            dl2_words_add(&hosts, logs.items[l].host);
        end = fmax(end, logs.items[l].to);
    }
    if (!logs.count)
        return;
    dl2_block_set(section, "heading", "The machine over the study");
    json_t *text = dl2_block_text(
        section, "note",
        "Bars are the steps that were at work, below them what the whole machine did, with "
        "whatever else ran on it; 100%% are all its processors.");
    if (logs.pauses)
        dl2_block_say(text, " %zu pause%s of %.0f minutes or more %s left out.", logs.pauses,
                      logs.pauses == 1 ? "" : "s", DL2_MACHINE_PAUSE / 60,
                      logs.pauses == 1 ? "is" : "are");
    if (hosts.count > MAX_HOSTS)
        dl2_block_say(text, " Of %zu machines the first %d are shown.", hosts.count, MAX_HOSTS);
    struct dl2_part_figures figures = {.page = page, .parent = section};
    for (size_t h = 0; h < hosts.count && h < MAX_HOSTS; h++)
        plot_host(&figures, &logs, hosts.at[h], h + 1, end);
}
