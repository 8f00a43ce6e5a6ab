/* SPDX-License-Identifier: BSD-2-Clause */
/* The pipeline: the same bytes for any number of workers, exact restarts, bad samples, no hangs. */
#include "codec/codec.h"
#include "common/file.h"
#include "common/half.h"
#include "loader/decoded.h"
#include "loader/loader_settings.h"
#include "pixels/resize.h"
#include "tests/loader/pictures.h"

#include <math.h>
#include <pthread.h>
#include <time.h>
#include <unistd.h>

static void check_workers(bool train, unsigned channels)
{
    struct loaded *expected = NULL;
    static const unsigned workers[] = {1, 2, 3, 5, 8};
    for (size_t i = 0; i < sizeof workers / sizeof *workers; i++) {
        struct dl2_loader_config config = config_for(train, workers[i]);
        config.channels = channels;
        config.depth = 2 + (unsigned)i % 3;
        struct dl2_loader *loader = create(samples, &config);
        assert_int_equal(dl2_loader_steps(loader), 8);
        struct loaded *epoch = load_epoch(loader, channels, 4, 0);
        assert_int_equal(epoch->count, COUNT);
        if (expected)
            expect_same(expected, epoch);
        const struct dl2_loader_stats stats = stats_of(loader);
        assert_int_equal(stats.images, COUNT);
        assert_int_equal(stats.bad, 0);
        assert_true(stats.bytes > COUNT && stats.decode > 0 && stats.transform > 0);
        dl2_loader_destroy(loader);
        if (expected)
            free(epoch);
        else
            expected = epoch;
    }
    free(expected);
}

static void test_any_number_of_workers(void **state)
{
    check_workers(true, 3);
    check_workers(true, 1);
    check_workers(false, 3);
    check_workers(false, 1);
}

/* Each sample comes once, with its label; training shuffles anew each epoch, validation doesn't. */
static void test_each_sample_once(void **state)
{
    for (int train = 0; train < 2; train++) {
        struct dl2_loader_config config = config_for(train, 2);
        struct dl2_loader *loader = create(samples, &config);
        struct loaded *first = load_epoch(loader, 3, 0, 0), *second = load_epoch(loader, 3, 1, 0);
        for (size_t i = 0; i < COUNT; i++) {
            struct dl2_sample sample;
            dl2_dataset_sample(samples, first->indices[i], &sample);
            assert_int_equal(first->labels[i], sample.label);
        }
        const bool same_order = !memcmp(first->indices, second->indices, sizeof first->indices);
        assert_int_equal(same_order, !train);
        if (!train)
            expect_same(first, second);
        expect_every_sample(first, COUNT);
        free(first);
        free(second);
        dl2_loader_destroy(loader);
    }
}

/* Another seed, another order. */
static void test_seed(void **state)
{
    struct dl2_loader_config config = config_for(true, 2);
    struct dl2_loader *loader = create(samples, &config);
    config.seed++;
    struct dl2_loader *other = create(samples, &config);
    struct loaded *a = load_epoch(loader, 3, 0, 0), *b = load_epoch(other, 3, 0, 0);
    assert_memory_not_equal(a->indices, b->indices, sizeof a->indices);
    free(a);
    free(b);
    dl2_loader_destroy(loader);
    dl2_loader_destroy(other);
}

static void test_restart_anywhere(void **state)
{
    struct dl2_loader_config config = config_for(true, 3);
    struct dl2_loader *loader = create(samples, &config);
    expect_exact_restarts(loader, COUNT);
    dl2_loader_destroy(loader);
}

/* Stopped at once, while busy, with batches ready, with a batch taken: nothing hangs or leaks. */
static void test_destroy_at_any_time(void **state)
{
    for (unsigned workers = 1; workers <= 8; workers++)
        for (unsigned taken = 0; taken < 4; taken++) {
            struct dl2_loader_config config = config_for(true, workers);
            config.depth = 2 + workers % 2;
            struct dl2_loader *loader = create(samples, &config);
            struct dl2_batch *batch;
            if (taken > 0)
                start(loader, 0, 0);
            if (taken > 1)
                assert_int_equal(dl2_loader_next(loader, &batch, NULL), 1);
            if (taken > 2)
                dl2_loader_release(loader, batch);
            dl2_loader_destroy(loader);
        }
}

/* Batches that are kept, in a later epoch, too, stay as they are and take nothing from the rest. */
static void test_kept_batches(void **state)
{
    const size_t bytes = (size_t)8 * SIZE * SIZE * 3;
    for (unsigned kept = 1; kept < 4; kept++) {
        struct dl2_loader_config config = config_for(true, 3);
        config.depth = 4;
        struct dl2_loader *loader = create(samples, &config);
        struct loaded *expected = load_epoch(loader, 3, 1, 0);
        struct dl2_batch *batches[3];
        uint8_t *copy = malloc(kept * bytes);
        start(loader, 0, 3);
        for (unsigned i = 0; i < kept; i++) {
            assert_int_equal(dl2_loader_wait(loader, 1e9), 1);
            assert_int_equal(dl2_loader_next(loader, &batches[i], NULL), 1);
            memcpy(copy + i * bytes, batches[i]->images, bytes);
        }
        struct loaded *epoch = load_epoch(loader, 3, 1, 0);
        expect_same(expected, epoch);
        assert_int_equal(dl2_loader_wait(loader, 0), 1); /* the epoch has ended */
        for (unsigned i = 0; i < kept; i++) {
            assert_memory_equal(batches[i]->images, copy + i * bytes, bytes);
            assert_int_equal(batches[i]->step, 3 + i);
            if (i == 1)
                dl2_loader_release(loader, batches[i]);
        }
        free(epoch);
        epoch = load_epoch(loader, 3, 1, 0);
        expect_same(expected, epoch);
        free(epoch);
        free(expected);
        free(copy);
        dl2_loader_destroy(loader);
    }
}

static void test_misuse_is_an_error(void **state)
{
    struct dl2_loader_config config = config_for(true, 2);
    struct dl2_loader *loader = create(samples, &config);
    struct dl2_batch *a, *b, *c;
    assert_int_equal(dl2_loader_next(loader, &a, NULL), DL2_ERR_ARGUMENT); /* no epoch */
    start(loader, 0, 0);
    assert_int_equal(dl2_loader_next(loader, &a, NULL), 1);
    assert_int_equal(dl2_loader_next(loader, &b, NULL), 1);
    assert_ptr_not_equal(a->images, b->images);
    assert_int_equal(dl2_loader_next(loader, &c, NULL), DL2_ERR_ARGUMENT); /* both are taken */
    assert_null(c);
    assert_int_equal(dl2_loader_wait(loader, 1e9), 1); /* next() says at once that it's so */
    dl2_loader_release(loader, b);                     /* in another order than they came */
    dl2_loader_release(loader, a);
    assert_int_equal(dl2_loader_next(loader, &c, NULL), 1);
    assert_int_equal(c->step, 2);
    dl2_loader_release(loader, c);
    start(loader, 1, 0);
    dl2_loader_destroy(loader);

    struct dl2_loader_config wrong[6];
    for (unsigned i = 0; i < 6; i++)
        wrong[i] = config_for(i < 5, 1);
    wrong[0].depth = 1;
    wrong[1].channels = 2;
    wrong[2].batch = 0;
    wrong[3].area_min = 1.5;
    wrong[4].aspect_max = 0.1;
    wrong[5].resize = SIZE - 1;
    for (unsigned i = 0; i < 6; i++)
        assert_int_equal(dl2_loader_create(samples, &wrong[i], &loader, NULL), DL2_ERR_ARGUMENT);
    assert_null(loader);
}

