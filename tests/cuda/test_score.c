/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The card's scores, run here (emulate.h), against the processors': squared errors exactly, SSIM to
 * 1e-5 an image, for sizes that are no multiple of a tile and below the window, gray and color.
 */
#include "common/file.h"
#include "common/random.h"
#include "cuda/score.h"
#include "quality/score.h"
#include "quality/score_device.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
/* after those above */
#include <cmocka.h>

extern bool dl2_emulate_backwards;

static struct dl2_random random_numbers;

enum content { FLAT, SMOOTH, NOISE, CONTENTS };

static void paint(struct dl2_image *image, enum content content)
{
    for (uint32_t y = 0; y < image->height; y++)
        for (uint32_t x = 0; x < image->width * image->channels; x++)
            image->data[y * image->stride + x] =
                content == FLAT     ? 200
                : content == SMOOTH ? (uint8_t)(128 + 100 * sin(x / 37.0) * cos(y / 23.0))
                                    : (uint8_t)dl2_random_below(&random_numbers, 256);
}

/* Makes `other` of `image`, with each sample changed by up to `most`. */
static void disturb(const struct dl2_image *image, struct dl2_image *other, int most)
{
    for (uint32_t y = 0; y < other->height; y++)
        for (uint32_t x = 0; x < other->width; x++)
            for (uint32_t c = 0; c < other->channels; c++) {
                const uint8_t from = image->data[y * image->stride + x * image->channels +
                                                 (image->channels == 1 ? 0 : c)];
                const int value =
                    from +
                    (most ? (int)dl2_random_below(&random_numbers, 2 * (uint32_t)most + 1) - most
                          : 0);
                other->data[y * other->stride + x * other->channels + c] =
                    (uint8_t)(value < 0     ? 0
                              : value > 255 ? 255
                                            : value);
            }
}

/* A copy without padding or room behind it, so that sanitizers see reads beyond the end. */
static uint8_t *packed(const struct dl2_image *image)
{
    const size_t row = (size_t)image->width * image->channels;
    uint8_t *copy = malloc(row * image->height);
    for (uint32_t y = 0; y < image->height; y++)
        memcpy(copy + y * row, image->data + y * image->stride, row);
    return copy;
}

/* What the kernel scores, in the order of these sums. */
enum { PSNR_RGB, PSNR_Y, SSIM, SCORED };
static const struct dl2_metric *const scored[SCORED + 1] = {
    [PSNR_RGB] = &dl2_metric_psnr_rgb,
    [PSNR_Y] = &dl2_metric_psnr_y,
    [SSIM] = &dl2_metric_ssim,
};

static void score(const struct dl2_image *a, const struct dl2_image *b,
                  double (*sums)[DL2_METRIC_SUMS])
{
    uint8_t *one = packed(a), *other = packed(b);
    const struct dl2_gpu_pair pair = {.a = one,
                                      .b = other,
                                      .stride_a = (size_t)a->width * a->channels,
                                      .stride_b = (size_t)b->width * b->channels,
                                      .channels_a = a->channels,
                                      .channels_b = b->channels,
                                      .width = a->width,
                                      .height = a->height};
    const size_t blocks = dl2_gpu_score_blocks(a->width, a->height);
    struct dl2_gpu_score *scores[2];
    for (int order = 0; order < 2; order++) {
        scores[order] = malloc(blocks * sizeof *scores[order]);
        memset(scores[order], 0xff, blocks * sizeof *scores[order]);
        dl2_emulate_backwards = order;
        assert_int_equal(dl2_gpu_score_pair(&pair, scores[order], NULL), 0);
    }
    assert_memory_equal(scores[0], scores[1], blocks * sizeof *scores[0]); /* else it is a race */
    for (int i = 0; i < SCORED; i++)
        sums[i][0] = 0;
    for (size_t i = 0; i < blocks; i++) {
        sums[PSNR_RGB][0] += (double)scores[0][i].samples;
        sums[PSNR_Y][0] += (double)scores[0][i].luma;
        sums[SSIM][0] += scores[0][i].ssim;
    }
    free(scores[0]);
    free(scores[1]);
    free(one);
    free(other);
}

