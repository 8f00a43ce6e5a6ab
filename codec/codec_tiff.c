/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * TIFF and BigTIFF through libtiff: the first page of a file; has_more says that others follow.
 * libtiff's RGBA interface makes 8-bit colors of all that it knows (1 to 16 bits, palettes, CMYK
 * by plain arithmetic, YCbCr, strips and tiles), with rounding. CIELab is under D50, as Pillow has
 * it; libtiff would not adapt it to sRGB's white. Signed samples, which libtiff would take for
 * large unsigned ones, floating point and other samples that it does not know are not supported,
 * nor are cameras' raw files, whose first page is a thumbnail. Bands beyond gray or RGB are
 * info->left_out. Nothing is written.
 */
#include "codec/codecs.h"

#include <stdio.h>
#include <string.h>

#include <tiffio.h>

enum { DNG_VERSION = 50706 };

/* Largest piece of memory that libtiff may take for itself. */
#define MAX_PIECE ((tmsize_t)1 << 30)

struct tiff_state {
    struct dl2_codec_state base; /* block: uint32_t, as TIFFRGBAImageGet() fills them, or a tile */
    TIFF *file;
    uint32_t width, height, channels;
    uint16_t alpha;           /* EXTRASAMPLE_...; 0: none */
    struct dl2_error problem; /* libtiff's first */
};

/* ---- What libtiff calls */

static tmsize_t tiff_take(thandle_t handle, void *out, tmsize_t count)
{
    return (tmsize_t)dl2_codec_take(handle, out, (size_t)count);
}

static tmsize_t tiff_put(thandle_t handle, void *in, tmsize_t count)
{
    (void)handle, (void)in, (void)count;
    return -1;
}

static toff_t tiff_seek(thandle_t handle, toff_t offset, int from)
{
    struct dl2_codec_state *state = handle;
    const uint64_t base = from == SEEK_CUR ? state->at : from == SEEK_END ? state->size : 0;
    state->at = offset <= SIZE_MAX - base ? (size_t)(base + offset) : SIZE_MAX;
    return state->at;
}

static int tiff_close_source(thandle_t handle)
{
    (void)handle;
    return 0;
}

static toff_t tiff_size(thandle_t handle)
{
    return ((const struct dl2_codec_state *)handle)->size;
}

/* The bytes are in memory already, so libtiff need not copy them. */
static int tiff_map(thandle_t handle, void **base, toff_t *size)
{
    const struct dl2_codec_state *state = handle;
    *base = (void *)(uintptr_t)state->data;
    *size = state->size;
    return 1;
}

static int tiff_on_error(TIFF *file, void *context, const char *module, const char *format,
                         va_list args)
{
    struct tiff_state *tiff = context;
    char text[256];
    (void)file, (void)module;
    vsnprintf(text, sizeof text, format, args);
    if (!tiff->problem.message[0])
        dl2_error_set(&tiff->problem, DL2_ERR_FORMAT, "TIFF: %s", text);
    return 1;
}

/* Warnings (unknown tags and the like) are ignored: the pixels are right. */
static int tiff_on_warning(TIFF *file, void *context, const char *module, const char *format,
                           va_list args)
{
    (void)file, (void)context, (void)module, (void)format, (void)args;
    return 1;
}

/* ---- The header */

static void tiff_close(void *state)
{
    struct tiff_state *tiff = state;
    if (tiff->file)
        TIFFClose(tiff->file);
    tiff->file = NULL;
}

/* libtiff's first message, or this one. */
static int tiff_fail(const struct tiff_state *tiff, const char *text, struct dl2_error *error)
{
    return dl2_error_set(error, DL2_ERR_FORMAT, "%s",
                         tiff->problem.message[0] ? tiff->problem.message : text);
}

static int tiff_open_file(struct tiff_state *tiff, struct dl2_error *error)
{
    TIFFOpenOptions *options = TIFFOpenOptionsAlloc();
    if (!options)
        return dl2_error_memory(error, "a TIFF image");
    TIFFOpenOptionsSetMaxSingleMemAlloc(options, MAX_PIECE);
    TIFFOpenOptionsSetErrorHandlerExtR(options, tiff_on_error, tiff);
    TIFFOpenOptionsSetWarningHandlerExtR(options, tiff_on_warning, tiff);
    tiff->file = TIFFClientOpenExt("image", "r", tiff, tiff_take, tiff_put, tiff_seek,
                                   tiff_close_source, tiff_size, tiff_map, NULL, options);
    TIFFOpenOptionsFree(options);
    return tiff->file ? DL2_OK : tiff_fail(tiff, "TIFF: the header is damaged", error);
}

