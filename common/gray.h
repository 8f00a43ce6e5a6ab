/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Images of one channel with 8 to 16 bits a sample, whose samples are plain numbers from 0 to
 * 2^bits - 1. This is the interface between code that encodes and decodes them (codec/) and code
 * that stores volumes as slices (volumes/volume_slices.h).
 */
#ifndef DL2_COMMON_GRAY_H
#define DL2_COMMON_GRAY_H

#include "common/error.h"

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

enum { DL2_GRAY_MIN_BITS = 8, DL2_GRAY_MAX_BITS = 16 };

/* An image; its samples are someone else's. */
struct dl2_gray {
    const uint16_t *samples; /* [height][width] */
    uint32_t width, height;
    unsigned bits;
};

/* A rectangle of an encoded image of which the rest is known. */
struct dl2_gray_part {
    uint32_t width, height; /* of the image */
    unsigned bits;
    uint32_t x, y, columns, rows; /* within it, not empty */
};

/*
 * Decodes the part into out[rows][columns]. DL2_ERR_FORMAT for files that are damaged or have
 * another size or other bits, DL2_ERR_UNSUPPORTED for those of no codec that can. Messages name no
 * file. Any number of threads at once.
 */
typedef int (*dl2_gray_decoder)(const uint8_t *data, size_t size, const struct dl2_gray_part *part,
                                uint16_t *out, struct dl2_error *error);

#ifdef __cplusplus
}
#endif

#endif
