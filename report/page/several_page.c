/* SPDX-License-Identifier: BSD-2-Clause */
#include "common/keep.h"
#include "common/scope.h"
#include "report/page/parts.h"
#include "report/page/sections.h"

#include <math.h>

/* ---- A forest plot: each study's difference to its original, and their mean, by variant */

enum { ROW_HEIGHT = 17, FRAME_HEIGHT = 100 }; /* pixels */

/* The range of all points, and of intervals as far as these leave the points large enough. */
static struct dl2_plot_range find_range(const struct dl2_shared_network *network,
                                        const struct dl2_accuracy_kind *kind, double tolerance)
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
    const double room = fmax(0.04 * (range.to - range.from), 0.1 * pow(10, -kind->digits));
    return (struct dl2_plot_range){range.from - room, range.to + room, false};
}

static void label_row(struct dl2_plot *plot, size_t row, const char *name, const char *suffix)
{
    char clean[64];
    dl2_plot_script(plot, "set ytics %s('%s%s' %zu)\n", row ? "add " : "",
                    dl2_plot_plain(name, clean, sizeof clean), suffix, row);
}

/* Labels all rows, a variant's studies, their mean, and a gap, before the first curve. */
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
                        const char *color, size_t row)
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
                   color);
}

static void forest_plot(struct dl2_part_figures *figures, const struct dl2_several_studies *several,
                        const struct dl2_shared_network *network)
{
    size_t rows = 0, row = 0, codecs = 0;
    for (size_t v = 0; v < network->variant_count; v++)
        rows += network->variants[v].count + 2;
    struct dl2_plot plot =
        dl2_plot_begin("Each dataset and their mean",
                       "difference half-width-of-95%-interval; of means also that of the "
                       "prediction interval; row",
                       FRAME_HEIGHT + ROW_HEIGHT * (int)rows, "forest-%s", network->arch);
    char label[128];
    dl2_plot_axes(
        &plot,
        dl2_plot_label(dl2_accuracy_words(several->kind, "accuracy, points to the original"), label,
                       sizeof label),
        "");
    const struct dl2_plot_range x = find_range(network, several->kind, several->question.tolerance);
    dl2_plot_script(&plot,
                    "set offsets 0, 0, 0, 0\nset xrange [%.8g:%.8g]\nset yrange [%zu:-1]\n"
                    "unset grid\n",
                    x.from, x.to, rows - 1);
    dl2_curve_reference(&plot, 'x', 0, -several->question.tolerance);
    label_rows(&plot, several, network);
    for (size_t v = 0; v < network->variant_count; v++) {
        const struct dl2_shared_variant *variant = &network->variants[v];
        codecs += v && strcmp(variant->codec, variant[-1].codec) != 0;
        add_variant(&plot, variant, dl2_plot_codec_color(variant->codec, codecs), row);
        row += variant->count + 2;
    }
    dl2_part_figure(figures, &plot, several->network_count > 1 ? network->arch : NULL);
}

/* ---- The answer */

static void write_answers(const struct dl2_several_studies *several, json_t *parent)
{
    for (size_t i = 0; i < several->network_count; i++) {
        struct dl2_several_answer answer;
        dl2_several_answer_make(several, &several->networks[i], &answer);
        json_t *text = dl2_block_add(parent, "headline");
        if (several->network_count > 1)
            dl2_block_mark(text, "small", "%s: ", several->networks[i].arch);
        dl2_block_mark(text, "strong", "%s", answer.headline);
        dl2_block_text(parent, "paragraph", "%s%s", answer.details, answer.caveats);
    }
}

/* ---- The table */

static void write_row(json_t *table, const struct dl2_several_studies *several,
                      const struct dl2_shared_variant *variant)
{
    const double mean = variant->effects.mean, half = variant->effects.half;
    const double half_new = variant->effects.half_new;
    dl2_table_row(table, variant->name);
    dl2_table_number(table, 100 * variant->ratio, 1);
    json_t *cell = dl2_table_value(table, (double)variant->within, "%s",
                                   variant->within       ? ""
                                   : variant->was_tested ? "not shown"
                                                         : "not tested");
    if (variant->within == variant->count)
        dl2_table_badge(cell, DL2_VERDICT_WITHIN, "all %zu", variant->count);
    else if (variant->within)
        dl2_table_badge(cell, DL2_VERDICT_LIKELY, "at least %zu of %zu", variant->within,
                        variant->count);
    dl2_part_interval(table, several->kind, mean, mean - half, mean + half);
    dl2_table_interval(
        dl2_table_value(table, mean, "%s", dl2_interval(several->kind, mean, half_new)),
        mean - half_new, mean + half_new);
    dl2_table_number(table, variant->effects.between, 1 + several->kind->digits);
    for (size_t i = 0, n = 0; i < several->count; i++) {
        const bool has = n < variant->count && variant->sources[n] == i;
        const double own = has ? variant->differences[n] : NAN;
        const double around = has ? variant->halves[n] : NAN;
        if (several->sources[i].is_used)
            dl2_part_interval(table, several->kind, own, own - around, own + around);
        n += has;
    }
}

