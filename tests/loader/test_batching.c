/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Completion order: each sample once, with the pixels that strict order gives, whatever is slow,
 * fails, or is stopped and resumed; and the same over ranks.
 */
#include "common/random.h"
#include "tests/loader/pictures.h"

#include <stdatomic.h>
#include <time.h>

static const enum dl2_batching modes[] = {DL2_BATCHING_STRICT, DL2_BATCHING_COMPLETION};
enum { MODES = 2, BYTES = SIZE * SIZE * 3 };

/* Each sample's pixels by its number, from however many batches. */
struct album {
    uint8_t images[COUNT][BYTES];
    int32_t labels[COUNT];
    unsigned seen[COUNT];
    unsigned total, batches;
};

static void add_batch(struct album *album, const struct dl2_batch *batch)
{
    for (unsigned i = 0; i < batch->count; i++) {
        const uint32_t index = batch->indices[i];
        assert_true(index < COUNT);
        memcpy(album->images[index], batch->images + (size_t)i * BYTES, BYTES);
        album->labels[index] = batch->labels[i];
        album->seen[index]++;
    }
    album->total += batch->count;
    album->batches++;
}

/* Up to `limit` batches. */
static int take(struct dl2_loader *loader, struct album *album, unsigned limit)
{
    struct dl2_error error = DL2_ERROR_INIT;
    struct dl2_batch *batch;
    int status = 1;
    while (limit-- && (status = dl2_loader_next(loader, &batch, &error)) == 1) {
        add_batch(album, batch);
        dl2_loader_release(loader, batch);
    }
    expect_ok(status, &error);
    return status;
}

static void expect_each_once(const struct album *album)
{
    assert_int_equal(album->total, COUNT);
    for (unsigned i = 0; i < COUNT; i++)
        assert_int_equal(album->seen[i], 1);
}

static void expect_same_pixels(const struct album *a, const struct album *b)
{
    assert_memory_equal(a->labels, b->labels, sizeof a->labels);
    assert_memory_equal(a->images, b->images, sizeof a->images);
}

/* An operation that draws from the sample's stream, and takes its time with every fourth sample. */
struct noise {
    long slow_ns;
    atomic_uint calls;
};

static int add_noise(void *context, uint32_t index, struct dl2_random *random, uint8_t *pixels,
                     unsigned width, unsigned height, unsigned channels, struct dl2_error *error)
{
    struct noise *noise = context;
    atomic_fetch_add(&noise->calls, 1);
    if (index % 4 == 0 && noise->slow_ns) {
        const struct timespec time = {0, noise->slow_ns};
        nanosleep(&time, NULL);
    }
    const unsigned shift = 1 + dl2_random_below(random, 255);
    for (unsigned i = 0; i < width * height * channels; i++)
        pixels[i] = (uint8_t)(pixels[i] + shift + (dl2_random_u32(random) & 7));
    return 0;
}

static struct dl2_operation noise_operations[3];

static void use_operations(struct dl2_loader_config *config, struct noise *noise, unsigned count)
{
    for (unsigned i = 0; i < count; i++)
        noise_operations[i] = (struct dl2_operation){"noise", add_noise, noise};
    config->operations = noise_operations;
    config->operation_count = count;
}

/* The same samples with the same pixels in both modes, for any number of workers. */
static void test_same_pixels_in_all_modes(void **state)
{
    for (unsigned operations = 0; operations <= 3; operations += 3)
        for (int train = 0; train < 2; train++) {
            struct album *expected = NULL;
            for (unsigned mode = 0; mode < MODES; mode++)
                for (unsigned workers = 1; workers <= 9; workers += 4) {
                    struct noise noise = {mode ? 300000 : 0, 0};
                    struct dl2_loader_config config = config_for(train, workers);
                    config.batching = modes[mode];
                    config.batch = 4 + workers;
                    use_operations(&config, &noise, operations);
                    struct dl2_loader *loader = create(samples, &config);
                    for (unsigned epoch = 0; epoch < 4; epoch++) {
                        struct album *album = calloc(1, sizeof *album);
                        start(loader, epoch, 0);
                        take(loader, album, UINT32_MAX);
                        expect_each_once(album);
                        assert_int_equal(album->batches, dl2_loader_steps(loader));
                        if (epoch == 3 && expected)
                            expect_same_pixels(expected, album);
                        if (epoch == 3 && !expected)
                            expected = album;
                        else
                            free(album);
                    }
                    assert_int_equal(atomic_load(&noise.calls), 4 * operations * COUNT);
                    const struct dl2_loader_stats stats = stats_of(loader);
                    assert_int_equal(stats.images, 4 * COUNT);
                    assert_int_equal(stats.batches, 4 * dl2_loader_steps(loader));
                    assert_true(stats.memory > (uint64_t)config.batch * BYTES * config.depth);
                    assert_true(stats.memory < (uint64_t)1 << 26);
                    assert_int_equal(stats.operations > 0, operations > 0);
                    dl2_loader_destroy(loader);
                }
            free(expected);
        }
}

