/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What lies around the entropy-coded data of a baseline JPEG of one scan, and where its restart
 * markers are (ITU-T T.81, annex B), for code that cuts such files without decoding them.
 */
#ifndef DL2_CODEC_JPEG_JPEG_HEADER_H
#define DL2_CODEC_JPEG_JPEG_HEADER_H

#include "common/error.h"
#include "common/memory.h"

#include <stddef.h>
#include <stdint.h>

enum dl2_jpeg_code {
    DL2_JPEG_SOF0 = 0xc0,
    DL2_JPEG_DHT = 0xc4,
    DL2_JPEG_RST0 = 0xd0,
    DL2_JPEG_SOI = 0xd8,
    DL2_JPEG_EOI,
    DL2_JPEG_SOS,
    DL2_JPEG_DQT,
    DL2_JPEG_DRI = 0xdd,
    DL2_JPEG_APP0 = 0xe0,
};

/* A marker that has a length, with its segment's body. */
struct dl2_jpeg_marker {
    size_t at, end;
    unsigned code;
    const uint8_t *body;
    size_t size; /* of the body */
};

/* The marker that begins at marker->end; false where none lies within `size`, and at the end of the
 * image. A file's first one begins at 2. */
bool dl2_jpeg_next_marker(struct dl2_jpeg_marker *marker, const uint8_t *data, size_t size);

/* Where the code of the next marker in entropy-coded data is, from `at` on; `size`: nowhere. */
size_t dl2_jpeg_find_marker(const uint8_t *data, size_t at, size_t size);

struct dl2_jpeg_header {
    size_t scan;                    /* where entropy-coded data begin */
    size_t sof, sos;                /* of the segments' markers */
    uint32_t width, height;         /* pixels */
    uint32_t mcu_width, mcu_height; /* pixels */
    uint32_t mcus_x, mcus_y;
    uint32_t components;
    uint32_t interval;       /* MCUs, 0: none */
    bool jfif, adobe;        /* are there such segments, by libjpeg's rules? */
    uint8_t adobe_transform; /* 0: none, so RGB or CMYK */
};

/* Up to the entropy-coded data of a baseline file's one scan; false for anything else. */
bool dl2_jpeg_header_read(struct dl2_jpeg_header *header, const uint8_t *data, size_t size);

/* The same header of an image of another size, both above 0. */
void dl2_jpeg_header_resize(struct dl2_jpeg_header *header, uint32_t width, uint32_t height);

/* Segments that the restart interval, which there is, makes of the image. */
uint64_t dl2_jpeg_segment_count(const struct dl2_jpeg_header *header);

/* Makes room with some to spare, so that a run of images soon needs no more. */
int dl2_jpeg_reserve(struct dl2_bytes *bytes, size_t size, struct dl2_error *error);

/*
 * Where each of the dl2_jpeg_segment_count() segments begins (size_t), and one more: where the one
 * behind the last would. A segment's marker, two bytes, is the end of what comes before the next
 * one. 1: found; 0: not what the header says.
 */
int dl2_jpeg_find_segments(struct dl2_bytes *out, const struct dl2_jpeg_header *header,
                           const uint8_t *data, size_t size, struct dl2_error *error);

/*
 * What decoding needs of a header (tables, the frame with a size of its own, color spaces; one
 * restart interval), to `out`, which has room for header->scan + 6 bytes; the end of it.
 */
uint8_t *dl2_jpeg_header_write(const struct dl2_jpeg_header *header, const uint8_t *data,
                               uint32_t width, uint32_t height, uint8_t *out);

#endif
