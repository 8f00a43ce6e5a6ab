/* SPDX-License-Identifier: BSD-2-Clause */
/* What the page looks like, and its script: both stand in the page. */
#ifndef DL2_REPORT_STYLE_H
#define DL2_REPORT_STYLE_H

#include "report/page/html.h"

/* For light and dark screens and for paper. */
void dl2_page_style(struct dl2_html *html);
/* Makes tables sortable; without it, or on paper, they are as they were written. */
void dl2_page_script(struct dl2_html *html);

#endif
