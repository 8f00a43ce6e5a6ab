/* SPDX-License-Identifier: BSD-2-Clause */
/* The order: every sample once over all ranks, whatever the shuffle, and the same for any world. */
#include "loader/sampler.h"
#include "tests/unit.h"

#include <math.h>

static void init(struct dl2_sampler *sampler, const struct dl2_loader_config *config,
                 uint32_t count)
{
    struct dl2_error error = DL2_ERROR_INIT;
    expect_ok(dl2_sampler_init(sampler, config, count, &error), &error);
}

static void test_epoch_alone_matters(void **state)
{
    for (uint32_t chunk = 0; chunk < 10; chunk += 9) {
        struct dl2_sampler sampler;
        const struct dl2_loader_config config = {
            .batch = 7, .train = true, .seed = 1, .shuffle_chunk = chunk, .shuffle_window = 2};
        init(&sampler, &config, 100);
        uint32_t first[100];
        dl2_sampler_set_epoch(&sampler, 3);
        memcpy(first, sampler.order, sizeof first);
        dl2_sampler_set_epoch(&sampler, 4);
        assert_memory_not_equal(first, sampler.order, sizeof first);
        dl2_sampler_set_epoch(&sampler, 3); /* not what came before */
        assert_memory_equal(first, sampler.order, sizeof first);
        dl2_sampler_free(&sampler);
    }
}

/* How often each sample comes over all ranks; checks that all ranks have the same steps. */
static void count_all(struct dl2_loader_config config, uint32_t count, uint64_t epoch,
                      unsigned *seen)
{
    memset(seen, 0, count * sizeof *seen);
    uint64_t steps = 0;
    for (config.rank = 0; config.rank < config.world; config.rank++) {
        struct dl2_sampler sampler;
        init(&sampler, &config, count);
        dl2_sampler_set_epoch(&sampler, epoch);
        if (config.rank == 0)
            steps = sampler.steps;
        assert_int_equal(sampler.steps, steps);
        assert_true(sampler.positions <= steps * config.batch);
        if (config.train && !config.drop_last)
            assert_int_equal(sampler.size, count / config.world);
        for (uint32_t i = 0; i < sampler.positions; i++) {
            assert_true(sampler.order[i] < count);
            seen[sampler.order[i]]++;
        }
        dl2_sampler_free(&sampler);
    }
}

static void test_once_over_ranks(void **state)
{
    static const uint32_t counts[] = {1, 2, 7, 61, 64, 100, 257};
    static unsigned seen[257];
    for (size_t c = 0; c < sizeof counts / sizeof *counts; c++)
        for (uint32_t world = 1; world <= 9; world++)
            for (uint32_t batch = 1; batch <= 33; batch += 4)
                for (int mode = 0; mode < 6; mode++) {
                    const uint32_t count = counts[c];
                    const struct dl2_loader_config config = {
                        .batch = batch,
                        .world = world,
                        .train = mode % 2,
                        .seed = 9,
                        .shuffle_chunk = mode < 2   ? 0
                                         : mode < 4 ? 5
                                                    : 300,
                        .shuffle_window = 3,
                    };
                    if (config.train && count < world)
                        continue;
                    count_all(config, count, 2, seen);
                    uint32_t once = 0;
                    for (uint32_t i = 0; i < count; i++) {
                        assert_true(seen[i] <= 1);
                        once += seen[i];
                    }
                    assert_int_equal(once, config.train ? count - count % world : count);
                }
}

/* The remainder that doesn't go round is another one each epoch. */
static void test_remainder_changes(void **state)
{
    static unsigned first[61], second[61];
    const struct dl2_loader_config config = {.batch = 4, .world = 7, .train = true, .seed = 3};
    count_all(config, 61, 0, first);
    count_all(config, 61, 1, second);
    assert_memory_not_equal(first, second, sizeof first);
}

