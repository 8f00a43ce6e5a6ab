#include "loader/transform.h"

#include <math.h>
#include <string.h>

/* See dl2_view_reduction() in transform.h. */
#define REDUCTION_MARGIN 1.5

static uint32_t clamp(double value, uint32_t low, uint32_t high)
{
    return value < low ? low : value > high ? high : (uint32_t)value;
}

/* The whole image, cut down to an aspect that is allowed: for images where no try fits. */
static void central_crop(const struct dl2_loader_config *config, uint32_t width, uint32_t height,
                         struct dl2_view *view)
{
    const double aspect = (double)width / height;
    view->width = width;
    view->height = height;
    if (aspect < config->aspect_min)
        view->height = clamp(rint(width / config->aspect_min), 1, height);
    else if (aspect > config->aspect_max)
        view->width = clamp(rint(height * config->aspect_max), 1, width);
    view->x = (width - view->width) / 2;
    view->y = (height - view->height) / 2;
}

void dl2_view_for_training(const struct dl2_loader_config *config, struct dl2_random *random,
                           uint32_t width, uint32_t height, struct dl2_view *view)
{
    /* First, so that it doesn't depend on how many tries the crop takes. */
    view->flip = dl2_random_uniform(random) < 0.5 && config->flip;
    const double area = (double)width * height;
    const double log_min = log(config->aspect_min), log_max = log(config->aspect_max);
    bool found = false;
    for (int i = 0; i < 10 && !found; i++) {
        const double part =
            config->area_min + (config->area_max - config->area_min) * dl2_random_uniform(random);
        const double aspect = exp(log_min + (log_max - log_min) * dl2_random_uniform(random));
        const double w = rint(sqrt(area * part * aspect)), h = rint(sqrt(area * part / aspect));
        if (w >= 1 && h >= 1 && w <= width && h <= height) {
            view->width = (uint32_t)w;
            view->height = (uint32_t)h;
            view->x = dl2_random_below(random, width - view->width + 1);
            view->y = dl2_random_below(random, height - view->height + 1);
            found = true;
        }
    }
    if (!found)
        central_crop(config, width, height, view);
    view->box = (struct dl2_box){0, 0, view->width, view->height};
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
     * that dl2_view_reduction() lets pass.
     */
    const double reach = 4 * (scale < 1 ? 1 : scale);
    *first = clamp(floor(from - reach), 0, size - 1);
    const uint32_t last = clamp(ceil(to + reach), 1, size);
    *length = last - *first;
    *start = from - *first;
    *end = (to > size ? size : to) - *first;
}

void dl2_view_for_validation(const struct dl2_loader_config *config, uint32_t width,
                             uint32_t height, struct dl2_view *view)
{
    const uint32_t side = config->resize;
    const uint64_t longer =
        (uint64_t)side * (width > height ? width : height) / (width > height ? height : width);
    const uint32_t limited = longer > UINT32_MAX ? UINT32_MAX : (uint32_t)longer;
    view->flip = false;
    central_axis(width, width > height ? limited : side, config->image_size, &view->x, &view->width,
                 &view->box.left, &view->box.right);
    central_axis(height, width > height ? side : limited, config->image_size, &view->y,
                 &view->height, &view->box.top, &view->box.bottom);
}

uint32_t dl2_view_reduction(const struct dl2_view *view, const struct dl2_loader_config *config)
{
    const double width = view->box.right - view->box.left,
                 height = view->box.bottom - view->box.top;
    const double shorter = width < height ? width : height;
    uint32_t reduction = 1;
    while (reduction < 8 && shorter / (2 * reduction) >= REDUCTION_MARGIN * config->image_size)
        reduction *= 2;
    return reduction;
}

struct dl2_resize_output dl2_transform_output(const struct dl2_loader_config *config, void *out)
{
    struct dl2_resize_output output = {
        .data = out,
        .width = config->image_size,
        .height = config->image_size,
        .channels = config->channels,
        .dtype = config->dtype,
        .layout = config->layout,
    };
    memcpy(output.mean, config->mean, sizeof output.mean);
    memcpy(output.std, config->std, sizeof output.std);
    return output;
}

int dl2_transform(struct dl2_resizer *resizer, const struct dl2_raster *raster,
                  const struct dl2_view *view, const struct dl2_loader_config *config, void *out,
                  struct dl2_error *error)
{
    const struct dl2_box limit = {view->x, view->y, view->x + (double)view->width,
                                  view->y + (double)view->height};
    const struct dl2_box box = {limit.left + view->box.left, limit.top + view->box.top,
                                limit.left + view->box.right, limit.top + view->box.bottom};
    struct dl2_resize_output output = dl2_transform_output(config, out);
    output.flip = view->flip;
    return dl2_resize_raster(resizer, raster, &limit, &box, &output, error);
}
