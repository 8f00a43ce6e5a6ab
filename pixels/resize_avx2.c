/* SPDX-License-Identifier: BSD-2-Clause */
#include "pixels/resize_kernels.h"

#include "common/vectors.h"

typedef uint32_t half_mask; /* of no effect: all bytes are there */
#define LOAD_SOME(there, from) LOAD_HALF(from)

/* Packing goes by lanes: puts their halves in order. */
static inline vector in_order(vector packed)
{
    return _mm256_permute4x64_epi64(packed, _MM_SHUFFLE(3, 1, 2, 0));
}

#include "pixels/resize_simd.inc"

/* Two halves that lie apart. */
static inline __m256i load_halves(const int16_t *low, const int16_t *high)
{
    return _mm256_inserti128_si256(_mm256_castsi128_si256(_mm_loadu_si128((const __m128i *)low)),
                                   _mm_loadu_si128((const __m128i *)high), 1);
}

static void down_avx2(const uint8_t *in, size_t stride, const int16_t *weights, uint32_t taps,
                      size_t count, int16_t *out)
{
    size_t i = 0;
    for (; i + 16 <= count; i += 16)
        down_some(in + i, stride, weights, taps, 0, out + i);
    if (i < count && count >= 16) /* once more, the last sixteen */
        down_some(in + count - 16, stride, weights, taps, 0, out + count - 16);
    else if (i < count)
        dl2_resize_kernels_c.down(in, stride, weights, taps, count, out);
}

/*
 * Eight words of a channel lie in three vectors of eight; blended they are there in an order that
 * one shuffle sets right.
 */
static void split_avx2(const int16_t *in, size_t count, int16_t *const out[3])
{
#define WORDS(a, b, c, d, e, f, g, h)                                                              \
    _mm256_broadcastsi128_si256(                                                                   \
        _mm_setr_epi8(2 * a, 2 * a + 1, 2 * b, 2 * b + 1, 2 * c, 2 * c + 1, 2 * d, 2 * d + 1,      \
                      2 * e, 2 * e + 1, 2 * f, 2 * f + 1, 2 * g, 2 * g + 1, 2 * h, 2 * h + 1))
    const __m256i order_0 = WORDS(0, 3, 6, 1, 4, 7, 2, 5), order_1 = WORDS(1, 4, 7, 2, 5, 0, 3, 6),
                  order_2 = WORDS(2, 5, 0, 3, 6, 1, 4, 7);
#undef WORDS
    for (size_t i = 0; i < count; i += 16) {
        const int16_t *from = in + 3 * i;
        const __m256i a = load_halves(from, from + 24), b = load_halves(from + 8, from + 32),
                      c = load_halves(from + 16, from + 40);
        /* Channel 0 is words 0 3 6 of a, 1 4 7 of b, 2 5 of c; the others follow in turn. */
        store(out[0] + i,
              _mm256_shuffle_epi8(_mm256_blend_epi16(_mm256_blend_epi16(a, b, 0x92), c, 0x24),
                                  order_0));
        store(out[1] + i,
              _mm256_shuffle_epi8(_mm256_blend_epi16(_mm256_blend_epi16(a, b, 0x24), c, 0x49),
                                  order_1));
        store(out[2] + i,
              _mm256_shuffle_epi8(_mm256_blend_epi16(_mm256_blend_epi16(a, b, 0x49), c, 0x92),
                                  order_2));
    }
}

/*
 * Four outputs in each half: pairs of neighboring words are picked out of 8 or 16 that lie in a
 * row, or gathered where the outputs are spread wider than that.
 */
enum spread { NEAR, FAR, GATHER };

