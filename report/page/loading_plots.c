/* SPDX-License-Identifier: BSD-2-Clause */
#include "report/page/loading_plots.h"

#include <stdio.h>
#include <string.h>

/* The axis of the numbers of workers of a storage. */
static void set_workers(struct dl2_plot *plot, const struct dl2_loading *loading, size_t first)
{
    size_t last = first;
    dl2_plot_script(plot, "set xtics (%u", loading->items[first].jobs);
    while (last + 1 < loading->count && !dl2_loading_starts_storage(loading, last + 1))
        dl2_plot_script(plot, ", %u", loading->items[++last].jobs);
    dl2_plot_script(plot, ")\nset xrange [%.2f:%.2f]\n", loading->items[first].jobs - 0.3,
                    loading->items[last].jobs + 0.3);
}

/* Images a second by workers, from one storage: of the loader, or of training a network. */
static void plot_workers(struct dl2_part_figures *figures, double *scratch, size_t first,
                         const char *network)
{
    const struct dl2_study *study = figures->page->study;
    const struct dl2_loading *loading = &figures->page->loading;
    const char *storage = loading->items[first].storage;
    char name[256], title[256];
    snprintf(name, sizeof name, "loading-%s-%s", storage, network ? network : "alone");
    snprintf(title, sizeof title, "%s from %s, by workers", network ? "Training" : "Loading",
             storage);
    struct dl2_plot plot;
    dl2_plot_begin(&plot, name, title, "workers images/s half-width-of-95%-interval",
                   DL2_PLOT_HEIGHT, figures->html->error);
    dl2_plot_axes(&plot, "worker threads", "images a second");
    dl2_plot_script(&plot, "set key outside right center vertical\nset yrange [0:*]\n"
                           "set offsets 0, 0, graph 0.04, 0\n");
    set_workers(&plot, loading, first);
    for (size_t v = 0; v < study->variant_count; v++) {
        struct dl2_curve curve =
            dl2_part_variant_curve(&plot, study->variants[v].name, v, study->variant_count);
        const double middle = (double)(study->variant_count - 1) / 2; /* bars stand side by side */
        const double aside = 0.3 * ((double)v - middle) / (double)study->variant_count;
        char columns[2][32];
        snprintf(columns[0], sizeof columns[0], "($1+%.3f):2", aside);
        snprintf(columns[1], sizeof columns[1], "($1+%.3f):2:3", aside);
        curve.columns = columns[0];
        curve.bars = columns[1];
        for (size_t i = first;
             i < loading->count && strcmp(loading->items[i].storage, storage) == 0; i++) {
            const struct dl2_estimate rate =
                dl2_loading_mean(&loading->items[i], network, study->variants[v].name,
                                 offsetof(struct dl2_round, rate), 1, scratch);
            if (rate.count)
                dl2_curve_point(&curve,
                                (const double[]){loading->items[i].jobs, rate.mean, rate.half}, 3,
                                NULL);
        }
        dl2_curve_draw(&curve);
    }
    dl2_part_figure(figures, &plot, network && loading->network_count > 1 ? network : NULL);
}

static void plot_memory(struct dl2_part_figures *figures)
{
    const struct dl2_study *study = figures->page->study;
    const struct dl2_loading *loading = &figures->page->loading;
    struct dl2_plot plot;
    dl2_plot_begin(&plot, "loading-memory", "Read from the disk in an epoch, by memory for images",
                   "cache-MB read-MB", DL2_PLOT_HEIGHT, figures->html->error);
    dl2_plot_axes(&plot, "memory for encoded images, MB", "read in an epoch, MB");
    dl2_plot_script(&plot, "set key outside right center vertical\nset yrange [0:*]\n"
                           "set xrange [0:*]\nset offsets 0, graph 0.03, graph 0.04, 0\n");
    for (size_t v = 0; v < study->variant_count; v++) {
        struct dl2_curve curve =
            dl2_part_variant_curve(&plot, study->variants[v].name, v, study->variant_count);
        curve.columns = "($1+0.000):2";
        for (size_t i = 0; i < loading->count; i++) {
            const struct dl2_loading_setup *setup = &loading->items[i];
            double cache, epoch;
            if (dl2_loading_caches(setup) &&
                dl2_loading_memory(setup, study->variants[v].name, &cache, &epoch))
                dl2_curve_point(&curve, (const double[]){cache / 1e6, epoch / 1e6}, 2, NULL);
        }
        dl2_curve_draw(&curve);
    }
    dl2_part_figure(figures, &plot, NULL);
}

void dl2_loading_plots(struct dl2_part_figures *figures, double *scratch)
{
    const struct dl2_loading *loading = &figures->page->loading;
    for (size_t i = 0; i < loading->count; i++) {
        if (!dl2_loading_starts_storage(loading, i) || dl2_loading_caches(&loading->items[i]))
            continue;
        plot_workers(figures, scratch, i, NULL);
        for (size_t a = 0; a < loading->network_count; a++)
            plot_workers(figures, scratch, i, loading->networks[a]);
    }
    plot_memory(figures);
}
