/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Operations on the pixels of an image: uint8, channels interleaved (one or three), rows without
 * padding. Each does what torchvision's function of transforms.functional does to a Pillow image,
 * with nearest-neighbor sampling for the geometric ones. The results are the same bytes as those
 * of torchvision 0.14 with Pillow 9.4 (tests/pixels/gen_operations.py), but for
 * dl2_pixels_blur(), which differs by at most 1. An image of one channel stays as it is under
 * operations on color.
 *
 * No operation allocates memory or fails. Threads: one at a time for each struct dl2_pixels.
 */
#ifndef DL2_PIXELS_OPERATIONS_H
#define DL2_PIXELS_OPERATIONS_H

#include "common/error.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct dl2_pixels {
    uint8_t *data;  /* height x width x channels, and some padding */
    uint8_t *spare; /* as large: operations may swap the two */
    uint16_t *line; /* a row with a margin on both sides */
    uint32_t width, height, channels;
    /* A mask, of one channel: operations that move pixels move it alike, with mask_fill for what
     * comes from outside; all others leave it as it is. */
    bool is_mask;
    uint8_t mask_fill;
    const struct dl2_operation_kernels *kernels;
};

/* Allocates an image; its contents are undefined. Free it in either case. */
int dl2_pixels_init(struct dl2_pixels *pixels, uint32_t width, uint32_t height, uint32_t channels,
                    struct dl2_error *error);
void dl2_pixels_free(struct dl2_pixels *pixels);
/* Bytes that it holds. */
size_t dl2_pixels_memory(const struct dl2_pixels *pixels);

/*
 * Blends with black, with the mean gray level, with the gray image, or with the image blurred by a
 * 3 x 3 filter. Factor 1 changes nothing, 0 gives what is blended with, more than 1 the opposite.
 */
void dl2_pixels_brightness(struct dl2_pixels *pixels, float factor);
void dl2_pixels_contrast(struct dl2_pixels *pixels, float factor);
void dl2_pixels_saturation(struct dl2_pixels *pixels, float factor);
void dl2_pixels_sharpness(struct dl2_pixels *pixels, float factor);

/* Turns the hue by a part of the circle, -0.5 to 0.5. */
void dl2_pixels_hue(struct dl2_pixels *pixels, double part);

void dl2_pixels_grayscale(struct dl2_pixels *pixels); /* the channels stay three, equal */
void dl2_pixels_invert(struct dl2_pixels *pixels);
void dl2_pixels_solarize(struct dl2_pixels *pixels, double threshold); /* inverts from there on */
void dl2_pixels_posterize(struct dl2_pixels *pixels, unsigned bits);   /* keeps the high bits */

/* Each channel by itself: its values stretched to 0 to 255; its histogram made flat. */
void dl2_pixels_autocontrast(struct dl2_pixels *pixels);
void dl2_pixels_equalize(struct dl2_pixels *pixels);

enum { DL2_BLUR_MAX = 255 }; /* the largest side of a kernel */

/* A Gaussian of standard deviation `sigma` in a kernel of an odd side; edges are mirrored. */
void dl2_pixels_blur(struct dl2_pixels *pixels, unsigned side, double sigma);

void dl2_pixels_flip_down(struct dl2_pixels *pixels); /* top to bottom */

/* Sets a rectangle within the image to one gray level. */
void dl2_pixels_erase(struct dl2_pixels *pixels, uint32_t x, uint32_t y, uint32_t width,
                      uint32_t height, uint8_t fill);

/*
 * From a position in the output to one in the input, in pixels from the top left corner:
 * x' = m[0] x + m[1] y + m[2], y' = m[3] x + m[4] y + m[5]. Positions outside are filled.
 */
struct dl2_affine {
    double m[6];
};

void dl2_pixels_affine(struct dl2_pixels *pixels, const struct dl2_affine *affine, uint8_t fill);

/* Turns counterclockwise about the middle. */
struct dl2_affine dl2_affine_rotation(const struct dl2_pixels *pixels, double degrees);
/* Shears by tangents, with the position (x, y) staying where it is. */
struct dl2_affine dl2_affine_shear(double across, double down, double x, double y);
/* Moves right and down. */
struct dl2_affine dl2_affine_translation(double right, double down);

#endif
