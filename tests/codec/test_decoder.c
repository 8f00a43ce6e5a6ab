/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Parts of JPEGs against the whole: what dl2_decoder gives of a rectangle must be, bit for bit,
 * what libjpeg makes of the whole file.
 */
#include "config.h"

#include "codec/decoder.h"
#include "codec/jpeg/jpeg_slices.h"
#include "codec/jpeg/jpeg_tiles.h"
#include "common/random.h"
#include "tests/codec/sample_files.h"
#include "tests/common/allocations.h"
#include "tests/unit.h"

#ifdef HAVE_JPEG
#include <jpeglib.h>

/* A new decoder for each test, and the file that most tests make for it. */
static struct dl2_decoder *decoder;
static struct dl2_bytes jpeg;

static int make_decoder(void **state)
{
    return dl2_decoder_create(&decoder, NULL);
}

static int free_all(void **state)
{
    dl2_decoder_destroy(decoder);
    dl2_bytes_free(&jpeg);
    return 0;
}

/* ---- What libjpeg makes of the whole file */

struct whole {
    struct dl2_image pixels;    /* gray or RGB; empty for planes */
    struct dl2_image planes[3]; /* one channel each; empty for pixels */
    uint32_t step_x[3], step_y[3];
    int64_t x[3], y[3]; /* the pixels where the first samples begin */
    uint32_t count;     /* of planes */
};

static void whole_free(struct whole *whole)
{
    dl2_image_free(&whole->pixels);
    for (size_t i = 0; i < 3; i++)
        dl2_image_free(&whole->planes[i]);
}

/* ---- A raster against it: every sample that it claims to have */

/* `all` is the plane of the whole image, without its samples. */
static void check_plane(const struct dl2_plane *plane, uint32_t channels,
                        const struct dl2_image *image, const struct dl2_plane *all,
                        const struct dl2_decode_request *request, const char *what)
{
    const int64_t step_x = all->step_x, step_y = all->step_y;
    assert_int_equal(plane->step_x, step_x);
    assert_int_equal(plane->step_y, step_y);
    assert_int_equal((plane->x - all->x) % step_x, 0);
    assert_int_equal((plane->y - all->y) % step_y, 0);
    assert_float_equal(plane->shift_x, 0, 0);
    assert_float_equal(plane->shift_y, 0, 0);
    assert_int_equal(image->channels, channels);
    const uint32_t x = (uint32_t)((plane->x - all->x) / step_x);
    const uint32_t y = (uint32_t)((plane->y - all->y) / step_y);
    assert_true(plane->x <= request->x && plane->y <= request->y);
    assert_true(plane->x + plane->width * step_x >= request->x + request->width);
    assert_true(plane->y + plane->height * step_y >= request->y + request->height);
    assert_true(x + plane->width <= image->width && y + plane->height <= image->height);
    for (uint32_t row = 0; row < plane->height; row++) {
        const uint8_t *have = plane->data + row * plane->stride;
        const uint8_t *want = image->data + (y + row) * image->stride + (size_t)x * channels;
        for (size_t i = 0; i < (size_t)plane->width * channels; i++)
            if (have[i] != want[i])
                fail_msg("%s, %ux%u at %u,%u by %u: at %zu,%u of the plane %u, not %u", what,
                         (unsigned)request->width, (unsigned)request->height, (unsigned)request->x,
                         (unsigned)request->y, (unsigned)request->reduction, i / channels,
                         (unsigned)row, have[i], want[i]);
    }
}

static void check_raster(const struct dl2_raster *raster, const struct whole *whole,
                         const struct dl2_decode_request *request, const char *what)
{
    const unsigned planes = dl2_raster_planes(raster);
    assert_int_equal(planes, whole->count ? whole->count : 1);
    for (unsigned i = 0; i < planes; i++) {
        struct dl2_plane all = {.step_x = whole->step_x[i],
                                .step_y = whole->step_y[i],
                                .x = whole->x[i],
                                .y = whole->y[i]};
        if (!whole->count)
            all.step_x = all.step_y = request->reduction;
        check_plane(&raster->planes[i], planes > 1 ? 1 : dl2_raster_channels(raster),
                    whole->count ? &whole->planes[i] : &whole->pixels, &all, request, what);
    }
}

/* Draws 1 to `size` pixels, often at an edge. */
static void random_span(struct dl2_random *random, uint32_t size, uint32_t *start, uint32_t *length)
{
    *length = 1 + dl2_random_below(random, size);
    if (dl2_random_below(random, 3) == 0)
        *length = 1 + dl2_random_below(random, size < 20 ? size : 20);
    const uint32_t kind = dl2_random_below(random, 5), room = size - *length;
    *start = kind == 0 ? 0 : kind == 1 ? room : dl2_random_below(random, room + 1);
}

static void random_request(struct dl2_random *random, uint32_t width, uint32_t height,
                           struct dl2_decode_request *request)
{
    random_span(random, width, &request->x, &request->width);
    random_span(random, height, &request->y, &request->height);
}

#if JPEG_LIB_VERSION >= 70
#define SCALED_SIZE(component) ((component)->DCT_h_scaled_size)
#else
#define SCALED_SIZE(component) ((component)->DCT_scaled_size)
#endif

struct kind {
    const char *name;
    J_COLOR_SPACE space;
    int h[4], v[4]; /* sampling factors */
    bool progressive, arithmetic, scans;
};

