/* SPDX-License-Identifier: BSD-2-Clause */
#include "report/page/parts.h"

#include "common/file.h"
#include "common/json.h"
#include "common/keep.h"
#include "common/scope.h"
#include "report/result_files.h"

#include <math.h>
#include <stdarg.h>
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

const char *dl2_part_fixed(double value, int digits)
{
    return isfinite(value) ? dl2_number("%.*f", digits, value) : "–";
}

void dl2_part_cell(struct dl2_bytes *html, double value, int digits)
{
    dl2_html_element(html, "td", "%s", dl2_part_fixed(value, digits));
}

const char *dl2_part_badge(enum dl2_verdict verdict)
{
    return verdict == DL2_VERDICT_WITHIN   ? "span class='badge within'"
           : verdict == DL2_VERDICT_BEYOND ? "span class='badge beyond'"
                                           : "span class='badge maybe'";
}

void dl2_part_estimate(struct dl2_bytes *html, const struct dl2_estimate *estimate, int digits)
{
    dl2_html_text(html, dl2_part_fixed(estimate->mean, digits));
    if (isfinite(estimate->half) && isfinite(estimate->mean))
        dl2_html_element(html, "small", " ± %s", dl2_part_fixed(estimate->half, digits));
}

void dl2_part_estimate_cell(struct dl2_bytes *html, const struct dl2_estimate *estimate, int digits)
{
    dl2_html_markup(html, "<td>");
    dl2_part_estimate(html, estimate, digits);
    dl2_html_markup(html, "</td>");
}

void dl2_part_percent_cell(struct dl2_bytes *html, double value, double low, double high)
{
    dl2_html_markup(html, "<td>");
    dl2_html_format(html, "%s%s", dl2_part_fixed(value, 1), isfinite(value) ? " %" : "");
    if (isfinite(low))
        dl2_html_element(html, "small", " (%s to %s)", dl2_part_fixed(low, 1),
                         dl2_part_fixed(high, 1));
    dl2_html_markup(html, "</td>");
}

void dl2_part_range_cell(struct dl2_bytes *html, double least, double most, int digits,
                         const char *unit, const char *none)
{
    const char *low = dl2_part_fixed(least, digits), *high = dl2_part_fixed(most, digits);
    if (!(most >= least) || !isfinite(most - least))
        dl2_html_element(html, "td", "%s", none);
    else if (strcmp(low, high) != 0)
        dl2_html_element(html, "td", "%s to %s%s", low, high, unit);
    else
        dl2_html_element(html, "td", "%s%s", low, unit);
}

void dl2_part_ratio_cell(struct dl2_bytes *html, const struct dl2_ratio *ratio)
{
    dl2_html_markup(html, "<td>");
    dl2_html_text(html, dl2_part_fixed(ratio->ratio, 2));
    if (isfinite(ratio->ratio) && ratio->spread.freedom > 0)
        dl2_html_element(html, "small", " (%.2f to %.2f)", dl2_ratio_low(ratio),
                         dl2_ratio_high(ratio));
    dl2_html_markup(html, "</td>");
}

void dl2_part_accuracy_cell(struct dl2_bytes *html, const struct dl2_accuracy_kind *kind,
                            double value, int digits)
{
    dl2_part_cell(html, dl2_accuracy_shown(kind, value), digits + kind->digits);
}

void dl2_part_accuracy_estimate_cell(struct dl2_bytes *html, const struct dl2_accuracy_kind *kind,
                                     const struct dl2_estimate *accuracy)
{
    const struct dl2_estimate shown = {dl2_accuracy_shown(kind, accuracy->mean), accuracy->half,
                                       accuracy->count};
    dl2_part_estimate_cell(html, &shown, 1 + kind->digits);
}

void dl2_part_interval(struct dl2_bytes *html, const struct dl2_accuracy_kind *kind, double middle,
                       double low, double high)
{
    dl2_html_format(html, "%s ", dl2_signed(kind, middle));
    dl2_html_element(html, "small", "(%s to %s)", dl2_signed(kind, low), dl2_signed(kind, high));
}

