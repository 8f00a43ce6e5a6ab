/* SPDX-License-Identifier: BSD-2-Clause */
#include "pixels/operations.h"

#include "common/memory.h"
#include "common/simd.h"
#include "pixels/operation_kernels.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Bytes behind an image that may be read and written: pixels are moved four bytes at a time. */
enum { PADDING = 64, MARGIN = DL2_BLUR_MAX / 2 };

#define PI 3.14159265358979323846

/* ---- making and unmaking ---- */

static size_t size_of(const struct dl2_pixels *pixels)
{
    return (size_t)pixels->width * pixels->height * pixels->channels;
}

static size_t stride_of(const struct dl2_pixels *pixels)
{
    return (size_t)pixels->width * pixels->channels;
}

static size_t line_length(const struct dl2_pixels *pixels)
{
    return ((size_t)pixels->width + 2 * MARGIN) * pixels->channels;
}

int dl2_pixels_init(struct dl2_pixels *pixels, uint32_t width, uint32_t height, uint32_t channels,
                    struct dl2_error *error)
{
    *pixels = (struct dl2_pixels){.width = width, .height = height, .channels = channels};
    pixels->kernels = dl2_operation_kernels_for(dl2_simd_flags());
    size_t size = 0;
    if (!dl2_size_mul(width, height, &size) || !dl2_size_mul(size, channels, &size) ||
        size > UINT32_MAX - PADDING) /* dl2_operation_kernels.walk */
        return dl2_error_set(error, DL2_ERR_LIMIT,
                             "operations on an image of %" PRIu32 "x%" PRIu32
                             ": it passes 4 GiB, so load it smaller",
                             width, height);
    pixels->data = dl2_alloc_aligned(size + PADDING, 1);
    pixels->spare = dl2_alloc_aligned(size + PADDING, 1);
    pixels->line = dl2_alloc_aligned(line_length(pixels), sizeof *pixels->line);
    if (!pixels->data || !pixels->spare || !pixels->line)
        return dl2_error_memory(error, "an image of %ux%u", width, height);
    return DL2_OK;
}

void dl2_pixels_free(struct dl2_pixels *pixels)
{
    free(pixels->data);
    free(pixels->spare);
    free(pixels->line);
    *pixels = (struct dl2_pixels){0};
}

size_t dl2_pixels_memory(const struct dl2_pixels *pixels)
{
    return pixels->data
               ? 2 * (size_of(pixels) + PADDING) + line_length(pixels) * sizeof *pixels->line
               : 0;
}

static void swap_pixels(struct dl2_pixels *pixels)
{
    uint8_t *data = pixels->data;
    pixels->data = pixels->spare;
    pixels->spare = data;
}

/* ---- blending ---- */

void dl2_pixels_brightness(struct dl2_pixels *pixels, float factor)
{
    if (pixels->is_mask)
        return;
    pixels->kernels->blend_value(pixels->data, size_of(pixels), 0, factor);
}

void dl2_pixels_contrast(struct dl2_pixels *pixels, float factor)
{
    const size_t count = (size_t)pixels->width * pixels->height;
    uint64_t sum = 0;
    if (pixels->is_mask)
        return;
    if (pixels->channels == 3)
        sum = pixels->kernels->sum_gray(pixels->data, count);
    else
        for (size_t i = 0; i < count; i++)
            sum += pixels->data[i];
    const double mean = floor((double)sum / (double)count + 0.5);
    pixels->kernels->blend_value(pixels->data, size_of(pixels), (float)mean, factor);
}

void dl2_pixels_saturation(struct dl2_pixels *pixels, float factor)
{
    if (pixels->channels == 3)
        pixels->kernels->blend_gray(pixels->data, (size_t)pixels->width * pixels->height, factor);
}

