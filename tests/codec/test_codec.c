/* SPDX-License-Identifier: BSD-2-Clause */
#include "config.h"

#include "codec/codec.h"
#include "codec/decoder.h"
#include "codec/exif.h"
#include "tests/codec/sample_files.h"
#include "tests/unit.h"

#include <math.h>

static const struct dl2_decode_options as_is = DL2_DECODE_DEFAULTS;

static void encode_ok(const struct dl2_codec *codec, const struct dl2_image *image, int quality,
                      struct dl2_bytes *out)
{
    struct dl2_encode_options options = DL2_ENCODE_DEFAULTS;
    struct dl2_error error = DL2_ERROR_INIT;
    options.quality = quality;
    if (dl2_image_encode(codec, image, &options, out, &error) < 0)
        fail_msg("%s: %s", codec->name, error.message);
}

static void decode_ok(const struct dl2_bytes *file, const struct dl2_decode_options *options,
                      struct dl2_image *image)
{
    struct dl2_image scratch = DL2_IMAGE_INIT;
    struct dl2_error error = DL2_ERROR_INIT;
    expect_ok(dl2_image_decode(file->data, file->size, options, image, &scratch, &error), &error);
    dl2_image_free(&scratch);
}

/* The status, once it is sure that a message comes with it. */
static int decode_status(const uint8_t *data, size_t size, const struct dl2_decode_options *options)
{
    struct dl2_image image = DL2_IMAGE_INIT, scratch = DL2_IMAGE_INIT;
    struct dl2_error error = DL2_ERROR_INIT;
    /* A block of its own, so that a sanitizer sees what is read behind it. */
    uint8_t *copy = malloc(size ? size : 1);
    assert_non_null(copy);
    memcpy(copy, data, size);
    int status = dl2_image_decode(copy, size, options, &image, &scratch, &error);
    assert_int_equal(status, error.status);
    assert_true((status < 0) == (error.message[0] != '\0'));
    free(copy);
    dl2_image_free(&image);
    dl2_image_free(&scratch);
    return status;
}

static double psnr(const struct dl2_image *a, const struct dl2_image *b)
{
    assert_int_equal(a->width, b->width);
    assert_int_equal(a->height, b->height);
    assert_int_equal(a->channels, b->channels);
    double sum = 0;
    size_t count = a->stride * a->height;
    for (size_t i = 0; i < count; i++)
        sum += ((double)a->data[i] - b->data[i]) * ((double)a->data[i] - b->data[i]);
    return sum > 0 ? 10 * log10(255.0 * 255.0 * (double)count / sum) : INFINITY;
}

/* What the tests encode, encode to and decode to; freed after each. */
static struct dl2_image in, out, scratch;
static struct dl2_bytes file, again;

static int free_all(void **state)
{
    dl2_image_free(&in);
    dl2_image_free(&out);
    dl2_image_free(&scratch);
    dl2_bytes_free(&file);
    dl2_bytes_free(&again);
    return 0;
}

static void the_table_is_consistent(void **state)
{
    assert_non_null(dl2_codec_find("ppm"));
    assert_null(dl2_codec_find("nothing"));
    assert_null(dl2_codec_at(1000));
    json_t *versions = dl2_codec_versions();
    for (size_t i = 0; dl2_codec_at(i); i++) {
        const struct dl2_codec *codec = dl2_codec_at(i);
        assert_null(strchr(codec->name, '-')); /* variants are called CODEC-QUALITY */
        assert_ptr_equal(dl2_codec_find(codec->name), codec);
        assert_true(dl2_codec_is_image_extension(codec->extension) == !codec->video);
        assert_false(codec->encode && codec->video);
        char found[DL2_CODEC_VERSION_SIZE];
        assert_true(!codec->version != !codec->find_version);
        if (codec->find_version)
            codec->find_version(found);
        if (codec->video) /* its libraries are loaded only where they are needed */
            assert_null(json_object_get(versions, codec->name));
        else
            assert_string_equal(json_string_value(json_object_get(versions, codec->name)),
                                codec->version ? codec->version : found);
        assert_true((codec->max_effort >= 0) == (codec->effort_help != NULL));
    }
    json_decref(versions);
    assert_true(dl2_codec_is_image_extension("JPEG"));
    assert_true(dl2_codec_is_image_extension("gif"));
    assert_false(dl2_codec_is_image_extension("txt"));
    assert_false(dl2_codec_is_image_extension(""));
}

static void lossless_codecs_keep_every_sample(void **state)
{
    static const uint32_t sizes[][2] = {{1, 1}, {1, 9}, {13, 1}, {7, 5}, {64, 33}};
    size_t tried = 0;
    for (size_t i = 0; dl2_codec_at(i); i++) {
        if (!dl2_codec_at(i)->encode)
            continue;
        if (dl2_codec_at(i)->lossy)
            continue;
        for (size_t s = 0; s < sizeof sizes / sizeof *sizes; s++) {
            for (uint32_t channels = 1; channels <= 3; channels += 2, tried++) {
                sample_picture(&in, sizes[s][0], sizes[s][1], channels);
                encode_ok(dl2_codec_at(i), &in, 1, &file);
                assert_string_equal(dl2_codec_sniff(file.data, file.size)->extension,
                                    dl2_codec_at(i)->extension);
                decode_ok(&file, &as_is, &out);
                assert_true(isinf(psnr(&in, &out)));
            }
        }
    }
    assert_true(tried >= 10);
}

/* More quality is more bytes and fewer errors; the same call gives the
 * same bytes; gray stays gray. */
