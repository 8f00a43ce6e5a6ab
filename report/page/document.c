/* SPDX-License-Identifier: BSD-2-Clause */
#include "report/page/document.h"

#include "common/json.h"
#include "common/keep.h"
#include "common/scope.h"
#include "report/accuracy_text.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- Objects and texts */

static json_t *format_text(const char *format, va_list arguments)
    __attribute__((format(printf, 1, 0)));
static json_t *format_text(const char *format, va_list arguments)
{
    DL2_AUTO_FREE char *text = NULL;
    dl2_need(vasprintf(&text, format, arguments) < 0 ? NULL : text);
    return dl2_need(dl2_json_text(text));
}

#define FORMAT(name, format)                                                                       \
    va_list arguments;                                                                             \
    va_start(arguments, format);                                                                   \
    json_t *name = format_text(format, arguments);                                                 \
    va_end(arguments)

static void set(json_t *object, const char *key, json_t *value)
{
    dl2_need(value);
    dl2_need(json_object_set_new(object, key, value) < 0 ? NULL : object);
}

json_t *dl2_block_append(json_t *object, const char *key, json_t *item)
{
    dl2_need(item);
    json_t *list = json_object_get(object, key);
    if (!list)
        set(object, key, list = json_array());
    dl2_need(json_array_append_new(list, item) < 0 ? NULL : list);
    return item;
}

void dl2_block_set(json_t *object, const char *key, const char *format, ...)
{
    FORMAT(text, format);
    set(object, key, text);
}

json_t *dl2_block_add(json_t *parent, const char *kind)
{
    return dl2_block_append(parent, "blocks", json_pack("{s:s}", "kind", kind));
}

void dl2_block_flag(json_t *object, const char *key)
{
    set(object, key, json_true());
}

bool dl2_block_is_empty(const json_t *parent)
{
    return !json_array_size(json_object_get(parent, "blocks"));
}

/* Appends to a text, which is an array of strings and marked parts; plain words make one string. */
static void append_text(json_t *block, json_t *part)
{
    json_t *text = json_object_get(block, "text");
    const size_t count = json_array_size(text);
    const char *last = count ? json_string_value(json_array_get(text, count - 1)) : NULL;
    const char *words = json_string_value(part);
    if (last && words) {
        json_t *joined = dl2_need(json_sprintf("%s%s", last, words));
        json_array_set_new(text, count - 1, joined);
        json_decref(part);
    } else if (text && words && !*words) {
        json_decref(part);
    } else {
        dl2_block_append(block, "text", part);
    }
}

json_t *dl2_block_text(json_t *parent, const char *kind, const char *format, ...)
{
    FORMAT(text, format);
    json_t *block = dl2_block_add(parent, kind);
    append_text(block, text);
    return block;
}

void dl2_block_say(json_t *block, const char *format, ...)
{
    FORMAT(text, format);
    append_text(block, text);
}

void dl2_block_mark(json_t *block, const char *mark, const char *format, ...)
{
    FORMAT(text, format);
    append_text(block, dl2_need(json_pack("{s:o}", mark, text)));
}

void dl2_block_link(json_t *block, const char *id, const char *words)
{
    append_text(block, dl2_need(json_pack("{s:s, s:s}", "link", id, "text", words)));
}

json_t *dl2_block_fold(json_t *parent, const char *summary)
{
    json_t *fold = dl2_block_add(parent, "fold");
    dl2_block_set(fold, "summary", "%s", summary);
    return fold;
}

void dl2_block_item(json_t *list, const char *format, ...)
{
    FORMAT(text, format);
    dl2_block_append(list, "items", text);
}

/* ---- Tables */

json_t *dl2_table_add(json_t *parent, const char *heads)
{
    json_t *table = dl2_block_add(parent, "table");
    set(table, "columns", json_array());
    set(table, "rows", json_array());
    dl2_table_heads(table, heads);
    return table;
}

void dl2_table_heads(json_t *table, const char *heads)
{
    while (*heads) {
        const bool texts = *heads == '<';
        heads += texts;
        const size_t length = strcspn(heads, "|");
        dl2_block_append(table, "columns",
                         json_pack("{s:s%, s:s}", "label", heads, length, "type",
                                   texts || !json_array_size(json_object_get(table, "columns"))
                                       ? "text"
                                       : "number"));
        heads += length + (heads[length] == '|');
    }
}

void dl2_table_head(json_t *table, const char *format, ...)
{
    FORMAT(text, format);
    dl2_block_append(table, "columns", json_pack("{s:o, s:s}", "label", text, "type", "number"));
}

json_t *dl2_table_row(json_t *table, const char *name)
{
    json_t *row = dl2_block_append(table, "rows", json_object());
    dl2_block_append(row, "cells", json_pack("{s:o}", "text", dl2_json_text(name)));
    return row;
}

bool dl2_table_is_empty(const json_t *table)
{
    return !json_array_size(json_object_get(table, "rows"));
}

static json_t *add_cell(json_t *table, json_t *cell)
{
    const json_t *rows = json_object_get(table, "rows");
    return dl2_block_append(json_array_get(rows, json_array_size(rows) - 1), "cells", cell);
}

json_t *dl2_table_value(json_t *table, double value, const char *format, ...)
{
    FORMAT(text, format);
    return add_cell(table, json_pack("{s:o, s:o}", "value", dl2_json_real(value), "text", text));
}

json_t *dl2_table_number(json_t *table, double value, int digits)
{
    return dl2_table_value(table, value, "%s", dl2_table_fixed(value, digits));
}

json_t *dl2_table_text(json_t *table, const char *format, ...)
{
    FORMAT(text, format);
    return add_cell(table, json_pack("{s:o}", "text", text));
}

void dl2_table_interval(json_t *cell, double low, double high)
{
    set(cell, "interval", json_pack("[o, o]", dl2_json_real(low), dl2_json_real(high)));
}

void dl2_table_shade(json_t *cell, double shade)
{
    set(cell, "shade", dl2_json_real(shade));
}

void dl2_table_badge(json_t *cell, enum dl2_verdict verdict, const char *format, ...)
{
    FORMAT(text, format);
    set(cell, "badge",
        json_pack("{s:s, s:o}", "verdict",
                  verdict == DL2_VERDICT_WITHIN   ? "within"
                  : verdict == DL2_VERDICT_BEYOND ? "beyond"
                                                  : "open",
                  "text", text));
}

const char *dl2_table_fixed(double value, int digits)
{
    return isfinite(value) ? dl2_number("%.*f", digits, value) : "–";
}

/* ---- The page */

/* page.html, which the build makes page_template.c of. */
extern const unsigned char dl2_page_template[];
extern const size_t dl2_page_template_size;

void dl2_document_render(const json_t *document, struct dl2_bytes *html)
{
    static const char mark[] = "{{document}}";
    const char *text = (const char *)dl2_page_template;
    const char *at = memmem(text, dl2_page_template_size, mark, sizeof mark - 1);
    DL2_AUTO_FREE char *json = dl2_need(json_dumps(document, JSON_COMPACT));
    dl2_append(html, text, (size_t)(at - text));
    for (const char *part = json; *part;) { /* nothing in it may end the script, or begin another */
        const size_t length = strcspn(part, "<");
        dl2_append(html, part, length);
        dl2_append_text(html, part[length] ? "\\u003c" : "");
        part += length + (part[length] != 0);
    }
    at += sizeof mark - 1;
    dl2_append(html, at, dl2_page_template_size - (size_t)(at - text));
}
