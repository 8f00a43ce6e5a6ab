/* SPDX-License-Identifier: BSD-2-Clause */
/* The resize against Pillow's figures, and the rules by which crops are chosen. */
#include "common/half.h"
#include "common/simd.h"
#include "pixels/crop.h"
#include "pixels/resize_image.h"
#include "pixels/resize_kernels.h"
#include "pixels/resolution.h"
#include "tests/unit.h"

#include <math.h>

struct golden {
    enum dl2_interpolation interpolation;
    uint32_t width, height, channels;
    struct dl2_box box;
    uint32_t out_width, out_height;
    const char *pixels; /* two hexadecimal digits a byte */
};

struct whole_golden {
    enum dl2_interpolation interpolation;
    uint32_t width, height, channels, out_width, out_height;
    bool two_valued; /* 0 below 128, 255 from there on */
    const char *pixels;
};

#include "resize_golden.h"

/* The same numbers as in gen_resize.py. */
static uint8_t *pattern(size_t size)
{
    uint8_t *data = malloc(size);
    uint32_t state = 1;
    for (size_t i = 0; i < size; i++) {
        state = state * 1664525 + 1013904223;
        data[i] = (uint8_t)(state >> 24);
    }
    return data;
}

static struct dl2_raster pixels_of(const uint8_t *data, uint32_t width, uint32_t height,
                                   uint32_t channels)
{
    return (struct dl2_raster){
        .color = channels == 1 ? DL2_COLOR_GRAY : DL2_COLOR_RGB,
        .planes[0] = {data, (size_t)width * channels, width, height, 0, 0, 1, 1},
    };
}

static struct dl2_resizer resizer; /* a new one for each test */

static int free_resizer(void **state)
{
    dl2_resizer_free(&resizer);
    return 0;
}

/* To bytes in NHWC, from what the first plane holds. */
static int resize_with(enum dl2_interpolation interpolation, const struct dl2_raster *in,
                       const struct dl2_box *box, bool flip, uint32_t width, uint32_t height,
                       uint32_t channels, uint8_t *out)
{
    const struct dl2_plane *plane = &in->planes[0];
    const struct dl2_box limit = {0, 0, plane->width * plane->step_x,
                                  plane->height * plane->step_y};
    const struct dl2_resize_output output = {.data = out,
                                             .width = width,
                                             .height = height,
                                             .channels = channels,
                                             .flip = flip,
                                             .interpolation = interpolation};
    return dl2_resize_raster(&resizer, in, &limit, box, &output, NULL);
}

static int resize(const struct dl2_raster *in, const struct dl2_box *box, bool flip, uint32_t width,
                  uint32_t height, uint32_t channels, uint8_t *out)
{
    return resize_with(DL2_BILINEAR, in, box, flip, width, height, channels, out);
}

enum { FILTERS = DL2_LANCZOS + 1 };

static void test_pillows_figures(void **state)
{
    for (size_t i = 0; i < sizeof goldens / sizeof *goldens; i++) {
        const struct golden *golden = &goldens[i];
        const size_t in_size = (size_t)golden->width * golden->height * golden->channels;
        uint8_t *data = pattern(in_size);
        /* What these make of more than that, both clip after each pass, but not in one order. */
        for (size_t k = 0; k < in_size && golden->interpolation >= DL2_BICUBIC; k++)
            data[k] = data[k] / 2 + 64;
        const struct dl2_raster in =
            pixels_of(data, golden->width, golden->height, golden->channels);
        const size_t size = (size_t)golden->out_width * golden->out_height * golden->channels;
        uint8_t *out = malloc(size);
        assert_int_equal(resize_with(golden->interpolation, &in, &golden->box, false,
                                     golden->out_width, golden->out_height, golden->channels, out),
                         0);
        assert_int_equal(strlen(golden->pixels), 2 * size);
        for (size_t k = 0; k < size; k++) {
            unsigned want;
            assert_int_equal(sscanf(golden->pixels + 2 * k, "%2x", &want), 1);
            if (abs(out[k] - (int)want) > 1)
                fail_msg("case %zu, byte %zu: %d instead of %u", i, k, out[k], want);
        }
        free(out);
        free(data);
    }
}

/* At 16 bits an image is the same, but for the rounding of bytes between the passes. Its contrast
 * is halved, so that no byte is cut there. */
static void expect_alike_at_16_bits(const struct whole_golden *golden, const struct dl2_image *in)
{
    struct dl2_image_resizer its = {.kernels = NULL};
    struct dl2_image calm = DL2_IMAGE_INIT, expected = DL2_IMAGE_INIT;
    struct dl2_deep_image deep = {.width = 0}, out = {.width = 0};
    const uint32_t width = golden->out_width, height = golden->out_height;
    assert_int_equal(dl2_image_reshape(&calm, in->width, in->height, in->channels, NULL), DL2_OK);
    for (size_t i = 0; i < in->stride * in->height; i++)
        calm.data[i] = (uint8_t)(64 + in->data[i] / 2);
    assert_int_equal(
        dl2_resize_image(&its, &calm, golden->interpolation, width, height, &expected, NULL),
        DL2_OK);
    assert_int_equal(dl2_deep_of_image(&deep, &calm, NULL), DL2_OK);
    assert_int_equal(dl2_resize_deep(&its, &deep, golden->interpolation, width, height, &out, NULL),
                     DL2_OK);
    assert_true(out.width == width && out.height == height && out.channels == in->channels);
    for (size_t i = 0; i < (size_t)width * height * in->channels; i++)
        if (fabs(dl2_deep_row(&out, 0)[i] / 257.0 - expected.data[i]) > 1.25)
            fail_msg("%g instead of %d", dl2_deep_row(&out, 0)[i] / 257.0, expected.data[i]);
    dl2_bytes_free(&deep.bytes);
    dl2_bytes_free(&out.bytes);
    dl2_image_free(&calm);
    dl2_image_free(&expected);
    dl2_image_resizer_free(&its);
}

