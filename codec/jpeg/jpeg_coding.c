/* SPDX-License-Identifier: BSD-2-Clause */
#include "codec/jpeg/jpeg_coding.h"

#include "codec/codecs.h"
#include "codec/jpeg/jpeg_header.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>

enum { JPG = 0xc8, SOF9 = 0xc9, DAC = 0xcc, SOF15 = 0xcf, APP14 = 0xee };
enum { TABLES = 4, COEFFICIENTS = 64 };

/* T.81, tables K.1 and K.2 (luminance, chrominance), in the zigzag order of a file. */
static const uint8_t annex_k[2][COEFFICIENTS] = {
    {16, 11, 12,  14,  12,  10, 16, 14,  13,  14,  18,  17,  16, 19,  24,  40,
     26, 24, 22,  22,  24,  49, 35, 37,  29,  40,  58,  51,  61, 60,  57,  51,
     56, 55, 64,  72,  92,  78, 64, 68,  87,  69,  55,  56,  80, 109, 81,  87,
     95, 98, 103, 104, 103, 62, 77, 113, 121, 112, 100, 120, 92, 101, 103, 99},
    {17, 18, 18, 24, 21, 24, 47, 26, 26, 47, 99, 66, 56, 66, 99, 99, 99, 99, 99, 99, 99, 99,
     99, 99, 99, 99, 99, 99, 99, 99, 99, 99, 99, 99, 99, 99, 99, 99, 99, 99, 99, 99, 99, 99,
     99, 99, 99, 99, 99, 99, 99, 99, 99, 99, 99, 99, 99, 99, 99, 99, 99, 99, 99, 99},
};

/* What the headers before the first scan say. */
struct jpeg_headers {
    uint16_t tables[TABLES][COEFFICIENTS];
    bool known[TABLES];
    unsigned components, name[3], table[3], across[3], down[3];
    unsigned bits;
    bool progressive, arithmetic, jfif, adobe;
    unsigned adobe_transform;
};

static bool jpeg_read_tables(struct jpeg_headers *headers, const struct dl2_jpeg_marker *marker)
{
    for (size_t at = 0; at < marker->size;) {
        const unsigned wide = marker->body[at] >> 4, table = marker->body[at] & 15;
        const size_t bytes = COEFFICIENTS * (wide + 1);
        at++;
        if (wide > 1 || table >= TABLES || marker->size - at < bytes)
            return false;
        for (size_t k = 0; k < COEFFICIENTS; k++)
            headers->tables[table][k] =
                wide ? (uint16_t)dl2_read_u16(marker->body + at + 2 * k) : marker->body[at + k];
        headers->known[table] = true;
        at += bytes;
    }
    return true;
}

static bool jpeg_read_components(struct jpeg_headers *headers, const struct dl2_jpeg_marker *marker)
{
    headers->components = marker->size >= 6 ? marker->body[5] : 0;
    headers->progressive = (marker->code & 3) == 2;
    headers->arithmetic = marker->code >= SOF9;
    headers->bits = headers->components ? marker->body[0] : 0;
    if (!headers->components || marker->size != 6 + 3 * (size_t)headers->components)
        return false;
    for (unsigned i = 0; i < headers->components && i < 3; i++) {
        const uint8_t *component = marker->body + 6 + 3 * i;
        headers->name[i] = component[0];
        headers->across[i] = component[1] >> 4;
        headers->down[i] = component[1] & 15;
        headers->table[i] = component[2];
        if (component[2] >= TABLES)
            return false;
    }
    return true;
}

static bool jpeg_read_headers(struct jpeg_headers *headers, const uint8_t *data, size_t size)
{
    memset(headers, 0, sizeof *headers);
    struct dl2_jpeg_marker marker = {.end = 2};
    while (dl2_jpeg_next_marker(&marker, data, size)) {
        if (marker.code == DL2_JPEG_DQT && !jpeg_read_tables(headers, &marker))
            return false;
        if (marker.code == DL2_JPEG_SOS)
            return headers->components > 0;
        if (marker.code == DL2_JPEG_APP0 && marker.size >= 5 && !memcmp(marker.body, "JFIF", 5))
            headers->jfif = true;
        if (marker.code == APP14 && marker.size >= 12 && !memcmp(marker.body, "Adobe", 5)) {
            headers->adobe = true;
            headers->adobe_transform = marker.body[11];
        }
        if (marker.code >= DL2_JPEG_SOF0 && marker.code <= SOF15 && marker.code != DL2_JPEG_DHT &&
            marker.code != JPG && marker.code != DAC && !jpeg_read_components(headers, &marker))
            return false;
    }
    return false;
}

/* The sum of differences to libjpeg's table of this quality (jpeg_set_quality() of a baseline
 * file). */
