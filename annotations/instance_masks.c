/* SPDX-License-Identifier: BSD-2-Clause */
#include "annotations/instance_masks.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { FIFTHS = 5 }; /* of a pixel, the grid of the polygons' points */

/* A mask under way. Each column has its crossings: bytes that are 1 where an odd number of edges
 * begins to be above the pixel, height + 1 of them. */
struct drawing {
    uint32_t width, height;
    uint8_t *mask, *crossings;
    uint32_t first, last; /* columns with crossings */
    int64_t x, y;         /* the point before, in fifths */
    bool begun;
};

/* Goes on to the next point of the outline. An edge crosses the middle of a column where x passes
 * it between two points; the lower of the two counts, as in pycocotools. */
static void add_point(struct drawing *drawing, int64_t x, int64_t y)
{
    const int64_t x_before = drawing->x, y_before = drawing->y;
    const bool crosses = drawing->begun && x != x_before;
    drawing->x = x;
    drawing->y = y;
    drawing->begun = true;
    const int64_t lower = x < x_before ? x : x - 1;
    /* (lower + 0.5) / 5 - 0.5 is a whole number */
    if (!crosses || lower < 2 || (lower - 2) % FIFTHS != 0)
        return;
    const int64_t column = (lower - 2) / FIFTHS;
    if (column >= drawing->width)
        return;
    const double top = ((double)(y < y_before ? y : y_before) + 0.5) / FIFTHS - 0.5;
    const uint32_t row = (uint32_t)ceil(fmin(fmax(top, 0), drawing->height));
    drawing->crossings[(size_t)column * ((size_t)drawing->height + 1) + row] ^= 1;
    drawing->first = column < drawing->first ? (uint32_t)column : drawing->first;
    drawing->last = column > drawing->last ? (uint32_t)column : drawing->last;
}

/* The points of an edge, one for each step of its longer side. */
static void add_edge(struct drawing *drawing, const int32_t *from, const int32_t *to)
{
    const int64_t across = llabs((int64_t)to[0] - from[0]), down = llabs((int64_t)to[1] - from[1]);
    const bool flat = across >= down;
    const bool backwards = flat ? from[0] > to[0] : from[1] > to[1];
    const int32_t *start = backwards ? to : from, *end = backwards ? from : to;
    const int64_t steps = flat ? across : down;
    const double slope = !steps ? 0
                         : flat ? (double)((int64_t)end[1] - start[1]) / (double)steps
                                : (double)((int64_t)end[0] - start[0]) / (double)steps;
    for (int64_t i = 0; i <= steps; i++) {
        const int64_t t = backwards ? steps - i : i;
        if (flat)
            add_point(drawing, start[0] + t, (int64_t)(start[1] + slope * (double)t + 0.5));
        else
            add_point(drawing, (int64_t)(start[0] + slope * (double)t + 0.5), start[1] + t);
    }
}

/* Sets the pixels inside, and clears the crossings. */
static void fill_columns(struct drawing *drawing)
{
    for (uint32_t x = drawing->first; x <= drawing->last && x < drawing->width; x++) {
        uint8_t *crossings = drawing->crossings + (size_t)x * ((size_t)drawing->height + 1);
        uint8_t inside = 0;
        for (uint32_t y = 0; y < drawing->height; y++) {
            inside ^= crossings[y];
            drawing->mask[(size_t)y * drawing->width + x] |= inside;
        }
        memset(crossings, 0, (size_t)drawing->height + 1);
    }
}

static int draw_polygon(struct drawing *drawing, const int32_t *points, uint32_t count,
                        struct dl2_error *error)
{
    const int64_t most[] = {(int64_t)drawing->width * FIFTHS, (int64_t)drawing->height * FIFTHS};
    for (size_t i = 0; i < (size_t)count * 2; i++)
        if (points[i] < -most[i % 2] || points[i] > 2 * most[i % 2])
            return dl2_error_set(error, DL2_ERR_FORMAT,
                                 "a polygon leaves the image by more than its size, %" PRIu32
                                 "x%" PRIu32,
                                 drawing->width, drawing->height);
    drawing->begun = false;
    drawing->first = UINT32_MAX;
    drawing->last = 0;
    for (uint32_t i = 0; i < count; i++)
        add_edge(drawing, points + (size_t)i * 2, points + (size_t)(i + 1 < count ? i + 1 : 0) * 2);
    fill_columns(drawing);
    return DL2_OK;
}

static int draw_runs(struct drawing *drawing, const uint32_t *shape, struct dl2_error *error)
{
    const uint32_t height = shape[0], width = shape[1], count = shape[2], *runs = shape + 3;
    if (width != drawing->width || height != drawing->height)
        return dl2_error_set(error, DL2_ERR_FORMAT,
                             "run lengths are of %" PRIu32 "x%" PRIu32 ", the image of %" PRIu32
                             "x%" PRIu32,
                             width, height, drawing->width, drawing->height);
    size_t at = 0;
    for (uint32_t i = 0; i < count; at += runs[i++])
        for (size_t pixel = at; i % 2 && pixel < at + runs[i]; pixel++)
            drawing->mask[pixel % height * width + pixel / height] = 1;
    return DL2_OK;
}

int dl2_instance_mask_draw(const uint32_t *shape, uint32_t width, uint32_t height, uint8_t *mask,
                           struct dl2_bytes *scratch, struct dl2_error *error)
{
    size_t bytes;
    struct drawing drawing = {.width = width, .height = height, .mask = mask};
    memset(mask, 0, (size_t)width * height);
    uint32_t polygons = *shape++;
    if (!polygons)
        return draw_runs(&drawing, shape, error);
    if (!dl2_size_mul(width, (size_t)height + 1, &bytes))
        return dl2_error_memory(error, "a mask");
    DL2_TRY(dl2_bytes_resize(scratch, bytes, error));
    drawing.crossings = scratch->data;
    memset(drawing.crossings, 0, bytes);
    for (; polygons; polygons--) {
        const uint32_t count = *shape++;
        DL2_TRY(draw_polygon(&drawing, (const int32_t *)shape, count, error));
        shape += (size_t)count * 2;
    }
    return DL2_OK;
}
