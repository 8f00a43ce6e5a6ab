/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * compare_parts PATH...: decoding of parts against decoding of the whole, for image
 * files and all of those in folders. Names each difference; exit status 1 where there are any.
 *
 * For each image, with rectangles in its corners, of odd places and sizes, thin and of one pixel:
 * - pixels, gray or color: byte for byte those of dl2_image_decode();
 * - planes, and 1/2, 1/4, 1/8: byte for byte those of the whole image decoded likewise;
 * - planes as color, reduced or not, against the whole image: each sample lies within the range
 *   of the pixels that its filter can reach (and some overshoot), and on average they differ from
 *   the mean of the pixels under them by little more than those do;
 * - of folders, the loader's training crops: byte for byte those of the whole images.
 *
 * What can't be decoded as a whole is not compared; what can must come in parts, too.
 */
#include "codec/codec.h"
#include "codec/codecs.h"
#include "codec/decoder.h"
#include "common/file.h"
#include "loader/loader.h"
#include "loader/sample.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { RANDOM_RECTANGLES = 4, LINES_PER_FILE = 6 };

static const uint8_t background[3] = {10, 200, 90};

struct state {
    struct dl2_decoder *decoder, *other; /* of parts, of what parts are held against */
    struct dl2_image whole, gray, scratch;
    struct dl2_resizer resizer;
    struct dl2_bytes file, ranges, crop;
    const char *path;
    uint64_t files, compared, refused, rectangles, different, crops, different_crops;
    uint32_t bits;    /* of a sample of this file */
    unsigned lines;   /* that were written of this file */
    double most_mean; /* part of the bound */
};

static void say(struct state *state, const char *format, ...) DL2_PRINTF(2, 3);
static void say(struct state *state, const char *format, ...)
{
    va_list args;
    if (state->lines++ >= LINES_PER_FILE)
        return;
    printf("%s: ", state->path);
    va_start(args, format);
    vprintf(format, args);
    va_end(args);
    putchar('\n');
    fflush(stdout);
}

static void need(int status, const struct dl2_error *error)
{
    if (status >= 0)
        return;
    fprintf(stderr, "compare_parts: %s\n", error->message);
    exit(99);
}

/* ---- Rectangles */

struct rectangle {
    uint32_t x, y, width, height;
};

static uint32_t below(uint32_t *random, uint32_t limit)
{
    *random = *random * 1664525 + 1013904223;
    return (uint32_t)((uint64_t)(*random >> 4) * limit >> 28);
}

static uint32_t least(uint32_t a, uint32_t b)
{
    return a < b ? a : b;
}

/* All lie within the image; of small ones some are the same. */
static size_t choose(uint32_t width, uint32_t height, struct rectangle *out)
{
    uint32_t random = width * 31 + height;
    size_t count = 0;
    const uint32_t x = least(width / 3 | 1, width - 1), y = least(height / 3 | 1, height - 1);
    out[count++] = (struct rectangle){0, 0, width, height};
    out[count++] = (struct rectangle){x, y, 1, 1};
    out[count++] = (struct rectangle){x, y, least(37, width - x), least(23, height - y)};
    out[count++] = (struct rectangle){0, height / 2, width, 1};
    out[count++] = (struct rectangle){width / 2, 0, 1, height};
    out[count++] = (struct rectangle){width - least(51, width), height - least(33, height),
                                      least(51, width), least(33, height)};
    for (int i = 0; i < RANDOM_RECTANGLES; i++) {
        struct rectangle *r = &out[count++];
        r->width = 1 + below(&random, width);
        r->height = 1 + below(&random, height);
        r->x = below(&random, width - r->width + 1);
        r->y = below(&random, height - r->height + 1);
    }
    return count;
}

/* ---- Bytes */

static int decode(struct state *state, struct dl2_decoder *decoder,
                  const struct dl2_decode_request *request, struct dl2_raster *raster,
                  struct dl2_error *error)
{
    struct dl2_image_info info;
    DL2_TRY(dl2_decoder_open(decoder, state->file.data, state->file.size, 0, &info, error));
    return dl2_decoder_decode(decoder, request, raster, error);
}

