/* SPDX-License-Identifier: BSD-2-Clause */
/* Accuracy of what was trained on one variant and validated on another. */
#include "report/matrix.h"
#include "report/page/parts.h"
#include "report/page/sections.h"

#include <math.h>

static void write_cell(json_t *table, const struct dl2_accuracy_kind *kind,
                       const struct dl2_matrix *matrix, size_t row, size_t column)
{
    const struct dl2_estimate *own = &matrix->cells[row * matrix->columns + column];
    const double difference = own->mean - matrix->original;
    json_t *cell = dl2_part_accuracy_estimate(table, kind, own);
    if (own->count && isfinite(difference) && matrix->most > 0 && column < matrix->compared)
        dl2_table_shade(cell, difference / matrix->most);
    if (dl2_matrix_own(matrix, row) == column)
        dl2_block_flag(cell, "own");
}

/* What the most compressed variant shows. */
static void write_sentence(json_t *text, const struct dl2_study *study,
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
        dl2_block_say(
            text,
            dl2_accuracy_words(
                kind,
                " On the images of %s, the smallest, a network that was trained on the original "
                "differs by %s points from what it scores on the original's; one that was "
                "trained on %s, by %s; and that one on the original's images, by %s."),
            study->variants[least].name, dl2_signed(kind, strange), study->variants[least].name,
            dl2_signed(kind, own), dl2_signed(kind, back));
}

static void write_matrix(json_t *section, const struct dl2_page *page, size_t a,
                         const struct dl2_matrix *matrix)
{
    const struct dl2_accuracy_kind *kind = dl2_study_accuracy(page->study);
    dl2_part_arch_heading(section, page, a);
    json_t *table = dl2_table_add(section, "trained on");
    dl2_block_set(table, "shades", "change");
    for (size_t c = 0; c < matrix->columns; c++)
        if (matrix->has_column[c])
            dl2_table_head(table, "%s", matrix->names[c]);
    for (size_t row = 0; row < matrix->rows; row++) {
        if (!matrix->has_row[row])
            continue;
        dl2_table_row(table, dl2_part_variant_name(page->study->variants[row].name));
        for (size_t c = 0; c < matrix->columns; c++)
            if (matrix->has_column[c])
                write_cell(table, kind, matrix, row, c);
    }
    json_t *text = dl2_block_text(
        section, "note", "%s",
        dl2_accuracy_words(
            kind,
            "Accuracy, percent: means over seeds with 95% intervals. Red is worse than a network "
            "that was trained on the original is on the original, green is better, outlined are a "
            "variant's own images."));
    write_sentence(text, page->study, matrix);
}

void dl2_section_matrix(const struct dl2_page *page, json_t *section)
{
    dl2_block_set(section, "heading", "Trained on one, validated on another");
    for (size_t a = 0; a < page->study->arch_count; a++) {
        const struct dl2_matrix matrix = dl2_matrix_make(page->study, page->study->archs[a]);
        if (matrix.columns)
            write_matrix(section, page, a, &matrix);
    }
}
