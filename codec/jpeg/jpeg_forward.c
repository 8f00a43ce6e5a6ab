/* SPDX-License-Identifier: BSD-2-Clause */
#include "config.h"

#include "codec/jpeg/jpeg_forward.h"

#include "common/simd.h"

#include <string.h>

/* Constants with 13 fraction bits, and those that the first pass leaves. */
enum { BITS = 13, PASS_BITS = 2, SIDE = 8 };

const uint8_t dl2_jpeg_natural[64] = {
    DL2_JPEG_NATURAL_0, DL2_JPEG_NATURAL_1, DL2_JPEG_NATURAL_2, DL2_JPEG_NATURAL_3,
    DL2_JPEG_NATURAL_4, DL2_JPEG_NATURAL_5, DL2_JPEG_NATURAL_6, DL2_JPEG_NATURAL_7,
};

/* With 16 fraction bits; chroma's half is a bit short of one half, as in libjpeg. */
static void ycc_c(const uint8_t *rgb, size_t count, uint8_t *y, uint8_t *cb, uint8_t *cr)
{
    enum { HALF = 1 << 15, MIDDLE = (128 << 16) + HALF - 1 };
    for (size_t i = 0; i < count; i++) {
        const int32_t r = rgb[3 * i], g = rgb[3 * i + 1], b = rgb[3 * i + 2];
        y[i] = (uint8_t)((19595 * r + 38470 * g + 7471 * b + HALF) >> 16);
        cb[i] = (uint8_t)((-11059 * r - 21709 * g + 32768 * b + MIDDLE) >> 16);
        cr[i] = (uint8_t)((32768 * r - 27439 * g - 5329 * b + MIDDLE) >> 16);
    }
}

/* In a loop of known length, which compilers make vectors of. */
static void halve_c(const uint8_t *restrict above, const uint8_t *restrict below, size_t count,
                    uint8_t *restrict out)
{
    enum { BLOCK = DL2_JPEG_FORWARD_PIXELS };
    for (; count; count -= BLOCK, above += BLOCK, below += BLOCK, out += BLOCK / 2)
        for (int i = 0; i < BLOCK / 2; i++)
            out[i] = (uint8_t)((above[2 * i] + above[2 * i + 1] + below[2 * i] + below[2 * i + 1] +
                                1 + i % 2) >>
                               2);
}

/* Without its lowest bits, rounded. */
static int16_t forward_shorten(int32_t value, int bits)
{
    return (int16_t)((value + (1 << (bits - 1))) >> bits);
}

/* Compilers make vectors of twice as many numbers if sums are known to fit in 16 bits, as here. */
static inline int16_t forward_add(int16_t a, int16_t b)
{
    return (int16_t)(a + b);
}

static inline int16_t forward_subtract(int16_t a, int16_t b)
{
    return (int16_t)(a - b);
}

/* One dimension of islow: eight numbers, `step` apart, in place. The first pass leaves PASS_BITS
 * more fraction bits, the second takes them away. Inlined, so that loops of it become vectors. */
static inline __attribute__((always_inline)) void forward_pass(int16_t *row, int step, int first)
{
    const int bits = first ? BITS - PASS_BITS : BITS + PASS_BITS;
    const int16_t sum07 = forward_add(row[0], row[7 * step]);
    const int16_t minus07 = forward_subtract(row[0], row[7 * step]);
    const int16_t sum16 = forward_add(row[step], row[6 * step]);
    const int16_t minus16 = forward_subtract(row[step], row[6 * step]);
    const int16_t sum25 = forward_add(row[2 * step], row[5 * step]);
    const int16_t minus25 = forward_subtract(row[2 * step], row[5 * step]);
    const int16_t sum34 = forward_add(row[3 * step], row[4 * step]);
    const int16_t minus34 = forward_subtract(row[3 * step], row[4 * step]);
    /* Even part */
    const int16_t even0 = forward_add(sum07, sum34), even3 = forward_subtract(sum07, sum34);
    const int16_t even1 = forward_add(sum16, sum25), even2 = forward_subtract(sum16, sum25);
    if (first) {
        row[0] = (int16_t)((even0 + even1) * (1 << PASS_BITS));
        row[4 * step] = (int16_t)((even0 - even1) * (1 << PASS_BITS));
    } else {
        row[0] = forward_shorten(even0 + even1, PASS_BITS);
        row[4 * step] = forward_shorten(even0 - even1, PASS_BITS);
    }
    row[2 * step] = forward_shorten(even3 * (4433 + 6270) + even2 * 4433, bits);
    row[6 * step] = forward_shorten(even3 * 4433 + even2 * (4433 - 15137), bits);
    /* Odd part */
    const int16_t z3 = forward_add(minus34, minus16), z4 = forward_add(minus25, minus07);
    const int32_t odd_z3 = z3 * (9633 - 16069) + z4 * 9633;
    const int32_t odd_z4 = z3 * 9633 + z4 * (9633 - 3196);
    row[7 * step] = forward_shorten(minus34 * (2446 - 7373) + minus07 * -7373 + odd_z3, bits);
    row[step] = forward_shorten(minus34 * -7373 + minus07 * (12299 - 7373) + odd_z4, bits);
    row[5 * step] = forward_shorten(minus25 * (16819 - 20995) + minus16 * -20995 + odd_z4, bits);
    row[3 * step] = forward_shorten(minus25 * -20995 + minus16 * (25172 - 20995) + odd_z3, bits);
}

