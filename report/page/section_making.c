/* SPDX-License-Identifier: BSD-2-Clause */
/* How the study was made: commands, machine, options, versions. */
#include "common/json.h"
#include "report/page/parts.h"
#include "report/page/sections.h"

#include <math.h>
#include <stdlib.h>

static void write_json(struct dl2_bytes *html, const char *heading, const json_t *json)
{
    char *text = json ? json_dumps(json, JSON_INDENT(2) | JSON_PRESERVE_ORDER | JSON_ENCODE_ANY |
                                             JSON_REAL_PRECISION(6))
                      : NULL;
    if (!text)
        return;
    dl2_html_element(html, "h3", "%s", heading);
    dl2_html_element(html, "pre", "%s", text);
    free(text);
}

static void write_memory(struct dl2_bytes *html, const json_t *of)
{
    const double memory = dl2_json_get_real(of, "memory_bytes", NAN);
    if (memory > 0)
        dl2_html_format(html, ", %s of memory", dl2_part_bytes(memory));
}

static void write_machine(struct dl2_bytes *html, const json_t *machine)
{
    dl2_html_markup(html, "<p>The machine: ");
    dl2_html_format(html, "%s, %lld core%s", dl2_json_get_text(machine, "cpu", "unknown processor"),
                    dl2_json_get_integer(machine, "cores", 0),
                    dl2_json_get_integer(machine, "cores", 0) == 1 ? "" : "s");
    write_memory(html, machine);
    dl2_html_format(html, "; %s; SIMD: %s.", dl2_json_get_text(machine, "system", "?"),
                    dl2_json_get_text(machine, "simd", "?"));
    dl2_html_markup(html, "</p>\n");
}

static void write_card(struct dl2_bytes *html, const json_t *card)
{
    dl2_html_markup(html, "<p>The card: ");
    dl2_html_format(html, "%s", dl2_json_get_text(card, "name", "unknown"));
    write_memory(html, card);
    dl2_html_format(html, "; driver %s.", dl2_json_get_text(card, "driver", "unknown"));
    dl2_html_markup(html, "</p>\n");
}

void dl2_section_making(const struct dl2_page *page, struct dl2_bytes *html)
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
    dl2_html_markup(html, "<h2>How it was made</h2>\n");
    if (page->command) {
        dl2_html_markup(html, "<p>To make it again:</p>\n");
        dl2_html_element(html, "pre", "%s", page->command);
    }
    dl2_html_markup(html, "<p>The results lie in <code>");
    dl2_html_text(html, page->folder);
    dl2_html_markup(html,
                    "</code>, each plot's data and gnuplot script in <code>plots/</code> beside "
                    "this page.</p>\n");
    if (machine)
        write_machine(html, machine);
    if (card)
        write_card(html, card);
    dl2_html_markup(html, "<details><summary>Options and versions</summary>\n");
    write_json(html, "Versions", versions);
    write_json(html, "Image libraries", libraries);
    write_json(html, "Definitions of the metrics", json_object_get(study->quality, "definitions"));
    write_json(html, "Options of the first training", arguments);
    dl2_html_markup(html, "</details>\n<details><summary>Encoders</summary>\n");
    for (size_t v = 0; v < study->variant_count; v++) {
        const json_t *encoder = json_object_get(study->variants[v].made, "encoder");
        if (encoder)
            write_json(html, study->variants[v].name, encoder);
    }
    dl2_html_markup(html, "</details>\n");
}