static void quality_rises_with_quality(void **state)
{
    static const int qualities[] = {1, 10, 30, 50, 75, 90, 100};
    for (size_t i = 0; dl2_codec_at(i); i++) {
        if (!dl2_codec_at(i)->encode)
            continue;
        const struct dl2_codec *codec = dl2_codec_at(i);
        if (!codec->lossy)
            continue;
        for (uint32_t channels = 1; channels <= 3; channels += 2) {
            size_t size = 0;
            double score = 0;
            sample_picture(&in, 160, 120, channels);
            for (size_t q = 0; q < sizeof qualities / sizeof *qualities; q++) {
                /* Below 6 libjxl halves the image and codes that better. */
                if (!strcmp(codec->name, "jxl") && qualities[q] < 6)
                    continue;
                encode_ok(codec, &in, qualities[q], &file);
                encode_ok(codec, &in, qualities[q], &again);
                assert_int_equal(file.size, again.size);
                assert_memory_equal(file.data, again.data, file.size);
                struct dl2_image_info info;
                assert_int_equal(dl2_image_read_info(file.data, file.size, &info, NULL), DL2_OK);
                bool has_gray = strcmp(codec->name, "webp") != 0;
                assert_int_equal(info.channels, has_gray ? channels : 3);
                assert_int_equal(info.width, 160);
                assert_int_equal(info.height, 120);
                assert_int_equal(info.bits, 8);
                assert_int_equal(info.orientation, 1);
                assert_false(info.alpha);
                struct dl2_decode_options options = DL2_DECODE_DEFAULTS;
                options.channels = channels;
                decode_ok(&file, &options, &out);
                double now = psnr(&in, &out);
                if (file.size <= size || now <= score)
                    fail_msg("%s %d: %zu bytes and %g dB after %zu and %g", codec->name,
                             qualities[q], file.size, now, size, score);
                size = file.size;
                score = now;
            }
            assert_true(score > (channels == 1 ? 38 : 33));
        }
    }
}

static void every_size_can_be_encoded(void **state)
{
    static const uint32_t sizes[][2] = {{1, 1}, {2, 1}, {1, 3}, {5, 4}, {17, 31}, {300, 2}};
    for (size_t i = 0; dl2_codec_at(i); i++) {
        if (!dl2_codec_at(i)->encode)
            continue;
        for (size_t s = 0; s < sizeof sizes / sizeof *sizes; s++) {
            for (uint32_t channels = 1; channels <= 3; channels += 2) {
                struct dl2_decode_options options = DL2_DECODE_DEFAULTS;
                options.channels = channels;
                sample_picture(&in, sizes[s][0], sizes[s][1], channels);
                encode_ok(dl2_codec_at(i), &in, 90, &file);
                decode_ok(&file, &options, &out);
                if (psnr(&in, &out) < 14)
                    fail_msg("%s %ux%ux%u: %g dB", dl2_codec_at(i)->name, sizes[s][0], sizes[s][1],
                             channels, psnr(&in, &out));
            }
        }
    }
}

static void parameters_say_what_quality_came_to(void **state)
{
    struct dl2_encode_options options = DL2_ENCODE_DEFAULTS;
    for (size_t i = 0; dl2_codec_at(i); i++) {
        if (!dl2_codec_at(i)->encode)
            continue;
        const struct dl2_codec *codec = dl2_codec_at(i);
        options.quality = 50;
        json_t *parameters = codec->encoder_parameters(&options);
        assert_true(json_object_size(parameters) >= 1);
        if (!strcmp(codec->name, "avif"))
            assert_int_equal(json_integer_value(json_object_get(parameters, "cq-level")), 32);
        if (!strcmp(codec->name, "jp2"))
            assert_true(json_real_value(json_object_get(parameters, "tcp_distoratio")) == 32);
        json_decref(parameters);
    }
}

/* A higher effort is smaller, or no larger, with every codec. */
static void more_effort_is_smaller(void **state)
{
    sample_picture(&in, 96, 80, 3);
    for (size_t i = 0; dl2_codec_at(i); i++) {
        const struct dl2_codec *const codec = dl2_codec_at(i);
        struct dl2_encode_options options = DL2_ENCODE_DEFAULTS;
        if (!codec->encode || codec->max_effort < 1)
            continue;
        options.effort = 0;
        assert_int_equal(dl2_image_encode(codec, &in, &options, &file, NULL), DL2_OK);
        const size_t least = file.size;
        options.effort = codec->max_effort;
        assert_int_equal(dl2_image_encode(codec, &in, &options, &file, NULL), DL2_OK);
        if (file.size > least)
            fail_msg("%s: %zu bytes with effort 0, %zu with %d", codec->name, least, file.size,
                     codec->max_effort);
    }
}

/* A target of 22 + q/5 dB is met to within a decibel and a half on a picture with some noise. */
static void jp2_meets_its_target(void **state)
{
    const struct dl2_codec *jp2 = dl2_codec_find("jp2");
    if (!jp2)
        skip();
    sample_picture(&in, 256, 192, 1);
    for (int quality = 60; quality <= 100; quality += 20) {
        encode_ok(jp2, &in, quality, &file);
        decode_ok(&file, &as_is, &out);
        assert_true(fabs(psnr(&in, &out) - (22 + quality / 5.0)) < 1.5);
    }
}

static void wrong_options_are_refused(void **state)
{
    const struct dl2_image none = DL2_IMAGE_INIT;
    sample_picture(&in, 8, 8, 3);
    for (size_t i = 0; dl2_codec_at(i); i++) {
        if (!dl2_codec_at(i)->encode)
            continue;
        const struct dl2_codec *codec = dl2_codec_at(i);
        struct dl2_encode_options options = DL2_ENCODE_DEFAULTS;
        assert_int_equal(dl2_image_encode(codec, &none, &options, &file, NULL), DL2_ERR_ARGUMENT);
        options.effort = codec->max_effort + 1;
        assert_int_equal(dl2_image_encode(codec, &in, &options, &file, NULL), DL2_ERR_ARGUMENT);
        options.effort = -2;
        assert_int_equal(dl2_image_encode(codec, &in, &options, &file, NULL), DL2_ERR_ARGUMENT);
        options = (struct dl2_encode_options)DL2_ENCODE_DEFAULTS;
        options.subsampling = "411";
        if (codec->has_subsampling)
            assert_int_equal(dl2_image_encode(codec, &in, &options, &file, NULL), DL2_ERR_ARGUMENT);
        options = (struct dl2_encode_options)DL2_ENCODE_DEFAULTS;
        for (int quality = 0; codec->lossy && quality <= 101; quality += 101) {
            options.quality = quality;
            assert_int_equal(dl2_image_encode(codec, &in, &options, &file, NULL), DL2_ERR_ARGUMENT);
        }
    }
    const struct dl2_codec *webp = dl2_codec_find("webp");
    if (webp) {
        struct dl2_encode_options options = DL2_ENCODE_DEFAULTS;
        sample_picture(&in, 16384, 1, 1);
        assert_int_equal(dl2_image_encode(webp, &in, &options, &file, NULL), DL2_ERR_LIMIT);
    }
}

