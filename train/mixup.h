/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Mixup (Zhang, Cisse, Dauphin, Lopez-Paz: "mixup: beyond empirical risk minimization", ICLR 2018):
 * every sample of a batch is blended with a partner from the same batch, one share for all.
 */
#ifndef DL2_TRAIN_MIXUP_H
#define DL2_TRAIN_MIXUP_H

#include <stdint.h>

/*
 * The share of the sample itself, from Beta(alpha, alpha), alpha > 0, and partner[0 .. count-1], a
 * permutation of 0 .. count-1. Named by (seed, step) alone.
 */
double dl2_mixup_draw(uint64_t seed, uint64_t step, double alpha, uint32_t *partner,
                      unsigned count);

#endif
