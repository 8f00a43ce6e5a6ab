/* SPDX-License-Identifier: BSD-2-Clause */
#include "common/simd.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#if defined(__x86_64__) || defined(__i386__)
#include <cpuid.h>

/* Not every compiler's __builtin_cpu_supports() knows it. */
static bool has_f16c(void)
{
    unsigned a, b, c, d;
    return __get_cpuid(1, &a, &b, &c, &d) && (c & bit_F16C);
}
#endif

unsigned dl2_simd_flags(void)
{
    unsigned flags = 0;
#if defined(__x86_64__) || defined(__i386__)
    __builtin_cpu_init();
    if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") && has_f16c())
        flags |= DL2_SIMD_AVX2;
    if (flags && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
        __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl"))
        flags |= DL2_SIMD_AVX512;
#elif defined(__aarch64__)
    flags |= DL2_SIMD_NEON;
#endif
    const char *cap = getenv("DL2_SIMD");
    if (cap && strcmp(cap, "c") == 0)
        flags = 0;
    else if (cap && strcmp(cap, "avx2") == 0)
        flags &= DL2_SIMD_AVX2;
    else if (cap && strcmp(cap, "neon") == 0)
        flags &= DL2_SIMD_NEON;
    return flags;
}

const char *dl2_simd_name(void)
{
    unsigned flags = dl2_simd_flags();
    return flags & DL2_SIMD_AVX512 ? "avx512"
           : flags & DL2_SIMD_AVX2 ? "avx2"
           : flags & DL2_SIMD_NEON ? "neon"
                                   : "c";
}
