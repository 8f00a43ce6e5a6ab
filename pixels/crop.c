/* SPDX-License-Identifier: BSD-2-Clause */
#include "pixels/crop.h"

#include <math.h>
#include <string.h>

/* See dl2_crop_reduction() in crop.h. */
#define REDUCTION_MARGIN 1.5

static uint32_t clamp(double value, uint32_t low, uint32_t high)
{
    return value < low ? low : value > high ? high : (uint32_t)value;
}

unsigned dl2_crop_usual_resize(unsigned shorter)
{
    return (unsigned)(((uint64_t)shorter * 256 + 112) / 224);
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
static void central_axis(uint32_t size, uint32_t resized, uint32_t shown, double filter,
                         uint32_t *first, uint32_t *length, double *start, double *end)
{
    const double scale = (double)size / resized;
    const double offset = rint((resized - shown) / 2.0);
    const double from = offset * scale, to = (offset + shown) * scale;
    /*
     * Half the filter and one sample that is cut in two, of chroma at half of the coarsest size
     * that dl2_crop_reduction() lets pass.
     */
    const double reach = (2 * filter + 2) * (scale < 1 ? 1 : scale);
    *first = clamp(floor(from - reach), 0, size - 1);
    const uint32_t last = clamp(ceil(to + reach), 1, size);
    *length = last - *first;
    *start = from - *first;
    *end = (to > size ? size : to) - *first;
}

/* size * numerator / denominator, rounded down as torchvision's Resize does. */
static uint32_t scaled(uint32_t size, uint32_t numerator, uint32_t denominator)
{
    const uint64_t result = (uint64_t)size * numerator / denominator;
    return result > UINT32_MAX ? UINT32_MAX : (uint32_t)result;
}

/* The same, rounded to the nearest: a side of the output whose shorter one becomes `resize`. */
static uint32_t enlarged(uint32_t side, uint32_t resize, uint32_t shorter)
{
    const uint64_t result = ((uint64_t)side * resize + shorter / 2) / shorter;
    return result > UINT32_MAX ? UINT32_MAX : (uint32_t)result;
}

void dl2_crop_for_validation(const struct dl2_crop_config *config, uint32_t width, uint32_t height,
                             struct dl2_crop *crop)
{
    if (config->squash) {
        *crop = (struct dl2_crop){.width = width, .height = height, .box = {0, 0, width, height}};
        return;
    }
    crop->flip = false;
    const double reach = dl2_interpolation_reach(config->interpolation);
    const unsigned shorter = config->height < config->width ? config->height : config->width;
    /* The output, enlarged: what the image is to cover. */
    const uint32_t across = enlarged(config->width, config->resize, shorter);
    const uint32_t down = enlarged(config->height, config->resize, shorter);
    /* One side of the image gets just this length, the other this much or more. */
    const bool is_wide = (uint64_t)down * width > (uint64_t)across * height;
    const uint32_t resized_width = is_wide ? scaled(width, down, height) : across;
    const uint32_t resized_height = is_wide ? down : scaled(height, across, width);
    central_axis(width, resized_width, config->width, reach, &crop->x, &crop->width,
                 &crop->box.left, &crop->box.right);
    central_axis(height, resized_height, config->height, reach, &crop->y, &crop->height,
                 &crop->box.top, &crop->box.bottom);
}

uint32_t dl2_crop_reduction(const struct dl2_crop *crop, unsigned height, unsigned width)
{
    const double across = crop->box.right - crop->box.left, down = crop->box.bottom - crop->box.top;
    uint32_t reduction = 1;
    while (reduction < 8 && across / (2 * reduction) >= REDUCTION_MARGIN * width &&
           down / (2 * reduction) >= REDUCTION_MARGIN * height)
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

/* The sample nearest to the middle of output `i` of `count`, among `size` that begin at `origin`.
 */
static uint32_t nearest(double start, double end, uint32_t i, uint32_t count, int64_t origin,
                        uint32_t size)
{
    return clamp(floor(start + (i + 0.5) * ((end - start) / count)) - (double)origin, 0, size - 1);
}

int dl2_crop_nearest(const struct dl2_raster *raster, const struct dl2_box *box, bool flip,
                     struct dl2_pixels *out, uint32_t *columns, struct dl2_error *error)
{
    const struct dl2_plane *plane = &raster->planes[0];
    if (raster->color != DL2_COLOR_GRAY || plane->step_x != 1 || plane->step_y != 1 ||
        out->channels != 1)
        return dl2_error_set(error, DL2_ERR_ARGUMENT, "it is not gray at full resolution");
    if (box->left < (double)plane->x || box->top < (double)plane->y ||
        box->right > (double)plane->x + plane->width ||
        box->bottom > (double)plane->y + plane->height || !(box->left < box->right) ||
        !(box->top < box->bottom))
        return dl2_error_set(error, DL2_ERR_ARGUMENT, "the box does not lie within the image");
    for (uint32_t x = 0; x < out->width; x++)
        columns[flip ? out->width - 1 - x : x] =
            nearest(box->left, box->right, x, out->width, plane->x, plane->width);
    uint32_t before = UINT32_MAX;
    for (uint32_t y = 0; y < out->height; y++) {
        const uint32_t row =
            nearest(box->top, box->bottom, y, out->height, plane->y, plane->height);
        const uint8_t *from = plane->data + row * plane->stride;
        uint8_t *to = out->data + (size_t)y * out->width;
        if (row == before)
            memcpy(to, to - out->width, out->width);
        else
            for (uint32_t x = 0; x < out->width; x++)
                to[x] = from[columns[x]];
        before = row;
    }
    return DL2_OK;
}