static void write_table(json_t *section, const struct dl2_several_studies *several,
                        const struct dl2_shared_network *network)
{
    if (several->network_count > 1)
        dl2_block_text(section, "heading", "%s", network->arch);
    json_t *table = dl2_table_add(section, "variant|bytes, %");
    dl2_table_head(table, "datasets within %s",
                   dl2_count_points(several->kind, several->question.tolerance));
    dl2_table_heads(table, "mean|one more dataset|between datasets");
    for (size_t i = 0; i < several->count; i++)
        if (several->sources[i].is_used)
            dl2_table_head(table, "%s", several->sources[i].name);
    for (size_t v = 0; v < network->variant_count; v++)
        write_row(table, several, &network->variants[v]);
}

static void write_rules(json_t *section, const struct dl2_several_studies *several)
{
    json_t *text = dl2_block_text(
        dl2_block_fold(section, "How this was computed"), "note", "%s",
        dl2_accuracy_words(
            several->kind,
            "Differences are in points of accuracy to the original, with the 95% interval of each "
            "study's own report. Each dataset counts the same in the mean, whatever its size. The "
            "mean's interval and the prediction interval are Student's t over datasets, of each "
            "variant by itself. “Between datasets” is the standard deviation of the true "
            "differences, as far as chance within the studies does not explain it. Bytes are the "
            "geometric mean of what is left of the originals. "));
    if (several->kind->is_lower_better)
        dl2_block_say(text, "Lower is better: a difference above 0 is an improvement. ");
    dl2_block_say(text,
                  "“At least k of n” is a partial conjunction test of the n studies' one-sided "
                  "p-values against the tolerance: n − k + 1 times the k-th smallest is at most "
                  "the error. A codec's variants are tested from the largest to the smallest; the "
                  "first that is not within on all of its datasets is the last that is tested. "
                  "This is a rule that makes a wrong claim in at most 2.5%% of such summaries, "
                  "over all variants and codecs%s.",
                  several->network_count > 1 ? ", and all networks of this page" : "");
}

/* ---- The page */

const json_t *dl2_several_page_make(const struct dl2_page *page,
                                    const struct dl2_several_studies *several)
{
    size_t used = 0;
    const char *names = "";
    for (size_t i = 0; i < several->count; i++)
        if (several->sources[i].is_used)
            names = dl2_text("%s%s%s", names, used++ ? ", " : "", several->sources[i].name);
    json_t *document = page->title
                           ? dl2_page_begin("How far can %s be compressed?", page->title)
                           : dl2_page_begin("How far can these %zu datasets be compressed?", used);
    dl2_block_set(document, "lead", "%zu studies with like settings: %s.", used, names);
    dl2_section_warnings(page, dl2_page_section(document, "warnings"));
    json_t *section = dl2_page_section(document, "answer");
    json_t *columns = dl2_block_add(section, "columns");
    write_answers(several, dl2_block_append(columns, "columns", json_object()));
    struct dl2_part_figures figures = {
        .page = page, .parent = dl2_block_append(columns, "columns", json_object())};
    for (size_t i = 0; i < several->network_count; i++)
        forest_plot(&figures, several, &several->networks[i]);
    if (figures.shown)
        dl2_block_text(section, "note",
                       "Bars are 95%% intervals; the thin bar of a mean is the 95%% prediction "
                       "interval of one more dataset. Bars may end at the frame. The line at 0 is "
                       "the original, the shaded stripe beside it the tolerance.");
    section = dl2_page_section(document, "datasets");
    dl2_block_set(section, "heading", "Each dataset, and all together");
    for (size_t i = 0; i < several->network_count; i++)
        write_table(section, several, &several->networks[i]);
    write_rules(section, several);
    dl2_section_failures(page, dl2_page_section(document, "failures"));
    dl2_page_end(document, page->plotter);
    return document;
}
