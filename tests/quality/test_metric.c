/* SPDX-License-Identifier: BSD-2-Clause */
#include "common/simd.h"
#include "quality/metric.h"
#include "quality/scorer.h"
#include "tests/quality/pattern.h"
#include "tests/unit.h"

#include <math.h>

static void assert_close_at(double value, double truth, double tolerance, int line)
{
    if (fabs(value - truth) <= tolerance)
        return;
    print_error("line %d: %.12g is not %.12g (off by %.3g)\n", line, value, truth, value - truth);
    fail();
}

#define assert_close(value, truth, tolerance) assert_close_at(value, truth, tolerance, __LINE__)

/* Every table that was built and that this processor can run, whatever DL2_SIMD says. */
static const struct dl2_metric_kernels *paths[4];
static size_t path_count;

static void find_paths(void)
{
    unsetenv("DL2_SIMD");
    const unsigned have = dl2_simd_flags(),
                   levels[] = {0, DL2_SIMD_NEON, DL2_SIMD_AVX2, DL2_SIMD_AVX2 | DL2_SIMD_AVX512};
    for (size_t i = 0; i < 4; i++) {
        const struct dl2_metric_kernels *kernels = dl2_metric_kernels_for(levels[i] & have);
        if (!path_count || kernels != paths[path_count - 1])
            paths[path_count++] = kernels;
    }
    for (size_t i = 0; i < path_count; i++)
        print_message("path: %s\n", paths[i]->name);
}

static struct dl2_scorer *scorer_for(size_t path)
{
    struct dl2_scorer *scorer;
    assert_int_equal(dl2_scorer_create(&scorer, NULL), DL2_OK);
    scorer->kernels = paths[path];
    return scorer;
}

static struct dl2_image new_image(uint32_t width, uint32_t height, uint32_t channels)
{
    struct dl2_image image = DL2_IMAGE_INIT;
    assert_int_equal(dl2_image_reshape(&image, width, height, channels, NULL), DL2_OK);
    return image;
}

static struct dl2_image flat_image(uint32_t width, uint32_t height, uint32_t channels, int value)
{
    struct dl2_image image = new_image(width, height, channels);
    memset(image.data, value, image.stride * height);
    return image;
}

static struct dl2_score score_by(struct dl2_scorer *scorer, const struct dl2_metric *metric,
                                 const struct dl2_image *reference, const struct dl2_image *variant)
{
    struct dl2_score result;
    dl2_scorer_set_reference(scorer, reference);
    assert_int_equal(dl2_scorer_score(scorer, metric, variant, &result, NULL), DL2_OK);
    return result;
}

/* By a new scorer, so that a sanitizer sees who looks beyond its memory. */
static struct dl2_score score(size_t path, const struct dl2_metric *metric,
                              const struct dl2_image *reference, const struct dl2_image *variant)
{
    struct dl2_scorer *scorer = scorer_for(path);
    const struct dl2_score result = score_by(scorer, metric, reference, variant);
    dl2_scorer_free(scorer);
    return result;
}

static double luma_at(const struct dl2_image *image, uint32_t x, uint32_t y)
{
    const uint8_t *p = image->data + y * image->stride + (size_t)x * image->channels;
    return image->channels == 1 ? p[0] : 0.299 * p[0] + 0.587 * p[1] + 0.114 * p[2];
}

/* A plane of luma in double precision. */
struct luma_plane {
    double *data;
    uint32_t width, height;
};

static struct luma_plane luma_of(const struct dl2_image *image)
{
    struct luma_plane plane = {calloc((size_t)image->width * image->height, sizeof(double)),
                               image->width, image->height};
    assert_non_null(plane.data);
    for (uint32_t y = 0; y < image->height; y++)
        for (uint32_t x = 0; x < image->width; x++)
            plane.data[(size_t)y * image->width + x] = luma_at(image, x, y);
    return plane;
}

static double at(const struct luma_plane *plane, uint32_t x, uint32_t y)
{
    x = x < plane->width ? x : plane->width - 1;
    y = y < plane->height ? y : plane->height - 1;
    return plane->data[(size_t)y * plane->width + x];
}

static struct luma_plane half_of(const struct luma_plane *plane)
{
    struct luma_plane half = {NULL, (plane->width + 1) / 2, (plane->height + 1) / 2};
    half.data = calloc((size_t)half.width * half.height, sizeof(double));
    assert_non_null(half.data);
    for (uint32_t y = 0; y < half.height; y++)
        for (uint32_t x = 0; x < half.width; x++)
            half.data[(size_t)y * half.width + x] =
                (at(plane, 2 * x, 2 * y) + at(plane, 2 * x + 1, 2 * y) +
                 at(plane, 2 * x, 2 * y + 1) + at(plane, 2 * x + 1, 2 * y + 1)) /
                4;
    return half;
}

