/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Chooses the part of an image that a sample shows. The choice needs only the image's size, so it
 * is made from the header, before anything is decoded.
 */
#ifndef DL2_PIXELS_CROP_H
#define DL2_PIXELS_CROP_H

#include "common/random.h"
#include "pixels/operations.h"
#include "pixels/resize.h"

/* The crops to draw. */
struct dl2_crop_config {
    unsigned height, width; /* of the output, pixels */
    /* Validation: the image is resized until it covers the output, enlarged so that its shorter
     * side is `resize` pixels; the output is cut from the middle. Of a square output, that is the
     * image's shorter side. At least the output's shorter side. */
    unsigned resize;
    bool squash; /* validation: the whole image instead, whatever its aspect; no `resize` */
    /* Training: the crop's share of the image's area, and its width /
     * height; see loader/loader.h. */
    double area_min, area_max, aspect_min, aspect_max;
    bool flip; /* training: mirror half of the images */
    enum dl2_interpolation interpolation;
};

/* All in pixels of the upright image. */
struct dl2_crop {
    uint32_t x, y, width, height; /* the rectangle of pixels that are needed */
    struct dl2_box box;           /* what is shown, relative to that rectangle */
    bool flip;
};

/* The `resize` of a loader that is given none: the shorter side of the output, by 256 / 224. */
unsigned dl2_crop_usual_resize(unsigned shorter);

/*
 * Training: torchvision's RandomResizedCrop, then a flip. The crop is cut out before it is resized,
 * so no pixel outside it takes part. Draws from `random`, which is keyed by the sample.
 */
void dl2_crop_for_training(const struct dl2_crop_config *config, struct dl2_random *random,
                           uint32_t width, uint32_t height, struct dl2_crop *crop);

/*
 * Validation: for a square output torchvision's Resize(config->resize) and
 * CenterCrop(config->height) in one step. The whole image is resized, so the rectangle is the box
 * and the pixels that its filter reaches. With `squash`: torchvision's Resize((config->height,
 * config->width)).
 */
void dl2_crop_for_validation(const struct dl2_crop_config *config, uint32_t width, uint32_t height,
                             struct dl2_crop *crop);

/*
 * How much coarser the image may be decoded (1, 2, 4 or 8) for an output of this size: as far as
 * what is shown still has 1.5 times the output's size in both directions. A reduced image is
 * a little softer or sharper than what the filter makes of the whole: on photographs to 64 pixels,
 * 4:2:0, the mean difference from Pillow is at most 0.6 gray levels with a margin of 2, 0.7 with
 * 1.5 and 1.8 with none (tests/loader/photos.sh).
 */
uint32_t dl2_crop_reduction(const struct dl2_crop *crop, unsigned height, unsigned width);

/*
 * From decoded planes that cover the crop's rectangle to `out`, in one pass; `out->flip` is set
 * from the crop. The errors of dl2_resize_raster().
 */
int dl2_crop_resize(struct dl2_resizer *resizer, const struct dl2_raster *raster,
                    const struct dl2_crop *crop, struct dl2_resize_output out,
                    struct dl2_error *error);

/*
 * What a gray raster, at full resolution, has in `box`, which is in pixels of the whole upright
 * image, as an image of the size of `out`, of one channel: each pixel is the nearest one, as with
 * Pillow's Image.resize(NEAREST, box=). `columns` has room for the width of `out`.
 * DL2_ERR_ARGUMENT for another raster, and for one that doesn't cover the box.
 */
int dl2_crop_nearest(const struct dl2_raster *raster, const struct dl2_box *box, bool flip,
                     struct dl2_pixels *out, uint32_t *columns, struct dl2_error *error);

#endif
