/* SPDX-License-Identifier: BSD-2-Clause */
#include "pixels/resize_image.h"

#include "common/simd.h"
#include "pixels/resize_kernels.h"

#include <math.h>
#include <string.h>

/* Rows that are turned together, so that a pass across is one down: a row of a strip has one column
 * of all of them. */
enum { STRIP = 16 };

/* The filter along one axis. */
struct axis {
    uint32_t count, most;  /* outputs; room for the taps of each */
    uint32_t from, end;    /* the samples that have a part in any */
    const uint32_t *first; /* of each output */
    const uint32_t *taps;
    const int32_t *weights; /* [count][most] */
};

/* ---- weights, in Pillow's order of operations, which decides where a sample lies on an edge */

static double box_weight(double x)
{
    return x > -0.5 && x <= 0.5;
}

static double triangle_weight(double x)
{
    return fabs(x) < 1 ? 1 - fabs(x) : 0;
}

/*
 * sinc(x) sinc(x/3) for |x| < 3. As sin(3t) = sin(t) (3 - 4 sin(t)^2), it needs sin(pi x / 3)
 * alone: a polynomial, so that no C library's rounding decides about a weight.
 */
static double lanczos_weight(double x)
{
    const double third = fabs(x) / 3;
    if (third < 1e-8)
        return 1;
    if (third >= 1)
        return 0;
    const double p = M_PI * (third < 0.5 ? third : 1 - third), q = p * p;
    double sine = 1;
    for (int n = 16; n > 0; n -= 2)
        sine = 1 - q / (n * (n + 1)) * sine;
    sine *= p;
    const double square = sine * sine;
    return square * (3 - 4 * square) / (3 * M_PI * M_PI * third * third);
}

static const struct kind {
    double reach; /* samples from the middle to where the weights end, before it is widened */
    double (*weight)(double x);
} kinds[] = {
    [DL2_BILINEAR] = {1, triangle_weight}, [DL2_NEAREST] = {0, NULL},
    [DL2_BOX] = {0.5, box_weight},         [DL2_BICUBIC] = {0, NULL},
    [DL2_LANCZOS] = {3, lanczos_weight},
};

static void weigh(const struct kind *kind, double scale, uint32_t size, uint32_t output,
                  uint32_t *first, uint32_t *taps, int32_t *weights, double *scratch)
{
    const double widened = scale < 1 ? 1 : scale, inverse = 1 / widened;
    const double reach = kind->reach * widened, middle = (output + 0.5) * scale;
    const double begin = middle - reach + 0.5, finish = middle + reach + 0.5;
    double sum = 0;
    *first = begin > 0 ? (uint32_t)begin : 0;
    *taps = (finish < size ? (uint32_t)finish : size) - *first;
    for (uint32_t k = 0; k < *taps; k++) {
        scratch[k] = kind->weight(((double)k + *first - middle + 0.5) * inverse);
        sum += scratch[k];
    }
    for (uint32_t k = 0; k < *taps; k++) {
        const double weight = scratch[k] / sum * (1 << DL2_RESIZE_EXACT_BITS);
        weights[k] = (int32_t)(weight < 0 ? weight - 0.5 : weight + 0.5);
    }
}

static int make_axis(const struct kind *kind, uint32_t size, uint32_t count,
                     struct dl2_bytes *memory, struct axis *axis, struct dl2_error *error)
{
    const double scale = (double)size / count;
    const double most = ceil(kind->reach * (scale < 1 ? 1 : scale)) * 2 + 1;
    size_t weights_bytes, bytes;
    if (!dl2_size_mul((size_t)most * sizeof(int32_t), count, &weights_bytes) ||
        !dl2_size_add(weights_bytes,
                      2 * (size_t)count * sizeof(uint32_t) + (size_t)most * sizeof(double), &bytes))
        return dl2_error_set(error, DL2_ERR_LIMIT, "can't resize %u samples to %u", size, count);
    DL2_TRY(dl2_bytes_resize(memory, bytes, error));
    double *scratch = (double *)(void *)memory->data;
    int32_t *weights = (int32_t *)(scratch + (size_t)most);
    uint32_t *first = (uint32_t *)(weights + (size_t)most * count), *taps = first + count;
    *axis = (struct axis){count, (uint32_t)most, UINT32_MAX, 0, first, taps, weights};
    for (uint32_t i = 0; i < count; i++) {
        weigh(kind, scale, size, i, &first[i], &taps[i], weights + (size_t)most * i, scratch);
        axis->from = first[i] < axis->from ? first[i] : axis->from;
        axis->end = first[i] + taps[i] > axis->end ? first[i] + taps[i] : axis->end;
    }
    return DL2_OK;
}

/* ---- passes */

