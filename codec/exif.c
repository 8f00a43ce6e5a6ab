/* SPDX-License-Identifier: BSD-2-Clause */
#include "codec/exif.h"

#include <string.h>

enum { TAG_ORIENTATION = 0x0112, TYPE_SHORT = 3, ENTRY_BYTES = 12 };

static uint32_t exif_u16(const uint8_t *p, int big)
{
    return big ? (uint32_t)p[0] << 8 | p[1] : (uint32_t)p[1] << 8 | p[0];
}

static uint32_t exif_u32(const uint8_t *p, int big)
{
    return big ? exif_u16(p, 1) << 16 | exif_u16(p + 2, 1)
               : exif_u16(p + 2, 0) << 16 | exif_u16(p, 0);
}

int dl2_exif_orientation(const uint8_t *data, size_t size)
{
    if (size >= 6 && !memcmp(data, "Exif\0\0", 6)) {
        data += 6;
        size -= 6;
    }
    if (size < 8)
        return 1;
    int big = !memcmp(data, "MM\0*", 4);
    if (!big && memcmp(data, "II*\0", 4) != 0)
        return 1;
    size_t at = exif_u32(data + 4, big);
    if (at > size - 2)
        return 1;
    uint32_t entries = exif_u16(data + at, big);
    at += 2;
    for (uint32_t i = 0; i < entries && size - at >= ENTRY_BYTES; i++, at += ENTRY_BYTES) {
        const uint8_t *entry = data + at;
        if (exif_u16(entry, big) != TAG_ORIENTATION)
            continue;
        uint32_t value = exif_u16(entry + 8, big);
        return exif_u16(entry + 2, big) == TYPE_SHORT && value >= 1 && value <= 8 ? (int)value : 1;
    }
    return 1;
}
