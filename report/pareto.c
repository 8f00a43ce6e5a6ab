/* SPDX-License-Identifier: BSD-2-Clause */
#include "report/pareto.h"

#include <math.h>

double dl2_pareto_gain(const struct dl2_study *study, const struct dl2_analysis *analysis, size_t v)
{
    const struct dl2_comparison *comparison = &analysis->comparisons[v];
    if (v == dl2_study_find(study, "raw"))
        return comparison->top1.count ? 0 : NAN;
    return comparison->difference;
}

void dl2_pareto_find(const struct dl2_study *study, const struct dl2_analysis *analysis,
                     const double *costs, bool *front)
{
    for (size_t v = 0; v < study->variant_count; v++) {
        const double cost = costs[v], gain = dl2_pareto_gain(study, analysis, v);
        front[v] = isfinite(cost) && isfinite(gain);
        for (size_t i = 0; front[v] && i < study->variant_count; i++) {
            const double other = dl2_pareto_gain(study, analysis, i);
            if (costs[i] <= cost && other >= gain && (costs[i] < cost || other > gain))
                front[v] = false;
        }
    }
}
