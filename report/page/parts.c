/* SPDX-License-Identifier: BSD-2-Clause */
#include "report/page/parts.h"

#include "common/file.h"
#include "common/json.h"
#include "common/keep.h"
#include "common/scope.h"
#include "report/result_files.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

const char *dl2_part_bytes(double bytes)
{
    static const char *const units[] = {"B", "kB", "MB", "GB", "TB", "PB"};
    size_t unit = 0;
    while (bytes >= 999.5 && unit + 1 < sizeof units / sizeof *units) {
        bytes /= 1000;
        unit++;
    }
    return dl2_number("%.*f %s", unit && bytes < 99.95 ? 1 : 0, bytes, units[unit]);
}

json_t *dl2_part_estimate(json_t *table, const struct dl2_estimate *estimate, int digits)
{
    const double mean = estimate->mean, half = estimate->half;
    json_t *cell = dl2_table_number(table, mean, digits);
    if (isfinite(half) && isfinite(mean)) {
        dl2_table_interval(cell, mean - half, mean + half);
        dl2_block_set(cell, "detail", "± %s", dl2_table_fixed(half, digits));
    }
    return cell;
}

/* "(0.50 to 0.71)" */
static void add_interval(json_t *cell, double low, double high, int digits)
{
    if (!isfinite(low))
        return;
    dl2_table_interval(cell, low, high);
    dl2_block_set(cell, "detail", "(%s to %s)", dl2_table_fixed(low, digits),
                  dl2_table_fixed(high, digits));
}

void dl2_part_percent(json_t *table, double value, int digits, double low, double high)
{
    add_interval(dl2_table_value(table, value, "%s%s", dl2_table_fixed(value, digits),
                                 isfinite(value) ? " %" : ""),
                 low, high, digits);
}

void dl2_part_range(json_t *table, double least, double most, int digits, const char *unit,
                    const char *none)
{
    const char *low = dl2_table_fixed(least, digits), *high = dl2_table_fixed(most, digits);
    if (!(most >= least) || !isfinite(most - least))
        dl2_table_value(table, NAN, "%s", none);
    else
        dl2_table_interval(strcmp(low, high)
                               ? dl2_table_value(table, least, "%s to %s%s", low, high, unit)
                               : dl2_table_value(table, least, "%s%s", low, unit),
                           least, most);
}

void dl2_part_ratio(json_t *table, double ratio, double low, double high)
{
    add_interval(dl2_table_number(table, ratio, 2), low, high, 2);
}

void dl2_part_accuracy(json_t *table, const struct dl2_accuracy_kind *kind, double value,
                       int digits)
{
    dl2_table_number(table, dl2_accuracy_shown(kind, value), digits + kind->digits);
}

json_t *dl2_part_accuracy_estimate(json_t *table, const struct dl2_accuracy_kind *kind,
                                   const struct dl2_estimate *accuracy)
{
    const struct dl2_estimate shown = {dl2_accuracy_shown(kind, accuracy->mean), accuracy->half,
                                       accuracy->count};
    return dl2_part_estimate(table, &shown, 1 + kind->digits);
}

json_t *dl2_part_interval(json_t *table, const struct dl2_accuracy_kind *kind, double middle,
                          double low, double high)
{
    json_t *cell =
        dl2_table_value(table, middle, "%s", isfinite(middle) ? dl2_signed(kind, middle) : "–");
    if (isfinite(low)) {
        dl2_table_interval(cell, low, high);
        dl2_block_set(cell, "detail", "(%s to %s)", dl2_signed(kind, low), dl2_signed(kind, high));
    }
    return cell;
}

void dl2_part_difference(json_t *table, const struct dl2_accuracy_kind *kind,
                         const struct dl2_comparison *comparison)
{
    const double half = dl2_comparison_half(comparison), middle = comparison->difference;
    if (comparison->verdict == DL2_VERDICT_NONE)
        dl2_table_value(table, NAN, "%s", "");
    else
        dl2_table_badge(dl2_part_interval(table, kind, middle, middle - half, middle + half),
                        comparison->verdict, "%s", dl2_verdict_text(comparison->verdict));
}

