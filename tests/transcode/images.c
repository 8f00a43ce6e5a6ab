/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What the shell tests make their input with and look at results through.
 *
 *   images tree FOLDER COUNT    COUNT small PPM files, gray and color, in {train,val}/{rose,tulip}
 *   images special FOLDER       one file of each awkward kind
 *   images rare FOLDER          rgb.jpg, rgb-422.jpg, arithmetic.jpg, cmyk.jpg, and plain.jpg
 *   images colors FOLDER       images that are not sRGB, and of 16 bits, with alpha and CMYK
 *   images colors FOLDER odd   those that nothing converts to sRGB
 *   images show FILE            "WIDTH HEIGHT CHANNELS R G B", the last three of the first pixel
 */
#include "config.h"

#include "codec/codec.h"
#include "common/file.h"
#include "tests/codec/sample_files.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void check(int status, const struct dl2_error *error)
{
    if (status < 0) {
        fprintf(stderr, "%s\n", error->message);
        exit(1);
    }
}

static void save(const char *path, const struct dl2_bytes *bytes)
{
    struct dl2_error error = DL2_ERROR_INIT;
    char *folder = strdup(path);
    if (!folder)
        exit(1);
    *strrchr(folder, '/') = '\0';
    check(dl2_make_folders(folder, &error), &error);
    check(dl2_file_write(path, bytes->data, bytes->size, &error), &error);
    free(folder);
}

static void save_picture(const char *path, const char *codec, uint32_t width, uint32_t height,
                         uint32_t channels)
{
    struct dl2_image image = DL2_IMAGE_INIT;
    struct dl2_bytes bytes = DL2_BYTES_INIT;
    struct dl2_encode_options options = DL2_ENCODE_DEFAULTS;
    struct dl2_error error = DL2_ERROR_INIT;
    sample_picture(&image, width, height, channels);
    check(dl2_image_encode(dl2_codec_find(codec), &image, &options, &bytes, &error), &error);
    save(path, &bytes);
    dl2_image_free(&image);
    dl2_bytes_free(&bytes);
}

/* The picture by the codec; `color` is fitted to it, or NULL. */
static void save_color(const char *root, const char *name, const char *codec_name, int quality,
                       const struct dl2_color_space *color)
{
    const struct dl2_codec *const codec = dl2_codec_find(codec_name);
    struct dl2_color_space fitted = {.form = DL2_COLOR_SPACE_SRGB};
    struct dl2_image image = DL2_IMAGE_INIT;
    struct dl2_bytes bytes = DL2_BYTES_INIT;
    struct dl2_encode_options options = DL2_ENCODE_DEFAULTS;
    struct dl2_error error = DL2_ERROR_INIT;
    char path[4096];
    sample_picture(&image, 61, 43, 3);
    if (color && dl2_color_fit(color, codec, 3, &fitted, &error) != 1)
        exit(1);
    options.color = color ? &fitted : NULL;
    options.quality = quality;
    check(dl2_image_encode(codec, &image, &options, &bytes, &error), &error);
    snprintf(path, sizeof path, "%s/a/%s", root, name);
    save(path, &bytes);
    dl2_color_free(&fitted);
    dl2_image_free(&image);
    dl2_bytes_free(&bytes);
}

/* A description as a profile, which PNG could hold in another way. */
static void make_profile(const struct dl2_color_space *color, struct dl2_color_space *out)
{
    if (dl2_color_fit(color, dl2_codec_find("jpeg"), 3, out, NULL) != 1)
        exit(1);
}

static void make_colors(const char *root, bool odd)
{
    static const uint16_t deep[4] = {0, 300, 40000, 65535};
    static const uint16_t clear[8] = {10, 20, 30, 128, 40, 50, 60, 255};
    static const uint8_t inks[4] = {10, 200, 30, 40};
    struct dl2_color_space color = {.form = DL2_COLOR_SPACE_SRGB},
                           profile = {.form = DL2_COLOR_SPACE_SRGB};
    struct dl2_bytes bytes = DL2_BYTES_INIT;
    char path[4096];
    dl2_color_set_cicp(&color, 12, 13);
    make_profile(&color, &profile);
    if (odd) {
        dl2_color_set_cicp(&color, 9, 16);
        save_color(root, "pq.png", "png", 0, &color);
        profile.icc.size = 150;
        struct dl2_color_space damaged = profile;
        struct dl2_encode_options options = DL2_ENCODE_DEFAULTS;
        struct dl2_image image = DL2_IMAGE_INIT;
        struct dl2_error error = DL2_ERROR_INIT;
        options.color = &damaged;
        sample_picture(&image, 61, 43, 3);
        check(dl2_image_encode(dl2_codec_find("jpeg"), &image, &options, &bytes, &error), &error);
        snprintf(path, sizeof path, "%s/a/damaged.jpg", root);
        save(path, &bytes);
        dl2_image_free(&image);
    } else {
        save_color(root, "p3.png", "png", 0, &profile);
        save_color(root, "copied.jpg", "jpeg", 80, &profile);
        save_color(root, "plain.png", "png", 0, NULL);
        color.form = DL2_COLOR_SPACE_GAMMA;
        color.gamma = 1;
        memcpy(color.xy, (const double[8]){0.64, 0.33, 0.30, 0.60, 0.15, 0.06, 0.3127, 0.3290},
               sizeof color.xy);
        save_color(root, "linear.png", "png", 0, &color);
        sample_png(&(struct sample_png){2, 2, 0, 16, false, -1, 0, deep}, &bytes);
        snprintf(path, sizeof path, "%s/a/deep.png", root);
        save(path, &bytes);
        sample_png(&(struct sample_png){2, 1, 6, 8, false, -1, 0, clear}, &bytes);
        snprintf(path, sizeof path, "%s/a/alpha.png", root);
        save(path, &bytes);
        sample_cmyk_jpeg(inks, true, &bytes);
        snprintf(path, sizeof path, "%s/a/cmyk.jpg", root);
        save(path, &bytes);
    }
    dl2_color_free(&color);
    dl2_color_free(&profile);
    dl2_bytes_free(&bytes);
}

