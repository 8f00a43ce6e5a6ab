/* SPDX-License-Identifier: BSD-2-Clause */
/* A table of the images that variants break, against the metrics' scores of them. */
#ifndef DL2_REPORT_BREAKAGE_TABLE_H
#define DL2_REPORT_BREAKAGE_TABLE_H

#include "report/metric_trust.h"
#include "report/page/html.h"

/* Of one network: breakages[variant_count]. Writes nothing where none is known. */
void dl2_breakage_table(struct dl2_html *html, const struct dl2_study *study,
                        const struct dl2_metric_names *metrics,
                        const struct dl2_breakage *breakages);

#endif
