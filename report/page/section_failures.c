/* SPDX-License-Identifier: BSD-2-Clause */
/* What went wrong: a warning at the top, and the list. */
#include "report/divergence.h"
#include "report/page/parts.h"
#include "report/page/sections.h"

#include <string.h>

#define MAX_FAILURES 200 /* named in the page, a stage's rest is counted */

static void write_list(json_t *section, const char *heading, const struct dl2_words *items)
{
    if (!items->count)
        return;
    dl2_block_text(section, "heading", "%s", heading);
    json_t *list = dl2_block_add(section, "list");
    for (size_t i = 0; i < items->count; i++)
        dl2_block_item(list, "%s", items->at[i]);
}

static bool has_failures(const struct dl2_study *study)
{
    return study->broken.count || study->unfinished.count || study->failure_count ||
           study->left_out.count;
}

/* Another trainer's seeds, if they make no difference. */
static bool ignores_seeds(const struct dl2_analysis *analysis)
{
    return analysis->kind->is_foreign && !analysis->kind->is_as_it_is && analysis->seeds > 1 &&
           analysis->noise.freedom > 0 && !(analysis->noise.deviation > 0);
}

/* What was changed after results were seen, and what is odd of the trainings; false: nothing is. */
static bool warn_of_trainings(const struct dl2_page *page, json_t *section)
{
    const struct dl2_study *study = page->study;
    size_t count = 0;
    for (size_t i = 0; i < page->plan.note_count; i++)
        dl2_block_text(section, "note", "%s", page->plan.notes[i]);
    for (size_t a = 0; a < study->arch_count; a++) {
        const char *diverged = dl2_divergence_text(study, &page->analyses[a]);
        const bool ignored = ignores_seeds(&page->analyses[a]);
        count += (diverged != NULL) + ignored;
        if (diverged)
            dl2_block_text(section, "warning", "%s%s%s",
                           study->arch_count > 1 ? study->archs[a] : "",
                           study->arch_count > 1 ? ": " : "", diverged);
        if (ignored)
            dl2_block_text(section, "warning",
                           "All seeds%s have one value for each variant, so nothing is known of "
                           "the chance of training, and nothing is claimed. Does the training "
                           "use its seed?",
                           dl2_part_arch_after(page, " of ", a));
    }
    return count > 0;
}

void dl2_section_warnings(const struct dl2_page *page, json_t *section)
{
    const struct dl2_study *study = page->study;
    const bool any = warn_of_trainings(page, section);
    if (!has_failures(study)) {
        if (!any && study->arch_count)
            dl2_block_text(section, "note", "Nothing was wrong%s no result is left out.",
                           study->as_it_is ? ":" : " with trainings: none diverged, and");
        return;
    }
    json_t *text = dl2_block_add(section, "warning");
    const size_t unused = study->broken.count + study->unfinished.count;
    if (unused)
        dl2_block_say(text, "%zu result%s could not be used. ", unused, unused == 1 ? "" : "s");
    if (study->left_out.count)
        dl2_block_say(text,
                      "%zu result%s left out, being of another study than this one or not "
                      "comparable. ",
                      study->left_out.count, study->left_out.count == 1 ? " is" : "s are");
    if (study->failure_count)
        dl2_block_say(text, "%zu thing%s went wrong with images on the way. ", study->failure_count,
                      study->failure_count == 1 ? "" : "s");
    dl2_block_link(text, "failures", "See what and why.");
}

void dl2_section_failures(const struct dl2_page *page, json_t *section)
{
    const struct dl2_study *study = page->study;
    dl2_block_set(section, "heading", "What went wrong");
    if (!has_failures(study))
        dl2_block_text(section, "paragraph", "%s",
                       dl2_accuracy_words(dl2_study_accuracy(study),
                                          "Nothing that the stages noticed: no image failed, and "
                                          "where variants were scored, loaded or trained on, they "
                                          "had the images of the original."));
    write_list(section, "Results that could not be read", &study->broken);
    write_list(section, "Cut short, and left out above", &study->unfinished);
    write_list(section, "Not of this study, or not comparable, and left out above",
               &study->left_out);
    for (size_t i = 0; i < study->failure_count;) {
        const char *stage = study->failures[i].stage;
        size_t end = i;
        while (end < study->failure_count && strcmp(study->failures[end].stage, stage) == 0)
            end++;
        dl2_block_text(section, "heading", "%s: %zu", stage, end - i);
        json_t *list = dl2_block_add(section, "list");
        for (size_t k = i; k < end && k < i + MAX_FAILURES; k++)
            dl2_block_item(list, "%s", study->failures[k].what);
        if (end - i > MAX_FAILURES)
            dl2_block_item(list, "and %zu more", end - i - MAX_FAILURES);
        i = end;
    }
}
