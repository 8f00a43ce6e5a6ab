/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * PSNR-HVS-M after Ponomarenko, Silvestri, Egiazarian, Carli, Astola, Lukin: "On
 * between-coefficient contrast masking of DCT basis functions", VPQM 2007, as their psnrhvsm.m has
 * it. In each block of 8x8, differences of DCT coefficients count by how well eyes see their
 * frequency, less what the block's other coefficients hide of them.
 *
 * Like psnrhvsm.m it takes blocks side by side from the top left, and leaves out the columns and
 * rows behind the last whole block. An image of fewer than eight columns or rows is filled up by
 * repeating its last one.
 */
#include "quality/scorer.h"

#include <math.h>
#include <string.h>

enum { SIDE = 8, SIZE = SIDE * SIDE };

/* How well each coefficient is seen (psnrhvsm.m: CSFCof), by row and column. */
static const double sensitivity[SIZE] = {
    1.608443, 2.339554, 2.573509, 1.608443, 1.072295, 0.643377, 0.504610, 0.421887,
    2.144591, 2.144591, 1.838221, 1.354478, 0.989811, 0.443708, 0.428918, 0.467911,
    1.838221, 1.979622, 1.608443, 1.072295, 0.643377, 0.451493, 0.372972, 0.459555,
    1.838221, 1.513829, 1.169777, 0.887417, 0.504610, 0.295806, 0.321689, 0.415082,
    1.429727, 1.169777, 0.695543, 0.459555, 0.378457, 0.236102, 0.249855, 0.334222,
    1.072295, 0.735288, 0.467911, 0.402111, 0.317717, 0.247453, 0.227744, 0.279729,
    0.525206, 0.402111, 0.329937, 0.295806, 0.249855, 0.212687, 0.214459, 0.254803,
    0.357432, 0.279729, 0.270896, 0.262603, 0.229778, 0.257351, 0.249855, 0.259950,
};

/* How much each coefficient hides, and is hidden (psnrhvsm.m: MaskCof). */
static const double masking[SIZE] = {
    0.390625, 0.826446, 1.000000, 0.390625, 0.173611, 0.062500, 0.038447, 0.026874,
    0.694444, 0.694444, 0.510204, 0.277008, 0.147929, 0.029727, 0.027778, 0.033058,
    0.510204, 0.591716, 0.390625, 0.173611, 0.062500, 0.030779, 0.021004, 0.031888,
    0.510204, 0.346021, 0.206612, 0.118906, 0.038447, 0.013212, 0.015625, 0.026015,
    0.308642, 0.206612, 0.073046, 0.031888, 0.021626, 0.008417, 0.009426, 0.016866,
    0.173611, 0.081633, 0.033058, 0.024414, 0.015242, 0.009246, 0.007831, 0.011815,
    0.041649, 0.024414, 0.016437, 0.013212, 0.009426, 0.006830, 0.006944, 0.009803,
    0.019290, 0.011815, 0.011080, 0.010412, 0.007972, 0.010000, 0.009426, 0.010203,
};

/* The orthonormal DCT: row k is cos((2n + 1) k pi / 16) / 2, row 0 over the root of 2. */
static void make_basis(double basis[SIZE])
{
    for (int k = 0; k < SIDE; k++)
        for (int n = 0; n < SIDE; n++)
            basis[k * SIDE + n] =
                (k ? 0.5 : sqrt(0.125)) * cos((2 * n + 1) * k * 3.14159265358979323846 / 16);
}

/* out = a b */
static void multiply(const double a[SIZE], const double b[SIZE], double out[SIZE])
{
    for (int row = 0; row < SIDE; row++) {
        double sums[SIDE] = {0};
        for (int k = 0; k < SIDE; k++)
            for (int column = 0; column < SIDE; column++)
                sums[column] += a[row * SIDE + k] * b[k * SIDE + column];
        memcpy(out + row * SIDE, sums, sizeof sums);
    }
}

static void transpose(const double in[SIZE], double out[SIZE])
{
    for (int i = 0; i < SIZE; i++)
        out[i % SIDE * SIDE + i / SIDE] = in[i];
}

