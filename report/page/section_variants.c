/* SPDX-License-Identifier: BSD-2-Clause */
/* Every variant in a table: size, quality, speed, accuracy. */
#include "common/json.h"
#include "report/page/parts.h"
#include "report/page/sections.h"

#include <math.h>
#include <string.h>

/* The bootstrap beside the analytic intervals, where it was asked for. */
static void write_bootstrap(struct dl2_html *html, const struct dl2_page *page)
{
    const struct dl2_study *study = page->study;
    bool any = false;
    for (size_t a = 0; a < study->arch_count; a++)
        for (size_t v = 0; v < study->variant_count; v++) {
            const struct dl2_comparison *comparison = &page->analyses[a].comparisons[v];
            char text[4][32];
            if (!isfinite(comparison->low))
                continue;
            if (!any)
                dl2_html_format(html,
                                "As a check, the pigeonhole bootstrap (seeds and images drawn "
                                "anew, %u times), which is too narrow for few seeds: ",
                                page->analyses[a].question.draws);
            dl2_html_format(
                html, "%s%s%s%s %s to %s, not %s to %s", any ? "; " : "", study->variants[v].name,
                study->arch_count > 1 ? " " : "", study->arch_count > 1 ? study->archs[a] : "",
                dl2_part_signed(comparison->low, text[0]),
                dl2_part_signed(comparison->high, text[1]),
                dl2_part_signed(comparison->difference - comparison->half_both, text[2]),
                dl2_part_signed(comparison->difference + comparison->half_both, text[3]));
            any = true;
        }
    dl2_html_markup(html, any ? "." : "");
}

static void write_heads(struct dl2_html *html, const struct dl2_study *study, bool copies)
{
    dl2_html_markup(html, "<thead><tr><th scope='col'>variant</th>"
                          "<th scope='col'>size</th><th scope='col'>of the<br/>original</th>");
    dl2_html_markup(html, copies ? "<th scope='col'>files<br/>copied</th>" : "");
    dl2_html_markup(html, "<th scope='col'>bits per<br/>pixel</th>"
                          "<th scope='col'>PSNR<br/>dB</th><th scope='col'>SSIM</th><th "
                          "scope='col'>loads, img/s<br/>and core</th>"
                          "<th scope='col'>encoding,<br/>CPU s</th>");
    for (size_t a = 0; a < study->arch_count; a++) {
        dl2_html_markup(html, "<th scope='col'>top-1, %");
        if (study->arch_count > 1) {
            dl2_html_markup(html, "<br/>");
            dl2_html_text(html, study->archs[a]);
        }
        dl2_html_markup(html, "</th><th scope='col' class='l'>difference,<br/>points</th>");
    }
    dl2_html_markup(html, "</tr></thead>");
}

/* Is it the smallest or the fastest that keeps the accuracy of a network? */
static bool is_pick(const struct dl2_page *page, size_t v)
{
    for (size_t a = 0; a < page->study->arch_count; a++)
        if (v == page->analyses[a].smallest.sure ||
            v == page->speeds[a].fastest[DL2_SPEED_LOAD].sure)
            return true;
    return false;
}

static void write_variant(struct dl2_html *html, const struct dl2_page *page, size_t v, bool copies)
{
    const struct dl2_study *study = page->study;
    const struct dl2_study_variant *variant = &study->variants[v];
    const bool raw = strcmp(variant->name, "raw") == 0;
    const double load_rate =
        study->arch_count ? page->speeds[0].variants[v].load_rate.mean : variant->load_rate;
    char text[32];
    dl2_html_markup(html, is_pick(page, v) ? "<tr class='pick'>" : "<tr>");
    dl2_html_element(html, "th scope='row'", "%s", raw ? "original" : variant->name);
    dl2_html_element(html, "td", "%s",
                     isfinite(variant->bytes) ? dl2_part_bytes(variant->bytes, text) : "–");
    dl2_html_element(html, "td", "%s%s", dl2_part_fixed(100 * variant->ratio, 1, text),
                     isfinite(variant->ratio) ? " %" : "");
    if (copies)
        dl2_part_cell(html, dl2_json_get_real(variant->made, "copied", NAN), 0);
    dl2_part_cell(html, variant->bits_per_pixel, 3);
    dl2_part_cell(html, variant->psnr_rgb, 2);
    dl2_part_cell(html, variant->ssim, 4);
    dl2_part_cell(html, load_rate, 0);
    dl2_part_cell(html, variant->encode_seconds, 2);
    for (size_t a = 0; a < study->arch_count; a++) {
        const struct dl2_comparison *comparison = &page->analyses[a].comparisons[v];
        dl2_part_cell(html, comparison->top1.mean, 1);
        dl2_part_difference_cell(html, comparison);
    }
    dl2_html_markup(html, "</tr>\n");
}

void dl2_section_variants(const struct dl2_page *page, struct dl2_html *html)
{
    const struct dl2_study *study = page->study;
    if (!study->variant_count)
        return;
    bool copies = false; /* are there files that are the source's own? */
    for (size_t v = 0; v < study->variant_count; v++)
        copies |= dl2_json_get_real(study->variants[v].made, "copied", 0) > 0;
    dl2_html_markup(html, "<h2>Variants</h2>\n<div class='scroll' tabindex='0'><table>");
    write_heads(html, study, copies);
    dl2_html_markup(html, "<tbody>\n");
    for (size_t v = 0; v < study->variant_count; v++)
        write_variant(html, page, v, copies);
    dl2_html_markup(html, "</tbody></table></div>\n");
    dl2_html_markup(html,
                    "<p class='note'>PSNR (of RGB, higher is nearer) and "
                    "SSIM (1: the same) tell how near images are to the original's, as means "
                    "over images; bits per pixel and bytes are those of the images alone. Loading "
                    "is reading, decoding, cropping and resizing, as for training. ");
    if (copies)
        dl2_html_markup(html, "Copied files are the source's own, which encoding again would not "
                              "make smaller. ");
    write_bootstrap(html, page);
    dl2_html_markup(html, "</p>\n");
}
