/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The pipeline over a batch decoder. The one here decodes on the processors, behind the same header
 * as a card's: what comes out is then what comes out without one, byte for byte, whatever it
 * refuses, however many workers there are, and also where samples are bad or an epoch is left.
 */
#include "codec/codec.h"
#include "codec/decoder.h"
#include "loader/batch_decoder.h"
#include "pixels/crop.h"
#include "tests/loader/photos.h"

#include <stdatomic.h>
#include <unistd.h>
#include <zlib.h>

/* ---- a decoder ---- */

struct fake {
    struct dl2_batch_decoder base;
    struct dl2_loader_config config;
    unsigned refuses;  /* every so manieth image, by its bytes; 0: none, 1: all */
    unsigned fails_at; /* the finish that fails, from 1 on; 0: none */
    unsigned micros;   /* that a finish takes at least */
    atomic_uint finishes;
    atomic_ullong images, bytes, refused, shifted;
};

struct dl2_decode_slot {
    struct fake *fake;
    unsigned samples, side, channels;
    size_t sample_bytes;
    uint8_t *device, *host;
    struct {
        enum { NOTHING, PIXELS, ENCODED } kind;
        struct dl2_encoded image;
        uint8_t *data;
        uint32_t *shift;
    } * places;
};

static bool fake_takes(const struct dl2_batch_decoder *decoder, const struct dl2_jpeg_plain *jpeg)
{
    return jpeg->width != 33; /* some it doesn't */
}

static int fake_slot_create(struct dl2_batch_decoder *decoder, unsigned count, unsigned side,
                            unsigned channels, struct dl2_decode_slot **out,
                            struct dl2_error *error)
{
    struct dl2_decode_slot *slot = calloc(1, sizeof *slot);
    slot->fake = (struct fake *)decoder;
    slot->samples = count;
    slot->side = side;
    slot->channels = channels;
    slot->sample_bytes = (size_t)side * side * channels;
    slot->device = malloc(count * slot->sample_bytes);
    slot->host = malloc(count * slot->sample_bytes);
    slot->places = calloc(count, sizeof *slot->places);
    *out = slot;
    return DL2_OK;
}

static void empty(struct dl2_decode_slot *slot, unsigned n)
{
    free(slot->places[n].data);
    free(slot->places[n].shift);
    slot->places[n].data = NULL;
    slot->places[n].shift = NULL;
    slot->places[n].kind = NOTHING;
}

static void fake_begin(struct dl2_decode_slot *slot)
{
    for (unsigned i = 0; i < slot->samples; i++) {
        empty(slot, i);
    }
    /* What nobody writes must not look right. */
    memset(slot->device, 0xa5, slot->samples * slot->sample_bytes);
    memset(slot->host, 0x5a, slot->samples * slot->sample_bytes);
}

static void fake_slot_free(struct dl2_decode_slot *slot)
{
    if (!slot)
        return;
    fake_begin(slot);
    free(slot->device);
    free(slot->host);
    free(slot->places);
    free(slot);
}

static uint8_t *fake_images(struct dl2_decode_slot *slot)
{
    return slot->device;
}

static int fake_add(struct dl2_decode_slot *slot, unsigned n, const struct dl2_encoded *image,
                    struct dl2_error *error)
{
    slot->places[n].kind = ENCODED;
    slot->places[n].image = *image;
    slot->places[n].data = malloc(image->size);
    memcpy(slot->places[n].data, image->data, image->size);
    slot->places[n].image.data = slot->places[n].data;
    if (image->shift) {
        const unsigned side = 8 * image->jpeg.step_y;
        const size_t size = (image->jpeg.height + side - 1) / side * sizeof *image->shift;
        slot->places[n].shift = malloc(size);
        memcpy(slot->places[n].shift, image->shift, size);
        slot->places[n].image.shift = slot->places[n].shift;
    }
    return DL2_OK;
}

static uint8_t *fake_pixels(struct dl2_decode_slot *slot, unsigned n)
{
    slot->places[n].kind = PIXELS;
    return slot->host + n * slot->sample_bytes;
}

