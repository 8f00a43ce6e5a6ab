/* SPDX-License-Identifier: BSD-2-Clause */
#include "ranks/sync_norm.h"

/* By means and squares of what is left after `near` is taken off, so that little cancels. */
int dl2_sync_moments(const struct dl2_world *world, double *moments, const float *near,
                     unsigned channels, struct dl2_error *error)
{
    double *means = moments, *variances = moments + channels;
    const double ranks = dl2_world_size(world);
    for (unsigned c = 0; c < channels; c++) {
        means[c] -= near[c];
        variances[c] += means[c] * means[c];
    }
    DL2_TRY(dl2_world_sum(world, moments, 2 * (size_t)channels, error));
    for (unsigned c = 0; c < channels; c++) {
        const double mean = means[c] / ranks, variance = variances[c] / ranks - mean * mean;
        means[c] = near[c] + mean;
        variances[c] = variance > 0 ? variance : 0;
    }
    return DL2_OK;
}
