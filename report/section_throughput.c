/* SPDX-License-Identifier: BSD-2-Clause */
/* Images a second, waiting and energy by variant. */
#include "report/parts.h"
#include "report/sections.h"

#include <math.h>
#include <string.h>

static void write_shared(struct dl2_html *html, const struct dl2_page *page)
{
    unsigned trainers = 0;
    for (size_t a = 0; a < page->study->arch_count; a++)
        if (page->analyses[a].trainers > trainers)
            trainers = page->analyses[a].trainers;
    dl2_html_markup(html, "<p class='warning'>");
    if (trainers > 1)
        dl2_html_format(html,
                        "“Shared”: up to %u trainings ran on the machine at a time. Each had a "
                        "part of it, which its neighbours made larger or smaller,",
                        trainers);
    else
        dl2_html_format(html, "“Shared”: these trainings did not record whether others ran on the "
                              "machine at the same time. If so, each had a part of it,");
    dl2_html_format(html,
                    " so these rates are no measure of a variant, and variants are not ranked by "
                    "them. A card's energy and use would be those of all trainings on it, and are "
                    "left out. “Fastest to load” is judged by the input pipeline, which was "
                    "measured alone.");
    dl2_html_markup(html, "</p>\n");
}

void dl2_section_throughput(const struct dl2_page *page, struct dl2_html *html)
{
    const struct dl2_study *study = page->study;
    bool energy = false, shared = false;
    for (size_t i = 0; i < study->run_count; i++)
        energy |= isfinite(study->runs[i].joules);
    for (size_t a = 0; a < study->arch_count; a++)
        shared |= page->analyses[a].shared;
    if (!study->run_count)
        return;
    dl2_html_markup(
        html, "<h2>Throughput of training</h2>\n<div class='scroll' tabindex='0'><table><thead><tr>"
              "<th scope='col'>trained on</th><th scope='col' class='l'>network</th><th "
              "scope='col'>images/s</th>"
              "<th scope='col'>waiting<br/>for data, %</th>");
    dl2_html_markup(html, energy ? "<th scope='col'>energy,<br/>J an image</th>" : "");
    dl2_html_markup(html, "</tr></thead><tbody>\n");
    for (size_t a = 0; a < study->arch_count; a++)
        for (size_t v = 0; v < study->variant_count; v++) {
            const struct dl2_comparison *comparison = &page->analyses[a].comparisons[v];
            if (!comparison->train_rate.count)
                continue;
            dl2_html_markup(html, "<tr>");
            dl2_html_element(html, "th scope='row'", "%s", dl2_part_variant(&study->variants[v]));
            dl2_html_element(html, "td class='l'", "%s", study->archs[a]);
            dl2_part_estimate_cell(html, &comparison->train_rate, 0, comparison->shared);
            dl2_part_estimate_cell(html, &comparison->stall, 1, comparison->shared);
            if (energy)
                dl2_part_estimate_cell(html, &comparison->joules, 3, false);
            dl2_html_markup(html, "</tr>\n");
        }
    dl2_html_markup(html,
                    "</tbody></table></div>\n<p class='note'>Means over seeds with 95% "
                    "intervals; a training's figure is the median of its epochs but the "
                    "first. Validation is not in them; in the timelines it is where no images "
                    "are trained on.");
    if (energy)
        dl2_html_markup(html, " Energy is that of the card's board, without the rest of the "
                              "machine. A card has steps queued: while training waits for data, "
                              "it may still be busy.");
    dl2_html_markup(html, "</p>\n");
    if (shared)
        write_shared(html, page);
}
