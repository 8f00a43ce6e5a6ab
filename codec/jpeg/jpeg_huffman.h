/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Tables that decode up to two coefficients, and the end of the block behind them, in one look at
 * the next bits, the window (ITU-T T.81, F.2.2). Codes and values that don't fit are decoded symbol
 * by symbol. jpeg_entropy.c says how entries are used. A wide window decodes faster, a narrow one
 * is made faster.
 */
#ifndef DL2_CODEC_JPEG_JPEG_HUFFMAN_H
#define DL2_CODEC_JPEG_JPEG_HUFFMAN_H

#include "codec/jpeg/jpeg_frame.h"
#include "common/error.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    DL2_JPEG_WINDOW = 11,          /* bits of the widest tables */
    DL2_JPEG_NARROW = 9,           /* of those that are made for one small file */
    DL2_JPEG_LONGEST = 18,         /* bits of an entry at most */
    DL2_JPEG_LOOK = 8,             /* bits of codes that a table of single symbols has */
    DL2_JPEG_PAIRS = 6,            /* that are kept: twice what an image can need */
    DL2_JPEG_KEY = 2 * (17 + 256), /* bytes of a component's two tables in the file */
    /* Added to an entry's `advance`: the block ends; in its `second`: there is no entry. */
    DL2_JPEG_BLOCK_END = 128
};

/*
 * Offsets are in bytes from the place of the next coefficient, two bytes a coefficient, zigzag
 * order. An entry of one coefficient has it in both places; the first is the one that counts.
 */
struct dl2_jpeg_entry {
    uint8_t length; /* bits that it takes, at most DL2_JPEG_LONGEST */
    uint8_t shift;  /* 64 less the bits of the first code and its value */
    int16_t base;   /* the first value is base + (the next 64 bits >> shift), modulo 65536 */
    int8_t second_value;
    uint8_t first, second; /* offsets of the values */
    uint8_t advance;       /* offset of the next coefficient */
};

struct dl2_jpeg_table {
    union { /* first, so that both have one address */
        struct dl2_jpeg_entry entries[1 << DL2_JPEG_WINDOW];
        uint64_t bits[1 << DL2_JPEG_WINDOW]; /* for making them */
    };
    /* For single symbols: length << 8 | symbol of codes of so many bits, 0 for others. */
    uint16_t codes[1 << DL2_JPEG_LOOK];
    /* Codes of n bits are, left-aligned in 16 bits, below limits[n]; offsets[n] + code is the
     * symbol's index. */
    uint32_t limits[17];
    int32_t offsets[17];
    uint8_t symbols[256];
};

/* A component's two tables; entries of the first continue with the second. */
struct dl2_jpeg_huffman {
    struct dl2_jpeg_table dc, ac;
    unsigned window;           /* bits */
    uint8_t key[DL2_JPEG_KEY]; /* what it was made of */
    uint64_t used;             /* when it was last asked for; 0: holds nothing */
};

/* Tables are kept as long as the files keep using them. Zeroed, it is ready for use. */
struct dl2_jpeg_huffman_cache {
    struct dl2_jpeg_huffman *pairs[DL2_JPEG_PAIRS]; /* NULL until they are made */
    uint64_t clock;
};

/*
 * The tables of a frame's components, valid until the next call. All have one window:
 * DL2_JPEG_NARROW in `small` files with tables that are new, because making wider ones would take
 * longer than decoding. 1: found or made; 0: not Huffman codes by libjpeg's rules; negative: out of
 * memory.
 */
int dl2_jpeg_huffman_find(struct dl2_jpeg_huffman_cache *cache, const struct dl2_jpeg_frame *frame,
                          bool small, const struct dl2_jpeg_huffman *tables[DL2_JPEG_COMPONENTS],
                          struct dl2_error *error);

size_t dl2_jpeg_huffman_memory(const struct dl2_jpeg_huffman_cache *cache);
void dl2_jpeg_huffman_free(struct dl2_jpeg_huffman_cache *cache);

/* The value of `size` (1 to 15) bits as T.81, F.2.2.1 extends it. */
static inline int32_t dl2_jpeg_extend(uint32_t bits, unsigned size)
{
    return bits >> (size - 1) ? (int32_t)bits : (int32_t)bits - (int32_t)(1u << size) + 1;
}

/* Bits of the code at the top of `bits`, and its symbol; 0 where no code is like that. */
static inline unsigned dl2_jpeg_find_symbol(const struct dl2_jpeg_table *table, uint64_t bits,
                                            unsigned *symbol)
{
    const unsigned code = table->codes[bits >> (64 - DL2_JPEG_LOOK)];
    *symbol = code & 255;
    if (code)
        return code >> 8;
    const uint32_t next = (uint32_t)(bits >> 48);
    for (unsigned length = DL2_JPEG_LOOK + 1; length <= 16; length++)
        if (next < table->limits[length]) {
            *symbol = table->symbols[table->offsets[length] + (int32_t)(next >> (16 - length))];
            return length;
        }
    return 0;
}

#endif