static const struct kind kinds[] = {
    {"gray", JCS_GRAYSCALE, {1}, {1}, false, false, false},
    {"gray 2x2", JCS_GRAYSCALE, {2}, {2}, false, false, false},
    {"4:4:4", JCS_YCbCr, {1, 1, 1}, {1, 1, 1}, false, false, false},
    {"4:2:2", JCS_YCbCr, {2, 1, 1}, {1, 1, 1}, false, false, false},
    {"4:2:0", JCS_YCbCr, {2, 1, 1}, {2, 1, 1}, false, false, false},
    {"4:4:0", JCS_YCbCr, {1, 1, 1}, {2, 1, 1}, false, false, false},
    {"4:1:1", JCS_YCbCr, {4, 1, 1}, {1, 1, 1}, false, false, false},
    {"4:1:0", JCS_YCbCr, {4, 1, 1}, {2, 1, 1}, false, false, false},
    {"4:1:0, tall", JCS_YCbCr, {2, 1, 1}, {4, 1, 1}, false, false, false},
    {"4:4:1", JCS_YCbCr, {1, 1, 1}, {4, 1, 1}, false, false, false},
    {"Cb 2x1, Cr 1x2", JCS_YCbCr, {2, 2, 1}, {2, 1, 2}, false, false, false},
    {"luma coarser", JCS_YCbCr, {1, 2, 1}, {1, 1, 1}, false, false, false},
    {"RGB", JCS_RGB, {1, 1, 1}, {1, 1, 1}, false, false, false},
    {"YCCK", JCS_YCCK, {2, 1, 1, 2}, {2, 1, 1, 2}, false, false, false},
    {"CMYK", JCS_CMYK, {1, 1, 1, 1}, {1, 1, 1, 1}, false, false, false},
    {"progressive 4:2:0", JCS_YCbCr, {2, 1, 1}, {2, 1, 1}, true, false, false},
    {"progressive gray", JCS_GRAYSCALE, {1}, {1}, true, false, false},
    {"scans 4:2:0", JCS_YCbCr, {2, 1, 1}, {2, 1, 1}, false, false, true},
#ifdef C_ARITH_CODING_SUPPORTED
    {"arithmetic 4:2:0", JCS_YCbCr, {2, 1, 1}, {2, 1, 1}, false, true, false},
#endif
};

/* Every component in a scan of its own. */
static void set_scans(struct jpeg_compress_struct *cinfo, jpeg_scan_info scans[4])
{
    for (int i = 0; i < cinfo->num_components; i++)
        scans[i] = (jpeg_scan_info){1, {i}, 0, 63, 0, 0};
    cinfo->scan_info = scans;
    cinfo->num_scans = cinfo->num_components;
}

static void make_jpeg(const struct kind *kind, uint32_t width, uint32_t height, unsigned interval,
                      struct dl2_bytes *out)
{
    struct dl2_image image = DL2_IMAGE_INIT;
    struct jpeg_compress_struct cinfo;
    struct jpeg_error_mgr manager;
    jpeg_scan_info scans[4];
    const bool gray = kind->space == JCS_GRAYSCALE;
    const bool inks = kind->space == JCS_CMYK || kind->space == JCS_YCCK;
    /* Inks are read from rows of three channels of a wider picture. */
    sample_picture(&image, inks ? (width * 4 + 2) / 3 : width, height, gray ? 1 : 3);
    cinfo.err = jpeg_std_error(&manager);
    jpeg_create_compress(&cinfo);
    unsigned char *data = NULL;
    unsigned long size = 0;
    jpeg_mem_dest(&cinfo, &data, &size);
    cinfo.image_width = width;
    cinfo.image_height = height;
    cinfo.input_components = gray ? 1 : inks ? 4 : 3;
    cinfo.in_color_space = gray ? JCS_GRAYSCALE : inks ? JCS_CMYK : JCS_RGB;
    jpeg_set_defaults(&cinfo);
    jpeg_set_colorspace(&cinfo, kind->space);
    jpeg_set_quality(&cinfo, 85, TRUE);
    for (int i = 0; i < cinfo.num_components; i++) {
        cinfo.comp_info[i].h_samp_factor = kind->h[i];
        cinfo.comp_info[i].v_samp_factor = kind->v[i];
    }
    cinfo.restart_interval = interval;
    cinfo.arith_code = kind->arithmetic;
    if (kind->progressive)
        jpeg_simple_progression(&cinfo);
    if (kind->scans)
        set_scans(&cinfo, scans);
    jpeg_start_compress(&cinfo, TRUE);
    while (cinfo.next_scanline < height) {
        JSAMPROW row = image.data + cinfo.next_scanline * image.stride;
        jpeg_write_scanlines(&cinfo, &row, 1);
    }
    jpeg_finish_compress(&cinfo);
    out->size = 0;
    assert_int_equal(dl2_bytes_append(out, data, size, NULL), DL2_OK);
    free(data);
    jpeg_destroy_compress(&cinfo);
    dl2_image_free(&image);
}

static uint32_t up(uint32_t a, uint32_t b)
{
    return (a + b - 1) / b;
}

