/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A libjpeg decompressor that is used for image after image. libjpeg's own memory manager allocates
 * from the heap for every image; this one keeps its blocks.
 *
 * Everything that libjpeg asks for after creation belongs to one image, and
 * dl2_jpeg_arena_reset() takes it back. The virtual arrays (coefficients of progressive files) stay
 * with libjpeg's manager.
 */
#ifndef DL2_CODEC_JPEG_JPEG_ARENA_H
#define DL2_CODEC_JPEG_JPEG_ARENA_H

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <jpeglib.h>

struct dl2_jpeg_arena {
    struct jpeg_decompress_struct cinfo; /* first: it is all that libjpeg hands to its manager */
    struct dl2_jpeg_block *blocks; /* the newest first; more than one only until the next reset */
    uint8_t *next;                 /* the free part of the newest */
    size_t left;
    size_t total;                                    /* bytes of all blocks */
    void (*free_pool)(j_common_ptr cinfo, int pool); /* libjpeg's own */
};

/*
 * Creates arena->cinfo, whose `err` is set, in a struct that is otherwise zero and won't move.
 * Failures, here and whenever libjpeg wants memory, end in error_exit, as libjpeg's own do.
 */
void dl2_jpeg_arena_create(struct dl2_jpeg_arena *arena);

/* Stops decoding (jpeg_abort) and forgets the tables; all memory is free again. */
void dl2_jpeg_arena_reset(struct dl2_jpeg_arena *arena);

void dl2_jpeg_arena_destroy(struct dl2_jpeg_arena *arena);

#endif
