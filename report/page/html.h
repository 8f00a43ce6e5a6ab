/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * HTML (well-formed as XML, too) built up in memory. What comes from files goes through the calls
 * that escape; only literals go through dl2_html_markup().
 */
#ifndef DL2_REPORT_HTML_H
#define DL2_REPORT_HTML_H

#include "common/memory.h"

/* Appends markup unchanged. */
void dl2_html_markup(struct dl2_bytes *html, const char *markup);
/* Escaped; what isn't UTF-8, or a control character, becomes U+FFFD. */
void dl2_html_text(struct dl2_bytes *html, const char *text);
/* "data:image/png;base64,..." of bytes of that kind. */
void dl2_html_data(struct dl2_bytes *html, const char *kind, const struct dl2_bytes *bytes);
/* Formatted, then escaped. */
void dl2_html_format(struct dl2_bytes *html, const char *format, ...) DL2_PRINTF(2, 3);
/* <tag>text</tag>; `tag` may have attributes ("td class='n'"), as it is. */
void dl2_html_element(struct dl2_bytes *html, const char *tag, const char *format, ...)
    DL2_PRINTF(3, 4);

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
