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

#endif
