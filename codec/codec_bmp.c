/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Windows bitmaps, read without a library: headers of 12 bytes (OS/2 1) and 40 to 124 (Windows),
 * 1, 2, 4 and 8 bits with a palette, 16, 24 and 32 bits, with masks or without, RLE4 and RLE8, rows
 * in either direction. Bitmaps that hold a JPEG or PNG file, and OS/2's own compressions, are not
 * supported. Nothing is written.
 *
 * Colors are those that Pillow computes: a sample of n bits becomes value * 255 / (2^n - 1),
 * rounded down; numbers that the palette lacks are gray levels; what an RLE image skips is color
 * 0. Alpha counts where a mask says so and has more than one bit. An image whose palette has
 * nothing but gray levels is gray.
 */
#include "codec/codecs.h"

#include <stdio.h>
#include <string.h>

enum { FILE_HEADER = 14, V5_HEADER = 124, PALETTE = 256 };
enum { PROFILE_EMBEDDED = 0x4d424544, PROFILE_LINKED = 0x4c494e4b };
enum { BMP_RGB, BMP_RLE8, BMP_RLE4, BMP_MASKS, BMP_JPEG, BMP_PNG, BMP_ALPHA_MASKS };

/* Where a sample lies in a pixel of 16 to 32 bits. */
struct bmp_sample {
    unsigned shift;
    uint32_t maximum; /* 0: there is none */
};

struct bmp_state {
    struct dl2_codec_state base; /* block: colors' numbers of an RLE image, rows as in the file */
    uint32_t width, height, bits, compression;
    bool top_down, gray, alpha;
    size_t pixels_at;
    uint8_t palette[PALETTE][3];  /* R, G, B */
    struct bmp_sample samples[4]; /* R, G, B, A */
};

static bool bmp_is_header(uint32_t bytes)
{
    static const uint32_t known[] = {12, 40, 52, 56, 64, 108, 124};
    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
        if (bytes == known[i])
            return true;
    return false;
}

/* "BM" begins texts, too. */
static bool bmp_sniff(const uint8_t *data, size_t size)
{
    return size >= FILE_HEADER + 4 && data[0] == 'B' && data[1] == 'M' &&
           bmp_is_header(dl2_read_le32(data + FILE_HEADER));
}

static int bmp_damaged(struct dl2_error *error)
{
    return dl2_error_set(error, DL2_ERR_FORMAT, "BMP: the header is damaged or cut short");
}

static int bmp_set_mask(struct bmp_sample *sample, uint32_t mask, struct dl2_error *error)
{
    *sample = (struct bmp_sample){0};
    if (!mask)
        return DL2_OK;
    while (!(mask >> sample->shift & 1))
        sample->shift++;
    sample->maximum = mask >> sample->shift;
    if (sample->maximum & (sample->maximum + 1))
        return dl2_error_set(error, DL2_ERR_FORMAT, "BMP: a mask of %#x has gaps", (unsigned)mask);
    return DL2_OK;
}

/* Without masks: 5 bits each of 16, 8 bits each of 24 and 32. */
static int bmp_read_masks(struct bmp_state *bmp, uint32_t header, struct dl2_error *error)
{
    uint32_t masks[4] = {0xff0000, 0xff00, 0xff, 0};
    if (bmp->bits == 16)
        memcpy(masks, (uint32_t[]){0x7c00, 0x3e0, 0x1f}, 3 * sizeof *masks);
    if (bmp->compression != BMP_RGB) {
        const bool fourth = header >= 56 || (bmp->compression == BMP_ALPHA_MASKS && header == 40);
        for (unsigned i = 0; i < 3 + (unsigned)fourth; i++)
            masks[i] = dl2_read_le32(bmp->base.data + FILE_HEADER + 40 + 4 * i);
        if (!(masks[0] | masks[1] | masks[2] | masks[3]) && bmp->bits == 32)
            memcpy(masks, (uint32_t[]){0xff0000, 0xff00, 0xff, 0xff000000}, sizeof masks);
    }
    for (unsigned i = 0; i < 4; i++)
        DL2_TRY(bmp_set_mask(&bmp->samples[i], masks[i], error));
    bmp->alpha = bmp->samples[3].maximum > 1;
    return DL2_OK;
}

