#include "codec/jpeg_tiles.h"

#include <string.h>

enum {
    SOF0 = 0xc0,
    SOF1 = 0xc1,
    DHT = 0xc4,
    SOF15 = 0xcf,
    DAC = 0xcc,
    RST0 = 0xd0,
    RST7 = 0xd7,
    SOI = 0xd8,
    EOI = 0xd9,
    SOS = 0xda,
    DQT = 0xdb,
    DRI = 0xdd,
    APP0 = 0xe0,
    APP14 = 0xee,
    APP15 = 0xef,
    COM = 0xfe,
    MAX_SIDE = 65500, /* libjpeg's */
    BLOCK = 8,
};

/* What a header says that matters here. */
struct header {
    size_t scan;                    /* where entropy-coded data begin */
    size_t sof, sos;                /* of the segments' markers */
    uint32_t width, height;         /* pixels */
    uint32_t mcu_width, mcu_height; /* pixels */
    uint32_t mcus_x, mcus_y;
    uint32_t components;
    uint32_t interval; /* MCUs, 0: none */
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
static bool read_frame(struct header *header, const uint8_t *data, size_t size)
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

/* Up to the entropy-coded data of a baseline file's one scan; false for anything else. */
static bool read_header(struct header *header, const uint8_t *data, size_t size)
{
    *header = (struct header){0};
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

/* Makes room with some to spare, so that a run of images soon needs no more. */
static int reserve(struct dl2_bytes *bytes, size_t size, struct dl2_error *error)
{
    if (size > bytes->capacity)
        DL2_TRY(dl2_bytes_resize(bytes, size + size / 2 + 1024, error));
    bytes->size = size;
    return DL2_OK;
}

/*
 * Where each segment begins, and one more: where the one behind the last would. A segment's marker,
 * two bytes, is the end of what comes before the next one. 1: found; 0: not what the header says.
 */
static int find_segments(struct dl2_bytes *out, const struct header *header, const uint8_t *data,
                         size_t size, size_t count, struct dl2_error *error)
{
    if (count > size / 2) /* each has a marker; checked before memory is taken */
        return 0;
    DL2_TRY(reserve(out, (count + 1) * sizeof(size_t), error));
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
            return marker == EOI;
        if (marker != RST0 + ((found - 1) & 7))
            return 0;
    }
}

/* Which MCUs, and in segments of which rows. */
struct layout {
    uint32_t left, right, top, bottom; /* MCUs that are needed */
    uint32_t per_row;                  /* segments of each row of the small JPEG */
    uint32_t mcus_x;                   /* MCUs of each row */
    uint64_t usable;                   /* segments that rows may be made of: not a short last one */
};

/* The first of the segments of an MCU row. */
static uint64_t first_segment(const struct layout *layout, const struct header *header,
                              uint32_t row)
{
    const uint64_t first = ((uint64_t)row * header->mcus_x + layout->left) / header->interval;
    /* At the end of the image a row that needs one less takes it on its left. */
    return first + layout->per_row > layout->usable ? layout->usable - layout->per_row : first;
}

static bool plan(struct layout *layout, const struct header *header, uint64_t segments)
{
    const uint64_t interval = header->interval, across = header->mcus_x;
    const uint32_t rest = (uint32_t)(across * header->mcus_y % interval);
    layout->usable = segments;
    if (rest && layout->bottom == header->mcus_y &&
        ((uint64_t)(header->mcus_y - 1) * across + layout->right - 1) / interval == segments - 1) {
        /* The last one is short: only a JPEG of one row, which may have any width, can have it. */
        if (layout->bottom - layout->top > 1)
            layout->bottom--;
        else
            layout->mcus_x = rest;
    }
    if (rest && !layout->mcus_x)
        layout->usable--;
    for (uint32_t row = layout->top; row < layout->bottom; row++) {
        const uint64_t begin = row * across + layout->left, end = row * across + layout->right;
        const uint32_t count = (uint32_t)((end - 1) / interval - begin / interval + 1);
        layout->per_row = count > layout->per_row ? count : layout->per_row;
    }
    if (layout->per_row > layout->usable)
        return false;
    const uint64_t mcus = layout->mcus_x ? (layout->per_row - 1) * interval + layout->mcus_x
                                         : layout->per_row * interval;
    if (mcus * header->mcu_width > MAX_SIDE)
        return false;
    layout->mcus_x = (uint32_t)mcus;
    return true;
}

/* Is the small JPEG less work than the large one up to its last row, which is all that is read? */
static bool saves(const struct layout *layout, const struct header *header)
{
    const uint64_t small = (uint64_t)layout->mcus_x * (layout->bottom - layout->top);
    const uint64_t large = (uint64_t)header->mcus_x * layout->bottom;
    return small * 16 <= large * 15;
}

/* Where rows begin, and with it the small image's place. */
static int place(struct dl2_jpeg_splice *splice, const struct layout *layout,
                 const struct header *header, struct dl2_error *error)
{
    splice->rows = layout->bottom - layout->top;
    DL2_TRY(reserve(&splice->shift, splice->rows * sizeof(uint32_t), error));
    int64_t furthest = 0; /* MCU column */
    for (uint32_t row = layout->top; row < layout->bottom; row++) {
        const int64_t begin = (int64_t)(first_segment(layout, header, row) * header->interval) -
                              (int64_t)row * header->mcus_x;
        furthest = begin > furthest ? begin : furthest;
    }
    uint32_t *const shift = (uint32_t *)(void *)splice->shift.data;
    splice->shifted = furthest + layout->mcus_x > header->mcus_x;
    for (uint32_t row = layout->top; row < layout->bottom; row++) {
        const int64_t begin = (int64_t)(first_segment(layout, header, row) * header->interval) -
                              (int64_t)row * header->mcus_x;
        shift[row - layout->top] = (uint32_t)(furthest - begin);
        splice->shifted = splice->shifted || begin != furthest;
    }
    splice->mcu_width = header->mcu_width;
    splice->mcu_height = header->mcu_height;
    splice->x = (uint32_t)furthest * header->mcu_width;
    splice->y = layout->top * header->mcu_height;
    splice->mcus_x = layout->mcus_x;
    splice->width = layout->mcus_x * header->mcu_width;
    if (!splice->shifted && splice->width > header->width - splice->x)
        splice->width = header->width - splice->x;
    splice->height = splice->rows * header->mcu_height;
    if (splice->height > header->height - splice->y)
        splice->height = header->height - splice->y;
    return DL2_OK;
}

static uint8_t *copy(uint8_t *out, const uint8_t *data, size_t size)
{
    memcpy(out, data, size);
    return out + size;
}

/* What decoding needs of the header: tables, the frame with its new size, colour spaces. */
static uint8_t *write_header(const struct dl2_jpeg_splice *splice, const struct header *header,
                             const uint8_t *data, uint8_t *out)
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
            write_16(frame + 5, splice->height);
            write_16(frame + 7, splice->width);
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

static int write_small(struct dl2_jpeg_splice *splice, const struct layout *layout,
                       const struct header *header, const uint8_t *data, struct dl2_error *error)
{
    const size_t *const starts = (const size_t *)(const void *)splice->segments.data;
    size_t size = header->scan + 6;
    for (uint32_t row = layout->top; row < layout->bottom; row++) {
        const uint64_t first = first_segment(layout, header, row);
        size += starts[first + layout->per_row] - starts[first];
    }
    DL2_TRY(reserve(&splice->jpeg, size, error));
    uint8_t *out = write_header(splice, header, data, splice->jpeg.data);
    unsigned count = 0;
    for (uint32_t row = layout->top; row < layout->bottom; row++) {
        const size_t *const start = starts + first_segment(layout, header, row);
        uint8_t *const copied = out;
        out = copy(out, data + start[0], start[layout->per_row] - start[0]);
        for (uint32_t i = 1; i <= layout->per_row; i++, count++)
            copied[start[i] - start[0] - 1] = (uint8_t)(RST0 + (count & 7));
    }
    out[-1] = EOI;
    splice->jpeg.size = (size_t)(out - splice->jpeg.data);
    return 1;
}

int dl2_jpeg_splice(struct dl2_jpeg_splice *splice, const uint8_t *data, size_t size, uint32_t x,
                    uint32_t y, uint32_t width, uint32_t height, struct dl2_error *error)
{
    struct header header;
    /* Intervals of more than a row: rows would share segments. */
    if (!read_header(&header, data, size) || !header.interval || header.interval > header.mcus_x)
        return 0;
    if (!width || !height || x >= header.width || y >= header.height || width > header.width - x ||
        height > header.height - y)
        return 0;
    struct layout layout = {
        .left = x / header.mcu_width,
        .right = divide_up(x + width, header.mcu_width),
        .top = y / header.mcu_height,
        .bottom = divide_up(y + height, header.mcu_height),
    };
    const uint64_t mcus = (uint64_t)header.mcus_x * header.mcus_y;
    const uint64_t segments = mcus / header.interval + (mcus % header.interval != 0);
    if (!plan(&layout, &header, segments) || !saves(&layout, &header))
        return 0;
    const int found = find_segments(&splice->segments, &header, data, size, segments, error);
    if (found <= 0)
        return found;
    DL2_TRY(place(splice, &layout, &header, error));
    return write_small(splice, &layout, &header, data, error);
}

void dl2_jpeg_splice_free(struct dl2_jpeg_splice *splice)
{
    dl2_bytes_free(&splice->jpeg);
    dl2_bytes_free(&splice->shift);
    dl2_bytes_free(&splice->segments);
}

/*
 * A segment costs some four bytes: its marker, the bits before it, the differences of the DC values
 * that begin anew. At high quality, where it holds most, 64x16 pixels are the best for crops (4
 * MCUs of 4:2:0); at lower quality it takes twice as many and more to stay within 3% (the figures
 * are in docs/performance.md). An interval that divides the row keeps the rows of a small JPEG in
 * line, which the decoding of whole pixels needs.
 */
unsigned dl2_jpeg_tile_interval(uint32_t width, uint32_t mcu_width, uint32_t mcu_height,
                                int quality)
{
    const uint32_t pixels = quality >= 85 ? 1024 : quality >= 40 ? 2048 : 4096;
    const uint32_t wanted = pixels / (mcu_width * mcu_height);
    const uint32_t across = divide_up(width, mcu_width);
    if (across < 2 * wanted)
        return 0;
    for (uint32_t away = 0; away <= wanted / 2; away++) {
        if (across % (wanted + away) == 0)
            return wanted + away;
        if (away <= wanted / 4 && across % (wanted - away) == 0)
            return wanted - away;
    }
    return wanted;
}
