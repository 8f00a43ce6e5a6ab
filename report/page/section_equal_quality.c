/* SPDX-License-Identifier: BSD-2-Clause */
/* The codecs' sizes at equal image quality, by every metric. */
#include "report/metric_trust.h"
#include "report/page/parts.h"
#include "report/page/sections.h"

#include <math.h>

/* Below this, what is compared is a small part of what the codecs were tried at. */
enum { LEAST_OVERLAP = 75 };

void dl2_section_equal_quality(const struct dl2_page *page, json_t *section)
{
    const struct dl2_study *study = page->study;
    const struct dl2_metric_names *metrics = &page->sizes.metrics;
    json_t *table = NULL;
    size_t narrow = 0, left_out = 0;
    for (size_t v = 0; v < study->variant_count; v++)
        for (size_t m = 0; m < metrics->count; m++) {
            const struct dl2_codec_size *size = dl2_codec_size_at(study, &page->sizes, m, v);
            if (!size)
                continue;
            if (!table) {
                dl2_block_set(section, "heading", "Size at equal quality, of %s",
                              study->variants[page->sizes.anchor].codec);
                table = dl2_table_add(section,
                                      "codec|<metric|per image\n(95% interval)|images that\n"
                                      "are smaller|images|pooled\n(95% interval)|encoding\ntime|"
                                      "loading\ntime|qualities\nin common");
            }
            dl2_table_row(table, study->variants[v].codec);
            dl2_table_text(table, "%s", dl2_metric_title(study, metrics->names[m]));
            dl2_part_percent(table, size->per_image, 1, size->low, size->high);
            dl2_part_percent(table, size->smaller, 0, NAN, NAN);
            dl2_table_number(table, (double)size->images, 0);
            dl2_part_percent(table, size->pooled, 1, size->pooled_low, size->pooled_high);
            dl2_part_percent(table, size->encoding, 0, NAN, NAN);
            dl2_part_percent(table, size->loading, 0, NAN, NAN);
            dl2_part_percent(table, size->overlap, 0, NAN, NAN);
            narrow += size->overlap < LEAST_OVERLAP;
            left_out = size->left_out > left_out ? size->left_out : left_out;
        }
    if (!table)
        return;
    json_t *text = dl2_block_add(section, "note");
    if (narrow)
        dl2_block_say(text,
                      "Warning: in %zu row%s the codecs have less than %d%% of their qualities in "
                      "common, and the size speaks of these alone; more qualities of each codec "
                      "would tell more. ",
                      narrow, narrow == 1 ? "" : "s", LEAST_OVERLAP);
    dl2_block_say(text,
                  "Bjontegaard's comparison, as a size: BD-rate is this less 100 %%. The "
                  "logarithm of the size is interpolated over the quality (PCHIP; SSIM and "
                  "MS-SSIM in dB) and compared over the qualities that both codecs have. Per "
                  "image: the mean of every image's own comparison. Pooled: one comparison of "
                  "all bytes at the mean quality, over the images that have a score in every "
                  "variant of both codecs. Times are CPU time, as percent of the anchor's at "
                  "equal mean quality, over the qualities. The 95%% intervals are of the choice "
                  "of images (bootstrap, 1,000 draws).");
    if (left_out)
        dl2_block_say(text,
                      " Up to %zu images are not compared one by one: they have no qualities in "
                      "common, or no score because they are lossless or too small.",
                      left_out);
    if (page->codecs.metric)
        dl2_block_say(text, " Of %s only qualities from %g to %g are compared.",
                      page->codecs.metric, page->codecs.range.low, page->codecs.range.high);
}