/* Is the first page only a small version of what a camera has stored? */
static bool tiff_is_raw(const struct tiff_state *tiff)
{
    uint32_t kind = 0;
    uint16_t count;
    void *version;
    TIFFGetField(tiff->file, TIFFTAG_SUBFILETYPE, &kind);
    return kind & FILETYPE_REDUCEDIMAGE ||
           TIFFGetField(tiff->file, DNG_VERSION, &count, &version) == 1 ||
           (tiff->base.size > 10 && !memcmp(tiff->base.data + 8, "CR", 2));
}

/* Sets tiff->alpha, and info's alpha and bands. A further sample of no stated meaning is no
 * opacity. */
static void tiff_read_extra(struct tiff_state *tiff, struct dl2_image_info *info,
                            uint16_t photometric)
{
    const uint32_t colors = photometric == PHOTOMETRIC_SEPARATED ? 4
                            : photometric == PHOTOMETRIC_PALETTE ? 1
                                                                 : info->channels;
    uint16_t count = 0, samples = 1, *kinds = NULL;
    tiff->alpha = 0;
    TIFFGetFieldDefaulted(tiff->file, TIFFTAG_SAMPLESPERPIXEL, &samples);
    if (samples > 1 &&
        TIFFGetFieldDefaulted(tiff->file, TIFFTAG_EXTRASAMPLES, &count, &kinds) == 1 && count &&
        (kinds[0] == EXTRASAMPLE_ASSOCALPHA || kinds[0] == EXTRASAMPLE_UNASSALPHA))
        tiff->alpha = kinds[0];
    info->alpha = tiff->alpha;
    info->left_out = samples > colors + info->alpha ? samples - colors - info->alpha : 0;
}

static int tiff_check_format(const struct tiff_state *tiff, struct dl2_error *error)
{
    uint16_t format = SAMPLEFORMAT_UINT;
    TIFFGetFieldDefaulted(tiff->file, TIFFTAG_SAMPLEFORMAT, &format);
    if (format == SAMPLEFORMAT_UINT || format == SAMPLEFORMAT_VOID)
        return DL2_OK;
    return dl2_error_set(error, DL2_ERR_UNSUPPORTED,
                         "TIFF: %s samples are not supported: convert them to 8 or 16 bits without "
                         "sign, by the range that matters",
                         format == SAMPLEFORMAT_INT      ? "signed"
                         : format == SAMPLEFORMAT_IEEEFP ? "floating-point"
                                                         : "complex");
}

static int tiff_open(void *state, struct dl2_image_info *info, struct dl2_error *error)
{
    struct tiff_state *tiff = state;
    uint16_t bits, photometric = PHOTOMETRIC_MINISBLACK, orientation;
    char why[1024] = "";
    tiff_close(tiff);
    tiff->problem = (struct dl2_error)DL2_ERROR_INIT;
    DL2_TRY(tiff_open_file(tiff, error));
    if (TIFFGetField(tiff->file, TIFFTAG_IMAGEWIDTH, &tiff->width) != 1 ||
        TIFFGetField(tiff->file, TIFFTAG_IMAGELENGTH, &tiff->height) != 1 || !tiff->width ||
        !tiff->height)
        return tiff_fail(tiff, "TIFF: there is no size in the header", error);
    if (tiff_is_raw(tiff))
        return dl2_error_set(error, DL2_ERR_UNSUPPORTED,
                             "TIFF: the first page is a thumbnail, as in a camera's raw file");
    DL2_TRY(tiff_check_format(tiff, error));
    if (!TIFFRGBAImageOK(tiff->file, why))
        return dl2_error_set(error, DL2_ERR_UNSUPPORTED, "TIFF: %s", why);
    TIFFGetFieldDefaulted(tiff->file, TIFFTAG_BITSPERSAMPLE, &bits);
    TIFFGetFieldDefaulted(tiff->file, TIFFTAG_ORIENTATION, &orientation);
    TIFFGetField(tiff->file, TIFFTAG_PHOTOMETRIC, &photometric);
    tiff->channels =
        photometric == PHOTOMETRIC_MINISBLACK || photometric == PHOTOMETRIC_MINISWHITE ? 1 : 3;
    info->width = tiff->width;
    info->height = tiff->height;
    info->channels = tiff->channels;
    info->bits = bits;
    info->cmyk = photometric == PHOTOMETRIC_SEPARATED;
    tiff_read_extra(tiff, info, photometric);
    info->orientation = orientation >= 1 && orientation <= 8 ? orientation : 1;
    info->has_more = !TIFFLastDirectory(tiff->file);
    return DL2_OK;
}