static void read_whole_planes(struct jpeg_decompress_struct *cinfo, struct whole *whole)
{
    struct dl2_image padded[3] = {DL2_IMAGE_INIT, DL2_IMAGE_INIT, DL2_IMAGE_INIT};
    JSAMPROW rows[3][32];
    JSAMPARRAY arrays[3] = {rows[0], rows[1], rows[2]};
    const uint32_t across = 8 * (uint32_t)cinfo->max_h_samp_factor;
    const uint32_t down = 8 * (uint32_t)cinfo->max_v_samp_factor;
    const uint32_t mcus_x = up(cinfo->image_width, across);
    const uint32_t mcus_y = up(cinfo->image_height, down);
    uint32_t lines[3];
    for (int i = 0; i < 3; i++) {
        const jpeg_component_info *component = &cinfo->comp_info[i];
        const uint32_t scaled = (uint32_t)SCALED_SIZE(component);
        const uint32_t columns = scaled * (uint32_t)component->h_samp_factor;
        lines[i] = scaled * (uint32_t)component->v_samp_factor;
        whole->step_x[i] = across / columns;
        whole->step_y[i] = down / lines[i];
        assert_int_equal(
            dl2_image_reshape(&padded[i], mcus_x * columns, mcus_y * lines[i], 1, NULL), DL2_OK);
    }
    for (uint32_t mcu = 0; mcu < mcus_y; mcu++) {
        for (int i = 0; i < 3; i++)
            for (uint32_t j = 0; j < lines[i]; j++)
                rows[i][j] = padded[i].data + (mcu * lines[i] + j) * padded[i].stride;
        jpeg_read_raw_data(cinfo, arrays, 32);
    }
    for (int i = 0; i < 3; i++) {
        struct dl2_image *plane = &whole->planes[i];
        dl2_image_reshape(plane, up(cinfo->image_width, whole->step_x[i]),
                          up(cinfo->image_height, whole->step_y[i]), 1, NULL);
        for (uint32_t y = 0; y < plane->height; y++)
            memcpy(plane->data + y * plane->stride, padded[i].data + y * padded[i].stride,
                   plane->width);
        dl2_image_free(&padded[i]);
    }
    whole->count = 3;
}

/* By the bare library; CMYK by dl2_image_decode(). */
static void read_whole(const struct dl2_bytes *file, unsigned reduction, bool planes, bool gray,
                       struct whole *whole)
{
    struct jpeg_decompress_struct cinfo;
    struct jpeg_error_mgr manager;
    cinfo.err = jpeg_std_error(&manager);
    jpeg_create_decompress(&cinfo);
    jpeg_mem_src(&cinfo, file->data, file->size);
    jpeg_read_header(&cinfo, TRUE);
    cinfo.scale_denom = reduction;
    cinfo.raw_data_out = planes;
    if (cinfo.jpeg_color_space == JCS_CMYK || cinfo.jpeg_color_space == JCS_YCCK)
        cinfo.out_color_space = JCS_CMYK;
    const bool luma = cinfo.jpeg_color_space == JCS_YCbCr && gray;
    if (luma)
        cinfo.out_color_space = JCS_GRAYSCALE;
    if (planes)
        cinfo.out_color_space = cinfo.jpeg_color_space;
    jpeg_start_decompress(&cinfo);
    if (planes) {
        read_whole_planes(&cinfo, whole);
        jpeg_destroy_decompress(&cinfo);
        return;
    }
    const uint32_t coded = (uint32_t)cinfo.out_color_components;
    dl2_image_reshape(&whole->pixels, cinfo.output_width, cinfo.output_height, coded == 1 ? 1 : 3,
                      NULL);
    uint8_t *line = malloc((size_t)cinfo.output_width * 4);
    while (cinfo.output_scanline < cinfo.output_height) {
        uint8_t *out = whole->pixels.data + cinfo.output_scanline * whole->pixels.stride;
        JSAMPROW row = coded == 4 ? line : out;
        jpeg_read_scanlines(&cinfo, &row, 1);
        for (uint32_t x = 0; coded == 4 && x < cinfo.output_width; x++)
            for (uint32_t c = 0; c < 3; c++) {
                const unsigned flip = cinfo.saw_Adobe_marker ? 0 : 255;
                out[3 * x + c] =
                    (uint8_t)(((line[4 * x + c] ^ flip) * (line[4 * x + 3] ^ flip) + 127) / 255);
            }
    }
    free(line);
    jpeg_destroy_decompress(&cinfo);
    if (gray && coded != 1) { /* as dl2_image_decode() does where no luma is coded */
        struct dl2_image *image = &whole->pixels;
        const size_t count = (size_t)image->width * image->height;
        for (size_t i = 0; i < count; i++)
            image->data[i] =
                (uint8_t)((19595u * image->data[3 * i] + 38470u * image->data[3 * i + 1] +
                           7471u * image->data[3 * i + 2] + 32768u) >>
                          16);
        dl2_image_reshape(image, image->width, image->height, 1, NULL);
    }
}

static void check_crops(struct dl2_random *random, const struct kind *kind, uint32_t width,
                        uint32_t height, unsigned interval, unsigned crops)
{
    make_jpeg(kind, width, height, interval, &jpeg);
    for (uint32_t reduction = 1; reduction <= 8; reduction *= 2) {
        /* By what comes out: planes, RGB (or gray, for gray), gray. */
        struct whole whole[3] = {{.pixels = DL2_IMAGE_INIT}};
        if (kind->space == JCS_YCbCr)
            read_whole(&jpeg, reduction, true, false, &whole[0]);
        read_whole(&jpeg, reduction, false, false, &whole[1]);
        read_whole(&jpeg, reduction, false, true, &whole[2]);
        for (unsigned i = 0; i < crops; i++) {
            struct dl2_decode_request request = DL2_DECODE_REQUEST_DEFAULTS;
            struct dl2_image_info info;
            struct dl2_error error = DL2_ERROR_INIT;
            struct dl2_raster raster;
            char what[128];
            random_request(random, width, height, &request);
            request.planes = i % 2;
            request.channels = i % 3 == 2 ? 1 : i % 3;
            request.channels = request.channels == 1 ? 1 : i % 4 ? 0 : 3;
            request.reduction = reduction;
            snprintf(what, sizeof what, "%s %ux%u, interval %u, channels %u%s", kind->name,
                     (unsigned)width, (unsigned)height, interval, (unsigned)request.channels,
                     request.planes ? ", planes" : "");
            /* A block of its own, so that a sanitizer sees what is read behind it. */
            uint8_t *copy = malloc(jpeg.size);
            memcpy(copy, jpeg.data, jpeg.size);
            if (dl2_decoder_open(decoder, copy, jpeg.size, 0, &info, &error) < 0 ||
                dl2_decoder_decode(decoder, &request, &raster, &error) < 0)
                fail_msg("%s: %s", what, error.message);
            free(copy);
            const bool gray = raster.color == DL2_COLOR_GRAY;
            assert_int_equal(gray, kind->space == JCS_GRAYSCALE || request.channels == 1);
            assert_true(request.planes || raster.color != DL2_COLOR_YCBCR);
            check_raster(&raster,
                         &whole[raster.color == DL2_COLOR_YCBCR ? 0
                                : request.channels == 1         ? 2
                                                                : 1],
                         &request, what);
        }
        for (size_t i = 0; i < 3; i++)
            whole_free(&whole[i]);
    }
}

