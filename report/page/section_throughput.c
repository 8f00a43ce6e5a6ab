/* SPDX-License-Identifier: BSD-2-Clause */
/* How fast variants load and train, each measured alone: rates, waiting, energy, time to an
 * accuracy. */
#include "report/page/parts.h"
#include "report/page/sections.h"

#include <math.h>
#include <string.h>

/* Whether any variant has the figure at offset `field` of struct dl2_speed, an estimate. */
static bool any_known(const struct dl2_page *page, size_t field)
{
    for (size_t a = 0; a < page->study->arch_count; a++)
        for (size_t v = 0; v < page->study->variant_count; v++) {
            const char *speed = (const char *)&page->speeds[a].variants[v];
            if (((const struct dl2_estimate *)(speed + field))->count)
                return true;
        }
    return false;
}

static void write_row(json_t *table, const struct dl2_page *page, size_t a, size_t v, bool energy)
{
    const struct dl2_study *study = page->study;
    const struct dl2_speed *speed = &page->speeds[a].variants[v];
    const bool raw = strcmp(study->variants[v].name, "raw") == 0;
    dl2_table_row(table, dl2_part_variant_name(study->variants[v].name));
    dl2_part_arch_cell(table, page, a);
    dl2_part_estimate(table, &speed->load_rate, 0);
    dl2_part_estimate(table, &speed->train_rate, 0);
    dl2_part_estimate(table, &speed->stall, 1);
    if (energy)
        dl2_part_estimate(table, &speed->joules, 3);
    dl2_table_number(table, speed->epochs, 1);
    dl2_table_value(table, speed->seconds, "%s",
                    isfinite(speed->seconds) ? dl2_speed_duration(speed->seconds) : "–");
    for (int kind = 0; kind < DL2_SPEED_KINDS; kind++) {
        const struct dl2_ratio *ratio = &speed->ratio[kind];
        if (raw)
            dl2_table_value(table, 1, "1");
        else if (ratio->spread.freedom > 0)
            dl2_part_ratio(table, ratio->ratio, dl2_ratio_low(ratio), dl2_ratio_high(ratio));
        else
            dl2_part_ratio(table, ratio->ratio, NAN, NAN);
    }
}

static void write_note(json_t *text, const struct dl2_page *page, bool energy)
{
    const struct dl2_speeds *first = &page->speeds[0];
    const struct dl2_accuracy_kind *kind = dl2_study_accuracy(page->study);
    dl2_block_say(
        text,
        dl2_accuracy_words(
            kind,
            "Each figure was measured with the machine to itself, in %zu round%s of all "
            "variants in turn, not taken from the trainings above. Rates are means with "
            "95%% intervals, which cover the rounds of this run, on this machine; another "
            "run may differ by more. “Times as fast” is against the original, round by round, with "
            "a 95%% interval of each variant by itself. Time to an accuracy is the epochs "
            "that the mean accuracy over seeds takes to reach it, straight lines between "
            "validations (a fall is levelled), at the measured rate; validation is not in "
            "it. These epochs are "
            "a point of the whole schedule: a training whose schedule ends there may reach "
            "another accuracy. The interval counts seeds and rounds, not the choice of "
            "validation images. The accuracy"),
        first->rounds, first->rounds == 1 ? "" : "s");
    for (size_t a = 0; a < page->study->arch_count; a++)
        dl2_block_say(text, "%s%s is %s", a ? ", " : "", dl2_part_arch_after(page, " of ", a),
                      dl2_accuracy_named(kind, page->speeds[a].accuracy));
    dl2_block_say(
        text, ". “Faster than the original” in the answer is claimed of all variants "
              "together, for each network and way, by a rule that is wrong in at most 2.5%% "
              "of such studies. By the same error, the fastest of those within the tolerance is "
              "the recommended one or one that “may be as fast”.");
    if (energy)
        dl2_block_say(text, " Energy is that of the card's board, without the rest of the "
                            "machine. A card has steps queued: while training waits for data, "
                            "it may still be busy.");
}

void dl2_section_throughput(const struct dl2_page *page, json_t *section)
{
    const struct dl2_study *study = page->study;
    const bool energy = any_known(page, offsetof(struct dl2_speed, joules));
    if (!any_known(page, offsetof(struct dl2_speed, train_rate)))
        return;
    dl2_block_set(section, "heading", "Speed");
    json_t *table = dl2_part_arch_table(section, page, "variant");
    dl2_table_heads(table, "loads, img/s\nand core|trains,\nimages/s|waiting\nfor data, %");
    dl2_table_heads(table, energy ? "energy,\nJ an image" : "");
    dl2_table_heads(table, dl2_accuracy_words(dl2_study_accuracy(study),
                                              "epochs to\naccuracy|time to\naccuracy|"
                                              "loads, times\nas fast|trains, times\nas fast|"
                                              "to accuracy,\ntimes as fast"));
    for (size_t a = 0; a < study->arch_count; a++)
        for (size_t v = 0; v < study->variant_count; v++)
            if (page->speeds[a].variants[v].train_rate.count)
                write_row(table, page, a, v, energy);
    write_note(dl2_block_add(section, "note"), page, energy);
}
