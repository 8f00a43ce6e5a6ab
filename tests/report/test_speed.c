/* SPDX-License-Identifier: BSD-2-Clause */
/* Which variant is the fastest, three ways, against figures worked out by hand. */
#include "common/memory.h"
#include "report/speed.h"
#include "tests/unit.h"

#include <math.h>

#define T2 4.302652729911275 /* Student's t, 97.5%, 2 degrees of freedom */

enum { SEEDS = 3, EPOCHS = 4, ROUNDS = 3, MOST = 4 };

/* A variant: top-1 in percent after each epoch, alike from all seeds but for `steps`, which is
 * added times 0, 1 and 2; rates of training in each round. Without rates it was not measured. */
struct row {
    const char *name;
    double curve[EPOCHS], steps, rates[ROUNDS], load_rate;
};

static struct dl2_study_variant variants[MOST];
static struct dl2_study_run runs[MOST * SEEDS];
static double curves[MOST * SEEDS][EPOCHS];
static struct dl2_round rounds[MOST * ROUNDS];
static char network[] = "small", *archs[] = {network};
static struct dl2_study study = {
    .variants = variants, .runs = runs, .archs = archs, .arch_count = 1, .rounds.items = rounds};
static struct dl2_analysis analysis;
static struct dl2_speeds speeds;

static void judge(const struct row *rows, size_t count, double tolerance, double accuracy)
{
    const struct dl2_question question = {.tolerance = tolerance};
    study.variant_count = count;
    study.run_count = study.rounds.count = 0;
    for (size_t v = 0; v < count; v++) {
        variants[v] = (struct dl2_study_variant){.name = (char *)rows[v].name,
                                                 .codec = "jpeg",
                                                 .bytes = 1e6 / (double)(v + 1),
                                                 .ratio = 1 / (double)(v + 1),
                                                 .load_rate = rows[v].load_rate};
        for (size_t s = 0; s < SEEDS; s++) {
            double *curve = curves[study.run_count];
            for (size_t e = 0; e < EPOCHS; e++)
                curve[e] = (rows[v].curve[e] + (double)s * rows[v].steps) / 100;
            runs[study.run_count++] = (struct dl2_study_run){.variant = v,
                                                             .arch = network,
                                                             .seed = s + 1,
                                                             .accuracy = curve[EPOCHS - 1],
                                                             .train_images = 1200,
                                                             .epochs = EPOCHS,
                                                             .val_accuracy = curve};
        }
        for (unsigned r = 0; r < ROUNDS && rows[v].rates[0] > 0; r++)
            rounds[study.rounds.count++] = (struct dl2_round){.network = network,
                                                              .variant = variants[v].name,
                                                              .number = r + 1,
                                                              .rate = rows[v].rates[r],
                                                              .core_rate = NAN,
                                                              .stall = 0.25,
                                                              .joules = NAN};
    }
    analysis = dl2_analyze(&study, network, &question);
    speeds = dl2_speeds_analyze(&study, &analysis, accuracy);
}

static void assert_near(double value, double expected)
{
    if (!(fabs(value - expected) < 1e-6 * fabs(expected) + 1e-12))
        fail_msg("%.12g, not %.12g", value, expected);
}

static void assert_says(const struct dl2_advice *advice, const char *words)
{
    if (!strstr(advice->text, words))
        fail_msg("\"%s\" does not say \"%s\"", advice->text, words);
}

/* Ratios of 1, 2 and 4 in three rounds in which the machine itself became twice as slow each time:
 * the logarithms have mean and standard deviation ln 2. */
static void test_rounds(void **state)
{
    const struct row rows[] = {{"raw", {20, 40, 60, 70}, 0, {400, 200, 100}, 10},
                               {"a", {20, 40, 60, 70}, 0, {400, 400, 400}, 30},
                               {"b", {20, 40, 60, 70}, 0, {800, 400, 200}, 20}};
    judge(rows, 3, 1, NAN);
    const struct dl2_ratio *a = &speeds.variants[1].ratio[DL2_SPEED_TRAIN];
    assert_int_equal(a->rounds, 3);
    assert_near(a->ratio, 2);
    assert_near(dl2_ratio_low(a), 2 * exp(-T2 * log(2) / sqrt(3)));
    assert_near(dl2_ratio_high(a), 2 * exp(T2 * log(2) / sqrt(3)));
    const struct dl2_ratio *b = &speeds.variants[2].ratio[DL2_SPEED_TRAIN];
    assert_near(dl2_ratio_low(b), 2); /* exactly twice in each round */
    assert_near(dl2_ratio_high(b), 2);
    assert_near(speeds.variants[1].train_rate.mean, 400);
    assert_near(speeds.variants[0].stall.mean, 25);
    /* a may be slower than the original, b is certainly not; a was measured to be as fast as b. */
    const struct dl2_advice *train = &speeds.fastest[DL2_SPEED_TRAIN];
    assert_int_equal(train->sure, 2);
    assert_says(train,
                "b is the fastest to train on of those within 1 point: 467 images/s, 2 times "
                "the original's (95% interval 2 to 2 in this run).");
    assert_says(train, " a may be as fast.");
    assert_string_equal(train->gain, "2 times as fast");
    /* The loader was measured once. */
    assert_int_equal(speeds.fastest[DL2_SPEED_LOAD].sure, 1);
    assert_says(&speeds.fastest[DL2_SPEED_LOAD], "30 images/s a core, 3 times");
    assert_says(&speeds.fastest[DL2_SPEED_LOAD], "measured once, so without an interval");
}

