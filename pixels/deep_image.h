/* SPDX-License-Identifier: BSD-2-Clause */
/* An image of 16 bits a sample, for comparing files of more than 8. Whatever depth a file has,
 * 65535 is its white. */
#ifndef DL2_PIXELS_DEEP_IMAGE_H
#define DL2_PIXELS_DEEP_IMAGE_H

#include "common/memory.h"
#include "pixels/image.h"

/* Zeroed, it is empty. */
struct dl2_deep_image {
    struct dl2_bytes bytes; /* height rows of width * channels uint16_t, interleaved, no padding */
    uint32_t width, height;
    uint32_t channels; /* 1 or 3; 2 or 4 while an opacity stands behind them */
};

static inline uint16_t *dl2_deep_row(const struct dl2_deep_image *image, uint32_t y)
{
    return (uint16_t *)(void *)image->bytes.data + (size_t)y * image->width * image->channels;
}

/* The errors of dl2_image_reshape(). */
int dl2_deep_reshape(struct dl2_deep_image *deep, uint32_t width, uint32_t height,
                     uint32_t channels, struct dl2_error *error);

/* As dl2_image_orient(). */
int dl2_deep_orient(struct dl2_deep_image *deep, int orientation, struct dl2_error *error);

/* `deep` becomes the image: 257 times its samples. */
int dl2_deep_of_image(struct dl2_deep_image *deep, const struct dl2_image *image,
                      struct dl2_error *error);

/* Are all samples equal, gray standing for R = G = B? Sizes must match. */
bool dl2_deep_equal(const struct dl2_deep_image *a, const struct dl2_deep_image *b);

/* A sample of `maximum` levels above black, 1 to 2^31 - 1, as one of 65535; rounded. */
static inline uint16_t dl2_deep_sample(uint64_t value, uint64_t maximum)
{
    return (uint16_t)((value * UINT16_MAX + maximum / 2) / maximum);
}

#endif