static void make_tree(const char *root, unsigned count)
{
    char path[4096];
    for (unsigned i = 0; i < count; i++) {
        snprintf(path, sizeof path, "%s/%s/%s/%04u.ppm", root, i % 5 ? "train" : "val",
                 i % 2 ? "rose" : "tulip", i);
        save_picture(path, "ppm", 40 + i % 61, 30 + i % 47, i % 7 ? 3 : 1);
    }
}

static void make_special(const char *root)
{
    char path[4096];
    struct dl2_bytes plain = DL2_BYTES_INIT, out = DL2_BYTES_INIT;
    snprintf(path, sizeof path, "%s/gray.ppm", root);
    save_picture(path, "ppm", 31, 20, 1);
#ifdef HAVE_JPEG
    struct dl2_image image = DL2_IMAGE_INIT;
    sample_picture(&image, 32, 20, 3);
    sample_plain_jpeg(&image, 90, &plain);
    for (int orientation = 1; orientation <= 8; orientation++) {
        sample_jpeg_with_exif(&plain, orientation, &out);
        snprintf(path, sizeof path, "%s/exif-%d.jpg", root, orientation);
        save(path, &out);
    }
    snprintf(path, sizeof path, "%s/called-png.png", root);
    save(path, &plain);
    snprintf(path, sizeof path, "%s/no-extension", root);
    save(path, &plain);
    plain.size /= 2;
    snprintf(path, sizeof path, "%s/cut-short.jpg", root);
    save(path, &plain);
    static const uint8_t cyan[4] = {255, 0, 0, 0};
    sample_cmyk_jpeg(cyan, true, &out);
    snprintf(path, sizeof path, "%s/cmyk.jpg", root);
    save(path, &out);
    dl2_image_free(&image);
#endif
#ifdef HAVE_PNG
    uint16_t clear[16 * 16 * 4] = {0};
    struct sample_png png = {16, 16, 6, 8, false, -1, 0, clear};
    sample_png(&png, &out);
    snprintf(path, sizeof path, "%s/clear.png", root);
    save(path, &out);
#endif
    dl2_bytes_free(&plain);
    dl2_bytes_free(&out);
}

static void make_rare(const char *root)
{
#ifdef HAVE_JPEG
    static const char *const names[] = {"rgb", "rgb-422", "arithmetic", "cmyk", "plain"};
    static const uint8_t inks[4] = {200, 100, 50, 20};
    char path[4096];
    struct dl2_bytes out = DL2_BYTES_INIT;
    struct dl2_image image = DL2_IMAGE_INIT;
    sample_picture(&image, 120, 90, 3);
    for (int i = 0; i < 5; i++) {
        if (i == 3)
            sample_cmyk_jpeg(inks, false, &out);
        else if (i == 4)
            sample_plain_jpeg(&image, 90, &out);
        else
            sample_rare_jpeg(&image, i < 2, 1 + i % 2, i == 2, &out);
        snprintf(path, sizeof path, "%s/%s.jpg", root, names[i]);
        save(path, &out);
    }
    dl2_image_free(&image);
    dl2_bytes_free(&out);
#else
    (void)root;
#endif
}

static void show(const char *path)
{
    struct dl2_image image = DL2_IMAGE_INIT, scratch = DL2_IMAGE_INIT;
    struct dl2_bytes bytes = DL2_BYTES_INIT;
    struct dl2_decode_options options = DL2_DECODE_DEFAULTS;
    struct dl2_error error = DL2_ERROR_INIT;
    check(dl2_file_read(path, UINT64_C(1) << 30, &bytes, &error), &error);
    check(dl2_image_decode(bytes.data, bytes.size, &options, &image, &scratch, &error), &error);
    bool gray = image.channels == 1;
    printf("%u %u %u %u %u %u\n", (unsigned)image.width, (unsigned)image.height,
           (unsigned)image.channels, image.data[0], image.data[gray ? 0 : 1],
           image.data[gray ? 0 : 2]);
    dl2_image_free(&image);
    dl2_image_free(&scratch);
    dl2_bytes_free(&bytes);
}

int main(int argc, char **argv)
{
    if (argc == 4 && !strcmp(argv[1], "tree"))
        make_tree(argv[2], (unsigned)atoi(argv[3]));
    else if ((argc == 3 || argc == 4) && !strcmp(argv[1], "colors"))
        make_colors(argv[2], argc == 4);
    else if (argc == 3 && !strcmp(argv[1], "special"))
        make_special(argv[2]);
    else if (argc == 3 && !strcmp(argv[1], "rare"))
        make_rare(argv[2]);
    else if (argc == 3 && !strcmp(argv[1], "show"))
        show(argv[2]);
    else
        return 2;
    return 0;
}