/* To 68%: the original crosses it between epochs 3 and 4, a between 2 and 3. */
static void test_accuracy(void **state)
{
    const struct row rows[] = {{"raw", {20, 40, 60, 70}, 0, {100, 100, 100}, 1},
                               {"a", {40, 60, 70, 70}, 0, {200, 200, 200}, 1},
                               {"never", {20, 30, 40, 50}, 0, {900, 900, 900}, 1}};
    judge(rows, 3, 2, NAN);
    assert_near(speeds.accuracy, 68);
    assert_near(speeds.variants[0].epochs, 3.8);
    assert_near(speeds.variants[0].seconds, 3.8 * 1200 / 100);
    assert_near(speeds.variants[1].epochs, 2.8);
    assert_near(speeds.variants[1].seconds, 2.8 * 1200 / 200);
    assert_true(isnan(speeds.variants[2].epochs));
    assert_near(speeds.variants[1].ratio[DL2_SPEED_ACCURACY].ratio, 2 * 3.8 / 2.8);
    assert_near(dl2_ratio_low(&speeds.variants[1].ratio[DL2_SPEED_ACCURACY]), 2 * 3.8 / 2.8);
    const struct dl2_advice *advice = &speeds.fastest[DL2_SPEED_ACCURACY];
    assert_int_equal(advice->sure, 1);
    assert_says(advice,
                "a is the fastest to 68.0% top-1 of those within 2 points: "
                "17 s of training, after 2.8 of the schedule's 4 epochs, 2.71 times as fast as "
                "the original");
    assert_says(advice, ". A training whose schedule ends there may reach another accuracy.");
    /* The fastest to train on loses 20 points: nobody recommends it. */
    assert_int_equal(speeds.fastest[DL2_SPEED_TRAIN].sure, 1);

    judge(rows, 3, 2, 30); /* another accuracy, before the first validation of a */
    assert_near(speeds.variants[0].epochs, 1.5);
    assert_near(speeds.variants[1].epochs, 1);
    assert_near(speeds.variants[2].epochs, 2);
    judge(rows, 3, 2, 90);
    assert_int_equal(speeds.fastest[DL2_SPEED_ACCURACY].sure, 3);
    assert_says(&speeds.fastest[DL2_SPEED_ACCURACY], "trainings do not reach 90.0% top-1");
}

/* A lucky validation is no accuracy that is reached: b's second and third are one level of 55%
 * after 2.5 epochs. What stays level is reached at its first validation. */
static void test_rough_curve(void **state)
{
    const struct row rows[] = {{"raw", {40, 58, 58, 70}, 0, {100, 100, 100}, 1},
                               {"b", {40, 60, 50, 70}, 0, {100, 100, 100}, 1}};
    judge(rows, 2, 2, 58);
    assert_near(speeds.variants[0].epochs, 2);
    assert_near(speeds.variants[1].epochs, 2.5 + 1.5 * 3 / 15);
    judge(rows, 2, 2, 55);
    assert_near(speeds.variants[1].epochs, 2.5);
    judge(rows, 2, 2, 30);
    assert_near(speeds.variants[1].epochs, 1);
    judge(rows, 2, 2, 71);
    assert_true(isnan(speeds.variants[1].epochs));
}

/* The original is not validated after epochs 1 and 3. The mean of its seeds is 41 and 71, with seed
 * 1 left out 41.5 and 71.5, and so on: to 69%, 69.5% and so on, which is always the same share. */
