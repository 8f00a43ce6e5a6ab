/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Writes a baseline JPEG: headers as libjpeg writes them, and Huffman coding of blocks that are
 * quantized on the way (ITU-T T.81, annexes B and F.1.2).
 *
 * Bits are collected in whole bytes in `raw`, without the zero byte that must follow a byte of 255
 * in a file. Draining copies them to the file and puts those in.
 */
#ifndef DL2_CODEC_JPEG_JPEG_WRITER_H
#define DL2_CODEC_JPEG_JPEG_WRITER_H

#include "codec/jpeg/jpeg_forward.h"
#include "codec/jpeg/jpeg_frame.h"
#include "common/error.h"
#include "common/memory.h"

#include <stdint.h>
#include <stdio.h>

#include <jpeglib.h>

enum {
    /* Bytes of a block at the most: 64 codes of 16 bits with as many bits behind each. */
    DL2_JPEG_BLOCK_BYTES = 64 * 4,
    DL2_JPEG_RAW = 16384,
};

/* A code with the bits behind it, from the highest bit on; how many they are. */
struct dl2_jpeg_coder {
    JHUFF_TBL table;
    /* For symbols: zeros before a coefficient << 4 | bits of it, which are yet to be added. */
    uint64_t symbols[256];
    uint8_t symbol_lengths[256];
    /* For whole coefficients: zeros before it, at most 15, << 5 | itself + DL2_JPEG_BIAS. */
    uint64_t codes[16 * 2 * DL2_JPEG_BIAS];
    uint8_t lengths[16 * 2 * DL2_JPEG_BIAS];
};

/* The two Huffman tables of a component; writers may share them. */
struct dl2_jpeg_coders {
    struct dl2_jpeg_coder dc, ac;
};

void dl2_jpeg_coder_set(struct dl2_jpeg_coder *coder, const JHUFF_TBL *table);

/* How often a component's symbols occur: those of `codes` of a coder, and the others. */
struct dl2_jpeg_counts {
    uint64_t dc[256], ac[256];
    uint64_t codes[16 * 2 * DL2_JPEG_BIAS];
};

/* The tables that code what was counted with the fewest bits. Moves counts of codes to `ac`. */
void dl2_jpeg_coders_optimize(struct dl2_jpeg_coders *coders, struct dl2_jpeg_counts *counts);

/* The bits of what was counted, and of the two tables in the file. Of counts of codes only those
 * that were moved to `ac`. */
uint64_t dl2_jpeg_coders_bits(const struct dl2_jpeg_coders *coders,
                              const struct dl2_jpeg_counts *counts);

struct dl2_jpeg_writer {
    struct dl2_bytes *out;
    uint32_t components;
    struct dl2_jpeg_divisors divisors[2]; /* of luma and chroma */
    uint64_t pending;                     /* bits that are no whole byte yet, from the top */
    unsigned pending_bits;                /* 0 to 7 */
    uint8_t *at;                          /* where the next byte of `raw` comes */
    int32_t last_dc[DL2_JPEG_COMPONENTS];
    uint32_t interval; /* restart interval in MCUs, 0: none */
    uint32_t left;     /* MCUs until the next restart marker */
    unsigned restarts; /* the next marker's number, 0 to 7 */
    uint8_t raw[DL2_JPEG_RAW];
};

/* The blocks of a row of MCUs: those of component c lie in across[c] * mcus blocks a row, of which
 * there are down[c]. */
struct dl2_jpeg_blocks {
    uint32_t mcus;
    uint32_t components;
    uint32_t across[DL2_JPEG_COMPONENTS], down[DL2_JPEG_COMPONENTS];
    const int16_t *blocks[DL2_JPEG_COMPONENTS];
    size_t stride[DL2_JPEG_COMPONENTS]; /* coefficients from row to row of blocks */
};

/*
 * Begins a file that replaces the contents of `out`, with all headers before the scan's. `cinfo`
 * has the parameters: size, components, quantization tables, restart interval. It need not have
 * been started.
 */
int dl2_jpeg_writer_begin(struct dl2_jpeg_writer *writer, const struct jpeg_compress_struct *cinfo,
                          struct dl2_bytes *out, struct dl2_error *error);

/* Adds the symbols of the next row of MCUs to `counts`, of luma and chroma; writes nothing. */
void dl2_jpeg_writer_count(struct dl2_jpeg_writer *writer, const struct dl2_jpeg_forward *forward,
                           const struct dl2_jpeg_blocks *blocks, struct dl2_jpeg_counts counts[2]);

/* The first row of MCUs is the next one to be counted again. */
void dl2_jpeg_writer_rewind(struct dl2_jpeg_writer *writer);

/* Writes the scan's header, after which the first row of MCUs is the next one. `coders`: of luma
 * and chroma. */
int dl2_jpeg_writer_scan(struct dl2_jpeg_writer *writer, const struct dl2_jpeg_coders coders[2],
                         struct dl2_error *error);

/* Codes the next row of MCUs, with the scan's coders. */
int dl2_jpeg_writer_row(struct dl2_jpeg_writer *writer, const struct dl2_jpeg_forward *forward,
                        const struct dl2_jpeg_coders coders[2],
                        const struct dl2_jpeg_blocks *blocks, struct dl2_error *error);

int dl2_jpeg_writer_end(struct dl2_jpeg_writer *writer, struct dl2_error *error);

#endif