/* Subsampling and effort do what they say. */
static void jpeg_is_what_others_make(void **state)
{
#ifdef HAVE_JPEG
    const struct dl2_codec *jpeg = dl2_codec_find("jpeg");
    for (uint32_t channels = 1; channels <= 3; channels += 2) {
        sample_picture(&in, 123, 77, channels);
        for (int quality = 5; quality <= 95; quality += 45) {
            const struct dl2_encode_options as_cjpeg = {
                .quality = quality, .effort = 0, .restart = "none"};
            assert_int_equal(dl2_image_encode(jpeg, &in, &as_cjpeg, &file, NULL), DL2_OK);
            sample_plain_jpeg(&in, quality, &again);
            assert_int_equal(file.size, again.size);
            assert_memory_equal(file.data, again.data, file.size);
        }
    }
    struct dl2_encode_options options = DL2_ENCODE_DEFAULTS;
    options.effort = 0;
    assert_int_equal(dl2_image_encode(jpeg, &in, &options, &again, NULL), DL2_OK);
    for (options.effort = 1; options.effort <= 2; options.effort++) {
        assert_int_equal(dl2_image_encode(jpeg, &in, &options, &file, NULL), DL2_OK);
        assert_true(file.size < again.size);
    }
    options.restart = "tiles"; /* can't be had of a progressive one */
    options.effort = 2;
    assert_int_equal(dl2_image_encode(jpeg, &in, &options, &file, NULL), DL2_ERR_ARGUMENT);
    options.restart = "some";
    assert_int_equal(dl2_image_encode(jpeg, &in, &options, &file, NULL), DL2_ERR_ARGUMENT);
    options.restart = NULL;
    options.effort = 0;
    options.subsampling = "444";
    assert_int_equal(dl2_image_encode(jpeg, &in, &options, &file, NULL), DL2_OK);
    assert_true(file.size > again.size);
#else
    skip();
#endif
}

static void a_truncated_file_is_an_error(void **state)
{
    for (size_t i = 0; dl2_codec_at(i); i++) {
        if (!dl2_codec_at(i)->encode)
            continue;
        const struct dl2_codec *codec = dl2_codec_at(i);
        for (uint32_t channels = 1; channels <= 3; channels += 2) {
            sample_picture(&in, 90, 70, channels);
            for (int effort = -1; effort <= (codec->max_effort < 2 ? codec->max_effort : 2);
                 effort++) {
                struct dl2_encode_options options = DL2_ENCODE_DEFAULTS;
                options.effort = effort;
                assert_int_equal(dl2_image_encode(codec, &in, &options, &file, NULL), DL2_OK);
                assert_int_equal(decode_status(file.data, file.size, &as_is), DL2_OK);
                for (size_t part = 0; part < 64; part++) {
                    size_t size = file.size * part / 64;
                    int status = decode_status(file.data, size, &as_is);
                    if (status == DL2_OK)
                        fail_msg("%s effort %d: %zu of %zu bytes were enough", codec->name, effort,
                                 size, file.size);
                }
            }
        }
    }
}

/* A JPEG file may lack its end marker, as some cameras' do, but not a pixel. */
static void jpeg_without_end_marker(void **state)
{
    const struct dl2_codec *jpeg = dl2_codec_find("jpeg");
    if (!jpeg)
        skip();
    struct dl2_encode_options options = DL2_ENCODE_DEFAULTS;
    sample_picture(&in, 90, 70, 3);
    encode_ok(jpeg, &in, 80, &file);
    assert_int_equal(decode_status(file.data, file.size - 2, &as_is), DL2_OK);
    assert_int_equal(decode_status(file.data, file.size - 8, &as_is), DL2_ERR_FORMAT);
    options.effort = 2; /* of a progressive one nobody can say what is missing */
    assert_int_equal(dl2_image_encode(jpeg, &in, &options, &file, NULL), DL2_OK);
    assert_int_equal(decode_status(file.data, file.size - 2, &as_is), DL2_ERR_FORMAT);
}

static void limits_hold(void **state)
{
    sample_picture(&in, 50, 40, 3);
    for (size_t i = 0; dl2_codec_at(i); i++) {
        if (!dl2_codec_at(i)->encode)
            continue;
        struct dl2_decode_options options = DL2_DECODE_DEFAULTS;
        encode_ok(dl2_codec_at(i), &in, 50, &file);
        options.max_pixels = 2000;
        assert_int_equal(decode_status(file.data, file.size, &options), DL2_OK);
        options.max_pixels = 1999;
        assert_int_equal(decode_status(file.data, file.size, &options), DL2_ERR_LIMIT);
    }
    static const char bomb[] = "P6 65535 65535 255\n";
    assert_int_equal(decode_status((const uint8_t *)bomb, sizeof bomb, &as_is), DL2_ERR_LIMIT);
    const struct dl2_codec *jpeg = dl2_codec_find("jpeg");
    if (jpeg) {
        /* The same file with 65500 x 65500 in its SOF0 segment. */
        encode_ok(jpeg, &in, 50, &file);
        for (size_t at = 0; at + 9 < file.size; at++) {
            if (file.data[at] == 0xff && file.data[at + 1] == 0xc0) {
                memcpy(file.data + at + 5, "\xff\xdc\xff\xdc", 4);
                break;
            }
        }
        assert_int_equal(decode_status(file.data, file.size, &as_is), DL2_ERR_LIMIT);
    }
}

static void what_is_no_image_is_named(void **state)
{
    static const char text[] = "This is no image, whatever its name says. This is no image.";
    struct dl2_error error = DL2_ERROR_INIT;
    struct dl2_image_info info;
    assert_int_equal(decode_status((const uint8_t *)text, sizeof text, &as_is),
                     DL2_ERR_UNSUPPORTED);
    assert_int_equal(decode_status((const uint8_t *)text, 0, &as_is), DL2_ERR_FORMAT);
    assert_int_equal(dl2_image_read_info((const uint8_t *)"GIF89a....", 10, &info, &error),
                     DL2_ERR_UNSUPPORTED);
    assert_non_null(strstr(error.message, "GIF"));
}

