#include "codec/jpeg_header.h"

#include <string.h>

enum {
    SOF0 = 0xc0,
    SOF1 = 0xc1,
    DHT = 0xc4,
    SOF15 = 0xcf,
    DAC = 0xcc,
    SOI = 0xd8,
    SOS = 0xda,
    DQT = 0xdb,
    DRI = 0xdd,
    APP0 = 0xe0,
    APP14 = 0xee,
    APP15 = 0xef,
    COM = 0xfe,
    BLOCK = 8,
};

static unsigned read_16(const uint8_t *data)
{
    return (unsigned)(data[0] << 8 | data[1]);
}

static void write_16(uint8_t *data, uint32_t value)
{
    data[0] = (uint8_t)(value >> 8);
    data[1] = (uint8_t)value;
}

static uint32_t divide_up(uint32_t a, uint32_t b)
{
    return a / b + (a % b != 0);
}

/* A frame header, `size` bytes behind its length. */
static bool read_frame(struct dl2_jpeg_header *header, const uint8_t *data, size_t size)
{
    if (size < 6 || data[0] != 8)
        return false;
    header->height = read_16(data + 1);
    header->width = read_16(data + 3);
    header->components = data[5];
    if (!header->width || !header->height || header->components < 1 || header->components > 4 ||
        size != 6 + 3 * (size_t)header->components)
        return false;
    unsigned across = 1, down = 1;
    for (size_t i = 0; i < header->components; i++) {
        const unsigned h = data[7 + 3 * i] >> 4, v = data[7 + 3 * i] & 15;
        if (h < 1 || h > 4 || v < 1 || v > 4)
            return false;
        across = h > across ? h : across;
        down = v > down ? v : down;
    }
    if (header->components == 1) /* a scan of one component isn't interleaved: MCUs are blocks */
        across = down = 1;
    header->mcu_width = BLOCK * across;
    header->mcu_height = BLOCK * down;
    header->mcus_x = divide_up(header->width, header->mcu_width);
    header->mcus_y = divide_up(header->height, header->mcu_height);
    return true;
}

bool dl2_jpeg_header_read(struct dl2_jpeg_header *header, const uint8_t *data, size_t size)
{
    *header = (struct dl2_jpeg_header){0};
    if (size < 4 || data[0] != 0xff || data[1] != SOI)
        return false;
    size_t at = 2;
    while (size - at >= 4) {
        if (data[at] != 0xff)
            return false;
        const unsigned marker = data[at + 1];
        if (marker == 0xff) { /* fill */
            at++;
            continue;
        }
        const size_t length = read_16(data + at + 2);
        if (length < 2 || length > size - at - 2)
            return false;
        const uint8_t *const body = data + at + 4;
        if (marker == SOF0 || marker == SOF1) {
            if (header->sof || !read_frame(header, body, length - 2))
                return false;
            header->sof = at;
        } else if (marker == DRI) {
            if (length != 4)
                return false;
            header->interval = read_16(body);
        } else if (marker == SOS) {
            header->sos = at;
            header->scan = at + 2 + length;
            return header->sof && length > 2 && body[0] == header->components;
        } else if (marker != DHT && marker != DQT && marker != COM &&
                   !(marker >= APP0 && marker <= APP15)) {
            return false; /* other frames, arithmetic coding, lines that come later */
        }
        at += 2 + length;
    }
    return false;
}

int dl2_jpeg_reserve(struct dl2_bytes *bytes, size_t size, struct dl2_error *error)
{
    if (size > bytes->capacity)
        DL2_TRY(dl2_bytes_resize(bytes, size + size / 2 + 1024, error));
    bytes->size = size;
    return DL2_OK;
}

int dl2_jpeg_find_segments(struct dl2_bytes *out, const struct dl2_jpeg_header *header,
                           const uint8_t *data, size_t size, size_t count, struct dl2_error *error)
{
    if (count > size / 2) /* each has a marker; checked before memory is taken */
        return 0;
    DL2_TRY(dl2_jpeg_reserve(out, (count + 1) * sizeof(size_t), error));
    size_t *starts = (size_t *)(void *)out->data;
    const uint8_t *at = data + header->scan, *const end = data + size;
    starts[0] = header->scan;
    for (size_t found = 0;;) {
        at = memchr(at, 0xff, (size_t)(end - at));
        if (!at)
            return 0;
        while (at < end && *at == 0xff)
            at++;
        if (at == end)
            return 0;
        const unsigned marker = *at++;
        if (marker == 0) /* a stuffed byte */
            continue;
        const bool last = found + 1 == count;
        starts[++found] = (size_t)(at - data);
        if (last)
            return marker == DL2_JPEG_EOI;
        if (marker != DL2_JPEG_RST0 + ((found - 1) & 7))
            return 0;
    }
}

static uint8_t *copy(uint8_t *out, const uint8_t *data, size_t size)
{
    memcpy(out, data, size);
    return out + size;
}

uint8_t *dl2_jpeg_header_write(const struct dl2_jpeg_header *header, const uint8_t *data,
                               uint32_t width, uint32_t height, uint8_t *out)
{
    out = copy(out, data, 2);
    for (size_t at = 2; at < header->sos;) {
        const unsigned marker = data[at + 1];
        if (marker == 0xff) {
            at++;
            continue;
        }
        const size_t length = 2 + read_16(data + at + 2);
        const bool jfif = marker == APP0 && length >= 9 && !memcmp(data + at + 4, "JFIF", 5);
        if (marker == SOF0 || marker == SOF1) {
            uint8_t *const frame = out;
            out = copy(out, data + at, length);
            write_16(frame + 5, height);
            write_16(frame + 7, width);
            if (header->components == 1)
                frame[11] = 0x11;
        } else if (marker == DHT || marker == DQT || marker == APP14 || jfif) {
            out = copy(out, data + at, length);
        }
        at += length;
    }
    static const uint8_t restart[] = {0xff, DRI, 0, 4};
    out = copy(out, restart, sizeof restart);
    write_16(out, header->interval);
    return copy(out + 2, data + header->sos, header->scan - header->sos);
}
