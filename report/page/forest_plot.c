/* SPDX-License-Identifier: BSD-2-Clause */
#include "report/page/forest_plot.h"

#include <math.h>
#include <string.h>

enum { ROW_HEIGHT = 17, FRAME_HEIGHT = 100 }; /* pixels */

/* Of all points, and of intervals as far as they do not make the points too small to tell. */
static struct dl2_plot_range find_range(const struct dl2_shared_network *network, double tolerance)
{
    struct dl2_plot_range range = {-tolerance, 0, false};
    double most = tolerance;
    for (size_t v = 0; v < network->variant_count; v++)
        for (size_t i = 0; i < network->variants[v].count; i++)
            most = fmax(most, fabs(network->variants[v].differences[i]));
    for (size_t v = 0; v < network->variant_count; v++) {
        const struct dl2_shared_variant *variant = &network->variants[v];
        for (size_t i = 0; i <= variant->count; i++) {
            const double middle =
                i < variant->count ? variant->differences[i] : variant->effects.mean;
            const double half = i < variant->count ? variant->halves[i] : variant->effects.half;
            range.from = fmin(range.from, fmax(middle - half, -2 * most));
            range.to = fmax(range.to, fmin(middle + half, 2 * most));
        }
    }
    const double room = fmax(0.04 * (range.to - range.from), 0.1);
    return (struct dl2_plot_range){range.from - room, range.to + room, false};
}

static void label_row(struct dl2_plot *plot, size_t row, const char *name, const char *suffix)
{
    char clean[64];
    dl2_plot_script(plot, "set ytics %s('%s%s' %zu)\n", row ? "add " : "",
                    dl2_plot_plain(name, clean, sizeof clean), suffix, row);
}

/* Of all rows: a variant's studies, their mean, and a gap. Before the first curve. */
static void label_rows(struct dl2_plot *plot, const struct dl2_several_studies *several,
                       const struct dl2_shared_network *network)
{
    size_t row = 0;
    for (size_t v = 0; v < network->variant_count; v++, row += 2) {
        const struct dl2_shared_variant *variant = &network->variants[v];
        for (size_t i = 0; i < variant->count; i++)
            label_row(plot, row++, several->sources[variant->sources[i]].name, "");
        label_row(plot, row, variant->name, " mean");
    }
}

/* A variant's studies and their mean, from `row` on. */
static void add_variant(struct dl2_plot *plot, const struct dl2_shared_variant *variant,
                        const char *colour, size_t row)
{
    dl2_plot_block(plot, variant->name);
    for (size_t i = 0; i < variant->count; i++) {
        dl2_plot_number(plot, variant->differences[i]);
        dl2_plot_number(plot, variant->halves[i]);
        dl2_plot_data(plot, "%zu\n", row + i);
    }
    dl2_plot_curve(plot,
                   "using 1:3:2 with xerrorbars linecolor rgb '%s' linewidth 1 pointtype 7 "
                   "pointsize 0.5 notitle",
                   DL2_PLOT_INK);
    dl2_plot_block(plot, "mean");
    dl2_plot_number(plot, variant->effects.mean);
    dl2_plot_number(plot, variant->effects.half);
    dl2_plot_number(plot, variant->effects.half_new);
    dl2_plot_data(plot, "%zu\n", row + variant->count);
    dl2_plot_curve(plot,
                   "using 1:4:3 with xerrorbars linecolor rgb '%s' linewidth 1 pointtype 0 notitle",
                   DL2_PLOT_AXIS);
    dl2_plot_curve(plot,
                   "using 1:4:2 with xerrorbars linecolor rgb '%s' linewidth 3 pointtype 13 "
                   "pointsize 0.9 notitle",
                   colour);
}

void dl2_forest_plot(struct dl2_part_figures *figures, const struct dl2_several_studies *several,
                     const struct dl2_shared_network *network)
{
    size_t rows = 0, row = 0, codecs = 0;
    for (size_t v = 0; v < network->variant_count; v++)
        rows += network->variants[v].count + 2;
    struct dl2_plot plot;
    dl2_part_plot(figures, &plot, "Each dataset and their mean",
                  "difference-in-points half-width-of-95%-interval; of means also that of the "
                  "prediction interval; row",
                  FRAME_HEIGHT + ROW_HEIGHT * (int)rows, "forest-%s", network->arch);
    dl2_plot_axes(&plot, "accuracy, points to the original", "");
    const struct dl2_plot_range x = find_range(network, several->question.tolerance);
    dl2_plot_script(&plot,
                    "set offsets 0, 0, 0, 0\nset xrange [%.8g:%.8g]\nset yrange [%zu:-1]\n"
                    "unset grid\n",
                    x.from, x.to, rows - 1);
    dl2_curve_reference(&plot, 'x', 0, -several->question.tolerance);
    label_rows(&plot, several, network);
    for (size_t v = 0; v < network->variant_count; v++) {
        const struct dl2_shared_variant *variant = &network->variants[v];
        codecs += v && strcmp(variant->codec, variant[-1].codec) != 0;
        add_variant(&plot, variant, dl2_plot_codec_colour(variant->codec, codecs), row);
        row += variant->count + 2;
    }
    dl2_part_figure(figures, &plot, several->network_count > 1 ? network->arch : NULL);
}
