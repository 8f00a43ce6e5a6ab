/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * JPEG XL beyond what test_codec.c asks of every codec: files that libjxl itself writes with alpha,
 * 16 bits, an orientation, several frames or inks, and JPEG files that come back byte for byte.
 */
#include "config.h"

#include "codec/codecs.h"
#include "codec/decoder.h"
#include "tests/codec/sample_files.h"
#include "tests/unit.h"

#include <jxl/decode.h>
#include <jxl/encode.h>

enum { WIDTH = 5, HEIGHT = 3, PIXELS = WIDTH * HEIGHT };

/* A lossless file; `samples` are `frames` times PIXELS pixels of all channels, interleaved. */
struct jxl_sample {
    uint32_t colors, extra, bits;
    JxlExtraChannelType extra_type;
    int orientation;
    uint32_t frames;
    bool container;
    const void *samples;
};

static void jxl_sample_make(const struct jxl_sample *sample, struct dl2_bytes *out)
{
    JxlEncoder *encoder = JxlEncoderCreate(NULL);
    assert_non_null(encoder);
    JxlEncoderFrameSettings *settings = JxlEncoderFrameSettingsCreate(encoder, NULL);
    JxlBasicInfo info;
    JxlEncoderInitBasicInfo(&info);
    info.xsize = WIDTH;
    info.ysize = HEIGHT;
    info.bits_per_sample = sample->bits;
    info.num_color_channels = sample->colors;
    info.num_extra_channels = sample->extra;
    info.alpha_bits = sample->extra && sample->extra_type == JXL_CHANNEL_ALPHA ? sample->bits : 0;
    info.uses_original_profile = JXL_TRUE;
    info.orientation = (JxlOrientation)sample->orientation;
    info.have_animation = sample->frames > 1;
    info.animation.tps_numerator = 10;
    info.animation.tps_denominator = 1;
    assert_int_equal(JxlEncoderUseContainer(encoder, sample->container), JXL_ENC_SUCCESS);
    /* 16 bits and inks pass the limits of level 5. */
    assert_int_equal(JxlEncoderSetCodestreamLevel(encoder, 10), JXL_ENC_SUCCESS);
    assert_int_equal(JxlEncoderSetBasicInfo(encoder, &info), JXL_ENC_SUCCESS);
    if (sample->extra) {
        JxlExtraChannelInfo extra;
        JxlEncoderInitExtraChannelInfo(sample->extra_type, &extra);
        extra.bits_per_sample = sample->bits;
        assert_int_equal(JxlEncoderSetExtraChannelInfo(encoder, 0, &extra), JXL_ENC_SUCCESS);
    }
    JxlColorEncoding color;
    JxlColorEncodingSetToSRGB(&color, sample->colors == 1);
    assert_int_equal(JxlEncoderSetColorEncoding(encoder, &color), JXL_ENC_SUCCESS);
    assert_int_equal(JxlEncoderSetFrameLossless(settings, JXL_TRUE), JXL_ENC_SUCCESS);
    const bool in_one = sample->extra_type == JXL_CHANNEL_ALPHA;
    const JxlPixelFormat format = {sample->colors + (in_one ? sample->extra : 0),
                                   sample->bits == 16 ? JXL_TYPE_UINT16 : JXL_TYPE_UINT8,
                                   JXL_NATIVE_ENDIAN, 0};
    const size_t bytes = (size_t)PIXELS * format.num_channels * sample->bits / 8;
    for (uint32_t frame = 0; frame < sample->frames; frame++) {
        JxlFrameHeader header;
        JxlEncoderInitFrameHeader(&header);
        header.duration = sample->frames > 1;
        assert_int_equal(JxlEncoderSetFrameHeader(settings, &header), JXL_ENC_SUCCESS);
        assert_int_equal(JxlEncoderAddImageFrame(settings, &format,
                                                 (const uint8_t *)sample->samples + frame * bytes,
                                                 bytes),
                         JXL_ENC_SUCCESS);
        if (!in_one) {
            const JxlPixelFormat plane = {1, JXL_TYPE_UINT8, JXL_NATIVE_ENDIAN, 0};
            assert_int_equal(
                JxlEncoderSetExtraChannelBuffer(settings, &plane, sample->samples, PIXELS, 0),
                JXL_ENC_SUCCESS);
        }
    }
    JxlEncoderCloseInput(encoder);
    assert_int_equal(dl2_bytes_resize(out, 1 << 16, NULL), DL2_OK);
    uint8_t *next = out->data;
    size_t left = out->size;
    assert_int_equal(JxlEncoderProcessOutput(encoder, &next, &left), JXL_ENC_SUCCESS);
    out->size -= left;
    JxlEncoderDestroy(encoder);
}

