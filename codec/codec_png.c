/*
 * PNG through libpng. Headers are read here, without it: eight bytes of signature, IHDR, and a walk
 * over the chunks' lengths for transparency and EXIF.
 *
 * 16-bit samples are scaled to 8 with rounding, palettes become colour, alpha is laid over the
 * background by the numbers as coded (no gamma). Gray with alpha stays gray, over the background's
 * luma. Effort is zlib's level, 0 to 9, 6 by default.
 */
#include "codec/codecs.h"
#include "codec/exif.h"

#include <setjmp.h>
#include <stdlib.h>
#include <string.h>

#include <png.h>

enum { DEFAULT_LEVEL = 6, MAX_LEVEL = 9, MAX_CHUNK = 8 << 20, MAX_KEPT_CHUNKS = 128 };

static const uint8_t signature[8] = {0x89, 'P', 'N', 'G', '\r', '\n', 0x1a, '\n'};

static bool sniff(const uint8_t *data, size_t size)
{
    return size >= sizeof signature && !memcmp(data, signature, sizeof signature);
}

static uint32_t read_u32(const uint8_t *p)
{
    return (uint32_t)p[0] << 24 | (uint32_t)p[1] << 16 | (uint32_t)p[2] << 8 | p[3];
}

static int read_info(const uint8_t *data, size_t size, struct dl2_image_info *info,
                     struct dl2_error *error)
{
    /* Signature, IHDR's length and name, its 13 bytes and their checksum. */
    if (size < 33 || read_u32(data + 8) != 13 || memcmp(data + 12, "IHDR", 4) != 0)
        return dl2_error_set(error, DL2_ERR_FORMAT, "PNG: the header is damaged or cut short");
    uint32_t width = read_u32(data + 16), height = read_u32(data + 20);
    uint8_t bits = data[24], type = data[25];
    if (!width || !height || width > PNG_UINT_31_MAX || height > PNG_UINT_31_MAX)
        return dl2_error_set(error, DL2_ERR_FORMAT, "PNG: a size of %ux%u makes no sense",
                             (unsigned)width, (unsigned)height);
    if (type > 6 || type == 1 || type == 5)
        return dl2_error_set(error, DL2_ERR_FORMAT, "PNG: there is no colour type %u", type);
    *info = (struct dl2_image_info){.width = width,
                                    .height = height,
                                    .channels = type & PNG_COLOR_MASK_COLOR ? 3 : 1,
                                    .bits = bits,
                                    .alpha = type & PNG_COLOR_MASK_ALPHA,
                                    .orientation = 1};
    size_t at = 33;
    while (size - at >= 12) {
        uint32_t length = read_u32(data + at);
        if (length > size - at - 12)
            break; /* cut short: decoding will say so */
        if (!memcmp(data + at + 4, "tRNS", 4))
            info->alpha = true;
        else if (!memcmp(data + at + 4, "eXIf", 4))
            info->orientation = dl2_exif_orientation(data + at + 8, length);
        at += (size_t)length + 12;
    }
    return DL2_OK;
}

struct source {
    const uint8_t *data;
    size_t size, at;
};

static void read_bytes(png_structp png, png_bytep out, size_t count)
{
    struct source *source = png_get_io_ptr(png);
    if (count > source->size - source->at)
        png_error(png, "the file is cut short");
    memcpy(out, source->data + source->at, count);
    source->at += count;
}

static void on_error(png_structp png, png_const_charp message)
{
    dl2_error_set(png_get_error_ptr(png), DL2_ERR_FORMAT, "PNG: %s", message);
    png_longjmp(png, 1);
}

/* What libpng merely warns of (odd text, colour profiles) leaves the pixels as they are. */
static void on_warning(png_structp png, png_const_charp message)
{
    (void)png;
    (void)message;
}

/* What a decode holds, so that a jump out of libpng can let go of it. */
struct reader {
    png_structp png;
    png_infop info;
    struct source source;
    const struct dl2_decode_request *part; /* NULL: the whole image */
    struct dl2_bytes *block;               /* a row as libpng gives it, or all of them */
    uint8_t **rows;                        /* of an interlaced image */
    uint8_t background[3];
};

static void flatten_row(const uint8_t *in, uint8_t *out, uint32_t width, uint32_t channels,
                        const uint8_t background[3])
{
    uint8_t gray = dl2_luma(background[0], background[1], background[2]);
    for (uint32_t x = 0; x < width; x++, in += channels + 1, out += channels) {
        uint8_t alpha = in[channels];
        if (channels == 1) {
            out[0] = dl2_blend(in[0], alpha, gray);
        } else {
            for (int c = 0; c < 3; c++)
                out[c] = dl2_blend(in[c], alpha, background[c]);
        }
    }
}

