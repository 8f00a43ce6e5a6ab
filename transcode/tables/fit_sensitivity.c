/* SPDX-License-Identifier: BSD-2-Clause */
#include "transcode/tables/fit_sensitivity.h"

#include "common/json.h"
#include "common/scope.h"

#include <math.h>
#include <stdlib.h>

enum { SIDE = 8, LAGS = DL2_FIT_LAGS, PLANES = DL2_FIT_PLANES };

/* ---- The input */

void dl2_fit_input_white(unsigned height, unsigned width, struct dl2_fit_input *out)
{
    /* RGB of a unit of Y, Cb and Cr (JFIF 1.02), squared and summed. */
    static const double power[PLANES] = {3, 0.344136 * 0.344136 + 1.772 * 1.772,
                                         1.402 * 1.402 + 0.714136 * 0.714136};
    *out = (struct dl2_fit_input){.height = height, .width = width};
    for (int p = 0; p < PLANES; p++)
        out->covariance[p][0][0] = power[p];
    out->about = json_pack("{s:s, s:[i,i]}", "for", "pipeline", "input", (int)height, (int)width);
}

/* A plane's rows [dy][dx + lags], dy from 0 on, become sums over signs. */
static bool take_plane(const json_t *rows, size_t lags, double out[LAGS + 1][LAGS + 1])
{
    if (json_array_size(rows) != lags + 1)
        return false;
    for (size_t dy = 0; dy <= lags; dy++) {
        const json_t *const row = json_array_get(rows, dy);
        if (json_array_size(row) != 2 * lags + 1)
            return false;
        for (size_t i = 0; i < 2 * lags + 1; i++) {
            const size_t dx = i < lags ? lags - i : i - lags;
            if (!json_is_number(json_array_get(row, i)))
                return false;
            if (dy <= LAGS && dx <= LAGS) /* a row dy > 0 stands for -dy, too */
                out[dy][dx] += (dy ? 2 : 1) * json_number_value(json_array_get(row, i));
        }
    }
    return out[0][0] > 0;
}

int dl2_fit_input_load(const char *path, struct dl2_fit_input *out, struct dl2_error *error)
{
    static const char *const names[PLANES] = {"luma", "cb", "cr"};
    json_auto_t *json = NULL;
    *out = (struct dl2_fit_input){.height = 0};
    DL2_TRY(dl2_json_load(path, "dl2-sensitivity/1", &json, error));
    const json_t *const size = json_object_get(json, "input");
    const json_t *const planes = json_object_get(json, "covariance");
    const json_int_t lags = dl2_json_get_integer(json, "lags", -1);
    const json_int_t height = json_integer_value(json_array_get(size, 0));
    const json_int_t width = json_integer_value(json_array_get(size, 1));
    bool good = lags >= 0 && lags <= 4096 && height > 0 && height <= 65535 && width > 0 &&
                width <= 65535 && json_object_get(planes, names[0]);
    for (int p = 0; good && p < PLANES; p++)
        if (json_object_get(planes, names[p]))
            good = take_plane(json_object_get(planes, names[p]), (size_t)lags, out->covariance[p]);
    if (!good)
        return dl2_error_set(error, DL2_ERR_FORMAT,
                             "%s is not a network's sensitivity: make it again with dl2-train "
                             "--sensitivity",
                             path);
    out->height = (unsigned)height;
    out->width = (unsigned)width;
    out->about = json_pack("{s:s, s:O, s:O, s:O, s:O}", "for", "network", "input", size, "arch",
                           json_object_get(json, "arch"), "weights",
                           json_object_get(json, "weights"), "data", json_object_get(json, "data"));
    return out->about ? DL2_OK : dl2_error_memory(error, "a sensitivity");
}

/* ---- One axis */

static uint32_t divide_up(uint32_t a, uint32_t b)
{
    return a / b + (a % b > 0);
}

/* One axis of a plane: its samples, those of the crop, and the size of the output. */
struct axis {
    double begin, end; /* of the crop, samples */
    uint32_t samples;
    unsigned outputs;
};

/* Sums of products of resized cosines, by frequency and shift, as means over all blocks. */
struct correlations {
    double of[SIDE][LAGS + 1];
};

static double cosine(unsigned u, unsigned x)
{
    return sqrt((u ? 2.0 : 1.0) / SIDE) * cos((2 * x + 1) * u * M_PI / (2 * SIDE));
}

/* What a block's cosines add to each output. */
struct block {
    unsigned first, end; /* outputs */
    double *rows;        /* [SIDE][outputs] */
};

/* Adds sample x with a weight to output i. */
static void add_sample(struct block *block, const struct axis *axis, unsigned x, unsigned i,
                       double weight, double cosines[SIDE][SIDE])
{
    if (block->first == block->end)
        block->first = i;
    block->end = i + 1;
    for (unsigned u = 0; u < SIDE; u++)
        block->rows[u * axis->outputs + i] += weight * cosines[u][x % SIDE];
}

