/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * islow and the reduced sizes with NEON, a block at a time: a vector has a row of the block or,
 * between the passes, a column. The arithmetic is that of jpeg_inverse.c, which names its parts.
 */
#include "codec/jpeg/jpeg_inverse.h"

#include "codec/jpeg/jpeg_lanes_neon.inc"

#include <string.h>

/* Row by row, in natural order. Takes the coefficients away. */
static inline __attribute__((always_inline)) void
load_rows(const struct dl2_jpeg_inverse_job *block, int16x8_t r[8])
{
    uint8_t *const bytes = (uint8_t *)block->coefficients;
    const uint8x16x4_t first = vld1q_u8_x4(bytes), second = vld1q_u8_x4(bytes + 64);
    const int16x8_t zero = vdupq_n_s16(0);
#pragma GCC unroll 8
    for (int i = 0; i < 8; i++) {
        /* Where the two bytes of each coefficient are; a table gives 0 for what is beyond it. */
        const uint8x8_t low = vshl_n_u8(vld1_u8(dl2_jpeg_zigzag + 8 * i), 1);
        const uint8x8_t high = vadd_u8(low, vdup_n_u8(1));
        const uint8x16_t at = vcombine_u8(vzip1_u8(low, high), vzip2_u8(low, high));
        const uint8x16_t beyond = vsubq_u8(at, vdupq_n_u8(64));
        r[i] = vreinterpretq_s16_u8(i == 0   ? vqtbl4q_u8(first, at)
                                    : i == 7 ? vqtbl4q_u8(second, beyond)
                                             : vqtbx4q_u8(vqtbl4q_u8(first, at), second, beyond));
    }
#pragma GCC unroll 8
    for (int i = 0; i < 8; i++)
        vst1q_s16(block->coefficients + 8 * i, zero);
}

/* The rows that quantization divided. False where a column passes DL2_JPEG_COLUMN_LIMIT. */
static inline __attribute__((always_inline)) bool multiply_rows(int16x8_t r[8],
                                                                const uint16_t *steps)
{
    uint16x8_t columns = vdupq_n_u16(0);
#pragma GCC unroll 8
    for (int i = 0; i < 8; i++) {
        r[i] = vmulq_s16(r[i], vreinterpretq_s16_u16(vld1q_u16(steps + 8 * i)));
        columns = vqaddq_u16(columns, vreinterpretq_u16_s16(vabsq_s16(r[i])));
    }
    return vmaxvq_u16(columns) < DL2_JPEG_COLUMN_LIMIT;
}

/* islow_pass() of jpeg_inverse.c, of four columns: sums with all bits, and the rounding of
 * `shift`. */
static inline __attribute__((always_inline)) void islow_sums(const int16x4_t r[8], const int shift,
                                                             int32x4_t out[8])
{
    const int32x4_t rounding = vdupq_n_s32(1 << (shift - 1));
    const int32x4_t even3 = two_products(r[2], 4433 + 6270, r[6], 4433);
    const int32x4_t even2 = two_products(r[2], 4433, r[6], 4433 - 15137);
    const int32x4_t even0 = vaddq_s32(vshll_n_s16(vadd_s16(r[0], r[4]), 13), rounding);
    const int32x4_t even1 = vaddq_s32(vshll_n_s16(vsub_s16(r[0], r[4]), 13), rounding);
    const int32x4_t sum0 = vaddq_s32(even0, even3), sum3 = vsubq_s32(even0, even3);
    const int32x4_t sum1 = vaddq_s32(even1, even2), sum2 = vsubq_s32(even1, even2);
    const int16x4_t z3 = vadd_s16(r[7], r[3]), z4 = vadd_s16(r[5], r[1]);
    const int32x4_t odd_z3 = two_products(z3, 9633 - 16069, z4, 9633);
    const int32x4_t odd_z4 = two_products(z3, 9633, z4, 9633 - 3196);
    const int32x4_t odd0 = vmlal_n_s16(vmlal_n_s16(odd_z3, r[7], 2446 - 7373), r[1], -7373);
    const int32x4_t odd3 = vmlal_n_s16(vmlal_n_s16(odd_z4, r[7], -7373), r[1], 12299 - 7373);
    const int32x4_t odd1 = vmlal_n_s16(vmlal_n_s16(odd_z4, r[5], 16819 - 20995), r[3], -20995);
    const int32x4_t odd2 = vmlal_n_s16(vmlal_n_s16(odd_z3, r[5], -20995), r[3], 25172 - 20995);
    out[0] = vaddq_s32(sum0, odd3);
    out[7] = vsubq_s32(sum0, odd3);
    out[1] = vaddq_s32(sum1, odd2);
    out[6] = vsubq_s32(sum1, odd2);
    out[2] = vaddq_s32(sum2, odd1);
    out[5] = vsubq_s32(sum2, odd1);
    out[3] = vaddq_s32(sum3, odd0);
    out[4] = vsubq_s32(sum3, odd0);
}

/* Words to samples, limited. */
static inline uint8x8_t samples_of(int16x8_t words)
{
    return veor_u8(vreinterpret_u8_s8(vqmovn_s16(words)), vdup_n_u8(128));
}