/* The sample of `plane` for the pixel (x, y); NULL where it isn't there. */
static const uint8_t *sample_at(const struct dl2_plane *plane, uint32_t x, uint32_t y,
                                unsigned channels)
{
    const int64_t i = (x - plane->x) / plane->step_x, j = (y - plane->y) / plane->step_y;
    return x >= plane->x && y >= plane->y && i < plane->width && j < plane->height
               ? plane->data + j * plane->stride + (size_t)i * channels
               : NULL;
}

/* Says where the part isn't the same as the whole, if so. */
static void compare_bytes(struct state *state, const struct dl2_raster *part,
                          const struct dl2_raster *whole, const struct rectangle *r,
                          const char *what)
{
    const unsigned channels =
        dl2_raster_channels(part) == 3 && dl2_raster_planes(part) == 1 ? 3 : 1;
    if (part->color != whole->color) {
        say(state, "%s %ux%u at %u,%u: another kind of pixels than the whole's", what, r->width,
            r->height, r->x, r->y);
        return;
    }
    uint64_t off = 0, of = 0;
    int most = 0;
    for (unsigned p = 0; p < dl2_raster_planes(part); p++) {
        const struct dl2_plane *a = &part->planes[p], *b = &whole->planes[p];
        if (a->step_x != b->step_x || a->step_y != b->step_y || (a->x - b->x) % a->step_x ||
            (a->y - b->y) % a->step_y) {
            say(state, "%s %ux%u at %u,%u: another grid than the whole's", what, r->width,
                r->height, r->x, r->y);
            return;
        }
        for (uint32_t y = r->y; y < r->y + r->height; y++)
            for (uint32_t x = r->x; x < r->x + r->width; x++) {
                const uint8_t *one = sample_at(a, x, y, channels),
                              *two = sample_at(b, x, y, channels);
                if (!one || !two) {
                    say(state, "%s %ux%u at %u,%u: nothing at %u,%u", what, r->width, r->height,
                        r->x, r->y, x, y);
                    return;
                }
                of++;
                if (!memcmp(one, two, channels))
                    continue;
                off++;
                for (unsigned c = 0; c < channels; c++)
                    most = abs(one[c] - two[c]) > most ? abs(one[c] - two[c]) : most;
            }
    }
    if (off)
        say(state, "%s %ux%u at %u,%u: %" PRIu64 " of %" PRIu64 " differ, by %d at most", what,
            r->width, r->height, r->x, r->y, off, of, most);
}

/*
 * Where the library can't reduce a part although it can the whole, it comes at full size; and the
 * other way round, in damaged files, where there is nothing to compare a part with.
 */
static void compare_finer(struct state *state, const struct dl2_raster *part,
                          const struct rectangle *r, const char *what)
{
    const struct dl2_raster whole = dl2_raster_of(&state->whole, 0, 0);
    compare_bytes(state, part, &whole, r, what);
}

/* ---- Values: planes and reductions against the mean of what they stand for */

static int clamp(double value)
{
    return value <= 0 ? 0 : value >= 255 ? 255 : (int)(value + 0.5);
}

/* Between the samples, as the codecs' own libraries have chroma at a pixel. */
static double chroma_at(const struct dl2_raster *raster, int number, uint32_t x, uint32_t y)
{
    const struct dl2_plane *plane = &raster->planes[number], *luma = &raster->planes[0];
    const double at[2] = {(x - plane->x + luma->step_x / 2.0) / plane->step_x - 0.5,
                          (y - plane->y + luma->step_y / 2.0) / plane->step_y - 0.5};
    const uint32_t last[2] = {plane->width - 1, plane->height - 1};
    uint32_t from[2], to[2];
    double part[2];
    for (int i = 0; i < 2; i++) {
        from[i] = at[i] > 0 ? least((uint32_t)at[i], last[i]) : 0;
        to[i] = least(from[i] + 1, last[i]);
        part[i] = at[i] > 0 ? at[i] - from[i] : 0;
    }
    const uint8_t *upper = plane->data + from[1] * plane->stride,
                  *lower = plane->data + to[1] * plane->stride;
    return (1 - part[1]) * ((1 - part[0]) * upper[from[0]] + part[0] * upper[to[0]]) +
           part[1] * ((1 - part[0]) * lower[from[0]] + part[0] * lower[to[0]]);
}

