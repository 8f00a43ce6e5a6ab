/* SPDX-License-Identifier: BSD-2-Clause */
#include "pixels/volume_operations.h"

#include "common/memory.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { BLUR_RADIUS = 4 * DL2_VOXELS_BLUR_MAX + 1 };

static size_t plane_of(const struct dl2_voxels *voxels)
{
    return voxels->size[1] * voxels->size[2];
}

/* The voxels of a channel. */
static size_t count_of(const struct dl2_voxels *voxels)
{
    return voxels->size[0] * plane_of(voxels);
}

int dl2_voxels_init(struct dl2_voxels *voxels, size_t channels, const size_t size[3], bool labels,
                    struct dl2_error *error)
{
    size_t count = channels;
    *voxels = (struct dl2_voxels){.channels = channels};
    bool fits = true;
    for (int i = 0; i < 3; i++) {
        voxels->size[i] = size[i];
        fits = fits && dl2_size_mul(count, size[i], &count);
    }
    if (!fits)
        return dl2_error_memory(error, "a patch of a volume");
    voxels->data = dl2_alloc_aligned(count, sizeof *voxels->data);
    voxels->spare = dl2_alloc_aligned(count, sizeof *voxels->spare);
    voxels->line = dl2_alloc_aligned(3 * (size[2] + 2 * BLUR_RADIUS), sizeof *voxels->line);
    if (labels) {
        voxels->labels = dl2_alloc_aligned(count / channels, 1);
        voxels->spare_labels = dl2_alloc_aligned(count / channels, 1);
    }
    return voxels->data && voxels->spare && voxels->line &&
                   (!labels || (voxels->labels && voxels->spare_labels))
               ? DL2_OK
               : dl2_error_memory(error, "a patch of a volume");
}

void dl2_voxels_free(struct dl2_voxels *voxels)
{
    free(voxels->data);
    free(voxels->spare);
    free(voxels->labels);
    free(voxels->spare_labels);
    free(voxels->line);
    *voxels = (struct dl2_voxels){0};
}

size_t dl2_voxels_memory(const struct dl2_voxels *voxels)
{
    const size_t count = count_of(voxels);
    return voxels->data
               ? 2 * count * (voxels->channels * sizeof(float) + (voxels->labels != NULL)) +
                     3 * (voxels->size[2] + 2 * BLUR_RADIUS) * sizeof(float)
               : 0;
}

static void swap_data(struct dl2_voxels *voxels)
{
    float *data = voxels->data;
    voxels->data = voxels->spare;
    voxels->spare = data;
}

static void swap_labels(struct dl2_voxels *voxels)
{
    uint8_t *labels = voxels->labels;
    voxels->labels = voxels->spare_labels;
    voxels->spare_labels = labels;
}

/* ---- values ---- */

static float *row_at(const struct dl2_voxels *voxels, const size_t at[3], size_t c, size_t z,
                     size_t y)
{
    const size_t *size = voxels->size;
    return voxels->data + ((c * size[0] + at[0] + z) * size[1] + at[1] + y) * size[2] + at[2];
}

/* Two passes: sums of squares lose digits where the mean is far from 0. */
static void zscore_channel(struct dl2_voxels *voxels, size_t c, const size_t at[3],
                           const size_t part[3])
{
    const double count = (double)part[0] * (double)part[1] * (double)part[2];
    double sum = 0, squares = 0;
    for (size_t z = 0; z < part[0]; z++)
        for (size_t y = 0; y < part[1]; y++) {
            const float *row = row_at(voxels, at, c, z, y);
            for (size_t x = 0; x < part[2]; x++)
                sum += (double)row[x];
        }
    const double mean = sum / count;
    for (size_t z = 0; z < part[0]; z++)
        for (size_t y = 0; y < part[1]; y++) {
            const float *row = row_at(voxels, at, c, z, y);
            for (size_t x = 0; x < part[2]; x++)
                squares += ((double)row[x] - mean) * ((double)row[x] - mean);
        }
    const double deviation = sqrt(squares / count);
    const double scale = deviation > 0 && isfinite(1 / deviation) ? 1 / deviation : 0;
    for (size_t z = 0; z < part[0]; z++)
        for (size_t y = 0; y < part[1]; y++) {
            float *row = row_at(voxels, at, c, z, y);
            for (size_t x = 0; x < part[2]; x++)
                row[x] = (float)(((double)row[x] - mean) * scale);
        }
}

