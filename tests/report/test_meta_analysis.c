/* SPDX-License-Identifier: BSD-2-Clause */
/* Several studies together: against figures by definition, and against datasets drawn by chance. */
#include "common/random.h"
#include "common/stats.h"
#include "report/inference.h"
#include "report/several_studies.h"
#include "tests/unit.h"

#include <math.h>

enum { MOST = 8 };

static void assert_near(double value, double expected, double tolerance)
{
    if (!(fabs(value - expected) <= tolerance))
        fail_msg("%.12g, not %.12g", value, expected);
}

static const struct {
    size_t count;
    double differences[MOST], variances[MOST], freedoms[MOST], mean, half, half_new, between;
    double p[MOST], joint[MOST];
} golden[] = {
#include "tests/report/meta_analysis_golden.inc"
};

static void test_golden(void **state)
{
    for (size_t i = 0; i < sizeof golden / sizeof *golden; i++) {
        struct dl2_random_effects effects;
        double p[MOST];
        dl2_random_effects(golden[i].differences, golden[i].variances, golden[i].count, &effects);
        assert_near(effects.mean, golden[i].mean, 1e-12);
        assert_near(effects.half, golden[i].half, 1e-9);
        assert_near(effects.half_new, golden[i].half_new, 1e-9);
        assert_near(effects.between, golden[i].between, 1e-12);
        for (size_t k = 0; k < golden[i].count; k++) {
            const struct dl2_spread spread = {golden[i].variances[k], golden[i].freedoms[k]};
            p[k] = dl2_noninferiority_p(golden[i].differences[k], &spread, 1);
            assert_near(p[k], golden[i].p[k], 1e-9);
        }
        dl2_partial_conjunction(p, golden[i].count);
        for (size_t k = 0; k < golden[i].count; k++)
            assert_near(p[k], golden[i].joint[k], 1e-9);
    }
}

/* The 13 trials of the BCG vaccine, logarithms of risk ratios: tau^2 by Hedges and Olkin's
 * estimator is 0.3286 (Viechtbauer, "Conducting meta-analyses in R with the metafor package",
 * Journal of Statistical Software 36, 2010: dat.bcg, method HE). */
static void test_published(void **state)
{
    static const double trials[13][4] = {
        {4, 119, 11, 128},       {6, 300, 29, 274},        {3, 228, 11, 209},
        {62, 13536, 248, 12619}, {33, 5036, 47, 5761},     {180, 1361, 372, 1079},
        {8, 2537, 10, 619},      {505, 87886, 499, 87892}, {29, 7470, 45, 7232},
        {17, 1699, 65, 1600},    {186, 50448, 141, 27197}, {5, 2493, 3, 2338},
        {27, 16886, 29, 17825}};
    double differences[13], variances[13];
    for (size_t i = 0; i < 13; i++) {
        const double *t = trials[i], treated = t[0] + t[1], control = t[2] + t[3];
        differences[i] = log(t[0] / treated) - log(t[2] / control);
        variances[i] = 1 / t[0] - 1 / treated + 1 / t[2] - 1 / control;
    }
    struct dl2_random_effects effects;
    dl2_random_effects(differences, variances, 13, &effects);
    assert_near(effects.between * effects.between, 0.3286, 5e-5);
}

