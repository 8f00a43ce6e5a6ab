/* SPDX-License-Identifier: BSD-2-Clause */
#include "config.h"

#include "tests/codec/sample_files.h"

#include "common/random.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void need(bool good, const char *what)
{
    if (good)
        return;
    fprintf(stderr, "a sample file can't be made: %s\n", what);
    exit(99);
}

void sample_picture(struct dl2_image *image, uint32_t width, uint32_t height, uint32_t channels)
{
    struct dl2_random random;
    dl2_random_init(&random, 1, DL2_RANDOM_TEST, width, height);
    need(dl2_image_reshape(image, width, height, channels, NULL) == DL2_OK, "memory");
    for (uint32_t y = 0; y < height; y++) {
        for (uint32_t x = 0; x < width; x++) {
            double u = (double)x / width, v = (double)y / height;
            for (uint32_t c = 0; c < channels; c++) {
                double wave = 128 + 60 * sin(9 * u + 4 * v + c) + 40 * sin(23 * u * v - 2 * c);
                double edge = hypot(u - 0.5, v - 0.4) < 0.25 ? 25 : 0;
                double noise = 8 * (dl2_random_uniform(&random) - 0.5);
                double value = wave + edge + noise;
                image->data[y * image->stride + x * channels + c] =
                    (uint8_t)(value < 0     ? 0
                              : value > 255 ? 255
                                            : value);
            }
        }
    }
}

size_t sample_exif(uint8_t out[64], int orientation, bool big_endian)
{
    static const uint8_t big[] = {'E', 'x',  'i', 'f', 0, 0, 'M', 'M', 0, 42, 0, 0, 0, 8, 0, 1,
                                  1,   0x12, 0,   3,   0, 0, 0,   1,   0, 0,  0, 0, 0, 0, 0, 0};
    static const uint8_t little[] = {'E',  'x', 'i', 'f', 0, 0, 'I', 'I', 42, 0, 8, 0, 0, 0, 1, 0,
                                     0x12, 1,   3,   0,   1, 0, 0,   0,   0,  0, 0, 0, 0, 0, 0, 0};
    memcpy(out, big_endian ? big : little, sizeof big);
    out[24 + big_endian] = (uint8_t)orientation;
    return sizeof big;
}

static void append(struct dl2_bytes *out, const void *data, size_t size)
{
    need(dl2_bytes_append(out, data, size, NULL) == DL2_OK, "memory");
}

void sample_jpeg_with_exif(const struct dl2_bytes *jpeg, int orientation, struct dl2_bytes *out)
{
    uint8_t block[64];
    size_t size = sample_exif(block, orientation, orientation % 2);
    uint8_t marker[4] = {0xff, 0xe1, 0, (uint8_t)(size + 2)};
    out->size = 0;
    append(out, jpeg->data, 2);
    append(out, marker, sizeof marker);
    append(out, block, size);
    append(out, jpeg->data + 2, jpeg->size - 2);
}

#ifdef HAVE_JPEG
#include <jpeglib.h>

static void compress(struct jpeg_compress_struct *cinfo, const uint8_t *pixels,
                     struct dl2_bytes *out)
{
    unsigned char *data = NULL;
    unsigned long size = 0;
    jpeg_mem_dest(cinfo, &data, &size);
    jpeg_start_compress(cinfo, TRUE);
    while (cinfo->next_scanline < cinfo->image_height) {
        size_t stride = (size_t)cinfo->image_width * (size_t)cinfo->input_components;
        JSAMPROW row = (JSAMPROW)(uintptr_t)(pixels + cinfo->next_scanline * stride);
        jpeg_write_scanlines(cinfo, &row, 1);
    }
    jpeg_finish_compress(cinfo);
    out->size = 0;
    append(out, data, size);
    free(data);
    jpeg_destroy_compress(cinfo);
}

void sample_plain_jpeg(const struct dl2_image *image, int quality, struct dl2_bytes *out)
{
    struct jpeg_compress_struct cinfo;
    struct jpeg_error_mgr manager;
    cinfo.err = jpeg_std_error(&manager);
    jpeg_create_compress(&cinfo);
    cinfo.image_width = image->width;
    cinfo.image_height = image->height;
    cinfo.input_components = (int)image->channels;
    cinfo.in_color_space = image->channels == 1 ? JCS_GRAYSCALE : JCS_RGB;
    jpeg_set_defaults(&cinfo);
    jpeg_set_quality(&cinfo, quality, TRUE);
    compress(&cinfo, image->data, out);
}

