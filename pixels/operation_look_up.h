/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Tables of 256 bytes, looked up by shuffles of 16: for the files that define VECTOR, of 32 or 64
 * bytes, and its operations. SHUFFLE gives zero for a byte from 128 on, and SUBTRACT stays there.
 *
 * Of each table there are 16 parts, which hold their difference (XOR) from the part before. A byte
 * less 16 times the number of the part is below 0 for the parts behind its own, so that the sum of
 * all shuffles is what its own part has. Bytes from 128 on become 0 to 127 for the other eight
 * parts. Loops are unrolled by name: compilers would keep their vectors in memory otherwise.
 */
#ifndef DL2_PIXELS_OPERATION_LOOK_UP_H
#define DL2_PIXELS_OPERATION_LOOK_UP_H

enum { PARTS = 16, PART = 256 / PARTS, TOGETHER = 4 };

/* The parts of one table. */
static void spread_table(const uint8_t table[256], VECTOR parts[PARTS])
{
    for (size_t k = 0; k < PARTS; k++) {
        const __m128i part = _mm_loadu_si128((const void *)(table + PART * k));
        const __m128i before = k % (PARTS / 2)
                                   ? _mm_loadu_si128((const void *)(table + PART * (k - 1)))
                                   : _mm_setzero_si128();
        parts[k] = SAME_16(_mm_xor_si128(part, before));
    }
}

/* Looks up TOGETHER vectors at once: a part is loaded once for all of them. */
static inline void look_up_vectors(const VECTOR parts[PARTS], VECTOR vectors[TOGETHER])
{
    VECTOR at[TOGETHER], sum[TOGETHER];
#pragma GCC unroll 4
    for (size_t i = 0; i < TOGETHER; i++) {
        at[i] = vectors[i];
        sum[i] = SHUFFLE(parts[0], at[i]);
    }
#pragma GCC unroll 16
    for (size_t k = 1; k < PARTS; k++) {
        const VECTOR part = parts[k];
#pragma GCC unroll 4
        for (size_t i = 0; i < TOGETHER; i++) {
            at[i] = k == PARTS / 2 ? XOR(vectors[i], SAME(-128)) : SUBTRACT(at[i], SAME(PART));
            sum[i] = XOR(sum[i], SHUFFLE(part, at[i]));
        }
    }
    memcpy(vectors, sum, sizeof sum);
}

/* masks[j] has the bytes j, j + 3, j + 6... of a vector. */
static void spread_masks(VECTOR masks[3])
{
    uint8_t bytes[sizeof(VECTOR) + 2];
    for (size_t i = 0; i < sizeof bytes; i++)
        bytes[i] = i % 3 == 2 ? 255 : 0;
    for (size_t j = 0; j < 3; j++)
        masks[j] = LOAD(bytes + 2 - j);
}

/* The bytes of a channel in vector k of three are those of one of the masks, and those of the three
 * vectors fill one, in an order that a table doesn't see. */
static inline size_t mask_of(size_t channel, size_t k)
{
    return (channel + k * (3 - sizeof(VECTOR) % 3)) % 3;
}

static void look_up_colours(uint8_t *bytes, VECTOR parts[3][PARTS], const VECTOR masks[3])
{
    VECTOR in[TOGETHER][3], found[3][TOGETHER];
    for (size_t i = 0; i < TOGETHER; i++)
        for (size_t k = 0; k < 3; k++)
            in[i][k] = LOAD(bytes + (3 * i + k) * sizeof(VECTOR));
    for (size_t c = 0; c < 3; c++) {
        for (size_t i = 0; i < TOGETHER; i++)
            found[c][i] =
                OR(OR(AND(in[i][0], masks[mask_of(c, 0)]), AND(in[i][1], masks[mask_of(c, 1)])),
                   AND(in[i][2], masks[mask_of(c, 2)]));
        look_up_vectors(parts[c], found[c]);
    }
    for (size_t i = 0; i < TOGETHER; i++)
        for (size_t k = 0; k < 3; k++)
            STORE(bytes + (3 * i + k) * sizeof(VECTOR),
                  OR(OR(AND(found[0][i], masks[mask_of(0, k)]),
                        AND(found[1][i], masks[mask_of(1, k)])),
                     AND(found[2][i], masks[mask_of(2, k)])));
}

static void look_up_shuffled(uint8_t *bytes, size_t count, size_t channels, uint8_t tables[3][256])
{
    VECTOR parts[3][PARTS], masks[3], vectors[TOGETHER];
    size_t i = 0;
    for (size_t c = 0; c < channels; c++)
        spread_table(tables[c], parts[c]);
    spread_masks(masks);
    if (channels == 3)
        for (; i + 3 * sizeof vectors <= count; i += 3 * sizeof vectors)
            look_up_colours(bytes + i, parts, masks);
    else
        for (; i + sizeof vectors <= count; i += sizeof vectors) {
            memcpy(vectors, bytes + i, sizeof vectors);
            look_up_vectors(parts[0], vectors);
            memcpy(bytes + i, vectors, sizeof vectors);
        }
    look_up_loop(bytes + i, count - i, channels, tables);
}

#endif
