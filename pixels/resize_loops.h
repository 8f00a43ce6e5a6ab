/* SPDX-License-Identifier: BSD-2-Clause */
/* The function of a struct dl2_resize_kernels that compilers make vectors of, compiled once for
 * each instruction set. */
#ifndef DL2_PIXELS_RESIZE_LOOPS_H
#define DL2_PIXELS_RESIZE_LOOPS_H

#include "pixels/resize_kernels.h"

static inline __attribute__((always_inline)) void weigh_block(const uint8_t *in, size_t stride,
                                                              const int32_t *weights, uint32_t taps,
                                                              size_t count, uint8_t *out)
{
    enum { LARGEST = 16 };
    int32_t sums[LARGEST];
    for (size_t i = 0; i < count; i++)
        sums[i] = 1 << (DL2_RESIZE_EXACT_BITS - 1);
    for (uint32_t k = 0; k < taps; k++, in += stride)
        for (size_t i = 0; i < count; i++)
            sums[i] += in[i] * weights[k];
    for (size_t i = 0; i < count; i++) {
        const int32_t value = sums[i] >> DL2_RESIZE_EXACT_BITS;
        out[i] = (uint8_t)(value < 0 ? 0 : value > 255 ? 255 : value);
    }
}

static void weigh_bytes_loop(const uint8_t *in, size_t stride, const int32_t *weights,
                             uint32_t taps, size_t count, uint8_t *out)
{
    enum { BLOCK = 16 }; /* a fixed size, so that the sums stay in registers */
    size_t i = 0;
    for (; i + BLOCK <= count; i += BLOCK)
        weigh_block(in + i, stride, weights, taps, BLOCK, out + i);
    for (; i < count; i++)
        weigh_block(in + i, stride, weights, taps, 1, out + i);
}

#endif
