/* SPDX-License-Identifier: BSD-2-Clause */
#include "codec/jpeg/jpeg_optimal.h"

#include <string.h>

/* The last symbol gets the code of ones, which no file may have. */
enum { RESERVED = 256, SYMBOLS = 257, MAX_BITS = 16 };

/*
 * Trees that are yet to be joined, the rarest last. A key is the tree's count << 9 | 256 - its
 * first symbol: of trees that are equally rare, libjpeg takes the one with the highest symbol.
 */
struct tree_list {
    uint64_t keys[SYMBOLS];
    size_t count;
};

static void tree_insert(struct tree_list *list, uint64_t count, unsigned symbol)
{
    const uint64_t key = count << 9 | (RESERVED - symbol);
    size_t at = list->count++;
    for (; at && list->keys[at - 1] < key; at--)
        list->keys[at] = list->keys[at - 1];
    list->keys[at] = key;
}

/* The rarest tree's first symbol; adds its count to *count. */
static unsigned tree_take(struct tree_list *list, uint64_t *count)
{
    const uint64_t key = list->keys[--list->count];
    *count += key >> 9;
    return RESERVED - (unsigned)(key & 511);
}

/* All symbols of a tree get a bit more. Returns its last one. */
static unsigned tree_lengthen(const int16_t next[SYMBOLS], unsigned symbol,
                              uint16_t lengths[SYMBOLS])
{
    lengths[symbol]++;
    while (next[symbol] >= 0) {
        symbol = (unsigned)next[symbol];
        lengths[symbol]++;
    }
    return symbol;
}

/* Joins the two rarest trees until one is left. */
static void optimal_lengths(const uint64_t counts[RESERVED], uint16_t lengths[SYMBOLS])
{
    struct tree_list list = {.count = 0};
    int16_t next[SYMBOLS]; /* symbol of the same tree, or -1 */
    memset(lengths, 0, SYMBOLS * sizeof *lengths);
    for (unsigned symbol = 0; symbol < SYMBOLS; symbol++)
        next[symbol] = -1;
    for (unsigned symbol = 0; symbol < RESERVED; symbol++)
        if (counts[symbol])
            tree_insert(&list, counts[symbol], symbol);
    tree_insert(&list, 1, RESERVED);
    while (list.count > 1) {
        uint64_t count = 0;
        const unsigned first = tree_take(&list, &count), second = tree_take(&list, &count);
        next[tree_lengthen(next, first, lengths)] = (int16_t)second;
        tree_lengthen(next, second, lengths);
        tree_insert(&list, count, first);
    }
}

/* Takes away codes of more than 16 bits: of two of them, one becomes a bit shorter, and the other
 * shares what was a shorter code. Then one of the longest goes, the reserved one. */
static void optimal_limit(uint16_t codes[SYMBOLS])
{
    unsigned bits = SYMBOLS - 1;
    for (; bits > MAX_BITS; bits--)
        while (codes[bits]) {
            unsigned shorter = bits - 2;
            while (!codes[shorter])
                shorter--;
            codes[bits] -= 2;
            codes[bits - 1]++;
            codes[shorter + 1] += 2;
            codes[shorter]--;
        }
    while (!codes[bits])
        bits--;
    codes[bits]--;
}

void dl2_jpeg_optimal_table(const uint64_t counts[256], JHUFF_TBL *table)
{
    uint16_t lengths[SYMBOLS], codes[SYMBOLS] = {0}; /* how many codes have a length */
    uint16_t starts[SYMBOLS];
    optimal_lengths(counts, lengths);
    for (unsigned symbol = 0; symbol < RESERVED; symbol++)
        codes[lengths[symbol]]++;
    /* Sorted by their lengths before the limit; those without a length have no place. */
    starts[1] = 0;
    for (unsigned bits = 2; bits < SYMBOLS; bits++)
        starts[bits] = (uint16_t)(starts[bits - 1] + codes[bits - 1]);
    for (unsigned symbol = 0; symbol < RESERVED; symbol++)
        if (lengths[symbol])
            table->huffval[starts[lengths[symbol]]++] = (UINT8)symbol;
    codes[lengths[RESERVED]]++;
    optimal_limit(codes);
    table->bits[0] = 0;
    for (unsigned bits = 1; bits <= MAX_BITS; bits++)
        table->bits[bits] = (UINT8)codes[bits];
}