static void test_jackknife(void **state)
{
    const struct row rows[] = {{"raw", {NAN, 40, NAN, 70}, 1, {100, 100, 100}, 1},
                               {"a", {40, 60, 70, 73}, 0, {100, 110, 90}, 1}};
    judge(rows, 2, 2, NAN);
    assert_near(speeds.accuracy, 69);
    assert_near(speeds.variants[0].epochs, 2 + 2 * 28.0 / 30);
    assert_near(speeds.variants[1].epochs, 2.9);
    /* a's epochs to 69, without one of the seeds 69.5, 69 and 68.5: 2.95, 2.9, 2.85. */
    const double raw = 2 + 2 * 28.0 / 30;
    const double t[] = {log(raw / 2.95), log(raw / 2.9), log(raw / 2.85)};
    const double mean = (t[0] + t[1] + t[2]) / 3;
    double squares = 0;
    for (int i = 0; i < 3; i++)
        squares += (t[i] - mean) * (t[i] - mean);
    /* The rates' part comes on top, with no more degrees of freedom than either has. */
    const struct dl2_ratio *ratio = speeds.variants[1].ratio;
    assert_near(ratio[DL2_SPEED_ACCURACY].spread.variance,
                2.0 / 3 * squares + ratio[DL2_SPEED_TRAIN].spread.variance);
    assert_near(ratio[DL2_SPEED_ACCURACY].spread.freedom, 2);
}

/* Rates in three rounds whose ratio to `base` is `times`, `t` standard errors from 1. */
static void set_rates(struct row *row, const struct row *base, double times, double t)
{
    const double step = t > 0 ? log(times) * sqrt(3) / t : 0;
    for (int r = 0; r < ROUNDS; r++)
        row->rates[r] = base->rates[r] * times * exp((r - 1) * step);
}

/* With 2 degrees of freedom a claim needs 4.3 standard errors, one of two 6.2, one of three 7.6. */
static void test_family(void **state)
{
    const struct dl2_speed *of;
    const struct dl2_advice *train = &speeds.fastest[DL2_SPEED_TRAIN];
    struct row rows[MOST] = {{"raw", {20, 40, 60, 70}, 0, {100, 100, 100}, 1},
                             {"a", {20, 40, 60, 70}, 0, {0}, 1},
                             {"b", {20, 40, 60, 70}, 0, {0}, 1},
                             {"lossy", {20, 30, 40, 50}, 0, {0}, 1}};
    set_rates(&rows[1], &rows[0], 1.5, 5);
    judge(rows, 2, 1, NAN); /* alone */
    of = speeds.variants;
    assert_true(of[1].faster[DL2_SPEED_TRAIN] && of[1].faster[DL2_SPEED_ACCURACY]);
    set_rates(&rows[2], &rows[0], 1.4, 6);
    judge(rows, 3, 1, NAN); /* neither as the first of two */
    of = speeds.variants;
    assert_false(of[1].faster[DL2_SPEED_TRAIN] || of[2].faster[DL2_SPEED_TRAIN]);
    assert_int_equal(train->sure, 3);
    assert_says(train, "No variant within 1 point is shown to be faster to train on than the "
                       "original. a was measured to be: 1");
    assert_says(train, "Its own interval is above 1, but not by enough for one of 2 claims.");
    assert_true(dl2_ratio_low(&of[1].ratio[DL2_SPEED_TRAIN]) > 1);
    set_rates(&rows[2], &rows[0], 1.4, 6.5);
    judge(rows, 3, 1, NAN); /* b is, and leaves its share to a */
    of = speeds.variants;
    assert_true(of[1].faster[DL2_SPEED_TRAIN] && of[2].faster[DL2_SPEED_TRAIN]);
    assert_int_equal(train->sure, 1);
    assert_says(train, " b may be as fast.");
    assert_true(of[2].rival[DL2_SPEED_TRAIN] && !of[1].rival[DL2_SPEED_TRAIN]);
    /* What loses too much is no claim by its rate, but one of time to an accuracy. */
    set_rates(&rows[3], &rows[0], 0.9, 0);
    judge(rows, 4, 1, NAN);
    of = speeds.variants;
    assert_true(of[1].faster[DL2_SPEED_TRAIN] && of[2].faster[DL2_SPEED_TRAIN]);
    assert_false(of[1].faster[DL2_SPEED_ACCURACY] || of[2].faster[DL2_SPEED_ACCURACY]);
}

/* What may be as fast as the recommended one is as certain as what is faster. */
static void test_rivals(void **state)
{
    const struct dl2_advice *train = &speeds.fastest[DL2_SPEED_TRAIN];
    struct row rows[MOST] = {{"raw", {20, 40, 60, 70}, 0, {100, 100, 100}, 1},
                             {"a", {20, 40, 60, 70}, 0, {200, 200, 200}, 1},
                             {"b", {20, 40, 60, 70}, 0, {0}, 1},
                             {"c", {20, 40, 60, 70}, 0, {150, 150, 150}, 1}};
    set_rates(&rows[2], &rows[1], 1 / 1.1, 0);
    for (int r = 0; r < ROUNDS; r++) /* a is 5 standard errors faster than b */
        rows[2].rates[r] *= exp((r - 1) * log(1.1) * sqrt(3) / 5);
    judge(rows, 3, 1, NAN);
    assert_int_equal(train->sure, 1);
    assert_null(strstr(train->text, "may be as fast"));
    judge(rows, 4, 1, NAN); /* one of two comparisons */
    assert_int_equal(train->sure, 1);
    assert_says(train, " b may be as fast.");
}