void dl2_voxels_zscore(struct dl2_voxels *voxels, const size_t at[3], const size_t part[3])
{
    for (size_t c = 0; c < voxels->channels; c++)
        zscore_channel(voxels, c, at, part);
}

void dl2_voxels_window(struct dl2_voxels *voxels, const size_t at[3], const size_t part[3],
                       double low, double high)
{
    const double scale = 1 / (high - low);
    for (size_t c = 0; c < voxels->channels; c++)
        for (size_t z = 0; z < part[0]; z++)
            for (size_t y = 0; y < part[1]; y++) {
                float *row = row_at(voxels, at, c, z, y);
                for (size_t x = 0; x < part[2]; x++) {
                    const double value = ((double)row[x] - low) * scale;
                    row[x] = (float)(value < 0 ? 0 : value > 1 ? 1 : value);
                }
            }
}

void dl2_voxels_noise(struct dl2_voxels *voxels, struct dl2_random *random, double deviation)
{
    const size_t count = voxels->channels * count_of(voxels);
    for (size_t i = 0; i < count; i++)
        voxels->data[i] += (float)(deviation * dl2_random_normal(random));
}

void dl2_voxels_brightness(struct dl2_voxels *voxels, double factor)
{
    const size_t count = voxels->channels * count_of(voxels);
    const float by = (float)factor;
    for (size_t i = 0; i < count; i++)
        voxels->data[i] *= by;
}

void dl2_voxels_gamma(struct dl2_voxels *voxels, double exponent)
{
    const size_t count = count_of(voxels);
    for (size_t c = 0; c < voxels->channels; c++) {
        float *values = voxels->data + c * count;
        float least = values[0], greatest = values[0];
        for (size_t i = 1; i < count; i++) {
            least = values[i] < least ? values[i] : least;
            greatest = values[i] > greatest ? values[i] : greatest;
        }
        const float range = greatest - least;
        for (size_t i = 0; range > 0 && i < count; i++)
            values[i] = powf((values[i] - least) / range, (float)exponent) * range + least;
    }
}

/* ---- flips ---- */

static void flip_rows(float *data, size_t rows, size_t width)
{
    for (size_t r = 0; r < rows; r++, data += width)
        for (size_t x = 0; x < width / 2; x++) {
            const float kept = data[x];
            data[x] = data[width - 1 - x];
            data[width - 1 - x] = kept;
        }
}

static void flip_label_rows(uint8_t *labels, size_t rows, size_t width)
{
    for (size_t r = 0; r < rows; r++, labels += width)
        for (size_t x = 0; x < width / 2; x++) {
            const uint8_t kept = labels[x];
            labels[x] = labels[width - 1 - x];
            labels[width - 1 - x] = kept;
        }
}

/* Reverses the order of `count` blocks of `bytes` in each of `groups`. */
static void flip_blocks(const void *from, void *to, size_t groups, size_t count, size_t bytes)
{
    for (size_t g = 0; g < groups; g++)
        for (size_t i = 0; i < count; i++)
            memcpy((uint8_t *)to + (g * count + i) * bytes,
                   (const uint8_t *)from + (g * count + count - 1 - i) * bytes, bytes);
}

void dl2_voxels_flip(struct dl2_voxels *voxels, unsigned axis)
{
    const size_t *size = voxels->size, rows = size[0] * size[1];
    if (axis == 2) {
        flip_rows(voxels->data, voxels->channels * rows, size[2]);
        if (voxels->labels)
            flip_label_rows(voxels->labels, rows, size[2]);
        return;
    }
    const size_t groups = axis ? size[0] : 1, block = axis ? size[2] : plane_of(voxels);
    flip_blocks(voxels->data, voxels->spare, voxels->channels * groups, size[axis],
                block * sizeof(float));
    swap_data(voxels);
    if (!voxels->labels)
        return;
    flip_blocks(voxels->labels, voxels->spare_labels, groups, size[axis], block);
    swap_labels(voxels);
}