/* The paper's formulae as they stand, in double precision, a window at a time. */
static double textbook_mean(const struct luma_plane *a, const struct luma_plane *b, bool luminance)
{
    double w[11], total = 0, sum = 0;
    for (int i = 0; i < 11; i++)
        sum += w[i] = exp(-(i - 5) * (i - 5) / (2 * 1.5 * 1.5));
    for (uint32_t y = 0; y + 10 < a->height; y++)
        for (uint32_t x = 0; x + 10 < a->width; x++) {
            double mx = 0, my = 0, xx = 0, yy = 0, xy = 0;
            for (uint32_t j = 0; j < 11; j++)
                for (uint32_t i = 0; i < 11; i++) {
                    const double weight = w[i] * w[j] / (sum * sum);
                    const double u = at(a, x + i, y + j), v = at(b, x + i, y + j);
                    mx += weight * u;
                    my += weight * v;
                    xx += weight * u * u;
                    yy += weight * v * v;
                    xy += weight * u * v;
                }
            const double c1 = 0.01 * 255 * 0.01 * 255, c2 = 0.03 * 255 * 0.03 * 255;
            const double structure = (2 * (xy - mx * my) + c2) / (xx - mx * mx + yy - my * my + c2);
            total +=
                luminance ? structure * (2 * mx * my + c1) / (mx * mx + my * my + c1) : structure;
        }
    return total / ((a->width - 10.0) * (a->height - 10.0));
}

static double textbook_ssim(const struct dl2_image *a, const struct dl2_image *b)
{
    struct luma_plane x = luma_of(a), y = luma_of(b);
    const double mean = textbook_mean(&x, &y, true);
    free(x.data);
    free(y.data);
    return mean;
}

static double textbook_ms_ssim(const struct dl2_image *a, const struct dl2_image *b)
{
    static const double weights[] = {0.0448, 0.2856, 0.3001, 0.2363, 0.1333};
    struct luma_plane x = luma_of(a), y = luma_of(b);
    double product = 1;
    for (int scale = 0; scale < 5; scale++) {
        product *= pow(fmax(textbook_mean(&x, &y, scale == 4), 0), weights[scale]);
        const struct luma_plane x_half = half_of(&x), y_half = half_of(&y);
        free(x.data);
        free(y.data);
        x = x_half;
        y = y_half;
    }
    free(x.data);
    free(y.data);
    return product;
}

/* make_golden.py computes what scikit-image lacks. */
static void scikit_image_agrees(void **state)
{
    static const struct {
        uint32_t width, height, channels, strength;
        int shift;
        double psnr_rgb, psnr_y, ssim, ms_ssim, psnr_hvs_m, ssimulacra2, ciede2000, ciede2000_p95;
    } golden[] = {
#include "tests/quality/golden.inc"
    };
    for (size_t p = 0; p < path_count; p++) {
        for (size_t i = 0; i < sizeof golden / sizeof golden[0]; i++) {
            struct dl2_image a = new_image(golden[i].width, golden[i].height, golden[i].channels);
            struct dl2_image b = new_image(golden[i].width, golden[i].height, golden[i].channels);
            pattern_fill(&a, 0, 0);
            pattern_fill(&b, golden[i].strength, golden[i].shift);
            assert_close(score(p, &dl2_metric_psnr_rgb, &a, &b).value, golden[i].psnr_rgb, 1e-9);
            assert_close(score(p, &dl2_metric_psnr_y, &a, &b).value, golden[i].psnr_y, 1e-9);
            assert_close(score(p, &dl2_metric_ssim, &a, &b).value, golden[i].ssim, 2e-7);
            const double ms_ssim = score(p, &dl2_metric_ms_ssim, &a, &b).value;
            assert_int_equal(isnan(ms_ssim), isnan(golden[i].ms_ssim));
            if (!isnan(ms_ssim))
                assert_close(ms_ssim, golden[i].ms_ssim, 2e-7);
            assert_close(score(p, &dl2_metric_psnr_hvs_m, &a, &b).value, golden[i].psnr_hvs_m,
                         1e-8);
            assert_close(score(p, &dl2_metric_ssimulacra2, &a, &b).value, golden[i].ssimulacra2,
                         1e-3);
            assert_close(score(p, &dl2_metric_ciede2000, &a, &b).value, golden[i].ciede2000, 1e-4);
            assert_close(score(p, &dl2_metric_ciede2000_p95, &a, &b).value, golden[i].ciede2000_p95,
                         1e-3);
            dl2_image_free(&a);
            dl2_image_free(&b);
        }
    }
}

