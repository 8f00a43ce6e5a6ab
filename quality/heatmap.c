/* SPDX-License-Identifier: BSD-2-Clause */
#include "config.h"

#include "quality/heatmap.h"

#include "codec/codec.h"
#include "common/file.h"
#include "common/scope.h"
#include "dataset/packed/index.h"
#include "quality/scorer.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

const char *const dl2_heatmap_errors[] = {"ssim", "squared", NULL};

enum { COLORS = 33, MOST_RMS = 64 };

/* Every eighth of the 256 colors of cividis. */
static const uint32_t cividis[COLORS] = {
    0x00224e, 0x00285b, 0x002e6a, 0x053371, 0x1a386f, 0x273e6e, 0x32436d, 0x3b496c, 0x434e6c,
    0x4b546c, 0x535a6d, 0x5a5f6e, 0x61656f, 0x686a71, 0x6f7073, 0x767676, 0x7d7c78, 0x838179,
    0x8b8778, 0x928d78, 0x9a9376, 0xa29975, 0xaaa073, 0xb3a670, 0xbbad6d, 0xc3b369, 0xccba64,
    0xd4c15f, 0xddc858, 0xe6d051, 0xefd748, 0xf8df3c, 0xfee838};

/* The color of a level from 0 to 1. */
static void heatmap_color(double level, uint8_t out[3])
{
    const double at = (level > 0 ? level < 1 ? level : 1 : 0) * (COLORS - 1);
    const int below = at < COLORS - 1 ? (int)at : COLORS - 2;
    for (int c = 0; c < 3; c++) {
        const int low = cividis[below] >> (16 - 8 * c) & 0xff;
        const int high = cividis[below + 1] >> (16 - 8 * c) & 0xff;
        out[c] = (uint8_t)lrint(low + (high - low) * (at - below));
    }
}

static double squared_level(const struct dl2_scorer *scorer, const struct dl2_image *variant,
                            uint32_t x, uint32_t y)
{
    const struct dl2_pixel_run a = dl2_pixel_run_at(scorer->reference, x, y);
    const struct dl2_pixel_run b = dl2_pixel_run_at(variant, x, y);
    double sum = 0;
    for (int c = 0; c < 3; c++) {
        const double d = (double)a.data[a.channels == 1 ? 0 : c] - b.data[b.channels == 1 ? 0 : c];
        sum += d * d;
    }
    return sqrt(sum / 3) / MOST_RMS;
}

/* The level of the window around the pixel, or of the nearest one. */
static double ssim_level(const float *map, uint32_t width, uint32_t height, uint32_t x, uint32_t y)
{
    enum { REACH = DL2_SSIM_TAPS / 2 };
    const uint32_t columns = width - 2 * REACH, rows = height - 2 * REACH;
    const uint32_t left = x < REACH ? 0 : x - REACH, top = y < REACH ? 0 : y - REACH;
    return 1 - (double)map[(size_t)(top < rows ? top : rows - 1) * columns +
                           (left < columns ? left : columns - 1)];
}

static int heatmap_draw(enum dl2_heatmap_error kind, struct dl2_scorer *scorer,
                        const struct dl2_image *variant, struct dl2_image *out,
                        struct dl2_error *error)
{
    const uint32_t width = variant->width, height = variant->height;
    const float *map = NULL;
    DL2_TRY(dl2_image_reshape(out, width, height, 3, error));
    if (kind == DL2_HEATMAP_SSIM)
        DL2_TRY(dl2_ssim_map(scorer, variant, &map, error));
    for (uint32_t y = 0; y < height; y++)
        for (uint32_t x = 0; x < width; x++)
            heatmap_color(map ? ssim_level(map, width, height, x, y)
                              : squared_level(scorer, variant, x, y),
                          out->data + y * out->stride + 3 * (size_t)x);
    return DL2_OK;
}

int dl2_heatmap_check(struct dl2_error *error)
{
    const struct dl2_codec *codec = dl2_codec_find("png");
    return codec && codec->encode ? DL2_OK
                                  : dl2_error_set(error, DL2_ERR_UNSUPPORTED,
                                                  "heat maps are PNG, which this build lacks");
}

static int heatmap_save(const struct dl2_image *image, const char *path, struct dl2_error *error)
{
    const struct dl2_encode_options options = DL2_ENCODE_DEFAULTS;
    DL2_CLEANUP(dl2_bytes_free) struct dl2_bytes png = DL2_BYTES_INIT;
    DL2_TRY(dl2_image_encode(dl2_codec_find("png"), image, &options, &png, error));
    DL2_TRY(dl2_make_folder_of(path, error));
    return dl2_file_write(path, png.data, png.size, error);
}

int dl2_heatmap_write(const struct dl2_heatmap_options *options, struct dl2_scorer *scorer,
                      const struct dl2_image *variant, const char *variant_name, const char *key,
                      struct dl2_image *scratch, struct dl2_error *error)
{
    DL2_AUTO_FREE char *path = NULL;
    if (options->error == DL2_HEATMAP_SSIM &&
        (variant->width < DL2_SSIM_TAPS || variant->height < DL2_SSIM_TAPS))
        return 0;
    DL2_TRY(dl2_heatmap_check(error));
    if (!dl2_index_is_key(key))
        return dl2_error_set(error, DL2_ERR_ARGUMENT, "no heat map can be named after '%s'", key);
    DL2_TRY(heatmap_draw(options->error, scorer, variant, scratch, error));
    DL2_TRY(dl2_format(&path, error, "%s/%s/%s.png", options->folder, variant_name, key));
    DL2_TRY(heatmap_save(scratch, path, error));
    return 1;
}
