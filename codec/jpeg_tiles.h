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
#ifndef DL2_CODEC_JPEG_TILES_H
#define DL2_CODEC_JPEG_TILES_H

#include "common/error.h"
#include "common/memory.h"

#include <stddef.h>
#include <stdint.h>

/* The interval, in MCUs, for an image of so many MCUs across; 0: none pays. */
unsigned dl2_jpeg_tile_interval(uint32_t mcus_across);

/* A small JPEG that shows part of a larger one. */
struct dl2_jpeg_splice {
    struct dl2_bytes jpeg;          /* the file; memory is reused from splice to splice */
    uint32_t x, y;                  /* where it lies in the whole image, pixels */
    uint32_t width, height;         /* of it, pixels: whole MCUs but at the image's own edges */
    uint32_t mcu_width, mcu_height; /* pixels */
    uint32_t rows;                  /* of MCUs */
    /*
     * By row of MCUs: how many MCUs left of `x` it begins. All 0 unless `shifted`, when a shifted
     * row's first MCUs, and last ones, may be of another place.
     */
    uint32_t *shift;
    uint32_t max_shift;
    bool shifted;
    struct dl2_bytes marks, shifts; /* private: where the segments begin; memory of `shift` */
};

#define DL2_JPEG_SPLICE_INIT                                                                       \
    {                                                                                              \
        .jpeg = DL2_BYTES_INIT                                                                     \
    }

/*
 * Splices the segments that cover a rectangle (pixels as coded, within the image). 1: done; 0: this
 * file is to be decoded some other way: it has no restart intervals or none that saves anything, is
 * not sequential and Huffman-coded in one scan, or its markers are not what its header says;
 * negative: out of memory. With `straight` 0, too, where rows would be shifted.
 */
int dl2_jpeg_splice(struct dl2_jpeg_splice *splice, const uint8_t *data, size_t size, uint32_t x,
                    uint32_t y, uint32_t width, uint32_t height, bool straight,
                    struct dl2_error *error);

void dl2_jpeg_splice_free(struct dl2_jpeg_splice *splice);

#endif
