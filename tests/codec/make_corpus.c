/* SPDX-License-Identifier: BSD-2-Clause */
/* Writes the corpus that the fuzz targets replay: FOLDER/CODEC/..., FOLDER/exif/... */
#include "config.h"

#include "codec/codec.h"
#include "common/file.h"
#include "tests/codec/sample_files.h"
#ifdef HAVE_JP2
#include "tests/codec/ht_golden.h"
#endif

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char *root;

static void save(const struct dl2_bytes *bytes, const char *format, ...) DL2_PRINTF(2, 3);
static void save(const struct dl2_bytes *bytes, const char *format, ...)
{
    char name[128], path[4096];
    va_list args;
    va_start(args, format);
    vsnprintf(name, sizeof name, format, args);
    va_end(args);
    snprintf(path, sizeof path, "%s/%s", root, name);
    struct dl2_error error = DL2_ERROR_INIT;
    char *slash = strrchr(path, '/');
    *slash = '\0';
    int status = dl2_make_folders(path, &error);
    *slash = '/';
    if (status == DL2_OK)
        status = dl2_file_write(path, bytes->data, bytes->size, &error);
    if (status < 0) {
        fprintf(stderr, "%s\n", error.message);
        exit(1);
    }
}

static void save_encoded(const struct dl2_codec *codec)
{
    static const uint32_t sizes[][2] = {{1, 1}, {7, 5}, {40, 33}};
    struct dl2_image image = DL2_IMAGE_INIT;
    struct dl2_bytes out = DL2_BYTES_INIT;
    for (size_t s = 0; s < sizeof sizes / sizeof *sizes; s++) {
        for (uint32_t channels = 1; channels <= 3; channels += 2) {
            sample_picture(&image, sizes[s][0], sizes[s][1], channels);
            for (int effort = 0; effort <= (codec->max_effort < 2 ? codec->max_effort : 2);
                 effort++) {
                struct dl2_encode_options options = DL2_ENCODE_DEFAULTS;
                /* The slowest of AVIF's speeds would take half of the test's time. */
                options.effort = codec->max_effort > 6 ? codec->max_effort - effort : effort;
                options.subsampling = effort == 1 ? "422" : effort == 2 ? "444" : NULL;
                if (dl2_image_encode(codec, &image, &options, &out, NULL) == DL2_OK)
                    save(&out, "%s/%ux%ux%u-%d", codec->name, sizes[s][0], sizes[s][1], channels,
                         effort);
            }
            if (codec->max_effort < 0) {
                struct dl2_encode_options options = DL2_ENCODE_DEFAULTS;
                if (dl2_image_encode(codec, &image, &options, &out, NULL) == DL2_OK)
                    save(&out, "%s/%ux%ux%u", codec->name, sizes[s][0], sizes[s][1], channels);
            }
        }
    }
    dl2_image_free(&image);
    dl2_bytes_free(&out);
}

