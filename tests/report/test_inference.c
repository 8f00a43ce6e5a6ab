/* SPDX-License-Identifier: BSD-2-Clause */
/* Variance components, the family of claims and its levels, against figures worked out by hand. */
#include "common/random.h"
#include "common/stats.h"
#include "report/claims.h"
#include "tests/unit.h"

#include <math.h>

static void assert_near(double value, double expected, double tolerance)
{
    if (!(fabs(value - expected) <= tolerance))
        fail_msg("%.12g, not %.12g", value, expected);
}

/*
 * Sums of rows 1, 3, 2, of columns 2, 2, -1, 3, of all 6; mean 1/2. Squares: level 3, seeds
 * 14/4 - 3 = 1/2, images 18/3 - 3 = 3, all 8: the residual has 8 - 3 - 1/2 - 3 = 3/2.
 */
static const int8_t small[] = {1, 0, -1, 1, 1, 1, 0, 1, 0, 1, 0, 1};

static void test_mean_squares(void **state)
{
    struct dl2_mean_squares squares;
    assert_int_equal(dl2_mean_squares(small, 3, 4, &squares, NULL), DL2_OK);
    assert_near(squares.mean, 0.5, 0);
    assert_near(squares.seed, 0.5 / 2, 1e-15);
    assert_near(squares.image, 3.0 / 3, 1e-15);
    assert_near(squares.residual, 1.5 / 6, 1e-15);
    const struct dl2_spread seeds = dl2_spread_of_seeds(&squares);
    assert_near(seeds.variance, 0.25 / 12, 1e-15);
    assert_near(seeds.freedom, 2, 0);
    /* (MS_image - MS_residual) / 12, and one image more in 4. */
    assert_near(dl2_variance_of_images(&squares), 0.75 / 12 + 1.0 / 16, 1e-15);
    const struct dl2_spread both = dl2_spread_of_both(&squares, &seeds);
    const double a = 0.25 / 12, b = 1.0 / 12 + 1.0 / 16, c = 0.25 / 12;
    assert_near(both.variance, a + b - c, 1e-15);
    assert_near(both.freedom, (a + b - c) * (a + b - c) / (a * a / 2 + b * b / 3 + c * c / 6),
                1e-12);
}

/* The choice of images never makes an interval narrower than the chance of training does. */
static void test_images_add(void **state)
{
    const struct dl2_spread seeds = {1e-4, 1};
    struct dl2_mean_squares squares = {.seeds = 2, .images = 1000, .image = 0.01, .residual = 0.05};
    const struct dl2_spread negative = dl2_spread_of_both(&squares, &seeds);
    assert_near(negative.variance, seeds.variance, 0);
    assert_near(negative.freedom, seeds.freedom, 0);
    assert_near(dl2_variance_of_images(&squares), 0, 0);
    squares.image = 0.051; /* hardly any variance, and more degrees of freedom */
    const struct dl2_spread little = dl2_spread_of_both(&squares, &seeds);
    assert_true(dl2_spread_half(&little, 0.025) >= dl2_spread_half(&seeds, 0.025));
    /* Ten images without any change: by what half of one would make. */
    const int8_t nothing[20] = {0};
    assert_int_equal(dl2_mean_squares(nothing, 2, 10, &squares, NULL), DL2_OK);
    const struct dl2_spread none = dl2_spread_of_seeds(&squares);
    const struct dl2_spread cautious = dl2_spread_of_both(&squares, &none);
    assert_near(none.variance, 0, 0);
    assert_near(dl2_spread_half(&cautious, 0.025), 2.2621571628 * 0.1, 1e-9); /* t, 9 */
    assert_true(isinf(dl2_spread_half(&(struct dl2_spread){INFINITY, 0}, 0.025)));
}

static void draw_table(struct dl2_random *random, double *table, size_t rows, size_t seeds,
                       double last)
{
    for (size_t r = 0; r < rows; r++)
        for (size_t s = 0; s < seeds; s++)
            table[r * seeds + s] = 70 + 3 * (double)s + (double)r +
                                   (r + 1 == rows ? last : 1) * dl2_random_normal(random);
}

