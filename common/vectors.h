/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * x86 vectors of the widest kind that the compiler's flags allow, AVX2 or AVX-512, so that one text
 * serves both: libraries with these flags compile it once each. Nothing else includes this header.
 */
#ifndef DL2_COMMON_VECTORS_H
#define DL2_COMMON_VECTORS_H

#include <immintrin.h>

/*
 * `vector`: of LANES lanes of 128 bits.
 * VARIANT(name), VARIANT_NAME: the table that is made of the text, of those in common/simd.h.
 * OP(add_epi16), BITS(or): an intrinsic, and one that works on the whole register.
 * BROADCAST(row): 128 bits to all lanes. LANE(v, i): lane i.
 * LOAD_ROW(from), LOAD_HALF(from), LOAD_QUARTER(from): 128 bits, and half a vector or a quarter,
 * from any address; STORE_HALF(to, half). float_vector, CAST(float_vector): the same bits.
 */
#define LOAD_ROW(from) _mm_loadu_si128((const __m128i *)(const void *)(from))
#ifdef __AVX512BW__
typedef __m512i vector;
#define LANES                4
#define VARIANT(name)        name##_avx512
#define VARIANT_NAME         "avx512"
#define OP(name)             _mm512_##name
#define BITS(name)           _mm512_##name##_si512
#define BROADCAST(row)       _mm512_broadcast_i32x4(row)
#define LANE(v, i)           _mm512_extracti32x4_epi32(v, i)
#define LOAD_HALF(from)      _mm256_loadu_si256((const __m256i *)(const void *)(from))
#define LOAD_QUARTER(from)   LOAD_ROW(from)
#define STORE_HALF(to, half) _mm256_storeu_si256((__m256i *)(void *)(to), half)
typedef __m512 float_vector;
#define CAST(v) _mm512_castps_si512(v)
#else
typedef __m256i vector;
#define LANES                2
#define VARIANT(name)        name##_avx2
#define VARIANT_NAME         "avx2"
#define OP(name)             _mm256_##name
#define BITS(name)           _mm256_##name##_si256
#define BROADCAST(row)       _mm256_broadcastsi128_si256(row)
#define LANE(v, i)           _mm256_extracti128_si256(v, i)
#define LOAD_HALF(from)      LOAD_ROW(from)
#define LOAD_QUARTER(from)   _mm_loadl_epi64((const __m128i *)(const void *)(from))
#define STORE_HALF(to, half) _mm_storeu_si128((__m128i *)(void *)(to), half)
typedef __m256 float_vector;
#define CAST(v)              _mm256_castps_si256(v)
#endif

#endif