/* Pillow's filter leaves the outermost pixels as they are. */
void dl2_pixels_sharpness(struct dl2_pixels *pixels, float factor)
{
    const size_t stride = stride_of(pixels), step = pixels->channels;
    if (pixels->is_mask || pixels->width < 3 || pixels->height < 3)
        return;
    memcpy(pixels->spare, pixels->data, stride);
    for (uint32_t y = 1; y + 1 < pixels->height; y++) {
        const uint8_t *in = pixels->data + y * stride;
        uint8_t *out = pixels->spare + y * stride;
        memcpy(out, in, step);
        pixels->kernels->smooth(in + step, step, stride, stride - 2 * step, out + step);
        pixels->kernels->blend(in + step, out + step, stride - 2 * step, factor);
        memcpy(out + stride - step, in + stride - step, step);
    }
    memcpy(pixels->spare + (pixels->height - 1) * stride,
           pixels->data + (pixels->height - 1) * stride, stride);
    swap_pixels(pixels);
}

/* ---- colors ---- */

void dl2_pixels_grayscale(struct dl2_pixels *pixels)
{
    if (pixels->channels == 3)
        pixels->kernels->gray(pixels->data, (size_t)pixels->width * pixels->height);
}

void dl2_pixels_hue(struct dl2_pixels *pixels, double part)
{
    if (pixels->channels == 3)
        pixels->kernels->turn_hue(pixels->data, (size_t)pixels->width * pixels->height,
                                  (uint8_t)(int)(part * 255));
}

void dl2_pixels_invert(struct dl2_pixels *pixels)
{
    if (pixels->is_mask)
        return;
    pixels->kernels->invert_from(pixels->data, size_of(pixels), 0);
}

void dl2_pixels_solarize(struct dl2_pixels *pixels, double threshold)
{
    const double first = ceil(threshold);
    if (pixels->is_mask)
        return;
    if (first < 256)
        pixels->kernels->invert_from(pixels->data, size_of(pixels),
                                     (uint8_t)(first > 0 ? first : 0));
}

void dl2_pixels_posterize(struct dl2_pixels *pixels, unsigned bits)
{
    if (pixels->is_mask)
        return;
    pixels->kernels->mask(pixels->data, size_of(pixels), (uint8_t)(0xff00 >> bits));
}

/* ---- tables of values ---- */

/* The least and the greatest value of each channel. */
static void find_range(const struct dl2_pixels *pixels, int low[3], int high[3])
{
    uint8_t lows[DL2_RANGE_TURN], highs[DL2_RANGE_TURN];
    pixels->kernels->range(pixels->data, size_of(pixels), lows, highs);
    for (size_t c = 0; c < 3; c++) {
        low[c] = 255;
        high[c] = 0;
    }
    for (size_t k = 0; k < DL2_RANGE_TURN; k++) {
        const size_t c = k % pixels->channels;
        low[c] = lows[k] < low[c] ? lows[k] : low[c];
        high[c] = highs[k] > high[c] ? highs[k] : high[c];
    }
}

static uint8_t clipped(int value)
{
    return (uint8_t)(value < 0 ? 0 : value > 255 ? 255 : value);
}

void dl2_pixels_autocontrast(struct dl2_pixels *pixels)
{
    uint8_t tables[3][256];
    int low[3], high[3];
    if (pixels->is_mask)
        return;
    find_range(pixels, low, high);
    for (size_t c = 0; c < pixels->channels; c++) {
        const bool flat = high[c] <= low[c];
        const double scale = flat ? 1 : 255.0 / (high[c] - low[c]);
        const double offset = flat ? 0 : -low[c] * scale;
        for (int i = 0; i < 256; i++)
            tables[c][i] = clipped((int)(i * scale + offset));
    }
    pixels->kernels->look_up(pixels->data, size_of(pixels), pixels->channels, tables);
}

/* Neighbors count into tables of their own, so that equal ones don't wait for each other. */
static void count_values(const struct dl2_pixels *pixels, uint32_t counts[3][256])
{
    enum { NEIGHBORS = 4 };
    const size_t size = size_of(pixels), channels = pixels->channels;
    uint32_t apart[3 * NEIGHBORS][256];
    const uint8_t *at = pixels->data, *end = at + size;
    memset(apart, 0, sizeof apart);
    if (channels == 3)
        for (; end - at >= 3 * NEIGHBORS; at += 3 * NEIGHBORS)
#pragma GCC unroll 12
            for (size_t k = 0; k < 3 * NEIGHBORS; k++)
                apart[k][at[k]]++;
    else
        for (; end - at >= NEIGHBORS; at += NEIGHBORS)
#pragma GCC unroll 4
            for (size_t k = 0; k < NEIGHBORS; k++)
                apart[k][at[k]]++;
    for (size_t k = 0; at < end; k++)
        apart[k][*at++]++;
    memset(counts, 0, 3 * sizeof *counts);
    for (size_t k = 0; k < NEIGHBORS * channels; k++)
        for (size_t value = 0; value < 256; value++)
            counts[k % channels][value] += apart[k][value];
}

