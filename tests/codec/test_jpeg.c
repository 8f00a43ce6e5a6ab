/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Our own JPEG decoder: bit for bit what libjpeg-turbo makes of a file, over samplings, sizes,
 * qualities, Huffman tables, restart intervals, rectangles, reductions and SIMD variants; and that
 * it is our own that decoded.
 */
#include "common/random.h"
#include "common/simd.h"
#include "tests/codec/jpeg_compare.h"
#include "tests/codec/sample_files.h"
#include "tests/unit.h"

#include <jpeglib.h>

static struct jpeg_compare *compare;
static struct dl2_bytes jpeg;

static int make_compare(void **state)
{
    compare = calloc(1, sizeof *compare);
    return compare ? 0 : -1;
}

static int free_compare(void **state)
{
    jpeg_compare_free(compare);
    free(compare);
    dl2_bytes_free(&jpeg);
    return 0;
}

/* The variants that this processor can run, by their flags. */
static size_t find_variants(unsigned flags[4])
{
    const unsigned levels[] = {0, DL2_SIMD_NEON, DL2_SIMD_AVX2, DL2_SIMD_AVX2 | DL2_SIMD_AVX512};
    size_t count = 0;
    unsetenv("DL2_SIMD");
    for (size_t i = 0; i < 4; i++)
        if ((levels[i] & dl2_simd_flags()) == levels[i])
            flags[count++] = levels[i];
    return count;
}

enum huffman { STANDARD, OPTIMIZED, REVERSED, SKEWED, HUFFMANS };

struct recipe {
    uint32_t width, height;
    bool gray, noise;
    int h, v; /* sampling factors of the luma */
    int quality;
    bool extended; /* quantization steps above 255, so SOF1 */
    enum huffman huffman;
    unsigned interval;
};

/* Symbols in the opposite order: frequent ones get codes of up to 16 bits. */
static void reverse_symbols(JHUFF_TBL *table)
{
    int count = 0;
    for (int i = 1; i <= 16; i++)
        count += table->bits[i];
    for (int i = 0; i < count / 2; i++) {
        const UINT8 swapped = table->huffval[i];
        table->huffval[i] = table->huffval[count - 1 - i];
        table->huffval[count - 1 - i] = swapped;
    }
}

/* Codes of 1, 2, 3, ... bits, then of 16; the first is the symbol `first`. */
static void skew_codes(JHUFF_TBL *table, UINT8 first)
{
    int count = 0, at = 0;
    for (int i = 1; i <= 16; i++) {
        count += table->bits[i];
        table->bits[i] = 0;
    }
    while (table->huffval[at] != first)
        at++;
    memmove(table->huffval + 1, table->huffval, (size_t)at);
    table->huffval[0] = first;
    for (int i = 1; i <= 8; i++)
        table->bits[i] = 1;
    table->bits[16] = (UINT8)(count - 8);
}

static void say_nothing(j_common_ptr cinfo, int level)
{
    (void)cinfo;
    (void)level;
}