/* Reads the palette at `at`; *end is where it ends. */
static int bmp_read_palette(struct bmp_state *bmp, size_t at, uint32_t colors, unsigned entry,
                            size_t *end, struct dl2_error *error)
{
    if (!colors)
        colors = UINT32_C(1) << bmp->bits;
    if (colors > 65536 || colors > (bmp->base.size - at) / entry)
        return dl2_error_set(error, DL2_ERR_FORMAT, "BMP: a palette of %u colors makes no sense",
                             (unsigned)colors);
    *end = at + (size_t)colors * entry;
    bmp->gray = true;
    for (uint32_t i = 0; i < PALETTE; i++) {
        const uint8_t *in = bmp->base.data + at + (size_t)i * entry;
        for (int c = 0; c < 3; c++)
            bmp->palette[i][c] = i < colors ? in[2 - c] : (uint8_t)i;
        const uint8_t *color = bmp->palette[i];
        if (i < UINT32_C(1) << bmp->bits)
            bmp->gray &= color[0] == color[1] && color[1] == color[2];
    }
    return DL2_OK;
}

static bool bmp_is_supported(uint32_t header, uint32_t bits, uint32_t compression)
{
    switch (compression) {
    case BMP_RGB:
        return bits == 1 || bits == 2 || bits == 4 || bits == 8 || bits == 16 || bits == 24 ||
               bits == 32;
    case BMP_RLE8:
        return bits == 8;
    case BMP_RLE4:
        return bits == 4;
    case BMP_MASKS: /* of OS/2 2: Huffman's code */
    case BMP_ALPHA_MASKS:
        return header != 64 && (bits == 16 || bits == 24 || bits == 32);
    default:
        return false;
    }
}

static int bmp_read_size(struct bmp_state *bmp, const uint8_t *info, uint32_t header,
                         struct dl2_error *error)
{
    const bool small = header == 12;
    const uint32_t height = small ? dl2_read_le16(info + 6) : dl2_read_le32(info + 8);
    bmp->width = small ? dl2_read_le16(info + 4) : dl2_read_le32(info + 4);
    bmp->top_down = !small && height > INT32_MAX;
    bmp->height = bmp->top_down ? -height : height;
    bmp->bits = dl2_read_le16(info + (small ? 10 : 14));
    bmp->compression = small ? BMP_RGB : dl2_read_le32(info + 16);
    if (!bmp->width || !bmp->height || bmp->width > INT32_MAX || bmp->height > INT32_MAX)
        return dl2_error_set(error, DL2_ERR_FORMAT, "BMP: a size of %ux%u makes no sense",
                             (unsigned)bmp->width, (unsigned)bmp->height);
    if (!bmp_is_supported(header, bmp->bits, bmp->compression))
        return dl2_error_set(error, DL2_ERR_UNSUPPORTED,
                             "BMP: %u bits with compression %u are not supported",
                             (unsigned)bmp->bits, (unsigned)bmp->compression);
    return DL2_OK;
}

static int bmp_open(void *state, struct dl2_image_info *info, struct dl2_error *error)
{
    struct bmp_state *bmp = state;
    const uint8_t *const data = bmp->base.data;
    const size_t size = bmp->base.size;
    bmp->gray = bmp->alpha = false;
    const uint32_t header = size >= FILE_HEADER + 4 ? dl2_read_le32(data + FILE_HEADER) : 0;
    if (!bmp_is_header(header) || size < FILE_HEADER + header)
        return bmp_damaged(error);
    DL2_TRY(bmp_read_size(bmp, data + FILE_HEADER, header, error));
    size_t end = FILE_HEADER + header;
    if (bmp->compression >= BMP_MASKS && header == 40)
        end += bmp->compression == BMP_MASKS ? 12 : 16;
    if (end > size)
        return bmp_damaged(error);
    bmp->pixels_at = dl2_read_le32(data + 10);
    if (bmp->bits <= 8) {
        const size_t palette_at = end;
        DL2_TRY(bmp_read_palette(bmp, end,
                                 header == 12 ? 0 : dl2_read_le32(data + FILE_HEADER + 32),
                                 header == 12 ? 3 : 4, &end, error));
        if (bmp->pixels_at == palette_at) /* some writers forget the palette */
            bmp->pixels_at = end;
    } else {
        DL2_TRY(bmp_read_masks(bmp, header, error));
    }
    if (!bmp->pixels_at)
        bmp->pixels_at = end;
    if (bmp->pixels_at < FILE_HEADER + header || bmp->pixels_at > size)
        return bmp_damaged(error);
    info->width = bmp->width;
    info->height = bmp->height;
    info->channels = bmp->gray ? 1 : 3;
    info->bits = bmp->bits <= 8 ? bmp->bits : 1;
    info->alpha = bmp->alpha;
    for (int i = 0; bmp->bits > 8 && i < 3; i++)
        while (info->bits < 16 && bmp->samples[i].maximum >> info->bits)
            info->bits++;
    return DL2_OK;
}