static void expect_refused(const struct dl2_loader_config *config, const char *says)
{
    struct dl2_error error = DL2_ERROR_INIT;
    struct dl2_loader *loader;
    assert_int_equal(dl2_loader_create(samples, config, &loader, &error), DL2_ERR_ARGUMENT);
    assert_null(loader);
    if (!strstr(error.message, says))
        fail_msg("\"%s\" doesn't speak of \"%s\"", error.message, says);
}

/* One mode's settings are those of both, without the other's: what is left breaks no rule. */
static void test_idle_settings_are_cleared(void **state)
{
    static const double weights[2] = {1, 1};
    const struct dl2_loader_config usual = DL2_LOADER_DEFAULTS;
    const struct dl2_loader_source source = {0};
    struct dl2_loader_fault fault;
    for (int train = 0; train < 2; train++) {
        struct dl2_loader_config config = config_for(train, 1);
        config.resize = SIZE + 4;
        config.val_crop = DL2_VAL_SQUASH;
        config.area_min = 0.5;
        config.flip = false;
        config.augment = "vflip";
        config.weights = weights;
        config.draws = 7;
        config.drop_last = true;
        dl2_loader_clear_idle(&config);
        assert_int_equal(config.resize, train ? 0 : SIZE + 4);
        assert_int_equal(config.val_crop, train ? DL2_VAL_CENTER : DL2_VAL_SQUASH);
        assert_true(config.area_min == (train ? 0.5 : usual.area_min));
        assert_int_equal(config.flip, !train);
        assert_true(!config.augment == !train && !config.weights == !train);
        assert_int_equal(config.draws, train ? 7 : 0);
        assert_true(config.drop_last);
        if (!train)
            config.resize = 0; /* which squash does not have */
        assert_int_equal(dl2_loader_check(&config, &source, &fault), DL2_OK);
    }
    (void)state;
}

/* What would be left out of account, and what is no number, is refused by name. */
static void test_settings_without_effect(void **state)
{
    struct dl2_loader_config wrong;
    for (unsigned dtype = 0; dtype < 3; dtype++)
        for (unsigned channel = 0; channel < 3; channel++) {
            const char *const says = dtype == DL2_UINT8 ? "not for uint8" : "of channel";
            const float strange[] = {NAN, INFINITY, -INFINITY, -1, 0, 0.5f};
            for (size_t i = 0; i < sizeof strange / sizeof *strange; i++) {
                wrong = config_for(true, 1);
                wrong.dtype = (enum dl2_dtype)dtype;
                wrong.mean[channel] = strange[i];
                if ((dtype == DL2_UINT8 && strange[i] != 0) || !isfinite(strange[i]))
                    expect_refused(&wrong, says);
                wrong.mean[channel] = 0;
                wrong.std[channel] = strange[i];
                if (dtype == DL2_UINT8 ? strange[i] != 0 : !(strange[i] > 0) || isinf(strange[i]))
                    expect_refused(&wrong, says);
            }
        }
    wrong = config_for(true, 1);
    wrong.dtype = DL2_FLOAT32;
    wrong.mean[1] = 116.3f;
    expect_refused(&wrong, "divide numbers for 0 to 255 by 255");
    wrong.mean[1] = 0.4f;
    wrong.std[1] = 57.1f;
    expect_refused(&wrong, "divide numbers for 0 to 255 by 255");
    static const char *const says[] = {
        "resize", "shuffle_chunk", "shuffle_window needs shuffle_chunk",
        "ahead",  "ahead_bytes",   "needs decoder"};
    enum { CASES = sizeof says / sizeof *says };
    struct dl2_loader_config cases[CASES];
    for (unsigned i = 0; i < CASES; i++)
        cases[i] = config_for(i != 1, 1);
    cases[0].resize = SIZE + 4;
    cases[1].shuffle_chunk = 4;
    cases[2].shuffle_window = 4;
    cases[3].fetch.io = cases[4].fetch.io = DL2_IO_DIRECT;
    cases[3].fetch.ahead = 4;
    cases[4].fetch.ahead_bytes = 4096;
    cases[5].decoder_splices = true;
    for (unsigned i = 0; i < CASES; i++)
        expect_refused(&cases[i], says[i]);
}

struct giver {
    struct dl2_loader *loader;
    struct dl2_batch *batches[3];
    unsigned count;
};

static void *give_back(void *context)
{
    const struct giver *giver = context;
    for (unsigned i = 0; i < giver->count; i++) {
        const struct timespec pause = {0, 20000000};
        nanosleep(&pause, NULL);
        dl2_loader_release(giver->loader, giver->batches[i]);
    }
    return NULL;
}

/* With another thread that releases batches, the next one is waited for, also an empty one. */
static void test_wait_for_release(void **state)
{
    for (unsigned mode = 0; mode < 3; mode++) {
        struct dl2_loader_config config = config_for(mode < 2, 2);
        if (mode < 2)
            config.batching = (enum dl2_batching)mode;
        config.depth = 3;
        config.wait_for_release = true;
        if (mode == 2) { /* the last step is empty on most ranks */
            config.world = 20;
            config.batch = 1;
        }
        struct dl2_loader *loader = create(samples, &config);
        const uint64_t steps = dl2_loader_steps(loader);
        struct giver giver = {.loader = loader};
        start(loader, 0, 0);
        for (uint64_t step = 0; step < steps; step += giver.count) {
            giver.count = 0;
            for (; giver.count < 3 && step + giver.count < steps; giver.count++)
                assert_int_equal(dl2_loader_next(loader, &giver.batches[giver.count], NULL), 1);
            if (step + giver.count == steps) {
                give_back(&giver);
                break;
            }
            assert_int_equal(dl2_loader_wait(loader, 0.01), 0);
            pthread_t thread;
            struct dl2_batch *batch;
            assert_int_equal(pthread_create(&thread, NULL, give_back, &giver), 0);
            assert_int_equal(dl2_loader_next(loader, &batch, NULL), 1);
            assert_int_equal(batch->step, step + giver.count);
            pthread_join(thread, NULL);
            dl2_loader_release(loader, batch);
            step++;
        }
        dl2_loader_destroy(loader);
    }
}

