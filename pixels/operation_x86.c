/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The loops of pixels/operation_loops.h, with tables of 256 bytes looked up by shuffles of 16. A
 * shuffle gives zero for a byte from 128 on, and a saturated difference stays there.
 *
 * Each table has 16 parts, which hold their difference (XOR) from the part before. A byte
 * less 16 times the number of the part is below 0 for the parts behind its own, so that the sum of
 * all shuffles is what its own part has. Bytes from 128 on become 0 to 127 for the other eight
 * parts. Loops are unrolled by name: compilers would keep their vectors in memory otherwise.
 */
#include "common/vectors.h"
#include "pixels/operation_loops.h"

enum { PARTS = 16, PART = 256 / PARTS, TOGETHER = 4 };

/* The parts of one table. */
static void spread_table(const uint8_t table[256], vector parts[PARTS])
{
    for (size_t k = 0; k < PARTS; k++) {
        const __m128i part = _mm_loadu_si128((const void *)(table + PART * k));
        const __m128i before = k % (PARTS / 2)
                                   ? _mm_loadu_si128((const void *)(table + PART * (k - 1)))
                                   : _mm_setzero_si128();
        parts[k] = BROADCAST(_mm_xor_si128(part, before));
    }
}

/* Looks up TOGETHER vectors at once: a part is loaded once for all of them. */
static inline void look_up_vectors(const vector parts[PARTS], vector vectors[TOGETHER])
{
    vector at[TOGETHER], sum[TOGETHER];
#pragma GCC unroll 4
    for (size_t i = 0; i < TOGETHER; i++) {
        at[i] = vectors[i];
        sum[i] = OP(shuffle_epi8)(parts[0], at[i]);
    }
#pragma GCC unroll 16
    for (size_t k = 1; k < PARTS; k++) {
        const vector part = parts[k];
#pragma GCC unroll 4
        for (size_t i = 0; i < TOGETHER; i++) {
            at[i] = k == PARTS / 2 ? BITS(xor)(vectors[i], OP(set1_epi8)(-128))
                                   : OP(subs_epi8)(at[i], OP(set1_epi8)(PART));
            sum[i] = BITS(xor)(sum[i], OP(shuffle_epi8)(part, at[i]));
        }
    }
    memcpy(vectors, sum, sizeof sum);
}

/* masks[j] has the bytes j, j + 3, j + 6... of a vector. */
static void spread_masks(vector masks[3])
{
    uint8_t bytes[sizeof(vector) + 2];
    for (size_t i = 0; i < sizeof bytes; i++)
        bytes[i] = i % 3 == 2 ? 255 : 0;
    for (size_t j = 0; j < 3; j++)
        masks[j] = BITS(loadu)((const void *)(bytes + 2 - j));
}

/* The bytes of a channel in vector k of three are those of one of the masks, and those of the three
 * vectors fill one, in an order that a table doesn't see. */
static inline size_t mask_of(size_t channel, size_t k)
{
    return (channel + k * (3 - sizeof(vector) % 3)) % 3;
}

static void look_up_colors(uint8_t *bytes, vector parts[3][PARTS], const vector masks[3])
{
    vector in[TOGETHER][3], found[3][TOGETHER];
    for (size_t i = 0; i < TOGETHER; i++)
        for (size_t k = 0; k < 3; k++)
            in[i][k] = BITS(loadu)((const void *)(bytes + (3 * i + k) * sizeof(vector)));
    for (size_t c = 0; c < 3; c++) {
        for (size_t i = 0; i < TOGETHER; i++)
            found[c][i] = BITS(or)(BITS(or)(BITS(and)(in[i][0], masks[mask_of(c, 0)]),
                                            BITS(and)(in[i][1], masks[mask_of(c, 1)])),
                                   BITS(and)(in[i][2], masks[mask_of(c, 2)]));
        look_up_vectors(parts[c], found[c]);
    }
    for (size_t i = 0; i < TOGETHER; i++)
        for (size_t k = 0; k < 3; k++)
            BITS(storeu)
    ((void *)(bytes + (3 * i + k) * sizeof(vector)),
     BITS(or)(BITS(or)(BITS(and)(found[0][i], masks[mask_of(0, k)]),
                       BITS(and)(found[1][i], masks[mask_of(1, k)])),
              BITS(and)(found[2][i], masks[mask_of(2, k)])));
}

static void look_up_shuffled(uint8_t *bytes, size_t count, size_t channels, uint8_t tables[3][256])
{
    vector parts[3][PARTS], masks[3], vectors[TOGETHER];
    size_t i = 0;
    for (size_t c = 0; c < channels; c++)
        spread_table(tables[c], parts[c]);
    spread_masks(masks);
    if (channels == 3)
        for (; i + 3 * sizeof vectors <= count; i += 3 * sizeof vectors)
            look_up_colors(bytes + i, parts, masks);
    else
        for (; i + sizeof vectors <= count; i += sizeof vectors) {
            memcpy(vectors, bytes + i, sizeof vectors);
            look_up_vectors(parts[0], vectors);
            memcpy(bytes + i, vectors, sizeof vectors);
        }
    look_up_loop(bytes + i, count - i, channels, tables);
}

const struct dl2_operation_kernels
    VARIANT(dl2_operation_kernels) = DL2_OPERATION_LOOPS(VARIANT_NAME, look_up_shuffled);