/* ---- blur ---- */

static size_t clamped(ptrdiff_t at, size_t size)
{
    return at < 0 ? 0 : (size_t)at >= size ? size - 1 : (size_t)at;
}

/* Along the depth or the height: each row of the output is a sum of rows. */
static void blur_across(const struct dl2_voxels *voxels, unsigned axis, const float *kernel,
                        ptrdiff_t radius)
{
    const size_t *size = voxels->size, width = size[2];
    const size_t stride = axis ? width : plane_of(voxels);
    for (size_t r = 0; r < voxels->channels * size[0] * size[1]; r++) {
        const size_t at = axis ? r % size[1] : r / size[1] % size[0];
        const float *base = voxels->data + r * width - at * stride;
        float *to = voxels->spare + r * width;
        memset(to, 0, width * sizeof *to);
        for (ptrdiff_t k = -radius; k <= radius; k++) {
            const float *from = base + clamped((ptrdiff_t)at + k, size[axis]) * stride;
            const float weight = kernel[k < 0 ? -k : k];
            for (size_t x = 0; x < width; x++)
                to[x] += weight * from[x];
        }
    }
}

static void blur_along(const struct dl2_voxels *voxels, const float *kernel, ptrdiff_t radius)
{
    const size_t width = voxels->size[2];
    const size_t rows = voxels->channels * voxels->size[0] * voxels->size[1];
    float *line = voxels->line;
    for (size_t r = 0; r < rows; r++) {
        const float *from = voxels->data + r * width;
        float *to = voxels->spare + r * width;
        for (ptrdiff_t k = 0; k < radius; k++) {
            line[k] = from[0];
            line[(size_t)radius + width + (size_t)k] = from[width - 1];
        }
        memcpy(line + radius, from, width * sizeof *line);
        memset(to, 0, width * sizeof *to);
        for (ptrdiff_t k = -radius; k <= radius; k++) {
            const float weight = kernel[k < 0 ? -k : k];
            for (size_t x = 0; x < width; x++)
                to[x] += weight * line[(size_t)(radius + k) + x];
        }
    }
}

void dl2_voxels_blur(struct dl2_voxels *voxels, double sigma)
{
    float kernel[BLUR_RADIUS];
    double weights[BLUR_RADIUS], sum = 0;
    const ptrdiff_t wanted = (ptrdiff_t)(4 * sigma + 0.5);
    const ptrdiff_t radius = wanted < BLUR_RADIUS ? wanted : BLUR_RADIUS - 1;
    for (ptrdiff_t k = 0; k <= radius; k++) {
        weights[k] = exp(-0.5 * (double)(k * k) / (sigma * sigma));
        sum += k ? 2 * weights[k] : weights[k];
    }
    for (ptrdiff_t k = 0; k <= radius; k++)
        kernel[k] = (float)(weights[k] / sum);
    for (unsigned axis = 0; axis < 2; axis++) {
        blur_across(voxels, axis, kernel, radius);
        swap_data(voxels);
    }
    blur_along(voxels, kernel, radius);
    swap_data(voxels);
}

/* ---- elastic deformation ---- */

void dl2_elastic_draw(struct dl2_elastic *elastic, struct dl2_random *random, unsigned points,
                      double most)
{
    elastic->points = points;
    for (unsigned axis = 0; axis < 3; axis++)
        for (unsigned z = 0; z < points + 2; z++)
            for (unsigned y = 0; y < points + 2; y++)
                for (unsigned x = 0; x < points + 2; x++)
                    elastic->offsets[axis][z][y][x] =
                        (float)(most * (2 * dl2_random_uniform(random) - 1));
}

/* A voxel's position among the control points: the first of the four that it depends on, and the
 * weights of these. */
static unsigned spline_at(size_t at, size_t size, unsigned points, float weights[4])
{
    const double position = size > 1 ? (double)at * (points - 1) / (double)(size - 1) : 0;
    const unsigned first = position >= points - 1 ? points - 2 : (unsigned)position;
    const float t = (float)(position - first), u = 1 - t;
    weights[0] = u * u * u / 6;
    weights[1] = (3 * t * t * t - 6 * t * t + 4) / 6;
    weights[2] = (3 * u * u * u - 6 * u * u + 4) / 6;
    weights[3] = t * t * t / 6;
    return first;
}