static void parts_are_parts_of_the_whole(void **state)
{
    static const uint32_t sizes[][2] = {{150, 113}, {97, 130}, {64, 48}, {33, 17}, {5, 3}, {1, 1}};
    static const unsigned intervals[] = {0, 1, 2, 3, 4, 5, 7, 19};
    struct dl2_random random;
    dl2_random_init(&random, 1, DL2_RANDOM_TEST, 0, 0);
    for (size_t k = 0; k < sizeof kinds / sizeof *kinds; k++)
        for (size_t s = 0; s < sizeof sizes / sizeof *sizes; s++)
            for (size_t i = 0; i < sizeof intervals / sizeof *intervals; i++)
                check_crops(&random, &kinds[k], sizes[s][0], sizes[s][1], intervals[i], 12);
}

static void open_ok(const struct dl2_bytes *file, struct dl2_image_info *info)
{
    struct dl2_error error = DL2_ERROR_INIT;
    expect_ok(dl2_decoder_open(decoder, file->data, file->size, 0, info, &error), &error);
}

static void decode_ok(const struct dl2_decode_request *request, struct dl2_raster *raster)
{
    struct dl2_error error = DL2_ERROR_INIT;
    expect_ok(dl2_decoder_decode(decoder, request, raster, &error), &error);
}

static const struct kind *find_kind(const char *name)
{
    for (size_t k = 0; k < sizeof kinds / sizeof *kinds; k++)
        if (!strcmp(kinds[k].name, name))
            return &kinds[k];
    fail_msg("no kind called %s", name);
    return NULL;
}

/* Samples of an axis of `size` pixels that runs backwards end with the image. */
static int64_t first_sample(uint32_t size, uint32_t step, bool backwards)
{
    return backwards && size % step ? (int64_t)(size % step) - step : 0;
}

/* A whole file's, of width x height pixels as coded. */
static void turn_whole(struct whole *whole, uint32_t width, uint32_t height, uint32_t reduction,
                       int orientation)
{
    struct dl2_image scratch = DL2_IMAGE_INIT;
    if (!whole->count)
        whole->step_x[0] = whole->step_y[0] = reduction;
    for (size_t i = 0; i < (whole->count ? whole->count : 1); i++) {
        struct dl2_image *const image = whole->count ? &whole->planes[i] : &whole->pixels;
        const bool transposed = orientation >= 5;
        const uint32_t step_x = whole->step_x[i], step_y = whole->step_y[i];
        const int64_t x = first_sample(width, step_x, dl2_orientation_flips_x(orientation));
        const int64_t y = first_sample(height, step_y, dl2_orientation_flips_y(orientation));
        assert_int_equal(dl2_image_orient(image, orientation, &scratch, NULL), DL2_OK);
        whole->step_x[i] = transposed ? step_y : step_x;
        whole->step_y[i] = transposed ? step_x : step_y;
        whole->x[i] = transposed ? y : x;
        whole->y[i] = transposed ? x : y;
    }
    dl2_image_free(&scratch);
}

static void turned_parts_are_upright(void **state)
{
    static const struct {
        const char *kind;
        uint32_t width, height;
    } files[] = {{"4:2:0", 100, 75}, {"4:1:1", 97, 64}, {"gray", 61, 50}, {"RGB", 50, 61}};
    struct dl2_bytes plain = DL2_BYTES_INIT;
    struct dl2_random random;
    dl2_random_init(&random, 2, DL2_RANDOM_TEST, 0, 0);
    for (int orientation = 1; orientation <= 8; orientation++)
        for (unsigned i = 0; i < 240; i++) {
            const struct kind *kind = find_kind(files[i % 4].kind);
            make_jpeg(kind, files[i % 4].width, files[i % 4].height, i % 3 ? 3 : 0, &plain);
            sample_jpeg_with_exif(&plain, orientation, &jpeg);
            struct whole whole = {.pixels = DL2_IMAGE_INIT};
            struct dl2_decode_request request = DL2_DECODE_REQUEST_DEFAULTS;
            struct dl2_image_info info;
            struct dl2_raster raster;
            request.channels = i / 4 % 3 == 2;
            request.planes = i / 12 % 2;
            request.reduction = 1u << i / 24 % 4;
            const bool planes = request.planes && !request.channels && kind->space == JCS_YCbCr;
            read_whole(&jpeg, request.reduction, planes, request.channels, &whole);
            turn_whole(&whole, files[i % 4].width, files[i % 4].height, request.reduction,
                       orientation);
            open_ok(&jpeg, &info);
            assert_int_equal(info.orientation, orientation);
            random_request(&random, dl2_upright_width(&info), dl2_upright_height(&info), &request);
            decode_ok(&request, &raster);
            assert_int_equal(dl2_raster_planes(&raster), planes ? 3 : 1);
            check_raster(&raster, &whole, &request, "turned");
            whole_free(&whole);
        }
    dl2_bytes_free(&plain);
}

