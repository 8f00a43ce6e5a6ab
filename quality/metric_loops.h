/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The loops of SSIMULACRA 2 and CIEDE2000 over vectors of LANES floats, in the vectors that GCC and
 * Clang have for every processor. A file for each instruction set defines LANES and includes this
 * one; plain C does so with four lanes, which every processor can compute.
 *
 * All paths give the same bits: they do the same operations in the same order, none of them fused,
 * and sum in sixteen accumulators, column x in accumulator x % 16, whatever the number of lanes.
 */
#ifndef DL2_QUALITY_METRIC_LOOPS_H
#define DL2_QUALITY_METRIC_LOOPS_H

#include "quality/ssimulacra2.h"

#include <stdint.h>
#include <string.h>

typedef float lanes __attribute__((vector_size(LANES * sizeof(float))));
typedef int32_t lane_bits __attribute__((vector_size(LANES * sizeof(int32_t))));

enum { LOOP_VECTORS = DL2_SSIMULACRA2_BLOCK / LANES };

static inline lanes load(const float *from)
{
    lanes v;
    memcpy(&v, from, sizeof v);
    return v;
}

static inline void store(float *to, lanes v)
{
    memcpy(to, &v, sizeof v);
}

static inline lanes absolute(lanes v)
{
    return (lanes)((lane_bits)v & 0x7fffffff);
}

static inline lanes positive(lanes v)
{
    return (lanes)((lane_bits)v & (v > 0));
}

/*
 * Cube root of a positive value, to 2e-7 of it. The inverse cube root is estimated from the
 * exponent to 4%, then improved twice: with h = 1 - x r^3, x^(-1/3) = r (1 - h)^(-1/3), of whose
 * series three terms are taken.
 */
static inline lanes cube_root(lanes x)
{
    const lanes exponent = __builtin_convertvector((lane_bits)x, lanes);
    lanes r = (lanes) __builtin_convertvector(1.4197e9f - exponent * (1.0f / 3), lane_bits);
    for (int i = 0; i < 2; i++) {
        const lanes h = 1.0f - x * (r * r * r);
        r += r * (h * (1.0f / 3 + h * (2.0f / 9)));
    }
    return x * (r * r);
}

/* From linear R, G, B to the opponent colors of ssimulacra2.c; xyb may be rgb. */
static void xyb_loop(float *const rgb[3], size_t count, float *const xyb[3])
{
    const float bias = 0.0037930732552754493f, root = 0.155954200549248620f;
    for (size_t i = 0; i < count; i += LANES) {
        const lanes r = load(rgb[0] + i), g = load(rgb[1] + i), b = load(rgb[2] + i);
        const lanes l = cube_root(0.3f * r + (0.622f * g + (0.078f * b + bias))) - root;
        const lanes m = cube_root(0.23f * r + (0.692f * g + (0.078f * b + bias))) - root;
        const lanes s =
            cube_root(0.243422689f * r + (0.204767444f * g + (0.551809867f * b + bias)));
        const lanes y = 0.5f * (l + m);
        store(xyb[0] + i, 0.5f * (l - m) * 14.0f + 0.42f);
        store(xyb[1] + i, y + 0.01f);
        store(xyb[2] + i, s - root - y + 0.55f);
    }
}

/* Every second value of the two vectors from `from` on: the even and the odd ones. */
static inline void split(const float *from, lanes *even, lanes *odd)
{
    const lanes a = load(from), b = load(from + LANES);
#if LANES == 16
    *even =
        __builtin_shufflevector(a, b, 0, 2, 4, 6, 8, 10, 12, 14, 16, 18, 20, 22, 24, 26, 28, 30);
    *odd = __builtin_shufflevector(a, b, 1, 3, 5, 7, 9, 11, 13, 15, 17, 19, 21, 23, 25, 27, 29, 31);
#elif LANES == 8
    *even = __builtin_shufflevector(a, b, 0, 2, 4, 6, 8, 10, 12, 14);
    *odd = __builtin_shufflevector(a, b, 1, 3, 5, 7, 9, 11, 13, 15);
#else
    *even = __builtin_shufflevector(a, b, 0, 2, 4, 6);
    *odd = __builtin_shufflevector(a, b, 1, 3, 5, 7);
#endif
}

/* out[i] is the mean of values 2i and 2i + 1 of both rows. Writes `count` values, no more. */
static void halve_loop(const float *above, const float *below, size_t count, float *out)
{
    size_t i = 0;
    for (; i + LANES <= count; i += LANES) {
        lanes a0, a1, b0, b1;
        split(above + 2 * i, &a0, &a1);
        split(below + 2 * i, &b0, &b1);
        store(out + i, ((a0 + a1) + (b0 + b1)) * 0.25f);
    }
    for (; i < count; i++)
        out[i] = (above[2 * i] + above[2 * i + 1] + (below[2 * i] + below[2 * i + 1])) * 0.25f;
}