static void make_jpeg(const struct recipe *recipe)
{
    struct dl2_image image = DL2_IMAGE_INIT;
    struct jpeg_compress_struct cinfo;
    struct jpeg_error_mgr manager;
    unsigned char *data = NULL;
    unsigned long size = 0;
    sample_picture(&image, recipe->width, recipe->height, recipe->gray ? 1 : 3);
    if (recipe->noise) {
        struct dl2_random random;
        dl2_random_init(&random, 7, DL2_RANDOM_TEST, recipe->width, recipe->height);
        for (size_t i = 0; i < image.stride * image.height; i++)
            image.data[i] = (uint8_t)(dl2_random_below(&random, 2) * 255);
    }
    cinfo.err = jpeg_std_error(&manager);
    manager.emit_message = say_nothing; /* steps above 255 are on purpose */
    jpeg_create_compress(&cinfo);
    jpeg_mem_dest(&cinfo, &data, &size);
    cinfo.image_width = recipe->width;
    cinfo.image_height = recipe->height;
    cinfo.input_components = recipe->gray ? 1 : 3;
    cinfo.in_color_space = recipe->gray ? JCS_GRAYSCALE : JCS_RGB;
    jpeg_set_defaults(&cinfo);
    jpeg_set_quality(&cinfo, recipe->quality, !recipe->extended);
    cinfo.comp_info[0].h_samp_factor = recipe->gray ? 1 : recipe->h;
    cinfo.comp_info[0].v_samp_factor = recipe->gray ? 1 : recipe->v;
    cinfo.optimize_coding = recipe->huffman == OPTIMIZED;
    for (int i = 0; i < 2 && recipe->huffman == REVERSED; i++) {
        reverse_symbols(cinfo.ac_huff_tbl_ptrs[i]);
        reverse_symbols(cinfo.dc_huff_tbl_ptrs[i]);
    }
    for (int i = 0; i < 2 && recipe->huffman == SKEWED; i++) {
        skew_codes(cinfo.ac_huff_tbl_ptrs[i], 0x08); /* a value of eight bits next */
        skew_codes(cinfo.dc_huff_tbl_ptrs[i], 0);
    }
    cinfo.restart_interval = recipe->interval;
    jpeg_start_compress(&cinfo, TRUE);
    while (cinfo.next_scanline < recipe->height) {
        JSAMPROW row = image.data + cinfo.next_scanline * image.stride;
        jpeg_write_scanlines(&cinfo, &row, 1);
    }
    jpeg_finish_compress(&cinfo);
    jpeg.size = 0;
    assert_int_equal(dl2_bytes_append(&jpeg, data, size, NULL), DL2_OK);
    free(data);
    jpeg_destroy_compress(&cinfo);
    dl2_image_free(&image);
}

static void random_span(struct dl2_random *random, uint32_t size, uint32_t *start, uint32_t *length)
{
    *length = 1 + dl2_random_below(random, size);
    const uint32_t kind = dl2_random_below(random, 4), room = size - *length;
    *start = kind == 0 ? 0 : kind == 1 ? room : dl2_random_below(random, room + 1);
}

/* One part, or the whole, by one variant. Returns whether our own decoder made it. */
static bool check_part(const struct recipe *recipe, const struct dl2_decode_request *request,
                       unsigned simd_flags)
{
    struct dl2_image_info info;
    struct jpeg_verdict verdict;
    /* A block of its own, so that a sanitizer sees what is read behind it. */
    uint8_t *const copy = malloc(jpeg.size);
    memcpy(copy, jpeg.data, jpeg.size);
    assert_true(jpeg_compare_open(compare, copy, jpeg.size, &info));
    jpeg_compare_read(compare, request, simd_flags, &verdict);
    if (verdict.own < 0 || verdict.libjpeg < 0 || !verdict.same)
        fail_msg("%ux%u%s%s, %dx%d, quality %d, tables %d, interval %u: %ux%u at %u,%u by %u%s%s, "
                 "%s: status %d, libjpeg %d; plane %u at %u,%u is %u, libjpeg: %u",
                 recipe->width, recipe->height, recipe->gray ? " gray" : "",
                 recipe->noise ? " noise" : "", recipe->h, recipe->v, recipe->quality,
                 (int)recipe->huffman, recipe->interval, request->width, request->height,
                 request->x, request->y, request->reduction, request->planes ? " planes" : "",
                 request->channels == 1 ? " luma" : "", compare->own.baseline.kernels->name,
                 verdict.own, verdict.libjpeg, verdict.plane, verdict.column, verdict.row,
                 verdict.values[0], verdict.values[1]);
    free(copy);
    return verdict.taken;
}

/* The whole and some parts, at each reduction, by all variants in turns; with tables that are made
 * for one small file, and with those that are kept. */
