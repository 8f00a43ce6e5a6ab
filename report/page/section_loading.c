/* SPDX-License-Identifier: BSD-2-Clause */
/* Speeds by storage, with the most workers of each; and plots by workers, and of what memory saves.
 */
#include "report/page/loading_plots.h"
#include "report/page/sections.h"

#include <stdlib.h>

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
        dl2_table_row(&table, dl2_part_variant(&study->variants[v]));
        for (size_t i = 0; i < loading->count; i++) {
            const struct dl2_loading_setup *setup =
                &loading->items[dl2_loading_last_of_storage(loading, i)];
            if (dl2_loading_caches(setup) || !dl2_loading_starts_storage(loading, i))
                continue;
            const char *name = study->variants[v].name;
            struct dl2_estimate own =
                dl2_loading_mean(setup, NULL, name, offsetof(struct dl2_round, rate), 1, scratch);
            dl2_part_estimate_cell(html, &own, 0);
            for (size_t a = 0; a < loading->network_count; a++) {
                own = dl2_loading_mean(setup, loading->networks[a], name,
                                       offsetof(struct dl2_round, rate), 1, scratch);
                dl2_part_estimate_cell(html, &own, 0);
                own = dl2_loading_mean(setup, loading->networks[a], name,
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
    double *scratch = rounds ? dl2_html_calloc(html, rounds, sizeof *scratch) : NULL;
    if (!scratch)
        return;
    dl2_html_markup(html, "<h2>Loading, by storage</h2>\n");
    write_table(html, page, scratch);
    dl2_html_markup(
        html, "<p class='note'>With the most workers that were tried; means over rounds with "
              "95% intervals. Memory: the files are in the page cache. Disk: they are evicted "
              "from it before each epoch, so a host or a controller may still cache them. "
              "Memory for images keeps encoded images from the first epoch on. ");
    if (dl2_loading_resident(loading) > 0.01)
        dl2_html_format(html, "Up to %.0f%% of the files could not be evicted. ",
                        100 * dl2_loading_resident(loading));
    dl2_html_markup(html, "</p>\n");
    struct dl2_part_figures figures = {.page = page, .html = html};
    dl2_loading_plots(&figures, scratch);
    dl2_part_figures_end(&figures);
    free(scratch);
}
