/* SPDX-License-Identifier: BSD-2-Clause */
/* Plots of the speeds of loading by workers, and of what memory saves. */
#ifndef DL2_REPORT_LOADING_PLOTS_H
#define DL2_REPORT_LOADING_PLOTS_H

#include "report/page/parts.h"

/* `scratch` has room for dl2_loading_rounds(). */
void dl2_loading_plots(struct dl2_part_figures *figures, double *scratch);

#endif