static int tiff_color(const uint8_t *data, size_t size, struct dl2_color_space *color,
                      struct dl2_error *error)
{
    struct tiff_state tiff = {.base = {.data = data, .size = size}, .problem = DL2_ERROR_INIT};
    uint32_t bytes = 0;
    void *profile = NULL;
    int status = tiff_open_file(&tiff, error);
    if (status == DL2_OK && TIFFGetField(tiff.file, TIFFTAG_ICCPROFILE, &bytes, &profile) == 1)
        status = dl2_color_set_icc(color, profile, bytes, error);
    tiff_close(&tiff);
    return status;
}

/* A TIFF's EXIF is spread over it, and has no block of its own. */
static int tiff_metadata(const uint8_t *data, size_t size, struct dl2_metadata *metadata,
                         struct dl2_error *error)
{
    struct tiff_state tiff = {.base = {.data = data, .size = size}, .problem = DL2_ERROR_INIT};
    uint32_t bytes = 0;
    uint64_t folder = 0;
    void *packet = NULL;
    int status = tiff_open_file(&tiff, error);
    if (status == DL2_OK && TIFFGetField(tiff.file, TIFFTAG_XMLPACKET, &bytes, &packet) == 1)
        status = dl2_metadata_set_xmp(metadata, packet, bytes, error);
    metadata->partial =
        metadata->partial || (tiff.file && TIFFGetField(tiff.file, TIFFTAG_EXIFIFD, &folder) == 1);
    tiff_close(&tiff);
    return status;
}

/* ---- Pixels */

static uint8_t tiff_round(uint32_t value)
{
    return (uint8_t)((value * 255 + 32767) / 65535);
}

/* libtiff's own for 16-bit gray rounds down, and does without opacities. */
static void tiff_put_gray16(TIFFRGBAImage *reader, uint32_t *out, uint32_t x, uint32_t y,
                            uint32_t width, uint32_t height, int32_t in_gap, int32_t out_gap,
                            unsigned char *in)
{
    const size_t step = reader->samplesperpixel * sizeof(uint16_t);
    /* Damaged files may name an opacity that is not there. */
    const bool has_alpha = reader->alpha && reader->samplesperpixel > 1;
    const bool inverted = reader->photometric == PHOTOMETRIC_MINISWHITE;
    (void)x;
    for (y = 0; y < height; y++) {
        for (x = 0; x < width; x++, in += step) {
            uint16_t samples[2] = {0, UINT16_MAX};
            memcpy(samples, in, has_alpha ? sizeof samples : sizeof *samples);
            const uint32_t gray = tiff_round(inverted ? UINT16_MAX - samples[0] : samples[0]);
            *out++ = gray | gray << 8 | gray << 16 | (uint32_t)tiff_round(samples[1]) << 24;
        }
        in += (ptrdiff_t)in_gap * (ptrdiff_t)step;
        out += out_gap;
    }
}

/* L* without a sign, a* and b* with one, of 8 or 16 bits. */
static void tiff_put_lab(TIFFRGBAImage *reader, uint32_t *out, uint32_t x, uint32_t y,
                         uint32_t width, uint32_t height, int32_t in_gap, int32_t out_gap,
                         unsigned char *in)
{
    const bool wide = reader->bitspersample == 16;
    const size_t step = reader->samplesperpixel * (wide ? sizeof(uint16_t) : 1);
    (void)x;
    for (y = 0; y < height; y++) {
        for (x = 0; x < width; x++, in += step) {
            double lab[3] = {in[0] / 2.55, (int8_t)in[1], (int8_t)in[2]};
            uint16_t samples[3];
            uint8_t rgb[3];
            if (wide) {
                memcpy(samples, in, sizeof samples);
                lab[0] = samples[0] / 655.35;
                lab[1] = (int16_t)samples[1] / 256.0;
                lab[2] = (int16_t)samples[2] / 256.0;
            }
            dl2_lab_to_srgb(lab, false, rgb);
            *out++ = rgb[0] | (uint32_t)rgb[1] << 8 | (uint32_t)rgb[2] << 16 | 0xffu << 24;
        }
        in += (ptrdiff_t)in_gap * (ptrdiff_t)step;
        out += out_gap;
    }
}