static void transform_c(const uint8_t *samples, size_t stride, size_t count, int16_t *out)
{
    for (size_t n = 0; n < count; n++, samples += SIDE, out += 64) {
        int16_t work[64];
        for (size_t y = 0; y < SIDE; y++)
            for (size_t x = 0; x < SIDE; x++)
                work[SIDE * y + x] = (int16_t)(samples[y * stride + x] - 128);
        for (int i = 0; i < SIDE; i++)
            forward_pass(work + SIDE * i, 1, 1);
        for (int i = 0; i < SIDE; i++)
            forward_pass(work + i, SIDE, 0);
        for (int i = 0; i < 64; i++)
            out[i] = work[dl2_jpeg_natural[i]];
    }
}

/* Bit i of the result is the lowest bit of byte i. */
static uint64_t gather_bits(const uint8_t bytes[8])
{
    uint64_t eight;
    memcpy(&eight, bytes, sizeof eight);
#if __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__
    eight = __builtin_bswap64(eight);
#endif
    return eight * 0x0102040810204080u >> 56; /* shifts byte i by 56 - 7 * i bits to bit 56 + i */
}

/* In loops that compilers make vectors of. */
static uint64_t quantize_c(const int16_t *restrict block,
                           const struct dl2_jpeg_divisors *restrict divisors,
                           uint16_t *restrict out)
{
    uint8_t flags[64];
    uint64_t filled = 0;
    for (int i = 0; i < 64; i++) {
        const uint16_t sign = (uint16_t)(block[i] >> 15);
        const uint16_t half = (uint16_t)(((uint16_t)block[i] ^ sign) - sign + divisors->half[i]);
        const uint16_t product = (uint16_t)((uint32_t)half * divisors->factor[i] >> 16);
        const uint16_t quotient = (uint16_t)((uint32_t)product * divisors->scale[i] >> 16);
        out[i] = (uint16_t)((quotient ^ sign) - sign + DL2_JPEG_BIAS);
    }
    for (int i = 0; i < 64; i++)
        flags[i] = out[i] != DL2_JPEG_BIAS;
    for (int i = 0; i < 64; i += 8)
        filled |= gather_bits(flags + i) << i;
    return filled;
}

/*
 * The forward DCT of 8-bit samples stays within 8 * 1024, so n = |coefficient| + half is below
 * 2^14. With 2^(b-1) < divisor <= 2^b and factor = 2^(14+b) / divisor, rounded up by e / divisor, e
 * <= divisor, n * factor / 2^(14+b) exceeds n / divisor by less than 1 / divisor, as n * e <
 * 2^(14+b): the integers below are the same. Shifting by 14 + b is shifting by 16, and by b - 2.
 */
void dl2_jpeg_divisors_set(struct dl2_jpeg_divisors *divisors, const uint16_t *steps)
{
    for (int i = 0; i < 64; i++) {
        const uint32_t divisor = 8u * steps[dl2_jpeg_natural[i]];
        unsigned b = 3;
        while (1u << b < divisor)
            b++;
        divisors->half[i] = (uint16_t)(divisor / 2);
        divisors->factor[i] = (uint16_t)((1u << (14 + b)) / divisor + 1);
        divisors->scale[i] = (uint16_t)(1u << (18 - b));
    }
}

const struct dl2_jpeg_forward dl2_jpeg_forward_c = {
    .name = "c",
    .ycc = ycc_c,
    .halve = halve_c,
    .transform = transform_c,
    .quantize = quantize_c,
};

const struct dl2_jpeg_forward *dl2_jpeg_forward_for(unsigned simd_flags)
{
    return DL2_SIMD_BEST(dl2_jpeg_forward, simd_flags);
}