static void compare(struct dl2_scorer *scorer, uint32_t width, uint32_t height, uint32_t channels_a,
                    uint32_t channels_b, enum content content, int most)
{
    struct dl2_image a = DL2_IMAGE_INIT, b = DL2_IMAGE_INIT;
    assert_int_equal(dl2_image_reshape(&a, width, height, channels_a, NULL), DL2_OK);
    assert_int_equal(dl2_image_reshape(&b, width, height, channels_b, NULL), DL2_OK);
    paint(&a, content);
    disturb(&a, &b, most);
    double sums[SCORED][DL2_METRIC_SUMS];
    score(&a, &b, sums);
    dl2_scorer_set_reference(scorer, &a);
    for (int i = 0; i < SCORED; i++) {
        struct dl2_score have, want;
        dl2_score_of_sums(scored[i], sums[i], &a, &b, &have);
        assert_int_equal(dl2_scorer_score(scorer, scored[i], &b, &want, NULL), DL2_OK);
        assert_int_equal(isnan(have.value), isnan(want.value));
        if (scored[i]->of_mse) /* whole numbers: the same to the last bit */
            assert_memory_equal(&have.mean, &want.mean, sizeof want.mean);
        if (!isnan(want.value) && !(fabs(have.value - want.value) <= 1e-5))
            fail_msg("%s of %ux%u, %u and %u channels: %.9f, not %.9f", scored[i]->name, width,
                     height, channels_a, channels_b, have.value, want.value);
    }
    dl2_image_free(&a);
    dl2_image_free(&b);
}

static void test_the_processors_scores(void **state)
{
    (void)state;
    static const uint32_t sizes[][2] = {{1, 1},   {10, 40},  {40, 10},  {11, 11},
                                        {12, 11}, {31, 17},  {32, 16},  {33, 43},
                                        {42, 26}, {100, 75}, {205, 130}};
    static const int most[] = {0, 1, 30, 255};
    struct dl2_scorer *scorer;
    assert_int_equal(dl2_scorer_create(&scorer, NULL), DL2_OK);
    for (size_t s = 0; s < sizeof sizes / sizeof *sizes; s++)
        for (unsigned content = FLAT; content < CONTENTS; content++)
            for (size_t m = 0; m < 4; m++)
                for (uint32_t a = 1; a <= 3; a += 2)
                    for (uint32_t b = 1; b <= 3; b += 2)
                        if ((s + m + a + b) % 3 == 0 || s < 5) /* enough of them */
                            compare(scorer, sizes[s][0], sizes[s][1], a, b, (enum content)content,
                                    most[m]);
    dl2_scorer_free(scorer);
}

static void test_no_pixels(void **state)
{
    (void)state;
    const struct dl2_gpu_pair pair = {.width = 0, .height = 5};
    assert_int_not_equal(dl2_gpu_score_pair(&pair, NULL, NULL), 0);
}

/* ---- a whole scoring on a device that is the emulation ---- */

struct dl2_score_lane {
    const struct dl2_image *reference; /* the real one copies */
};

static unsigned lanes, closed;

static int lane_create(struct dl2_score_device *device, struct dl2_score_lane **out,
                       struct dl2_error *error)
{
    (void)device, (void)error;
    *out = calloc(1, sizeof **out);
    lanes++;
    return DL2_OK;
}

static void lane_free(struct dl2_score_lane *lane)
{
    closed += lane != NULL;
    free(lane);
}

static int lane_set_reference(struct dl2_score_lane *lane, const struct dl2_image *reference,
                              struct dl2_error *error)
{
    (void)error;
    lane->reference = reference;
    return DL2_OK;
}

static bool broken;

static int lane_score(struct dl2_score_lane *lane, const struct dl2_image *variant,
                      double (*sums)[DL2_METRIC_SUMS], struct dl2_error *error)
{
    if (broken)
        return dl2_error_set(error, DL2_ERR_SYSTEM, "the card fell out");
    score(lane->reference, variant, sums);
    return DL2_OK;
}

static const struct dl2_score_device_class emulated = {
    .name = "emulated",
    .metrics = scored,
    .lane_create = lane_create,
    .lane_free = lane_free,
    .set_reference = lane_set_reference,
    .score = lane_score,
};

static char root[256];