/* A tenth of a noisy row's tables at most is pooled; alike rows are rejected in 5% of tables. */
static void test_homogeneity(void **state)
{
    enum { TABLES = 500, ROWS = 7 };
    double table[ROWS * 8];
    struct dl2_random random;
    dl2_random_init(&random, 5, DL2_RANDOM_TEST, 0, 0);
    for (size_t seeds = 2; seeds <= 8; seeds += 3) {
        size_t rejected = 0, detected = 0;
        double variance = 0;
        struct dl2_noise noise;
        for (size_t i = 0; i < TABLES; i++) {
            draw_table(&random, table, ROWS, seeds, 1);
            assert_int_equal(dl2_noise_estimate(table, ROWS, seeds, &noise, NULL), DL2_OK);
            assert_int_equal(noise.freedom, (ROWS - 1) * (seeds - 1));
            variance += noise.deviation * noise.deviation / TABLES;
            rejected += !noise.alike;
            draw_table(&random, table, ROWS, seeds, 6);
            assert_int_equal(dl2_noise_estimate(table, ROWS, seeds, &noise, NULL), DL2_OK);
            detected += !noise.alike;
        }
        assert_near(variance, 1, 4 * sqrt(2.0 / (ROWS - 1) / (double)(seeds - 1) / TABLES));
        assert_near((double)rejected / TABLES, 0.05, 4 * sqrt(0.05 * 0.95 / TABLES));
        if (seeds > 2)
            assert_true(detected > 0.9 * TABLES);
    }
    struct dl2_noise noise; /* two rows have one set of residuals: nothing to be unequal */
    draw_table(&random, table, 2, 4, 6);
    assert_int_equal(dl2_noise_estimate(table, 2, 4, &noise, NULL), DL2_OK);
    assert_true(isnan(noise.homogeneity) && noise.alike && noise.freedom == 3);
    assert_int_equal(dl2_noise_estimate(table, 4, 1, &noise, NULL), DL2_OK);
    assert_true(isnan(noise.deviation) && noise.freedom == 0);
    /* Two parts without a seed in common: 8 cells, 4 rows, 4 seeds, a constant in each part. */
    const double parts[] = {1, 2, NAN, NAN, 3, 5, NAN, NAN, NAN, NAN, 4, 4, NAN, NAN, 1, 2};
    assert_int_equal(dl2_noise_estimate(parts, 4, 4, &noise, NULL), DL2_OK);
    assert_int_equal(noise.freedom, 2);
    assert_near(noise.deviation, sqrt((0.25 + 0.25) / 2), 1e-9);
}

