/* SPDX-License-Identifier: BSD-2-Clause */
/* The functions of a struct dl2_operation_kernels, compiled once for each instruction set. */
#ifndef DL2_PIXELS_OPERATION_LOOPS_H
#define DL2_PIXELS_OPERATION_LOOPS_H

#include "pixels/operation_kernels.h"

#include <string.h>

enum { LOOP_BLOCK = 64 };

/* As Pillow's Image.blend() has it. */
static inline uint8_t blended(float value, float byte, float factor)
{
    float sum = value + factor * (byte - value);
    sum = sum > 0 ? sum : 0;
    sum = sum < 255 ? sum : 255;
    return (uint8_t)(int32_t)sum;
}

static inline uint32_t gray_of(const uint8_t *pixel)
{
    return (pixel[0] * 19595u + pixel[1] * 38470u + pixel[2] * 7471u + 0x8000) >> 16;
}

static inline void blend_value_block(uint8_t *bytes, size_t count, float value, float factor)
{
    for (size_t i = 0; i < count; i++)
        bytes[i] = blended(value, bytes[i], factor);
}

static void blend_value_loop(uint8_t *bytes, size_t count, float value, float factor)
{
    size_t i = 0;
    for (; i + LOOP_BLOCK <= count; i += LOOP_BLOCK)
        blend_value_block(bytes + i, LOOP_BLOCK, value, factor);
    blend_value_block(bytes + i, count - i, value, factor);
}

static inline void blend_block(const uint8_t *restrict bytes, uint8_t *restrict values,
                               size_t count, float factor)
{
    for (size_t i = 0; i < count; i++)
        values[i] = blended(values[i], bytes[i], factor);
}

static void blend_loop(const uint8_t *bytes, uint8_t *values, size_t count, float factor)
{
    size_t i = 0;
    for (; i + LOOP_BLOCK <= count; i += LOOP_BLOCK)
        blend_block(bytes + i, values + i, LOOP_BLOCK, factor);
    blend_block(bytes + i, values + i, count - i, factor);
}

static inline void gray_block(uint8_t *pixels, size_t count)
{
    for (size_t i = 0; i < count; i++)
        pixels[3 * i] = pixels[3 * i + 1] = pixels[3 * i + 2] = (uint8_t)gray_of(pixels + 3 * i);
}

static void gray_loop(uint8_t *pixels, size_t count)
{
    size_t i = 0;
    for (; i + LOOP_BLOCK <= count; i += LOOP_BLOCK)
        gray_block(pixels + 3 * i, LOOP_BLOCK);
    gray_block(pixels + 3 * i, count - i);
}

static void blend_gray_loop(uint8_t *pixels, size_t count, float factor)
{
    uint8_t grays[3 * LOOP_BLOCK];
    for (size_t i = 0; i < count; i += LOOP_BLOCK) {
        const size_t some = count - i < LOOP_BLOCK ? count - i : LOOP_BLOCK;
        memcpy(grays, pixels + 3 * i, 3 * some);
        gray_loop(grays, some);
        blend_loop(pixels + 3 * i, grays, 3 * some, factor);
        memcpy(pixels + 3 * i, grays, 3 * some);
    }
}

static inline uint32_t sum_gray_block(const uint8_t *pixels, size_t count)
{
    uint32_t sum = 0;
    for (size_t i = 0; i < count; i++)
        sum += gray_of(pixels + 3 * i);
    return sum;
}

static uint64_t sum_gray_loop(const uint8_t *pixels, size_t count)
{
    uint64_t sum = 0;
    size_t i = 0;
    for (; i + LOOP_BLOCK <= count; i += LOOP_BLOCK)
        sum += sum_gray_block(pixels + 3 * i, LOOP_BLOCK);
    return sum + sum_gray_block(pixels + 3 * i, count - i);
}

/* A pixel in the HSV of Pillow, with saturation and value from 0 to 255, and the candidates for its
 * channels after the turn. */
struct turned {
    uint8_t sector[LOOP_BLOCK]; /* 0 to 6 */
    uint8_t v[LOOP_BLOCK], p[LOOP_BLOCK], q[LOOP_BLOCK], t[LOOP_BLOCK];
};

/* Pillow's conversions to HSV and back, with its types, so that it rounds as they do. There is no
 * branch, and what is chosen from comes from another loop: compilers make vectors of that. */
