/* SPDX-License-Identifier: BSD-2-Clause */
#include "pixels/volume_resample.h"

#include "common/memory.h"
#include "common/scope.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static bool is_same(const size_t size[3], const size_t to[3])
{
    return !memcmp(size, to, 3 * sizeof *size);
}

static void *new_voxels(const size_t size[3], size_t bytes, struct dl2_error *error)
{
    size_t all;
    const bool fits = dl2_size_mul(size[0], size[1], &all) && dl2_size_mul(all, size[2], &all);
    void *made = fits ? dl2_calloc(all, bytes) : NULL;
    if (!made)
        dl2_error_memory(error, "a volume of %zux%zux%zu", size[0], size[1], size[2]);
    return made;
}

/* ---- turning ---- */

int dl2_volume_turn(void **voxels, size_t bytes, size_t size[3], const struct dl2_volume_turn *turn,
                    struct dl2_error *error)
{
    const size_t own[3] = {size[1] * size[2], size[2], 1};
    size_t to[3];
    ptrdiff_t step[3], start = 0;
    for (int i = 0; i < 3; i++) {
        const unsigned axis = turn->from[i];
        to[i] = size[axis];
        step[i] = turn->reverse[i] ? -(ptrdiff_t)own[axis] : (ptrdiff_t)own[axis];
        start += turn->reverse[i] ? (ptrdiff_t)(own[axis] * (size[axis] - 1)) : 0;
    }
    char *made = new_voxels(to, bytes, error), *out = made;
    if (!made)
        return DL2_ERR_MEMORY;
    for (size_t z = 0; z < to[0]; z++)
        for (size_t y = 0; y < to[1]; y++) {
            const ptrdiff_t row = start + (ptrdiff_t)z * step[0] + (ptrdiff_t)y * step[1];
            for (size_t x = 0; x < to[2]; x++, out += bytes)
                memcpy(out, (char *)*voxels + (row + (ptrdiff_t)x * step[2]) * (ptrdiff_t)bytes,
                       bytes);
        }
    free(*voxels);
    *voxels = made;
    memcpy(size, to, sizeof to);
    return DL2_OK;
}

/* ---- values ---- */

/* A voxel of the new grid between those of the old one. */
static double place_of(size_t i, size_t old, size_t new)
{
    return new > 1 ? (double)i *((double)(old - 1) / (double)(new - 1)) : 0;
}

static size_t mirrored(ptrdiff_t i, size_t count)
{
    const ptrdiff_t last = (ptrdiff_t)count - 1, period = 2 * last;
    if (!last)
        return 0;
    i = (i % period + period) % period;
    return (size_t)(i > last ? period - i : i);
}

/* The voxels that a place is made of, and their weights; how many there are. */
static unsigned find_taps(double place, size_t count, unsigned order, size_t at[4],
                          double weights[4])
{
    const double below = floor(place), t = place - below, z = 1 - t;
    const unsigned taps = order + 1;
    for (unsigned k = 0; k < taps; k++)
        at[k] = mirrored((ptrdiff_t)below + (ptrdiff_t)k - (order == 3), count);
    if (order == 1) {
        weights[0] = z;
        weights[1] = t;
        return taps;
    }
    weights[0] = z * z * z / 6;
    weights[1] = (t * t * (t - 2) * 3 + 4) / 6;
    weights[2] = (z * z * (z - 2) * 3 + 4) / 6;
    weights[3] = 1 - weights[0] - weights[1] - weights[2];
    return taps;
}

static void add_row(float *to, const float *from, double weight, size_t count)
{
    const float factor = (float)weight;
    for (size_t i = 0; i < count; i++)
        to[i] += factor * from[i];
}

static void scale_row(float *row, double factor, size_t count)
{
    for (size_t i = 0; i < count; i++)
        row[i] *= (float)factor;
}

/*
 * Makes `count` rows the coefficients of the cubic B-spline through them (Unser, "Splines: a
 * perfect fit for signal and image processing", 1999): a filter forwards and one backwards along
 * the rows, with the pole sqrt(3) - 2.
 */
static void find_coefficients(float *rows, size_t count, size_t width)
{
    const double pole = sqrt(3) - 2, far = pow(pole, (double)count - 1);
    float *last = rows + (count - 1) * width;
    if (count < 2)
        return;
    scale_row(rows, 6, count * width);
    add_row(rows, last, far, width);
    double power = pole;
    for (size_t i = 1; i + 1 < count && fabs(power) > 1e-12; i++, power *= pole) {
        add_row(rows, rows + i * width, power, width);
        add_row(rows, rows + (count - 1 - i) * width, power * far, width);
    }
    scale_row(rows, 1 / (1 - far * far), width);
    for (size_t i = 1; i < count; i++)
        add_row(rows + i * width, rows + (i - 1) * width, pole, width);
    add_row(last, last - width, pole, width);
    scale_row(last, pole / (pole * pole - 1), width);
    for (size_t i = count - 1; i-- > 0;) {
        scale_row(rows + i * width, -pole, width);
        add_row(rows + i * width, rows + (i + 1) * width, pole, width);
    }
}