void sample_rare_jpeg(const struct dl2_image *image, bool rgb, int across, bool arithmetic,
                      struct dl2_bytes *out)
{
    struct jpeg_compress_struct cinfo;
    struct jpeg_error_mgr manager;
    cinfo.err = jpeg_std_error(&manager);
    jpeg_create_compress(&cinfo);
    cinfo.image_width = image->width;
    cinfo.image_height = image->height;
    cinfo.input_components = 3;
    cinfo.in_color_space = JCS_RGB;
    jpeg_set_defaults(&cinfo);
    if (rgb)
        jpeg_set_colorspace(&cinfo, JCS_RGB);
    cinfo.comp_info[0].h_samp_factor = across;
    cinfo.comp_info[0].v_samp_factor = 1;
    cinfo.arith_code = arithmetic;
    jpeg_set_quality(&cinfo, 90, TRUE);
    compress(&cinfo, image->data, out);
}

void sample_cmyk_jpeg(const uint8_t inks[4], bool adobe, struct dl2_bytes *out)
{
    enum { SIDE = 16 };
    uint8_t pixels[SIDE * SIDE * 4];
    for (size_t i = 0; i < sizeof pixels; i++)
        pixels[i] = adobe ? (uint8_t)(255 - inks[i % 4]) : inks[i % 4];
    struct jpeg_compress_struct cinfo;
    struct jpeg_error_mgr manager;
    cinfo.err = jpeg_std_error(&manager);
    jpeg_create_compress(&cinfo);
    cinfo.image_width = cinfo.image_height = SIDE;
    cinfo.input_components = 4;
    cinfo.in_color_space = JCS_CMYK;
    jpeg_set_defaults(&cinfo);
    jpeg_set_colorspace(&cinfo, adobe ? JCS_YCCK : JCS_CMYK);
    cinfo.write_Adobe_marker = adobe;
    jpeg_set_quality(&cinfo, 100, TRUE);
    compress(&cinfo, pixels, out);
}
#endif

#ifdef HAVE_PNG
#include <png.h>

static void png_bytes(png_structp png, png_bytep data, size_t size)
{
    append(png_get_io_ptr(png), data, size);
}

/* Samples of `bits` each, packed as PNG has them: the first in the highest bits. */
static void pack_row(const uint16_t *samples, size_t count, int bits, uint8_t *row)
{
    memset(row, 0, (count * (size_t)bits + 7) / 8);
    for (size_t i = 0; i < count; i++) {
        if (bits == 16) {
            row[2 * i] = (uint8_t)(samples[i] >> 8);
            row[2 * i + 1] = (uint8_t)samples[i];
        } else {
            size_t bit = i * (size_t)bits;
            row[bit / 8] |= (uint8_t)(samples[i] << (8 - bits - (int)(bit % 8)));
        }
    }
}

static void set_transparency(png_structp png, png_infop info, const struct sample_png *options)
{
    if (options->color_type == PNG_COLOR_TYPE_PALETTE) {
        png_color palette[256];
        png_byte alpha[256];
        int count = 1 << options->bits;
        for (int i = 0; i < count; i++) {
            palette[i] = (png_color){(png_byte)i, (png_byte)(2 * i), (png_byte)(255 - i)};
            alpha[i] = i == options->transparent ? 0 : 255;
        }
        png_set_PLTE(png, info, palette, count);
        if (options->transparent >= 0)
            png_set_tRNS(png, info, alpha, count, NULL);
    } else if (options->transparent >= 0) {
        png_color_16 value = {.gray = (png_uint_16)options->transparent};
        png_set_tRNS(png, info, NULL, 0, &value);
    }
}