static inline void turn_block(const uint8_t *restrict pixels, size_t count, uint8_t turn,
                              struct turned *restrict out)
{
    for (size_t i = 0; i < count; i++) {
        const int32_t r = pixels[3 * i], g = pixels[3 * i + 1], b = pixels[3 * i + 2];
        const int32_t more = r > g ? r : g, less = r < g ? r : g;
        const int32_t high = more > b ? more : b, low = less < b ? less : b;
        const int32_t difference = high - low;
        const int32_t start = r == high ? 0 : g == high ? 2 : 4;
        const int32_t plus = r == high ? b : g == high ? r : g;
        const int32_t minus = r == high ? g : g == high ? b : r;
        const float range = (float)(difference + (difference == 0));
        const float sector = (float)((double)start + (double)((float)(high - plus) / range) -
                                     (double)((float)(high - minus) / range));
        const double turns = (double)sector / 6.0 + 1.0;
        const float hue = (float)(turns - (double)(int32_t)turns);
        const float part = (float)difference / (float)(high + (high == 0));
        const int32_t old = (int32_t)((double)hue * 255.0);
        const int32_t saturation = (int32_t)((double)part * 255.0);

        const float place = (float)((double)(float)((old + turn) & 255) * 6.0 / 255.0);
        const float grade = (float)((double)(float)saturation / 255.0);
        const float rest = place - (float)(int32_t)place;
        const double value = (double)high;
        out->sector[i] = (uint8_t)(int32_t)place;
        out->v[i] = (uint8_t)high;
        out->p[i] = (uint8_t)(int32_t)(value * (1.0 - (double)grade) + 0.5);
        out->q[i] = (uint8_t)(int32_t)(value * (1.0 - (double)(grade * rest)) + 0.5);
        out->t[i] = (uint8_t)(int32_t)(value * (1.0 - (double)grade * (1.0 - (double)rest)) + 0.5);
    }
}

static inline void choose_block(const struct turned *restrict turned, size_t count,
                                uint8_t *restrict pixels)
{
    for (size_t i = 0; i < count; i++) {
        const uint8_t at = turned->sector[i], v = turned->v[i], p = turned->p[i], q = turned->q[i],
                      t = turned->t[i];
        pixels[3 * i] = at == 1 ? q : at == 2 || at == 3 ? p : at == 4 ? t : v;
        pixels[3 * i + 1] = at == 1 || at == 2 ? v : at == 3 ? q : at == 4 || at == 5 ? p : t;
        pixels[3 * i + 2] = at == 2 ? t : at == 3 || at == 4 ? v : at == 5 ? q : p;
    }
}

static void turn_hue_loop(uint8_t *pixels, size_t count, uint8_t turn)
{
    struct turned turned;
    for (; count >= LOOP_BLOCK; count -= LOOP_BLOCK, pixels += 3 * LOOP_BLOCK) {
        turn_block(pixels, LOOP_BLOCK, turn, &turned);
        choose_block(&turned, LOOP_BLOCK, pixels);
    }
    turn_block(pixels, count, turn, &turned);
    choose_block(&turned, count, pixels);
}

static inline void invert_block(uint8_t *bytes, size_t count, uint8_t first)
{
    for (size_t i = 0; i < count; i++)
        bytes[i] ^= bytes[i] >= first ? 255 : 0;
}

static void invert_from_loop(uint8_t *bytes, size_t count, uint8_t first)
{
    size_t i = 0;
    for (; i + LOOP_BLOCK <= count; i += LOOP_BLOCK)
        invert_block(bytes + i, LOOP_BLOCK, first);
    invert_block(bytes + i, count - i, first);
}

static inline void mask_block(uint8_t *bytes, size_t count, uint8_t mask)
{
    for (size_t i = 0; i < count; i++)
        bytes[i] &= mask;
}

static void mask_loop(uint8_t *bytes, size_t count, uint8_t mask)
{
    size_t i = 0;
    for (; i + LOOP_BLOCK <= count; i += LOOP_BLOCK)
        mask_block(bytes + i, LOOP_BLOCK, mask);
    mask_block(bytes + i, count - i, mask);
}

static inline void range_block(const uint8_t *restrict bytes, size_t count, uint8_t *restrict low,
                               uint8_t *restrict high)
{
    for (size_t i = 0; i < count; i++) {
        low[i] = bytes[i] < low[i] ? bytes[i] : low[i];
        high[i] = bytes[i] > high[i] ? bytes[i] : high[i];
    }
}

static void range_loop(const uint8_t *bytes, size_t count, uint8_t low[DL2_RANGE_TURN],
                       uint8_t high[DL2_RANGE_TURN])
{
    size_t i = 0;
    memset(low, 255, DL2_RANGE_TURN);
    memset(high, 0, DL2_RANGE_TURN);
    for (; i + DL2_RANGE_TURN <= count; i += DL2_RANGE_TURN)
        range_block(bytes + i, DL2_RANGE_TURN, low, high);
    range_block(bytes + i, count - i, low, high);
}

static void look_up_loop(uint8_t *bytes, size_t count, size_t channels, uint8_t tables[3][256])
{
    if (channels == 1)
        for (size_t i = 0; i < count; i++)
            bytes[i] = tables[0][bytes[i]];
    else
        for (size_t i = 0; i < count; i += 3)
            for (size_t c = 0; c < 3; c++)
                bytes[i + c] = tables[c][bytes[i + c]];
}

/* The offsets of a block come before its pixels: compilers make vectors of the former. */
static inline void walk_offsets(const struct dl2_walk *at, uint32_t stride, uint32_t channels,
                                uint32_t *restrict offsets)
{
    const uint32_t x = at->x, y = at->y, step_x = at->step_x, step_y = at->step_y;
    for (uint32_t i = 0; i < LOOP_BLOCK; i++)
        offsets[i] = ((y + i * step_y) >> 16) * stride + ((x + i * step_x) >> 16) * channels;
}

