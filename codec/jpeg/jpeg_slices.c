/* SPDX-License-Identifier: BSD-2-Clause */
#include "codec/jpeg/jpeg_slices.h"

#include "codec/codecs.h"
#include "codec/jpeg/jpeg_header.h"

#include <string.h>

enum {
    SLICE_BYTES = 8192, /* on average, at least */
    MIN_SLICES = 4      /* fewer save too little */
};

static uint32_t slice_common_divisor(uint32_t a, uint32_t b)
{
    while (b) {
        const uint32_t rest = a % b;
        a = b;
        b = rest;
    }
    return a;
}

/* MCU rows of a slice, so that each begins with a segment of its own; 0: not to be cut. */
static uint32_t slice_mcus(const struct dl2_jpeg_header *header, size_t size)
{
    const uint64_t step = header->interval / slice_common_divisor(header->interval, header->mcus_x);
    const size_t most = size / SLICE_BYTES;
    if (most < MIN_SLICES)
        return 0;
    const uint64_t wanted = (header->mcus_y + most - 1) / most;
    const uint64_t mcus = (wanted + step - 1) / step * step;
    return mcus <= header->mcus_y / MIN_SLICES ? (uint32_t)mcus : 0;
}

static uint64_t slice_first_segment(const struct dl2_jpeg_header *header, uint64_t mcu_row)
{
    return mcu_row * header->mcus_x / header->interval;
}

/* Writes down the cuts of an image whose segments begin at `starts`. 1, or out of memory. */
static int slice_write_cuts(struct dl2_slicing *slicing, const struct dl2_jpeg_header *header,
                            int orientation, uint32_t mcus, const uint8_t *data,
                            const size_t *starts, struct dl2_error *error)
{
    slicing->width = header->width;
    slicing->height = header->height;
    slicing->orientation = orientation;
    slicing->rows = mcus * header->mcu_height;
    slicing->count = dl2_divide_up(header->mcus_y, mcus);
    DL2_TRY(dl2_jpeg_reserve(&slicing->head, header->scan + 6, error));
    DL2_TRY(dl2_jpeg_reserve(&slicing->offsets, ((size_t)slicing->count + 1) * sizeof(uint32_t),
                             error));
    uint32_t *offsets = (uint32_t *)(void *)slicing->offsets.data;
    for (uint32_t i = 0; i < slicing->count; i++)
        offsets[i] = (uint32_t)starts[slice_first_segment(header, (uint64_t)i * mcus)];
    offsets[slicing->count] = (uint32_t)starts[dl2_jpeg_segment_count(header)];
    /* One pixel: images of any size share it. */
    const uint8_t *end = dl2_jpeg_header_write(header, data, 1, 1, slicing->head.data);
    slicing->head.size = (size_t)(end - slicing->head.data);
    return 1;
}

int dl2_jpeg_slice(const uint8_t *data, size_t size, struct dl2_slicing *slicing,
                   struct dl2_error *error)
{
    struct dl2_jpeg_header header;
    struct dl2_image_info info;
    if (!dl2_jpeg_header_read(&header, data, size) || !header.interval || size > UINT32_MAX)
        return 0;
    const uint32_t mcus = slice_mcus(&header, size);
    if (!mcus || dl2_image_read_info(data, size, &info, NULL) < 0)
        return 0;
    struct dl2_bytes starts = DL2_BYTES_INIT;
    int status = dl2_jpeg_find_segments(&starts, &header, data, size, error);
    if (status == 1)
        status = slice_write_cuts(slicing, &header, info.orientation, mcus, data,
                                  (const size_t *)(const void *)starts.data, error);
    dl2_bytes_free(&starts);
    return status;
}

static int slice_fail(struct dl2_error *error)
{
    return dl2_error_set(error, DL2_ERR_FORMAT, "its slices are not what the index says they are");
}

/* Numbers the restart markers anew; false where they are not those of segments first .. end - 1. */
static bool slice_renumber(uint8_t *data, size_t size, uint64_t first, uint64_t end,
                           uint64_t segments)
{
    size_t at = 0;
    for (uint64_t number = first; number < end; number++) {
        const bool last = number + 1 == segments;
        at = dl2_jpeg_find_marker(data, at, size);
        if (at == size || data[at] != (last ? DL2_JPEG_EOI : DL2_JPEG_RST0 + (number & 7)))
            return false;
        data[at++] =
            (uint8_t)(number + 1 == end ? DL2_JPEG_EOI : DL2_JPEG_RST0 + ((number - first) & 7));
    }
    return at == size;
}

int dl2_jpeg_join_slices(const struct dl2_cuts *cuts, struct dl2_slice_range range,
                         const uint8_t *data, size_t size, struct dl2_bytes *out,
                         struct dl2_error *error)
{
    const uint32_t width = cuts->width, height = cuts->height, rows = cuts->rows;
    struct dl2_jpeg_header header;
    if (!dl2_jpeg_header_read(&header, cuts->head, cuts->head_size) || !header.interval || !width ||
        !height || width > UINT16_MAX || height > UINT16_MAX || !rows || rows % header.mcu_height ||
        !range.count || (uint64_t)range.first * rows >= height ||
        (uint64_t)(range.first + (uint64_t)range.count - 1) * rows >= height)
        return slice_fail(error);
    dl2_jpeg_header_resize(&header, width, height);
    const uint64_t mcus = rows / header.mcu_height;
    const uint64_t top = range.first * mcus, bottom = top + range.count * mcus;
    const uint64_t segments = dl2_jpeg_segment_count(&header);
    const uint64_t first = slice_first_segment(&header, top);
    const uint64_t end = bottom < header.mcus_y ? slice_first_segment(&header, bottom) : segments;
    if (top * header.mcus_x % header.interval)
        return slice_fail(error);
    DL2_TRY(dl2_jpeg_reserve(out, header.scan + 6 + size, error));
    const uint32_t y = range.first * rows;
    const uint32_t shown = bottom < header.mcus_y ? range.count * rows : height - y;
    uint8_t *scan = dl2_jpeg_header_write(&header, cuts->head, width, shown, out->data);
    memcpy(scan, data, size);
    out->size = (size_t)(scan - out->data) + size;
    return slice_renumber(scan, size, first, end, segments) ? DL2_OK : slice_fail(error);
}
