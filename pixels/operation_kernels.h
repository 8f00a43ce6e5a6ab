/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The inner loops of pixels/operations.h, one table an instruction set. All tables are compiled
 * from the loops in pixels/operation_loops.h, so there is no second version of them but for
 * look_up, of which compilers make no vectors (pixels/operation_x86.c). The loops work on
 * blocks of a fixed size, of which compilers make vectors. No compiler may contract the floating
 * point operations, so every table gives the same bytes. Private to this room and its tests.
 */
#ifndef DL2_PIXELS_OPERATION_KERNELS_H
#define DL2_PIXELS_OPERATION_KERNELS_H

#include <stddef.h>
#include <stdint.h>

enum { DL2_RANGE_TURN = 192 }; /* a multiple of one and of three channels */

/* A walk over an image in a straight line: positions in 16.16 fixed point, as Pillow has them, and
 * what is added for each pixel, modulo 2^32. */
struct dl2_walk {
    uint32_t x, y, step_x, step_y;
};

struct dl2_operation_kernels {
    const char *name; /* "c", "avx2", "avx512" */

    /* Bytes: value + factor * (byte - value), cut to whole numbers from 0 to 255, in place. */
    void (*blend_value)(uint8_t *bytes, size_t count, float value, float factor);
    /* The same with a value for each byte; the result replaces the values. */
    void (*blend)(const uint8_t *bytes, uint8_t *values, size_t count, float factor);
    /* The same of R, G, B with their gray. `count` is of pixels, here and below. */
    void (*blend_gray)(uint8_t *pixels, size_t count, float factor);
    /* BT.601 gray of R, G, B, three times each. */
    void (*gray)(uint8_t *pixels, size_t count);
    /* The sum of these grays. */
    uint64_t (*sum_gray)(const uint8_t *pixels, size_t count);
    /* Turns the hue by a part of 255 in Pillow's HSV. */
    void (*turn_hue)(uint8_t *pixels, size_t count, uint8_t turn);
    /* Inverts the bytes from `first` to 255; keeps the bits of a mask. */
    void (*invert_from)(uint8_t *bytes, size_t count, uint8_t first);
    void (*mask)(uint8_t *bytes, size_t count, uint8_t mask);
    /* The least and the greatest of every DL2_RANGE_TURN-th byte; 255 and 0 where there is none. */
    void (*range)(const uint8_t *bytes, size_t count, uint8_t low[DL2_RANGE_TURN],
                  uint8_t high[DL2_RANGE_TURN]);
    /* Replaces each byte by what the table of its channel has for it. `count` is of bytes, of one
     * or three channels. */
    void (*look_up)(uint8_t *bytes, size_t count, size_t channels, uint8_t tables[3][256]);
    /* Copies the pixels of one or three channels on a walk, all of them inside an image of less
     * than 4 GiB. Three bytes may be read and one written behind the pixels. */
    void (*walk)(const uint8_t *in, size_t stride, size_t channels, struct dl2_walk at,
                 size_t count, uint8_t *out);
    /* Pillow's SMOOTH: (the sum of the 3 x 3 neighbors + 4 times the byte) / 13, rounded. `at` is
     * a row; neighbors lie `step` bytes apart across and `stride` down. */
    void (*smooth)(const uint8_t *at, size_t step, size_t stride, size_t count, uint8_t *out);
    /* Weighted sums of `taps` rows, with weights that sum to 2^16: from bytes to words with 8
     * fraction bits; and back, of words that lie `step` apart. */
    void (*blur_down)(const uint8_t *const *rows, const uint32_t *weights, unsigned taps,
                      size_t count, uint16_t *out);
    void (*blur_across)(const uint16_t *in, size_t step, const uint32_t *weights, unsigned taps,
                        size_t count, uint8_t *out);
};

/* The table for a set of enum dl2_simd flags: the best that was built and is allowed. */
const struct dl2_operation_kernels *dl2_operation_kernels_for(unsigned simd_flags);

extern const struct dl2_operation_kernels dl2_operation_kernels_c, dl2_operation_kernels_avx2,
    dl2_operation_kernels_avx512;

#endif