static void put(const char *name, uint32_t width, uint32_t height, int most)
{
    static uint8_t file[32 + 64 * 64 * 3];
    struct dl2_image image = DL2_IMAGE_INIT, other = DL2_IMAGE_INIT;
    char path[512];
    assert_int_equal(dl2_image_reshape(&image, width, height, 3, NULL), DL2_OK);
    assert_int_equal(dl2_image_reshape(&other, width, height, 3, NULL), DL2_OK);
    paint(&image, SMOOTH);
    disturb(&image, &other, most);
    size_t size = (size_t)sprintf((char *)file, "P6 %u %u 255\n", width, height);
    for (uint32_t y = 0; y < height; y++, size += (size_t)width * 3)
        memcpy(file + size, other.data + y * other.stride, (size_t)width * 3);
    snprintf(path, sizeof path, "%s/%s", root, name);
    *strrchr(path, '/') = '\0';
    assert_int_equal(dl2_make_folders(path, NULL), DL2_OK);
    snprintf(path, sizeof path, "%s/%s", root, name);
    assert_int_equal(dl2_file_write(path, file, size, NULL), DL2_OK);
    dl2_image_free(&image);
    dl2_image_free(&other);
}

static void test_scoring(void **state)
{
    (void)state;
    const char *base = getenv("TMPDIR");
    char reference[300], variant[300], command[300];
    snprintf(root, sizeof root, "%s/dl2-score.XXXXXX", base ? base : "/tmp");
    assert_non_null(mkdtemp(root));
    snprintf(reference, sizeof reference, "%s/reference", root);
    snprintf(variant, sizeof variant, "%s/variant", root);
    put("reference/a.ppm", 60, 40, 0);
    put("variant/a.ppm", 60, 40, 20);
    put("reference/b.ppm", 30, 50, 0);
    put("variant/b.ppm", 30, 50, 0);
    put("reference/c.ppm", 8, 9, 0);
    put("variant/c.ppm", 8, 9, 3);
    put("reference/d.ppm", 20, 20, 0);
    put("variant/d.ppm", 20, 21, 0);
    put("reference/e.ppm", 20, 20, 0);
    struct dl2_score_device device = {&emulated};
    struct dl2_scoring_options options = {.jobs = 1};
    for (unsigned i = 0; dl2_metric_at(i); i++)
        options.metrics[i] = dl2_metric_at(i)->by_default;
    struct dl2_scoring want, have;
    struct dl2_error error = DL2_ERROR_INIT;
    const char *const variants[] = {variant};
    assert_int_equal(dl2_scoring_run(reference, variants, 1, &options, &want, &error), DL2_OK);
    options.device = &device;
    assert_int_equal(dl2_scoring_run(reference, variants, 1, &options, &have, &error), DL2_OK);
    assert_string_equal(want.device, "cpu");
    assert_string_equal(have.device, "emulated");
    for (size_t i = 0; i < want.count; i++) {
        const struct dl2_pair *a = &want.variants[0].pairs[i], *b = &have.variants[0].pairs[i];
        assert_int_equal(a->state, b->state);
        for (unsigned m = 0; a->state == DL2_PAIR_SCORED && m < want.metric_count; m++) {
            const double one = a->scores[m].value, other = b->scores[m].value;
            assert_true(isnan(one) ? isnan(other) : fabs(one - other) <= 1e-5);
        }
    }
    assert_int_equal(have.variants[0].states[DL2_PAIR_SCORED], 3);
    assert_true(lanes == 1 && closed == 1);
    dl2_scoring_free(&have);
    broken = true;
    assert_int_equal(dl2_scoring_run(reference, variants, 1, &options, &have, &error),
                     DL2_ERR_SYSTEM);
    assert_non_null(strstr(error.message, "the card fell out"));
    assert_int_equal(closed, 2);
    dl2_scoring_free(&want);
    snprintf(command, sizeof command, "rm -rf '%s'", root);
    assert_int_equal(system(command), 0);
}

int main(void)
{
    dl2_random_init(&random_numbers, 3, DL2_RANDOM_TEST, 0, 0);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_the_processors_scores),
        cmocka_unit_test(test_no_pixels),
        cmocka_unit_test(test_scoring),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
