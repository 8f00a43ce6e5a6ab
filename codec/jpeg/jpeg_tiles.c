/* SPDX-License-Identifier: BSD-2-Clause */
#include "codec/jpeg/jpeg_tiles.h"

#include "codec/codecs.h"
#include "codec/jpeg/jpeg_header.h"

#include <string.h>

enum { MAX_SIDE = 65500 }; /* libjpeg's */

/* The MCUs of the small JPEG, and the segments that its rows are made of. */
struct splice_layout {
    uint32_t left, right, top, bottom; /* MCUs that are needed */
    uint32_t per_row;                  /* segments of each row of the small JPEG */
    uint32_t mcus_x;                   /* MCUs of each row */
    uint64_t usable;                   /* segments that rows may be made of: not a short last one */
};

/* The first of the segments of an MCU row. */
static uint64_t splice_first_segment(const struct splice_layout *layout,
                                     const struct dl2_jpeg_header *header, uint32_t row)
{
    const uint64_t first = ((uint64_t)row * header->mcus_x + layout->left) / header->interval;
    /* At the end of the image a row that needs one less takes it on its left. */
    return first + layout->per_row > layout->usable ? layout->usable - layout->per_row : first;
}

static bool splice_plan(struct splice_layout *layout, const struct dl2_jpeg_header *header)
{
    const uint64_t interval = header->interval, across = header->mcus_x;
    const uint64_t segments = dl2_jpeg_segment_count(header);
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
static bool splice_saves(const struct splice_layout *layout, const struct dl2_jpeg_header *header)
{
    const uint64_t small = (uint64_t)layout->mcus_x * (layout->bottom - layout->top);
    const uint64_t large = (uint64_t)header->mcus_x * layout->bottom;
    return small * 16 <= large * 15;
}

/* Finds where rows begin, and so where the small image lies in the whole one. */
static int splice_place(struct dl2_jpeg_splice *splice, const struct splice_layout *layout,
                        const struct dl2_jpeg_header *header, struct dl2_error *error)
{
    splice->rows = layout->bottom - layout->top;
    DL2_TRY(dl2_jpeg_reserve(&splice->shift, splice->rows * sizeof(uint32_t), error));
    int64_t furthest = 0; /* MCU column */
    for (uint32_t row = layout->top; row < layout->bottom; row++) {
        const int64_t begin =
            (int64_t)(splice_first_segment(layout, header, row) * header->interval) -
            (int64_t)row * header->mcus_x;
        furthest = begin > furthest ? begin : furthest;
    }
    uint32_t *const shift = (uint32_t *)(void *)splice->shift.data;
    splice->shifted = furthest + layout->mcus_x > header->mcus_x;
    for (uint32_t row = layout->top; row < layout->bottom; row++) {
        const int64_t begin =
            (int64_t)(splice_first_segment(layout, header, row) * header->interval) -
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

static int splice_write(struct dl2_jpeg_splice *splice, const struct splice_layout *layout,
                        const struct dl2_jpeg_header *header, const uint8_t *data,
                        struct dl2_error *error)
{
    const size_t *const starts = (const size_t *)(const void *)splice->segments.data;
    size_t size = header->scan + 6;
    for (uint32_t row = layout->top; row < layout->bottom; row++) {
        const uint64_t first = splice_first_segment(layout, header, row);
        size += starts[first + layout->per_row] - starts[first];
    }
    DL2_TRY(dl2_jpeg_reserve(&splice->jpeg, size, error));
    uint8_t *out =
        dl2_jpeg_header_write(header, data, splice->width, splice->height, splice->jpeg.data);
    unsigned count = 0;
    for (uint32_t row = layout->top; row < layout->bottom; row++) {
        const size_t *const start = starts + splice_first_segment(layout, header, row);
        uint8_t *const copied = out;
        memcpy(out, data + start[0], start[layout->per_row] - start[0]);
        out += start[layout->per_row] - start[0];
        for (uint32_t i = 1; i <= layout->per_row; i++, count++)
            copied[start[i] - start[0] - 1] = (uint8_t)(DL2_JPEG_RST0 + (count & 7));
    }
    out[-1] = DL2_JPEG_EOI;
    splice->jpeg.size = (size_t)(out - splice->jpeg.data);
    return 1;
}

int dl2_jpeg_splice(struct dl2_jpeg_splice *splice, const uint8_t *data, size_t size, uint32_t x,
                    uint32_t y, uint32_t width, uint32_t height, struct dl2_error *error)
{
    struct dl2_jpeg_header header;
    /* Intervals of more than a row: rows would share segments. */
    if (!dl2_jpeg_header_read(&header, data, size) || !header.interval ||
        header.interval > header.mcus_x)
        return 0;
    if (!width || !height || x >= header.width || y >= header.height || width > header.width - x ||
        height > header.height - y)
        return 0;
    struct splice_layout layout = {
        .left = x / header.mcu_width,
        .right = dl2_divide_up(x + width, header.mcu_width),
        .top = y / header.mcu_height,
        .bottom = dl2_divide_up(y + height, header.mcu_height),
    };
    if (!splice_plan(&layout, &header) || !splice_saves(&layout, &header))
        return 0;
    const int found = dl2_jpeg_find_segments(&splice->segments, &header, data, size, error);
    if (found <= 0)
        return found;
    DL2_TRY(splice_place(splice, &layout, &header, error));
    return splice_write(splice, &layout, &header, data, error);
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
 * are in docs/measurements/codec.md). An interval that divides the row keeps the rows of a small
 * JPEG in line, which the decoding of whole pixels needs.
 */
unsigned dl2_jpeg_tile_interval(uint32_t width, uint32_t mcu_width, uint32_t mcu_height,
                                int quality)
{
    const uint32_t pixels = quality >= 85 ? 1024 : quality >= 40 ? 2048 : 4096;
    const uint32_t wanted = pixels / (mcu_width * mcu_height);
    const uint32_t across = dl2_divide_up(width, mcu_width);
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
