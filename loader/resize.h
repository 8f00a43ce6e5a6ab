/*
 * Antialiased bilinear resize of part of an image: two passes of a triangle filter that is widened
 * by the scale, as Pillow's Image.resize(BILINEAR, box=) computes it on 8-bit images, to the same
 * bits (22-bit fixed-point weights, 8 bits between the passes: Pillow 9.4,
 * src/libImaging/Resample.c).
 */
#ifndef DL2_LOADER_RESIZE_H
#define DL2_LOADER_RESIZE_H

#include "common/error.h"
#include "common/memory.h"
#include "common/raster.h"
#include "loader/loader.h"

#include <stddef.h>
#include <stdint.h>

/* Pixels that somebody else owns: an image or a rectangle of one. Nothing outside is looked at. */
struct dl2_pixels {
    const uint8_t *data;
    uint32_t width, height;
    uint32_t channels; /* 1 or 3 */
    size_t stride;     /* bytes from row to row */
};

/* The rectangle that becomes the output, in pixels, within the image; it may cut pixels in two. */
struct dl2_box {
    double left, top, right, bottom;
};

/* The filter along one axis: output i is the sum of `taps` inputs from `first` on. */
struct dl2_filter {
    uint32_t first, taps;
    uint32_t weights; /* where its weights start in dl2_resizer.weights */
};

/* Working memory, grown as needed and reused. One thread at a time. */
struct dl2_resizer {
    struct dl2_bytes columns, rows; /* struct dl2_filter per output column and row */
    struct dl2_bytes weights[2];    /* int32_t: of columns, of rows */
    struct dl2_bytes between;       /* what the first pass leaves to the second */
    struct dl2_bytes sums;          /* one output row, int32_t */
};

#define DL2_RESIZER_INIT                                                                           \
    {                                                                                              \
        .columns = DL2_BYTES_INIT                                                                  \
    }

/*
 * Writes width x height pixels of `channels` to `out`, rows without padding; mirrored left to right
 * if `flip`. Gray input may become three equal channels; three can't become one here.
 * DL2_ERR_ARGUMENT for a box that is empty or not within the image.
 */
int dl2_resize(struct dl2_resizer *resizer, const struct dl2_pixels *in, const struct dl2_box *box,
               bool flip, uint32_t width, uint32_t height, uint32_t channels, uint8_t *out,
               struct dl2_error *error);

/* Where the output of dl2_resize_raster() goes, and as what. */
struct dl2_resize_output {
    void *data; /* height x width x channels of dtype, in `layout`, no padding */
    uint32_t width, height, channels;
    enum dl2_dtype dtype;
    enum dl2_layout layout;
    float mean[3], std[3]; /* of the float types, as in struct dl2_loader_config */
    bool flip;             /* mirrored left to right */
};

/*
 * The fused transform: each plane is resized at its own resolution, antialiased as above, then
 * colours are converted for the output pixels alone, mirrored and written in their final type and
 * place. `limit` is the rectangle whose pixels may have a part in the output (a training crop shuts
 * out what lies beyond it), `box` what is shown of it; both in pixels of the whole upright image.
 *
 * Integer arithmetic throughout (16-bit weights), so every SIMD path gives the bytes of plain C.
 */
int dl2_resize_raster(struct dl2_resizer *resizer, const struct dl2_raster *raster,
                      const struct dl2_box *limit, const struct dl2_box *box,
                      const struct dl2_resize_output *out, struct dl2_error *error);

void dl2_resizer_free(struct dl2_resizer *resizer);

#endif
