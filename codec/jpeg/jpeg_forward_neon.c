/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * jpeg_forward.c with NEON. The transform takes a block at a time: a vector has a row of the block
 * or, between the passes, a column.
 */
#include "codec/jpeg/jpeg_forward.h"

#include "codec/jpeg/jpeg_lanes_neon.inc"

/* Half of one color, less shares of the two others, with 16 fraction bits. No sum is below 0. */
static inline uint8x8_t chroma_of(uint16x8_t plus, uint16x8_t minus, uint16_t minus_factor,
                                  uint16x8_t other, uint16_t other_factor)
{
    const uint32x4_t middle = vdupq_n_u32((128 << 16) + (1 << 15) - 1);
    uint32x4_t low = vmlal_n_u16(middle, vget_low_u16(plus), 32768);
    uint32x4_t high = vmlal_n_u16(middle, vget_high_u16(plus), 32768);
    low = vmlsl_n_u16(low, vget_low_u16(minus), minus_factor);
    high = vmlsl_n_u16(high, vget_high_u16(minus), minus_factor);
    low = vmlsl_n_u16(low, vget_low_u16(other), other_factor);
    high = vmlsl_n_u16(high, vget_high_u16(other), other_factor);
    return vmovn_u16(vcombine_u16(vshrn_n_u32(low, 16), vshrn_n_u32(high, 16)));
}

static inline uint8x8_t luma_of(uint16x8_t r, uint16x8_t g, uint16x8_t b)
{
    uint32x4_t low = vmull_n_u16(vget_low_u16(r), 19595);
    uint32x4_t high = vmull_n_u16(vget_high_u16(r), 19595);
    low = vmlal_n_u16(low, vget_low_u16(g), 38470);
    high = vmlal_n_u16(high, vget_high_u16(g), 38470);
    low = vmlal_n_u16(low, vget_low_u16(b), 7471);
    high = vmlal_n_u16(high, vget_high_u16(b), 7471);
    return vmovn_u16(vcombine_u16(vrshrn_n_u32(low, 16), vrshrn_n_u32(high, 16)));
}

static void ycc_neon(const uint8_t *rgb, size_t count, uint8_t *y, uint8_t *cb, uint8_t *cr)
{
    for (size_t i = 0; i < count; i += 8) {
        const uint8x8x3_t pixels = vld3_u8(rgb + 3 * i);
        const uint16x8_t r = vmovl_u8(pixels.val[0]), g = vmovl_u8(pixels.val[1]);
        const uint16x8_t b = vmovl_u8(pixels.val[2]);
        vst1_u8(y + i, luma_of(r, g, b));
        vst1_u8(cb + i, chroma_of(b, r, 11059, g, 21709));
        vst1_u8(cr + i, chroma_of(r, g, 27439, b, 5329));
    }
}

static void halve_neon(const uint8_t *above, const uint8_t *below, size_t count, uint8_t *out)
{
    const uint16x8_t biases = vreinterpretq_u16_u32(vdupq_n_u32(1 | 2 << 16));
    for (size_t i = 0; i < count; i += 16) {
        const uint16x8_t biased = vpadalq_u8(biases, vld1q_u8(above + i));
        vst1_u8(out + i / 2, vshrn_n_u16(vpadalq_u8(biased, vld1q_u8(below + i)), 2));
    }
}

/* forward_pass() of jpeg_forward.c, of four columns: sums with all bits. */
static inline __attribute__((always_inline)) void forward_sums(const int16x4_t r[8],
                                                               int32x4_t out[8])
{
    const int16x4_t sum07 = vadd_s16(r[0], r[7]), minus07 = vsub_s16(r[0], r[7]);
    const int16x4_t sum16 = vadd_s16(r[1], r[6]), minus16 = vsub_s16(r[1], r[6]);
    const int16x4_t sum25 = vadd_s16(r[2], r[5]), minus25 = vsub_s16(r[2], r[5]);
    const int16x4_t sum34 = vadd_s16(r[3], r[4]), minus34 = vsub_s16(r[3], r[4]);
    /* Even part */
    const int16x4_t even0 = vadd_s16(sum07, sum34), even3 = vsub_s16(sum07, sum34);
    const int16x4_t even1 = vadd_s16(sum16, sum25), even2 = vsub_s16(sum16, sum25);
    out[0] = vshll_n_s16(vadd_s16(even0, even1), 13);
    out[4] = vshll_n_s16(vsub_s16(even0, even1), 13);
    out[2] = two_products(even3, 4433 + 6270, even2, 4433);
    out[6] = two_products(even3, 4433, even2, 4433 - 15137);
    /* Odd part */
    const int16x4_t z3 = vadd_s16(minus34, minus16), z4 = vadd_s16(minus25, minus07);
    const int32x4_t odd_z3 = two_products(z3, 9633 - 16069, z4, 9633);
    const int32x4_t odd_z4 = two_products(z3, 9633, z4, 9633 - 3196);
    out[7] = vmlal_n_s16(vmlal_n_s16(odd_z3, minus34, 2446 - 7373), minus07, -7373);
    out[1] = vmlal_n_s16(vmlal_n_s16(odd_z4, minus34, -7373), minus07, 12299 - 7373);
    out[5] = vmlal_n_s16(vmlal_n_s16(odd_z4, minus25, 16819 - 20995), minus16, -20995);
    out[3] = vmlal_n_s16(vmlal_n_s16(odd_z3, minus25, -20995), minus16, 25172 - 20995);
}

/* Where the bytes of a block in zigzag order are in natural order. */
#define BYTES_(a, b, c, d, e, f, g, h)                                                             \
    2 * (a), 2 * (a) + 1, 2 * (b), 2 * (b) + 1, 2 * (c), 2 * (c) + 1, 2 * (d), 2 * (d) + 1,        \
        2 * (e), 2 * (e) + 1, 2 * (f), 2 * (f) + 1, 2 * (g), 2 * (g) + 1, 2 * (h), 2 * (h) + 1
