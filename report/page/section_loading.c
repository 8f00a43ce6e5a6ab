/* SPDX-License-Identifier: BSD-2-Clause */
/* Speeds by storage, with the most workers of each; and plots by workers, and of what memory saves.
 */
#include "common/scope.h"
#include "report/page/parts.h"
#include "report/page/sections.h"

#include <stdio.h>
#include <string.h>

/* ---- Plots of the speeds of loading by workers, and of what memory saves */

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
    char title[256];
    snprintf(title, sizeof title, "%s from %s, by workers", network ? "Training" : "Loading",
             storage);
    struct dl2_plot plot;
    dl2_part_plot(figures, &plot, title, "workers images/s half-width-of-95%-interval",
                  DL2_PLOT_HEIGHT, "loading-%s-%s", storage, network ? network : "alone");
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
                dl2_rounds_mean(&loading->items[i].rounds, network, study->variants[v].name,
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
    dl2_part_plot(figures, &plot, "Read from the disk in an epoch, by memory for images",
                  "cache-MB read-MB", DL2_PLOT_HEIGHT, "loading-memory");
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

/* `scratch` has room for dl2_loading_rounds(). */
static void loading_plots(struct dl2_part_figures *figures, double *scratch)
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

/* ---- The section */

static void write_heads(struct dl2_table *table, const struct dl2_loading *loading)
{
    dl2_table_heads(table, "variant");
    for (size_t i = 0; i < loading->count; i++) {
        const struct dl2_loading_setup *setup =
            &loading->items[dl2_loading_last_of_storage(loading, i)];
        if (dl2_loading_caches(setup) || !dl2_loading_starts_storage(loading, i))
            continue;
        dl2_table_head(table, "%s: loads,\nimg/s", setup->storage);
        for (size_t a = 0; a < loading->network_count; a++) {
            dl2_table_head(table, "%s: %s,\nimg/s", setup->storage,
                           loading->network_count > 1 ? loading->networks[a] : "trains");
            dl2_table_heads(table, "waiting\nfor data, %");
        }
    }
}

static void write_table(struct dl2_html *html, const struct dl2_page *page, double *scratch)
{
    const struct dl2_study *study = page->study;
    const struct dl2_loading *loading = &page->loading;
    struct dl2_table table = {.html = html};
    write_heads(&table, loading);
    for (size_t v = 0; v < study->variant_count; v++) {
        dl2_table_row(&table, dl2_part_variant_name(study->variants[v].name));
        for (size_t i = 0; i < loading->count; i++) {
            const struct dl2_loading_setup *setup =
                &loading->items[dl2_loading_last_of_storage(loading, i)];
            if (dl2_loading_caches(setup) || !dl2_loading_starts_storage(loading, i))
                continue;
            const char *name = study->variants[v].name;
            struct dl2_estimate own = dl2_rounds_mean(&setup->rounds, NULL, name,
                                                      offsetof(struct dl2_round, rate), 1, scratch);
            dl2_part_estimate_cell(html, &own, 0);
            for (size_t a = 0; a < loading->network_count; a++) {
                own = dl2_rounds_mean(&setup->rounds, loading->networks[a], name,
                                      offsetof(struct dl2_round, rate), 1, scratch);
                dl2_part_estimate_cell(html, &own, 0);
                own = dl2_rounds_mean(&setup->rounds, loading->networks[a], name,
                                      offsetof(struct dl2_round, stall), 100, scratch);
                dl2_part_estimate_cell(html, &own, 1);
            }
        }
    }
    dl2_table_end(&table);
}

void dl2_section_loading(const struct dl2_page *page, struct dl2_html *html)
{
    const struct dl2_loading *loading = &page->loading;
    const size_t rounds = dl2_loading_rounds(loading);
    DL2_AUTO_FREE double *scratch = rounds ? dl2_html_calloc(html, rounds, sizeof *scratch) : NULL;
    if (!scratch)
        return;
    dl2_html_markup(html, "<h2>Loading, by storage</h2>\n");
    write_table(html, page, scratch);
    dl2_html_markup(
        html, "<p class='note'>With the most workers that were tried; means over rounds with "
              "95% intervals. Memory: the files are in the page cache. Disk: they are evicted "
              "from it before each epoch, so a host or a controller may still cache them. "
              "memory-SIZE: so much memory for the process and its page cache together, of which "
              "cache-SIZE is the loader's cache. Any other storage holds a copy, which is "
              "evicted likewise if it is a folder. "
              "Memory for images keeps encoded images from the first epoch on. ");
    if (dl2_loading_resident(loading) > 0.01)
        dl2_html_format(html, "Up to %.0f%% of the files could not be evicted. ",
                        100 * dl2_loading_resident(loading));
    dl2_html_markup(html, "</p>\n");
    struct dl2_part_figures figures = {.page = page, .html = html};
    loading_plots(&figures, scratch);
    dl2_part_figures_end(&figures);
}
