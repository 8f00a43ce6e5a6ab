/* SPDX-License-Identifier: BSD-2-Clause */
/* Variance components, the family of claims and its levels, against figures worked out by hand. */
#include "common/random.h"
#include "common/stats.h"
#include "report/claims.h"
#include "report/power.h"
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
static const double small[] = {1, 0, -1, 1, 1, 1, 0, 1, 0, 1, 0, 1};

static void test_mean_squares(void **state)
{
    struct dl2_mean_squares squares = dl2_mean_squares(small, 3, 4, NULL);
    assert_near(squares.mean, 0.5, 0);
    assert_near(squares.seed, 0.5 / 2, 1e-15);
    assert_near(squares.image, 3.0 / 3, 1e-15);
    assert_near(squares.residual, 1.5 / 6, 1e-15);
    assert_near(squares.unit, 0.25, 1e-15);
    const struct dl2_spread seeds = {.variance = squares.seed / 12, .freedom = 2};
    /* (MS_image - MS_residual) / 12, and one image more in 4. */
    assert_near(dl2_variance_of_images(&squares), 0.75 / 12 + 1.0 / 16, 1e-15);
    const struct dl2_spread both = dl2_spread_of_both(&squares, &seeds);
    assert_near(both.variance, 0.25 / 12, 1e-15);
    assert_near(both.freedom, 2, 0);
    assert_near(both.added, 0.75 / 12 + 1.0 / 16, 1e-15);
    assert_near(both.added_freedom, 3, 0);
    /* t, 2 and 3 */
    assert_near(dl2_spread_half(&both, 0.025),
                hypot(4.3026527299 * sqrt(0.25 / 12), 3.1824463053 * sqrt(0.125)), 1e-9);
    const struct dl2_spread percent = dl2_spread_scaled(&both, 100);
    assert_near(dl2_spread_half(&percent, 0.025), 100 * dl2_spread_half(&both, 0.025), 1e-9);
}

/*
 * The same rows, in groups of 1 and 3 images: sums, less 1/2 for each image, are of each seed
 *   1 - 1/2, 0 - 3/2 | 1 - 1/2, 2 - 3/2 | 0 - 1/2, 2 - 3/2: 1/2 -3/2 | 1/2 1/2 | -1/2 1/2.
 * Sums of seeds -1, 1, 0 (squares / 2: 1), of groups 1/2, -1/2 (squares / 3: 1/6), all squares
 * 1/4 (1 + 9 + 1 + 1 + 1 + 1) = 7/2: the residual has 7/2 - 1 - 1/6 = 7/3. From sums to means:
 * (2 / 4)^2.
 */
static void test_groups(void **state)
{
    const uint32_t of[] = {1, 0, 0, 0}, each[] = {0, 1, 2, 3};
    struct dl2_mean_squares squares, single;
    const struct dl2_groups two = {of, 2, 1}, four = {each, 4, 1};
    squares = dl2_mean_squares(small, 3, 4, &two);
    assert_int_equal(squares.units, 2);
    assert_near(squares.mean, 0.5, 0);
    assert_near(squares.seed, 0.25 * 1 / 2, 1e-15);
    assert_near(squares.image, 0.25 / 6, 1e-15);
    assert_near(squares.residual, 0.25 * 7 / 3 / 2, 1e-15);
    assert_near(squares.unit, 10.0 / 4 * 2 / 3 / 4, 1e-15); /* of what an image's group has */
    /* Images that are half as alike as copies change together as fewer do: 1 + 1/2 (5/2 - 1). */
    const struct dl2_groups loose = {of, 2, 0.5};
    squares = dl2_mean_squares(small, 3, 4, &loose);
    assert_near(squares.unit, 1.75 * 2 / 3 / 4, 1e-15);
    /* Groups of one image are images. */
    squares = dl2_mean_squares(small, 3, 4, &four);
    single = dl2_mean_squares(small, 3, 4, NULL);
    assert_memory_equal(&squares, &single, sizeof squares);
    /* A group that is everything has no spread. */
    const uint32_t all[] = {0, 0, 0, 0};
    const struct dl2_groups one = {all, 1, 1};
    squares = dl2_mean_squares(small, 3, 4, &one);
    assert_true(squares.units == 1 && squares.image == 0 && squares.residual == 0);
    const struct dl2_spread seeds = {.variance = 1, .freedom = 2};
    const struct dl2_spread unknown = dl2_spread_of_both(&squares, &seeds);
    assert_true(isinf(dl2_spread_half(&unknown, 0.025)));
}