static void test_edges(void **state)
{
    struct dl2_random_effects effects;
    const double one = -0.5, none = 0, equal[] = {1, 1, 1}, certain[] = {0, 0, 0};
    dl2_random_effects(NULL, NULL, 0, &effects);
    assert_true(isnan(effects.mean));
    dl2_random_effects(&one, &none, 1, &effects);
    assert_near(effects.mean, -0.5, 0);
    assert_true(isinf(effects.half) && isinf(effects.half_new) && isnan(effects.between));
    dl2_random_effects(equal, certain, 3, &effects);
    assert_near(effects.half, 0, 0);
    assert_near(effects.between, 0, 0);
    assert_near(dl2_noninferiority_p(-1, &(struct dl2_spread){0, 3}, 1), 0, 0);
    assert_near(dl2_noninferiority_p(-1.1, &(struct dl2_spread){0, 3}, 1), 1, 0);
    assert_near(dl2_noninferiority_p(9, &(struct dl2_spread){INFINITY, 0}, 1), 1, 0);
    assert_near(dl2_noninferiority_p(-1, &(struct dl2_spread){0.3, 2}, 1), 0.5, 1e-12);
    /* Certain of two of three: they can't make up for the third. */
    double p[] = {1e-9, 0.9, 1e-9};
    dl2_partial_conjunction(p, 3);
    assert_near(p[0], 3e-9, 1e-15);
    assert_near(p[1], 3e-9, 1e-15); /* 2 x 1e-9 is less, but more cannot be surer than fewer */
    assert_near(p[2], 0.9, 0);
}

/* ---- Drawn by chance */

/* A study of a dataset whose true difference is `truth`: what it measures, and its spread. */
static double draw_study(struct dl2_random *random, double truth, double error, size_t freedom,
                         struct dl2_spread *spread)
{
    double squares = 0;
    for (size_t i = 0; i < freedom; i++) {
        const double normal = dl2_random_normal(random);
        squares += normal * normal;
    }
    *spread = (struct dl2_spread){error * error * squares / (double)freedom, (double)freedom};
    return truth + error * dl2_random_normal(random);
}

/* sum of w (y - mean)^2 with w = 1 / (v + t) */
static double weighted_squares(const double *y, const double *v, size_t count, double t,
                               double *mean, double *weights)
{
    double sum = 0;
    *mean = *weights = 0;
    for (size_t i = 0; i < count; i++) {
        *weights += 1 / (v[i] + t);
        *mean += y[i] / (v[i] + t);
    }
    *mean /= *weights;
    for (size_t i = 0; i < count; i++)
        sum += (y[i] - *mean) * (y[i] - *mean) / (v[i] + t);
    return sum;
}

/* Does the interval of Hartung & Knapp, with tau^2 by Paule & Mandel, hold 0? */
static bool weighted_holds(const double *y, const double *v, size_t count)
{
    const double freedom = (double)count - 1;
    double low = 0, high = 0, mean, weights;
    if (weighted_squares(y, v, count, 0, &mean, &weights) > freedom)
        for (high = 1; weighted_squares(y, v, count, high, &mean, &weights) > freedom;)
            high *= 2;
    for (int i = 0; i < 50 && high > 0; i++) {
        const double middle = (low + high) / 2;
        *(weighted_squares(y, v, count, middle, &mean, &weights) > freedom ? &low : &high) = middle;
    }
    const double squares = weighted_squares(y, v, count, high, &mean, &weights);
    return fabs(mean) <= dl2_student_quantile(0.025, freedom) * sqrt(squares / freedom / weights);
}

/* Studies of equal or unequal errors, with few or many degrees of freedom: the mean's interval and
 * the prediction interval hold what they should in 95% or more. Weights make that fewer. */
