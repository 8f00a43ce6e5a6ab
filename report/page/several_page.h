/* SPDX-License-Identifier: BSD-2-Clause */
/* The page of several studies: what they say together, and each beside the others. */
#ifndef DL2_REPORT_SEVERAL_PAGE_H
#define DL2_REPORT_SEVERAL_PAGE_H

#include "report/page/html.h"
#include "report/page/plot.h"
#include "report/several_studies.h"

struct dl2_several_page {
    const char *title; /* what was studied, or NULL */
    const struct dl2_several_studies *several;
    const struct dl2_study *notes; /* what went wrong, and what was left out */
    struct dl2_plotter *plotter;
};

/* Writes the page, and the plots into the plotter's folder. Failures are in html->status. */
void dl2_several_page_write(const struct dl2_several_page *page, struct dl2_html *html);

#endif
