/* SPDX-License-Identifier: BSD-2-Clause */
#include "report/pareto.h"

#include "common/memory.h"
#include "common/scope.h"

#include <math.h>

double dl2_pareto_gain(const struct dl2_study *study, const struct dl2_analysis *analysis, size_t v)
{
    const struct dl2_comparison *comparison = &analysis->comparisons[v];
    if (v == dl2_study_find(study, "raw"))
        return comparison->accuracy.count ? 0 : NAN;
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

bool *dl2_pareto_of_bytes(const struct dl2_study *study, const struct dl2_analysis *analyses)
{
    const size_t count = study->variant_count;
    DL2_AUTO_FREE double *bytes = dl2_calloc(count + 1, sizeof *bytes);
    bool *fronts = bytes ? dl2_calloc(study->arch_count * count + 1, sizeof *fronts) : NULL;
    for (size_t v = 0; bytes && v < count; v++)
        bytes[v] = study->variants[v].bytes;
    for (size_t a = 0; fronts && a < study->arch_count; a++)
        dl2_pareto_find(study, &analyses[a], bytes, fronts + a * count);
    return fronts;
}
