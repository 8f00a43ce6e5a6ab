/* SPDX-License-Identifier: BSD-2-Clause */
#include "pixels/resize_kernels.h"

#include <arm_neon.h>

/* 16 columns. */
static inline void down_16(const uint8_t *in, size_t stride, const int16_t *weights, uint32_t taps,
                           int16_t *out)
{
    enum { SHIFT = DL2_RESIZE_WEIGHT_BITS - DL2_RESIZE_BETWEEN_BITS };
    const int32x4_t rounding = vdupq_n_s32(1 << (SHIFT - 1));
    int32x4_t a = rounding, b = rounding, c = rounding, d = rounding;
    for (uint32_t k = 0; k < taps; k++, in += stride) {
        const uint8x16_t row = vld1q_u8(in);
        const int16x8_t low = vreinterpretq_s16_u16(vmovl_u8(vget_low_u8(row)));
        const int16x8_t high = vreinterpretq_s16_u16(vmovl_high_u8(row));
        const int16x8_t weight = vld1q_dup_s16(weights + k);
        a = vmlal_s16(a, vget_low_s16(low), vget_low_s16(weight));
        b = vmlal_high_s16(b, low, weight);
        c = vmlal_s16(c, vget_low_s16(high), vget_low_s16(weight));
        d = vmlal_high_s16(d, high, weight);
    }
    vst1q_s16(out, vcombine_s16(vqshrn_n_s32(a, SHIFT), vqshrn_n_s32(b, SHIFT)));
    vst1q_s16(out + 8, vcombine_s16(vqshrn_n_s32(c, SHIFT), vqshrn_n_s32(d, SHIFT)));
}

static void down_neon(const uint8_t *in, size_t stride, const int16_t *weights, uint32_t taps,
                      size_t count, int16_t *out)
{
    size_t i = 0;
    for (; i + 16 <= count; i += 16)
        down_16(in + i, stride, weights, taps, out + i);
    if (i < count && count >= 16) /* once more, the last sixteen */
        down_16(in + count - 16, stride, weights, taps, out + count - 16);
    else if (i < count)
        dl2_resize_kernels_c.down(in, stride, weights, taps, count, out);
}

static void split_neon(const int16_t *in, size_t count, int16_t *const out[3])
{
    for (size_t i = 0; i < count; i += 8) {
        const int16x8x3_t pixels = vld3q_s16(in + 3 * i);
        vst1q_s16(out[0] + i, pixels.val[0]);
        vst1q_s16(out[1] + i, pixels.val[1]);
        vst1q_s16(out[2] + i, pixels.val[2]);
    }
}

/*
 * Four outputs: pairs of neighboring words are picked out of 8, 16 or 32 that lie in a row, or
 * loaded one by one where the outputs are spread wider than that.
 */
enum spread { NEAR, FAR, WIDE, SINGLE };

