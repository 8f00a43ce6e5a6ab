/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Descriptions of colors: each codec writes what it is given and reads it back, the numbers stay
 * as they are, and nothing is tagged as what it is not. Profiles are made by Little CMS.
 */
#include "config.h"

#include "codec/codec.h"
#include "codec/icc.h"
#include "tests/codec/sample_files.h"
#include "tests/unit.h"

#include <lcms2.h>
#include <math.h>

static const cmsCIExyY d65 = {0.3127, 0.3290, 1};
static const cmsCIExyYTRIPLE adobe = {{0.64, 0.33, 1}, {0.21, 0.71, 1}, {0.15, 0.06, 1}};

static void save(cmsHPROFILE profile, struct dl2_bytes *out)
{
    cmsUInt32Number size = 0;
    assert_non_null(profile);
    assert_true(cmsSaveProfileToMem(profile, NULL, &size));
    assert_int_equal(dl2_bytes_resize(out, size, NULL), DL2_OK);
    assert_true(cmsSaveProfileToMem(profile, out->data, &size));
    cmsCloseProfile(profile);
}

/* Primaries of Adobe RGB with a gamma; `bent`: a curve that is none, as a table. */
static void make_rgb(double gamma, bool bent, struct dl2_bytes *out)
{
    uint16_t table[256];
    for (int i = 0; i < 256; i++)
        table[i] = (uint16_t)(65535 * (0.9 * pow(i / 255.0, 2.4) + 0.1 * i / 255.0));
    cmsToneCurve *curve =
        bent ? cmsBuildTabulatedToneCurve16(NULL, 256, table) : cmsBuildGamma(NULL, gamma);
    cmsToneCurve *const curves[3] = {curve, curve, curve};
    save(cmsCreateRGBProfile(&d65, &adobe, curves), out);
    cmsFreeToneCurve(curve);
}

static void make_gray(double gamma, struct dl2_bytes *out)
{
    cmsToneCurve *curve = cmsBuildGamma(NULL, gamma);
    save(cmsCreateGrayProfile(&d65, curve), out);
    cmsFreeToneCurve(curve);
}

static void encode(const struct dl2_codec *codec, const struct dl2_image *image,
                   const struct dl2_color_space *color, struct dl2_bytes *file)
{
    struct dl2_encode_options options = DL2_ENCODE_DEFAULTS;
    struct dl2_error error = DL2_ERROR_INIT;
    options.quality = 95;
    options.subsampling = codec->has_subsampling ? "444" : NULL;
    options.color = color;
    expect_ok(dl2_image_encode(codec, image, &options, file, &error), &error);
}

static void read_color(const struct dl2_bytes *file, struct dl2_color_space *color)
{
    struct dl2_error error = DL2_ERROR_INIT;
    struct dl2_image_info info;
    expect_ok(dl2_image_read_info(file->data, file->size, &info, &error), &error);
    expect_ok(dl2_image_read_color(file->data, file->size, &info, color, &error), &error);
}

static double mean_difference(const struct dl2_bytes *file, const struct dl2_image *image)
{
    const struct dl2_decode_options as_coded = DL2_DECODE_DEFAULTS;
    struct dl2_image decoded = DL2_IMAGE_INIT, scratch = DL2_IMAGE_INIT;
    struct dl2_error error = DL2_ERROR_INIT;
    expect_ok(dl2_image_decode(file->data, file->size, &as_coded, &decoded, &scratch, &error),
              &error);
    const size_t step = decoded.channels / image->channels; /* 3: gray stored as RGB */
    const size_t count = image->stride * image->height;
    double sum = 0;
    for (size_t i = 0; i < count; i++)
        sum += abs(decoded.data[step * i] - image->data[i]);
    dl2_image_free(&decoded);
    dl2_image_free(&scratch);
    return sum / (double)count;
}

static bool is(const struct dl2_codec *codec, const char *name)
{
    return !strcmp(codec->name, name);
}

/* A file of every codec that encodes: it holds the description, or cannot, as the row says, and its
 * pixels are no further from the image than without one. */