/* A row of the image from where libpng's begins to be wanted. */
static void take_row(const struct reader *reader, const uint8_t *in, struct dl2_image *image,
                     uint32_t y, bool alpha)
{
    uint8_t *out = image->data + y * image->stride;
    if (reader->part)
        in += (size_t)reader->part->x * (image->channels + alpha);
    if (alpha)
        flatten_row(in, out, image->width, image->channels, reader->background);
    else
        memcpy(out, in, image->stride);
}

static int read_interlaced(struct reader *reader, struct dl2_image *image, size_t row_bytes,
                           bool alpha, struct dl2_error *error)
{
    const uint32_t height = png_get_image_height(reader->png, reader->info);
    size_t bytes;
    if (!dl2_size_mul(height, row_bytes, &bytes))
        return dl2_error_set(error, DL2_ERR_LIMIT, "PNG: too large");
    DL2_TRY(dl2_bytes_resize(reader->block, bytes, error));
    reader->rows = dl2_calloc(height, sizeof *reader->rows);
    if (!reader->rows)
        return dl2_error_set(error, DL2_ERR_MEMORY, "out of memory for a PNG image of %u rows",
                             (unsigned)height);
    for (uint32_t y = 0; y < height; y++)
        reader->rows[y] = reader->block->data + y * row_bytes;
    png_read_image(reader->png, reader->rows);
    for (uint32_t y = 0; y < image->height; y++)
        take_row(reader, reader->rows[y + (reader->part ? reader->part->y : 0)], image, y, alpha);
    return DL2_OK;
}

static int read_in_order(struct reader *reader, struct dl2_image *image, size_t row_bytes,
                         bool alpha, struct dl2_error *error)
{
    DL2_TRY(dl2_bytes_resize(reader->block, row_bytes, error));
    for (uint32_t y = 0; reader->part && y < reader->part->y; y++)
        png_read_row(reader->png, reader->block->data, NULL);
    for (uint32_t y = 0; y < image->height; y++) {
        const bool direct = !alpha && !reader->part;
        png_read_row(reader->png, direct ? image->data + y * image->stride : reader->block->data,
                     NULL);
        if (!direct)
            take_row(reader, reader->block->data, image, y, alpha);
    }
    return DL2_OK;
}

/* Jumps out on libpng's errors; those of its own are returned. */
static int read_pixels(struct reader *reader, uint64_t max_pixels, struct dl2_image *image,
                       struct dl2_error *error)
{
    png_structp png = reader->png;
    png_infop info = reader->info;
    png_set_read_fn(png, &reader->source, read_bytes);
    png_set_user_limits(png, PNG_UINT_31_MAX, PNG_UINT_31_MAX); /* pixels are counted below */
    png_set_chunk_malloc_max(png, MAX_CHUNK);
    png_set_chunk_cache_max(png, MAX_KEPT_CHUNKS);
    /* Text and profiles are not wanted: skip them before they are inflated. */
    png_set_keep_unknown_chunks(png, PNG_HANDLE_CHUNK_NEVER, NULL, -1);
    png_read_info(png, info);
    DL2_TRY(dl2_image_check_size(png_get_image_width(png, info), png_get_image_height(png, info),
                                 max_pixels, error));
    int type = png_get_color_type(png, info);
    bool alpha = type & PNG_COLOR_MASK_ALPHA || png_get_valid(png, info, PNG_INFO_tRNS);
    png_set_expand(png);
    png_set_scale_16(png);
    int passes = png_set_interlace_handling(png);
    png_read_update_info(png, info);

    uint32_t channels = type & PNG_COLOR_MASK_COLOR ? 3 : 1;
    if (png_get_bit_depth(png, info) != 8 || png_get_channels(png, info) != channels + alpha)
        return dl2_error_set(error, DL2_ERR_FORMAT, "PNG: inconsistent colour type");
    DL2_TRY(dl2_image_reshape(
        image, reader->part ? reader->part->width : png_get_image_width(png, info),
        reader->part ? reader->part->height : png_get_image_height(png, info), channels, error));
    size_t row_bytes = png_get_rowbytes(png, info);
    if (passes > 1)
        DL2_TRY(read_interlaced(reader, image, row_bytes, alpha, error));
    else
        DL2_TRY(read_in_order(reader, image, row_bytes, alpha, error));
    if (!reader->part)
        png_read_end(png, NULL); /* the last checksum */
    return DL2_OK;
}

static int run_reader(struct reader *reader, uint64_t max_pixels, struct dl2_image *image,
                      struct dl2_error *error)
{
    struct dl2_error own = DL2_ERROR_INIT; /* whose status must be seen even where error is NULL */
    reader->png = png_create_read_struct(PNG_LIBPNG_VER_STRING, &own, on_error, on_warning);
    if (reader->png)
        reader->info = png_create_info_struct(reader->png);
    if (!reader->info)
        dl2_error_set(&own, DL2_ERR_MEMORY, "out of memory for libpng");
    else if (!setjmp(png_jmpbuf(reader->png)))
        read_pixels(reader, max_pixels, image, &own);
    if (own.status < 0)
        dl2_error_set(error, own.status, "%s", own.message);
    png_destroy_read_struct(&reader->png, &reader->info, NULL);
    free(reader->rows);
    return own.status;
}

