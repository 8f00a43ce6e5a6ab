/* SPDX-License-Identifier: BSD-2-Clause */
#include "common/vectors.h"

#define LOAD_PAIR(from, step)                                                                      \
    _mm256_inserti128_si256(_mm256_castsi128_si256(LOAD_ROW(from)), LOAD_ROW((from) + (step)), 1)
#define LOAD_LANES(from, step)                                                                     \
    _mm512_inserti64x4(_mm512_castsi256_si512(LOAD_PAIR(from, step)),                              \
                       LOAD_PAIR((from) + 2 * (step), step), 1)

#include "codec/jpeg/jpeg_forward_simd.inc"

static uint64_t quantize_simd(const int16_t *block, const struct dl2_jpeg_divisors *divisors,
                              uint16_t *out)
{
    const vector bias = _mm512_set1_epi16(DL2_JPEG_BIAS);
    uint64_t filled = 0;
#pragma GCC unroll 2
    for (int i = 0; i < 2; i++) {
        const vector in = _mm512_load_si512(block + 32 * i);
        const vector n =
            _mm512_add_epi16(_mm512_abs_epi16(in), _mm512_load_si512(divisors->half + 32 * i));
        const vector magnitude =
            _mm512_mulhi_epu16(_mm512_mulhi_epu16(n, _mm512_load_si512(divisors->factor + 32 * i)),
                               _mm512_load_si512(divisors->scale + 32 * i));
        _mm512_store_si512(out + 32 * i,
                           _mm512_mask_sub_epi16(_mm512_add_epi16(magnitude, bias),
                                                 _mm512_movepi16_mask(in), bias, magnitude));
        filled |= (uint64_t)_mm512_test_epi16_mask(magnitude, magnitude) << (32 * i);
    }
    return filled;
}
