/* SPDX-License-Identifier: BSD-2-Clause */
/* Restart intervals for a JPEG that has none, without decoding its pixels. */
#ifndef DL2_CODEC_JPEG_JPEG_RETILE_H
#define DL2_CODEC_JPEG_JPEG_RETILE_H

#include "common/error.h"
#include "common/memory.h"

#include <stddef.h>
#include <stdint.h>

/*
 * Writes a baseline JPEG of one scan again, with the same coefficients, tables, metadata and
 * pixels, and with the restart intervals of dl2_jpeg_tile_interval() for its own quality, or
 * `quality` if that is not known. Huffman tables that are not libjpeg's standard ones are made anew
 * for the image. A few percent larger. 1: done; 0: the file is of another kind, has restart
 * intervals, is too narrow for any, has more than zeros behind its image (further pictures, a gain
 * map, a video), or is damaged; negative: out of memory.
 */
int dl2_jpeg_retile(const uint8_t *data, size_t size, int quality, struct dl2_bytes *out,
                    struct dl2_error *error);

#endif
