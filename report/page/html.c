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

void dl2_html_text(struct dl2_bytes *html, const char *text)
{
    json_auto_t *mended = dl2_need(dl2_json_text(text)); /* valid UTF-8 from here on */
    for (const char *c = json_string_value(mended); *c; c++) {
        switch (*c) {
        case '&':
            dl2_append(html, "&amp;", 5);
            break;
        case '<':
            dl2_append(html, "&lt;", 4);
            break;
        case '>':
            dl2_append(html, "&gt;", 4);
            break;
        case '"':
            dl2_append(html, "&quot;", 6);
            break;
        case '\'':
            dl2_append(html, "&#39;", 5);
            break;
        default:
            if ((unsigned char)*c >= ' ' || *c == '\n' || *c == '\t')
                dl2_append(html, c, 1);
            else
                dl2_append(html, "\xef\xbf\xbd", 3);
        }
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
