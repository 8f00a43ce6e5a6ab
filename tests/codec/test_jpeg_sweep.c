/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Our own JPEG encoder: byte for byte what libjpeg-turbo makes of an image, over sizes, samplings,
 * contents, qualities, Huffman tables, restart intervals and SIMD variants; several qualities at
 * once as well as one by one.
 */
#include "codec/codec.h"
#include "codec/jpeg/jpeg_forward.h"
#include "codec/jpeg/jpeg_optimal.h"
#include "codec/jpeg/jpeg_writer.h"
#include "codec/jpeg_tables.h"
#include "common/random.h"
#include "common/simd.h"
#include "tests/codec/sample_files.h"
#include "tests/common/allocations.h"
#include "tests/unit.h"

#include <math.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

enum { QUALITIES = 100 };

static struct dl2_image image;
static struct dl2_bytes ours[QUALITIES], theirs[QUALITIES];

static int free_all(void **state)
{
    for (int i = 0; i < QUALITIES; i++) {
        dl2_bytes_free(&ours[i]);
        dl2_bytes_free(&theirs[i]);
    }
    dl2_image_free(&image);
    return 0;
}

static const char *const variants[] = {"c", "avx2", "avx512", "neon"};

/* Caps SIMD; false where this machine has no such variant. */
static bool choose_variant(const char *name)
{
    setenv("DL2_SIMD", name, 1);
    return !strcmp(dl2_jpeg_forward_for(dl2_simd_flags())->name, name);
}

enum content { PICTURE, NOISE, EXTREMES, STRIPES, FLAT, CONTENTS };

/* Extremes have only 0 and 255; stripes are what makes AC coefficients largest. */
static void draw(uint32_t width, uint32_t height, uint32_t channels, enum content content)
{
    struct dl2_random random;
    dl2_random_init(&random, 5, DL2_RANDOM_TEST, width, height);
    sample_picture(&image, width, height, channels);
    const size_t line = (size_t)width * channels;
    for (size_t i = 0; content != PICTURE && i < line * height; i++) {
        const size_t x = i % line / channels, y = i / line;
        const uint32_t bits = dl2_random_u32(&random);
        image.data[i] = (uint8_t)(content == NOISE      ? bits
                                  : content == EXTREMES ? 255 * (bits & 1)
                                  : content == STRIPES  ? 255 * ((x / 4 + y / 8) % 2)
                                                        : 255);
    }
}

/* All of `qualities` in one sweep by us, and by libjpeg. */
static void compare(const struct dl2_encode_options *options, const int *qualities, size_t count)
{
    const struct dl2_codec *const jpeg = dl2_codec_find("jpeg");
    struct dl2_error error = DL2_ERROR_INIT;
    setenv("DL2_JPEG", "libjpeg", 1);
    expect_ok(dl2_image_encode_sweep(jpeg, &image, options, qualities, theirs, count, &error),
              &error);
    setenv("DL2_JPEG", "own", 1);
    for (size_t v = 0; v < sizeof variants / sizeof *variants; v++) {
        if (!choose_variant(variants[v]))
            continue;
        expect_ok(dl2_image_encode_sweep(jpeg, &image, options, qualities, ours, count, &error),
                  &error);
        for (size_t i = 0; i < count; i++)
            if (ours[i].size != theirs[i].size ||
                memcmp(ours[i].data, theirs[i].data, ours[i].size) != 0)
                fail_msg("%ux%ux%u %s restart %s q%d effort %d differs: %s", image.width,
                         image.height, image.channels, options->subsampling, options->restart,
                         qualities[i], options->effort, variants[v]);
    }
    unsetenv("DL2_JPEG");
}

/* With the standard Huffman tables; with optimized ones, and the smaller of both, in one of the
 * samplings, by turns. */
static void all_samplings(const int *qualities, size_t count)
{
    static const char *const samplings[] = {"420", "422", "444"};
    struct dl2_encode_options options = DL2_ENCODE_DEFAULTS;
    const size_t last = image.channels == 3 ? 3 : 1;
    for (int tiles = 0; tiles < 2; tiles++)
        for (size_t s = 0; s < last; s++) {
            options.subsampling = samplings[s];
            options.restart = tiles ? "tiles" : "none";
            options.effort = 0;
            compare(&options, qualities, count);
            for (options.effort = -1; options.effort <= 1; options.effort += 2)
                if (s == (image.width + image.height + (unsigned)tiles) % last)
                    compare(&options, qualities, count);
        }
}

