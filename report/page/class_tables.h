/* SPDX-License-Identifier: BSD-2-Clause */
/* Tables of the classes that variants harm. */
#ifndef DL2_REPORT_CLASS_TABLES_H
#define DL2_REPORT_CLASS_TABLES_H

#include "report/class_harm.h"
#include "report/page/parts.h"

/* The worst classes of a variant. */
void dl2_class_table(struct dl2_html *html, const struct dl2_classes *classes,
                     const struct dl2_class_harm *harm);
/* A row for each variant: harms[study->variant_count]. */
void dl2_class_table_of_variants(struct dl2_html *html, const struct dl2_study *study,
                                 const struct dl2_classes *classes,
                                 const struct dl2_class_harm *harms);

#endif
