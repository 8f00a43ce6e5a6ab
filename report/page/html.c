/* SPDX-License-Identifier: BSD-2-Clause */
#include "report/page/html.h"

#include "common/json.h"
#include "common/keep.h"
#include "common/scope.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

void dl2_html_markup(struct dl2_bytes *html, const char *markup)
{
    dl2_append_text(html, markup);
}

static const char *const escapes[256] = {
    ['&'] = "&amp;", ['<'] = "&lt;", ['>'] = "&gt;", ['"'] = "&quot;", ['\''] = "&#39;"};

void dl2_html_text(struct dl2_bytes *html, const char *text)
{
    json_auto_t *mended = dl2_need(dl2_json_text(text)); /* valid UTF-8 from here on */
    for (const char *c = json_string_value(mended); *c; c++) {
        const char *escape = escapes[(unsigned char)*c];
        if (!escape && (unsigned char)*c < ' ' && *c != '\n' && *c != '\t')
            escape = "\xef\xbf\xbd";
        dl2_append(html, escape ? escape : c, escape ? strlen(escape) : 1);
    }
}

static void format_text(struct dl2_bytes *html, const char *format, va_list arguments)
    __attribute__((format(printf, 2, 0)));
static void format_text(struct dl2_bytes *html, const char *format, va_list arguments)
{
    DL2_AUTO_FREE char *text = NULL;
    dl2_need(vasprintf(&text, format, arguments) < 0 ? NULL : text);
    dl2_html_text(html, text);
}

void dl2_html_format(struct dl2_bytes *html, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    format_text(html, format, arguments);
    va_end(arguments);
}

void dl2_html_element(struct dl2_bytes *html, const char *tag, const char *format, ...)
{
    dl2_append(html, "<", 1);
    dl2_html_markup(html, tag);
    dl2_append(html, ">", 1);
    va_list arguments;
    va_start(arguments, format);
    format_text(html, format, arguments);
    va_end(arguments);
    dl2_append(html, "</", 2);
    dl2_append(html, tag, strcspn(tag, " "));
    dl2_append(html, ">", 1);
}

void dl2_html_data(struct dl2_bytes *html, const char *kind, const struct dl2_bytes *bytes)
{
    static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    dl2_html_format(html, "data:%s;base64,", kind);
    for (size_t i = 0; i < bytes->size; i += 3) { /* RFC 4648 */
        const size_t left = bytes->size - i;
        const uint32_t three = (uint32_t)bytes->data[i] << 16 |
                               (left > 1 ? (uint32_t)bytes->data[i + 1] << 8 : 0) |
                               (left > 2 ? bytes->data[i + 2] : 0);
        const char four[] = {digits[three >> 18], digits[three >> 12 & 63],
                             left > 1 ? digits[three >> 6 & 63] : '=',
                             left > 2 ? digits[three & 63] : '='};
        dl2_append(html, four, sizeof four);
    }
}

/* ---- Tables */

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
