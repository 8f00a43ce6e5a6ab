/* SPDX-License-Identifier: BSD-2-Clause */
#include "pixels/resize_kernels.h"

#include "common/vectors.h"

typedef __mmask32 half_mask;
#define LOAD_SOME(there, from) _mm256_maskz_loadu_epi8(there, from)

/* Packing goes by lanes: puts their halves in order. */
static inline vector in_order(vector packed)
{
    return _mm512_permutexvar_epi64(_mm512_setr_epi64(0, 2, 4, 6, 1, 3, 5, 7), packed);
}

#include "pixels/resize_simd.inc"

static inline __mmask32 first_words(size_t count)
{
    return count >= 32 ? 0xffffffffu : (__mmask32)((1u << count) - 1);
}

static void down_avx512(const uint8_t *in, size_t stride, const int16_t *weights, uint32_t taps,
                        size_t count, int16_t *out)
{
    size_t i = 0;
    for (; i + 32 <= count; i += 32)
        down_some(in + i, stride, weights, taps, 0xffffffffu, out + i);
    if (i < count)
        down_some(in + i, stride, weights, taps, first_words(count - i), out + i);
}

/* Word i of channel c is word 3 i + c of three vectors: from the first two, then from the third. */
static void split_avx512(const int16_t *in, size_t count, int16_t *const out[3])
{
#define WORD(w) ((w)&63)
#define EIGHT(w)                                                                                   \
    WORD(w), WORD(w + 3), WORD(w + 6), WORD(w + 9), WORD(w + 12), WORD(w + 15), WORD(w + 18),      \
        WORD(w + 21)
#define ALL(c)                                                                                     \
    {                                                                                              \
        EIGHT(c), EIGHT(c + 24), EIGHT(c + 48), EIGHT(c + 72)                                      \
    }
    /* The permutation of the third looks at the lower five bits alone, where 64 to 95 are right. */
    static const uint16_t from[3][32] = {ALL(0), ALL(1), ALL(2)};
#undef ALL
#undef EIGHT
#undef WORD
    static const __mmask32 third[3] = {0xffc00000, 0xffe00000, 0xffe00000};
    for (size_t i = 0; i < count; i += 32) {
        const __m512i a = _mm512_loadu_si512(in + 3 * i), b = _mm512_loadu_si512(in + 3 * i + 32),
                      d = _mm512_loadu_si512(in + 3 * i + 64);
        for (unsigned c = 0; c < 3; c++) {
            const __m512i order = _mm512_loadu_si512(from[c]);
            const __m512i ab = _mm512_permutex2var_epi16(a, order, b);
            _mm512_storeu_si512(out[c] + i, _mm512_mask_permutexvar_epi16(ab, third[c], order, d));
        }
    }
}

/*
 * Sixteen outputs: pairs of neighboring words are picked out of 32 or 64 that lie in a row, or
 * gathered where the outputs are spread wider than that.
 */
enum spread { NEAR, FAR, GATHER };

static inline __attribute__((always_inline)) void
across_16(const int16_t *in, const struct dl2_filter *filter, uint32_t x, const int16_t *weights,
          const uint32_t pairs, const enum spread spread, int16_t *out)
{
    const __m512i pick = load((spread == GATHER ? filter->first : filter->pick) + x);
    const int16_t *from = spread == GATHER ? in : in + filter->base[x / 16];
    __m512i sum = _mm512_set1_epi32(1 << (ACROSS_SHIFT - 1));
    for (uint32_t p = 0; p < pairs; p++, from += 2, weights += 32) {
        const __m512i v = spread == NEAR ? _mm512_permutexvar_epi16(pick, load(from))
                          : spread == FAR
                              ? _mm512_permutex2var_epi16(load(from), pick, load(from + 32))
                              : _mm512_i32gather_epi32(pick, from, 2);
        sum = _mm512_add_epi32(sum, _mm512_madd_epi16(v, load(weights)));
    }
    _mm256_storeu_si256((__m256i *)(out + x),
                        _mm512_cvtepi32_epi16(_mm512_srai_epi32(sum, ACROSS_SHIFT)));
}

static inline __attribute__((always_inline)) void across_all(const int16_t *in,
                                                             const struct dl2_filter *filter,
                                                             const enum spread spread, int16_t *out)
{
    const uint32_t pairs = filter->pairs;
    const int16_t *weights = filter->weights;
    for (uint32_t x = 0; x < filter->count; x += 16, weights += (size_t)pairs * 32)
        if (spread == NEAR && pairs == 1) /* loops of a fixed length */
            across_16(in, filter, x, weights, 1, spread, out);
        else if (spread == NEAR && pairs == 2)
            across_16(in, filter, x, weights, 2, spread, out);
        else
            across_16(in, filter, x, weights, pairs, spread, out);
}

static void across_avx512(const int16_t *in, const struct dl2_filter *filter, int16_t *out)
{
    if (filter->reach <= 30)
        across_all(in, filter, NEAR, out);
    else if (filter->reach <= 62)
        across_all(in, filter, FAR, out);
    else
        across_all(in, filter, GATHER, out);
}

/* 16 columns, or three times as many at once: sixteen rows of RGB. */
static inline __attribute__((always_inline)) void weigh_some(const uint8_t *in, size_t stride,
                                                             const int32_t *weights, uint32_t taps,
                                                             const int vectors, uint8_t *out)
{
    const __m512i half = _mm512_set1_epi32(1 << (DL2_RESIZE_EXACT_BITS - 1));
    __m512i sums[3] = {half, half, half};
    for (uint32_t k = 0; k < taps; k++, in += stride) {
        const __m512i weight = _mm512_set1_epi32(weights[k]);
        for (int i = 0; i < vectors; i++) {
            const __m512i values = _mm512_cvtepu8_epi32(LOAD_ROW(in + 16 * i));
            sums[i] = _mm512_add_epi32(sums[i], _mm512_mullo_epi32(values, weight));
        }
    }
    for (int i = 0; i < vectors; i++) {
        sums[i] = _mm512_max_epi32(_mm512_srai_epi32(sums[i], DL2_RESIZE_EXACT_BITS),
                                   _mm512_setzero_si512());
        _mm_storeu_si128((__m128i *)(out + 16 * i), _mm512_cvtusepi32_epi8(sums[i]));
    }
}

static void weigh_bytes_avx512(const uint8_t *in, size_t stride, const int32_t *weights,
                               uint32_t taps, size_t count, uint8_t *out)
{
    size_t i = 0;
    for (; i + 48 <= count; i += 48)
        weigh_some(in + i, stride, weights, taps, 3, out + i);
    for (; i + 16 <= count; i += 16)
        weigh_some(in + i, stride, weights, taps, 1, out + i);
    if (i < count)
        dl2_resize_kernels_c.weigh_bytes(in + i, stride, weights, taps, count - i, out + i);
}

const struct dl2_resize_kernels dl2_resize_kernels_avx512 = {
    .name = "avx512",
    .lanes = 16,
    .pick_factor = 0x00010001,
    .pick_offset = 0x00010000,
    .down = down_avx512,
    .weigh_bytes = weigh_bytes_avx512,
    .split = split_avx512,
    .across = across_avx512,
    .color = color_simd,
    .pack = pack_simd,
    .interleave = interleave_simd,
    .affine = affine_simd,
};