static void check_file(const struct recipe *recipe, struct dl2_random *random, unsigned parts)
{
    unsigned flags[4];
    const size_t variants = find_variants(flags);
    size_t turn = dl2_random_below(random, 3);
    make_jpeg(recipe);
    for (uint32_t reduction = 1; reduction <= 8; reduction *= 2)
        for (unsigned i = 0; i < 2 + parts; i++, turn++) {
            struct dl2_decode_request request = DL2_DECODE_REQUEST_DEFAULTS;
            request.width = recipe->width;
            request.height = recipe->height;
            request.reduction = reduction;
            request.channels = i % 5 == 4;
            request.planes = i % 2;
            if (i > 1) {
                random_span(random, recipe->width, &request.x, &request.width);
                random_span(random, recipe->height, &request.y, &request.height);
            }
            if (i % 4 < 2)
                dl2_jpeg_huffman_free(&compare->own.baseline.tables);
            assert_true(check_part(recipe, &request, flags[turn % variants]));
        }
}

static const int factors[][2] = {{1, 1}, {2, 1}, {2, 2}, {1, 2}, {4, 1}, {4, 2}, {1, 4}};

static void any_shape(void **state)
{
    static const uint32_t sizes[][2] = {{1, 1}, {7, 3}, {16, 16}, {17, 33}, {65, 40}, {150, 113}};
    static const unsigned intervals[] = {0, 1, 2, 3, 4, 5, 7, 19, 200};
    struct dl2_random random;
    dl2_random_init(&random, 1, DL2_RANDOM_TEST, 0, 0);
    for (size_t f = 0; f <= sizeof factors / sizeof *factors; f++)
        for (size_t s = 0; s < sizeof sizes / sizeof *sizes; s++)
            for (size_t i = 0; i < sizeof intervals / sizeof *intervals; i++) {
                const bool gray = f == sizeof factors / sizeof *factors;
                const struct recipe recipe = {.width = sizes[s][0],
                                              .height = sizes[s][1],
                                              .gray = gray,
                                              .h = gray ? 1 : factors[f][0],
                                              .v = gray ? 1 : factors[f][1],
                                              .quality = 85,
                                              .huffman = (enum huffman)(i % HUFFMANS),
                                              .interval = intervals[i]};
                check_file(&recipe, &random, 5);
            }
}

static void any_quality_and_table(void **state)
{
    struct dl2_random random;
    dl2_random_init(&random, 2, DL2_RANDOM_TEST, 0, 0);
    for (int quality = 1; quality <= 100; quality++)
        for (int kind = 0; kind < 4; kind++) {
            const struct recipe recipe = {
                .width = 100,
                .height = 70,
                .noise = kind % 2,
                .gray = kind == 3 && quality % 5 == 0,
                .h = quality % 2 + 1,
                .v = quality / 2 % 2 + 1,
                .quality = quality,
                .extended = kind >= 2,
                .huffman = (enum huffman)((quality / 4 + kind) % HUFFMANS),
                .interval = kind < 2 ? (unsigned)quality % 7 : 0,
            };
            check_file(&recipe, &random, 2);
        }
}

/* More segments and longer ones than streams and chunks have room for. */
static void large_images(void **state)
{
    struct dl2_random random;
    dl2_random_init(&random, 3, DL2_RANDOM_TEST, 0, 0);
    for (unsigned i = 0; i < 8; i++) {
        const struct recipe recipe = {.width = 700 + 37 * i,
                                      .height = 500,
                                      .h = 1 + (i & 1),
                                      .v = 1 + (i >> 1 & 1),
                                      .quality = 50 + 6 * (int)i,
                                      .huffman = (enum huffman)(i % HUFFMANS),
                                      .interval = i < 4 ? 4 * i : 37 * i};
        check_file(&recipe, &random, 6);
    }
}