void sample_png(const struct sample_png *options, struct dl2_bytes *out)
{
    static const int channels_of[7] = {1, 0, 3, 1, 2, 0, 4};
    png_structp png = png_create_write_struct(PNG_LIBPNG_VER_STRING, NULL, NULL, NULL);
    png_infop info = png ? png_create_info_struct(png) : NULL;
    need(info, "libpng");
    out->size = 0;
    png_set_write_fn(png, out, png_bytes, NULL);
    png_set_IHDR(png, info, options->width, options->height, options->bits, options->color_type,
                 options->interlaced ? PNG_INTERLACE_ADAM7 : PNG_INTERLACE_NONE,
                 PNG_COMPRESSION_TYPE_DEFAULT, PNG_FILTER_TYPE_DEFAULT);
    set_transparency(png, info, options);
    uint8_t exif[64];
    size_t exif_size = sample_exif(exif, options->orientation, true);
    if (options->orientation)
        png_set_eXIf_1(png, info, (png_uint_32)(exif_size - 6), exif + 6);
    png_write_info(png, info);
    size_t count = options->width * (size_t)channels_of[options->color_type];
    size_t row_bytes = (count * (size_t)options->bits + 7) / 8;
    uint8_t *block = malloc(row_bytes * options->height);
    uint8_t **rows = calloc(options->height, sizeof *rows);
    need(block && rows, "memory");
    for (uint32_t y = 0; y < options->height; y++) {
        rows[y] = block + y * row_bytes;
        pack_row(options->samples + y * count, count, options->bits, rows[y]);
    }
    png_write_image(png, rows);
    png_write_end(png, info);
    png_destroy_write_struct(&png, &info);
    free(block);
    free(rows);
}
#endif

#ifdef HAVE_WEBP
#include <webp/encode.h>

void sample_webp_with_alpha(const uint8_t *rgba, int width, int height, struct dl2_bytes *out)
{
    uint8_t *data = NULL;
    size_t size = WebPEncodeLosslessRGBA(rgba, width, height, 4 * width, &data);
    need(size, "libwebp");
    out->size = 0;
    append(out, data, size);
    WebPFree(data);
}

static int write_webp(const uint8_t *data, size_t size, const WebPPicture *picture)
{
    append(picture->custom_ptr, data, size);
    return 1;
}

void sample_webp_with_filtered_alpha(const uint8_t *rgba, int width, int height,
                                     struct dl2_bytes *out)
{
    WebPConfig config;
    WebPPicture picture;
    need(WebPConfigInit(&config) && WebPPictureInit(&picture), "libwebp");
    config.alpha_filtering = 2; /* best */
    picture.width = width;
    picture.height = height;
    picture.writer = write_webp;
    picture.custom_ptr = out;
    out->size = 0;
    need(WebPPictureImportRGBA(&picture, rgba, 4 * width) && WebPEncode(&config, &picture),
         "libwebp");
    WebPPictureFree(&picture);
}
#endif

#ifdef HAVE_JP2
#include <openjpeg.h>

struct jp2_sink {
    struct dl2_bytes *out;
    size_t at;
};

static OPJ_SIZE_T jp2_write(void *data, OPJ_SIZE_T count, void *user)
{
    struct jp2_sink *sink = user;
    const size_t left = sink->out->size - sink->at, inside = count < left ? count : left;
    if (inside)
        memcpy(sink->out->data + sink->at, data, inside);
    append(sink->out, (const uint8_t *)data + inside, count - inside);
    sink->at += count;
    return count;
}

static OPJ_BOOL jp2_seek(OPJ_OFF_T position, void *user)
{
    struct jp2_sink *sink = user;
    sink->at = (size_t)position;
    return sink->at <= sink->out->size;
}

static OPJ_OFF_T jp2_skip(OPJ_OFF_T count, void *user)
{
    struct jp2_sink *sink = user;
    return jp2_seek((OPJ_OFF_T)sink->at + count, user) ? count : -1;
}

