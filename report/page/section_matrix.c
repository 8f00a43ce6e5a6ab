/* SPDX-License-Identifier: BSD-2-Clause */
/* Accuracy of what was trained on one variant and validated on another. */
#include "report/matrix.h"
#include "report/page/parts.h"
#include "report/page/sections.h"

#include <math.h>
#include <stdio.h>

static void write_cell(struct dl2_bytes *html, const struct dl2_accuracy_kind *kind,
                       const struct dl2_matrix *matrix, size_t row, size_t column)
{
    const struct dl2_estimate *cell = &matrix->cells[row * matrix->columns + column];
    const double difference = cell->mean - matrix->original;
    char tag[160] = "";
    if (cell->count && isfinite(difference) && matrix->most > 0 && column < matrix->compared)
        snprintf(tag, sizeof tag,
                 " style='background:color-mix(in srgb,var(--%s) %.0f%%,var(--card))'",
                 difference < 0 ? "bad" : "good", 45 * fabs(difference) / matrix->most);
    dl2_html_markup(html, dl2_matrix_own(matrix, row) == column ? "<td class='own'" : "<td");
    dl2_html_markup(html, tag);
    dl2_html_markup(html, ">");
    const struct dl2_estimate shown = {dl2_accuracy_shown(kind, cell->mean), cell->half,
                                       cell->count};
    dl2_part_estimate(html, &shown, 1 + kind->digits);
    dl2_html_markup(html, "</td>");
}

/* What the most compressed variant shows. */
static void write_sentence(struct dl2_bytes *html, const struct dl2_study *study,
                           const struct dl2_matrix *matrix)
{
    const struct dl2_accuracy_kind *kind = dl2_study_accuracy(study);
    const size_t count = study->variant_count, raw = dl2_study_find(study, "raw");
    size_t least = count;
    for (size_t v = 0; matrix->evaluated && v < count; v++)
        if (v != raw && matrix->has_row[v] && matrix->has_column[v] &&
            isfinite(study->variants[v].ratio) &&
            (least == count || study->variants[v].ratio < study->variants[least].ratio))
            least = v;
    if (least == count || !isfinite(matrix->original))
        return;
    const double strange = matrix->cells[raw * count + least].mean - matrix->original;
    const double own = matrix->cells[least * count + least].mean - matrix->original;
    const double back = matrix->cells[least * count + raw].mean - matrix->original;
    if (isfinite(strange + own + back))
        dl2_html_format(
            html,
            dl2_accuracy_words(
                kind,
                " On the images of %s, the smallest, a network that was trained on the original "
                "differs by %s points from what it scores on the original's; one that was "
                "trained on %s, by %s; and that one on the original's images, by %s."),
            study->variants[least].name, dl2_signed(kind, strange), study->variants[least].name,
            dl2_signed(kind, own), dl2_signed(kind, back));
}

static void write_matrix(struct dl2_bytes *html, const struct dl2_page *page, size_t a,
                         const struct dl2_matrix *matrix)
{
    struct dl2_table table = {.html = html, .attributes = " class='heat'"};
    dl2_html_element(html, "h2", "Trained on one, validated on another%s",
                     dl2_part_arch_after(page, ": ", a));
    dl2_table_heads(&table, "trained on");
    for (size_t c = 0; c < matrix->columns; c++)
        if (matrix->has_column[c])
            dl2_table_head(&table, "%s", matrix->names[c]);
    for (size_t row = 0; row < matrix->rows; row++) {
        if (!matrix->has_row[row])
            continue;
        dl2_table_row(&table, dl2_part_variant_name(page->study->variants[row].name));
        for (size_t c = 0; c < matrix->columns; c++)
            if (matrix->has_column[c])
                write_cell(html, dl2_study_accuracy(page->study), matrix, row, c);
    }
    dl2_table_end(&table);
    dl2_html_markup(
        html, dl2_accuracy_words(
                  dl2_study_accuracy(page->study),
                  "<p class='note'>Accuracy, percent: means over seeds with 95% intervals. Red is "
                  "worse than a network that was trained on the original is on the original, green "
                  "is better, outlined are a variant's own images."));
    write_sentence(html, page->study, matrix);
    dl2_html_markup(html, "</p>\n");
}

void dl2_section_matrix(const struct dl2_page *page, struct dl2_bytes *html)
{
    for (size_t a = 0; a < page->study->arch_count; a++) {
        const struct dl2_matrix matrix = dl2_matrix_make(page->study, page->study->archs[a]);
        if (matrix.columns)
            write_matrix(html, page, a, &matrix);
    }
}
