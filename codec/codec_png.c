/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * PNG through libpng. Headers are read here, without it: eight bytes of signature, IHDR, and a walk
 * over the chunks' lengths for transparency and EXIF.
 *
 * 16-bit samples are scaled to 8 with rounding, palettes become color (unless a request asks for
 * their numbers), alpha is laid over the background by the numbers as coded (no gamma). Gray with
 * alpha stays gray, over the background's luma. Effort is zlib's level, 0 to 9, 6 by default.
 */
#include "codec/codecs.h"
#include "codec/exif.h"
#include "common/scope.h"

#include <math.h>
#include <setjmp.h>
#include <string.h>

#include <png.h>
#include <zlib.h>

enum { DEFAULT_LEVEL = 6, MAX_LEVEL = 9, MAX_CHUNK = 8 << 20, MAX_KEPT_CHUNKS = 128 };
enum { HEADER = 33, CHUNK = 12, MAX_PROFILE = 16 << 20, SRGB_GAMMA = 45455 };

/* Memory of a read, which must be freed after a jump out of libpng, and memory that is kept. */
struct png_state {
    struct dl2_codec_state base; /* block: a row of libpng's, or all of an interlaced image */
    struct dl2_image_info info;
    png_structp png;
    png_infop png_info;
};

static int png_open(void *state, struct dl2_image_info *info, struct dl2_error *error)
{
    struct png_state *reader = state;
    const uint8_t *const data = reader->base.data;
    const size_t size = reader->base.size;
    /* Signature, IHDR's length and name, its 13 bytes and their checksum. */
    if (size < 33 || dl2_read_u32(data + 8) != 13 || memcmp(data + 12, "IHDR", 4) != 0)
        return dl2_error_set(error, DL2_ERR_FORMAT, "PNG: the header is damaged or cut short");
    info->width = dl2_read_u32(data + 16);
    info->height = dl2_read_u32(data + 20);
    info->bits = data[24];
    const uint8_t type = data[25];
    if (!info->width || !info->height || info->width > PNG_UINT_31_MAX ||
        info->height > PNG_UINT_31_MAX)
        return dl2_error_set(error, DL2_ERR_FORMAT, "PNG: a size of %ux%u makes no sense",
                             (unsigned)info->width, (unsigned)info->height);
    if (type > 6 || type == 1 || type == 5)
        return dl2_error_set(error, DL2_ERR_FORMAT, "PNG: there is no color type %u", type);
    info->channels = type & PNG_COLOR_MASK_COLOR ? 3 : 1;
    info->alpha = type & PNG_COLOR_MASK_ALPHA;
    info->palette = type == PNG_COLOR_TYPE_PALETTE;
    size_t at = HEADER;
    while (size - at >= CHUNK) {
        uint32_t length = dl2_read_u32(data + at);
        if (length > size - at - CHUNK)
            break; /* cut short: decoding will say so */
        if (!memcmp(data + at + 4, "tRNS", 4))
            info->alpha = true;
        else if (!memcmp(data + at + 4, "acTL",
                         4)) /* APNG: frames, of which one may be the image */
            info->has_more = length == 8 && dl2_read_u32(data + at + 8) > 1;
        else if (!memcmp(data + at + 4, "eXIf", 4))
            info->orientation = dl2_exif_orientation(data + at + 8, length);
        at += (size_t)length + CHUNK;
    }
    reader->info = *info;
    return DL2_OK;
}

/* The first whole chunk of that name, or NULL. */
static const uint8_t *png_find_chunk(const uint8_t *data, size_t size, const char *name,
                                     uint32_t *length)
{
    for (size_t at = HEADER; size - at >= CHUNK; at += (size_t)*length + CHUNK) {
        *length = dl2_read_u32(data + at);
        if (*length > size - at - CHUNK)
            return NULL;
        if (!memcmp(data + at + 4, name, 4))
            return data + at + 8;
    }
    return NULL;
}

static size_t png_coded_bytes(const uint8_t *data, size_t size)
{
    size_t coded = 0;
    uint32_t length;
    for (size_t at = HEADER; size >= HEADER && size - at >= CHUNK; at += (size_t)length + CHUNK) {
        length = dl2_read_u32(data + at);
        if (length > size - at - CHUNK)
            return 0;
        coded += memcmp(data + at + 4, "IDAT", 4) ? 0 : length;
    }
    return coded;
}