static int fail_some(void *context, uint32_t index, struct dl2_random *random, uint8_t *pixels,
                     unsigned width, unsigned height, unsigned channels, struct dl2_error *error)
{
    if (index % 5)
        return 0;
    if (index % 10)
        dl2_error_set(error, DL2_ERR_MEMORY, "it is blue");
    return *(const int *)context;
}

/* Whatever negative number an operation returns, the sample is bad and the epoch goes on. */
static void test_operation_fails(void **state)
{
    for (int number = -9; number < 0; number++)
        for (unsigned train = 0; train < 2; train++) {
            const struct dl2_operation operation = {"blue", fail_some, &number};
            struct dl2_loader_config config = config_for(train, 2);
            config.operations = &operation;
            config.operation_count = 1;
            config.max_bad = 0.2;
            struct dl2_loader *loader = create(samples, &config);
            struct loaded *epoch = load_epoch(loader, 3, 0, 0);
            assert_int_equal(epoch->count, COUNT);
            for (unsigned i = 0; i < COUNT; i++)
                assert_int_equal(epoch->labels[i] == -1, !train && i % 5 == 0);
            size_t count;
            const char *const *bad = dl2_loader_bad(loader, &count);
            assert_int_equal(count, (COUNT + 4) / 5);
            assert_non_null(strstr(bad[0], ": blue: failed"));
            assert_non_null(strstr(bad[1], ": blue: it is blue"));
            free(epoch);
            dl2_loader_destroy(loader);
            config.stop_on_bad = true;
            loader = create(samples, &config);
            start(loader, 0, 0);
            struct dl2_error error = DL2_ERROR_INIT;
            assert_int_equal(drain(loader, NULL, &error), DL2_ERR_FORMAT);
            assert_non_null(strstr(error.message, ": blue: "));
            dl2_loader_destroy(loader);
        }
}

/* A position belongs to the epochs of one seed, dataset and way to go through it. */
static void test_position_of_others(void **state)
{
    struct dl2_loader_config config = config_for(true, 2);
    struct dl2_loader *loader = create(samples, &config);
    struct dl2_batch *batch;
    struct dl2_error error = DL2_ERROR_INIT;
    assert_int_equal(dl2_loader_start_epoch(loader, 0, dl2_loader_steps(loader), NULL), 0);
    assert_int_equal(dl2_loader_next(loader, &batch, NULL), 0);
    assert_int_equal(dl2_loader_start_epoch(loader, 0, dl2_loader_steps(loader) + 1, &error),
                     DL2_ERR_ARGUMENT);
    assert_non_null(strstr(error.message, "no step 9: an epoch has 8"));
    start(loader, 3, 2);
    struct dl2_loader_position at;
    assert_int_equal(dl2_loader_get_position(loader, &at, NULL), 0);
    assert_int_equal(at.order.samples, COUNT);
    static const char *const parts[] = {"train", "seed",  "batch",         "drop_last",
                                        "rank",  "world", "shuffle_chunk", NULL};
    for (unsigned i = 0; parts[i]; i++) {
        struct dl2_loader_config other = config;
        other.train = i != 0;
        other.seed += i == 1;
        other.batch += i == 2;
        other.drop_last = i == 3;
        other.rank = i == 4;
        other.world = i == 4 || i == 5 ? 2 : 0;
        other.shuffle_chunk = i == 6 ? 3 : 0;
        struct dl2_loader *its = create(samples, &other);
        dl2_error_clear(&error);
        assert_int_equal(dl2_loader_resume(its, &at, &error), DL2_ERR_ARGUMENT);
        if (!strstr(error.message, parts[i]))
            fail_msg("\"%s\" doesn't name %s", error.message, parts[i]);
        dl2_loader_destroy(its);
    }
    /* As many samples, one with another name. */
    char *from = dl2_path_join(root, "class1/001.ppm"), *to = dl2_path_join(root, "class1/901.ppm");
    assert_int_equal(rename(from, to), 0);
    struct dl2_dataset *renamed = open_all();
    struct dl2_loader *its = create(renamed, &config);
    dl2_error_clear(&error);
    assert_int_equal(dl2_loader_resume(its, &at, &error), DL2_ERR_ARGUMENT);
    assert_non_null(strstr(error.message, "another dataset"));
    dl2_loader_destroy(its);
    dl2_dataset_close(renamed);
    free(from);
    free(to);
    config.batching = DL2_BATCHING_COMPLETION; /* which may go on with it */
    its = create(samples, &config);
    assert_int_equal(dl2_loader_resume(its, &at, NULL), 0);
    dl2_loader_destroy(its);
    dl2_loader_destroy(loader);
}

static void test_drop_last(void **state)
{
    struct dl2_loader_config config = config_for(true, 2);
    config.drop_last = true;
    struct dl2_loader *loader = create(samples, &config);
    assert_int_equal(dl2_loader_steps(loader), 7);
    struct loaded *epoch = load_epoch(loader, 3, 0, 0);
    assert_int_equal(epoch->count, 56);
    free(epoch);
    dl2_loader_destroy(loader);
    config.batch = COUNT + 1;
    assert_int_equal(dl2_loader_create(samples, &config, &loader, NULL), DL2_ERR_ARGUMENT);
    config.drop_last = false;
    loader = create(samples, &config);
    assert_int_equal(dl2_loader_steps(loader), 1);
    epoch = load_epoch(loader, 3, 0, 0);
    assert_int_equal(epoch->count, COUNT);
    free(epoch);
    dl2_loader_destroy(loader);
}

static void expect_bad(const struct dl2_loader *loader, const char *const *names, size_t expected)
{
    size_t count;
    const char *const *bad = dl2_loader_bad(loader, &count);
    assert_int_equal(count, expected);
    for (size_t i = 0; i < count; i++) {
        if (!strstr(bad[i], names[i]) || !strstr(bad[i], ": decode: "))
            fail_msg("\"%s\" does not name %s and its stage", bad[i], names[i]);
    }
}

