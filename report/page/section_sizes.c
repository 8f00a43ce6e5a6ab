/* SPDX-License-Identifier: BSD-2-Clause */
/* What the variants' sizes stand on: entropy coding, headers, and what the sources had lost. */
#include "common/json.h"
#include "report/page/parts.h"
#include "report/page/sections.h"

#include <math.h>
#include <string.h>

/* Bytes that hold no coded image, of all images that were scored; NAN: not known. */
static double header_bytes(const struct dl2_study_variant *variant)
{
    return dl2_json_get_real(variant->scored, "header_bytes", NAN);
}

static double header_percent(const struct dl2_study_variant *variant)
{
    return 100 * header_bytes(variant) / dl2_json_get_real(variant->scored, "bytes", NAN);
}

static double header_bytes_each(const struct dl2_study_variant *variant)
{
    return header_bytes(variant) / dl2_json_get_real(variant->scored, "images", NAN);
}

/* A figure of the variants of a codec, from the least to the most. */
static void write_range(json_t *table, const struct dl2_study *study, size_t first,
                        double (*figure)(const struct dl2_study_variant *), const char *unit)
{
    double least = INFINITY, most = -INFINITY;
    bool known = true;
    for (size_t v = first; v < dl2_study_end_of_codec(study, first); v++) {
        const double value = figure(&study->variants[v]);
        known = known && isfinite(value);
        least = fmin(least, value);
        most = fmax(most, value);
    }
    dl2_part_range(table, least, known ? most : NAN, 0, unit, "not measured");
}

/* The entropy coding of JPEG, whose encoder has a choice; that of other formats is part of them. */
static const char *entropy_coding_of(const struct dl2_study_variant *variant)
{
    const json_t *encoder = json_object_get(variant->made, "encoder");
    const char *tables = dl2_json_get_text(encoder, "huffman_tables", NULL);
    static const char *const words[][2] = {
        {"standard", "Huffman, standard tables"},
        {"optimized", "Huffman, a file's own tables"},
        {"smaller", "Huffman, standard tables or a file's own, whichever are smaller"}};
    if (json_is_true(json_object_get(encoder, "progressive")))
        return "Huffman, progressive, a file's own tables";
    if (!tables)
        return !variant->made || strncmp(variant->codec, "jpeg", 4) == 0 ? "not recorded"
                                                                         : "that of the format";
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        if (!strcmp(tables, words[i][0]))
            return words[i][1];
    return "";
}

/* The variants of which headers are more than half. */
static void name_headers(json_t *text, const struct dl2_study *study)
{
    const char *comma = "";
    for (size_t v = 0; v < study->variant_count; v++)
        if (header_percent(&study->variants[v]) > 50) {
            dl2_block_say(text, "%s%s", comma, study->variants[v].name);
            comma = ", ";
        }
    if (*comma)
        dl2_block_say(text, ": more than half of these files are headers, so a lower quality "
                            "hardly makes them smaller. ");
}

static void write_sources(json_t *text, const json_t *files)
{
    const long long lossy = dl2_json_get_integer(files, "lossy", -1);
    const double quality = dl2_json_get_real(files, "median_quality", NAN);
    if (lossy < 0)
        dl2_block_say(text, "How the sources were encoded is not recorded: score the variants "
                            "again. ");
    else if (!lossy)
        dl2_block_say(text, "No source is a file of a lossy codec. ");
    else
        dl2_block_say(text, "%lld sources are files of a lossy codec already", lossy);
    if (lossy > 0 && isfinite(quality))
        dl2_block_say(text, ", %lld of them JPEGs, of quality %.0f in the median",
                      dl2_json_get_integer(files, "of_known_quality", 0), quality);
    if (lossy > 0)
        dl2_block_say(text, ": sizes and scores are of a further generation, and sources without "
                            "loss would be larger. ");
}

void dl2_section_sizes(const struct dl2_page *page, json_t *section)
{
    const struct dl2_study *study = page->study;
    json_t *table = NULL;
    dl2_block_set(section, "heading", "What the sizes stand on");
    for (size_t v = 0; v < study->variant_count; v++) {
        if (!dl2_study_starts_codec(study, v))
            continue;
        if (!table)
            table = dl2_table_add(section, "codec|<entropy coding|headers,\nbytes an image|"
                                           "headers, of\nthe bytes");
        const char *restart = dl2_json_get_text(json_object_get(study->variants[v].made, "encoder"),
                                                "restart", "none");
        const bool restarts = strcmp(restart, "none") != 0;
        dl2_table_row(table, study->variants[v].codec);
        dl2_table_text(table, "%s%s%s", entropy_coding_of(&study->variants[v]),
                       restarts ? "; restart markers for " : "", restarts ? restart : "");
        write_range(table, study, v, header_bytes_each, "");
        write_range(table, study, v, header_percent, " %");
    }
    if (!table)
        return;
    json_t *text = dl2_block_text(
        section, "note",
        "Headers are all bytes that do not hold the coded image: markers, tables, profiles, the "
        "container. Ranges are over the qualities. ");
    name_headers(text, study);
    write_sources(text, json_object_get(study->quality, "reference_files"));
}