static void exif_is_read_with_care(void **state)
{
    uint8_t block[64];
    for (int big = 0; big < 2; big++) {
        for (int orientation = 0; orientation <= 9; orientation++) {
            size_t size = sample_exif(block, orientation, big);
            int expected = orientation >= 1 && orientation <= 8 ? orientation : 1;
            assert_int_equal(dl2_exif_orientation(block, size), expected);
            assert_int_equal(dl2_exif_orientation(block + 6, size - 6), expected);
            /* The entry ends at byte 28; what comes before is needed in full. */
            for (size_t cut = 0; cut < 28; cut++) {
                uint8_t *copy = malloc(cut ? cut : 1);
                assert_non_null(copy);
                memcpy(copy, block, cut);
                assert_int_equal(dl2_exif_orientation(copy, cut), 1);
                free(copy);
            }
        }
        size_t size = sample_exif(block, 6, big);
        memset(block + 10, 0xff, 4); /* the offset of the first directory */
        assert_int_equal(dl2_exif_orientation(block, size), 1);
    }
}

#ifdef HAVE_PNG
/* What TIFF 6.0 says a viewer shows of the pixels 1 2 3 / 4 5 6 as coded. */
static const struct {
    uint32_t width;
    uint8_t pixels[6];
} upright[9] = {
    {0, {0}},
    {3, {1, 2, 3, 4, 5, 6}},
    {3, {3, 2, 1, 6, 5, 4}},
    {3, {6, 5, 4, 3, 2, 1}},
    {3, {4, 5, 6, 1, 2, 3}},
    {2, {1, 4, 2, 5, 3, 6}},
    {2, {4, 1, 5, 2, 6, 3}},
    {2, {6, 3, 5, 2, 4, 1}},
    {2, {3, 6, 2, 5, 1, 4}},
};

static void orientation_is_applied(void **state)
{
    static const uint16_t coded[6] = {1, 2, 3, 4, 5, 6};
    for (int orientation = 1; orientation <= 8; orientation++) {
        struct sample_png options = {3, 2, 0, 8, false, -1, orientation, coded};
        struct dl2_decode_options keep = DL2_DECODE_DEFAULTS;
        sample_png(&options, &file);
        decode_ok(&file, &as_is, &out);
        assert_int_equal(out.width, upright[orientation].width);
        assert_int_equal(out.height, 6 / upright[orientation].width);
        assert_memory_equal(out.data, upright[orientation].pixels, 6);
        keep.keep_orientation = true;
        decode_ok(&file, &keep, &out);
        assert_int_equal(out.width, 3);
        assert_memory_equal(out.data, upright[1].pixels, 6);
    }
}
#endif

static void orientation_of_jpeg_is_found(void **state)
{
    const struct dl2_codec *jpeg = dl2_codec_find("jpeg");
    if (!jpeg)
        skip();
    for (int orientation = 1; orientation <= 8; orientation++) {
        struct dl2_image_info info;
        sample_picture(&in, 20, 10, 3);
        encode_ok(jpeg, &in, 75, &again);
        sample_jpeg_with_exif(&again, orientation, &file);
        assert_int_equal(dl2_image_read_info(file.data, file.size, &info, NULL), DL2_OK);
        assert_int_equal(info.orientation, orientation);
        assert_int_equal(info.width, 20);
        decode_ok(&file, &as_is, &out);
        assert_int_equal(out.width, orientation >= 5 ? 10 : 20);
        assert_int_equal(out.height, orientation >= 5 ? 20 : 10);
    }
}

#if defined(HAVE_PNG) || defined(HAVE_WEBP)
static int blend(int value, int alpha, int background)
{
    return (int)floor((value * alpha + background * (255 - alpha)) / 255.0 + 0.5);
}
#endif

#ifdef HAVE_PNG
static void alpha_lies_over_the_background(void **state)
{
    struct dl2_decode_options options = {.background = {10, 200, 30}};
    static const uint16_t rgba[8] = {255, 128, 0, 100, 20, 40, 60, 0};
    for (int interlaced = 0; interlaced < 2; interlaced++) {
        struct sample_png png = {2, 1, 6, 8, interlaced, -1, 0, rgba};
        sample_png(&png, &file);
        decode_ok(&file, &options, &out);
        assert_int_equal(out.channels, 3);
        for (int p = 0; p < 2; p++) {
            for (int c = 0; c < 3; c++)
                assert_int_equal(out.data[3 * p + c],
                                 blend(rgba[4 * p + c], rgba[4 * p + 3], options.background[c]));
        }
    }
    /* By default on white, as viewers show it. */
    decode_ok(&file, &as_is, &out);
    assert_int_equal(out.data[5], 255);
    /* Gray with alpha stays gray, over the background's luma. */
    static const uint16_t gray[4] = {80, 255, 80, 0};
    struct sample_png png = {2, 1, 4, 8, false, -1, 0, gray};
    sample_png(&png, &file);
    decode_ok(&file, &options, &out);
    assert_int_equal(out.channels, 1);
    assert_int_equal(out.data[0], 80);
    assert_int_equal(out.data[1], (int)floor(0.299 * 10 + 0.587 * 200 + 0.114 * 30 + 0.5));
}

/* A palette's numbers, in a rectangle and in all of it. */
static void expect_indices(const struct dl2_bytes *png, const uint16_t *samples)
{
    static const uint32_t rectangles[][4] = {{0, 0, 10, 9}, {3, 2, 5, 6}};
    struct dl2_decoder *decoder;
    assert_int_equal(dl2_decoder_create(&decoder, NULL), DL2_OK);
    for (size_t r = 0; r < 2; r++) {
        const uint32_t *at = rectangles[r];
        struct dl2_decode_request request = DL2_DECODE_REQUEST_DEFAULTS;
        struct dl2_image_info info;
        struct dl2_raster raster;
        request.indices = true;
        request.x = at[0];
        request.y = at[1];
        request.width = at[2];
        request.height = at[3];
        assert_int_equal(dl2_decoder_open(decoder, png->data, png->size, 0, &info, NULL), DL2_OK);
        assert_true(info.palette);
        assert_int_equal(dl2_decoder_decode(decoder, &request, &raster, NULL), DL2_OK);
        assert_int_equal(raster.color, DL2_COLOR_GRAY);
        const struct dl2_plane *plane = &raster.planes[0];
        for (uint32_t y = at[1]; y < at[1] + at[3]; y++)
            for (uint32_t x = at[0]; x < at[0] + at[2]; x++)
                assert_int_equal(plane->data[(y - plane->y) * plane->stride + x - plane->x],
                                 samples[10 * y + x]);
    }
    dl2_decoder_destroy(decoder);
}