/* Two pairs. Of 2 2 1 0 the mean squares are 9/4 between and 1/4 within: (9/4 - 1/4) / (9/4 + 1/4).
 */
static void test_groups_alike(void **state)
{
    const uint32_t of[] = {0, 0, 1, 1}, each[] = {0, 1, 2, 3};
    const double some[] = {2, 2, 1, 0}, copies[] = {1, 1, 0, 0}, unlike[] = {1, 0, 1, 0};
    const double same[] = {1, 1, 1, 1};
    const struct dl2_groups pairs = {of, 2, 0}, single = {each, 4, 0};
    assert_near(dl2_groups_alike(some, 4, &pairs), 0.8, 1e-15);
    assert_near(dl2_groups_alike(copies, 4, &pairs), 1, 0);
    assert_near(dl2_groups_alike(unlike, 4, &pairs), 0, 0);
    assert_near(dl2_groups_alike(same, 4, &pairs), 1, 0); /* nothing tells */
    assert_near(dl2_groups_alike(some, 4, &single), 1, 0);
}

/* The choice of images never makes an interval narrower than the chance of training does. */
static void test_images_add(void **state)
{
    const struct dl2_spread seeds = {.variance = 1e-4, .freedom = 1};
    struct dl2_mean_squares squares = {.seeds = 2, .units = 1000, .image = 0.01, .residual = 0.05};
    const struct dl2_spread negative = dl2_spread_of_both(&squares, &seeds);
    assert_near(dl2_spread_half(&negative, 0.025), dl2_spread_half(&seeds, 0.025), 0);
    assert_near(dl2_variance_of_images(&squares), 0, 0);
    /* Ten images without any change: by what half of one would make. */
    const double nothing[20] = {0};
    squares = dl2_mean_squares(nothing, 2, 10, NULL);
    const struct dl2_spread none = {.variance = squares.seed / 20, .freedom = 1};
    const struct dl2_spread cautious = dl2_spread_of_both(&squares, &none);
    assert_near(none.variance, 0, 0);
    assert_near(dl2_spread_half(&cautious, 0.025), 2.2621571628 * 0.1, 1e-9); /* t, 9 */
    const struct dl2_spread unknown = {.variance = INFINITY};
    assert_true(isinf(dl2_spread_half(&unknown, 0.025)));
    const struct dl2_spread sum = dl2_spread_sum(&seeds, &unknown);
    assert_true(isinf(dl2_spread_half(&sum, 0.025)));
}

/* Means of two parts, one of them known by two values alone: the interval is never too narrow,
 * where Satterthwaite's degrees of freedom let 6% escape on a side instead of 2.5%. */
static void test_sum(void **state)
{
    enum { STUDIES = 20000 };
    struct dl2_random random;
    dl2_random_init(&random, 23, DL2_RANDOM_TEST, 0, 0);
    size_t wrong[2] = {0, 0};
    for (size_t study = 0; study < STUDIES; study++) {
        const double a = dl2_random_normal(&random), b = dl2_random_normal(&random);
        const double mean = (a + b) / 2 + 0.5 * dl2_random_normal(&random);
        const struct dl2_spread sum = {(a - b) * (a - b) / 4, 1, 0.25, 1000};
        const double variance = sum.variance + sum.added;
        const double freedom =
            variance * variance / (sum.variance * sum.variance + sum.added * sum.added / 1000);
        wrong[0] += mean > dl2_spread_half(&sum, 0.025);
        wrong[1] += mean > dl2_student_quantile(0.025, freedom) * sqrt(variance);
    }
    assert_true(wrong[0] < 0.025 * STUDIES && wrong[1] > 0.04 * STUDIES);
}

