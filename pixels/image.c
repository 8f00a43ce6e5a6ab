/* SPDX-License-Identifier: BSD-2-Clause */
#include "pixels/image.h"

#include "common/memory.h"
#include "pixels/raster.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

int dl2_image_reshape(struct dl2_image *image, uint32_t width, uint32_t height, uint32_t channels,
                      struct dl2_error *error)
{
    if (!width || !height || (channels != 1 && channels != 3))
        return dl2_error_set(error, DL2_ERR_ARGUMENT,
                             "no image of %" PRIu32 "x%" PRIu32 " with %" PRIu32 " channels", width,
                             height, channels);
    size_t stride, size;
    if (!dl2_size_mul(width, channels, &stride) || !dl2_size_mul(stride, height, &size))
        return dl2_error_set(error, DL2_ERR_LIMIT,
                             "an image of %" PRIu32 "x%" PRIu32 " is too large", width, height);
    if (size > image->capacity) {
        uint8_t *data = dl2_alloc_aligned(size, 1);
        if (!data)
            return dl2_error_memory(error, "an image of %" PRIu32 "x%" PRIu32, width, height);
        free(image->data);
        image->data = data;
        image->capacity = size;
    }
    image->width = width;
    image->height = height;
    image->channels = channels;
    image->stride = stride;
    return DL2_OK;
}

int dl2_image_check_size(uint64_t width, uint64_t height, uint64_t max_pixels,
                         struct dl2_error *error)
{
    if (!width || !height)
        return dl2_error_set(error, DL2_ERR_FORMAT, "an empty image of %" PRIu64 "x%" PRIu64, width,
                             height);
    if (width > UINT32_MAX || height > UINT32_MAX || height > max_pixels / width)
        return dl2_error_set(error, DL2_ERR_LIMIT,
                             "%" PRIu64 "x%" PRIu64 " pixels pass the limit of %" PRIu64, width,
                             height, max_pixels);
    return DL2_OK;
}

/* `pixel` is a constant where this is inlined. */
static inline __attribute__((always_inline)) void orient(const uint8_t *in, size_t stride,
                                                         uint32_t width, uint32_t height,
                                                         const size_t pixel, int orientation,
                                                         uint8_t *out, size_t out_stride)
{
    const bool transpose = dl2_orientation_transposes(orientation);
    const bool flip_x = dl2_orientation_flips_x(orientation);
    const bool flip_y = dl2_orientation_flips_y(orientation);
    for (uint32_t y = 0; y < (transpose ? width : height); y++)
        for (uint32_t x = 0; x < (transpose ? height : width); x++) {
            const uint32_t across = transpose ? y : x, down = transpose ? x : y;
            const size_t from_x = flip_x ? width - 1 - across : across;
            const size_t from_y = flip_y ? height - 1 - down : down;
            memcpy(out + y * out_stride + x * pixel, in + from_y * stride + from_x * pixel, pixel);
        }
}

void dl2_orient_pixels(const uint8_t *in, size_t stride, uint32_t width, uint32_t height,
                       size_t pixel, int orientation, uint8_t *out, size_t out_stride)
{
    if (pixel == 1)
        orient(in, stride, width, height, 1, orientation, out, out_stride);
    else if (pixel == 3)
        orient(in, stride, width, height, 3, orientation, out, out_stride);
    else
        orient(in, stride, width, height, pixel, orientation, out, out_stride);
}

int dl2_image_orient(struct dl2_image *image, int orientation, struct dl2_image *scratch,
                     struct dl2_error *error)
{
    if (orientation <= 1 || orientation > 8)
        return DL2_OK;
    const bool transpose = dl2_orientation_transposes(orientation);
    DL2_TRY(dl2_image_reshape(scratch, transpose ? image->height : image->width,
                              transpose ? image->width : image->height, image->channels, error));
    dl2_orient_pixels(image->data, image->stride, image->width, image->height, image->channels,
                      orientation, scratch->data, scratch->stride);
    struct dl2_image turned = *scratch;
    *scratch = *image;
    *image = turned;
    return DL2_OK;
}

struct dl2_plane dl2_plane_of(const uint8_t *data, size_t stride, uint32_t width, uint32_t height,
                              unsigned shift_x, unsigned shift_y)
{
    const uint32_t step_x = 1u << shift_x, step_y = 1u << shift_y;
    return (struct dl2_plane){.data = data,
                              .stride = stride,
                              .width = width / step_x + (width % step_x != 0),
                              .height = height / step_y + (height % step_y != 0),
                              .step_x = step_x,
                              .step_y = step_y};
}

struct dl2_raster dl2_raster_of(const struct dl2_image *image, uint32_t x, uint32_t y)
{
    struct dl2_plane plane =
        dl2_plane_of(image->data, image->stride, image->width, image->height, 0, 0);
    plane.x = x;
    plane.y = y;
    return (struct dl2_raster){.color = image->channels == 1 ? DL2_COLOR_GRAY : DL2_COLOR_RGB,
                               .planes = {plane}};
}

void dl2_image_free(struct dl2_image *image)
{
    free(image->data);
    *image = (struct dl2_image)DL2_IMAGE_INIT;
}