/* What our own decoder isn't for comes from libjpeg. */
static void others_are_handed_over(void **state)
{
    const struct recipe recipe = {
        .width = 60, .height = 50, .h = 2, .v = 2, .quality = 80, .interval = 3};
    struct dl2_decode_request request = DL2_DECODE_REQUEST_DEFAULTS;
    request.width = recipe.width;
    request.height = recipe.height;
    make_jpeg(&recipe);
    assert_true(check_part(&recipe, &request, 0));
    /* A marker of another number; libjpeg warns, which is an error here. */
    size_t at = jpeg.size - 1;
    while (jpeg.data[at - 1] != 0xff || (jpeg.data[at] & 0xf8) != 0xd0)
        at--;
    struct dl2_image_info info;
    struct jpeg_verdict verdict;
    jpeg.data[at] ^= 1;
    assert_true(jpeg_compare_open(compare, jpeg.data, jpeg.size, &info));
    jpeg_compare_read(compare, &request, 0, &verdict);
    assert_true(!verdict.taken && verdict.own == verdict.libjpeg && verdict.own < 0);
    jpeg.data[at] ^= 1;
    /* Without its end the file's pixels are all there. */
    jpeg.size -= 2;
    assert_false(check_part(&recipe, &request, 0));
    /* Bytes before a marker. */
    dl2_bytes_append(&jpeg, "\0\0\0\xff\xd9", 5, NULL);
    assert_false(check_part(&recipe, &request, 0));
}

static void the_environment_turns_it_off(void **state)
{
    const struct recipe recipe = {.width = 30, .height = 20, .h = 2, .v = 2, .quality = 80};
    make_jpeg(&recipe);
    for (int off = 0; off < 2; off++) {
        struct dl2_jpeg_decoder decoder = {.baseline.eager = true};
        struct dl2_decode_request request = DL2_DECODE_REQUEST_DEFAULTS;
        struct dl2_image_info info = {.orientation = 1};
        struct dl2_image image = DL2_IMAGE_INIT;
        struct dl2_raster raster;
        request.width = recipe.width;
        request.height = recipe.height;
        if (off)
            setenv("DL2_JPEG", "libjpeg", 1);
        decoder.base.data = jpeg.data;
        decoder.base.size = jpeg.size;
        assert_int_equal(dl2_jpeg_open(&decoder, &info, NULL), DL2_OK);
        assert_int_equal(dl2_jpeg_read(&decoder, &request, &image, &raster, NULL), DL2_OK);
        assert_int_equal(decoder.own, !off);
        dl2_jpeg_close(&decoder);
        dl2_bytes_free(&decoder.base.block);
        dl2_image_free(&image);
    }
    unsetenv("DL2_JPEG");
}

/* New tables of a small file have a narrow window, those that come again or of large files a wide
 * one; a narrow one for all of a file's, if for any. */
static void windows_are_as_wide_as_pays(void **state)
{
    const struct recipe
        small = {.width = 60, .height = 50, .h = 2, .v = 2, .quality = 80},
        other = {.width = 60, .height = 50, .h = 2, .v = 2, .quality = 20, .huffman = OPTIMIZED},
        large = {.width = 600, .height = 500, .h = 1, .v = 1, .quality = 95, .huffman = OPTIMIZED};
    static const unsigned windows[] = {DL2_JPEG_NARROW, DL2_JPEG_WINDOW, DL2_JPEG_NARROW,
                                       DL2_JPEG_WINDOW, DL2_JPEG_WINDOW, DL2_JPEG_WINDOW};
    const struct recipe *const recipes[] = {&small, &small, &other, &small, &other, &large};
    struct dl2_jpeg_decoder decoder = {.baseline.eager = true};
    for (uint64_t i = 0; i < sizeof windows / sizeof *windows; i++) {
        struct dl2_decode_request request = DL2_DECODE_REQUEST_DEFAULTS;
        struct dl2_image_info info = {.orientation = 1};
        struct dl2_image image = DL2_IMAGE_INIT;
        struct dl2_raster raster;
        make_jpeg(recipes[i]);
        request.width = recipes[i]->width;
        request.height = recipes[i]->height;
        decoder.base.data = jpeg.data;
        decoder.base.size = jpeg.size;
        assert_int_equal(dl2_jpeg_open(&decoder, &info, NULL), DL2_OK);
        assert_int_equal(dl2_jpeg_read(&decoder, &request, &image, &raster, NULL), DL2_OK);
        dl2_image_free(&image);
        assert_int_equal(decoder.own, i + 1);
        const struct dl2_jpeg_huffman *newest = decoder.baseline.tables.pairs[0];
        for (size_t pair = 1; pair < DL2_JPEG_PAIRS && decoder.baseline.tables.pairs[pair]; pair++)
            if (decoder.baseline.tables.pairs[pair]->used > newest->used)
                newest = decoder.baseline.tables.pairs[pair];
        assert_int_equal(newest->window, windows[i]);
    }
    dl2_jpeg_close(&decoder);
    dl2_bytes_free(&decoder.base.block);
}