static void walk_loop(const uint8_t *in, size_t stride, size_t channels, struct dl2_walk at,
                      size_t count, uint8_t *out)
{
    uint32_t offsets[LOOP_BLOCK];
    while (count) {
        const size_t some = count < LOOP_BLOCK ? count : LOOP_BLOCK;
        if (channels == 3) {
            walk_offsets(&at, (uint32_t)stride, 3, offsets);
#pragma GCC unroll 4
            for (size_t i = 0; i < some; i++) /* the next pixel overwrites the fourth byte */
                memcpy(out + 3 * i, in + offsets[i], 4);
        } else {
            walk_offsets(&at, (uint32_t)stride, 1, offsets);
#pragma GCC unroll 4
            for (size_t i = 0; i < some; i++)
                out[i] = in[offsets[i]];
        }
        at.x += LOOP_BLOCK * at.step_x;
        at.y += LOOP_BLOCK * at.step_y;
        out += some * channels;
        count -= some;
    }
}

/* (sum + 6) * 5042 >> 16 is the rounded thirteenth of any sum up to 13 * 255. */
static inline void smooth_block(const uint8_t *restrict at, size_t step, size_t stride,
                                size_t count, uint8_t *restrict out)
{
    for (size_t i = 0; i < count; i++) {
        const uint8_t *mid = at + i, *up = mid - stride, *low = mid + stride;
        const uint32_t sum = (uint32_t)(up[0] + low[0] + 5 * mid[0] + *(up - step) + up[step] +
                                        *(mid - step) + mid[step] + *(low - step) + low[step]);
        out[i] = (uint8_t)((sum + 6) * 5042 >> 16);
    }
}

static void smooth_loop(const uint8_t *at, size_t step, size_t stride, size_t count, uint8_t *out)
{
    size_t i = 0;
    for (; i + LOOP_BLOCK <= count; i += LOOP_BLOCK)
        smooth_block(at + i, step, stride, LOOP_BLOCK, out + i);
    smooth_block(at + i, step, stride, count - i, out + i);
}

/* 255 * 2^8 * 2^16 and the half that rounds fit in 32 bits. */
static inline void blur_down_block(const uint8_t *const *rows, size_t at, const uint32_t *weights,
                                   unsigned taps, size_t count, uint16_t *restrict out)
{
    uint32_t sums[LOOP_BLOCK];
    for (size_t i = 0; i < count; i++)
        sums[i] = 1 << 7;
    for (unsigned k = 0; k < taps; k++) {
        const uint8_t *restrict row = rows[k] + at;
        const uint32_t weight = weights[k];
        for (size_t i = 0; i < count; i++)
            sums[i] += row[i] * weight;
    }
    for (size_t i = 0; i < count; i++)
        out[at + i] = (uint16_t)(sums[i] >> 8);
}

static void blur_down_loop(const uint8_t *const *rows, const uint32_t *weights, unsigned taps,
                           size_t count, uint16_t *out)
{
    size_t i = 0;
    for (; i + LOOP_BLOCK <= count; i += LOOP_BLOCK)
        blur_down_block(rows, i, weights, taps, LOOP_BLOCK, out);
    if (i < count)
        blur_down_block(rows, i, weights, taps, count - i, out);
}

static inline void blur_across_block(const uint16_t *restrict in, size_t step,
                                     const uint32_t *weights, unsigned taps, size_t count,
                                     uint8_t *restrict out)
{
    uint32_t sums[LOOP_BLOCK];
    for (size_t i = 0; i < count; i++)
        sums[i] = 1 << 23;
    for (unsigned k = 0; k < taps; k++)
        for (size_t i = 0; i < count; i++)
            sums[i] += in[k * step + i] * weights[k];
    for (size_t i = 0; i < count; i++)
        out[i] = (uint8_t)(sums[i] >> 24);
}

static void blur_across_loop(const uint16_t *in, size_t step, const uint32_t *weights,
                             unsigned taps, size_t count, uint8_t *out)
{
    size_t i = 0;
    for (; i + LOOP_BLOCK <= count; i += LOOP_BLOCK)
        blur_across_block(in + i, step, weights, taps, LOOP_BLOCK, out + i);
    if (i < count)
        blur_across_block(in + i, step, weights, taps, count - i, out + i);
}

#define DL2_OPERATION_LOOPS(set, best_look_up)                                                     \
    {                                                                                              \
        .name = set, .blend_value = blend_value_loop, .blend = blend_loop,                         \
        .blend_gray = blend_gray_loop, .gray = gray_loop, .sum_gray = sum_gray_loop,               \
        .turn_hue = turn_hue_loop, .invert_from = invert_from_loop, .mask = mask_loop,             \
        .range = range_loop, .look_up = best_look_up, .walk = walk_loop, .smooth = smooth_loop,    \
        .blur_down = blur_down_loop, .blur_across = blur_across_loop                               \
    }

#endif
