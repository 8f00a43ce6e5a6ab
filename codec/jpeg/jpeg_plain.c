/* SPDX-License-Identifier: BSD-2-Clause */
#include "codec/jpeg/jpeg_plain.h"

#include "codec/jpeg/jpeg_header.h"

/* Bytes that may follow a file's end: some writers pad. */
enum { MAX_PADDING = 1024 };

/* Three components, by libjpeg's rules. */
static bool plain_is_ycbcr(const struct dl2_jpeg_header *header, const uint8_t *frame)
{
    if (header->jfif)
        return true;
    if (header->adobe)
        return header->adobe_transform != 0;
    return !(frame[6] == 'R' && frame[9] == 'G' && frame[12] == 'B');
}

static bool plain_has_end(const uint8_t *data, size_t scan, size_t size)
{
    const size_t from = size - scan > MAX_PADDING ? size - MAX_PADDING : scan;
    for (size_t at = size; at >= from + 2; at--)
        if (data[at - 2] == 0xff && data[at - 1] == DL2_JPEG_EOI)
            return true;
    return false;
}

bool dl2_jpeg_plain_read(struct dl2_coded_frame *frame, const uint8_t *data, size_t size)
{
    struct dl2_jpeg_header header;
    if (!dl2_jpeg_header_read(&header, data, size) || data[header.sof + 1] != DL2_JPEG_SOF0 ||
        (header.components != 1 && header.components != 3) ||
        !plain_has_end(data, header.scan, size))
        return false;
    /* Precision, height, width, number; then of each component: its name, sampling, table. */
    const uint8_t *const sof = data + header.sof + 4;
    *frame = (struct dl2_coded_frame){.width = header.width,
                                      .height = header.height,
                                      .components = header.components,
                                      .step_x = sof[7] >> 4,
                                      .step_y = sof[7] & 15};
    if (frame->step_x > 2 || frame->step_y > 2)
        return false;
    if (frame->components == 1)
        return frame->step_x == 1 && frame->step_y == 1;
    return sof[10] == 0x11 && sof[13] == 0x11 && plain_is_ycbcr(&header, sof);
}
