/* SPDX-License-Identifier: BSD-2-Clause */
/* Speeds by storage, with the most workers of each; and plots by workers, and of what memory saves.
 */
#include "common/scope.h"
#include "report/page/parts.h"
#include "report/page/sections.h"

#include <stdio.h>
#include <string.h>

/* ---- Plots of the speeds of loading by workers and by storage, and of what memory saves */

/* Setups side by side on an axis. */
struct side_by_side {
    const char *what, *axis; /* "from disk, by workers", "worker threads" */
    const char *file;        /* in the plot's name */
    const size_t *setups;    /* in report's dl2_loading */
    size_t count;
    bool by_storage; /* else by workers */
};

/* The position of a setup on the axis. */
static double position(const struct dl2_loading *loading, const struct side_by_side *shown,
                       size_t number)
{
    return shown->by_storage ? (double)number : loading->items[shown->setups[number]].jobs;
}

/* The axis: numbers of workers, or the names of storages. */
static void set_axis(struct dl2_plot *plot, const struct dl2_loading *loading,
                     const struct side_by_side *shown)
{
    dl2_plot_script(plot, "set xtics (");
    for (size_t i = 0; i < shown->count; i++) {
        const struct dl2_loading_setup *setup = &loading->items[shown->setups[i]];
        if (shown->by_storage)
            dl2_plot_script(plot, "%s'%s' %zu", i ? ", " : "", setup->storage, i);
        else
            dl2_plot_script(plot, "%s%u", i ? ", " : "", setup->jobs);
    }
    dl2_plot_script(plot, ")%s\nset xrange [%.1f:%.1f]\n",
                    shown->by_storage && shown->count > 3 ? " rotate by -25" : "",
                    position(loading, shown, 0) - 0.3,
                    position(loading, shown, shown->count - 1) + 0.3);
}

/* Images a second of each setup: of the loader, or of training a network. */
static void plot_rates(struct dl2_part_figures *figures, double *scratch,
                       const struct side_by_side *shown, const char *network)
{
    const struct dl2_study *study = figures->page->study;
    const struct dl2_loading *loading = &figures->page->loading;
    char title[256];
    snprintf(title, sizeof title, "%s %s", network ? "Training" : "Loading", shown->what);
    struct dl2_plot plot =
        dl2_plot_begin(title,
                       shown->by_storage ? "number images/s half-width-of-95%-interval storage"
                                         : "workers images/s half-width-of-95%-interval",
                       DL2_PLOT_HEIGHT, "loading-%s-%s", shown->file, network ? network : "alone");
    dl2_plot_axes(&plot, shown->axis, "images a second");
    dl2_plot_script(&plot, "set key outside right center vertical\nset yrange [0:*]\n"
                           "set offsets 0, 0, graph 0.04, 0\n");
    set_axis(&plot, loading, shown);
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
        for (size_t i = 0; i < shown->count; i++) {
            const struct dl2_loading_setup *setup = &loading->items[shown->setups[i]];
            const struct dl2_estimate rate =
                dl2_rounds_mean(&setup->rounds, network, study->variants[v].name,
                                offsetof(struct dl2_round, rate), 1, scratch);
            if (rate.count)
                dl2_curve_point(&curve,
                                (const double[]){position(loading, shown, i), rate.mean, rate.half},
                                3, shown->by_storage ? setup->storage : NULL);
        }
        if (shown->by_storage)
            dl2_curve_draw_as(&curve, "points");
        else
            dl2_curve_draw(&curve);
    }
    dl2_part_figure(figures, &plot, network && loading->network_count > 1 ? network : NULL);
}

static void plot_all_rates(struct dl2_part_figures *figures, double *scratch,
                           const struct side_by_side *shown)
{
    const struct dl2_loading *loading = &figures->page->loading;
    if (shown->count < 2)
        return;
    plot_rates(figures, scratch, shown, NULL);
    for (size_t a = 0; a < loading->network_count; a++)
        plot_rates(figures, scratch, shown, loading->networks[a]);
}

