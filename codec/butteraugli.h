/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Butteraugli by JPEG XL's library, which has it up to version 0.8. In this room because the
 * library's headers are; quality/butteraugli.c makes metrics of it.
 */
#ifndef DL2_CODEC_BUTTERAUGLI_H
#define DL2_CODEC_BUTTERAUGLI_H

#include "common/error.h"
#include "pixels/image.h"

/* Luminance of white that the images are judged at, in candela per square metre: that of
 * butteraugli_main. */
#define DL2_BUTTERAUGLI_INTENSITY 80

struct dl2_butteraugli {
    double max;    /* the largest distance of a pixel */
    double norm_3; /* mean of the 3-, 6- and 12-norm of the distances */
};

/* Compares two images of one size, of 1 or 3 channels each, as sRGB. Threads: any. Fails with
 * DL2_ERR_MEMORY, and with DL2_ERR_UNSUPPORTED where the library refuses. */
int dl2_butteraugli_compare(const struct dl2_image *reference, const struct dl2_image *variant,
                            struct dl2_butteraugli *out, struct dl2_error *error);

#endif
