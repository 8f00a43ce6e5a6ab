#include "loader/resize.h"

#include <math.h>
#include <string.h>

#define PRECISION_BITS (32 - 8 - 2)
#define HALF           (1 << (PRECISION_BITS - 1))

static double triangle(double x)
{
    x = fabs(x);
    return x < 1 ? 1 - x : 0;
}

/* Inputs that output `i` of an axis is made of, and the middle and inverse width of their triangle.
 */
struct window {
    double middle, inverse_scale;
    uint32_t first, taps;
};

static struct window window_at(double start, double scale, uint32_t in_size, uint32_t i)
{
    const double width = scale < 1 ? 1 : scale;
    const double middle = start + (i + 0.5) * scale;
    /* Pillow's rounding, which is not C's: + 0.5 and cut. */
    double first = trunc(middle - width + 0.5), end = trunc(middle + width + 0.5);
    first = first < 0 ? 0 : first;
    end = end > in_size ? in_size : end;
    return (struct window){middle, 1 / width, (uint32_t)first, (uint32_t)(end - first)};
}

static void fill_weights(const struct window *window, int32_t *weights)
{
    double sum = 0;
    for (uint32_t k = 0; k < window->taps; k++)
        sum += triangle((k + window->first - window->middle + 0.5) * window->inverse_scale);
    for (uint32_t k = 0; k < window->taps; k++) {
        double weight =
            triangle((k + window->first - window->middle + 0.5) * window->inverse_scale);
        if (sum != 0)
            weight /= sum;
        weights[k] = (int32_t)(0.5 + weight * (1 << PRECISION_BITS));
    }
}

/*
 * The filters of one axis, for outputs 0 .. out_size-1, which show [start, end) of in_size inputs;
 * backwards if `flip`.
 */
static int make_axis(double start, double end, uint32_t in_size, uint32_t out_size, bool flip,
                     struct dl2_bytes *filters, struct dl2_bytes *weights, struct dl2_error *error)
{
    const double scale = (end - start) / out_size;
    const double width = scale < 1 ? 1 : scale;
    /* No window is wider than this many inputs. */
    size_t most = 2 * (size_t)ceil(width) + 1, size;
    if (most > in_size)
        most = in_size;
    if (!dl2_size_mul(most, out_size, &size) || size > UINT32_MAX)
        return dl2_error_set(error, DL2_ERR_LIMIT, "can't resize %u to %u pixels", in_size,
                             out_size);
    DL2_TRY(dl2_bytes_resize(filters, out_size * sizeof(struct dl2_filter), error));
    DL2_TRY(dl2_bytes_resize(weights, size * sizeof(int32_t), error));
    struct dl2_filter *filter = (struct dl2_filter *)filters->data;
    uint32_t used = 0;
    for (uint32_t i = 0; i < out_size; i++) {
        struct window window = window_at(start, scale, in_size, flip ? out_size - 1 - i : i);
        filter[i] = (struct dl2_filter){window.first, window.taps, used};
        fill_weights(&window, (int32_t *)weights->data + used);
        used += window.taps;
    }
    return DL2_OK;
}

static uint8_t clip(int32_t sum)
{
    const int32_t value = sum >> PRECISION_BITS;
    return value < 0 ? 0 : value > 255 ? 255 : (uint8_t)value;
}

/* One row across: `filters` say for each output column what it is made of. */
static void across_1(const uint8_t *in, const struct dl2_filter *filters, const int32_t *weights,
                     uint32_t width, uint8_t *out)
{
    for (uint32_t x = 0; x < width; x++) {
        const uint8_t *p = in + filters[x].first;
        const int32_t *w = weights + filters[x].weights;
        int32_t sum = HALF;
        for (uint32_t k = 0; k < filters[x].taps; k++)
            sum += p[k] * w[k];
        out[x] = clip(sum);
    }
}

static void across_3(const uint8_t *in, const struct dl2_filter *filters, const int32_t *weights,
                     uint32_t width, uint8_t *out)
{
    for (uint32_t x = 0; x < width; x++) {
        const uint8_t *p = in + (size_t)filters[x].first * 3;
        const int32_t *w = weights + filters[x].weights;
        int32_t r = HALF, g = HALF, b = HALF;
        for (uint32_t k = 0; k < filters[x].taps; k++, p += 3) {
            r += p[0] * w[k];
            g += p[1] * w[k];
            b += p[2] * w[k];
        }
        out[3 * x] = clip(r);
        out[3 * x + 1] = clip(g);
        out[3 * x + 2] = clip(b);
    }
}