/* Only the longest header may have a profile, in the file or in another one. */
static int bmp_color(const uint8_t *data, size_t size, struct dl2_color_space *color,
                     struct dl2_error *error)
{
    const uint8_t *info = data + FILE_HEADER;
    if (size < FILE_HEADER + V5_HEADER || dl2_read_le32(info) != V5_HEADER)
        return DL2_OK;
    const uint32_t kind = dl2_read_le32(info + 56), at = dl2_read_le32(info + 112),
                   bytes = dl2_read_le32(info + 116);
    if (kind == PROFILE_EMBEDDED && at <= size - FILE_HEADER && bytes <= size - FILE_HEADER - at)
        return dl2_color_set_icc(color, info + at, bytes, error);
    if (kind == PROFILE_EMBEDDED || kind == PROFILE_LINKED) {
        color->form = DL2_COLOR_SPACE_UNKNOWN;
        snprintf(color->name, sizeof color->name, "%s",
                 kind == PROFILE_LINKED ? "a profile in another file" : "a damaged profile");
    }
    return DL2_OK;
}

/* ---- RLE */

struct bmp_rle {
    const uint8_t *at, *end;
    uint8_t *row;
    uint64_t x, y;
};

static void bmp_put(const struct bmp_state *bmp, struct bmp_rle *rle, uint8_t number)
{
    if (rle->x < bmp->width)
        rle->row[rle->x++] = number;
}

/* Pixels that stand for themselves, up to an even number of bytes; false where they are cut off. */
static bool bmp_copy_literal(const struct bmp_state *bmp, struct bmp_rle *rle, unsigned count)
{
    const bool nibbles = bmp->bits == 4;
    const size_t bytes = nibbles ? (count + 1) / 2 : count, padded = bytes + (bytes & 1);
    const size_t left = (size_t)(rle->end - rle->at);
    if (bytes > left)
        return false;
    for (unsigned i = 0; i < count; i++) {
        const uint8_t byte = rle->at[nibbles ? i / 2 : i];
        bmp_put(bmp, rle, nibbles ? (i & 1 ? byte & 15 : byte >> 4) : byte);
    }
    rle->at += padded < left ? padded : left;
    return true;
}

/* Fills the block; ends with the last row, or where the file says so. */
static int bmp_unpack(struct bmp_state *bmp, struct dl2_error *error)
{
    size_t bytes;
    if (!dl2_size_mul(bmp->width, bmp->height, &bytes))
        return dl2_error_set(error, DL2_ERR_LIMIT, "BMP: too large");
    DL2_TRY(dl2_bytes_resize(&bmp->base.block, bytes, error));
    memset(bmp->base.block.data, 0, bytes);
    struct bmp_rle rle = {.at = bmp->base.data + bmp->pixels_at,
                          .end = bmp->base.data + bmp->base.size,
                          .row = bmp->base.block.data};
    bool whole = true;
    while (rle.y < bmp->height && (whole = whole && rle.end - rle.at >= 2)) {
        const unsigned count = rle.at[0], value = rle.at[1];
        rle.at += 2;
        if (count) {
            for (unsigned i = 0; i < count; i++)
                bmp_put(bmp, &rle,
                        (uint8_t)(bmp->bits == 8 ? value
                                  : i & 1        ? value & 15
                                                 : value >> 4));
        } else if (value == 0) {
            rle.x = 0;
            rle.y++;
        } else if (value == 1) {
            break;
        } else if (value > 2) {
            whole = bmp_copy_literal(bmp, &rle, value);
        } else if ((whole = rle.end - rle.at >= 2)) {
            rle.x += rle.at[0];
            rle.y += rle.at[1];
            rle.at += 2;
        }
        if (rle.y < bmp->height)
            rle.row = bmp->base.block.data + rle.y * bmp->width;
        /* The last row may lack its end. */
        if (!whole || (rle.end - rle.at < 2 && rle.y + 1 == bmp->height && rle.x >= bmp->width))
            break;
    }
    return whole ? DL2_OK : dl2_error_set(error, DL2_ERR_FORMAT, "BMP: the file is cut short");
}