static void sizes_are_libjpegs(void **state)
{
    static const int qualities[] = {10, 50, 90};
    for (uint32_t channels = 1; channels <= 3; channels += 2)
        for (uint32_t width = 1; width <= 35; width++)
            for (uint32_t height = 1; height <= 35; height += width % 3 + 1) {
                draw(width, height, channels, (width + height) % 2 ? PICTURE : NOISE);
                all_samplings(qualities, 3);
            }
}

static void qualities_are_libjpegs(void **state)
{
    int qualities[QUALITIES];
    for (int i = 0; i < QUALITIES; i++)
        qualities[i] = i + 1;
    for (uint32_t channels = 1; channels <= 3; channels += 2)
        for (int content = 0; content < CONTENTS; content++) {
            draw(67, 41, channels, (enum content)content);
            all_samplings(qualities, QUALITIES);
        }
}

static bool rows_are_equal(const struct dl2_image *a, const struct dl2_image *b)
{
    if (a->width != b->width || a->height != b->height || a->channels != b->channels)
        return false;
    for (uint32_t y = 0; y < a->height; y++)
        if (memcmp(a->data + y * a->stride, b->data + y * b->stride,
                   (size_t)a->width * a->channels) != 0)
            return false;
    return true;
}

/* Rows of trials are those of files, whatever rows come first, over sizes, samplings, contents,
 * qualities and SIMD variants. */
static void trials_are_what_files_decode_to(void **state)
{
    static const char *const samplings[] = {"420", "422", "444"};
    static const uint32_t sizes[][2] = {{1, 1},   {2, 3},    {5, 17}, {16, 16},
                                        {33, 50}, {67, 130}, {71, 36}};
    static const int qualities[] = {1, 20, 55, 90, 100};
    static const double turned[] = {1};
    const struct dl2_codec *const jpeg = dl2_codec_find("jpeg");
    struct dl2_decode_options decode = DL2_DECODE_DEFAULTS;
    struct dl2_image decoded = DL2_IMAGE_INIT, scratch = DL2_IMAGE_INIT;
    struct dl2_error error = DL2_ERROR_INIT;
    unsigned turn = 0, told = 0;
    for (size_t v = 0; v < sizeof variants / sizeof *variants; v++)
        for (size_t size = 0; size < sizeof sizes / sizeof *sizes; size++)
            for (int content = 0; choose_variant(variants[v]) && content < CONTENTS; content++)
                for (size_t s = 0; s < 3; s++, turn++) {
                    const uint32_t height = sizes[size][1];
                    const bool wide = sizes[size][0] > height;
                    struct dl2_encode_options options = {.effort = (int)(turn % (wide ? 2 : 3)),
                                                         .subsampling = samplings[s],
                                                         .settings = wide ? turned : NULL};
                    struct dl2_jpeg_trial *trial;
                    draw(sizes[size][0], height, turn % 4 ? 3 : 1, (enum content)content);
                    expect_ok(jpeg->trial_new(&image, &options, &trial, &error), &error);
                    for (size_t q = 0; q < sizeof qualities / sizeof *qualities; q++) {
                        const struct dl2_image *shown;
                        const uint32_t middle = (turn + (unsigned)q) * 7 % height;
                        options.quality = qualities[q];
                        expect_ok(dl2_image_encode(jpeg, &image, &options, ours, &error), &error);
                        expect_ok(dl2_image_decode(ours->data, ours->size, &decode, &decoded,
                                                   &scratch, &error),
                                  &error);
                        const int one =
                            jpeg->trial_rows(trial, qualities[q], middle, height, &shown, &error);
                        const int two =
                            jpeg->trial_rows(trial, qualities[q], 0, middle + 1, &shown, &error);
                        assert_true(one >= 0 && two >= 0);
                        told += one && two;
                        if (one && two && !rows_are_equal(shown, &decoded))
                            fail_msg("%ux%ux%u %s q%d content %d: %s", image.width, height,
                                     image.channels, samplings[s], qualities[q], content,
                                     variants[v]);
                    }
                    jpeg->trial_free(trial);
                }
    assert_true(told > turn * 4); /* of five */
    dl2_image_free(&decoded);
    dl2_image_free(&scratch);
}

