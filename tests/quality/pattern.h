/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Images by whole-number arithmetic, so that make_golden.py can make the same ones: a slope,
 * squares, and noise from a hash of the position. The variant has other noise, of amplitude
 * `strength`, and is brighter by `shift`.
 */
#ifndef DL2_TESTS_PATTERN_H
#define DL2_TESTS_PATTERN_H

#include "pixels/image.h"

static inline uint32_t pattern_hash(uint32_t x, uint32_t y, uint32_t c, uint32_t seed)
{
    uint32_t h = x * 374761393u + y * 668265263u + c * 2246822519u + seed * 3266489917u;
    h = (h ^ (h >> 13)) * 1274126177u;
    return h ^ (h >> 16);
}

static inline void pattern_fill(struct dl2_image *image, uint32_t strength, int shift)
{
    for (uint32_t y = 0; y < image->height; y++)
        for (uint32_t x = 0; x < image->width; x++)
            for (uint32_t c = 0; c < image->channels; c++) {
                int v = (int)((3 * x + 2 * y + 40 * c) % 200) + ((x / 9 + y / 7) % 2 ? 45 : 0);
                v += (int)(pattern_hash(x, y, c, 1) % 16);
                if (strength)
                    v += shift + (int)(pattern_hash(x, y, c, 2) % (2 * strength + 1)) -
                         (int)strength;
                image->data[y * image->stride + x * image->channels + c] = (uint8_t)(v < 0     ? 0
                                                                                     : v > 255 ? 255
                                                                                               : v);
            }
}

#endif