/* A bad sample's place goes to the next good one in the epoch's order, with that one's crop. */
static void test_bad_in_training(void **state)
{
    static const char *const names[] = {"class0/003", "class0/030", "class2/008"};
    struct dl2_loader_config config = config_for(true, 1);
    struct dl2_loader *loader = create(samples, &config);
    struct loaded *good = load_epoch(loader, 3, 2, 0);
    dl2_loader_destroy(loader);
    spoil(3);
    spoil(8);
    spoil(30);
    struct loaded *first = NULL;
    for (unsigned workers = 1; workers <= 8; workers += 3) {
        config.workers = workers;
        loader = create(samples, &config);
        struct loaded *epoch = load_epoch(loader, 3, 2, 0);
        expect_bad(loader, names, 3);
        const struct dl2_loader_stats stats = stats_of(loader);
        assert_int_equal(stats.bad, 3);
        assert_int_equal(stats.images, COUNT);
        const size_t bytes = (size_t)SIZE * SIZE * 3;
        unsigned refilled = 0;
        for (size_t i = 0; i < COUNT; i++) {
            size_t from = i;
            for (;; from = (from + 1) % COUNT) {
                struct dl2_sample sample;
                dl2_dataset_sample(samples, good->indices[from], &sample);
                bool is_bad = false;
                for (int b = 0; b < 3; b++)
                    is_bad |= strstr(sample.path, names[b]) != NULL;
                if (!is_bad)
                    break;
                refilled++;
            }
            assert_int_equal(epoch->indices[i], good->indices[from]);
            assert_int_equal(epoch->labels[i], good->labels[from]);
            assert_memory_equal(epoch->images + i * bytes, good->images + from * bytes, bytes);
        }
        assert_true(refilled >= 3);
        if (first)
            expect_same(first, epoch);
        /* In the next epoch they are named no second time. */
        struct loaded *again = load_epoch(loader, 3, 3, 0);
        expect_bad(loader, names, 3);
        free(again);
        dl2_loader_destroy(loader);
        if (first)
            free(epoch);
        else
            first = epoch;
    }
    free(first);
    free(good);
}

static int fail_by_crop(void *context, uint32_t index, struct dl2_random *random, uint8_t *pixels,
                        unsigned width, unsigned height, unsigned channels, struct dl2_error *error)
{
    return pixels[0] % 4 == 0 ? -1 : 0;
}

/* A sample that is bad by its crop is tried again by another: an epoch is the same after others,
 * after itself, and in a loader that has seen none. */
static void test_bad_by_crop(void **state)
{
    const struct dl2_operation operation = {"crop", fail_by_crop, NULL};
    struct dl2_loader_config config = config_for(true, 1);
    config.operations = &operation;
    config.operation_count = 1;
    config.max_bad = 1;
    struct dl2_loader *fresh = create(samples, &config);
    struct loaded *expected = load_epoch(fresh, 3, 2, 0);
    uint64_t count, bad, again;
    dl2_loader_epoch_bad(fresh, &count, &bad);
    assert_true(bad > 0 && bad < COUNT / 2);
    dl2_loader_destroy(fresh);
    for (unsigned workers = 1; workers <= 8; workers += 7) {
        config.workers = workers;
        struct dl2_loader *loader = create(samples, &config);
        for (unsigned epoch = 0; epoch < 2; epoch++)
            free(load_epoch(loader, 3, epoch, 0));
        for (unsigned i = 0; i < 2; i++) {
            struct loaded *epoch = load_epoch(loader, 3, 2, 0);
            expect_same(expected, epoch);
            dl2_loader_epoch_bad(loader, &count, &again);
            assert_int_equal(again, bad);
            free(epoch);
        }
        dl2_loader_destroy(loader);
    }
    free(expected);
}

static void test_bad_in_validation(void **state)
{
    spoil(0); /* the first in the dataset's order */
    struct dl2_loader_config config = config_for(false, 3);
    struct dl2_loader *loader = create(samples, &config);
    struct loaded *epoch = load_epoch(loader, 3, 0, 0);
    static const uint8_t zero[SIZE * SIZE * 3];
    assert_int_equal(epoch->count, COUNT);
    assert_int_equal(epoch->indices[0], 0);
    assert_int_equal(epoch->labels[0], -1);
    assert_memory_equal(epoch->images, zero, sizeof zero);
    for (size_t i = 1; i < COUNT; i++)
        assert_true(epoch->labels[i] >= 0);
    static const char *const names[] = {"class0/000"};
    expect_bad(loader, names, 1);
    free(epoch);
    dl2_loader_destroy(loader);
}

/* The batches before the first bad one come out, then its error, again and again. */
static void test_stop_on_bad(void **state)
{
    spoil(42);
    spoil(57); /* numbers 14 and 19 of the dataset: in steps 1 and 2 */
    for (unsigned workers = 1; workers <= 8; workers++) {
        struct dl2_loader_config config = config_for(false, workers);
        config.stop_on_bad = true;
        struct dl2_loader *loader = create(samples, &config);
        struct dl2_batch *batch;
        for (int round = 0; round < 2; round++) {
            struct dl2_error error = DL2_ERROR_INIT;
            start(loader, 0, 0);
            assert_int_equal(dl2_loader_next(loader, &batch, &error), 1);
            dl2_loader_release(loader, batch);
            assert_int_equal(dl2_loader_next(loader, &batch, &error), DL2_ERR_FORMAT);
            assert_non_null(strstr(error.message, "class0/042.ppm: decode: "));
            assert_int_equal(dl2_loader_next(loader, &batch, NULL), DL2_ERR_FORMAT);
        }
        start(loader, 0, 3); /* behind both */
        assert_int_equal(dl2_loader_next(loader, &batch, NULL), 1);
        dl2_loader_release(loader, batch);
        dl2_loader_destroy(loader);
    }
}

/* An epoch ends with an error once more samples are bad than config.max_bad allows; what an epoch
 * could not read is counted in each. */
static void test_too_many_bad(void **state)
{
    for (unsigned i = 0; i < 11; i++)
        spoil(5 * i);
    reopen();
    for (int train = 0; train <= 1; train++)
        for (unsigned workers = 1; workers <= 8; workers += 7) {
            struct dl2_loader_config config = config_for(train, workers);
            uint64_t count, bad;
            config.max_bad = 0.11;
            struct dl2_loader *loader = create(samples, &config);
            for (unsigned epoch = 0; epoch < 3; epoch++) {
                free(load_epoch(loader, epoch, 0, 0));
                dl2_loader_epoch_bad(loader, &count, &bad);
                assert_int_equal(count, COUNT);
                assert_int_equal(bad, 11);
            }
            dl2_loader_destroy(loader);

            config.max_bad = 0.1;
            loader = create(samples, &config);
            struct dl2_batch *batch;
            struct dl2_error error = DL2_ERROR_INIT;
            int status;
            start(loader, 0, 0);
            while ((status = dl2_loader_next(loader, &batch, &error)) == 1)
                dl2_loader_release(loader, batch);
            assert_int_equal(status, DL2_ERR_FORMAT);
            assert_non_null(strstr(error.message, "at least 11 of 61 images cannot be used"));
            dl2_loader_destroy(loader);
        }
    struct dl2_loader_config wrong = config_for(true, 1);
    struct dl2_loader *loader;
    wrong.max_bad = 1.5;
    assert_int_equal(dl2_loader_create(samples, &wrong, &loader, NULL), DL2_ERR_ARGUMENT);
}

