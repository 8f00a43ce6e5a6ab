/* SPDX-License-Identifier: BSD-2-Clause */
/* How the answer was decided: what the verdicts mean, and which chances the intervals count. */
#ifndef DL2_REPORT_DECIDED_H
#define DL2_REPORT_DECIDED_H

#include "report/page/page.h"

void dl2_write_decided(const struct dl2_page *page, struct dl2_html *html);

#endif