static void jxl_decode(const struct dl2_bytes *file, struct dl2_image *image)
{
    struct dl2_decode_options options = DL2_DECODE_DEFAULTS;
    struct dl2_image scratch = DL2_IMAGE_INIT;
    struct dl2_error error = DL2_ERROR_INIT;
    options.background[0] = 10;
    options.background[1] = 200;
    options.background[2] = 90;
    expect_ok(dl2_image_decode(file->data, file->size, &options, image, &scratch, &error), &error);
    dl2_image_free(&scratch);
}

static uint8_t over(unsigned value, unsigned alpha, unsigned under)
{
    return (uint8_t)((value * alpha + under * (255 - alpha) + 127) / 255);
}

static void alpha_lies_over_the_background(void **state)
{
    uint8_t samples[PIXELS * 4];
    for (size_t i = 0; i < sizeof samples; i++)
        samples[i] = (uint8_t)(i * 37);
    struct dl2_bytes file = DL2_BYTES_INIT;
    struct dl2_image image = DL2_IMAGE_INIT;
    for (uint32_t colors = 1; colors <= 3; colors += 2) {
        const struct jxl_sample sample = {colors, 1, 8, JXL_CHANNEL_ALPHA, 1, 1, false, samples};
        static const uint8_t under[3] = {10, 200, 90}, gray = 131; /* its luma */
        struct dl2_image_info info;
        jxl_sample_make(&sample, &file);
        assert_int_equal(dl2_image_read_info(file.data, file.size, &info, NULL), DL2_OK);
        assert_true(info.alpha && info.channels == colors);
        jxl_decode(&file, &image);
        for (size_t i = 0; i < PIXELS; i++) {
            const uint8_t *pixel = samples + i * (colors + 1);
            for (uint32_t c = 0; c < colors; c++)
                assert_int_equal(image.data[i * colors + c],
                                 over(pixel[c], pixel[colors], colors == 1 ? gray : under[c]));
        }
    }
    dl2_image_free(&image);
    dl2_bytes_free(&file);
}

/* A channel that is no opacity is left out if that is wanted, and else refused. */
static void further_channels_are_named(void **state)
{
    static const uint8_t samples[PIXELS * 3] = {1, 2, 3};
    const struct jxl_sample sample = {3, 1, 8, JXL_CHANNEL_DEPTH, 1, 1, false, samples};
    struct dl2_decode_options options = DL2_DECODE_DEFAULTS;
    struct dl2_bytes file = DL2_BYTES_INIT;
    struct dl2_image image = DL2_IMAGE_INIT, scratch = DL2_IMAGE_INIT;
    struct dl2_error error = DL2_ERROR_INIT;
    struct dl2_image_info info;
    jxl_sample_make(&sample, &file);
    assert_int_equal(dl2_image_read_info(file.data, file.size, &info, NULL), DL2_OK);
    assert_true(!info.alpha && info.channels == 3 && info.left_out == 1);
    assert_int_equal(dl2_image_decode(file.data, file.size, &options, &image, &scratch, &error),
                     DL2_ERR_UNSUPPORTED);
    assert_non_null(strstr(error.message, "4 bands"));
    options.drop_bands = true;
    assert_int_equal(dl2_image_decode(file.data, file.size, &options, &image, &scratch, NULL),
                     DL2_OK);
    assert_memory_equal(image.data, samples, sizeof samples);
    dl2_image_free(&image);
    dl2_image_free(&scratch);
    dl2_bytes_free(&file);
}

static void sixteen_bits_become_eight(void **state)
{
    uint16_t samples[PIXELS * 3];
    for (size_t i = 0; i < PIXELS * 3; i++)
        samples[i] = (uint16_t)(i * 1457);
    const struct jxl_sample sample = {3, 0, 16, JXL_CHANNEL_ALPHA, 1, 1, true, samples};
    struct dl2_bytes file = DL2_BYTES_INIT;
    struct dl2_image image = DL2_IMAGE_INIT;
    struct dl2_image_info info;
    jxl_sample_make(&sample, &file);
    assert_int_equal(dl2_image_read_info(file.data, file.size, &info, NULL), DL2_OK);
    assert_int_equal(info.bits, 16);
    jxl_decode(&file, &image);
    for (size_t i = 0; i < PIXELS * 3; i++) /* newer libraries dither */
        assert_in_range(image.data[i] + 1, samples[i] / 257, samples[i] / 257 + 2);
    dl2_image_free(&image);
    dl2_bytes_free(&file);
}