/* With the same global batch, a step has the same samples in the same order for any world. */
static void test_same_steps_for_any_world(void **state)
{
    enum { COUNT = 240, GLOBAL = 24 };
    struct dl2_sampler one;
    const struct dl2_loader_config whole = {.batch = GLOBAL, .train = true, .seed = 4};
    init(&one, &whole, COUNT);
    dl2_sampler_set_epoch(&one, 5);
    for (uint32_t world = 2; world <= 8; world += world == 4 ? 2 : world == 6 ? 2 : 1)
        for (uint32_t rank = 0; rank < world; rank++) {
            struct dl2_sampler part;
            struct dl2_loader_config config = whole;
            config.world = world;
            config.rank = rank;
            config.batch = GLOBAL / world;
            init(&part, &config, COUNT);
            dl2_sampler_set_epoch(&part, 5);
            assert_int_equal(part.steps, one.steps);
            for (uint64_t step = 0; step < one.steps; step++)
                assert_memory_equal(part.order + step * config.batch,
                                    one.order + step * GLOBAL + rank * config.batch,
                                    config.batch * sizeof(uint32_t));
            dl2_sampler_free(&part);
        }
    dl2_sampler_free(&one);
}

/* Samples of one window come from window * chunk neighbors at most, in
 * another order than theirs. */
static void test_quasi_random(void **state)
{
    enum { COUNT = 1000, CHUNK = 10, WINDOW = 4 };
    struct dl2_sampler sampler;
    const struct dl2_loader_config config = {
        .batch = 8, .train = true, .seed = 6, .shuffle_chunk = CHUNK, .shuffle_window = WINDOW};
    init(&sampler, &config, COUNT);
    unsigned in_order = 0, chunk_order = 0;
    for (uint32_t start = 0; start < COUNT; start += CHUNK * WINDOW) {
        unsigned chunks[COUNT / CHUNK] = {0}, different = 0;
        for (uint32_t i = start; i < start + CHUNK * WINDOW; i++) {
            different += chunks[sampler.order[i] / CHUNK]++ == 0;
            in_order += i > start && sampler.order[i] == sampler.order[i - 1] + 1;
            chunk_order += sampler.order[i] / CHUNK == i / CHUNK;
        }
        assert_int_equal(different, WINDOW);
    }
    assert_true(in_order < COUNT / 10);    /* 1 in 40 are by chance */
    assert_true(chunk_order < COUNT / 10); /* 1 in 100 */
    dl2_sampler_free(&sampler);
}

static void test_drop_last(void **state)
{
    struct dl2_sampler sampler;
    struct dl2_loader_config config = {
        .batch = 8, .world = 2, .rank = 1, .train = true, .drop_last = true};
    init(&sampler, &config, 61);
    assert_int_equal(sampler.steps, 3);
    assert_int_equal(sampler.positions, 24);
    assert_int_equal(sampler.size, 30); /* those left out may still stand in for bad ones */
    dl2_sampler_free(&sampler);
    config.train = false;
    init(&sampler, &config, 61);
    assert_int_equal(sampler.steps, 3);
    assert_int_equal(sampler.positions, 24);
    dl2_sampler_free(&sampler);
}

static void test_misuse_is_an_error(void **state)
{
    static const struct {
        uint32_t count;
        struct dl2_loader_config config;
    } wrong[] = {
        {10, {.batch = 2, .rank = 2, .world = 2}},
        {10, {.batch = 2, .rank = 1}},
        {3, {.batch = 2, .world = 4, .train = true}},
        {7, {.batch = 2, .world = 4, .drop_last = true}},
        {7, {.batch = 8, .drop_last = true, .train = true}},
        {7, {.batch = 1, .train = true, .partition = 2, .partitions = 2}},
        {7, {.batch = 4, .train = true, .drop_last = true, .partition = 1, .partitions = 3}},
    };
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        struct dl2_sampler sampler;
        struct dl2_error error = DL2_ERROR_INIT;
        assert_int_equal(dl2_sampler_init(&sampler, &wrong[i].config, wrong[i].count, &error),
                         DL2_ERR_ARGUMENT);
        assert_true(error.message[0]);
    }
}

