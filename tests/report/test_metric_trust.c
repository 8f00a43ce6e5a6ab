/* SPDX-License-Identifier: BSD-2-Clause */
/* What metrics tell of accuracy, against figures worked out by hand or with SciPy. */
#include "common/file.h"
#include "common/memory.h"
#include "common/random.h"
#include "report/metric_trust.h"
#include "tests/unit.h"

#include <math.h>
#include <stdbool.h>
#include <unistd.h>

enum { VARIANTS = 6, IMAGES = 6, SEEDS = 3 };

static struct dl2_study_variant variants[VARIANTS];
static struct dl2_study_run runs[VARIANTS * SEEDS];
static float outcome[VARIANTS * SEEDS][IMAGES];
static char *archs[] = {"small"};
static char keys[IMAGES][4] = {"f", "e", "d", "c", "b", "a"};
static uint32_t order[IMAGES] = {5, 4, 3, 2, 1, 0}; /* by key */
static struct dl2_prediction_table table = {
    .count = IMAGES, .keys = keys[0], .key_size = 4, .order = order};
static struct dl2_study study = {.variants = variants,
                                 .variant_count = VARIANTS,
                                 .runs = runs,
                                 .archs = archs,
                                 .arch_count = 1,
                                 .images = &table};
static struct dl2_comparison comparisons[VARIANTS];
static struct dl2_analysis analysis = {.arch = "small", .comparisons = comparisons};
static struct dl2_error error = DL2_ERROR_INIT;

/* Top-1 in percent of the original and of five variants. */
static void make_study(const double *accuracy, double deviation)
{
    static char *const names[] = {"raw", "a", "b", "c", "d", "e"};
    for (size_t v = 0; v < VARIANTS; v++) {
        variants[v] = (struct dl2_study_variant){.name = names[v], .codec = v ? "jpeg" : "raw"};
        comparisons[v] =
            (struct dl2_comparison){.accuracy = {.mean = accuracy[v], .half = 1, .count = SEEDS}};
    }
    analysis.noise = (struct dl2_noise){.deviation = deviation, .freedom = 10};
    study.run_count = 0;
}

static struct dl2_ranking rank(const double *values)
{
    const struct dl2_accuracy_order order_known = dl2_accuracy_order_make(&study, &analysis, 0);
    return dl2_ranking_make(&study, &analysis, &order_known, values);
}

static void assert_near(double value, double expected)
{
    if (!(fabs(value - expected) < 2e-6))
        fail_msg("%.12g, not %.12g", value, expected);
}

static void test_tau(void **state)
{
    const double accuracy[] = {90, 1, 3, 2, 5, 6}, ties[] = {NAN, 1, 2, 3, 4, 4};
    make_study(accuracy, 0);
    const struct dl2_ranking ranking = rank(ties);
    assert_int_equal(ranking.variants, 5);
    assert_int_equal(ranking.pairs, 10);
    assert_int_equal(ranking.alike, 8);
    assert_near(ranking.tau, 0.7378647873726218); /* scipy.stats.kendalltau */
    /* Without noise all pairs are told apart; the one that the figure ties is not counted. */
    assert_int_equal(ranking.told, 9);
    assert_int_equal(ranking.told_alike, 8);
    assert_near(ranking.low, ranking.tau);
    assert_near(ranking.high, ranking.tau);
    const double falling[] = {0, 6, 4, 5, 2, 1}, lossless[] = {0, 1, 3, 2, INFINITY, INFINITY};
    assert_near(rank(falling).tau, -1);
    assert_int_equal(rank(lossless).alike, 9);
    const double two[] = {0, 1, 2, NAN, NAN, NAN}, equal[] = {0, 1, 1, 1, 1, 1};
    assert_true(isnan(rank(two).tau));
    assert_true(isnan(rank(equal).tau));
}

/* The interval grows with the noise of training, and the measured value is in it. */
static void test_training_noise(void **state)
{
    const double accuracy[] = {90, 80, 81, 82, 83, 84}, rising[] = {0, 1, 2, 3, 4, 5};
    make_study(accuracy, 0.1);
    const struct dl2_ranking quiet = rank(rising);
    assert_near(quiet.low, 1);
    assert_int_equal(quiet.told, 10);
    make_study(accuracy, 3);
    const struct dl2_ranking loud = rank(rising);
    assert_true(loud.low < 0.7 && loud.low >= -1);
    assert_near(loud.high, 1);
    assert_true(loud.told < 10 && loud.told_alike == loud.told);
    analysis.noise.deviation = NAN; /* a single seed */
    assert_true(isnan(rank(rising).low));
    assert_near(rank(rising).tau, 1);
}

