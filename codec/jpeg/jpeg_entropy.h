/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Entropy decoding of segments (codec/jpeg/jpeg_segments.h), four at a time on one core, in chunks
 * of blocks that stay in the first-level cache. jpeg_entropy.c explains the inner loop.
 *
 *     dl2_jpeg_entropy_start(entropy, ...);
 *     while ((status = dl2_jpeg_entropy_next(entropy, &chunk)) > 0)
 *         use and clear the chunk's coefficients;
 *
 * Every error that libjpeg would warn of is found, and some things are refused that libjpeg
 * accepts; so a chunk must not be shown to anybody before next() has returned 0.
 */
#ifndef DL2_CODEC_JPEG_JPEG_ENTROPY_H
#define DL2_CODEC_JPEG_JPEG_ENTROPY_H

#include "codec/jpeg/jpeg_frame.h"
#include "codec/jpeg/jpeg_huffman.h"
#include "codec/jpeg/jpeg_segments.h"

enum { DL2_JPEG_CELL = 128 }; /* int16_t from block to block of a chunk */

/* Some MCUs of one segment, decoded. */
struct dl2_jpeg_chunk {
    uint32_t mcu, count; /* the first, and how many */
    /*
     * Blocks in the order of the scan, DL2_JPEG_CELL apart, of 64 coefficients each in zigzag
     * order, the first a difference. To be zero again when next() is called.
     */
    int16_t *blocks;
    /* [DL2_JPEG_COMPONENTS] The DC coefficient before the chunk's first of each component, modulo
     * 65536; the caller moves it on. */
    uint16_t *before;
};

struct dl2_jpeg_entropy;

/* Bytes of one, which dl2_alloc_aligned() gives: start() fills them in, and it holds no others. */
size_t dl2_jpeg_entropy_memory(void);

/* Frame, tables (one for each component) and segments stay the caller's until the last next(). */
void dl2_jpeg_entropy_start(struct dl2_jpeg_entropy *entropy, const struct dl2_jpeg_frame *frame,
                            const struct dl2_jpeg_huffman *const tables[DL2_JPEG_COMPONENTS],
                            const struct dl2_jpeg_segments *segments);

/* 1: a chunk, in the order of its segment; 0: all segments are decoded; -1: libjpeg must decide. */
int dl2_jpeg_entropy_next(struct dl2_jpeg_entropy *entropy, struct dl2_jpeg_chunk *chunk);

#endif
