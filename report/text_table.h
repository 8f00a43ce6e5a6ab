/* SPDX-License-Identifier: BSD-2-Clause */
/* Tables in plain text, for terminals. */
#ifndef DL2_REPORT_TEXT_TABLE_H
#define DL2_REPORT_TEXT_TABLE_H

#include "report/inference.h"

#include <stddef.h>

enum { DL2_TEXT_HEADS = 2, DL2_TEXT_COLUMNS = 12 }; /* lines of heads; columns at most */

/* Zero it first. A NULL cell is empty. */
struct dl2_text_table {
    const char *(*rows)[DL2_TEXT_COLUMNS]; /* kept; the heads come first */
    size_t count;
};

/* The cells of a further row, all empty. */
const char **dl2_text_row(struct dl2_text_table *table);

/* A cell: "1234 ±56", the mean and half its interval with so many digits after the point; NULL
 * where there is no value. Kept. */
const char *dl2_text_estimate(const struct dl2_estimate *estimate, int digits);

/* Its lines: [table->count], kept, with room for one more. Columns are as wide as their widest cell
 * in code points, and two blanks apart. A column that is empty below its heads is left out. */
const char **dl2_text_lines(const struct dl2_text_table *table);

#endif