/* The rows of an axis are as long as the axes behind it: `outer` times `old` rows of `width`. */
static void resample_axis(float *from, size_t outer, size_t old, size_t new, size_t width,
                          unsigned order, float *to)
{
    for (size_t o = 0; o < outer; o++, from += old * width) {
        if (order == 3)
            find_coefficients(from, old, width);
        for (size_t i = 0; i < new; i++, to += width) {
            size_t at[4];
            double weights[4];
            const unsigned taps = find_taps(place_of(i, old, new), old, order, at, weights);
            for (unsigned k = 0; k < taps; k++)
                add_row(to, from + at[k] * width, weights[k], width);
        }
    }
}

int dl2_volume_resample(float **voxels, const size_t size[3], const size_t to[3], unsigned order,
                        struct dl2_error *error)
{
    size_t now[3] = {size[0], size[1], size[2]};
    for (unsigned axis = 0; axis < 3; axis++) {
        const size_t old = now[axis];
        if (old == to[axis])
            continue;
        now[axis] = to[axis];
        float *made = new_voxels(now, sizeof *made, error);
        if (!made)
            return DL2_ERR_MEMORY;
        size_t outer = 1, width = 1;
        for (unsigned i = 0; i < 3; i++)
            *(i < axis ? &outer : &width) *= i == axis ? 1 : now[i];
        resample_axis(*voxels, outer, old, to[axis], width, order, made);
        free(*voxels);
        *voxels = made;
    }
    return DL2_OK;
}

/* ---- labels ---- */

static size_t nearest(size_t i, size_t old, size_t new, enum dl2_label_rule rule)
{
    const double place = rule == DL2_LABELS_NEAREST
                             ? floor(place_of(i, old, new) + 0.5)
                             : (double)floorf((float)i * ((float)old / (float)new));
    return place < (double)old ? (size_t)place : old - 1;
}

static void take_nearest(const uint8_t *labels, const size_t size[3], const size_t to[3],
                         enum dl2_label_rule rule, uint8_t *out)
{
    for (size_t z = 0; z < to[0]; z++)
        for (size_t y = 0; y < to[1]; y++) {
            const uint8_t *row = labels + (nearest(z, size[0], to[0], rule) * size[1] +
                                           nearest(y, size[1], to[1], rule)) *
                                              size[2];
            for (size_t x = 0; x < to[2]; x++)
                *out++ = row[nearest(x, size[2], to[2], rule)];
        }
}

/* Two voxels along each axis, with weights. */
struct corners {
    size_t at[3][4];
    double weights[3][4];
};

static uint8_t find_largest_share(const uint8_t *labels, const size_t size[3],
                                  const struct corners *corners)
{
    uint8_t seen[8];
    double shares[8];
    unsigned count = 0, best = 0;
    for (unsigned c = 0; c < 8; c++) {
        const unsigned k[3] = {c >> 2, c >> 1 & 1, c & 1};
        const uint8_t label =
            labels[(corners->at[0][k[0]] * size[1] + corners->at[1][k[1]]) * size[2] +
                   corners->at[2][k[2]]];
        unsigned place = 0;
        while (place < count && seen[place] != label)
            place++;
        if (place == count) {
            seen[count] = label;
            shares[count++] = 0;
        }
        shares[place] +=
            corners->weights[0][k[0]] * corners->weights[1][k[1]] * corners->weights[2][k[2]];
    }
    for (unsigned i = 1; i < count; i++)
        if (shares[i] > shares[best] || (shares[i] == shares[best] && seen[i] < seen[best]))
            best = i;
    return seen[best];
}

static void take_linear(const uint8_t *labels, const size_t size[3], const size_t to[3],
                        uint8_t *out)
{
    struct corners corners;
    size_t i[3];
    for (i[0] = 0; i[0] < to[0]; i[0]++)
        for (i[1] = 0; i[1] < to[1]; i[1]++)
            for (i[2] = 0; i[2] < to[2]; i[2]++) {
                for (int axis = 0; axis < 3; axis++)
                    find_taps(place_of(i[axis], size[axis], to[axis]), size[axis], 1,
                              corners.at[axis], corners.weights[axis]);
                *out++ = find_largest_share(labels, size, &corners);
            }
}

int dl2_labels_resample(uint8_t **labels, const size_t size[3], const size_t to[3],
                        enum dl2_label_rule rule, struct dl2_error *error)
{
    if (is_same(size, to))
        return DL2_OK;
    uint8_t *made = new_voxels(to, 1, error);
    if (!made)
        return DL2_ERR_MEMORY;
    if (rule == DL2_LABELS_LINEAR)
        take_linear(*labels, size, to, made);
    else
        take_nearest(*labels, size, to, rule, made);
    free(*labels);
    *labels = made;
    return DL2_OK;
}
