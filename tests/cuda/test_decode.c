/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The loader over nvJPEG. Built twice: with the real libraries, for a machine with a card (status
 * 77 without), where pixels are within what two decoders' rounding comes to; and with what stands
 * in for CUDA and nvJPEG (fake_nvjpeg.c), where they are the processors' to the last bit but for
 * regions, whose chroma is upsampled first.
 */
#include "cuda/gpu.h"
#include "loader/batch_decoder.h"
#include "loader/loader.h"
#include "tests/loader/photos.h"

#include <math.h>

enum { SIDE = 96, BATCH = 8 }; /* a side that no photograph is reduced for */

#ifdef DL2_FAKE
#include "tests/cuda/fake_threads.h"
static const bool fake = true;
#else
static const bool fake = false;
#endif

struct epoch {
    uint8_t *images;
    int32_t labels[PHOTOS];
    uint32_t indices[PHOTOS];
    size_t count, image;
};

static void free_epoch(struct epoch *epoch)
{
    free(epoch->images);
    free(epoch);
}

static struct epoch *load(struct dl2_loader *loader, struct dl2_batch_decoder *decoder,
                          unsigned channels, uint64_t number)
{
    struct epoch *all = calloc(1, sizeof *all);
    struct dl2_error error = DL2_ERROR_INIT;
    struct dl2_batch *batch;
    all->image = (size_t)SIDE * SIDE * channels;
    all->images = malloc(PHOTOS * all->image);
    start(loader, number, 0);
    int status;
    while ((status = dl2_loader_next(loader, &batch, &error)) == 1) {
        uint8_t *to = all->images + all->count * all->image;
        assert_true(all->count + batch->count <= PHOTOS);
        if (!decoder)
            memcpy(to, batch->images, batch->count * all->image);
        else if (decoder->ops->download(decoder, to, batch->images, batch->count * all->image,
                                        &error) < 0)
            fail_msg("%s", error.message);
        memcpy(all->labels + all->count, batch->labels, batch->count * sizeof *batch->labels);
        memcpy(all->indices + all->count, batch->indices, batch->count * sizeof *batch->indices);
        all->count += batch->count;
        dl2_loader_release(loader, batch);
    }
    if (status < 0)
        fail_msg("%s", error.message);
    return all;
}

static struct dl2_loader_config settings(bool train, unsigned channels)
{
    struct dl2_loader_config config = config_for(train, 3);
    config.batch = BATCH;
    config.height = SIDE;
    config.channels = channels;
    config.resize = config.train ? 0 : SIDE + 10;
    config.depth = 3;
    return config;
}

/* An image's mean difference, in gray levels, at most; 0: none. */
static void expect_close(const struct epoch *want, const struct epoch *have, double most)
{
    assert_int_equal(want->count, have->count);
    assert_memory_equal(want->indices, have->indices, sizeof want->indices);
    assert_memory_equal(want->labels, have->labels, sizeof want->labels);
    double worst = 0;
    for (size_t i = 0; i < want->count; i++) {
        const uint8_t *a = want->images + i * want->image, *b = have->images + i * have->image;
        double sum = 0;
        for (size_t k = 0; k < want->image; k++)
            sum += abs(a[k] - b[k]);
        worst = fmax(worst, sum / (double)want->image);
    }
    if (!(worst <= most))
        fail_msg("an image is off by %.3f gray levels in the mean, more than %.3f", worst, most);
}

