/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The pipeline over a batch decoder that decodes on the processors (fake_decoder.h): what comes out
 * is what comes out without one, byte for byte, whatever it refuses, however many workers there
 * are, and also where samples are bad or an epoch is left.
 */
#include "codec/codec.h"
#include "codec/jpeg/jpeg_plain.h"
#include "common/clock.h"
#include "tests/loader/fake_decoder.h"
#include "tests/loader/photos.h"

/* ---- epochs ---- */

static struct dl2_loader_config settings(bool train, unsigned workers, unsigned channels)
{
    struct dl2_loader_config config = config_for(train, workers);
    config.channels = channels;
    config.resize = train ? 0 : 18;
    return config;
}

static struct fake_decoder make_fake(unsigned refuses)
{
    return (struct fake_decoder){.base.ops = &fake_decoder_class, .refuses = refuses};
}

/* With the decoder what comes without, for any number of workers and anything that it refuses. */
static void compare(bool train, unsigned channels, bool splices)
{
    static const unsigned workers[] = {1, 2, 5}, refuses[] = {0, 1, 4};
    struct dl2_loader_config config = settings(train, 2, channels);
    struct dl2_loader *plain = create(samples, &config);
    struct loaded *want = load_epoch(plain, channels, 6, 0);
    size_t bad, had;
    const char *const *bad_texts = dl2_loader_bad(plain, &bad);
    uint64_t whole = 0;
    for (unsigned i = 0; i < 9; i++) {
        config = settings(train, workers[i / 3], channels);
        config.depth = 2 + i % 3;
        struct fake_decoder fake = make_fake(refuses[i % 3]);
        config.decoder = &fake.base;
        config.decoder_splices = splices;
        struct dl2_loader *loader = create(samples, &config);
        struct loaded *have = load_epoch(loader, channels, 6, 0);
        expect_same(want, have);
        free(have);
        const char *const *texts = dl2_loader_bad(loader, &had);
        assert_int_equal(had, bad);
        for (size_t b = 0; b < bad; b++)
            assert_string_equal(texts[b], bad_texts[b]);
        const struct dl2_loader_stats stats = stats_of(loader);
        assert_int_equal(stats.bad, bad);
        assert_int_equal(stats.images, train ? PHOTOS : PHOTOS - bad);
        assert_int_equal(stats.decoder_images, atomic_load(&fake.images));
        assert_true(stats.decoder_images > PHOTOS / 2);
        assert_true(stats.decoder_images < PHOTOS); /* the PNGs never */
        assert_true(fake.refuses != 1 || fake.refused == fake.images);
        assert_true(fake.refuses != 4 || (fake.refused > 0 && fake.refused < fake.images));
        whole = whole ? whole : atomic_load(&fake.bytes);
        dl2_loader_destroy(loader);
    }
    assert_true(whole > 0);
    free(want);
    dl2_loader_destroy(plain);
}

static void test_same_bytes(void **state)
{
    for (int train = 0; train < 2; train++)
        for (unsigned channels = 1; channels <= 3; channels += 2)
            for (int splices = 0; splices < 2; splices++)
                compare(train, channels, splices);
}

/* Spliced, fewer bytes are decoded. */
static void test_splices(void **state)
{
    uint64_t bytes[2], shifted = 0;
    for (int splices = 0; splices < 2; splices++) {
        struct dl2_loader_config config = settings(true, 2, 3);
        config.area_max = 0.2;
        struct fake_decoder fake = make_fake(0);
        config.decoder = &fake.base;
        config.decoder_splices = splices;
        struct dl2_loader *loader = create(samples, &config);
        free(load_epoch(loader, 3, 0, 0));
        bytes[splices] = atomic_load(&fake.bytes);
        shifted += atomic_load(&fake.shifted);
        dl2_loader_destroy(loader);
    }
    assert_true(bytes[1] < bytes[0] * 9 / 10);
    assert_true(shifted > 0); /* of widths that no interval divides */
}

/* Damage within is the decoder's to refuse, a missing end the headers' to tell; both are named, and
 * their places filled, as without a decoder. */
static void test_bad_samples(void **state)
{
    spoil_photo(3, true);
    spoil_photo(14, true);
    spoil_photo(13, false);
    spoil_photo(40, true);
    reopen();
    for (int train = 0; train < 2; train++)
        compare(train, 3, false);
    compare(true, 3, true);

    /* The first error ends the epoch, after the batches before it. */
    struct dl2_loader_config config = settings(false, 3, 3);
    for (int with = 0; with < 2; with++) {
        struct fake_decoder fake = make_fake(0);
        config.decoder = with ? &fake.base : NULL;
        config.stop_on_bad = true;
        struct dl2_loader *loader = create(samples, &config);
        struct dl2_error error = DL2_ERROR_INIT;
        struct dl2_batch *batch;
        start(loader, 0, 0);
        unsigned batches;
        assert_int_equal(drain(loader, &batches, &error), DL2_ERR_FORMAT);
        assert_non_null(strstr(error.message, "class0/003.jpg: decode: "));
        assert_int_equal(batches, 0); /* number 1 of the dataset's order */
        start(loader, 0, 5);          /* behind the bad ones but for 40, which is there */
        assert_true(dl2_loader_next(loader, &batch, NULL) <= 1);
        dl2_loader_destroy(loader);
    }
    repair_photo(3);
    repair_photo(14);
    repair_photo(13);
    repair_photo(40);
}

