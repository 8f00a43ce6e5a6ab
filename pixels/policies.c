/* SPDX-License-Identifier: BSD-2-Clause */
#include "pixels/policies.h"

#include <math.h>

/* ---- the operations ---- */

static struct dl2_affine shear_across(const struct dl2_pixels *pixels, double magnitude)
{
    (void)pixels;
    return dl2_affine_shear(magnitude, 0, 0, 0);
}

static struct dl2_affine shear_down(const struct dl2_pixels *pixels, double magnitude)
{
    (void)pixels;
    return dl2_affine_shear(0, magnitude, 0, 0);
}

static struct dl2_affine move_right(const struct dl2_pixels *pixels, double magnitude)
{
    (void)pixels;
    return dl2_affine_translation(trunc(magnitude), 0);
}

static struct dl2_affine move_down(const struct dl2_pixels *pixels, double magnitude)
{
    (void)pixels;
    return dl2_affine_translation(0, trunc(magnitude));
}

static void drop_bits(struct dl2_pixels *pixels, double magnitude)
{
    dl2_pixels_posterize(pixels, (unsigned)magnitude);
}

enum {
    IDENTITY,
    SHEAR_X,
    SHEAR_Y,
    TRANSLATE_X,
    TRANSLATE_Y,
    ROTATE,
    BRIGHTNESS,
    COLOR,
    CONTRAST,
    SHARPNESS,
    POSTERIZE,
    SOLARIZE,
    AUTOCONTRAST,
    EQUALIZE,
    INVERT
};

const struct dl2_policy_operation dl2_policy_operations[DL2_POLICY_ALL] = {
    [IDENTITY] = {"Identity", false, {0, 0}, .plain = NULL},
    [SHEAR_X] = {"ShearX", true, {0.3, 0.99}, .affine = shear_across},
    [SHEAR_Y] = {"ShearY", true, {0.3, 0.99}, .affine = shear_down},
    [TRANSLATE_X] = {"TranslateX", true, {150.0 / 331, 32}, .affine = move_right},
    [TRANSLATE_Y] = {"TranslateY", true, {150.0 / 331, 32}, .affine = move_down},
    [ROTATE] = {"Rotate", true, {30, 135}, .affine = dl2_affine_rotation},
    [BRIGHTNESS] = {"Brightness", true, {0.9, 0.99}, .blend = dl2_pixels_brightness},
    [COLOR] = {"Color", true, {0.9, 0.99}, .blend = dl2_pixels_saturation},
    [CONTRAST] = {"Contrast", true, {0.9, 0.99}, .blend = dl2_pixels_contrast},
    [SHARPNESS] = {"Sharpness", true, {0.9, 0.99}, .blend = dl2_pixels_sharpness},
    [POSTERIZE] = {"Posterize", false, {4, 6}, .limit = drop_bits},
    [SOLARIZE] = {"Solarize", false, {255, 255}, .limit = dl2_pixels_solarize},
    [AUTOCONTRAST] = {"AutoContrast", false, {0, 0}, .plain = dl2_pixels_autocontrast},
    [EQUALIZE] = {"Equalize", false, {0, 0}, .plain = dl2_pixels_equalize},
    [INVERT] = {"Invert", false, {0, 0}, .plain = dl2_pixels_invert},
};

/* As torch.linspace() has them, from either end in single precision: a translation is cut to whole
 * pixels, so the last bit counts. */
static double on_line(float start, float end, unsigned number, unsigned bins)
{
    const float step = (end - start) / (float)(bins - 1);
    return number < bins / 2 ? start + step * (float)number
                             : end - step * (float)(bins - 1 - number);
}

double dl2_policy_magnitude(const struct dl2_policy_operation *operation,
                            enum dl2_policy_space space, unsigned number, unsigned bins,
                            const struct dl2_pixels *pixels)
{
    double last = operation->last[space];
    if (operation == &dl2_policy_operations[POSTERIZE])
        return 8 - rint(number * last / (bins - 1));
    if (operation == &dl2_policy_operations[SOLARIZE])
        return on_line((float)last, 0, number, bins);
    if (space == DL2_POLICY_NARROW && operation == &dl2_policy_operations[TRANSLATE_X])
        last *= pixels->width;
    if (space == DL2_POLICY_NARROW && operation == &dl2_policy_operations[TRANSLATE_Y])
        last *= pixels->height;
    return on_line(0, (float)last, number, bins);
}

/* ---- the policies ---- */

static void apply(const struct dl2_policy_operation *operation, struct dl2_pixels *pixels,
                  double magnitude, uint8_t fill)
{
    if (operation->plain)
        operation->plain(pixels);
    else if (operation->blend)
        operation->blend(pixels, (float)(1 + magnitude));
    else if (operation->limit)
        operation->limit(pixels, magnitude);
    else if (operation->affine) {
        const struct dl2_affine affine = operation->affine(pixels, magnitude);
        dl2_pixels_affine(pixels, &affine, fill);
    }
}