/* Rows first .. first + count - 1 as they lie in the file. */
static int tiff_read_rows(struct tiff_state *tiff, uint32_t first, uint32_t count,
                          struct dl2_error *error)
{
    TIFFRGBAImage reader;
    char why[1024] = "";
    size_t bytes;
    if (!dl2_size_mul(tiff->width, count, &bytes) || !dl2_size_mul(bytes, sizeof(uint32_t), &bytes))
        return dl2_error_set(error, DL2_ERR_LIMIT, "TIFF: too large");
    DL2_TRY(dl2_bytes_resize(&tiff->base.block, bytes, error));
    if (!TIFFRGBAImageBegin(&reader, tiff->file, 1, why))
        return dl2_error_set(error, DL2_ERR_FORMAT, "TIFF: %s", why);
    reader.req_orientation = reader.orientation;
    reader.row_offset = (int)first;
    if (tiff->channels == 1 && reader.isContig && reader.bitspersample == 16)
        reader.put.contig = tiff_put_gray16;
    if (reader.photometric == PHOTOMETRIC_CIELAB && reader.isContig && !reader.alpha &&
        reader.samplesperpixel >= 3 && (reader.bitspersample == 8 || reader.bitspersample == 16))
        reader.put.contig = tiff_put_lab;
    const int good =
        TIFFRGBAImageGet(&reader, (uint32_t *)(void *)tiff->base.block.data, tiff->width, count);
    TIFFRGBAImageEnd(&reader);
    return good && !tiff->problem.message[0] ? DL2_OK
                                             : tiff_fail(tiff, "TIFF: the file is damaged", error);
}

/* libtiff multiplies colors by their opacities, but not gray levels by opacities that it was told
 * to be separate. */
static uint8_t tiff_blend(const struct tiff_state *tiff, unsigned value, unsigned alpha,
                          unsigned background)
{
    if (!tiff->alpha)
        return (uint8_t)value;
    if (tiff->channels == 1 && tiff->alpha == EXTRASAMPLE_UNASSALPHA)
        return dl2_blend(value, alpha, background);
    const unsigned sum = value + (background * (255 - alpha) + 127) / 255;
    return (uint8_t)(sum < 255 ? sum : 255);
}

static int tiff_read(void *state, const struct dl2_decode_request *request, struct dl2_image *image,
                     struct dl2_raster *raster, struct dl2_error *error)
{
    struct tiff_state *tiff = state;
    const uint8_t *back = request->background;
    const uint8_t gray = dl2_luma(back[0], back[1], back[2]);
    DL2_TRY(tiff_read_rows(tiff, request->y, request->height, error));
    DL2_TRY(dl2_image_reshape(image, request->width, request->height, tiff->channels, error));
    const uint32_t *pixels = (const uint32_t *)(const void *)tiff->base.block.data;
    for (uint32_t y = 0; y < request->height; y++) {
        const uint32_t *in = pixels + (size_t)y * tiff->width + request->x;
        uint8_t *out = image->data + y * image->stride;
        for (uint32_t x = 0; x < request->width; x++, in++) {
            const unsigned alpha = TIFFGetA(*in);
            if (tiff->channels == 1) {
                *out++ = tiff_blend(tiff, TIFFGetR(*in), alpha, gray);
                continue;
            }
            *out++ = tiff_blend(tiff, TIFFGetR(*in), alpha, back[0]);
            *out++ = tiff_blend(tiff, TIFFGetG(*in), alpha, back[1]);
            *out++ = tiff_blend(tiff, TIFFGetB(*in), alpha, back[2]);
        }
    }
    *raster = dl2_raster_of(image, request->x, request->y);
    return DL2_OK;
}

/* Gray and RGB of 16 bits, in strips or tiles of whole pixels. */
static bool tiff_is_plain_deep(const struct tiff_state *tiff)
{
    uint16_t bits, samples, format, planar, photometric = PHOTOMETRIC_PALETTE;
    TIFFGetFieldDefaulted(tiff->file, TIFFTAG_BITSPERSAMPLE, &bits);
    TIFFGetFieldDefaulted(tiff->file, TIFFTAG_SAMPLESPERPIXEL, &samples);
    TIFFGetFieldDefaulted(tiff->file, TIFFTAG_SAMPLEFORMAT, &format);
    TIFFGetFieldDefaulted(tiff->file, TIFFTAG_PLANARCONFIG, &planar);
    TIFFGetField(tiff->file, TIFFTAG_PHOTOMETRIC, &photometric);
    return bits == 16 && samples == tiff->channels + (tiff->alpha ? 1 : 0) &&
           format == SAMPLEFORMAT_UINT && planar == PLANARCONFIG_CONTIG &&
           (photometric == PHOTOMETRIC_MINISBLACK || photometric == PHOTOMETRIC_MINISWHITE ||
            photometric == PHOTOMETRIC_RGB);
}