/* The displacements of a row along one axis: the control points are summed over z and y first. */
static void displace_row(const struct dl2_voxels *voxels, const struct dl2_elastic *elastic,
                         unsigned axis, size_t z, size_t y, float *out)
{
    float wz[4], wy[4], wx[4], controls[DL2_ELASTIC_POINTS + 2] = {0};
    const unsigned points = elastic->points;
    const unsigned z0 = spline_at(z, voxels->size[0], points, wz);
    const unsigned y0 = spline_at(y, voxels->size[1], points, wy);
    for (unsigned i = 0; i < 4; i++)
        for (unsigned j = 0; j < 4; j++)
            for (unsigned x = 0; x < points + 2; x++)
                controls[x] += wz[i] * wy[j] * elastic->offsets[axis][z0 + i][y0 + j][x];
    for (size_t x = 0; x < voxels->size[2]; x++) {
        const unsigned x0 = spline_at(x, voxels->size[2], points, wx);
        out[x] = wx[0] * controls[x0] + wx[1] * controls[x0 + 1] + wx[2] * controls[x0 + 2] +
                 wx[3] * controls[x0 + 3];
    }
}

/* A position between two voxels, within the patch: the first of them, and the second's share. */
static size_t between(float position, size_t size, float *share)
{
    const float last = (float)(size - 1);
    const float inside = position > 0 ? (position < last ? position : last) : 0;
    const size_t first = (size_t)inside;
    *share = inside - (float)first;
    return first;
}

static float mix(float a, float b, float share)
{
    return a + (b - a) * share;
}

/* One voxel from eight. */
static float interpolate(const float *data, const size_t *size, const size_t at[3],
                         const float share[3])
{
    const size_t right = at[2] + 1 < size[2];
    const size_t down = at[1] + 1 < size[1] ? size[2] : 0;
    const size_t back = at[0] + 1 < size[0] ? size[1] * size[2] : 0;
    const float *p = data + (at[0] * size[1] + at[1]) * size[2] + at[2];
    const float *q = p + back;
    return mix(
        mix(mix(p[0], p[right], share[2]), mix(p[down], p[down + right], share[2]), share[1]),
        mix(mix(q[0], q[right], share[2]), mix(q[down], q[down + right], share[2]), share[1]),
        share[0]);
}

static void deform_row(struct dl2_voxels *voxels, size_t z, size_t y, float *const moves[3])
{
    const size_t *size = voxels->size, count = count_of(voxels);
    const size_t row = (z * size[1] + y) * size[2];
    for (size_t x = 0; x < size[2]; x++) {
        float share[3];
        const size_t at[3] = {
            between((float)z + moves[0][x], size[0], &share[0]),
            between((float)y + moves[1][x], size[1], &share[1]),
            between((float)x + moves[2][x], size[2], &share[2]),
        };
        for (size_t c = 0; c < voxels->channels; c++)
            voxels->spare[c * count + row + x] =
                interpolate(voxels->data + c * count, size, at, share);
        if (voxels->labels) {
            const size_t nearest =
                ((at[0] + (share[0] >= 0.5f)) * size[1] + at[1] + (share[1] >= 0.5f)) * size[2] +
                at[2] + (share[2] >= 0.5f);
            voxels->spare_labels[row + x] = voxels->labels[nearest];
        }
    }
}

void dl2_voxels_elastic(struct dl2_voxels *voxels, const struct dl2_elastic *elastic)
{
    const size_t width = voxels->size[2];
    float *const moves[3] = {voxels->line, voxels->line + width, voxels->line + 2 * width};
    for (size_t z = 0; z < voxels->size[0]; z++)
        for (size_t y = 0; y < voxels->size[1]; y++) {
            for (unsigned axis = 0; axis < 3; axis++)
                displace_row(voxels, elastic, axis, z, y, moves[axis]);
            deform_row(voxels, z, y, moves);
        }
    swap_data(voxels);
    if (voxels->labels)
        swap_labels(voxels);
}
