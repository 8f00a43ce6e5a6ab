/* SPDX-License-Identifier: BSD-2-Clause */
/* The codecs' sizes at equal image quality, by every metric. */
#include "report/metric_trust.h"
#include "report/page/parts.h"
#include "report/page/sections.h"

#include <math.h>

static void write_percent(struct dl2_bytes *html, double value, int digits)
{
    dl2_html_element(html, "td", "%s%s", dl2_part_fixed(value, digits),
                     isfinite(value) ? " %" : "");
}

/* Below this, what is compared is a small part of what the codecs were tried at. */
enum { LEAST_OVERLAP = 75 };

static void open_table(struct dl2_table *table, const char *anchor)
{
    dl2_html_element(table->html, "h2", "Size at equal quality, of %s", anchor);
    dl2_table_heads(table,
                    "codec|<metric|per image\n(95% interval)|images that\nare smaller|images|"
                    "pooled\n(95% interval)|encoding\ntime|loading\ntime|"
                    "qualities\nin common");
}

void dl2_section_equal_quality(const struct dl2_page *page, struct dl2_bytes *html)
{
    const struct dl2_study *study = page->study;
    const struct dl2_metric_names *metrics = &page->sizes.metrics;
    struct dl2_table table = {.html = html};
    size_t narrow = 0, left_out = 0;
    for (size_t v = 0; v < study->variant_count; v++)
        for (size_t m = 0; m < metrics->count; m++) {
            const struct dl2_codec_size *size = dl2_codec_size_at(study, &page->sizes, m, v);
            if (!size)
                continue;
            if (!table.rows)
                open_table(&table, study->variants[page->sizes.anchor].codec);
            dl2_table_row(&table, study->variants[v].codec);
            dl2_html_element(html, "td class='l'", "%s",
                             dl2_metric_title(study, metrics->names[m]));
            dl2_part_percent_cell(html, size->per_image, size->low, size->high);
            write_percent(html, size->smaller, 0);
            dl2_html_element(html, "td", "%zu", size->images);
            dl2_part_percent_cell(html, size->pooled, size->pooled_low, size->pooled_high);
            write_percent(html, size->encoding, 0);
            write_percent(html, size->loading, 0);
            write_percent(html, size->overlap, 0);
            narrow += size->overlap < LEAST_OVERLAP;
            left_out = size->left_out > left_out ? size->left_out : left_out;
        }
    if (!table.rows)
        return;
    dl2_table_end(&table);
    dl2_html_markup(html, "<p class='note'>");
    if (narrow)
        dl2_html_format(
            html,
            "Warning: in %zu row%s the codecs have less than %d%% of their qualities in "
            "common, and the size speaks of these alone; more qualities of each codec "
            "would tell more. ",
            narrow, narrow == 1 ? "" : "s", LEAST_OVERLAP);
    dl2_html_markup(html,
                    "Bjontegaard's comparison, as a size: BD-rate is this less 100 %. The "
                    "logarithm of the size is interpolated over the quality (PCHIP; SSIM and "
                    "MS-SSIM in dB) and compared over the qualities that both codecs have. Per "
                    "image: the mean of every image's own comparison. Pooled: one comparison of "
                    "all bytes at the mean quality, over the images that have a score in every "
                    "variant of both codecs. Times are CPU time, as percent of the "
                    "anchor's at equal mean quality, over the qualities. The 95% intervals are of "
                    "the choice of images "
                    "(bootstrap, 1,000 draws).");
    if (left_out)
        dl2_html_format(html,
                        " Up to %zu images are not compared one by one: they have no qualities in "
                        "common, or no score because they are lossless or too small.",
                        left_out);
    if (page->codecs.metric)
        dl2_html_format(html, " Of %s only qualities from %g to %g are compared.",
                        page->codecs.metric, page->codecs.range.low, page->codecs.range.high);
    dl2_html_markup(html, "</p>\n");
}
