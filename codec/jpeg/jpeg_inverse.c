/* SPDX-License-Identifier: BSD-2-Clause */
#include "config.h"

#include "codec/jpeg/jpeg_inverse.h"

#include "common/simd.h"

#include <stdlib.h>
#include <string.h>

/* Constants with 13 fraction bits, and those that the first pass leaves. */
enum { BITS = 13, PASS_BITS = 2, SIDE = 8 };

/* libjpeg's table that limits a lone DC coefficient begins anew at some 4096. */
enum { ONE_LIMIT = 4000 };

const uint8_t dl2_jpeg_zigzag[64] = {
    0,  1,  5,  6,  14, 15, 27, 28, /**/ 2,  4,  7,  13, 16, 26, 29, 42, //
    3,  8,  12, 17, 25, 30, 41, 43, /**/ 9,  11, 18, 24, 31, 40, 44, 53, //
    10, 19, 23, 32, 39, 45, 52, 54, /**/ 20, 22, 33, 38, 46, 51, 55, 60, //
    21, 34, 37, 47, 50, 56, 59, 61, /**/ 35, 36, 48, 49, 57, 58, 62, 63,
};

/* Sums wrap around as they do in vectors. */
static int32_t plus(int32_t a, int32_t b)
{
    return (int32_t)((uint32_t)a + (uint32_t)b);
}

static int32_t minus(int32_t a, int32_t b)
{
    return (int32_t)((uint32_t)a - (uint32_t)b);
}

static int16_t saturate(int32_t value)
{
    return (int16_t)(value < INT16_MIN ? INT16_MIN : value > INT16_MAX ? INT16_MAX : value);
}

/* Without its lowest bits, rounded. */
static int32_t shorten(int32_t value, int bits)
{
    return plus(value, 1 << (bits - 1)) >> bits;
}

static int16_t descale(int32_t value, int bits)
{
    return saturate(shorten(value, bits));
}

static uint8_t sample(int16_t value)
{
    return (uint8_t)(value < -128 ? 0 : value > 127 ? 255 : value + 128);
}

/* Takes the coefficients away; false where a column passes the limit. */
static bool dequantize(int16_t *coefficients, const uint16_t *steps, int16_t out[64])
{
    int columns[SIDE] = {0}, most = 0;
    for (int i = 0; i < 64; i++) {
        out[i] = (int16_t)(coefficients[dl2_jpeg_zigzag[i]] * steps[i]);
        columns[i % SIDE] += abs(out[i]);
    }
    for (int i = 0; i < SIDE; i++)
        most = columns[i] > most ? columns[i] : most;
    memset(coefficients, 0, 64 * sizeof *coefficients);
    return most < DL2_JPEG_COLUMN_LIMIT;
}

/* One dimension of islow: eight numbers, `step` apart, in place. */
static void islow_pass(int16_t *row, int step, int bits)
{
    const int32_t in0 = row[0], in1 = row[step], in2 = row[2 * step], in3 = row[3 * step];
    const int32_t in4 = row[4 * step], in5 = row[5 * step], in6 = row[6 * step],
                  in7 = row[7 * step];
    /* Even part */
    const int32_t even3 = plus(in2 * (4433 + 6270), in6 * 4433);
    const int32_t even2 = plus(in2 * 4433, in6 * (4433 - 15137));
    const int32_t even0 = (int16_t)(in0 + in4) * (1 << BITS);
    const int32_t even1 = (int16_t)(in0 - in4) * (1 << BITS);
    const int32_t sum0 = plus(even0, even3), sum3 = minus(even0, even3);
    const int32_t sum1 = plus(even1, even2), sum2 = minus(even1, even2);
    /* Odd part */
    const int32_t z3 = (int16_t)(in7 + in3), z4 = (int16_t)(in5 + in1);
    const int32_t odd_z3 = plus(z3 * (9633 - 16069), z4 * 9633);
    const int32_t odd_z4 = plus(z3 * 9633, z4 * (9633 - 3196));
    const int32_t odd0 = plus(plus(in7 * (2446 - 7373), in1 * -7373), odd_z3);
    const int32_t odd3 = plus(plus(in7 * -7373, in1 * (12299 - 7373)), odd_z4);
    const int32_t odd1 = plus(plus(in5 * (16819 - 20995), in3 * -20995), odd_z4);
    const int32_t odd2 = plus(plus(in5 * -20995, in3 * (25172 - 20995)), odd_z3);
    row[0] = descale(plus(sum0, odd3), bits);
    row[7 * step] = descale(minus(sum0, odd3), bits);
    row[step] = descale(plus(sum1, odd2), bits);
    row[6 * step] = descale(minus(sum1, odd2), bits);
    row[2 * step] = descale(plus(sum2, odd1), bits);
    row[5 * step] = descale(minus(sum2, odd1), bits);
    row[3 * step] = descale(plus(sum3, odd0), bits);
    row[4 * step] = descale(minus(sum3, odd0), bits);
}

