/* SPDX-License-Identifier: BSD-2-Clause */
/* Adding up numbers, for transports alone. */
#ifndef DL2_RANKS_WORLD_NUMBERS_H
#define DL2_RANKS_WORLD_NUMBERS_H

#include "ranks/world.h"

static inline size_t dl2_world_number_size(enum dl2_world_numbers type)
{
    return type == DL2_WORLD_FLOATS ? sizeof(float) : sizeof(double);
}

/* to[i] += from[i] */
static inline void dl2_world_add(enum dl2_world_numbers type, void *to, const void *from,
                                 size_t count)
{
    float *float_sums = to;
    double *double_sums = to;
    const float *floats = from;
    const double *doubles = from;
    if (type == DL2_WORLD_FLOATS)
        for (size_t i = 0; i < count; i++)
            float_sums[i] += floats[i];
    else
        for (size_t i = 0; i < count; i++)
            double_sums[i] += doubles[i];
}

#endif
