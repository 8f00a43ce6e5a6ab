/* SPDX-License-Identifier: BSD-2-Clause */
#include "report/page/several_page.h"

#include "report/page/forest_plot.h"
#include "report/page/sections.h"
#include "report/several_answer.h"

#include <math.h>

/* ---- The answer */

static void write_answers(const struct dl2_several_studies *several, struct dl2_html *html)
{
    for (size_t i = 0; i < several->network_count; i++) {
        struct dl2_several_answer answer;
        dl2_several_answer_make(several, &several->networks[i], &answer);
        dl2_html_markup(html, "<p class='headline'>");
        if (several->network_count > 1)
            dl2_html_element(html, "small", "%s: ", several->networks[i].arch);
        dl2_html_element(html, "strong", "%s", answer.headline);
        dl2_html_markup(html, "</p>\n");
        dl2_html_element(html, "p", "%s", answer.details);
        dl2_html_markup(html, "\n");
    }
}

/* ---- The table */

/* "−0.3 (−0.9 to +0.3)"; empty without a difference. */
static void write_interval(struct dl2_html *html, double middle, double half)
{
    dl2_html_markup(html, "<td>");
    if (isfinite(middle))
        dl2_part_interval(html, middle, middle - half, middle + half);
    dl2_html_markup(html, "</td>");
}

static void write_row(struct dl2_table *table, const struct dl2_several_studies *several,
                      const struct dl2_shared_variant *variant)
{
    struct dl2_html *html = table->html;
    char text[72];
    dl2_table_row(table, variant->name);
    dl2_part_cell(html, 100 * variant->ratio, 1);
    dl2_html_markup(html, "<td>");
    if (variant->within == variant->count)
        dl2_html_element(html, dl2_part_badge(DL2_VERDICT_WITHIN), "all %zu", variant->count);
    else if (variant->within)
        dl2_html_element(html, dl2_part_badge(DL2_VERDICT_LIKELY), "at least %zu of %zu",
                         variant->within, variant->count);
    else
        dl2_html_format(html, variant->was_tested ? "not shown" : "not tested");
    dl2_html_markup(html, "</td>");
    write_interval(html, variant->effects.mean, variant->effects.half);
    dl2_html_element(html, "td", "%s",
                     dl2_interval(variant->effects.mean, variant->effects.half_new, 1, text));
    dl2_part_cell(html, variant->effects.between, 1);
    for (size_t i = 0, n = 0; i < several->count; i++) {
        const bool has = n < variant->count && variant->sources[n] == i;
        if (several->sources[i].is_used)
            write_interval(html, has ? variant->differences[n] : NAN,
                           has ? variant->halves[n] : NAN);
        n += has;
    }
}

static void write_table(struct dl2_html *html, const struct dl2_several_studies *several,
                        const struct dl2_shared_network *network)
{
    char points[32];
    if (several->network_count > 1)
        dl2_html_element(html, "h3", "%s", network->arch);
    struct dl2_table table = {.html = html};
    dl2_table_heads(&table, "variant|bytes, %");
    dl2_table_head(&table, "datasets within %s",
                   dl2_count_points(points, several->question.tolerance));
    dl2_table_heads(&table, "mean|one more dataset|between datasets");
    for (size_t i = 0; i < several->count; i++)
        if (several->sources[i].is_used)
            dl2_table_head(&table, "%s", several->sources[i].name);
    for (size_t v = 0; v < network->variant_count; v++)
        write_row(&table, several, &network->variants[v]);
    dl2_table_end(&table);
}

static void write_rules(struct dl2_html *html, const struct dl2_several_studies *several)
{
    dl2_html_markup(html, "<details><summary>How this was computed</summary>\n<p class='note'>");
    dl2_html_format(html,
                    "Differences are in points of accuracy to the original, with the 95%% "
                    "interval of each study's own report. Each dataset counts the same in the "
                    "mean, whatever its size. The mean's interval and the prediction interval are "
                    "Student's t over datasets, of each variant by itself. “Between datasets” is "
                    "the standard deviation of the true differences, as far as chance within the "
                    "studies does not explain it. Bytes are the geometric mean of what is left of "
                    "the originals. ");
    dl2_html_format(html,
                    "“At least k of n” is a partial conjunction test of the n studies' one-sided "
                    "p-values against the tolerance: n − k + 1 times the k-th smallest is at most "
                    "the error. A codec's variants are tested from the largest to the smallest; "
                    "the first that is not within on all of its datasets is the last that is "
                    "tested. This is a rule that makes a wrong claim in at most 2.5%% of such "
                    "summaries, over all variants and codecs%s.",
                    several->network_count > 1 ? ", and all networks of this page" : "");
    dl2_html_markup(html, "</p></details>\n");
}

/* ---- The page */

void dl2_several_page_write(const struct dl2_several_page *page, struct dl2_html *html)
{
    const struct dl2_several_studies *several = page->several;
    /* For what is shared with the page of a study. */
    const struct dl2_page common = {.study = page->notes, .plotter = page->plotter};
    struct dl2_html plots = DL2_HTML_INIT(html->error); /* first: a problem is told at the top */
    struct dl2_part_figures figures = {.page = &common, .html = &plots};
    for (size_t i = 0; i < several->network_count; i++)
        dl2_forest_plot(&figures, several, &several->networks[i]);
    dl2_part_figures_end(&figures);
    size_t used = 0;
    for (size_t i = 0; i < several->count; i++)
        used += several->sources[i].is_used;
    char question[2048];
    if (page->title)
        snprintf(question, sizeof question, "How far can %s be compressed?", page->title);
    else
        snprintf(question, sizeof question, "How far can these %zu datasets be compressed?", used);
    dl2_page_open(html, question);
    dl2_html_markup(html, "<p class='lead'>");
    dl2_html_format(html, "%zu studies with like settings: ", used);
    for (size_t i = 0; i < several->count; i++)
        if (several->sources[i].is_used)
            dl2_html_format(html, "%s%s", several->sources[i].name, --used ? ", " : ".");
    dl2_html_markup(html, "</p>\n");
    if (page->plotter->problem[0])
        dl2_html_element(html, "p class='warning'", "%s", page->plotter->problem);
    dl2_section_warnings(&common, html);
    dl2_html_markup(html, "<div class='first'><div>\n");
    write_answers(several, html);
    dl2_html_markup(html, "</div>\n");
    dl2_html_take(html, &plots);
    dl2_html_markup(html, "</div>\n");
    if (figures.shown)
        dl2_html_markup(html, "<p class='note'>Bars are 95% intervals; the thin bar of a mean is "
                              "the 95% prediction interval of one more dataset. Bars may end at "
                              "the frame. The line at 0 is the original, the shaded stripe beside "
                              "it the tolerance.</p>\n");
    dl2_html_markup(html, "<h2>Each dataset, and all together</h2>\n");
    for (size_t i = 0; i < several->network_count; i++)
        write_table(html, several, &several->networks[i]);
    write_rules(html, several);
    dl2_section_failures(&common, html);
    dl2_page_close(html);
}
