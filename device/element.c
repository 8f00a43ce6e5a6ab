/* SPDX-License-Identifier: BSD-2-Clause */
#include "device/element.h"

#include "common/half.h"

#include <stdint.h>
#include <string.h>

size_t dl2_element_size(enum dl2_element element)
{
    return element == DL2_ELEMENT_F32 ? 4 : 2;
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
        to[i] = element == DL2_ELEMENT_F16 ? dl2_half_to_float(bits) : dl2_bfloat_to_float(bits);
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
        uint16_t bits =
            element == DL2_ELEMENT_F16 ? dl2_float_to_half(from[i]) : dl2_float_to_bfloat(from[i]);
        memcpy(p + 2 * i, &bits, sizeof bits);
    }
}