static void test_all_bad(void **state)
{
    for (unsigned i = 0; i < COUNT; i++)
        spoil(i);
    reopen();
    for (unsigned workers = 1; workers <= 8; workers += 7) {
        struct dl2_loader_config config = config_for(true, workers);
        config.max_bad = 1;
        struct dl2_loader *loader = create(samples, &config);
        struct dl2_batch *batch;
        struct dl2_error error = DL2_ERROR_INIT;
        start(loader, 0, 0);
        assert_int_equal(dl2_loader_next(loader, &batch, &error), DL2_ERR_FORMAT);
        assert_non_null(strstr(error.message, "none of the 61 samples"));
        assert_non_null(strstr(error.message, "class0/000.ppm"));
        dl2_loader_destroy(loader);

        config.train = false;
        dl2_error_clear(&error);
        loader = create(samples, &config);
        start(loader, 0, 0);
        int status;
        unsigned steps = 0;
        while ((status = dl2_loader_next(loader, &batch, &error)) == 1) {
            for (unsigned i = 0; i < batch->count; i++)
                assert_int_equal(batch->labels[i], -1);
            dl2_loader_release(loader, batch);
            steps++;
        }
        assert_int_equal(steps, 8);
        assert_int_equal(status, DL2_ERR_FORMAT);
        assert_non_null(strstr(error.message, "class0/000.ppm"));
        dl2_loader_destroy(loader);
    }
}

/* A file that is gone, and one above the limit of pixels, are bad samples too. */
static void test_other_ways_to_be_bad(void **state)
{
    put("huge/1.ppm", "P6\n60000 60000\n255\n", 19);
    put("huge/2.ppm", "", 0);
    put_picture("huge/3.ppm", 3);
    reopen();
    char *path = dl2_path_join(root, "class1/001.ppm");
    unlink(path);
    free(path);
    struct dl2_loader_config config = config_for(false, 2);
    struct dl2_loader *loader = create(samples, &config);
    start(loader, 0, 0);
    assert_int_equal(drain(loader, NULL, NULL), 0);
    size_t count;
    const char *const *bad = dl2_loader_bad(loader, &count);
    assert_int_equal(count, 3);
    assert_non_null(strstr(bad[0], "class1/001.ppm"));
    assert_non_null(strstr(bad[1], "huge/1.ppm: decode: "));
    assert_non_null(strstr(bad[1], "limit"));
    assert_non_null(strstr(bad[2], "huge/2.ppm: decode: "));
    dl2_loader_destroy(loader);
}

/* The caches change nothing but the speed, whatever fits in them and whoever fills them. */
static void test_caches(void **state)
{
    static const uint64_t limits[] = {0, 60000, 1 << 24};
    struct dl2_loader_config config = config_for(true, 1);
    struct dl2_loader *plain = create(samples, &config);
    struct loaded *expected = load_epoch(plain, 3, 4, 0);
    dl2_loader_destroy(plain);
    for (size_t encoded = 0; encoded < 3; encoded++)
        for (size_t decoded = 0; decoded < 3; decoded++)
            for (unsigned workers = 1; workers <= 5; workers += 4) {
                config = config_for(true, workers);
                config.fetch.cache_bytes = limits[encoded];
                config.decoded_cache_bytes = limits[decoded];
                struct dl2_loader *loader = create(samples, &config);
                for (uint64_t number = 0; number < 4; number++)
                    free(load_epoch(loader, 3, number, 0));
                dl2_loader_stats_reset(loader);
                struct loaded *epoch = load_epoch(loader, 3, 4, 0);
                const struct dl2_loader_stats stats = stats_of(loader);
                assert_int_equal(stats.images, COUNT);
                if (limits[decoded] == 1 << 24)
                    assert_int_equal(stats.decoded_hits, COUNT);
                else if (limits[encoded] == 1 << 24)
                    assert_int_equal(stats.encoded_hits + stats.decoded_hits, COUNT);
                assert_int_equal(stats.decoded_hits > 0, limits[decoded] > 0);
                expect_same(expected, epoch);
                dl2_loader_destroy(loader);
                free(epoch);
            }
    free(expected);
}

/* Loaders with orders and crops of their own share a cache: what one has decoded the other takes,
 * and each has the batches that it has alone. */
static void test_shared_cache(void **state)
{
    static const uint64_t limits[] = {60000, 1 << 24};
    struct dl2_loader_config config = config_for(true, 3), other = config_for(true, 2);
    other.seed = config.seed + 1;
    config.area_max = other.area_max = 0.3; /* small crops: one decode does for all */
    struct dl2_loader *alone = create(samples, &other);
    struct loaded *expected = load_epoch(alone, 3, 2, 0);
    dl2_loader_destroy(alone);
    for (size_t i = 0; i < sizeof limits / sizeof *limits; i++) {
        struct dl2_decoded_cache *cache;
        assert_int_equal(dl2_decoded_create(COUNT, limits[i], &cache, NULL), DL2_OK);
        config.decoded_cache = other.decoded_cache = cache;
        struct dl2_loader *first = create(samples, &config), *second = create(samples, &other);
        free(load_epoch(first, 3, 2, 0));
        struct loaded *epoch = load_epoch(second, 3, 2, 0);
        expect_same(expected, epoch);
        const uint64_t taken = stats_of(second).decoded_hits;
        assert_int_equal(stats_of(first).decoded_hits, 0);
        assert_true(i ? taken == COUNT : taken > 0 && taken < COUNT);
        assert_true(dl2_decoded_bytes(cache) <= limits[i]);
        free(epoch);
        dl2_loader_destroy(first);
        dl2_loader_destroy(second);
        dl2_decoded_destroy(cache);
    }
    free(expected);
    other.decoded_cache_bytes = 1 << 20; /* two limits */
    struct dl2_error error = DL2_ERROR_INIT;
    assert_int_equal(dl2_loader_create(samples, &other, &alone, &error), DL2_ERR_ARGUMENT);
    assert_non_null(strstr(error.message, "excludes decoded_cache, which has a limit"));
}

/* Both loaders have the same batches in this epoch, of images of `bytes` bytes. */
static void expect_same_epoch(struct dl2_loader *a, struct dl2_loader *b, uint64_t epoch,
                              size_t bytes)
{
    struct dl2_batch *one, *other;
    start(a, epoch, 0);
    start(b, epoch, 0);
    for (uint64_t step = 0; step < dl2_loader_steps(a); step++) {
        assert_int_equal(dl2_loader_next(a, &one, NULL), 1);
        assert_int_equal(dl2_loader_next(b, &other, NULL), 1);
        assert_int_equal(one->count, other->count);
        assert_memory_equal(one->indices, other->indices, one->count * sizeof *one->indices);
        assert_memory_equal(one->images, other->images, one->count * bytes);
        dl2_loader_release(a, one);
        dl2_loader_release(b, other);
    }
}

