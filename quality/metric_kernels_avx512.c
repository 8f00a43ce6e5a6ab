/* SPDX-License-Identifier: BSD-2-Clause */
#include "quality/metric_kernels.h"

#include <immintrin.h>

#define LANES        16
#define V            __m512
#define VI           __m512i
#define MM(op)       _mm512_##op
#define MM_SI(op)    _mm512_##op##_si512
#define KERNEL(name) name##_avx512

/* The first `count` lanes, zero behind them. */
static inline __m512 first(__m512 v, size_t count)
{
    return _mm512_maskz_mov_ps((__mmask16)((1u << count) - 1), v);
}

static inline double total(__m512 v)
{
    return _mm512_reduce_add_pd(_mm512_add_pd(_mm512_cvtps_pd(_mm512_castps512_ps256(v)),
                                              _mm512_cvtps_pd(_mm512_extractf32x8_ps(v, 1))));
}

static inline uint64_t total_64(__m512i v)
{
    return (uint64_t)_mm512_reduce_add_epi64(v);
}

static inline __m512i load_gray(const uint8_t *pixels)
{
    return _mm512_cvtepu8_epi32(_mm_loadu_si128((const __m128i *)pixels));
}

/* Four pixels in the low twelve bytes of each 128 bits. */
static inline __m512i load_rgb(const uint8_t *pixels)
{
    const __m512i quarters = _mm512_setr_epi32(0, 1, 2, 2, 3, 4, 5, 5, 6, 7, 8, 8, 9, 10, 11, 11);
    return _mm512_permutexvar_epi32(quarters, _mm512_maskz_loadu_epi32(0x0fff, pixels));
}

static inline __m512i repeat(__m128i v)
{
    return _mm512_broadcast_i32x4(v);
}

#include "quality/metric_kernels_simd.inc"
#include "quality/metric_loops.h"

const struct dl2_metric_kernels dl2_metric_kernels_avx512 = {.name = "avx512", KERNELS, LOOPS};