/* Columns of `count` rows, at most STRIP, to rows of the strip; what is behind them stays. */
static inline void turn(const uint8_t *in, size_t stride, uint32_t count, uint32_t channels,
                        const struct axis *columns, uint8_t *strip)
{
    const size_t row_bytes = (size_t)STRIP * channels;
    for (uint32_t row = 0; row < count; row++) {
        const uint8_t *from = in + row * stride + (size_t)columns->from * channels;
        uint8_t *to = strip + (size_t)row * channels;
        for (uint32_t x = columns->from; x < columns->end; x++, to += row_bytes)
            for (uint32_t c = 0; c < channels; c++)
                to[c] = *from++;
    }
}

/* A column of `count` rows back to its place in them. */
static inline void turn_back(const uint8_t *turned, uint32_t count, uint32_t channels, uint8_t *out,
                             size_t out_row)
{
    for (uint32_t row = 0; row < count; row++, out += out_row)
        for (uint32_t c = 0; c < channels; c++)
            out[c] = *turned++;
}

static int pass_across(struct dl2_image_resizer *resizer, const struct dl2_image *in,
                       const struct axis *columns, const struct axis *rows, struct dl2_error *error)
{
    const uint32_t channels = in->channels;
    const size_t row_bytes = (size_t)STRIP * channels, out_row = (size_t)columns->count * channels;
    size_t strip_bytes, bytes;
    if (!dl2_size_mul(columns->end - columns->from, row_bytes, &strip_bytes) ||
        !dl2_size_mul(rows->end - rows->from, out_row, &bytes))
        return dl2_error_set(error, DL2_ERR_LIMIT, "can't resize %ux%u pixels", in->width,
                             in->height);
    DL2_TRY(dl2_bytes_resize(&resizer->strip, strip_bytes, error));
    DL2_TRY(dl2_bytes_resize(&resizer->narrowed, bytes, error));
    memset(resizer->strip.data, 0, strip_bytes);
    uint8_t *out = resizer->narrowed.data;
    for (uint32_t y = rows->from; y < rows->end; y += STRIP, out += STRIP * out_row) {
        const uint32_t count = rows->end - y < STRIP ? rows->end - y : STRIP;
        const uint8_t *from = in->data + y * in->stride;
        if (channels == 3) /* a fixed number is what compilers unroll */
            turn(from, in->stride, count, 3, columns, resizer->strip.data);
        else
            turn(from, in->stride, count, 1, columns, resizer->strip.data);
        for (uint32_t x = 0; x < columns->count; x++) {
            uint8_t turned[STRIP * 3];
            resizer->kernels->weigh_bytes(
                resizer->strip.data + (columns->first[x] - columns->from) * row_bytes, row_bytes,
                columns->weights + (size_t)x * columns->most, columns->taps[x], row_bytes, turned);
            if (channels == 3)
                turn_back(turned, count, 3, out + (size_t)x * 3, out_row);
            else
                turn_back(turned, count, 1, out + x, out_row);
        }
    }
    return DL2_OK;
}

static void pass_down(const struct dl2_image_resizer *resizer, const struct axis *rows,
                      struct dl2_image *out)
{
    for (uint32_t y = 0; y < rows->count; y++)
        resizer->kernels->weigh_bytes(resizer->narrowed.data +
                                          (rows->first[y] - rows->from) * out->stride,
                                      out->stride, rows->weights + (size_t)y * rows->most,
                                      rows->taps[y], out->stride, out->data + y * out->stride);
}

/* The images have no padding, and `in_size` and `out_size` pixels of `pixel` bytes. */
static void pick_nearest(const uint8_t *in, const uint32_t in_size[2], size_t pixel, uint8_t *out,
                         const uint32_t out_size[2])
{
    const double across = (double)in_size[0] / out_size[0], down = (double)in_size[1] / out_size[1];
    for (uint32_t y = 0; y < out_size[1]; y++) {
        const uint8_t *from = in + (size_t)((y + 0.5) * down) * in_size[0] * pixel;
        for (uint32_t x = 0; x < out_size[0]; x++, out += pixel)
            memcpy(out, from + (size_t)((x + 0.5) * across) * pixel, pixel);
    }
}

