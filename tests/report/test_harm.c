/* SPDX-License-Identifier: BSD-2-Clause */
/* Harm by class, by the loss and by network, against figures worked out by hand. */
#include "report/class_harm.h"
#include "report/loss_change.h"
#include "report/transfer.h"
#include "tests/unit.h"

#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

enum { SEEDS = 3, MAX_IMAGES = 120, KEY = 64 };

#define T2  4.302652729911275  /* Student's t, 97.5%, 2 degrees of freedom */
#define T39 2.0226909117347285 /* 39 */
#define T38 2.0243941639119702 /* 38 */

/* Two networks, the original and a variant. The second network's images are in reverse order. */
static struct fixture {
    struct dl2_study study;
    struct dl2_study_variant variants[2];
    struct dl2_study_run runs[2 * 2 * SEEDS];
    struct dl2_prediction_table images[2];
    struct dl2_prediction rows[2][MAX_IMAGES];
    char keys[2][MAX_IMAGES * KEY], *archs[2];
    uint32_t order[2][MAX_IMAGES];
    float outcome[2][2][SEEDS][MAX_IMAGES]; /* [network][variant] */
    float loss[2][2][SEEDS][MAX_IMAGES];
} made;

/* All images are right, and have a loss of 1. `key` names an image of a class. */
static void make_study(size_t networks, size_t images, size_t classes,
                       void (*key)(char *out, size_t image, size_t class))
{
    static char archs[2][2] = {"a", "b"};
    made = (struct fixture){.variants = {{.name = (char *)"raw", .codec = "raw", .bytes = 2},
                                         {.name = (char *)"jpeg-50", .codec = "jpeg", .bytes = 1}}};
    for (size_t n = 0; n < 2; n++) {
        made.archs[n] = archs[n];
        made.images[n] = (struct dl2_prediction_table){.count = images,
                                                       .keys = made.keys[n],
                                                       .key_size = KEY,
                                                       .rows = made.rows[n],
                                                       .order = made.order[n]};
        for (size_t i = 0; i < images; i++) {
            const size_t row = n ? images - 1 - i : i;
            made.order[n][i] = (uint32_t)row; /* keys must grow with i */
            made.rows[n][row].target = (int32_t)(i * classes / images);
            key(made.keys[n] + row * KEY, i, i * classes / images);
        }
    }
    size_t run = 0;
    for (size_t v = 0; v < 2; v++)
        for (size_t n = 0; n < networks; n++)
            for (size_t s = 0; s < SEEDS; s++) {
                for (size_t i = 0; i < images; i++) {
                    made.outcome[n][v][s][i] = 1;
                    made.loss[n][v][s][i] = 1;
                }
                made.runs[run++] = (struct dl2_study_run){.variant = v,
                                                          .arch = made.archs[n],
                                                          .seed = s + 1,
                                                          .outcome = made.outcome[n][v][s],
                                                          .loss = made.loss[n][v][s],
                                                          .images = images};
            }
    made.study = (struct dl2_study){.variants = made.variants,
                                    .variant_count = 2,
                                    .runs = made.runs,
                                    .run_count = run,
                                    .archs = made.archs,
                                    .arch_count = networks,
                                    .images = made.images};
}

static void lose(size_t network, size_t first, size_t count)
{
    for (size_t s = 0; s < SEEDS; s++)
        for (size_t i = first; i < first + count; i++)
            made.outcome[network][1][s][i] = 0;
}

static struct dl2_analysis analyze(size_t network)
{
    const struct dl2_question question = {.tolerance = 1};
    for (size_t r = 0; r < made.study.run_count; r++) {
        struct dl2_study_run *run = &made.runs[r];
        run->accuracy = 0;
        for (size_t i = 0; run->outcome && i < run->images; i++)
            run->accuracy += run->outcome[i] == 1 ? 1 / (double)run->images : 0;
    }
    return dl2_analyze(&made.study, made.archs[network], &question);
}

