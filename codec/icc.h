/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The parts of an ICC profile (ICC.1) that can be told without a color engine: for how many
 * channels it is, its name, and whether it is sRGB, or a gamma with primaries. Profiles come from
 * files: any bytes are safe.
 */
#ifndef DL2_CODEC_ICC_H
#define DL2_CODEC_ICC_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct dl2_icc {
    uint32_t channels; /* 1 gray, 3 RGB, 4 CMYK, 0 another color space */
    char name[72];     /* UTF-8, its description; "a profile without a name" */
    /* A matrix (of RGB) and a curve that all channels have, and no table of colors? Then: */
    bool matrix;
    double columns[9]; /* XYZ under D50 of red, green, blue; gray: unset */
    float light[256];  /* the curve at v / 255 */
    double gamma;      /* where the curve is value ^ gamma to within a level of 8 bits, else 0 */
    bool srgb_curve;   /* likewise: is it sRGB's? */
    bool bt709_curve;  /* likewise: is it that of BT.709? */
    bool srgb;         /* the whole profile means sRGB, or gray with sRGB's curve */
};

/* False where the bytes are no whole profile. */
bool dl2_icc_read(struct dl2_icc *icc, const uint8_t *data, size_t size);

#endif