/* Pillow's ImageOps.equalize(). */
static void equalizing_table(const uint32_t counts[256], uint64_t total, uint8_t table[256])
{
    uint64_t last = 0;
    for (size_t i = 0; i < 256; i++)
        last = counts[i] ? counts[i] : last;
    const uint64_t step = (total - last) / 255;
    uint64_t sum = step / 2;
    for (size_t i = 0; i < 256; i++) {
        const uint64_t value = step ? sum / step : i;
        table[i] = (uint8_t)(value > 255 ? 255 : value);
        sum += counts[i];
    }
}

void dl2_pixels_equalize(struct dl2_pixels *pixels)
{
    uint32_t counts[3][256];
    uint8_t tables[3][256];
    if (pixels->is_mask)
        return;
    count_values(pixels, counts);
    for (size_t c = 0; c < pixels->channels; c++)
        equalizing_table(counts[c], (uint64_t)pixels->width * pixels->height, tables[c]);
    pixels->kernels->look_up(pixels->data, size_of(pixels), pixels->channels, tables);
}

/* ---- blur ---- */

/* A position beyond an edge, mirrored at the outermost pixel. */
static uint32_t mirrored(int64_t at, uint32_t size)
{
    const int64_t turn = 2 * ((int64_t)size - 1);
    if (size == 1)
        return 0;
    at = ((at % turn) + turn) % turn;
    return (uint32_t)(at < size ? at : turn - at);
}

/* Weights that sum to 2^16 exactly. */
static void gaussian(unsigned side, double sigma, uint32_t weights[DL2_BLUR_MAX])
{
    const int radius = (int)side / 2;
    double sum = 0;
    uint32_t whole = 0;
    for (int i = -radius; i <= radius; i++)
        sum += exp(-0.5 * (i / sigma) * (i / sigma));
    for (int i = -radius; i <= radius; i++) {
        weights[i + radius] = (uint32_t)lrint(65536 / sum * exp(-0.5 * (i / sigma) * (i / sigma)));
        whole += weights[i + radius];
    }
    weights[radius] += 65536 - whole;
}

void dl2_pixels_blur(struct dl2_pixels *pixels, unsigned side, double sigma)
{
    uint32_t weights[DL2_BLUR_MAX];
    const uint8_t *rows[DL2_BLUR_MAX];
    const size_t stride = stride_of(pixels), step = pixels->channels;
    const uint32_t width = pixels->width, radius = side / 2;
    uint16_t *middle = pixels->line + radius * step;
    if (pixels->is_mask)
        return;
    gaussian(side, sigma, weights);
    for (uint32_t y = 0; y < pixels->height; y++) {
        for (unsigned k = 0; k < side; k++)
            rows[k] = pixels->data + mirrored((int64_t)y + k - radius, pixels->height) * stride;
        pixels->kernels->blur_down(rows, weights, side, stride, middle);
        for (uint32_t i = 1; i <= radius; i++) {
            memcpy(middle - i * step, middle + mirrored(-(int64_t)i, width) * step,
                   step * sizeof *middle);
            memcpy(middle + (width - 1 + i) * step,
                   middle + mirrored((int64_t)width - 1 + i, width) * step, step * sizeof *middle);
        }
        pixels->kernels->blur_across(pixels->line, step, weights, side, stride,
                                     pixels->spare + y * stride);
    }
    swap_pixels(pixels);
}

/* ---- geometry ---- */

void dl2_pixels_flip_down(struct dl2_pixels *pixels)
{
    const size_t stride = stride_of(pixels);
    for (uint32_t y = 0; y < pixels->height; y++)
        memcpy(pixels->spare + y * stride, pixels->data + (pixels->height - 1 - y) * stride,
               stride);
    swap_pixels(pixels);
}