/* ---- Pixels */

static void bmp_take_numbers(const struct bmp_state *bmp, const uint8_t *in, unsigned bits,
                             uint32_t x, struct dl2_image *image, uint8_t *out)
{
    const uint8_t mask = (uint8_t)((1u << bits) - 1);
    for (uint32_t i = 0; i < image->width; i++) {
        const uint64_t bit = (uint64_t)(x + i) * bits;
        const uint8_t *color = bmp->palette[in[bit / 8] >> (8 - bits - bit % 8) & mask];
        for (uint32_t c = 0; c < image->channels; c++)
            *out++ = color[c];
    }
}

static uint8_t bmp_scale(const struct bmp_sample *sample, uint32_t pixel)
{
    const uint64_t value = pixel >> sample->shift & sample->maximum;
    return sample->maximum ? (uint8_t)(value * 255 / sample->maximum) : 0;
}

static void bmp_take_pixels(const struct bmp_state *bmp, const uint8_t *in,
                            const struct dl2_decode_request *request, uint8_t *out)
{
    const unsigned bytes = bmp->bits / 8;
    in += (size_t)request->x * bytes;
    for (uint32_t i = 0; i < request->width; i++, in += bytes, out += 3) {
        const uint32_t pixel = bytes == 2 ? dl2_read_le16(in)
                                          : dl2_read_le16(in) | (uint32_t)in[2] << 16 |
                                                (bytes == 4 ? (uint32_t)in[3] << 24 : 0);
        const uint8_t alpha = bmp->alpha ? bmp_scale(&bmp->samples[3], pixel) : 255;
        for (int c = 0; c < 3; c++)
            out[c] = dl2_blend(bmp_scale(&bmp->samples[c], pixel), alpha, request->background[c]);
    }
}

static int bmp_read(void *state, const struct dl2_decode_request *request, struct dl2_image *image,
                    struct dl2_raster *raster, struct dl2_error *error)
{
    struct bmp_state *bmp = state;
    const bool packed = bmp->compression == BMP_RLE4 || bmp->compression == BMP_RLE8;
    const uint64_t row_bytes = ((uint64_t)bmp->width * bmp->bits + 7) / 8;
    const uint64_t stride = packed ? bmp->width : (row_bytes + 3) / 4 * 4;
    const uint64_t left = bmp->base.size - bmp->pixels_at;
    /* The last row may lack the bytes that fill it up. */
    if (packed)
        DL2_TRY(bmp_unpack(bmp, error));
    else if (row_bytes > left || (left - row_bytes) / stride < bmp->height - 1)
        return dl2_error_set(error, DL2_ERR_FORMAT, "BMP: the file is cut short");
    const uint8_t *rows = packed ? bmp->base.block.data : bmp->base.data + bmp->pixels_at;
    DL2_TRY(dl2_image_reshape(image, request->width, request->height, bmp->gray ? 1 : 3, error));
    for (uint32_t i = 0; i < request->height; i++) {
        const uint32_t y = request->y + i;
        const uint8_t *in = rows + stride * (bmp->top_down ? y : bmp->height - 1 - y);
        uint8_t *out = image->data + i * image->stride;
        if (bmp->bits <= 8)
            bmp_take_numbers(bmp, in, packed ? 8 : bmp->bits, request->x, image, out);
        else
            bmp_take_pixels(bmp, in, request, out);
    }
    *raster = dl2_raster_of(image, request->x, request->y);
    return DL2_OK;
}

const struct dl2_codec dl2_codec_bmp = {
    .name = "bmp",
    .extension = "bmp",
    .extensions = {"bmp", "dib"},
    .max_effort = -1,
    .pixel_bytes = 4,
    .version = "built in",
    .sniff = bmp_sniff,
    .color = bmp_color,
    .state_size = sizeof(struct bmp_state),
    .open = bmp_open,
    .read = bmp_read,
};