/* Partitions have every sample once, one of each few neighbors, and keep them in every epoch. */
static void test_partitions(void **state)
{
    (void)state;
    for (uint32_t count = 7; count < 40; count += 3)
        for (unsigned partitions = 1; partitions <= 7; partitions++) {
            unsigned owner[40] = {0}, sizes = 0, moved = 0;
            for (unsigned p = 0; p < partitions; p++) {
                struct dl2_sampler sampler;
                const struct dl2_loader_config config = {.batch = 2,
                                                         .train = true,
                                                         .partition = p,
                                                         .partitions = partitions,
                                                         .shuffle_chunk = count % 2 ? 3 : 0};
                init(&sampler, &config, count);
                assert_int_equal(sampler.size, dl2_partition_size(count, p, partitions));
                assert_in_range(sampler.size, count / partitions, count / partitions + 1);
                for (uint64_t epoch = 0; epoch < 2; epoch++) {
                    dl2_sampler_set_epoch(&sampler, epoch);
                    for (uint32_t i = 0; i < sampler.size; i++) {
                        const uint32_t index = sampler.order[i];
                        assert_true(index < count && owner[index] == (epoch ? p + 1 : 0));
                        owner[index] = p + 1;
                        moved += index % partitions != p;
                    }
                }
                sizes += sampler.size;
                for (uint32_t first = 0; first + partitions <= count; first += partitions) {
                    unsigned own = 0;
                    for (uint32_t i = first; i < first + partitions; i++)
                        own += owner[i] == p + 1;
                    assert_int_equal(own, 1);
                }
                dl2_sampler_free(&sampler);
            }
            assert_int_equal(sizes, count);
            assert_true(partitions == 1 || moved > 0); /* drawn, not by turns */
        }
    assert_int_equal(dl2_partition_size(10, 4, 4), 0);
}

enum { DRAWN = 60, EPOCHS = 50 };

/* Pearson's statistic of how often samples came, by weights whose sum is given. */
static double chi_square(const unsigned *seen, const double *weights, uint32_t count, double sum,
                         double draws)
{
    double statistic = 0;
    for (uint32_t i = 0; i < count; i++) {
        const double expected = draws * weights[i] / sum;
        if (expected > 0)
            statistic += (seen[i] - expected) * (seen[i] - expected) / expected;
        else
            assert_int_equal(seen[i], 0);
    }
    return statistic;
}

/* Over ranks and epochs, samples come as often as their weights say, and never for a weight of 0.
 */
static void test_weights(void **state)
{
    static unsigned seen[DRAWN], epoch_seen[DRAWN];
    double weights[DRAWN], even[DRAWN], sum = 0;
    for (int i = 0; i < DRAWN; i++) {
        weights[i] = i % 7 ? 0.1 + i * i % 11 : 0;
        sum += weights[i];
        even[i] = 1;
        seen[i] = 0;
    }
    struct dl2_loader_config config = {
        .batch = 8, .world = 3, .train = true, .seed = 5, .weights = weights, .draws = 600};
    for (uint64_t epoch = 0; epoch < EPOCHS; epoch++)
        for (config.rank = 0; config.rank < config.world; config.rank++) {
            struct dl2_sampler sampler;
            init(&sampler, &config, DRAWN);
            dl2_sampler_set_epoch(&sampler, epoch);
            assert_int_equal(sampler.positions, 200);
            for (uint32_t i = 0; i < sampler.positions; i++)
                seen[sampler.order[i]]++;
            dl2_sampler_free(&sampler);
        }
    /* 50 degrees of freedom: above 86.7 once in a thousand times, below 24.7 as well. */
    const double fits = chi_square(seen, weights, DRAWN, sum, 600.0 * EPOCHS);
    assert_true(fits > 24.7 && fits < 86.7);
    assert_true(chi_square(seen, even, DRAWN, DRAWN, 600.0 * EPOCHS) > 1000);
    /* With replacement: of equal weights, some come twice and others not at all. */
    config.weights = even;
    config.draws = 0;
    config.rank = 0;
    config.world = 1;
    struct dl2_sampler sampler;
    init(&sampler, &config, DRAWN);
    assert_int_equal(sampler.positions, DRAWN);
    memset(epoch_seen, 0, sizeof epoch_seen);
    unsigned none = 0, twice = 0;
    for (uint32_t i = 0; i < DRAWN; i++)
        epoch_seen[sampler.order[i]]++;
    for (int i = 0; i < DRAWN; i++) {
        none += !epoch_seen[i];
        twice += epoch_seen[i] > 1;
    }
    assert_true(none > 0 && twice > 0);
    dl2_sampler_free(&sampler);
}

