/* SPDX-License-Identifier: BSD-2-Clause */
#include "report/meta_analysis.h"

#include "common/stats.h"

#include <math.h>
#include <stdlib.h>

void dl2_random_effects(const double *differences, const double *variances, size_t count,
                        struct dl2_random_effects *effects)
{
    double mean = 0, of_means = 0, chance = 0;
    for (size_t i = 0; i < count; i++) {
        mean += differences[i] / (double)count;
        chance += variances[i] / (double)count;
    }
    for (size_t i = 0; i < count; i++)
        of_means += (differences[i] - mean) * (differences[i] - mean);
    if (count > 1)
        of_means /= (double)count - 1;
    /* By luck studies agree more than their own chance allows: that is no certainty. */
    const double least = dl2_student_quantile(0.025, INFINITY) * sqrt(chance / (double)count);
    const double half = fmax(dl2_confidence95(sqrt(of_means), count), count ? least : 0);
    *effects = (struct dl2_random_effects){
        .mean = count ? mean : NAN,
        .half = half,
        .half_new = half * sqrt((double)count + 1),
        .between = count > 1 ? sqrt(fmax(0, of_means - chance)) : NAN,
    };
}

double dl2_noninferiority_p(double difference, const struct dl2_spread *spread, double tolerance)
{
    const double margin = difference + tolerance;
    if (!(spread->freedom > 0) || !isfinite(spread->variance))
        return 1;
    if (!(spread->variance > 0))
        return margin >= 0 ? 0 : 1;
    return dl2_student_tail(margin / sqrt(spread->variance), spread->freedom);
}

void dl2_partial_conjunction(double *p, size_t count)
{
    dl2_sort(p, count);
    for (size_t i = 0; i < count; i++) {
        p[i] = fmin(1, (double)(count - i) * p[i]);
        if (i)
            p[i] = fmax(p[i], p[i - 1]);
    }
}
