/* SPDX-License-Identifier: BSD-2-Clause */
#include "pixels/deep_image.h"

int dl2_deep_reshape(struct dl2_deep_image *deep, uint32_t width, uint32_t height,
                     uint32_t channels, struct dl2_error *error)
{
    size_t size;
    if (!width || !height || channels < 1 || channels > 4)
        return dl2_error_set(error, DL2_ERR_ARGUMENT, "no image of %ux%u with %u channels",
                             (unsigned)width, (unsigned)height, (unsigned)channels);
    if (!dl2_size_mul(width, (size_t)channels * sizeof(uint16_t), &size) ||
        !dl2_size_mul(size, height, &size))
        return dl2_error_set(error, DL2_ERR_LIMIT, "an image of %ux%u is too large",
                             (unsigned)width, (unsigned)height);
    DL2_TRY(dl2_bytes_resize(&deep->bytes, size, error));
    deep->width = width;
    deep->height = height;
    deep->channels = channels;
    return DL2_OK;
}

int dl2_deep_orient(struct dl2_deep_image *deep, int orientation, struct dl2_error *error)
{
    struct dl2_deep_image turned = {.width = 0};
    if (orientation <= 1 || orientation > 8)
        return DL2_OK;
    const bool transpose = dl2_orientation_transposes(orientation);
    const size_t pixel = deep->channels * sizeof(uint16_t);
    DL2_TRY(dl2_deep_reshape(&turned, transpose ? deep->height : deep->width,
                             transpose ? deep->width : deep->height, deep->channels, error));
    dl2_orient_pixels(deep->bytes.data, deep->width * pixel, deep->width, deep->height, pixel,
                      orientation, turned.bytes.data, turned.width * pixel);
    dl2_bytes_free(&deep->bytes);
    *deep = turned;
    return DL2_OK;
}

int dl2_deep_of_image(struct dl2_deep_image *deep, const struct dl2_image *image,
                      struct dl2_error *error)
{
    DL2_TRY(dl2_deep_reshape(deep, image->width, image->height, image->channels, error));
    for (uint32_t y = 0; y < image->height; y++) {
        const uint8_t *in = image->data + y * image->stride;
        uint16_t *out = dl2_deep_row(deep, y);
        for (size_t i = 0; i < (size_t)image->width * image->channels; i++)
            out[i] = (uint16_t)(257 * in[i]);
    }
    return DL2_OK;
}

bool dl2_deep_equal(const struct dl2_deep_image *a, const struct dl2_deep_image *b)
{
    for (uint32_t y = 0; y < a->height; y++) {
        const uint16_t *one = dl2_deep_row(a, y), *other = dl2_deep_row(b, y);
        for (size_t i = 0; i < (size_t)3 * a->width; i++)
            if (one[a->channels == 1 ? i / 3 : i] != other[b->channels == 1 ? i / 3 : i])
                return false;
    }
    return true;
}