static void test_coverage(void **state)
{
    enum { SUMMARIES = 8000 };
    static const size_t counts[] = {2, 3, 4, 8}, freedoms[] = {1, 2, 4, 12};
    static const double deviations[] = {0, 0.5, 2}, ratios[] = {1, 5};
    const double noise = sqrt(0.95 * 0.05 / SUMMARIES);
    double least = 1, least_new = 1, least_weighted = 1;
    struct dl2_random random;
    dl2_random_init(&random, 29, DL2_RANDOM_TEST, 0, 0);
    for (size_t kind = 0; kind < 4 * 4 * 3 * 2; kind++) {
        const size_t count = counts[kind % 4], freedom = freedoms[kind / 4 % 4];
        const double deviation = deviations[kind / 16 % 3], ratio = ratios[kind / 48];
        size_t held = 0, held_new = 0, weighted = 0;
        for (size_t i = 0; i < SUMMARIES; i++) {
            double differences[MOST], variances[MOST];
            struct dl2_spread spread;
            struct dl2_random_effects effects;
            for (size_t k = 0; k < count; k++) {
                const double error = pow(ratio, dl2_random_uniform(&random) - 0.5);
                differences[k] = draw_study(&random, deviation * dl2_random_normal(&random), error,
                                            freedom, &spread);
                variances[k] = spread.variance;
            }
            dl2_random_effects(differences, variances, count, &effects);
            const double error = pow(ratio, dl2_random_uniform(&random) - 0.5);
            const double measured = draw_study(&random, deviation * dl2_random_normal(&random),
                                               error, freedom, &spread);
            held += fabs(effects.mean) <= effects.half;
            held_new += fabs(measured - effects.mean) <= effects.half_new;
            weighted += i < SUMMARIES / 10 && weighted_holds(differences, variances, count);
        }
        least = fmin(least, (double)held / SUMMARIES);
        least_new = fmin(least_new, (double)held_new / SUMMARIES);
        least_weighted = fmin(least_weighted, 10.0 * (double)weighted / SUMMARIES);
    }
    print_message("mean %.3f, one more %.3f, weighted %.3f\n", least, least_new, least_weighted);
    assert_true(least >= 0.95 - 3 * noise); /* the least of 96 */
    assert_true(least_new >= 0.95 - 3 * noise);
    assert_true(least_weighted < 0.88);
}

/* Two codecs of three variants on four datasets: how often is any claim wrong? */
static double count_wrong(struct dl2_random *random, const size_t within[6])
{
    enum { SUMMARIES = 4000, DATASETS = 4, VARIANTS = 6 };
    size_t wrong = 0;
    for (size_t i = 0; i < SUMMARIES; i++) {
        double p[VARIANTS][DATASETS];
        struct dl2_shared_variant variants[VARIANTS];
        struct dl2_shared_network network = {.variants = variants, .variant_count = VARIANTS};
        bool any = false;
        for (size_t v = 0; v < VARIANTS; v++) {
            for (size_t k = 0; k < DATASETS; k++) {
                struct dl2_spread spread;
                const double truth = k < within[v] ? 2 : -1;
                const double measured = draw_study(random, truth, 0.5, 3, &spread);
                p[v][k] = dl2_noninferiority_p(measured, &spread, 1);
            }
            dl2_partial_conjunction(p[v], DATASETS);
            variants[v] = (struct dl2_shared_variant){
                .codec = v < 3 ? "jpeg" : "webp", .count = DATASETS, .p = p[v]};
        }
        dl2_shared_network_claim(&network, 1);
        for (size_t v = 0; v < VARIANTS; v++)
            any |= variants[v].within > within[v];
        wrong += any;
    }
    return (double)wrong / SUMMARIES;
}

static void test_claims(void **state)
{
    /* On how many of the datasets a variant is within, from the largest; on others it is at the
     * limit, where a wrong claim is most likely. */
    static const size_t kinds[][6] = {
        {0, 0, 0, 0, 0, 0}, {3, 3, 3, 3, 3, 3}, {4, 3, 2, 4, 4, 3}, {4, 4, 4, 3, 2, 1}};
    struct dl2_random random;
    dl2_random_init(&random, 30, DL2_RANDOM_TEST, 0, 0);
    double most = 0;
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
        const double wrong = count_wrong(&random, kinds[i]);
        print_message("wrong %.4f\n", wrong);
        most = fmax(most, wrong);
        assert_true(wrong <= 0.025 + 2 * sqrt(0.025 * 0.975 / 4000));
    }
    assert_true(most > 0.018); /* the level is used */
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_golden), cmocka_unit_test(test_published),
        cmocka_unit_test(test_edges),  cmocka_unit_test(test_coverage),
        cmocka_unit_test(test_claims),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
