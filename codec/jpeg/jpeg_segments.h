/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The entropy-coded segments (ITU-T T.81, B.1.1.5) under a rectangle of MCUs: found by their
 * restart markers and copied without stuffed bytes. A file without restart intervals is one
 * segment.
 *
 *     file:   ... segment 6 | RST6 | segment 7 | RST7 | segment 8 | RST0 | ...
 *                                    needed             needed
 *     copy:   segment 7 | segment 8 | DL2_JPEG_SLACK zeros
 */
#ifndef DL2_CODEC_JPEG_JPEG_SEGMENTS_H
#define DL2_CODEC_JPEG_JPEG_SEGMENTS_H

#include "codec/jpeg/jpeg_frame.h"
#include "common/memory.h"

#include <stdbool.h>

/* Bytes behind the last segment that a reader may look at; they are 0. */
enum { DL2_JPEG_SLACK = 16384 };

struct dl2_jpeg_segment {
    const uint8_t *data;
    size_t size;
    uint32_t mcu;   /* its first, counted in the image from left to right and top to bottom */
    uint32_t count; /* MCUs up to the last one that is needed */
    bool ends;      /* that is its last one, so the bits must end there, too */
    bool marked;    /* a marker follows the data, and it is the right one */
};

/* Memory is reused from image to image. Zeroed, it is ready for use. */
struct dl2_jpeg_segments {
    struct dl2_bytes data; /* the copy */
    struct dl2_bytes list; /* struct dl2_jpeg_segment [count] */
    size_t count;
};

/*
 * 1: found, in the order of the file. 0: the markers are not what the headers say, up to the last
 * segment that is needed; what follows isn't looked at. Negative: out of memory.
 */
int dl2_jpeg_segments_find(struct dl2_jpeg_segments *segments, const struct dl2_jpeg_frame *frame,
                           const struct dl2_jpeg_cover *cover, struct dl2_error *error);

void dl2_jpeg_segments_free(struct dl2_jpeg_segments *segments);

#endif