static void assert_near(double value, double expected)
{
    if (!(fabs(value - expected) <= 1e-6))
        fail_msg("%.12g, not %.12g", value, expected);
}

/* ---- Classes */

static void key_in_folder(char *out, size_t image, size_t class)
{
    static const char *const names[] = {"daisy", "iris", "lily/white"};
    snprintf(out, KEY, "val/%s/%03zu", names[class], image);
}

static void key_in_one_folder(char *out, size_t image, size_t class)
{
    (void)class;
    snprintf(out, KEY, "val/all/%03zu", image);
}

static void key_in_two_folders(char *out, size_t image, size_t class)
{
    snprintf(out, KEY, "%s/x%zu/%03zu", class ? "val" : "more/a", class / 2, image);
}

static void test_names(void **state)
{
    struct dl2_classes classes;
    make_study(1, 120, 3, key_in_folder);
    classes = dl2_classes_find(&made.images[0]);
    assert_int_equal(classes.count, 3);
    assert_string_equal(classes.names[0], "daisy");
    assert_string_equal(classes.names[2], "lily/white");
    assert_int_equal(classes.of[39], 0);
    assert_int_equal(classes.of[40], 1);
    /* Folders that do not tell classes apart are no names. Targets need not be dense. */
    make_study(1, 120, 3, key_in_one_folder);
    for (size_t i = 80; i < 120; i++)
        made.rows[0][i].target = INT32_MAX;
    made.rows[0][0].target = -7;
    classes = dl2_classes_find(&made.images[0]);
    assert_int_equal(classes.count, 4);
    assert_string_equal(classes.names[0], "class -7");
    assert_string_equal(classes.names[3], "class 2147483647");
    make_study(1, 120, 3, key_in_two_folders);
    classes = dl2_classes_find(&made.images[0]);
    assert_string_equal(classes.names[0], "more/a/x0");
    assert_string_equal(classes.names[1], "val/x0");
    made.images[0].count = 0;
    classes = dl2_classes_find(&made.images[0]);
    assert_int_equal(classes.count, 0);
}

/* The harm of the variant, with the first network. */
static void judge(struct dl2_class_harm *harm)
{
    const struct dl2_analysis analysis = analyze(0);
    const struct dl2_classes classes = dl2_classes_find(&made.images[0]);
    const struct dl2_class_harm *harms = dl2_class_harm_make(&made.study, &analysis, 0, &classes);
    assert_int_equal(harms[0].pairs, 0); /* the original itself */
    *harm = harms[1];
}

/* Three classes of 40, the same in all seeds, so that the images are all that varies. */
static void test_bounds(void **state)
{
    struct dl2_class_harm harm;
    make_study(1, 120, 3, key_in_folder);
    judge(&harm);
    assert_int_equal(harm.judged, 3);
    assert_int_equal(harm.losers, 0);
    for (size_t c = 0; c < 3; c++) {
        assert_int_equal(harm.changes[c].images, 40);
        assert_near(harm.changes[c].original, 100);
        assert_near(harm.changes[c].difference, 0);
        /* Wilson's interval of none in 40, and one image more. */
        assert_near(harm.changes[c].low, -100 * T39 * T39 / (40 + T39 * T39));
        assert_near(harm.changes[c].high, 100 * T39 / 40);
    }
    assert_near(harm.bound, 100 * T39 * T39 / (40 + T39 * T39));
    /* The exact binomial limit, which none can be below, is 8.8 points. */
    assert_true(harm.bound > 100 * (1 - pow(0.025, 1.0 / 40)));
    assert_true(harm.bound < 100 * (1 - pow(0.025, 1.0 / 40)) + 0.5);
    /* 6 of 40: by the variance that is there, and by that at the bound, which is larger. */
    lose(0, 80, 6);
    judge(&harm);
    const double floor = T39 * T39 / 40, loss = 0.15;
    const double wilson =
        (2 * loss + floor + sqrt(floor * floor + 4 * floor * loss * (1 - loss))) / (2 + 2 * floor);
    assert_int_equal(harm.changes[0].class, 2);
    assert_near(harm.changes[0].difference, -15);
    assert_near(harm.changes[0].low, -100 * wilson);
    assert_near(harm.changes[0].high, -15 + 100 * T39 * sqrt(0.1275 / 39 + 1.0 / 1600));
    assert_near(harm.bound, 100 * wilson);
    assert_int_equal(harm.bounding, 0);
    /* Its interval is below 0, but not at a third of the level: t of 39 is 2.50, it is at 2.40. */
    assert_true(harm.changes[0].high < 0);
    assert_int_equal(harm.losers, 0);
    /* Once another class is gone it is at half of the level, where t is 2.33. */
    lose(0, 0, 20);
    judge(&harm);
    assert_int_equal(harm.losers, 2);
    assert_true(harm.changes[0].loses && harm.changes[1].loses && !harm.changes[2].loses);
    assert_int_equal(harm.changes[0].class, 0);
}