/* A crop out of the cache has the pixels of the crop decoded alone, also where images are decoded
 * at several reductions. */
static void test_cached_reductions(void **state)
{
    struct dl2_loader_config config = config_for(true, 2);
    config.height = 3;
    struct dl2_loader *plain = create(samples, &config);
    config.decoded_cache_bytes = 1 << 24;
    struct dl2_loader *caching = create(samples, &config);
    uint64_t first = 0;
    for (uint64_t number = 0; number < 6; number++) {
        expect_same_epoch(plain, caching, number, (size_t)3 * 3 * 3);
        first = number ? first : stats_of(caching).decoded_hits;
    }
    const uint64_t hits = stats_of(caching).decoded_hits;
    assert_int_equal(first, 0);
    /* JPEGs, one in five, are decoded again for another reduction; PNM has none. */
    assert_true(hits >= 5 * COUNT - 3 * ((COUNT + 4) / 5) && hits < 5 * COUNT);
    dl2_loader_destroy(plain);
    dl2_loader_destroy(caching);
}

/* Gray becomes three equal channels, whatever the other images are. */
static void test_gray_in_color(void **state)
{
    struct dl2_loader_config config = config_for(true, 2);
    struct dl2_loader *loader = create(samples, &config);
    struct loaded *epoch = load_epoch(loader, 3, 0, 0);
    unsigned gray = 0;
    for (size_t i = 0; i < COUNT; i++) {
        const uint8_t *image = epoch->images + i * SIZE * SIZE * 3;
        bool equal = true;
        for (size_t p = 0; p < SIZE * SIZE; p++)
            equal &= image[3 * p] == image[3 * p + 1] && image[3 * p] == image[3 * p + 2];
        gray += equal;
    }
    assert_int_equal(gray, (COUNT + 3) / 7);
    free(epoch);
    dl2_loader_destroy(loader);
}

static float to_float(const uint8_t *at, enum dl2_dtype dtype)
{
    float value;
    uint16_t half;
    if (dtype == DL2_FLOAT32) {
        memcpy(&value, at, 4);
        return value;
    }
    memcpy(&half, at, 2);
    return dtype == DL2_FLOAT16 ? dl2_half_to_float(half) : dl2_bfloat_to_float(half);
}

static int do_nothing(void *context, uint32_t index, struct dl2_random *random, uint8_t *pixels,
                      unsigned width, unsigned height, unsigned channels, struct dl2_error *error)
{
    return 0;
}

/* Every type and layout holds the values of uint8 NHWC, with an
 * operation on the way and without. */
static void test_types_and_layouts(void **state)
{
    static const struct dl2_operation nothing = {"nothing", do_nothing, NULL};
    const float mean[3] = {0.5f, 0.25f, 0.1f}, deviation[3] = {0.3f, 1, 0.2f};
    for (unsigned channels = 1; channels <= 3; channels += 2) {
        struct dl2_loader_config config = config_for(true, 3);
        config.channels = channels;
        struct dl2_loader *loader = create(samples, &config);
        struct loaded *expected = load_epoch(loader, channels, 1, 0);
        dl2_loader_destroy(loader);
        const struct dl2_loader_config plain = config;
        for (unsigned variant = 0; variant < 16; variant++) {
            config = plain;
            config.dtype = (enum dl2_dtype)(variant % 4);
            if (config.dtype != DL2_UINT8) {
                memcpy(config.mean, mean, sizeof mean);
                memcpy(config.std, deviation, sizeof deviation);
            }
            config.layout = (enum dl2_layout)(variant / 4 % 2);
            config.operations = variant < 8 ? NULL : &nothing;
            config.operation_count = variant >= 8;
            loader = create(samples, &config);
            start(loader, 1, 0);
            struct dl2_batch *batch;
            size_t image = 0;
            while (dl2_loader_next(loader, &batch, NULL) == 1) {
                for (unsigned i = 0; i < batch->count; i++, image++)
                    for (size_t k = 0; k < (size_t)SIZE * SIZE * channels; k++) {
                        const size_t c = k % channels, pixel = k / channels;
                        const size_t at = config.layout == DL2_NHWC ? k : c * SIZE * SIZE + pixel;
                        const uint8_t *value =
                            batch->images + (i * (size_t)SIZE * SIZE * channels + at) *
                                                dl2_dtype_size(config.dtype);
                        const uint8_t byte = expected->images[image * SIZE * SIZE * channels + k];
                        const float normal = ((float)byte / 255 - mean[c]) / deviation[c];
                        const float got =
                            config.dtype == DL2_UINT8 ? *value : to_float(value, config.dtype);
                        const float wanted = config.dtype == DL2_UINT8 ? byte : normal;
                        const float close = config.dtype == DL2_BFLOAT16  ? 0.004f
                                            : config.dtype == DL2_FLOAT16 ? 0.0005f
                                                                          : 1e-5f;
                        if (!(fabsf(got - wanted) <= close * (fabsf(wanted) + 0.05f)))
                            fail_msg("variant %u, image %zu, value %zu: %g instead of %g", variant,
                                     image, k, (double)got, (double)wanted);
                    }
                dl2_loader_release(loader, batch);
            }
            assert_int_equal(image, COUNT);
            dl2_loader_destroy(loader);
        }
        free(expected);
    }
}

/* The augmentation comes before the caller's operations, and not in validation; what it draws is
 * the sample's own. */
static int expect_dark(void *context, uint32_t index, struct dl2_random *random, uint8_t *pixels,
                       unsigned width, unsigned height, unsigned channels, struct dl2_error *error)
{
    for (size_t i = 0; i < (size_t)width * height * channels; i++)
        if (pixels[i] > 127)
            return dl2_error_set(error, DL2_ERR_FORMAT, "was not augmented before");
    return 0;
}

static void test_augment(void **state)
{
    static const struct dl2_operation operation = {"dark", expect_dark, NULL};
    struct dl2_loader_config config = config_for(true, 3);
    struct dl2_loader *loader = create(samples, &config);
    struct loaded *plain = load_epoch(loader, 3, 0, 0);
    assert_null(dl2_loader_augment(loader));
    dl2_loader_destroy(loader);
    config.augment = "invert:p=1";
    loader = create(samples, &config);
    assert_string_equal(dl2_loader_augment(loader), "invert:p=1");
    struct loaded *inverted = load_epoch(loader, 3, 0, 0);
    dl2_loader_destroy(loader);
    assert_memory_equal(plain->indices, inverted->indices, sizeof plain->indices);
    for (size_t i = 0; i < (size_t)COUNT * SIZE * SIZE * 3; i++)
        assert_int_equal(plain->images[i], 255 - inverted->images[i]);
    free(inverted);
    config.augment = "solarize:p=1:threshold=128";
    config.operations = &operation;
    config.operation_count = 1;
    loader = create(samples, &config);
    struct loaded *dark = load_epoch(loader, 3, 0, 0);
    size_t bad;
    dl2_loader_bad(loader, &bad);
    assert_int_equal(bad, 0);
    dl2_loader_destroy(loader);
    free(dark);
    free(plain);
    static const struct {
        const char *augment, *says;
        bool train;
    } wrong[] = {{"invert:p=1", "augment needs train: validation", false},
                 {"invert:q=1", "augment: invert has no setting 'q'", true}};
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        struct dl2_error error = DL2_ERROR_INIT;
        config = config_for(wrong[i].train, 1);
        config.augment = wrong[i].augment;
        assert_int_equal(dl2_loader_create(samples, &config, &loader, &error), DL2_ERR_ARGUMENT);
        if (!strstr(error.message, wrong[i].says))
            fail_msg("%s", error.message);
    }
}