static void png_of_every_kind_becomes_8_bits(void **state)
{
    uint16_t samples[10 * 9];
    static const int depths[] = {1, 2, 4, 8, 16};
    for (int interlaced = 0; interlaced < 2; interlaced++) {
        for (size_t d = 0; d < 5; d++) {
            int bits = depths[d], maximum = (1 << bits) - 1;
            for (int i = 0; i < 90; i++)
                samples[i] = (uint16_t)((i * 7919) & maximum);
            struct sample_png png = {10, 9, 0, bits, interlaced, -1, 0, samples};
            sample_png(&png, &file);
            struct dl2_image_info info;
            assert_int_equal(dl2_image_read_info(file.data, file.size, &info, NULL), DL2_OK);
            assert_int_equal(info.bits, bits);
            decode_ok(&file, &as_is, &out);
            assert_int_equal(out.channels, 1);
            for (int i = 0; i < 90; i++)
                assert_int_equal(out.data[i], (int)floor(samples[i] * 255.0 / maximum + 0.5));
            if (bits == 16)
                continue;
            png.color_type = 3;
            png.transparent = 1;
            sample_png(&png, &file);
            struct dl2_decode_options options = {.background = {1, 2, 3}};
            decode_ok(&file, &options, &out);
            assert_int_equal(out.channels, 3);
            for (int i = 0; i < 90; i++) {
                int p = samples[i];
                assert_int_equal(out.data[3 * i], p == 1 ? 1 : p);
                assert_int_equal(out.data[3 * i + 1], p == 1 ? 2 : 2 * p & 255);
                assert_int_equal(out.data[3 * i + 2], p == 1 ? 3 : 255 - p);
            }
            expect_indices(&file, samples);
        }
    }
}
#endif

static void expect_color(const uint8_t *pixel, int red, int green, int blue)
{
    assert_int_equal(pixel[0], red);
    assert_int_equal(pixel[1], green);
    assert_int_equal(pixel[2], blue);
}

/* Every depth, in both directions, packed and not; what is cut off anywhere is noticed. */
static void bmp_of_every_kind(void **state)
{
    enum { WIDTH = 10, HEIGHT = 9, PIXELS = WIDTH * HEIGHT };
    static const uint32_t depths[] = {1, 2, 4, 8, 16, 24, 32};
    for (size_t d = 0; d < sizeof depths / sizeof *depths; d++)
        for (int kind = 0; kind < (depths[d] == 4 || depths[d] == 8 ? 3 : 2); kind++) {
            const uint32_t bits = depths[d], colors = bits < 3 ? 1u << bits : (1u << bits % 32) - 3;
            uint32_t numbers[PIXELS];
            for (uint32_t i = 0; i < PIXELS; i++)
                numbers[i] = i * 2654435761u & (uint32_t)((UINT64_C(1) << bits) - 1);
            for (uint32_t y = 0; kind == 2 && y < HEIGHT; y++)
                if (bits == 8)
                    numbers[y * WIDTH + 1] = numbers[y * WIDTH];
            const struct sample_bmp bmp = {WIDTH, HEIGHT, bits, kind == 1, kind == 2, numbers};
            sample_bmp(&bmp, &file);
            struct dl2_image_info info;
            assert_int_equal(dl2_image_read_info(file.data, file.size, &info, NULL), DL2_OK);
            assert_int_equal(info.bits, bits <= 8 ? bits : bits == 16 ? 5 : 8);
            decode_ok(&file, &as_is, &out);
            assert_int_equal(out.channels, 3);
            if (kind == 2)
                numbers[WIDTH + 2] = 0;
            for (uint32_t i = 0; i < PIXELS; i++) {
                const int n = (int)numbers[i];
                const uint32_t v = numbers[i];
                if (bits <= 8 && v >= colors)
                    expect_color(out.data + 3 * i, n, n, n);
                else if (bits <= 8)
                    expect_color(out.data + 3 * i, n, 2 * n & 255, 255 - n);
                else if (bits == 16)
                    expect_color(out.data + 3 * i, (int)((v >> 10 & 31) * 255 / 31),
                                 (int)((v >> 5 & 31) * 255 / 31), (int)((v & 31) * 255 / 31));
                else
                    expect_color(out.data + 3 * i, v >> 16 & 255, v >> 8 & 255, v & 255);
            }
            /* The last row's filling and the end of an RLE image may be missing, not pixels. */
            for (size_t size = 0; size + 8 < file.size; size++)
                assert_true(decode_status(file.data, size, &as_is) < 0);
        }
}

#ifdef HAVE_GIF
static void gif_has_its_first_image(void **state)
{
    enum { WIDTH = 29, HEIGHT = 23, PIXELS = WIDTH * HEIGHT };
    const struct dl2_decode_options over = {.background = {1, 2, 3}};
    uint8_t numbers[PIXELS];
    for (uint32_t i = 0; i < PIXELS; i++)
        numbers[i] = (uint8_t)((i * 2654435761u >> 9) % 127);
    for (uint32_t kind = 0; kind < 4; kind++) {
        const int transparent = kind / 2 ? 77 : -1;
        const struct sample_gif gif = {WIDTH, HEIGHT, 1 + kind / 2, kind % 2, transparent, numbers};
        struct dl2_image_info info;
        sample_gif(&gif, &file);
        assert_int_equal(dl2_image_read_info(file.data, file.size, &info, NULL), DL2_OK);
        assert_true(info.has_more == (kind / 2 > 0));
        assert_true(info.alpha); /* of the canvas around it */
        decode_ok(&file, &over, &out);
        assert_int_equal(out.width, WIDTH + 2);
        assert_int_equal(out.height, HEIGHT + 1);
        for (uint32_t y = 0; y < out.height; y++)
            for (uint32_t x = 0; x < out.width; x++) {
                const bool inside = y >= 1 && x >= 1 && x <= WIDTH;
                const int n = inside ? numbers[(y - 1) * WIDTH + x - 1] : -1;
                const uint8_t *pixel = out.data + y * out.stride + 3 * x;
                if (n < 0 || n == transparent)
                    expect_color(pixel, 1, 2, 3);
                else
                    expect_color(pixel, n, 2 * n & 255, 255 - n);
            }
        for (size_t size = 0; gif.images == 1 && size + 4 < file.size; size++)
            assert_true(decode_status(file.data, size, &as_is) < 0);
    }
}
#endif