/* The antialiased bilinear filter of pixels/resize.h, for one output. */
static void add_output(struct block *blocks, unsigned first_block, const struct axis *axis,
                       unsigned i, double cosines[SIDE][SIDE])
{
    const double scale = (axis->end - axis->begin) / axis->outputs, reach = fmax(scale, 1);
    const double middle = axis->begin + (i + 0.5) * scale;
    const double low = fmax(floor(axis->begin), floor(middle - reach));
    const double high = fmin(fmin(ceil(axis->end), axis->samples), ceil(middle + reach));
    double sum = 0;
    for (double x = low; x < high; x++)
        sum += fmax(0, 1 - fabs(x + 0.5 - middle) / reach);
    for (double x = low; sum > 0 && x < high; x++) {
        const double weight = fmax(0, 1 - fabs(x + 0.5 - middle) / reach) / sum;
        if (weight > 0)
            add_sample(&blocks[(unsigned)x / SIDE - first_block], axis, (unsigned)x, i, weight,
                       cosines);
    }
}

static void correlate(const struct block *block, const struct axis *axis, struct correlations *out)
{
    for (unsigned u = 0; u < SIDE; u++) {
        const double *const row = block->rows + u * axis->outputs;
        for (unsigned shift = 0; shift <= LAGS; shift++)
            for (unsigned i = block->first; i + shift < block->end; i++)
                out->of[u][shift] += row[i] * row[i + shift];
    }
}

static int correlate_axis(const struct axis *axis, struct correlations *out,
                          struct dl2_error *error)
{
    double cosines[SIDE][SIDE];
    const unsigned first = (unsigned)axis->begin / SIDE;
    const unsigned last = (unsigned)(fmin(ceil(axis->end), axis->samples) - 1) / SIDE;
    const size_t count = last - first + 1, size = (size_t)SIDE * axis->outputs;
    DL2_AUTO_FREE struct block *blocks = dl2_calloc(count, sizeof *blocks);
    DL2_AUTO_FREE double *rows = dl2_calloc(count, size * sizeof *rows);
    if (!blocks || !rows)
        return dl2_error_memory(error, "a sensitivity");
    *out = (struct correlations){.of = {{0}}};
    for (unsigned u = 0; u < SIDE; u++)
        for (unsigned x = 0; x < SIDE; x++)
            cosines[u][x] = cosine(u, x);
    for (size_t b = 0; b < count; b++)
        blocks[b].rows = rows + b * size;
    for (unsigned i = 0; i < axis->outputs; i++)
        add_output(blocks, first, axis, i, cosines);
    for (size_t b = 0; b < count; b++)
        correlate(&blocks[b], axis, out);
    const double all = divide_up(axis->samples, SIDE);
    for (unsigned u = 0; u < SIDE; u++)
        for (unsigned shift = 0; shift <= LAGS; shift++)
            out->of[u][shift] /= all;
    return DL2_OK;
}

/* ---- Both axes */

static void add_plane(double sums[64], double covariance[LAGS + 1][LAGS + 1],
                      const struct correlations *across, const struct correlations *down)
{
    for (unsigned v = 0; v < SIDE; v++) {
        double by_shift[LAGS + 1] = {0};
        for (unsigned dy = 0; dy <= LAGS; dy++)
            for (unsigned dx = 0; dx <= LAGS; dx++)
                by_shift[dx] += covariance[dy][dx] * down->of[v][dy];
        for (unsigned u = 0; u < SIDE; u++)
            for (unsigned dx = 0; dx <= LAGS; dx++)
                sums[SIDE * v + u] += by_shift[dx] * across->of[u][dx];
    }
}

int dl2_fit_sensitivity_add(struct dl2_fit_sensitivity *sensitivity,
                            const struct dl2_fit_input *input, const struct dl2_crop *crop,
                            uint32_t width, uint32_t height, unsigned across, unsigned down,
                            struct dl2_error *error)
{
    const struct axis luma_x = {crop->x, crop->x + crop->width, width, input->width};
    const struct axis luma_y = {crop->y, crop->y + crop->height, height, input->height};
    const struct axis chroma_x = {luma_x.begin / across, luma_x.end / across,
                                  divide_up(width, across), input->width};
    const struct axis chroma_y = {luma_y.begin / down, luma_y.end / down, divide_up(height, down),
                                  input->height};
    struct correlations x, y;
    DL2_TRY(correlate_axis(&luma_x, &x, error));
    DL2_TRY(correlate_axis(&luma_y, &y, error));
    double(*const covariance)[LAGS + 1][LAGS + 1] =
        (double(*)[LAGS + 1][LAGS + 1]) input->covariance;
    add_plane(sensitivity->sums[0], covariance[0], &x, &y);
    DL2_TRY(correlate_axis(&chroma_x, &x, error));
    DL2_TRY(correlate_axis(&chroma_y, &y, error));
    for (int p = 1; p < PLANES; p++)
        add_plane(sensitivity->sums[p], covariance[p], &x, &y);
    sensitivity->crops++;
    return DL2_OK;
}