/* The first of two frames, upright, from bare codestreams and containers. */
static void orientation_is_applied_to_the_first_frame(void **state)
{
    uint8_t samples[2 * PIXELS * 3];
    for (size_t i = 0; i < sizeof samples; i++)
        samples[i] = (uint8_t)(i * 5);
    struct dl2_bytes file = DL2_BYTES_INIT;
    struct dl2_image image = DL2_IMAGE_INIT, want = DL2_IMAGE_INIT, scratch = DL2_IMAGE_INIT;
    for (int orientation = 1; orientation <= 8; orientation++) {
        const struct jxl_sample sample = {
            3, 0, 8, JXL_CHANNEL_ALPHA, orientation, 2, orientation % 2, samples};
        struct dl2_image_info info;
        jxl_sample_make(&sample, &file);
        assert_int_equal(dl2_image_read_info(file.data, file.size, &info, NULL), DL2_OK);
        assert_true(info.orientation == orientation && info.width == WIDTH);
        assert_int_equal(dl2_image_reshape(&want, WIDTH, HEIGHT, 3, NULL), DL2_OK);
        memcpy(want.data, samples, PIXELS * 3);
        assert_int_equal(dl2_image_orient(&want, orientation, &scratch, NULL), DL2_OK);
        jxl_decode(&file, &image);
        assert_int_equal(image.width, want.width);
        assert_memory_equal(image.data, want.data, PIXELS * 3);
    }
    dl2_image_free(&image);
    dl2_image_free(&want);
    dl2_image_free(&scratch);
    dl2_bytes_free(&file);
}

static void cmyk_is_refused_by_name(void **state)
{
    static const uint8_t samples[PIXELS * 3];
    const struct jxl_sample sample = {3, 1, 8, JXL_CHANNEL_BLACK, 1, 1, true, samples};
    struct dl2_bytes file = DL2_BYTES_INIT;
    struct dl2_image_info info;
    struct dl2_error error = DL2_ERROR_INIT;
    jxl_sample_make(&sample, &file);
    assert_int_equal(dl2_image_read_info(file.data, file.size, &info, &error), DL2_ERR_UNSUPPORTED);
    assert_non_null(strstr(error.message, "CMYK"));
    dl2_bytes_free(&file);
}

#ifdef HAVE_JPEG
/* As djxl does it. */
static void jxl_reconstruct(const struct dl2_bytes *file, struct dl2_bytes *out)
{
    JxlDecoder *decoder = JxlDecoderCreate(NULL);
    assert_non_null(decoder);
    assert_int_equal(
        JxlDecoderSubscribeEvents(decoder, JXL_DEC_JPEG_RECONSTRUCTION | JXL_DEC_FULL_IMAGE),
        JXL_DEC_SUCCESS);
    assert_int_equal(JxlDecoderSetInput(decoder, file->data, file->size), JXL_DEC_SUCCESS);
    assert_int_equal(JxlDecoderProcessInput(decoder), JXL_DEC_JPEG_RECONSTRUCTION);
    assert_int_equal(dl2_bytes_resize(out, 1 << 18, NULL), DL2_OK);
    assert_int_equal(JxlDecoderSetJPEGBuffer(decoder, out->data, out->size), JXL_DEC_SUCCESS);
    assert_int_equal(JxlDecoderProcessInput(decoder), JXL_DEC_FULL_IMAGE);
    out->size -= JxlDecoderReleaseJPEGBuffer(decoder);
    JxlDecoderDestroy(decoder);
}