struct allocations {
    unsigned made, freed;
};

static void *count_alloc(void *context, size_t bytes)
{
    struct allocations *counts = context;
    counts->made++;
    return malloc(bytes);
}

static void count_free(void *context, void *slot)
{
    struct allocations *counts = context;
    counts->freed++;
    free(slot);
}

static void *refuse_alloc(void *context, size_t bytes)
{
    struct allocations *counts = context;
    return counts->made == 2 ? NULL : count_alloc(context, bytes);
}

static void test_slot_memory(void **state)
{
    struct allocations counts = {0, 0};
    struct dl2_loader_config config = config_for(true, 2);
    config.depth = 4;
    config.slot_alloc = count_alloc;
    config.slot_free = count_free;
    config.slot_context = &counts;
    struct dl2_loader *loader = create(samples, &config);
    free(load_epoch(loader, 3, 0, 0));
    dl2_loader_destroy(loader);
    assert_int_equal(counts.made, 4);
    assert_int_equal(counts.freed, 4);
    counts = (struct allocations){0, 0};
    config.slot_alloc = refuse_alloc;
    assert_int_equal(dl2_loader_create(samples, &config, &loader, NULL), DL2_ERR_MEMORY);
    assert_int_equal(counts.freed, 2);
}

/* Each sample comes with its own targets, in any order, for any number of workers; a bad one with
 * none. */
static void test_targets(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT; i += 2) {
        struct dl2_sample sample;
        dl2_dataset_sample(samples, i, &sample);
        char name[300];
        snprintf(name, sizeof name, "%s.txt", sample.key);
        put(name, sample.key, strlen(sample.key));
    }
    for (unsigned run = 0; run < 6; run++) {
        struct dl2_loader_config config = config_for(run % 2, 1 + run);
        config.batching = (enum dl2_batching)(run / 2 % 2);
        config.targets = "json,txt";
        config.fetch.cache_bytes = run == 4 ? 1 << 20 : 0;
        struct dl2_loader *loader = create(samples, &config);
        struct dl2_batch *batch;
        unsigned there = 0, count = 0;
        assert_string_equal(dl2_loader_targets(loader), "json,txt");
        for (unsigned epoch = 0; epoch < 2; epoch++) {
            start(loader, epoch, 0);
            while (dl2_loader_next(loader, &batch, NULL) == 1) {
                assert_int_equal(batch->target_count, 2);
                for (unsigned i = 0; i < batch->count; i++, count++) {
                    struct dl2_sample sample;
                    dl2_dataset_sample(samples, batch->indices[i], &sample);
                    const struct dl2_target *target = &batch->targets[2 * i];
                    assert_null(target[0].data);
                    assert_int_equal(target[1].data != NULL, batch->indices[i] % 2 == 0);
                    if (!target[1].data)
                        continue;
                    assert_int_equal(target[1].size, strlen(sample.key));
                    assert_memory_equal(target[1].data, sample.key, target[1].size);
                    there++;
                }
                dl2_loader_release(loader, batch);
            }
        }
        assert_int_equal(count, 2 * COUNT);
        assert_int_equal(there, 2 * (COUNT / 2 + 1));
        dl2_loader_destroy(loader);
    }
    spoil(0);
    struct dl2_loader_config config = config_for(false, 2);
    config.targets = "txt";
    struct dl2_loader *loader = create(samples, &config);
    struct dl2_batch *batch;
    start(loader, 0, 0);
    unsigned bad = 0;
    while (dl2_loader_next(loader, &batch, NULL) == 1) {
        for (unsigned i = 0; i < batch->count; i++)
            if (batch->labels[i] < 0) {
                assert_null(batch->targets[i].data);
                bad++;
            }
        dl2_loader_release(loader, batch);
    }
    assert_int_equal(bad, 1);
    dl2_loader_destroy(loader);
    static const char *const wrong[] = {"", "json,", ".json", "a/b", "txt,json,txt"};
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        config.targets = wrong[i];
        assert_int_equal(dl2_loader_create(samples, &config, &loader, NULL), DL2_ERR_ARGUMENT);
    }
}

static uint8_t mask_value(unsigned x, unsigned y)
{
    return (uint8_t)(7 * x + 13 * y);
}

/* Puts a mask beside a sample whose image has this size. */
static void put_mask(size_t number, unsigned width, unsigned height)
{
    uint8_t file[64 + 64 * 64];
    struct dl2_sample sample;
    char name[300];
    dl2_dataset_sample(samples, number, &sample);
    snprintf(name, sizeof name, "%s.mask", sample.key);
    size_t size = (size_t)sprintf((char *)file, "P5\n%u %u\n255\n", width, height);
    for (unsigned i = 0; i < width * height; i++)
        file[size++] = mask_value(i % width, i / width);
    put(name, file, size);
}

static void expect_mask(const uint8_t *mask, const struct dl2_crop_box *crop)
{
    const double across = (crop->right - crop->left) / SIZE,
                 down = (crop->bottom - crop->top) / (SIZE + 4);
    for (unsigned y = 0; y < SIZE + 4; y++)
        for (unsigned x = 0; x < SIZE; x++)
            assert_int_equal(mask[y * SIZE + (crop->flipped ? SIZE - 1 - x : x)],
                             mask_value((unsigned)(crop->left + (x + 0.5) * across),
                                        (unsigned)(crop->top + (y + 0.5) * down)));
}

/* Each sample comes with its mask, cropped alike, in any order, for any number of workers; one
 * whose mask is not there, or of another size, is bad. */