#ifdef HAVE_JPEG
/* For fuzz_jpeg_tiles and fuzz_jpeg: a choice of rectangle in eight bytes, then a file. */
static void save_tiles(void)
{
    static const struct {
        uint32_t width, height, channels;
        const char *subsampling, *restart;
        uint8_t choice[8];
    } kinds[] = {
        {150, 100, 3, "420", "tiles", {40, 0, 30, 0, 60, 90, 0, 1}},
        {150, 100, 3, "420", "tiles", {130, 0, 80, 0, 255, 255, 1, 1}},
        {160, 70, 3, "422", "tiles", {70, 0, 20, 0, 40, 40, 0, 0}},
        {300, 40, 3, "444", "tiles", {200, 0, 9, 0, 30, 80, 2, 1}},
        {290, 50, 1, NULL, "tiles", {10, 0, 20, 0, 100, 200, 0, 3}},
        {100, 90, 3, "420", "none", {50, 0, 50, 0, 90, 90, 0, 0}},
        {120, 90, 3, "420", "tiles", {0, 0, 0, 0, 255, 255, 0, 4 + 1 + 8}},
        {90, 60, 3, "444", "none", {0, 0, 0, 0, 255, 255, 0, 4 + 1 + 16}},
        {70, 50, 1, NULL, "none", {0, 0, 0, 0, 255, 255, 1, 4}},
        {140, 64, 3, "422", "none", {0, 0, 0, 0, 255, 255, 2, 4 + 8}},
        {130, 64, 3, "420", "none", {0, 0, 0, 0, 255, 255, 3, 4 + 16}},
    };
    const struct dl2_codec *jpeg = dl2_codec_find("jpeg");
    struct dl2_image image = DL2_IMAGE_INIT;
    struct dl2_bytes file = DL2_BYTES_INIT, out = DL2_BYTES_INIT;
    for (size_t k = 0; k < sizeof kinds / sizeof *kinds; k++) {
        const struct dl2_encode_options options = {
            .quality = 85,
            .effort = -1,
            .subsampling = kinds[k].subsampling,
            .restart = kinds[k].restart,
        };
        sample_picture(&image, kinds[k].width, kinds[k].height, kinds[k].channels);
        out.size = 0;
        if (dl2_image_encode(jpeg, &image, &options, &file, NULL) < 0 ||
            dl2_bytes_append(&out, kinds[k].choice, sizeof kinds[k].choice, NULL) < 0 ||
            dl2_bytes_append(&out, file.data, file.size, NULL) < 0)
            exit(1);
        save(&out, "jpeg_tiles/%zu", k);
    }
    dl2_image_free(&image);
    dl2_bytes_free(&file);
    dl2_bytes_free(&out);
}
#endif

#ifdef HAVE_WEBP
/* By which filter, depends on the opacities. */
static void save_filtered(void)
{
    enum { WIDTH = 97, HEIGHT = 71, KINDS = 12 };
    struct dl2_bytes out = DL2_BYTES_INIT;
    static uint8_t rgba[WIDTH * HEIGHT * 4];
    for (unsigned kind = 0; kind < KINDS; kind++) {
        for (unsigned y = 0; y < HEIGHT; y++)
            for (unsigned x = 0; x < WIDTH; x++) {
                uint8_t *pixel = rgba + 4 * ((size_t)y * WIDTH + x);
                pixel[0] = (uint8_t)(2 * x);
                pixel[1] = (uint8_t)(3 * y);
                pixel[2] = (uint8_t)(x + y);
                pixel[3] = (uint8_t)(x * (kind % 4) + y * (kind / 4) * 2 + x * y / 40 + 30);
            }
        sample_webp_with_filtered_alpha(rgba, WIDTH, HEIGHT, &out);
        save(&out, "webp/filtered-%u", kind);
    }
    dl2_bytes_free(&out);
}
#endif

static void save_read_only(void)
{
    enum { WIDTH = 13, HEIGHT = 11, PIXELS = WIDTH * HEIGHT };
    static const uint32_t depths[] = {1, 2, 4, 8, 16, 24, 32};
    struct dl2_bytes out = DL2_BYTES_INIT;
    uint32_t numbers[PIXELS];
    uint16_t samples[PIXELS * 4];
    uint8_t bytes[PIXELS];
    for (uint32_t i = 0; i < PIXELS * 4; i++)
        samples[i] = (uint16_t)(i * 2654435761u >> 8);
    for (uint32_t i = 0; i < PIXELS; i++)
        bytes[i] = samples[i] % 127;
    for (size_t d = 0; d < sizeof depths / sizeof *depths; d++)
        for (int kind = 0; kind < (depths[d] == 4 || depths[d] == 8 ? 3 : 2); kind++) {
            for (uint32_t i = 0; i < PIXELS; i++)
                numbers[i] = i * 2654435761u & (uint32_t)((UINT64_C(1) << depths[d]) - 1);
            const struct sample_bmp bmp = {WIDTH, HEIGHT, depths[d], kind == 1, kind == 2, numbers};
            sample_bmp(&bmp, &out);
            save(&out, "bmp/bits-%u-%d", (unsigned)depths[d], kind);
        }
    for (uint32_t kind = 0; kind < 4; kind++) {
        const struct sample_gif gif = {WIDTH, HEIGHT, 1 + kind / 2, kind % 2, (int)kind - 1, bytes};
        sample_gif(&gif, &out);
        save(&out, "gif/%u", (unsigned)kind);
    }
    for (uint32_t kind = 0; kind < 8; kind++) {
        const struct sample_tiff tiff = {.width = WIDTH,
                                         .height = HEIGHT,
                                         .channels = 1 + kind % 4,
                                         .bits = kind / 4 ? 16 : 8,
                                         .pages = 1 + kind % 2,
                                         .orientation = 1 + (int)kind,
                                         .big_endian = kind % 3,
                                         .samples = samples};
        sample_tiff(&tiff, &out);
        save(&out, "tiff/%u", (unsigned)kind);
    }
    /* One channel, and an opacity that is not there. */
    static const uint8_t two_samples[] = {0x15, 1, 3, 0, 1, 0, 0, 0, 2};
    const struct sample_tiff damaged = {WIDTH, HEIGHT, 2, 16, 1, 1, false, samples};
    sample_tiff(&damaged, &out);
    for (size_t i = 0; i + sizeof two_samples <= out.size; i++)
        if (!memcmp(out.data + i, two_samples, sizeof two_samples))
            out.data[i + sizeof two_samples - 1] = 1;
    save(&out, "tiff/no-alpha");
    dl2_bytes_free(&out);
}

