/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What tables are fitted by, against the same worked out directly: the worth of a coefficient from
 * the resized picture of every block, and the price of a step from every coefficient.
 */
#include "codec/codec.h"
#include "common/memory.h"
#include "common/random.h"
#include "pixels/crop.h"
#include "transcode/tables/fit_sensitivity.h"
#include "transcode/tables/fit_steps.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum { LAGS = DL2_FIT_LAGS, INPUT = 12, MAX_SIDE = 64 };

/* ---- Worth */

/* A picture of one block's coefficient, or nothing outside the block: a plane of `width` x `height`
 * samples. */
static double basis(unsigned block_x, unsigned block_y, unsigned u, unsigned v, unsigned x,
                    unsigned y)
{
    if (x / 8 != block_x || y / 8 != block_y)
        return 0;
    return (u ? 0.5 : sqrt(0.125)) * (v ? 0.5 : sqrt(0.125)) *
           cos((2 * (x % 8) + 1) * u * M_PI / 16) * cos((2 * (y % 8) + 1) * v * M_PI / 16);
}

/* One value of a plane that is resized from a box: Pillow's antialiased triangle, in both
 * directions at once. */
static double resized(const double *plane, unsigned width, unsigned height, const double box[4],
                      unsigned i, unsigned j)
{
    const double scale_x = (box[2] - box[0]) / INPUT, scale_y = (box[3] - box[1]) / INPUT;
    const double reach_x = fmax(scale_x, 1), reach_y = fmax(scale_y, 1);
    double sum = 0, all = 0;
    for (unsigned y = 0; y < height; y++)
        for (unsigned x = 0; x < width; x++) {
            if (x + 1 <= box[0] || x >= box[2] || y + 1 <= box[1] || y >= box[3])
                continue;
            const double dx = fabs(x + 0.5 - box[0] - (i + 0.5) * scale_x) / reach_x;
            const double dy = fabs(y + 0.5 - box[1] - (j + 0.5) * scale_y) / reach_y;
            const double weight = fmax(0, 1 - dx) * fmax(0, 1 - dy);
            sum += weight * plane[y * width + x];
            all += weight;
        }
    return sum / all;
}

static double covariance_at(const struct dl2_fit_input *input, int plane, int dx, int dy)
{
    dx = abs(dx);
    dy = abs(dy);
    const int signs = (dx ? 2 : 1) * (dy ? 2 : 1);
    return dx > LAGS || dy > LAGS ? 0 : input->covariance[plane][dy][dx] / signs;
}

/* The mean over all blocks of what a unit of the coefficient changes, squared. */
static double worth(const struct dl2_fit_input *input, int plane, unsigned width, unsigned height,
                    const double box[4], unsigned u, unsigned v)
{
    const unsigned across = (width + 7) / 8, down = (height + 7) / 8;
    double sum = 0;
    double *const picture = dl2_calloc((size_t)width * height, sizeof *picture);
    assert_non_null(picture);
    for (unsigned block = 0; block < across * down; block++) {
        double seen[INPUT][INPUT];
        for (unsigned y = 0; y < height; y++)
            for (unsigned x = 0; x < width; x++)
                picture[y * width + x] = basis(block % across, block / across, u, v, x, y);
        for (unsigned j = 0; j < INPUT; j++)
            for (unsigned i = 0; i < INPUT; i++)
                seen[j][i] = resized(picture, width, height, box, i, j);
        for (int p = 0; p < INPUT * INPUT; p++)
            for (int q = 0; q < INPUT * INPUT; q++)
                sum += seen[p / INPUT][p % INPUT] * seen[q / INPUT][q % INPUT] *
                       covariance_at(input, plane, p % INPUT - q % INPUT, p / INPUT - q / INPUT);
    }
    free(picture);
    return sum / (across * down);
}

/* A covariance that falls off, differently in each direction and plane. */
static struct dl2_fit_input some_input(void)
{
    struct dl2_fit_input input = {.height = INPUT, .width = INPUT};
    for (int p = 0; p < DL2_FIT_PLANES; p++)
        for (int dy = 0; dy <= LAGS; dy++)
            for (int dx = 0; dx <= LAGS; dx++)
                input.covariance[p][dy][dx] =
                    (dx ? 2 : 1) * (dy ? 2 : 1) * (p + 1) * exp(-0.7 * dx - (0.4 + p) * dy);
    return input;
}

static void worth_is_that_of_all_blocks(void **state)
{
    static const struct {
        unsigned width, height, x, y, crop_width, crop_height;
    } cases[] = {{40, 32, 0, 0, 40, 32}, {37, 29, 5, 3, 23, 17}, {16, 40, 9, 11, 6, 27}};
    const struct dl2_fit_input input = some_input();
    (void)state;
    for (size_t c = 0; c < sizeof cases / sizeof *cases; c++) {
        struct dl2_error error = DL2_ERROR_INIT;
        struct dl2_fit_sensitivity got = {.crops = 0};
        const struct dl2_crop crop = {.x = cases[c].x,
                                      .y = cases[c].y,
                                      .width = cases[c].crop_width,
                                      .height = cases[c].crop_height};
        assert_int_equal(dl2_fit_sensitivity_add(&got, &input, &crop, cases[c].width,
                                                 cases[c].height, 2, 2, &error),
                         DL2_OK);
        for (int plane = 0; plane < DL2_FIT_PLANES; plane++)
            for (unsigned k = 0; k < 64; k += 9 + 4 * (k % 2)) {
                const double step = plane ? 2 : 1;
                const double box[] = {crop.x / step, crop.y / step, (crop.x + crop.width) / step,
                                      (crop.y + crop.height) / step};
                const double want =
                    worth(&input, plane, (unsigned)ceil(cases[c].width / step),
                          (unsigned)ceil(cases[c].height / step), box, k % 8, k / 8);
                if (fabs(got.sums[plane][k] - want) > 1e-9 + 1e-6 * want)
                    fail_msg("case %zu, plane %d, coefficient %u: %g, not %g", c, plane, k,
                             got.sums[plane][k], want);
            }
    }
}