static void color_at(const struct dl2_raster *raster, uint32_t x, uint32_t y, double out[3])
{
    const uint8_t *p = sample_at(&raster->planes[0], x, y,
                                 dl2_raster_planes(raster) == 1 ? dl2_raster_channels(raster) : 1);
    if (dl2_raster_planes(raster) == 1) {
        for (unsigned c = 0; c < dl2_raster_channels(raster); c++)
            out[c] = p[c];
        return;
    }
    const bool limited = raster->color == DL2_COLOR_YCBCR_LIMITED;
    const double luma = limited ? (p[0] - 16) * 255 / 219.0 : p[0];
    const double scale = limited ? 255 / 224.0 : 1;
    const double cb = (chroma_at(raster, 1, x, y) - 128) * scale,
                 cr = (chroma_at(raster, 2, x, y) - 128) * scale;
    out[0] = clamp(luma + 1.402 * cr);
    out[1] = clamp(luma - 0.344136 * cb - 0.714136 * cr);
    out[2] = clamp(luma + 1.772 * cb);
}

/*
 * Chroma at half the resolution and the 9/7 wavelet both reach about so many samples to each side,
 * and shoot over by about this part of the range. The tolerance is what rounding leaves.
 */
enum { REACH = 4 };
static const double overshoot = 0.6, tolerance = 6;

/* The range and the mean of step x step pixels. */
struct block {
    uint8_t low[3], high[3];
    float mean[3], spread[3];
};

/* That, and the distance of neighboring values where there are few. */
static double room_for(const struct state *state, const struct block *block, unsigned c)
{
    const double values = state->bits < 8 ? (double)((1u << state->bits) - 1) : 255;
    return overshoot * (block->high[c] - block->low[c]) + tolerance + 255 / values;
}

/* Those of `size` that a sample at number `at` stands for: with the wavelet's its shift, too. */
static void extent(uint32_t at, uint32_t step, float shift, uint32_t size, uint32_t *from,
                   uint32_t *to)
{
    const int64_t start = (int64_t)at * step + lrintf(shift), end = start + step;
    *from = start < 0 ? 0 : (uint32_t)start;
    *to = end > size ? size : (uint32_t)end;
}

static void sum_up_block(const struct dl2_image *whole, const struct dl2_plane *plane, uint32_t i,
                         uint32_t j, uint32_t step, struct block *block)
{
    uint32_t left, top, right, bottom;
    extent(i, step, plane->shift_x, whole->width, &left, &right);
    extent(j, step, plane->shift_y, whole->height, &top, &bottom);
    const double pixels = (double)(right - left) * (bottom - top);
    for (unsigned c = 0; c < whole->channels; c++) {
        double sum = 0, spread = 0;
        uint8_t low = 255, high = 0;
        for (int pass = 0; pass < 2; pass++)
            for (uint32_t y = top; y < bottom; y++)
                for (uint32_t x = left; x < right; x++) {
                    const uint8_t value =
                        whole->data[y * whole->stride + (size_t)x * whole->channels + c];
                    if (pass) {
                        spread += fabs(value - sum / pixels);
                        continue;
                    }
                    sum += value;
                    low = value < low ? value : low;
                    high = value > high ? value : high;
                }
        block->low[c] = low;
        block->high[c] = high;
        block->mean[c] = (float)(sum / pixels);
        block->spread[c] = (float)(spread / pixels);
    }
}

/* Widens the range of each block by those of its neighbors along one axis. */
static void widen(const struct block *in, struct block *out, uint32_t columns, uint32_t rows,
                  bool down)
{
    for (uint32_t j = 0; j < rows; j++)
        for (uint32_t i = 0; i < columns; i++) {
            const uint32_t at = down ? j : i, end = down ? rows : columns;
            struct block *block = &out[(size_t)j * columns + i];
            *block = in[(size_t)j * columns + i];
            for (uint32_t k = at > REACH ? at - REACH : 0; k < end && k <= at + REACH; k++) {
                const struct block *other =
                    down ? &in[(size_t)k * columns + i] : &in[(size_t)j * columns + k];
                for (int c = 0; c < 3; c++) {
                    if (other->low[c] < block->low[c])
                        block->low[c] = other->low[c];
                    if (other->high[c] > block->high[c])
                        block->high[c] = other->high[c];
                }
            }
        }
}