static void test_masks(void **state)
{
    struct dl2_bytes bytes = DL2_BYTES_INIT;
    for (size_t i = 0; i < COUNT; i++) {
        struct dl2_image_info info;
        const uint8_t *data;
        size_t size;
        assert_int_equal(dl2_dataset_read(samples, i, &bytes, &data, &size, NULL), DL2_OK);
        assert_int_equal(dl2_image_read_info(data, size, &info, NULL), DL2_OK);
        if (i)
            put_mask(i, info.width + (i == 1), info.height);
    }
    dl2_bytes_free(&bytes);
    for (unsigned run = 0; run < 6; run++) {
        struct dl2_loader_config config = config_for(run % 2, 1 + run);
        config.height = SIZE + 4;
        config.width = SIZE;
        config.batching = (enum dl2_batching)(run / 2 % 2);
        config.mask = "mask";
        config.mask_fill = 3;
        config.decoded_cache_bytes = run == 4 ? 1 << 20 : 0;
        struct dl2_loader *loader = create(samples, &config);
        struct dl2_batch *batch;
        unsigned count = 0, blank = 0;
        for (unsigned epoch = 0; epoch < 2; epoch++) {
            start(loader, epoch, 0);
            while (dl2_loader_next(loader, &batch, NULL) == 1) {
                for (unsigned i = 0; i < batch->count; i++, count++) {
                    const uint8_t *mask = batch->masks + i * (SIZE + 4) * SIZE;
                    blank += batch->labels[i] < 0;
                    if (batch->labels[i] >= 0)
                        expect_mask(mask, &batch->crop_boxes[i]);
                    else
                        assert_true(mask[0] == 3 && !memcmp(mask, mask + 1, (SIZE + 4) * SIZE - 1));
                }
                dl2_loader_release(loader, batch);
            }
        }
        assert_int_equal(count, 2 * COUNT);
        assert_int_equal(blank, config.train ? 0 : 4);
        size_t bad;
        const char *const *texts = dl2_loader_bad(loader, &bad);
        assert_int_equal(bad, 2);
        assert_non_null(strstr(texts[0], "there is no 'mask' beside it"));
        assert_non_null(strstr(texts[1], "decode: mask 'mask': it is of "));
        dl2_loader_destroy(loader);
    }
    static const char *const wrong[] = {"", ".png", "a/b", "png,txt"};
    struct dl2_loader_config config = config_for(true, 1);
    struct dl2_loader *loader;
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        config.mask = wrong[i];
        assert_int_equal(dl2_loader_create(samples, &config, &loader, NULL), DL2_ERR_ARGUMENT);
    }
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, make_pictures, remove_root)

/* Puts picture `number` behind the header of an external codec, "outer". */
static void put_external(unsigned number)
{
    struct dl2_bytes bytes = DL2_BYTES_INIT, framed = DL2_BYTES_INIT;
    struct dl2_image_info info;
    struct dl2_sample sample;
    const uint8_t *data;
    size_t size;
    dl2_dataset_sample(samples, number, &sample);
    assert_int_equal(dl2_dataset_read(samples, number, &bytes, &data, &size, NULL), DL2_OK);
    assert_int_equal(dl2_image_read_info(data, size, &info, NULL), DL2_OK);
    const uint8_t header[] = {'D',
                              'L',
                              '2',
                              'X',
                              1,
                              (uint8_t)info.channels,
                              5,
                              0,
                              (uint8_t)info.width,
                              0,
                              0,
                              0,
                              (uint8_t)info.height,
                              0,
                              0,
                              0,
                              'o',
                              'u',
                              't',
                              'e',
                              'r'};
    assert_int_equal(dl2_bytes_append(&framed, header, sizeof header, NULL), DL2_OK);
    assert_int_equal(dl2_bytes_append(&framed, data, size, NULL), DL2_OK);
    put(sample.name, framed.data, framed.size);
    dl2_bytes_free(&framed);
    dl2_bytes_free(&bytes);
}

/* The commands are the loader's own copies; a file that has none is bad, and says what to do. */
static void test_external_codecs(void **state)
{
    struct dl2_loader_config config = config_for(false, 3);
    struct dl2_loader *loader = create(samples, &config);
    struct loaded *plain = load_epoch(loader, 3, 0, 0);
    dl2_loader_destroy(loader);
    static const unsigned numbers[] = {0, 1, 3, 4}; /* which are no JPEGs, decoded in another way */
    for (unsigned i = 0; i < 4; i++)
        put_external(numbers[i]);
    reopen();
    loader = create(samples, &config);
    struct loaded *without = load_epoch(loader, 3, 0, 0);
    size_t count;
    const char *const *bad = dl2_loader_bad(loader, &count);
    assert_int_equal(count, 4);
    for (unsigned i = 0; i < COUNT; i++)
        assert_int_equal(without->labels[i] == -1, i < 5 && i != 2);
    assert_non_null(strstr(bad[0], "external codec outer: pass --decoder='outer=COMMAND %i %o'"));
    free(without);
    dl2_loader_destroy(loader);
    char command[] = "outer=cp %i %o";
    config.external.commands[0] = "out=false %i %o";
    config.external.commands[1] = command;
    for (unsigned workers = 1; workers < 4; workers += 2) {
        config.workers = workers;
        loader = create(samples, &config);
        memset(command, 'x', sizeof command - 1);
        struct loaded *epoch = load_epoch(loader, 3, 0, 0);
        expect_same(plain, epoch);
        assert_int_equal(stats_of(loader).bad, 0);
        free(epoch);
        dl2_loader_destroy(loader);
        strcpy(command, "outer=cp %i %o");
    }
    static const char *const wrong[] = {"outer=cp %i %o", "cp %i %o", "more=cp %i",
                                        "more=cp '%i %o", "more=cp %i %o %q"};
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        struct dl2_error error = DL2_ERROR_INIT;
        config.external.commands[2] = wrong[i];
        assert_int_equal(dl2_loader_create(samples, &config, &loader, &error), DL2_ERR_ARGUMENT);
        assert_memory_equal(error.message, "external: ", 10);
    }
    free(plain);
}

int main(void)
{
    if (!has_encoder("jpeg"))
        return 77;
    const struct CMUnitTest tests[] = {
        TEST(test_any_number_of_workers),
        TEST(test_each_sample_once),
        TEST(test_seed),
        TEST(test_restart_anywhere),
        TEST(test_destroy_at_any_time),
        TEST(test_kept_batches),
        TEST(test_misuse_is_an_error),
        TEST(test_idle_settings_are_cleared),
        TEST(test_settings_without_effect),
        TEST(test_wait_for_release),
        TEST(test_operation_fails),
        TEST(test_augment),
        TEST(test_position_of_others),
        TEST(test_drop_last),
        TEST(test_bad_in_training),
        TEST(test_bad_by_crop),
        TEST(test_bad_in_validation),
        TEST(test_stop_on_bad),
        TEST(test_too_many_bad),
        TEST(test_all_bad),
        TEST(test_other_ways_to_be_bad),
        TEST(test_caches),
        TEST(test_shared_cache),
        TEST(test_cached_reductions),
        TEST(test_gray_in_color),
        TEST(test_types_and_layouts),
        TEST(test_slot_memory),
        TEST(test_targets),
        TEST(test_masks),
        TEST(test_external_codecs),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