/* The filter is the loader's: it makes of 8-bit pixels the same, but for rounding. */
static void filter_is_the_loaders(void **state)
{
    struct dl2_error error = DL2_ERROR_INIT;
    struct dl2_image image = DL2_IMAGE_INIT;
    struct dl2_resizer resizer = {.kernels = NULL};
    struct dl2_random random;
    static double plane[40 * 32];
    uint8_t out[INPUT * INPUT];
    const struct dl2_crop crop = {5, 3, 31, 20, {0, 0, 31, 20}, false};
    const double box[] = {5, 3, 36, 23};
    (void)state;
    assert_int_equal(dl2_image_reshape(&image, 40, 32, 1, &error), DL2_OK);
    dl2_random_init(&random, 1, DL2_RANDOM_TEST, 0, 0);
    for (unsigned y = 0; y < 32; y++)
        for (unsigned x = 0; x < 40; x++)
            plane[y * 40 + x] = image.data[y * image.stride + x] =
                (uint8_t)dl2_random_below(&random, 256);
    const struct dl2_raster raster = {.color = DL2_COLOR_GRAY,
                                      .planes = {{.data = image.data,
                                                  .stride = image.stride,
                                                  .width = 40,
                                                  .height = 32,
                                                  .step_x = 1,
                                                  .step_y = 1}}};
    const struct dl2_resize_output output = {
        .data = out, .width = INPUT, .height = INPUT, .channels = 1};
    assert_int_equal(dl2_crop_resize(&resizer, &raster, &crop, output, &error), DL2_OK);
    for (unsigned j = 0; j < INPUT; j++)
        for (unsigned i = 0; i < INPUT; i++)
            assert_true(fabs(out[j * INPUT + i] - resized(plane, 40, 32, box, i, j)) <= 1);
    dl2_resizer_free(&resizer);
    dl2_image_free(&image);
}

/* ---- Price */

enum { SAMPLES = 3000 };
static int samples[64][SAMPLES]; /* eighths */

static int level_of(int value, int step)
{
    const int width = 8 * step, level = (abs(value) + width / 2) / width;
    return value < 0 ? -level : level;
}

/* Weighted squared error + lambda * entropy of the levels, where the sign of one that isn't zero
 * takes a bit. */
static double cost_of(unsigned k, int step, double weight, double lambda)
{
    static int counts[2 * DL2_COEFFICIENT_BINS];
    double error = 0, bits = 0;
    memset(counts, 0, sizeof counts);
    for (int i = 0; i < SAMPLES; i++) {
        const int level = level_of(samples[k][i], step);
        const double off = (samples[k][i] - 8.0 * step * level) / 8;
        counts[abs(level)]++;
        error += off * off;
        bits += level != 0;
    }
    for (int i = 0; i < 2 * DL2_COEFFICIENT_BINS; i++)
        if (counts[i])
            bits -= counts[i] * log2((double)counts[i] / SAMPLES);
    return weight * error + lambda * bits;
}

static void draw_samples(struct dl2_coefficient_counts *counts)
{
    struct dl2_random random;
    dl2_random_init(&random, 2, DL2_RANDOM_TEST, 0, 0);
    counts->blocks[0] = SAMPLES;
    for (unsigned k = 0; k < 64; k++)
        for (int i = 0; i < SAMPLES; i++) {
            const double size = 800.0 / (1 + k % 8 + k / 8);
            const int magnitude = (int)(-size * log(1 - dl2_random_uniform(&random)));
            samples[k][i] = magnitude > 8000 ? 8000 : magnitude;
            counts->magnitudes[0][k][samples[k][i]]++;
            if (!k)
                counts->differences[0][samples[k][i]]++;
            if (dl2_random_below(&random, 2))
                samples[k][i] = -samples[k][i];
        }
}

static void steps_cost_the_least(void **state)
{
    struct dl2_error error = DL2_ERROR_INIT;
    const struct dl2_codec *codec = dl2_codec_find("jpeg");
    double weights[3][64];
    (void)state;
    if (!codec)
        skip();
    struct dl2_coefficient_counts *counts = dl2_calloc(1, sizeof *counts);
    struct dl2_jpeg_family *family = dl2_calloc(1, sizeof *family);
    assert_true(counts && family);
    draw_samples(counts);
    for (int p = 0; p < 3; p++)
        for (int k = 0; k < 64; k++)
            weights[p][k] = 2.0 / (1 + k);
    assert_int_equal(dl2_fit_steps(codec, counts, weights, family, &error), DL2_OK);
    for (int q = 10; q <= 90; q += 40)
        for (unsigned k = 0; k < 64; k += 7) {
            const double lambda = family->lambda[q - 1];
            const int step = family->steps[q - 1][0][k];
            const double cost = cost_of(k, step, weights[0][k], lambda);
            for (int other = 1; other < 256; other += 1 + (abs(other - step) > 3) * 13)
                if (cost_of(k, other, weights[0][k], lambda) < cost * (1 - 1e-9))
                    fail_msg("q %d, coefficient %u: step %d is better than %d", q, k, other, step);
        }
    /* Finer and dearer with the quality. */
    for (int q = 2; q <= DL2_TABLES_QUALITIES; q++)
        assert_true(family->lambda[q - 1] <= family->lambda[q - 2]);
    free(counts);
    free(family);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(worth_is_that_of_all_blocks),
        cmocka_unit_test(filter_is_the_loaders),
        cmocka_unit_test(steps_cost_the_least),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
