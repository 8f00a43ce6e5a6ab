/* SPDX-License-Identifier: BSD-2-Clause */
#include "common/vectors.h"

#define LOAD_LANES(from, step)                                                                     \
    _mm256_inserti128_si256(_mm256_castsi128_si256(LOAD_ROW(from)), LOAD_ROW((from) + (step)), 1)

#include "codec/jpeg/jpeg_forward_simd.inc"

static uint64_t quantize_simd(const int16_t *block, const struct dl2_jpeg_divisors *divisors,
                              uint16_t *out)
{
#define LOAD(from) _mm256_load_si256((const vector *)(const void *)(from))
    vector zeros[4];
#pragma GCC unroll 4
    for (int i = 0; i < 4; i++) {
        const vector in = LOAD(block + 16 * i);
        const vector n = _mm256_add_epi16(_mm256_abs_epi16(in), LOAD(divisors->half + 16 * i));
        const vector magnitude = _mm256_mulhi_epu16(
            _mm256_mulhi_epu16(n, LOAD(divisors->factor + 16 * i)), LOAD(divisors->scale + 16 * i));
        _mm256_store_si256(
            (vector *)(void *)(out + 16 * i),
            _mm256_add_epi16(_mm256_sign_epi16(magnitude, in), _mm256_set1_epi16(DL2_JPEG_BIAS)));
        zeros[i] = _mm256_cmpeq_epi16(magnitude, _mm256_setzero_si256());
    }
#undef LOAD
    const vector low = _mm256_permute4x64_epi64(_mm256_packs_epi16(zeros[0], zeros[1]), 0xd8);
    const vector high = _mm256_permute4x64_epi64(_mm256_packs_epi16(zeros[2], zeros[3]), 0xd8);
    return ~((uint64_t)(uint32_t)_mm256_movemask_epi8(high) << 32 |
             (uint32_t)_mm256_movemask_epi8(low));
}
