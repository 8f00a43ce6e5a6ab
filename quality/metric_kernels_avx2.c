/* SPDX-License-Identifier: BSD-2-Clause */
#include "quality/metric_kernels.h"

#include <immintrin.h>

#define LANES        8
#define V            __m256
#define VI           __m256i
#define MM(op)       _mm256_##op
#define MM_SI(op)    _mm256_##op##_si256
#define KERNEL(name) name##_avx2

/* The first `count` lanes, zero behind them. */
static inline __m256 first(__m256 v, size_t count)
{
    const __m256i lane = _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7);
    return _mm256_and_ps(
        v, _mm256_castsi256_ps(_mm256_cmpgt_epi32(_mm256_set1_epi32((int)count), lane)));
}

static inline double total(__m256 v)
{
    const __m256d d = _mm256_add_pd(_mm256_cvtps_pd(_mm256_castps256_ps128(v)),
                                    _mm256_cvtps_pd(_mm256_extractf128_ps(v, 1)));
    const __m128d s = _mm_add_pd(_mm256_castpd256_pd128(d), _mm256_extractf128_pd(d, 1));
    return _mm_cvtsd_f64(_mm_add_sd(s, _mm_unpackhi_pd(s, s)));
}

static inline uint64_t total_64(__m256i v)
{
    uint64_t lanes[4];
    _mm256_storeu_si256((__m256i *)lanes, v);
    return lanes[0] + lanes[1] + lanes[2] + lanes[3];
}

static inline __m256i load_gray(const uint8_t *pixels)
{
    return _mm256_cvtepu8_epi32(_mm_loadl_epi64((const __m128i *)pixels));
}

/* Four pixels in the low twelve bytes of each 128 bits. */
static inline __m256i load_rgb(const uint8_t *pixels)
{
    const __m128i low = _mm_loadu_si128((const __m128i *)pixels);
    const __m128i high = _mm_srli_si128(_mm_loadu_si128((const __m128i *)(pixels + 8)), 4);
    return _mm256_set_m128i(high, low);
}

static inline __m256i repeat(__m128i v)
{
    return _mm256_broadcastsi128_si256(v);
}

#include "quality/metric_kernels_simd.inc"
#include "quality/metric_loops.h"

const struct dl2_metric_kernels dl2_metric_kernels_avx2 = {.name = "avx2", KERNELS, LOOPS};