static void draw_table(struct dl2_random *random, double *table, size_t rows, size_t seeds,
                       double last)
{
    for (size_t r = 0; r < rows; r++)
        for (size_t s = 0; s < seeds; s++)
            table[r * seeds + s] = 70 + 3 * (double)s + (double)r +
                                   (r + 1 == rows ? last : 1) * dl2_random_normal(random);
}

/* The noise of tables with unequal means is that of their cells. */
static void test_noise(void **state)
{
    enum { TABLES = 500, ROWS = 7 };
    double table[ROWS * 8];
    struct dl2_random random;
    struct dl2_noise noise;
    dl2_random_init(&random, 5, DL2_RANDOM_TEST, 0, 0);
    for (size_t seeds = 2; seeds <= 8; seeds += 3) {
        double variance = 0;
        for (size_t i = 0; i < TABLES; i++) {
            draw_table(&random, table, ROWS, seeds, 1);
            noise = dl2_noise_estimate(table, ROWS, seeds);
            assert_int_equal(noise.freedom, (ROWS - 1) * (seeds - 1));
            variance += noise.deviation * noise.deviation / TABLES;
        }
        assert_near(variance, 1, 4 * sqrt(2.0 / (ROWS - 1) / (double)(seeds - 1) / TABLES));
    }
    noise = dl2_noise_estimate(table, 4, 1);
    assert_true(isnan(noise.deviation) && noise.freedom == 0);
    /* Two parts without a seed in common: 8 cells, 4 rows, 4 seeds, a constant in each part. */
    const double parts[] = {1, 2, NAN, NAN, 3, 5, NAN, NAN, NAN, NAN, 4, 4, NAN, NAN, 1, 2};
    noise = dl2_noise_estimate(parts, 4, 4);
    assert_int_equal(noise.freedom, 2);
    assert_near(noise.deviation, sqrt((0.25 + 0.25) / 2), 1e-9);
}

/* A variant's own variance, and all variants' as a quarter of a degree more, where there are more.
 */
static void test_pairs(void **state)
{
    const struct dl2_noise noise = {2, 6};
    const struct dl2_spread three = dl2_spread_of_pairs(5, 3, &noise);
    assert_near(three.variance, (2 * 5 + 0.25 * 2 * 4) / 2.25 / 3, 1e-12);
    assert_near(three.freedom, 2.25, 0);
    const struct dl2_spread one = dl2_spread_of_pairs(NAN, 1, &noise);
    assert_near(one.variance, 8, 1e-12);
    assert_near(one.freedom, 0.25, 0);
    /* The pairs' own noise once more is none: one variant and three seeds. */
    const struct dl2_spread alone = dl2_spread_of_pairs(5, 3, &(struct dl2_noise){2, 2});
    assert_near(alone.variance, 5.0 / 3, 1e-12);
    assert_near(alone.freedom, 2, 0);
    assert_true(isinf(dl2_spread_of_pairs(NAN, 1, &(struct dl2_noise){NAN, 0}).variance));
    /* Three times as noisy as six others: tests at 2.5% err in 3% where the chance of training
     * is all there is, and would in 8 to 10% by the noise of all together. */
    enum { STUDIES = 20000, ROWS = 7, SEEDS = 3 };
    struct dl2_random random;
    dl2_random_init(&random, 17, DL2_RANDOM_TEST, 0, 0);
    size_t wrong[2] = {0, 0};
    for (size_t study = 0; study < STUDIES; study++) {
        double table[ROWS * SEEDS], mean = 0, squares = 0;
        struct dl2_noise all;
        draw_table(&random, table, ROWS, SEEDS, 3);
        all = dl2_noise_estimate(table, ROWS, SEEDS);
        for (size_t s = 0; s < SEEDS; s++) {
            const double step = table[(ROWS - 1) * SEEDS + s] - table[s] - (ROWS - 1);
            mean += step / SEEDS;
            squares += step * step;
        }
        const struct dl2_spread own =
            dl2_spread_of_pairs((squares - SEEDS * mean * mean) / (SEEDS - 1), SEEDS, &all);
        const struct dl2_spread pooled = {.variance = 2 * all.deviation * all.deviation / SEEDS,
                                          .freedom = (double)all.freedom};
        wrong[0] += mean > dl2_spread_half(&own, 0.025);
        wrong[1] += mean > dl2_spread_half(&pooled, 0.025);
    }
    assert_true(wrong[0] < 0.033 * STUDIES && wrong[1] > 0.07 * STUDIES);
}

