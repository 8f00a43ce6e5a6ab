/* SPDX-License-Identifier: BSD-2-Clause */
#include "codec/jpeg/jpeg_segments.h"

#include "codec/jpeg/jpeg_header.h"

#include <string.h>

/* A place in the scan, and where a copy of it goes. */
struct cursor {
    const uint8_t *at, *end;
    uint8_t *out;
    unsigned marker; /* that ended the segment; 0: the file ends there */
};

/*
 * Passes one segment and the marker behind it, with a copy or without. False where 0xff bytes are
 * neither stuffed nor before a marker.
 */
static bool segment_pass(struct cursor *cursor, bool copy)
{
    const uint8_t *at = cursor->at, *const end = cursor->end;
    uint8_t *out = cursor->out;
    for (;;) {
        const uint8_t *const found = memchr(at, 0xff, (size_t)(end - at));
        const uint8_t *const stop = found ? found : end;
        const bool stuffed = found && end - found > 1 && found[1] == 0;
        if (copy) {
            const size_t bytes = (size_t)(stop - at) + stuffed;
            memcpy(out, at, bytes);
            out += bytes;
        }
        at = stuffed ? stop + 2 : stop;
        if (!stuffed)
            break;
    }
    cursor->out = out;
    const uint8_t *const fill = at;
    while (at < end && *at == 0xff)
        at++;
    cursor->marker = at < end ? *at : 0;
    cursor->at = at < end ? at + 1 : end;
    return at == end || (*at != 0 && at > fill);
}

/* The last MCU before `end` that is needed, which is before `begin` where none is. */
static int64_t segment_last(const struct dl2_jpeg_frame *frame, const struct dl2_jpeg_cover *cover,
                            uint64_t end)
{
    uint64_t row = (end - 1) / frame->mcus_x;
    const uint64_t column = (end - 1) % frame->mcus_x;
    if (row >= cover->bottom)
        row = cover->bottom - 1;
    else if (column < cover->left && row == 0)
        return -1;
    else if (column < cover->left)
        row--;
    else if (column < cover->right)
        return (int64_t)end - 1;
    return (int64_t)(row * frame->mcus_x + cover->right - 1);
}

int dl2_jpeg_segments_find(struct dl2_jpeg_segments *segments, const struct dl2_jpeg_frame *frame,
                           const struct dl2_jpeg_cover *cover, struct dl2_error *error)
{
    const uint64_t mcus = (uint64_t)frame->mcus_x * frame->mcus_y;
    const uint64_t interval = frame->interval ? frame->interval : mcus;
    const uint64_t count = mcus / interval + (mcus % interval != 0);
    const uint64_t from = (uint64_t)cover->top * frame->mcus_x + cover->left;
    const uint64_t to = (cover->bottom - 1) * (uint64_t)frame->mcus_x + cover->right - 1;
    const uint64_t first = from / interval, last = to / interval;
    size_t room;
    segments->count = segments->list.size = 0;
    if (mcus > UINT32_MAX || last > frame->size / 2) /* each but the last has a marker */
        return 0;
    if (!dl2_size_add(frame->size, DL2_JPEG_SLACK, &room))
        return 0;
    DL2_TRY(dl2_jpeg_reserve(&segments->data, room, error));
    struct cursor cursor = {
        .at = frame->scan, .end = frame->scan + frame->size, .out = segments->data.data};
    for (uint64_t number = 0; number <= last; number++) {
        const uint64_t begin = number * interval;
        const uint64_t end = begin + interval < mcus ? begin + interval : mcus;
        const int64_t needed = number < first ? -1 : segment_last(frame, cover, end);
        const bool copy = needed >= (int64_t)begin;
        uint8_t *const data = cursor.out;
        if (!segment_pass(&cursor, copy))
            return 0;
        const unsigned marker =
            number + 1 < count ? DL2_JPEG_RST0 + (unsigned)(number & 7) : DL2_JPEG_EOI;
        if (cursor.marker != marker && (cursor.marker || number < last))
            return 0;
        if (!copy)
            continue;
        const struct dl2_jpeg_segment segment = {
            .data = data,
            .size = (size_t)(cursor.out - data),
            .mcu = (uint32_t)begin,
            .count = (uint32_t)((uint64_t)needed + 1 - begin),
            .ends = (uint64_t)needed + 1 == end,
            .marked = cursor.marker != 0,
        };
        DL2_TRY(dl2_bytes_append(&segments->list, &segment, sizeof segment, error));
        segments->count++;
    }
    memset(cursor.out, 0, DL2_JPEG_SLACK);
    return 1;
}

void dl2_jpeg_segments_free(struct dl2_jpeg_segments *segments)
{
    dl2_bytes_free(&segments->data);
    dl2_bytes_free(&segments->list);
}
