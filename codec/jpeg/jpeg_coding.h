/* SPDX-License-Identifier: BSD-2-Clause */
/* How a JPEG was encoded: quality, chroma subsampling, progressive or not, from its headers; and
 * how much of it is not headers. */
#ifndef DL2_CODEC_JPEG_JPEG_CODING_H
#define DL2_CODEC_JPEG_JPEG_CODING_H

#include "codec/codec.h"

/*
 * As struct dl2_codec's coding(). The quality is the one, 1 to 100, whose quantization tables in
 * libjpeg (T.81, annex K.1, scaled) have the smallest sum of differences to the file's. Other
 * encoders have tables of their own; the nearest quality says how coarse they are.
 */
bool dl2_jpeg_coding(const uint8_t *data, size_t size, struct dl2_coding *coding);

/* As struct dl2_codec's coded_bytes(): entropy-coded data, without restart markers. */
size_t dl2_jpeg_coded_bytes(const uint8_t *data, size_t size);

#endif