/* Nor does it matter how bytes come, with next to no room for what is read ahead. */
static void test_same_pixels_however_read(void **state)
{
    struct album *expected = NULL;
    for (enum dl2_io io = DL2_IO_AUTO; io <= DL2_IO_URING; io++)
        for (unsigned mode = 0; mode < MODES; mode++)
            for (unsigned workers = 1; workers <= 9; workers += 8) {
                struct noise noise = {200000, 0};
                struct dl2_loader_config config = config_for(true, workers);
                struct dl2_loader *loader;
                config.batching = modes[mode];
                config.fetch.io = io;
                config.fetch.ahead = io == DL2_IO_DIRECT ? 0 : 2;
                config.decoded_cache_bytes = 100000;
                use_operations(&config, &noise, 2);
                const int status = dl2_loader_create(samples, &config, &loader, NULL);
                if (io == DL2_IO_URING && status == DL2_ERR_UNSUPPORTED)
                    continue;
                assert_int_equal(status, 0);
                for (unsigned epoch = 0; epoch < 3; epoch++) {
                    struct album *album = calloc(1, sizeof *album);
                    start(loader, epoch, 0);
                    if (epoch == 1) { /* left in the middle */
                        take(loader, album, 3);
                        free(album);
                        continue;
                    }
                    take(loader, album, UINT32_MAX);
                    expect_each_once(album);
                    if (epoch == 2 && expected)
                        expect_same_pixels(expected, album);
                    if (epoch == 2 && !expected)
                        expected = album;
                    else
                        free(album);
                }
                dl2_loader_destroy(loader);
            }
    free(expected);
}

/* Holds up sample 0 until it may go on. */
static int hold(void *context, uint32_t index, struct dl2_random *random, uint8_t *pixels,
                unsigned width, unsigned height, unsigned channels, struct dl2_error *error)
{
    atomic_bool *go = context;
    const struct timespec pause = {0, 1000000};
    while (index == 0 && !atomic_load(go))
        nanosleep(&pause, NULL);
    return 0;
}

/* The first sample of the order is not ready: the batches before the last go without it. */
static void test_slow_samples_join_a_later_batch(void **state)
{
    atomic_bool go = false;
    const struct dl2_operation operation = {"hold", hold, &go};
    struct dl2_loader_config config = config_for(false, 4);
    config.batching = DL2_BATCHING_COMPLETION;
    config.batch = 3;
    config.operations = &operation;
    config.operation_count = 1;
    struct dl2_loader *loader = create(samples, &config);
    struct album *album = calloc(1, sizeof *album);
    start(loader, 0, 0);
    take(loader, album, (COUNT - 1) / 3);
    assert_int_equal(album->seen[0], 0);
    atomic_store(&go, true);
    take(loader, album, UINT32_MAX);
    expect_each_once(album);
    free(album);
    dl2_loader_destroy(loader);
}

/* Stopped after any step and resumed, by another loader with another batching: what had not come
 * comes, and nothing else. */
static void test_resume(void **state)
{
    struct noise noise = {200000, 0};
    struct dl2_loader_config config = config_for(true, 5);
    use_operations(&config, &noise, 2);
    struct dl2_loader *strict = create(samples, &config);
    struct album *expected = calloc(1, sizeof *expected);
    start(strict, 6, 0);
    take(strict, expected, UINT32_MAX);
    dl2_loader_destroy(strict);
    unsigned out_of_order = 0;
    for (unsigned mode = 0; mode < MODES; mode++)
        for (unsigned next_mode = 0; next_mode < MODES; next_mode++)
            for (unsigned step = 0; step <= 8; step++) {
                struct album *album = calloc(1, sizeof *album);
                config.batching = modes[mode];
                struct dl2_loader *loader = create(samples, &config);
                start(loader, 6, 0);
                take(loader, album, step / 2);
                /* Saved twice: what is resumed can be saved again. */
                struct dl2_loader_position at;
                assert_int_equal(dl2_loader_get_position(loader, &at, NULL), 0);
                assert_int_equal(dl2_loader_resume(loader, &at, NULL), 0);
                take(loader, album, step - step / 2);
                assert_int_equal(dl2_loader_get_position(loader, &at, NULL), 0);
                assert_int_equal(at.step, step);
                assert_int_equal(at.next - at.missing_count, step < 8 ? 8 * step : COUNT);
                if (mode == 0)
                    assert_int_equal(at.missing_count, 0);
                out_of_order += at.missing_count;
                config.batching = modes[next_mode];
                struct dl2_loader *other = create(samples, &config);
                assert_int_equal(dl2_loader_resume(other, &at, NULL), 0);
                dl2_loader_destroy(loader);
                take(other, album, UINT32_MAX);
                expect_each_once(album);
                expect_same_pixels(expected, album);
                dl2_loader_destroy(other);
                free(album);
            }
    assert_true(out_of_order > 0);
    free(expected);
}

