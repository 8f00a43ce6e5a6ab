/* SPDX-License-Identifier: BSD-2-Clause */
#include "device/element.h"

#include <math.h>
#include <stdint.h>
#include <string.h>

size_t dl2_element_size(enum dl2_element element)
{
    return element == DL2_ELEMENT_F32 ? 4 : 2;
}

static float float_of(uint32_t bits)
{
    float value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

static uint32_t bits_of(float value)
{
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    return bits;
}

static float from_half(uint16_t half)
{
    uint32_t sign = (uint32_t)(half & 0x8000) << 16, exponent = half >> 10 & 31;
    uint32_t mantissa = half & 0x3ff;
    if (exponent == 31) /* infinite or NaN */
        return float_of(sign | 0x7f800000 | mantissa << 13);
    if (exponent == 0) { /* below 2^-14: in steps of 2^-24 */
        float small = (float)mantissa * 0x1p-24f;
        return sign ? -small : small;
    }
    return float_of(sign | (exponent + 112) << 23 | mantissa << 13);
}

static uint16_t to_half(float value)
{
    uint32_t bits = bits_of(value);
    uint16_t sign = (uint16_t)(bits >> 16 & 0x8000);
    bits &= 0x7fffffff;
    if (bits > 0x7f800000)
        return sign | 0x7e00;
    if (bits >= 0x47800000) /* 2^16 */
        return sign | 0x7c00;
    if (bits < 0x38800000) /* 2^-14: adding 1/2 leaves steps of 2^-24, rounded */
        return (uint16_t)(sign | (bits_of(float_of(bits) + 0.5f) - bits_of(0.5f)));
    bits += 0xfff + (bits >> 13 & 1);
    return (uint16_t)(sign | ((bits >> 13) - (112u << 10)));
}

static uint16_t to_bfloat(float value)
{
    uint32_t bits = bits_of(value);
    if ((bits & 0x7fffffff) > 0x7f800000)
        return (uint16_t)(bits >> 16 | 0x40);
    return (uint16_t)((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
}

void dl2_elements_to_floats(enum dl2_element element, const void *from, float *to, size_t count)
{
    const uint8_t *p = from;
    if (element == DL2_ELEMENT_F32) {
        memcpy(to, from, count * sizeof *to);
        return;
    }
    for (size_t i = 0; i < count; i++) {
        uint16_t bits;
        memcpy(&bits, p + 2 * i, sizeof bits);
        to[i] = element == DL2_ELEMENT_F16 ? from_half(bits) : float_of((uint32_t)bits << 16);
    }
}

void dl2_elements_from_floats(enum dl2_element element, const float *from, void *to, size_t count)
{
    uint8_t *p = to;
    if (element == DL2_ELEMENT_F32) {
        memcpy(to, from, count * sizeof *from);
        return;
    }
    for (size_t i = 0; i < count; i++) {
        uint16_t bits = element == DL2_ELEMENT_F16 ? to_half(from[i]) : to_bfloat(from[i]);
        memcpy(p + 2 * i, &bits, sizeof bits);
    }
}
