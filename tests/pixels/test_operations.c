/* SPDX-License-Identifier: BSD-2-Clause */
/* Operations on pixels against torchvision's figures, and every instruction set against plain C. */
#include "common/simd.h"
#include "pixels/augment.h"
#include "pixels/operation_kernels.h"
#include "pixels/policies.h"
#include "tests/unit.h"

#include <math.h>

struct golden {
    const char *name;
    uint32_t channels;
    int low, high; /* the range of the pattern's values */
    double a, b;
    const char *pixels; /* two hexadecimal digits a byte */
};

struct magnitudes {
    const char *name;
    bool is_signed;
    double at[3];
};

struct policy {
    const char *name;
    double chance, magnitude;
};

#include "operations_golden.h"

/* The same as in gen_operations.py. */
enum { WIDTH = 13, HEIGHT = 10 };

static size_t size_of(const struct dl2_pixels *pixels)
{
    return (size_t)pixels->width * pixels->height * pixels->channels;
}

static void fill_in(struct dl2_pixels *pixels, int low, int high)
{
    uint32_t state = 1;
    for (size_t i = 0; i < size_of(pixels); i++) {
        state = state * 1664525 + 1013904223;
        pixels->data[i] = (uint8_t)(low + (int)(state >> 24) * (high - low) / 255);
    }
}

static struct dl2_pixels pattern(uint32_t width, uint32_t height, uint32_t channels, int low,
                                 int high)
{
    struct dl2_pixels pixels;
    struct dl2_error error = DL2_ERROR_INIT;
    expect_ok(dl2_pixels_init(&pixels, width, height, channels, &error), &error);
    fill_in(&pixels, low, high);
    return pixels;
}

/* ---- the operations, by the names that gen_operations.py gives them ---- */

typedef void apply(struct dl2_pixels *pixels, double a, double b);

static void brightness(struct dl2_pixels *pixels, double a, double b)
{
    dl2_pixels_brightness(pixels, (float)a);
}

static void contrast(struct dl2_pixels *pixels, double a, double b)
{
    dl2_pixels_contrast(pixels, (float)a);
}

static void saturation(struct dl2_pixels *pixels, double a, double b)
{
    dl2_pixels_saturation(pixels, (float)a);
}

static void sharpness(struct dl2_pixels *pixels, double a, double b)
{
    dl2_pixels_sharpness(pixels, (float)a);
}

static void hue(struct dl2_pixels *pixels, double a, double b)
{
    dl2_pixels_hue(pixels, a);
}

static void grayscale(struct dl2_pixels *pixels, double a, double b)
{
    dl2_pixels_grayscale(pixels);
}

static void invert(struct dl2_pixels *pixels, double a, double b)
{
    dl2_pixels_invert(pixels);
}

static void solarize(struct dl2_pixels *pixels, double a, double b)
{
    dl2_pixels_solarize(pixels, a);
}

static void posterize(struct dl2_pixels *pixels, double a, double b)
{
    dl2_pixels_posterize(pixels, (unsigned)a);
}

static void autocontrast(struct dl2_pixels *pixels, double a, double b)
{
    dl2_pixels_autocontrast(pixels);
}

static void equalize(struct dl2_pixels *pixels, double a, double b)
{
    dl2_pixels_equalize(pixels);
}

static void blur(struct dl2_pixels *pixels, double a, double b)
{
    dl2_pixels_blur(pixels, (unsigned)a, b);
}

static void flip(struct dl2_pixels *pixels, double a, double b)
{
    dl2_pixels_flip_down(pixels);
}

static void rotate_about_middle(struct dl2_pixels *pixels, double a, double b)
{
    const struct dl2_affine affine = dl2_affine_rotation(pixels, a);
    dl2_pixels_affine(pixels, &affine, (uint8_t)b);
}

static void shear(struct dl2_pixels *pixels, double a, double b)
{
    const struct dl2_affine affine = dl2_affine_shear(a, b, 0, 0);
    dl2_pixels_affine(pixels, &affine, 0);
}

static void shear_about_middle(struct dl2_pixels *pixels, double a, double b)
{
    const double radian = atan(1) / 45;
    const struct dl2_affine affine = dl2_affine_shear(tan(a * radian), tan(b * radian),
                                                      pixels->width / 2.0, pixels->height / 2.0);
    dl2_pixels_affine(pixels, &affine, 0);
}

static void translate(struct dl2_pixels *pixels, double a, double b)
{
    const struct dl2_affine affine = dl2_affine_translation(a, b);
    dl2_pixels_affine(pixels, &affine, 0);
}

