/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Synchronized batch norm: statistics over the whole world, for devices whose memory is the
 * host's. Ranks have equally many rows, so means of means are means.
 *
 * Threads: the device's; collective, on channel 0.
 */
#ifndef DL2_RANKS_SYNC_NORM_H
#define DL2_RANKS_SYNC_NORM_H

#include "ranks/world.h"

/*
 * moments: [2][channels], this rank's means and (biased) variances, which become those of all
 * ranks' rows together. `near` is some number of about the means' size, the same on every rank.
 */
int dl2_sync_moments(const struct dl2_world *world, double *moments, const float *near,
                     unsigned channels, struct dl2_error *error);

#endif