/* Whole images by every instruction set: the same bytes, which are Pillow's. */
static void test_whole_images(void **state)
{
    static const unsigned flags[] = {0, DL2_SIMD_AVX2 | DL2_SIMD_NEON,
                                     DL2_SIMD_AVX2 | DL2_SIMD_AVX512};
    for (size_t i = 0; i < sizeof whole_goldens / sizeof *whole_goldens; i++) {
        const struct whole_golden *golden = &whole_goldens[i];
        const size_t size = (size_t)golden->width * golden->height * golden->channels;
        const size_t out_size = (size_t)golden->out_width * golden->out_height * golden->channels;
        struct dl2_image in = {pattern(size),
                               golden->width,
                               golden->height,
                               golden->channels,
                               (size_t)golden->width * golden->channels,
                               size};
        struct dl2_image plain = DL2_IMAGE_INIT;
        for (size_t k = 0; k < size && golden->two_valued; k++)
            in.data[k] = in.data[k] > 127 ? 255 : 0;
        assert_int_equal(strlen(golden->pixels), 2 * out_size);
        for (size_t f = 0; f < sizeof flags / sizeof *flags; f++) {
            struct dl2_image_resizer its = {
                .kernels = dl2_resize_kernels_for(flags[f] & dl2_simd_flags())};
            struct dl2_image out = DL2_IMAGE_INIT, *made = f ? &out : &plain;
            assert_int_equal(dl2_resize_image(&its, &in, golden->interpolation, golden->out_width,
                                              golden->out_height, made, NULL),
                             0);
            if (memcmp(made->data, plain.data, out_size))
                fail_msg("case %zu: %s differs from plain C", i, its.kernels->name);
            dl2_image_free(&out);
            dl2_image_resizer_free(&its);
        }
        for (size_t k = 0; k < out_size; k++) {
            unsigned want;
            assert_int_equal(sscanf(golden->pixels + 2 * k, "%2x", &want), 1);
            if (plain.data[k] != want)
                fail_msg("case %zu, byte %zu: %d instead of %u", i, k, plain.data[k], want);
        }
        expect_alike_at_16_bits(golden, &in);
        free(in.data);
        dl2_image_free(&plain);
    }
}

/* Limits on the shorter side and on both; never larger, never 0, the aspect kept; the record. */
static void test_resolutions(void **state)
{
    static const struct {
        struct dl2_resolution resolution;
        uint32_t width, height, out_width, out_height;
        const char *name;
    } cases[] = {
        {{0, 0, 0, DL2_LANCZOS}, 500, 375, 500, 375, ""},
        {{320, 0, 0, DL2_LANCZOS}, 500, 375, 427, 320, "@320"}, /* 426.67 */
        {{320, 0, 0, DL2_LANCZOS}, 375, 500, 320, 427, "@320"},
        {{320, 0, 0, DL2_LANCZOS}, 320, 9000, 320, 9000, "@320"},
        {{320, 0, 0, DL2_LANCZOS}, 319, 319, 319, 319, "@320"},
        {{2, 0, 0, DL2_BOX}, 4, 7, 2, 4, "@2-box"}, /* 3.5 */
        {{0, 640, 480, DL2_BILINEAR}, 1000, 1000, 480, 480, "@640x480-bilinear"},
        {{0, 640, 480, DL2_LANCZOS}, 2000, 1000, 640, 320, "@640x480"},
        {{0, 640, 480, DL2_LANCZOS}, 640, 480, 640, 480, "@640x480"},
        {{0, 640, 480, DL2_LANCZOS}, 100, 481, 100, 480, "@640x480"},
        {{0, 512, 512, DL2_LANCZOS}, 100000, 3, 512, 1, "@512x512"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const struct dl2_resolution *resolution = &cases[i].resolution;
        struct dl2_resolution same;
        uint32_t width = cases[i].width, height = cases[i].height;
        char name[DL2_RESOLUTION_NAME_SIZE];
        const bool smaller = dl2_resolution_apply(resolution, &width, &height);
        assert_int_equal(width, cases[i].out_width);
        assert_int_equal(height, cases[i].out_height);
        assert_int_equal(smaller, width != cases[i].width || height != cases[i].height);
        dl2_resolution_name(resolution, name);
        assert_string_equal(name, cases[i].name);
        if (dl2_resolution_is_full(resolution))
            continue;
        json_t *record = dl2_resolution_json(resolution);
        assert_true(dl2_resolution_from_json(record, &same));
        assert_true(dl2_resolution_equal(resolution, &same));
        json_decref(record);
    }
    static const char *const wrong[] = {"{}",
                                        "3",
                                        "{\"short\": 320}",
                                        "{\"short\": 0, \"filter\": \"box\"}",
                                        "{\"short\": 65536, \"filter\": \"box\"}",
                                        "{\"fit\": [3], \"filter\": \"box\"}",
                                        "{\"short\": 1, \"fit\": [3, 3], \"filter\": \"box\"}",
                                        "{\"short\": 3, \"filter\": \"cubist\"}"};
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        struct dl2_resolution out;
        json_t *record = json_loads(wrong[i], JSON_DECODE_ANY, NULL);
        assert_non_null(record);
        assert_false(dl2_resolution_from_json(record, &out));
        json_decref(record);
    }
}

