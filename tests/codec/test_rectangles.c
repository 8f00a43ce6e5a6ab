/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Decoding of a part, by the codecs beside JPEG: the same pixels, bit for bit, as cropping the
 * whole decoded image, or the whole image decoded to planes or at the same reduction.
 */
#include "config.h"

#include "codec/codec.h"
#include "codec/decoder.h"
#include "tests/codec/sample_files.h"
#include "tests/unit.h"
#ifdef HAVE_JP2
#include "tests/codec/ht_golden.h"
#endif

static const uint32_t sizes[][2] = {{1, 1}, {7, 5}, {40, 33}, {150, 101}, {333, 250}};

/* One decoder for all of a test: what it keeps of one image must not show in the next. */
static struct dl2_decoder *decoder;
static struct dl2_image image;
static struct dl2_bytes file; /* of `image`, mostly */

static int make_decoder(void **state)
{
    return dl2_decoder_create(&decoder, NULL);
}

static int free_all(void **state)
{
    dl2_decoder_destroy(decoder);
    dl2_image_free(&image);
    dl2_bytes_free(&file);
    return 0;
}

static uint32_t random_state;

static uint32_t random_below(uint32_t limit)
{
    random_state = random_state * 1664525 + 1013904223;
    return (random_state >> 8) % limit;
}

/* Some part; the first ones lie in the corners. */
static void choose(struct dl2_decode_request *request, uint32_t width, uint32_t height, int round)
{
    request->width = 1 + random_below(width);
    request->height = 1 + random_below(height);
    request->x = round & 1 ? width - request->width : random_below(width - request->width + 1);
    request->y = round & 2 ? height - request->height : random_below(height - request->height + 1);
    if (round == 0)
        request->x = request->y = 0;
}

/* The sample of `plane` that covers the pixel (x, y). */
static const uint8_t *sample_at(const struct dl2_plane *plane, uint32_t x, uint32_t y,
                                uint32_t channels)
{
    assert_true(x >= plane->x && y >= plane->y);
    const int64_t i = (x - plane->x) / plane->step_x, j = (y - plane->y) / plane->step_y;
    assert_true(i < plane->width && j < plane->height);
    return plane->data + j * plane->stride + (size_t)i * channels;
}

/* Every pixel of the rectangle is there, and the same in both. */
static void assert_same(const struct dl2_raster *part, const struct dl2_raster *whole,
                        const struct dl2_decode_request *request)
{
    assert_int_equal(part->color, whole->color);
    const uint32_t channels = part->color == DL2_COLOR_RGB ? 3 : 1;
    for (unsigned p = 0; p < dl2_raster_planes(part); p++) {
        const struct dl2_plane *a = &part->planes[p], *b = &whole->planes[p];
        assert_int_equal(a->step_x, b->step_x);
        assert_int_equal(a->step_y, b->step_y);
        assert_true((a->x - b->x) % a->step_x == 0 && (a->y - b->y) % a->step_y == 0);
        for (uint32_t y = request->y; y < request->y + request->height; y++)
            for (uint32_t x = request->x; x < request->x + request->width; x++) {
                const uint8_t *one = sample_at(a, x, y, channels);
                if (!memcmp(one, sample_at(b, x, y, channels), channels))
                    continue;
                fail_msg("plane %u at %u,%u of the part %u,%u %ux%u differs", p, (unsigned)x,
                         (unsigned)y, (unsigned)request->x, (unsigned)request->y,
                         (unsigned)request->width, (unsigned)request->height);
            }
    }
}

static void decode_part(struct dl2_decoder *by, const struct dl2_decode_request *request,
                        struct dl2_raster *raster)
{
    struct dl2_error error = DL2_ERROR_INIT;
    struct dl2_image_info info;
    expect_ok(dl2_decoder_open(by, file.data, file.size, 0, &info, &error), &error);
    expect_ok(dl2_decoder_decode(by, request, raster, &error), &error);
}

