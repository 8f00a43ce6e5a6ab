/* The resize against Pillow's figures, and the rules by which crops are chosen. */
#include "common/image.h"
#include "loader/transform.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

struct golden {
    uint32_t width, height, channels;
    struct dl2_box box;
    uint32_t out_width, out_height;
    const uint8_t *pixels;
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

static struct dl2_pixels pixels_of(const uint8_t *data, uint32_t width, uint32_t height,
                                   uint32_t channels)
{
    return (struct dl2_pixels){data, width, height, channels, (size_t)width * channels};
}

static void test_pillows_figures(void **state)
{
    (void)state;
    struct dl2_resizer resizer = DL2_RESIZER_INIT;
    for (size_t i = 0; i < sizeof goldens / sizeof *goldens; i++) {
        const struct golden *golden = &goldens[i];
        uint8_t *data = pattern((size_t)golden->width * golden->height * golden->channels);
        const struct dl2_pixels in =
            pixels_of(data, golden->width, golden->height, golden->channels);
        const size_t size = (size_t)golden->out_width * golden->out_height * golden->channels;
        uint8_t *out = malloc(size);
        assert_int_equal(dl2_resize(&resizer, &in, &golden->box, false, golden->out_width,
                                    golden->out_height, golden->channels, out, NULL),
                         0);
        for (size_t k = 0; k < size; k++)
            if (out[k] != golden->pixels[k])
                fail_msg("case %zu, byte %zu: %d instead of %d", i, k, out[k], golden->pixels[k]);
        free(out);
        free(data);
    }
    dl2_resizer_free(&resizer);
}

/* A flip is the mirror image, byte for byte. */
static void test_flip(void **state)
{
    (void)state;
    struct dl2_resizer resizer = DL2_RESIZER_INIT;
    uint8_t *data = pattern(33 * 21 * 3);
    const struct dl2_pixels in = pixels_of(data, 33, 21, 3);
    const struct dl2_box box = {1.5, 0, 32, 20.25};
    uint8_t plain[9 * 7 * 3], mirrored[9 * 7 * 3];
    assert_int_equal(dl2_resize(&resizer, &in, &box, false, 9, 7, 3, plain, NULL), 0);
    assert_int_equal(dl2_resize(&resizer, &in, &box, true, 9, 7, 3, mirrored, NULL), 0);
    for (int y = 0; y < 7; y++)
        for (int x = 0; x < 9; x++)
            assert_memory_equal(mirrored + (y * 9 + x) * 3, plain + (y * 9 + 8 - x) * 3, 3);
    assert_memory_not_equal(plain, mirrored, sizeof plain);
    free(data);
    dl2_resizer_free(&resizer);
}

static void test_gray_to_three(void **state)
{
    (void)state;
    struct dl2_resizer resizer = DL2_RESIZER_INIT;
    uint8_t *data = pattern(13 * 11);
    const struct dl2_pixels in = pixels_of(data, 13, 11, 1);
    const struct dl2_box box = {0, 0, 13, 11};
    uint8_t gray[5 * 4], colour[5 * 4 * 3];
    assert_int_equal(dl2_resize(&resizer, &in, &box, false, 5, 4, 1, gray, NULL), 0);
    assert_int_equal(dl2_resize(&resizer, &in, &box, false, 5, 4, 3, colour, NULL), 0);
    for (int i = 0; i < 5 * 4 * 3; i++)
        assert_int_equal(colour[i], gray[i / 3]);
    free(data);
    dl2_resizer_free(&resizer);
}

/* One colour stays that colour at every size: the weights add up. */
static void test_flat_colour(void **state)
{
    (void)state;
    struct dl2_resizer resizer = DL2_RESIZER_INIT;
    uint8_t *data = malloc(97 * 89), *out = malloc(128 * 128);
    for (int value = 0; value < 256; value += 51) {
        memset(data, value, 97 * 89);
        const struct dl2_pixels in = pixels_of(data, 97, 89, 1);
        for (uint32_t side = 1; side <= 128; side += 9) {
            const struct dl2_box box = {0.3, 0.7, 96.9, 88.1};
            assert_int_equal(dl2_resize(&resizer, &in, &box, false, side, side, 1, out, NULL), 0);
            for (uint32_t i = 0; i < side * side; i++)
                assert_int_equal(out[i], value);
        }
    }
    free(data);
    free(out);
    dl2_resizer_free(&resizer);
}

static void test_refusals(void **state)
{
    (void)state;
    struct dl2_resizer resizer = DL2_RESIZER_INIT;
    static const uint8_t data[4 * 4 * 3];
    uint8_t out[12];
    const struct dl2_pixels in = pixels_of(data, 4, 4, 3);
    static const struct dl2_box wrong[] = {
        {0, 0, 4.5, 4}, {-0.1, 0, 4, 4}, {2, 0, 2, 4}, {0, 3, 4, 1}, {0, 0, 4, (double)NAN}};
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++)
        assert_int_equal(dl2_resize(&resizer, &in, &wrong[i], false, 2, 2, 3, out, NULL),
                         DL2_ERR_ARGUMENT);
    const struct dl2_box whole = {0, 0, 4, 4};
    assert_int_equal(dl2_resize(&resizer, &in, &whole, false, 2, 2, 1, out, NULL),
                     DL2_ERR_ARGUMENT);
    assert_int_equal(dl2_resize(&resizer, &in, &whole, false, 0, 2, 3, out, NULL),
                     DL2_ERR_ARGUMENT);
    dl2_resizer_free(&resizer);
}

