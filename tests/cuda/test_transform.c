/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The card's transform, run here (emulate.h), against the loader's: the same bytes, of planes of
 * any sizes, for any boxes, also where rows are shifted.
 */
#include "common/random.h"
#include "cuda/decode/transform.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
/* after those above */
#include <cmocka.h>

extern bool dl2_emulate_backwards;

enum { IMAGES = 6 };

static struct dl2_random random_numbers;

static uint32_t below(uint32_t count)
{
    return dl2_random_below(&random_numbers, count);
}

/* An image of noise or of smooth colors, with its own memory. */
struct picture {
    struct dl2_gpu_image image;
    uint8_t *memory[3], *straight[3];
    struct dl2_raster plain; /* the same without shifts, for the loader */
    uint32_t *shift;
};

static void fill(uint8_t *data, size_t stride, uint32_t bytes, uint32_t height, bool smooth)
{
    for (uint32_t y = 0; y < height; y++)
        for (uint32_t x = 0; x < stride; x++)
            data[y * stride + x] = (uint8_t)(x >= bytes ? 0xee /* nobody's */
                                             : smooth   ? x + 2 * y + below(4)
                                                        : below(256));
}

static void shift_rows(struct picture *picture, struct dl2_plane *plane, unsigned p, uint32_t most)
{
    const uint32_t per_sample = picture->image.raster.color == DL2_COLOR_RGB ? 3 : 1;
    const uint32_t unit = 8 * picture->image.mcu_x / plane->step_x;
    const uint32_t rows = 8 * picture->image.mcu_y / plane->step_y;
    uint8_t *straight = picture->straight[p] = malloc(plane->height * plane->stride);
    for (uint32_t y = 0; y < plane->height; y++)
        memcpy(straight + y * plane->stride,
               plane->data + y * plane->stride + picture->shift[y / rows] * unit * per_sample,
               (plane->width - most * unit) * per_sample);
    picture->plain.planes[p].data = straight;
    picture->plain.planes[p].width = plane->width - most * unit;
}

static void make_picture(struct picture *picture, enum dl2_color color, uint32_t most_side,
                         bool shifted)
{
    struct dl2_gpu_image *image = &picture->image;
    *picture = (struct picture){.image.raster.color = color};
    const uint32_t step_x = color == DL2_COLOR_YCBCR ? 1 + below(2) : 1;
    const uint32_t step_y = color == DL2_COLOR_YCBCR ? 1 + below(2) : 1;
    const uint32_t most = shifted ? 2 : 0; /* MCUs */
    const uint32_t reach = most * 8 * step_x;
    const uint32_t width = reach + 1 + below(most_side), height = 1 + below(most_side);
    const uint32_t x = 16 * below(3), y = 16 * below(3); /* as of a region */
    const bool smooth = below(2);
    image->mcu_x = step_x;
    image->mcu_y = step_y;
    picture->shift = malloc((height / 8 + 1) * sizeof *picture->shift);
    for (uint32_t i = 0; i <= height / 8; i++)
        picture->shift[i] = below(most + 1);
    image->shift = shifted ? picture->shift : NULL;
    for (unsigned p = 0; p < dl2_raster_planes(&image->raster); p++) {
        struct dl2_plane *plane = &image->raster.planes[p];
        const uint32_t across = p ? step_x : 1, down = p ? step_y : 1;
        *plane = (struct dl2_plane){.width = (width + across - 1) / across,
                                    .height = (height + down - 1) / down,
                                    .x = x,
                                    .y = y,
                                    .step_x = across,
                                    .step_y = down};
        const uint32_t bytes = plane->width * (color == DL2_COLOR_RGB ? 3 : 1);
        plane->stride = (bytes + 3) / 4 * 4 + 4 * below(3);
        /* Exactly as large, so that sanitizers see what goes beyond. */
        if (posix_memalign((void **)&picture->memory[p], 64, plane->stride * plane->height))
            abort();
        fill(picture->memory[p], plane->stride, bytes, plane->height, smooth);
        plane->data = picture->memory[p];
    }
    picture->plain = image->raster;
    for (unsigned p = 0; shifted && p < dl2_raster_planes(&image->raster); p++)
        shift_rows(picture, &image->raster.planes[p], p, most);
    const uint32_t usable = width - reach;
    const uint32_t left = below(usable), top = below(height);
    image->limit = (struct dl2_box){x + left, y + top, x + left + 1 + below(usable - left),
                                    y + top + 1 + below(height - top)};
    image->box = image->limit;
    if (below(2)) { /* part of it, to a fraction of a pixel */
        const double w = image->limit.right - image->limit.left,
                     h = image->limit.bottom - image->limit.top;
        image->box.left += w * 0.3 * dl2_random_uniform(&random_numbers);
        image->box.right -= w * 0.3 * dl2_random_uniform(&random_numbers);
        image->box.top += h * 0.3 * dl2_random_uniform(&random_numbers);
        image->box.bottom -= h * 0.3 * dl2_random_uniform(&random_numbers);
    }
    image->flip = below(2);
}

