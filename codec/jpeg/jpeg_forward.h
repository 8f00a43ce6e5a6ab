/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * From pixels to quantized coefficients: color conversion, averaging of chroma, forward DCT,
 * quantization. Bit for bit libjpeg-turbo's islow. Plain C, and the same in AVX2, AVX-512 and NEON.
 */
#ifndef DL2_CODEC_JPEG_JPEG_FORWARD_H
#define DL2_CODEC_JPEG_JPEG_FORWARD_H

#include <stddef.h>
#include <stdint.h>

enum {
    DL2_JPEG_FORWARD_PIXELS = 64, /* what ycc() and halve() work on at a time */
    DL2_JPEG_FORWARD_BLOCKS = 4,  /* what transform() works on at a time */
};

/*
 * Division by eight times a quantization step, in zigzag order: |coefficient| + half, times
 * `factor`, shifted to the right by 16 bits, then times `scale`, shifted to the right by 16 bits.
 */
struct dl2_jpeg_divisors {
    _Alignas(64) uint16_t half[64];
    uint16_t factor[64], scale[64];
};

/* What is added to quantized coefficients: most then are an unsigned number of few bits. */
enum { DL2_JPEG_BIAS = 16 };

struct dl2_jpeg_forward {
    const char *name; /* "c", "avx2", "avx512", "neon" */
    /* `count` pixels, a multiple of DL2_JPEG_FORWARD_PIXELS, as JFIF defines it. */
    void (*ycc)(const uint8_t *rgb, size_t count, uint8_t *y, uint8_t *cb, uint8_t *cr);
    /* (The sum of two samples of each row + 1 and 2 by turns) >> 2: `count` samples, a multiple of
     * DL2_JPEG_FORWARD_PIXELS, to half as many. Both rows may be the same. */
    void (*halve)(const uint8_t *above, const uint8_t *below, size_t count, uint8_t *out);
    /* `count` blocks side by side, a multiple of DL2_JPEG_FORWARD_BLOCKS, to 64 coefficients each,
     * scaled by 8, in zigzag order; `out` is aligned to 64 bytes. */
    void (*transform)(const uint8_t *samples, size_t stride, size_t count, int16_t *out);
    /* Quantizes a block and adds DL2_JPEG_BIAS, modulo 65536; bit k of the result says whether
     * coefficient k isn't zero. Both blocks are aligned to 64 bytes. */
    uint64_t (*quantize)(const int16_t *block, const struct dl2_jpeg_divisors *divisors,
                         uint16_t *out);
};

/* The table for a set of enum dl2_simd flags: the best that was built and is allowed. */
const struct dl2_jpeg_forward *dl2_jpeg_forward_for(unsigned simd_flags);

extern const struct dl2_jpeg_forward dl2_jpeg_forward_c, dl2_jpeg_forward_avx2,
    dl2_jpeg_forward_avx512, dl2_jpeg_forward_neon;

/* `steps`: 64 of 1 to 255 in natural order. */
void dl2_jpeg_divisors_set(struct dl2_jpeg_divisors *divisors, const uint16_t *steps);

/* Eight coefficients at a time in zigzag order: where each is in natural order. */
#define DL2_JPEG_NATURAL_0 0, 1, 8, 16, 9, 2, 3, 10
#define DL2_JPEG_NATURAL_1 17, 24, 32, 25, 18, 11, 4, 5
#define DL2_JPEG_NATURAL_2 12, 19, 26, 33, 40, 48, 41, 34
#define DL2_JPEG_NATURAL_3 27, 20, 13, 6, 7, 14, 21, 28
#define DL2_JPEG_NATURAL_4 35, 42, 49, 56, 57, 50, 43, 36
#define DL2_JPEG_NATURAL_5 29, 22, 15, 23, 30, 37, 44, 51
#define DL2_JPEG_NATURAL_6 58, 59, 52, 45, 38, 31, 39, 46
#define DL2_JPEG_NATURAL_7 53, 60, 61, 54, 47, 55, 62, 63

extern const uint8_t dl2_jpeg_natural[64];

#endif