static void encode_j2k(const struct sample_jp2 *options, struct dl2_bytes *out)
{
    opj_image_cmptparm_t planes[4];
    opj_cparameters_t parameters;
    struct jp2_sink sink = {out, 0};
    memset(planes, 0, sizeof planes);
    for (uint32_t c = 0; c < options->components; c++)
        planes[c] = (opj_image_cmptparm_t){
            .dx = 1, .dy = 1, .w = options->width, .h = options->height, .prec = 8};
    opj_image_t *image = opj_image_create(options->components, planes, OPJ_CLRSPC_UNSPECIFIED);
    opj_codec_t *codec = opj_create_compress(OPJ_CODEC_J2K);
    opj_stream_t *stream = opj_stream_create(4096, OPJ_FALSE);
    need(image && codec && stream, "OpenJPEG");
    image->x1 = options->width;
    image->y1 = options->height;
    for (size_t i = 0; i < (size_t)options->width * options->height; i++)
        for (uint32_t c = 0; c < options->components; c++)
            image->comps[c].data[i] = options->samples[i * options->components + c];
    opj_set_default_encoder_parameters(&parameters);
    parameters.tcp_numlayers = 1;
    parameters.cp_disto_alloc = 1;
    parameters.numresolution = 3;
    opj_stream_set_user_data(stream, &sink, NULL);
    opj_stream_set_write_function(stream, jp2_write);
    opj_stream_set_seek_function(stream, jp2_seek);
    opj_stream_set_skip_function(stream, jp2_skip);
    out->size = 0;
    need(opj_setup_encoder(codec, &parameters, image) && opj_start_compress(codec, image, stream) &&
             opj_encode(codec, stream) && opj_end_compress(codec, stream),
         "OpenJPEG");
    opj_stream_destroy(stream);
    opj_destroy_codec(codec);
    opj_image_destroy(image);
}

static void append_u32(struct dl2_bytes *out, size_t value)
{
    const uint8_t bytes[4] = {(uint8_t)(value >> 24), (uint8_t)(value >> 16), (uint8_t)(value >> 8),
                              (uint8_t)value};
    append(out, bytes, sizeof bytes);
}

static void append_box(struct dl2_bytes *out, const char *type, const void *content, size_t size)
{
    append_u32(out, 8 + size);
    append(out, type, 4);
    append(out, content, size);
}

void sample_jp2(const struct sample_jp2 *options, struct dl2_bytes *out)
{
    static const uint8_t mapping[12] = {0, 0, 1, 0, 0, 0, 1, 1, 0, 0, 1, 2};
    static const uint8_t palette_start[6] = {1, 0, 3, 7, 7, 7};
    const uint8_t ihdr_end[6] = {0, (uint8_t)options->components, 7, 7, 0, 0};
    struct dl2_bytes stream = DL2_BYTES_INIT, header = DL2_BYTES_INIT, box = DL2_BYTES_INIT;
    encode_j2k(options, &stream);
    append_u32(&box, options->height);
    append_u32(&box, options->width);
    append(&box, ihdr_end, sizeof ihdr_end);
    append_box(&header, "ihdr", box.data, box.size);
    for (size_t at = 0; at < options->colors_size; at += (uint8_t)options->colors[at] + 1u)
        append_box(&header, "colr", options->colors + at + 1, (uint8_t)options->colors[at]);
    if (options->palette) {
        box.size = 0;
        append(&box, palette_start, sizeof palette_start);
        append(&box, options->palette, 3 * (size_t)256);
        append_box(&header, "pclr", box.data, box.size);
        append_box(&header, "cmap", mapping, sizeof mapping);
    }
    out->size = 0;
    append_box(out, "jP  ", "\r\n\x87\n", 4);
    append_box(out, "ftyp", "jp2 \0\0\0\0jp2 ", 12);
    append_box(out, "jp2h", header.data, header.size);
    append_box(out, "jp2c", stream.data, stream.size);
    dl2_bytes_free(&stream);
    dl2_bytes_free(&header);
    dl2_bytes_free(&box);
}
#endif

/* ---- BMP, GIF and TIFF, without a library */

static void append_2(struct dl2_bytes *out, uint32_t value, bool big_endian)
{
    const uint8_t low = (uint8_t)value, high = (uint8_t)(value >> 8);
    append(out, big_endian ? (uint8_t[]){high, low} : (uint8_t[]){low, high}, 2);
}

static void append_4(struct dl2_bytes *out, uint32_t value, bool big_endian)
{
    append_2(out, big_endian ? value >> 16 : value, big_endian);
    append_2(out, big_endian ? value : value >> 16, big_endian);
}

