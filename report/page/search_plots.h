/* SPDX-License-Identifier: BSD-2-Clause */
/* The plots of a search: the models' accuracy by epoch, and their settings beside it. */
#ifndef DL2_REPORT_SEARCH_PLOTS_H
#define DL2_REPORT_SEARCH_PLOTS_H

#include "report/page/parts.h"

void dl2_search_plots(struct dl2_part_figures *figures);

#endif
