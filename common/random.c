/* SPDX-License-Identifier: BSD-2-Clause */
#include "common/random.h"

#include <math.h>
#include <string.h>

void dl2_philox(const uint32_t counter[4], const uint32_t key[2], uint32_t out[4])
{
    uint32_t c0 = counter[0], c1 = counter[1], c2 = counter[2], c3 = counter[3];
    uint32_t k0 = key[0], k1 = key[1];
    for (int round = 0; round < 10; round++) {
        uint64_t p0 = (uint64_t)0xD2511F53u * c0, p1 = (uint64_t)0xCD9E8D57u * c2;
        uint32_t n0 = (uint32_t)(p1 >> 32) ^ c1 ^ k0, n2 = (uint32_t)(p0 >> 32) ^ c3 ^ k1;
        c1 = (uint32_t)p1;
        c3 = (uint32_t)p0;
        c0 = n0;
        c2 = n2;
        k0 += 0x9E3779B9u;
        k1 += 0xBB67AE85u;
    }
    out[0] = c0;
    out[1] = c1;
    out[2] = c2;
    out[3] = c3;
}

/*
 * The counter's 128 bits: 32 of position, 8 of use, 40 of b, 48 of a.
 */
void dl2_random_init(struct dl2_random *random, uint64_t seed, enum dl2_random_use use, uint64_t a,
                     uint64_t b)
{
    memset(random, 0, sizeof *random);
    random->key[0] = (uint32_t)seed;
    random->key[1] = (uint32_t)(seed >> 32);
    random->counter[0] = 0;
    random->counter[1] =
        (uint32_t)use << 24 | ((uint32_t)(b >> 32) & 0xff) << 16 | ((uint32_t)(a >> 32) & 0xffff);
    random->counter[2] = (uint32_t)b;
    random->counter[3] = (uint32_t)a;
    random->used = 4;
}

uint32_t dl2_random_u32(struct dl2_random *random)
{
    if (random->used == 4) {
        dl2_philox(random->counter, random->key, random->block);
        random->counter[0]++;
        random->used = 0;
    }
    return random->block[random->used++];
}

double dl2_random_uniform(struct dl2_random *random)
{
    uint64_t high = dl2_random_u32(random) >> 5, low = dl2_random_u32(random) >> 6;
    return (double)(high << 26 | low) * 0x1p-53;
}

/* Lemire: "Fast random integer generation in an interval", ACM TOMACS 2019. */
uint32_t dl2_random_below(struct dl2_random *random, uint32_t end)
{
    uint64_t product = (uint64_t)dl2_random_u32(random) * end;
    if ((uint32_t)product < end) {
        uint32_t threshold = -end % end;
        while ((uint32_t)product < threshold)
            product = (uint64_t)dl2_random_u32(random) * end;
    }
    return (uint32_t)(product >> 32);
}

/* Box and Muller 1958; the second number of each pair is thrown away, so that the state stays
 * plain. */
double dl2_random_normal(struct dl2_random *random)
{
    double u = 1 - dl2_random_uniform(random), v = dl2_random_uniform(random);
    return sqrt(-2 * log(u)) * cos(2 * 3.14159265358979323846 * v);
}

void dl2_random_shuffle(struct dl2_random *random, uint32_t *items, uint32_t count)
{
    for (uint32_t i = count; i > 1; i--) {
        const uint32_t other = dl2_random_below(random, i), item = items[i - 1];
        items[i - 1] = items[other];
        items[other] = item;
    }
}

void dl2_random_permutation(struct dl2_random *random, uint32_t *order, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++)
        order[i] = i;
    dl2_random_shuffle(random, order, count);
}