/* A class of which 3 of 40 images are right, and none with the variant, may have lost all. */
static void test_all_recall(void **state)
{
    struct dl2_class_harm harm;
    char text[4096];
    make_study(1, 120, 3, key_in_folder);
    for (size_t s = 0; s < SEEDS; s++)
        for (size_t i = 0; i < 40; i++) {
            made.outcome[0][0][s][i] = i < 3;
            made.outcome[0][1][s][i] = 0;
        }
    judge(&harm);
    const struct dl2_classes classes = dl2_classes_find(&made.images[0]);
    assert_near(harm.changes[0].original, 7.5);
    assert_true(harm.bound > 15);
    dl2_class_harm_say(&harm, &classes, text, sizeof text);
    char wanted[256];
    snprintf(
        wanted, sizeof wanted,
        "too few to exclude that 1 class loses all its recall: %s (7.5%% of 40 images). Of the "
        "others they do not exclude a class that loses up to 9.3 points: the lower end",
        classes.names[0]);
    assert_non_null(strstr(text, wanted));
    for (size_t s = 0; s < SEEDS; s++)
        for (size_t v = 0; v < 2; v++)
            memset(made.outcome[0][v][s], 0, 120 * sizeof(float));
    judge(&harm);
    dl2_class_harm_say(&harm, &classes, text, sizeof text);
    assert_non_null(strstr(text, "that 3 classes lose all their recall: "));
    assert_null(strstr(text, "others"));
}

/* A class of one image has no interval and comes last; without predictions nothing is known. */
static void test_few(void **state)
{
    struct dl2_class_harm harm;
    make_study(1, 120, 2, key_in_one_folder);
    made.rows[0][0].target = 9;
    lose(0, 0, 1);
    judge(&harm);
    assert_int_equal(harm.count, 3);
    assert_int_equal(harm.judged, 2);
    assert_near(harm.changes[2].difference, -100);
    assert_true(isinf(harm.changes[2].low) && isinf(harm.changes[2].high));
    assert_true(harm.bound < 10);
    /* An image that one training could not read counts for none. */
    made.outcome[0][0][1][1] = NAN;
    judge(&harm);
    assert_int_equal(harm.changes[0].images + harm.changes[1].images, 118);
    /* Groups take the place of images: with one group a class has no interval. */
    uint32_t group[MAX_IMAGES];
    for (size_t i = 0; i < 120; i++)
        group[i] = i < 60 ? 3 : (uint32_t)(i % 3);
    made.images[0].group = group;
    made.images[0].group_count = 4;
    judge(&harm);
    assert_int_equal(harm.judged, 1);
    assert_int_equal(harm.changes[0].class, 1);
    made.runs[SEEDS].outcome = NULL;
    judge(&harm);
    assert_int_equal(harm.pairs, 0);
}

/* ---- The loss */

