/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Butteraugli by JPEG XL's library, which has it up to version 0.8. In this room because the
 * library's headers are; quality/butteraugli.c makes metrics of it.
 */
#ifndef DL2_CODEC_BUTTERAUGLI_H
#define DL2_CODEC_BUTTERAUGLI_H

#include "common/error.h"
#include "pixels/image.h"

/* What butteraugli_main, the tool of the library's authors, judges images by: the luminance of
 * white in candela per square metre, and how much lost high frequencies weigh beside those that are
 * made up. The library's own usual values are others. */
#define DL2_BUTTERAUGLI_INTENSITY    80
#define DL2_BUTTERAUGLI_HF_ASYMMETRY 0.8

struct dl2_butteraugli {
    double max;    /* the largest distance of a pixel */
    double norm_3; /* mean of the 3-, 6- and 12-norm of the distances */
};

/* Compares two images of one size, of 1 or 3 channels each, as sRGB. Threads: any. Fails with
 * DL2_ERR_MEMORY, and with DL2_ERR_UNSUPPORTED where the library refuses. */
int dl2_butteraugli_compare(const struct dl2_image *reference, const struct dl2_image *variant,
                            struct dl2_butteraugli *out, struct dl2_error *error);

#endif
