/*
 * What becomes of one image on its way into a batch. The choice needs only the image's size, so it
 * is made from the header, before anything is decoded.
 */
#ifndef DL2_LOADER_TRANSFORM_H
#define DL2_LOADER_TRANSFORM_H

#include "common/random.h"
#include "common/raster.h"
#include "loader/loader.h"
#include "loader/resize.h"

/* All in pixels of the upright image. */
struct dl2_view {
    uint32_t x, y, width, height; /* the rectangle of pixels that are needed */
    struct dl2_box box;           /* what is shown, relative to that rectangle */
    bool flip;
};

/*
 * Training: torchvision's RandomResizedCrop, then a flip. The crop is cut out before it is resized,
 * so nothing outside shines in. Takes its numbers from `random`, which is keyed by the sample.
 */
void dl2_view_for_training(const struct dl2_loader_config *config, struct dl2_random *random,
                           uint32_t width, uint32_t height, struct dl2_view *view);

/*
 * Validation: torchvision's Resize(config->resize) and CenterCrop(config->image_size), as one step;
 * here the whole image is resized, so the rectangle is the box and what its filter reaches beyond.
 */
void dl2_view_for_validation(const struct dl2_loader_config *config, uint32_t width,
                             uint32_t height, struct dl2_view *view);

/*
 * How much coarser the image may be decoded (1, 2, 4 or 8): as far as what is shown still has 1.5
 * times the output's size in both directions. A reduced image is a little softer or sharper than
 * what the filter would make of the whole: on photographs to 64 pixels, 4:2:0, the mean difference
 * from Pillow is at most 0.6 grey levels with a margin of 2, 0.7 with 1.5 and 1.8 with none
 * (tests/loader/photos.sh).
 */
uint32_t dl2_view_reduction(const struct dl2_view *view, const struct dl2_loader_config *config);

/* Where a sample's pixels go, and as what. */
struct dl2_resize_output dl2_transform_output(const struct dl2_loader_config *config, void *out);

/*
 * From the decoded planes, which cover the view's rectangle, to config->image_size squared pixels
 * of config->channels, dtype and layout at `out`.
 */
int dl2_transform(struct dl2_resizer *resizer, const struct dl2_raster *raster,
                  const struct dl2_view *view, const struct dl2_loader_config *config, void *out,
                  struct dl2_error *error);

#endif
