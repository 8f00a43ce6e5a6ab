/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * From planes at their own resolutions to interleaved RGB, bit for bit as libjpeg-turbo does by
 * default: chroma of half the resolution is interpolated between the nearest two or four samples
 * ("fancy" upsampling), other chroma is repeated, and YCbCr is converted as JFIF defines it.
 */
#ifndef DL2_CODEC_JPEG_JPEG_COLOR_H
#define DL2_CODEC_JPEG_JPEG_COLOR_H

#include "common/error.h"
#include "common/memory.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Samples that may be read behind the end of a plane's memory. */
enum { DL2_JPEG_COLOR_SLACK = 64 };

/* Part of a component. All in its samples, but for the factors. */
struct dl2_jpeg_part {
    const uint8_t *data;    /* sample (x, y) of the component */
    size_t stride;          /* bytes from row to row */
    uint32_t x, y;          /* where the part begins in the component */
    uint32_t width, height; /* of the whole component */
    uint32_t across, down;  /* output pixels of a sample: 1, 2, ... */
    bool smooth;            /* interpolated, where a factor is 2 and the other 1 or 2 */
};

/* The kernels of one SIMD variant. Counts are rounded up to blocks of DL2_JPEG_COLOR_BLOCK, so that
 * lines have room for as many more; only the output of rgb() is exact. */
enum { DL2_JPEG_COLOR_BLOCK = 32 };

struct dl2_jpeg_color_kernels {
    const char *name; /* "c", "neon", "avx2", "avx512" */
    /* 3 * near + far, of `count` samples. */
    void (*sum_rows)(const uint8_t *near, const uint8_t *far, size_t count, uint16_t *out);
    /* (3 * in[i] + in[i - 1] + bias) >> shift and (3 * in[i] + in[i + 1] + other) >> shift, by
     * turns: 2 * count samples. */
    void (*widen)(const uint16_t *in, size_t count, unsigned bias, unsigned other, unsigned shift,
                  uint8_t *out);
    /* (in + bias) >> 2. */
    void (*shorten)(const uint16_t *in, size_t count, unsigned bias, uint8_t *out);
    /* Exactly 3 * count bytes. */
    void (*rgb)(const uint8_t *y, const uint8_t *cb, const uint8_t *cr, size_t count, uint8_t *out);
};

/* The table for a set of enum dl2_simd flags: the best that was built and is allowed. */
const struct dl2_jpeg_color_kernels *dl2_jpeg_color_kernels_for(unsigned simd_flags);

extern const struct dl2_jpeg_color_kernels dl2_jpeg_color_kernels_c, dl2_jpeg_color_kernels_avx2,
    dl2_jpeg_color_kernels_avx512, dl2_jpeg_color_kernels_neon;

/*
 * The pixels [left, left + width) x [top, top + height) of the whole output, to rows of 3 * width
 * bytes that lie `stride` apart. The parts (Y, Cb, Cr; Y has the factors 1) have the samples under
 * the rectangle and, where they are smooth, the next ones around it, as far as the component goes.
 * `lines` is working memory. DL2_ERR_MEMORY.
 */
int dl2_jpeg_color_convert(const struct dl2_jpeg_color_kernels *kernels,
                           const struct dl2_jpeg_part parts[3], uint32_t left, uint32_t top,
                           uint32_t width, uint32_t height, uint8_t *out, size_t stride,
                           struct dl2_bytes *lines, struct dl2_error *error);

#endif