static void free_picture(struct picture *picture)
{
    for (unsigned p = 0; p < 3; p++) {
        free(picture->memory[p]);
        free(picture->straight[p]);
    }
    free(picture->shift);
}

/* A batch of pictures on the card, and one by one in the loader. */
static void compare(struct picture *pictures, uint32_t count, uint32_t side, uint32_t channels)
{
    const size_t bytes = (size_t)side * side * channels;
    uint8_t *want = malloc(bytes), *have[2];
    void *table = malloc(dl2_gpu_plan_bytes(count));
    struct dl2_resizer resizer = {.kernels = NULL};
    for (int order = 0; order < 2; order++) {
        struct dl2_gpu_plan plan;
        have[order] = malloc(count * bytes);
        memset(have[order], 0x77 + order, count * bytes);
        dl2_gpu_plan_begin(&plan, table, count, side, channels);
        for (uint32_t i = 0; i < count; i++) {
            pictures[i].image.out = have[order] + i * bytes;
            assert_true(dl2_gpu_plan_add(&plan, &pictures[i].image));
        }
        void *scratch;
        if (posix_memalign(&scratch, 64, dl2_gpu_plan_scratch(&plan)))
            abort();
        memset(scratch, 0xff, dl2_gpu_plan_scratch(&plan));
        dl2_emulate_backwards = order;
        assert_int_equal(dl2_gpu_transform(&plan, table, scratch, NULL), 0);
        free(scratch);
    }
    assert_memory_equal(have[0], have[1], count * bytes); /* else it is a race */
    for (uint32_t i = 0; i < count; i++) {
        const struct dl2_gpu_image *image = &pictures[i].image;
        const struct dl2_resize_output out = {
            .data = want, .width = side, .height = side, .channels = channels, .flip = image->flip};
        struct dl2_error error = DL2_ERROR_INIT;
        if (dl2_resize_raster(&resizer, &pictures[i].plain, &image->limit, &image->box, &out,
                              &error) < 0)
            fail_msg("%s", error.message);
        for (size_t k = 0; k < bytes; k++)
            if (want[k] != have[0][i * bytes + k])
                fail_msg("picture %u, byte %zu of side %u: %u, not %u", i, k, side,
                         have[0][i * bytes + k], want[k]);
    }
    dl2_resizer_free(&resizer);
    free(have[0]);
    free(have[1]);
    free(want);
    free(table);
}

static void compare_colors(uint32_t most_side, uint32_t side, bool shifted)
{
    static const enum dl2_color colors[] = {DL2_COLOR_YCBCR, DL2_COLOR_GRAY, DL2_COLOR_RGB};
    struct picture pictures[IMAGES];
    for (uint32_t channels = 1; channels <= 3; channels += 2) {
        for (unsigned i = 0; i < IMAGES; i++)
            make_picture(&pictures[i], colors[i % 3], most_side, shifted);
        compare(pictures, IMAGES, side, channels);
        for (unsigned i = 0; i < IMAGES; i++)
            free_picture(&pictures[i]);
    }
}

/* Larger and smaller, by a little and by much; no side that is a multiple of anything. */
static void test_the_loaders_bytes(void **state)
{
    (void)state;
    static const uint32_t sides[] = {1, 7, 31, 32, 33, 70};
    for (size_t i = 0; i < sizeof sides / sizeof *sides; i++) {
        compare_colors(12, sides[i], false);
        compare_colors(90, sides[i], false);
        compare_colors(260, sides[i], false);
    }
}

/* Rows that don't fit into shared memory at once. */
static void test_runs(void **state)
{
    (void)state;
    compare_colors(5000, 9, false);
    compare_colors(3000, 33, false);
}

static void test_shifted_rows(void **state)
{
    (void)state;
    compare_colors(60, 17, true);
    compare_colors(300, 40, true);
}

static void test_refuses(void **state)
{
    (void)state;
    struct picture picture;
    struct dl2_gpu_plan plan;
    make_picture(&picture, DL2_COLOR_YCBCR, 50, false);
    void *table = malloc(dl2_gpu_plan_bytes(1));
    dl2_gpu_plan_begin(&plan, table, 1, 16, 3);
    struct dl2_gpu_image image = picture.image;
    image.limit.right = 1e6;
    assert_false(dl2_gpu_plan_add(&plan, &image));
    image = picture.image;
    image.box.top = image.box.bottom;
    assert_false(dl2_gpu_plan_add(&plan, &image));
    image = picture.image;
    image.raster.color = DL2_COLOR_YCBCR_LIMITED;
    assert_false(dl2_gpu_plan_add(&plan, &image));
    image = picture.image;
    image.raster.planes[1].stride++;
    assert_false(dl2_gpu_plan_add(&plan, &image));
    assert_int_equal(plan.images + plan.axis_count + plan.windows + plan.weights, 0);
    assert_true(dl2_gpu_plan_add(&plan, &picture.image));
    free(table);
    free_picture(&picture);
}

int main(void)
{
    dl2_random_init(&random_numbers, 11, DL2_RANDOM_TEST, 0, 0);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_the_loaders_bytes),
        cmocka_unit_test(test_runs),
        cmocka_unit_test(test_shifted_rows),
        cmocka_unit_test(test_refuses),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
