/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * HTML (well-formed as XML, too) built up in memory. What comes from files goes through the calls
 * that escape; only literals go through dl2_html_markup(). The first failure sticks in `status`.
 */
#ifndef DL2_REPORT_HTML_H
#define DL2_REPORT_HTML_H

#include "common/error.h"
#include "common/memory.h"

struct dl2_html {
    struct dl2_bytes bytes;
    int status;
    struct dl2_error *error;
};

#define DL2_HTML_INIT(error)                                                                       \
    {                                                                                              \
        DL2_BYTES_INIT, DL2_OK, error                                                              \
    }

/* Keeps the first failure. */
void dl2_html_check(struct dl2_html *html, int status);
/* dl2_calloc(), whose failure is kept. */
void *dl2_html_calloc(struct dl2_html *html, size_t count, size_t size);

/* Appends markup unchanged. */
void dl2_html_markup(struct dl2_html *html, const char *markup);
void dl2_html_bytes(struct dl2_html *html, const struct dl2_bytes *markup);
/* Appends another document, with its failure, and frees it. */
void dl2_html_take(struct dl2_html *html, struct dl2_html *part);
/* Escaped; what isn't UTF-8, or a control character, becomes U+FFFD. */
void dl2_html_text(struct dl2_html *html, const char *text);
/* "data:image/png;base64,..." of bytes of that kind. */
void dl2_html_data(struct dl2_html *html, const char *kind, const struct dl2_bytes *bytes);
/* Formatted, then escaped. */
void dl2_html_format(struct dl2_html *html, const char *format, ...) DL2_PRINTF(2, 3);
/* <tag>text</tag>; `tag` may have attributes ("td class='n'"), as it is. */
void dl2_html_element(struct dl2_html *html, const char *tag, const char *format, ...)
    DL2_PRINTF(3, 4);

#endif