static void append_bmp_row(const struct sample_bmp *bmp, const uint32_t *row, struct dl2_bytes *out)
{
    const size_t start = out->size;
    uint32_t bits = 0, byte = 0;
    for (uint32_t x = 0; x < bmp->width; x++) {
        for (uint32_t i = 0; bmp->bits >= 8 && i < bmp->bits; i += 8)
            append(out, (uint8_t[]){(uint8_t)(row[x] >> i)}, 1);
        byte = byte << bmp->bits % 32 | row[x];
        bits += bmp->bits;
        if (bmp->bits < 8 && (bits % 8 == 0 || x + 1 == bmp->width))
            append(out, (uint8_t[]){(uint8_t)(byte << (8 - bits % 8) % 8)}, 1);
    }
    while ((out->size - start) % 4)
        append(out, "", 1);
}

/* A run of two, then three or more for themselves; a step over the third pixel of the second row.
 */
static void append_bmp_rle(const struct sample_bmp *bmp, const uint32_t *row, bool steps,
                           struct dl2_bytes *out)
{
    const bool nibbles = bmp->bits == 4;
    const uint32_t first = 3, count = bmp->width - first;
    append(out, (uint8_t[]){2, (uint8_t)(nibbles ? row[0] << 4 | row[1] : row[0])}, 2);
    if (steps)
        append(out, (uint8_t[]){0, 2, 1, 0}, 4);
    else
        append(out, (uint8_t[]){1, (uint8_t)(nibbles ? row[2] << 4 : row[2])}, 2);
    append(out, (uint8_t[]){0, (uint8_t)count}, 2);
    const size_t start = out->size;
    for (uint32_t x = first; x < bmp->width; x += nibbles ? 2 : 1) {
        const uint32_t next = x + 1 < bmp->width ? row[x + 1] : 0;
        append(out, (uint8_t[]){(uint8_t)(nibbles ? row[x] << 4 | next : row[x])}, 1);
    }
    if ((out->size - start) % 2)
        append(out, "", 1);
    append(out, (uint8_t[]){0, 0}, 2);
}

void sample_bmp(const struct sample_bmp *bmp, struct dl2_bytes *out)
{
    const uint32_t colors = bmp->bits > 8   ? 0
                            : bmp->bits < 3 ? 1u << bmp->bits
                                            : (1u << bmp->bits) - 3;
    out->size = 0;
    append(out, "BM", 2);
    append_4(out, 0, false);
    append_4(out, 0, false);
    append_4(out, 14 + 40 + 4 * colors, false);
    append_4(out, 40, false);
    append_4(out, bmp->width, false);
    append_4(out, bmp->top_down ? -bmp->height : bmp->height, false);
    append_2(out, 1, false);
    append_2(out, bmp->bits, false);
    append_4(out, !bmp->rle ? 0 : bmp->bits == 8 ? 1 : 2, false);
    for (int i = 0; i < 3; i++)
        append_4(out, 0, false);
    append_4(out, colors, false);
    append_4(out, 0, false);
    for (uint32_t i = 0; i < colors; i++)
        append(out, (uint8_t[]){(uint8_t)(255 - i), (uint8_t)(2 * i), (uint8_t)i, 0}, 4);
    for (uint32_t i = 0; i < bmp->height; i++) {
        const uint32_t y = bmp->top_down ? i : bmp->height - 1 - i;
        if (bmp->rle)
            append_bmp_rle(bmp, bmp->numbers + (size_t)y * bmp->width, y == 1, out);
        else
            append_bmp_row(bmp, bmp->numbers + (size_t)y * bmp->width, out);
    }
    if (bmp->rle)
        append(out, (uint8_t[]){0, 1}, 2);
}

/* Codes of 8 bits for 7-bit numbers: so many that the table never grows, and a clear before each
 * hundred. */
static void append_gif_pixels(const struct sample_gif *gif, struct dl2_bytes *out)
{
    static const uint32_t starts[] = {0, 4, 2, 1}, steps[] = {8, 8, 4, 2};
    enum { CLEAR = 128, END = 129 };
    struct dl2_bytes codes = DL2_BYTES_INIT;
    for (int pass = 0; pass < (gif->interlaced ? 4 : 1); pass++)
        for (uint32_t y = gif->interlaced ? starts[pass] : 0; y < gif->height;
             y += gif->interlaced ? steps[pass] : 1)
            for (uint32_t x = 0; x < gif->width; x++) {
                if (codes.size % 101 == 0)
                    append(&codes, (uint8_t[]){CLEAR}, 1);
                append(&codes, gif->numbers + (size_t)y * gif->width + x, 1);
            }
    append(&codes, (uint8_t[]){END}, 1);
    append(out, (uint8_t[]){7}, 1);
    for (size_t at = 0; at < codes.size; at += 200) {
        const size_t size = codes.size - at < 200 ? codes.size - at : 200;
        append(out, (uint8_t[]){(uint8_t)size}, 1);
        append(out, codes.data + at, size);
    }
    append(out, "", 1);
    dl2_bytes_free(&codes);
}