/* As much as can be inflated, up to MAX_PROFILE. */
static int png_inflate(const uint8_t *data, size_t size, struct dl2_bytes *out, bool *whole,
                       struct dl2_error *error)
{
    uint8_t block[4096];
    z_stream stream = {0};
    if (inflateInit(&stream) != Z_OK)
        return dl2_error_memory(error, "zlib");
    stream.next_in = (uint8_t *)(uintptr_t)data;
    stream.avail_in = (uInt)size;
    int status = DL2_OK, inflated = Z_OK;
    while (status == DL2_OK && inflated == Z_OK && out->size < MAX_PROFILE) {
        stream.next_out = block;
        stream.avail_out = sizeof block;
        inflated = inflate(&stream, Z_NO_FLUSH);
        status = dl2_bytes_append(out, block, sizeof block - stream.avail_out, error);
    }
    inflateEnd(&stream);
    *whole = inflated == Z_STREAM_END;
    return status;
}

/* The profile's length shows damage. */
static int png_inflate_profile(const uint8_t *chunk, uint32_t length, struct dl2_bytes *out,
                               struct dl2_error *error)
{
    const uint8_t *const name_end = memchr(chunk, 0, length);
    const size_t at = name_end ? (size_t)(name_end - chunk) + 2 : length; /* and the method */
    bool whole;
    return at < length ? png_inflate(chunk + at, length - at, out, &whole, error) : DL2_OK;
}

#define PNG_XMP "XML:com.adobe.xmp"

/* A chunk iTXt: if it is XMP's, its text: keyword, 0, compressed?, method, language, 0, the keyword
 * in that language, 0. */
static int png_take_text(const uint8_t *chunk, uint32_t length, struct dl2_metadata *metadata,
                         struct dl2_error *error)
{
    enum { KEYWORD = sizeof PNG_XMP };
    if (length < KEYWORD + 2 || memcmp(chunk, PNG_XMP, KEYWORD) != 0) {
        metadata->other = true;
        return DL2_OK;
    }
    size_t at = KEYWORD + 2;
    for (int skipped = 0; skipped < 2; skipped++) {
        const uint8_t *const end = memchr(chunk + at, 0, length - at);
        at = end ? (size_t)(end - chunk) + 1 : length;
    }
    if (!chunk[KEYWORD] || metadata->xmp.size)
        return dl2_metadata_set_xmp(metadata, chunk + at, length - at, error);
    bool whole;
    DL2_TRY(png_inflate(chunk + at, length - at, &metadata->xmp, &whole, error));
    if (!whole)
        metadata->xmp.size = 0;
    metadata->partial = metadata->partial || !whole;
    return DL2_OK;
}

static int png_metadata(const uint8_t *data, size_t size, struct dl2_metadata *metadata,
                        struct dl2_error *error)
{
    uint32_t length;
    for (size_t at = HEADER; size >= HEADER && size - at >= CHUNK; at += (size_t)length + CHUNK) {
        const uint8_t *const name = data + at + 4;
        length = dl2_read_u32(data + at);
        if (length > size - at - CHUNK)
            break;
        if (!memcmp(name, "eXIf", 4))
            DL2_TRY(dl2_metadata_set_exif(metadata, name + 4, length, error));
        else if (!memcmp(name, "iTXt", 4))
            DL2_TRY(png_take_text(name + 4, length, metadata, error));
        else if (!memcmp(name, "tEXt", 4) || !memcmp(name, "zTXt", 4))
            metadata->other = true;
    }
    return DL2_OK;
}

static bool png_is_near(double a, double b)
{
    return fabs(a - b) <= 0.01 * b;
}

/* cICP counts before iCCP, that before sRGB, that before gAMA and cHRM (PNG, third edition, 4.3). A
 * gAMA of 45455 is how sRGB is said to readers that know nothing else. */