/* The pixels of two files are the same: all of them, a part, and a part at half the size. */
static void expect_same_pixels(const struct dl2_bytes *a, const struct dl2_bytes *b)
{
    const struct dl2_bytes *const files[] = {a, b};
    struct dl2_decoder *decoders[2];
    struct dl2_raster rasters[2];
    struct dl2_error error = DL2_ERROR_INIT;
    struct dl2_image image = DL2_IMAGE_INIT, other = DL2_IMAGE_INIT;
    jxl_decode(a, &image);
    jxl_decode(b, &other);
    assert_true(image.width == other.width && image.height == other.height);
    assert_int_equal(image.stride, other.stride);
    assert_memory_equal(image.data, other.data, image.stride * image.height);
    for (uint32_t reduction = 1; reduction <= 2; reduction++) {
        struct dl2_decode_request request = {
            .x = 40, .y = 30, .width = 100, .height = 90, .reduction = reduction, .channels = 3};
        for (size_t i = 0; i < 2; i++) {
            struct dl2_image_info info;
            expect_ok(dl2_decoder_create(&decoders[i], &error), &error);
            expect_ok(
                dl2_decoder_open(decoders[i], files[i]->data, files[i]->size, 0, &info, &error),
                &error);
            expect_ok(dl2_decoder_decode(decoders[i], &request, &rasters[i], &error), &error);
        }
        assert_int_equal(dl2_decoder_reduces(decoders[0]), dl2_decoder_reduces(decoders[1]));
        const struct dl2_plane *one = &rasters[0].planes[0], *two = &rasters[1].planes[0];
        assert_true(one->width == two->width && one->height == two->height);
        const size_t row = (size_t)one->width * dl2_raster_channels(&rasters[0]);
        for (uint32_t y = 0; y < one->height; y++)
            assert_memory_equal(one->data + y * one->stride, two->data + y * two->stride, row);
        for (size_t i = 0; i < 2; i++)
            dl2_decoder_destroy(decoders[i]);
    }
    dl2_image_free(&image);
    dl2_image_free(&other);
}

/* As in a build without JPEG: libjxl's own pixels follow, though the JPEG was rebuilt. */
static void expect_readable_after_unwrap(const struct dl2_bytes *file)
{
    const struct dl2_codec *jxl = dl2_codec_find("jxl");
    struct dl2_error error = DL2_ERROR_INIT;
    struct dl2_image_info info = {.orientation = 1};
    struct dl2_image image = DL2_IMAGE_INIT;
    struct dl2_raster raster;
    const uint8_t *jpeg;
    size_t size;
    struct dl2_codec_state *state = calloc(1, jxl->state_size);
    assert_non_null(state);
    state->data = file->data;
    state->size = file->size;
    expect_ok(jxl->open(state, &info, &error), &error);
    assert_int_equal(jxl->unwrap(state, &jpeg, &size, &error), 1);
    const struct dl2_decode_request all = {
        .width = info.width, .height = info.height, .reduction = 1};
    expect_ok(jxl->read(state, &all, &image, &raster, &error), &error);
    assert_int_equal(raster.planes[0].width, info.width);
    jxl->close(state);
    dl2_bytes_free(&state->block);
    free(state);
    dl2_image_free(&image);
}

/* Every subsampling and kind of scan, gray, restart markers, EXIF with an orientation. */
static void jpeg_comes_back_byte_for_byte(void **state)
{
    static const char *const subsamplings[] = {"420", "422", "444"};
    const struct dl2_codec *jpeg = dl2_codec_find("jpeg"), *jxl = dl2_codec_find("jxl_lossless");
    struct dl2_image in = DL2_IMAGE_INIT, image = DL2_IMAGE_INIT;
    struct dl2_bytes plain = DL2_BYTES_INIT, source = DL2_BYTES_INIT, file = DL2_BYTES_INIT,
                     back = DL2_BYTES_INIT;
    for (unsigned i = 0; i < 18; i++) {
        struct dl2_encode_options options = DL2_ENCODE_DEFAULTS;
        options.subsampling = subsamplings[i % 3];
        options.effort = (int)(i / 3 % 3);
        sample_picture(&in, 390, 275, i < 9 ? 3 : 1);
        assert_int_equal(dl2_image_encode(jpeg, &in, &options, &plain, NULL), DL2_OK);
        sample_jpeg_with_exif(&plain, 6, &source);
        struct dl2_encode_options lossless = DL2_ENCODE_DEFAULTS;
        lossless.source = source.data;
        lossless.source_size = source.size;
        assert_int_equal(dl2_image_encode(jxl, &in, &lossless, &file, NULL), DL2_OK);
        assert_true(file.size < source.size);
        jxl_reconstruct(&file, &back);
        assert_int_equal(back.size, source.size);
        assert_memory_equal(back.data, source.data, back.size);
        jxl_decode(&file, &image); /* upright: it has the EXIF block's orientation */
        assert_true(image.width == 275 && image.height == 390 && image.channels == in.channels);
        expect_same_pixels(&source, &file);
        expect_readable_after_unwrap(&file);
    }
    /* A JPEG that is many times larger than what it becomes. */
    assert_int_equal(dl2_image_reshape(&in, 2600, 2600, 3, NULL), DL2_OK);
    memset(in.data, 99, in.stride * in.height);
    sample_plain_jpeg(&in, 90, &source);
    struct dl2_encode_options lossless = DL2_ENCODE_DEFAULTS;
    lossless.source = source.data;
    lossless.source_size = source.size;
    assert_int_equal(dl2_image_encode(jxl, &in, &lossless, &file, NULL), DL2_OK);
    assert_true(4 * file.size + 65536 < source.size);
    jxl_reconstruct(&file, &back);
    assert_int_equal(back.size, source.size);
    assert_memory_equal(back.data, source.data, back.size);
    expect_same_pixels(&source, &file);
    dl2_image_free(&in);
    dl2_image_free(&image);
    dl2_bytes_free(&plain);
    dl2_bytes_free(&source);
    dl2_bytes_free(&file);
    dl2_bytes_free(&back);
}
#endif