/* Whatever our own decoder takes is what libjpeg makes of it. */
static void damage_is_never_shown(void **state)
{
    struct dl2_random random;
    unsigned flags[4], taken = 0, refused = 0;
    const size_t variants = find_variants(flags);
    dl2_random_init(&random, 4, DL2_RANDOM_TEST, 0, 0);
    for (unsigned kind = 0; kind < 8; kind++) {
        const struct recipe recipe = {.width = 120,
                                      .height = 90,
                                      .gray = kind == 7,
                                      .h = 1 + (kind & 1),
                                      .v = 1 + (kind >> 1 & 1),
                                      .quality = 60 + 5 * (int)kind,
                                      .huffman = (enum huffman)(kind % HUFFMANS),
                                      .interval = kind % 4};
        make_jpeg(&recipe);
        for (unsigned i = 0; i < 400; i++) {
            struct dl2_decode_request request = DL2_DECODE_REQUEST_DEFAULTS;
            struct dl2_image_info info;
            struct jpeg_verdict verdict;
            const size_t size = i % 8 ? jpeg.size : dl2_random_below(&random, (uint32_t)jpeg.size);
            uint8_t *const copy = malloc(size + 1);
            memcpy(copy, jpeg.data, size);
            for (unsigned n = 0; n < 1 + i % 3 && size; n++)
                copy[dl2_random_below(&random, (uint32_t)size)] ^=
                    (uint8_t)(1u << dl2_random_below(&random, 8));
            if (jpeg_compare_open(compare, copy, size, &info) && info.width == recipe.width &&
                info.height == recipe.height) {
                /* Rows from the top, all of them or not: just what libjpeg reads, too. */
                request.width = recipe.width;
                request.height =
                    i % 2 ? recipe.height : 1 + dl2_random_below(&random, recipe.height);
                request.reduction = 1u << i / 2 % 4;
                jpeg_compare_read(compare, &request, flags[i % variants], &verdict);
                assert_true(verdict.same);
                assert_int_equal(verdict.own, verdict.libjpeg);
                assert_true(!verdict.taken || verdict.own == DL2_OK);
                taken += verdict.taken;
                refused += verdict.own < 0;
            }
            free(copy);
        }
    }
    assert_true(taken > 50 && refused > 500);
}

