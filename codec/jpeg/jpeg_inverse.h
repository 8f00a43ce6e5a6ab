/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Dequantization and inverse DCT, to 8x8 samples or to 4x4, 2x2 or 1 in their place. Bit for bit
 * libjpeg-turbo's islow and its reduced sizes as its x86 SIMD code computes them, in 16 bits where
 * that does. Its plain C code gives the same for all that an encoder makes of 8-bit samples.
 */
#ifndef DL2_CODEC_JPEG_JPEG_INVERSE_H
#define DL2_CODEC_JPEG_JPEG_INVERSE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct dl2_jpeg_inverse_job {
    int16_t *coefficients; /* [64], zigzag order, aligned to 64 bytes; zeros afterwards */
    uint8_t *out;          /* the first of size x size samples */
};

/*
 * As many blocks as the kernel's lanes, which may be one block several times. `steps` as in
 * struct dl2_jpeg_component; `stride`: bytes from row to row of `out`. False where dequantized
 * coefficients are so large that libjpeg's variants differ: the samples are not to be used.
 */
typedef bool dl2_jpeg_inverse(const struct dl2_jpeg_inverse_job *blocks, const uint16_t *steps,
                              size_t stride);

enum { DL2_JPEG_SIZES = 4, DL2_JPEG_LANES = 4 };

struct dl2_jpeg_kernels {
    const char *name;               /* "c", "neon", "avx2", "avx512" */
    unsigned lanes[DL2_JPEG_SIZES]; /* for sizes 1, 2, 4, 8; at most DL2_JPEG_LANES */
    dl2_jpeg_inverse *inverse[DL2_JPEG_SIZES];
};

/* The table for a set of enum dl2_simd flags: the best that was built and is allowed. */
const struct dl2_jpeg_kernels *dl2_jpeg_kernels_for(unsigned simd_flags);

extern const struct dl2_jpeg_kernels dl2_jpeg_kernels_c, dl2_jpeg_kernels_avx2,
    dl2_jpeg_kernels_avx512, dl2_jpeg_kernels_neon;

/* Plain C, for the tables of others. */
dl2_jpeg_inverse dl2_jpeg_inverse_1;

/* Where each coefficient in natural order is in zigzag order. */
extern const uint8_t dl2_jpeg_zigzag[64];

/* The first row's dequantized coefficients are below this, or libjpeg's shortcut for blocks of one
 * row differs from the full calculation. */
#define DL2_JPEG_ROW_LIMIT 8192

/* The magnitudes in a column sum to less than this, or libjpeg's NEON code passes 16 bits between
 * the passes, where ours and its x86 code saturate. No encoder's block comes near. Plain C and NEON
 * check it, which implies the first row's limit; AVX runs beside libjpeg's x86 code alone. */
#define DL2_JPEG_COLUMN_LIMIT 4000

#endif
