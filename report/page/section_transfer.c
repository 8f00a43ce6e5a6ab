/* SPDX-License-Identifier: BSD-2-Clause */
/* Does a variant cost each network the same? */
#include "report/page/parts.h"
#include "report/page/sections.h"
#include "report/transfer.h"

#include <math.h>

static void write_row(struct dl2_table *table, const struct dl2_page *page,
                      const struct dl2_transfer *transfer)
{
    const struct dl2_study *study = page->study;
    const struct dl2_accuracy_kind *kind = dl2_study_accuracy(study);
    const double difference = transfer->difference, half = transfer->half;
    struct dl2_bytes *html = table->html;
    dl2_table_row(table, study->variants[transfer->variant].name);
    for (int side = 0; side < 2; side++) {
        const size_t arch = side ? transfer->b : transfer->a;
        dl2_html_element(
            html, "td class='l'", "%s %s", study->archs[arch],
            dl2_signed(page->analyses[arch].kind,
                       page->analyses[arch].comparisons[transfer->variant].difference));
    }
    dl2_html_markup(html, "<td class='l'>");
    dl2_html_format(html, "%s ", dl2_signed(kind, difference));
    if (isfinite(half))
        dl2_html_element(html, "small", "(%s%s)", dl2_interval(kind, difference, half),
                         transfer->images ? "" : ", of training alone");
    dl2_html_markup(html, "</td><td class='l'>");
    if (dl2_transfer_differs(transfer))
        dl2_html_element(html, dl2_part_badge(DL2_VERDICT_BEYOND),
                         dl2_accuracy_words(kind, "%s loses more"),
                         study->archs[difference < 0 ? transfer->a : transfer->b]);
    else if (isfinite(half))
        dl2_html_format(html, dl2_accuracy_words(kind, "the same within %.1f points"),
                        fabs(difference) + half);
    else
        dl2_html_markup(html, "–");
    dl2_html_markup(html, "</td>");
}

void dl2_section_transfer(const struct dl2_page *page, struct dl2_bytes *html)
{
    size_t count, differ = 0;
    const struct dl2_transfer *list = dl2_transfers_make(page->study, page->analyses, &count);
    for (size_t i = 0; i < count; i++)
        differ += dl2_transfer_differs(&list[i]);
    if (!count)
        return;
    dl2_html_markup(html, "<h2>From one network to another</h2>\n<p>");
    if (differ)
        dl2_html_format(html,
                        "What a variant loses depends on the network in %zu of %zu "
                        "comparisons: train the network that you will use.",
                        differ, count);
    else
        dl2_html_format(html, "No variant was shown to cost one network more than another. How "
                              "much more it may cost is in the last column.");
    dl2_html_markup(html, "</p>\n");
    struct dl2_table table = {.html = html};
    dl2_table_heads(&table, dl2_accuracy_words(dl2_study_accuracy(page->study),
                                               "variant|<a network and\nits difference|<another|"
                                               "<first less second,\npoints|<the loss is"));
    for (size_t i = 0; i < count; i++)
        write_row(&table, page, &list[i]);
    dl2_table_end(&table);
    dl2_html_markup(
        html, dl2_accuracy_words(
                  dl2_study_accuracy(page->study),
                  "<p class='note'>Differences are in points of accuracy, to the original with the "
                  "same network. All intervals hold together in 95% of such studies; they count "
                  "both sources of chance, image by image. All networks saw images of the "
                  "study&#39;s one input size.</p>\n"));
}
