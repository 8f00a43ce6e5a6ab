/* SPDX-License-Identifier: BSD-2-Clause */
#include "codec/jpeg/jpeg_trellis.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { SCALE = 8, END_OF_BLOCK = 0x00, SIXTEEN_ZEROS = 0xf0 };

/* A level that ends a run of zeros: the best way to have it. */
struct node {
    unsigned at;    /* coefficient */
    unsigned level; /* at least 1 */
    unsigned from;  /* the node before; 0 is DC */
    double cost;    /* of all up to here, less what zeros up to here would cost */
};

enum { MAX_NODES = 1 + 2 * 63 };

/* Bits of a symbol with the coefficient's own; what the tables, made of other levels, lack is
 * dear. */
static unsigned bits_of_symbol(const struct dl2_jpeg_coder *ac, unsigned symbol)
{
    const unsigned bits = ac->symbol_lengths[symbol];
    return bits ? bits : 16 + (symbol & 15);
}

static unsigned bits_of_level(const struct dl2_jpeg_coder *ac, unsigned zeros, unsigned level)
{
    const unsigned size = 32 - (unsigned)__builtin_clz(level);
    return zeros / 16 * bits_of_symbol(ac, SIXTEEN_ZEROS) +
           bits_of_symbol(ac, zeros % 16 << 4 | size);
}

/* What a level's error costs beyond zero's. */
static double error_beyond_zero(const struct dl2_jpeg_trellis *trellis, unsigned k, double value,
                                unsigned level)
{
    const double own = (double)level * trellis->steps[k] - value;
    return trellis->weights[k] * (own * own - value * value);
}

/* Finds the best way to a node through all before it. */
static void reach(const struct dl2_jpeg_trellis *trellis, const struct dl2_jpeg_coder *ac,
                  const struct node *nodes, unsigned count, struct node *node)
{
    node->cost = INFINITY;
    for (unsigned i = 0; i < count && nodes[i].at < node->at; i++) {
        const unsigned bits = bits_of_level(ac, node->at - nodes[i].at - 1, node->level);
        const double cost = nodes[i].cost + trellis->lambda * bits;
        if (cost < node->cost) {
            node->cost = cost;
            node->from = i;
        }
    }
}

/* The nodes of all levels that are to be considered; returns how many. */
static unsigned build(const struct dl2_jpeg_trellis *trellis, const struct dl2_jpeg_coder *ac,
                      const int16_t block[64], struct node nodes[MAX_NODES])
{
    unsigned count = 1;
    nodes[0] = (struct node){.at = 0};
    for (unsigned k = 1; k < 64; k++) {
        const unsigned width = SCALE * (unsigned)trellis->steps[k];
        const unsigned magnitude = (unsigned)abs(block[k]),
                       nearest = (magnitude + width / 2) / width;
        const double value = magnitude / (double)SCALE;
        for (unsigned level = nearest; level && level + 2 > nearest; level--) {
            struct node *const node = &nodes[count];
            *node = (struct node){.at = k, .level = level};
            reach(trellis, ac, nodes, count, node);
            node->cost += error_beyond_zero(trellis, k, value, level);
            count++;
        }
    }
    return count;
}

void dl2_jpeg_trellis_block(const struct dl2_jpeg_trellis *trellis, const struct dl2_jpeg_coder *ac,
                            const int16_t block[64], int16_t out[64])
{
    struct node nodes[MAX_NODES];
    const unsigned count = build(trellis, ac, block, nodes);
    const double end = trellis->lambda * bits_of_symbol(ac, END_OF_BLOCK);
    double least = INFINITY;
    unsigned best = 0;
    for (unsigned i = 0; i < count; i++) {
        const double cost = nodes[i].cost + (nodes[i].at < 63 ? end : 0);
        if (cost < least) {
            least = cost;
            best = i;
        }
    }
    memset(out, 0, 64 * sizeof *out);
    out[0] = block[0];
    for (; best; best = nodes[best].from) {
        const unsigned k = nodes[best].at;
        const int level = (int)(nodes[best].level * SCALE * trellis->steps[k]);
        out[k] = (int16_t)(block[k] < 0 ? -level : level);
    }
}