static struct dl2_view training_view(const struct dl2_loader_config *config, uint32_t width,
                                     uint32_t height, uint64_t number)
{
    struct dl2_random random;
    struct dl2_view view;
    dl2_random_init(&random, 1, DL2_RANDOM_AUGMENT, 0, number);
    dl2_view_for_training(config, &random, width, height, &view);
    return view;
}

/* Crops lie within the image and have the area and aspect that were asked for, spread as told. */
static void test_random_crops(void **state)
{
    (void)state;
    const struct dl2_loader_config config = DL2_LOADER_DEFAULTS;
    enum { TRIES = 4000 };
    double area_sum = 0, aspect_sum = 0;
    unsigned flips = 0, large = 0;
    for (uint64_t i = 0; i < TRIES; i++) {
        const struct dl2_view view = training_view(&config, 500, 500, i);
        assert_true(view.width > 0 && view.height > 0);
        assert_true(view.x + view.width <= 500 && view.y + view.height <= 500);
        assert_true(view.box.left == 0 && view.box.right == view.width);
        const double area = (double)view.width * view.height / (500.0 * 500);
        const double aspect = (double)view.width / view.height;
        assert_true(area > 0.079 && area <= 1);
        assert_true(aspect > 0.745 && aspect < 1.34);
        area_sum += area;
        aspect_sum += log(aspect);
        flips += view.flip;
        large += area > 0.9;
    }
    /* Five standard errors around what the rule gives; tries that don't fit make large crops rarer.
     */
    assert_true(fabs(flips / (double)TRIES - 0.5) < 0.04);
    assert_true(fabs(aspect_sum / TRIES) < 0.015);
    assert_true(area_sum / TRIES > 0.44 && area_sum / TRIES < 0.54);
    assert_true(large > 0 && large < TRIES * 0.109);
}

/* Where no crop fits: the middle, as wide or as high as the aspect allows. */
static void test_central_crop(void **state)
{
    (void)state;
    struct dl2_loader_config config = DL2_LOADER_DEFAULTS;
    config.area_min = 0.9; /* of 1000x10, no such part has an aspect near 1 */
    struct dl2_view view = training_view(&config, 1000, 10, 0);
    assert_int_equal(view.width, 13); /* round(10 * 4/3) */
    assert_int_equal(view.height, 10);
    assert_int_equal(view.x, 493);
    assert_int_equal(view.y, 0);
    view = training_view(&config, 10, 1001, 0);
    assert_int_equal(view.width, 10);
    assert_int_equal(view.height, 13); /* round(10 / (3/4)) */
    assert_int_equal(view.y, 494);
    view = training_view(&config, 1, 1, 0);
    assert_int_equal(view.width, 1);
    assert_int_equal(view.height, 1);
    config.flip = false;
    for (uint64_t i = 0; i < 100; i++)
        assert_false(training_view(&config, 50, 50, i).flip);
}

/* The number of tries a crop takes must not decide the flip, nor its switch the crop. */
static void test_flip_is_drawn_first(void **state)
{
    (void)state;
    struct dl2_loader_config config = DL2_LOADER_DEFAULTS;
    for (uint64_t i = 0; i < 200; i++) {
        config.flip = true;
        const struct dl2_view wide = training_view(&config, 900, 30, i);
        const struct dl2_view square = training_view(&config, 100, 100, i);
        config.flip = false;
        const struct dl2_view same = training_view(&config, 100, 100, i);
        assert_int_equal(wide.flip, square.flip);
        assert_int_equal(square.x, same.x);
        assert_int_equal(square.width, same.width);
    }
}

/* The rectangle that validation asks for holds all that the whole image would have given. */
static void test_validation_needs_no_more(void **state)
{
    (void)state;
    static const uint32_t sizes[][2] = {{500, 333}, {333, 500}, {64, 64},   {73, 73}, {1, 1},
                                        {7, 400},   {400, 7},   {1024, 31}, {90, 80}};
    struct dl2_loader_config config = DL2_LOADER_DEFAULTS;
    config.train = false;
    config.image_size = 32;
    struct dl2_resizer resizer = DL2_RESIZER_INIT;
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++)
        for (config.resize = 32; config.resize <= 48; config.resize += 5) {
            const uint32_t width = sizes[i][0], height = sizes[i][1];
            uint8_t *data = pattern((size_t)width * height * 3);
            struct dl2_image image = {data, width, height, 3, (size_t)width * 3, 0};
            struct dl2_view view;
            uint8_t part[32 * 32 * 3], whole[32 * 32 * 3];
            dl2_view_for_validation(&config, width, height, &view);
            assert_true(view.x + view.width <= width && view.y + view.height <= height);
            assert_int_equal(dl2_transform(&resizer, &image, &view, &config, part, NULL), 0);
            view.box.left += view.x;
            view.box.right += view.x;
            view.box.top += view.y;
            view.box.bottom += view.y;
            view.box.right = view.box.right > width ? width : view.box.right;
            view.box.bottom = view.box.bottom > height ? height : view.box.bottom;
            view.x = view.y = 0;
            view.width = width;
            view.height = height;
            assert_int_equal(dl2_transform(&resizer, &image, &view, &config, whole, NULL), 0);
            assert_memory_equal(part, whole, sizeof part);
            free(data);
        }
    dl2_resizer_free(&resizer);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_pillows_figures),
        cmocka_unit_test(test_flip),
        cmocka_unit_test(test_gray_to_three),
        cmocka_unit_test(test_flat_colour),
        cmocka_unit_test(test_refusals),
        cmocka_unit_test(test_random_crops),
        cmocka_unit_test(test_central_crop),
        cmocka_unit_test(test_flip_is_drawn_first),
        cmocka_unit_test(test_validation_needs_no_more),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
