/* SPDX-License-Identifier: BSD-2-Clause */
#include "codec/jpeg/jpeg_inverse.h"

#include "codec/jpeg/jpeg_lanes_simd.inc"

#define NONE(a, b) _mm256_testz_si256(a, b)

/*
 * A row in natural order is shuffled together from the vectors z[0] to z[7] of eight coefficients
 * in zigzag order. ROW_n: where its coefficients are (dl2_jpeg_zigzag).
 */
#define ROW_0 0, 1, 5, 6, 14, 15, 27, 28
#define ROW_1 2, 4, 7, 13, 16, 26, 29, 42
#define ROW_2 3, 8, 12, 17, 25, 30, 41, 43
#define ROW_3 9, 11, 18, 24, 31, 40, 44, 53
#define ROW_4 10, 19, 23, 32, 39, 45, 52, 54
#define ROW_5 20, 22, 33, 38, 46, 51, 55, 60
#define ROW_6 21, 34, 37, 47, 50, 56, 59, 61
#define ROW_7 35, 36, 48, 49, 57, 58, 62, 63

#define ROW(from, row) PICK(z, from, ROW_##row)
#define OR(a, b)       _mm256_or_si256(a, b)

/* Row by row of both blocks, in natural order. Takes the coefficients away. */
static inline __attribute__((always_inline)) void
load_rows(const struct dl2_jpeg_inverse_job *blocks, vector r[8])
{
    vector z[8];
    __m128i *const a = (__m128i *)(void *)blocks[0].coefficients;
    __m128i *const b = (__m128i *)(void *)blocks[1].coefficients;
#pragma GCC unroll 8
    for (int i = 0; i < 8; i++)
        z[i] = _mm256_inserti128_si256(_mm256_castsi128_si256(_mm_load_si128(a + i)),
                                       _mm_load_si128(b + i), 1);
#pragma GCC unroll 8
    for (int i = 0; i < 8; i++) {
        _mm_store_si128(a + i, _mm_setzero_si128());
        _mm_store_si128(b + i, _mm_setzero_si128());
    }
    r[0] = OR(OR(ROW(0, 0), ROW(1, 0)), ROW(3, 0));
    r[1] = OR(OR(OR(ROW(0, 1), ROW(1, 1)), OR(ROW(2, 1), ROW(3, 1))), ROW(5, 1));
    r[2] = OR(OR(OR(ROW(0, 2), ROW(1, 2)), OR(ROW(2, 2), ROW(3, 2))), ROW(5, 2));
    r[3] = OR(OR(OR(ROW(1, 3), ROW(2, 3)), OR(ROW(3, 3), ROW(5, 3))), ROW(6, 3));
    r[4] = OR(OR(OR(ROW(1, 4), ROW(2, 4)), OR(ROW(4, 4), ROW(5, 4))), ROW(6, 4));
    r[5] = OR(OR(OR(ROW(2, 5), ROW(4, 5)), OR(ROW(5, 5), ROW(6, 5))), ROW(7, 5));
    r[6] = OR(OR(ROW(2, 6), ROW(4, 6)), OR(OR(ROW(5, 6), ROW(6, 6)), ROW(7, 6)));
    r[7] = OR(OR(ROW(4, 7), ROW(6, 7)), ROW(7, 7));
}

#include "codec/jpeg/jpeg_inverse_simd.inc"