static bool tiff_read_deep_strips(struct tiff_state *tiff, struct dl2_deep_image *image)
{
    const size_t row = (size_t)image->width * image->channels * sizeof(uint16_t);
    if (TIFFScanlineSize64(tiff->file) != row)
        return false;
    for (uint32_t y = 0; y < image->height; y++)
        if (TIFFReadScanline(tiff->file, dl2_deep_row(image, y), y, 0) < 0)
            return false;
    return true;
}

/* A tile at a time, which may reach beyond the image. */
static bool tiff_read_deep_tiles(struct tiff_state *tiff, struct dl2_deep_image *image)
{
    const size_t pixel = image->channels * sizeof(uint16_t);
    uint32_t width = 0, height = 0;
    size_t row, bytes;
    TIFFGetField(tiff->file, TIFFTAG_TILEWIDTH, &width);
    TIFFGetField(tiff->file, TIFFTAG_TILELENGTH, &height);
    if (!width || !height || !dl2_size_mul(width, pixel, &row) ||
        !dl2_size_mul(row, height, &bytes) || bytes > MAX_PIECE ||
        TIFFTileSize64(tiff->file) != bytes ||
        dl2_bytes_resize(&tiff->base.block, bytes, &tiff->problem) < 0)
        return false;
    for (uint64_t top = 0; top < image->height; top += height)
        for (uint64_t left = 0; left < image->width; left += width) {
            const uint64_t right = image->width - left < width ? image->width - left : width;
            const uint64_t bottom = image->height - top < height ? image->height - top : height;
            if (TIFFReadTile(tiff->file, tiff->base.block.data, (uint32_t)left, (uint32_t)top, 0,
                             0) < 0)
                return false;
            for (uint64_t y = 0; y < bottom; y++)
                memcpy(dl2_deep_row(image, (uint32_t)(top + y)) + left * image->channels,
                       tiff->base.block.data + y * row, right * pixel);
        }
    return true;
}

static int tiff_read_deep(void *state, const uint8_t background[3], struct dl2_deep_image *image,
                          struct dl2_error *error)
{
    struct tiff_state *tiff = state;
    uint16_t photometric = PHOTOMETRIC_RGB;
    if (!tiff_is_plain_deep(tiff))
        return dl2_error_set(error, DL2_ERR_UNSUPPORTED, "TIFF: not read at 16 bits");
    DL2_TRY(dl2_deep_reshape(image, tiff->width, tiff->height,
                             tiff->channels + (tiff->alpha ? 1 : 0), error));
    if (!(TIFFIsTiled(tiff->file) ? tiff_read_deep_tiles(tiff, image)
                                  : tiff_read_deep_strips(tiff, image)))
        return tiff_fail(tiff, "TIFF: the file is damaged", error);
    TIFFGetField(tiff->file, TIFFTAG_PHOTOMETRIC, &photometric);
    uint16_t *samples = dl2_deep_row(image, 0);
    const size_t count = image->bytes.size / sizeof *samples;
    for (size_t i = 0; photometric == PHOTOMETRIC_MINISWHITE && i < count; i += image->channels)
        samples[i] = (uint16_t)(UINT16_MAX - samples[i]);
    dl2_flatten_deep(image, background, tiff->alpha == EXTRASAMPLE_ASSOCALPHA);
    return DL2_OK;
}

/* "LIBTIFF, Version 4.5.0" and lines about copyright. */
static void tiff_version(char out[DL2_CODEC_VERSION_SIZE])
{
    const char *version = strstr(TIFFGetVersion(), "Version ");
    const char *number = version ? version + strlen("Version ") : "";
    snprintf(out, DL2_CODEC_VERSION_SIZE, "libtiff %.*s", (int)strcspn(number, "\n"), number);
}

const struct dl2_codec dl2_codec_tiff = {
    .name = "tiff",
    .metadata = tiff_metadata,
    .extension = "tif",
    .extensions = {"tif", "tiff"},
    .max_effort = -1,
    .pixel_bytes = 12,
    .find_version = tiff_version,
    .signatures = {{8, "II*\0????"}, {8, "MM\0*????"}, {8, "II+\0????"}, {8, "MM\0+????"}},
    .color = tiff_color,
    .state_size = sizeof(struct tiff_state),
    .open = tiff_open,
    .read = tiff_read,
    .read_deep = tiff_read_deep,
    .close = tiff_close,
};