/* Moves rows to where they belong, in copies that the caller frees. */
static void straighten(const struct dl2_encoded *image, struct dl2_raster *raster,
                       uint8_t *copies[3])
{
    for (unsigned p = 0; p < dl2_raster_planes(raster); p++) {
        struct dl2_plane *plane = &raster->planes[p];
        copies[p] = calloc(plane->height, plane->stride);
        for (uint32_t y = 0; y < plane->height; y++) {
            const size_t by = (size_t)image->shift[y * plane->step_y / (8 * image->jpeg.step_y)] *
                              8 * image->jpeg.step_x / plane->step_x;
            memcpy(copies[p] + y * plane->stride, plane->data + y * plane->stride + by,
                   plane->width - by);
        }
        plane->data = copies[p];
    }
}

/* Of the limit alone, as far reduced as the loader itself would. */
static bool fake_decode(struct dl2_decode_slot *slot, const struct dl2_encoded *image, uint8_t *out)
{
    struct dl2_resizer resizer = DL2_RESIZER_INIT;
    struct dl2_decoder *decoder;
    struct dl2_image_info info;
    struct dl2_raster raster;
    struct dl2_decode_request request = DL2_DECODE_REQUEST_DEFAULTS;
    const struct dl2_crop crop = {.box = image->box};
    request.x = (uint32_t)image->limit.left;
    request.y = (uint32_t)image->limit.top;
    request.width = (uint32_t)(image->limit.right - image->limit.left);
    request.height = (uint32_t)(image->limit.bottom - image->limit.top);
    if (image->shift) {
        request.x = request.y = 0;
        request.width = image->jpeg.width;
        request.height = image->jpeg.height;
    }
    request.channels = slot->channels == 1 ? 1 : 0;
    request.reduction =
        dl2_crop_reduction(&crop, slot->fake->config.image_size, slot->fake->config.image_size);
    const struct dl2_resize_output output = {.data = out,
                                             .width = slot->side,
                                             .height = slot->side,
                                             .channels = slot->channels,
                                             .flip = image->flip};
    assert_int_equal(dl2_decoder_create(&decoder, NULL), DL2_OK);
    bool good = dl2_decoder_open(decoder, image->data, image->size, 0, &info, NULL) == DL2_OK;
    if (good) {
        assert_int_equal(info.width, image->jpeg.width);
        assert_int_equal(info.height, image->jpeg.height);
        good = dl2_decoder_decode(decoder, &request, &raster, NULL) == DL2_OK;
    }
    uint8_t *copies[3] = {NULL};
    if (good && image->shift)
        straighten(image, &raster, copies);
    if (good)
        assert_int_equal(
            dl2_resize_raster(&resizer, &raster, &image->limit, &image->box, &output, NULL),
            DL2_OK);
    for (unsigned p = 0; p < 3; p++)
        free(copies[p]);
    dl2_resizer_free(&resizer);
    dl2_decoder_destroy(decoder);
    return good;
}

static int fake_finish(struct dl2_decode_slot *slot, unsigned count, bool *refused,
                       struct dl2_error *error)
{
    struct fake *fake = slot->fake;
    if (atomic_fetch_add(&fake->finishes, 1) + 1 == fake->fails_at)
        return dl2_error_set(error, DL2_ERR_SYSTEM, "the card fell out");
    if (fake->micros)
        usleep(fake->micros);
    for (unsigned i = 0; i < count; i++) {
        uint8_t *out = slot->device + i * slot->sample_bytes;
        struct dl2_encoded *image = &slot->places[i].image;
        if (slot->places[i].kind == PIXELS)
            memcpy(out, slot->host + i * slot->sample_bytes, slot->sample_bytes);
        if (slot->places[i].kind == ENCODED) {
            atomic_fetch_add(&fake->images, 1);
            atomic_fetch_add(&fake->bytes, image->size);
            if (image->shift)
                atomic_fetch_add(&fake->shifted, 1);
            const uLong sum = crc32_z(0, image->data, image->size);
            if ((fake->refuses && sum % fake->refuses == 0) || !fake_decode(slot, image, out)) {
                refused[i] = true;
                atomic_fetch_add(&fake->refused, 1);
            }
        }
        empty(slot, i);
    }
    return DL2_OK;
}