/* Fills an image with one of a few hard kinds of content. */
static void fill_hard(struct dl2_image *image, int kind, uint32_t seed)
{
    for (uint32_t y = 0; y < image->height; y++)
        for (uint32_t x = 0; x < image->width; x++)
            for (uint32_t c = 0; c < image->channels; c++) {
                const uint32_t noise = pattern_hash(x, y, c, seed);
                uint32_t v = 0;
                switch (kind) {
                case 0: /* nothing but noise */
                    v = noise % 256;
                    break;
                case 1: /* bright and almost flat: the worst for E[x^2] - E[x]^2 */
                    v = 250 + noise % 3;
                    break;
                case 2: /* black beside white, with a little noise */
                    v = (x < image->width / 2 ? 0 : 252) + noise % 4;
                    break;
                case 3: /* one or the other */
                    v = noise % 2 ? 255 : 0;
                    break;
                }
                image->data[y * image->stride + x * image->channels + c] = (uint8_t)v;
            }
}

static void textbook_agrees(void **state)
{
    /* Around the widths of vectors and strips; heights that leave a group of rows unfinished. */
    static const uint32_t sizes[][2] = {{11, 11}, {13, 12},   {18, 15},   {25, 11},
                                        {26, 14}, {27, 31},   {42, 17},   {43, 13},
                                        {91, 19}, {4096, 12}, {4097, 13}, {8183, 11}};
    for (size_t s = 0; s < sizeof sizes / sizeof sizes[0]; s++)
        for (int kind = 0; kind < 4; kind++) {
            struct dl2_image a = new_image(sizes[s][0], sizes[s][1], 3),
                             b = new_image(sizes[s][0], sizes[s][1], 3);
            fill_hard(&a, kind, 1);
            fill_hard(&b, kind, 2);
            const double truth = textbook_ssim(&a, &b);
            for (size_t p = 0; p < path_count; p++)
                assert_close(score(p, &dl2_metric_ssim, &a, &b).value, truth, 5e-7);
            dl2_image_free(&a);
            dl2_image_free(&b);
        }
}

/* Odd sizes at every scale, several strips (of an odd width at first), and a negative mean. */
static void textbook_agrees_on_ms_ssim(void **state)
{
    static const uint32_t sizes[][2] = {{176, 176}, {177, 183},  {191, 178},
                                        {207, 177}, {4097, 176}, {8201, 177}};
    for (size_t s = 0; s < sizeof sizes / sizeof sizes[0]; s++)
        for (int kind = s < 4 ? 0 : 3; kind < 5; kind++) {
            struct dl2_image a = new_image(sizes[s][0], sizes[s][1], 1),
                             b = new_image(sizes[s][0], sizes[s][1], 1);
            fill_hard(&a, kind < 4 ? kind : 2, 1);
            fill_hard(&b, kind < 4 ? kind : 2, 2);
            if (kind == 4) /* the negative */
                for (size_t i = 0; i < b.stride * b.height; i++)
                    b.data[i] = (uint8_t)(255 - b.data[i]);
            const double truth = textbook_ms_ssim(&a, &b);
            for (size_t p = 0; p < path_count; p++)
                assert_close(score(p, &dl2_metric_ms_ssim, &a, &b).value, truth, 1e-6);
            dl2_image_free(&a);
            dl2_image_free(&b);
        }
}

/* PSNR is whole-number arithmetic: the same bits. SSIM differs by the rounding of fused
 * multiply-adds. */
static void simd_equals_c(void **state)
{
    for (size_t p = 1; p < path_count; p++)
        for (uint32_t width = 1; width < 420; width += width < 80 ? 1 : 23)
            for (uint32_t channels = 1; channels <= 3; channels += 2) {
                const uint32_t height = (width < 176 ? 11 : 176) + width % 7;
                struct dl2_image a = new_image(width, height, channels);
                struct dl2_image b = new_image(width, height, channels);
                fill_hard(&a, 0, 1);
                pattern_fill(&b, 50, 0);
                for (unsigned m = 0; dl2_metric_at(m); m++) {
                    const struct dl2_metric *metric = dl2_metric_at(m);
                    if (strncmp(metric->name, "butteraugli", 11) == 0)
                        continue; /* has none of our kernels, and takes long */
                    const struct dl2_score one = score(0, metric, &a, &b),
                                           other = score(p, metric, &a, &b);
                    assert_int_equal(isnan(one.value), isnan(other.value));
                    if (isnan(one.value))
                        continue;
                    if (dl2_metric_at(m)->of_mse)
                        assert_memory_equal(&one.mean, &other.mean, sizeof one.mean);
                    else
                        assert_close(one.value, other.value, 5e-7);
                }
                dl2_image_free(&a);
                dl2_image_free(&b);
            }
}