/* Crossed seeds and images; the bootstrap's variance has a closed form in the mean squares. */
static void test_pigeonhole(void **state)
{
    enum { SEEDS = 12, IMAGES = 300, DRAWS = 4000 };
    double *table = calloc(SEEDS, IMAGES * sizeof *table);
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
            table[s * IMAGES + i] = (z > 1) - (z < -1);
        }
    struct dl2_mean_squares squares;
    squares = dl2_mean_squares(table, SEEDS, IMAGES, NULL);
    dl2_pigeonhole(table, SEEDS, IMAGES, NULL, 3, means, DRAWS);
    struct dl2_summary summary;
    dl2_summarize(means, DRAWS, &summary);
    const double S = SEEDS, I = IMAGES;
    const double expected = ((1 - 1 / S) * squares.seed + (1 - 1 / I) * squares.image +
                             (1 - 1 / S) * (1 - 1 / I) * squares.residual) /
                            (S * I);
    assert_near(summary.stddev * summary.stddev / expected, 1, 5 * sqrt(2.0 / DRAWS));
    assert_near(summary.mean, squares.mean, 5 * sqrt(expected / DRAWS));
    /* With a dozen seeds its 95% interval is nearly that of the analytic variance. */
    const struct dl2_spread seeds = {.variance = squares.seed / (S * I), .freedom = S - 1};
    const struct dl2_spread both = dl2_spread_of_both(&squares, &seeds);
    const double half =
        (dl2_percentile(means, DRAWS, 0.975) - dl2_percentile(means, DRAWS, 0.025)) / 2;
    assert_near(half / (1.96 * sqrt(both.variance + both.added)), 1, 0.12);
    assert_true(dl2_spread_half(&both, 0.025) > half);
    free(table);
    free(means);
}

/* Levels of looks sum to that of all, by what each adds to the cube of the seeds: 8, 27, 512. */
static void test_looks(void **state)
{
    struct dl2_looks once = {1, {3}, {1}};
    struct dl2_looks uneven = {3, {2, 3, 8}, {0}};
    dl2_looks_plan(&uneven, 0, 1);
    assert_near(dl2_look_level(&once, 0, 2), 0.0125, 1e-12);
    assert_near(dl2_look_level(&uneven, 0, 1), 0.025 * 8 / 512, 1e-12);
    assert_near(dl2_look_level(&uneven, 1, 1), 0.025 * 19 / 512, 1e-12);
    assert_near(dl2_look_level(&uneven, 2, 4), 0.025 / 4 * 485 / 512, 1e-12);
    assert_near(dl2_interval_level(&uneven, 1), 0.025 * 19 / 512, 1e-12);
    /* What the first look left of the error, over the seeds of the others. */
    uneven.share[0] = 0.4;
    dl2_looks_plan(&uneven, 1, 0.6);
    assert_near(uneven.share[0], 0.4, 0);
    assert_near(uneven.share[1], 0.6 * 19 / 504, 1e-12);
    assert_near(uneven.share[2], 0.6 * 485 / 504, 1e-12);
    /* Looks that nobody planned, however many, spend no more than all. */
    double spent = 0;
    for (int look = 0; look < 9; look++)
        spent += dl2_look_unplanned(spent);
    assert_near(dl2_look_unplanned(0), 0.75, 1e-12);
    assert_true(spent > 0.9999 && spent <= 1);
    /* A look by itself has a plain interval, whatever its share. */
    once.share[0] = 0.1;
    assert_near(dl2_interval_level(&once, 0), 0.025, 1e-12);
}