static void erase(struct dl2_pixels *pixels, double a, double b)
{
    dl2_pixels_erase(pixels, 2, 3, 5, 4, (uint8_t)a);
}

static const struct {
    const char *name;
    apply *run;
} operations[] = {
    {"brightness", brightness},
    {"contrast", contrast},
    {"saturation", saturation},
    {"sharpness", sharpness},
    {"hue", hue},
    {"grayscale", grayscale},
    {"invert", invert},
    {"solarize", solarize},
    {"posterize", posterize},
    {"autocontrast", autocontrast},
    {"equalize", equalize},
    {"blur", blur},
    {"flip", flip},
    {"rotate", rotate_about_middle},
    {"shear", shear},
    {"shear about the middle", shear_about_middle},
    {"translate", translate},
    {"erase", erase},
};
enum { OPERATIONS = sizeof operations / sizeof *operations };

static apply *operation_named(const char *name)
{
    for (size_t i = 0; i < OPERATIONS; i++)
        if (!strcmp(operations[i].name, name))
            return operations[i].run;
    fail_msg("there is no operation '%s'", name);
    return NULL;
}

static void test_torchvisions_figures(void **state)
{
    bool covered[OPERATIONS] = {false};
    for (size_t i = 0; i < sizeof goldens / sizeof *goldens; i++) {
        const struct golden *golden = &goldens[i];
        struct dl2_pixels pixels =
            pattern(WIDTH, HEIGHT, golden->channels, golden->low, golden->high);
        operation_named(golden->name)(&pixels, golden->a, golden->b);
        const int most = strcmp(golden->name, "blur") ? 0 : 1;
        assert_int_equal(strlen(golden->pixels), 2 * size_of(&pixels));
        for (size_t k = 0; k < size_of(&pixels); k++) {
            unsigned want;
            assert_int_equal(sscanf(golden->pixels + 2 * k, "%2x", &want), 1);
            if (abs(pixels.data[k] - (int)want) > most)
                fail_msg("%s %g %g, %u channels: byte %zu is %d instead of %u", golden->name,
                         golden->a, golden->b, golden->channels, k, pixels.data[k], want);
        }
        for (size_t k = 0; k < OPERATIONS; k++)
            covered[k] |= operations[k].run == operation_named(golden->name);
        dl2_pixels_free(&pixels);
    }
    for (size_t k = 0; k < OPERATIONS; k++)
        assert_true(covered[k]);
}

static const unsigned simd_flags[] = {DL2_SIMD_AVX2, DL2_SIMD_AVX2 | DL2_SIMD_AVX512};

/* The sizes fill no block, one block, or several and a rest. */
static void test_instruction_sets(void **state)
{
    static const uint32_t sides[] = {1, 2, 3, 21, 64, 131};
    for (size_t f = 0; f < sizeof simd_flags / sizeof *simd_flags; f++)
        for (size_t k = 0; k < OPERATIONS; k++)
            for (size_t s = 0; s < sizeof sides / sizeof *sides; s++)
                for (uint32_t channels = 1; channels <= 3; channels += 2) {
                    if (operations[k].run == erase && sides[s] < 10)
                        continue;
                    struct dl2_pixels plain = pattern(sides[s], sides[s], channels, 0, 255);
                    struct dl2_pixels fast = pattern(sides[s], sides[s], channels, 0, 255);
                    plain.kernels = &dl2_operation_kernels_c;
                    fast.kernels = dl2_operation_kernels_for(simd_flags[f] & dl2_simd_flags());
                    operations[k].run(&plain, operations[k].run == blur ? 5 : 0.4, 1.2);
                    operations[k].run(&fast, operations[k].run == blur ? 5 : 0.4, 1.2);
                    if (memcmp(plain.data, fast.data, size_of(&plain)))
                        fail_msg("%s, side %u: %s differs from plain C", operations[k].name,
                                 sides[s], fast.kernels->name);
                    dl2_pixels_free(&plain);
                    dl2_pixels_free(&fast);
                }
}