/* Parts of `file` against the whole image of dl2_image_decode(). */
static void check_pixels(uint32_t channels, int rounds)
{
    struct dl2_image whole = DL2_IMAGE_INIT, scratch = DL2_IMAGE_INIT;
    const struct dl2_decode_options options = {.channels = channels, .background = {10, 200, 90}};
    assert_int_equal(dl2_image_decode(file.data, file.size, &options, &whole, &scratch, NULL),
                     DL2_OK);
    const struct dl2_raster truth = {
        .color = whole.channels == 1 ? DL2_COLOR_GRAY : DL2_COLOR_RGB,
        .planes[0] = {.data = whole.data,
                      .stride = whole.stride,
                      .width = whole.width,
                      .height = whole.height,
                      .step_x = 1,
                      .step_y = 1},
    };
    for (int round = 0; round < rounds; round++) {
        struct dl2_decode_request request = {
            .reduction = 1, .channels = channels, .background = {10, 200, 90}};
        struct dl2_raster part;
        choose(&request, whole.width, whole.height, round);
        decode_part(decoder, &request, &part);
        assert_same(&part, &truth, &request);
    }
    dl2_image_free(&whole);
    dl2_image_free(&scratch);
}

/* Parts as planes, or reduced, against the whole that is decoded likewise. */
static void check_planes(uint32_t width, uint32_t height, uint32_t reduction, int rounds)
{
    struct dl2_decoder *other;
    assert_int_equal(dl2_decoder_create(&other, NULL), DL2_OK);
    struct dl2_decode_request request = DL2_DECODE_REQUEST_DEFAULTS;
    struct dl2_raster whole, part;
    request.reduction = reduction;
    request.width = width;
    request.height = height;
    decode_part(other, &request, &whole);
    assert_true(whole.planes[0].step_x <= reduction);
    for (int round = 0; round < rounds; round++) {
        choose(&request, width, height, round);
        decode_part(decoder, &request, &part);
        assert_same(&part, &whole, &request);
    }
    dl2_decoder_destroy(other);
}

static void check_file(int rounds)
{
    check_pixels(0, rounds);
    check_pixels(1, rounds);
}

static void parts_equal_the_whole(void **state)
{
    static const char *const samplings[] = {"420", "422", "444"};
    for (size_t s = 0; s < sizeof sizes / sizeof sizes[0]; s++)
        for (uint32_t channels = 1; channels <= 3; channels += 2) {
            sample_picture(&image, sizes[s][0], sizes[s][1], channels);
            for (size_t i = 0; dl2_codec_at(i); i++) {
                const struct dl2_codec *codec = dl2_codec_at(i);
                if (!strcmp(codec->name, "jpeg") || !codec->encode)
                    continue;
                for (size_t k = 0; k < (codec->has_subsampling ? 3 : 1); k++) {
                    const struct dl2_encode_options options = {
                        60, codec->has_subsampling ? samplings[k] : NULL,
                        strcmp(codec->name, "avif") ? -1 : 10};
                    assert_int_equal(dl2_image_encode(codec, &image, &options, &file, NULL),
                                     DL2_OK);
                    check_file(12);
                    check_planes(sizes[s][0], sizes[s][1], 1, 12);
                }
            }
        }
}

/* BT.601 luma of what the planes' first means, against that of the RGB image. */
static double luma_off(const struct dl2_raster *planes, const struct dl2_image *rgb)
{
    double sum = 0;
    for (uint32_t y = 0; y < rgb->height; y++)
        for (uint32_t x = 0; x < rgb->width; x++) {
            const uint8_t *p = rgb->data + y * rgb->stride + 3 * (size_t)x;
            double value = *sample_at(&planes->planes[0], x, y, 1);
            if (planes->color == DL2_COLOR_YCBCR_LIMITED)
                value = (value - 16) * 255 / 219;
            sum += abs((int)(value - (0.299 * p[0] + 0.587 * p[1] + 0.114 * p[2])));
        }
    return sum / ((double)rgb->width * rgb->height);
}

/* Where planes are welcome they come, and mean the same picture. */
static void planes_are_the_picture(void **state)
{
    static const struct {
        const char *name;
        enum dl2_color color;
    } cases[] = {{"webp", DL2_COLOR_YCBCR_LIMITED}, {"avif", DL2_COLOR_YCBCR}};
    struct dl2_image scratch = DL2_IMAGE_INIT;
    for (size_t i = 0; i < 2; i++) {
        const struct dl2_codec *codec = dl2_codec_find(cases[i].name);
        if (!codec)
            continue;
        const struct dl2_encode_options encode = {90, NULL, i ? 10 : -1};
        const struct dl2_decode_options decode = DL2_DECODE_DEFAULTS;
        struct dl2_decode_request request = DL2_DECODE_REQUEST_DEFAULTS;
        struct dl2_raster raster;
        sample_picture(&image, 93, 71, 3);
        assert_int_equal(dl2_image_encode(codec, &image, &encode, &file, NULL), DL2_OK);
        request.width = 93;
        request.height = 71;
        decode_part(decoder, &request, &raster);
        assert_int_equal(raster.color, cases[i].color);
        assert_int_equal(raster.planes[1].step_x, 2);
        assert_int_equal(raster.planes[2].step_y, 2);
        assert_int_equal(dl2_image_decode(file.data, file.size, &decode, &image, &scratch, NULL),
                         DL2_OK);
        /* What clipping at the gamut's edge leaves. */
        assert_true(luma_off(&raster, &image) < 1);
    }
    dl2_image_free(&scratch);
}

