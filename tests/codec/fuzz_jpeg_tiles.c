/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Splicing and decoding parts of any JPEG. The first eight bytes choose the rectangle and what is
 * wanted of it; the rest is the file. Where the whole can be decoded, the part can, and is the
 * same.
 */
#include "codec/decoder.h"
#include "codec/jpeg/jpeg_plain.h"
#include "codec/jpeg/jpeg_slices.h"
#include "codec/jpeg/jpeg_tiles.h"

#include <stdlib.h>
#include <string.h>

enum { CHOICE = 8 };

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void require(bool good)
{
    if (!good)
        abort();
}

static void compare(const struct dl2_plane *part, const struct dl2_plane *all, uint32_t channels)
{
    require(part->step_x == all->step_x && part->step_y == all->step_y);
    const uint32_t x = (part->x - all->x) / all->step_x, y = (part->y - all->y) / all->step_y;
    require(part->x >= all->x && part->y >= all->y && x + part->width <= all->width &&
            y + part->height <= all->height);
    for (uint32_t row = 0; row < part->height; row++)
        require(!memcmp(part->data + row * part->stride,
                        all->data + (y + row) * all->stride + (size_t)x * channels,
                        (size_t)part->width * channels));
}

static void choose(const uint8_t *choice, const struct dl2_image_info *info,
                   struct dl2_decode_request *request)
{
    const uint32_t width = dl2_upright_width(info), height = dl2_upright_height(info);
    request->x = (choice[0] | (uint32_t)choice[1] << 8) % width;
    request->y = (choice[2] | (uint32_t)choice[3] << 8) % height;
    request->width = 1 + choice[4] * (width - request->x - 1) / 255;
    request->height = 1 + choice[5] * (height - request->y - 1) / 255;
    request->reduction = 1u << choice[6] % 4;
    request->planes = choice[7] & 1;
    request->channels = choice[7] & 2 ? 1 : 0;
}

/* Any bytes as slices of any image, with the file's own header for a head. */
static void join(const uint8_t *choice, const uint8_t *data, size_t size)
{
    struct dl2_slicing cuts = {0};
    struct dl2_bytes joined = DL2_BYTES_INIT;
    const struct dl2_slice_range range = {choice[4], choice[5]};
    const size_t from = size * choice[6] / 256;
    dl2_jpeg_slice(data, size, &cuts, NULL);
    const struct dl2_cuts read = {.width = choice[0] | (uint32_t)choice[1] << 8,
                                  .height = choice[2] | (uint32_t)choice[3] << 8,
                                  .rows = 8u * (choice[7] % 8),
                                  .head = data,
                                  .head_size = size};
    dl2_jpeg_join_slices(&read, range, data + from, size - from, &joined, NULL);
    dl2_bytes_free(&joined);
    dl2_slicing_free(&cuts);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size < CHOICE + 3 || memcmp(data + CHOICE, "\xff\xd8\xff", 3) != 0)
        return 0;
    struct dl2_decode_request part = DL2_DECODE_REQUEST_DEFAULTS, all;
    struct dl2_jpeg_splice splice = {.jpeg = DL2_BYTES_INIT};
    struct dl2_decoder *decoder[2] = {NULL};
    struct dl2_image_info info;
    struct dl2_raster have, want;
    struct dl2_error error = DL2_ERROR_INIT;
    const uint8_t *const choice = data;
    data += CHOICE;
    size -= CHOICE;
    join(choice, data, size);
    struct dl2_coded_frame plain;
    const bool is_plain = dl2_jpeg_plain_read(&plain, data, size);
    for (size_t i = 0; i < 2; i++)
        require(dl2_decoder_create(&decoder[i], NULL) == DL2_OK);
    if (dl2_decoder_open(decoder[0], data, size, 1 << 18, &info, &error) == DL2_OK) {
        require(dl2_decoder_open(decoder[1], data, size, 1 << 18, &info, NULL) == DL2_OK);
        require(!is_plain || (plain.width == info.width && plain.height == info.height &&
                              plain.components == info.channels));
        choose(choice, &info, &part);
        dl2_jpeg_splice(&splice, data, size, part.x, part.y, part.width, part.height, NULL);
        all = part;
        all.x = all.y = 0;
        all.width = dl2_upright_width(&info);
        all.height = dl2_upright_height(&info);
        const int status = dl2_decoder_decode(decoder[0], &part, &have, &error);
        if (dl2_decoder_decode(decoder[1], &all, &want, NULL) == DL2_OK) {
            require(status == DL2_OK && have.color == want.color);
            const unsigned planes = dl2_raster_planes(&have);
            for (unsigned i = 0; i < planes; i++)
                compare(&have.planes[i], &want.planes[i],
                        planes == 3 ? 1 : dl2_raster_channels(&have));
        }
    }
    require((error.status < 0) == (error.message[0] != '\0'));
    for (size_t i = 0; i < 2; i++)
        dl2_decoder_destroy(decoder[i]);
    dl2_jpeg_splice_free(&splice);
    return 0;
}
