/* SPDX-License-Identifier: BSD-2-Clause */
/* The makespan of small sets of models, worked out by hand, and what holds for any. */
#include "common/file.h"
#include "common/random.h"
#include "tests/unit.h"
#include "train/several/makespan.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static struct dl2_makespan simulate(enum dl2_makespan_way way,
                                    const struct dl2_makespan_model *models, size_t count,
                                    unsigned ranks, unsigned at_once)
{
    const struct dl2_makespan_options options = {.ranks = ranks, .at_once = at_once, .seed = 1};
    struct dl2_error error = DL2_ERROR_INIT;
    struct dl2_makespan out;
    assert_int_equal(dl2_makespan(way, models, count, &options, &out, &error), DL2_OK);
    return out;
}

static void equal_models_leave_no_rank_idle(void **state)
{
    const struct dl2_makespan_model models[2] = {{1, 0.5, 3, 1}, {1, 0.5, 3, 1}};
    for (int way = 0; way < DL2_MAKESPAN_WAYS; way++) {
        const struct dl2_makespan out = simulate((enum dl2_makespan_way)way, models, 2, 2, 0);
        assert_float_equal(out.seconds, 3 * 2.5, 1e-12);
        assert_float_equal(out.busy, 1, 1e-12);
    }
}

/* Two ranks, visits of 1 and 3 seconds, two epochs. Without a barrier the fast model goes to the
 * other partition and begins its next epoch as soon as a rank is free. */
static void unequal_models_wait_at_a_barrier(void **state)
{
    const struct dl2_makespan_model models[2] = {{1, 0, 2, 1}, {3, 0, 2, 1}};
    /* Each of two sub-epochs takes 3 seconds, in both epochs. */
    assert_float_equal(simulate(DL2_MAKESPAN_BARRIER, models, 2, 2, 0).seconds, 12, 1e-12);
    /* The slow model is never idle. */
    assert_float_equal(simulate(DL2_MAKESPAN_HOP, models, 2, 2, 0).seconds, 12, 1e-12);
    assert_float_equal(simulate(DL2_MAKESPAN_TASK, models, 2, 2, 0).seconds, 12, 1e-12);
    /* A third model fills the gaps that only hopping without a barrier has. */
    const struct dl2_makespan_model three[3] = {{1, 0, 1, 1}, {1, 0, 1, 1}, {3, 0, 1, 1}};
    assert_float_equal(simulate(DL2_MAKESPAN_BARRIER, three, 3, 2, 0).seconds, 7, 1e-12);
    assert_in_range((uintmax_t)simulate(DL2_MAKESPAN_HOP, three, 3, 2, 0).seconds, 6, 7);
    /* On one rank after the other: 2 + 2 beside 6. */
    assert_float_equal(simulate(DL2_MAKESPAN_TASK, three, 3, 2, 0).seconds, 8, 1e-12);
}

static void ranks_and_links_differ(void **state)
{
    /* Two ranks, one half as fast: a visit takes 1 second on the one and 2 on the other. */
    const struct dl2_makespan_model models[2] = {{1, 0, 2, 1, 6}, {1, 0, 2, 1, 6}};
    const double speeds[2] = {1, 0.5}, links[2] = {12, 6};
    struct dl2_makespan_options options = {.ranks = 2, .seed = 1, .speeds = speeds};
    static const double wanted[DL2_MAKESPAN_WAYS] = {
        [DL2_MAKESPAN_HOP] = 8, [DL2_MAKESPAN_BARRIER] = 8, [DL2_MAKESPAN_TASK] = 8};
    /* To and fro: 1 second for the first, 2 for the other; of whole trainings, no way is made. */
    static const double with_links[DL2_MAKESPAN_WAYS] = {
        [DL2_MAKESPAN_HOP] = 16, [DL2_MAKESPAN_BARRIER] = 16, [DL2_MAKESPAN_TASK] = 8};
    struct dl2_makespan out;
    for (int way = 0; way < DL2_MAKESPAN_WAYS; way++) {
        options.links = NULL;
        assert_int_equal(dl2_makespan((enum dl2_makespan_way)way, models, 2, &options, &out, NULL),
                         DL2_OK);
        assert_float_equal(out.seconds, wanted[way], 1e-12);
        options.links = links;
        assert_int_equal(dl2_makespan((enum dl2_makespan_way)way, models, 2, &options, &out, NULL),
                         DL2_OK);
        assert_float_equal(out.seconds, with_links[way], 1e-12);
    }
}

static void parts_of_epochs_and_validations_count(void **state)
{
    /* 2.5 epochs on one rank: 2 + 2 + 1, validated after the second epoch and at the end. */
    const struct dl2_makespan_model model = {2, 10, 2.5, 2};
    for (int way = 0; way < DL2_MAKESPAN_WAYS; way++)
        assert_float_equal(simulate((enum dl2_makespan_way)way, &model, 1, 1, 0).seconds, 25,
                           1e-12);
    /* One model on two ranks: the other one waits. */
    const struct dl2_makespan out = simulate(DL2_MAKESPAN_HOP, &model, 1, 2, 0);
    assert_float_equal(out.seconds, 2 * 5 + 20, 1e-12);
    assert_float_equal(out.busy, 0.5, 1e-12);
}