static inline __m256i across_8(const int16_t *in, const struct dl2_filter *filter, uint32_t x,
                               const int16_t *weights, enum spread spread)
{
    const __m256i pick = load((spread == GATHER ? filter->first : filter->pick) + x);
    const __m256i pick_first = _mm256_adds_epu8(pick, _mm256_set1_epi8(0x70));
    const __m256i pick_second = _mm256_sub_epi8(pick, _mm256_set1_epi8(16));
    const int16_t *low = in + filter->base[x / 4], *high = in + filter->base[x / 4 + 1];
    __m256i sum = _mm256_set1_epi32(1 << (ACROSS_SHIFT - 1));
    for (uint32_t p = 0; p < filter->pairs; p++, low += 2, high += 2, in += 2, weights += 32) {
        __m256i v;
        if (spread == NEAR)
            v = _mm256_shuffle_epi8(load_halves(low, high), pick);
        else if (spread == FAR)
            v = _mm256_or_si256(_mm256_shuffle_epi8(load_halves(low, high), pick_first),
                                _mm256_shuffle_epi8(load_halves(low + 8, high + 8), pick_second));
        else
            v = _mm256_i32gather_epi32((const int *)in, pick, 2);
        sum = _mm256_add_epi32(sum, _mm256_madd_epi16(v, load(weights)));
    }
    return _mm256_srai_epi32(sum, ACROSS_SHIFT);
}

static inline void across_all(const int16_t *in, const struct dl2_filter *filter, int16_t *out,
                              enum spread spread)
{
    const int16_t *weights = filter->weights;
    for (uint32_t x = 0; x < filter->count; x += 16, weights += (size_t)filter->pairs * 32) {
        const __m256i a = across_8(in, filter, x, weights, spread);
        const __m256i b = across_8(in, filter, x + 8, weights + 16, spread);
        store(out + x, in_order(_mm256_packs_epi32(a, b)));
    }
}

static void across_avx2(const int16_t *in, const struct dl2_filter *filter, int16_t *out)
{
    if (filter->reach <= 6)
        across_all(in, filter, out, NEAR);
    else if (filter->reach <= 14)
        across_all(in, filter, out, FAR);
    else
        across_all(in, filter, out, GATHER);
}

static inline __m256i weigh_8(__m256i sum, const uint8_t *in, __m256i weight)
{
    const __m256i values = _mm256_cvtepu8_epi32(_mm_loadl_epi64((const __m128i *)in));
    return _mm256_add_epi32(sum, _mm256_mullo_epi32(values, weight));
}

/* 16 columns. */
static inline void weigh_16(const uint8_t *in, size_t stride, const int32_t *weights, uint32_t taps,
                            uint8_t *out)
{
    __m256i low = _mm256_set1_epi32(1 << (DL2_RESIZE_EXACT_BITS - 1)), high = low;
    for (uint32_t k = 0; k < taps; k++, in += stride) {
        const __m256i weight = _mm256_set1_epi32(weights[k]);
        low = weigh_8(low, in, weight);
        high = weigh_8(high, in + 8, weight);
    }
    low = _mm256_srai_epi32(low, DL2_RESIZE_EXACT_BITS);
    high = _mm256_srai_epi32(high, DL2_RESIZE_EXACT_BITS);
    const __m256i words = in_order(_mm256_packs_epi32(low, high));
    _mm_storeu_si128((__m128i *)out, _mm_packus_epi16(_mm256_castsi256_si128(words),
                                                      _mm256_extracti128_si256(words, 1)));
}

static void weigh_bytes_avx2(const uint8_t *in, size_t stride, const int32_t *weights,
                             uint32_t taps, size_t count, uint8_t *out)
{
    size_t i = 0;
    for (; i + 16 <= count; i += 16)
        weigh_16(in + i, stride, weights, taps, out + i);
    if (i < count)
        dl2_resize_kernels_c.weigh_bytes(in + i, stride, weights, taps, count - i, out + i);
}

const struct dl2_resize_kernels dl2_resize_kernels_avx2 = {
    .name = "avx2",
    .lanes = 4,
    .pick_factor = 0x02020202,
    .pick_offset = 0x03020100,
    .down = down_avx2,
    .weigh_bytes = weigh_bytes_avx2,
    .split = split_avx2,
    .across = across_avx2,
    .color = color_simd,
    .pack = pack_simd,
    .interleave = interleave_simd,
    .affine = affine_simd,
};