static int png_color_space(const uint8_t *data, size_t size, struct dl2_color_space *color,
                           struct dl2_error *error)
{
    uint32_t length, gamma = SRGB_GAMMA;
    bool same = true;
    const uint8_t *chunk = png_find_chunk(data, size, "cICP", &length);
    if (chunk && length == 4) {
        dl2_color_set_cicp(color, chunk[0], chunk[1]);
        return DL2_OK;
    }
    if ((chunk = png_find_chunk(data, size, "iCCP", &length))) {
        color->form = DL2_COLOR_SPACE_ICC;
        return png_inflate_profile(chunk, length, &color->icc, error);
    }
    if (png_find_chunk(data, size, "sRGB", &length))
        return DL2_OK;
    if ((chunk = png_find_chunk(data, size, "gAMA", &length)) && length == 4 && dl2_read_u32(chunk))
        gamma = dl2_read_u32(chunk);
    memcpy(color->xy, dl2_color_srgb.xy, sizeof color->xy);
    if ((chunk = png_find_chunk(data, size, "cHRM", &length)) && length == 32)
        for (int i = 0; i < 8; i++) /* white comes first there */
            color->xy[i] = dl2_read_u32(chunk + 4 * ((i + 2) % 8)) / 100000.0;
    for (int i = 0; i < 8; i++)
        same = same && png_is_near(color->xy[i], dl2_color_srgb.xy[i]);
    color->gamma = 100000.0 / gamma;
    if (!same || !png_is_near(gamma, SRGB_GAMMA))
        color->form = DL2_COLOR_SPACE_GAMMA;
    return DL2_OK;
}

static void png_read_source(png_structp png, png_bytep out, size_t count)
{
    if (dl2_codec_take(png_get_io_ptr(png), out, count) < count)
        png_error(png, "the file is cut short");
}

static void png_on_error(png_structp png, png_const_charp message)
{
    dl2_error_set(png_get_error_ptr(png), DL2_ERR_FORMAT, "PNG: %s", message);
    png_longjmp(png, 1);
}

/* Warnings (odd text, color profiles) are ignored: the pixels are right. */
static void png_on_warning(png_structp png, png_const_charp message)
{
    (void)png, (void)message;
}

/* The requested part of a row as libpng gives it. */
static void png_take_row(const struct dl2_decode_request *request, const uint8_t *in, bool alpha,
                         uint8_t *out, uint32_t channels)
{
    in += (size_t)request->x * (channels + alpha);
    if (alpha)
        dl2_flatten(in, out, request->width, channels, request->background);
    else
        memcpy(out, in, (size_t)request->width * channels);
}

/* All rows, to `out`; each pass of an interlaced image fills in more of their pixels. */
static void png_take_rows(const struct png_state *reader, int passes, uint8_t *out,
                          size_t row_bytes)
{
    for (int pass = 0; pass < passes; pass++)
        for (uint32_t y = 0; y < reader->info.height; y++)
            png_read_row(reader->png, out + y * row_bytes, NULL);
}

static int png_read_interlaced(struct png_state *reader, const struct dl2_decode_request *request,
                               int passes, size_t row_bytes, bool alpha, struct dl2_image *image,
                               struct dl2_error *error)
{
    size_t bytes;
    if (!dl2_size_mul(reader->info.height, row_bytes, &bytes))
        return dl2_error_set(error, DL2_ERR_LIMIT, "PNG: too large");
    DL2_TRY(dl2_bytes_resize(&reader->base.block, bytes, error));
    png_take_rows(reader, passes, reader->base.block.data, row_bytes);
    for (uint32_t y = 0; y < image->height; y++)
        png_take_row(request, reader->base.block.data + (request->y + y) * row_bytes, alpha,
                     image->data + y * image->stride, image->channels);
    return DL2_OK;
}

static int png_read_in_order(struct png_state *reader, const struct dl2_decode_request *request,
                             size_t row_bytes, bool alpha, struct dl2_image *image,
                             struct dl2_error *error)
{
    const bool direct = !alpha && request->width == reader->info.width;
    DL2_TRY(dl2_bytes_resize(&reader->base.block, row_bytes, error));
    for (uint32_t y = 0; y < request->y; y++)
        png_read_row(reader->png, reader->base.block.data, NULL);
    for (uint32_t y = 0; y < image->height; y++) {
        uint8_t *out = image->data + y * image->stride;
        png_read_row(reader->png, direct ? out : reader->base.block.data, NULL);
        if (!direct)
            png_take_row(request, reader->base.block.data, alpha, out, image->channels);
    }
    return DL2_OK;
}

/* Up to the header; jumps out on libpng's errors. */
static void png_begin(struct png_state *reader)
{
    png_structp png = reader->png;
    png_set_read_fn(png, &reader->base, png_read_source);
    png_set_user_limits(png, PNG_UINT_31_MAX, PNG_UINT_31_MAX); /* decoder.c counts pixels */
    png_set_chunk_malloc_max(png, MAX_CHUNK);
    png_set_chunk_cache_max(png, MAX_KEPT_CHUNKS);
    /* Text and profiles are not wanted: skip them before they are inflated. */
    png_set_keep_unknown_chunks(png, PNG_HANDLE_CHUNK_NEVER, NULL, -1);
    png_read_info(png, reader->png_info);
}

