#include "loader/transform.h"

#include <math.h>

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
    const double reach = (scale < 1 ? 1 : scale) + 1;
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

int dl2_transform(struct dl2_resizer *resizer, const struct dl2_image *image,
                  const struct dl2_view *view, const struct dl2_loader_config *config, uint8_t *out,
                  struct dl2_error *error)
{
    const struct dl2_pixels pixels = {
        .data = image->data + view->y * image->stride + (size_t)view->x * image->channels,
        .width = view->width,
        .height = view->height,
        .channels = image->channels,
        .stride = image->stride,
    };
    return dl2_resize(resizer, &pixels, &view->box, view->flip, config->image_size,
                      config->image_size, config->channels, out, error);
}
