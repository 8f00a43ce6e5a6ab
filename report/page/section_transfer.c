/* SPDX-License-Identifier: BSD-2-Clause */
/* Does a variant cost each network the same? */
#include "report/page/parts.h"
#include "report/page/sections.h"
#include "report/transfer.h"

#include <math.h>

static void write_row(json_t *table, const struct dl2_page *page,
                      const struct dl2_transfer *transfer)
{
    const struct dl2_study *study = page->study;
    const struct dl2_accuracy_kind *kind = dl2_study_accuracy(study);
    const double difference = transfer->difference, half = transfer->half;
    dl2_table_row(table, study->variants[transfer->variant].name);
    for (int side = 0; side < 2; side++) {
        const size_t arch = side ? transfer->b : transfer->a;
        const double own = page->analyses[arch].comparisons[transfer->variant].difference;
        dl2_table_value(table, own, "%s %s", study->archs[arch],
                        dl2_signed(page->analyses[arch].kind, own));
    }
    json_t *cell = dl2_part_interval(table, kind, difference, NAN, NAN);
    if (isfinite(half)) {
        dl2_table_interval(cell, difference - half, difference + half);
        dl2_block_set(cell, "detail", "(%s%s)", dl2_interval(kind, difference, half),
                      transfer->images ? "" : ", of training alone");
    }
    if (dl2_transfer_differs(transfer))
        dl2_table_badge(dl2_table_text(table, "%s", ""), DL2_VERDICT_BEYOND,
                        dl2_accuracy_words(kind, "%s loses more"),
                        study->archs[difference < 0 ? transfer->a : transfer->b]);
    else if (isfinite(half))
        dl2_table_text(table, dl2_accuracy_words(kind, "the same within %.1f points"),
                       fabs(difference) + half);
    else
        dl2_table_text(table, "–");
}

void dl2_section_transfer(const struct dl2_page *page, json_t *section)
{
    const struct dl2_accuracy_kind *kind = dl2_study_accuracy(page->study);
    size_t count, differ = 0;
    const struct dl2_transfer *list = dl2_transfers_make(page->study, page->analyses, &count);
    for (size_t i = 0; i < count; i++)
        differ += dl2_transfer_differs(&list[i]);
    if (!count)
        return;
    dl2_block_set(section, "heading", "From one network to another");
    if (differ)
        dl2_block_text(section, "paragraph",
                       "What a variant loses depends on the network in %zu of %zu comparisons: "
                       "train the network that you will use.",
                       differ, count);
    else
        dl2_block_text(section, "paragraph",
                       "No variant was shown to cost one network more than another. How much more "
                       "it may cost is in the last column.");
    json_t *table = dl2_table_add(
        section, dl2_accuracy_words(kind, "variant|<a network and\nits difference|<another|"
                                          "<first less second,\npoints|<the loss is"));
    for (size_t i = 0; i < count; i++)
        write_row(table, page, &list[i]);
    dl2_block_text(section, "note", "%s",
                   dl2_accuracy_words(
                       kind, "Differences are in points of accuracy, to the original with the same "
                             "network. All intervals hold together in 95% of such studies; they "
                             "count both sources of chance, image by image. All networks saw "
                             "images of the study's one input size."));
}