static int decode(const uint8_t *data, size_t size, const struct dl2_decode_options *options,
                  struct dl2_image *image, struct dl2_error *error)
{
    struct dl2_bytes block = DL2_BYTES_INIT;
    struct reader reader = {.source = {data, size, 0}, .block = &block};
    memcpy(reader.background, options->background, sizeof reader.background);
    int status = run_reader(
        &reader, options->max_pixels ? options->max_pixels : DL2_DEFAULT_MAX_PIXELS, image, error);
    dl2_bytes_free(&block);
    return status;
}

/* ---- A part: the rows down to its last */

struct region {
    const uint8_t *data;
    size_t size;
    struct dl2_image image;
    struct dl2_bytes block;
};

static void region_destroy(void *state)
{
    struct region *region = state;
    dl2_image_free(&region->image);
    dl2_bytes_free(&region->block);
}

static int region_open(void *state, const uint8_t *data, size_t size, struct dl2_image_info *info,
                       struct dl2_error *error)
{
    struct region *region = state;
    region->data = data;
    region->size = size;
    return read_info(data, size, info, error);
}

static int region_decode(void *state, const struct dl2_decode_request *request,
                         struct dl2_raster *raster, struct dl2_error *error)
{
    struct region *region = state;
    struct reader reader = {
        .source = {region->data, region->size, 0}, .part = request, .block = &region->block};
    memcpy(reader.background, request->background, sizeof reader.background);
    /* The header's size was checked when the file was opened. */
    DL2_TRY(run_reader(&reader, UINT64_MAX, &region->image, error));
    if (request->channels == 1)
        DL2_TRY(dl2_image_to_gray(&region->image, error));
    *raster = dl2_raster_of(&region->image, request->x, request->y);
    return DL2_OK;
}

static size_t region_memory(const void *state)
{
    const struct region *region = state;
    return sizeof *region + region->image.capacity + region->block.capacity;
}

static const struct dl2_region_codec region_codec = {
    .state_size = sizeof(struct region),
    .destroy = region_destroy,
    .open = region_open,
    .decode = region_decode,
    .memory = region_memory,
};

struct sink {
    struct dl2_bytes *out;
    struct dl2_error *error; /* encode()'s own, whose status counts */
};

static void write_bytes(png_structp png, png_bytep data, size_t count)
{
    struct sink *sink = png_get_io_ptr(png);
    if (dl2_bytes_append(sink->out, data, count, sink->error) < 0)
        png_longjmp(png, 1);
}

static void flush_nothing(png_structp png)
{
    (void)png;
}

static int level_of(const struct dl2_encode_options *options)
{
    return options->effort < 0 ? DEFAULT_LEVEL : options->effort;
}

static void write_image(png_structp png, png_infop info, const struct dl2_image *image, int level)
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

static int encode(const struct dl2_image *image, const struct dl2_encode_options *options,
                  struct dl2_bytes *out, struct dl2_error *error)
{
    struct dl2_error own = DL2_ERROR_INIT;
    struct sink sink = {out, &own};
    png_infop info = NULL;
    png_structp png = png_create_write_struct(PNG_LIBPNG_VER_STRING, &own, on_error, on_warning);
    if (png)
        info = png_create_info_struct(png);
    if (!info) {
        dl2_error_set(&own, DL2_ERR_MEMORY, "out of memory for libpng");
    } else if (!setjmp(png_jmpbuf(png))) {
        png_set_write_fn(png, &sink, write_bytes, flush_nothing);
        png_set_user_limits(png, PNG_UINT_31_MAX, PNG_UINT_31_MAX);
        write_image(png, info, image, level_of(options));
    }
    if (own.status < 0)
        dl2_error_set(error, own.status, "%s", own.message);
    png_destroy_write_struct(&png, &info);
    return own.status;
}

static json_t *encoder_parameters(const struct dl2_encode_options *options)
{
    return json_pack("{s:i, s:s}", "compression_level", level_of(options), "filters", "default");
}

static const char *version(void)
{
    return "libpng " PNG_LIBPNG_VER_STRING;
}

static const char *const extensions[] = {"png", NULL};

const struct dl2_codec dl2_codec_png = {
    .name = "png",
    .extension = "png",
    .extensions = extensions,
    .lossy = false,
    .max_side = 1000000,
    .max_effort = MAX_LEVEL,
    .effort_help = "zlib's level, default 6",
    .pixel_bytes = 7,
    .version = version,
    .sniff = sniff,
    .read_info = read_info,
    .decode = decode,
    .region = &region_codec,
    .encode = encode,
    .encoder_parameters = encoder_parameters,
};