/* Jumps out on libpng's errors; returns its own. */
static int png_read_pixels(struct png_state *reader, const struct dl2_decode_request *request,
                           struct dl2_image *image, struct dl2_error *error)
{
    png_structp png = reader->png;
    png_infop info = reader->png_info;
    png_begin(reader);
    int type = png_get_color_type(png, info);
    const bool indices = request->indices && type == PNG_COLOR_TYPE_PALETTE;
    bool alpha =
        type & PNG_COLOR_MASK_ALPHA || (!indices && png_get_valid(png, info, PNG_INFO_tRNS));
    if (indices)
        png_set_packing(png);
    else
        png_set_expand(png);
    png_set_scale_16(png);
    int passes = png_set_interlace_handling(png);
    png_read_update_info(png, info);

    uint32_t channels = type & PNG_COLOR_MASK_COLOR && !indices ? 3 : 1;
    if (png_get_bit_depth(png, info) != 8 || png_get_channels(png, info) != channels + alpha)
        return dl2_error_set(error, DL2_ERR_FORMAT, "PNG: inconsistent color type");
    DL2_TRY(dl2_image_reshape(image, request->width, request->height, channels, error));
    size_t row_bytes = png_get_rowbytes(png, info);
    if (passes > 1)
        DL2_TRY(png_read_interlaced(reader, request, passes, row_bytes, alpha, image, error));
    else
        DL2_TRY(png_read_in_order(reader, request, row_bytes, alpha, image, error));
    if (request->width == reader->info.width && request->height == reader->info.height)
        png_read_end(png, NULL); /* the last checksum */
    return DL2_OK;
}

/* Likewise, at 16 bits. */
static int png_read_deep_pixels(struct png_state *reader, const uint8_t background[3],
                                struct dl2_deep_image *image, struct dl2_error *error)
{
    png_begin(reader);
    const int type = png_get_color_type(reader->png, reader->png_info);
    const bool transparent = png_get_valid(reader->png, reader->png_info, PNG_INFO_tRNS);
    if (png_get_bit_depth(reader->png, reader->png_info) != 16)
        return dl2_error_set(error, DL2_ERR_FORMAT, "PNG: inconsistent color type");
    if (transparent)
        png_set_tRNS_to_alpha(reader->png);
#if __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
    png_set_swap(reader->png);
#endif
    const int passes = png_set_interlace_handling(reader->png);
    png_read_update_info(reader->png, reader->png_info);
    const uint32_t height = reader->info.height;
    const uint32_t channels = (type & PNG_COLOR_MASK_COLOR ? 3 : 1) +
                              (type & PNG_COLOR_MASK_ALPHA || transparent ? 1 : 0);
    if (png_get_channels(reader->png, reader->png_info) != channels)
        return dl2_error_set(error, DL2_ERR_FORMAT, "PNG: inconsistent color type");
    DL2_TRY(dl2_deep_reshape(image, reader->info.width, height, channels, error));
    if (png_get_rowbytes(reader->png, reader->png_info) * height != image->bytes.size)
        return dl2_error_set(error, DL2_ERR_FORMAT, "PNG: inconsistent rows");
    png_take_rows(reader, passes, image->bytes.data, image->bytes.size / height);
    dl2_flatten_deep(image, background, false);
    return DL2_OK;
}

/* Reads the rectangle into `image`, or everything into `deep`, over the request's background. */
static int png_run(struct png_state *reader, const struct dl2_decode_request *request,
                   struct dl2_image *image, struct dl2_deep_image *deep, struct dl2_error *error)
{
    struct dl2_error own = DL2_ERROR_INIT; /* whose status must be seen even where error is NULL */
    reader->png = png_create_read_struct(PNG_LIBPNG_VER_STRING, &own, png_on_error, png_on_warning);
    if (reader->png)
        reader->png_info = png_create_info_struct(reader->png);
    if (!reader->png_info)
        dl2_error_memory(&own, "libpng");
    else if (!setjmp(png_jmpbuf(reader->png)))
        deep ? png_read_deep_pixels(reader, request->background, deep, &own)
             : png_read_pixels(reader, request, image, &own);
    png_destroy_read_struct(&reader->png, &reader->png_info, NULL);
    return dl2_error_copy(error, &own);
}

