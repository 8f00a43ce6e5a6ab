/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Our own decoder for sequential Huffman-coded JPEG of 8 bits: from the bytes of a scan to the
 * planes of a rectangle, in stages of one file each:
 *
 *     headers            struct dl2_jpeg_frame     filled in from libjpeg's (jpeg_decode.c)
 *     bytes              jpeg_segments.c           the segments under the rectangle
 *     coefficients       jpeg_entropy.c            chunk by chunk, by the tables of jpeg_huffman.c
 *     samples            jpeg_inverse*.c           dequantization and inverse DCT
 *     planes             jpeg_baseline.c           each block to its place
 *
 * The samples are those of libjpeg-turbo, bit for bit. Whatever libjpeg would warn of, and whatever
 * is rare, is handed over to it: it decides whether a file is damaged, and how that reads.
 */
#ifndef DL2_CODEC_JPEG_JPEG_BASELINE_H
#define DL2_CODEC_JPEG_JPEG_BASELINE_H

#include "codec/jpeg/jpeg_entropy.h"
#include "codec/jpeg/jpeg_frame.h"
#include "codec/jpeg/jpeg_huffman.h"
#include "codec/jpeg/jpeg_inverse.h"
#include "codec/jpeg/jpeg_segments.h"

/* Memory that is used for image after image. Zeroed, it is ready for use. */
struct dl2_jpeg_baseline {
    const struct dl2_jpeg_kernels *kernels; /* NULL: chosen at first use */
    bool eager; /* for tests: also in plain C, where libjpeg is faster */
    struct dl2_jpeg_huffman_cache tables;
    struct dl2_jpeg_segments segments;
    struct dl2_jpeg_entropy *entropy;
};

/* Where a component's samples go: room for those of all MCUs of the rectangle. */
struct dl2_jpeg_target {
    uint8_t *data; /* the first sample of the rectangle's first MCU */
    size_t stride; /* bytes from row to row */
    unsigned size; /* samples of a block across and down: 1, 2, 4 or 8 */
};

/*
 * Decodes the frame's first `count` components. 1: done; 0: not by this decoder, and the targets
 * hold nothing of use; negative: out of memory.
 */
int dl2_jpeg_baseline_decode(struct dl2_jpeg_baseline *baseline, const struct dl2_jpeg_frame *frame,
                             const struct dl2_jpeg_cover *cover,
                             const struct dl2_jpeg_target *targets, uint32_t count,
                             struct dl2_error *error);

size_t dl2_jpeg_baseline_memory(const struct dl2_jpeg_baseline *baseline);
void dl2_jpeg_baseline_free(struct dl2_jpeg_baseline *baseline);

#endif
