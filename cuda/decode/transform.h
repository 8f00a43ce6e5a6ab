/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The loader's fused transform (pixels/resize.h) on the card, for a batch of images of any sizes:
 * crop, antialiased resize, colors, flip, to uint8 NHWC. The same integer arithmetic with the same
 * weights, so of the same planes it makes the same bytes.
 *
 * A plan is made here, image by image, into a table that is then copied to the card; two launches
 * do the rest: the filters' weights, one thread an output row or column, then the pixels.
 *
 * Threads: one at a time per plan.
 */
#ifndef DL2_CUDA_TRANSFORM_H
#define DL2_CUDA_TRANSFORM_H

#include "pixels/raster.h"
#include "pixels/resize.h"

#ifdef __cplusplus
extern "C" {
#endif

struct CUstream_st;

/*
 * An image as it was decoded: gray, RGB or full-range YCbCr planes in the card's memory. Each
 * plane's address and stride are multiples of 4, and its stride at least its row's bytes.
 */
struct dl2_gpu_image {
    struct dl2_raster raster;
    struct dl2_box limit, box; /* as for dl2_resize_raster() */
    bool flip;
    /*
     * By how many MCUs each row's samples lie too far right (struct dl2_crop_bytes),
     * in the card's memory; NULL: none. An MCU is of 8 * mcu_x by 8 * mcu_y pixels.
     */
    const uint32_t *shift;
    uint32_t mcu_x, mcu_y;
    uint8_t *out; /* side x side x channels, in the card's memory */
};

/* Along one axis of a plane: where each output's filter lies. */
struct dl2_gpu_axis {
    double start, scale; /* the middle of output i is at start + (i + 0.5) * scale */
    float width, inverse;
    uint32_t low, size; /* the samples that the limit covers */
    uint32_t most;      /* taps of an output */
    uint32_t flip;
    size_t window, weight; /* where its windows and weights begin in the scratch memory's parts */
};

/* One image for the kernel. */
struct dl2_gpu_resize {
    const uint8_t *data[3];
    uint32_t stride[3];
    uint32_t columns[3], rows[3]; /* numbers of axes */
    uint32_t color;               /* enum dl2_color */
    const uint32_t *shift;
    uint32_t shift_bytes[3], shift_rows[3]; /* of each plane: an MCU's width, and its height */
    uint8_t *out;
};

enum { DL2_GPU_AXES = 4 }; /* of an image at most */

struct dl2_gpu_plan {
    uint32_t side, channels; /* of all outputs */
    uint32_t images, axis_count;
    struct dl2_gpu_resize *resizes; /* the table: this, and behind it the axes */
    struct dl2_gpu_axis *axes;
    size_t windows, weights; /* that the axes come to */
};

/* Bytes of a table for that many images. */
size_t dl2_gpu_plan_bytes(uint32_t images);
/* An empty plan in a table of that size, aligned to 16 bytes, which stays the caller's. */
void dl2_gpu_plan_begin(struct dl2_gpu_plan *plan, void *table, uint32_t images, uint32_t side,
                        uint32_t channels);
/* False, and nothing added, where a plane doesn't cover the limit, the box isn't within it, or the
 * colors are others. */
bool dl2_gpu_plan_add(struct dl2_gpu_plan *plan, const struct dl2_gpu_image *image);
/* Bytes of the card's memory that running it takes beside the table. */
size_t dl2_gpu_plan_scratch(const struct dl2_gpu_plan *plan);

/*
 * Queues the plan's launches. `table` is the card's copy of the whole table, `scratch` aligned to
 * 16 bytes. A cudaError_t.
 */
int dl2_gpu_transform(const struct dl2_gpu_plan *plan, const void *table, void *scratch,
                      struct CUstream_st *stream);

#ifdef __cplusplus
}
#endif

#endif
