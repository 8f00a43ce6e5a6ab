/* SPDX-License-Identifier: BSD-2-Clause */
#include "codec/jpeg/jpeg_inverse.h"

#include <immintrin.h>

typedef __m256i vector;
#define OP(name)       _mm256_##name
#define BITS(name)     _mm256_##name##_si256
#define BROADCAST(row) _mm256_broadcastsi128_si256(row)
#define NONE(a, b)     _mm256_testz_si256(a, b)

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

/* The two bytes of coefficient `at` where it is in vector `from`, 0 otherwise. */
#define BYTES(from, at)                                                                            \
    ((at) / 8 == (from) ? 2 * ((at) % 8) : -128), ((at) / 8 == (from) ? 2 * ((at) % 8) + 1 : -128)
#define PICK_(from, a, b, c, d, e, f, g, h)                                                        \
    _mm256_shuffle_epi8(z[from],                                                                   \
                        _mm256_broadcastsi128_si256(_mm_setr_epi8(                                 \
                            BYTES(from, a), BYTES(from, b), BYTES(from, c), BYTES(from, d),        \
                            BYTES(from, e), BYTES(from, f), BYTES(from, g), BYTES(from, h))))
#define PICK(from, row) PICK_(from, row)
#define OR(a, b)        _mm256_or_si256(a, b)

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
    r[0] = OR(OR(PICK(0, ROW_0), PICK(1, ROW_0)), PICK(3, ROW_0));
    r[1] = OR(OR(OR(PICK(0, ROW_1), PICK(1, ROW_1)), OR(PICK(2, ROW_1), PICK(3, ROW_1))),
              PICK(5, ROW_1));
    r[2] = OR(OR(OR(PICK(0, ROW_2), PICK(1, ROW_2)), OR(PICK(2, ROW_2), PICK(3, ROW_2))),
              PICK(5, ROW_2));
    r[3] = OR(OR(OR(PICK(1, ROW_3), PICK(2, ROW_3)), OR(PICK(3, ROW_3), PICK(5, ROW_3))),
              PICK(6, ROW_3));
    r[4] = OR(OR(OR(PICK(1, ROW_4), PICK(2, ROW_4)), OR(PICK(4, ROW_4), PICK(5, ROW_4))),
              PICK(6, ROW_4));
    r[5] = OR(OR(OR(PICK(2, ROW_5), PICK(4, ROW_5)), OR(PICK(5, ROW_5), PICK(6, ROW_5))),
              PICK(7, ROW_5));
    r[6] = OR(OR(PICK(2, ROW_6), PICK(4, ROW_6)),
              OR(OR(PICK(5, ROW_6), PICK(6, ROW_6)), PICK(7, ROW_6)));
    r[7] = OR(OR(PICK(4, ROW_7), PICK(6, ROW_7)), PICK(7, ROW_7));
}

#include "codec/jpeg/jpeg_inverse_simd.inc"

static bool inverse_8_avx2(const struct dl2_jpeg_inverse_job *blocks, const uint16_t *steps,
                           size_t stride)
{
    vector r[8], rows[4];
    load_rows(blocks, r);
    const bool good = multiply_rows(r, steps);
    islow_pass(r, 11);
    transpose_words(r);
    islow_pass(r, 18);
    columns_to_rows(r, rows);
    uint8_t *a = blocks[0].out, *b = blocks[1].out;
#pragma GCC unroll 8
    for (int i = 0; i < 4; i++, a += 2 * stride, b += 2 * stride) {
        const __m128i low = _mm256_castsi256_si128(rows[i]);
        const __m128i high = _mm256_extracti128_si256(rows[i], 1);
        _mm_storel_epi64((__m128i *)(void *)a, low);
        _mm_storeh_pd((double *)(void *)(a + stride), _mm_castsi128_pd(low));
        _mm_storel_epi64((__m128i *)(void *)b, high);
        _mm_storeh_pd((double *)(void *)(b + stride), _mm_castsi128_pd(high));
    }
    return good;
}

const struct dl2_jpeg_kernels dl2_jpeg_kernels_avx2 = {
    .name = "avx2",
    .lanes = {1, 2, 2, 2},
    .inverse = {dl2_jpeg_inverse_1, inverse_2_simd, inverse_4_simd, inverse_8_avx2},
};
