/* SPDX-License-Identifier: BSD-2-Clause */
/* What went wrong: a warning at the top, and the list. */
#include "report/page/parts.h"
#include "report/page/sections.h"

#include <string.h>

#define MAX_FAILURES 200 /* named in the page, a stage's rest is counted */

static void write_list(struct dl2_bytes *html, const char *heading, const struct dl2_words *items)
{
    if (!items->count)
        return;
    dl2_html_element(html, "h3", "%s", heading);
    dl2_html_markup(html, "<ul class='plain'>\n");
    for (size_t i = 0; i < items->count; i++)
        dl2_html_element(html, "li", "%s", items->at[i]);
    dl2_html_markup(html, "</ul>\n");
}

static bool has_failures(const struct dl2_study *study)
{
    return study->broken.count || study->unfinished.count || study->failure_count ||
           study->left_out.count;
}

void dl2_section_warnings(const struct dl2_page *page, struct dl2_bytes *html)
{
    const struct dl2_study *study = page->study;
    if (!has_failures(study))
        return;
    dl2_html_markup(html, "<p class='warning'>");
    const size_t unused = study->broken.count + study->unfinished.count;
    if (unused)
        dl2_html_format(html, "%zu result%s could not be used. ", unused, unused == 1 ? "" : "s");
    if (study->left_out.count)
        dl2_html_format(html,
                        "%zu result%s left out, being of another study than this one or "
                        "not comparable. ",
                        study->left_out.count, study->left_out.count == 1 ? " is" : "s are");
    if (study->failure_count)
        dl2_html_format(html, "%zu thing%s went wrong with images on the way. ",
                        study->failure_count, study->failure_count == 1 ? "" : "s");
    dl2_html_markup(html, "<a href='#failures'>See what and why.</a></p>\n");
}

void dl2_section_failures(const struct dl2_page *page, struct dl2_bytes *html)
{
    const struct dl2_study *study = page->study;
    dl2_html_markup(html, "<h2 id='failures'>What went wrong</h2>\n");
    if (!has_failures(study)) {
        dl2_html_markup(html, "<p>Nothing that the stages noticed: no image failed, and where "
                              "variants were scored, loaded or trained on, they had the images of "
                              "the original.</p>\n");
        return;
    }
    write_list(html, "Results that could not be read", &study->broken);
    write_list(html, "Cut short, and left out above", &study->unfinished);
    write_list(html, "Not of this study, or not comparable, and left out above", &study->left_out);
    for (size_t i = 0; i < study->failure_count;) {
        const char *stage = study->failures[i].stage;
        size_t end = i;
        while (end < study->failure_count && strcmp(study->failures[end].stage, stage) == 0)
            end++;
        dl2_html_element(html, "h3", "%s: %zu", stage, end - i);
        dl2_html_markup(html, "<ul class='plain'>\n");
        for (size_t k = i; k < end && k < i + MAX_FAILURES; k++)
            dl2_html_element(html, "li", "%s", study->failures[k].what);
        if (end - i > MAX_FAILURES)
            dl2_html_element(html, "li", "and %zu more", end - i - MAX_FAILURES);
        dl2_html_markup(html, "</ul>\n");
        i = end;
    }
}