/* Left in the middle and begun anywhere, with batches staged, being finished and ready. */
static void test_restarts(void **state)
{
    struct dl2_loader_config config = settings(true, 3, 3);
    struct fake_decoder fake = make_fake(3);
    fake.micros = 500;
    config.decoder = &fake.base;
    config.depth = 4;
    struct dl2_loader *loader = create(samples, &config);
    expect_exact_restarts(loader, PHOTOS);
    dl2_loader_destroy(loader);
}

static void test_destroy_at_any_time(void **state)
{
    for (unsigned workers = 1; workers <= 4; workers++)
        for (unsigned taken = 0; taken < 5; taken++) {
            struct dl2_loader_config config = settings(true, workers, 3);
            struct fake_decoder fake = make_fake(2);
            fake.micros = taken * 300;
            config.decoder = &fake.base;
            config.depth = 2 + workers % 2;
            struct dl2_loader *loader = create(samples, &config);
            struct dl2_batch *batch;
            if (taken > 0)
                start(loader, 0, 0);
            if (taken > 2)
                assert_int_equal(dl2_loader_next(loader, &batch, NULL), 1);
            if (taken > 3)
                dl2_loader_release(loader, batch);
            dl2_loader_destroy(loader);
        }
}

/* A decoder that fails ends the epoch with its error, after the batches before; nothing hangs. */
static void test_decoder_fails(void **state)
{
    for (unsigned batching = DL2_BATCHING_STRICT; batching <= DL2_BATCHING_COMPLETION; batching++)
        for (unsigned at = 1; at <= 5; at += 2) {
            struct dl2_loader_config config = settings(true, 3, 3);
            struct fake_decoder fake = make_fake(0);
            fake.fails_at = at;
            config.decoder = &fake.base;
            config.batching = (enum dl2_batching)batching;
            struct dl2_loader *loader = create(samples, &config);
            struct dl2_error error = DL2_ERROR_INIT;
            start(loader, 0, 0);
            assert_int_equal(drain(loader, NULL, &error), DL2_ERR_SYSTEM);
            assert_non_null(strstr(error.message, "the card fell out"));
            free(load_epoch(loader, 3, 1, 0)); /* here it works again */
            dl2_loader_destroy(loader);
        }
}

/* In other orders, and shared with the processors, each sample comes once, with its own pixels. */
static void test_orders_and_shares(void **state)
{
    struct dl2_loader_config config = settings(true, 3, 3);
    struct dl2_loader *plain = create(samples, &config);
    struct loaded *want = load_epoch(plain, 3, 2, 0);
    dl2_loader_destroy(plain);
    const size_t bytes = (size_t)SIZE * SIZE * 3;
    for (unsigned i = 0; i < 6; i++) {
        struct fake_decoder fake = make_fake(6);
        struct dl2_loader_config other = settings(true, 3, 3);
        other.batching = (enum dl2_batching)(i % 2);
        other.decoder = &fake.base;
        other.decoder_shares = i >= 3;
        struct dl2_loader *loader = create(samples, &other);
        struct loaded *have = load_epoch(loader, 3, 2, 0);
        const struct dl2_loader_stats stats = stats_of(loader);
        assert_true(stats.decoder_images > 0);
        if (i >= 3) /* the first batches of a run are halved */
            assert_true(stats.decoder_images < PHOTOS * 3 / 4);
        assert_int_equal(have->count, PHOTOS);
        for (size_t k = 0; k < PHOTOS; k++) {
            size_t from = 0;
            while (want->indices[from] != have->indices[k])
                from++;
            assert_int_equal(have->labels[k], want->labels[from]);
            assert_memory_equal(have->images + k * bytes, want->images + from * bytes, bytes);
        }
        expect_every_sample(have, PHOTOS);
        free(have);
        dl2_loader_destroy(loader);
    }
    free(want);
}

/* A sample that comes several times in an epoch has a crop of its own each time; a refused one
 * keeps it. */
static void test_repeats(void **state)
{
    struct dl2_loader_config config = settings(true, 3, 3);
    config.repeats = 2;
    config.draws = PHOTOS;
    struct dl2_loader *plain = create(samples, &config);
    struct loaded *want = load_epoch(plain, 3, 2, 0);
    struct fake_decoder fake = make_fake(3);
    config.decoder = &fake.base;
    struct dl2_loader *loader = create(samples, &config);
    struct loaded *have = load_epoch(loader, 3, 2, 0);
    assert_true(atomic_load(&fake.refused) > 0);
    expect_same(want, have);
    free(want);
    free(have);
    dl2_loader_destroy(plain);
    dl2_loader_destroy(loader);
}