/* Each kernel on any coefficients, the outermost among them. */
static void variants_agree(void **state)
{
    static const unsigned sizes[] = {1, 2, 4, 8};
    _Alignas(64) static int16_t blocks[2][DL2_JPEG_LANES][64];
    static uint8_t out[2][DL2_JPEG_LANES][64];
    uint16_t steps[64];
    unsigned flags[4], good_ones = 0;
    const size_t variants = find_variants(flags);
    struct dl2_random random;
    dl2_random_init(&random, 5, DL2_RANDOM_TEST, 0, 0);
    for (unsigned i = 0; i < 20000; i++) {
        const struct dl2_jpeg_kernels *const c = dl2_jpeg_kernels_for(0);
        const struct dl2_jpeg_kernels *const other = dl2_jpeg_kernels_for(flags[i % variants]);
        const unsigned kernel = i / 3 % 4, lanes = other->lanes[kernel], range = 1u << i % 17;
        struct dl2_jpeg_inverse_job jobs[DL2_JPEG_LANES];
        for (unsigned k = 0; k < 64; k++)
            steps[k] = (uint16_t)(1 + dl2_random_below(&random, i % 5 ? 20 : 32767));
        for (unsigned lane = 0; lane < lanes; lane++) {
            for (unsigned k = 0; k < 64; k++)
                blocks[0][lane][k] = blocks[1][lane][k] =
                    dl2_random_below(&random, 64) < i / 7 % 66
                        ? (int16_t)(dl2_random_below(&random, range) - range / 2)
                        : 0;
            jobs[lane] = (struct dl2_jpeg_inverse_job){blocks[0][lane], out[0][lane]};
        }
        bool good = true;
        const bool verdict = other->inverse[kernel](jobs, steps, 8);
        for (unsigned lane = 0; lane < lanes; lane++) {
            const struct dl2_jpeg_inverse_job job = {blocks[1][lane], out[1][lane]};
            good &= c->inverse[kernel](&job, steps, 8);
        }
        /* AVX doesn't need the limit of columns, which is stricter. */
        if (strncmp(other->name, "avx", 3) == 0)
            assert_true(verdict || !good);
        else
            assert_int_equal(verdict, good);
        good_ones += good;
        for (unsigned lane = 0; lane < lanes && good; lane++) {
            for (unsigned y = 0; y < sizes[kernel]; y++)
                assert_memory_equal(out[0][lane] + 8 * (size_t)y, out[1][lane] + 8 * (size_t)y,
                                    sizes[kernel]);
            for (unsigned k = 0; k < 64; k++)
                assert_true(!blocks[0][lane][k] && !blocks[1][lane][k]);
        }
    }
    assert_true(good_ones > 8000);
}

static uint8_t clipped(int value)
{
    return (uint8_t)(value < 0 ? 0 : value > 255 ? 255 : value);
}

/* All chroma, by libjpeg's formulas (jdcolor.c). */
static void colors_are_converted(void **state)
{
    enum { HALF = 1 << 15, COUNT = 256 + 7 };
    unsigned flags[4];
    const size_t variants = find_variants(flags);
    uint8_t y[COUNT + DL2_JPEG_COLOR_BLOCK] = {0}, cb[sizeof y] = {0}, cr[sizeof y] = {0};
    uint8_t out[3 * COUNT + 1], want[3 * COUNT + 1];
    for (size_t n = 0; n < variants; n++)
        for (int u = 0; u < 256; u++) {
            for (int v = 0; v < COUNT; v++) {
                const int luma = (u * 37 + v * 101) & 255, blue = u - 128, red = (v & 255) - 128;
                y[v] = (uint8_t)luma;
                cb[v] = (uint8_t)u;
                cr[v] = (uint8_t)v;
                want[3 * v] = clipped(luma + ((91881 * red + HALF) >> 16));
                want[3 * v + 1] = clipped(luma + ((-22554 * blue - 46802 * red + HALF) >> 16));
                want[3 * v + 2] = clipped(luma + ((116130 * blue + HALF) >> 16));
            }
            out[3 * COUNT] = want[3 * COUNT] = 77; /* not to be written */
            dl2_jpeg_color_kernels_for(flags[n])->rgb(y, cb, cr, COUNT, out);
            assert_memory_equal(out, want, sizeof want);
        }
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, make_compare, free_compare)

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(variants_agree),
        cmocka_unit_test(colors_are_converted),
        TEST(any_shape),
        TEST(any_quality_and_table),
        TEST(large_images),
        TEST(others_are_handed_over),
        TEST(damage_is_never_shown),
        TEST(the_environment_turns_it_off),
        TEST(windows_are_as_wide_as_pays),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