/* Rows of more than one chunk of kernels and of raw bytes, and tiles of several MCUs. */
static void wide_images_are_libjpegs(void **state)
{
    static const int qualities[] = {30, 95, 100};
    static const uint32_t widths[] = {63, 64, 65, 129, 500, 1023, 2051};
    for (size_t i = 0; i < sizeof widths / sizeof *widths; i++)
        for (int content = 0; content < CONTENTS; content++) {
            draw(widths[i], 37, 3, (enum content)content);
            all_samplings(qualities, 3);
        }
}

/* Ours where it is asked for, libjpeg's for files that only libjpeg makes. */
static void efforts_and_errors(void **state)
{
    const struct dl2_codec *const jpeg = dl2_codec_find("jpeg");
    static const int qualities[] = {10, 90}, wrong[] = {10, 101};
    struct dl2_encode_options options = DL2_ENCODE_DEFAULTS;
    draw(60, 50, 3, PICTURE);
    for (options.effort = -1; options.effort <= 2; options.effort++) {
        compare(&options, qualities, 2);
        options.quality = 90;
        assert_int_equal(dl2_image_encode(jpeg, &image, &options, &ours[0], NULL), DL2_OK);
        assert_int_equal(ours[0].size, theirs[1].size);
        assert_memory_equal(ours[0].data, theirs[1].data, ours[0].size);
    }
    options.effort = 0;
    assert_int_equal(dl2_image_encode_sweep(jpeg, &image, &options, wrong, ours, 2, NULL),
                     DL2_ERR_ARGUMENT);
    /* A codec without a sweep encodes one after the other. */
    const struct dl2_codec *const pnm = dl2_codec_find("ppm");
    options.effort = -1;
    assert_non_null(pnm);
    assert_null(pnm->encode_sweep);
    assert_int_equal(dl2_image_encode_sweep(pnm, &image, &options, qualities, ours, 2, NULL),
                     DL2_OK);
    assert_int_equal(ours[0].size, ours[1].size);
}

static void copy_image(struct dl2_image *to)
{
    assert_int_equal(dl2_image_reshape(to, image.width, image.height, image.channels, NULL),
                     DL2_OK);
    memcpy(to->data, image.data, image.height * image.stride);
}

/* turn=yes: a wide image's file is that of the image turned by 90 degrees, with an EXIF block
 * behind the JFIF marker; others' files are as always. */
static void wide_images_are_turned(void **state)
{
    enum { START = 20, EXIF = 36 };
    static const int qualities[] = {30, 80};
    static const double turn[] = {1};
    const struct dl2_codec *const jpeg = dl2_codec_find("jpeg");
    struct dl2_image upright = DL2_IMAGE_INIT, scratch = DL2_IMAGE_INIT;
    assert_string_equal(jpeg->settings[0].name, "turn");
    for (uint32_t channels = 1; channels <= 3; channels += 2)
        for (uint32_t height = 40; height <= 62; height++) {
            struct dl2_encode_options options = DL2_ENCODE_DEFAULTS;
            struct dl2_image_info info;
            const bool wide = height < 61;
            draw(61, height, channels, PICTURE);
            copy_image(&upright);
            options.settings = turn;
            assert_int_equal(
                dl2_image_encode_sweep(jpeg, &image, &options, qualities, ours, 2, NULL), DL2_OK);
            options.settings = NULL;
            if (wide)
                assert_int_equal(dl2_image_orient(&image, 5, &scratch, NULL), DL2_OK);
            assert_int_equal(
                dl2_image_encode_sweep(jpeg, &image, &options, qualities, theirs, 2, NULL), DL2_OK);
            for (int i = 0; i < 2; i++) {
                const size_t more = wide ? EXIF : 0;
                assert_int_equal(ours[i].size, theirs[i].size + more);
                assert_memory_equal(ours[i].data, theirs[i].data, START);
                assert_memory_equal(ours[i].data + START + more, theirs[i].data + START,
                                    theirs[i].size - START);
                assert_int_equal(dl2_image_read_info(ours[i].data, ours[i].size, &info, NULL),
                                 DL2_OK);
                assert_int_equal(info.orientation, wide ? 5 : 1);
                assert_int_equal(dl2_upright_width(&info), upright.width);
                assert_int_equal(dl2_upright_height(&info), upright.height);
            }
        }
    dl2_image_free(&upright);
    dl2_image_free(&scratch);
}