/* One file after another, with all that matters to memory. */
static void decode_all(const struct dl2_bytes *files, size_t count)
{
    for (size_t i = 0; i < 6 * count; i++) {
        struct dl2_image_info info;
        struct dl2_raster raster;
        struct dl2_decode_request request = DL2_DECODE_REQUEST_DEFAULTS;
        open_ok(&files[i % count], &info);
        struct dl2_random random;
        dl2_random_init(&random, 3, DL2_RANDOM_TEST, i, 0);
        random_request(&random, info.width, info.height, &request);
        request.planes = i / count % 2;
        request.channels = i / count % 3 == 1;
        request.reduction = 1 + (i / count > 3);
        decode_ok(&request, &raster);
    }
}

static void memory_is_kept(void **state)
{
    uint64_t before, after;
    if (!count_allocations(&before))
        skip(); /* a sanitizer has the allocator's place, or it isn't glibc's */
    struct dl2_bytes files[48] = {DL2_BYTES_INIT};
    size_t count = 0;
    for (size_t k = 0; k < sizeof kinds / sizeof *kinds; k++)
        for (unsigned i = 0; i < 3 && !kinds[k].progressive && !kinds[k].scans; i++)
            make_jpeg(&kinds[k], 40 + 90 * i, 200 - 60 * i, i * 2, &files[count++]);
    for (int i = 0; i < 2; i++)
        decode_all(files, count);
    count_allocations(&before);
    decode_all(files, count);
    count_allocations(&after);
    assert_int_equal(after - before, 0);
    for (size_t i = 0; i < count; i++)
        dl2_bytes_free(&files[i]);
}

/* Other files' tables and errors leave no traces in a decoder that is used again. */
static void a_decoder_forgets(void **state)
{
    struct dl2_bytes bare = DL2_BYTES_INIT;
    struct dl2_decode_request request = DL2_DECODE_REQUEST_DEFAULTS;
    struct dl2_image_info info;
    struct dl2_raster raster;
    make_jpeg(find_kind("4:2:0"), 64, 48, 0, &jpeg);
    request.width = 64;
    request.height = 48;
    open_ok(&jpeg, &info);
    decode_ok(&request, &raster);
    /* The same without its quantization tables. */
    dl2_bytes_append(&bare, jpeg.data, 2, NULL);
    for (size_t at = 2; at < jpeg.size;) {
        const size_t length = 2 + (size_t)(jpeg.data[at + 2] << 8 | jpeg.data[at + 3]);
        if (jpeg.data[at + 1] == 0xda) {
            dl2_bytes_append(&bare, jpeg.data + at, jpeg.size - at, NULL);
            break;
        }
        if (jpeg.data[at + 1] != 0xdb)
            dl2_bytes_append(&bare, jpeg.data + at, length, NULL);
        at += length;
    }
    open_ok(&bare, &info);
    struct dl2_error error = DL2_ERROR_INIT;
    assert_int_equal(dl2_decoder_decode(decoder, &request, &raster, &error), DL2_ERR_FORMAT);
    open_ok(&jpeg, &info);
    decode_ok(&request, &raster);
    dl2_bytes_free(&bare);
}

/*
 * A part of a damaged file either fails, or is the part of the whole file wherever that can be
 * decoded; where the whole can be, the part can.
 */
static void check_damaged(struct dl2_decoder *other, struct dl2_random *random, const uint8_t *data,
                          size_t size, unsigned width, unsigned height, bool planes, unsigned *good)
{
    struct dl2_decode_request part = DL2_DECODE_REQUEST_DEFAULTS, all = part;
    struct dl2_image_info info;
    struct dl2_raster have, want;
    struct dl2_error error = DL2_ERROR_INIT;
    uint8_t *copy = malloc(size ? size : 1);
    memcpy(copy, data, size);
    random_request(random, width, height, &part);
    all.width = width;
    all.height = height;
    part.planes = all.planes = planes;
    int status = dl2_decoder_open(decoder, copy, size, 1 << 20, &info, &error);
    assert_int_equal(status, dl2_decoder_open(other, copy, size, 1 << 20, &info, NULL));
    if (status == DL2_OK && info.width == width && info.height == height) {
        status = dl2_decoder_decode(decoder, &part, &have, &error);
        if (dl2_decoder_decode(other, &all, &want, NULL) == DL2_OK) {
            if (status < 0)
                fail_msg("a part can't be decoded, the whole can: %s", error.message);
            assert_int_equal(have.color, want.color);
            const uint32_t channels = dl2_raster_channels(&have);
            for (unsigned i = 0; i < dl2_raster_planes(&have); i++) {
                const struct dl2_plane *plane = &want.planes[i];
                const struct dl2_image image = {
                    .data = (uint8_t *)(uintptr_t)plane->data,
                    .width = plane->width,
                    .height = plane->height,
                    .stride = plane->stride,
                    .channels = dl2_raster_planes(&have) == 3 ? 1 : channels,
                };
                check_plane(&have.planes[i], image.channels, &image, plane, &part, "damaged");
            }
            ++*good;
        }
    }
    if (status < 0)
        assert_true(error.status == status && error.message[0]);
    free(copy);
}

