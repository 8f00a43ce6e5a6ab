/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What dl2-study asks between rounds of trainings, as JSON: "dl2-decisions/1" and
 * "dl2-forecasts/1" of docs/formats.md.
 */
#ifndef DL2_REPORT_DECISIONS_H
#define DL2_REPORT_DECISIONS_H

#include "report/analysis.h"
#include "report/conditions.h"

/* Each network's variants with their state and the seeds that they want; `analyses` is
 * [study->arch_count]. A new reference, or NULL if memory runs out. */
json_t *dl2_decisions_make(const struct dl2_study *study, const struct dl2_analysis *analyses);

/* What each variant loses by the tuned networks of `make forecast`, where that is known. *out is a
 * new reference. */
int dl2_forecasts_make(const struct dl2_study *study, const struct dl2_conditions *conditions,
                       json_t **out, struct dl2_error *error);

#endif