static void plot_memory(struct dl2_part_figures *figures)
{
    const struct dl2_study *study = figures->page->study;
    const struct dl2_loading *loading = &figures->page->loading;
    struct dl2_plot plot = dl2_plot_begin("Read from the disk in an epoch, by memory for images",
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

/* `scratch` has room for dl2_loading_rounds(), `setups` for all setups. */
static void loading_plots(struct dl2_part_figures *figures, double *scratch, size_t *setups)
{
    const struct dl2_loading *loading = &figures->page->loading;
    size_t count = 0;
    for (size_t i = 0; i < loading->count; i++)
        if (dl2_loading_starts_storage(loading, i) && !dl2_loading_caches(&loading->items[i]))
            setups[count++] = dl2_loading_last_of_storage(loading, i);
    plot_all_rates(figures, scratch,
                   &(struct side_by_side){.what = "by storage",
                                          .axis = "storage",
                                          .file = "storages",
                                          .setups = setups,
                                          .count = count,
                                          .by_storage = true});
    for (size_t i = 0; i < loading->count; i++) {
        const char *storage = loading->items[i].storage;
        char what[256];
        if (!dl2_loading_starts_storage(loading, i) || dl2_loading_caches(&loading->items[i]))
            continue;
        count = 0;
        for (size_t k = i; k <= dl2_loading_last_of_storage(loading, i); k++)
            setups[count++] = k;
        snprintf(what, sizeof what, "from %s, by workers", storage);
        plot_all_rates(figures, scratch,
                       &(struct side_by_side){.what = what,
                                              .axis = "worker threads",
                                              .file = storage,
                                              .setups = setups,
                                              .count = count});
    }
    plot_memory(figures);
}

/* ---- The section */

static json_t *begin_table(json_t *section, const struct dl2_loading *loading)
{
    json_t *table = dl2_table_add(section, "variant|<storage|loads,\nimg/s");
    for (size_t a = 0; a < loading->network_count; a++) {
        dl2_table_head(table, "%s,\nimg/s",
                       loading->network_count > 1 ? loading->networks[a] : "trains");
        dl2_table_heads(table, "waiting\nfor data, %");
    }
    return table;
}

/* A row for each variant that was measured with the setup. */
static void write_rows(json_t *table, const struct dl2_page *page,
                       const struct dl2_loading_setup *setup, double *scratch)
{
    const struct dl2_study *study = page->study;
    const struct dl2_loading *loading = &page->loading;
    for (size_t v = 0; v < study->variant_count; v++) {
        const char *name = study->variants[v].name;
        struct dl2_estimate own = dl2_rounds_mean(&setup->rounds, NULL, name,
                                                  offsetof(struct dl2_round, rate), 1, scratch);
        dl2_table_row(table, dl2_part_variant_name(name));
        dl2_table_text(table, "%s", setup->storage);
        dl2_part_estimate(table, &own, 0);
        for (size_t a = 0; a < loading->network_count; a++) {
            own = dl2_rounds_mean(&setup->rounds, loading->networks[a], name,
                                  offsetof(struct dl2_round, rate), 1, scratch);
            dl2_part_estimate(table, &own, 0);
            own = dl2_rounds_mean(&setup->rounds, loading->networks[a], name,
                                  offsetof(struct dl2_round, stall), 100, scratch);
            dl2_part_estimate(table, &own, 1);
        }
    }
}

void dl2_section_loading(const struct dl2_page *page, json_t *section)
{
    const struct dl2_loading *loading = &page->loading;
    const size_t rounds = dl2_loading_rounds(loading);
    if (!rounds)
        return;
    DL2_AUTO_FREE double *scratch = dl2_room(rounds, sizeof *scratch, "rounds");
    DL2_AUTO_FREE size_t *setups = dl2_room(loading->count, sizeof *setups, "storages");
    dl2_block_set(section, "heading", "Loading, by storage");
    json_t *table = begin_table(section, loading);
    for (size_t i = 0; i < loading->count; i++) {
        const struct dl2_loading_setup *setup =
            &loading->items[dl2_loading_last_of_storage(loading, i)];
        if (!dl2_loading_caches(setup) && dl2_loading_starts_storage(loading, i))
            write_rows(table, page, setup, scratch);
    }
    json_t *text = dl2_block_text(
        section, "note",
        "With the most workers that were tried; means over rounds with 95%% intervals. Memory: the "
        "files are in the page cache. Disk: they are evicted from it before each epoch, so a host "
        "or a controller may still cache them. memory-SIZE: so much memory for the process and its "
        "page cache together, of which cache-SIZE is the loader's cache. Any other storage holds a "
        "copy, which is evicted likewise if it is a folder. Memory for images keeps encoded images "
        "from the first epoch on. ");
    if (dl2_loading_resident(loading) > 0.01)
        dl2_block_say(text, "Up to %.0f%% of the files could not be evicted. ",
                      100 * dl2_loading_resident(loading));
    struct dl2_part_figures figures = {.page = page, .parent = section};
    loading_plots(&figures, scratch, setups);
}