/* Both are of the whole image. */
static void compare_values(struct state *state, const struct dl2_raster *raster, const char *what)
{
    const struct dl2_image *whole = &state->whole;
    uint32_t step = raster->planes[0].step_x;
    /* Chroma is meant for more pixels; where it was upsampled, there is no telling for how many. */
    if (dl2_raster_planes(raster) == 3)
        step = raster->planes[1].step_x > raster->planes[1].step_y ? raster->planes[1].step_x
                                                                   : raster->planes[1].step_y;
    else if (raster->color == DL2_COLOR_RGB && step > 1)
        step *= 2;
    const uint32_t columns = (whole->width + step - 1) / step,
                   rows = (whole->height + step - 1) / step;
    const size_t count = (size_t)columns * rows;
    struct dl2_error error = DL2_ERROR_INIT;
    need(dl2_bytes_resize(&state->ranges, 2 * count * sizeof(struct block), &error), &error);
    struct block *blocks = (struct block *)(void *)state->ranges.data, *wide = blocks + count;
    for (uint32_t j = 0; j < rows; j++)
        for (uint32_t i = 0; i < columns; i++)
            sum_up_block(whole, &raster->planes[0], i, j, step, &blocks[(size_t)j * columns + i]);
    widen(blocks, wide, columns, rows, false);
    widen(wide, blocks, columns, rows, true);
    double sum = 0, spread = 0, worst = 0;
    uint64_t outside = 0;
    uint32_t worst_x = 0, worst_y = 0;
    const unsigned channels = dl2_raster_channels(raster);
    if (channels != whole->channels) {
        say(state, "%s: %u channels where the whole has %u", what, channels, whole->channels);
        return;
    }
    for (uint32_t j = 0; j < rows; j++)
        for (uint32_t i = 0; i < columns; i++) {
            const struct block *block = &blocks[(size_t)j * columns + i];
            double color[3], mean[3] = {0};
            unsigned samples = 0;
            /* Samples may be finer than the blocks. */
            for (uint32_t y = j * step; y < least((j + 1) * step, whole->height);
                 y += raster->planes[0].step_y)
                for (uint32_t x = i * step; x < least((i + 1) * step, whole->width);
                     x += raster->planes[0].step_x, samples++) {
                    color_at(raster, x, y, color);
                    for (unsigned c = 0; c < channels; c++) {
                        const double room = room_for(state, block, c);
                        double off = block->low[c] - room - color[c];
                        if (color[c] - block->high[c] - room > off)
                            off = color[c] - block->high[c] - room;
                        mean[c] += color[c];
                        outside += off > 0;
                        if (off > worst) {
                            worst = off;
                            worst_x = x;
                            worst_y = y;
                        }
                    }
                }
            for (unsigned c = 0; c < channels; c++) {
                sum += fabs(mean[c] / samples - (double)block->mean[c]);
                spread += (double)block->spread[c];
            }
        }
    sum /= (double)count * channels;
    spread /= (double)count * channels;
    const double relative = sum / (1.5 * spread + 2);
    state->most_mean = relative > state->most_mean ? relative : state->most_mean;
    if (outside)
        say(state, "%s: %" PRIu64 " samples are not of the pixels around them, at %u,%u by %.0f",
            what, outside, worst_x, worst_y, worst);
    if (relative > 1)
        say(state, "%s: differs by %.1f on average, pixels from their mean by %.1f", what, sum,
            spread);
}

/* ---- The loader */

