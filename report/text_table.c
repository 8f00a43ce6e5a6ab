/* SPDX-License-Identifier: BSD-2-Clause */
#include "report/text_table.h"

#include "common/keep.h"
#include "report/accuracy_text.h"

#include <math.h>

/* In code points: names and signs are not only ASCII. */
static size_t width_of(const char *text)
{
    size_t width = 0;
    for (; text && *text; text++)
        width += ((unsigned char)*text & 0xc0) != 0x80;
    return width;
}

const char **dl2_text_row(struct dl2_text_table *table)
{
    table->rows = dl2_keep_more(table->rows, table->count, sizeof *table->rows);
    return table->rows[table->count++];
}

const char **dl2_text_lines(const struct dl2_text_table *table)
{
    size_t widths[DL2_TEXT_COLUMNS] = {0};
    const char **lines = dl2_keep(table->count + 1, sizeof *lines, "a table's lines");
    for (size_t column = 0; column < DL2_TEXT_COLUMNS; column++)
        for (size_t row = table->count; row-- > 0;) {
            const size_t width = width_of(table->rows[row][column]);
            if (width > widths[column] && (row >= DL2_TEXT_HEADS || widths[column]))
                widths[column] = width;
        }
    for (size_t row = 0; row < table->count; row++) {
        const char *line = "", *gap = "";
        for (size_t column = 0; column < DL2_TEXT_COLUMNS; column++) {
            const char *cell = table->rows[row][column];
            if (!cell || !*cell || !widths[column]) {
                gap = widths[column] ? dl2_text("%s%*s", gap, (int)widths[column] + 2, "") : gap;
                continue;
            }
            line = dl2_text("%s%s%s", line, gap, cell);
            gap = dl2_text("%*s", (int)(widths[column] - width_of(cell)) + 2, "");
        }
        lines[row] = line;
    }
    return lines;
}

const char *dl2_text_estimate(const struct dl2_estimate *estimate, int digits)
{
    const char *mean = dl2_number("%.*f", digits, estimate->mean);
    return !estimate->count ? NULL
           : isfinite(estimate->half)
               ? dl2_text("%s ±%s", mean, dl2_number("%.*f", digits, estimate->half))
               : mean;
}
