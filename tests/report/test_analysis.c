/* SPDX-License-Identifier: BSD-2-Clause */
/* The statistics and the recommendation, against figures worked out by hand. */
#include "common/memory.h"
#include "report/analysis.h"
#include "report/html.h"
#include "tests/unit.h"

#include <math.h>
#include <stdbool.h>

#define T2 4.302652729911275  /* Student's t, 97.5%, 2 degrees of freedom */
#define T4 2.7764451051977987 /* 4 */

struct row {
    const char *name;
    double ratio, load_rate;
    size_t seeds;
    double top1[4]; /* percent; seeds 1, 2, ... */
    uint64_t first_seed;
};

/* Of the last analyse(). */
static struct dl2_analysis analysis;
static const struct dl2_advice *const smallest = &analysis.smallest;
static const struct dl2_advice *const fastest = &analysis.fastest;

static void analyse(const struct row *rows, size_t count, double tolerance)
{
    struct dl2_study_variant variants[8];
    struct dl2_study_run runs[32];
    char *archs[] = {"small"};
    struct dl2_study study = {.variants = variants,
                              .variant_count = count,
                              .runs = runs,
                              .archs = archs,
                              .arch_count = 1};
    for (size_t v = 0; v < count; v++) {
        variants[v] = (struct dl2_study_variant){.name = (char *)rows[v].name,
                                                 .codec = "jpeg",
                                                 .bytes = 1e6 * rows[v].ratio,
                                                 .ratio = rows[v].ratio,
                                                 .load_rate = rows[v].load_rate};
        for (size_t s = 0; s < rows[v].seeds; s++)
            runs[study.run_count++] =
                (struct dl2_study_run){.variant = v,
                                       .arch = "small",
                                       .seed = (rows[v].first_seed ? rows[v].first_seed : 1) + s,
                                       .top1 = rows[v].top1[s] / 100,
                                       .top5 = 0.9,
                                       .train_rate = 100};
    }
    struct dl2_error error = DL2_ERROR_INIT;
    dl2_analysis_free(&analysis);
    expect_ok(dl2_analyse(&study, "small", tolerance, &analysis, &error), &error);
}

static void assert_near(double value, double expected)
{
    if (!(fabs(value - expected) < 1e-3)) /* the table of t has three decimals */
        fail_msg("%.12g, not %.12g", value, expected);
}

static void test_judge(void **state)
{
    assert_int_equal(dl2_judge(-0.4, 0.6, 1), DL2_VERDICT_WITHIN); /* to the very edge */
    assert_int_equal(dl2_judge(-0.4, 0.61, 1), DL2_VERDICT_LIKELY);
    assert_int_equal(dl2_judge(-1.2, 0.3, 1), DL2_VERDICT_UNLIKELY);
    assert_int_equal(dl2_judge(-1.5, 0.3, 1), DL2_VERDICT_BEYOND);
    assert_int_equal(dl2_judge(+5, INFINITY, 1), DL2_VERDICT_LIKELY);
    assert_int_equal(dl2_judge(-5, INFINITY, 1), DL2_VERDICT_UNLIKELY);
    assert_int_equal(dl2_judge(NAN, NAN, 1), DL2_VERDICT_NONE);
    assert_int_equal(dl2_judge(0, 0, 0), DL2_VERDICT_WITHIN);
}

static void test_mean(void **state)
{
    double three[] = {3, 1, 2}, one[] = {5};
    const struct dl2_estimate a = dl2_estimate_mean(three, 3);
    assert_near(a.mean, 2);
    assert_near(a.half, T2 / sqrt(3)); /* standard deviation 1 */
    const struct dl2_estimate b = dl2_estimate_mean(one, 1);
    assert_near(b.mean, 5);
    assert_true(isinf(b.half));
    assert_true(isnan(dl2_estimate_mean(one, 0).mean));
}