static void check_everywhere(const struct dl2_color_space *color, const struct dl2_image *image,
                             bool (*can)(const struct dl2_codec *codec))
{
    for (size_t i = 0; dl2_codec_at(i); i++) {
        const struct dl2_codec *const codec = dl2_codec_at(i);
        struct dl2_color_space fitted = {.form = DL2_COLOR_SPACE_SRGB},
                               back = {.form = DL2_COLOR_SPACE_SRGB};
        struct dl2_bytes file = DL2_BYTES_INIT, plain = DL2_BYTES_INIT;
        if (!codec->encode)
            continue;
        const int fits = dl2_color_fit(color, codec, image->channels, &fitted, NULL);
        if (fits != can(codec))
            fail_msg("%s: %s %s", codec->name, color->name, fits ? "fits" : "does not fit");
        encode(codec, image, &fitted, &file);
        encode(codec, image, NULL, &plain);
        read_color(&file, &back);
        if (fits && codec->no_gray && image->channels == 1)
            assert_int_equal(back.form, DL2_COLOR_SPACE_ICC); /* of RGB, with the gray's curve */
        else if (fits && !dl2_color_equal(color, &back))
            fail_msg("%s: %s became %s", codec->name, color->name, back.name);
        else if (!fits)
            assert_int_equal(back.form, DL2_COLOR_SPACE_SRGB);
        const double with = mean_difference(&file, image), without = mean_difference(&plain, image);
        /* Lossy JPEG XL loses as much light, which is more of PQ's numbers than of sRGB's. A
         * conversion would change them by 20 and more. */
        if (with > without + (is(codec, "jxl") ? 6 : 0.75) || (!codec->lossy && with > 0))
            fail_msg("%s: pixels differ by %g with %s, by %g without", codec->name, with,
                     color->name, without);
        dl2_color_free(&fitted);
        dl2_color_free(&back);
        dl2_bytes_free(&file);
        dl2_bytes_free(&plain);
    }
}

static bool all_but_ppm(const struct dl2_codec *codec)
{
    return !is(codec, "ppm");
}

static bool all_that_hold_a_profile(const struct dl2_codec *codec)
{
    return !is(codec, "ppm") && !is(codec, "jxl");
}

static bool those_with_code_points(const struct dl2_codec *codec)
{
    return is(codec, "png") || is(codec, "avif") || is(codec, "jxl") || is(codec, "jxl_lossless");
}

static void set_profile(struct dl2_color_space *color, const struct dl2_bytes *icc)
{
    assert_int_equal(dl2_color_set_icc(color, icc->data, icc->size, NULL), DL2_OK);
    strcpy(color->name, "a test's profile");
}

static void test_keeps(void **state)
{
    struct dl2_image rgb = DL2_IMAGE_INIT, gray = DL2_IMAGE_INIT;
    struct dl2_bytes icc = DL2_BYTES_INIT;
    struct dl2_color_space color = {.form = DL2_COLOR_SPACE_SRGB};
    (void)state;
    sample_picture(&rgb, 47, 31, 3);
    sample_picture(&gray, 47, 31, 1);
    make_rgb(2.19921875, false, &icc);
    set_profile(&color, &icc);
    check_everywhere(&color, &rgb, all_but_ppm);
    make_rgb(0, true, &icc); /* libjxl would make other numbers of it */
    set_profile(&color, &icc);
    check_everywhere(&color, &rgb, all_that_hold_a_profile);
    make_gray(1.8, &icc);
    set_profile(&color, &icc);
    check_everywhere(&color, &gray, all_but_ppm);
    static const struct {
        unsigned primaries, transfer;
        bool (*can)(const struct dl2_codec *codec);
    } points[] = {{12, 13, all_but_ppm},
                  {1, 8, all_but_ppm},
                  {9, 1, all_but_ppm},
                  {9, 16, those_with_code_points},
                  {9, 18, those_with_code_points}};
    for (size_t i = 0; i < sizeof points / sizeof *points; i++) {
        dl2_color_set_cicp(&color, points[i].primaries, points[i].transfer);
        check_everywhere(&color, &rgb, points[i].can);
    }
    color.form = DL2_COLOR_SPACE_GAMMA;
    color.gamma = 1;
    memcpy(color.xy, (const double[8]){0.64, 0.33, 0.21, 0.71, 0.15, 0.06, 0.3127, 0.3290},
           sizeof color.xy);
    check_everywhere(&color, &rgb, all_but_ppm);
    dl2_color_free(&color);
    dl2_bytes_free(&icc);
    dl2_image_free(&rgb);
    dl2_image_free(&gray);
}

