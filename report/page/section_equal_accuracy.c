/* SPDX-License-Identifier: BSD-2-Clause */
/* What codecs, settings and resolutions need for the same accuracy. */
#include "common/keep.h"
#include "report/accuracy_sizes.h"
#include "report/page/parts.h"
#include "report/page/sections.h"

#include <math.h>

static const struct dl2_accuracy_size *size_at(const struct dl2_page *page, size_t a, size_t v)
{
    return &page->accuracy_sizes[a * page->study->variant_count + v];
}

/* Is there a curve to compare this codec's with? There may be no anchor, which has no variant. */
static bool has_curve(const struct dl2_page *page, size_t a, size_t v)
{
    return v < page->study->variant_count && dl2_study_starts_codec(page->study, v) &&
           size_at(page, a, v)->variants > 1;
}

static void write_row(json_t *table, const struct dl2_page *page, size_t a, size_t v)
{
    const struct dl2_accuracy_size *size = size_at(page, a, v);
    dl2_table_row(table, page->study->variants[v].codec);
    dl2_part_arch_cell(table, page, a);
    for (int cost = 0; cost < DL2_COSTS; cost++)
        dl2_part_percent(table, size->cost[cost], 1, size->low[cost], size->high[cost]);
    dl2_part_interval(table, page->analyses[a].kind, size->gain, size->gain_low, size->gain_high);
    dl2_table_value(table, size->overlap, "%s",
                    size->overlap > 0 ? dl2_text("%.0f %%", size->overlap) : "none");
}

/* The codecs whose larger files are less accurate somewhere, in one sentence. */
static void write_falls(json_t *text, const struct dl2_page *page)
{
    size_t found = 0;
    for (size_t a = 0; a < page->study->arch_count; a++)
        for (size_t v = 0; v < page->study->variant_count; v++)
            if (has_curve(page, a, v) && size_at(page, a, v)->falls)
                dl2_block_say(text, "%s%s%s (%zu of %zu variants)",
                              found++ ? ", "
                                      : dl2_accuracy_words(page->analyses[a].kind,
                                                           " Accuracy does not rise with size in "),
                              page->study->variants[v].codec,
                              dl2_part_arch_after(page, " with ", a), size_at(page, a, v)->falls,
                              size_at(page, a, v)->variants);
    if (found)
        dl2_block_say(text, "%s",
                      dl2_accuracy_words(dl2_study_accuracy(page->study),
                                         ": neighbors that fall count as one accuracy in "
                                         "their middle, at the smaller size (isotonic "
                                         "regression)."));
}

void dl2_section_equal_accuracy(const struct dl2_page *page, json_t *section)
{
    const struct dl2_study *study = page->study;
    const struct dl2_accuracy_kind *kind = dl2_study_accuracy(study);
    const size_t anchor = page->sizes.anchor;
    json_t *table = NULL;
    for (size_t a = 0; a < study->arch_count; a++)
        for (size_t v = 0; v < study->variant_count && has_curve(page, a, anchor); v++) {
            if (v == anchor || !has_curve(page, a, v))
                continue;
            if (!table) {
                dl2_block_set(section, "heading",
                              dl2_accuracy_words(kind, "Size at equal accuracy, of %s"),
                              study->variants[anchor].codec);
                table = dl2_part_arch_table(section, page, "codec");
                dl2_table_heads(table, dl2_accuracy_words(
                                           kind, "bytes\n(95% interval)|encoding\ntime|"
                                                 "loading\ntime|<accuracy at equal\nbytes, points|"
                                                 "accuracies\nin common"));
            }
            write_row(table, page, a, v);
        }
    if (!table)
        return;
    json_t *text = dl2_block_text(
        section, "note", "%s",
        dl2_accuracy_words(
            kind,
            "Bjontegaard's comparison with accuracy in the place of image quality, over the "
            "accuracies that both have, never beyond: percent of the anchor's bytes, and of its "
            "CPU time of encoding and of loading; BD-rate is this less 100 %. The gain in points "
            "of accuracy is the mean over the bytes that both have. 95% intervals are the middle "
            "of 1,000 repetitions of the study (the choice of validation images where predictions "
            "are there, and the chance of training); there is none where the accuracies have "
            "nothing in common in more than 5% of them. A comparison near the accuracy of the "
            "original is vague, because there many sizes have the same accuracy."));
    write_falls(text, page);
}