void dl2_pixels_erase(struct dl2_pixels *pixels, uint32_t x, uint32_t y, uint32_t width,
                      uint32_t height, uint8_t fill)
{
    const size_t stride = stride_of(pixels), step = pixels->channels;
    if (pixels->is_mask)
        return;
    for (uint32_t i = 0; i < height; i++)
        memset(pixels->data + (y + i) * stride + x * step, fill, width * step);
}

struct dl2_affine dl2_affine_shear(double across, double down, double x, double y)
{
    return (struct dl2_affine){
        {1 + across * down, across, -across * (y + down * x), down, 1, -down * x}};
}

struct dl2_affine dl2_affine_translation(double right, double down)
{
    return (struct dl2_affine){{1, 0, -right, 0, 1, -down}};
}

/* Rounded as Pillow's Image.rotate() does, so that quarter turns are exact. */
struct dl2_affine dl2_affine_rotation(const struct dl2_pixels *pixels, double degrees)
{
    const double angle = -degrees * PI / 180;
    const double c = rint(cos(angle) * 1e15) / 1e15, s = rint(sin(angle) * 1e15) / 1e15;
    const double x = pixels->width / 2.0, y = pixels->height / 2.0;
    return (struct dl2_affine){{c, s, -c * x - s * y + x, -s, c, s * x - c * y + y}};
}

/* The steps i, from 0 to count - 1, at which 0 <= start + i * step < end: from *first to *last - 1.
 */
static void limit_steps(int64_t start, int64_t step, int64_t end, int64_t *first, int64_t *last)
{
    if (step < 0) { /* seen from the other side */
        start = end - 1 - start;
        step = -step;
    }
    if (step == 0) {
        if (start < 0 || start >= end)
            *first = *last;
        return;
    }
    const int64_t enters = start >= 0 ? 0 : (-start + step - 1) / step;
    const int64_t leaves = start >= end ? 0 : (end - 1 - start) / step + 1;
    *first = enters > *first ? enters : *first;
    *last = leaves < *last ? leaves : *last;
    *first = *first < *last ? *first : *last;
}

void dl2_pixels_affine(struct dl2_pixels *pixels, const struct dl2_affine *affine, uint8_t fill)
{
    const double *m = affine->m;
    const size_t stride = stride_of(pixels), step = pixels->channels;
    const uint8_t outside = pixels->is_mask ? pixels->mask_fill : fill;
    const int64_t step_x = (int64_t)floor(m[0] * 65536 + 0.5),
                  step_y = (int64_t)floor(m[3] * 65536 + 0.5),
                  down_x = (int64_t)floor(m[1] * 65536 + 0.5),
                  down_y = (int64_t)floor(m[4] * 65536 + 0.5);
    int64_t row_x = (int64_t)floor((m[2] + m[0] * 0.5 + m[1] * 0.5) * 65536 + 0.5),
            row_y = (int64_t)floor((m[5] + m[3] * 0.5 + m[4] * 0.5) * 65536 + 0.5);
    for (uint32_t y = 0; y < pixels->height; y++) {
        uint8_t *out = pixels->spare + y * stride;
        int64_t first = 0, last = pixels->width;
        limit_steps(row_x, step_x, (int64_t)pixels->width << 16, &first, &last);
        limit_steps(row_y, step_y, (int64_t)pixels->height << 16, &first, &last);
        const struct dl2_walk at = {(uint32_t)(row_x + first * step_x),
                                    (uint32_t)(row_y + first * step_y), (uint32_t)step_x,
                                    (uint32_t)step_y};
        memset(out, outside, (size_t)first * step);
        if (first < last && step_x == 1 << 16 && step_y == 0)
            memcpy(out + (size_t)first * step,
                   pixels->data + (size_t)(at.y >> 16) * stride + (size_t)(at.x >> 16) * step,
                   (size_t)(last - first) * step);
        else
            pixels->kernels->walk(pixels->data, stride, step, at, (size_t)(last - first),
                                  out + (size_t)first * step);
        memset(out + (size_t)last * step, outside, stride - (size_t)last * step);
        row_x += down_x;
        row_y += down_y;
    }
    swap_pixels(pixels);
}