/* What the loader made of a sample, against the same crop of the whole image decoded likewise. */
static void compare_crop(struct state *state, const struct dl2_dataset *dataset,
                         const struct dl2_loader_config *config, const struct dl2_batch *batch,
                         unsigned place)
{
    const size_t bytes = (size_t)config->height * config->height * config->channels;
    const uint32_t index = batch->indices[place];
    struct dl2_decode_request request = DL2_DECODE_REQUEST_DEFAULTS;
    struct dl2_error error = DL2_ERROR_INIT;
    struct dl2_image_info info;
    struct dl2_sample sample;
    struct dl2_random random;
    struct dl2_raster whole;
    struct dl2_crop crop;
    const uint8_t *data;
    size_t size;
    dl2_dataset_sample(dataset, index, &sample);
    state->path = sample.path;
    need(dl2_dataset_read(dataset, index, &state->file, &data, &size, &error), &error);
    /* A part may be good where the whole isn't. */
    if (dl2_decoder_open(state->other, data, size, 0, &info, NULL) < 0)
        return;
    request.width = dl2_upright_width(&info);
    request.height = dl2_upright_height(&info);
    dl2_random_init(&random, config->seed, DL2_RANDOM_AUGMENT, batch->epoch, index);
    const struct dl2_crop_config crops = dl2_loader_crop_config(config);
    dl2_crop_for_training(&crops, &random, request.width, request.height, &crop);
    request.reduction = dl2_crop_reduction(&crop, config->height, config->height);
    if (dl2_decoder_decode(state->other, &request, &whole, NULL) < 0)
        return;
    need(dl2_bytes_resize(&state->crop, bytes, &error), &error);
    need(dl2_crop_resize(&state->resizer, &whole, &crop,
                         dl2_loader_output(config, state->crop.data), &error),
         &error);
    const uint8_t *one = batch->images + place * bytes;
    uint64_t off = 0;
    int most = 0;
    for (size_t k = 0; k < bytes; k++) {
        const int by = abs(one[k] - state->crop.data[k]);
        off += by > 0;
        most = by > most ? by : most;
    }
    state->crops++;
    if (off) {
        state->lines = 0;
        say(state,
            "the loader's crop of %ux%u at %u,%u to %u pixels: %" PRIu64
            " of %zu values differ, by %d at most",
            crop.width, crop.height, crop.x, crop.y, config->height, off, bytes, most);
        state->different_crops++;
    }
}

static int compare_epoch(struct state *state, const struct dl2_dataset *dataset, unsigned size,
                         struct dl2_error *error)
{
    struct dl2_loader_config config = DL2_LOADER_DEFAULTS;
    struct dl2_loader *loader;
    struct dl2_batch *batch;
    config.batch = 8;
    config.height = size;
    DL2_TRY(dl2_loader_create(dataset, &config, &loader, error));
    int status = dl2_loader_start_epoch(loader, 1, 0, error);
    while (status >= 0 && (status = dl2_loader_next(loader, &batch, error)) == 1) {
        for (unsigned i = 0; i < batch->count; i++)
            compare_crop(state, dataset, &config, batch, i);
        dl2_loader_release(loader, batch);
    }
    dl2_loader_destroy(loader);
    return status;
}

/* Training's random crops of all images of a folder, small ones of large images reduced. */
static void compare_loader(struct state *state, const char *folder)
{
    struct dl2_dataset_options options = DL2_DATASET_DEFAULTS;
    struct dl2_error error = DL2_ERROR_INIT;
    struct dl2_dataset *dataset;
    options.keep = dl2_codec_is_image_file;
    need(dl2_dataset_open(folder, &options, &dataset, &error), &error);
    for (unsigned size = 16; size <= 256; size *= 4)
        need(compare_epoch(state, dataset, size, &error), &error);
    dl2_dataset_close(dataset);
}

/* ---- A file */

/* Parts, by `request` but for the rectangle, against `whole`. */
static void compare_parts(struct state *state, const struct dl2_raster *whole,
                          struct dl2_decode_request request, const char *what)
{
    struct rectangle rectangles[16];
    const size_t count = choose(state->whole.width, state->whole.height, rectangles);
    for (size_t i = 0; i < count; i++) {
        const struct rectangle *r = &rectangles[i];
        struct dl2_error error = DL2_ERROR_INIT;
        struct dl2_raster part;
        request.x = r->x;
        request.y = r->y;
        request.width = r->width;
        request.height = r->height;
        state->rectangles++;
        if (decode(state, state->decoder, &request, &part, &error) < 0)
            say(state, "%s %ux%u at %u,%u: %s", what, r->width, r->height, r->x, r->y,
                error.message);
        else if (part.planes[0].step_x < whole->planes[0].step_x)
            compare_finer(state, &part, r, what);
        else if (part.planes[0].step_x == whole->planes[0].step_x)
            compare_bytes(state, &part, whole, r, what);
    }
}

