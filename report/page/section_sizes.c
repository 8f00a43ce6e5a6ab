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
static void write_range(struct dl2_bytes *html, const struct dl2_study *study, size_t first,
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
    dl2_part_range_cell(html, least, known ? most : NAN, 0, unit, "not measured");
}

/* The entropy coding of JPEG, whose encoder has a choice; that of other formats is part of them. */
static void write_entropy_coding(struct dl2_bytes *html, const struct dl2_study_variant *variant)
{
    const json_t *encoder = json_object_get(variant->made, "encoder");
    const char *tables = dl2_json_get_text(encoder, "huffman_tables", NULL);
    const char *restart = dl2_json_get_text(encoder, "restart", NULL);
    static const char *const words[][2] = {
        {"standard", "Huffman, standard tables"},
        {"optimised", "Huffman, a file&#39;s own tables"},
        {"smaller", "Huffman, standard tables or a file&#39;s own, whichever are smaller"}};
    dl2_html_markup(html, "<td class='l'>");
    if (json_is_true(json_object_get(encoder, "progressive")))
        dl2_html_markup(html, "Huffman, progressive, a file&#39;s own tables");
    else if (!tables)
        dl2_html_markup(html, !variant->made || strncmp(variant->codec, "jpeg", 4) == 0
                                  ? "not recorded"
                                  : "that of the format");
    for (size_t i = 0; i < sizeof words / sizeof *words && tables; i++)
        if (!strcmp(tables, words[i][0]) && !json_is_true(json_object_get(encoder, "progressive")))
            dl2_html_markup(html, words[i][1]);
    if (restart && strcmp(restart, "none") != 0)
        dl2_html_format(html, "; restart markers for %s", restart);
    dl2_html_markup(html, "</td>");
}

/* The variants of which headers are more than half. */
static void name_headers(struct dl2_bytes *html, const struct dl2_study *study)
{
    const char *comma = "";
    for (size_t v = 0; v < study->variant_count; v++)
        if (header_percent(&study->variants[v]) > 50) {
            dl2_html_format(html, "%s%s", comma, study->variants[v].name);
            comma = ", ";
        }
    if (*comma)
        dl2_html_markup(html, ": more than half of these files are headers, so a lower quality "
                              "hardly makes them smaller. ");
}

static void write_sources(struct dl2_bytes *html, const json_t *files)
{
    const long long lossy = dl2_json_get_integer(files, "lossy", -1);
    const double quality = dl2_json_get_real(files, "median_quality", NAN);
    if (lossy < 0)
        dl2_html_markup(html, "How the sources were encoded is not recorded: score the variants "
                              "again. ");
    else if (!lossy)
        dl2_html_markup(html, "No source is a file of a lossy codec. ");
    else
        dl2_html_format(html, "%lld sources are files of a lossy codec already", lossy);
    if (lossy > 0 && isfinite(quality))
        dl2_html_format(html, ", %lld of them JPEGs, of quality %.0f in the median",
                        dl2_json_get_integer(files, "of_known_quality", 0), quality);
    if (lossy > 0)
        dl2_html_markup(html, ": sizes and scores are of a further generation, and sources "
                              "without loss would be larger. ");
}

void dl2_section_sizes(const struct dl2_page *page, struct dl2_bytes *html)
{
    const struct dl2_study *study = page->study;
    struct dl2_table table = {.html = html};
    for (size_t v = 0; v < study->variant_count; v++) {
        if (!dl2_study_starts_codec(study, v))
            continue;
        if (!table.rows) {
            dl2_html_markup(html, "<h2>What the sizes stand on</h2>\n");
            dl2_table_heads(&table, "codec|<entropy coding|headers,\nbytes an image|headers, of\n"
                                    "the bytes");
        }
        dl2_table_row(&table, study->variants[v].codec);
        write_entropy_coding(html, &study->variants[v]);
        write_range(html, study, v, header_bytes_each, "");
        write_range(html, study, v, header_percent, " %");
    }
    if (!table.rows)
        return;
    dl2_table_end(&table);
    dl2_html_markup(html, "<p class='note'>Headers are all bytes that do not hold the coded image: "
                          "markers, tables, profiles, the container. Ranges are over the "
                          "qualities. ");
    name_headers(html, study);
    write_sources(html, json_object_get(study->quality, "reference_files"));
    dl2_html_markup(html, "</p>\n");
}
