/* SPDX-License-Identifier: BSD-2-Clause */
#include "config.h"

#define KERNELS dl2_jpeg_color_kernels_c
#define NAME    "c"
#include "codec/jpeg/jpeg_color_kernels.inc"

#include "codec/codecs.h"
#include "common/simd.h"

const struct dl2_jpeg_color_kernels *dl2_jpeg_color_kernels_for(unsigned simd_flags)
{
    return DL2_SIMD_BEST(dl2_jpeg_color_kernels, simd_flags);
}

/* Working memory: a line of sums, with a place before it, and a line of each chroma. */
struct color_lines {
    uint16_t *sums;
    uint8_t *chroma[2];
};

static int color_make_lines(struct color_lines *lines, size_t width, struct dl2_bytes *memory,
                            struct dl2_error *error)
{
    /* A sample more at both ends, and whole blocks of which two make one of the output. */
    const size_t room = (width + 8 * (size_t)BLOCK) / DL2_ALIGNMENT * DL2_ALIGNMENT;
    if (memory->capacity < 4 * room)
        DL2_TRY(dl2_bytes_resize(memory, 4 * room, error));
    lines->sums = (uint16_t *)(void *)memory->data + 1;
    lines->chroma[0] = memory->data + 2 * room;
    lines->chroma[1] = memory->data + 3 * room;
    return DL2_OK;
}

static uint32_t color_clamp(int64_t at, uint32_t size)
{
    return at < 0 ? 0 : at >= size ? size - 1 : (uint32_t)at;
}

static const uint8_t *part_row(const struct dl2_jpeg_part *part, uint32_t row)
{
    return part->data + (row - part->y) * part->stride;
}

/* The nearer of output row `y` of the component's rows, and the one on its other side. */
static void part_rows(const struct dl2_jpeg_part *part, uint32_t y, const uint8_t **near,
                      const uint8_t **far)
{
    const uint32_t row = y / part->down;
    const int64_t other = part->down == 1 ? row : y % 2 ? (int64_t)row + 1 : (int64_t)row - 1;
    *near = part_row(part, row);
    *far = part_row(part, color_clamp(other, part->height));
}

/* Output pixels from `left` on of row `y`, interpolated. */
static const uint8_t *part_smooth_line(const struct dl2_jpeg_color_kernels *kernels,
                                       const struct dl2_jpeg_part *part, uint32_t left,
                                       uint32_t width, uint32_t y, uint16_t *sums, uint8_t *line)
{
    const uint8_t *near, *far;
    const uint32_t first = left / part->across;
    const uint32_t count = (left + width - 1) / part->across + 1 - first;
    part_rows(part, y, &near, &far);
    if (part->across == 1) {
        kernels->sum_rows(near + (first - part->x), far + (first - part->x), count, sums);
        kernels->shorten(sums, count, y % 2 ? 2 : 1, line);
        return line;
    }
    /* With the neighbors on both sides, or the outermost sample twice. */
    const uint32_t from = first ? first - 1 : 0;
    const uint32_t to = color_clamp((int64_t)first + count, part->width);
    uint16_t *const start = first ? sums - 1 : sums;
    if (part->down == 2)
        kernels->sum_rows(near + (from - part->x), far + (from - part->x), to - from + 1, start);
    else
        for (uint32_t i = 0; i <= to - from; i++)
            start[i] = near[from - part->x + i];
    if (!first)
        sums[-1] = sums[0];
    if (to < first + count)
        sums[count] = sums[count - 1];
    if (part->down == 2)
        kernels->widen(sums, count, 8, 7, 4, line);
    else
        kernels->widen(sums, count, 1, 2, 2, line);
    return line + (left - first * part->across);
}

static const uint8_t *part_repeated_line(const struct dl2_jpeg_part *part, uint32_t left,
                                         uint32_t width, uint32_t y, uint8_t *line)
{
    const uint8_t *const row = part_row(part, y / part->down);
    if (part->across == 1)
        return row + (left - part->x);
    for (uint32_t i = 0; i < width; i++)
        line[i] = row[(left + i) / part->across - part->x];
    return line;
}

int dl2_jpeg_color_convert(const struct dl2_jpeg_color_kernels *kernels,
                           const struct dl2_jpeg_part parts[3], uint32_t left, uint32_t top,
                           uint32_t width, uint32_t height, uint8_t *out, size_t stride,
                           struct dl2_bytes *memory, struct dl2_error *error)
{
    struct color_lines lines;
    DL2_TRY(color_make_lines(&lines, width, memory, error));
    for (uint32_t y = top; y < top + height; y++, out += stride) {
        const uint8_t *chroma[2];
        for (int i = 0; i < 2; i++) {
            const struct dl2_jpeg_part *const part = &parts[i + 1];
            chroma[i] = part->smooth ? part_smooth_line(kernels, part, left, width, y, lines.sums,
                                                        lines.chroma[i])
                                     : part_repeated_line(part, left, width, y, lines.chroma[i]);
        }
        kernels->rgb(part_row(&parts[0], y) + (left - parts[0].x), chroma[0], chroma[1], width,
                     out);
    }
    return DL2_OK;
}