/* Samples of a slope, each in the middle of the first of the four pixels that it covers. */
static void test_shift(void **state)
{
    enum { SIDE = 40 };
    uint8_t data[SIDE * SIDE], out[SIDE * SIDE];
    for (int down = 0; down < 2; down++) {
        for (int i = 0; i < SIDE * SIDE; i++)
            data[i] = (uint8_t)(4 * (down ? i / SIDE : i % SIDE));
        struct dl2_raster in = pixels_of(data, SIDE, SIDE, 1);
        in.planes[0].step_x = in.planes[0].step_y = 4;
        in.planes[0].shift_x = in.planes[0].shift_y = -1.5f;
        const struct dl2_box all = {0, 0, 4 * SIDE, 4 * SIDE};
        assert_int_equal(resize(&in, &all, false, SIDE, SIDE, 1, out), 0);
        for (int y = 0; y + 1 < SIDE; y++)
            for (int x = 0; x + 1 < SIDE; x++) {
                const double place =
                    4 * (down ? y : x) + 1.5; /* the middle of the output's pixel */
                assert_true(fabs(out[y * SIDE + x] - place) < 0.75);
            }
    }
}

/* A flip is the mirror image, byte for byte. */
static void test_flip(void **state)
{
    uint8_t *data = pattern(33 * 21 * 3);
    const struct dl2_raster in = pixels_of(data, 33, 21, 3);
    const struct dl2_box box = {1.5, 0, 32, 20.25};
    uint8_t plain[9 * 7 * 3], mirrored[9 * 7 * 3];
    for (int filter = 0; filter < FILTERS; filter++) {
        const enum dl2_interpolation interpolation = (enum dl2_interpolation)filter;
        assert_int_equal(resize_with(interpolation, &in, &box, false, 9, 7, 3, plain), 0);
        assert_int_equal(resize_with(interpolation, &in, &box, true, 9, 7, 3, mirrored), 0);
        for (int y = 0; y < 7; y++)
            for (int x = 0; x < 9; x++)
                assert_memory_equal(mirrored + (y * 9 + x) * 3, plain + (y * 9 + 8 - x) * 3, 3);
        assert_memory_not_equal(plain, mirrored, sizeof plain);
    }
    free(data);
}

/* A resizer that has filters from before makes what a new one makes. */
static void test_filters_from_before(void **state)
{
    (void)state;
    static const struct dl2_box boxes[] = {
        {1.5, 0, 32, 20.25}, {1.5, 0, 32, 20}, {1.5, 0.25, 32, 20}, {2, 0.25, 32, 20}};
    static const uint32_t sizes[][2] = {{9, 7}, {7, 9}, {33, 21}};
    uint8_t *data = pattern(33 * 21 * 3);
    const struct dl2_raster in = pixels_of(data, 33, 21, 3);
    for (size_t i = 0; i < 400; i++) {
        uint8_t used[33 * 21 * 3], fresh[33 * 21 * 3];
        const struct dl2_box *box = &boxes[i * 7 / 3 % 4];
        const uint32_t *size = sizes[i / 5 % 3];
        const enum dl2_interpolation interpolation =
            (enum dl2_interpolation)(i / 2 % (size_t)FILTERS);
        assert_int_equal(
            resize_with(interpolation, &in, box, i % 3 == 1, size[0], size[1], 3, used), 0);
        struct dl2_resizer before = resizer;
        resizer = (struct dl2_resizer){.kernels = NULL};
        assert_int_equal(
            resize_with(interpolation, &in, box, i % 3 == 1, size[0], size[1], 3, fresh), 0);
        dl2_resizer_free(&resizer);
        resizer = before;
        assert_memory_equal(used, fresh, (size_t)size[0] * size[1] * 3);
    }
    free(data);
}

static void test_gray_to_three(void **state)
{
    uint8_t *data = pattern(13 * 11);
    const struct dl2_raster in = pixels_of(data, 13, 11, 1);
    const struct dl2_box box = {0, 0, 13, 11};
    uint8_t gray[5 * 4], color[5 * 4 * 3];
    assert_int_equal(resize(&in, &box, false, 5, 4, 1, gray), 0);
    assert_int_equal(resize(&in, &box, false, 5, 4, 3, color), 0);
    for (int i = 0; i < 5 * 4 * 3; i++)
        assert_int_equal(color[i], gray[i / 3]);
    free(data);
}

/* One color stays that color at every size: the weights add up. */
static void test_flat_color(void **state)
{
    uint8_t *data = malloc(97 * 89), *out = malloc(128 * 128);
    for (int value = 0; value < 256; value += 51) {
        memset(data, value, 97 * 89);
        const struct dl2_raster in = pixels_of(data, 97, 89, 1);
        for (uint32_t side = 1; side <= 128; side += 9) {
            const struct dl2_box box = {0.3, 0.7, 96.9, 88.1};
            const enum dl2_interpolation filter = (enum dl2_interpolation)(side / 9 % FILTERS);
            assert_int_equal(resize_with(filter, &in, &box, false, side, side, 1, out), 0);
            for (uint32_t i = 0; i < side * side; i++)
                assert_int_equal(out[i], value);
        }
    }
    free(data);
    free(out);
}

static void test_refusals(void **state)
{
    static const uint8_t data[4 * 4 * 3];
    uint8_t out[12];
    const struct dl2_raster in = pixels_of(data, 4, 4, 3);
    static const struct dl2_box wrong[] = {
        {0, 0, 4.5, 4}, {-0.1, 0, 4, 4}, {2, 0, 2, 4}, {0, 3, 4, 1}, {0, 0, 4, (double)NAN}};
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++)
        assert_int_equal(resize(&in, &wrong[i], false, 2, 2, 3, out), DL2_ERR_ARGUMENT);
    const struct dl2_box whole = {0, 0, 4, 4};
    assert_int_equal(resize(&in, &whole, false, 2, 2, 2, out), DL2_ERR_ARGUMENT);
    assert_int_equal(resize(&in, &whole, false, 0, 2, 3, out), DL2_ERR_ARGUMENT);
}

