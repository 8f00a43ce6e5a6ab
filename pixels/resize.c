/* SPDX-License-Identifier: BSD-2-Clause */
#include "pixels/resize.h"

#include "common/simd.h"
#include "pixels/resize_kernels.h"

#include <math.h>
#include <string.h>

#define ONE ((float)(1 << DL2_RESIZE_WEIGHT_BITS))

/* What a middle is moved by, in samples: a box that ends in the middle of a sample takes the one to
 * the right, whichever way the rounding of the middle went. */
#define NUDGE 1e-6

/* ---- filters ---- */

static size_t round_up(size_t value, size_t to)
{
    return (value + to - 1) / to * to;
}

/* Samples lie `shift` pixels off the middle of what they cover. */
static bool find_axis(double origin, uint32_t step, uint32_t size, double shift, double limit_start,
                      double limit_end, double start, double end, struct dl2_resize_axis *axis)
{
    if (!step || !(start < end && limit_start <= start && end <= limit_end))
        return false;
    const double low = floor((limit_start - origin) / step);
    const double high = ceil((limit_end - origin) / step);
    if (!(low >= 0 && high <= size))
        return false;
    *axis = (struct dl2_resize_axis){
        .low = (uint32_t)low,
        .high = (uint32_t)high,
        .start = (start - shift - origin) / step - low,
        .end = (end - shift - origin) / step - low,
    };
    return true;
}

bool dl2_resize_axes(const struct dl2_plane *plane, const struct dl2_box *limit,
                     const struct dl2_box *box, struct dl2_resize_axis *across,
                     struct dl2_resize_axis *down)
{
    return find_axis((double)plane->x, plane->step_x, plane->width, (double)plane->shift_x,
                     limit->left, limit->right, box->left, box->right, across) &&
           find_axis((double)plane->y, plane->step_y, plane->height, (double)plane->shift_y,
                     limit->top, limit->bottom, box->top, box->bottom, down);
}

/* One output's window of samples. */
struct window {
    uint32_t first, taps;
    double distance, inverse; /* of its first sample's middle from the output's; 1 / width */
    float offset, step;       /* their product, and `inverse`, for filters that need no more */
};

/* A filter's weight of the window's sample k. They need not sum to 1. */
typedef float weight_function(const struct window *window, uint32_t k);

static inline float triangle_weight(const struct window *window, uint32_t k)
{
    const float weight = 1 - fabsf(window->offset + (float)k * window->step);
    return weight > 0 ? weight : 0;
}

/* The window is cut where the box ends. */
static inline float box_weight(const struct window *window, uint32_t k)
{
    (void)window, (void)k;
    return 1;
}

static inline float cubic_weight(const struct window *window, uint32_t k)
{
    const float x = fabsf(window->offset + (float)k * window->step);
    return x < 1 ? (1.5f * x - 2.5f) * x * x + 1 : x < 2 ? (((x - 5) * x + 8) * x - 4) * -0.5f : 0;
}

/*
 * sinc(x) sinc(x/3) for |x| < 3. As sin(3t) = sin(t) (3 - 4 sin(t)^2), it needs sin(pi x / 3)
 * alone: a polynomial, so that no C library's rounding decides about a weight.
 */
static inline float lanczos_weight(const struct window *window, uint32_t k)
{
    const double x = fabs(window->distance + k) * window->inverse;
    if (x < 1e-4)
        return 1;
    if (x >= 3)
        return 0;
    const double third = x / 3, p = M_PI * (third < 0.5 ? third : 1 - third), q = p * p;
    const double sine =
        p * (1 - q / 6 * (1 - q / 20 * (1 - q / 42 * (1 - q / 72 * (1 - q / 110)))));
    const double square = sine * sine;
    return (float)(square * (3 - 4 * square) / (3 * M_PI * M_PI * third * third));
}

/*
 * The window's weights, which are rounded so that they sum to 1: each is the difference of two
 * rounded partial sums. Returns how many taps it has without zeros at the end. Weights go to pairs
 * of `lanes` outputs.
 */
