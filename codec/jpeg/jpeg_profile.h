/* SPDX-License-Identifier: BSD-2-Clause */
/* ICC profiles in JPEG: APP2 segments, each with a part and its number (ICC.1, annex B.4). */
#ifndef DL2_CODEC_JPEG_JPEG_PROFILE_H
#define DL2_CODEC_JPEG_JPEG_PROFILE_H

#include "codec/colour.h"

/* As in struct dl2_codec. */
int dl2_jpeg_colour(const uint8_t *data, size_t size, struct dl2_colour *colour,
                    struct dl2_error *error);

/* Puts a profile of 1 byte to 16 MB into a file that an encoder wrote, behind its JFIF marker, as
 * libjpeg does. */
int dl2_jpeg_put_profile(struct dl2_bytes *file, const struct dl2_bytes *profile,
                         struct dl2_error *error);

#endif
