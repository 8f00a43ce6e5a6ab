/* SPDX-License-Identifier: BSD-2-Clause */
#include "common/file.h"
#include "report/codec_sizes.h"
#include "tests/unit.h"

#include <math.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static struct dl2_error error = DL2_ERROR_INIT;

static void assert_near(double value, double expected)
{
    if (!(fabs(value - expected) < 1e-8))
        fail_msg("%.12g, not %.12g", value, expected);
}

static struct dl2_bd_curve curve_of(const double *sizes, const double *qualities, size_t count)
{
    struct dl2_bd_curve curve = {.count = 0};
    for (size_t i = 0; i < count; i++)
        dl2_bd_add(&curve, qualities[i], sizes[i]);
    return curve;
}

/* The BD-rate that follows, in percent. */
static double bd_rate(const struct dl2_bd_curve *own, const struct dl2_bd_curve *anchor,
                      const struct dl2_bd_range *range, double *overlap)
{
    return 100 * expm1(dl2_bd_log_ratio(own, anchor, range, overlap));
}

/* The examples of the package bjontegaard (FAU); values by scipy.interpolate.PchipInterpolator,
 * the first also as published: -4.41748535. */
static void bjontegaard_agrees(void **state)
{
    static const struct {
        size_t count;
        double anchor_sizes[6], anchor[6], own_sizes[6], own[6], expected, overlap;
    } known[] = {
        {4,
         {9487.76, 4593.60, 2486.44, 1358.24},
         {40.037, 38.615, 36.845, 34.851},
         {9787.80, 4469.00, 2451.52, 1356.24},
         {40.121, 38.651, 36.970, 34.987},
         -4.4174853506,
         0.958254},
        {4,
         {82472.76, 26875.24, 9487.76, 4593.6},
         {43.825, 41.404, 40.037, 38.615},
         {99896.96, 33952.04, 9787.8, 4469.0},
         {44.731, 41.875, 40.121, 38.651},
         -4.4721820028,
         0.845978},
        {6,
         {82472.76, 26875.24, 9487.76, 4593.6, 3600, 2900},
         {43.825, 41.404, 40.037, 38.615, 36.5, 35.1},
         {99896.96, 33952.04, 9787.8, 4469.0, 4040, 3300},
         {44.731, 41.875, 40.121, 38.651, 37, 36.5},
         -2.9528024116,
         0.760565},
    };
    const struct dl2_bd_range part = {39, 41};
    double overlap;
    for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
        const struct dl2_bd_curve own = curve_of(known[i].own_sizes, known[i].own, known[i].count);
        const struct dl2_bd_curve anchor =
            curve_of(known[i].anchor_sizes, known[i].anchor, known[i].count);
        assert_near(bd_rate(&own, &anchor, &DL2_BD_EVERYWHERE, &overlap), known[i].expected);
        assert_true(fabs(overlap - known[i].overlap) < 1e-6);
        if (i == 0)
            continue;
        assert_near(bd_rate(&own, &anchor, &part, &overlap),
                    i == 1 ? -3.3451781943 : -4.5332255458);
        assert_near(overlap, 1);
    }
}

static void curves_without_common_qualities(void **state)
{
    const double sizes[] = {1, 2}, low[] = {10, 20}, high[] = {20, 30}, some[] = {15, 25};
    const struct dl2_bd_curve a = curve_of(sizes, low, 2), b = curve_of(sizes, high, 2);
    const struct dl2_bd_curve c = curve_of(sizes, some, 2), point = curve_of(sizes, some, 1);
    double overlap;
    assert_true(isnan(dl2_bd_log_ratio(&a, &b, &DL2_BD_EVERYWHERE, &overlap)));
    assert_true(isnan(dl2_bd_log_ratio(&a, &point, &DL2_BD_EVERYWHERE, &overlap)));
    /* Two points are a line: c needs sqrt(2) less than a everywhere. */
    assert_near(dl2_bd_log_ratio(&c, &a, &DL2_BD_EVERYWHERE, &overlap), -log(2) / 2);
    assert_near(overlap, 1. / 3);
    /* The smallest size of equal qualities counts; without a quality or a size, no point. */
    struct dl2_bd_curve curve = {.count = 0};
    dl2_bd_add(&curve, 5, 3);
    dl2_bd_add(&curve, 5, 2);
    dl2_bd_add(&curve, 5, 4);
    dl2_bd_add(&curve, NAN, 2);
    dl2_bd_add(&curve, INFINITY, 2);
    dl2_bd_add(&curve, 6, 0);
    assert_int_equal(curve.count, 1);
    assert_near(curve.log_size[0], log(2));
}

/*
 * Two codecs of three qualities, with the same scores but other sizes: webp needs 50, 80 and 125
 * percent for images a, b and c. Of d it has copies, which are lossless.
 */
