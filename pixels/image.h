/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * An image in memory: 8-bit samples, interleaved, rows top to bottom.
 *
 * One channel is gray, three are R, G, B, both as coded (sRGB or whatever the file means; no
 * color management). There is no alpha here: decoders flatten it on the background they are given.
 */
#ifndef DL2_PIXELS_IMAGE_H
#define DL2_PIXELS_IMAGE_H

#include "common/error.h"

#include <stddef.h>
#include <stdint.h>

/* Largest image that anything here decodes unless told otherwise: 2^27 pixels, 134 MP. */
#define DL2_DEFAULT_MAX_PIXELS ((uint64_t)1 << 27)

struct dl2_image {
    uint8_t *data; /* height rows of stride bytes, aligned to DL2_ALIGNMENT; NULL while empty */
    uint32_t width, height;
    uint32_t channels; /* 1 or 3 */
    size_t stride;     /* bytes from row to row: width * channels, no padding */
    size_t capacity;   /* bytes allocated, so that one image struct can be reused */
};

#define DL2_IMAGE_INIT                                                                             \
    {                                                                                              \
        NULL, 0, 0, 0, 0, 0                                                                        \
    }

/*
 * Gives the image this shape, reallocating only where it must grow; contents are undefined
 * afterwards. DL2_ERR_ARGUMENT for an empty shape or other than 1 or 3 channels, DL2_ERR_LIMIT when
 * the size overflows, DL2_ERR_MEMORY.
 */
int dl2_image_reshape(struct dl2_image *image, uint32_t width, uint32_t height, uint32_t channels,
                      struct dl2_error *error);

/* DL2_ERR_LIMIT with a message unless 1 <= width, height and width * height <= max_pixels. */
int dl2_image_check_size(uint64_t width, uint64_t height, uint64_t max_pixels,
                         struct dl2_error *error);

/*
 * Turns the pixels as an EXIF orientation (1 to 8; TIFF 6.0 tag 274) says, so that it becomes 1.
 * `scratch` receives the old pixels' block, for reuse. Orientation 1 does nothing.
 */
int dl2_image_orient(struct dl2_image *image, int orientation, struct dl2_image *scratch,
                     struct dl2_error *error);

/* What the orientations 1 to 8 do: rows become columns; before that, columns or rows run
 * backwards. */
static inline bool dl2_orientation_transposes(int orientation)
{
    return orientation >= 5;
}

static inline bool dl2_orientation_flips_x(int orientation)
{
    return orientation == 2 || orientation == 3 || orientation == 7 || orientation == 8;
}

static inline bool dl2_orientation_flips_y(int orientation)
{
    return orientation == 3 || orientation == 4 || orientation == 6 || orientation == 7;
}

/* The same of width x height pixels of `pixel` bytes, whose rows begin `stride` bytes apart, to
 * rows that begin `out_stride` bytes apart. */
void dl2_orient_pixels(const uint8_t *in, size_t stride, uint32_t width, uint32_t height,
                       size_t pixel, int orientation, uint8_t *out, size_t out_stride);

void dl2_image_free(struct dl2_image *image);

#endif