/* What dl2_image_decode() can't make is compared with the decoder's own whole. */
static void compare_likewise(struct state *state, uint32_t reduction, bool planes)
{
    struct dl2_decode_request request = {.reduction = reduction, .planes = planes};
    struct dl2_error error = DL2_ERROR_INIT;
    struct dl2_raster whole;
    char what[64];
    snprintf(what, sizeof what, "%s by %u", planes ? "planes" : "pixels", (unsigned)reduction);
    memcpy(request.background, background, sizeof background);
    request.width = state->whole.width;
    request.height = state->whole.height;
    if (decode(state, state->other, &request, &whole, &error) < 0) {
        say(state, "%s: %s", what, error.message);
        return;
    }
    compare_values(state, &whole, what);
    compare_parts(state, &whole, request, what);
}

static void compare_image(struct state *state)
{
    struct dl2_decode_request request = {.reduction = 1};
    memcpy(request.background, background, sizeof background);
    const struct dl2_raster whole = dl2_raster_of(&state->whole, 0, 0),
                            gray = dl2_raster_of(&state->gray, 0, 0);
    compare_parts(state, &whole, request, "pixels");
    request.channels = 1;
    compare_parts(state, &gray, request, "gray");
    for (uint32_t reduction = 1; reduction <= 8; reduction *= 2)
        for (int planes = reduction == 1; planes < 2; planes++)
            compare_likewise(state, reduction, planes);
}

static void compare_file(struct state *state, const char *path)
{
    struct dl2_error error = DL2_ERROR_INIT;
    struct dl2_decode_options options = {.background = {10, 200, 90}};
    struct dl2_image_info info;
    if (!dl2_codec_is_image_file(path))
        return;
    state->path = path;
    state->files++;
    state->lines = 0;
    state->file.size = 0;
    int status = dl2_file_read(path, (uint64_t)1 << 30, &state->file, &error);
    if (status == DL2_OK)
        status = dl2_image_read_info(state->file.data, state->file.size, &info, &error);
    if (status == DL2_OK)
        status = dl2_image_decode(state->file.data, state->file.size, &options, &state->whole,
                                  &state->scratch, &error);
    if (status < 0) {
        state->refused++;
        return;
    }
    state->bits = info.bits;
    options.channels = 1;
    need(dl2_image_decode(state->file.data, state->file.size, &options, &state->gray,
                          &state->scratch, &error),
         &error);
    state->compared++;
    compare_image(state);
    state->different += state->lines > 0;
}

static void compare_path(struct state *state, const char *path)
{
    struct dl2_file_list list;
    struct dl2_error error = DL2_ERROR_INIT;
    if (!dl2_is_folder(path)) {
        compare_file(state, path);
        return;
    }
    need(dl2_list_files(path, &list, &error), &error);
    for (size_t i = 0; i < list.count; i++) {
        char *file = dl2_path_join(path, list.paths[i]);
        if (!file)
            exit(99);
        compare_file(state, file);
        free(file);
    }
    dl2_file_list_free(&list);
    compare_loader(state, path);
}

int main(int argc, char **argv)
{
    struct state state = {.path = ""};
    struct dl2_error error = DL2_ERROR_INIT;
    if (argc < 2) {
        fprintf(stderr, "usage: compare_parts PATH...\n");
        return 2;
    }
    need(dl2_decoder_create(&state.decoder, &error), &error);
    need(dl2_decoder_create(&state.other, &error), &error);
    for (int i = 1; i < argc; i++)
        compare_path(&state, argv[i]);
    printf("%" PRIu64 " image files: %" PRIu64 " compared, %" PRIu64 " can't be decoded, %" PRIu64
           " rectangles, %" PRIu64 " of the loader's crops; %" PRIu64 " files and %" PRIu64
           " crops differ; means by at most %.2f of the bound\n",
           state.files, state.compared, state.refused, state.rectangles, state.crops,
           state.different, state.different_crops, state.most_mean);
    dl2_decoder_destroy(state.decoder);
    dl2_decoder_destroy(state.other);
    dl2_image_free(&state.whole);
    dl2_image_free(&state.gray);
    dl2_image_free(&state.scratch);
    dl2_resizer_free(&state.resizer);
    dl2_bytes_free(&state.file);
    dl2_bytes_free(&state.ranges);
    dl2_bytes_free(&state.crop);
    return state.different || state.different_crops ? 1 : state.compared ? 0 : 77;
}