static int png_read(void *state, const struct dl2_decode_request *request, struct dl2_image *image,
                    struct dl2_raster *raster, struct dl2_error *error)
{
    const int status = png_run(state, request, image, NULL, error);
    *raster = dl2_raster_of(image, request->x, request->y);
    return status;
}

static int png_read_deep(void *state, const uint8_t background[3], struct dl2_deep_image *image,
                         struct dl2_error *error)
{
    const struct dl2_decode_request request = {
        .background = {background[0], background[1], background[2]}};
    return png_run(state, &request, NULL, image, error);
}

struct png_sink {
    struct dl2_bytes *out;
    struct dl2_error *error; /* png_encode()'s own, whose status counts */
};

static void png_write_sink(png_structp png, png_bytep data, size_t count)
{
    struct png_sink *sink = png_get_io_ptr(png);
    if (dl2_bytes_append(sink->out, data, count, sink->error) < 0)
        png_longjmp(png, 1);
}

static void png_flush_nothing(png_structp png)
{
    (void)png;
}

static int png_level(const struct dl2_encode_options *options)
{
    return options->effort < 0 ? DEFAULT_LEVEL : options->effort;
}

static void png_write_pixels(png_structp png, png_infop info, const struct dl2_image *image,
                             int level)
{
    png_set_IHDR(png, info, image->width, image->height, 8,
                 image->channels == 1 ? PNG_COLOR_TYPE_GRAY : PNG_COLOR_TYPE_RGB,
                 PNG_INTERLACE_NONE, PNG_COMPRESSION_TYPE_DEFAULT, PNG_FILTER_TYPE_DEFAULT);
    png_set_compression_level(png, level);
    png_write_info(png, info);
    for (uint32_t y = 0; y < image->height; y++)
        png_write_row(png, image->data + y * image->stride);
    png_write_end(png, NULL);
}

static int png_put_chunk(struct dl2_bytes *out, const char *name, const uint8_t *data, size_t size,
                         struct dl2_error *error)
{
    uint8_t head[8], sum[4];
    dl2_write_u32(head, (uint32_t)size);
    memcpy(head + 4, name, 4);
    dl2_write_u32(sum, (uint32_t)crc32(crc32(0, head + 4, 4), data, (uInt)size));
    DL2_TRY(dl2_bytes_insert(out, HEADER, sum, sizeof sum, error));
    DL2_TRY(dl2_bytes_insert(out, HEADER, data, size, error));
    return dl2_bytes_insert(out, HEADER, head, sizeof head, error);
}

static int png_put_profile(struct dl2_bytes *out, const struct dl2_bytes *profile,
                           struct dl2_error *error)
{
    static const char head[] = "profile\0"; /* and method 0 */
    struct dl2_bytes chunk = DL2_BYTES_INIT;
    uLongf length = compressBound((uLong)profile->size);
    int status = dl2_bytes_resize(&chunk, sizeof head + length, error);
    if (status == DL2_OK) {
        memcpy(chunk.data, head, sizeof head);
        status =
            compress(chunk.data + sizeof head, &length, profile->data, (uLong)profile->size) == Z_OK
                ? png_put_chunk(out, "iCCP", chunk.data, sizeof head + length, error)
                : dl2_error_memory(error, "zlib");
    }
    dl2_bytes_free(&chunk);
    return status;
}

/* Chunks behind the header of a file that is written. */
static int png_put_color(struct dl2_bytes *out, const struct dl2_color_space *color,
                         struct dl2_error *error)
{
    uint8_t data[32];
    switch (color ? color->form : DL2_COLOR_SPACE_SRGB) {
    case DL2_COLOR_SPACE_ICC:
        return png_put_profile(out, &color->icc, error);
    case DL2_COLOR_SPACE_CICP: /* RGB, full range */
        memcpy(data, (const uint8_t[]){color->primaries, color->transfer, 0, 1}, 4);
        return png_put_chunk(out, "cICP", data, 4, error);
    case DL2_COLOR_SPACE_GAMMA:
        for (int i = 0; i < 8; i++)
            dl2_write_u32(data + 4 * ((i + 2) % 8), (uint32_t)lround(color->xy[i] * 100000));
        DL2_TRY(png_put_chunk(out, "cHRM", data, 32, error));
        dl2_write_u32(data, (uint32_t)lround(100000 / color->gamma));
        return png_put_chunk(out, "gAMA", data, 4, error);
    default:
        return DL2_OK;
    }
}