static void reduced_parts_equal_the_reduced_whole(void **state)
{
    const struct dl2_codec *codec = dl2_codec_find("jp2");
    if (!codec)
        skip();
    const struct dl2_encode_options options = DL2_ENCODE_DEFAULTS;
    for (size_t s = 0; s < sizeof sizes / sizeof sizes[0]; s++)
        for (uint32_t channels = 1; channels <= 3; channels += 2) {
            const uint32_t width = sizes[s][0], height = sizes[s][1];
            sample_picture(&image, width, height, channels);
            assert_int_equal(dl2_image_encode(codec, &image, &options, &file, NULL), DL2_OK);
            for (uint32_t reduction = 2; reduction <= 8; reduction *= 2)
                check_planes(width, height, reduction, 12);
        }
}

/* On a slope a sample's value is its place; the encoder's own bias is 0.4. */
static void reduced_samples_lie_where_they_say(void **state)
{
    enum { SIDE = 200 };
    const struct dl2_codec *codec = dl2_codec_find("jp2");
    if (!codec)
        skip();
    const struct dl2_encode_options options = {100, NULL, -1};
    assert_int_equal(dl2_image_reshape(&image, SIDE, SIDE, 1, NULL), DL2_OK);
    for (int down = 0; down < 2; down++) {
        for (uint32_t y = 0; y < SIDE; y++)
            for (uint32_t x = 0; x < SIDE; x++)
                image.data[y * image.stride + x] = (uint8_t)(down ? y : x);
        assert_int_equal(dl2_image_encode(codec, &image, &options, &file, NULL), DL2_OK);
        for (uint32_t reduction = 4; reduction <= 8; reduction *= 2) {
            struct dl2_decode_request request = DL2_DECODE_REQUEST_DEFAULTS;
            struct dl2_raster raster;
            const struct dl2_plane *plane = &raster.planes[0];
            request.reduction = reduction;
            request.width = request.height = SIDE;
            decode_part(decoder, &request, &raster);
            assert_int_equal(plane->step_x, reduction);
            assert_int_equal(plane->step_y, reduction);
            assert_int_equal(plane->width, SIDE / reduction);
            assert_int_equal(plane->height, SIDE / reduction);
            double off = 0;
            uint32_t count = 0;
            for (uint32_t j = 4; j + 5 < plane->height; j++)
                for (uint32_t i = 4; i + 5 < plane->width; i++, count++)
                    off += plane->data[j * plane->stride + i] -
                           (((down ? j : i) + 0.5) * reduction - 0.5 +
                            (double)(down ? plane->shift_y : plane->shift_x));
            if (!(off / count > -0.5 && off / count < 0.5))
                fail_msg("at 1/%u samples are off by %g", (unsigned)reduction, off / count);
        }
    }
}

