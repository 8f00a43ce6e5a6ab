/* SPDX-License-Identifier: BSD-2-Clause */
#include "report/page/html.h"

#include "common/json.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void append(struct dl2_html *html, const char *data, size_t size)
{
    if (html->status == DL2_OK && size)
        html->status = dl2_bytes_append(&html->bytes, data, size, html->error);
}

void dl2_html_check(struct dl2_html *html, int status)
{
    if (html->status == DL2_OK)
        html->status = status;
}

void *dl2_html_calloc(struct dl2_html *html, size_t count, size_t size)
{
    void *items = dl2_calloc(count, size);
    if (!items && html->status == DL2_OK)
        html->status = dl2_error_memory(html->error, "the report");
    return items;
}

void dl2_html_markup(struct dl2_html *html, const char *markup)
{
    append(html, markup, strlen(markup));
}

void dl2_html_bytes(struct dl2_html *html, const struct dl2_bytes *markup)
{
    append(html, (const char *)markup->data, markup->size);
}

void dl2_html_take(struct dl2_html *html, struct dl2_html *part)
{
    dl2_html_bytes(html, &part->bytes);
    dl2_html_check(html, part->status);
    dl2_bytes_free(&part->bytes);
}

void dl2_html_text(struct dl2_html *html, const char *text)
{
    json_t *mended = dl2_json_text(text); /* valid UTF-8 from here on */
    if (!mended) {
        html->status = dl2_error_set(html->error, DL2_ERR_MEMORY, "no memory for the report");
        return;
    }
    for (const char *c = json_string_value(mended); *c; c++) {
        switch (*c) {
        case '&':
            append(html, "&amp;", 5);
            break;
        case '<':
            append(html, "&lt;", 4);
            break;
        case '>':
            append(html, "&gt;", 4);
            break;
        case '"':
            append(html, "&quot;", 6);
            break;
        case '\'':
            append(html, "&#39;", 5);
            break;
        default:
            if ((unsigned char)*c >= ' ' || *c == '\n' || *c == '\t')
                append(html, c, 1);
            else
                append(html, "\xef\xbf\xbd", 3);
        }
    }
    json_decref(mended);
}

static void format_text(struct dl2_html *html, const char *format, va_list arguments)
    __attribute__((format(printf, 2, 0)));
static void format_text(struct dl2_html *html, const char *format, va_list arguments)
{
    char *text;
    if (vasprintf(&text, format, arguments) < 0) {
        html->status = dl2_error_set(html->error, DL2_ERR_MEMORY, "no memory for the report");
        return;
    }
    dl2_html_text(html, text);
    free(text);
}

void dl2_html_format(struct dl2_html *html, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    format_text(html, format, arguments);
    va_end(arguments);
}

void dl2_html_element(struct dl2_html *html, const char *tag, const char *format, ...)
{
    append(html, "<", 1);
    dl2_html_markup(html, tag);
    append(html, ">", 1);
    va_list arguments;
    va_start(arguments, format);
    format_text(html, format, arguments);
    va_end(arguments);
    append(html, "</", 2);
    append(html, tag, strcspn(tag, " "));
    append(html, ">", 1);
}

void dl2_html_data(struct dl2_html *html, const char *kind, const struct dl2_bytes *bytes)
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
        append(html, four, sizeof four);
    }
}