/* Tables that were fitted to upright images, coarse for what changes along rows, do to a turned one
 * what they do to an upright one, but for rounding. */
static void tables_are_turned(void **state)
{
    static const double settings[][1] = {{0}, {1}};
    const struct dl2_codec *const jpeg = dl2_codec_find("jpeg");
    const struct dl2_decode_options decode = DL2_DECODE_DEFAULTS;
    struct dl2_image decoded[2] = {DL2_IMAGE_INIT}, scratch = DL2_IMAGE_INIT;
    static struct dl2_jpeg_family family;
    draw(120, 80, 3, PICTURE);
    for (int kind = 0; kind < 2; kind++)
        for (int k = 0; k < 64; k++) {
            for (int q = 0; q < DL2_TABLES_QUALITIES; q++)
                family.steps[q][kind][k] = (uint8_t)(1 + 30 * (k % 8));
        }
    for (int i = 0; i < 2; i++) {
        struct dl2_encode_options options = DL2_ENCODE_DEFAULTS;
        options.subsampling = "444";
        options.tables = &family;
        options.settings = settings[i];
        assert_int_equal(dl2_image_encode(jpeg, &image, &options, ours, NULL), DL2_OK);
        assert_int_equal(
            dl2_image_decode(ours->data, ours->size, &decode, &decoded[i], &scratch, NULL), DL2_OK);
    }
    double off = 0;
    for (size_t b = 0; b < image.height * image.stride; b++)
        off += abs(decoded[0].data[b] - decoded[1].data[b]);
    assert_true(off <
                0.2 * (double)(image.height * image.stride)); /* tables left as they are: 3.4 */
    for (int i = 0; i < 2; i++)
        dl2_image_free(&decoded[i]);
    dl2_image_free(&scratch);
}

/* Symbols for which the standard tables were made need no more bits with these than with any
 * others; others do. */
static void standard_tables_can_be_the_smaller(void **state)
{
    struct jpeg_compress_struct cinfo;
    struct jpeg_error_mgr manager;
    static struct dl2_jpeg_coders standard, optimized;
    static struct dl2_jpeg_counts counts;
    cinfo.err = jpeg_std_error(&manager);
    jpeg_create_compress(&cinfo);
    cinfo.in_color_space = JCS_RGB;
    cinfo.input_components = 3;
    jpeg_set_defaults(&cinfo);
    for (int kind = 0; kind < 2; kind++) {
        const JHUFF_TBL *const tables[] = {cinfo.dc_huff_tbl_ptrs[kind],
                                           cinfo.ac_huff_tbl_ptrs[kind]};
        uint64_t *const lists[] = {counts.dc, counts.ac};
        memset(&counts, 0, sizeof counts);
        for (int t = 0; t < 2; t++)
            for (int length = 1, next = 0; length <= 16; length++)
                for (int i = 0; i < tables[t]->bits[length]; i++)
                    lists[t][tables[t]->huffval[next++]] = (uint64_t)1 << (20 - length);
        dl2_jpeg_coder_set(&standard.dc, tables[0]);
        dl2_jpeg_coder_set(&standard.ac, tables[1]);
        dl2_jpeg_coders_optimize(&optimized, &counts);
        assert_true(dl2_jpeg_coders_bits(&standard, &counts) <=
                    dl2_jpeg_coders_bits(&optimized, &counts));
        counts.ac[0x11] *= 8;
        dl2_jpeg_coders_optimize(&optimized, &counts);
        assert_true(dl2_jpeg_coders_bits(&standard, &counts) >
                    dl2_jpeg_coders_bits(&optimized, &counts));
    }
    jpeg_destroy_compress(&cinfo);
}

/* Counts that double make the longest codes: without the limit, these would have up to 24 bits. The
 * expected lengths are libjpeg-turbo's. */
