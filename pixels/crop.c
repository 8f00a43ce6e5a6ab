/* SPDX-License-Identifier: BSD-2-Clause */
#include "pixels/crop.h"

#include <math.h>

/* See dl2_crop_reduction() in crop.h. */
#define REDUCTION_MARGIN 1.5

static uint32_t clamp(double value, uint32_t low, uint32_t high)
{
    return value < low ? low : value > high ? high : (uint32_t)value;
}

/* The whole image, cut down to an aspect that is allowed: for images where no try fits. */
static void central_crop(const struct dl2_crop_config *config, uint32_t width, uint32_t height,
                         struct dl2_crop *crop)
{
    const double aspect = (double)width / height;
    crop->width = width;
    crop->height = height;
    if (aspect < config->aspect_min)
        crop->height = clamp(rint(width / config->aspect_min), 1, height);
    else if (aspect > config->aspect_max)
        crop->width = clamp(rint(height * config->aspect_max), 1, width);
    crop->x = (width - crop->width) / 2;
    crop->y = (height - crop->height) / 2;
}

void dl2_crop_for_training(const struct dl2_crop_config *config, struct dl2_random *random,
                           uint32_t width, uint32_t height, struct dl2_crop *crop)
{
    /* First, so that it doesn't depend on how many tries the crop takes. */
    crop->flip = dl2_random_uniform(random) < 0.5 && config->flip;
    const double area = (double)width * height;
    const double log_min = log(config->aspect_min), log_max = log(config->aspect_max);
    bool found = false;
    for (int i = 0; i < 10 && !found; i++) {
        const double part =
            config->area_min + (config->area_max - config->area_min) * dl2_random_uniform(random);
        const double aspect = exp(log_min + (log_max - log_min) * dl2_random_uniform(random));
        const double w = rint(sqrt(area * part * aspect)), h = rint(sqrt(area * part / aspect));
        if (w >= 1 && h >= 1 && w <= width && h <= height) {
            crop->width = (uint32_t)w;
            crop->height = (uint32_t)h;
            crop->x = dl2_random_below(random, width - crop->width + 1);
            crop->y = dl2_random_below(random, height - crop->height + 1);
            found = true;
        }
    }
    if (!found)
        central_crop(config, width, height, crop);
    crop->box = (struct dl2_box){0, 0, crop->width, crop->height};
}

/*
 * Along one axis of `size` pixels, which becomes `resized`: the middle `shown` of those. Python
 * rounds halves to even, and so does rint().
 */
static void central_axis(uint32_t size, uint32_t resized, uint32_t shown, uint32_t *first,
                         uint32_t *length, double *start, double *end)
{
    const double scale = (double)size / resized;
    const double offset = rint((resized - shown) / 2.0);
    const double from = offset * scale, to = (offset + shown) * scale;
    /*
     * Half the filter and one sample that is cut in two, of chroma at half of the coarsest size
     * that dl2_crop_reduction() lets pass.
     */
    const double reach = 4 * (scale < 1 ? 1 : scale);
    *first = clamp(floor(from - reach), 0, size - 1);
    const uint32_t last = clamp(ceil(to + reach), 1, size);
    *length = last - *first;
    *start = from - *first;
    *end = (to > size ? size : to) - *first;
}

void dl2_crop_for_validation(const struct dl2_crop_config *config, uint32_t width, uint32_t height,
                             struct dl2_crop *crop)
{
    const uint32_t side = config->resize;
    const uint64_t longer =
        (uint64_t)side * (width > height ? width : height) / (width > height ? height : width);
    const uint32_t limited = longer > UINT32_MAX ? UINT32_MAX : (uint32_t)longer;
    crop->flip = false;
    central_axis(width, width > height ? limited : side, config->image_size, &crop->x, &crop->width,
                 &crop->box.left, &crop->box.right);
    central_axis(height, width > height ? side : limited, config->image_size, &crop->y,
                 &crop->height, &crop->box.top, &crop->box.bottom);
}

uint32_t dl2_crop_reduction(const struct dl2_crop *crop, unsigned image_size)
{
    const double width = crop->box.right - crop->box.left,
                 height = crop->box.bottom - crop->box.top;
    const double shorter = width < height ? width : height;
    uint32_t reduction = 1;
    while (reduction < 8 && shorter / (2 * reduction) >= REDUCTION_MARGIN * image_size)
        reduction *= 2;
    return reduction;
}

int dl2_crop_resize(struct dl2_resizer *resizer, const struct dl2_raster *raster,
                    const struct dl2_crop *crop, struct dl2_resize_output out,
                    struct dl2_error *error)
{
    const struct dl2_box limit = {crop->x, crop->y, crop->x + (double)crop->width,
                                  crop->y + (double)crop->height};
    const struct dl2_box box = {limit.left + crop->box.left, limit.top + crop->box.top,
                                limit.left + crop->box.right, limit.top + crop->box.bottom};
    out.flip = crop->flip;
    return dl2_resize_raster(resizer, raster, &limit, &box, &out, error);
}
