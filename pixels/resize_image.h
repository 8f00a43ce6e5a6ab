/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Whole images at another size, as Pillow's Image.resize(size, FILTER) makes them: across first, to
 * rounded and clipped bytes, and then down, with weights of 22 fraction bits. All that may differ
 * from Pillow's is the last bit of a weight of Lanczos, so that values are the same, or rarely 1
 * apart. The loader's crops take the faster pixels/resize.h, which may differ by more where
 * a filter overshoots.
 */
#ifndef DL2_PIXELS_RESIZE_IMAGE_H
#define DL2_PIXELS_RESIZE_IMAGE_H

#include "common/memory.h"
#include "pixels/deep_image.h"
#include "pixels/image.h"
#include "pixels/pixel_format.h"
#include "pixels/resolution.h"

/* Working memory, grown as needed and reused; zeroed at first. One thread at a time. */
struct dl2_image_resizer {
    const struct dl2_resize_kernels *kernels; /* chosen at first use */
    struct dl2_bytes columns, rows;           /* the filters */
    struct dl2_bytes strip;                   /* rows that are made narrower together */
    struct dl2_bytes narrowed;                /* all rows, after the pass across */
};

/*
 * `out`, another image than `in`, becomes `in` at this size. By the nearest filter, each pixel is
 * the one that its middle lies in. DL2_ERR_ARGUMENT for an empty size and for the bicubic filter,
 * DL2_ERR_LIMIT where a size overflows.
 */
int dl2_resize_image(struct dl2_image_resizer *resizer, const struct dl2_image *in,
                     enum dl2_interpolation filter, uint32_t width, uint32_t height,
                     struct dl2_image *out, struct dl2_error *error);

/* The same of 16 bits a sample, without rounding between the two passes. */
int dl2_resize_deep(struct dl2_image_resizer *resizer, const struct dl2_deep_image *in,
                    enum dl2_interpolation filter, uint32_t width, uint32_t height,
                    struct dl2_deep_image *out, struct dl2_error *error);

/* `shown` is `in` at a resolution: `resized`, or `in` itself where that keeps its size. */
int dl2_resize_to(struct dl2_image_resizer *resizer, const struct dl2_image *in,
                  const struct dl2_resolution *resolution, struct dl2_image *resized,
                  const struct dl2_image **shown, struct dl2_error *error);

/* Bytes that dl2_resize_image() takes at most beside both images. */
uint64_t dl2_resize_image_memory(uint32_t in_width, uint32_t in_height, uint32_t width,
                                 uint32_t channels);

void dl2_image_resizer_free(struct dl2_image_resizer *resizer);

#endif