/* Tables that have nothing in order, on bytes of every value. */
static void test_tables(void **state)
{
    static const size_t counts[] = {0, 3, 255, 383, 384, 768, 12345};
    for (size_t s = 0; s < sizeof counts / sizeof *counts; s++)
        for (size_t channels = 1; channels <= 3; channels += 2) {
            const size_t count = counts[s] / channels * channels;
            struct dl2_pixels plain = pattern(5000, 1, 3, 0, 255),
                              fast = pattern(5000, 1, 3, 0, 255);
            struct dl2_pixels random = pattern(256, 1, 3, 0, 255);
            uint8_t tables[3][256];
            memcpy(tables, random.data, sizeof tables);
            dl2_operation_kernels_c.look_up(plain.data, count, channels, tables);
            for (size_t i = 0; i < count; i++)
                assert_int_equal(plain.data[i], tables[i % channels][fast.data[i]]);
            for (size_t f = 0; f < sizeof simd_flags / sizeof *simd_flags; f++) {
                fill_in(&fast, 0, 255);
                dl2_operation_kernels_for(simd_flags[f] & dl2_simd_flags())
                    ->look_up(fast.data, count, channels, tables);
                assert_memory_equal(plain.data, fast.data, size_of(&plain));
            }
            dl2_pixels_free(&plain);
            dl2_pixels_free(&fast);
            dl2_pixels_free(&random);
        }
}

/* The widest kernel on an image that is smaller than it. */
static void test_wide_blur(void **state)
{
    struct dl2_pixels pixels = pattern(3, 2, 3, 90, 90);
    dl2_pixels_blur(&pixels, DL2_BLUR_MAX, 40);
    for (size_t i = 0; i < size_of(&pixels); i++)
        assert_int_equal(pixels.data[i], 90);
    dl2_pixels_free(&pixels);
}

/* ---- policies ---- */

static const struct dl2_policy_operation *policy_operation(const char *name)
{
    for (size_t i = 0; i < DL2_POLICY_ALL; i++)
        if (!strcmp(dl2_policy_operations[i].name, name))
            return &dl2_policy_operations[i];
    fail_msg("policies have no %s", name);
    return NULL;
}

static void check_magnitudes(const struct magnitudes *golden, size_t count,
                             enum dl2_policy_space space)
{
    static const unsigned numbers[] = {0, 9, 30};
    const struct dl2_pixels size = {.width = 224, .height = 112};
    assert_int_equal(count, DL2_POLICY_SHARED);
    for (size_t i = 0; i < count; i++) {
        const struct dl2_policy_operation *operation = policy_operation(golden[i].name);
        assert_true(operation < dl2_policy_operations + DL2_POLICY_SHARED);
        assert_int_equal(operation->is_signed, golden[i].is_signed);
        for (int k = 0; k < 3; k++) {
            const double ours = dl2_policy_magnitude(operation, space, numbers[k], 31, &size);
            if (ours != golden[i].at[k])
                fail_msg("%s %u: %.9g instead of %.9g", golden[i].name, numbers[k], ours,
                         golden[i].at[k]);
        }
    }
}

static void test_policies(void **state)
{
    const struct dl2_pixels size = {.width = 224, .height = 112};
    check_magnitudes(randaugment_magnitudes,
                     sizeof randaugment_magnitudes / sizeof *randaugment_magnitudes,
                     DL2_POLICY_NARROW);
    check_magnitudes(trivialaugment_magnitudes,
                     sizeof trivialaugment_magnitudes / sizeof *trivialaugment_magnitudes,
                     DL2_POLICY_WIDE);
    assert_int_equal(sizeof imagenet_policy / sizeof *imagenet_policy, 2 * DL2_POLICY_PAIRS);
    for (size_t i = 0; i < 2 * DL2_POLICY_PAIRS; i++) {
        const struct dl2_policy_step *step = &dl2_policy_imagenet[i / 2][i % 2];
        assert_string_equal(step->operation->name, imagenet_policy[i].name);
        assert_true(step->chance == imagenet_policy[i].chance);
        const double ours =
            dl2_policy_magnitude(step->operation, DL2_POLICY_NARROW, step->number, 10, &size);
        if (fabs(ours - imagenet_policy[i].magnitude) > 1e-6 * ours)
            fail_msg("pair %zu, %s: %.9g instead of %.9g", i / 2, step->operation->name, ours,
                     imagenet_policy[i].magnitude);
    }
}

/* ---- augmentations ---- */

static struct dl2_augmentation *parsed(const char *text)
{
    struct dl2_augmentation *augmentation;
    struct dl2_error error = DL2_ERROR_INIT;
    expect_ok(dl2_augmentation_parse(text, &augmentation, &error), &error);
    return augmentation;
}