#ifdef HAVE_TIFF
/* The samples themselves, over 10 of 255, upright. */
static void expect_tiff_at_16_bits(const struct sample_tiff *tiff,
                                   const struct dl2_decode_options *over, uint32_t colors)
{
    struct dl2_deep_image deep = {.width = 0};
    assert_int_equal(dl2_image_decode_deep(file.data, file.size, over, &deep, NULL),
                     tiff->bits == 16);
    for (uint32_t i = 0; i < tiff->width * tiff->height * colors && tiff->bits == 16; i++) {
        const uint32_t x = i / colors % tiff->width, y = i / colors / tiff->width;
        const uint16_t *pixel = tiff->samples + (size_t)(i / colors) * tiff->channels;
        const double alpha = tiff->channels == colors ? 1 : pixel[colors] / 65535.0;
        const double wanted = pixel[i % colors] * alpha + 2570 * (1 - alpha);
        const bool turned = tiff->orientation == 6;
        const uint16_t *row = dl2_deep_row(&deep, turned ? x : y);
        const uint32_t column = turned ? tiff->height - 1 - y : x;
        assert_int_equal(deep.width, turned ? tiff->height : tiff->width);
        assert_true(fabs(row[column * colors + i % colors] - wanted) <= 0.5 + 1e-9);
    }
    dl2_bytes_free(&deep.bytes);
}

/* Gray and color, 8 and 16 bits, with opacities and without, in both byte orders, upright. */
static void tiff_has_its_first_page(void **state)
{
    enum { WIDTH = 7, HEIGHT = 5, SAMPLES = WIDTH * HEIGHT * 4 };
    const struct dl2_decode_options over = {.background = {10, 10, 10}};
    uint16_t samples[SAMPLES];
    for (int kind = 0; kind < 16; kind++) {
        const int bits = kind & 1 ? 16 : 8, channels = kind / 2 % 4 + 1,
                  colors = channels > 2 ? 3 : 1;
        for (uint32_t i = 0; i < SAMPLES; i++)
            samples[i] = (uint16_t)(i * 2654435761u >> 16) >> (16 - bits);
        const struct sample_tiff tiff = {WIDTH,          HEIGHT,       (uint32_t)channels,
                                         (uint32_t)bits, 1 + kind / 8, 1 + 5 * (kind / 8),
                                         kind % 3,       samples};
        struct dl2_image_info info;
        sample_tiff(&tiff, &file);
        assert_int_equal(dl2_image_read_info(file.data, file.size, &info, NULL), DL2_OK);
        assert_int_equal(info.channels, colors);
        assert_int_equal(info.bits, bits);
        assert_true(info.has_more == (kind / 8 > 0));
        assert_true(info.alpha == (channels % 2 == 0));
        assert_int_equal(info.orientation, tiff.orientation);
        decode_ok(&file, &over, &out);
        assert_int_equal(out.width, tiff.orientation == 6 ? HEIGHT : WIDTH);
        for (int y = 0; y < HEIGHT; y++)
            for (int x = 0; x < WIDTH; x++)
                for (int c = 0; c < colors; c++) {
                    const uint16_t *pixel = samples + (y * WIDTH + x) * channels;
                    const size_t at =
                        tiff.orientation == 6
                            ? (size_t)x * out.stride + (size_t)((HEIGHT - 1 - y) * colors)
                            : (size_t)y * out.stride + (size_t)(x * colors);
                    const double scale = bits == 16 ? 257 : 1;
                    const double alpha = channels % 2 ? 1 : pixel[colors] / scale / 255;
                    const double wanted = pixel[c] / scale * alpha + 10 * (1 - alpha);
                    if (fabs(out.data[at + (size_t)c] - wanted) >
                        (bits == 16 || alpha < 1 ? 1.5 : 0))
                        fail_msg("kind %d: %d instead of %g", kind, out.data[at + (size_t)c],
                                 wanted);
                }
        expect_tiff_at_16_bits(&tiff, &over, (uint32_t)colors);
        for (size_t size = 0; tiff.pages == 1 && size < file.size; size++)
            assert_true(decode_status(file.data, size, &as_is) < 0);
    }
}
#endif

#ifdef HAVE_WEBP
static void alpha_of_webp(void **state)
{
    struct dl2_decode_options options = {.background = {10, 200, 30}};
    static const uint8_t webp[8] = {255, 128, 0, 100, 20, 40, 60, 255};
    sample_webp_with_alpha(webp, 2, 1, &file);
    decode_ok(&file, &options, &out);
    for (int c = 0; c < 3; c++) {
        assert_int_equal(out.data[c], blend(webp[c], 100, options.background[c]));
        assert_int_equal(out.data[3 + c], webp[4 + c]);
    }
}
#endif

static void cmyk_is_converted(void **state)
{
#ifdef HAVE_JPEG
    static const struct {
        uint8_t inks[4], rgb[3];
    } cases[] = {{{255, 0, 0, 0}, {0, 255, 255}},
                 {{0, 255, 255, 0}, {255, 0, 0}},
                 {{0, 0, 0, 255}, {0, 0, 0}},
                 {{0, 0, 0, 0}, {255, 255, 255}},
                 {{0, 0, 128, 100}, {155, 155, 77}}};
    for (int adobe = 0; adobe < 2; adobe++) {
        for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
            sample_cmyk_jpeg(cases[i].inks, adobe, &file);
            decode_ok(&file, &as_is, &out);
            assert_int_equal(out.channels, 3);
            for (int c = 0; c < 3; c++)
                assert_in_range(out.data[c] + 3, cases[i].rgb[c], cases[i].rgb[c] + 6);
        }
    }
#else
    skip();
#endif
}

#ifdef HAVE_JP2
/* A color specification of a number, with its length; behind it a profile of `type`. */
#define NUMBERED(number) "\7\1\0\0\0\0\0" number
#define PROFILE(method, type)                                                                      \
    "\x17" method "\0\0"                                                                           \
    "0123456789abcdef" type
#define U32(byte) "\0\0\0" byte

struct jp2_color {
    const char *colors;
    size_t size;
    uint32_t components;
    uint8_t sample[4], rgb[3];
};

