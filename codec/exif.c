/* SPDX-License-Identifier: BSD-2-Clause */
#include "codec/exif.h"

#include <string.h>

enum { TAG_ORIENTATION = 0x0112, TYPE_SHORT = 3, ENTRY_BYTES = 12, TIFF_HEADER = 8 };

static uint32_t exif_u16(const uint8_t *p, int big)
{
    return big ? (uint32_t)p[0] << 8 | p[1] : (uint32_t)p[1] << 8 | p[0];
}

static uint32_t exif_u32(const uint8_t *p, int big)
{
    return big ? exif_u16(p, 1) << 16 | exif_u16(p + 2, 1)
               : exif_u16(p + 2, 0) << 16 | exif_u16(p, 0);
}

/* The first folder of a TIFF file. */
struct folder {
    bool big;       /* the byte order */
    size_t at;      /* of its first entry */
    uint32_t count; /* of entries, as it says */
    size_t tag;     /* where that of the orientation is, if it is a number of 16 bits; or 0 */
};

static bool read_folder(struct folder *folder, const uint8_t *data, size_t size)
{
    *folder = (struct folder){0};
    if (size < TIFF_HEADER)
        return false;
    folder->big = !memcmp(data, "MM\0*", 4);
    if (!folder->big && memcmp(data, "II*\0", 4) != 0)
        return false;
    size_t at = exif_u32(data + 4, folder->big);
    if (at > size - 2)
        return false;
    folder->count = exif_u16(data + at, folder->big);
    folder->at = at + 2;
    at = folder->at;
    for (uint32_t i = 0; i < folder->count && size - at >= ENTRY_BYTES; i++, at += ENTRY_BYTES) {
        if (exif_u16(data + at, folder->big) != TAG_ORIENTATION)
            continue;
        if (exif_u16(data + at + 2, folder->big) == TYPE_SHORT)
            folder->tag = at + 8;
        break;
    }
    return true;
}

int dl2_exif_orientation(const uint8_t *data, size_t size)
{
    struct folder folder;
    if (size >= 6 && !memcmp(data, "Exif\0\0", 6)) {
        data += 6;
        size -= 6;
    }
    if (!read_folder(&folder, data, size) || !folder.tag)
        return 1;
    const uint32_t value = exif_u16(data + folder.tag, folder.big);
    return value >= 1 && value <= 8 ? (int)value : 1;
}

bool dl2_exif_make_upright(uint8_t *data, size_t size)
{
    struct folder folder;
    /* What is written must not lie in the header, where a damaged block may have its folder. */
    if (!read_folder(&folder, data, size) || folder.at < TIFF_HEADER)
        return false;
    if (folder.tag) {
        data[folder.tag] = !folder.big;
        data[folder.tag + 1] = folder.big;
    }
    const size_t next = folder.at + (size_t)folder.count * ENTRY_BYTES;
    if (next <= size && size - next >= 4)
        memset(data + next, 0, 4);
    return true;
}