const char *dl2_part_variant_name(const char *name)
{
    return strcmp(name, "raw") ? name : "original";
}

/* The parts of what a variant is one of a sequence of: "jpeg_444@320". Lengths. */
struct codec_parts {
    const char *name;
    size_t codec, settings; /* behind them is the resolution */
};

static struct codec_parts parts_of(const struct dl2_study_variant *variant)
{
    const json_t *from = variant->made ? variant->made : variant->scored;
    const char *codec = dl2_json_get_text(from, "codec", variant->codec);
    struct codec_parts parts = {variant->codec, strlen(codec), 0};
    if (strncmp(codec, variant->codec, parts.codec) != 0)
        parts.codec = strlen(variant->codec);
    parts.settings = strcspn(variant->codec + parts.codec, "@");
    return parts;
}

static bool same_codec(const struct codec_parts *a, const struct codec_parts *b)
{
    return a->codec == b->codec && strncmp(a->name, b->name, a->codec) == 0;
}

static bool same_settings(const struct codec_parts *a, const struct codec_parts *b)
{
    return same_codec(a, b) && a->settings == b->settings &&
           strncmp(a->name + a->codec, b->name + b->codec, a->settings) == 0;
}

static bool same_resolution(const struct codec_parts *a, const struct codec_parts *b)
{
    return strcmp(a->name + a->codec + a->settings, b->name + b->codec + b->settings) == 0;
}

/* How a variant's curve is told from others: the number of its codec, of the settings among those
 * of the codec, and of the resolution among those that are none. */
struct codec_numbers {
    size_t codec, settings, resolution;
};

static struct codec_numbers numbers_of(const struct dl2_study *study, size_t v)
{
    const struct codec_parts own = parts_of(&study->variants[v]);
    struct codec_numbers numbers = {0, 0, own.name[own.codec + own.settings] == '@'};
    for (size_t i = 0; i < study->variant_count; i++) {
        const struct codec_parts other = parts_of(&study->variants[i]);
        bool first_codec = true, first_settings = true, first_resolution = true;
        for (size_t k = 0; k < i; k++) {
            const struct codec_parts earlier = parts_of(&study->variants[k]);
            first_codec &= !same_codec(&earlier, &other);
            first_settings &= !same_settings(&earlier, &other);
            first_resolution &= !same_resolution(&earlier, &other);
        }
        numbers.codec +=
            first_codec && i < v && dl2_study_starts_codec(study, i) && !same_codec(&other, &own);
        numbers.settings +=
            first_settings && i < v && same_codec(&other, &own) && !same_settings(&other, &own);
        numbers.resolution += numbers.resolution && first_resolution && i < v &&
                              other.name[other.codec + other.settings] == '@' &&
                              !same_resolution(&other, &own);
    }
    return numbers;
}

const char *dl2_part_codec_color(const struct dl2_study *study, size_t v)
{
    char codec[256];
    const struct codec_parts parts = parts_of(&study->variants[v]);
    if (v == dl2_study_find(study, "raw"))
        return DL2_PLOT_INK;
    snprintf(codec, sizeof codec, "%.*s", (int)parts.codec, parts.name);
    return dl2_plot_codec_color(codec, numbers_of(study, v).codec);
}

struct dl2_curve dl2_part_codec_curve(struct dl2_plot *plot, const struct dl2_study *study,
                                      size_t v)
{
    static const int points[] = {7, 5, 9, 13, 11, 4, 8, 12};
    static const char *const dashes[] = {NULL, "(6,3)", "(2,3)", "(9,3,2,3)", "(12,4)"};
    const struct codec_numbers numbers = numbers_of(study, v);
    return (struct dl2_curve){
        .plot = plot,
        .name = study->variants[v].codec,
        .color = dl2_part_codec_color(study, v),
        .point = points[numbers.settings % (sizeof points / sizeof *points)],
        .dash = dashes[numbers.resolution % (sizeof dashes / sizeof *dashes)],
    };
}