/* With one model in training at a time, hopping is as slow as one rank. */
static void a_search_begins_few_models(void **state)
{
    const struct dl2_makespan_model models[3] = {{1, 1, 2, 1}, {2, 1, 2, 1}, {3, 1, 2, 1}};
    assert_float_equal(simulate(DL2_MAKESPAN_HOP, models, 3, 2, 1).seconds, 2 * (12 + 3), 1e-12);
    assert_true(simulate(DL2_MAKESPAN_HOP, models, 3, 2, 3).seconds < 2 * (12 + 3));
}

/* Neither faster than the longest model or all work on all ranks, nor slower than one rank; every
 * visit is made. */
static void random_sets_keep_the_bounds(void **state)
{
    struct dl2_random random;
    dl2_random_init(&random, 5, DL2_RANDOM_TEST, 0, 0);
    for (int round = 0; round < 300; round++) {
        struct dl2_makespan_model models[9];
        const size_t count = 1 + dl2_random_below(&random, 9);
        const unsigned ranks = 1 + dl2_random_below(&random, 6);
        double work = 0, longest = 0;
        for (size_t i = 0; i < count; i++) {
            models[i] = (struct dl2_makespan_model){.visit = 1 + dl2_random_below(&random, 20),
                                                    .validate = dl2_random_below(&random, 5),
                                                    .epochs = 1 + dl2_random_below(&random, 4),
                                                    .validate_every = 1};
            const double whole = models[i].epochs * (ranks * models[i].visit + models[i].validate);
            work += whole;
            longest = fmax(longest, whole);
        }
        const unsigned at_once = dl2_random_below(&random, 2) * ((unsigned)count + 1);
        double seconds[DL2_MAKESPAN_WAYS];
        for (int way = 0; way < DL2_MAKESPAN_WAYS; way++) {
            const struct dl2_makespan out =
                simulate((enum dl2_makespan_way)way, models, count, ranks, at_once);
            seconds[way] = out.seconds;
            assert_true(out.seconds >= fmax(longest, work / ranks) - 1e-9);
            assert_true(out.seconds <= work + 1e-9);
            assert_true(fabs(out.busy * ranks * out.seconds - work) <= 1e-9 * work);
        }
        /* List scheduling is at most 2 - 1 / ranks times the best. */
        assert_true(seconds[DL2_MAKESPAN_TASK] <=
                    (2 - 1.0 / ranks) * fmax(longest, work / ranks) + longest);
    }
}

static void visits_are_taken_from_their_file(void **state)
{
    static const char lines[] = "{\"model\":\"a\",\"epoch\":1,\"partition\":1,\"seconds\":2.0}\n"
                                "{\"model\":\"b\",\"epoch\":1,\"partition\":2,\"seconds\":4.0}\n"
                                "{\"model\":\"c\",\"seconds\":1e9}\nno JSON\n"
                                "{\"model\":\"a\",\"epoch\":1,\"partition\":2,\"seconds\":3.5}\n"
                                "{\"model\":\"b\",\"epoch\":1,\"partition\":1,\"seconds\":4.0}\n"
                                "{\"model\":\"a\",\"epoch\":2,\"partition\":1,\"seconds\":3.0}\n";
    const char *const names[] = {"a", "b", "d"};
    struct dl2_makespan_model models[3] = {{.epochs = 2}, {.epochs = 1}, {.epochs = 1}};
    struct dl2_error error = DL2_ERROR_INIT;
    char path[] = "/tmp/dl2-visits.XXXXXX";
    const int file = mkstemp(path);
    assert_true(file >= 0);
    assert_int_equal(write(file, lines, sizeof lines - 1), sizeof lines - 1);
    close(file);
    assert_int_equal(dl2_makespan_take_visits(path, names, 2, 2, models, &error), DL2_OK);
    assert_float_equal(models[0].visit, 2.5, 1e-12);
    assert_float_equal(models[0].validate, 1, 1e-12);
    assert_float_equal(models[1].visit, 4, 1e-12);
    assert_float_equal(models[1].validate, 0, 1e-12);
    assert_int_equal(dl2_makespan_take_visits(path, names, 3, 2, models, &error), DL2_ERR_FORMAT);
    assert_non_null(strstr(error.message, "no whole epoch of model d"));
    /* Half an epoch, in one visit of two. */
    const char *const half[] = {"c"};
    models[0] = (struct dl2_makespan_model){.epochs = 0.5};
    assert_int_equal(dl2_makespan_take_visits(path, half, 1, 2, models, &error), DL2_OK);
    assert_float_equal(models[0].visit, 1e9, 1);
    unlink(path);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(equal_models_leave_no_rank_idle),
        cmocka_unit_test(unequal_models_wait_at_a_barrier),
        cmocka_unit_test(ranks_and_links_differ),
        cmocka_unit_test(parts_of_epochs_and_validations_count),
        cmocka_unit_test(a_search_begins_few_models),
        cmocka_unit_test(random_sets_keep_the_bounds),
        cmocka_unit_test(visits_are_taken_from_their_file),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