/* Crossed seeds and images; the bootstrap's variance has a closed form in the mean squares. */
static void test_pigeonhole(void **state)
{
    enum { SEEDS = 12, IMAGES = 300, DRAWS = 4000 };
    int8_t *table = calloc(SEEDS, IMAGES);
    double *means = calloc(DRAWS, sizeof *means), luck[SEEDS], ease[IMAGES];
    assert_true(table && means);
    struct dl2_random random;
    dl2_random_init(&random, 7, DL2_RANDOM_TEST, 0, 0);
    for (size_t s = 0; s < SEEDS; s++)
        luck[s] = 0.2 * dl2_random_normal(&random);
    for (size_t i = 0; i < IMAGES; i++)
        ease[i] = 0.6 * dl2_random_normal(&random);
    for (size_t s = 0; s < SEEDS; s++)
        for (size_t i = 0; i < IMAGES; i++) {
            const double z = luck[s] + ease[i] + 0.6 * dl2_random_normal(&random);
            table[s * IMAGES + i] = (int8_t)((z > 1) - (z < -1));
        }
    struct dl2_mean_squares squares;
    assert_int_equal(dl2_mean_squares(table, SEEDS, IMAGES, &squares, NULL), DL2_OK);
    assert_int_equal(dl2_pigeonhole(table, SEEDS, IMAGES, 3, means, DRAWS, NULL), DL2_OK);
    struct dl2_summary summary;
    dl2_summarize(means, DRAWS, &summary);
    const double S = SEEDS, I = IMAGES;
    const double expected = ((1 - 1 / S) * squares.seed + (1 - 1 / I) * squares.image +
                             (1 - 1 / S) * (1 - 1 / I) * squares.residual) /
                            (S * I);
    assert_near(summary.stddev * summary.stddev / expected, 1, 5 * sqrt(2.0 / DRAWS));
    assert_near(summary.mean, squares.mean, 5 * sqrt(expected / DRAWS));
    /* With a dozen seeds its 95% interval and the analytic one are nearly the same. */
    const struct dl2_spread seeds = dl2_spread_of_seeds(&squares);
    const struct dl2_spread both = dl2_spread_of_both(&squares, &seeds);
    const double half =
        (dl2_percentile(means, DRAWS, 0.975) - dl2_percentile(means, DRAWS, 0.025)) / 2;
    assert_near(half / dl2_spread_half(&both, 0.025), 1, 0.12);
    free(table);
    free(means);
}

static void test_spending(void **state)
{
    double levels[DL2_MOST_LOOKS];
    const struct dl2_looks once = {1, {3}}, five = {5, {1, 2, 3, 4, 5}}, uneven = {3, {2, 3, 8}};
    assert_int_equal(dl2_spend(0.0125, &once, levels, NULL), DL2_OK);
    assert_near(levels[0], 0.0125, 1e-12);
    assert_int_equal(dl2_spend(0.025, &five, levels, NULL), DL2_OK);
    assert_near(levels[0], 0.005, 1e-12);
    /* Walks cross any of the boundaries with the level's probability, by each look its share. */
    const struct dl2_looks *const all[] = {&five, &uneven};
    enum { WALKS = 200000 };
    struct dl2_random random;
    dl2_random_init(&random, 11, DL2_RANDOM_TEST, 0, 0);
    for (size_t k = 0; k < 2; k++) {
        const struct dl2_looks *looks = all[k];
        double boundaries[DL2_MOST_LOOKS];
        size_t crossed[DL2_MOST_LOOKS] = {0};
        assert_int_equal(dl2_spend(0.025, looks, levels, NULL), DL2_OK);
        for (size_t look = 0; look < looks->count; look++)
            boundaries[look] = dl2_student_quantile(levels[look], INFINITY);
        for (size_t walk = 0; walk < WALKS; walk++) {
            double sum = 0;
            for (size_t look = 0, before = 0; look < looks->count; look++) {
                const double now = (double)looks->seeds[look];
                sum += sqrt(now - (double)before) * dl2_random_normal(&random);
                before = looks->seeds[look];
                if (sum > boundaries[look] * sqrt(now)) {
                    crossed[look]++;
                    break;
                }
            }
        }
        double so_far = 0;
        for (size_t look = 0; look < looks->count; look++) {
            const double share =
                0.025 * (double)looks->seeds[look] / (double)looks->seeds[looks->count - 1];
            so_far += (double)crossed[look] / WALKS;
            assert_near(so_far, share, 4 * sqrt(share / WALKS));
        }
    }
}

static struct dl2_study_claim make_claim(size_t codec, double bytes, double difference,
                                         double error)
{
    return (struct dl2_study_claim){.codec = codec,
                                    .bytes = bytes,
                                    .difference = difference,
                                    .spread = {error * error, INFINITY}};
}