/* Adds the rows that an output row is made of, weighted, into `sums`. */
static void down(const uint8_t *restrict in, size_t stride, const struct dl2_filter *filter,
                 const int32_t *weights, size_t size, int32_t *restrict sums)
{
    for (size_t i = 0; i < size; i++)
        sums[i] = HALF;
    for (uint32_t k = 0; k < filter->taps; k++) {
        const uint8_t *restrict row = in + (filter->first + (size_t)k) * stride;
        const int32_t weight = weights[filter->weights + k];
        for (size_t i = 0; i < size; i++)
            sums[i] += row[i] * weight;
    }
}

static bool box_is_within(const struct dl2_box *box, const struct dl2_pixels *in)
{
    return box->left >= 0 && box->top >= 0 && box->left < box->right && box->top < box->bottom &&
           box->right <= in->width && box->bottom <= in->height;
}

int dl2_resize(struct dl2_resizer *resizer, const struct dl2_pixels *in, const struct dl2_box *box,
               bool flip, uint32_t width, uint32_t height, uint32_t channels, uint8_t *out,
               struct dl2_error *error)
{
    if (!width || !height || (in->channels != channels && in->channels != 1))
        return dl2_error_set(error, DL2_ERR_ARGUMENT,
                             "can't resize %u channels to %ux%u with %u channels", in->channels,
                             width, height, channels);
    if (!box_is_within(box, in))
        return dl2_error_set(error, DL2_ERR_ARGUMENT,
                             "a box of %g,%g to %g,%g is not within %ux%u pixels", box->left,
                             box->top, box->right, box->bottom, in->width, in->height);
    DL2_TRY(make_axis(box->left, box->right, in->width, width, flip, &resizer->columns,
                      &resizer->weights[0], error));
    DL2_TRY(make_axis(box->top, box->bottom, in->height, height, false, &resizer->rows,
                      &resizer->weights[1], error));
    const struct dl2_filter *columns = (const struct dl2_filter *)resizer->columns.data;
    const struct dl2_filter *rows = (const struct dl2_filter *)resizer->rows.data;
    const int32_t *column_weights = (const int32_t *)resizer->weights[0].data;
    const int32_t *row_weights = (const int32_t *)resizer->weights[1].data;

    /* Only the input rows that some output row needs go through the first pass. */
    const uint32_t top = rows[0].first, end = rows[height - 1].first + rows[height - 1].taps;
    size_t stride, size, sums_size;
    if (!dl2_size_mul(width, in->channels, &stride) || !dl2_size_mul(stride, end - top, &size) ||
        !dl2_size_mul(stride, sizeof(int32_t), &sums_size))
        return dl2_error_set(error, DL2_ERR_LIMIT, "can't resize to %u pixels across", width);
    DL2_TRY(dl2_bytes_resize(&resizer->between, size, error));
    DL2_TRY(dl2_bytes_resize(&resizer->sums, sums_size, error));
    for (uint32_t y = top; y < end; y++) {
        const uint8_t *row = in->data + y * in->stride;
        uint8_t *to = resizer->between.data + (y - top) * stride;
        if (in->channels == 3)
            across_3(row, columns, column_weights, width, to);
        else
            across_1(row, columns, column_weights, width, to);
    }
    int32_t *sums = (int32_t *)resizer->sums.data;
    const uint8_t *between = resizer->between.data;
    for (uint32_t y = 0; y < height; y++) {
        struct dl2_filter filter = rows[y];
        filter.first -= top;
        down(between, stride, &filter, row_weights, stride, sums);
        if (in->channels == channels) {
            for (size_t i = 0; i < stride; i++)
                *out++ = clip(sums[i]);
        } else {
            for (uint32_t x = 0; x < width; x++, out += 3)
                out[0] = out[1] = out[2] = clip(sums[x]);
        }
    }
    return DL2_OK;
}

void dl2_resizer_free(struct dl2_resizer *resizer)
{
    dl2_bytes_free(&resizer->columns);
    dl2_bytes_free(&resizer->rows);
    dl2_bytes_free(&resizer->weights[0]);
    dl2_bytes_free(&resizer->weights[1]);
    dl2_bytes_free(&resizer->between);
    dl2_bytes_free(&resizer->sums);
}