static void test_positions_that_are_none(void **state)
{
    struct dl2_loader_config config = config_for(true, 2);
    struct dl2_loader *loader = create(samples, &config);
    struct dl2_loader_position at;
    assert_int_equal(dl2_loader_get_position(loader, &at, NULL), DL2_ERR_ARGUMENT);
    static const uint32_t beyond[] = {3, 10}, twice[] = {3, 3}, good[] = {0, 9};
    const struct dl2_loader_position wrong[] = {
        {0, 1, 9, 0, NULL},           /* no whole batches */
        {0, 9, COUNT, 0, NULL},       /* no such step */
        {0, 8, COUNT + 1, 1, beyond}, /* nor such a sample */
        {0, 1, 10, 2, beyond},        {0, 1, 10, 2, twice}, {0, 0, 1, 2, good},
    };
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++)
        assert_int_equal(dl2_loader_resume(loader, &wrong[i], NULL), DL2_ERR_ARGUMENT);
    const struct dl2_loader_position right = {0, 1, 10, 2, good};
    assert_int_equal(dl2_loader_resume(loader, &right, NULL), 0);
    struct album *album = calloc(1, sizeof *album);
    take(loader, album, UINT32_MAX);
    assert_int_equal(album->total, COUNT - 8);
    free(album);
    dl2_loader_destroy(loader);
}

/* Stopped at any moment, with samples that wait for a place, and begun again: no hang. */
static void test_stop_at_any_time(void **state)
{
    for (unsigned mode = 1; mode < MODES; mode++)
        for (unsigned workers = 1; workers <= 16; workers += 3)
            for (unsigned taken = 0; taken < 6; taken++) {
                struct noise noise = {1000000, 0};
                struct dl2_loader_config config = config_for(true, workers);
                config.batching = modes[mode];
                config.batch = 3;
                use_operations(&config, &noise, 2);
                struct dl2_loader *loader = create(samples, &config);
                struct album *album = calloc(1, sizeof *album);
                struct dl2_batch *batch;
                for (unsigned epoch = 0; epoch < 3; epoch++) {
                    start(loader, epoch, 0);
                    take(loader, album, 7 * taken);
                }
                if (taken == 5) {
                    start(loader, 3, 0);
                    assert_int_equal(dl2_loader_next(loader, &batch, NULL), 1);
                }
                dl2_loader_destroy(loader);
                free(album);
            }
}

/* A bad sample's place is filled by the next good one, in any mode; in validation it is blank. */
static void test_bad_samples(void **state)
{
    spoil(3);
    spoil(8);
    spoil(30);
    for (unsigned mode = 0; mode < MODES; mode++)
        for (int train = 0; train < 2; train++)
            for (unsigned workers = 1; workers <= 7; workers += 3) {
                struct noise noise = {100000, 0};
                struct dl2_loader_config config = config_for(train, workers);
                config.batching = modes[mode];
                use_operations(&config, &noise, 2);
                struct dl2_loader *loader = create(samples, &config);
                for (unsigned epoch = 0; epoch < 2; epoch++) {
                    struct album *album = calloc(1, sizeof *album);
                    start(loader, epoch, 0);
                    take(loader, album, UINT32_MAX);
                    assert_int_equal(album->total, COUNT);
                    unsigned absent = 0, blank = 0;
                    for (unsigned i = 0; i < COUNT; i++) {
                        absent += album->seen[i] == 0;
                        blank += album->seen[i] && album->labels[i] == -1;
                        if (album->seen[i] && album->labels[i] == -1)
                            for (unsigned k = 0; k < BYTES; k++)
                                assert_int_equal(album->images[i][k], 0);
                    }
                    assert_int_equal(absent, train ? 3 : 0);
                    assert_int_equal(blank, train ? 0 : 3);
                    free(album);
                }
                const struct dl2_loader_stats stats = stats_of(loader);
                assert_int_equal(stats.bad, 3);
                dl2_loader_destroy(loader);
            }
}

