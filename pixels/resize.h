/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The fused transform: from part of a decoded image to pixels in a batch. Each plane is resized at
 * its own resolution as Pillow's Image.resize(FILTER, box=) defines it, down and then across;
 * colors are converted for the output pixels alone; mirroring is part of the filter; rows are
 * written in their final type and place while they are in the first-level cache.
 *
 * Integer arithmetic throughout, so every SIMD path (resize_kernels.h) gives the bytes of plain C.
 * For gray and RGB rasters each value is within 1 of Pillow's, which rounds between its passes,
 * too. Bicubic and Lanczos filters overshoot at edges: then each pass clips to 0 to 255, as
 * Pillow's do. Pillow's first pass is the one across, so where the first pass clips, values may
 * differ by more.
 */
#ifndef DL2_PIXELS_RESIZE_H
#define DL2_PIXELS_RESIZE_H

#include "common/error.h"
#include "common/memory.h"
#include "pixels/pixel_format.h"
#include "pixels/raster.h"

#include <stddef.h>
#include <stdint.h>

/* A rectangle of pixels; it may cut pixels in two. */
struct dl2_box {
    double left, top, right, bottom;
};

/* One axis of a plane, in its samples: those that a limit covers, and where the box lies, which
 * counts from `low`. */
struct dl2_resize_axis {
    uint32_t low, high;
    double start, end;
};

/* Both axes of a plane; false where the limit is not on the plane or the box not in the limit. */
bool dl2_resize_axes(const struct dl2_plane *plane, const struct dl2_box *limit,
                     const struct dl2_box *box, struct dl2_resize_axis *across,
                     struct dl2_resize_axis *down);
/* Do two planes have the same axes? */
bool dl2_same_geometry(const struct dl2_plane *a, const struct dl2_plane *b);

/* Working memory, grown as needed and reused; zeroed at first. One thread at a time. */
struct dl2_resizer {
    const struct dl2_resize_kernels *kernels; /* chosen at first use */
    struct dl2_bytes columns[3], rows[3];     /* the filters of each plane, as far as they differ */
    struct dl2_bytes lines;                   /* rows on their way */
};

/* Bytes of a value. */
static inline unsigned dl2_dtype_size(enum dl2_dtype dtype)
{
    return dtype == DL2_UINT8 ? 1 : dtype == DL2_FLOAT32 ? 4 : 2;
}

/* The place and format of the output of dl2_resize_raster(). */
struct dl2_resize_output {
    void *data; /* height x width x channels of dtype, in `layout`, no padding */
    uint32_t width, height, channels;
    size_t plane; /* with DL2_NCHW, values from one channel to the next; 0: height x width */
    enum dl2_dtype dtype;
    enum dl2_layout layout;
    float mean[3], std[3]; /* per channel, of the float types */
    bool flip;             /* mirrored left to right */
    enum dl2_interpolation interpolation;
};

/* Names of the filters by enum dl2_interpolation, ended by NULL. */
extern const char *const dl2_interpolation_words[];

/* How far a filter reaches from its middle, in samples where the image does not become smaller. */
double dl2_interpolation_reach(enum dl2_interpolation interpolation);

/*
 * `limit` is the rectangle whose pixels may have a part in the output (a training crop shuts out
 * what lies beyond it; samples that straddle its edge count as within), `box` what is shown of it;
 * both in pixels of the whole upright image.
 *
 * Gray becomes three equal channels where three are asked for; one channel of YCbCr is its luma, of
 * RGB the BT.601 luma of the resized colors. DL2_ERR_ARGUMENT for a box that is empty or not
 * within the limit, or a limit that a plane doesn't cover.
 */
int dl2_resize_raster(struct dl2_resizer *resizer, const struct dl2_raster *raster,
                      const struct dl2_box *limit, const struct dl2_box *box,
                      const struct dl2_resize_output *out, struct dl2_error *error);

/* Pixels that are resized already (uint8, NHWC) to the output's type and layout; `flip` aside. */
int dl2_convert_pixels(struct dl2_resizer *resizer, const uint8_t *pixels,
                       const struct dl2_resize_output *out, struct dl2_error *error);

/* Bytes that it holds. */
size_t dl2_resizer_memory(const struct dl2_resizer *resizer);
void dl2_resizer_free(struct dl2_resizer *resizer);

#endif
