/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Sliced samples: an encoded image of which any run of pixel rows, as coded, can be decoded from a
 * part of its bytes. This is the interface between code that can cut one (codec/codec.h) and code
 * that stores and reads the bytes (dataset/).
 *
 *     sample's bytes:  ... | slice 0 | slice 1 | ... | slice count-1 | ...
 *
 * A head and any run of slices, both as they are, make an image of these slices' rows.
 */
#ifndef DL2_COMMON_SLICES_H
#define DL2_COMMON_SLICES_H

#include "common/error.h"
#include "common/memory.h"

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define DL2_MAX_SLICES 65536

/* How a sample is cut; memory is reused from sample to sample. */
struct dl2_slicing {
    uint32_t width, height; /* of the image, pixels as coded */
    int orientation;        /* EXIF, 1 to 8: how they have to be turned to be upright */
    uint32_t rows;          /* pixel rows of a slice; the last one may have fewer */
    uint32_t count;         /* of slices, height / rows rounded up */
    struct dl2_bytes head;  /* what decoding needs besides, the same for many samples */
    /* uint32_t [count + 1]: slice i is the sample's bytes offsets[i] .. offsets[i + 1] - 1 */
    struct dl2_bytes offsets;
};

/* 1: filled in; 0: can't be cut; negative: out of memory. */
typedef int (*dl2_slice_function)(const uint8_t *data, size_t size, struct dl2_slicing *slicing,
                                  struct dl2_error *error);

void dl2_slicing_free(struct dl2_slicing *slicing);

/* The same, as a reader of the sample's bytes knows it. */
struct dl2_cuts {
    uint32_t width, height, rows, count; /* as in struct dl2_slicing */
    int orientation;
    const uint8_t *head;
    size_t head_size;
};

/* Some of the slices of a sample. */
struct dl2_slice_range {
    uint32_t first, count;
};

#ifdef __cplusplus
}
#endif

#endif