/* SSIMULACRA2's paths do the same operations in the same order. Widths are around its blocks and
 * strips; every number of scales. */
static void ssimulacra2_is_the_same_to_the_bit(void **state)
{
    static const uint32_t sizes[][2] = {{8, 8},    {9, 33},    {16, 15},   {17, 112}, {31, 113},
                                        {65, 70},  {150, 130}, {511, 9},   {512, 20}, {513, 21},
                                        {515, 40}, {517, 120}, {1025, 40}, {1540, 11}};
    for (size_t s = 0; s < sizeof sizes / sizeof sizes[0]; s++)
        for (int kind = 0; kind < 4; kind++) {
            struct dl2_image a = new_image(sizes[s][0], sizes[s][1], 3),
                             b = new_image(sizes[s][0], sizes[s][1], 3);
            fill_hard(&a, kind, 1);
            fill_hard(&b, kind, 2);
            const double value = score(0, &dl2_metric_ssimulacra2, &a, &b).value;
            assert_true(isfinite(value));
            for (size_t p = 1; p < path_count; p++)
                assert_true(score(p, &dl2_metric_ssimulacra2, &a, &b).value == value);
            assert_true(score(0, &dl2_metric_ssimulacra2, &a, &a).value == 100);
            dl2_image_free(&a);
            dl2_image_free(&b);
        }
    struct dl2_image small = flat_image(300, 7, 3, 10);
    assert_true(isnan(score(0, &dl2_metric_ssimulacra2, &small, &small).value));
    dl2_image_free(&small);
}

/* A side below 8 pixels is filled up, what follows the last whole block is left out. */
static void blocks_of_psnr_hvs_m(void **state)
{
    struct dl2_image a[3], b[3];
    static const uint32_t sizes[][2] = {{5, 7}, {8, 8}, {15, 12}};
    for (int i = 0; i < 3; i++) {
        a[i] = new_image(sizes[i][0], sizes[i][1], 1);
        b[i] = new_image(sizes[i][0], sizes[i][1], 1);
        for (uint32_t y = 0; y < a[i].height; y++)
            for (uint32_t x = 0; x < a[i].width; x++) {
                /* The second is the first, filled up; the third has it in its corner. */
                const uint32_t at = x < 8 && y < 8 ? (y < 7 ? y : 6) * 16 + (x < 5 ? x : 4) : 999;
                a[i].data[y * a[i].stride + x] = (uint8_t)(pattern_hash(at, 0, 0, 1) % 200);
                b[i].data[y * b[i].stride + x] = (uint8_t)(pattern_hash(at, x / 8, 0, 2) % 250);
            }
    }
    const double value = score(0, &dl2_metric_psnr_hvs_m, &a[0], &b[0]).value;
    assert_true(isfinite(value));
    for (int i = 1; i < 3; i++)
        assert_true(score(0, &dl2_metric_psnr_hvs_m, &a[i], &b[i]).value == value);
    /* A difference that eyes do not see has no value; one of the mean always has. */
    memcpy(b[1].data, a[1].data, b[1].stride * b[1].height);
    a[1].data[18] = b[1].data[18] = a[1].data[19] = b[1].data[19] = 100;
    b[1].data[18]++;
    assert_false(isnan(score(0, &dl2_metric_psnr_hvs_m, &a[1], &b[1]).value));
    b[1].data[19]--;
    assert_true(isnan(score(0, &dl2_metric_psnr_hvs_m, &a[1], &b[1]).value));
    for (int i = 0; i < 3; i++) {
        dl2_image_free(&a[i]);
        dl2_image_free(&b[i]);
    }
}

/* Sums of many large squares: a lane of 32 bits would overflow. */
static void long_sums_are_exact(void **state)
{
    const size_t count = 3000017;
    uint8_t *a = calloc(count, 1), *b = malloc(count);
    assert_true(a && b);
    memset(b, 255, count);
    for (size_t p = 0; p < path_count; p++)
        assert_int_equal(paths[p]->byte_error(a, b, count), (uint64_t)count * 255 * 255);
    free(a);
    free(b);
}