/* ---- planes ---- */

/* Planes of random samples for an image of width x height; chroma and all at these steps. */
struct picture {
    struct dl2_raster raster;
    uint8_t *data[3];
};

static void make_picture(struct picture *picture, enum dl2_color color, uint32_t width,
                         uint32_t height, uint32_t step, uint32_t chroma_x, uint32_t chroma_y)
{
    picture->raster = (struct dl2_raster){.color = color};
    for (unsigned p = 0; p < 3; p++) {
        struct dl2_plane *plane = &picture->raster.planes[p];
        picture->data[p] = NULL;
        if (p >= dl2_raster_planes(&picture->raster))
            continue;
        plane->step_x = step * (p ? chroma_x : 1);
        plane->step_y = step * (p ? chroma_y : 1);
        plane->width = (width + plane->step_x - 1) / plane->step_x;
        plane->height = (height + plane->step_y - 1) / plane->step_y;
        plane->stride = (size_t)plane->width * (color == DL2_COLOR_RGB ? 3 : 1);
        /* An exact block, so that a sanitizer sees whoever looks beyond. */
        plane->data = picture->data[p] = pattern(plane->stride * plane->height);
    }
}

static void free_picture(struct picture *picture)
{
    for (unsigned p = 0; p < 3; p++)
        free(picture->data[p]);
}

static double uniform(struct dl2_random *random, double low, double high)
{
    return low + (high - low) * dl2_random_uniform(random);
}

static void random_box(struct dl2_random *random, uint32_t width, uint32_t height,
                       struct dl2_box *limit, struct dl2_box *box)
{
    limit->left = dl2_random_below(random, width);
    limit->top = dl2_random_below(random, height);
    limit->right = limit->left + 1 + dl2_random_below(random, width - (uint32_t)limit->left);
    limit->bottom = limit->top + 1 + dl2_random_below(random, height - (uint32_t)limit->top);
    *box = *limit;
    if (dl2_random_below(random, 2)) {
        box->left = uniform(random, limit->left, limit->right - 0.5);
        box->right = uniform(random, box->left + 0.25, limit->right);
        box->top = uniform(random, limit->top, limit->bottom - 0.5);
        box->bottom = uniform(random, box->top + 0.25, limit->bottom);
    }
}

enum { GUARD = 64 };

static uint8_t *resized_by(const struct dl2_resize_kernels *kernels, const struct picture *picture,
                           const struct dl2_box *limit, const struct dl2_box *box,
                           struct dl2_resize_output output, size_t size)
{
    struct dl2_resizer its = {.kernels = kernels};
    uint8_t *data = malloc(size + GUARD);
    memset(data, 0xa5, size + GUARD);
    output.data = data;
    assert_int_equal(dl2_resize_raster(&its, &picture->raster, limit, box, &output, NULL), 0);
    for (size_t i = 0; i < GUARD; i++)
        assert_int_equal(data[size + i], 0xa5);
    dl2_resizer_free(&its);
    return data;
}

/* Every instruction set gives the bytes of plain C, whatever the sizes,
 * boxes, types and layouts. */
static void test_paths_agree(void **state)
{
    static const unsigned flags[] = {DL2_SIMD_AVX2 | DL2_SIMD_NEON,
                                     DL2_SIMD_AVX2 | DL2_SIMD_AVX512};
    static const uint32_t steps[] = {1, 1, 2, 4};
    struct dl2_random random;
    dl2_random_init(&random, 7, DL2_RANDOM_AUGMENT, 0, 0);
    for (unsigned i = 0; i < 1500; i++) {
        const uint32_t largest = i % 50 ? 300 : 3000;
        const uint32_t width = 1 + dl2_random_below(&random, largest);
        const uint32_t height = 1 + dl2_random_below(&random, i % 50 ? 200 : 20);
        struct picture picture;
        make_picture(&picture, (enum dl2_color)dl2_random_below(&random, 4), width, height,
                     steps[dl2_random_below(&random, 4)], 1 + dl2_random_below(&random, 2),
                     1 + dl2_random_below(&random, 2));
        struct dl2_box limit, box;
        random_box(&random, width, height, &limit, &box);
        const struct dl2_resize_output output = {
            .width = 1 + dl2_random_below(&random, 150),
            .height = 1 + dl2_random_below(&random, 40),
            .channels = dl2_random_below(&random, 2) ? 3 : 1,
            .dtype = (enum dl2_dtype)dl2_random_below(&random, 4),
            .layout = (enum dl2_layout)dl2_random_below(&random, 2),
            .mean = {0.485f, 0.456f, 0.406f},
            .std = {0.229f, 0.224f, 0},
            .flip = dl2_random_below(&random, 2),
            .interpolation = (enum dl2_interpolation)(i % FILTERS),
        };
        const size_t size =
            (size_t)output.width * output.height * output.channels * dl2_dtype_size(output.dtype);
        uint8_t *plain = resized_by(&dl2_resize_kernels_c, &picture, &limit, &box, output, size);
        for (size_t f = 0; f < 2; f++) {
            const struct dl2_resize_kernels *kernels =
                dl2_resize_kernels_for(flags[f] & dl2_simd_flags());
            uint8_t *fast = resized_by(kernels, &picture, &limit, &box, output, size);
            if (memcmp(plain, fast, size))
                fail_msg("case %u: %s differs from plain C", i, kernels->name);
            free(fast);
        }
        free(plain);
        free_picture(&picture);
    }
}