/* A slow decoder, which takes for a batch as long as a whole epoch took, gets little, a fast one
 * much. */
static void test_shares_follow_rates(void **state)
{
    enum { EPOCHS = 4, MICROS = 20000 };
    uint64_t given[2];
    double seconds = 0;
    for (unsigned slow = 0; slow < 2; slow++) {
        struct dl2_loader_config config = settings(true, 2, 3);
        struct fake_decoder fake = make_fake(0);
        const unsigned epoch = (unsigned)(1e6 * seconds / EPOCHS);
        fake.micros = !slow ? 0 : epoch > MICROS ? epoch : MICROS;
        config.decoder = &fake.base;
        config.decoder_shares = true;
        struct dl2_loader *loader = create(samples, &config);
        free(load_epoch(loader, 3, 0, 0));
        dl2_loader_stats_reset(loader);
        const double began = dl2_clock_wall();
        for (uint64_t i = 1; i <= EPOCHS; i++)
            free(load_epoch(loader, 3, i, 0));
        seconds = dl2_clock_wall() - began;
        const struct dl2_loader_stats stats = stats_of(loader);
        given[slow] = stats.decoder_images;
        dl2_loader_destroy(loader);
    }
    assert_true(given[1] > 0 && given[1] < given[0]);
}

static void test_misuse(void **state)
{
    struct dl2_loader *loader;
    for (unsigned i = 0; i < 3; i++) {
        struct dl2_loader_config config = settings(true, 1, 3);
        struct fake_decoder fake = make_fake(0);
        struct dl2_error error = DL2_ERROR_INIT;
        config.decoder = &fake.base;
        config.dtype = i == 0 ? DL2_FLOAT32 : DL2_UINT8;
        config.layout = i == 1 ? DL2_NCHW : DL2_NHWC;
        config.decoded_cache_bytes = i == 2 ? 1 << 20 : 0;
        assert_int_equal(dl2_loader_create(samples, &config, &loader, &error), DL2_ERR_ARGUMENT);
        assert_non_null(strstr(error.message, "must keep its default with decoder"));
    }
}

/* What is plain, and what is not. */
static void test_plain_jpeg(void **state)
{
    struct dl2_bytes file = DL2_BYTES_INIT;
    struct dl2_coded_frame plain;
    make_photo(1, &file);
    assert_true(dl2_jpeg_plain_read(&plain, file.data, file.size));
    assert_int_equal(plain.components, 3);
    assert_int_equal(plain.step_x, 1);
    make_photo(6, &file);
    assert_true(dl2_jpeg_plain_read(&plain, file.data, file.size));
    assert_int_equal(plain.step_x, 2);
    assert_int_equal(plain.step_y, 1);
    make_photo(12, &file);
    assert_true(dl2_jpeg_plain_read(&plain, file.data, file.size));
    assert_int_equal(plain.step_y, 2);
    for (size_t size = 0; size < file.size; size++) /* cut off anywhere */
        assert_false(dl2_jpeg_plain_read(&plain, file.data, size));
    file.data[file.size - 1] = 0xd8;
    assert_false(dl2_jpeg_plain_read(&plain, file.data, file.size));
    make_photo(3, &file);
    assert_true(dl2_jpeg_plain_read(&plain, file.data, file.size));
    assert_int_equal(plain.components, 1);
    make_photo(8, &file);
    assert_false(dl2_jpeg_plain_read(&plain, file.data, file.size)); /* PNG */
    make_photo(12, &file);
    for (size_t i = 2; i + 1 < file.size; i++)
        if (file.data[i] == 0xff && file.data[i + 1] == 0xc0) {
            file.data[i + 1] = 0xc2; /* progressive */
            break;
        }
    assert_false(dl2_jpeg_plain_read(&plain, file.data, file.size));
    dl2_bytes_free(&file);
}

int main(void)
{
    if (!has_encoder("jpeg") || !has_encoder("png"))
        return 77;
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_plain_jpeg),    cmocka_unit_test(test_same_bytes),
        cmocka_unit_test(test_splices),       cmocka_unit_test(test_bad_samples),
        cmocka_unit_test(test_restarts),      cmocka_unit_test(test_destroy_at_any_time),
        cmocka_unit_test(test_decoder_fails), cmocka_unit_test(test_orders_and_shares),
        cmocka_unit_test(test_repeats),       cmocka_unit_test(test_shares_follow_rates),
        cmocka_unit_test(test_misuse),
    };
    return cmocka_run_group_tests(tests, make_photos, remove_root);
}
