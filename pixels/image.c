/* SPDX-License-Identifier: BSD-2-Clause */
#include "pixels/image.h"

#include "common/memory.h"
#include "pixels/raster.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

int dl2_image_reshape(struct dl2_image *image, uint32_t width, uint32_t height, uint32_t channels,
                      struct dl2_error *error)
{
    if (!width || !height || (channels != 1 && channels != 3))
        return dl2_error_set(error, DL2_ERR_ARGUMENT,
                             "no image of %" PRIu32 "x%" PRIu32 " with %" PRIu32 " channels", width,
                             height, channels);
    size_t stride, size;
    if (!dl2_size_mul(width, channels, &stride) || !dl2_size_mul(stride, height, &size))
        return dl2_error_set(error, DL2_ERR_LIMIT,
                             "an image of %" PRIu32 "x%" PRIu32 " is too large", width, height);
    if (size > image->capacity) {
        uint8_t *data = dl2_alloc_aligned(size, 1);
        if (!data)
            return dl2_error_memory(error, "an image of %" PRIu32 "x%" PRIu32, width, height);
        free(image->data);
        image->data = data;
        image->capacity = size;
    }
    image->width = width;
    image->height = height;
    image->channels = channels;
    image->stride = stride;
    return DL2_OK;
}

int dl2_image_check_size(uint64_t width, uint64_t height, uint64_t max_pixels,
                         struct dl2_error *error)
{
    if (!width || !height)
        return dl2_error_set(error, DL2_ERR_FORMAT, "an empty image of %" PRIu64 "x%" PRIu64, width,
                             height);
    if (width > UINT32_MAX || height > UINT32_MAX || height > max_pixels / width)
        return dl2_error_set(error, DL2_ERR_LIMIT,
                             "%" PRIu64 "x%" PRIu64 " pixels pass the limit of %" PRIu64, width,
                             height, max_pixels);
    return DL2_OK;
}

enum { TILE = 16 }; /* pixels each way, so that rows and columns stay in the cache */

/* Where pixel (x, y) of the result comes from. */
struct turn {
    const uint8_t *from;
    ptrdiff_t step_x, step_y;
};

static inline const uint8_t *source_of(const struct turn *turn, uint32_t x, uint32_t y)
{
    return turn->from + (ptrdiff_t)x * turn->step_x + (ptrdiff_t)y * turn->step_y;
}

#ifdef __clang__
#define SHUFFLED(a, b, ...) __builtin_shufflevector(a, b, __VA_ARGS__)
#else
#define SHUFFLED(a, b, ...) __builtin_shuffle(a, b, (tile_row){__VA_ARGS__})
#endif

typedef uint8_t tile_row __attribute__((vector_size(TILE)));

/* Turns rows of 16 bytes into columns: four times, row i and row i + 8 are interleaved. */
static void transpose_tile(const struct turn *turn, uint32_t x, uint32_t y, uint8_t *out,
                           size_t out_stride)
{
    const bool back = turn->step_y < 0;
    const uint8_t *from = source_of(turn, x, back ? y + TILE - 1 : y);
    tile_row rows[2][TILE];
    for (int i = 0; i < TILE; i++, from += turn->step_x)
        memcpy(&rows[0][i], from, TILE);
    for (int stage = 0; stage < 4; stage++) {
        const tile_row *const in = rows[stage & 1];
        tile_row *const to = rows[~stage & 1];
        for (int i = 0; i < TILE / 2; i++) {
            to[2 * i] = SHUFFLED(in[i], in[i + TILE / 2], 0, 16, 1, 17, 2, 18, 3, 19, 4, 20, 5, 21,
                                 6, 22, 7, 23);
            to[2 * i + 1] = SHUFFLED(in[i], in[i + TILE / 2], 8, 24, 9, 25, 10, 26, 11, 27, 12, 28,
                                     13, 29, 14, 30, 15, 31);
        }
    }
    for (int i = 0; i < TILE; i++)
        memcpy(out + (y + (unsigned)i) * out_stride + x, &rows[0][back ? TILE - 1 - i : i], TILE);
}