/* The filters by their definitions; x in samples, or in outputs where the image becomes smaller. */
static double weight_at(enum dl2_interpolation interpolation, double x)
{
    const double size = fabs(x), a = -0.5;
    switch (interpolation) {
    case DL2_BILINEAR:
        return fmax(0, 1 - size);
    case DL2_BICUBIC:
        return size < 1   ? (a + 2) * pow(size, 3) - (a + 3) * pow(size, 2) + 1
               : size < 2 ? a * (pow(size, 3) - 5 * pow(size, 2) + 8 * size - 4)
                          : 0;
    case DL2_LANCZOS:
        return size < 1e-9 ? 1
               : size < 3  ? sin(M_PI * x) / (M_PI * x) * sin(M_PI * x / 3) / (M_PI * x / 3)
                           : 0;
    default:
        return x > -0.5 + 1e-6 && x <= 0.5 + 1e-6;
    }
}

static double clipped_to_byte(double value)
{
    return fmin(fmax(value, 0), 255);
}

/*
 * What a pixel of the output is, the long way round: in doubles, sample by sample, down in each
 * column and then across, each clipped.
 */
static double long_way(enum dl2_interpolation interpolation, const struct dl2_plane *plane,
                       const struct dl2_box *limit, const struct dl2_box *box, uint32_t width,
                       uint32_t height, uint32_t x, uint32_t y)
{
    const double scale_x = (box->right - box->left) / plane->step_x / width;
    const double scale_y = (box->bottom - box->top) / plane->step_y / height;
    const bool widens = interpolation != DL2_NEAREST;
    double middle_x = box->left / plane->step_x + (x + 0.5) * scale_x;
    double middle_y = box->top / plane->step_y + (y + 0.5) * scale_y;
    double sum = 0, value = 0;
    for (uint32_t i = 0; i < plane->width; i++) {
        double column_sum = 0, column = 0;
        if ((i + 1.0) * plane->step_x <= limit->left || i * plane->step_x >= limit->right)
            continue;
        for (uint32_t j = 0; j < plane->height; j++) {
            if ((j + 1.0) * plane->step_y <= limit->top || j * plane->step_y >= limit->bottom)
                continue;
            const double weight =
                weight_at(interpolation, (j + 0.5 - middle_y) / (widens ? fmax(1, scale_y) : 1));
            column_sum += weight;
            column += weight * plane->data[j * plane->stride + i];
        }
        const double weight =
            weight_at(interpolation, (i + 0.5 - middle_x) / (widens ? fmax(1, scale_x) : 1));
        sum += weight;
        value += weight * clipped_to_byte(column / column_sum);
    }
    return clipped_to_byte(value / sum);
}

static uint8_t clipped(double value)
{
    return (uint8_t)(value < 0 ? 0 : value > 255 ? 255 : rint(value));
}

/* The definition: planes resized apart, then colors, with JPEG's centered chroma. */
static void test_planes(void **state)
{
    static const uint32_t chroma[][2] = {{1, 1}, {2, 1}, {2, 2}};
    struct dl2_random random;
    dl2_random_init(&random, 8, DL2_RANDOM_AUGMENT, 0, 0);
    for (unsigned i = 0; i < 240; i++) {
        const uint32_t width = 8 + dl2_random_below(&random, 40);
        const uint32_t height = 8 + dl2_random_below(&random, 40);
        const bool limited = i % 2;
        struct picture picture;
        make_picture(&picture, limited ? DL2_COLOR_YCBCR_LIMITED : DL2_COLOR_YCBCR, width, height,
                     1 + i % 4 / 2, chroma[i % 3][0], chroma[i % 3][1]);
        struct dl2_box limit, box;
        random_box(&random, width, height, &limit, &box);
        const enum dl2_interpolation filter = (enum dl2_interpolation)(i / 4 % FILTERS);
        const struct dl2_resize_output output = {
            .width = 7, .height = 5, .channels = 3, .interpolation = filter};
        uint8_t *out = resized_by(dl2_resize_kernels_for(dl2_simd_flags()), &picture, &limit, &box,
                                  output, 7 * 5 * 3);
        for (uint32_t y = 0; y < 5; y++)
            for (uint32_t x = 0; x < 7; x++) {
                double v[3];
                for (unsigned p = 0; p < 3; p++)
                    v[p] = long_way(filter, &picture.raster.planes[p], &limit, &box, 7, 5, x, y);
                const double luma = limited ? (v[0] - 16) * 255 / 219 : v[0];
                const double gain = limited ? 255.0 / 224 : 1;
                const double cb = (v[1] - 128) * gain, cr = (v[2] - 128) * gain;
                const double rgb[3] = {luma + 1.402 * cr, luma - 0.344136 * cb - 0.714136 * cr,
                                       luma + 1.772 * cb};
                for (unsigned c = 0; c < 3; c++)
                    if (abs(out[(y * 7 + x) * 3 + c] - clipped(rgb[c])) > 1)
                        fail_msg("picture %u, %s, %u,%u: %d instead of %g", i,
                                 dl2_interpolation_words[filter], x, y, out[(y * 7 + x) * 3 + c],
                                 rgb[c]);
            }
        free(out);
        free_picture(&picture);
    }
}

/* Half precision by its definition: the finite number that is nearest, and the even of two. */
static uint16_t nearest_half(double value)
{
    uint16_t low = 0, high = 0x7bff;
    const double size = fabs(value);
    while (high - low > 1) {
        const uint16_t middle = (uint16_t)((low + high) / 2);
        *((double)dl2_half_to_float(middle) <= size ? &low : &high) = middle;
    }
    const double above = (double)dl2_half_to_float(high) - size;
    const double below = size - (double)dl2_half_to_float(low);
    uint16_t half = above < below || (!(above > below) && low % 2) ? high : low;
    if (size >= 65520) /* half way to what would come after the largest */
        half = 0x7c00;
    return signbit(value) ? half | 0x8000 : half;
}