static inline __attribute__((always_inline)) int16x4_t across_4(const int16_t *in,
                                                                const struct dl2_filter *filter,
                                                                uint32_t x, const int16_t *weights,
                                                                enum spread spread)
{
    enum {
        SHIFT = DL2_RESIZE_WEIGHT_BITS + DL2_RESIZE_BETWEEN_BITS - DL2_RESIZE_WORD_BITS,
        GROUP = DL2_RESIZE_GROUP
    };
    const uint8x16_t pick = vreinterpretq_u8_u32(vld1q_u32(filter->pick + x));
    const uint32_t *const first = filter->first + x;
    const int16_t *from = in + (spread == SINGLE ? 0 : filter->base[x / 4]);
    int32x4_t a = vdupq_n_s32(0), b = a; /* of the first two outputs, and of the others */
    for (uint32_t p = 0; p < filter->pairs; p++, from += 2, weights += 2 * GROUP) {
        uint8x16_t bytes;
        if (spread == NEAR) {
            bytes = vqtbl1q_u8(vreinterpretq_u8_s16(vld1q_s16(from)), pick);
        } else if (spread == FAR) {
            bytes = vqtbl2q_u8(vld1q_u8_x2((const uint8_t *)from), pick);
        } else if (spread == WIDE) {
            bytes = vqtbl4q_u8(vld1q_u8_x4((const uint8_t *)from), pick);
        } else {
            const int16x4_t ends[4] = {vld1_s16(from + first[0]), vld1_s16(from + first[1]),
                                       vld1_s16(from + first[2]), vld1_s16(from + first[3])};
            const int32x2_t low =
                vzip1_s32(vreinterpret_s32_s16(ends[0]), vreinterpret_s32_s16(ends[1]));
            const int32x2_t high =
                vzip1_s32(vreinterpret_s32_s16(ends[2]), vreinterpret_s32_s16(ends[3]));
            bytes = vreinterpretq_u8_s32(vcombine_s32(low, high));
        }
        const int16x8_t words = vreinterpretq_s16_u8(bytes), weight = vld1q_s16(weights);
        a = vmlal_s16(a, vget_low_s16(words), vget_low_s16(weight));
        b = vmlal_high_s16(b, words, weight);
    }
    const int32x4_t sum = vaddq_s32(vpaddq_s32(a, b), vdupq_n_s32(1 << (SHIFT - 1)));
    return vqshrn_n_s32(sum, SHIFT);
}

static inline __attribute__((always_inline)) void
across_all(const int16_t *in, const struct dl2_filter *filter, int16_t *out, enum spread spread)
{
    const int16_t *weights = filter->weights;
    for (uint32_t x = 0; x < filter->count; x += 16, weights += (size_t)filter->pairs * 32)
        for (uint32_t i = 0; i < 16; i += 4)
            vst1_s16(out + x + i, across_4(in, filter, x + i, weights + 2 * i, spread));
}

static void across_neon(const int16_t *in, const struct dl2_filter *filter, int16_t *out)
{
    if (filter->reach <= 6)
        across_all(in, filter, out, NEAR);
    else if (filter->reach <= 14)
        across_all(in, filter, out, FAR);
    else if (filter->reach <= 30)
        across_all(in, filter, out, WIDE);
    else
        across_all(in, filter, out, SINGLE);
}

static void color_neon(const struct dl2_resize_colors *colors, size_t count, int16_t *const rows[3])
{
    const int16x8_t offset = vdupq_n_s16(colors->luma_offset),
                    middle = vdupq_n_s16(128 << DL2_RESIZE_WORD_BITS);
    for (size_t i = 0; i < count; i += 8) {
        int16x8_t y = vsubq_s16(vld1q_s16(rows[0] + i), offset);
        const int16x8_t cb = vsubq_s16(vld1q_s16(rows[1] + i), middle);
        const int16x8_t cr = vsubq_s16(vld1q_s16(rows[2] + i), middle);
        y = vaddq_s16(y, vqrdmulhq_n_s16(y, colors->luma));
        const int16x8_t red = vaddq_s16(cr, vqrdmulhq_n_s16(cr, colors->red));
        const int16x8_t green =
            vaddq_s16(vqrdmulhq_n_s16(cb, colors->green_cb), vqrdmulhq_n_s16(cr, colors->green_cr));
        const int16x8_t blue = vaddq_s16(vaddq_s16(cb, cb), vqrdmulhq_n_s16(cb, colors->blue));
        vst1q_s16(rows[0] + i, vqaddq_s16(y, red));
        vst1q_s16(rows[1] + i, vqsubq_s16(y, green));
        vst1q_s16(rows[2] + i, vqaddq_s16(y, blue));
    }
}

/* 16 words to bytes, rounded and clipped. */
static inline uint8x16_t bytes_of(const int16_t *in)
{
    return vcombine_u8(vqrshrun_n_s16(vld1q_s16(in), DL2_RESIZE_WORD_BITS),
                       vqrshrun_n_s16(vld1q_s16(in + 8), DL2_RESIZE_WORD_BITS));
}

