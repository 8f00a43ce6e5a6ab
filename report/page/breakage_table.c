/* SPDX-License-Identifier: BSD-2-Clause */
#include "report/page/breakage_table.h"

#include "report/metric_guides.h"
#include "report/page/parts.h"

#include <math.h>
#include <string.h>

static void write_share(struct dl2_html *html, double worse, double low, double high)
{
    char text[3][32];
    dl2_html_markup(html, "<td>");
    dl2_html_text(html, dl2_part_fixed(worse, 2, text[0]));
    if (isfinite(worse))
        dl2_html_element(html, "small", " (%s to %s)", dl2_part_fixed(low, 2, text[1]),
                         dl2_part_fixed(high, 2, text[2]));
    dl2_html_markup(html, "</td>");
}

/* SSIM where it was scored, else the first metric. */
static size_t main_metric(const struct dl2_metric_names *metrics)
{
    for (size_t m = 0; m < metrics->count; m++)
        if (strcmp(metrics->names[m], "ssim") == 0)
            return m;
    return 0;
}

void dl2_breakage_table(struct dl2_html *html, const struct dl2_study *study,
                        const struct dl2_metric_names *metrics,
                        const struct dl2_breakage *breakages)
{
    const size_t first = main_metric(metrics);
    bool any = false;
    for (size_t v = 0; v < study->variant_count; v++)
        any |= breakages[v].seeds && breakages[v].metrics[first].kept;
    if (!any)
        return;
    struct dl2_table table = {.html = html};
    dl2_html_markup(html,
                    "<h3>Are the images that a variant breaks those that it scores low?</h3>");
    dl2_table_heads(&table, "variant|images\nbroken|mended|kept");
    dl2_table_head(&table, "median, broken:\n%s", dl2_metric_title(study, metrics->names[first]));
    dl2_table_head(&table, "median, kept:\n%s", dl2_metric_title(study, metrics->names[first]));
    for (size_t m = 0; m < metrics->count; m++)
        dl2_table_head(&table, "broken worse:\n%s", dl2_metric_title(study, metrics->names[m]));
    for (size_t v = 0; v < study->variant_count; v++) {
        const struct dl2_breakage *breakage = &breakages[v];
        if (!breakage->seeds)
            continue;
        dl2_table_row(&table, study->variants[v].name);
        dl2_html_element(html, "td", "%zu", breakage->broken);
        dl2_html_element(html, "td", "%zu", breakage->mended);
        dl2_html_element(html, "td", "%zu", breakage->kept);
        dl2_part_cell(html, breakage->metrics[first].broken_median, 4);
        dl2_part_cell(html, breakage->metrics[first].kept_median, 4);
        for (size_t m = 0; m < metrics->count; m++)
            write_share(html, breakage->metrics[m].worse, breakage->metrics[m].low,
                        breakage->metrics[m].high);
    }
    dl2_table_end(&table);
    dl2_html_markup(
        html, "<p class='note'>A variant breaks a validation image if the "
              "network trained on the original gets it right and the one trained on the variant "
              "gets it wrong, in more than half of the seeds. Mended is the reverse, which chance "
              "alone brings about: where a variant breaks no more than it mends, it does no harm "
              "that can be seen. Kept are those which the original gets right in more than half "
              "of the seeds, without the broken. “Broken worse” is the probability that a broken "
              "image has a worse score than a kept one (Mann-Whitney; 0.5 is chance), with its 95% "
              "interval (Newcombe 2006, method 5), which tells of the choice of images.</p>\n");
}