static void test_halves(void **state)
{
    enum { COUNT = 1000 };
    static const unsigned flags[] = {0, DL2_SIMD_AVX2 | DL2_SIMD_NEON,
                                     DL2_SIMD_AVX2 | DL2_SIMD_AVX512};
    struct dl2_random random;
    dl2_random_init(&random, 9, DL2_RANDOM_AUGMENT, 0, 0);
    for (int round = 0; round < 300; round++) {
        uint8_t in[COUNT];
        float scale[DL2_RESIZE_PHASES], bias[DL2_RESIZE_PHASES], values[COUNT];
        uint16_t halves[COUNT];
        const int exponent = round % 50 - 32; /* from below the least half to beyond the largest */
        for (size_t i = 0; i < DL2_RESIZE_PHASES; i++) {
            /* Few bits in half of the rounds, so that many lie half way. */
            const double size =
                round / 50 % 2 ? uniform(&random, -1, 1) : dl2_random_below(&random, 9);
            scale[i] = i < 3 ? (float)ldexp(size, exponent) : scale[i - 3];
            bias[i] = i >= 3      ? bias[i - 3]
                      : round % 4 ? (float)ldexp(dl2_random_below(&random, 99), exponent - 1)
                                  : -0.0f;
        }
        for (size_t i = 0; i < COUNT; i++)
            in[i] = (uint8_t)dl2_random_below(&random, 256);
        dl2_resize_kernels_c.affine(in, COUNT, scale, bias, DL2_FLOAT32, values);
        for (size_t f = 0; f < 3; f++) {
            const struct dl2_resize_kernels *kernels =
                dl2_resize_kernels_for(flags[f] & dl2_simd_flags());
            kernels->affine(in, COUNT, scale, bias, DL2_FLOAT16, halves);
            for (size_t i = 0; i < COUNT; i++)
                if (halves[i] != nearest_half((double)values[i]))
                    fail_msg("%s: %a is %04x", kernels->name, (double)values[i], halves[i]);
        }
    }
}

/* Floats are the bytes, normalized; those of 16 bits are rounded; NCHW the same. */
static void test_types(void **state)
{
    enum { W = 37, H = 11, N = W * H * 3 };
    struct picture picture;
    make_picture(&picture, DL2_COLOR_YCBCR, 90, 50, 1, 2, 2);
    const struct dl2_box box = {3, 1, 88, 49};
    struct dl2_resize_output output = {.width = W,
                                       .height = H,
                                       .channels = 3,
                                       .mean = {0.485f, 0.456f, 0.406f},
                                       .std = {0.229f, 0.224f, 0.225f}};
    const struct dl2_resize_kernels *kernels = dl2_resize_kernels_for(dl2_simd_flags());
    uint8_t *bytes = resized_by(kernels, &picture, &box, &box, output, N);
    for (unsigned kind = 0; kind < 8; kind++) {
        output.dtype = (enum dl2_dtype)(kind % 4);
        output.layout = kind / 4 ? DL2_NCHW : DL2_NHWC;
        const size_t size = N * dl2_dtype_size(output.dtype);
        uint8_t *out = resized_by(kernels, &picture, &box, &box, output, size);
        for (size_t i = 0; i < N; i++) {
            const size_t c = i % 3, at = output.layout == DL2_NCHW ? c * W * H + i / 3 : i;
            const double want = (bytes[i] / 255.0 - output.mean[c]) / output.std[c];
            float value = out[at];
            uint16_t half;
            if (output.dtype == DL2_FLOAT32)
                memcpy(&value, out + 4 * at, 4);
            memcpy(&half, out + (output.dtype >= DL2_BFLOAT16 ? 2 * at : 0), 2);
            if (output.dtype == DL2_BFLOAT16)
                value = dl2_bfloat_to_float(half);
            if (output.dtype == DL2_FLOAT16)
                value = dl2_half_to_float(half);
            if (output.dtype == DL2_UINT8)
                assert_int_equal(out[at], bytes[i]);
            else
                assert_true(fabs(value - want) <= (output.dtype == DL2_FLOAT32 ? 1e-6
                                                   : output.dtype == DL2_BFLOAT16
                                                       ? fabs(want) / 256 + 1e-6
                                                       : fabs(want) / 2048 + 1e-6));
        }
        uint8_t *converted = malloc(size);
        output.data = converted;
        assert_int_equal(dl2_convert_pixels(&resizer, bytes, &output, NULL), 0);
        assert_memory_equal(converted, out, size);
        free(converted);
        free(out);
    }
    free(bytes);
    free_picture(&picture);
}

/* A wide window: thousands of taps still sum to 1, and none is lost to rounding. */
static void test_many_taps(void **state)
{
    enum { SIDE = 60000 };
    uint8_t *data = malloc(SIDE);
    for (uint32_t i = 0; i < SIDE; i++)
        data[i] = i % 2 ? 201 : 100;
    const struct dl2_raster in = pixels_of(data, SIDE, 1, 1);
    const struct dl2_box box = {0, 0, SIDE, 1};
    for (uint32_t width = 1; width < 20; width += 3) {
        uint8_t out[20];
        assert_int_equal(resize(&in, &box, false, width, 1, 1, out), 0);
        for (uint32_t x = 0; x < width; x++)
            assert_true(abs(out[x] - 150) <= 2);
    }
    free(data);
}

