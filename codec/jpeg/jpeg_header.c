/* SPDX-License-Identifier: BSD-2-Clause */
#include "codec/jpeg/jpeg_header.h"

#include "codec/codecs.h"

#include <string.h>

enum { SOF1 = 0xc1, APP14 = 0xee, APP15 = 0xef, COM = 0xfe, BLOCK = 8 };

static void jpeg_write_u16(uint8_t *data, uint32_t value)
{
    data[0] = (uint8_t)(value >> 8);
    data[1] = (uint8_t)value;
}

bool dl2_jpeg_next_marker(struct dl2_jpeg_marker *marker, const uint8_t *data, size_t size)
{
    size_t at = marker->end;
    while (size - at >= 4 && data[at] == 0xff && data[at + 1] == 0xff) /* fill */
        at++;
    if (size - at < 4 || data[at] != 0xff || data[at + 1] == DL2_JPEG_EOI)
        return false;
    const size_t length = dl2_read_u16(data + at + 2);
    if (length < 2 || length > size - at - 2)
        return false;
    *marker = (struct dl2_jpeg_marker){.at = at,
                                       .end = at + 2 + length,
                                       .code = data[at + 1],
                                       .body = data + at + 4,
                                       .size = length - 2};
    return true;
}

size_t dl2_jpeg_find_marker(const uint8_t *data, size_t at, size_t size)
{
    for (;; at++) {
        const uint8_t *const found = memchr(data + at, 0xff, size - at);
        at = found ? (size_t)(found - data) : size;
        while (at < size && data[at] == 0xff)
            at++;
        if (at == size || data[at]) /* no stuffed byte */
            return at;
    }
}

void dl2_jpeg_header_resize(struct dl2_jpeg_header *header, uint32_t width, uint32_t height)
{
    header->width = width;
    header->height = height;
    header->mcus_x = dl2_divide_up(width, header->mcu_width);
    header->mcus_y = dl2_divide_up(height, header->mcu_height);
}

static bool jpeg_read_frame(struct dl2_jpeg_header *header, const struct dl2_jpeg_marker *marker)
{
    const uint8_t *const body = marker->body;
    if (header->sof || marker->size < 6 || body[0] != 8)
        return false;
    const uint32_t height = dl2_read_u16(body + 1), width = dl2_read_u16(body + 3);
    header->sof = marker->at;
    header->components = body[5];
    if (!width || !height || header->components < 1 || header->components > 4 ||
        marker->size != 6 + 3 * (size_t)header->components)
        return false;
    unsigned across = 1, down = 1;
    for (size_t i = 0; i < header->components; i++) {
        const unsigned h = body[7 + 3 * i] >> 4, v = body[7 + 3 * i] & 15;
        if (h < 1 || h > 4 || v < 1 || v > 4)
            return false;
        across = h > across ? h : across;
        down = v > down ? v : down;
    }
    if (header->components == 1) /* a scan of one component isn't interleaved: MCUs are blocks */
        across = down = 1;
    header->mcu_width = BLOCK * across;
    header->mcu_height = BLOCK * down;
    dl2_jpeg_header_resize(header, width, height);
    return true;
}

bool dl2_jpeg_header_read(struct dl2_jpeg_header *header, const uint8_t *data, size_t size)
{
    *header = (struct dl2_jpeg_header){0};
    if (size < 4 || data[0] != 0xff || data[1] != DL2_JPEG_SOI)
        return false;
    struct dl2_jpeg_marker marker = {.end = 2};
    while (dl2_jpeg_next_marker(&marker, data, size)) {
        const uint8_t *const body = marker.body;
        switch (marker.code) {
        case DL2_JPEG_SOF0:
        case SOF1:
            if (!jpeg_read_frame(header, &marker))
                return false;
            break;
        case DL2_JPEG_DRI:
            if (marker.size != 2)
                return false;
            header->interval = dl2_read_u16(body);
            break;
        case DL2_JPEG_APP0:
            header->jfif = header->jfif || (marker.size >= 14 && !memcmp(body, "JFIF", 5));
            break;
        case APP14:
            if (marker.size >= 12 && !memcmp(body, "Adobe", 5)) {
                header->adobe = true;
                header->adobe_transform = body[11];
            }
            break;
        case DL2_JPEG_SOS:
            header->sos = marker.at;
            header->scan = marker.end;
            return header->sof && marker.size && body[0] == header->components;
        case DL2_JPEG_DHT:
        case DL2_JPEG_DQT:
        case COM:
            break;
        default: /* other frames, arithmetic coding, lines that come later */
            if (marker.code < DL2_JPEG_APP0 || marker.code > APP15)
                return false;
        }
    }
    return false;
}

