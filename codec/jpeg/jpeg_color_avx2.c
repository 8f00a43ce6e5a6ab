/* SPDX-License-Identifier: BSD-2-Clause */
#include <immintrin.h>

typedef __m256i vector;
#define LANES           2
#define OP(name)        _mm256_##name
#define BROADCAST(row)  _mm256_broadcastsi128_si256(row)
#define LOAD_HALF(from) _mm_loadu_si128((const __m128i *)(const void *)(from))
#define LANE(v, i)      _mm256_extracti128_si256(v, i)

#include "codec/jpeg/jpeg_color_simd.inc"

#define KERNELS dl2_jpeg_color_kernels_avx2
#define NAME    "avx2"
#include "codec/jpeg/jpeg_color_kernels.inc"
