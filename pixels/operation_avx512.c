/* SPDX-License-Identifier: BSD-2-Clause */
#include "pixels/operation_loops.h"

#include <immintrin.h>

#define VECTOR             __m512i
#define SHUFFLE(table, at) _mm512_shuffle_epi8(table, at)
#define SUBTRACT(a, b)     _mm512_subs_epi8(a, b)
#define SAME(byte)         _mm512_set1_epi8(byte)
#define XOR(a, b)          _mm512_xor_si512(a, b)
#define AND(a, b)          _mm512_and_si512(a, b)
#define OR(a, b)           _mm512_or_si512(a, b)
#define LOAD(from)         _mm512_loadu_si512((const void *)(from))
#define STORE(to, a)       _mm512_storeu_si512((void *)(to), a)
#define SAME_16(a)         _mm512_broadcast_i32x4(a)
#include "pixels/operation_look_up.h"

const struct dl2_operation_kernels dl2_operation_kernels_avx512 =
    DL2_OPERATION_LOOPS("avx512", look_up_shuffled);