static struct dl2_study_claim make_claim(size_t codec, double bytes, double difference,
                                         double error)
{
    return (struct dl2_study_claim){.codec = codec,
                                    .bytes = bytes,
                                    .difference = difference,
                                    .spread = {.variance = error * error, .freedom = INFINITY}};
}

/* Known errors: a test at 1.25% needs 2.2414 of them, at 2.5% 1.96. */
static void test_family(void **state)
{
    const struct dl2_looks once = {1, {3}, {1}};
    /* The first codec: passes, fails, would pass. The second: passes 2.1 errors above, which is
     * enough for one codec and not for two. */
    struct dl2_study_claim claims[] = {make_claim(0, 10, 0, 0.1), make_claim(0, 30, 0, 0.1),
                                       make_claim(0, 20, 0, 1.0), make_claim(1, 5, -1 + 0.21, 0.1),
                                       make_claim(1, 4, -3, 0.1)};
    dl2_claims_test(claims, 5, 2, 1, 1, &once, 0);
    assert_true(claims[1].within && !claims[2].within && !claims[0].within && !claims[3].within);
    assert_int_equal(claims[0].blocker, 2);
    assert_int_equal(claims[2].blocker, 2);
    assert_int_equal(claims[3].blocker, 3);
    assert_near(claims[3].level, 0.0125, 1e-12);
    assert_near(claims[0].level, 0, 0); /* not reached */
    assert_true(claims[4].beyond && !claims[2].beyond && !claims[3].beyond);
    /* Once the first codec has passed, all of the level is the second's, but for what a codec
     * without claims keeps. */
    claims[2].spread.variance = 0.01;
    struct dl2_study_claim with_absent[5]; /* a third codec, of which nothing is here */
    memcpy(with_absent, claims, sizeof claims);
    dl2_claims_test(with_absent, 5, 3, 1, 1, &once, 0);
    assert_true(with_absent[0].within && !with_absent[3].within);
    assert_near(with_absent[3].level, 0.0125, 1e-12);
    /* Two networks have half each. */
    memcpy(with_absent, claims, sizeof claims);
    dl2_claims_test(with_absent, 5, 2, 2, 1, &once, 0);
    assert_true(with_absent[0].within && !with_absent[3].within);
    assert_near(with_absent[3].level, 0.0125, 1e-12);
    dl2_claims_test(claims, 5, 2, 1, 1, &once, 0);
    assert_true(claims[2].within && claims[0].within && claims[3].within && !claims[4].within);
    assert_near(claims[3].level, 0.025, 1e-12);
    /* What was decided stays, whatever is measured later. */
    claims[1].difference = -5;
    claims[4].difference = 0;
    dl2_claims_test(claims, 5, 2, 1, 1, &once, 0);
    assert_true(claims[1].within && !claims[1].beyond && claims[4].beyond && !claims[4].within);
}

/* A claim that stands from an earlier page passes at each look, and has the bound of the look that
 * shows it. */
static void test_standing_claim(void **state)
{
    const struct dl2_looks looks = {3, {2, 3, 4}, {0.5, 0.25, 0.25}};
    struct dl2_study_claim claims[] = {make_claim(0, 30, 0, 10), make_claim(0, 10, 0, 0.1)};
    claims[0].within = true;
    dl2_claims_test(claims, 2, 1, 1, 1, &looks, 0);
    assert_true(claims[0].within && !claims[0].shown && claims[1].shown);
    assert_true(claims[0].bound < -20);
    claims[0].spread.variance = 0.01;
    dl2_claims_test(claims, 2, 1, 1, 1, &looks, 1);
    assert_true(claims[0].shown);
    assert_int_equal(claims[0].look, 1);
    assert_near(claims[0].level, 0.025 * 0.25, 1e-12);
    assert_near(claims[0].bound, -0.2498, 1e-3);
    claims[0].difference = -5;
    dl2_claims_test(claims, 2, 1, 1, 1, &looks, 2);
    assert_true(claims[0].within);
    assert_near(claims[0].bound, -0.2498, 1e-3);
}

