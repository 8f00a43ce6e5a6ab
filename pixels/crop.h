/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Chooses the part of an image that a sample shows. The choice needs only the image's size, so it
 * is made from the header, before anything is decoded.
 */
#ifndef DL2_PIXELS_CROP_H
#define DL2_PIXELS_CROP_H

#include "common/random.h"
#include "pixels/resize.h"

/* The crops to draw. */
struct dl2_crop_config {
    unsigned image_size; /* side of the output, pixels */
    unsigned resize;     /* validation: the shorter side before the central crop, pixels */
    /* Training: the crop's share of the image's area, and its width /
     * height; see loader/loader.h. */
    double area_min, area_max, aspect_min, aspect_max;
    bool flip; /* training: mirror half of the images */
};

/* All in pixels of the upright image. */
struct dl2_crop {
    uint32_t x, y, width, height; /* the rectangle of pixels that are needed */
    struct dl2_box box;           /* what is shown, relative to that rectangle */
    bool flip;
};

/*
 * Training: torchvision's RandomResizedCrop, then a flip. The crop is cut out before it is resized,
 * so no pixel outside it takes part. Draws from `random`, which is keyed by the sample.
 */
void dl2_crop_for_training(const struct dl2_crop_config *config, struct dl2_random *random,
                           uint32_t width, uint32_t height, struct dl2_crop *crop);

/*
 * Validation: torchvision's Resize(config->resize) and CenterCrop(config->image_size) in one step.
 * The whole image is resized, so the rectangle is the box and the pixels that its filter reaches.
 */
void dl2_crop_for_validation(const struct dl2_crop_config *config, uint32_t width, uint32_t height,
                             struct dl2_crop *crop);

/*
 * How much coarser the image may be decoded (1, 2, 4 or 8) for an output of image_size squared: as
 * far as what is shown still has 1.5 times the output's size in both directions. A reduced image is
 * a little softer or sharper than what the filter makes of the whole: on photographs to 64 pixels,
 * 4:2:0, the mean difference from Pillow is at most 0.6 grey levels with a margin of 2, 0.7 with
 * 1.5 and 1.8 with none (tests/loader/photos.sh).
 */
uint32_t dl2_crop_reduction(const struct dl2_crop *crop, unsigned image_size);

/*
 * From decoded planes that cover the crop's rectangle to `out`, in one pass; `out->flip` is set
 * from the crop. The errors of dl2_resize_raster().
 */
int dl2_crop_resize(struct dl2_resizer *resizer, const struct dl2_raster *raster,
                    const struct dl2_crop *crop, struct dl2_resize_output out,
                    struct dl2_error *error);

#endif
