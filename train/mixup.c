/* SPDX-License-Identifier: BSD-2-Clause */
#include "train/mixup.h"
#include "common/random.h"

#include <math.h>

/*
 * Marsaglia and Tsang, "A simple method for generating gamma variables" (2000), with their boost
 * below 1, which is applied to the logarithm: for a small alpha the variables themselves underflow.
 */
static double log_gamma_variate(struct dl2_random *random, double alpha)
{
    double boost = 0;
    if (alpha < 1) {
        boost = log(1 - dl2_random_uniform(random)) / alpha;
        alpha += 1;
    }
    double d = alpha - 1.0 / 3, c = 1 / sqrt(9 * d);
    for (;;) {
        double x = dl2_random_normal(random);
        double v = 1 + c * x;
        if (v <= 0)
            continue;
        v = v * v * v;
        double u = 1 - dl2_random_uniform(random);
        if (log(u) < 0.5 * x * x + d - d * v + d * log(v))
            return boost + log(d * v);
    }
}

double dl2_mixup_draw(uint64_t seed, uint64_t step, double alpha, uint32_t *partner, unsigned count)
{
    struct dl2_random random;
    dl2_random_init(&random, seed, DL2_RANDOM_MIXUP, step, 0);
    double a = log_gamma_variate(&random, alpha);
    double b = log_gamma_variate(&random, alpha);
    dl2_random_permutation(&random, partner, count);
    return 1 / (1 + exp(b - a));
}
