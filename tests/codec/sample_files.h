/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Image files that the codecs' own encoders never write, made with the bare libraries: what a
 * decoder meets in the wild. Each replaces out's contents and ends the test program where a library
 * refuses.
 */
#ifndef DL2_TESTS_CODEC_SAMPLE_FILES_H
#define DL2_TESTS_CODEC_SAMPLE_FILES_H

#include "common/memory.h"
#include "pixels/image.h"

/* Smooth shapes with some noise, always the same: something for a codec to do. */
void sample_picture(struct dl2_image *image, uint32_t width, uint32_t height, uint32_t channels);

/* An EXIF block, in either byte order, with nothing but an orientation. Returns its size. */
size_t sample_exif(uint8_t out[64], int orientation, bool big_endian);

/* A JPEG file with an APP1 segment behind its first marker. */
void sample_jpeg_with_exif(const struct dl2_bytes *jpeg, int orientation, struct dl2_bytes *out);

/* What libjpeg makes of an image with its defaults, as cjpeg would at this quality. */
void sample_plain_jpeg(const struct dl2_image *image, int quality, struct dl2_bytes *out);

/* JPEG files of color images that few programs write: RGB as it is, the second and third component
 * at 1 / `across` of the first one's width; and arithmetic codes. */
void sample_rare_jpeg(const struct dl2_image *image, bool rgb, int across, bool arithmetic,
                      struct dl2_bytes *out);

/* All pixels the same inks, 255 full; `adobe`: stored inverted, with Adobe's marker. */
void sample_cmyk_jpeg(const uint8_t inks[4], bool adobe, struct dl2_bytes *out);

/*
 * PNG of any color type and depth: `samples` are height rows of width pixels with the color
 * type's channels, one uint16_t a sample whatever the depth. A palette image has the palette (i, 2
 * i, 255 - i), and where `transparent` is not negative that entry (of a gray image: that value) is
 * transparent. Orientation 0: no eXIf.
 */
struct sample_png {
    uint32_t width, height;
    int color_type, bits;
    bool interlaced;
    int transparent;
    int orientation;
    const uint16_t *samples;
};
void sample_png(const struct sample_png *options, struct dl2_bytes *out);

/* Lossless WebP with alpha, from RGBA. */
void sample_webp_with_alpha(const uint8_t *rgba, int width, int height, struct dl2_bytes *out);

/* Lossy WebP, its opacities lossless and filtered as libwebp finds best. */
void sample_webp_with_filtered_alpha(const uint8_t *rgba, int width, int height,
                                     struct dl2_bytes *out);

/*
 * Lossless JP2 with three resolutions: `samples` are height rows of width pixels with `components`
 * bytes each. `colors`: the color specification boxes' contents, one behind the other, each with
 * a byte in front that has its length. A palette has 256 entries of three bytes, for one component.
 */
struct sample_jp2 {
    uint32_t width, height, components;
    const uint8_t *samples;
    const char *colors;
    size_t colors_size;
    const uint8_t *palette;
};
void sample_jp2(const struct sample_jp2 *options, struct dl2_bytes *out);

/*
 * BMP with a header of 40 bytes, of any of its depths: `numbers` are height rows of width pixels,
 * one uint32_t a pixel whatever the depth. A palette has the colors (i, 2 i, 255 - i), three fewer
 * of them than the depth allows. `rle`: runs and literals; the third pixel of the second row is
 * stepped over, which makes it 0.
 */
struct sample_bmp {
    uint32_t width, height, bits;
    bool top_down, rle;
    const uint32_t *numbers;
};
void sample_bmp(const struct sample_bmp *options, struct dl2_bytes *out);

/*
 * GIF on a canvas that is two pixels wider and one higher than its images, which begin at (1, 1):
 * `numbers` are height rows of width pixels, 0 to 126; color i is (i, 2 i, 255 - i). `transparent`
 * is a number, or negative.
 */
struct sample_gif {
    uint32_t width, height, images;
    bool interlaced;
    int transparent;
    const uint8_t *numbers;
};
void sample_gif(const struct sample_gif *options, struct dl2_bytes *out);

/* TIFF without compression, one strip a page, its samples one uint16_t each whatever the depth (8
 * or 16); with two or four channels the last is a separate opacity. */
struct sample_tiff {
    uint32_t width, height, channels, bits, pages;
    int orientation;
    bool big_endian;
    const uint16_t *samples;
};
void sample_tiff(const struct sample_tiff *options, struct dl2_bytes *out);

#endif
