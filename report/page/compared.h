/* SPDX-License-Identifier: BSD-2-Clause */
/* The first screen's small print: what was trained, on what, and what the original is. */
#ifndef DL2_REPORT_COMPARED_H
#define DL2_REPORT_COMPARED_H

#include "report/page/page.h"

void dl2_write_compared(const struct dl2_page *page, struct dl2_html *html);

#endif