static void pack_neon(const int16_t *in, size_t count, uint8_t *out)
{
    size_t i = 0;
    for (; i + 16 <= count; i += 16)
        vst1q_u8(out + i, bytes_of(in + i));
    dl2_resize_kernels_c.pack(in + i, count - i, out + i);
}

static void interleave_neon(int16_t *const in[3], size_t count, uint8_t *out)
{
    size_t i = 0;
    for (; i + 16 <= count; i += 16)
        vst3q_u8(out + 3 * i,
                 (uint8x16x3_t){{bytes_of(in[0] + i), bytes_of(in[1] + i), bytes_of(in[2] + i)}});
    if (i < count)
        dl2_resize_kernels_c.interleave((int16_t *[3]){in[0] + i, in[1] + i, in[2] + i}, count - i,
                                        out + 3 * i);
}

/* Four of 16 bytes, as words, to floats. No operation contracts the two (see Makefile.am). */
static inline float32x4_t affine_4(uint16x4_t words, const float *scale, const float *bias)
{
    const float32x4_t value = vcvtq_f32_u32(vmovl_u16(words));
    return vaddq_f32(vmulq_f32(value, vld1q_f32(scale)), vld1q_f32(bias));
}

static inline uint16x4_t bfloat_bits(float32x4_t value)
{
    const uint32x4_t bits = vreinterpretq_u32_f32(value);
    const uint32x4_t odd = vandq_u32(vshrq_n_u32(bits, 16), vdupq_n_u32(1));
    return vshrn_n_u32(vaddq_u32(vaddq_u32(bits, vdupq_n_u32(0x7fff)), odd), 16);
}

static inline uint16x4_t half_bits(float32x4_t value)
{
    return vreinterpret_u16_f16(vcvt_f16_f32(value));
}

static void affine_neon(const uint8_t *in, size_t count, const float *scale, const float *bias,
                        enum dl2_dtype type, void *out)
{
    float *const floats = out;
    uint16_t *const shorts = out;
    if (count < 8) {
        dl2_resize_kernels_c.affine(in, count, scale, bias, type, out);
        return;
    }
    for (size_t i = 0; i < count; i += 8) {
        i = i + 8 <= count ? i : count - 8; /* some of the last ones twice */
        const size_t phase = i % 3;
        const uint16x8_t words = vmovl_u8(vld1_u8(in + i));
        const float32x4_t low = affine_4(vget_low_u16(words), scale + phase, bias + phase);
        const float32x4_t high =
            affine_4(vget_high_u16(words), scale + phase + 4, bias + phase + 4);
        if (type == DL2_FLOAT32) {
            vst1q_f32(floats + i, low);
            vst1q_f32(floats + i + 4, high);
        } else if (type == DL2_BFLOAT16) {
            vst1q_u16(shorts + i, vcombine_u16(bfloat_bits(low), bfloat_bits(high)));
        } else {
            vst1q_u16(shorts + i, vcombine_u16(half_bits(low), half_bits(high)));
        }
    }
}

/* Sixteen columns at a time, which is what compilers make of plain C here. */
static void weigh_bytes_neon(const uint8_t *in, size_t stride, const int32_t *weights,
                             uint32_t taps, size_t count, uint8_t *out)
{
    dl2_resize_kernels_c.weigh_bytes(in, stride, weights, taps, count, out);
}

const struct dl2_resize_kernels dl2_resize_kernels_neon = {
    .name = "neon",
    .lanes = 4,
    .pick_factor = 0x02020202,
    .pick_offset = 0x03020100,
    .down = down_neon,
    .weigh_bytes = weigh_bytes_neon,
    .split = split_neon,
    .across = across_neon,
    .color = color_neon,
    .pack = pack_neon,
    .interleave = interleave_neon,
    .affine = affine_neon,
};