/* The batches of a step, concatenated, are the same samples for any number of ranks, and the places
 * say where each is; with repeats the copies are neighbors there and on different ranks. */
static void test_places(void **state)
{
    const double weights[7] = {1, 2, 3, 0, 1, 0, 9};
    for (int mode = 0; mode < 4; mode++) {
        struct dl2_loader_config config = {.batch = 12, .train = true, .seed = 2};
        config.weights = mode == 0 ? weights : NULL;
        config.repeats = mode == 1 ? 3 : mode == 2 ? 2 : 0;
        config.draws = mode == 0 ? 100 : mode == 2 ? 9 : mode == 3 ? 5 : 0;
        struct dl2_sampler alone, rank;
        init(&alone, &config, 7);
        dl2_sampler_set_epoch(&alone, 4);
        const uint32_t taken = mode == 0 ? 100 : mode == 1 ? 21 : mode == 2 ? 9 : 5;
        assert_int_equal(alone.positions, taken);
        for (uint32_t i = 0; config.repeats && i < taken; i++)
            assert_int_equal(alone.order[i], alone.order[i - i % config.repeats]);
        unsigned seen[100] = {0}, all = 0;
        config.world = 3;
        config.batch = 4;
        for (config.rank = 0; config.rank < 3; config.rank++) {
            init(&rank, &config, 7);
            dl2_sampler_set_epoch(&rank, 4);
            assert_int_equal(rank.positions, taken / 3);
            for (uint32_t i = 0; i < rank.positions; i++, all++) {
                const uint32_t at = rank.epoch_positions[i];
                assert_true(at < taken && !seen[at]++);
                assert_int_equal(at / 12, i / 4);
                assert_int_equal(rank.order[i], alone.order[at]);
                if (config.repeats)
                    assert_int_equal(at % 3, config.rank);
            }
            dl2_sampler_free(&rank);
        }
        assert_int_equal(all, taken / 3 * 3);
        dl2_sampler_free(&alone);
    }
}

static void expect_refused(const struct dl2_loader_config *config, uint32_t count, const char *why)
{
    struct dl2_sampler sampler;
    struct dl2_error error = DL2_ERROR_INIT;
    assert_true(dl2_sampler_init(&sampler, config, count, &error) < 0);
    assert_non_null(strstr(error.message, why));
}

static void test_no_weights(void **state)
{
    static const double bad[][3] = {{1, -1, 1}, {1, NAN, 1}, {INFINITY, 1, 1}, {0, 0, 0}};
    struct dl2_loader_config config = {.batch = 1, .train = true};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        config.weights = bad[i];
        expect_refused(&config, 3, i < 3 ? "is not a valid weight" : "their sum is 0");
    }
    config.weights = NULL;
    config.repeats = 2;
    config.draws = 7;
    expect_refused(&config, 3, "an epoch has 6 samples, not 7");
    config.repeats = 1u << 31;
    expect_refused(&config, 3, "more than a loader can count");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_epoch_alone_matters),
        cmocka_unit_test(test_once_over_ranks),
        cmocka_unit_test(test_remainder_changes),
        cmocka_unit_test(test_same_steps_for_any_world),
        cmocka_unit_test(test_quasi_random),
        cmocka_unit_test(test_drop_last),
        cmocka_unit_test(test_misuse_is_an_error),
        cmocka_unit_test(test_partitions),
        cmocka_unit_test(test_weights),
        cmocka_unit_test(test_places),
        cmocka_unit_test(test_no_weights),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
