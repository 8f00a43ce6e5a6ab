/* SPDX-License-Identifier: BSD-2-Clause */
/* Plots of regimens: what each gains or loses, and its accuracy by epoch. */
#ifndef DL2_REPORT_REGIMEN_PLOTS_H
#define DL2_REPORT_REGIMEN_PLOTS_H

#include "report/page/parts.h"
#include "report/regimens.h"

void dl2_regimen_plots(struct dl2_part_figures *figures, const struct dl2_regimens *group,
                       const char *detail);

#endif