static bool inverse_8_c(const struct dl2_jpeg_inverse_job *blocks, const uint16_t *steps,
                        size_t stride)
{
    int16_t work[64];
    if (!dequantize(blocks->coefficients, steps, work))
        return false;
    for (int i = 0; i < SIDE; i++)
        islow_pass(work + i, SIDE, BITS - PASS_BITS);
    for (int i = 0; i < SIDE; i++)
        islow_pass(work + SIDE * i, 1, BITS + PASS_BITS + 3);
    for (int y = 0; y < SIDE; y++)
        for (int x = 0; x < SIDE; x++)
            blocks->out[(size_t)y * stride + (size_t)x] = sample(work[SIDE * y + x]);
    return true;
}

/* Eight numbers, `step` apart, to four; the fifth has no part in it. */
static void reduced_4_pass(const int16_t *row, int step, int bits, int16_t *out, int out_step)
{
    const int32_t in1 = row[step], in2 = row[2 * step], in3 = row[3 * step];
    const int32_t in5 = row[5 * step], in6 = row[6 * step], in7 = row[7 * step];
    const int32_t even0 = row[0] * (1 << (BITS + 1));
    const int32_t even2 = plus(in2 * 15137, in6 * -6270);
    const int32_t sum0 = plus(even0, even2), sum2 = minus(even0, even2);
    const int32_t odd2 = plus(plus(in1 * 20995, in3 * 7373), plus(in5 * -4926, in7 * -4176));
    const int32_t odd0 = plus(plus(in1 * 8697, in3 * -17799), plus(in5 * 11893, in7 * -1730));
    out[0] = descale(plus(sum0, odd2), bits);
    out[3 * out_step] = descale(minus(sum0, odd2), bits);
    out[out_step] = descale(plus(sum2, odd0), bits);
    out[2 * out_step] = descale(minus(sum2, odd0), bits);
}

static bool inverse_4_c(const struct dl2_jpeg_inverse_job *blocks, const uint16_t *steps,
                        size_t stride)
{
    int16_t work[64], columns[4 * SIDE], out[4];
    if (!dequantize(blocks->coefficients, steps, work))
        return false;
    for (int i = 0; i < SIDE; i++)
        reduced_4_pass(work + i, SIDE, BITS - PASS_BITS + 1, columns + i, SIDE);
    for (int y = 0; y < 4; y++) {
        reduced_4_pass(columns + SIDE * y, 1, BITS + PASS_BITS + 4, out, 1);
        for (int x = 0; x < 4; x++)
            blocks->out[(size_t)y * stride + (size_t)x] = sample(out[x]);
    }
    return true;
}

/* The odd part of eight numbers to two. */
static int32_t reduced_2_odd(int32_t in1, int32_t in3, int32_t in5, int32_t in7)
{
    return plus(plus(in1 * 29692, in3 * -10426), plus(in5 * 6967, in7 * -5906));
}

static bool inverse_2_c(const struct dl2_jpeg_inverse_job *blocks, const uint16_t *steps,
                        size_t stride)
{
    enum { FIRST = BITS - PASS_BITS + 2, SECOND = BITS + PASS_BITS + 5 };
    int16_t work[64];
    int32_t sums[2][SIDE];
    if (!dequantize(blocks->coefficients, steps, work))
        return false;
    for (int i = 0; i < SIDE; i++) {
        const int16_t *const column = work + i;
        const int32_t even = (int32_t)((uint32_t)column[0] << (BITS + 2));
        const int32_t odd = reduced_2_odd(column[8], column[24], column[40], column[56]);
        sums[0][i] = shorten(plus(even, odd), FIRST);
        sums[1][i] = shorten(minus(even, odd), FIRST);
    }
    for (int y = 0; y < 2; y++) {
        /* All but the first are of 16 bits. */
        const int32_t *const row = sums[y];
        const int32_t even = (int32_t)((uint32_t)row[0] << (BITS + 2));
        const int32_t odd =
            reduced_2_odd(saturate(row[1]), saturate(row[3]), saturate(row[5]), saturate(row[7]));
        blocks->out[(size_t)y * stride] = sample(descale(plus(even, odd), SECOND));
        blocks->out[(size_t)y * stride + 1] = sample(descale(minus(even, odd), SECOND));
    }
    return true;
}

bool dl2_jpeg_inverse_1(const struct dl2_jpeg_inverse_job *blocks, const uint16_t *steps,
                        size_t stride)
{
    (void)stride;
    const int32_t value = blocks->coefficients[0] * (int16_t)steps[0];
    memset(blocks->coefficients, 0, 64 * sizeof *blocks->coefficients);
    *blocks->out = sample(descale(value, 3));
    return abs(value) < ONE_LIMIT;
}

const struct dl2_jpeg_kernels dl2_jpeg_kernels_c = {
    .name = "c",
    .lanes = {1, 1, 1, 1},
    .inverse = {dl2_jpeg_inverse_1, inverse_2_c, inverse_4_c, inverse_8_c},
};

const struct dl2_jpeg_kernels *dl2_jpeg_kernels_for(unsigned simd_flags)
{
    return DL2_SIMD_BEST(dl2_jpeg_kernels, simd_flags);
}