static int refuse_some(void *context, uint32_t index, struct dl2_random *random, uint8_t *pixels,
                       unsigned width, unsigned height, unsigned channels, struct dl2_error *error)
{
    pixels[0] = 77;
    if (index == *(const uint32_t *)context)
        return dl2_error_set(error, DL2_ERR_FORMAT, "not to my taste");
    return 0;
}

/* With stop_on_bad the epoch ends with the error, whoever waits for what; an operation may fail. */
static void test_stop_on_bad(void **state)
{
    uint32_t disliked = 20;
    const struct dl2_operation operation = {"taste", refuse_some, &disliked};
    for (unsigned mode = 0; mode < MODES; mode++)
        for (unsigned workers = 1; workers <= 16; workers += 5)
            for (unsigned batch = 2; batch < 9; batch += 3) {
                struct dl2_loader_config config = config_for(false, workers);
                config.batching = modes[mode];
                config.batch = batch;
                config.stop_on_bad = true;
                config.operations = &operation;
                config.operation_count = 1;
                struct dl2_loader *loader = create(samples, &config);
                for (unsigned round = 0; round < 2; round++) {
                    struct dl2_error error = DL2_ERROR_INIT;
                    struct dl2_batch *got;
                    int status;
                    start(loader, round, 0);
                    while ((status = dl2_loader_next(loader, &got, &error)) == 1) {
                        for (unsigned i = 0; i < got->count; i++) {
                            assert_int_not_equal(got->indices[i], disliked);
                            assert_int_equal(got->images[i * (size_t)BYTES], 77);
                        }
                        dl2_loader_release(loader, got);
                    }
                    assert_int_equal(status, DL2_ERR_FORMAT);
                    assert_non_null(strstr(error.message, ": taste: not to my taste"));
                }
                dl2_loader_destroy(loader);
            }
}

/* Over all ranks each sample comes once in validation, and at most once in training; all ranks
 * have the same steps, with empty batches where there is nothing left. */
static void test_ranks(void **state)
{
    for (unsigned mode = 0; mode < MODES; mode++)
        for (int train = 0; train < 2; train++)
            for (unsigned world = 2; world <= 32; world *= 2) {
                struct album *album = calloc(1, sizeof *album);
                uint64_t steps = 0;
                for (unsigned rank = 0; rank < world; rank++) {
                    struct dl2_loader_config config = config_for(train, 3);
                    config.batching = modes[mode];
                    config.batch = 3;
                    config.rank = rank;
                    config.world = world;
                    struct dl2_loader *loader = create(samples, &config);
                    const unsigned before = album->batches;
                    start(loader, 2, 0);
                    take(loader, album, UINT32_MAX);
                    if (rank == 0)
                        steps = dl2_loader_steps(loader);
                    assert_int_equal(dl2_loader_steps(loader), steps);
                    assert_int_equal(album->batches - before, steps);
                    dl2_loader_destroy(loader);
                }
                assert_int_equal(album->total, train ? COUNT - COUNT % world : COUNT);
                for (unsigned i = 0; i < COUNT; i++)
                    assert_true(album->seen[i] <= 1);
                free(album);
            }
}

static void test_misuse_is_an_error(void **state)
{
    struct dl2_loader *loader;
    const struct dl2_operation nameless = {NULL, refuse_some, NULL}, empty = {"empty", NULL, NULL};
    struct dl2_loader_config wrong[5];
    for (unsigned i = 0; i < 5; i++)
        wrong[i] = config_for(true, 2);
    wrong[0].foreground = 2;
    wrong[1].rank = 1;
    wrong[2].world = COUNT + 1;
    wrong[3].operations = &nameless;
    wrong[4].operations = &empty;
    wrong[3].operation_count = wrong[4].operation_count = 1;
    for (unsigned i = 0; i < 5; i++)
        assert_int_equal(dl2_loader_create(samples, &wrong[i], &loader, NULL), DL2_ERR_ARGUMENT);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, make_pictures, remove_root)

int main(void)
{
    if (!has_encoder("jpeg"))
        return 77;
    const struct CMUnitTest tests[] = {
        TEST(test_same_pixels_in_all_modes),
        TEST(test_same_pixels_however_read),
        TEST(test_slow_samples_join_a_later_batch),
        TEST(test_resume),
        TEST(test_positions_that_are_none),
        TEST(test_stop_at_any_time),
        TEST(test_bad_samples),
        TEST(test_stop_on_bad),
        TEST(test_ranks),
        TEST(test_misuse_is_an_error),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