/* Gives each variant and seed its images, in the order of `keys`. */
static void predict(const char *const *rows)
{
    study.run_count = 0;
    for (size_t v = 0; v < VARIANTS; v++)
        for (size_t s = 0; s < SEEDS && rows[v]; s++) {
            for (size_t i = 0; i < IMAGES; i++) {
                const char c = rows[v][s * (IMAGES + 1) + i];
                outcome[study.run_count][i] = c == '?' ? NAN : c == '1';
            }
            runs[study.run_count] = (struct dl2_study_run){.variant = v,
                                                           .arch = "small",
                                                           .seed = s + 1,
                                                           .outcome = outcome[study.run_count],
                                                           .images = IMAGES};
            study.run_count++;
        }
}

/* Which images are drawn decides the order of variants that are right on different ones. */
static void test_image_noise(void **state)
{
    const double accuracy[] = {100, 100. / 6, 200. / 6, 300. / 6, 400. / 6, 500. / 6};
    const double rising[] = {0, 1, 2, 3, 4, 5};
    static const char *const nested[] = {"111111 111111 111111", "100000 100000 100000",
                                         "110000 110000 110000", "111000 111000 111000",
                                         "111100 111100 111100", "111110 111110 111110"};
    static const char *const crossed[] = {"111111 111111 111111", "000001 000001 000001",
                                          "000110 000110 000110", "111000 111000 111000",
                                          "011110 011110 011110", "101111 101111 101111"};
    make_study(accuracy, 1e-6);
    predict(nested);
    const size_t told = rank(rising).told;
    assert_true(told > 0);
    predict(crossed);
    assert_true(rank(rising).told < told);
    study.run_count = 0;
}

static void test_interval(void **state)
{
    static const struct {
        double share;
        size_t a, b;
        double low, high;
    } known[] = {/* the equation, solved on a grid of four million points in Python */
                 {0.8, 10, 20, 0.5807492, 0.9147383},
                 {1, 3, 40, 0.6869525, 1},
                 {0.25, 2, 2, 0.0332185, 0.7728126}};
    for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
        double low, high;
        dl2_mann_whitney_interval(known[i].share, known[i].a, known[i].b, &low, &high);
        assert_near(low, known[i].low);
        assert_near(high, known[i].high);
    }
}

static void test_broken_images(void **state)
{
    const double accuracy[] = {90, 80, 80, 80, 80, 80};
    /* Images f e d c b a, three seeds. */
    static const char *const rows[] = {
        "111110 111100 110110", "001110 011101 000111", NULL, NULL, NULL, NULL};
    static const char text[] =
        "{\"schema\": \"dl2-quality/1\", \"variants\": [{\"variant\": \"other\", \"per_image\": "
        "[{\"key\": \"a\", \"ssim\": 0}]}, {\"variant\": \"a\", \"metrics\": {\"ssim\": {\"mean\": "
        "0.5, \"p5\": 0.25}, \"psnr_rgb\": {\"mean\": null, \"lossless\": true}}, \"per_image\": "
        "[{\"key\": \"f\", \"ssim\": 0.5, \"psnr_rgb\": 30}, {\"key\": \"e\", \"ssim\": 0.8}, "
        "{\"key\": \"d\", \"ssim\": 0.7}, {\"key\": \"c\", \"ssim\": 0.9, \"psnr_rgb\": null, "
        "\"lossless\": true}, {\"key\": \"b\", \"ssim\": 0.6}, {\"key\": \"a\", \"ssim\": 0.1}, "
        "{\"key\": \"train/z\", \"ssim\": 0}]}]}";
    char path[] = "/tmp/dl2-test.XXXXXX";
    const int file = mkstemp(path);
    assert_true(file >= 0);
    close(file);
    expect_ok(dl2_file_write(path, text, strlen(text), &error), &error);
    make_study(accuracy, 1);
    predict(rows);
    json_t *json = json_loads(text, 0, NULL);
    variants[1].scored = json_array_get(json_object_get(json, "variants"), 1);
    variants[1].scored_path = path;

    struct dl2_metric_names metrics;
    dl2_metric_names_find(&study, &metrics);
    assert_int_equal(metrics.count, 2);
    assert_string_equal(metrics.names[0], "ssim");
    assert_near(dl2_metric_aggregate(&variants[1], "ssim", "p5"), 0.25);
    assert_true(isinf(dl2_metric_aggregate(&variants[1], "psnr_rgb", "mean")));
    assert_true(isnan(dl2_metric_aggregate(&variants[2], "ssim", "mean")));

    const struct dl2_breakage *breakages = dl2_breakages_find(&study, &metrics);
    const struct dl2_breakage *own = &breakages[1];
    /* f is broken by all seeds, e by two of three; a is mended by two; d, c and b are kept. */
    assert_int_equal(own->seeds, 3);
    assert_int_equal(own->broken, 2);
    assert_int_equal(own->mended, 1);
    assert_int_equal(own->kept, 3);
    assert_near(own->metrics[0].broken_median, 0.65);
    assert_near(own->metrics[0].kept_median, 0.7);
    /* 0.5 is below all three, 0.8 below 0.9 alone. */
    assert_near(own->metrics[0].worse, 4. / 6);
    /* One of each has a PSNR, and the kept one is lossless. */
    assert_int_equal(own->metrics[1].broken, 1);
    assert_int_equal(own->metrics[1].kept, 1);
    assert_near(own->metrics[1].worse, 1);
    assert_int_equal(breakages[2].seeds, 0);
    assert_true(isnan(breakages[2].metrics[0].worse));
    /* The same numbers, if lower were better. */
    metrics.lower_is_better[0] = true;
    own = &dl2_breakages_find(&study, &metrics)[1];
    assert_near(own->metrics[0].worse, 2. / 6);
    assert_near(own->metrics[0].broken_median, 0.65);
    assert_near(own->metrics[0].kept_median, 0.7);
    json_decref(json);
    unlink(path);
}