static void identical_images(void **state)
{
    for (size_t p = 0; p < path_count; p++) {
        struct dl2_image a = new_image(83, 29, 3), b = new_image(83, 29, 3);
        pattern_fill(&a, 0, 0);
        pattern_fill(&b, 0, 0);
        assert_true(dl2_images_equal(&a, &b));
        for (int i = 0; i < 2; i++) {
            const struct dl2_score psnr =
                score(p, i ? &dl2_metric_psnr_y : &dl2_metric_psnr_rgb, &a, &b);
            assert_true(isnan(psnr.value) && psnr.mean == 0);
        }
        assert_true(score(p, &dl2_metric_ssim, &a, &b).value == 1);
        struct dl2_image large = new_image(203, 181, 3);
        pattern_fill(&large, 0, 0);
        assert_true(score(p, &dl2_metric_ms_ssim, &large, &large).value == 1);
        dl2_image_free(&large);
        b.data[b.stride * b.height - 1] ^= 1;
        assert_false(dl2_images_equal(&a, &b));
        assert_false(isnan(score(p, &dl2_metric_psnr_rgb, &a, &b).value));
        dl2_image_free(&a);
        dl2_image_free(&b);
    }
}

static void black_and_white(void **state)
{
    struct dl2_image black = flat_image(100, 40, 3, 0), white = flat_image(100, 40, 3, 255);
    for (size_t p = 0; p < path_count; p++) {
        assert_true(score(p, &dl2_metric_psnr_rgb, &black, &white).value == 0);
        assert_true(score(p, &dl2_metric_psnr_y, &black, &white).value == 0);
        /* Without structure: C1 / (255^2 + C1), times 1. The tolerance is that of floats. */
        assert_close(score(p, &dl2_metric_ssim, &black, &white).value, 6.5025 / (65025 + 6.5025),
                     1e-8);
    }
    dl2_image_free(&black);
    dl2_image_free(&white);
}

static void small_images_have_no_ms_ssim(void **state)
{
    for (uint32_t side = 175; side <= 176; side++)
        for (int wide = 0; wide < 2; wide++) {
            struct dl2_image a = flat_image(wide ? 300 : side, wide ? side : 300, 3, 10);
            assert_int_equal(isnan(score(0, &dl2_metric_ms_ssim, &a, &a).value), side < 176);
            dl2_image_free(&a);
        }
}

static void small_images_have_no_ssim(void **state)
{
    static const uint32_t sizes[][2] = {{1, 1}, {10, 11}, {11, 10}, {1, 500}, {500, 1}};
    for (size_t s = 0; s < sizeof sizes / sizeof sizes[0]; s++)
        for (size_t p = 0; p < path_count; p++) {
            struct dl2_image a = flat_image(sizes[s][0], sizes[s][1], 3, 10);
            struct dl2_image b = flat_image(sizes[s][0], sizes[s][1], 3, 20);
            assert_true(isnan(score(p, &dl2_metric_ssim, &a, &b).value));
            assert_close(score(p, &dl2_metric_psnr_rgb, &a, &b).mean, 100, 0);
            assert_close(score(p, &dl2_metric_psnr_y, &a, &b).mean, 100, 0);
            dl2_image_free(&a);
            dl2_image_free(&b);
        }
}

/* A gray image is the same as R = G = B, on either side. */
static void gray_against_color(void **state)
{
    struct dl2_image gray = new_image(190, 180, 1), same = new_image(190, 180, 3),
                     color = new_image(190, 180, 3);
    pattern_fill(&gray, 0, 0);
    pattern_fill(&color, 20, 0);
    for (size_t i = 0; i < 190 * 180; i++)
        memset(same.data + 3 * i, gray.data[i], 3);
    assert_true(dl2_images_equal(&gray, &same) && dl2_images_equal(&same, &gray));
    assert_false(dl2_images_equal(&gray, &color));
    for (size_t p = 0; p < path_count; p++) {
        for (unsigned m = 0; dl2_metric_at(m); m++) {
            const struct dl2_metric *metric = dl2_metric_at(m);
            const double truth = score(p, metric, &same, &color).value;
            assert_true(score(p, metric, &gray, &color).value == truth);
            assert_true(score(p, metric, &color, &gray).value ==
                        score(p, metric, &color, &same).value);
        }
        assert_true(isnan(score(p, &dl2_metric_psnr_rgb, &gray, &same).value));
    }
    dl2_image_free(&gray);
    dl2_image_free(&same);
    dl2_image_free(&color);
}

