/* SPDX-License-Identifier: BSD-2-Clause */
/* Images of one channel and 8 to 16 bits: lossless ones come back exactly, parts are those of the
 * whole, and what is damaged or of another kind is refused. */
#include "codec/codec.h"
#include "tests/unit.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { WIDTH = 67, HEIGHT = 45 };

/* A slope over all of the bits, with noise. */
static void draw(uint16_t *samples, uint32_t width, uint32_t height, unsigned bits)
{
    const uint32_t most = (1u << bits) - 1;
    uint32_t noise = bits;
    for (uint32_t i = 0; i < width * height; i++) {
        noise = noise * 1664525 + 1013904223;
        samples[i] =
            (uint16_t)((i * (uint64_t)most + (noise >> 28) * most) / (width * height + 15));
    }
    samples[0] = (uint16_t)most;
    if (width * height > 1)
        samples[1] = 0;
}

static bool is_exact(const struct dl2_codec *codec, const struct dl2_encode_options *options)
{
    return !codec->lossy || (!strcmp(codec->name, "jxl") && options->quality == 100);
}

static void check(const struct dl2_codec *codec, uint32_t width, uint32_t height, unsigned bits,
                  int quality)
{
    uint16_t samples[WIDTH * HEIGHT], whole[WIDTH * HEIGHT], part[WIDTH * HEIGHT];
    struct dl2_error error = DL2_ERROR_INIT;
    struct dl2_encode_options options = DL2_ENCODE_DEFAULTS;
    struct dl2_bytes file = DL2_BYTES_INIT;
    const struct dl2_gray image = {samples, width, height, bits};
    struct dl2_gray_part all = {width, height, bits, 0, 0, width, height};
    options.quality = quality;
    draw(samples, width, height, bits);
    if (dl2_gray_encode(codec, &image, &options, &file, &error) < 0)
        fail_msg("%s: %s", codec->name, error.message);
    if (dl2_gray_decode(file.data, file.size, &all, whole, &error) < 0)
        fail_msg("%s: %s", codec->name, error.message);
    double lost = 0;
    for (uint32_t i = 0; i < width * height; i++) {
        const double d = (double)whole[i] - samples[i];
        lost += d * d;
        if (is_exact(codec, &options) && d != 0)
            fail_msg("%s, %u bits: %u instead of %u", codec->name, bits, whole[i], samples[i]);
    }
    const double peak = (1 << bits) - 1;
    if (10 * log10(peak * peak * width * height / lost) < 25)
        fail_msg("%s, %u bits, quality %d: the image is another one", codec->name, bits, quality);
    for (uint32_t y = 0; y + 5 < height; y += 11)
        for (uint32_t x = 0; x + 7 < width; x += 13) {
            const struct dl2_gray_part some = {width, height, bits, x, y, 7, 5};
            assert_int_equal(dl2_gray_decode(file.data, file.size, &some, part, &error), DL2_OK);
            for (uint32_t i = 0; i < 35; i++)
                assert_int_equal(part[i], whole[(y + i / 7) * width + x + i % 7]);
        }
    dl2_bytes_free(&file);
}

static void test_bits(void **state)
{
    (void)state;
    for (size_t i = 0; dl2_codec_at(i); i++) {
        const struct dl2_codec *codec = dl2_codec_at(i);
        for (unsigned bits = DL2_GRAY_MIN_BITS; codec->encode_gray && bits <= DL2_GRAY_MAX_BITS;
             bits++) {
            check(codec, WIDTH, HEIGHT, bits, 100);
            check(codec, WIDTH, HEIGHT, bits, 60);
        }
        if (!codec->encode_gray)
            continue;
        check(codec, 1, 1, 16, 100);
        check(codec, WIDTH, 1, 12, 100);
    }
}

static void test_refusals(void **state)
{
    (void)state;
    uint16_t samples[WIDTH * HEIGHT] = {0}, out[WIDTH * HEIGHT];
    struct dl2_encode_options options = DL2_ENCODE_DEFAULTS;
    struct dl2_bytes file = DL2_BYTES_INIT;
    for (size_t i = 0; dl2_codec_at(i); i++) {
        const struct dl2_codec *codec = dl2_codec_at(i);
        struct dl2_gray image = {samples, WIDTH, HEIGHT, 12};
        struct dl2_error error = DL2_ERROR_INIT;
        draw(samples, WIDTH, HEIGHT, 12);
        if (!codec->encode_gray) {
            assert_int_equal(dl2_gray_encode(codec, &image, &options, &file, &error),
                             DL2_ERR_UNSUPPORTED);
            assert_non_null(strstr(error.message, codec->name));
            continue;
        }
        assert_int_equal(dl2_gray_encode(codec, &image, &options, &file, NULL), DL2_OK);
        struct dl2_gray_part part = {WIDTH, HEIGHT, 13, 0, 0, WIDTH, HEIGHT};
        assert_int_equal(dl2_gray_decode(file.data, file.size, &part, out, &error), DL2_ERR_FORMAT);
        assert_non_null(strstr(error.message, "12 bits"));
        part.bits = 12;
        part.width++;
        assert_int_equal(dl2_gray_decode(file.data, file.size, &part, out, NULL), DL2_ERR_FORMAT);
        part.width--;
        assert_int_equal(dl2_gray_decode(file.data, 20, &part, out, NULL), DL2_ERR_FORMAT);
        image.bits = 17;
        assert_int_equal(dl2_gray_encode(codec, &image, &options, &file, NULL), DL2_ERR_ARGUMENT);
    }
    /* A file of a codec that has no such images. */
    static const uint8_t ppm[] = "P5\n1 1\n255\nx";
    const struct dl2_gray_part part = {1, 1, 8, 0, 0, 1, 1};
    assert_int_equal(dl2_gray_decode(ppm, sizeof ppm - 1, &part, out, NULL), DL2_ERR_UNSUPPORTED);
    assert_int_equal(dl2_gray_decode((const uint8_t *)"nothing", 7, &part, out, NULL),
                     DL2_ERR_UNSUPPORTED);
    dl2_bytes_free(&file);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_bits),
                                       cmocka_unit_test(test_refusals)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