/* squares = a^2 + b^2, distance = (a - b)^2. */
static void squares_loop(const float *a, const float *b, size_t count, float *squares,
                         float *distance)
{
    for (size_t i = 0; i < count; i += LANES) {
        const lanes x = load(a + i), y = load(b + i), d = x - y;
        store(squares + i, x * x + y * y);
        store(distance + i, d * d);
    }
}

/* Filters down the columns. */
static void blur_columns_loop(const float *const rows[DL2_SSIMULACRA2_TAPS], size_t count,
                              float *out)
{
    static const float w[] = DL2_SSIMULACRA2_WEIGHTS;
    for (size_t i = 0; i < count; i += LANES) {
        lanes sum = w[0] * load(rows[4] + i);
        sum += w[1] * (load(rows[3] + i) + load(rows[5] + i));
        sum += w[2] * (load(rows[2] + i) + load(rows[6] + i));
        sum += w[3] * (load(rows[1] + i) + load(rows[7] + i));
        sum += w[4] * (load(rows[0] + i) + load(rows[8] + i));
        store(out + i, sum);
    }
}

/* Filters along the row. */
static inline lanes blur_row(const float *at)
{
    static const float w[] = DL2_SSIMULACRA2_WEIGHTS;
    lanes sum = w[0] * load(at);
    sum += w[1] * (load(at - 1) + load(at + 1));
    sum += w[2] * (load(at - 2) + load(at + 2));
    sum += w[3] * (load(at - 3) + load(at + 3));
    sum += w[4] * (load(at - 4) + load(at + 4));
    return sum;
}

/* An error's sum and that of its fourth power, by column % 16. */
struct map_sums {
    lanes one[LOOP_VECTORS], four[LOOP_VECTORS];
};

static inline void add_error(struct map_sums *sums, int at, lanes error)
{
    const lanes square = error * error;
    sums->one[at] += error;
    sums->four[at] += square * square;
}

static inline double total_of(const lanes *v)
{
    float parts[DL2_SSIMULACRA2_BLOCK];
    double sum = 0;
    memcpy(parts, v, sizeof parts);
    for (int i = 0; i < DL2_SSIMULACRA2_BLOCK; i++)
        sum += (double)parts[i];
    return sum;
}

static inline void maps_of(const struct dl2_ssimulacra2_row *row, size_t count, bool structure,
                           bool edges, double sums[DL2_SSIMULACRA2_MAPS][2])
{
    struct map_sums maps[DL2_SSIMULACRA2_MAPS];
    memset(maps, 0, sizeof maps);
    for (size_t x = 0; x < count; x += DL2_SSIMULACRA2_BLOCK)
#pragma GCC unroll 4
        for (int j = 0; j < LOOP_VECTORS; j++) {
            const size_t i = x + (size_t)j * LANES;
            const lanes a = blur_row(row->mean_a + i), b = blur_row(row->mean_b + i);
            const lanes mask = load(row->mask + i);
            if (structure) {
                const lanes e = (a - b) * (a - b);
                const lanes distance = blur_row(row->mean_distance + i) - e;
                const lanes v =
                    blur_row(row->mean_squares + i) - (a * a + b * b) + DL2_SSIMULACRA2_C2;
                add_error(&maps[DL2_SSIMULACRA2_STRUCTURE], j,
                          mask * positive((distance + e * (v - distance)) / v));
            }
            if (edges) {
                const lanes one = absolute(load(row->a + i) - a);
                const lanes other = absolute(load(row->b + i) - b);
                const lanes d = mask * ((other - one) / (1.0f + one));
                add_error(&maps[DL2_SSIMULACRA2_ARTIFACT], j, positive(d));
                add_error(&maps[DL2_SSIMULACRA2_LOST], j, positive(-d));
            }
        }
    for (int map = 0; map < DL2_SSIMULACRA2_MAPS; map++) {
        sums[map][0] += total_of(maps[map].one);
        sums[map][1] += total_of(maps[map].four);
    }
}

/* Adds the errors of `count` columns. */
static void maps_loop(const struct dl2_ssimulacra2_row *row, size_t count,
                      double sums[DL2_SSIMULACRA2_MAPS][2])
{
    if (row->structure && row->edges)
        maps_of(row, count, true, true, sums);
    else if (row->structure)
        maps_of(row, count, true, false, sums);
    else
        maps_of(row, count, false, true, sums);
}

#include "quality/ciede2000_loops.h"

#define LOOPS                                                                                      \
    .xyb = xyb_loop, .halve = halve_loop, .squares = squares_loop,                                 \
    .blur_columns = blur_columns_loop, .maps = maps_loop, .ciede2000 = ciede2000_loop

#endif
