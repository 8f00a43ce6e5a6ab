/* SPDX-License-Identifier: BSD-2-Clause */
/* Tables of metrics, of one network: how they order the variants, and all their figures. */
#ifndef DL2_REPORT_METRIC_TABLES_H
#define DL2_REPORT_METRIC_TABLES_H

#include "report/metric_guides.h"
#include "report/page/parts.h"

void dl2_ranking_table(struct dl2_html *html, const struct dl2_study *study,
                       const struct dl2_guides *guides);
/* Every metric of every variant, beside the change in accuracy; folded up. */
void dl2_metric_table(struct dl2_html *html, const struct dl2_study *study,
                      const struct dl2_analysis *analysis, const struct dl2_guides *guides);

#endif