/* One variant: the block design must be the paired t-test. Differences -1, 0, -0.5. */
static void test_paired(void **state)
{
    const struct row rows[] = {{"raw", 1, 100, 3, {70, 72, 75}, 0},
                               {"jpeg-50", 0.1, 200, 3, {69, 72, 74.5}, 0}};
    analyse(rows, 2, 1);
    const struct dl2_comparison *c = &analysis.comparisons[1];
    assert_int_equal(analysis.freedom, 2);
    assert_near(c->difference, -0.5);
    assert_near(c->half, T2 * 0.5 / sqrt(3));
    assert_int_equal(c->pairs, 3);
    assert_int_equal(c->verdict, DL2_VERDICT_LIKELY);
    assert_near(c->top1.mean, (69 + 72 + 74.5) / 3);
    assert_int_equal(analysis.comparisons[0].verdict, DL2_VERDICT_NONE);
}

/*
 * Two variants, three seeds: residuals of variant + seed. Table (rows raw, a, b; columns seeds)
 *   70 72 74 | 69 71 76 | 68 73 72: means 72, 72, 71; of seeds 69, 72, 74; of all 71 2/3.
 * Residuals times 3: raw 2 -1 -1; a -1 -4 5; b -1 5 -4. Squares: 6 + 42 + 42 = 90, over 9: 10.
 */
static void test_block(void **state)
{
    const struct row rows[] = {{"raw", 1, 100, 3, {70, 72, 74}, 0},
                               {"a", 0.1, 200, 3, {69, 71, 76}, 0},
                               {"b", 0.05, 300, 3, {68, 73, 72}, 0}};
    analyse(rows, 3, 1);
    assert_int_equal(analysis.freedom, 4);
    assert_near(analysis.noise, sqrt(10.0 / 4));
    assert_near(analysis.comparisons[1].difference, 0);
    assert_near(analysis.comparisons[2].difference, -1);
    assert_near(analysis.comparisons[2].half, T4 * sqrt(10.0 / 4) * sqrt(2.0 / 3));
}

/* No seed in common: Welch's standard error, the smaller sample's degrees of freedom. */
static void test_unpaired(void **state)
{
    const struct row rows[] = {{"raw", 1, 100, 3, {70, 71, 72}, 0},
                               {"a", 0.1, 200, 3, {70, 72, 74}, 10}};
    analyse(rows, 2, 1);
    const struct dl2_comparison *c = &analysis.comparisons[1];
    assert_int_equal(c->pairs, 0);
    assert_near(c->difference, 1);
    assert_near(c->half, T2 * sqrt(1.0 / 3 + 4.0 / 3));
}

/* A variant that lacks a seed doesn't spoil the block for the others. */
static void test_missing_seed(void **state)
{
    const struct row rows[] = {{"raw", 1, 100, 3, {70, 72, 75}, 0},
                               {"a", 0.1, 200, 3, {69, 72, 74.5}, 0},
                               {"b", 0.2, 200, 2, {69, 73}, 0}};
    analyse(rows, 3, 1);
    assert_int_equal(analysis.freedom, 2);
    assert_near(analysis.comparisons[1].half, T2 * 0.5 / sqrt(3));
    assert_int_equal(analysis.comparisons[2].pairs, 2);
    assert_near(analysis.comparisons[2].difference, 0);
}

static void assert_says(const struct dl2_advice *advice, const char *words)
{
    if (!strstr(advice->text, words))
        fail_msg("\"%s\" does not say \"%s\"", advice->text, words);
}

/* All noise is equal in all rows, so that residuals are 0 and intervals are points. */
static void test_advice_sure(void **state)
{
    const struct row rows[] = {{"raw", 1, 100, 2, {70, 71}, 0},
                               {"jpeg-10", 0.04, 400, 2, {60, 61}, 0},
                               {"jpeg-50", 0.1, 300, 2, {69.5, 70.5}, 0},
                               {"jpeg-85", 0.2, 200, 2, {70, 71}, 0},
                               {"jp2-50", 0.08, 20, 2, {69.4, 70.4}, 0}};
    analyse(rows, 5, 1);
    assert_int_equal(smallest->sure, 4);
    assert_int_equal(smallest->likely, 5);
    assert_int_equal(fastest->sure, 2);
    assert_says(smallest, "jp2-50 is the smallest variant within 1 point");
    assert_says(smallest, "8% of the original's bytes (12.5 times smaller)");
    assert_says(smallest, "differs by −0.6 points (95% interval −0.6 to −0.6)");
    assert_says(fastest, "jpeg-50 is the fastest variant");
    assert_int_equal(analysis.comparisons[1].verdict, DL2_VERDICT_BEYOND);
}

