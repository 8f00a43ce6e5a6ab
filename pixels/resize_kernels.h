/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The inner loops of the fused transform, one table an instruction set: plain C (resize_kernels.c),
 * AVX2, AVX-512 and NEON (resize_avx2.c, resize_avx512.c, resize_neon.c). All are integer
 * arithmetic but for the last step to floats, which no compiler may contract, so every table gives
 * the same bytes. Private to this room and its tests.
 *
 * Fixed point: weights have 14 fraction bits and sum to 1 exactly; what the vertical pass leaves
 * has 7, what the horizontal pass leaves has 6, so that colors can be converted in 16 bits without
 * losing what lies beyond 0 and 255 on the way.
 */
#ifndef DL2_PIXELS_RESIZE_KERNELS_H
#define DL2_PIXELS_RESIZE_KERNELS_H

#include "pixels/pixel_format.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    DL2_RESIZE_WEIGHT_BITS = 14,
    DL2_RESIZE_BETWEEN_BITS = 7,
    DL2_RESIZE_WORD_BITS = 6,
    DL2_RESIZE_EXACT_BITS = 22, /* of the weights of whole images, as Pillow has them */
    DL2_RESIZE_GROUP = 16,      /* outputs of a row that are made together */
    /* Kernels may read and write this many 16-bit words behind a row; rows are padded by it. */
    DL2_RESIZE_PADDING = 96,
    DL2_RESIZE_PHASES = 48, /* of a row's scales and biases */
};

/*
 * The filter along one axis: output i is the sum of `pairs` pairs of samples from first[i] on. The
 * weights of DL2_RESIZE_GROUP outputs stand together for columns, of one output for rows, pair by
 * pair; where an output has fewer taps than the others its last weights are 0.
 */
struct dl2_filter {
    uint32_t from, samples; /* the samples of the plane that have a part in it */
    uint32_t count;         /* outputs, for columns rounded up to whole groups */
    uint32_t pairs;
    const uint32_t *first; /* of each output, counted from `from` */
    const uint32_t *taps;  /* of each output, those of weight 0 at the end left out */
    const int16_t *weights;
    /*
     * For columns, how to gather a vector of inputs: where each `lanes` outputs' first sample lies,
     * and for each output which words from there to pick (dl2_resize_kernels.pick_...).
     */
    const uint32_t *base;
    const uint32_t *pick;
    uint32_t reach; /* the farthest first sample from its base */
};

/* YCbCr to RGB: how much more than 1, 1, 2 (times luma, Cr in red, Cb in
 * blue), 15 fraction bits. */
struct dl2_resize_colors {
    int16_t luma_offset; /* 6 fraction bits */
    int16_t luma, red, green_cb, green_cr, blue;
};

struct dl2_resize_kernels {
    const char *name; /* "c", "neon", "avx2", "avx512" */
    /* How `pick` is made for this table: (first - base) * pick_factor + pick_offset. */
    uint32_t lanes, pick_factor, pick_offset;

    /* Down: `count` words, each the weighted sum of `taps` bytes that lie `stride` apart,
     * saturated. */
    void (*down)(const uint8_t *in, size_t stride, const int16_t *weights, uint32_t taps,
                 size_t count, int16_t *out);
    /* The same of whole images (resize_image.c), to bytes: weights of DL2_RESIZE_EXACT_BITS,
     * rounded and clipped. */
    void (*weigh_bytes)(const uint8_t *in, size_t stride, const int32_t *weights, uint32_t taps,
                        size_t count, uint8_t *out);
    /* Interleaved R, G, B to three rows of `count` words. */
    void (*split)(const int16_t *in, size_t count, int16_t *const out[3]);
    /* Across: filter->count words. Reads up to DL2_RESIZE_PADDING words behind the last sample. */
    void (*across)(const int16_t *in, const struct dl2_filter *filter, int16_t *out);
    /* Y, Cb, Cr to R, G, B, in place. */
    void (*color)(const struct dl2_resize_colors *colors, size_t count, int16_t *const rows[3]);
    /* Words to bytes, rounded and clipped. Exactly `count` are written here and below. */
    void (*pack)(const int16_t *in, size_t count, uint8_t *out);
    /* The same of three rows, interleaved; they may be one. 3 * count bytes. */
    void (*interleave)(int16_t *const in[3], size_t count, uint8_t *out);
    /* byte * scale + bias, as a float type. Value i has scale[i % 3] and bias[i % 3]: each has
     * DL2_RESIZE_PHASES values, which come round every three. */
    void (*affine)(const uint8_t *in, size_t count, const float *scale, const float *bias,
                   enum dl2_dtype type, void *out);
};

/* The table for a set of enum dl2_simd flags: the best that was built and is allowed. */
const struct dl2_resize_kernels *dl2_resize_kernels_for(unsigned simd_flags);

extern const struct dl2_resize_kernels dl2_resize_kernels_c, dl2_resize_kernels_avx2,
    dl2_resize_kernels_avx512, dl2_resize_kernels_neon;

#endif
