/* SPDX-License-Identifier: BSD-2-Clause */
#include "report/page/page.h"

#include "common/keep.h"
#include "common/scope.h"
#include "report/page/parts.h"
#include "report/page/sections.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>

static const struct {
    const char *id;
    void (*write)(const struct dl2_page *page, json_t *section);
} sections[] = {
#define SECTION(name) {#name, dl2_section_##name},
    DL2_REPORT_SECTIONS(SECTION)
#undef SECTION
};

void dl2_page_complete(struct dl2_page *page)
{
    const struct dl2_study *study = page->study;
    page->scores = dl2_image_scores_read(study, dl2_codec_anchor(study, &page->codecs));
    page->sizes = dl2_codec_sizes_find(study, &page->scores, &page->codecs);
    page->accuracy_sizes =
        dl2_accuracy_sizes_find(study, page->analyses, page->speeds, page->sizes.anchor);
    page->fronts = dl2_pareto_of_bytes(study, page->analyses);
    page->losses = dl2_loss_changes_find(study, page->analyses);
    page->briefs = dl2_keep(study->arch_count + 1, sizeof *page->briefs, "the answer");
    page->classes = dl2_keep(study->arch_count + 1, sizeof *page->classes, "classes");
    for (size_t a = 0; a < study->arch_count; a++) {
        struct dl2_page_classes *classes = &page->classes[a];
        page->briefs[a] = dl2_brief_make(study, &page->analyses[a], &page->speeds[a]);
        classes->classes = dl2_classes_find(&study->images[a]);
        classes->harms = dl2_class_harm_make(study, &page->analyses[a], a, &classes->classes);
        classes->shown = dl2_class_harm_shown(study, &page->analyses[a], classes->harms);
    }
}

json_t *dl2_page_begin(const char *format, ...)
{
    va_list arguments;
    DL2_AUTO_FREE char *title = NULL;
    va_start(arguments, format);
    dl2_need(vasprintf(&title, format, arguments) < 0 ? NULL : title);
    va_end(arguments);
    json_t *document = dl2_keep_json(json_pack("{s:s}", "schema", DL2_PAGE_SCHEMA));
    dl2_block_set(document, "title", "%s", title);
    return document;
}

json_t *dl2_page_section(json_t *document, const char *id)
{
    json_t *section = dl2_block_append(document, "sections", json_object());
    dl2_block_set(section, "id", "%s", id);
    return section;
}

void dl2_page_end(json_t *document, const struct dl2_plotter *plotter)
{
    json_t *list = json_object_get(document, "sections");
    for (size_t i = json_array_size(list); i-- > 0;)
        if (dl2_block_is_empty(json_array_get(list, i)))
            json_array_remove(list, i);
    if (!plotter || !plotter->problem[0])
        return;
    json_t *section = dl2_need(json_pack("{s:s}", "id", "plots"));
    dl2_block_text(section, "warning", "%s", plotter->problem);
    dl2_need(json_array_insert_new(list, 0, section) < 0 ? NULL : list);
}

const json_t *dl2_page_make(const struct dl2_page *page)
{
    const struct dl2_study *study = page->study;
    const size_t raw = dl2_study_find(study, "raw");
    const char *lead = "";
    /* A search may be all that there is. */
    json_t *document = page->search.report && !study->variant_count
                           ? dl2_page_begin("What a search found: %s", page->title)
                           : dl2_page_begin("How far can %s be compressed?", page->title);
    if (raw < study->variant_count && isfinite(study->variants[raw].bytes) &&
        isfinite(study->variants[raw].images))
        lead = dl2_text("%.0f images of %s, ", study->variants[raw].images,
                        dl2_part_bytes(study->variants[raw].bytes));
    if (study->variant_count)
        dl2_block_set(document, "lead", "%s%zu variant%s, %zu %s%s.", lead,
                      study->variant_count - 1, study->variant_count == 2 ? "" : "s",
                      study->run_count, study->as_it_is ? "evaluation" : "training",
                      study->run_count == 1 ? "" : "s");
    for (size_t i = 0; i < sizeof sections / sizeof *sections; i++)
        sections[i].write(page, dl2_page_section(document, sections[i].id));
    dl2_page_end(document, page->plotter);
    return document;
}
