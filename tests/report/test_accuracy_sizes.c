/* SPDX-License-Identifier: BSD-2-Clause */
/* Codecs at equal accuracy: sizes that are known, falls, no overlap, and the interval. */
#include "common/random.h"
#include "report/accuracy_sizes.h"
#include "tests/unit.h"

#include <string.h>

enum { VARIANTS = 7 };

static char *archs[] = {"small"};
static struct dl2_study_variant variants[VARIANTS] = {
    {.name = "raw", .codec = "raw", .bytes = 10000, .load_rate = 100},
    {.name = "jpeg-1", .codec = "jpeg", .bytes = 1000, .load_rate = 100},
    {.name = "jpeg-2", .codec = "jpeg", .bytes = 2000, .load_rate = 100},
    {.name = "jpeg-3", .codec = "jpeg", .bytes = 4000, .load_rate = 100},
    {.name = "webp-1", .codec = "webp", .bytes = 500, .load_rate = 50},
    {.name = "webp-2", .codec = "webp", .bytes = 1000, .load_rate = 50},
    {.name = "webp-3", .codec = "webp", .bytes = 2000, .load_rate = 50},
};
static struct dl2_study study = {
    .variants = variants, .variant_count = VARIANTS, .archs = archs, .arch_count = 1};

static void assert_near(double value, double expected)
{
    if (!(fabs(value - expected) < 1e-6))
        fail_msg("%.12g, not %.12g", value, expected);
}

/* What webp needs of jpeg, by accuracies of all variants. */
static struct dl2_accuracy_size compare(const double accuracy[VARIANTS], double deviation)
{
    static struct dl2_speed speed[VARIANTS];
    struct dl2_comparison comparisons[VARIANTS] = {{.pairs = 0}};
    for (size_t v = 0; v < VARIANTS; v++) {
        variants[v].images = 10;
        variants[v].encode_seconds = v < 4 ? 1 : 3;
        comparisons[v].accuracy = (struct dl2_estimate){accuracy[v], 1, 4};
    }
    const struct dl2_analysis analysis = {
        .arch = "small", .comparisons = comparisons, .noise = {deviation, 10}};
    const struct dl2_speeds speeds = {.variants = speed};
    const struct dl2_accuracy_size *sizes = dl2_accuracy_sizes_find(&study, &analysis, &speeds, 1);
    assert_int_equal(sizes[1].variants, 3);
    return sizes[4];
}

static void known_sizes(void **state)
{
    const double equal[VARIANTS] = {80, 60, 65, 70, 60, 65, 70};
    const struct dl2_accuracy_size size = compare(equal, 0.1);
    assert_near(size.cost[DL2_COST_BYTES], 50);
    assert_near(size.cost[DL2_COST_ENCODING], 300);
    assert_near(size.cost[DL2_COST_LOADING], 200);
    assert_near(size.overlap, 100);
    assert_near(size.gain, 5); /* a factor of two in bytes is five points, everywhere */
    assert_int_equal(size.falls, 0);
    assert_true(size.low[DL2_COST_BYTES] > 40 && size.low[DL2_COST_BYTES] < 50);
    assert_true(size.high[DL2_COST_BYTES] < 62 && size.high[DL2_COST_BYTES] > 50);
    assert_true(size.gain_low > 4.5 && size.gain_low < 5 && size.gain_high > 5);
    /* Nothing is known of chance. */
    const struct dl2_accuracy_size alone = compare(equal, NAN);
    assert_near(alone.cost[DL2_COST_BYTES], 50);
    assert_true(isnan(alone.low[DL2_COST_BYTES]) && isnan(alone.gain_low));
}

static void falls_and_gaps(void **state)
{
    /* webp's 66 and 64 are 65 at the smaller size: two points, 60 at 500 and 65 at 1000. */
    const double falling[VARIANTS] = {80, 60, 65, 70, 60, 66, 64};
    const struct dl2_accuracy_size size = compare(falling, 0.1);
    assert_int_equal(size.falls, 1);
    assert_near(size.overlap, 50);
    assert_near(size.cost[DL2_COST_BYTES], 50);
    const double apart[VARIANTS] = {80, 60, 65, 70, 40, 45, 50};
    const struct dl2_accuracy_size none = compare(apart, 0.1);
    assert_true(isnan(none.cost[DL2_COST_BYTES]) && isnan(none.low[DL2_COST_BYTES]));
    assert_near(none.overlap, 0);
    assert_near(none.gain, -15);
    /* Accuracies that overlap in some repetitions alone have no interval. */
    const double touching[VARIANTS] = {80, 60, 65, 70, 50, 55, 60.1};
    const struct dl2_accuracy_size vague = compare(touching, 2);
    assert_true(isfinite(vague.cost[DL2_COST_BYTES]) && isnan(vague.low[DL2_COST_BYTES]));
    assert_true(isfinite(vague.gain_low));
}

/* How often do intervals hold what is true, with noise of training that is estimated, too? `truth`
 * is of all variants, each measured from four seeds. At least nine in ten, of those that are known.
 */
static void assert_covered(const double truth[VARIANTS], double deviation)
{
    enum { STUDIES = 200, FREEDOM = 10 };
    const struct dl2_accuracy_size expected = compare(truth, NAN);
    const double cost = expected.cost[DL2_COST_BYTES];
    size_t known = 0, costs = 0, gains = 0;
    struct dl2_random random;
    dl2_random_init(&random, 7, DL2_RANDOM_TEST, 0, 0);
    for (size_t s = 0; s < STUDIES; s++) {
        double accuracy[VARIANTS], chi_squared = 0;
        for (size_t v = 0; v < VARIANTS; v++)
            accuracy[v] = truth[v] + deviation / 2 * dl2_random_normal(&random);
        for (size_t f = 0; f < FREEDOM; f++)
            chi_squared += pow(dl2_random_normal(&random), 2);
        const struct dl2_accuracy_size size =
            compare(accuracy, deviation * sqrt(chi_squared / FREEDOM));
        known += isfinite(size.low[DL2_COST_BYTES]);
        costs += size.low[DL2_COST_BYTES] <= cost && size.high[DL2_COST_BYTES] >= cost;
        gains += size.gain_low <= expected.gain && size.gain_high >= expected.gain;
    }
    print_message("of %d: cost known in %zu, held in %zu; gain held in %zu\n", STUDIES, known,
                  costs, gains);
    assert_true(known > STUDIES / 2 && 10 * costs > 9 * known && 10 * gains > 9 * STUDIES);
}

static void coverage(void **state)
{
    assert_covered((const double[VARIANTS]){80, 60, 65, 70, 60, 65, 70}, 1);
    assert_covered((const double[VARIANTS]){80, 78, 79, 79.5, 78, 79, 79.5}, 0.5);
    assert_covered((const double[VARIANTS]){80, 76, 78, 79, 77, 78.5, 78.5}, 0.5);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(known_sizes),
        cmocka_unit_test(falls_and_gaps),
        cmocka_unit_test(coverage),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
