/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Crop-addressable JPEG: a baseline JPEG whose restart intervals (ITU-T T.81, B.2.4.4 and E.1.4)
 * are a few MCUs long, so that the entropy-coded segments that cover a rectangle can be found by
 * their markers and copied, undecoded, behind a patched header: a small JPEG that any decoder
 * opens. Nothing in the file is private: any decoder opens it, and files of other makers that have
 * restart markers are addressed alike.
 *
 * Segment s holds MCUs s * interval .. (s + 1) * interval - 1 in raster order. Where the interval
 * doesn't divide the MCUs of a row, segments begin at another column in each row, and a row of the
 * small JPEG is shifted against the next one by whole MCUs: dl2_jpeg_splice.shift says by how many.
 */
#ifndef DL2_CODEC_JPEG_JPEG_TILES_H
#define DL2_CODEC_JPEG_JPEG_TILES_H

#include "common/error.h"
#include "common/memory.h"

#include <stddef.h>
#include <stdint.h>

/*
 * The interval, in MCUs, to write an image of this width and quality with; MCUs are of at most
 * 16x16 pixels. 0: it is so narrow that none pays.
 */
unsigned dl2_jpeg_tile_interval(uint32_t width, uint32_t mcu_width, uint32_t mcu_height,
                                int quality);

/* A small JPEG that shows part of a larger one. Zeroed, it is ready for use. */
struct dl2_jpeg_splice {
    struct dl2_bytes jpeg;  /* the file; memory is reused from splice to splice */
    uint32_t x, y;          /* where its first pixel lies in the whole image, but for shifts */
    uint32_t width, height; /* pixels of it, whole MCUs where the image doesn't end before */
    uint32_t mcu_width, mcu_height; /* pixels */
    uint32_t mcus_x;                /* MCUs of each row */
    /*
     * For each MCU row, how many MCUs left of `x` it begins, uint32_t. What then lies left of the
     * image is the end of the row above, what lies right of it the beginning of the row below.
     */
    struct dl2_bytes shift;
    uint32_t rows;
    bool shifted; /* is any of them not 0, or does a row reach into the next one's MCUs? */
    /* Marker positions of the image, kept so that memory is reused. */
    struct dl2_bytes segments;
};

/*
 * Splices the segments that cover a rectangle (pixels as coded, within the image). 1: done; 0: this
 * file has no restart intervals that would save anything, or is not baseline, or its markers are
 * not what its header says, and is to be decoded as a whole; negative: out of memory.
 *
 * Where the image's last segment is needed and shorter than the others, the image's last MCU row
 * makes a small JPEG of its own: y + height of the splice is less than what was asked for, and
 * another call gives the rest. That happens only where shifts do.
 */
int dl2_jpeg_splice(struct dl2_jpeg_splice *splice, const uint8_t *data, size_t size, uint32_t x,
                    uint32_t y, uint32_t width, uint32_t height, struct dl2_error *error);

void dl2_jpeg_splice_free(struct dl2_jpeg_splice *splice);

#endif