static void compare(const struct dl2_batch_decoder_options *options, bool train, unsigned channels,
                    bool shares, bool splices, double most)
{
    struct dl2_dataset *dataset = open_all();
    struct dl2_loader_config config = settings(train, channels);
    struct dl2_loader *loader = create(dataset, &config);
    struct epoch *want = load(loader, NULL, channels, 1);
    size_t bad, had;
    const char *const *texts = dl2_loader_bad(loader, &bad);
    struct dl2_error error = DL2_ERROR_INIT;
    struct dl2_batch_decoder *decoder;
    if (dl2_batch_decoder_open(options, &decoder, &error) < 0)
        fail_msg("%s", error.message);
    config.decoder = decoder;
    config.decoder_shares = shares;
    config.decoder_splices = splices;
    struct dl2_loader *other = create(dataset, &config);
    for (int again = 0; again < 2; again++) {
        struct epoch *have = load(other, decoder, channels, 1);
        expect_close(want, have, most);
        free_epoch(have);
    }
    const char *const *other_texts = dl2_loader_bad(other, &had);
    assert_int_equal(had, bad);
    for (size_t i = 0; i < bad; i++)
        assert_string_equal(texts[i], other_texts[i]);
    struct dl2_batch_decoder_stats stats;
    decoder->ops->get_stats(decoder, &stats);
    assert_true(stats.images > 0 && stats.pixels > stats.images && stats.bytes > stats.images);
    assert_true(stats.decode > 0 && stats.transform > 0);
    assert_true(stats.by_engines <= stats.images);
    assert_int_equal(!stats.refusal, !stats.refused);
    json_t *text = decoder->ops->describe(decoder);
    assert_string_equal(json_string_value(json_object_get(text, "name")), "nvjpeg");
    json_decref(text);
    dl2_loader_destroy(other);
    dl2_batch_decoder_close(decoder);
    dl2_loader_destroy(loader);
    free_epoch(want);
    dl2_dataset_close(dataset);
}

static const struct dl2_batch_decoder_options defaults = {.threads = 2};

static void test_planes(void **state)
{
    (void)state;
    for (int train = 0; train < 2; train++)
        for (unsigned channels = 1; channels <= 3; channels += 2)
            for (int splices = 0; splices < 2; splices++)
                compare(&defaults, train, channels, false, splices, fake ? 0 : 1);
}

/* Opens a decoder that there cannot be here. */
static void expect_none(const struct dl2_batch_decoder_options *options, const char *message)
{
    struct dl2_batch_decoder *decoder;
    struct dl2_error error = DL2_ERROR_INIT;
    assert_int_equal(dl2_batch_decoder_open(options, &decoder, &error), DL2_ERR_UNSUPPORTED);
    assert_null(decoder);
    assert_non_null(strstr(error.message, message));
}

static bool has_engines(void)
{
    const struct dl2_batch_decoder_options options = {.engine = DL2_DECODE_ENGINES};
    struct dl2_batch_decoder *decoder;
    dl2_batch_decoder_open(&options, &decoder, NULL);
    dl2_batch_decoder_close(decoder);
    return decoder;
}

/* The engines decode regions; cores do not. */
static void test_regions(void **state)
{
    (void)state;
    const struct dl2_batch_decoder_options options = {.regions = true, .threads = 1};
    expect_none(&(struct dl2_batch_decoder_options){.regions = true, .engine = DL2_DECODE_CORES},
                "cores decode whole images");
    if (!has_engines()) {
        expect_none(&options, "choose gpu_input 'plain' or 'spliced'");
        return;
    }
    for (int train = 0; train < 2; train++)
        compare(&options, train, 3, false, false, 6);
    compare(&options, true, 1, false, false, 3);
}

static void test_cores(void **state)
{
    (void)state;
    const struct dl2_batch_decoder_options options = {.engine = DL2_DECODE_CORES, .threads = 2};
    compare(&options, true, 3, false, true, fake ? 0 : 1);
}

/* Decoded in many groups, as if there were little memory. */
static void test_groups(void **state)
{
    (void)state;
    const struct dl2_batch_decoder_options options = {.memory = 200000, .threads = 2};
    compare(&options, true, 3, false, false, fake ? 0 : 1);
}

static void test_shares(void **state)
{
    (void)state;
    compare(&defaults, true, 3, true, false, fake ? 0 : 1);
}

/* What the headers don't tell, nvJPEG's lists fail of, and halves find.
 * Real decoders forgive more. */
static void test_bad(void **state)
{
    (void)state;
    if (!fake)
        skip();
    spoil_photo(3, true);
    spoil_photo(14, true);
    spoil_photo(13, false);
    spoil_photo(40, true);
    for (int train = 0; train < 2; train++)
        for (int regions = 0; regions < (has_engines() ? 2 : 1); regions++) {
            const struct dl2_batch_decoder_options options = {.regions = regions, .threads = 2};
            compare(&options, train, 3, false, train, regions ? 6 : 0);
        }
    repair_photo(3);
    repair_photo(14);
    repair_photo(13);
    repair_photo(40);
}

