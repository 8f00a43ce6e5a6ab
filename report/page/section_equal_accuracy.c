/* SPDX-License-Identifier: BSD-2-Clause */
/* What codecs, settings and resolutions need for the same accuracy. */
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

static void write_row(struct dl2_table *table, const struct dl2_page *page, size_t a, size_t v)
{
    const struct dl2_accuracy_size *size = size_at(page, a, v);
    struct dl2_bytes *html = table->html;
    dl2_table_row(table, page->study->variants[v].codec);
    dl2_part_arch_cell(html, page, a);
    for (int cost = 0; cost < DL2_COSTS; cost++)
        dl2_part_percent_cell(html, size->cost[cost], size->low[cost], size->high[cost]);
    dl2_html_markup(html, "<td class='l'>");
    if (isfinite(size->gain_low))
        dl2_part_interval(html, page->analyses[a].kind, size->gain, size->gain_low,
                          size->gain_high);
    else
        dl2_html_text(html,
                      isfinite(size->gain) ? dl2_signed(page->analyses[a].kind, size->gain) : "–");
    dl2_html_markup(html, "</td>");
    if (size->overlap > 0)
        dl2_html_element(html, "td", "%.0f %%", size->overlap);
    else
        dl2_html_element(html, "td", "none");
}

/* The codecs whose larger files are less accurate somewhere, in one sentence. */
static void write_falls(struct dl2_bytes *html, const struct dl2_page *page)
{
    size_t found = 0;
    for (size_t a = 0; a < page->study->arch_count; a++)
        for (size_t v = 0; v < page->study->variant_count; v++)
            if (has_curve(page, a, v) && size_at(page, a, v)->falls) {
                dl2_html_markup(
                    html, found++ ? ", "
                                  : dl2_accuracy_words(page->analyses[a].kind,
                                                       " Accuracy does not rise with size in "));
                dl2_html_format(html, "%s%s (%zu of %zu variants)", page->study->variants[v].codec,
                                dl2_part_arch_after(page, " with ", a), size_at(page, a, v)->falls,
                                size_at(page, a, v)->variants);
            }
    if (found)
        dl2_html_markup(html, dl2_accuracy_words(dl2_study_accuracy(page->study),
                                                 ": neighbours that fall count as one accuracy in "
                                                 "their middle, at the smaller size (isotonic "
                                                 "regression)."));
}

static void write_note(struct dl2_bytes *html, const struct dl2_page *page)
{
    dl2_html_markup(
        html, dl2_accuracy_words(
                  dl2_study_accuracy(page->study),
                  "<p class='note'>Bjontegaard's comparison with accuracy in the place of image "
                  "quality, over the accuracies that both have, never beyond: percent of the "
                  "anchor's bytes, and of its CPU time of encoding and of loading; BD-rate is "
                  "this less 100 %. The gain in points of accuracy is the mean over the bytes that "
                  "both have. "
                  "95% intervals are the middle of 1,000 repetitions of the study (the choice of "
                  "validation images where predictions are there, and the chance of training); "
                  "there is none where the accuracies have nothing in common in more than 5% of "
                  "them. A comparison near the accuracy of the original is vague, because there "
                  "many sizes have the same accuracy."));
    write_falls(html, page);
    dl2_html_markup(html, "</p>\n");
}

void dl2_section_equal_accuracy(const struct dl2_page *page, struct dl2_bytes *html)
{
    const struct dl2_study *study = page->study;
    const size_t anchor = page->sizes.anchor;
    struct dl2_table table = {.html = html};
    for (size_t a = 0; a < study->arch_count; a++)
        for (size_t v = 0; v < study->variant_count && has_curve(page, a, anchor); v++) {
            if (v == anchor || !has_curve(page, a, v))
                continue;
            if (!table.rows) {
                dl2_html_element(
                    html, "h2",
                    dl2_accuracy_words(dl2_study_accuracy(study), "Size at equal accuracy, of %s"),
                    study->variants[anchor].codec);
                dl2_part_arch_heads(&table, page, "codec");
                dl2_table_heads(
                    &table, dl2_accuracy_words(dl2_study_accuracy(study),
                                               "bytes\n(95% interval)|encoding\ntime|loading\ntime|"
                                               "<accuracy at equal\nbytes, points|accuracies\nin "
                                               "common"));
            }
            write_row(&table, page, a, v);
        }
    if (!table.rows)
        return;
    dl2_table_end(&table);
    write_note(html, page);
}