void dl2_part_difference_cell(struct dl2_bytes *html, const struct dl2_accuracy_kind *kind,
                              const struct dl2_comparison *comparison)
{
    const double half = dl2_comparison_half(comparison), middle = comparison->difference;
    dl2_html_markup(html, "<td class='l'>");
    if (comparison->verdict != DL2_VERDICT_NONE) {
        if (isfinite(half))
            dl2_part_interval(html, kind, middle, middle - half, middle + half);
        else
            dl2_html_format(html, "%s ", dl2_signed(kind, middle));
        dl2_html_markup(html, " ");
        dl2_html_element(html, dl2_part_badge(comparison->verdict), "%s",
                         dl2_verdict_text(comparison->verdict));
    }
    dl2_html_markup(html, "</td>");
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

const char *dl2_part_codec_colour(const struct dl2_study *study, size_t v)
{
    char codec[256];
    const struct codec_parts parts = parts_of(&study->variants[v]);
    if (v == dl2_study_find(study, "raw"))
        return DL2_PLOT_INK;
    snprintf(codec, sizeof codec, "%.*s", (int)parts.codec, parts.name);
    return dl2_plot_codec_colour(codec, numbers_of(study, v).codec);
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
        .colour = dl2_part_codec_colour(study, v),
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
                              .colour = raw ? DL2_PLOT_INK : dl2_plot_ramp(i, count),
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

void dl2_part_arch_heading(struct dl2_bytes *html, const struct dl2_page *page, size_t arch)
{
    if (page->study->arch_count > 1)
        dl2_html_element(html, "h3", "%s", page->study->archs[arch]);
}

void dl2_part_arch_heads(struct dl2_table *table, const struct dl2_page *page, const char *first)
{
    dl2_table_heads(table, first);
    dl2_table_heads(table, page->study->arch_count > 1 ? "<network" : "");
}

void dl2_part_arch_cell(struct dl2_bytes *html, const struct dl2_page *page, size_t arch)
{
    if (page->study->arch_count > 1)
        dl2_html_element(html, "td class='l'", "%s", page->study->archs[arch]);
}

static void open_figures(const struct dl2_part_figures *figures)
{
    if (figures->heading)
        dl2_html_element(figures->html, "h2", "%s", figures->heading);
    if (figures->note)
        dl2_html_element(figures->html, "p class='note'", "%s", figures->note);
    dl2_html_markup(figures->html, figures->heading ? "\n" : "");
    if (figures->summary) {
        dl2_html_markup(figures->html, "<details>");
        dl2_html_element(figures->html, "summary", "%s", figures->summary);
    }
    dl2_html_markup(figures->html, "<div class='plots'>\n");
}

/* The picture, with its title for those who do not see it. */
static void write_svg(struct dl2_bytes *html, const struct dl2_bytes *svg, const char *title)
{
    const char *tag = memmem(svg->data, svg->size, "<svg", 4);
    if (!tag) {
        dl2_append(html, svg->data, svg->size);
        return;
    }
    const size_t before = (size_t)(tag + 4 - (const char *)svg->data);
    dl2_append(html, svg->data, before);
    dl2_html_markup(html, " role='img' aria-label='");
    dl2_html_text(html, title);
    dl2_html_markup(html, "'");
    dl2_append(html, svg->data + before, svg->size - before);
}

void dl2_part_figure(struct dl2_part_figures *figures, struct dl2_plot *plot, const char *detail)
{
    struct dl2_bytes *html = figures->html;
    DL2_CLEANUP(dl2_bytes_free)
    struct dl2_bytes svg = dl2_plot_draw(plot, figures->page->plotter);
    if (svg.size) {
        if (figures->shown++ == 0)
            open_figures(figures);
        dl2_html_markup(html, "<figure><figcaption>");
        dl2_html_text(html, plot->title);
        if (detail)
            dl2_html_format(html, " · %s", detail);
        dl2_html_markup(html, "</figcaption>\n");
        write_svg(html, &svg, plot->title);
        dl2_html_markup(html, "</figure>\n");
    }
}

void dl2_part_figures_end(struct dl2_part_figures *figures)
{
    if (figures->shown)
        dl2_html_markup(figures->html, figures->summary ? "</div>\n</details>\n" : "</div>\n");
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