static void test_reduction(void **state)
{
    static const struct {
        double width, height;
        uint32_t reduction;
    } cases[] = {{50, 50, 1},   {299, 600, 1},   {300, 600, 2},  {600, 599, 2},
                 {600, 600, 4}, {1200, 1300, 8}, {2400, 5000, 8}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const struct dl2_crop crop = {.box = {7, 9, 7 + cases[i].width, 9 + cases[i].height}};
        assert_int_equal(dl2_crop_reduction(&crop, 100, 100), cases[i].reduction);
    }
    /* Both directions of an output that is not square have a margin of their own. */
    const struct dl2_crop crop = {.box = {0, 0, 600, 300}};
    assert_int_equal(dl2_crop_reduction(&crop, 100, 100), 2);
    assert_int_equal(dl2_crop_reduction(&crop, 50, 100), 4);
    assert_int_equal(dl2_crop_reduction(&crop, 50, 101), 2);
    assert_int_equal(dl2_crop_reduction(&crop, 51, 100), 2);
}

/* ---- crops ---- */

/* torchvision's RandomResizedCrop and RandomHorizontalFlip by default. */
static const struct dl2_crop_config defaults = {.height = 64,
                                                .width = 64,
                                                .area_min = 0.08,
                                                .area_max = 1,
                                                .aspect_min = 3. / 4,
                                                .aspect_max = 4. / 3,
                                                .flip = true};

static struct dl2_crop training_crop(const struct dl2_crop_config *config, uint32_t width,
                                     uint32_t height, uint64_t number)
{
    struct dl2_random random;
    struct dl2_crop crop;
    dl2_random_init(&random, 1, DL2_RANDOM_AUGMENT, 0, number);
    dl2_crop_for_training(config, &random, width, height, &crop);
    return crop;
}

/* Crops lie within the image and have the area and aspect that were asked for, spread as told. */
static void test_random_crops(void **state)
{
    const struct dl2_crop_config config = defaults;
    enum { TRIES = 4000 };
    double area_sum = 0, aspect_sum = 0;
    unsigned flips = 0, large = 0;
    for (uint64_t i = 0; i < TRIES; i++) {
        const struct dl2_crop crop = training_crop(&config, 500, 500, i);
        assert_true(crop.width > 0 && crop.height > 0);
        assert_true(crop.x + crop.width <= 500 && crop.y + crop.height <= 500);
        assert_true(crop.box.left == 0 && crop.box.right == crop.width);
        const double area = (double)crop.width * crop.height / (500.0 * 500);
        const double aspect = (double)crop.width / crop.height;
        assert_true(area > 0.079 && area <= 1);
        assert_true(aspect > 0.745 && aspect < 1.34);
        area_sum += area;
        aspect_sum += log(aspect);
        flips += crop.flip;
        large += area > 0.9;
    }
    /* Five standard errors around what the rule gives; tries that don't
     * fit make large crops rarer. */
    assert_true(fabs(flips / (double)TRIES - 0.5) < 0.04);
    assert_true(fabs(aspect_sum / TRIES) < 0.015);
    assert_true(area_sum / TRIES > 0.44 && area_sum / TRIES < 0.54);
    assert_true(large > 0 && large < TRIES * 0.109);
}

/* Where no crop fits: the middle, as wide or as high as the aspect allows. */
static void test_central_crop(void **state)
{
    struct dl2_crop_config config = defaults;
    config.area_min = 0.9; /* of 1000x10, no such part has an aspect near 1 */
    struct dl2_crop crop = training_crop(&config, 1000, 10, 0);
    assert_int_equal(crop.width, 13); /* round(10 * 4/3) */
    assert_int_equal(crop.height, 10);
    assert_int_equal(crop.x, 493);
    assert_int_equal(crop.y, 0);
    crop = training_crop(&config, 10, 1001, 0);
    assert_int_equal(crop.width, 10);
    assert_int_equal(crop.height, 13); /* round(10 / (3/4)) */
    assert_int_equal(crop.y, 494);
    crop = training_crop(&config, 1, 1, 0);
    assert_int_equal(crop.width, 1);
    assert_int_equal(crop.height, 1);
    config.flip = false;
    for (uint64_t i = 0; i < 100; i++)
        assert_false(training_crop(&config, 50, 50, i).flip);
}

/* The number of tries a crop takes must not decide the flip, nor its switch the crop. */
static void test_flip_is_drawn_first(void **state)
{
    struct dl2_crop_config config = defaults;
    for (uint64_t i = 0; i < 200; i++) {
        config.flip = true;
        const struct dl2_crop wide = training_crop(&config, 900, 30, i);
        const struct dl2_crop square = training_crop(&config, 100, 100, i);
        config.flip = false;
        const struct dl2_crop same = training_crop(&config, 100, 100, i);
        assert_int_equal(wide.flip, square.flip);
        assert_int_equal(square.x, same.x);
        assert_int_equal(square.width, same.width);
    }
}

/* The rectangle that validation asks for holds all that the whole image would have given. */
static void test_validation_needs_no_more(void **state)
{
    static const uint32_t sizes[][2] = {{500, 333}, {333, 500}, {64, 64},   {73, 73}, {1, 1},
                                        {7, 400},   {400, 7},   {1024, 31}, {90, 80}};
    struct dl2_crop_config config = defaults;
    config.height = config.width = 32;
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++)
        for (config.resize = 32; config.resize <= 48; config.resize++) {
            config.interpolation = (enum dl2_interpolation)((i + config.resize) % FILTERS);
            const uint32_t width = sizes[i][0], height = sizes[i][1];
            uint8_t *data = pattern((size_t)width * height * 3);
            const struct dl2_raster image = pixels_of(data, width, height, 3);
            struct dl2_crop crop;
            uint8_t part[32 * 32 * 3], whole[32 * 32 * 3];
            struct dl2_resize_output output = {.data = part,
                                               .width = 32,
                                               .height = 32,
                                               .channels = 3,
                                               .interpolation = config.interpolation};
            dl2_crop_for_validation(&config, width, height, &crop);
            assert_true(crop.x + crop.width <= width && crop.y + crop.height <= height);
            assert_int_equal(dl2_crop_resize(&resizer, &image, &crop, output, NULL), 0);
            crop.box.left += crop.x;
            crop.box.right += crop.x;
            crop.box.top += crop.y;
            crop.box.bottom += crop.y;
            crop.box.right = crop.box.right > width ? width : crop.box.right;
            crop.box.bottom = crop.box.bottom > height ? height : crop.box.bottom;
            crop.x = crop.y = 0;
            crop.width = width;
            crop.height = height;
            output.data = whole;
            assert_int_equal(dl2_crop_resize(&resizer, &image, &crop, output, NULL), 0);
            assert_memory_equal(part, whole, sizeof part);
            free(data);
        }
}