struct dl2_curve dl2_part_variant_curve(struct dl2_plot *plot, const char *name, size_t i,
                                        size_t count)
{
    const bool raw = strcmp(name, "raw") == 0;
    return (struct dl2_curve){.plot = plot,
                              .name = name,
                              .title = raw ? "original" : NULL,
                              .color = raw ? DL2_PLOT_INK : dl2_plot_ramp(i, count),
                              .dash = raw ? "(6,4)" : NULL,
                              .size = 0.5};
}

void dl2_part_codec_key(struct dl2_plot *plot, const struct dl2_study *study, size_t more)
{
    size_t longest = more ? strlen("Pareto front") : 0;
    for (size_t v = 0; v < study->variant_count; v++) {
        const size_t length = strlen(study->variants[v].codec);
        more += dl2_study_starts_codec(study, v);
        longest = length > longest ? length : longest;
    }
    dl2_plot_key(plot, more, longest);
}

const char *dl2_part_arch(const struct dl2_page *page, size_t arch)
{
    return page->study->arch_count > 1 ? page->study->archs[arch] : NULL;
}

const char *dl2_part_arch_after(const struct dl2_page *page, const char *words, size_t arch)
{
    const char *name = dl2_part_arch(page, arch);
    return name ? dl2_text("%s%s", words, name) : "";
}

void dl2_part_arch_heading(json_t *parent, const struct dl2_page *page, size_t arch)
{
    if (page->study->arch_count > 1)
        dl2_block_text(parent, "heading", "%s", page->study->archs[arch]);
}

json_t *dl2_part_arch_table(json_t *parent, const struct dl2_page *page, const char *first)
{
    json_t *table = dl2_table_add(parent, first);
    dl2_table_heads(table, page->study->arch_count > 1 ? "<network" : "");
    return table;
}

void dl2_part_arch_cell(json_t *table, const struct dl2_page *page, size_t arch)
{
    if (page->study->arch_count > 1)
        dl2_table_text(table, "%s", page->study->archs[arch]);
}

/* The block of the figures, below their note or in their fold. */
static json_t *open_figures(const struct dl2_part_figures *figures)
{
    json_t *parent = figures->parent;
    if (figures->note)
        dl2_block_text(parent, "note", "%s", figures->note);
    if (figures->summary)
        parent = dl2_block_fold(parent, figures->summary);
    return dl2_block_add(parent, "figures");
}

void dl2_part_figure(struct dl2_part_figures *figures, struct dl2_plot *plot, const char *detail)
{
    DL2_CLEANUP(dl2_bytes_free)
    struct dl2_bytes svg = dl2_plot_draw(plot, figures->page->plotter);
    if (!svg.size)
        return;
    if (!figures->shown)
        figures->shown = open_figures(figures);
    json_t *figure = dl2_block_append(figures->shown, "figures", json_object());
    dl2_block_set(figure, "title", "%s", plot->title);
    if (detail)
        dl2_block_set(figure, "detail", "%s", detail);
    dl2_block_set(figure, "data", "plots/%s.dat", plot->name);
    dl2_block_set(figure, "script", "plots/%s.gp", plot->name);
    dl2_block_set(figure, "svg", "%.*s", (int)svg.size, (const char *)svg.data);
}

json_t *dl2_part_survey(const struct dl2_page *page, struct dl2_error *why)
{
    const char *path = dl2_text("%s/survey.json", page->folder);
    json_t *survey = NULL;
    if (!dl2_is_file(path))
        return NULL;
    dl2_unless_memory(dl2_result_load(path, "dl2-survey/1", &survey, why), why);
    return survey;
}