void sample_gif(const struct sample_gif *gif, struct dl2_bytes *out)
{
    out->size = 0;
    append(out, "GIF89a", 6);
    append_2(out, gif->width + 2, false);
    append_2(out, gif->height + 1, false);
    append(out, (uint8_t[]){0xf6, 0, 0}, 3); /* 128 colors */
    for (int i = 0; i < 128; i++)
        append(out, (uint8_t[]){(uint8_t)i, (uint8_t)(2 * i), (uint8_t)(255 - i)}, 3);
    for (uint32_t image = 0; image < gif->images; image++) {
        append(out, (uint8_t[]){0x21, 0xfe, 3, 'd', 'l', '2', 0}, 7);
        append(out,
               (uint8_t[]){0x21, 0xf9, 4, gif->transparent >= 0, 0, 0,
                           (uint8_t)(gif->transparent >= 0 ? gif->transparent : 0), 0},
               8);
        append(out, ",", 1);
        append_2(out, 1, false);
        append_2(out, 1, false);
        append_2(out, gif->width, false);
        append_2(out, gif->height, false);
        append(out, (uint8_t[]){gif->interlaced ? 0x40 : 0}, 1);
        append_gif_pixels(gif, out);
    }
    append(out, ";", 1);
}

static void append_tag(struct dl2_bytes *out, uint32_t tag, bool is_long, uint32_t value, bool big)
{
    append_2(out, tag, big);
    append_2(out, is_long ? 4 : 3, big);
    append_4(out, 1, big);
    if (is_long) {
        append_4(out, value, big);
    } else {
        append_2(out, value, big);
        append_2(out, 0, big);
    }
}

void sample_tiff(const struct sample_tiff *tiff, struct dl2_bytes *out)
{
    const bool big = tiff->big_endian, alpha = tiff->channels % 2 == 0;
    const size_t samples = (size_t)tiff->width * tiff->height * tiff->channels;
    const uint32_t bytes = (uint32_t)(samples * tiff->bits / 8), tags = alpha ? 11 : 10;
    out->size = 0;
    append(out, big ? "MM" : "II", 2);
    append_2(out, 42, big);
    append_4(out, 8, big);
    for (uint32_t page = 0; page < tiff->pages; page++) {
        /* All three or four samples have this depth: a value of its own, behind the tags. */
        const uint32_t depths = (uint32_t)out->size + 2 + tags * 12 + 4, pixels = depths + 8;
        append_2(out, tags, big);
        append_tag(out, 256, true, tiff->width, big);
        append_tag(out, 257, true, tiff->height, big);
        append_2(out, 258, big);
        append_2(out, 3, big);
        append_4(out, tiff->channels, big);
        if (tiff->channels <= 2) {
            append_2(out, tiff->bits, big);
            append_2(out, tiff->channels == 2 ? tiff->bits : 0, big);
        } else {
            append_4(out, depths, big);
        }
        append_tag(out, 259, false, 1, big);
        append_tag(out, 262, false, tiff->channels > 2 ? 2 : 1, big);
        append_tag(out, 273, true, pixels, big);
        append_tag(out, 274, false, (uint32_t)tiff->orientation, big);
        append_tag(out, 277, false, tiff->channels, big);
        append_tag(out, 278, true, tiff->height, big);
        append_tag(out, 279, true, bytes, big);
        if (alpha)
            append_tag(out, 338, false, 2, big);
        append_4(out, page + 1 < tiff->pages ? pixels + bytes : 0, big);
        for (int i = 0; i < 4; i++)
            append_2(out, tiff->bits, big);
        for (size_t i = 0; i < samples; i++)
            if (tiff->bits == 16)
                append_2(out, tiff->samples[i], big);
            else
                append(out, (uint8_t[]){(uint8_t)tiff->samples[i]}, 1);
    }
}