static inline __attribute__((always_inline)) uint32_t weigh_window(weight_function *weight,
                                                                   const struct window *window,
                                                                   float *scratch, uint32_t lanes,
                                                                   int16_t *weights)
{
    const uint32_t taps = window->taps;
    float sum = 0;
    for (uint32_t k = 0; k < taps; k++) {
        scratch[k] = weight(window, k);
        sum += scratch[k];
    }
    const float scale = ONE / sum;
    float partial = 0.5f;
    int32_t before = 0;
    uint32_t used = 1;
    for (uint32_t k = 0; k < taps; k++) {
        partial += scratch[k] * scale;
        const int32_t now = k + 1 == taps ? (int32_t)ONE : (int32_t)partial;
        weights[(k >> 1) * 2 * lanes + (k & 1)] = (int16_t)(now - before);
        if (now != before)
            used = k + 1;
        before = now;
    }
    return used;
}

#define DEFINE_WEIGH(name)                                                                         \
    static uint32_t weigh_##name(const struct window *window, float *scratch, uint32_t lanes,      \
                                 int16_t *weights)                                                 \
    {                                                                                              \
        return weigh_window(name##_weight, window, scratch, lanes, weights);                       \
    }
DEFINE_WEIGH(triangle)
DEFINE_WEIGH(box)
DEFINE_WEIGH(cubic)
DEFINE_WEIGH(lanczos)

const char *const dl2_interpolation_words[] = {
    [DL2_BILINEAR] = "bilinear", [DL2_NEAREST] = "nearest", [DL2_BOX] = "box",
    [DL2_BICUBIC] = "bicubic",   [DL2_LANCZOS] = "lanczos", NULL};

static const struct kind {
    double reach;    /* samples from the middle to where the weights end, before it is widened */
    bool widens;     /* by the scale, where the image becomes smaller */
    bool overshoots; /* some weights are negative */
    uint32_t (*weigh)(const struct window *window, float *scratch, uint32_t lanes,
                      int16_t *weights);
} kinds[] = {
    [DL2_BILINEAR] = {1, true, false, weigh_triangle},
    [DL2_NEAREST] = {0.5, false, false, weigh_box},
    [DL2_BOX] = {0.5, true, false, weigh_box},
    [DL2_BICUBIC] = {2, true, true, weigh_cubic},
    [DL2_LANCZOS] = {3, true, true, weigh_lanczos},
};

double dl2_interpolation_reach(enum dl2_interpolation interpolation)
{
    return kinds[interpolation].reach;
}

/* The window about `middle` as Pillow cuts it. */
static inline void cut_window(struct window *window, double middle, double reach, uint32_t most,
                              uint32_t size)
{
    const double begin = middle - reach + 0.5, finish = middle + reach + 0.5;
    const uint32_t first = begin > 0 ? (uint32_t)begin : 0;
    uint32_t end = finish < size ? (uint32_t)finish : size;
    if (end - first > most)
        end = first + most;
    window->first = first;
    window->taps = end - first;
    window->distance = first + 0.5 - middle;
    window->offset = (float)window->distance * window->step;
}

/* For columns: how the kernels gather a vector's inputs. */
static void fill_picks(const struct dl2_resize_kernels *kernels, const uint32_t *first,
                       uint32_t count, uint32_t *base, uint32_t *pick, uint32_t *reach)
{
    const uint32_t lanes = kernels->lanes;
    *reach = 0;
    for (uint32_t group = 0; group < count / lanes; group++) {
        const uint32_t *of = first + (size_t)group * lanes;
        const uint32_t lowest = of[0] < of[lanes - 1] ? of[0] : of[lanes - 1];
        const uint32_t highest = of[0] < of[lanes - 1] ? of[lanes - 1] : of[0];
        base[group] = lowest;
        for (uint32_t i = 0; i < lanes; i++)
            pick[group * lanes + i] =
                (of[i] - lowest) * kernels->pick_factor + kernels->pick_offset;
        *reach = highest - lowest > *reach ? highest - lowest : *reach;
    }
}

/* What stands before a filter in its memory: what it was made for. */
struct made_for {
    struct dl2_resize_axis axis;
    const struct kind *kind;
    uint32_t count;
    bool flip;
    struct dl2_filter filter;
};
enum { MADE_FOR_BYTES = (sizeof(struct made_for) + 63) / 64 * 64 };

/* Images of one size with one crop, as frames of a clip are, have the same filters. */
static bool is_made(const struct dl2_bytes *memory, const struct made_for *wanted)
{
    const struct made_for *made = (const struct made_for *)memory->data;
    return memory->size && made->axis.low == wanted->axis.low &&
           made->axis.high == wanted->axis.high && made->axis.start == wanted->axis.start &&
           made->axis.end == wanted->axis.end && made->kind == wanted->kind &&
           made->count == wanted->count && made->flip == wanted->flip;
}

/* The filter of an axis in `memory`, if it is not there from before; backwards if `flip`.
 * `columns`: in groups, for across(). */
static int make_filter(const struct dl2_resize_kernels *kernels, const struct kind *kind,
                       const struct dl2_resize_axis *axis, uint32_t count, bool columns, bool flip,
                       struct dl2_bytes *memory, struct dl2_filter *filter, struct dl2_error *error)
{
    const double scale = (axis->end - axis->start) / count;
    const double width = scale < 1 || !kind->widens ? 1 : scale;
    const double reach = kind->reach * width;
    const uint32_t size = axis->high - axis->low;
    const uint32_t lanes = columns ? DL2_RESIZE_GROUP : 1;
    const size_t padded = round_up(count, lanes);
    const double widest = ceil(2 * reach);
    const uint32_t most = widest < size ? (uint32_t)widest : size;
    const size_t pairs = (most + (size_t)1) / 2;
    size_t weights_bytes, bytes;
    const struct made_for wanted = {*axis, kind, count, flip, {0}};
    if (is_made(memory, &wanted)) {
        *filter = ((const struct made_for *)memory->data)->filter;
        return DL2_OK;
    }
    memory->size = 0;
    if (!dl2_size_mul(pairs * 2 * sizeof(int16_t), padded, &weights_bytes) ||
        !dl2_size_add(weights_bytes,
                      MADE_FOR_BYTES + 4 * padded * sizeof(uint32_t) + most * sizeof(float),
                      &bytes))
        return dl2_error_set(error, DL2_ERR_LIMIT, "can't resize %u samples to %u", size, count);
    DL2_TRY(dl2_bytes_resize(memory, bytes, error));
    struct made_for *made = (struct made_for *)memory->data;
    int16_t *weights = (int16_t *)(memory->data + MADE_FOR_BYTES);
    uint32_t *first = (uint32_t *)((uint8_t *)weights + weights_bytes), *taps = first + padded;
    float *scratch = (float *)(first + 4 * padded);
    memset(weights, 0, weights_bytes);
    struct window window = {.inverse = 1 / width, .step = 1 / (float)width};
    uint32_t lowest = UINT32_MAX, end = 0;
    for (uint32_t i = 0; i < count; i++) {
        double middle = axis->start + ((flip ? count - 1 - i : i) + 0.5) * scale;
        /* Chroma samples may lie off what they cover, so that a middle is beyond the outermost. The
         * triangle still has a weight for that one; others may have none. */
        if (kind != &kinds[DL2_BILINEAR])
            middle = fmin(fmax(middle + NUDGE, 0), size - NUDGE);
        cut_window(&window, middle, reach, most, size);
        int16_t *to = weights + (i / lanes * pairs * lanes + i % lanes) * 2;
        first[i] = window.first;
        taps[i] = kind->weigh(&window, scratch, lanes, to);
        lowest = first[i] < lowest ? first[i] : lowest;
        end = first[i] + taps[i] > end ? first[i] + taps[i] : end;
    }
    for (uint32_t i = 0; i < count; i++)
        first[i] -= lowest;
    for (size_t i = count; i < padded; i++) {
        first[i] = first[count - 1];
        taps[i] = 0;
    }
    *filter = (struct dl2_filter){.from = axis->low + lowest,
                                  .samples = end - lowest,
                                  .count = (uint32_t)padded,
                                  .pairs = (uint32_t)pairs,
                                  .first = first,
                                  .taps = taps,
                                  .weights = weights,
                                  .base = taps + padded,
                                  .pick = taps + 2 * padded};
    if (columns)
        fill_picks(kernels, first, (uint32_t)padded, taps + padded, taps + 2 * padded,
                   &filter->reach);
    *made = wanted;
    made->filter = *filter;
    return DL2_OK;
}

bool dl2_same_geometry(const struct dl2_plane *a, const struct dl2_plane *b)
{
    return a->x == b->x && a->y == b->y && a->step_x == b->step_x && a->step_y == b->step_y &&
           a->width == b->width && a->height == b->height && !(a->shift_x < b->shift_x) &&
           !(a->shift_x > b->shift_x) && !(a->shift_y < b->shift_y) && !(a->shift_y > b->shift_y);
}

/* ---- rows ---- */

/* All that is needed for one image. */
struct job {
    const struct dl2_resize_kernels *kernels;
    const struct dl2_raster *raster;
    const struct dl2_resize_output *out;
    const struct kind *kind;
    unsigned planes; /* that are looked at */
    struct dl2_filter columns[3], rows[3];
    int16_t *between;     /* a row after the vertical pass */
    int16_t *channels[3]; /* the same, of interleaved colors apart */
    int16_t *words[3];    /* a row of the output */
    uint8_t *bytes;       /* the same as bytes, on the way to floats */
    float scale[3][DL2_RESIZE_PHASES], bias[3][DL2_RESIZE_PHASES];
};

static int make_filters(struct dl2_resizer *resizer, struct job *job, const struct dl2_box *limit,
                        const struct dl2_box *box, struct dl2_error *error)
{
    const struct dl2_resize_output *out = job->out;
    for (unsigned p = 0; p < job->planes; p++) {
        const struct dl2_plane *plane = &job->raster->planes[p];
        if (p && dl2_same_geometry(plane, plane - 1)) {
            job->columns[p] = job->columns[p - 1];
            job->rows[p] = job->rows[p - 1];
            continue;
        }
        struct dl2_resize_axis across, down;
        if (!dl2_resize_axes(plane, limit, box, &across, &down))
            return dl2_error_set(
                error, DL2_ERR_ARGUMENT,
                "can't resize %g,%g to %g,%g within %g,%g to %g,%g of a plane of %ux%u samples",
                box->left, box->top, box->right, box->bottom, limit->left, limit->top, limit->right,
                limit->bottom, plane->width, plane->height);
        DL2_TRY(make_filter(job->kernels, job->kind, &across, out->width, true, out->flip,
                            &resizer->columns[p], &job->columns[p], error));
        DL2_TRY(make_filter(job->kernels, job->kind, &down, out->height, false, false,
                            &resizer->rows[p], &job->rows[p], error));
    }
    return DL2_OK;
}

/* One block for all rows on their way, each padded for the kernels. */
static int make_lines(struct dl2_resizer *resizer, struct job *job, struct dl2_error *error)
{
    const unsigned per_sample = job->raster->color == DL2_COLOR_RGB ? 3 : 1;
    size_t samples = 0;
    for (unsigned p = 0; p < job->planes; p++)
        if (job->columns[p].samples > samples)
            samples = job->columns[p].samples;
    size_t taps = 0;
    for (unsigned p = 0; p < job->planes; p++)
        if (2 * (size_t)job->columns[p].pairs > taps)
            taps = 2 * (size_t)job->columns[p].pairs;
    const size_t line = round_up(samples + taps + DL2_RESIZE_PADDING, 32);
    const size_t output = round_up(job->out->width + (size_t)DL2_RESIZE_PADDING, 32);
    const size_t lines = per_sample == 3 ? 6 : 1;
    DL2_TRY(dl2_bytes_resize(&resizer->lines,
                             (lines * line + 3 * output) * sizeof(int16_t) + 3 * output, error));
    int16_t *at = (int16_t *)resizer->lines.data;
    /* The words behind a row have weight 0, but must be readable. */
    memset(at, 0, lines * line * sizeof(int16_t));
    job->between = at;
    for (size_t c = 0; c < 3; c++)
        job->channels[c] = lines == 6 ? at + (3 + c) * line : at;
    at += lines * line;
    for (size_t c = 0; c < 3; c++, at += output)
        job->words[c] = at;
    job->bytes = (uint8_t *)at;
    return DL2_OK;
}

static void make_affine(struct job *job)
{
    const struct dl2_resize_output *out = job->out;
    if (out->dtype == DL2_UINT8)
        return;
    for (uint32_t c = 0; c < out->channels; c++)
        for (uint32_t i = 0; i < DL2_RESIZE_PHASES; i++) {
            const uint32_t from = out->layout == DL2_NCHW ? c : i % out->channels;
            const float deviation = out->std[from];
            job->scale[c][i] = 1 / (255 * deviation);
            job->bias[c][i] = -out->mean[from] / deviation;
        }
}

/* To 0 to 255 with `bits` fraction bits. Rows are padded, so the last block may be a whole one. */
static void clip_overshoot(int16_t *words, size_t count, unsigned bits)
{
    enum { BLOCK = 16 }; /* a fixed size, which compilers make vectors of */
    const int16_t most = (int16_t)(255 << bits);
    for (size_t start = 0; start < count; start += BLOCK)
        for (size_t i = start; i < start + BLOCK; i++) {
            const int16_t word = words[i] < most ? words[i] : most;
            words[i] = word > 0 ? word : 0;
        }
}

/* Output row y of one plane, or of the three channels of an interleaved one. */
static void resize_row(const struct job *job, unsigned p, uint32_t y)
{
    const struct dl2_resize_kernels *kernels = job->kernels;
    const struct dl2_plane *plane = &job->raster->planes[p];
    const struct dl2_filter *rows = &job->rows[p], *columns = &job->columns[p];
    const size_t per_sample = job->raster->color == DL2_COLOR_RGB ? 3 : 1;
    const uint8_t *in = plane->data + ((size_t)rows->from + rows->first[y]) * plane->stride +
                        columns->from * per_sample;
    kernels->down(in, plane->stride, rows->weights + (size_t)y * rows->pairs * 2, rows->taps[y],
                  columns->samples * per_sample, job->between);
    if (job->kind->overshoots)
        clip_overshoot(job->between, columns->samples * per_sample, DL2_RESIZE_BETWEEN_BITS);
    if (per_sample == 3)
        kernels->split(job->between, columns->samples, job->channels);
    for (unsigned c = 0; c < per_sample; c++) {
        const unsigned to = per_sample == 3 ? c : p;
        kernels->across(per_sample == 3 ? job->channels[c] : job->between, columns, job->words[to]);
        if (job->kind->overshoots)
            clip_overshoot(job->words[to], columns->count, DL2_RESIZE_WORD_BITS);
    }
}

/* Words to the colors that are asked for, in place. */
static void convert_row(const struct job *job)
{
    static const struct dl2_resize_colors full = {
        .luma_offset = 0,
        .luma = 0,
        .red = 13173,      /* 1.402 */
        .green_cb = 11277, /* 0.344136 */
        .green_cr = 23401, /* 0.714136 */
        .blue = -7471,     /* 1.772 */
    };
    static const struct dl2_resize_colors limited = {
        .luma_offset = 16 << DL2_RESIZE_WORD_BITS,
        .luma = 5387,      /* 255 / 219 */
        .red = 19531,      /* 1.402 * 255 / 224 */
        .green_cb = 12837, /* and so on */
        .green_cr = 26639,
        .blue = 565,
    };
    static const struct dl2_resize_colors bt709 = {
        .red = 18835,      /* 1.5748 */
        .green_cb = 6138,  /* 0.187324 */
        .green_cr = 15340, /* 0.468124 */
        .blue = -4732,     /* 1.8556 */
    };
    static const struct dl2_resize_colors bt709_limited = {
        .luma_offset = 16 << DL2_RESIZE_WORD_BITS,
        .luma = 5387,
        .red = 25977,
        .green_cb = 6988,
        .green_cr = 17462,
        .blue = 3683,
    };
    static const struct dl2_resize_colors *const matrices[] = {
        [DL2_COLOR_YCBCR] = &full,
        [DL2_COLOR_YCBCR_LIMITED] = &limited,
        [DL2_COLOR_BT709] = &bt709,
        [DL2_COLOR_BT709_LIMITED] = &bt709_limited,
    };
    const enum dl2_color color = job->raster->color;
    int16_t *const *words = job->words;
    const uint32_t width = job->out->width;
    if (color >= DL2_COLOR_YCBCR && job->out->channels == 3)
        job->kernels->color(matrices[color], width, words);
    else if (color == DL2_COLOR_YCBCR_LIMITED || color == DL2_COLOR_BT709_LIMITED)
        for (uint32_t i = 0; i < width; i++) {
            const int32_t luma = words[0][i] - limited.luma_offset;
            words[0][i] = (int16_t)(luma + ((luma * limited.luma + (1 << 14)) >> 15));
        }
    else if (color == DL2_COLOR_RGB && job->out->channels == 1)
        for (uint32_t i = 0; i < width; i++) /* 0.299, 0.587, 0.114, as dl2_luma() */
            words[0][i] = (int16_t)((19595 * words[0][i] + 38470 * words[1][i] +
                                     7471 * words[2][i] + 32768) >>
                                    16);
}

/* `count` values, the same for each phase of a row or plane, to where they stay. */
static void write_values(const struct job *job, const uint8_t *bytes, size_t count, uint32_t c,
                         size_t at)
{
    const struct dl2_resize_output *out = job->out;
    job->kernels->affine(bytes, count, job->scale[c], job->bias[c], out->dtype,
                         (uint8_t *)out->data + at * dl2_dtype_size(out->dtype));
}

/* Values from one channel to the next where each has a plane. */
static size_t plane_of(const struct dl2_resize_output *out)
{
    return out->plane ? out->plane : (size_t)out->width * out->height;
}

static void write_row(const struct job *job, uint32_t y)
{
    const struct dl2_resize_output *out = job->out;
    const bool gray = job->raster->color == DL2_COLOR_GRAY;
    const size_t width = out->width, plane = plane_of(out);
    int16_t *const words[3] = {job->words[0], job->words[gray ? 0 : 1], job->words[gray ? 0 : 2]};
    const bool direct = out->dtype == DL2_UINT8;
    if (out->channels == 3 && out->layout == DL2_NHWC) {
        const size_t at = y * width * 3;
        uint8_t *bytes = direct ? (uint8_t *)out->data + at : job->bytes;
        job->kernels->interleave(words, width, bytes);
        if (!direct)
            write_values(job, bytes, width * 3, 0, at);
        return;
    }
    for (uint32_t c = 0; c < out->channels; c++) {
        const size_t at = c * plane + y * width;
        uint8_t *bytes = direct ? (uint8_t *)out->data + at : job->bytes;
        job->kernels->pack(words[c], width, bytes);
        if (!direct)
            write_values(job, bytes, width, c, at);
    }
}

int dl2_resize_raster(struct dl2_resizer *resizer, const struct dl2_raster *raster,
                      const struct dl2_box *limit, const struct dl2_box *box,
                      const struct dl2_resize_output *out, struct dl2_error *error)
{
    if (!out->width || !out->height || (out->channels != 1 && out->channels != 3))
        return dl2_error_set(error, DL2_ERR_ARGUMENT, "can't resize to %ux%u with %u channels",
                             out->width, out->height, out->channels);
    if (!resizer->kernels)
        resizer->kernels = dl2_resize_kernels_for(dl2_simd_flags());
    struct job job = {
        .kernels = resizer->kernels,
        .raster = raster,
        .out = out,
        .kind = &kinds[out->interpolation],
        .planes = out->channels == 1 ? 1 : dl2_raster_planes(raster),
    };
    DL2_TRY(make_filters(resizer, &job, limit, box, error));
    DL2_TRY(make_lines(resizer, &job, error));
    make_affine(&job);
    for (uint32_t y = 0; y < out->height; y++) {
        for (unsigned p = 0; p < job.planes; p++)
            resize_row(&job, p, y);
        convert_row(&job);
        write_row(&job, y);
    }
    return DL2_OK;
}

int dl2_convert_pixels(struct dl2_resizer *resizer, const uint8_t *pixels,
                       const struct dl2_resize_output *out, struct dl2_error *error)
{
    if (!resizer->kernels)
        resizer->kernels = dl2_resize_kernels_for(dl2_simd_flags());
    struct job job = {.kernels = resizer->kernels, .out = out};
    const size_t width = out->width, row = width * out->channels, plane = plane_of(out);
    DL2_TRY(dl2_bytes_resize(&resizer->lines, row, error));
    job.bytes = resizer->lines.data;
    make_affine(&job);
    for (size_t y = 0; y < out->height; y++, pixels += row) {
        if (out->layout == DL2_NHWC && out->dtype == DL2_UINT8) {
            memcpy((uint8_t *)out->data + y * row, pixels, row);
            continue;
        }
        if (out->layout == DL2_NHWC) {
            write_values(&job, pixels, row, 0, y * row);
            continue;
        }
        for (uint32_t c = 0; c < out->channels; c++) {
            const size_t at = c * plane + y * width;
            uint8_t *bytes = out->dtype == DL2_UINT8 ? (uint8_t *)out->data + at : job.bytes;
            for (size_t x = 0; x < width; x++)
                bytes[x] = pixels[x * out->channels + c];
            if (out->dtype != DL2_UINT8)
                write_values(&job, bytes, width, c, at);
        }
    }
    return DL2_OK;
}

size_t dl2_resizer_memory(const struct dl2_resizer *resizer)
{
    size_t memory = resizer->lines.capacity;
    for (unsigned p = 0; p < 3; p++)
        memory += resizer->columns[p].capacity + resizer->rows[p].capacity;
    return memory;
}

void dl2_resizer_free(struct dl2_resizer *resizer)
{
    for (unsigned p = 0; p < 3; p++) {
        dl2_bytes_free(&resizer->columns[p]);
        dl2_bytes_free(&resizer->rows[p]);
    }
    dl2_bytes_free(&resizer->lines);
}
