/* SPDX-License-Identifier: BSD-2-Clause */
#include "report/page/parts.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

const char *dl2_part_bytes(double bytes, char out[32])
{
    static const char *const units[] = {"B", "kB", "MB", "GB", "TB", "PB"};
    size_t unit = 0;
    while (bytes >= 999.5 && unit + 1 < sizeof units / sizeof *units) {
        bytes /= 1000;
        unit++;
    }
    snprintf(out, 32, "%.*f %s", unit && bytes < 99.95 ? 1 : 0, bytes, units[unit]);
    return out;
}

const char *dl2_part_fixed(double value, int digits, char out[32])
{
    if (isfinite(value))
        snprintf(out, 32, "%.*f", digits, value);
    else
        snprintf(out, 32, "–");
    return out;
}

void dl2_part_cell(struct dl2_html *html, double value, int digits)
{
    char text[32];
    dl2_html_element(html, "td", "%s", dl2_part_fixed(value, digits, text));
}

const char *dl2_part_badge(enum dl2_verdict verdict)
{
    switch (verdict) {
    case DL2_VERDICT_WITHIN:
        return "span class='badge within'";
    case DL2_VERDICT_BEYOND:
        return "span class='badge beyond'";
    default:
        return "span class='badge maybe'";
    }
}

void dl2_part_estimate(struct dl2_html *html, const struct dl2_estimate *estimate, int digits)
{
    char text[32];
    dl2_html_text(html, dl2_part_fixed(estimate->mean, digits, text));
    if (isfinite(estimate->half) && isfinite(estimate->mean))
        dl2_html_element(html, "small", " ± %s", dl2_part_fixed(estimate->half, digits, text));
}

void dl2_part_estimate_cell(struct dl2_html *html, const struct dl2_estimate *estimate, int digits)
{
    dl2_html_markup(html, "<td>");
    dl2_part_estimate(html, estimate, digits);
    dl2_html_markup(html, "</td>");
}

void dl2_part_ratio_cell(struct dl2_html *html, const struct dl2_ratio *ratio)
{
    char text[32];
    dl2_html_markup(html, "<td>");
    dl2_html_text(html, dl2_part_fixed(ratio->ratio, 2, text));
    if (isfinite(ratio->ratio) && ratio->spread.freedom > 0)
        dl2_html_element(html, "small", " (%.2f to %.2f)", dl2_ratio_low(ratio),
                         dl2_ratio_high(ratio));
    dl2_html_markup(html, "</td>");
}

void dl2_part_interval(struct dl2_html *html, double middle, double low, double high)
{
    char text[2][32];
    dl2_html_format(html, "%s ", dl2_signed(middle, text[0]));
    dl2_html_element(html, "small", "(%s to %s)", dl2_signed(low, text[0]),
                     dl2_signed(high, text[1]));
}

void dl2_part_difference_cell(struct dl2_html *html, const struct dl2_comparison *comparison)
{
    char text[32];
    const double half = dl2_comparison_half(comparison), middle = comparison->difference;
    dl2_html_markup(html, "<td class='l'>");
    if (comparison->verdict != DL2_VERDICT_NONE) {
        if (isfinite(half))
            dl2_part_interval(html, middle, middle - half, middle + half);
        else
            dl2_html_format(html, "%s ", dl2_signed(middle, text));
        dl2_html_markup(html, " ");
        dl2_html_element(html, dl2_part_badge(comparison->verdict), "%s",
                         dl2_verdict_text(comparison->verdict));
    }
    dl2_html_markup(html, "</td>");
}

const char *dl2_part_variant(const struct dl2_study_variant *variant)
{
    return strcmp(variant->name, "raw") ? variant->name : "original";
}

const char *dl2_part_codec_colour(const struct dl2_study *study, size_t v)
{
    size_t before = 0;
    if (v == dl2_study_find(study, "raw"))
        return DL2_PLOT_INK;
    for (size_t i = 0; i < v && strcmp(study->variants[i].codec, study->variants[v].codec) != 0;
         i++)
        before += dl2_study_starts_codec(study, i);
    return dl2_plot_codec_colour(study->variants[v].codec, before);
}

const char *dl2_part_arch(const struct dl2_page *page, size_t arch)
{
    return page->study->arch_count > 1 ? page->study->archs[arch] : NULL;
}

const char *dl2_part_arch_after(const struct dl2_page *page, const char *words, size_t arch,
                                char out[320])
{
    const char *name = dl2_part_arch(page, arch);
    snprintf(out, 320, "%s%s", name ? words : "", name ? name : "");
    return out;
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
static void write_svg(struct dl2_html *html, const struct dl2_bytes *svg, const char *title)
{
    const char *tag = memmem(svg->data, svg->size, "<svg", 4);
    if (!tag) {
        dl2_html_bytes(html, svg);
        return;
    }
    const size_t before = (size_t)(tag + 4 - (const char *)svg->data);
    dl2_html_bytes(html, &(struct dl2_bytes){.data = svg->data, .size = before});
    dl2_html_markup(html, " role='img' aria-label='");
    dl2_html_text(html, title);
    dl2_html_markup(html, "'");
    dl2_html_bytes(html,
                   &(struct dl2_bytes){.data = svg->data + before, .size = svg->size - before});
}

void dl2_part_figure(struct dl2_part_figures *figures, struct dl2_plot *plot, const char *detail)
{
    struct dl2_html *html = figures->html;
    struct dl2_bytes svg;
    const int status = dl2_plot_draw(plot, figures->page->plotter, &svg);
    dl2_html_check(html, status);
    if (status == DL2_OK && svg.size) {
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
    dl2_bytes_free(&svg);
}

void dl2_part_figures_end(struct dl2_part_figures *figures)
{
    if (figures->shown)
        dl2_html_markup(figures->html, figures->summary ? "</div>\n</details>\n" : "</div>\n");
}
