/* SPDX-License-Identifier: BSD-2-Clause */
#include "pixels/operation_loops.h"

#include <immintrin.h>

#define VECTOR             __m256i
#define SHUFFLE(table, at) _mm256_shuffle_epi8(table, at)
#define SUBTRACT(a, b)     _mm256_subs_epi8(a, b)
#define SAME(byte)         _mm256_set1_epi8(byte)
#define XOR(a, b)          _mm256_xor_si256(a, b)
#define AND(a, b)          _mm256_and_si256(a, b)
#define OR(a, b)           _mm256_or_si256(a, b)
#define LOAD(from)         _mm256_loadu_si256((const void *)(from))
#define STORE(to, a)       _mm256_storeu_si256((void *)(to), a)
#define SAME_16(a)         _mm256_broadcastsi128_si256(a)
#include "pixels/operation_look_up.h"

const struct dl2_operation_kernels dl2_operation_kernels_avx2 =
    DL2_OPERATION_LOOPS("avx2", look_up_shuffled);