/* `pixel` is a constant where this is inlined. */
static inline __attribute__((always_inline)) void turn_tiles(const struct turn *turn,
                                                             uint32_t width, uint32_t height,
                                                             const size_t pixel, uint8_t *out,
                                                             size_t out_stride)
{
    for (uint32_t top = 0; top < height; top += TILE)
        for (uint32_t left = 0; left < width; left += TILE) {
            const uint32_t right = width - left < TILE ? width : left + TILE;
            const uint32_t bottom = height - top < TILE ? height : top + TILE;
            if (pixel == 1 && (turn->step_y == 1 || turn->step_y == -1) && right - left == TILE &&
                bottom - top == TILE) {
                transpose_tile(turn, left, top, out, out_stride);
                continue;
            }
            for (uint32_t y = top; y < bottom; y++)
                for (uint32_t x = left; x < right; x++)
                    memcpy(out + y * out_stride + x * pixel, source_of(turn, x, y), pixel);
        }
}

void dl2_orient_pixels(const uint8_t *in, size_t stride, uint32_t width, uint32_t height,
                       size_t pixel, int orientation, uint8_t *out, size_t out_stride)
{
    const bool flip_x = dl2_orientation_flips_x(orientation);
    const bool flip_y = dl2_orientation_flips_y(orientation);
    const ptrdiff_t across = flip_x ? -(ptrdiff_t)pixel : (ptrdiff_t)pixel;
    const ptrdiff_t down = flip_y ? -(ptrdiff_t)stride : (ptrdiff_t)stride;
    struct turn turn = {in, across, down};
    turn.from += flip_x ? (width - 1) * pixel : 0;
    turn.from += flip_y ? (height - 1) * stride : 0;
    if (dl2_orientation_transposes(orientation)) {
        turn = (struct turn){turn.from, down, across};
        const uint32_t swapped = width;
        width = height;
        height = swapped;
    }
    if (pixel == 1)
        turn_tiles(&turn, width, height, 1, out, out_stride);
    else if (pixel == 3)
        turn_tiles(&turn, width, height, 3, out, out_stride);
    else
        turn_tiles(&turn, width, height, pixel, out, out_stride);
}

int dl2_image_orient(struct dl2_image *image, int orientation, struct dl2_image *scratch,
                     struct dl2_error *error)
{
    if (orientation <= 1 || orientation > 8)
        return DL2_OK;
    const bool transpose = dl2_orientation_transposes(orientation);
    DL2_TRY(dl2_image_reshape(scratch, transpose ? image->height : image->width,
                              transpose ? image->width : image->height, image->channels, error));
    dl2_orient_pixels(image->data, image->stride, image->width, image->height, image->channels,
                      orientation, scratch->data, scratch->stride);
    struct dl2_image turned = *scratch;
    *scratch = *image;
    *image = turned;
    return DL2_OK;
}

struct dl2_plane dl2_plane_of(const uint8_t *data, size_t stride, uint32_t width, uint32_t height,
                              unsigned shift_x, unsigned shift_y)
{
    const uint32_t step_x = 1u << shift_x, step_y = 1u << shift_y;
    return (struct dl2_plane){.data = data,
                              .stride = stride,
                              .width = width / step_x + (width % step_x != 0),
                              .height = height / step_y + (height % step_y != 0),
                              .step_x = step_x,
                              .step_y = step_y};
}

struct dl2_raster dl2_raster_of(const struct dl2_image *image, uint32_t x, uint32_t y)
{
    struct dl2_plane plane =
        dl2_plane_of(image->data, image->stride, image->width, image->height, 0, 0);
    plane.x = x;
    plane.y = y;
    return (struct dl2_raster){.color = image->channels == 1 ? DL2_COLOR_GRAY : DL2_COLOR_RGB,
                               .planes = {plane}};
}

void dl2_image_free(struct dl2_image *image)
{
    free(image->data);
    *image = (struct dl2_image)DL2_IMAGE_INIT;
}