static void damage_is_noticed(void **state)
{
    struct dl2_decoder *other;
    assert_int_equal(dl2_decoder_create(&other, NULL), DL2_OK);
    struct dl2_random random;
    unsigned good = 0, tried = 0;
    dl2_random_init(&random, 4, DL2_RANDOM_TEST, 0, 0);
    static const char *const names[] = {"4:2:0", "4:4:4", "gray", "progressive 4:2:0", "RGB"};
    for (size_t k = 0; k < sizeof names / sizeof *names; k++)
        for (unsigned interval = 0; interval <= 6; interval += 3) {
            make_jpeg(find_kind(names[k]), 150, 113, interval, &jpeg);
            for (unsigned i = 0; i < 150; i++) {
                const size_t size = i % 2 ? jpeg.size : dl2_random_below(&random, jpeg.size);
                uint8_t *copy = malloc(jpeg.size);
                memcpy(copy, jpeg.data, jpeg.size);
                for (unsigned n = 0; size == jpeg.size && n < 1 + i % 4; n++)
                    copy[dl2_random_below(&random, size)] = (uint8_t)dl2_random_u32(&random);
                check_damaged(other, &random, copy, size, 150, 113, i % 3, &good);
                free(copy);
                tried++;
            }
        }
    assert_true(good > tried / 50 && good < tried / 2);
    dl2_decoder_destroy(other);
}

/* Where the n-th restart marker ends, or the entropy-coded data begin, for 0. */
static size_t find_segment(unsigned n)
{
    size_t at = 2;
    while (jpeg.data[at + 1] != 0xda)
        at += 2 + (size_t)(jpeg.data[at + 2] << 8 | jpeg.data[at + 3]);
    at += 2 + (size_t)(jpeg.data[at + 2] << 8 | jpeg.data[at + 3]);
    for (; n; n--) {
        while (jpeg.data[at] != 0xff || (jpeg.data[at + 1] & 0xf8) != 0xd0)
            at++;
        at += 2;
    }
    return at;
}

static void only_what_is_needed_is_decoded(void **state)
{
    struct whole whole = {.pixels = DL2_IMAGE_INIT};
    /* 8 x 6 MCUs in 4 x 6 segments; all but the second and third of the second row are spoilt. */
    make_jpeg(find_kind("4:2:0"), 128, 96, 2, &jpeg);
    read_whole(&jpeg, 1, true, false, &whole);
    for (unsigned n = 0; n < 24; n++) {
        const size_t start = find_segment(n);
        const size_t end = n < 23 ? find_segment(n + 1) : jpeg.size;
        if (n != 5 && n != 6)
            memset(jpeg.data + start, 0, end - 2 - start);
    }
    struct dl2_decode_request request = DL2_DECODE_REQUEST_DEFAULTS;
    struct dl2_image_info info;
    struct dl2_raster raster;
    request.x = 33;
    request.y = 17;
    request.width = 63;
    request.height = 15;
    open_ok(&jpeg, &info);
    decode_ok(&request, &raster);
    check_raster(&raster, &whole, &request, "spoilt elsewhere");
    whole_free(&whole);
}

/* What is spliced is a JPEG for any decoder. Of 4:4:4, which needs no upsampling, its pixels are
 * those of the whole. */
static void a_splice_is_a_jpeg(void **state)
{
    struct dl2_jpeg_splice splice = {.jpeg = DL2_BYTES_INIT};
    struct dl2_random random;
    unsigned spliced = 0, shifted = 0;
    dl2_random_init(&random, 5, DL2_RANDOM_TEST, 0, 0);
    for (unsigned interval = 1; interval < 9; interval++) {
        struct whole whole = {.pixels = DL2_IMAGE_INIT};
        make_jpeg(find_kind("4:4:4"), 157, 90, interval, &jpeg);
        read_whole(&jpeg, 1, false, false, &whole);
        for (int i = 0; i < 30; i++) {
            struct dl2_decode_request rect = DL2_DECODE_REQUEST_DEFAULTS;
            struct whole small = {.pixels = DL2_IMAGE_INIT};
            random_request(&random, 157, 90, &rect);
            const int status = dl2_jpeg_splice(&splice, jpeg.data, jpeg.size, rect.x, rect.y,
                                               rect.width, rect.height, NULL);
            assert_true(status >= 0);
            if (!status)
                continue;
            spliced++;
            assert_true(splice.jpeg.size < jpeg.size);
            assert_true(splice.y <= rect.y && splice.y + splice.height > rect.y);
            read_whole(&splice.jpeg, 1, false, false, &small);
            assert_int_equal(small.pixels.width, splice.width);
            assert_int_equal(small.pixels.height, splice.height);
            const uint32_t *shift = (const uint32_t *)(const void *)splice.shift.data;
            for (uint32_t y = 0; y < splice.height; y++)
                for (uint32_t x = 0; x < splice.width; x++) {
                    const int64_t at = (int64_t)splice.x + x - 8 * (int64_t)shift[y / 8];
                    shifted += shift[y / 8] > 0;
                    if (at >= 0 && at < 157)
                        assert_memory_equal(
                            small.pixels.data + y * small.pixels.stride + 3 * (size_t)x,
                            whole.pixels.data + (splice.y + y) * whole.pixels.stride +
                                3 * (size_t)at,
                            3);
                }
            whole_free(&small);
        }
        whole_free(&whole);
    }
    assert_true(spliced > 100 && shifted);
    dl2_jpeg_splice_free(&splice);
}

static struct dl2_cuts as_read(const struct dl2_slicing *cuts)
{
    return (struct dl2_cuts){cuts->width,       cuts->height,    cuts->rows,     cuts->count,
                             cuts->orientation, cuts->head.data, cuts->head.size};
}

/* What a crop needs of slices, with the margin, at random; the joined JPEG is told it in its
 * pixels. */