/* Alpha, 16 bits, palettes, interlacing, other maxima. */
static void odd_files(void **state)
{
    enum { WIDTH = 61, HEIGHT = 43 };
    uint16_t samples[WIDTH * HEIGHT * 4];
    uint8_t rgba[WIDTH * HEIGHT * 4];
    for (size_t i = 0; i < WIDTH * HEIGHT * 4; i++) {
        samples[i] = (uint16_t)random_below(65536);
        rgba[i] = (uint8_t)random_below(256);
    }
    (void)samples, (void)rgba; /* without WebP and PNG */
#ifdef HAVE_WEBP
    sample_webp_with_alpha(rgba, WIDTH, HEIGHT, &file);
    check_file(20);
    check_planes(WIDTH, HEIGHT, 1, 20);
#endif
#ifdef HAVE_PNG
    for (int type = 0; type <= 6; type += 2) {
        for (int interlaced = 0; interlaced < 2; interlaced++) {
            const struct sample_png png = {.width = WIDTH,
                                           .height = HEIGHT,
                                           .color_type = type,
                                           .bits = 16,
                                           .interlaced = interlaced,
                                           .transparent = -1,
                                           .samples = samples};
            sample_png(&png, &file);
            check_file(12);
        }
    }
#endif
    for (uint32_t maximum = 100; maximum <= 60000; maximum += 59900)
        for (int kind = 5; kind <= 6; kind++) {
            char header[64];
            const int length = snprintf(header, sizeof header, "P%d %d %d %u\n", kind, (int)WIDTH,
                                        (int)HEIGHT, (unsigned)maximum);
            file.size = 0;
            assert_int_equal(dl2_bytes_append(&file, header, (size_t)length, NULL), DL2_OK);
            for (size_t i = 0; i < WIDTH * HEIGHT * (kind == 6 ? 3 : 1); i++) {
                const uint32_t value = random_below(maximum + 1);
                const uint8_t bytes[2] = {(uint8_t)(value >> 8), (uint8_t)value};
                const size_t skip = maximum < 256;
                assert_int_equal(dl2_bytes_append(&file, bytes + skip, 2 - skip, NULL), DL2_OK);
            }
            check_file(12);
        }
}

/* The first byte of the ALPH chunk says how opacities are filtered: 1 is from the left. */
#ifdef HAVE_WEBP
static int alpha_filter(void)
{
    for (size_t i = 12; i + 8 < file.size; i++)
        if (!memcmp(file.data + i, "ALPH", 4))
            return file.data[i + 8] >> 2 & 3;
    return -1;
}
#endif

/* Opacities that are predicted from others, some of them above a part. */
static void filtered_alpha(void **state)
{
#ifdef HAVE_WEBP
    enum { WIDTH = 97, HEIGHT = 71, KINDS = 12 };
    uint8_t *rgba = malloc((size_t)WIDTH * HEIGHT * 4);
    bool found = false;
    assert_non_null(rgba);
    sample_picture(&image, WIDTH, HEIGHT, 3);
    for (int kind = 0; kind < KINDS; kind++) {
        for (int y = 0; y < HEIGHT; y++)
            for (int x = 0; x < WIDTH; x++) {
                uint8_t *pixel = rgba + 4 * ((size_t)y * WIDTH + (size_t)x);
                memcpy(pixel, image.data + (size_t)y * image.stride + 3 * (size_t)x, 3);
                pixel[3] = (uint8_t)((x * (kind % 4) + y * (kind / 4) * 2 + x * y / 40 + 30) & 255);
            }
        sample_webp_with_filtered_alpha(rgba, WIDTH, HEIGHT, &file);
        found = found || alpha_filter() == 1;
        check_file(12);
    }
    assert_true(found);
    free(rgba);
#else
    skip();
#endif
}

#ifdef HAVE_JP2
/* What isn't linear in what the file holds must not be reduced before it is color. */
static void assert_reductions_are_means(uint32_t width, uint32_t height)
{
    struct dl2_image whole = DL2_IMAGE_INIT, scratch = DL2_IMAGE_INIT;
    const struct dl2_decode_options options = {.background = {10, 200, 90}};
    assert_int_equal(dl2_image_decode(file.data, file.size, &options, &whole, &scratch, NULL),
                     DL2_OK);
    struct dl2_decode_request request = {
        .width = width, .height = height, .reduction = 4, .background = {10, 200, 90}};
    struct dl2_raster raster;
    decode_part(decoder, &request, &raster);
    const struct dl2_plane *plane = &raster.planes[0];
    double off = 0, spread = 0;
    for (uint32_t y = 0; y + 4 < height; y += 4)
        for (uint32_t x = 0; x + 4 < width; x += 4)
            for (uint32_t c = 0; c < whole.channels; c++) {
                double have = 0, want = 0;
                for (uint32_t i = 0; i < 16; i++) {
                    const uint32_t at_x = x + i % 4, at_y = y + i / 4;
                    have += sample_at(plane, at_x, at_y, whole.channels)[c];
                    want += whole.data[at_y * whole.stride + (size_t)at_x * whole.channels + c];
                }
                off += have > want ? have - want : want - have;
                spread += 16;
            }
    if (off / spread > 12)
        fail_msg("at 1/4 colors differ by %g on average", off / spread);
    dl2_image_free(&whole);
    dl2_image_free(&scratch);
}

