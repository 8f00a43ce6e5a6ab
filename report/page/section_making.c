/* SPDX-License-Identifier: BSD-2-Clause */
/* How the study was made: commands, machine, options, versions. */
#include "common/json.h"
#include "common/keep.h"
#include "common/scope.h"
#include "report/page/parts.h"
#include "report/page/sections.h"

#include <math.h>

static void write_json(json_t *parent, const char *heading, const json_t *json)
{
    DL2_AUTO_FREE char *text = json ? json_dumps(json, JSON_INDENT(2) | JSON_PRESERVE_ORDER |
                                                           JSON_ENCODE_ANY | JSON_REAL_PRECISION(6))
                                    : NULL;
    if (!text)
        return;
    dl2_block_text(parent, "heading", "%s", heading);
    dl2_block_text(parent, "code", "%s", text);
}

/* ", 8.0 GB of memory" */
static const char *memory_of(const json_t *of)
{
    const double memory = dl2_json_get_real(of, "memory_bytes", NAN);
    return memory > 0 ? dl2_text(", %s of memory", dl2_part_bytes(memory)) : "";
}

void dl2_section_making(const struct dl2_page *page, json_t *section)
{
    const struct dl2_study *study = page->study;
    const json_t *machine = NULL, *versions = NULL, *arguments = NULL, *libraries = NULL;
    const json_t *card = NULL;
    for (size_t v = 0; v < study->variant_count; v++) {
        const struct dl2_study_variant *variant = &study->variants[v];
        machine = machine ? machine : json_object_get(variant->loaded, "machine");
        libraries = libraries ? libraries : json_object_get(variant->made, "libraries");
    }
    for (size_t i = 0; i < study->run_count; i++) {
        machine = machine ? machine : json_object_get(study->runs[i].report, "machine");
        versions = versions ? versions : json_object_get(study->runs[i].report, "versions");
        arguments = arguments ? arguments : json_object_get(study->runs[i].report, "arguments");
        card = card ? card : json_object_get(study->runs[i].report, "card");
    }
    dl2_block_set(section, "heading", "How it was made");
    if (page->command) {
        dl2_block_text(section, "paragraph", "To make it again:");
        dl2_block_text(section, "code", "%s", page->command);
    }
    json_t *text = dl2_block_text(section, "paragraph", "The results lie in ");
    dl2_block_mark(text, "code", "%s", page->folder);
    dl2_block_say(text, ". Beside this page are ");
    dl2_block_mark(text, "code", "plots/");
    dl2_block_say(text, ", with each plot's data and gnuplot script, and ");
    dl2_block_mark(text, "code", "report.json");
    dl2_block_say(text, ", with all that it shows.");
    if (machine)
        dl2_block_text(section, "paragraph", "The machine: %s, %lld core%s%s; %s; SIMD: %s.",
                       dl2_json_get_text(machine, "cpu", "unknown processor"),
                       dl2_json_get_integer(machine, "cores", 0),
                       dl2_json_get_integer(machine, "cores", 0) == 1 ? "" : "s",
                       memory_of(machine), dl2_json_get_text(machine, "system", "?"),
                       dl2_json_get_text(machine, "simd", "?"));
    if (card)
        dl2_block_text(section, "paragraph", "The card: %s%s; driver %s.",
                       dl2_json_get_text(card, "name", "unknown"), memory_of(card),
                       dl2_json_get_text(card, "driver", "unknown"));
    json_t *fold = dl2_block_fold(section, "Options and versions");
    write_json(fold, "Versions", versions);
    write_json(fold, "Image libraries", libraries);
    write_json(fold, "Definitions of the metrics", json_object_get(study->quality, "definitions"));
    write_json(fold, "Options of the first training", arguments);
    fold = dl2_block_fold(section, "Encoders");
    for (size_t v = 0; v < study->variant_count; v++)
        write_json(fold, study->variants[v].name,
                   json_object_get(study->variants[v].made, "encoder"));
}
