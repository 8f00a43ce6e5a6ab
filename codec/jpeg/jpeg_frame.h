/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What decoding the one scan of a sequential Huffman-coded JPEG of 8 bits needs of its headers
 * (ITU-T T.81, annex B), whoever parsed them. Pointers are the parser's.
 */
#ifndef DL2_CODEC_JPEG_JPEG_FRAME_H
#define DL2_CODEC_JPEG_JPEG_FRAME_H

#include <stddef.h>
#include <stdint.h>

enum {
    DL2_JPEG_COMPONENTS = 3,
    DL2_JPEG_COEFFICIENTS = 64, /* of a block */
    DL2_JPEG_MCU_BLOCKS = 10,   /* most blocks of an MCU */
};

/* A Huffman table as a DHT segment has it. */
struct dl2_jpeg_codes {
    const uint8_t *counts;  /* [17]; counts[n]: codes of n bits, counts[0] is ignored */
    const uint8_t *symbols; /* [256], by ascending code */
};

struct dl2_jpeg_component {
    uint32_t across, down; /* blocks of an MCU */
    const uint16_t *steps; /* [64]: quantization in natural order, each below 32768 */
    struct dl2_jpeg_codes dc, ac;
};

struct dl2_jpeg_frame {
    uint32_t mcus_x, mcus_y;
    uint32_t interval;   /* restart interval in MCUs, 0: none */
    uint32_t components; /* 1 or 3, in the scan's order */
    struct dl2_jpeg_component component[DL2_JPEG_COMPONENTS];
    uint32_t blocks;                    /* of an MCU */
    uint8_t owner[DL2_JPEG_MCU_BLOCKS]; /* each block's component */
    const uint8_t *scan;                /* entropy-coded data, and what follows them in the file */
    size_t size;                        /* bytes from there to the file's end */
};

/* A rectangle of MCUs; right and bottom lie outside. Never empty. */
struct dl2_jpeg_cover {
    uint32_t left, top, right, bottom;
};

#endif
