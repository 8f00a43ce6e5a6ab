/* SPDX-License-Identifier: BSD-2-Clause */
#include <immintrin.h>

typedef __m512i vector;
#define LANES           4
#define OP(name)        _mm512_##name
#define BROADCAST(row)  _mm512_broadcast_i32x4(row)
#define LOAD_HALF(from) _mm256_loadu_si256((const __m256i *)(const void *)(from))
#define LANE(v, i)      _mm512_extracti32x4_epi32(v, i)

#include "codec/jpeg/jpeg_color_simd.inc"

#define KERNELS dl2_jpeg_color_kernels_avx512
#define NAME    "avx512"
#include "codec/jpeg/jpeg_color_kernels.inc"
