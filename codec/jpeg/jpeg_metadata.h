/* SPDX-License-Identifier: BSD-2-Clause */
/* EXIF and XMP in JPEG: segments APP1 (CIPA DC-008, 4.5.4; ISO 16684-3, 1.1.3). ICC profiles: APP2
 * segments, each with a part and its number (ICC.1, annex B.4). */
#ifndef DL2_CODEC_JPEG_JPEG_METADATA_H
#define DL2_CODEC_JPEG_JPEG_METADATA_H

#include "codec/color.h"
#include "codec/metadata.h"

/* As in struct dl2_codec. */
int dl2_jpeg_metadata(const uint8_t *data, size_t size, struct dl2_metadata *metadata,
                      struct dl2_error *error);
/* Has the header an index of several pictures (MPF), such as a gain map or the other eye's? */
bool dl2_jpeg_has_more(const uint8_t *data, size_t size);
int dl2_jpeg_color(const uint8_t *data, size_t size, struct dl2_color_space *color,
                   struct dl2_error *error);
enum { DL2_JPEG_METADATA_BYTES = 65535 - 2 - 29 }; /* one segment, less what XMP begins with */

/* Puts blocks of no more bytes into a file that an encoder wrote, behind its JFIF marker. */
int dl2_jpeg_put_metadata(struct dl2_bytes *file, const struct dl2_metadata *metadata,
                          struct dl2_error *error);

/* The same of a profile of 1 byte to 16 MB, as libjpeg does. */
int dl2_jpeg_put_profile(struct dl2_bytes *file, const struct dl2_bytes *profile,
                         struct dl2_error *error);

#endif
