/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What a page shows, as data: "dl2-report/1" of docs/formats/report.md, which page.html renders. A
 * section, a fold and a column hold blocks; each call appends to the last of its kind. Blocks are
 * borrowed: they live as long as the document. Texts may hold any bytes.
 *
 *     dl2_block_set(section, "heading", "Variants");
 *     json_t *text = dl2_block_add(section, "paragraph");
 *     dl2_block_mark(text, "strong", "%s", name);
 *     dl2_block_say(text, " loses %s.", points);
 */
#ifndef DL2_REPORT_DOCUMENT_H
#define DL2_REPORT_DOCUMENT_H

#include "common/memory.h"
#include "report/analysis.h"

#include <jansson.h>

json_t *dl2_block_add(json_t *parent, const char *kind);
/* A block of text, with its first words: "paragraph", "headline", "note", "warning", "heading",
 * "code". */
json_t *dl2_block_text(json_t *parent, const char *kind, const char *format, ...) DL2_PRINTF(3, 4);
/* More words of it, plain, or marked: "strong", "small", "code". */
void dl2_block_say(json_t *block, const char *format, ...) DL2_PRINTF(2, 3);
void dl2_block_mark(json_t *block, const char *mark, const char *format, ...) DL2_PRINTF(3, 4);
/* A link to the section or fold of that id. */
void dl2_block_link(json_t *block, const char *id, const char *words);

/* Blocks that are folded up. */
json_t *dl2_block_fold(json_t *parent, const char *summary);
/* An item of a "list". */
void dl2_block_item(json_t *list, const char *format, ...) DL2_PRINTF(2, 3);
/* A field of any object that is a text; an object or array of the list of that name, which it takes
 * over and returns. */
void dl2_block_set(json_t *object, const char *key, const char *format, ...) DL2_PRINTF(3, 4);
json_t *dl2_block_append(json_t *object, const char *key, json_t *item);
/* Sets a field to true: a row's "pick", a cell's "own", a fold's "open". */
void dl2_block_flag(json_t *object, const char *key);
bool dl2_block_is_empty(const json_t *parent);

/*
 * A table:
 *
 *     json_t *table = dl2_table_add(section, "variant|bits per\npixel|<difference, points");
 *     dl2_table_row(table, "jpeg-50");   ... any number, each with its cells
 *     dl2_table_number(table, value, 3);
 */
json_t *dl2_table_add(json_t *parent, const char *heads);
/* More columns: "|" is between two, a line ends with "\n", and one that begins with "<" is of
 * texts.
 */
void dl2_table_heads(json_t *table, const char *heads);
/* One more column of numbers. */
void dl2_table_head(json_t *table, const char *format, ...) DL2_PRINTF(2, 3);
/* Begins a row with its head, which is the first cell. */
json_t *dl2_table_row(json_t *table, const char *name);
/* Is there no row yet? NULL has none. */
bool dl2_table_is_empty(const json_t *table);

/* A cell of the last row: a value for programs and for the order of rows (NAN: not known), and its
 * text, which is a dash where the value is not known. */
json_t *dl2_table_number(json_t *table, double value, int digits);
json_t *dl2_table_value(json_t *table, double value, const char *format, ...) DL2_PRINTF(3, 4);
json_t *dl2_table_text(json_t *table, const char *format, ...) DL2_PRINTF(2, 3);
/* The ends of the value's interval. */
void dl2_table_interval(json_t *cell, double low, double high);
/* How dark its background is: from 0 to 1 of an amount, from -1 (bad) to 1 (good) of a change. */
void dl2_table_shade(json_t *cell, double shade);
/* A badge behind the cell's text, in the color of the verdict. Of a card, too. */
void dl2_table_badge(json_t *cell, enum dl2_verdict verdict, const char *format, ...)
    DL2_PRINTF(3, 4);

/* The text of a number: "0.915"; NAN and infinities are a dash. Kept. */
const char *dl2_table_fixed(double value, int digits);

/* Appends the page: its style and script, and the document. */
void dl2_document_render(const json_t *document, struct dl2_bytes *html);

#endif