/* Known errors: a test at 1.25% needs 2.2414 of them, at 2.5% 1.96. */
static void test_family(void **state)
{
    const struct dl2_looks once = {1, {3}};
    struct dl2_plan plan;
    assert_int_equal(dl2_plan_make(&once, 2, &plan, NULL), DL2_OK);
    /* The first codec: passes, fails, would pass. The second: passes 2.1 errors above, which is
     * enough for one codec and not for two. */
    struct dl2_study_claim claims[] = {make_claim(0, 10, 0, 0.1), make_claim(0, 30, 0, 0.1),
                                       make_claim(0, 20, 0, 1.0), make_claim(1, 5, -1 + 0.21, 0.1),
                                       make_claim(1, 4, -3, 0.1)};
    assert_int_equal(dl2_claims_test(claims, 5, 1, &plan, 0, NULL), DL2_OK);
    assert_true(claims[1].within && !claims[2].within && !claims[0].within && !claims[3].within);
    assert_int_equal(claims[0].blocker, 2);
    assert_int_equal(claims[2].blocker, 2);
    assert_int_equal(claims[3].blocker, 3);
    assert_near(claims[3].level, 0.0125, 1e-12);
    assert_near(claims[0].level, 0, 0); /* not reached */
    assert_true(claims[4].beyond && !claims[2].beyond && !claims[3].beyond);
    /* Once the first codec has passed, all of the level is the second's. */
    claims[2].spread.variance = 0.01;
    assert_int_equal(dl2_claims_test(claims, 5, 1, &plan, 0, NULL), DL2_OK);
    assert_true(claims[2].within && claims[0].within && claims[3].within && !claims[4].within);
    assert_near(claims[3].level, 0.025, 1e-12);
    /* What was decided stays, whatever is measured later. */
    claims[1].difference = -5;
    claims[4].difference = 0;
    assert_int_equal(dl2_claims_test(claims, 5, 1, &plan, 0, NULL), DL2_OK);
    assert_true(claims[1].within && !claims[1].beyond && claims[4].beyond && !claims[4].within);
    dl2_plan_free(&plan);
}

/* Power of the planned number of seeds, by drawing studies of that size. */
static void test_power(void **state)
{
    /* One pair's differences with deviation 1, margin 1: 10 in any table of the paired t-test. */
    const struct dl2_prospect pair = {.margin = 1, .seed_variance = 1, .level = 0.025, .rows = 2};
    assert_int_equal(dl2_seeds_needed(&pair, 64), 10);
    const struct dl2_prospect hopeless = {
        .margin = 0.5, .seed_variance = 0.01, .image_variance = 1, .level = 0.025, .rows = 7};
    assert_int_equal(dl2_seeds_needed(&hopeless, 64), 0);
    const struct dl2_prospect pooled = {
        .margin = 1, .seed_variance = 1, .image_variance = 0.04, .level = 0.0125, .rows = 7};
    const size_t seeds = dl2_seeds_needed(&pooled, 64);
    enum { STUDIES = 20000 };
    size_t shown = 0;
    struct dl2_random random;
    dl2_random_init(&random, 13, DL2_RANDOM_TEST, 0, 0);
    for (size_t i = 0; i < STUDIES; i++) {
        const size_t freedom = 6 * (seeds - 1);
        double squares = 0;
        for (size_t k = 0; k < freedom; k++) {
            const double z = dl2_random_normal(&random);
            squares += z * z;
        }
        const double of_seeds = squares / (double)freedom / (double)seeds;
        const double variance = of_seeds + 0.04;
        const struct dl2_spread spread = {variance, variance * variance /
                                                        (of_seeds * of_seeds / (double)freedom)};
        const double measured = sqrt(1 / (double)seeds + 0.04) * dl2_random_normal(&random);
        shown += measured - dl2_spread_half(&spread, 0.0125) >= -1;
    }
    assert_true(shown > 0.78 * STUDIES && shown < 0.92 * STUDIES); /* whole seeds: 80% or more */
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_mean_squares), cmocka_unit_test(test_images_add),
        cmocka_unit_test(test_homogeneity),  cmocka_unit_test(test_pigeonhole),
        cmocka_unit_test(test_spending),     cmocka_unit_test(test_family),
        cmocka_unit_test(test_power),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