/* Without its best seed a does not reach the accuracy: no interval, and no recommendation. */
static void test_out_of_reach(void **state)
{
    const struct row rows[] = {{"raw", {20, 40, 60, 70}, 0, {100, 100, 100}, 1},
                               {"a", {20, 40, 60, 67}, 1.8, {200, 200, 200}, 1}};
    judge(rows, 2, 2, NAN);
    const struct dl2_ratio *ratio = &speeds.variants[1].ratio[DL2_SPEED_ACCURACY];
    assert_true(ratio->ratio > 1);
    assert_true(ratio->spread.freedom == 0 && dl2_ratio_low(ratio) == 0);
    assert_int_equal(speeds.fastest[DL2_SPEED_ACCURACY].sure, 2);
    assert_int_equal(speeds.fastest[DL2_SPEED_ACCURACY].likely, 2);
}

/* One that could be within is named beside the recommended one if it was measured to be faster. */
static void test_likely(void **state)
{
    const struct row rows[] = {{"raw", {20, 40, 60, 70}, 0, {100, 100, 100}, 1},
                               {"a", {20, 40, 60, 70}, 0, {200, 200, 200}, 1},
                               {"b", {20, 40, 60, 69}, 1, {300, 300, 300}, 1}};
    judge(rows, 3, 1, NAN);
    const struct dl2_advice *train = &speeds.fastest[DL2_SPEED_TRAIN];
    assert_int_equal(train->sure, 1);
    assert_int_equal(train->likely, 2);
    assert_says(train, "a is the fastest to train on of those within 1 point: 200 images/s");
    assert_says(train, " b, which could be within, was measured to be faster: 300 images/s");
    assert_true(speeds.variants[2].faster[DL2_SPEED_TRAIN]);
}

/* What is no faster for certain is not recommended. */
static void test_none(void **state)
{
    const struct row rows[] = {{"raw", {20, 40, 60, 70}, 0, {100, 101, 99}, 1},
                               {"a", {20, 40, 60, 70}, 0, {103, 99, 101}, 1}};
    judge(rows, 2, 1, NAN);
    assert_int_equal(speeds.fastest[DL2_SPEED_TRAIN].sure, 2);
    assert_says(&speeds.fastest[DL2_SPEED_TRAIN],
                "No variant within 1 point is shown to be faster to train on than the original. a "
                "was measured to be: 101 images/s, 1.01 times");
    assert_says(&speeds.fastest[DL2_SPEED_LOAD],
                "No variant was measured to be faster to load than the original.");
    const struct row lossy[] = {{"raw", {20, 40, 60, 70}, 0, {100, 100, 100}, 1},
                                {"a", {20, 30, 40, 50}, 0, {300, 300, 300}, 1}};
    judge(lossy, 2, 1, NAN);
    assert_says(&speeds.fastest[DL2_SPEED_TRAIN],
                "Every variant that was measured to be faster to train on loses more than 1 point: "
                "keep the original.");
    const struct row unmeasured[] = {{"raw", {20, 40, 60, 70}, 0, {0}, 1},
                                     {"a", {20, 30, 40, 70}, 0, {0}, 2}};
    judge(unmeasured, 2, 1, NAN);
    assert_int_equal(speeds.rounds, 0);
    assert_says(&speeds.fastest[DL2_SPEED_TRAIN], "was not measured by itself");
    assert_int_equal(speeds.fastest[DL2_SPEED_LOAD].sure, 1);
}

static void test_duration(void **state)
{
    assert_string_equal(dl2_speed_duration(1.25), "1.25 s");
    assert_string_equal(dl2_speed_duration(90), "90 s");
    assert_string_equal(dl2_speed_duration(150), "2.5 min");
    assert_string_equal(dl2_speed_duration(9000), "2.5 h");
}

static int free_results(void **state)
{
    dl2_free_kept();
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_rounds),    cmocka_unit_test(test_accuracy),
        cmocka_unit_test(test_jackknife), cmocka_unit_test(test_none),
        cmocka_unit_test(test_duration),  cmocka_unit_test(test_out_of_reach),
        cmocka_unit_test(test_family),    cmocka_unit_test(test_rivals),
        cmocka_unit_test(test_likely),    cmocka_unit_test(test_rough_curve),
    };
    return cmocka_run_group_tests(tests, NULL, free_results);
}
