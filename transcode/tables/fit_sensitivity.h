/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What a coefficient of a JPEG is worth to those who see random crops of its image, resized to an
 * input of fixed size (loader/loader.h): the mean square of what a unit of it changes there.
 *
 * A block's coefficient (u, v) is a product of two cosines, and a resize is separable, so that the
 * coefficient appears in the input as the product of two rows of numbers: the cosines, resized.
 * With A(d) the sums of products of such a row with itself, shifted by d pixels, and C the
 * covariance of what depends on the input, the mean square is
 *
 *     S(u, v) = sum over shifts (dx, dy) of C(dx, dy) * A_u(dx) * A_v(dy)
 *
 * averaged over crops, and over all blocks of an image, also those outside the crop. C is that of a
 * network's loss (dl2-train --sensitivity), taken as the same all over the input; or that of white
 * noise, where only the pipeline counts: each pixel of the input is worth the same.
 */
#ifndef DL2_TRANSCODE_FIT_SENSITIVITY_H
#define DL2_TRANSCODE_FIT_SENSITIVITY_H

#include "common/error.h"
#include "pixels/crop.h"

#include <jansson.h>

enum { DL2_FIT_LAGS = 16, DL2_FIT_PLANES = 3 };

/* The input: its size, and the covariance for Y, Cb and Cr: [dy][dx], where each has what all
 * shifts by +-dx and +-dy have together. */
struct dl2_fit_input {
    unsigned height, width;
    double covariance[DL2_FIT_PLANES][DL2_FIT_LAGS + 1][DL2_FIT_LAGS + 1];
    json_t *about; /* a new reference, for the record */
};

/* White noise in RGB. */
void dl2_fit_input_white(unsigned height, unsigned width, struct dl2_fit_input *out);
/* A network's, from its file; a network of gray images has no chroma. DL2_ERR_FORMAT. */
int dl2_fit_input_load(const char *path, struct dl2_fit_input *out, struct dl2_error *error);

/* Sums over crops; zeroed at first. Natural order: coefficient 8 * v + u. */
struct dl2_fit_sensitivity {
    double sums[DL2_FIT_PLANES][64];
    uint64_t crops;
};

/* Adds a crop of an image of width x height pixels whose chroma has a sample for `across` times
 * `down` pixels. */
int dl2_fit_sensitivity_add(struct dl2_fit_sensitivity *sensitivity,
                            const struct dl2_fit_input *input, const struct dl2_crop *crop,
                            uint32_t width, uint32_t height, unsigned across, unsigned down,
                            struct dl2_error *error);

#endif