/* An image that is larger than all the room there is at first. */
static void test_large(void **state)
{
    (void)state;
    struct dl2_bytes file = DL2_BYTES_INIT;
    make_large_photo(&file);
    assert_true(file.size > BATCH * ((size_t)96 << 10));
    put("class0/000.jpg", file.data, file.size);
    dl2_bytes_free(&file);
    compare(&defaults, true, 3, false, false, fake ? 0 : 1);
    repair_photo(0);
}

/* Each batch is copied by a stream of the caller's, as late as that stream likes, and is released
 * at once: what is decoded into the same memory comes after the copy. */
static void test_late_readers(void **state)
{
    (void)state;
    struct dl2_dataset *dataset = open_all();
    struct dl2_loader_config config = settings(true, 3);
    struct dl2_loader *loader = create(dataset, &config);
    struct epoch *want = load(loader, NULL, 3, 1);
    struct dl2_batch_decoder *decoder;
    struct dl2_error error = DL2_ERROR_INIT;
    struct dl2_batch *batch;
    cudaStream_t reader;
    uint8_t *copies;
    if (dl2_batch_decoder_open(&defaults, &decoder, &error) < 0)
        fail_msg("%s", error.message);
    /* Before the slots' own streams: the stand-in runs the oldest last. */
    assert_int_equal(cudaStreamCreateWithFlags(&reader, cudaStreamNonBlocking), cudaSuccess);
    config.decoder = decoder;
    config.depth = 2;
    struct dl2_loader *other = create(dataset, &config);
    struct epoch *have = calloc(1, sizeof *have);
    have->image = want->image;
    have->images = malloc(PHOTOS * have->image);
    assert_int_equal(cudaHostAlloc((void **)&copies, PHOTOS * have->image, cudaHostAllocPortable),
                     cudaSuccess);
    start(other, 1, 0);
    while (dl2_loader_next(other, &batch, &error) == 1) {
        assert_int_equal(cudaMemcpyAsync(copies + have->count * have->image, batch->images,
                                         batch->count * have->image, cudaMemcpyDeviceToHost,
                                         reader),
                         cudaSuccess);
        memcpy(have->labels + have->count, batch->labels, batch->count * sizeof *batch->labels);
        memcpy(have->indices + have->count, batch->indices, batch->count * sizeof *batch->indices);
        have->count += batch->count;
        decoder->ops->write_after(decoder, batch->images, (uintptr_t)reader);
        dl2_loader_release(other, batch);
    }
    assert_int_equal(cudaStreamSynchronize(reader), cudaSuccess);
    memcpy(have->images, copies, have->count * have->image);
    expect_close(want, have, fake ? 0 : 1);
    dl2_loader_destroy(other);
    dl2_batch_decoder_close(decoder);
    dl2_loader_destroy(loader);
    assert_int_equal(cudaFreeHost(copies), cudaSuccess);
    assert_int_equal(cudaStreamDestroy(reader), cudaSuccess);
    free_epoch(have);
    free_epoch(want);
    dl2_dataset_close(dataset);
}

static void test_no_such_card(void **state)
{
    (void)state;
    const struct dl2_batch_decoder_options options = {.card = 77};
    struct dl2_batch_decoder *decoder;
    struct dl2_error error = DL2_ERROR_INIT;
    assert_true(dl2_batch_decoder_open(&options, &decoder, &error) < 0);
    assert_null(decoder);
    assert_non_null(strstr(error.message, "decoding on the card (decode 'cpu' needs none)"));
}

int main(void)
{
    if (!dl2_gpu_present()) {
        struct dl2_batch_decoder *decoder;
        struct dl2_error error = DL2_ERROR_INIT;
        const int status = dl2_batch_decoder_open(&defaults, &decoder, &error);
        printf("SKIP: no card: %s\n", error.message);
        return status == DL2_ERR_UNSUPPORTED && !decoder ? 77 : 1;
    }
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_no_such_card), cmocka_unit_test(test_planes),
        cmocka_unit_test(test_regions),      cmocka_unit_test(test_cores),
        cmocka_unit_test(test_groups),       cmocka_unit_test(test_shares),
        cmocka_unit_test(test_bad),          cmocka_unit_test(test_large),
        cmocka_unit_test(test_late_readers),
    };
    return cmocka_run_group_tests(tests, make_photos, remove_root);
}