uint64_t dl2_jpeg_segment_count(const struct dl2_jpeg_header *header)
{
    const uint64_t mcus = (uint64_t)header->mcus_x * header->mcus_y;
    return mcus / header->interval + (mcus % header->interval != 0);
}

int dl2_jpeg_reserve(struct dl2_bytes *bytes, size_t size, struct dl2_error *error)
{
    if (size > bytes->capacity)
        DL2_TRY(dl2_bytes_resize(bytes, size + size / 4 + 1024, error));
    bytes->size = size;
    return DL2_OK;
}

int dl2_jpeg_find_segments(struct dl2_bytes *out, const struct dl2_jpeg_header *header,
                           const uint8_t *data, size_t size, struct dl2_error *error)
{
    const uint64_t count = dl2_jpeg_segment_count(header);
    if (count > size / 2) /* each has a marker; checked before memory is taken */
        return 0;
    DL2_TRY(dl2_jpeg_reserve(out, (size_t)(count + 1) * sizeof(size_t), error));
    size_t *starts = (size_t *)(void *)out->data;
    size_t at = header->scan;
    starts[0] = at;
    for (size_t found = 0;;) {
        at = dl2_jpeg_find_marker(data, at, size);
        if (at == size)
            return 0;
        const unsigned marker = data[at++];
        const bool last = found + 1 == count;
        starts[++found] = at;
        if (last)
            return marker == DL2_JPEG_EOI;
        if (marker != DL2_JPEG_RST0 + ((found - 1) & 7))
            return 0;
    }
}

static uint8_t *jpeg_copy(uint8_t *out, const uint8_t *data, size_t size)
{
    memcpy(out, data, size);
    return out + size;
}

uint8_t *dl2_jpeg_header_write(const struct dl2_jpeg_header *header, const uint8_t *data,
                               uint32_t width, uint32_t height, uint8_t *out)
{
    out = jpeg_copy(out, data, 2);
    struct dl2_jpeg_marker marker = {.end = 2};
    while (dl2_jpeg_next_marker(&marker, data, header->sos)) {
        const uint8_t *const from = data + marker.at;
        const size_t bytes = marker.end - marker.at;
        if (marker.code == DL2_JPEG_SOF0 || marker.code == SOF1) {
            uint8_t *const frame = out;
            out = jpeg_copy(out, from, bytes);
            jpeg_write_u16(frame + 5, height);
            jpeg_write_u16(frame + 7, width);
            if (header->components == 1)
                frame[11] = 0x11;
        } else if (marker.code == DL2_JPEG_DHT || marker.code == DL2_JPEG_DQT ||
                   marker.code == APP14 ||
                   (marker.code == DL2_JPEG_APP0 && bytes >= 9 &&
                    !memcmp(marker.body, "JFIF", 5))) {
            out = jpeg_copy(out, from, bytes);
        }
    }
    static const uint8_t restart[] = {0xff, DL2_JPEG_DRI, 0, 4};
    out = jpeg_copy(out, restart, sizeof restart);
    jpeg_write_u16(out, header->interval);
    return jpeg_copy(out + 2, data + header->sos, header->scan - header->sos);
}
