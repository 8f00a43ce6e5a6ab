/* SPDX-License-Identifier: BSD-2-Clause */
#include "codec/jpeg/jpeg_inverse.h"

#include "codec/jpeg/jpeg_lanes_simd.inc"

#define NONE(a, b) !_mm512_test_epi16_mask(a, b)

/* Four 128-bit lanes of each of four vectors: r[i] gets lane i of a, b, c, d. */
static inline __attribute__((always_inline)) void transpose_lanes(vector a, vector b, vector c,
                                                                  vector d, vector r[4])
{
    const vector ab_low = _mm512_shuffle_i32x4(a, b, 0x44),
                 ab_high = _mm512_shuffle_i32x4(a, b, 0xee);
    const vector cd_low = _mm512_shuffle_i32x4(c, d, 0x44),
                 cd_high = _mm512_shuffle_i32x4(c, d, 0xee);
    r[0] = _mm512_shuffle_i32x4(ab_low, cd_low, 0x88);
    r[1] = _mm512_shuffle_i32x4(ab_low, cd_low, 0xdd);
    r[2] = _mm512_shuffle_i32x4(ab_high, cd_high, 0x88);
    r[3] = _mm512_shuffle_i32x4(ab_high, cd_high, 0xdd);
}

/* Row by row of four blocks, in natural order. Takes the coefficients away. */
static inline __attribute__((always_inline)) void
load_rows(const struct dl2_jpeg_inverse_job *blocks, vector r[8])
{
    const __m256i *const zigzag = (const __m256i *)(const void *)dl2_jpeg_zigzag;
    const vector first = _mm512_cvtepu8_epi16(_mm256_loadu_si256(zigzag));
    const vector second = _mm512_cvtepu8_epi16(_mm256_loadu_si256(zigzag + 1));
    vector low[4], high[4];
#pragma GCC unroll 8
    for (int i = 0; i < 4; i++) {
        const vector a = _mm512_load_si512(blocks[i].coefficients);
        const vector b = _mm512_load_si512(blocks[i].coefficients + 32);
        low[i] = _mm512_permutex2var_epi16(a, first, b);
        high[i] = _mm512_permutex2var_epi16(a, second, b);
    }
#pragma GCC unroll 8
    for (int i = 0; i < 4; i++) {
        _mm512_store_si512(blocks[i].coefficients, _mm512_setzero_si512());
        _mm512_store_si512(blocks[i].coefficients + 32, _mm512_setzero_si512());
    }
    transpose_lanes(low[0], low[1], low[2], low[3], r);
    transpose_lanes(high[0], high[1], high[2], high[3], r + 4);
}

#include "codec/jpeg/jpeg_inverse_simd.inc"