/* Runs an augmentation on the pattern with the random numbers of a sample. */
static struct dl2_pixels augmented(const struct dl2_augmentation *augmentation, uint32_t side,
                                   uint32_t channels, uint64_t sample)
{
    struct dl2_pixels pixels = pattern(side, side, channels, 20, 230);
    struct dl2_random random;
    dl2_random_init(&random, 1, DL2_RANDOM_TEST, 0, sample);
    assert_int_equal(dl2_augmentation_run(augmentation, &random, &pixels, NULL), DL2_OK);
    return pixels;
}

static bool same_pixels(const struct dl2_pixels *a, const struct dl2_pixels *b)
{
    return memcmp(a->data, b->data, size_of(a)) == 0;
}

/* Each row parses, to the text that it shows; some sample is changed by it, and the same numbers
 * give the same pixels. Images may be as small as a pixel. */
static void test_rows(void **state)
{
    enum { SAMPLES = 40, SIDE = 24 };
    char *text;
    const char *summary;
    size_t rows = 0;
    for (; dl2_augmentation_row(rows, &text, &summary); rows++) {
        const bool jitter = !strncmp(text, "jitter", 6);
        if (!strncmp(summary, "Volumes:", 8)) { /* tests/pixels/volume_operations.sh */
            free(text);
            continue;
        }
        struct dl2_augmentation *augmentation =
            parsed(jitter ? "jitter:brightness=0.4:contrast=0.4:saturation=0.4:hue=0.1" : text);
        if (!jitter)
            assert_string_equal(dl2_augmentation_text(augmentation), text);
        const struct dl2_pixels plain = pattern(SIDE, SIDE, 3, 20, 230);
        unsigned changed = 0;
        for (uint64_t sample = 0; sample < SAMPLES; sample++) {
            struct dl2_pixels once = augmented(augmentation, SIDE, 3, sample);
            struct dl2_pixels twice = augmented(augmentation, SIDE, 3, sample);
            struct dl2_pixels gray = augmented(augmentation, 3, 1, sample);
            struct dl2_pixels tiny = augmented(augmentation, 1, 3, sample);
            assert_true(same_pixels(&once, &twice));
            changed += !same_pixels(&once, &plain);
            dl2_pixels_free(&once);
            dl2_pixels_free(&twice);
            dl2_pixels_free(&gray);
            dl2_pixels_free(&tiny);
        }
        if (!changed)
            fail_msg("%s changes nothing", text);
        dl2_pixels_free((struct dl2_pixels *)&plain);
        dl2_augmentation_free(augmentation);
        free(text);
    }
    assert_true(rows >= 17);
}

/* How often, over many samples, and that a list applies its operations in order. */
static void test_draws(void **state)
{
    enum { SAMPLES = 2000, SIDE = 8 };
    struct dl2_augmentation *flip = parsed("vflip:p=0.25"), *both = parsed("invert:p=1,vflip:p=1"),
                            *erase = parsed("erase:p=1:area-min=0.25:area-max=0.25:fill=255");
    struct dl2_pixels plain = pattern(SIDE, SIDE, 3, 20, 230);
    unsigned flips = 0, white = 0;
    for (uint64_t sample = 0; sample < SAMPLES; sample++) {
        struct dl2_pixels pixels = augmented(flip, SIDE, 3, sample);
        flips += !same_pixels(&pixels, &plain);
        dl2_pixels_free(&pixels);
        pixels = augmented(erase, SIDE, 3, sample);
        for (size_t i = 0; i < size_of(&pixels); i++)
            white += pixels.data[i] == 255;
        dl2_pixels_free(&pixels);
    }
    assert_true(flips > 0.2 * SAMPLES && flips < 0.3 * SAMPLES);
    const double part = white / (SAMPLES * (double)size_of(&plain));
    assert_true(part > 0.23 && part < 0.27);
    struct dl2_pixels pixels = augmented(both, SIDE, 3, 0);
    dl2_pixels_invert(&plain);
    dl2_pixels_flip_down(&plain);
    assert_true(same_pixels(&pixels, &plain));
    dl2_pixels_free(&pixels);
    dl2_pixels_free(&plain);
    dl2_augmentation_free(flip);
    dl2_augmentation_free(both);
    dl2_augmentation_free(erase);
}

/* A mask follows its image, which has the same values here, where pixels move; nothing else changes
 * it, and both take as many random numbers. */