static void check_reduced(uint32_t width, uint32_t height)
{
    check_file(12);
    for (uint32_t reduction = 2; reduction <= 8; reduction *= 2)
        check_planes(width, height, reduction, 12);
    assert_reductions_are_means(width, height);
}
#endif

/* Palettes, inks, and colors under no alpha; high throughput. */
static void odd_jp2(void **state)
{
#ifdef HAVE_JP2
    enum { WIDTH = 90, HEIGHT = 70 };
    static const char rgb[] = "\7\1\0\0\0\0\0\x10", cmyk[] = "\7\1\0\0\0\0\0\x0c";
    uint8_t samples[WIDTH * HEIGHT * 4], palette[256 * 3];
    for (size_t i = 0; i < sizeof palette; i++)
        palette[i] = (uint8_t)((i / 3 % 2 ? 255 : 0) ^ (i / 24));
    sample_picture(&image, WIDTH, HEIGHT, 1);
    for (size_t i = 0; i < sizeof samples; i++)
        samples[i] = image.data[i / 4 / WIDTH * image.stride + i / 4 % WIDTH];
    struct sample_jp2 jp2 = {WIDTH, HEIGHT, 1, NULL, rgb, sizeof rgb - 1, palette};
    uint8_t indices[WIDTH * HEIGHT];
    for (size_t i = 0; i < sizeof indices; i++)
        indices[i] = (uint8_t)(samples[4 * i] / 4 * 2);
    jp2.samples = indices;
    sample_jp2(&jp2, &file);
    check_reduced(WIDTH, HEIGHT);
    /* Checks of 2 pixels: what is under no alpha is a color that shows nowhere else. */
    for (size_t i = 0; i < WIDTH * HEIGHT; i++) {
        const bool hidden = (i % WIDTH / 2 + i / WIDTH / 2) % 2;
        samples[4 * i + 3] = hidden ? 0 : 255;
        if (hidden)
            samples[4 * i] = samples[4 * i + 1] = samples[4 * i + 2] = 255;
        else
            samples[4 * i] = samples[4 * i + 1] = samples[4 * i + 2] = 0;
    }
    jp2.palette = NULL;
    jp2.components = 4;
    jp2.samples = samples;
    sample_jp2(&jp2, &file);
    check_reduced(WIDTH, HEIGHT);
    /* Full inks under black and none elsewhere. */
    jp2.colors = cmyk;
    sample_jp2(&jp2, &file);
    check_reduced(WIDTH, HEIGHT);
    file.size = 0;
    assert_int_equal(dl2_bytes_append(&file, ht_golden, sizeof ht_golden, NULL), DL2_OK);
    check_file(12);
    for (uint32_t reduction = 1; reduction <= 8; reduction *= 2)
        check_planes(61, 43, reduction, 12);
#else
    skip();
#endif
}

/* Cut files are refused, or their upper part is right; the decoder is as good as new after it. */
static void cut_files(void **state)
{
    sample_picture(&image, 80, 60, 3);
    for (size_t i = 0; dl2_codec_at(i); i++) {
        const struct dl2_codec *codec = dl2_codec_at(i);
        if (!codec->encode)
            continue;
        const struct dl2_encode_options options = {60, NULL, strcmp(codec->name, "avif") ? -1 : 10};
        assert_int_equal(dl2_image_encode(codec, &image, &options, &file, NULL), DL2_OK);
        if (!strcmp(codec->name, "jpeg"))
            continue;
        for (size_t size = 0; size < file.size; size += 1 + file.size / 50) {
            struct dl2_decode_request request = DL2_DECODE_REQUEST_DEFAULTS;
            struct dl2_image_info info;
            struct dl2_raster raster;
            uint8_t *cut = malloc(size ? size : 1);
            assert_non_null(cut);
            memcpy(cut, file.data, size);
            request.x = 20;
            request.y = 10;
            request.width = 30;
            request.height = 45;
            request.reduction = 2;
            if (dl2_decoder_open(decoder, cut, size, 0, &info, NULL) == DL2_OK)
                (void)dl2_decoder_decode(decoder, &request, &raster, NULL);
            free(cut);
        }
        check_file(4);
    }
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, make_decoder, free_all)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(parts_equal_the_whole),
        TEST(planes_are_the_picture),
        TEST(reduced_parts_equal_the_reduced_whole),
        TEST(reduced_samples_lie_where_they_say),
        TEST(odd_files),
        TEST(filtered_alpha),
        TEST(odd_jp2),
        TEST(cut_files),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