static void long_codes_are_limited(void **state)
{
    static const UINT8 expected[17] = {0, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 0, 1, 0, 11};
    uint64_t counts[256] = {0};
    JHUFF_TBL table = {0};
    for (int i = 0; i < 24; i++)
        counts[100 + i] = (uint64_t)1 << i;
    dl2_jpeg_optimal_table(counts, &table);
    assert_memory_equal(table.bits, expected, sizeof expected);
    for (int i = 0; i < 24; i++) /* the most frequent symbol first */
        assert_int_equal(table.huffval[i], 123 - i);
    /* A symbol alone has one bit. */
    memset(counts, 0, sizeof counts);
    counts[7] = 5;
    dl2_jpeg_optimal_table(counts, &table);
    assert_int_equal(table.bits[1], 1);
    assert_int_equal(table.huffval[0], 7);
}

/* Division by multiplication, for all steps and coefficients that there can be. */
static void quantization_divides(void **state)
{
    static _Alignas(64) int16_t block[64];
    static struct dl2_jpeg_divisors divisors;
    static _Alignas(64) uint16_t levels[64];
    for (size_t v = 0; v < sizeof variants / sizeof *variants; v++) {
        if (!choose_variant(variants[v]))
            continue;
        const struct dl2_jpeg_forward *const forward = dl2_jpeg_forward_for(dl2_simd_flags());
        for (int step = 1; step <= 255; step++) {
            uint16_t steps[64];
            for (int i = 0; i < 64; i++)
                steps[i] = (uint16_t)step;
            dl2_jpeg_divisors_set(&divisors, steps);
            for (int first = -8256; first < 8256; first += 64) {
                for (int i = 0; i < 64; i++)
                    block[i] = (int16_t)(first + i);
                const uint64_t filled = forward->quantize(block, &divisors, levels);
                for (int i = 0; i < 64; i++) {
                    const int expected = (abs(block[i]) + 4 * step) / (8 * step);
                    const int level = (int16_t)(levels[i] - DL2_JPEG_BIAS);
                    if (level != (block[i] < 0 ? -expected : expected) ||
                        (filled >> i & 1) != (expected > 0))
                        fail_msg("%s: %d by %d is %d", variants[v], block[i], 8 * step, level);
                }
            }
        }
    }
}

/* What dl2-transcode counts for an image, and a byte a pixel for the file, is not exceeded where
 * most memory is needed: optimized tables at 4:4:4. A process of its own tells its peak. */
static void memory_is_as_planned(void **state)
{
    enum { SIDE = 1500 };
    const struct dl2_codec *const jpeg = dl2_codec_find("jpeg");
    uint64_t unused;
    if (!count_allocations(&unused))
        skip(); /* a sanitizer has memory of its own */
    const pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        struct dl2_encode_options options = DL2_ENCODE_DEFAULTS;
        struct rusage before, after;
        options.subsampling = "444";
        options.effort = 1;
        draw(SIDE, SIDE, 3, PICTURE);
        getrusage(RUSAGE_SELF, &before);
        const int status = dl2_image_encode(jpeg, &image, &options, ours, NULL);
        getrusage(RUSAGE_SELF, &after);
        const double bytes = 1024.0 * (double)(after.ru_maxrss - before.ru_maxrss);
        const double most = (jpeg->pixel_bytes + 1.0 - 3) * SIDE * SIDE + (1 << 20);
        _exit(status < 0 ? 1 : bytes > most ? 2 : bytes < SIDE * SIDE ? 3 : 0);
    }
    int status;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFEXITED(status));
    assert_int_equal(WEXITSTATUS(status), 0); /* 1: not encoded, 2: too much, 3: nothing seen */
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(memory_is_as_planned),
        cmocka_unit_test(sizes_are_libjpegs),
        cmocka_unit_test(qualities_are_libjpegs),
        cmocka_unit_test(wide_images_are_libjpegs),
        cmocka_unit_test(efforts_and_errors),
        cmocka_unit_test(wide_images_are_turned),
        cmocka_unit_test(tables_are_turned),
        cmocka_unit_test(quantization_divides),
        cmocka_unit_test(long_codes_are_limited),
        cmocka_unit_test(standard_tables_can_be_the_smaller),
        cmocka_unit_test(trials_are_what_files_decode_to),
    };
    return cmocka_run_group_tests(tests, NULL, free_all);
}