/* Profiles that mean sRGB are nothing to carry along; what cannot be used is said. */
static void test_judges(void **state)
{
    const struct dl2_codec *const jpeg = dl2_codec_find("jpeg");
    struct dl2_image rgb = DL2_IMAGE_INIT, gray = DL2_IMAGE_INIT;
    struct dl2_bytes icc = DL2_BYTES_INIT, file = DL2_BYTES_INIT;
    struct dl2_color_space color = {.form = DL2_COLOR_SPACE_SRGB},
                           back = {.form = DL2_COLOR_SPACE_SRGB};
    struct dl2_icc facts;
    (void)state;
    sample_picture(&rgb, 20, 20, 3);
    sample_picture(&gray, 20, 20, 1);
    save(cmsCreate_sRGBProfile(), &icc);
    assert_true(dl2_icc_read(&facts, icc.data, icc.size));
    assert_true(facts.srgb);
    assert_string_equal(facts.name, "sRGB built-in");
    for (size_t cut = 0; cut < icc.size; cut++)
        assert_false(dl2_icc_read(&facts, icc.data, cut));
    if (jpeg) {
        set_profile(&color, &icc);
        encode(jpeg, &rgb, &color, &file);
        read_color(&file, &back);
        assert_int_equal(back.form, DL2_COLOR_SPACE_SRGB);
        make_gray(1.8, &icc); /* of other channels than the pixels */
        set_profile(&color, &icc);
        encode(jpeg, &rgb, &color, &file);
        read_color(&file, &back);
        assert_int_equal(back.form, DL2_COLOR_SPACE_UNKNOWN);
        make_rgb(2.2, false, &icc);
        icc.size = 200;
        set_profile(&color, &icc);
        encode(jpeg, &rgb, &color, &file);
        read_color(&file, &back);
        assert_int_equal(back.form, DL2_COLOR_SPACE_UNKNOWN);
        assert_string_equal(back.name, "a damaged profile");
        /* More than a segment holds. */
        assert_int_equal(dl2_bytes_resize(&icc, 200000, NULL), DL2_OK);
        memset(icc.data, 7, icc.size);
        set_profile(&color, &icc);
        encode(jpeg, &rgb, &color, &file);
        assert_true(mean_difference(&file, &rgb) < 4);
        back.icc.size = 0;
        assert_int_equal(jpeg->color(file.data, file.size, &back, NULL), DL2_OK);
        assert_int_equal(back.icc.size, icc.size);
        assert_memory_equal(back.icc.data, icc.data, icc.size);
    }
    dl2_color_free(&color);
    dl2_color_free(&back);
    dl2_bytes_free(&icc);
    dl2_bytes_free(&file);
    dl2_image_free(&rgb);
    dl2_image_free(&gray);
}

/* The numbers that a transform of Little CMS by its own sRGB profile gives; again: the same. */
static void test_converts(void **state)
{
    struct dl2_image image = DL2_IMAGE_INIT;
    struct dl2_bytes icc = DL2_BYTES_INIT;
    struct dl2_color_space color = {.form = DL2_COLOR_SPACE_SRGB};
    struct dl2_error error = DL2_ERROR_INIT;
    uint8_t expected[40 * 30 * 3];
    (void)state;
    sample_picture(&image, 40, 30, 3);
    make_rgb(2.19921875, false, &icc);
    set_profile(&color, &icc);
    cmsHPROFILE in = cmsOpenProfileFromMem(icc.data, (cmsUInt32Number)icc.size);
    cmsHPROFILE out = cmsCreate_sRGBProfile();
    cmsHTRANSFORM transform =
        cmsCreateTransform(in, TYPE_RGB_8, out, TYPE_RGB_8, INTENT_RELATIVE_COLORIMETRIC,
                           cmsFLAGS_BLACKPOINTCOMPENSATION);
    assert_non_null(transform);
    cmsDoTransform(transform, image.data, expected, 40 * 30);
    cmsDeleteTransform(transform);
    cmsCloseProfile(in);
    cmsCloseProfile(out);
    expect_ok(dl2_color_convert(&color, &image, &error), &error);
    for (size_t i = 0; i < sizeof expected; i++)
        assert_in_range(image.data[i] + 1 - expected[i], 0, 2);
    /* Linear light: a middle value becomes what sRGB has for it. */
    dl2_color_set_cicp(&color, 1, 8);
    memset(image.data, 55, image.stride * image.height); /* 0.2157 is 0.502 in sRGB */
    expect_ok(dl2_color_convert(&color, &image, &error), &error);
    assert_in_range(image.data[0], 127, 129);
    dl2_color_set_cicp(&color, 9, 16);
    assert_int_equal(dl2_color_convert(&color, &image, &error), DL2_ERR_UNSUPPORTED);
    assert_non_null(strstr(error.message, "PQ"));
    color.form = DL2_COLOR_SPACE_SRGB;
    const uint8_t before = image.data[0];
    assert_int_equal(dl2_color_convert(&color, &image, NULL), DL2_OK);
    assert_int_equal(image.data[0], before);
    dl2_color_free(&color);
    dl2_bytes_free(&icc);
    dl2_image_free(&image);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_keeps),
        cmocka_unit_test(test_judges),
        cmocka_unit_test(test_converts),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