/* ---- Studies whose truth is known */

enum { STUDIES = 100, MANY_IMAGES = 300 };

static double logistic(double x)
{
    return 1 / (1 + exp(-x));
}

/* Draws a study in which each variant is a little better than the one before it. */
static void draw_study(struct dl2_random *random, double step, float *right, double *accuracies)
{
    double images[MANY_IMAGES];
    double accuracy[VARIANTS] = {0};
    for (size_t i = 0; i < MANY_IMAGES; i++)
        images[i] = 1.2 + 2 * dl2_random_normal(random);
    for (size_t v = 0; v < VARIANTS; v++)
        for (size_t s = 0; s < SEEDS; s++) {
            float *own = right + (v * SEEDS + s) * MANY_IMAGES;
            const double seed = 0.05 * dl2_random_normal(random);
            size_t count = 0;
            for (size_t i = 0; i < MANY_IMAGES; i++) {
                const double chance =
                    images[i] + step * (double)v + seed + 0.6 * dl2_random_normal(random);
                own[i] = dl2_random_uniform(random) < logistic(chance);
                count += own[i];
            }
            accuracies[v * SEEDS + s] = 100. * (double)count / MANY_IMAGES;
            accuracy[v] += accuracies[v * SEEDS + s] / SEEDS;
        }
    make_study(accuracy, 0);
    for (size_t v = 0; v < VARIANTS; v++)
        for (size_t s = 0; s < SEEDS; s++)
            runs[study.run_count++] =
                (struct dl2_study_run){.variant = v,
                                       .arch = "small",
                                       .seed = s + 1,
                                       .outcome = right + (v * SEEDS + s) * MANY_IMAGES,
                                       .images = MANY_IMAGES};
}

/* A metric that has the true order, and one that has two pairs of ten wrong. */
static void test_coverage(void **state)
{
    static const double metrics[2][VARIANTS] = {{0, 1, 2, 3, 4, 5}, {0, 2, 1, 3, 5, 4}};
    static const double truths[2] = {1, 0.6};
    static const double steps[2] = {0.02, 0.1};
    float *right = dl2_calloc(VARIANTS * SEEDS, MANY_IMAGES * sizeof *right);
    double accuracies[VARIANTS * SEEDS];
    struct dl2_random random;
    assert_non_null(right);
    dl2_random_init(&random, 7, DL2_RANDOM_TEST, 0, 0);
    for (size_t kind = 0; kind < 2; kind++) {
        size_t held[2] = {0};
        for (size_t n = 0; n < STUDIES; n++) {
            draw_study(&random, steps[kind], right, accuracies);
            analysis.noise = dl2_noise_estimate(accuracies, VARIANTS, SEEDS);
            for (size_t m = 0; m < 2; m++) {
                const struct dl2_ranking ranking = rank(metrics[m]);
                held[m] += ranking.low <= truths[m] + 1e-9 && truths[m] <= ranking.high + 1e-9;
            }
        }
        for (size_t m = 0; m < 2; m++)
            if (held[m] < STUDIES * 0.95)
                fail_msg("step %g, metric %zu: the truth is in %zu of %d intervals", steps[kind], m,
                         held[m], STUDIES);
    }
    study.run_count = 0;
    free(right);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_tau),           cmocka_unit_test(test_training_noise),
        cmocka_unit_test(test_image_noise),   cmocka_unit_test(test_interval),
        cmocka_unit_test(test_broken_images), cmocka_unit_test(test_coverage),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
