/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What the processor can do, for dispatch tables that are filled once: plain C first, then
 * overwritten by what the flags allow. The environment variable DL2_SIMD=c|neon|avx2|avx512 caps it
 * so that tests reach every path.
 */
#ifndef DL2_COMMON_SIMD_H
#define DL2_COMMON_SIMD_H

enum dl2_simd {
    DL2_SIMD_AVX2 = 1 << 0,   /* AVX2, FMA and F16C */
    DL2_SIMD_AVX512 = 1 << 1, /* F, BW, DQ, VL; implies AVX2 */
    DL2_SIMD_NEON = 1 << 2,   /* 64-bit ARM, all of them */
};

/* The flags that this processor has and DL2_SIMD allows. */
unsigned dl2_simd_flags(void);

/*
 * For files that include config.h first: the best of a table's variants that was built and that the
 * flags allow, of NAME_c, NAME_avx2, NAME_avx512 and NAME_neon; and the same for tables without
 * NAME_neon, whose variants are compilations of the same loops: compilers for 64-bit ARM may always
 * use NEON, so there plain C is that.
 */
#if defined HAVE_AVX512
#define DL2_SIMD_BEST_COMPILED(name, flags)                                                        \
    ((flags)&DL2_SIMD_AVX512 ? &name##_avx512 : (flags)&DL2_SIMD_AVX2 ? &name##_avx2 : &name##_c)
#elif defined HAVE_AVX2
#define DL2_SIMD_BEST_COMPILED(name, flags) ((flags)&DL2_SIMD_AVX2 ? &name##_avx2 : &name##_c)
#else
#define DL2_SIMD_BEST_COMPILED(name, flags) ((void)(flags), &name##_c)
#endif
#if defined HAVE_NEON
#define DL2_SIMD_BEST(name, flags) ((flags)&DL2_SIMD_NEON ? &name##_neon : &name##_c)
#else
#define DL2_SIMD_BEST(name, flags) DL2_SIMD_BEST_COMPILED(name, flags)
#endif

/* "c", "neon", "avx2" or "avx512": the best of dl2_simd_flags(). */
const char *dl2_simd_name(void);

#endif