static int png_put_metadata(struct dl2_bytes *out, const struct dl2_metadata *metadata,
                            struct dl2_error *error)
{
    static const char head[] = PNG_XMP "\0\0\0\0"; /* not compressed, no language */
    if (metadata->exif.size)
        DL2_TRY(png_put_chunk(out, "eXIf", metadata->exif.data, metadata->exif.size, error));
    if (!metadata->xmp.size)
        return DL2_OK;
    DL2_CLEANUP(dl2_bytes_free) struct dl2_bytes chunk = DL2_BYTES_INIT;
    DL2_TRY(dl2_bytes_append(&chunk, head, sizeof head, error));
    DL2_TRY(dl2_bytes_append(&chunk, metadata->xmp.data, metadata->xmp.size, error));
    return png_put_chunk(out, "iTXt", chunk.data, chunk.size, error);
}

/* Turns a gray file into one of numbers of another file's palette. */
static int png_put_palette(struct dl2_bytes *out, const uint8_t *data, size_t size,
                           struct dl2_error *error)
{
    enum { NAME = 12, TYPE = 25, SUM = 29 }; /* places in the header's chunk */
    uint32_t length;
    const uint8_t *chunk = png_find_chunk(data, size, "tRNS", &length);
    if (chunk)
        DL2_TRY(png_put_chunk(out, "tRNS", chunk, length, error));
    if (!(chunk = png_find_chunk(data, size, "PLTE", &length)))
        return dl2_error_set(error, DL2_ERR_FORMAT, "PNG: no palette");
    DL2_TRY(png_put_chunk(out, "PLTE", chunk, length, error));
    out->data[TYPE] = PNG_COLOR_TYPE_PALETTE;
    dl2_write_u32(out->data + SUM, (uint32_t)crc32(0, out->data + NAME, SUM - NAME));
    return DL2_OK;
}

static int png_encode(const struct dl2_image *image, const struct dl2_encode_options *options,
                      struct dl2_bytes *out, struct dl2_error *error)
{
    struct dl2_error own = DL2_ERROR_INIT;
    struct png_sink sink = {out, &own};
    png_infop info = NULL;
    png_structp png =
        png_create_write_struct(PNG_LIBPNG_VER_STRING, &own, png_on_error, png_on_warning);
    if (png)
        info = png_create_info_struct(png);
    if (!info) {
        dl2_error_memory(&own, "libpng");
    } else if (!setjmp(png_jmpbuf(png))) {
        png_set_write_fn(png, &sink, png_write_sink, png_flush_nothing);
        png_set_user_limits(png, PNG_UINT_31_MAX, PNG_UINT_31_MAX);
        png_write_pixels(png, info, image, png_level(options));
    }
    png_destroy_write_struct(&png, &info);
    if (own.status == DL2_OK && options->metadata)
        png_put_metadata(out, options->metadata, &own);
    if (own.status == DL2_OK)
        png_put_color(out, options->color, &own);
    if (own.status == DL2_OK && options->indices)
        png_put_palette(out, options->source, options->source_size, &own);
    return dl2_error_copy(error, &own);
}

static json_t *png_parameters(const struct dl2_encode_options *options)
{
    return json_pack("{s:i, s:s}", "compression_level", png_level(options), "filters", "default");
}

const struct dl2_codec dl2_codec_png = {
    .name = "png",
    .metadata = png_metadata,
    .metadata_bytes = INT32_MAX,
    .extension = "png",
    .extensions = {"png"},
    .max_side = 1000000,
    .has_palette = true,
    .colors = DL2_COLOR_SPACE_ICC | DL2_COLOR_SPACE_CICP | DL2_COLOR_SPACE_GAMMA,
    .max_effort = MAX_LEVEL,
    .usual_effort = DEFAULT_LEVEL,
    .effort_help = "zlib's level",
    .pixel_bytes = 7,
    .version = "libpng " PNG_LIBPNG_VER_STRING,
    .signatures = {{8, "\x89PNG\r\n\x1a\n"}},
    .color = png_color_space,
    .coded_bytes = png_coded_bytes,
    .state_size = sizeof(struct png_state),
    .open = png_open,
    .read = png_read,
    .read_deep = png_read_deep,
    .encode = png_encode,
    .encoder_parameters = png_parameters,
};