static int fake_download(struct dl2_batch_decoder *decoder, void *to, const uint8_t *images,
                         size_t bytes, struct dl2_error *error)
{
    memcpy(to, images, bytes);
    return DL2_OK;
}

static void fake_stats(const struct dl2_batch_decoder *decoder,
                       struct dl2_batch_decoder_stats *stats)
{
    *stats = (struct dl2_batch_decoder_stats){0};
}

static const struct dl2_batch_decoder_class fake_class = {
    "fake",     NULL,     NULL,        fake_takes,  fake_slot_create, fake_slot_free, fake_images,
    fake_begin, fake_add, fake_pixels, fake_finish, fake_download,    fake_stats};

/* ---- epochs ---- */

static struct dl2_loader_config settings(bool train, unsigned workers, unsigned channels)
{
    struct dl2_loader_config config = config_for(train, workers);
    config.channels = channels;
    config.resize = train ? 0 : 18;
    return config;
}

static struct fake make_fake(const struct dl2_loader_config *config, unsigned refuses)
{
    return (struct fake){.base.ops = &fake_class, .config = *config, .refuses = refuses};
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
        struct fake fake = make_fake(&config, refuses[i % 3]);
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
        struct fake fake = make_fake(&config, 0);
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
        struct fake fake = make_fake(&config, 0);
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
    struct fake fake = make_fake(&config, 3);
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
            struct fake fake = make_fake(&config, 2);
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
    for (unsigned batching = DL2_BATCHING_STRICT; batching <= DL2_BATCHING_AWARE; batching++)
        for (unsigned at = 1; at <= 5; at += 2) {
            struct dl2_loader_config config = settings(true, 3, 3);
            struct fake fake = make_fake(&config, 0);
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
        struct fake fake = make_fake(&config, 6);
        struct dl2_loader_config other = settings(true, 3, 3);
        other.batching = (enum dl2_batching)(i % 3);
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

/* A slow decoder gets little, a fast one much. */
static void test_shares_follow_rates(void **state)
{
    uint64_t given[2];
    for (unsigned slow = 0; slow < 2; slow++) {
        struct dl2_loader_config config = settings(true, 2, 3);
        struct fake fake = make_fake(&config, 0);
        fake.micros = slow ? 20000 : 0;
        config.decoder = &fake.base;
        config.decoder_shares = true;
        struct dl2_loader *loader = create(samples, &config);
        free(load_epoch(loader, 3, 0, 0));
        dl2_loader_stats_reset(loader);
        for (uint64_t i = 1; i < 5; i++)
            free(load_epoch(loader, 3, i, 0));
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
        struct fake fake = make_fake(&config, 0);
        struct dl2_error error = DL2_ERROR_INIT;
        config.decoder = &fake.base;
        config.dtype = i == 0 ? DL2_FLOAT32 : DL2_UINT8;
        config.layout = i == 1 ? DL2_NCHW : DL2_NHWC;
        config.decoded_cache_bytes = i == 2 ? 1 << 20 : 0;
        assert_int_equal(dl2_loader_create(samples, &config, &loader, &error), DL2_ERR_ARGUMENT);
        assert_non_null(strstr(error.message, "batch decoder"));
    }
}

/* What is plain, and what is not. */
static void test_plain_jpeg(void **state)
{
    struct dl2_bytes file = DL2_BYTES_INIT;
    struct dl2_jpeg_plain plain;
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
        cmocka_unit_test(test_plain_jpeg),
        cmocka_unit_test(test_same_bytes),
        cmocka_unit_test(test_splices),
        cmocka_unit_test(test_bad_samples),
        cmocka_unit_test(test_restarts),
        cmocka_unit_test(test_destroy_at_any_time),
        cmocka_unit_test(test_decoder_fails),
        cmocka_unit_test(test_orders_and_shares),
        cmocka_unit_test(test_shares_follow_rates),
        cmocka_unit_test(test_misuse),
    };
    return cmocka_run_group_tests(tests, make_photos, remove_root);
}