static void test_masks(void **state)
{
    enum { FILL = 77, SIDE = 24 };
    static const char *const moving[] = {"vflip:p=1", "rotate:degrees=90:fill=77",
                                         "shear:x=20:y=20:fill=77",
                                         "translate:x=0.5:y=0.5:fill=77"};
    static const char *const others[] = {"jitter:brightness=1:contrast=1:saturation=1:hue=0.5",
                                         "grayscale:p=1",
                                         "invert:p=1",
                                         "solarize:p=1",
                                         "posterize:p=1",
                                         "autocontrast:p=1",
                                         "equalize:p=1",
                                         "sharpness:p=1",
                                         "blur:p=1",
                                         "erase:p=1"};
    enum { MOVING = sizeof moving / sizeof *moving, ALL = MOVING + sizeof others / sizeof *others };
    for (size_t i = 0; i < ALL; i++)
        for (uint64_t sample = 0; sample < 5; sample++) {
            struct dl2_augmentation *augmentation =
                parsed(i < MOVING ? moving[i] : others[i - MOVING]);
            struct dl2_pixels image = pattern(SIDE, SIDE, 1, 20, 230);
            struct dl2_pixels mask = pattern(SIDE, SIDE, 1, 20, 230);
            struct dl2_pixels plain = pattern(SIDE, SIDE, 1, 20, 230);
            struct dl2_random random, again;
            mask.is_mask = true;
            mask.mask_fill = FILL;
            dl2_random_init(&random, 1, DL2_RANDOM_AUGMENT, 0, sample);
            again = random;
            assert_int_equal(dl2_augmentation_run(augmentation, &random, &image, NULL), DL2_OK);
            assert_int_equal(dl2_augmentation_run(augmentation, &again, &mask, NULL), DL2_OK);
            assert_int_equal(dl2_random_u32(&random), dl2_random_u32(&again));
            assert_true(same_pixels(&mask, i < MOVING ? &image : &plain));
            if (i < MOVING)
                assert_false(same_pixels(&mask, &plain));
            dl2_pixels_free(&image);
            dl2_pixels_free(&mask);
            dl2_pixels_free(&plain);
            dl2_augmentation_free(augmentation);
        }
}

static void test_texts(void **state)
{
    static const struct {
        const char *text, *says;
    } wrong[] = {
        {"", "no operation ''"},
        {"vflip,", "no operation ''"},
        {"cutout", "no operation 'cutout': they are randaugment,"},
        {"randaugment:k=2", "randaugment has no setting 'k', only p, n, m, bins, fill"},
        {"randaugment:n", "randaugment: n is a whole number from 1 to 14, not ''"},
        {"randaugment:n=1.5", "not '1.5'"},
        {"randaugment:n=0", "not '0'"},
        {"randaugment:m=31", "m that is not below bins"},
        {"randaugment:m=9:m=9", "m is given twice"},
        {"erase:p=1.01", "erase: p is a number from 0 to 1, not '1.01'"},
        {"erase:p=nan", "not 'nan'"},
        {"erase:p=0.5x", "not '0.5x'"},
        {"erase:area-min=0.4", "area-min above area-max"},
        {"erase:aspect-max=0.1", "aspect-min above aspect-max"},
        {"jitter", "no effect"},
        {"blur:kernel=4", "odd kernel"},
        {"blur:sigma-min=3", "sigma-min above sigma-max"},
        {"blur:sigma-max=42", "from 0.05 to 40"},
        {"shear:x=0", "no effect"},
        {"vflip:p=1,solarize:threshold=256", "solarize: threshold"},
    };
    struct dl2_augmentation *augmentation;
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        struct dl2_error error = DL2_ERROR_INIT;
        assert_int_equal(dl2_augmentation_parse(wrong[i].text, &augmentation, &error),
                         DL2_ERR_ARGUMENT);
        assert_null(augmentation);
        if (!strstr(error.message, wrong[i].says))
            fail_msg("'%s': %s", wrong[i].text, error.message);
    }
    augmentation = parsed("randaugment:m=7,erase:p=.25");
    assert_string_equal(dl2_augmentation_text(augmentation),
                        "randaugment:p=1:n=2:m=7:bins=31:fill=0,erase:p=0.25:area-min=0.02:"
                        "area-max=0.33:aspect-min=0.3:aspect-max=3.3:fill=0");
    dl2_augmentation_free(augmentation);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_torchvisions_figures),
        cmocka_unit_test(test_instruction_sets),
        cmocka_unit_test(test_tables),
        cmocka_unit_test(test_wide_blur),
        cmocka_unit_test(test_policies),
        cmocka_unit_test(test_rows),
        cmocka_unit_test(test_draws),
        cmocka_unit_test(test_masks),
        cmocka_unit_test(test_texts),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