static void test_advice_likely(void **state)
{
    /* As test_paired: -0.5 with +-1.24. */
    const struct row rows[] = {{"raw", 1, 100, 3, {70, 72, 75}, 0},
                               {"jpeg-50", 0.1, 50, 3, {69, 72, 74.5}, 0}};
    analyse(rows, 2, 1);
    assert_int_equal(smallest->sure, 2);
    assert_int_equal(smallest->likely, 1);
    assert_says(smallest, "No smaller variant is within 1 point");
    assert_says(smallest, "jpeg-50 is the smallest that could be");
    /* t(S - 1) 0.5 / sqrt(S) <= 0.5: t/sqrt(S) is 1.24 for 5, 1.05 for 6
     * (2.571/2.449), 0.92 for 7 */
    assert_says(smallest, "About 7 seeds would tell");
    assert_says(fastest, "No variant is faster to load than the original.");

    analyse(rows, 2, 2); /* the same figures, a wider tolerance */
    assert_int_equal(smallest->sure, 1);
    assert_says(smallest, "within 2 points");
}

static void test_advice_one_seed(void **state)
{
    const struct row rows[] = {{"raw", 1, 100, 1, {70}, 0}, {"jpeg-50", 0.1, 200, 1, {70.2}, 0}};
    analyse(rows, 2, 1);
    assert_int_equal(smallest->sure, 2);
    assert_int_equal(smallest->likely, 1);
    assert_says(smallest, "a single pair of trainings, so no interval");
    assert_says(smallest, "Train from several seeds");
}

static void test_advice_none(void **state)
{
    const struct row rows[] = {{"raw", 1, NAN, 2, {70, 71}, 0},
                               {"jpeg-10", 0.04, NAN, 2, {60, 61}, 0},
                               {"png", 1.1, NAN, 2, {70, 71}, 0}};
    analyse(rows, 3, 1);
    assert_int_equal(smallest->sure, 3);
    assert_int_equal(smallest->likely, 3);
    assert_says(smallest, "Every variant that is smaller loses more than 1 point");
    assert_says(fastest, "speed was not measured");

    const struct row untrained[] = {{"raw", 1, 100, 0, {0}, 0}, {"a", 0.1, 200, 2, {60, 61}, 0}};
    analyse(untrained, 2, 1);
    assert_says(smallest, "The original was not trained on");
    assert_int_equal(analysis.comparisons[1].verdict, DL2_VERDICT_NONE);
}

static void test_escaping(void **state)
{
    struct dl2_error error = DL2_ERROR_INIT;
    struct dl2_html html = DL2_HTML_INIT(&error);
    dl2_html_element(&html, "b class='x'", "%s", "<a & \"b\" 'c'>\x01\xff é");
    assert_int_equal(html.status, DL2_OK);
    const char *expected = "<b class='x'>&lt;a &amp; &quot;b&quot; &#39;c&#39;&gt;"
                           "\xef\xbf\xbd\xef\xbf\xbd é</b>";
    assert_int_equal(html.bytes.size, strlen(expected));
    assert_memory_equal(html.bytes.data, expected, strlen(expected));
    dl2_bytes_free(&html.bytes);
}

static int free_analysis(void **state)
{
    dl2_analysis_free(&analysis);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_judge),           cmocka_unit_test(test_mean),
        cmocka_unit_test(test_paired),          cmocka_unit_test(test_block),
        cmocka_unit_test(test_unpaired),        cmocka_unit_test(test_missing_seed),
        cmocka_unit_test(test_advice_sure),     cmocka_unit_test(test_advice_likely),
        cmocka_unit_test(test_advice_one_seed), cmocka_unit_test(test_advice_none),
        cmocka_unit_test(test_escaping),
    };
    return cmocka_run_group_tests(tests, NULL, free_analysis);
}