static void assert_shows(const struct dl2_crop *crop, double left, double top, double right,
                         double bottom)
{
    assert_float_equal(crop->x + crop->box.left, left, 1e-9);
    assert_float_equal(crop->y + crop->box.top, top, 1e-9);
    assert_float_equal(crop->x + crop->box.right, right, 1e-9);
    assert_float_equal(crop->y + crop->box.bottom, bottom, 1e-9);
}

/* An output of 192 x 256: an image of that aspect is shown whole, others in the middle. */
static void test_validation_that_is_not_square(void **state)
{
    struct dl2_crop_config config = defaults;
    struct dl2_crop crop;
    config.height = config.resize = 192;
    config.width = 256;
    dl2_crop_for_validation(&config, 400, 300, &crop);
    assert_shows(&crop, 0, 0, 400, 300);
    dl2_crop_for_validation(&config, 300, 400, &crop); /* becomes 256 wide, 341 high */
    assert_shows(&crop, 0, 74 * 400.0 / 341, 300, (74 + 192) * 400.0 / 341);
    dl2_crop_for_validation(&config, 900, 300, &crop); /* becomes 576 wide, 192 high */
    assert_shows(&crop, 250, 0, 650, 300);
    config.resize = 219; /* covers 219 x 292 */
    dl2_crop_for_validation(&config, 400, 300, &crop);
    assert_shows(&crop, 18 * 400.0 / 292, 14 * 300.0 / 219, 274 * 400.0 / 292, 206 * 300.0 / 219);
    config.squash = true;
    dl2_crop_for_validation(&config, 900, 300, &crop);
    assert_shows(&crop, 0, 0, 900, 300);
    assert_true(crop.width == 900 && crop.height == 300 && !crop.flip);
}

/* Half of a 6 x 4 image, enlarged and made smaller; what no mask can be is refused. */
static void test_nearest(void **state)
{
    enum { WIDE = 6, HIGH = 4 };
    uint8_t data[WIDE * HIGH];
    for (uint8_t i = 0; i < sizeof data; i++)
        data[i] = i;
    struct dl2_raster image = pixels_of(data, WIDE, HIGH, 1);
    const struct dl2_box right = {3, 0, 6, 4}, shifted = {0.5, 0, 6, 4}, beyond = {0, 0, 6.5, 4};
    struct dl2_pixels out;
    uint32_t columns[WIDE];
    assert_int_equal(dl2_pixels_init(&out, WIDE, HIGH, 1, NULL), DL2_OK);
    for (int flip = 0; flip < 2; flip++) {
        assert_int_equal(dl2_crop_nearest(&image, &right, flip, &out, columns, NULL), DL2_OK);
        for (unsigned y = 0; y < HIGH; y++)
            for (unsigned x = 0; x < WIDE; x++)
                assert_int_equal(out.data[y * WIDE + (flip ? WIDE - 1 - x : x)],
                                 data[y * WIDE + 3 + x / 2]);
    }
    image.planes[0].x = 12; /* a part of a larger image */
    assert_int_equal(dl2_crop_nearest(&image, &right, false, &out, columns, NULL),
                     DL2_ERR_ARGUMENT);
    image.planes[0].x = 0;
    assert_int_equal(dl2_crop_nearest(&image, &beyond, false, &out, columns, NULL),
                     DL2_ERR_ARGUMENT);
    image.color = DL2_COLOR_RGB;
    assert_int_equal(dl2_crop_nearest(&image, &right, false, &out, columns, NULL),
                     DL2_ERR_ARGUMENT);
    image.color = DL2_COLOR_GRAY;
    out.width = 2; /* pixels 0.5 + 2.75 / 2 and 0.5 + 2.75 * 3 / 2 */
    out.height = 1;
    assert_int_equal(dl2_crop_nearest(&image, &shifted, false, &out, columns, NULL), DL2_OK);
    assert_int_equal(out.data[0], 2 * WIDE + 1);
    assert_int_equal(out.data[1], 2 * WIDE + 4);
    dl2_pixels_free(&out);
}

#define TEST(name) cmocka_unit_test_teardown(name, free_resizer)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_pillows_figures),
        TEST(test_whole_images),
        TEST(test_resolutions),
        TEST(test_shift),
        TEST(test_flip),
        TEST(test_filters_from_before),
        TEST(test_gray_to_three),
        TEST(test_flat_color),
        TEST(test_refusals),
        TEST(test_paths_agree),
        TEST(test_planes),
        TEST(test_halves),
        TEST(test_types),
        TEST(test_many_taps),
        TEST(test_reduction),
        TEST(test_random_crops),
        TEST(test_central_crop),
        TEST(test_flip_is_drawn_first),
        TEST(test_validation_needs_no_more),
        TEST(test_validation_that_is_not_square),
        TEST(test_nearest),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