#ifdef HAVE_JPEG
/* RGB as it is, with less of green and blue or not; arithmetic codes; inks. */
static void rare_jpegs_keep_their_file_or_their_pixels(void **state)
{
    static const uint8_t inks[4] = {200, 100, 50, 20};
    static const enum dl2_pixels_only reasons[] = {
        DL2_PIXELS_NOT_ONLY,      DL2_PIXELS_OF_RGB,        DL2_PIXELS_OF_RGB,
        DL2_PIXELS_OF_ARITHMETIC, DL2_PIXELS_OF_ARITHMETIC, DL2_PIXELS_OF_CMYK};
    const struct dl2_codec *jxl = dl2_codec_find("jxl_lossless");
    struct dl2_image in = DL2_IMAGE_INIT, image = DL2_IMAGE_INIT;
    struct dl2_bytes source = DL2_BYTES_INIT, file = DL2_BYTES_INIT, back = DL2_BYTES_INIT;
    struct dl2_error error = DL2_ERROR_INIT;
    for (int kind = 0; kind < 6; kind++) {
        sample_picture(&in, 390, 275, 3);
        if (kind < 5)
            sample_rare_jpeg(&in, kind < 3, 1 + kind % 3, kind >= 3, &source);
        else
            sample_cmyk_jpeg(inks, false, &source);
        enum dl2_pixels_only pixels_only = DL2_PIXELS_NOT_ONLY;
        struct dl2_encode_options lossless = DL2_ENCODE_DEFAULTS;
        lossless.source = source.data;
        lossless.source_size = source.size;
        lossless.pixels_only = &pixels_only;
        jxl_decode(&source, &in);
        expect_ok(dl2_image_encode(jxl, &in, &lossless, &file, &error), &error);
        assert_int_equal(pixels_only, reasons[kind]);
        if (!pixels_only) {
            jxl_reconstruct(&file, &back);
            assert_int_equal(back.size, source.size);
            assert_memory_equal(back.data, source.data, back.size);
        }
        jxl_decode(&file, &image);
        assert_true(image.width == in.width && image.height == in.height);
        assert_memory_equal(image.data, in.data, in.stride * in.height);
    }
    dl2_image_free(&in);
    dl2_image_free(&image);
    dl2_bytes_free(&source);
    dl2_bytes_free(&file);
    dl2_bytes_free(&back);
}
#endif

/* The mapping of qualities, at both of its branches. */
static void quality_is_a_distance(void **state)
{
    static const struct {
        int quality;
        double distance;
    } known[] = {{100, 0}, {90, 1}, {75, 2.35}, {30, 6.4}, {20, 9.0667}, {1, 23.8677}};
    const struct dl2_codec *jxl = dl2_codec_find("jxl");
    for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
        struct dl2_encode_options options = DL2_ENCODE_DEFAULTS;
        options.quality = known[i].quality;
        json_t *parameters = jxl->encoder_parameters(&options);
        assert_float_equal(json_real_value(json_object_get(parameters, "distance")),
                           known[i].distance, 1e-4);
        json_decref(parameters);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(alpha_lies_over_the_background),
        cmocka_unit_test(further_channels_are_named),
        cmocka_unit_test(sixteen_bits_become_eight),
        cmocka_unit_test(orientation_is_applied_to_the_first_frame),
        cmocka_unit_test(cmyk_is_refused_by_name),
        cmocka_unit_test(quality_is_a_distance),
#ifdef HAVE_JPEG
        cmocka_unit_test(jpeg_comes_back_byte_for_byte),
        cmocka_unit_test(rare_jpegs_keep_their_file_or_their_pixels),
#endif
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
