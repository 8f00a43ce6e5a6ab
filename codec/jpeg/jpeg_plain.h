/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The JPEG that decoders in hardware know: baseline (SOF0), 8 bits, one scan, gray or YCbCr with
 * chroma of half or full resolution, and complete. All others (progressive, RGB, CMYK, damaged) are
 * for codec/decoder.h.
 */
#ifndef DL2_CODEC_JPEG_JPEG_PLAIN_H
#define DL2_CODEC_JPEG_JPEG_PLAIN_H

#include "codec/codec.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/*
 * Is it one? Looks at the headers, for YCbCr by libjpeg's rules, and at the end, which a file that
 * was cut off lacks. Damage between the two goes unnoticed here.
 */
bool dl2_jpeg_plain_read(struct dl2_coded_frame *frame, const uint8_t *data, size_t size);

#endif