static void check_slices(struct dl2_random *random, const struct dl2_slicing *cuts,
                         const struct whole *whole, struct dl2_decode_request request,
                         struct dl2_bytes *joined)
{
    const uint32_t *offsets = (const uint32_t *)(const void *)cuts->offsets.data;
    struct dl2_image_info info;
    struct dl2_raster raster;
    const bool transposed = dl2_orientation_transposes(cuts->orientation);
    random_request(random, transposed ? cuts->height : cuts->width,
                   transposed ? cuts->width : cuts->height, &request);
    uint32_t row = transposed ? request.x : request.y;
    const uint32_t rows = transposed ? request.width : request.height;
    if (dl2_orientation_flips_y(cuts->orientation))
        row = cuts->height - row - rows;
    const uint32_t top = row < DL2_JPEG_SLICE_MARGIN ? 0 : row - DL2_JPEG_SLICE_MARGIN;
    uint32_t bottom = row + rows + DL2_JPEG_SLICE_MARGIN, x, y;
    bottom = bottom < cuts->height ? bottom : cuts->height;
    const uint32_t first = top / cuts->rows, end = up(bottom, cuts->rows);
    const struct dl2_slice_range range = {first, end - first};
    const struct dl2_cuts read = as_read(cuts);
    const struct dl2_slice_range needed =
        dl2_image_slices_of(&read, request.x, request.y, request.width, request.height);
    assert_int_equal(needed.count, range.count < cuts->count ? range.count : 0);
    assert_true(!needed.count || needed.first == first);
    assert_int_equal(dl2_image_join_slices(&read, range, jpeg.data + offsets[first],
                                           offsets[end] - offsets[first], joined, NULL),
                     DL2_OK);
    open_ok(joined, &info);
    assert_int_equal(info.width, cuts->width);
    dl2_decoder_turn(decoder, cuts->orientation, &info);
    dl2_image_slices_origin(&read, range, &x, &y);
    request.x -= x;
    request.y -= y;
    decode_ok(&request, &raster);
    request.x += x;
    request.y += y;
    for (unsigned i = 0; i < dl2_raster_planes(&raster); i++) {
        raster.planes[i].x += x;
        raster.planes[i].y += y;
    }
    check_raster(&raster, whole, &request, "slices");
}

/* An image's crops at all reductions; returns whether it is cut. */
static bool compare_slices(struct dl2_random *random, bool gray, struct dl2_slicing *cuts,
                           int orientation, struct dl2_bytes *joined)
{
    const int status = dl2_image_slice(jpeg.data, jpeg.size, cuts, NULL);
    assert_true(status >= 0);
    if (!status)
        return false;
    assert_int_equal(cuts->orientation, orientation);
    for (uint32_t reduction = 1; reduction <= 8; reduction *= 2)
        for (int planes = 0; planes < 2; planes++) {
            struct whole whole = {.pixels = DL2_IMAGE_INIT};
            struct dl2_decode_request request = DL2_DECODE_REQUEST_DEFAULTS;
            request.reduction = reduction;
            request.planes = planes;
            read_whole(&jpeg, reduction, planes && !gray, false, &whole);
            turn_whole(&whole, cuts->width, cuts->height, reduction, orientation);
            for (int i = 0; i < 6; i++)
                check_slices(random, cuts, &whole, request, joined);
            whole_free(&whole);
        }
    return true;
}

static void slices_make_the_same_pixels(void **state)
{
    static const char *const names[] = {"4:2:0", "4:4:4", "4:4:0", "gray"};
    static const struct {
        uint32_t width, height, interval;
    } shapes[] = {{900, 1000, 4}, {333, 2003, 3}, {410, 1501, 5}, {1024, 901, 8}};
    struct dl2_slicing cuts = {0};
    struct dl2_bytes joined = DL2_BYTES_INIT, plain = DL2_BYTES_INIT;
    struct dl2_random random;
    unsigned cut = 0;
    dl2_random_init(&random, 6, DL2_RANDOM_TEST, 0, 0);
    for (size_t k = 0; k < sizeof names / sizeof names[0]; k++)
        for (size_t s = 0; s < sizeof shapes / sizeof shapes[0]; s++) {
            make_jpeg(find_kind(names[k]), shapes[s].width, shapes[s].height, shapes[s].interval,
                      &plain);
            for (int orientation = 1; orientation <= 8; orientation++) {
                sample_jpeg_with_exif(&plain, orientation, &jpeg);
                cut +=
                    compare_slices(&random, !strcmp(names[k], "gray"), &cuts, orientation, &joined);
            }
        }
    assert_true(cut >= 80);
    dl2_slicing_free(&cuts);
    dl2_bytes_free(&joined);
    dl2_bytes_free(&plain);
}