/* Columns of words to rows of samples. */
static inline __attribute__((always_inline)) void store_columns(const int16x8_t c[8], uint8_t *out,
                                                                size_t stride)
{
    uint8x16_t t[4];
    uint16x8_t u[4];
    /* t[i]: columns i and i + 4, each of eight rows */
#pragma GCC unroll 4
    for (int i = 0; i < 4; i++)
        t[i] = vcombine_u8(samples_of(c[i]), samples_of(c[i + 4]));
#pragma GCC unroll 2
    for (int i = 0; i < 2; i++) {
        u[i] = vreinterpretq_u16_u8(vtrn1q_u8(t[2 * i], t[2 * i + 1]));
        u[i + 2] = vreinterpretq_u16_u8(vtrn2q_u8(t[2 * i], t[2 * i + 1]));
    }
    /* v[i]: four columns of row i, of row i + 4, and the other four of both */
    const uint32x4_t v[4] = {
        vreinterpretq_u32_u16(vtrn1q_u16(u[0], u[1])),
        vreinterpretq_u32_u16(vtrn1q_u16(u[2], u[3])),
        vreinterpretq_u32_u16(vtrn2q_u16(u[0], u[1])),
        vreinterpretq_u32_u16(vtrn2q_u16(u[2], u[3])),
    };
#pragma GCC unroll 4
    for (size_t i = 0; i < 4; i++) {
        const uint32x4_t rows = vcombine_u32(vzip1_u32(vget_low_u32(v[i]), vget_high_u32(v[i])),
                                             vzip2_u32(vget_low_u32(v[i]), vget_high_u32(v[i])));
        vst1_u8(out + i * stride, vget_low_u8(vreinterpretq_u8_u32(rows)));
        vst1_u8(out + (i + 4) * stride, vget_high_u8(vreinterpretq_u8_u32(rows)));
    }
}

static bool inverse_8_neon(const struct dl2_jpeg_inverse_job *blocks, const uint16_t *steps,
                           size_t stride)
{
    int16x8_t r[8];
    int16x4_t low[8], high[8];
    int32x4_t sums[8];
    load_rows(blocks, r);
    const bool good = multiply_rows(r, steps);
    halves(r, low, high);
    islow_sums(low, 11, sums);
#pragma GCC unroll 8
    for (int i = 0; i < 8; i++)
        low[i] = vqshrn_n_s32(sums[i], 11);
    islow_sums(high, 11, sums);
#pragma GCC unroll 8
    for (int i = 0; i < 8; i++)
        r[i] = vcombine_s16(low[i], vqshrn_n_s32(sums[i], 11));
    transpose_words(r);
    /* Shifted by 16 and by 2, nothing passes 16 bits. */
    halves(r, low, high);
    islow_sums(low, 18, sums);
#pragma GCC unroll 8
    for (int i = 0; i < 8; i++)
        low[i] = vshrn_n_s32(sums[i], 16);
    islow_sums(high, 18, sums);
#pragma GCC unroll 8
    for (int i = 0; i < 8; i++)
        r[i] = vshrq_n_s16(vcombine_s16(low[i], vshrn_n_s32(sums[i], 16)), 2);
    store_columns(r, blocks->out, stride);
    return good;
}

/* reduced_4_pass() of jpeg_inverse.c, of four columns, as islow_sums(). */
static inline __attribute__((always_inline)) void reduced_4_sums(const int16x4_t r[8],
                                                                 const int shift, int32x4_t out[4])
{
    const int32x4_t even0 = vaddq_s32(vshll_n_s16(r[0], 14), vdupq_n_s32(1 << (shift - 1)));
    const int32x4_t even2 = two_products(r[2], 15137, r[6], -6270);
    const int32x4_t sum0 = vaddq_s32(even0, even2), sum2 = vsubq_s32(even0, even2);
    const int32x4_t odd2 =
        vaddq_s32(two_products(r[1], 20995, r[3], 7373), two_products(r[5], -4926, r[7], -4176));
    const int32x4_t odd0 =
        vaddq_s32(two_products(r[1], 8697, r[3], -17799), two_products(r[5], 11893, r[7], -1730));
    out[0] = vaddq_s32(sum0, odd2);
    out[3] = vsubq_s32(sum0, odd2);
    out[1] = vaddq_s32(sum2, odd0);
    out[2] = vsubq_s32(sum2, odd0);
}

static inline __attribute__((always_inline)) void transpose_4(int16x4_t r[4])
{
    const int32x2_t a = vreinterpret_s32_s16(vtrn1_s16(r[0], r[1]));
    const int32x2_t b = vreinterpret_s32_s16(vtrn2_s16(r[0], r[1]));
    const int32x2_t c = vreinterpret_s32_s16(vtrn1_s16(r[2], r[3]));
    const int32x2_t d = vreinterpret_s32_s16(vtrn2_s16(r[2], r[3]));
    r[0] = vreinterpret_s16_s32(vtrn1_s32(a, c));
    r[1] = vreinterpret_s16_s32(vtrn1_s32(b, d));
    r[2] = vreinterpret_s16_s32(vtrn2_s32(a, c));
    r[3] = vreinterpret_s16_s32(vtrn2_s32(b, d));
}