/* The power of a planned study, by figures of the paired t-test and by what can't be. */
static void test_power(void **state)
{
    /* One pair's differences with deviation 1, margin 1, the variance known: 10 pairs have 80.3%
     * power in any table of the paired t-test, 9 have 75.0%, 20 have 98.9%. */
    const struct dl2_noise none = {NAN, 0};
    struct dl2_prospects known = {
        .tests = {{1, 1, 1e9, 0}}, .count = 1, .level = 0.025, .noise = none};
    assert_near(dl2_power(&known, 10, 1), 0.803, 0.05);
    assert_near(dl2_power(&known, 20, 1), 0.989, 0.02);
    /* Two degrees of freedom leave a variance that may be much larger. */
    struct dl2_prospects guessed = known;
    guessed.tests[0].seed_freedom = 2;
    assert_true(dl2_power(&guessed, 20, 1) < 0.93);
    const struct dl2_study_size size = dl2_study_size_needed(&known);
    const struct dl2_study_size more = dl2_study_size_needed(&guessed);
    assert_true(size.few >= 8 && size.few <= 10 && size.many > size.few && size.many <= 13);
    assert_true(more.few > size.few && more.many > more.few);
    assert_true(size.times_images == 1);
    /* A second claim that has to be made first makes both less likely. */
    struct dl2_prospects two = known;
    two.tests[two.count++] = known.tests[0];
    assert_true(dl2_power(&two, 10, 1) < 0.77);
    two.tests[1].margin = -0.1; /* and can't be made */
    assert_int_equal(dl2_study_size_needed(&two).few, 0);
    /* Images are too few: no number of seeds does, seeds and images do. */
    struct dl2_prospects images = {
        .tests = {{0.5, 0.01, 6, 0.25}}, .count = 1, .level = 0.025, .noise = none, .units = 400};
    assert_true(dl2_power(&images, DL2_MAX_SEEDS_NEEDED, 1) < 0.25);
    const struct dl2_study_size both = dl2_study_size_needed(&images);
    assert_true(both.few && both.times_images > 6 && both.times_images < 17);
    images.tests[0].image_variance = 25;
    assert_int_equal(dl2_study_size_needed(&images).few, 0);
}

/* Seeds that vary by 1 and by 3 over three resamples, with a covariance of 3/2; of one seed, all.
 */
static void test_resamples(void **state)
{
    const double table[] = {1, 2, 3, 2, 2, 5}, opposed[] = {1, 2, 3, 3, 2, 1};
    struct dl2_spread spread = dl2_spread_of_resamples(table, 2, 3);
    assert_near(spread.variance, 1.5, 1e-15);
    assert_near(spread.freedom, 2, 0);
    assert_near(dl2_spread_of_resamples(table + 3, 1, 3).variance, 3, 1e-15);
    assert_near(dl2_spread_of_resamples(opposed, 2, 3).variance, 0, 0);
    (void)state;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_mean_squares),
        cmocka_unit_test(test_groups),
        cmocka_unit_test(test_groups_alike),
        cmocka_unit_test(test_images_add),
        cmocka_unit_test(test_sum),
        cmocka_unit_test(test_noise),
        cmocka_unit_test(test_pairs),
        cmocka_unit_test(test_pigeonhole),
        cmocka_unit_test(test_looks),
        cmocka_unit_test(test_family),
        cmocka_unit_test(test_standing_claim),
        cmocka_unit_test(test_power),
        cmocka_unit_test(test_resamples),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
