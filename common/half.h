/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Floats of 16 bits, as bits: half precision (IEEE 754 binary16) and bfloat16 (the upper half of a
 * float32). To them: the nearest, ties to even; what is too large becomes infinite, NaN stays one.
 * From them: exact.
 *
 * Threads: any.
 */
#ifndef DL2_COMMON_HALF_H
#define DL2_COMMON_HALF_H

#include <stdint.h>
#include <string.h>

static inline float dl2_float_of_bits(uint32_t bits)
{
    float value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

static inline uint32_t dl2_bits_of_float(float value)
{
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    return bits;
}

static inline float dl2_half_to_float(uint16_t half)
{
    const uint32_t sign = (uint32_t)(half & 0x8000) << 16, exponent = half >> 10 & 31;
    const uint32_t mantissa = half & 0x3ff;
    if (exponent == 31) /* infinite or NaN */
        return dl2_float_of_bits(sign | 0x7f800000 | mantissa << 13);
    if (exponent == 0) { /* below 2^-14: in steps of 2^-24 */
        const float small = (float)mantissa * 0x1p-24f;
        return sign ? -small : small;
    }
    return dl2_float_of_bits(sign | (exponent + 112) << 23 | mantissa << 13);
}

static inline uint16_t dl2_float_to_half(float value)
{
    uint32_t bits = dl2_bits_of_float(value);
    const uint16_t sign = (uint16_t)(bits >> 16 & 0x8000);
    bits &= 0x7fffffff;
    if (bits > 0x7f800000)
        return sign | 0x7e00;
    if (bits >= 0x47800000) /* 2^16 */
        return sign | 0x7c00;
    if (bits < 0x38800000) /* 2^-14: adding 1/2 leaves steps of 2^-24, rounded */
        return (uint16_t)(sign | (dl2_bits_of_float(dl2_float_of_bits(bits) + 0.5f) -
                                  dl2_bits_of_float(0.5f)));
    bits += 0xfff + (bits >> 13 & 1);
    return (uint16_t)(sign | ((bits >> 13) - (112u << 10)));
}

static inline float dl2_bfloat_to_float(uint16_t bfloat)
{
    return dl2_float_of_bits((uint32_t)bfloat << 16);
}

static inline uint16_t dl2_float_to_bfloat(float value)
{
    const uint32_t bits = dl2_bits_of_float(value);
    if ((bits & 0x7fffffff) > 0x7f800000)
        return (uint16_t)(bits >> 16 | 0x40);
    return (uint16_t)((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
}

#endif
