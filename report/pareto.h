/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The Pareto front: the variants than which no other costs as little and is as accurate. It goes by
 * measured means, so that chance may put a variant on it, or keep one off; verdicts do not use it.
 */
#ifndef DL2_REPORT_PARETO_H
#define DL2_REPORT_PARETO_H

#include "report/analysis.h"

/* Points of accuracy that variant v gains on the original, measured; 0 of the original; NAN: not
 * known. */
double dl2_pareto_gain(const struct dl2_study *study, const struct dl2_analysis *analysis,
                       size_t v);

/* Marks the front: front[variant_count]. `costs` is [variant_count]; a variant whose cost is not
 * finite takes no part. */
void dl2_pareto_find(const struct dl2_study *study, const struct dl2_analysis *analysis,
                     const double *costs, bool *front);

/* The fronts of bytes and accuracy of all networks: [arch * variant_count + variant], to free; NULL
 * if memory runs out. `analyses` is [arch_count]. */
bool *dl2_pareto_of_bytes(const struct dl2_study *study, const struct dl2_analysis *analyses);

#endif