static void slices_are_checked(void **state)
{
    struct dl2_slicing cuts = {0};
    struct dl2_bytes joined = DL2_BYTES_INIT;
    make_jpeg(find_kind("4:2:0"), 1024, 900, 4, &jpeg);
    assert_int_equal(dl2_image_slice(jpeg.data, jpeg.size, &cuts, NULL), 1);
    const uint32_t *offsets = (const uint32_t *)(const void *)cuts.offsets.data;
    assert_true(cuts.count >= 4 && offsets[cuts.count] == jpeg.size);
    assert_int_equal(cuts.count, up(cuts.height, cuts.rows));
    const struct {
        struct dl2_slice_range range;
        uint32_t rows, from, to;
        int status;
    } tries[] = {
        {{0, cuts.count}, cuts.rows, 0, cuts.count, DL2_OK},
        {{1, 2}, cuts.rows, 1, 3, DL2_OK},
        {{1, 2}, cuts.rows, 1, 2, DL2_ERR_FORMAT},     /* a slice is missing */
        {{1, 2}, cuts.rows, 1, 4, DL2_ERR_FORMAT},     /* one too many */
        {{1, 2}, cuts.rows + 1, 1, 3, DL2_ERR_FORMAT}, /* no whole MCUs */
        {{1, 0}, cuts.rows, 1, 1, DL2_ERR_FORMAT},     /* nothing */
        {{0, cuts.count + 1}, cuts.rows, 0, cuts.count, DL2_ERR_FORMAT},
        {{cuts.count, 1}, cuts.rows, 0, 1, DL2_ERR_FORMAT},
        {{UINT32_MAX, 2}, cuts.rows, 0, 1, DL2_ERR_FORMAT},
    };
    struct dl2_cuts read = as_read(&cuts);
    for (size_t i = 0; i < sizeof tries / sizeof tries[0]; i++) {
        read.rows = tries[i].rows;
        assert_int_equal(
            dl2_image_join_slices(&read, tries[i].range, jpeg.data + offsets[tries[i].from],
                                  offsets[tries[i].to] - offsets[tries[i].from], &joined, NULL),
            tries[i].status);
    }
    read.rows = cuts.rows;
    read.head_size -= 9;
    assert_int_equal(dl2_image_join_slices(&read, tries[1].range, jpeg.data + offsets[1],
                                           offsets[3] - offsets[1], &joined, NULL),
                     DL2_ERR_FORMAT);
    make_jpeg(find_kind("4:2:0"), 1024, 900, 0, &jpeg);
    assert_int_equal(dl2_image_slice(jpeg.data, jpeg.size, &cuts, NULL), 0);
    make_jpeg(find_kind("4:2:0"), 64, 64, 4, &jpeg); /* too small */
    assert_int_equal(dl2_image_slice(jpeg.data, jpeg.size, &cuts, NULL), 0);
    dl2_slicing_free(&cuts);
    dl2_bytes_free(&joined);
}

static void tiles_are_written(void **state)
{
    assert_int_equal(dl2_jpeg_tile_interval(500, 16, 16, 90), 4);
    assert_int_equal(dl2_jpeg_tile_interval(496, 16, 16, 90), 4); /* 31 MCUs: nothing divides */
    assert_int_equal(dl2_jpeg_tile_interval(400, 16, 16, 90), 5);
    assert_int_equal(dl2_jpeg_tile_interval(144, 16, 16, 90), 3);
    assert_int_equal(dl2_jpeg_tile_interval(500, 16, 16, 75), 8);
    assert_int_equal(dl2_jpeg_tile_interval(500, 16, 16, 10), 16);
    assert_int_equal(dl2_jpeg_tile_interval(64, 16, 16, 90), 0);
    assert_int_equal(dl2_jpeg_tile_interval(1, 8, 8, 90), 0);
    assert_int_equal(dl2_jpeg_tile_interval(512, 8, 8, 90), 16);
    struct dl2_jpeg_splice splice = {.jpeg = DL2_BYTES_INIT};
    struct dl2_image image = DL2_IMAGE_INIT;
    for (uint32_t channels = 1; channels <= 3; channels += 2)
        for (int tiles = 0; tiles < 2; tiles++) {
            struct dl2_encode_options options = DL2_ENCODE_DEFAULTS;
            options.quality = 90;
            options.restart = tiles ? "tiles" : "none";
            sample_picture(&image, 500, 375, channels);
            assert_int_equal(
                dl2_image_encode(dl2_codec_find("jpeg"), &image, &options, &jpeg, NULL), DL2_OK);
            assert_int_equal(
                dl2_jpeg_splice(&splice, jpeg.data, jpeg.size, 200, 100, 100, 100, NULL), tiles);
            if (tiles)
                assert_false(splice.shifted && channels == 3);
        }
    dl2_image_free(&image);
    dl2_jpeg_splice_free(&splice);
}

static void nonsense_is_refused(void **state)
{
    struct dl2_image_info info;
    struct dl2_raster raster;
    static const struct dl2_decode_request requests[] = {
        {.x = 0, .width = 0, .height = 1},          {.x = 60, .width = 5, .height = 1},
        {.x = UINT32_MAX, .width = 2, .height = 1}, {.y = 48, .width = 1, .height = 1},
        {.y = 1, .width = 1, .height = UINT32_MAX}, {.width = 1, .height = 1, .channels = 2},
    };
    struct dl2_decode_request one = {.width = 1, .height = 1};
    make_jpeg(find_kind("4:2:0"), 64, 48, 2, &jpeg);
    assert_int_equal(dl2_decoder_decode(decoder, &one, &raster, NULL), DL2_ERR_ARGUMENT);
    for (size_t i = 0; i < sizeof requests / sizeof *requests; i++) {
        open_ok(&jpeg, &info);
        assert_int_equal(dl2_decoder_decode(decoder, &requests[i], &raster, NULL),
                         DL2_ERR_ARGUMENT);
    }
    assert_int_equal(dl2_decoder_open(decoder, jpeg.data, jpeg.size, 64 * 48 - 1, &info, NULL),
                     DL2_ERR_LIMIT);
    assert_int_equal(dl2_decoder_open(decoder, jpeg.data, 40, 0, &info, NULL), DL2_ERR_FORMAT);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, make_decoder, free_all)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(parts_are_parts_of_the_whole),
        TEST(turned_parts_are_upright),
        TEST(memory_is_kept),
        TEST(a_decoder_forgets),
        TEST(damage_is_noticed),
        TEST(only_what_is_needed_is_decoded),
        TEST(a_splice_is_a_jpeg),
        TEST(slices_make_the_same_pixels),
        TEST(slices_are_checked),
        TEST(tiles_are_written),
        TEST(nonsense_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
#else
int main(void)
{
    return 77;
}
#endif