/* ---- CIEDE2000 by the formula as it stands, in double precision */

static double lab_curve(double t)
{
    return t > 0.008856 ? cbrt(t) : 7.787 * t + 16.0 / 116;
}

static void lab_of(const uint8_t *pixel, double lab[3])
{
    double light[3];
    for (int c = 0; c < 3; c++) {
        const double v = pixel[c] / 255.0;
        light[c] = v <= 0.04045 ? v / 12.92 : pow((v + 0.055) / 1.055, 2.4);
    }
    const double r = light[0], g = light[1], b = light[2];
    const double x = lab_curve((0.412453 * r + 0.357580 * g + 0.180423 * b) / 0.95047);
    const double y = lab_curve(0.212671 * r + 0.715160 * g + 0.072169 * b);
    const double z = lab_curve((0.019334 * r + 0.119193 * g + 0.950227 * b) / 1.08883);
    lab[0] = 116 * y - 16;
    lab[1] = 500 * (x - y);
    lab[2] = 200 * (y - z);
}

static double degrees_of(double b, double a)
{
    const double angle = atan2(b, a) * 180 / 3.14159265358979323846;
    return angle < 0 ? angle + 360 : angle;
}

static double cosine(double degrees)
{
    return cos(degrees * 3.14159265358979323846 / 180);
}

static double sine_of(double degrees)
{
    return cosine(degrees - 90);
}

static double textbook_ciede2000(const uint8_t *one, const uint8_t *other)
{
    double p[3], q[3];
    lab_of(one, p);
    lab_of(other, q);
    const double mean = (hypot(p[1], p[2]) + hypot(q[1], q[2])) / 2;
    const double g = 0.5 * (1 - sqrt(pow(mean, 7) / (pow(mean, 7) + pow(25, 7))));
    const double a1 = (1 + g) * p[1], a2 = (1 + g) * q[1];
    const double c1 = hypot(a1, p[2]), c2 = hypot(a2, q[2]);
    const double h1 = degrees_of(p[2], a1), h2 = degrees_of(q[2], a2);
    double turn = h2 - h1, h = (h1 + h2) / 2;
    if (fabs(turn) > 180) {
        turn += turn > 0 ? -360 : 360;
        h += h1 + h2 < 360 ? 180 : -180;
    }
    const double dh = 2 * sqrt(c1 * c2) * sine_of(turn / 2);
    const double l = (p[0] + q[0]) / 2, c = (c1 + c2) / 2;
    const double t = 1 - 0.17 * cosine(h - 30) + 0.24 * cosine(2 * h) + 0.32 * cosine(3 * h + 6) -
                     0.20 * cosine(4 * h - 63);
    const double rotation = -2 * sqrt(pow(c, 7) / (pow(c, 7) + pow(25, 7))) *
                            sine_of(60 * exp(-pow((h - 275) / 25, 2)));
    const double el = (q[0] - p[0]) / (1 + 0.015 * pow(l - 50, 2) / sqrt(20 + pow(l - 50, 2)));
    const double ec = (c2 - c1) / (1 + 0.045 * c), eh = dh / (1 + 0.015 * c * t);
    return sqrt(el * el + ec * ec + eh * eh + rotation * ec * eh);
}

/* Every path gives the same bits, near the formula: for far colors, near ones, and grays. */
static void ciede2000_is_the_formula(void **state)
{
    enum { COUNT = 4096 };
    static float planes[2][3][COUNT], results[2][COUNT];
    static uint8_t pixels[2][COUNT][3];
    struct dl2_scorer *scorer = scorer_for(0);
    double sum = 0, truths = 0;
    for (uint32_t i = 0; i < COUNT; i++)
        for (uint32_t c = 0; c < 3; c++) {
            const uint32_t noise = pattern_hash(i, i % 4 == 3 ? 0 : c, 0, 1);
            const uint32_t near = (noise >> 8) % 9, v = noise % 256;
            pixels[0][i][c] = (uint8_t)v;
            pixels[1][i][c] = (uint8_t)(i % 4 == 0 ? noise >> 16 : v < 247 ? v + near : v - near);
        }
    for (int image = 0; image < 2; image++)
        for (size_t i = 0; i < COUNT; i++)
            for (int c = 0; c < 3; c++)
                planes[image][c][i] = scorer->linear[pixels[image][i][c]];
    const float *const one[] = {planes[0][0], planes[0][1], planes[0][2]};
    const float *const other[] = {planes[1][0], planes[1][1], planes[1][2]};
    for (size_t p = 0; p < path_count; p++) {
        paths[p]->ciede2000(one, other, COUNT, results[p > 0]);
        assert_memory_equal(results[p > 0], results[0], sizeof results[0]);
    }
    for (size_t i = 0; i < COUNT; i++) {
        const double truth = textbook_ciede2000(pixels[0][i], pixels[1][i]);
        assert_close((double)results[0][i], truth, 1e-3);
        sum += (double)results[0][i];
        truths += truth;
    }
    assert_close(sum / COUNT, truths / COUNT, 1e-4);
    paths[0]->ciede2000(one, one, COUNT, results[0]);
    for (size_t i = 0; i < COUNT; i++)
        assert_true(results[0][i] == 0);
    dl2_scorer_free(scorer);
}