/* Luma of the block whose first pixel is (x, y). */
static void load_block(const struct dl2_image *image, size_t x, size_t y, double block[SIZE])
{
    for (size_t j = 0; j < SIDE; j++)
        for (size_t i = 0; i < SIDE; i++) {
            const size_t column = x + i < image->width ? x + i : image->width - 1;
            const size_t row = y + j < image->height ? y + j : image->height - 1;
            const struct dl2_pixel_run pixel = dl2_pixel_run_at(image, column, row);
            block[j * SIDE + i] = dl2_luma_of(pixel.data, pixel.channels) / 1000.0;
        }
}

/* N times the sample variance of `side` x `side` values from `block` on. */
static double spread(const double *block, int side)
{
    const double count = side * side;
    double sum = 0, squares = 0;
    for (int y = 0; y < side; y++)
        for (int x = 0; x < side; x++)
            sum += block[y * SIDE + x];
    for (int y = 0; y < side; y++)
        for (int x = 0; x < side; x++) {
            const double d = block[y * SIDE + x] - sum / count;
            squares += d * d;
        }
    return squares * count / (count - 1);
}

/* How much the block hides: the energy of its coefficients, less where it is not a texture but an
 * edge, whose quarters vary less than the whole. */
static double mask_of(const double block[SIZE], const double dct[SIZE])
{
    double energy = 0;
    for (int i = 1; i < SIZE; i++)
        energy += dct[i] * dct[i] * masking[i];
    const double whole = spread(block, SIDE);
    const double quarters = spread(block, SIDE / 2) + spread(block + SIDE / 2, SIDE / 2) +
                            spread(block + SIZE / 2, SIDE / 2) +
                            spread(block + SIZE / 2 + SIDE / 2, SIDE / 2);
    return sqrt(whole > 0 ? energy * quarters / whole : 0) / 32;
}

static double block_error(const double basis[SIZE], const double turned[SIZE], const double a[SIZE],
                          const double b[SIZE])
{
    double half[SIZE], dct_a[SIZE], dct_b[SIZE], sum = 0;
    multiply(basis, a, half);
    multiply(half, turned, dct_a);
    multiply(basis, b, half);
    multiply(half, turned, dct_b);
    const double mask = fmax(mask_of(a, dct_a), mask_of(b, dct_b));
    for (int i = 0; i < SIZE; i++) {
        double error = fabs(dct_a[i] - dct_b[i]);
        if (i) /* the mean is never hidden */
            error = fmax(error - mask / masking[i], 0);
        sum += error * sensitivity[i] * error * sensitivity[i];
    }
    return sum;
}

static size_t blocks_of(size_t size)
{
    return size < SIDE ? 1 : size / SIDE;
}

static int psnr_hvs_m_measure(struct dl2_scorer *scorer, const struct dl2_image *variant,
                              double sums[DL2_METRIC_SUMS], struct dl2_error *error)
{
    (void)error;
    double basis[SIZE], turned[SIZE], a[SIZE], b[SIZE];
    make_basis(basis);
    transpose(basis, turned);
    for (size_t y = 0; y < blocks_of(variant->height); y++)
        for (size_t x = 0; x < blocks_of(variant->width); x++) {
            load_block(scorer->reference, x * SIDE, y * SIDE, a);
            load_block(variant, x * SIDE, y * SIDE, b);
            if (memcmp(a, b, sizeof a) != 0)
                sums[0] += block_error(basis, turned, a, b);
        }
    return DL2_OK;
}

static double psnr_hvs_m_mean(const double sums[DL2_METRIC_SUMS], const struct dl2_image *reference,
                              const struct dl2_image *variant)
{
    (void)reference;
    return sums[0] /
           ((double)blocks_of(variant->width) * (double)blocks_of(variant->height) * SIZE);
}

/* Its sum: of the squared errors of all coefficients, after weighting and masking. */
const struct dl2_metric dl2_metric_psnr_hvs_m = {
    .name = "psnr_hvs_m",
    .title = "PSNR-HVS-M",
    .unit = "dB",
    .definition =
        "Ponomarenko et al. 2007 as psnrhvsm.m: 10 log10(255^2 / MSE) of the 8x8 DCT's "
        "coefficients, "
        "weighted by contrast sensitivity and less what other coefficients mask; luma of psnr_y; "
        "columns and rows behind the last whole block are left out, and a side below 8 pixels is "
        "filled up by repeating its end",
    .digits = 3,
    .missing = "no_visible_difference",
    .missing_note = "without a difference that PSNR-HVS-M counts",
    .measure = psnr_hvs_m_measure,
    .mean = psnr_hvs_m_mean,
    .of_mse = dl2_psnr_of_mse,
};