/* Both passes for 16 bits; the samples between them are not rounded. */
static int pass_deep(struct dl2_image_resizer *resizer, const struct axis *columns,
                     const struct axis *rows, const struct dl2_deep_image *in,
                     struct dl2_deep_image *out, struct dl2_error *error)
{
    const double one = 1.0 / (1 << DL2_RESIZE_EXACT_BITS);
    const uint32_t channels = in->channels;
    const size_t out_row = (size_t)out->width * channels;
    size_t bytes;
    if (!dl2_size_mul(out_row * sizeof(double), rows->end - rows->from, &bytes))
        return dl2_error_set(error, DL2_ERR_LIMIT, "can't resize %ux%u pixels", in->width,
                             in->height);
    DL2_TRY(dl2_bytes_resize(&resizer->narrowed, bytes, error));
    double *const narrowed = (double *)(void *)resizer->narrowed.data, *to = narrowed;
    for (uint32_t y = rows->from; y < rows->end; y++)
        for (uint32_t x = 0; x < out->width; x++) {
            const int32_t *weights = columns->weights + (size_t)x * columns->most;
            const uint16_t *from = dl2_deep_row(in, y) + (size_t)columns->first[x] * channels;
            for (uint32_t c = 0; c < channels; c++, from++, to++) {
                *to = 0;
                for (uint32_t k = 0; k < columns->taps[x]; k++)
                    *to += weights[k] * one * from[(size_t)k * channels];
            }
        }
    for (uint32_t y = 0; y < out->height; y++) {
        const int32_t *weights = rows->weights + (size_t)y * rows->most;
        const double *from = narrowed + (rows->first[y] - rows->from) * out_row;
        uint16_t *sample = dl2_deep_row(out, y);
        for (size_t i = 0; i < out_row; i++, from++) {
            double sum = 0;
            for (uint32_t k = 0; k < rows->taps[y]; k++)
                sum += weights[k] * one * from[k * out_row];
            sample[i] = (uint16_t)(sum < 0 ? 0 : sum > UINT16_MAX ? UINT16_MAX : sum + 0.5);
        }
    }
    return DL2_OK;
}

/* The filters that make an image of `from` pixels one of `to`. */
static int make_axes(struct dl2_image_resizer *resizer, enum dl2_interpolation filter,
                     const uint32_t from[2], const uint32_t to[2], struct axis *columns,
                     struct axis *rows, struct dl2_error *error)
{
    const struct kind *kind = &kinds[filter];
    if (!kind->weight)
        return dl2_error_set(error, DL2_ERR_ARGUMENT, "no whole image is resized by this filter");
    DL2_TRY(make_axis(kind, from[0], to[0], &resizer->columns, columns, error));
    return make_axis(kind, from[1], to[1], &resizer->rows, rows, error);
}

int dl2_resize_deep(struct dl2_image_resizer *resizer, const struct dl2_deep_image *in,
                    enum dl2_interpolation filter, uint32_t width, uint32_t height,
                    struct dl2_deep_image *out, struct dl2_error *error)
{
    const uint32_t from[2] = {in->width, in->height}, to[2] = {width, height};
    DL2_TRY(dl2_deep_reshape(out, width, height, in->channels, error));
    if (filter == DL2_NEAREST) {
        pick_nearest(in->bytes.data, from, in->channels * sizeof(uint16_t), out->bytes.data, to);
        return DL2_OK;
    }
    struct axis columns, rows;
    DL2_TRY(make_axes(resizer, filter, from, to, &columns, &rows, error));
    return pass_deep(resizer, &columns, &rows, in, out, error);
}

int dl2_resize_image(struct dl2_image_resizer *resizer, const struct dl2_image *in,
                     enum dl2_interpolation filter, uint32_t width, uint32_t height,
                     struct dl2_image *out, struct dl2_error *error)
{
    const uint32_t from[2] = {in->width, in->height}, to[2] = {width, height};
    DL2_TRY(dl2_image_reshape(out, width, height, in->channels, error));
    if (filter == DL2_NEAREST) {
        pick_nearest(in->data, from, in->channels, out->data, to);
        return DL2_OK;
    }
    if (!resizer->kernels)
        resizer->kernels = dl2_resize_kernels_for(dl2_simd_flags());
    struct axis columns, rows;
    DL2_TRY(make_axes(resizer, filter, from, to, &columns, &rows, error));
    DL2_TRY(pass_across(resizer, in, &columns, &rows, error));
    pass_down(resizer, &rows, out);
    return DL2_OK;
}

int dl2_resize_to(struct dl2_image_resizer *resizer, const struct dl2_image *in,
                  const struct dl2_resolution *resolution, struct dl2_image *resized,
                  const struct dl2_image **shown, struct dl2_error *error)
{
    uint32_t width = in->width, height = in->height;
    *shown = in;
    if (!dl2_resolution_apply(resolution, &width, &height))
        return DL2_OK;
    *shown = resized;
    return dl2_resize_image(resizer, in, resolution->filter, width, height, resized, error);
}

uint64_t dl2_resize_image_memory(uint32_t in_width, uint32_t in_height, uint32_t width,
                                 uint32_t channels)
{
    return ((uint64_t)width * (in_height + (uint64_t)STRIP) + (uint64_t)in_width * STRIP) *
           channels;
}

void dl2_image_resizer_free(struct dl2_image_resizer *resizer)
{
    dl2_bytes_free(&resizer->columns);
    dl2_bytes_free(&resizer->rows);
    dl2_bytes_free(&resizer->strip);
    dl2_bytes_free(&resizer->narrowed);
}