/* The map's mean is the score, on every path and across strips; where nothing differs it is 1. */
static void ssim_maps_average_to_the_score(void **state)
{
    struct dl2_image a = new_image(4300, 23, 3), b = new_image(4300, 23, 3);
    pattern_fill(&a, 0, 0);
    pattern_fill(&b, 0, 0);
    b.data[b.stride * 15 + 3 * 4200] ^= 255;
    for (size_t p = 0; p < path_count; p++) {
        struct dl2_scorer *scorer = scorer_for(p);
        const double mean = score_by(scorer, &dl2_metric_ssim, &a, &b).value;
        const float *map;
        double sum = 0;
        assert_int_equal(dl2_ssim_map(scorer, &b, &map, NULL), DL2_OK);
        for (size_t y = 0; y < 13; y++)
            for (size_t x = 0; x < 4290; x++) {
                const double value = (double)map[y * 4290 + x];
                sum += value;
                if (y < 5 || x < 4190 || x > 4200)
                    assert_true(value == 1);
            }
        assert_true(map[10 * 4290 + 4195] < 0.9f);
        assert_close(sum / (13 * 4290), mean, 1e-8);
        dl2_scorer_free(scorer);
    }
    dl2_image_free(&a);
    dl2_image_free(&b);
}

/* 257 times the samples give the same score, whatever the channels. */
static void deep_images_score_the_same(void **state)
{
    struct dl2_image images[2] = {new_image(61, 47, 1), new_image(61, 47, 3)};
    struct dl2_deep_image deep[2] = {{.width = 0}, {.width = 0}};
    pattern_fill(&images[0], 0, 0);
    pattern_fill(&images[1], 20, 0);
    for (int i = 0; i < 2; i++)
        assert_int_equal(dl2_deep_of_image(&deep[i], &images[i], NULL), DL2_OK);
    const struct dl2_metric *const metrics[] = {&dl2_metric_psnr_rgb, &dl2_metric_psnr_y};
    for (int m = 0; m < 2; m++)
        for (int a = 0; a < 2; a++) {
            double sums[DL2_METRIC_SUMS] = {0};
            struct dl2_score of_deep;
            metrics[m]->measure_deep(&deep[a], &deep[!a], sums);
            dl2_score_of_sums(metrics[m], sums, &images[a], &images[!a], &of_deep);
            assert_close(of_deep.value, score(0, metrics[m], &images[a], &images[!a]).value, 1e-9);
        }
    assert_true(dl2_deep_equal(&deep[1], &deep[1]));
    assert_false(dl2_deep_equal(&deep[0], &deep[1]));
    assert_int_equal(dl2_deep_sample(1023, 1023), 65535);
    assert_int_equal(dl2_deep_sample(1, 4095), 16);
    for (int i = 0; i < 2; i++) {
        dl2_image_free(&images[i]);
        dl2_bytes_free(&deep[i].bytes);
    }
}