#ifdef HAVE_JP2
static void save_jp2(void)
{
    enum { WIDTH = 90, HEIGHT = 70 };
    static const char rgb[] = "\7\1\0\0\0\0\0\x10", cmyk[] = "\7\1\0\0\0\0\0\x0c",
                      lab[] = "\7\1\0\0\0\0\0\x0e";
    struct dl2_bytes out = DL2_BYTES_INIT;
    struct dl2_image image = DL2_IMAGE_INIT;
    uint8_t palette[256 * 3];
    for (size_t i = 0; i < sizeof palette; i++)
        palette[i] = (uint8_t)((i / 3 % 2 ? 255 : 0) ^ (i / 24));
    sample_picture(&image, WIDTH, HEIGHT, 1);
    struct sample_jp2 jp2 = {WIDTH, HEIGHT, 1, image.data, rgb, sizeof rgb - 1, palette};
    sample_jp2(&jp2, &out);
    save(&out, "jp2/palette");
    sample_picture(&image, 4 * WIDTH, HEIGHT, 1);
    jp2 = (struct sample_jp2){WIDTH, HEIGHT, 4, image.data, rgb, sizeof rgb - 1, NULL};
    sample_jp2(&jp2, &out);
    save(&out, "jp2/alpha");
    jp2.colors = cmyk;
    sample_jp2(&jp2, &out);
    save(&out, "jp2/cmyk");
    jp2.colors = lab;
    jp2.components = 3;
    sample_jp2(&jp2, &out);
    save(&out, "jp2/lab");
    out.size = 0;
    if (dl2_bytes_append(&out, ht_golden, sizeof ht_golden, NULL) < 0)
        exit(1);
    save(&out, "jp2/high-throughput");
    dl2_image_free(&image);
    dl2_bytes_free(&out);
}
#endif

static void save_text(const char *text, const char *name)
{
    struct dl2_bytes out = {.data = (uint8_t *)(uintptr_t)text, .size = strlen(text)};
    save(&out, "%s", name);
}

