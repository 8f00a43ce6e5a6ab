/* SPDX-License-Identifier: BSD-2-Clause */
/* Accuracy of what was trained on one variant and validated on another. */
#include "report/matrix.h"
#include "report/page/parts.h"
#include "report/page/sections.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- What the trainings themselves validated on */

static void write_column_names(struct dl2_html *html, const struct dl2_matrix_sets *columns)
{
    for (size_t c = 0; c < columns->count; c++) {
        const struct dl2_val_set *set = &columns->sets[c];
        bool twice = false; /* sets of one name are told apart by their paths */
        for (size_t k = 1; k < columns->count; k++)
            twice |= k != c && k != columns->original && c != DL2_MATRIX_ITSELF &&
                     strcmp(columns->sets[k].name, set->name) == 0;
        dl2_html_element(html, "th scope='col'", "%s",
                         c == DL2_MATRIX_ITSELF   ? "itself"
                         : c == columns->original ? "the original"
                         : twice && set->path     ? set->path
                                                  : set->name);
    }
}

static void write_heading(struct dl2_html *html, const struct dl2_page *page, size_t a)
{
    const char *arch = dl2_part_arch(page, a);
    dl2_html_element(html, "h2", "Trained on one, validated on another%s%s", arch ? ": " : "",
                     arch ? arch : "");
}

/* Trained on one variant, validated on the sets that trainings name: mostly itself and the
 * original. */
static void write_matrix(struct dl2_html *html, const struct dl2_page *page, size_t a)
{
    const struct dl2_study *study = page->study;
    const char *arch = study->archs[a];
    struct dl2_matrix_sets columns;
    if (!dl2_matrix_sets_find(study, arch, &columns))
        return;
    double *values = dl2_html_calloc(html, study->run_count, sizeof *values);
    if (!values)
        return;
    write_heading(html, page, a);
    struct dl2_table table = {.html = html};
    dl2_table_heads(&table, "trained on");
    write_column_names(html, &columns);
    for (size_t v = 0; v < study->variant_count; v++) {
        for (size_t c = 0; c < columns.count; c++) {
            const struct dl2_estimate top1 =
                dl2_matrix_sets_top1(study, arch, &columns, v, c, values);
            if (c == DL2_MATRIX_ITSELF && !top1.count)
                break;
            if (c == DL2_MATRIX_ITSELF)
                dl2_table_row(&table, dl2_part_variant(&study->variants[v]));
            dl2_part_estimate_cell(html, &top1, 1);
        }
    }
    free(values);
    dl2_table_end(&table);
}

/* ---- The evaluations of `make matrix`: every variant on both axes */

static void write_heat_cell(struct dl2_html *html, const struct dl2_matrix *matrix, size_t own,
                            size_t other)
{
    const struct dl2_estimate *cell = &matrix->cells[own * matrix->count + other];
    if (!cell->count) {
        dl2_html_markup(html, "<td>–</td>");
        return;
    }
    const double difference = cell->mean - matrix->original;
    char tag[160] = "";
    if (isfinite(difference) && matrix->most > 0)
        snprintf(tag, sizeof tag,
                 " style='background:color-mix(in srgb,var(--%s) %.0f%%,var(--card))'",
                 difference < 0 ? "bad" : "good", 45 * fabs(difference) / matrix->most);
    dl2_html_markup(html, own == other ? "<td class='own'" : "<td");
    dl2_html_markup(html, tag);
    dl2_html_markup(html, ">");
    dl2_part_estimate(html, cell, 1);
    dl2_html_markup(html, "</td>");
}

/* What the most compressed variant shows. */
static void write_heat_sentence(struct dl2_html *html, const struct dl2_study *study,
                                const struct dl2_matrix *matrix)
{
    const size_t count = study->variant_count, raw = dl2_study_find(study, "raw");
    size_t least = count;
    for (size_t v = 0; v < count; v++)
        if (v != raw && matrix->rows[v] && matrix->columns[v] &&
            isfinite(study->variants[v].ratio) &&
            (least == count || study->variants[v].ratio < study->variants[least].ratio))
            least = v;
    if (least == count || !isfinite(matrix->original))
        return;
    const struct dl2_estimate *strange = &matrix->cells[raw * count + least];
    const struct dl2_estimate *own = &matrix->cells[least * count + least];
    const struct dl2_estimate *back = &matrix->cells[least * count + raw];
    if (!strange->count || !own->count || !back->count)
        return;
    char text[3][32];
    dl2_html_format(
        html,
        " On the images of %s, the smallest, a network that was trained on the original "
        "differs by %s points from what it scores on the original's; one that was "
        "trained on %s, by %s; and that one on the original's images, by %s.",
        study->variants[least].name, dl2_signed(strange->mean - matrix->original, text[0]),
        study->variants[least].name, dl2_signed(own->mean - matrix->original, text[1]),
        dl2_signed(back->mean - matrix->original, text[2]));
}

static void write_heat_map(struct dl2_html *html, const struct dl2_page *page, size_t a,
                           const struct dl2_matrix *matrix)
{
    const struct dl2_study *study = page->study;
    size_t columns = 0;
    for (size_t v = 0; v < study->variant_count; v++)
        columns += matrix->columns[v];
    write_heading(html, page, a);
    struct dl2_table table = {.html = html, .attributes = " class='heat'"};
    dl2_table_heads(&table, "");
    dl2_html_markup(html, "<td></td>");
    char tag[64];
    snprintf(tag, sizeof tag, "th class='l' scope='colgroup' colspan='%zu'", columns);
    dl2_html_element(html, tag, "validated on");
    dl2_html_markup(html, "</tr><tr>");
    dl2_table_heads(&table, "trained on");
    for (size_t v = 0; v < study->variant_count; v++)
        if (matrix->columns[v])
            dl2_html_element(html, "th scope='col'", "%s", dl2_part_variant(&study->variants[v]));
    for (size_t own = 0; own < study->variant_count; own++) {
        if (!matrix->rows[own])
            continue;
        dl2_table_row(&table, dl2_part_variant(&study->variants[own]));
        for (size_t other = 0; other < study->variant_count; other++)
            if (matrix->columns[other])
                write_heat_cell(html, matrix, own, other);
    }
    dl2_table_end(&table);
    dl2_html_markup(html, "<p class='note'>");
    dl2_html_format(html, "Top-1 accuracy, percent: means over seeds with 95%% intervals. Red is "
                          "below what a network that was trained on the original scores on the "
                          "original, green is above, outlined are a variant's own images.");
    write_heat_sentence(html, study, matrix);
    dl2_html_markup(html, "</p>\n");
}

void dl2_section_matrix(const struct dl2_page *page, struct dl2_html *html)
{
    const struct dl2_study *study = page->study;
    for (size_t a = 0; a < study->arch_count; a++) {
        if (!dl2_matrix_exists(study, study->archs[a])) {
            write_matrix(html, page, a);
            continue;
        }
        struct dl2_matrix matrix;
        const int status = dl2_matrix_make(study, study->archs[a], &matrix, html->error);
        dl2_html_check(html, status);
        if (status == DL2_OK)
            write_heat_map(html, page, a, &matrix);
        dl2_matrix_free(&matrix);
    }
}