/* Where the shorter side is 256/224 of the input, an input is the middle of the image. */
static void inputs_are_the_middle(void **state)
{
    enum { SIDE = 73, WIDTH = 80, INPUT = 64, LEFT = 8, TOP = 4 };
    struct dl2_image a = new_image(WIDTH, SIDE, 3), b = new_image(WIDTH, SIDE, 3);
    pattern_fill(&a, 0, 0);
    pattern_fill(&b, 20, 0);
    struct dl2_image middle_a = new_image(INPUT, INPUT, 3), middle_b = new_image(INPUT, INPUT, 3);
    for (size_t y = 0; y < INPUT; y++) {
        memcpy(middle_a.data + y * middle_a.stride, a.data + (TOP + y) * a.stride + 3 * LEFT,
               middle_a.stride);
        memcpy(middle_b.data + y * middle_b.stride, b.data + (TOP + y) * b.stride + 3 * LEFT,
               middle_b.stride);
    }
    struct dl2_scorer *scorer = scorer_for(0);
    dl2_scorer_set_input_size(scorer, INPUT);
    assert_true(score_by(scorer, &dl2_metric_input_psnr, &a, &b).value ==
                score_by(scorer, &dl2_metric_psnr_rgb, &middle_a, &middle_b).value);
    assert_true(score_by(scorer, &dl2_metric_input_ssim, &a, &b).value ==
                score_by(scorer, &dl2_metric_ssim, &middle_a, &middle_b).value);
    /* With others, in any order; and the original, of another size, in place of the reference. */
    const struct dl2_metric *const metrics[] = {&dl2_metric_input_ssim, NULL, &dl2_metric_ssim,
                                                &dl2_metric_input_psnr};
    struct dl2_score scores[4] = {{0}, {.value = 5}, {0}, {0}};
    dl2_scorer_set_reference(scorer, &b);
    dl2_scorer_set_original(scorer, &middle_b);
    assert_int_equal(dl2_scorer_score_all(scorer, metrics, 4, &b, scores, NULL), DL2_OK);
    assert_true(scores[0].value < 1 && scores[1].value == 5 && scores[2].value == 1);
    assert_true(scores[3].value == score_by(scorer, &dl2_metric_input_psnr, &middle_b, &b).value);
    dl2_scorer_free(scorer);
    dl2_image_free(&a);
    dl2_image_free(&b);
    dl2_image_free(&middle_a);
    dl2_image_free(&middle_b);
}

/* A scorer's memory is reused: what it scored before must not show. */
static void scorers_are_reusable(void **state)
{
    struct dl2_scorer *scorer = scorer_for(path_count - 1);
    struct dl2_image large = new_image(400, 90, 3), noise = new_image(400, 90, 3);
    struct dl2_image small = new_image(33, 21, 3), other = new_image(33, 21, 3),
                     another = new_image(33, 21, 3);
    fill_hard(&noise, 3, 7);
    pattern_fill(&large, 0, 0);
    pattern_fill(&small, 0, 0);
    pattern_fill(&other, 9, 0);
    pattern_fill(&another, 30, 5);
    const double first = score_by(scorer, &dl2_metric_ssim, &small, &other).value;
    const double second = score_by(scorer, &dl2_metric_ssim, &small, &another).value;
    score_by(scorer, &dl2_metric_ssim, &large, &noise);
    assert_true(score_by(scorer, &dl2_metric_ssim, &small, &other).value == first);
    struct dl2_score again;
    assert_int_equal(dl2_scorer_score(scorer, &dl2_metric_ssim, &another, &again, NULL), DL2_OK);
    assert_true(again.value == second);
    struct dl2_error error = DL2_ERROR_INIT;
    assert_int_equal(dl2_scorer_score(scorer, &dl2_metric_ssim, &large, &again, &error),
                     DL2_ERR_ARGUMENT);
    dl2_scorer_set_reference(scorer, NULL);
    assert_int_equal(dl2_scorer_score(scorer, &dl2_metric_ssim, &large, &again, NULL),
                     DL2_ERR_ARGUMENT);
    dl2_image_free(&large);
    dl2_image_free(&noise);
    dl2_image_free(&small);
    dl2_image_free(&other);
    dl2_image_free(&another);
    dl2_scorer_free(scorer);
}

static void registry(void **state)
{
    assert_ptr_equal(dl2_metric_at(0), &dl2_metric_psnr_rgb);
    assert_null(dl2_metric_at(DL2_METRIC_COUNT));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(registry),
        cmocka_unit_test(scikit_image_agrees),
        cmocka_unit_test(textbook_agrees),
        cmocka_unit_test(textbook_agrees_on_ms_ssim),
        cmocka_unit_test(simd_equals_c),
        cmocka_unit_test(ssimulacra2_is_the_same_to_the_bit),
        cmocka_unit_test(blocks_of_psnr_hvs_m),
        cmocka_unit_test(long_sums_are_exact),
        cmocka_unit_test(identical_images),
        cmocka_unit_test(black_and_white),
        cmocka_unit_test(small_images_have_no_ssim),
        cmocka_unit_test(small_images_have_no_ms_ssim),
        cmocka_unit_test(gray_against_color),
        cmocka_unit_test(ciede2000_is_the_formula),
        cmocka_unit_test(ssim_maps_average_to_the_score),
        cmocka_unit_test(deep_images_score_the_same),
        cmocka_unit_test(inputs_are_the_middle),
        cmocka_unit_test(scorers_are_reusable),
    };
    find_paths();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