int main(int argc, char **argv)
{
    if (argc != 2)
        return 2;
    root = argv[1];
    for (size_t i = 0; dl2_codec_at(i); i++)
        save_encoded(dl2_codec_at(i));
    struct dl2_bytes out = DL2_BYTES_INIT;
    out.data = malloc(64);
    out.capacity = 64;
    for (int orientation = 0; out.data && orientation < 10; orientation++) {
        out.size = sample_exif(out.data, orientation, orientation % 2);
        save(&out, "exif/%d", orientation);
    }
    save_text("P5\n# a comment\n3 1\n15\n\001\002\017", "ppm/depth-4");
    save_text("P6 1 1 65535\n\001\002\003\004\005\006", "ppm/depth-16");
    save_text("P5 65535 65535 255\n", "ppm/bomb");
    static const char external[] = "DL2X\1\3\5\0\2\0\0\0\1\0\0\0outerP6 2 1 255\nabcdef";
    const struct dl2_bytes framed = {.data = (uint8_t *)(uintptr_t)external,
                                     .size = sizeof external - 1};
    save(&framed, "external/framed");
#ifdef HAVE_JPEG
    struct dl2_image image = DL2_IMAGE_INIT;
    struct dl2_bytes plain = DL2_BYTES_INIT;
    sample_picture(&image, 24, 17, 3);
    sample_plain_jpeg(&image, 80, &plain);
    for (int orientation = 1; orientation <= 8; orientation += 2) {
        sample_jpeg_with_exif(&plain, orientation, &out);
        save(&out, "jpeg/exif-%d", orientation);
    }
    static const uint8_t inks[4] = {200, 100, 50, 20};
    sample_cmyk_jpeg(inks, false, &out);
    save(&out, "jpeg/cmyk");
    sample_cmyk_jpeg(inks, true, &out);
    save(&out, "jpeg/ycck");
    const struct dl2_codec *jxl = dl2_codec_find("jxl_lossless");
    struct dl2_encode_options recompress = DL2_ENCODE_DEFAULTS;
    recompress.source = plain.data;
    recompress.source_size = plain.size;
    if (jxl && dl2_image_encode(jxl, &image, &recompress, &out, NULL) == DL2_OK)
        save(&out, "jxl/jpeg");
    sample_jpeg_with_exif(&plain, 6, &out);
    recompress.source = out.data;
    recompress.source_size = out.size;
    if (jxl && dl2_image_encode(jxl, &image, &recompress, &plain, NULL) == DL2_OK)
        save(&plain, "jxl/jpeg-turned");
    for (int kind = 0; kind < 4; kind++) {
        sample_rare_jpeg(&image, kind < 2, 1 + kind % 2, kind >= 2, &plain);
        save(&plain, "jpeg/rare-%d", kind);
        recompress.source = plain.data;
        recompress.source_size = plain.size;
        if (jxl && dl2_image_encode(jxl, &image, &recompress, &out, NULL) == DL2_OK)
            save(&out, "jxl/rare-%d", kind);
    }
    dl2_image_free(&image);
    dl2_bytes_free(&plain);
    save_tiles();
#endif
#ifdef HAVE_PNG
    static const struct {
        int type, bits;
    } kinds[] = {{0, 1}, {0, 4}, {0, 16}, {2, 8}, {2, 16}, {3, 2},
                 {3, 8}, {4, 8}, {4, 16}, {6, 8}, {6, 16}};
    uint16_t samples[13 * 11 * 4];
    for (size_t k = 0; k < sizeof kinds / sizeof *kinds; k++) {
        for (size_t i = 0; i < sizeof samples / sizeof *samples; i++)
            samples[i] = (uint16_t)((i * 2654435761u >> 8) & ((1u << kinds[k].bits) - 1));
        for (int interlaced = 0; interlaced < 2; interlaced++) {
            struct sample_png options = {13,
                                         11,
                                         kinds[k].type,
                                         kinds[k].bits,
                                         interlaced,
                                         kinds[k].type == 3 || kinds[k].type == 0 ? 1 : -1,
                                         interlaced ? 6 : 0,
                                         samples};
            sample_png(&options, &out);
            save(&out, "png/type-%d-bits-%d-%d", kinds[k].type, kinds[k].bits, interlaced);
        }
    }
#endif
#ifdef HAVE_WEBP
    uint8_t rgba[9 * 6 * 4];
    for (size_t i = 0; i < sizeof rgba; i++)
        rgba[i] = (uint8_t)(i * 37);
    sample_webp_with_alpha(rgba, 9, 6, &out);
    save(&out, "webp/alpha");
    save_filtered();
#endif
    save_read_only();
#ifdef HAVE_JP2
    save_jp2();
#endif
    dl2_bytes_free(&out);
    return 0;
}
