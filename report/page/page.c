/* SPDX-License-Identifier: BSD-2-Clause */
#include "report/page/page.h"

#include "report/page/parts.h"
#include "report/page/sections.h"
#include "report/page/style.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#define SECTION(name) dl2_section_##name,
static void (*const sections[])(const struct dl2_page *page,
                                struct dl2_html *html) = {DL2_REPORT_SECTIONS(SECTION)};
#undef SECTION

void dl2_page_open(struct dl2_html *html, const char *question)
{
    dl2_html_markup(html,
                    "<!DOCTYPE html>\n<html lang='en'><head><meta charset='utf-8'/>\n<meta "
                    "name='viewport' content='width=device-width, initial-scale=1'/>\n<title>");
    dl2_html_text(html, question);
    dl2_html_markup(html, "</title>\n");
    dl2_page_style(html);
    dl2_html_markup(html, "</head>\n<body><main>\n");
    dl2_html_element(html, "h1", "%s", question);
    dl2_html_markup(html, "\n");
}

void dl2_page_close(struct dl2_html *html)
{
    dl2_html_markup(html, "<footer>Written by dl2-report.</footer>\n</main>");
    dl2_page_script(html);
    dl2_html_markup(html, "</body></html>\n");
}

void dl2_page_write(const struct dl2_page *page, struct dl2_html *html)
{
    const struct dl2_study *study = page->study;
    struct dl2_html body = DL2_HTML_INIT(html->error); /* first, for it draws the plots */
    for (size_t i = 0; i < sizeof sections / sizeof *sections; i++)
        sections[i](page, &body);
    /* A search may be all that there is. */
    const bool search = page->search.report && !study->variant_count;
    char question[2048];
    snprintf(question, sizeof question,
             search ? "What a search found: %s" : "How far can %s be compressed?", page->title);
    dl2_page_open(html, question);
    dl2_html_markup(html, "<p class='lead'>");
    const size_t raw = dl2_study_find(study, "raw");
    char text[32];
    if (raw < study->variant_count && isfinite(study->variants[raw].bytes) &&
        isfinite(study->variants[raw].images))
        dl2_html_format(html, "%.0f images of %s, ", study->variants[raw].images,
                        dl2_part_bytes(study->variants[raw].bytes, text));
    if (study->variant_count)
        dl2_html_format(html, "%zu variant%s, %zu training%s.", study->variant_count - 1,
                        study->variant_count == 2 ? "" : "s", study->run_count,
                        study->run_count == 1 ? "" : "s");
    dl2_html_markup(html, "</p>\n");
    if (page->plotter && page->plotter->problem[0])
        dl2_html_element(html, "p class='warning'", "%s", page->plotter->problem);
    dl2_html_take(html, &body);
    dl2_page_close(html);
}

void dl2_page_free(struct dl2_page *page)
{
    dl2_plan_free(&page->plan);
    for (size_t a = 0; page->analyses && page->speeds && a < page->study->arch_count; a++) {
        dl2_analysis_free(&page->analyses[a]);
        dl2_speeds_free(&page->speeds[a]);
    }
    free(page->analyses);
    free(page->speeds);
    dl2_image_scores_free(&page->scores);
    dl2_codec_sizes_free(&page->sizes);
    free(page->accuracy_sizes);
    free(page->fronts);
    free(page->losses);
    dl2_conditions_free(&page->conditions);
    dl2_loading_free(&page->loading);
    dl2_search_results_free(&page->search);
}