static bool inverse_4_neon(const struct dl2_jpeg_inverse_job *blocks, const uint16_t *steps,
                           size_t stride)
{
    int16x8_t r[8];
    int16x4_t low[8], high[8], columns[8];
    int32x4_t sums[4];
    load_rows(blocks, r);
    const bool good = multiply_rows(r, steps);
    halves(r, low, high);
    reduced_4_sums(low, 12, sums);
#pragma GCC unroll 4
    for (int i = 0; i < 4; i++)
        columns[i] = vqshrn_n_s32(sums[i], 12);
    reduced_4_sums(high, 12, sums);
#pragma GCC unroll 4
    for (int i = 0; i < 4; i++)
        columns[4 + i] = vqshrn_n_s32(sums[i], 12);
    transpose_4(columns);
    transpose_4(columns + 4);
    reduced_4_sums(columns, 19, sums);
#pragma GCC unroll 4
    for (int i = 0; i < 4; i++)
        low[i] = vshr_n_s16(vshrn_n_s32(sums[i], 16), 3);
    transpose_4(low);
#pragma GCC unroll 2
    for (size_t y = 0; y < 4; y += 2) {
        uint8_t samples[8];
        vst1_u8(samples, samples_of(vcombine_s16(low[y], low[y + 1])));
        memcpy(blocks->out + y * stride, samples, 4);
        memcpy(blocks->out + (y + 1) * stride, samples + 4, 4);
    }
    return good;
}

/* reduced_2_odd() of jpeg_inverse.c, of four columns. */
static inline int32x4_t reduced_2_odds(int16x4_t in1, int16x4_t in3, int16x4_t in5, int16x4_t in7)
{
    return vaddq_s32(two_products(in1, 29692, in3, -10426), two_products(in5, 6967, in7, -5906));
}

static bool inverse_2_neon(const struct dl2_jpeg_inverse_job *blocks, const uint16_t *steps,
                           size_t stride)
{
    static const int16_t factors[4] = {29692, -10426, 6967, -5906};
    int16x8_t r[8], words[2];
    int16x4_t low[8], high[8];
    int32x2_t lone[2]; /* of each row of sums the first two, with all bits */
    load_rows(blocks, r);
    const bool good = multiply_rows(r, steps);
    halves(r, low, high);
    const int32x4_t odd_low = reduced_2_odds(low[1], low[3], low[5], low[7]);
    const int32x4_t odd_high = reduced_2_odds(high[1], high[3], high[5], high[7]);
    const int32x4_t even_low = vaddq_s32(vshll_n_s16(low[0], 15), vdupq_n_s32(1 << 12));
    const int32x4_t even_high = vaddq_s32(vshll_n_s16(high[0], 15), vdupq_n_s32(1 << 12));
    const int32x4_t sum = vshrq_n_s32(vaddq_s32(even_low, odd_low), 13);
    const int32x4_t minus = vshrq_n_s32(vsubq_s32(even_low, odd_low), 13);
    words[0] = vcombine_s16(vqmovn_s32(sum), vqshrn_n_s32(vaddq_s32(even_high, odd_high), 13));
    words[1] = vcombine_s16(vqmovn_s32(minus), vqshrn_n_s32(vsubq_s32(even_high, odd_high), 13));
    lone[0] = vget_low_s32(sum);
    lone[1] = vget_low_s32(minus);
    /* Columns 1, 3, 5, 7 of both rows, times the factors and summed. */
    const int16x8_t odds = vuzp2q_s16(words[0], words[1]);
    const int16x4_t weights = vld1_s16(factors);
    const int32x4_t pairs =
        vpaddq_s32(vmull_s16(vget_low_s16(odds), weights), vmull_s16(vget_high_s16(odds), weights));
    const int32x2_t odd = vpadd_s32(vget_low_s32(pairs), vget_high_s32(pairs));
    const int32x2_t even =
        vadd_s32(vshl_n_s32(vzip1_s32(lone[0], lone[1]), 15), vdup_n_s32(1 << 19));
    const int32x4_t both = vcombine_s32(vadd_s32(even, odd), vsub_s32(even, odd));
    const int16x4_t narrow = vmovn_s32(vshrq_n_s32(both, 20));
    const uint8x8_t samples = samples_of(vcombine_s16(narrow, narrow));
    blocks->out[0] = vget_lane_u8(samples, 0);
    blocks->out[1] = vget_lane_u8(samples, 2);
    blocks->out[stride] = vget_lane_u8(samples, 1);
    blocks->out[stride + 1] = vget_lane_u8(samples, 3);
    return good;
}

const struct dl2_jpeg_kernels dl2_jpeg_kernels_neon = {
    .name = "neon",
    .lanes = {1, 1, 1, 1},
    .inverse = {dl2_jpeg_inverse_1, inverse_2_neon, inverse_4_neon, inverse_8_neon},
};
