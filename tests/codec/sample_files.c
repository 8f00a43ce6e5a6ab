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
#endif
