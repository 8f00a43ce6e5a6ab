/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * JPEG in slices (common/slices.h). A file whose restart intervals make its rows addressable is cut
 * at MCU rows. A reader that knows the header and the cuts needs to read only the rows of its crop.
 * A slice is at least some pages of a disk long; smaller ones save nothing.
 */
#ifndef DL2_CODEC_JPEG_JPEG_SLICES_H
#define DL2_CODEC_JPEG_JPEG_SLICES_H

#include "common/error.h"
#include "common/slices.h"

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/*
 * Pixel rows that a crop needs above and below its own, for chroma upsampling: with them a decoder
 * gives the same pixels from slices as from the whole image, at any reduction.
 */
#define DL2_JPEG_SLICE_MARGIN 32

/*
 * Finds the cuts. 1: done; 0: not a baseline JPEG that has restart intervals to
 * cut at, or too small for it to be of use; negative: out of memory.
 */
int dl2_jpeg_slice(const uint8_t *data, size_t size, struct dl2_slicing *slicing,
                   struct dl2_error *error);

/*
 * Makes a JPEG of slices `range` whose bytes are `data`; its first row is row range.first * rows of
 * the image. Replaces `out`. DL2_ERR_FORMAT where head or bytes are not what slices are made of.
 */
int dl2_jpeg_join_slices(const struct dl2_cuts *cuts, struct dl2_slice_range range,
                         const uint8_t *data, size_t size, struct dl2_bytes *out,
                         struct dl2_error *error);

#ifdef __cplusplus
}
#endif

#endif
