/* SPDX-License-Identifier: BSD-2-Clause */
#include "report/page/table.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

enum { MAX_HEAD = 1024 };

static void open_table(struct dl2_table *table)
{
    if (table->opened)
        return;
    table->opened = true;
    dl2_html_markup(table->html,
                    "<div class='scroll' tabindex='0' role='group' aria-label='Table'><table");
    dl2_html_markup(table->html, table->attributes ? table->attributes : "");
    dl2_html_markup(table->html, "><thead><tr>");
}

/* `text` is cut into its lines. */
static void write_head(struct dl2_table *table, const char *tag, char *text,
                       void (*write)(struct dl2_bytes *html, const char *text))
{
    const char *line;
    dl2_html_markup(table->html, tag);
    while ((line = strsep(&text, "\n"))) {
        write(table->html, line);
        dl2_html_markup(table->html, text ? "<br/>" : "");
    }
    dl2_html_markup(table->html, "</th>");
}

void dl2_table_heads(struct dl2_table *table, const char *heads)
{
    char text[MAX_HEAD];
    open_table(table);
    while (*heads) {
        const bool left = *heads == '<';
        heads += left;
        const size_t length = strcspn(heads, "|");
        snprintf(text, sizeof text, "%.*s", (int)length, heads);
        write_head(table, left ? "<th scope='col' class='l'>" : "<th scope='col'>", text,
                   dl2_html_markup);
        heads += length + (heads[length] == '|');
    }
}

void dl2_table_head(struct dl2_table *table, const char *format, ...)
{
    char text[MAX_HEAD];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    open_table(table);
    write_head(table, "<th scope='col'>", text, dl2_html_text);
}

void dl2_table_bare_row(struct dl2_table *table, const char *attributes)
{
    open_table(table);
    dl2_html_markup(table->html, table->rows++ ? "</tr>\n<tr" : "</tr></thead><tbody>\n<tr");
    dl2_html_markup(table->html, attributes);
    dl2_html_markup(table->html, ">");
}

void dl2_table_row(struct dl2_table *table, const char *name)
{
    dl2_table_bare_row(table, "");
    dl2_html_element(table->html, "th scope='row'", "%s", name);
}

void dl2_table_end(struct dl2_table *table)
{
    open_table(table);
    dl2_html_markup(table->html, table->rows ? "</tr>\n" : "</tr></thead><tbody>\n");
    dl2_html_markup(table->html, "</tbody></table></div>\n");
}