static void apply_shared(struct dl2_pixels *pixels, struct dl2_random *random,
                         enum dl2_policy_space space, int number, unsigned bins, uint8_t fill)
{
    const struct dl2_policy_operation *operation =
        &dl2_policy_operations[dl2_random_below(random, DL2_POLICY_SHARED)];
    const unsigned drawn = number < 0 ? dl2_random_below(random, bins) : (unsigned)number;
    const double magnitude = dl2_policy_magnitude(operation, space, drawn, bins, pixels);
    const bool negated = dl2_random_below(random, 2) && operation->is_signed;
    apply(operation, pixels, negated ? -magnitude : magnitude, fill);
}

void dl2_policy_randaugment(struct dl2_pixels *pixels, struct dl2_random *random, unsigned count,
                            unsigned number, unsigned bins, uint8_t fill)
{
    for (unsigned i = 0; i < count; i++)
        apply_shared(pixels, random, DL2_POLICY_NARROW, (int)number, bins, fill);
}

void dl2_policy_trivialaugment(struct dl2_pixels *pixels, struct dl2_random *random, unsigned bins,
                               uint8_t fill)
{
    apply_shared(pixels, random, DL2_POLICY_WIDE, -1, bins, fill);
}

#define STEP(operation, chance, number)                                                            \
    {                                                                                              \
        &dl2_policy_operations[operation], chance, number                                          \
    }

const struct dl2_policy_step dl2_policy_imagenet[DL2_POLICY_PAIRS][2] = {
    {STEP(POSTERIZE, 0.4, 8), STEP(ROTATE, 0.6, 9)},
    {STEP(SOLARIZE, 0.6, 5), STEP(AUTOCONTRAST, 0.6, 0)},
    {STEP(EQUALIZE, 0.8, 0), STEP(EQUALIZE, 0.6, 0)},
    {STEP(POSTERIZE, 0.6, 7), STEP(POSTERIZE, 0.6, 6)},
    {STEP(EQUALIZE, 0.4, 0), STEP(SOLARIZE, 0.2, 4)},
    {STEP(EQUALIZE, 0.4, 0), STEP(ROTATE, 0.8, 8)},
    {STEP(SOLARIZE, 0.6, 3), STEP(EQUALIZE, 0.6, 0)},
    {STEP(POSTERIZE, 0.8, 5), STEP(EQUALIZE, 1.0, 0)},
    {STEP(ROTATE, 0.2, 3), STEP(SOLARIZE, 0.6, 8)},
    {STEP(EQUALIZE, 0.6, 0), STEP(POSTERIZE, 0.4, 6)},
    {STEP(ROTATE, 0.8, 8), STEP(COLOR, 0.4, 0)},
    {STEP(ROTATE, 0.4, 9), STEP(EQUALIZE, 0.6, 0)},
    {STEP(EQUALIZE, 0.0, 0), STEP(EQUALIZE, 0.8, 0)},
    {STEP(INVERT, 0.6, 0), STEP(EQUALIZE, 1.0, 0)},
    {STEP(COLOR, 0.6, 4), STEP(CONTRAST, 1.0, 8)},
    {STEP(ROTATE, 0.8, 8), STEP(COLOR, 1.0, 2)},
    {STEP(COLOR, 0.8, 8), STEP(SOLARIZE, 0.8, 7)},
    {STEP(SHARPNESS, 0.4, 7), STEP(INVERT, 0.6, 0)},
    {STEP(SHEAR_X, 0.6, 5), STEP(EQUALIZE, 1.0, 0)},
    {STEP(COLOR, 0.4, 0), STEP(EQUALIZE, 0.6, 0)},
    {STEP(EQUALIZE, 0.4, 0), STEP(SOLARIZE, 0.2, 4)},
    {STEP(SOLARIZE, 0.6, 5), STEP(AUTOCONTRAST, 0.6, 0)},
    {STEP(INVERT, 0.6, 0), STEP(EQUALIZE, 1.0, 0)},
    {STEP(COLOR, 0.6, 4), STEP(CONTRAST, 1.0, 8)},
    {STEP(EQUALIZE, 0.8, 0), STEP(EQUALIZE, 0.6, 0)},
};

void dl2_policy_autoaugment(struct dl2_pixels *pixels, struct dl2_random *random, uint8_t fill)
{
    enum { BINS = 10 };
    const struct dl2_policy_step *steps =
        dl2_policy_imagenet[dl2_random_below(random, DL2_POLICY_PAIRS)];
    for (int i = 0; i < 2; i++) {
        const struct dl2_policy_operation *operation = steps[i].operation;
        const bool wanted = dl2_random_uniform(random) < steps[i].chance;
        const bool negated = dl2_random_below(random, 2) && operation->is_signed;
        const double magnitude =
            dl2_policy_magnitude(operation, DL2_POLICY_NARROW, steps[i].number, BINS, pixels);
        if (wanted)
            apply(operation, pixels, negated ? -magnitude : magnitude, fill);
    }
}
