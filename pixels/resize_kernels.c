/* SPDX-License-Identifier: BSD-2-Clause */
#include "config.h"

#include "common/half.h"
#include "common/simd.h"
#include "pixels/resize_kernels.h"

/* Blocks of a fixed size are what compilers make vectors of. */
enum { BLOCK = 16 };

static void down_c(const uint8_t *in, size_t stride, const int16_t *weights, uint32_t taps,
                   size_t count, int16_t *out)
{
    /* No weights of a filter add up to less than -1, so that the lower end is never reached. */
    enum { SHIFT = DL2_RESIZE_WEIGHT_BITS - DL2_RESIZE_BETWEEN_BITS, LARGEST = INT16_MAX << SHIFT };
    size_t start = 0;
    for (; start + BLOCK <= count; start += BLOCK) {
        int32_t sums[BLOCK];
        for (size_t i = 0; i < BLOCK; i++)
            sums[i] = 1 << (SHIFT - 1);
        for (uint32_t k = 0; k < taps; k++) {
            const uint8_t *row = in + k * stride + start;
            const int32_t weight = weights[k];
            for (size_t i = 0; i < BLOCK; i++)
                sums[i] += row[i] * weight;
        }
        for (size_t i = 0; i < BLOCK; i++)
            out[start + i] = (int16_t)(sums[i] < LARGEST ? sums[i] >> SHIFT : INT16_MAX);
    }
    for (; start < count; start++) {
        int32_t sum = 1 << (SHIFT - 1);
        for (uint32_t k = 0; k < taps; k++)
            sum += in[k * stride + start] * weights[k];
        out[start] = (int16_t)(sum < LARGEST ? sum >> SHIFT : INT16_MAX);
    }
}

/* Whole images. */
static inline __attribute__((always_inline)) void weigh_block(const uint8_t *in, size_t stride,
                                                              const int32_t *weights, uint32_t taps,
                                                              size_t count, uint8_t *out)
{
    int32_t sums[BLOCK];
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

static void weigh_bytes_c(const uint8_t *in, size_t stride, const int32_t *weights, uint32_t taps,
                          size_t count, uint8_t *out)
{
    size_t i = 0;
    for (; i + BLOCK <= count; i += BLOCK)
        weigh_block(in + i, stride, weights, taps, BLOCK, out + i);
    for (; i < count; i++)
        weigh_block(in + i, stride, weights, taps, 1, out + i);
}

static void split_c(const int16_t *in, size_t count, int16_t *const out[3])
{
    for (size_t i = 0; i < count; i++)
        for (size_t c = 0; c < 3; c++)
            out[c][i] = in[3 * i + c];
}

static void across_c(const int16_t *in, const struct dl2_filter *filter, int16_t *out)
{
    enum {
        SHIFT = DL2_RESIZE_WEIGHT_BITS + DL2_RESIZE_BETWEEN_BITS - DL2_RESIZE_WORD_BITS,
        GROUP = DL2_RESIZE_GROUP
    };
    for (uint32_t i = 0; i < filter->count; i++) {
        const int16_t *weights =
            filter->weights + (size_t)(i / GROUP) * filter->pairs * 2 * GROUP + i % GROUP * 2;
        const int16_t *from = in + filter->first[i];
        int32_t sum = 1 << (SHIFT - 1);
        for (uint32_t p = 0; p < filter->pairs; p++, from += 2, weights += 2 * GROUP)
            sum += from[0] * weights[0] + from[1] * weights[1];
        out[i] = (int16_t)(sum >> SHIFT);
    }
}

/* A product with 15 fraction bits, rounded, as pmulhrsw has it. */
static int32_t times(int32_t a, int32_t b)
{
    return (a * b + (1 << 14)) >> 15;
}

static int32_t saturate(int32_t value)
{
    return value < INT16_MIN ? INT16_MIN : value > INT16_MAX ? INT16_MAX : value;
}

static void color_c(const struct dl2_resize_colors *colors, size_t count, int16_t *const rows[3])
{
    for (size_t i = 0; i < count; i++) {
        const int32_t luma = rows[0][i] - colors->luma_offset;
        const int32_t y = luma + times(luma, colors->luma);
        const int32_t cb = rows[1][i] - (128 << DL2_RESIZE_WORD_BITS);
        const int32_t cr = rows[2][i] - (128 << DL2_RESIZE_WORD_BITS);
        rows[0][i] = (int16_t)saturate(y + cr + times(cr, colors->red));
        rows[1][i] =
            (int16_t)saturate(y - (times(cb, colors->green_cb) + times(cr, colors->green_cr)));
        rows[2][i] = (int16_t)saturate(y + 2 * cb + times(cb, colors->blue));
    }
}

static uint8_t byte_of(int16_t word)
{
    const int32_t value = (word + (1 << (DL2_RESIZE_WORD_BITS - 1))) >> DL2_RESIZE_WORD_BITS;
    return (uint8_t)(value < 0 ? 0 : value > 255 ? 255 : value);
}

static void pack_c(const int16_t *in, size_t count, uint8_t *out)
{
    for (size_t i = 0; i < count; i++)
        out[i] = byte_of(in[i]);
}

static void interleave_c(int16_t *const in[3], size_t count, uint8_t *out)
{
    for (size_t i = 0; i < count; i++)
        for (size_t c = 0; c < 3; c++)
            out[3 * i + c] = byte_of(in[c][i]);
}

static void affine_c(const uint8_t *in, size_t count, const float *scale, const float *bias,
                     enum dl2_dtype type, void *out)
{
    for (size_t i = 0; i < count; i++) {
        const float value = in[i] * scale[i % 3] + bias[i % 3];
        if (type == DL2_FLOAT32)
            ((float *)out)[i] = value;
        else
            ((uint16_t *)out)[i] =
                type == DL2_BFLOAT16 ? dl2_float_to_bfloat(value) : dl2_float_to_half(value);
    }
}

const struct dl2_resize_kernels dl2_resize_kernels_c = {
    .name = "c",
    .lanes = 1,
    .down = down_c,
    .weigh_bytes = weigh_bytes_c,
    .split = split_c,
    .across = across_c,
    .color = color_c,
    .pack = pack_c,
    .interleave = interleave_c,
    .affine = affine_c,
};

const struct dl2_resize_kernels *dl2_resize_kernels_for(unsigned simd_flags)
{
    return DL2_SIMD_BEST(dl2_resize_kernels, simd_flags);
}