static void change_loss(struct dl2_loss_change *change)
{
    struct dl2_loss_change changes[2];
    const struct dl2_analysis analysis = analyze(0);
    dl2_loss_changes_make(&made.study, &analysis, 0, changes);
    assert_near(changes[0].mean, 1);
    assert_true(isnan(changes[0].difference));
    *change = changes[1];
}

static void test_loss(void **state)
{
    struct dl2_loss_change change;
    make_study(1, 40, 2, key_in_one_folder);
    for (size_t s = 0; s < SEEDS; s++)
        for (size_t i = 0; i < 40; i++)
            made.loss[0][1][s][i] = 1.5F + 0.125F * ((float)s - 1);
    change_loss(&change);
    assert_near(change.mean, 1.5);
    assert_near(change.difference, 0.5);
    /* Over seeds a variance of 1/64, and of images one more. One variant alone: 2 degrees. */
    assert_near(change.half, hypot(T2 * 0.125 / sqrt(3), T39 / 40));
    assert_true(dl2_loss_is_higher(&change));
    /* An image that was not read counts for none; a loss that is not a number makes no difference.
     */
    made.outcome[0][1][0][7] = NAN;
    made.loss[0][1][0][7] = NAN;
    change_loss(&change);
    assert_near(change.difference, 0.5);
    assert_near(change.half, hypot(T2 * 0.125 / sqrt(3), T38 / 39));
    made.outcome[0][1][0][7] = 0;
    change_loss(&change);
    assert_true(isnan(change.difference) && !dl2_loss_is_higher(&change));
    made.runs[SEEDS].loss = NULL;
    change_loss(&change);
    assert_true(isnan(change.difference));
}

/* ---- Networks */

static void compare_networks(struct dl2_transfer *transfer)
{
    size_t count;
    const struct dl2_analysis analyses[] = {analyze(0), analyze(1)};
    const struct dl2_transfer *list = dl2_transfers_make(&made.study, analyses, &count);
    assert_int_equal(count, 1);
    *transfer = list[0];
}

static void test_transfer(void **state)
{
    struct dl2_transfer transfer;
    make_study(2, 40, 2, key_in_one_folder);
    /* Both lose the same 5 images, which are the last of the second network's. */
    lose(0, 0, 5);
    lose(1, 35, 5);
    compare_networks(&transfer);
    assert_int_equal(transfer.images, 40);
    assert_near(transfer.difference, 0);
    assert_near(transfer.half, 100 * T39 / 40);
    assert_false(dl2_transfer_differs(&transfer));
    /* 10 others with the second alone. */
    lose(1, 10, 10);
    compare_networks(&transfer);
    assert_near(transfer.difference, 25);
    assert_near(transfer.half, 100 * T39 * sqrt(0.25 * 0.75 / 39 + 1.0 / 1600));
    assert_true(dl2_transfer_differs(&transfer));
    /* For other images, or without predictions: by the chance of training, of which there is none.
     */
    snprintf(made.keys[1], KEY, "zzz");
    compare_networks(&transfer);
    assert_int_equal(transfer.images, 39);
    for (size_t r = 0; r < made.study.run_count; r++)
        made.runs[r].outcome = NULL;
    struct dl2_analysis analyses[2];
    size_t count;
    const struct dl2_question question = {.tolerance = 1};
    for (size_t n = 0; n < 2; n++)
        analyses[n] = dl2_analyze(&made.study, made.archs[n], &question);
    const struct dl2_transfer *list = dl2_transfers_make(&made.study, analyses, &count);
    assert_int_equal(count, 1);
    assert_int_equal(list[0].images, 0);
    assert_near(list[0].difference, 25);
    assert_near(list[0].half, 0);
    made.study.arch_count = 1;
    dl2_transfers_make(&made.study, analyses, &count);
    assert_int_equal(count, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_names),      cmocka_unit_test(test_bounds),
        cmocka_unit_test(test_all_recall), cmocka_unit_test(test_few),
        cmocka_unit_test(test_loss),       cmocka_unit_test(test_transfer),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