static void codecs_of_a_study(void **state)
{
    static const double shares[] = {0.5, 0.8, 1.25, 1};
    static char names[6][16], paths[6][32];
    struct dl2_study_variant variants[6];
    for (size_t v = 0; v < 6; v++) {
        const bool webp = v >= 3;
        const int step = (int)v % 3;
        char text[2048];
        int used = snprintf(text, sizeof text,
                            "{\"schema\": \"dl2-quality/1\", \"variants\": [{\"per_image\": [");
        for (int i = 0; i < 4; i++) {
            const bool copied = webp && i == 3;
            char scores[128] = "\"psnr_rgb\": null, \"ssim\": 1, \"ciede2000\": 0";
            if (!copied)
                snprintf(scores, sizeof scores,
                         "\"psnr_rgb\": %d, \"ssim\": %.9f, \"ciede2000\": %d", 30 + 4 * step + i,
                         1 - pow(10, -1 - 0.5 * step), 9 - 2 * step);
            used += snprintf(text + used, sizeof text - (size_t)used,
                             "%s{\"key\": \"%c\", \"bytes\": %.0f, %s}", i ? ", " : "", 'a' + i,
                             1000 * pow(2, step) * (webp ? shares[i] : 1), scores);
        }
        snprintf(text + used, sizeof text - (size_t)used, "]}]}");
        snprintf(names[v], sizeof names[v], "%s-%d", webp ? "webp" : "jpeg", step);
        snprintf(paths[v], sizeof paths[v], "/tmp/dl2-test.XXXXXX");
        const int file = mkstemp(paths[v]);
        assert_true(file >= 0);
        close(file);
        expect_ok(dl2_file_write(paths[v], text, strlen(text), &error), &error);
        variants[v] = (struct dl2_study_variant){
            .name = names[v], .codec = webp ? "webp" : "jpeg", .scored_path = paths[v]};
    }
    variants[0].scored =
        json_pack("{s:{s:{}, s:{}, s:{}}}", "metrics", "psnr_rgb", "ssim", "ciede2000");
    const struct dl2_study study = {.variants = variants,
                                    .variant_count = 6,
                                    .quality = json_pack("{s:[s], s:[s]}", "lower_is_better",
                                                         "ciede2000", "one_is_best", "ssim")};
    struct dl2_codec_choice choice = {.anchor = NULL};
    assert_int_equal(dl2_codec_anchor(&study, &choice), 0);
    struct dl2_image_scores scores = dl2_image_scores_read(&study, 0);
    struct dl2_codec_sizes sizes = dl2_codec_sizes_find(&study, &scores, &choice);
    /* PSNR is 30 to 33 for jpeg-0's images a, b, c and d; webp has none of d. */
    assert_int_equal(scores.spreads[0].images, 4);
    assert_near(scores.spreads[0].mean, 31.5);
    assert_near(scores.spreads[0].high, 31.5 + 3.182446305284263 * sqrt(5. / 12));
    assert_near(scores.spreads[0].percentiles[0], 30.15);
    assert_near(scores.spreads[0].percentiles[2], 31.5);
    assert_int_equal(scores.spreads[3 * 3].images, 3);
    for (size_t m = 0; m < 3; m++) {
        const struct dl2_codec_size *size = dl2_codec_size_at(&study, &sizes, m, 3);
        assert_true(size && !dl2_codec_size_at(&study, &sizes, m, 0));
        /* The copies have a CIEDE2000 of 0 in all variants: one quality, which is no curve. */
        assert_int_equal(size->images, 3);
        assert_int_equal(size->left_out, 1);
        assert_near(size->per_image, (50 + 80 + 125) / 3.);
        assert_true(size->low > 49.99 && size->low < size->per_image);
        assert_true(size->high < 125.01 && size->high > size->per_image);
        assert_near(size->smaller, 200 / 3.);
        assert_near(size->per_image_overlap, 100);
        if (m == 2)
            continue;
        assert_int_equal(size->pooled_images, 3);
        assert_near(size->pooled, (50 + 80 + 125) / 3.);
        assert_near(size->overlap, 100);
        /* All images have nearly the same size, so the pool is the mean of the shares that are
         * drawn. */
        assert_true(size->pooled_low > 49.99 && size->pooled_low < size->pooled);
        assert_true(size->pooled_high < 125.01 && size->pooled_high > size->pooled);
    }
    /* The other way round, and a part of the qualities. */
    choice = (struct dl2_codec_choice){.anchor = "webp", .metric = "psnr_rgb", .range = {36, 40}};
    assert_int_equal(dl2_codec_anchor(&study, &choice), 3);
    scores = dl2_image_scores_read(&study, 3);
    sizes = dl2_codec_sizes_find(&study, &scores, &choice);
    assert_near(sizes.items[0].per_image, (200 + 125 + 80) / 3.);
    dl2_free_kept();
    choice.anchor = "avif";
    assert_int_equal(dl2_codec_anchor(&study, &choice), 6);
    for (size_t v = 0; v < 6; v++)
        unlink(paths[v]);
    json_decref(variants[0].scored);
    json_decref(study.quality);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(bjontegaard_agrees),
        cmocka_unit_test(curves_without_common_qualities),
        cmocka_unit_test(codecs_of_a_study),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
