/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A table of the page, which scrolls by itself where it is wider than the page:
 *
 *     struct dl2_table table = {.html = html};
 *     dl2_table_heads(&table, "variant|bits per\npixel|<difference, points");
 *     dl2_table_row(&table, "jpeg-50");   ... any number, each with its cells
 *     dl2_part_cell(html, value, 3);
 *     dl2_table_end(&table);
 *
 * Rows and columns have heads, for those who do not see them.
 */
#ifndef DL2_REPORT_TABLE_H
#define DL2_REPORT_TABLE_H

#include "report/page/html.h"

struct dl2_table {
    struct dl2_bytes *html;
    const char *attributes; /* " class='heat'"; or NULL */
    bool opened;
    size_t rows;
};

/* Column heads, as markup: "|" is between two, a line ends with "\n", and one that begins with "<"
 * is of a column of text, which starts at the left. */
void dl2_table_heads(struct dl2_table *table, const char *heads);
/* One column head, formatted, then escaped; a line ends with "\n". */
void dl2_table_head(struct dl2_table *table, const char *format, ...) DL2_PRINTF(2, 3);
/* Begins a row with its head. */
void dl2_table_row(struct dl2_table *table, const char *name);
/* Begins a row whose head follows; `attributes` are the row's: " class='pick'", or "". */
void dl2_table_bare_row(struct dl2_table *table, const char *attributes);
void dl2_table_end(struct dl2_table *table);

#endif
