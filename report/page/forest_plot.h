/* SPDX-License-Identifier: BSD-2-Clause */
/* A forest plot: each study's difference to its original, and their mean, by variant. */
#ifndef DL2_REPORT_FOREST_PLOT_H
#define DL2_REPORT_FOREST_PLOT_H

#include "report/page/parts.h"
#include "report/several_studies.h"

void dl2_forest_plot(struct dl2_part_figures *figures, const struct dl2_several_studies *several,
                     const struct dl2_shared_network *network);

#endif