#define COLORS(text) text, sizeof(text) - 1

static void make_jp2(const struct jp2_color *color)
{
    enum { SIDE = 8 };
    uint8_t samples[SIDE * SIDE * 4];
    for (size_t i = 0; i < (size_t)SIDE * SIDE * color->components; i++)
        samples[i] = color->sample[i % color->components];
    const struct sample_jp2 jp2 = {SIDE,        SIDE, color->components, samples, color->colors,
                                   color->size, NULL};
    sample_jp2(&jp2, &file);
}

/* CIELab of colors of sRGB: Lindbloom's calculator. */
static void jp2_colors_are_converted(void **state)
{
    static const struct jp2_color cases[] = {
        {COLORS(NUMBERED("\x10")), 3, {200, 100, 50}, {200, 100, 50}},
        {COLORS(NUMBERED("\x11")), 1, {77}, {77, 77, 77}},
        {COLORS(NUMBERED("\x12")), 3, {100, 128, 228}, {240, 29, 100}},
        {COLORS(PROFILE("\2", "RGB ")), 3, {200, 100, 50}, {200, 100, 50}},
        /* Inks, by number, and behind what is not for every reader, and by profiles alone. */
        {COLORS(NUMBERED("\x0c")), 4, {0, 0, 128, 100}, {155, 155, 77}},
        {COLORS(PROFILE("\3", "CMYK") NUMBERED("\x0c")), 4, {0, 0, 128, 100}, {155, 155, 77}},
        {COLORS("\7\5\0\0\0\0\0\0" NUMBERED("\x0c")), 4, {255, 0, 0, 0}, {0, 255, 255}},
        {COLORS(PROFILE("\2", "CMYK")), 4, {0, 0, 128, 100}, {155, 155, 77}},
        {COLORS(PROFILE("\3", "CMYK")), 4, {0, 0, 128, 100}, {155, 155, 77}},
        /* L*, a*, b*: white, red and green under D50; red under D65 with ranges of its own. */
        {COLORS(NUMBERED("\x0e")), 3, {255, 128, 96}, {255, 255, 255}},
        {COLORS(NUMBERED("\x0e")), 3, {128, 128, 96}, {120, 120, 120}},
        {COLORS(NUMBERED("\x0e")), 3, {138, 249, 185}, {255, 0, 0}},
        {COLORS(NUMBERED("\x0e")), 3, {224, 9, 199}, {0, 255, 0}},
        {COLORS("\x23\1\0\0" U32("\x0e") U32("\x64") U32("\0") U32("\xff") U32("\x80") U32("\xff")
                    U32("\x80") "\0D65"),
         3,
         {136, 208, 195},
         {255, 0, 0}},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        make_jp2(&cases[i]);
        decode_ok(&file, &as_is, &out);
        for (uint32_t c = 0; c < out.channels; c++)
            if (abs(out.data[c] - cases[i].rgb[c]) > 5)
                fail_msg("case %zu: %u,%u,%u, not %u,%u,%u", i, out.data[0], out.data[1],
                         out.data[2], cases[i].rgb[0], cases[i].rgb[1], cases[i].rgb[2]);
    }
}