static unsigned jpeg_distance(const uint16_t *table, bool chroma, int quality)
{
    const unsigned scale = quality < 50 ? 5000 / (unsigned)quality : 200 - 2 * (unsigned)quality;
    unsigned distance = 0;
    for (size_t k = 0; k < COEFFICIENTS; k++) {
        unsigned step = (annex_k[chroma][k] * scale + 50) / 100;
        step = step < 1 ? 1 : step > 255 ? 255 : step;
        distance += (unsigned)abs((int)step - (int)table[k]);
    }
    return distance;
}

static void jpeg_find_quality(const struct jpeg_headers *headers, struct dl2_coding *coding)
{
    const bool color = headers->components >= 3;
    if (!headers->known[headers->table[0]] || (color && !headers->known[headers->table[1]]))
        return;
    unsigned nearest = UINT_MAX;
    for (int quality = 100; quality >= 1; quality--) {
        unsigned distance = jpeg_distance(headers->tables[headers->table[0]], false, quality);
        if (color)
            distance += jpeg_distance(headers->tables[headers->table[1]], true, quality);
        if (distance >= nearest)
            continue;
        nearest = distance;
        coding->quality = quality;
    }
    coding->exact = nearest == 0;
}

static const char *jpeg_subsampling(const struct jpeg_headers *headers)
{
    static const struct {
        unsigned across, down;
        const char *name;
    } names[] = {{1, 1, "444"}, {2, 1, "422"}, {2, 2, "420"}, {1, 2, "440"}, {4, 1, "411"}};
    const unsigned *across = headers->across, *down = headers->down;
    if (headers->components == 1)
        return "gray";
    if (headers->components != 3 || !across[1] || !down[1] || across[1] != across[2] ||
        down[1] != down[2] || across[0] % across[1] || down[0] % down[1])
        return "other";
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (across[0] / across[1] == names[i].across && down[0] / down[1] == names[i].down)
            return names[i].name;
    return "other";
}

/* By libjpeg's rules, but that any sign of RGB counts: other programs go by other signs. */
static const char *jpeg_color(const struct jpeg_headers *headers)
{
    const unsigned *const name = headers->name;
    if (headers->components == 1)
        return "gray";
    if (headers->components != 3)
        return "inks";
    const bool named = name[0] == 'R' && name[1] == 'G' && name[2] == 'B';
    return (headers->adobe && !headers->adobe_transform) ||
                   (named && !headers->jfif && !headers->adobe)
               ? "RGB"
               : "YCbCr";
}

/* Where the next marker is that is no restart marker, from entropy-coded data on; *restarts counts
 * the others. */
static size_t jpeg_end_of_scan(const uint8_t *data, size_t size, size_t at, size_t *restarts)
{
    for (; (at = dl2_jpeg_find_marker(data, at, size)) < size; at++) {
        if (data[at] < DL2_JPEG_RST0 || data[at] >= DL2_JPEG_RST0 + 8)
            return at - 1;
        ++*restarts;
    }
    return size;
}

/* The bytes of scans, and in *tail those behind the image's end. */
static size_t jpeg_add_scans(const uint8_t *data, size_t size, size_t *tail)
{
    struct dl2_jpeg_marker marker = {.end = 2};
    size_t coded = 0, restarts = 0;
    while (marker.end < size && dl2_jpeg_next_marker(&marker, data, size)) {
        if (marker.code != DL2_JPEG_SOS)
            continue;
        const size_t end = jpeg_end_of_scan(data, size, marker.end, &restarts);
        coded += end - marker.end;
        marker.end = end;
    }
    const size_t code = marker.end < size ? dl2_jpeg_find_marker(data, marker.end, size) : size;
    *tail = code < size && data[code] == DL2_JPEG_EOI ? size - code - 1 : 0;
    return coded - 2 * restarts;
}

size_t dl2_jpeg_coded_bytes(const uint8_t *data, size_t size)
{
    size_t tail;
    return jpeg_add_scans(data, size, &tail);
}

bool dl2_jpeg_coding(const uint8_t *data, size_t size, struct dl2_coding *coding)
{
    struct jpeg_headers headers;
    *coding = (struct dl2_coding){0};
    if (size < 4 || !jpeg_read_headers(&headers, data, size))
        return false;
    jpeg_find_quality(&headers, coding);
    coding->subsampling = jpeg_subsampling(&headers);
    coding->progressive = headers.progressive;
    coding->arithmetic = headers.arithmetic;
    coding->color = jpeg_color(&headers);
    coding->common = headers.bits == 8 && !headers.arithmetic &&
                     (!strcmp(coding->color, "gray") || !strcmp(coding->color, "YCbCr"));
    jpeg_add_scans(data, size, &coding->tail);
    return true;
}
