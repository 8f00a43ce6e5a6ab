/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Part of an image as a decoder has it, before color conversion: one to three planes, each at its
 * own resolution. What a resize needs to know is where each sample lies.
 *
 * Coordinates are pixels of the whole upright image at full resolution. Sample (i, j) of a plane
 * covers [x + i * step_x, x + (i + 1) * step_x) across, and likewise down; chroma of 4:2:0 has
 * steps of 2, a plane that was decoded at half size has steps twice as large. The last column and
 * row may reach beyond the image's edge.
 */
#ifndef DL2_PIXELS_RASTER_H
#define DL2_PIXELS_RASTER_H

#include <stddef.h>
#include <stdint.h>

enum dl2_color {
    DL2_COLOR_GRAY,          /* one plane */
    DL2_COLOR_RGB,           /* one plane of three channels, interleaved */
    DL2_COLOR_YCBCR,         /* three planes: BT.601, full range (JFIF) */
    DL2_COLOR_YCBCR_LIMITED, /* three planes: BT.601, luma 16 to 235, chroma 16 to 240 (WebP) */
    DL2_COLOR_BT709,         /* as these two, of BT.709 (videos) */
    DL2_COLOR_BT709_LIMITED
};

struct dl2_plane {
    const uint8_t *data;    /* of the first row and column that are there */
    size_t stride;          /* bytes from row to row */
    uint32_t width, height; /* samples that are there */
    /* The pixel where the first one begins. A multiple of the steps, but for an axis that an
     * orientation turned backwards: there its last sample ends with a step, and the first may begin
     * before the image. */
    int64_t x, y;
    uint32_t step_x, step_y; /* pixels from sample to sample */
    /* How far a sample's center lies off the middle of what it covers, in pixels. Not 0 for reduced
     * JPEG 2000, whose wavelet leaves it in the middle of the first pixel, (1 - step) / 2. */
    float shift_x, shift_y;
};

/* The memory is the decoder's that filled it in, and valid until that decoder is used again. */
struct dl2_raster {
    enum dl2_color color;
    struct dl2_plane planes[3];
};

static inline unsigned dl2_raster_planes(const struct dl2_raster *raster)
{
    return raster->color >= DL2_COLOR_YCBCR ? 3 : 1;
}

static inline unsigned dl2_raster_channels(const struct dl2_raster *raster)
{
    return raster->color == DL2_COLOR_GRAY ? 1 : 3;
}

/* A plane of an image of width x height pixels, with a sample for each 2^shift of them each way. */
struct dl2_plane dl2_plane_of(const uint8_t *data, size_t stride, uint32_t width, uint32_t height,
                              unsigned shift_x, unsigned shift_y);

struct dl2_image;

/* The image as one interleaved plane whose first sample is the pixel (x, y). */
struct dl2_raster dl2_raster_of(const struct dl2_image *image, uint32_t x, uint32_t y);

#endif