#define BYTES(list) BYTES_(list)
static const uint8_t natural_bytes[128] = {
    BYTES(DL2_JPEG_NATURAL_0), BYTES(DL2_JPEG_NATURAL_1), BYTES(DL2_JPEG_NATURAL_2),
    BYTES(DL2_JPEG_NATURAL_3), BYTES(DL2_JPEG_NATURAL_4), BYTES(DL2_JPEG_NATURAL_5),
    BYTES(DL2_JPEG_NATURAL_6), BYTES(DL2_JPEG_NATURAL_7),
};

static inline __attribute__((always_inline)) void store_zigzag(const int16x8_t r[8], int16_t *out)
{
    uint8x16x4_t first, second;
#pragma GCC unroll 4
    for (int i = 0; i < 4; i++) {
        first.val[i] = vreinterpretq_u8_s16(r[i]);
        second.val[i] = vreinterpretq_u8_s16(r[4 + i]);
    }
#pragma GCC unroll 8
    for (int i = 0; i < 8; i++) {
        /* A table gives 0 for what is beyond it, or leaves what is there. */
        const uint8x16_t at = vld1q_u8(natural_bytes + 16 * i);
        const uint8x16_t beyond = vsubq_u8(at, vdupq_n_u8(64));
        const uint8x16_t eight = i == 0 || i == 3 ? vqtbl4q_u8(first, at)
                                 : i == 4 || i == 7
                                     ? vqtbl4q_u8(second, beyond)
                                     : vqtbx4q_u8(vqtbl4q_u8(first, at), second, beyond);
        vst1q_s16(out + 8 * i, vreinterpretq_s16_u8(eight));
    }
}

static void transform_neon(const uint8_t *samples, size_t stride, size_t count, int16_t *out)
{
    const uint8x8_t middle = vdup_n_u8(128);
    for (size_t n = 0; n < count; n++, samples += 8, out += 64) {
        int16x8_t r[8];
        int16x4_t low[8], high[8];
        int32x4_t low_sums[8], high_sums[8];
#pragma GCC unroll 8
        for (size_t y = 0; y < 8; y++)
            r[y] = vreinterpretq_s16_u16(vsubl_u8(vld1_u8(samples + y * stride), middle));
        transpose_words(r);
        halves(r, low, high);
        forward_sums(low, low_sums);
        forward_sums(high, high_sums);
#pragma GCC unroll 8
        for (int i = 0; i < 8; i++)
            r[i] = vrshrn_high_n_s32(vrshrn_n_s32(low_sums[i], 11), high_sums[i], 11);
        transpose_words(r);
        halves(r, low, high);
        forward_sums(low, low_sums);
        forward_sums(high, high_sums);
#pragma GCC unroll 8
        for (int i = 0; i < 8; i++)
            r[i] = vrshrn_high_n_s32(vrshrn_n_s32(low_sums[i], 15), high_sums[i], 15);
        store_zigzag(r, out);
    }
}

/* The upper half of each product. */
static inline uint16x8_t high_products(uint16x8_t a, uint16x8_t b)
{
    const uint32x4_t low = vmull_u16(vget_low_u16(a), vget_low_u16(b));
    const uint32x4_t high = vmull_high_u16(a, b);
    return vuzp2q_u16(vreinterpretq_u16_u32(low), vreinterpretq_u16_u32(high));
}

/* Quantizes eight coefficients; bytes of 255 say which of them aren't zero. */
static inline uint8x8_t quantize_eight(const int16_t *block,
                                       const struct dl2_jpeg_divisors *divisors, uint16_t *out,
                                       size_t at)
{
    const uint16x8_t bias = vdupq_n_u16(DL2_JPEG_BIAS);
    const int16x8_t in = vld1q_s16(block + at);
    const uint16x8_t n =
        vaddq_u16(vreinterpretq_u16_s16(vabsq_s16(in)), vld1q_u16(divisors->half + at));
    const uint16x8_t magnitude = high_products(high_products(n, vld1q_u16(divisors->factor + at)),
                                               vld1q_u16(divisors->scale + at));
    vst1q_u16(out + at,
              vbslq_u16(vcltzq_s16(in), vsubq_u16(bias, magnitude), vaddq_u16(bias, magnitude)));
    return vmovn_u16(vtstq_u16(magnitude, magnitude));
}

static uint64_t quantize_neon(const int16_t *block, const struct dl2_jpeg_divisors *divisors,
                              uint16_t *out)
{
    /* A bit for each of eight bytes. */
    const uint8x16_t bits = vreinterpretq_u8_u64(vdupq_n_u64(0x8040201008040201));
    uint8x16_t flags[4];
#pragma GCC unroll 4
    for (size_t i = 0; i < 4; i++)
        flags[i] = vandq_u8(vcombine_u8(quantize_eight(block, divisors, out, 16 * i),
                                        quantize_eight(block, divisors, out, 16 * i + 8)),
                            bits);
    const uint8x16_t pairs = vpaddq_u8(flags[0], flags[1]), more = vpaddq_u8(flags[2], flags[3]);
    const uint8x16_t fours = vpaddq_u8(pairs, more);
    return vgetq_lane_u64(vreinterpretq_u64_u8(vpaddq_u8(fours, fours)), 0);
}

const struct dl2_jpeg_forward dl2_jpeg_forward_neon = {
    .name = "neon",
    .ycc = ycc_neon,
    .halve = halve_neon,
    .transform = transform_neon,
    .quantize = quantize_neon,
};
