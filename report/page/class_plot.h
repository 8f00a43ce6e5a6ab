/* SPDX-License-Identifier: BSD-2-Clause */
/* A plot of what all classes of a network gain and lose on a variant. */
#ifndef DL2_REPORT_CLASS_PLOT_H
#define DL2_REPORT_CLASS_PLOT_H

#include "report/class_harm.h"
#include "report/page/parts.h"

/* The worst class is on top; those that certainly lose stand out. */
void dl2_class_plot(struct dl2_part_figures *figures, size_t arch, size_t v,
                    const struct dl2_classes *classes, const struct dl2_class_harm *harm);

#endif
