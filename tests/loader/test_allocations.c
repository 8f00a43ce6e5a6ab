/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * In steady state an image costs no heap allocation, in any mode and with either kind of order.
 * Buffers grow with the largest image that each of them has met, so the first epochs have some;
 * what an image costs would show in every epoch.
 */
#include "codec/codec.h"
#include "common/random.h"
#include "tests/common/allocations.h"
#include "tests/loader/pictures.h"

enum { IMAGES = 48, MAX_EPOCHS = 80, QUIET_EPOCHS = 3 };

/* A soft pattern. */
static void fill(struct dl2_image *image, unsigned number)
{
    for (uint32_t y = 0; y < image->height; y++)
        for (uint32_t x = 0; x < image->width * image->channels; x++)
            image->data[y * image->stride + x] =
                (uint8_t)((x * (1 + number % 3) + y * (1 + number % 5)) / 4 + (x ^ y) % 16);
}

static int make_images(void **state, const char *name_of_codec)
{
    if (make_root(state) != 0)
        return -1;
    const struct dl2_codec *codec = dl2_codec_find(name_of_codec);
    struct dl2_bytes file = DL2_BYTES_INIT;
    struct dl2_image image = DL2_IMAGE_INIT;
    struct dl2_error error = DL2_ERROR_INIT;
    for (unsigned i = 0; i < IMAGES; i++) {
        struct dl2_encode_options options = DL2_ENCODE_DEFAULTS;
        char name[32];
        snprintf(name, sizeof name, "class%u/%03u.%s", i % 3, i, codec->extension);
        options.subsampling = i % 4 == 0 ? "444" : "420";
        expect_ok(
            dl2_image_reshape(&image, 120 + 13 * (i % 7), 90 + 17 * (i % 5), i % 6 ? 3 : 1, &error),
            &error);
        fill(&image, i);
        expect_ok(dl2_image_encode(codec, &image, &options, &file, &error), &error);
        put(name, file.data, file.size);
    }
    dl2_image_free(&image);
    dl2_bytes_free(&file);
    reopen();
    return 0;
}

static int make_ppms(void **state)
{
    return make_images(state, "ppm");
}

static int make_jpegs(void **state)
{
    return has_encoder("jpeg") ? make_images(state, "jpeg") : make_root(state);
}

static int brighten(void *context, uint32_t index, struct dl2_random *random, uint8_t *pixels,
                    unsigned width, unsigned height, unsigned channels, struct dl2_error *error)
{
    const uint8_t amount = (uint8_t)dl2_random_below(random, 32);
    for (unsigned i = 0; i < width * height * channels; i++)
        pixels[i] = (uint8_t)(pixels[i] > 255 - amount ? 255 : pixels[i] + amount);
    return 0;
}

static void expect_quiet(const struct dl2_loader_config *config)
{
    struct dl2_loader *loader = create(samples, config);
    struct dl2_error error = DL2_ERROR_INIT;
    uint64_t before, after, last = 0;
    unsigned quiet = 0;
    for (unsigned epoch = 0; epoch < MAX_EPOCHS && quiet < QUIET_EPOCHS; epoch++) {
        count_allocations(&before);
        start(loader, epoch, 0);
        expect_ok(drain(loader, NULL, &error), &error);
        count_allocations(&after);
        last = after - before;
        quiet = last ? 0 : quiet + 1;
    }
    if (quiet < QUIET_EPOCHS)
        fail_msg("still %llu allocations in an epoch of %d images after %d epochs",
                 (unsigned long long)last, IMAGES, MAX_EPOCHS);
    dl2_loader_destroy(loader);
}

static void test_no_allocations(void **state)
{
    static const enum dl2_batching modes[] = {DL2_BATCHING_STRICT, DL2_BATCHING_COMPLETION};
    static const struct dl2_operation operation = {"brighten", brighten, NULL};
    uint64_t unused;
    if (!count_allocations(&unused))
        skip(); /* a sanitizer has the allocator's place, or it isn't glibc's */
    for (unsigned mode = 0; mode < 2; mode++)
        for (int train = 0; train < 2; train++) {
            struct dl2_loader_config config = config_for(train, 3);
            config.height = 48;
            config.batching = modes[mode];
            config.fetch.cache_bytes = mode == 1 ? 1 << 16 : 0;
            config.decoded_cache_bytes = mode == 2 ? 1 << 18 : 0;
            config.operations = mode == 2 ? &operation : NULL;
            config.operation_count = mode == 2;
            expect_quiet(&config);
        }
}

static void test_no_allocations_for_jpegs(void **state)
{
    if (!dl2_codec_find("jpeg"))
        skip();
    test_no_allocations(state);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_no_allocations, make_ppms, remove_root),
        cmocka_unit_test_setup_teardown(test_no_allocations_for_jpegs, make_jpegs, remove_root),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