static void jp2_colors_are_refused_by_name(void **state)
{
    static const struct {
        struct jp2_color color;
        const char *name;
    } cases[] = {
        {{COLORS(NUMBERED("\x18")), 3, {1, 2, 3}, {0}}, "e-YCC"},
        {{COLORS(NUMBERED("\x0d")), 4, {1, 2, 3, 4}, {0}}, "YCCK"},
        {{COLORS(NUMBERED("\x63")), 3, {1, 2, 3}, {0}}, "number 99"},
        {{COLORS(PROFILE("\2", "Lab ")), 3, {1, 2, 3}, {0}}, "CIELab"},
        {{COLORS(PROFILE("\2", "6CLR")), 3, {1, 2, 3}, {0}}, "6CLR"},
        {{COLORS(NUMBERED("\x0c")), 3, {1, 2, 3}, {0}}, "CMYK of 3 components"},
        {{COLORS(NUMBERED("\x0e")), 4, {1, 2, 3, 4}, {0}}, "CIELab of 4 components"},
        {{COLORS("\x23\1\0\0" U32("\x0e") U32("\x64") U32("\0") U32("\xff") U32("\x80") U32("\xff")
                     U32("\x80") "\0\0SA"),
          3,
          {1, 2, 3},
          {0}},
         "light"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct dl2_error error = DL2_ERROR_INIT;
        struct dl2_image_info info;
        make_jp2(&cases[i].color);
        assert_int_equal(dl2_image_read_info(file.data, file.size, &info, NULL),
                         DL2_ERR_UNSUPPORTED);
        assert_int_equal(dl2_image_decode(file.data, file.size, &as_is, &out, &scratch, &error),
                         DL2_ERR_UNSUPPORTED);
        if (!strstr(error.message, cases[i].name))
            fail_msg("'%s' does not name %s", error.message, cases[i].name);
    }
}

/* The fourth component is an opacity, unless the channel definitions say that it is none. */
static void jp2_channels_have_their_meaning(void **state)
{
    static const uint8_t definitions[] = "\0\0\0\x22"
                                         "cdef\0\4\0\0\0\0\0\1\0\1\0\0\0\2\0\2\0\0\0\3\0\3";
    static const uint8_t kinds[][2] = {{0, 1}, {0, 2}, {0xff, 0xff}};
    static const struct jp2_color infrared = {
        COLORS(NUMBERED("\x10")), 4, {200, 100, 50, 0}, {200, 100, 50}};
    for (size_t i = 0; i <= sizeof kinds / sizeof *kinds; i++) {
        struct dl2_decode_options options = DL2_DECODE_DEFAULTS;
        struct dl2_image_info info;
        make_jp2(&infrared);
        for (size_t at = 0; i && at + 8 < file.size; at++)
            if (!memcmp(file.data + at, "jp2h", 4)) {
                uint8_t box[0x22] = {0};
                memcpy(box, definitions, sizeof definitions - 1);
                memcpy(box + sizeof definitions - 1, kinds[i - 1], 2);
                file.data[at - 1] += sizeof box; /* the outer box's length */
                assert_int_equal(dl2_bytes_insert(&file, at + 4, box, sizeof box, NULL), DL2_OK);
                break;
            }
        const bool none = i == 3;
        assert_int_equal(dl2_image_read_info(file.data, file.size, &info, NULL), DL2_OK);
        assert_int_equal(info.left_out, none);
        assert_int_equal(info.alpha, !none);
        assert_int_equal(dl2_image_decode(file.data, file.size, &options, &out, &scratch, NULL),
                         none ? DL2_ERR_UNSUPPORTED : DL2_OK);
        options.drop_bands = true;
        decode_ok(&file, &options, &out);
        for (uint32_t c = 0; c < 3; c++) /* with an opacity of 0, the background */
            assert_true(abs(out.data[c] - (none ? infrared.rgb[c] : 255)) <= 5);
    }
}
#endif

static void pnm_headers(void **state)
{
    static const char deep[] = "P6\n#one\n 1 # two\n1\n#three\r1000\n\0\0\1\xf4\3\xe8";
    static const char shallow[] = "P5 3 1 15 \0\007\017";
    struct dl2_bytes text = {(uint8_t *)(uintptr_t)deep, sizeof deep - 1, 0};
    decode_ok(&text, &as_is, &out);
    assert_memory_equal(out.data, "\0\200\377", 3);
    struct dl2_deep_image full = {.width = 0};
    assert_int_equal(dl2_image_decode_deep(text.data, text.size, &as_is, &full, NULL), 1);
    assert_true(full.width == 1 && full.height == 1 && full.channels == 3);
    assert_memory_equal(full.bytes.data, ((const uint16_t[]){0, 32768, 65535}), 6);
    text.size--;
    assert_int_equal(dl2_image_decode_deep(text.data, text.size, &as_is, &full, NULL),
                     DL2_ERR_FORMAT);
    text = (struct dl2_bytes){(uint8_t *)(uintptr_t) "P5 1 1 1000 \3\xe9", 14, 0};
    assert_int_equal(dl2_image_decode_deep(text.data, text.size, &as_is, &full, NULL),
                     DL2_ERR_FORMAT);
    text = (struct dl2_bytes){(uint8_t *)(uintptr_t) "P5 1 1 255 \3", 12, 0};
    assert_int_equal(dl2_image_decode_deep(text.data, text.size, &as_is, &full, NULL), 0);
    dl2_bytes_free(&full.bytes);
    text = (struct dl2_bytes){(uint8_t *)(uintptr_t)shallow, sizeof shallow - 1, 0};
    decode_ok(&text, &as_is, &out);
    assert_memory_equal(out.data, "\0\167\377", 3);
    static const char *const bad[] = {"P5 3 1 15 \1\2", "P5 1 1 15 \20",  "P5 0 1 255 \1",
                                      "P5 1 1 0 \1",    "P5 1 1 65536 1", "P5 99999999999 1 255 1",
                                      "P5 1 1 255",     "P5 x 1 255 1",   "P6 # never ends"};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        assert_int_equal(decode_status((const uint8_t *)bad[i], strlen(bad[i]), &as_is),
                         DL2_ERR_FORMAT);
}

static void channels_are_converted_on_request(void **state)
{
    static const char color[] = "P6 2 1 255\n\377\0\0\12\24\36";
    static const char gray[] = "P5 2 1 255\n\7\377";
    struct dl2_decode_options options = DL2_DECODE_DEFAULTS;
    struct dl2_bytes text = {(uint8_t *)(uintptr_t)color, sizeof color - 1, 0};
    options.channels = 1;
    decode_ok(&text, &options, &out);
    assert_int_equal(out.channels, 1);
    assert_int_equal(out.stride, 2);
    assert_int_equal(out.data[0], 76); /* .299 * 255 */
    assert_int_equal(out.data[1], 18); /* .299 * 10 + .587 * 20 + .114 * 30 */
    text = (struct dl2_bytes){(uint8_t *)(uintptr_t)gray, sizeof gray - 1, 0};
    options.channels = 3;
    decode_ok(&text, &options, &out);
    assert_int_equal(out.channels, 3);
    assert_memory_equal(out.data, "\7\7\7\377\377\377", 6);
    options.channels = 2;
    assert_int_equal(decode_status(text.data, text.size, &options), DL2_ERR_ARGUMENT);
}

static void memory_is_reused(void **state)
{
    for (size_t i = 0; dl2_codec_at(i); i++) {
        if (!dl2_codec_at(i)->encode)
            continue;
        sample_picture(&in, 64, 64, 3);
        encode_ok(dl2_codec_at(i), &in, 50, &file);
        decode_ok(&file, &as_is, &out);
        const uint8_t *block = out.data;
        sample_picture(&in, 32, 48, 3);
        encode_ok(dl2_codec_at(i), &in, 50, &file);
        decode_ok(&file, &as_is, &out);
        assert_ptr_equal(out.data, block);
    }
}

#define TEST(name) cmocka_unit_test_teardown(name, free_all)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(the_table_is_consistent),
        TEST(lossless_codecs_keep_every_sample),
        TEST(quality_rises_with_quality),
        TEST(every_size_can_be_encoded),
        TEST(parameters_say_what_quality_came_to),
        TEST(more_effort_is_smaller),
        TEST(jp2_meets_its_target),
        TEST(wrong_options_are_refused),
        TEST(jpeg_is_what_others_make),
        TEST(a_truncated_file_is_an_error),
        TEST(jpeg_without_end_marker),
        TEST(limits_hold),
        TEST(what_is_no_image_is_named),
        TEST(exif_is_read_with_care),
        TEST(orientation_of_jpeg_is_found),
#ifdef HAVE_PNG
        TEST(orientation_is_applied),
        TEST(alpha_lies_over_the_background),
        TEST(png_of_every_kind_becomes_8_bits),
#endif
        TEST(bmp_of_every_kind),
#ifdef HAVE_GIF
        TEST(gif_has_its_first_image),
#endif
#ifdef HAVE_TIFF
        TEST(tiff_has_its_first_page),
#endif
#ifdef HAVE_WEBP
        TEST(alpha_of_webp),
#endif
        TEST(cmyk_is_converted),
#ifdef HAVE_JP2
        TEST(jp2_colors_are_converted),
        TEST(jp2_colors_are_refused_by_name),
        TEST(jp2_channels_have_their_meaning),
#endif
        TEST(pnm_headers),
        TEST(channels_are_converted_on_request),
        TEST(memory_is_reused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
