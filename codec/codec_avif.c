/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * AVIF through libavif; written with libaom unless another encoder is chosen.
 *
 * Quality is mapped to libaom's cq-level (constant quality, 0 best to 63 worst) as libavif 1.0 and
 * later map theirs: cq-level = floor(((100 - quality) * 63 + 50) / 100), so quality 50 is 32, 100
 * is 0, and figures compare with `avifenc -q`. (libavif 0.11 has no quality field, and its default
 * is lossless.) The other AV1 encoders get it as their quantizer, which means something else: the
 * same quality is another size there. libavif tunes libaom for SSIM unless told otherwise; 1.4
 * changes that, so it is always told. SVT-AV1 is left out: it writes logs to stderr, and takes no
 * image below 64 pixels a side.
 * Encoding uses one thread: more would change the bytes. Effort is 10 less libavif's speed, 0 to
 * 10, 4 by default, so that a higher one is smaller and slower as with every codec.
 *
 * YCbCr by BT.601, full range, tagged sRGB unless the pixels are something else. Gray stays gray
 * (4:0:0). irot and imir are given as an EXIF orientation; a clean aperture (clap) is not cut out.
 * The first image of a sequence is read.
 */
#include "codec/codecs.h"
#include "common/scope.h"

#include <stdio.h>
#include <string.h>

#include <avif/avif.h>

enum { DEFAULT_EFFORT = 4, MAX_EFFORT = 10, WORST_CQ_LEVEL = 63 };

/* An ftyp box whose major brand, or one of the first compatible ones, is AVIF's. */
static bool avif_sniff(const uint8_t *data, size_t size)
{
    if (size < 16 || memcmp(data + 4, "ftyp", 4) != 0)
        return false;
    size_t end = dl2_read_u32(data);
    if (end > 64)
        end = 64;
    if (end > size)
        end = size;
    for (size_t at = 8; at + 4 <= end; at += at == 8 ? 8 : 4) {
        if (!memcmp(data + at, "avif", 4) || !memcmp(data + at, "avis", 4))
            return true;
    }
    return false;
}

/* What boxes `mdat` hold. */
static size_t avif_coded_bytes(const uint8_t *data, size_t size)
{
    size_t coded = 0, length;
    for (size_t at = 0; size - at >= 8; at += length) {
        length = dl2_read_u32(data + at);
        if (!length) /* to the end */
            length = size - at;
        if (length < 8 || length > size - at) /* 1 is a length of 64 bits, of 4 GB and more */
            return 0;
        coded += memcmp(data + at + 4, "mdat", 4) ? 0 : length - 8;
    }
    return coded;
}

static int avif_fail(avifResult result, const avifDiagnostics *diagnostics, struct dl2_error *error)
{
    int status = DL2_ERR_FORMAT;
    if (result == AVIF_RESULT_OUT_OF_MEMORY)
        status = DL2_ERR_MEMORY;
    else if (result == AVIF_RESULT_NO_CODEC_AVAILABLE || result == AVIF_RESULT_NOT_IMPLEMENTED ||
             result == AVIF_RESULT_UNSUPPORTED_DEPTH)
        status = DL2_ERR_UNSUPPORTED;
    const char *detail = diagnostics ? diagnostics->error : "";
    return dl2_error_set(error, status, "AVIF: %s%s%.200s", avifResultToString(result),
                         *detail ? ": " : "", detail);
}

/* 0: top and bottom are exchanged; 1: left and right. libavif 1.0 gave it
 * its name in the standard. */
static int avif_mirror_axis(const avifImage *image)
{
#if AVIF_VERSION_MAJOR >= 1
    return image->imir.axis & 1;
#else
    return image->imir.mode & 1;
#endif
}

/* irot turns counterclockwise by quarters, then imir mirrors: top to bottom (0) or left to right.
 */
static int avif_orientation(const avifImage *image)
{
    static const int turned[4] = {1, 8, 3, 6};
    static const int mirrored[4][2] = {{4, 2}, {5, 7}, {2, 4}, {7, 5}};
    int angle = image->transformFlags & AVIF_TRANSFORM_IROT ? image->irot.angle & 3 : 0;
    if (image->transformFlags & AVIF_TRANSFORM_IMIR)
        return mirrored[angle][avif_mirror_axis(image)];
    return turned[angle];
}

static uint32_t avif_channels(const avifImage *image)
{
    return image->yuvFormat == AVIF_PIXEL_FORMAT_YUV400 ? 1 : 3;
}

/* libavif decodes whole images; of these only the rectangle is converted, or nothing. */
struct avif_state {
    struct dl2_codec_state base;
    avifDecoder *decoder; /* of the open file; owns the planes */
    avifImage *view;      /* of a rectangle of them */
};

static void avif_drop(avifDecoder **decoder)
{
    if (*decoder)
        avifDecoderDestroy(*decoder);
}

/* Makes *out a decoder that has parsed the boxes, with those of metadata or without. The caller
 * drops it, after an error too. */
static int avif_parse(avifDecoder **out, const uint8_t *data, size_t size, bool metadata,
                      struct dl2_error *error)
{
    avifDecoder *decoder = *out = avifDecoderCreate();
    if (!decoder)
        return dl2_error_memory(error, "libavif");
    decoder->maxThreads = 1;
    decoder->ignoreExif = decoder->ignoreXMP = metadata ? AVIF_FALSE : AVIF_TRUE;
    /* Files of older encoders lack what this asks for; browsers read them all the same. */
    decoder->strictFlags = AVIF_STRICT_DISABLED;
    avifResult result = avifDecoderSetIOMemory(decoder, data, size);
    if (result == AVIF_RESULT_OK)
        result = avifDecoderParse(decoder);
    return result == AVIF_RESULT_OK ? DL2_OK : avif_fail(result, &decoder->diag, error);
}

static int avif_color(const uint8_t *data, size_t size, struct dl2_color_space *color,
                      struct dl2_error *error)
{
    DL2_CLEANUP(avif_drop) avifDecoder *decoder = NULL;
    DL2_TRY(avif_parse(&decoder, data, size, false, error));
    const avifImage *image = decoder->image;
    if (image->icc.size)
        return dl2_color_set_icc(color, image->icc.data, image->icc.size, error);
    dl2_color_set_cicp(color, image->colorPrimaries, image->transferCharacteristics);
    return DL2_OK;
}

static int avif_metadata(const uint8_t *data, size_t size, struct dl2_metadata *metadata,
                         struct dl2_error *error)
{
    DL2_CLEANUP(avif_drop) avifDecoder *decoder = NULL;
    DL2_TRY(avif_parse(&decoder, data, size, true, error));
    const avifImage *image = decoder->image;
    if (image->exif.size)
        DL2_TRY(dl2_metadata_set_exif(metadata, image->exif.data, image->exif.size, error));
    return image->xmp.size ? dl2_metadata_set_xmp(metadata, image->xmp.data, image->xmp.size, error)
                           : DL2_OK;
}

static int avif_open(void *state, struct dl2_image_info *info, struct dl2_error *error)
{
    struct avif_state *avif = state;
    avif_drop(&avif->decoder);
    avif->decoder = NULL;
    if (!avif->view && !(avif->view = avifImageCreateEmpty()))
        return dl2_error_memory(error, "libavif");
    DL2_TRY(avif_parse(&avif->decoder, avif->base.data, avif->base.size, false, error));
    avifDecoder *decoder = avif->decoder;
    /* decoder.c checks the header's size; the frames inside may be of another size. */
    if (avif->base.max_pixels < decoder->imageSizeLimit)
        decoder->imageSizeLimit = (uint32_t)avif->base.max_pixels;
    const avifImage *image = decoder->image;
    info->width = image->width;
    info->height = image->height;
    info->channels = avif_channels(image);
    info->bits = image->depth;
    info->alpha = decoder->alphaPresent;
    info->has_more = decoder->imageCount > 1;
    info->orientation = avif_orientation(image);
    return DL2_OK;
}

/* Decodes the first image, which must be what the header announced. */
static int avif_next_image(avifDecoder *decoder, struct dl2_error *error)
{
    const avifImage *yuv = decoder->image;
    const uint32_t width = yuv->width, height = yuv->height, channels = avif_channels(yuv);
    avifResult result = avifDecoderNextImage(decoder);
    if (result != AVIF_RESULT_OK)
        return avif_fail(result, &decoder->diag, error);
    if (yuv->width != width || yuv->height != height || avif_channels(yuv) != channels)
        return dl2_error_set(error, DL2_ERR_FORMAT,
                             "AVIF: the image is not what the file's header says");
    return DL2_OK;
}

/* From libavif's interleaved output, RGB or RGBA, to an image of one or three channels. */
static void avif_take_pixels(const uint8_t *in, bool alpha, const uint8_t background[3],
                             struct dl2_image *image)
{
    uint8_t *out = image->data;
    uint8_t under = dl2_luma(background[0], background[1], background[2]);
    size_t step = alpha ? 4 : 3;
    for (size_t left = (size_t)image->width * image->height; left; left--, in += step) {
        unsigned opacity = alpha ? in[3] : 255;
        if (image->channels == 1) {
            *out++ = dl2_blend(in[0], opacity, under);
        } else {
            for (int c = 0; c < 3; c++)
                *out++ = dl2_blend(in[c], opacity, background[c]);
        }
    }
}

static bool avif_is_plain_gray(const avifImage *yuv)
{
    return avif_channels(yuv) == 1 && !yuv->alphaPlane && yuv->depth == 8 &&
           yuv->yuvRange == AVIF_RANGE_FULL;
}

/* `block` is memory for what libavif can't write into `image` itself. */
static int avif_convert(const avifImage *yuv, const uint8_t background[3], struct dl2_bytes *block,
                        struct dl2_image *image, struct dl2_error *error)
{
    bool alpha = yuv->alphaPlane;
    DL2_TRY(dl2_image_reshape(image, yuv->width, yuv->height, avif_channels(yuv), error));
    bool direct = image->channels == 3 && !alpha;
    size_t row = direct ? image->stride : (size_t)image->width * (alpha ? 4 : 3);
    if (row > UINT32_MAX)
        return dl2_error_set(error, DL2_ERR_LIMIT, "AVIF: too wide");
    if (!direct)
        DL2_TRY(dl2_bytes_resize(block, row * image->height, error));
    avifRGBImage rgb;
    avifRGBImageSetDefaults(&rgb, yuv);
    rgb.depth = 8;
    rgb.format = alpha ? AVIF_RGB_FORMAT_RGBA : AVIF_RGB_FORMAT_RGB;
    rgb.pixels = direct ? image->data : block->data;
    rgb.rowBytes = (uint32_t)row;
    avifResult result = avifImageYUVToRGB(yuv, &rgb);
    if (result != AVIF_RESULT_OK)
        return avif_fail(result, NULL, error);
    if (!direct)
        avif_take_pixels(block->data, alpha, background, image);
    return DL2_OK;
}

/* Are these planes that a raster can be: 8 bits, opaque, BT.601 (which is also what libavif takes
 * an unnamed matrix for)? */
static bool avif_is_plain_ycbcr(const avifImage *yuv)
{
    return avif_channels(yuv) == 3 && !yuv->alphaPlane && yuv->depth == 8 &&
           (yuv->matrixCoefficients == AVIF_MATRIX_COEFFICIENTS_BT601 ||
            yuv->matrixCoefficients == AVIF_MATRIX_COEFFICIENTS_BT470BG ||
            yuv->matrixCoefficients == AVIF_MATRIX_COEFFICIENTS_UNSPECIFIED);
}

static void avif_set_planes(const avifImage *yuv, struct dl2_raster *raster)
{
    avifPixelFormatInfo format;
    avifGetPixelFormatInfo(yuv->yuvFormat, &format);
    raster->color = avif_channels(yuv) == 1            ? DL2_COLOR_GRAY
                    : yuv->yuvRange == AVIF_RANGE_FULL ? DL2_COLOR_YCBCR
                                                       : DL2_COLOR_YCBCR_LIMITED;
    for (unsigned i = 0; i < dl2_raster_planes(raster); i++)
        raster->planes[i] = dl2_plane_of(yuv->yuvPlanes[i], yuv->yuvRowBytes[i], yuv->width,
                                         yuv->height, i ? (unsigned)format.chromaShiftX : 0,
                                         i ? (unsigned)format.chromaShiftY : 0);
}

/* Chroma is upsampled from its neighbors: a margin makes the rectangle's the whole image's. */
enum { MARGIN = 2 };

static int avif_read(void *state, const struct dl2_decode_request *request, struct dl2_image *image,
                     struct dl2_raster *raster, struct dl2_error *error)
{
    struct avif_state *avif = state;
    DL2_TRY(avif_next_image(avif->decoder, error));
    const avifImage *yuv = avif->decoder->image;
    if (avif_is_plain_gray(yuv) ||
        (request->planes && request->channels != 1 && avif_is_plain_ycbcr(yuv))) {
        avif_set_planes(yuv, raster);
        return DL2_OK;
    }
    avifCropRect rect = {request->x, request->y, request->width, request->height};
    dl2_widen(&rect.x, &rect.width, MARGIN, 2, yuv->width);
    dl2_widen(&rect.y, &rect.height, MARGIN, 2, yuv->height);
    avifResult result = avifImageSetViewRect(avif->view, yuv, &rect);
    if (result != AVIF_RESULT_OK)
        return avif_fail(result, NULL, error);
    DL2_TRY(avif_convert(avif->view, request->background, &avif->base.block, image, error));
    *raster = dl2_raster_of(image, rect.x, rect.y);
    return DL2_OK;
}

/* libavif writes no gray: of gray images, R of its R = G = B. */
static int avif_read_deep(void *state, const uint8_t background[3], struct dl2_deep_image *image,
                          struct dl2_error *error)
{
    struct avif_state *avif = state;
    const avifImage *yuv = avif->decoder->image;
    DL2_TRY(avif_next_image(avif->decoder, error));
    const uint32_t channels = avif_channels(yuv), coded = yuv->alphaPlane ? 4 : 3;
    avifRGBImage rgb;
    avifRGBImageSetDefaults(&rgb, yuv);
    rgb.depth = 16;
    rgb.format = coded == 4 ? AVIF_RGB_FORMAT_RGBA : AVIF_RGB_FORMAT_RGB;
    rgb.rowBytes = yuv->width * coded * (uint32_t)sizeof(uint16_t);
    DL2_TRY(dl2_deep_reshape(image, yuv->width, yuv->height, coded, error));
    rgb.pixels = image->bytes.data;
    const avifResult result = avifImageYUVToRGB(yuv, &rgb);
    if (result != AVIF_RESULT_OK)
        return avif_fail(result, NULL, error);
    uint16_t *out = dl2_deep_row(image, 0);
    const uint16_t *in = out;
    for (size_t i = (size_t)yuv->width * yuv->height; channels == 1 && i; i--, in += coded) {
        *out++ = in[0];
        if (coded == 4)
            *out++ = in[3];
    }
    image->channels = channels + coded - 3;
    dl2_flatten_deep(image, background, false);
    return DL2_OK;
}

static void avif_close(void *state)
{
    struct avif_state *avif = state;
    avif_drop(&avif->decoder);
    if (avif->view)
        avifImageDestroy(avif->view);
}

static int avif_cq_level(const struct dl2_encode_options *options)
{
    return ((100 - options->quality) * WORST_CQ_LEVEL + 50) / 100;
}

enum { ENCODER, DEPTH, TUNE };
enum { AOM, RAV1E };
static const char *const avif_encoders[] = {"aom", "rav1e", NULL};
static const char *const avif_depths[] = {"8", "10", "12", NULL};
static const char *const avif_tunes[] = {"ssim", "psnr", NULL};
static const struct dl2_setting avif_settings[] = {
    [ENCODER] = {.name = "encoder",
                 .words = avif_encoders,
                 .help = "the AV1 encoder, of those that this libavif has"},
    [DEPTH] = {.name = "depth", .words = avif_depths, .help = "bits a sample in the file"},
    [TUNE] = {.name = "tune", .words = avif_tunes, .help = "what aom optimizes"},
    {.name = NULL}};

static int avif_setting(const struct dl2_encode_options *options, unsigned row)
{
    return (int)dl2_setting_value(avif_settings, options, row);
}

static avifCodecChoice avif_choice(const struct dl2_encode_options *options)
{
    return avif_setting(options, ENCODER) == RAV1E ? AVIF_CODEC_CHOICE_RAV1E
                                                   : AVIF_CODEC_CHOICE_AOM;
}

static int avif_check(const struct dl2_encode_options *options, struct dl2_error *error)
{
    const int encoder = avif_setting(options, ENCODER);
    const char *name = avif_encoders[encoder];
    if (!avifCodecName(avif_choice(options), AVIF_CODEC_FLAG_CAN_ENCODE))
        return dl2_error_set(error, DL2_ERR_ARGUMENT, "avif: this libavif has no encoder %s", name);
    if (encoder != AOM && avif_setting(options, TUNE))
        return dl2_error_set(error, DL2_ERR_ARGUMENT, "avif: tune has no effect on %s", name);
    return DL2_OK;
}

static int avif_speed(const struct dl2_encode_options *options)
{
    return MAX_EFFORT - (options->effort < 0 ? DEFAULT_EFFORT : options->effort);
}

static avifPixelFormat avif_format(const struct dl2_image *image, const char *subsampling)
{
    if (image->channels == 1)
        return AVIF_PIXEL_FORMAT_YUV400;
    if (!strcmp(subsampling, "444"))
        return AVIF_PIXEL_FORMAT_YUV444;
    return !strcmp(subsampling, "422") ? AVIF_PIXEL_FORMAT_YUV422 : AVIF_PIXEL_FORMAT_YUV420;
}

/* What is neither sRGB nor known by code points stays unspecified; a profile may follow. */
static avifResult avif_set_color(avifImage *yuv, const struct dl2_color_space *color)
{
    const enum dl2_color_form form = color ? color->form : DL2_COLOR_SPACE_SRGB;
    yuv->colorPrimaries = AVIF_COLOR_PRIMARIES_UNSPECIFIED;
    yuv->transferCharacteristics = AVIF_TRANSFER_CHARACTERISTICS_UNSPECIFIED;
    if (form == DL2_COLOR_SPACE_SRGB) {
        yuv->colorPrimaries = AVIF_COLOR_PRIMARIES_BT709;
        yuv->transferCharacteristics = AVIF_TRANSFER_CHARACTERISTICS_SRGB;
    } else if (form == DL2_COLOR_SPACE_CICP) {
        yuv->colorPrimaries = color->primaries;
        yuv->transferCharacteristics = color->transfer;
    }
    if (form != DL2_COLOR_SPACE_ICC)
        return AVIF_RESULT_OK;
#if AVIF_VERSION_MAJOR >= 1
    return avifImageSetProfileICC(yuv, color->icc.data, color->icc.size);
#else
    avifImageSetProfileICC(yuv, color->icc.data, color->icc.size);
    return AVIF_RESULT_OK;
#endif
}

static avifResult avif_set_metadata(avifImage *yuv, const struct dl2_metadata *metadata)
{
#if AVIF_VERSION_MAJOR >= 1
    avifResult result = AVIF_RESULT_OK;
    if (metadata->exif.size)
        result = avifImageSetMetadataExif(yuv, metadata->exif.data, metadata->exif.size);
    if (result == AVIF_RESULT_OK && metadata->xmp.size)
        result = avifImageSetMetadataXMP(yuv, metadata->xmp.data, metadata->xmp.size);
    return result;
#else
    if (metadata->exif.size)
        avifImageSetMetadataExif(yuv, metadata->exif.data, metadata->exif.size);
    if (metadata->xmp.size)
        avifImageSetMetadataXMP(yuv, metadata->xmp.data, metadata->xmp.size);
    return AVIF_RESULT_OK;
#endif
}

static avifResult avif_fill_deep_gray(avifImage *yuv, const struct dl2_image *image)
{
#if AVIF_VERSION_MAJOR >= 1
    const avifResult allocated = avifImageAllocatePlanes(yuv, AVIF_PLANES_YUV);
    if (allocated != AVIF_RESULT_OK)
        return allocated;
#else
    avifImageAllocatePlanes(yuv, AVIF_PLANES_YUV);
    if (!yuv->yuvPlanes[AVIF_CHAN_Y])
        return AVIF_RESULT_UNKNOWN_ERROR;
#endif
    const unsigned most = (1u << yuv->depth) - 1;
    for (uint32_t y = 0; y < image->height; y++) {
        uint16_t *row = (uint16_t *)(void *)(yuv->yuvPlanes[AVIF_CHAN_Y] +
                                             (size_t)y * yuv->yuvRowBytes[AVIF_CHAN_Y]);
        for (uint32_t x = 0; x < image->width; x++)
            row[x] = (uint16_t)((image->data[y * image->stride + x] * most + 127) / 255);
    }
    return AVIF_RESULT_OK;
}

static avifResult avif_fill_yuv(avifImage *yuv, const struct dl2_image *image,
                                const struct dl2_color_space *color)
{
    const avifResult set = avif_set_color(yuv, color);
    if (set != AVIF_RESULT_OK)
        return set;
    yuv->matrixCoefficients = AVIF_MATRIX_COEFFICIENTS_BT601;
    yuv->yuvRange = AVIF_RANGE_FULL;
    if (image->channels == 1 && yuv->depth > 8)
        return avif_fill_deep_gray(yuv, image);
    if (image->channels == 1) {
        /* Lent, not given: libavif only reads it. */
        yuv->yuvPlanes[AVIF_CHAN_Y] = image->data;
        yuv->yuvRowBytes[AVIF_CHAN_Y] = (uint32_t)image->stride;
        yuv->imageOwnsYUVPlanes = AVIF_FALSE;
        return AVIF_RESULT_OK;
    }
    avifRGBImage rgb;
    avifRGBImageSetDefaults(&rgb, yuv);
    rgb.depth = 8;
    rgb.format = AVIF_RGB_FORMAT_RGB;
    rgb.pixels = image->data;
    rgb.rowBytes = (uint32_t)image->stride;
    return avifImageRGBToYUV(yuv, &rgb);
}

static int avif_encode(const struct dl2_image *image, const struct dl2_encode_options *options,
                       struct dl2_bytes *out, struct dl2_error *error)
{
    DL2_TRY(avif_check(options, error));
    avifImage *yuv =
        avifImageCreate((int)image->width, (int)image->height, 8 + 2 * avif_setting(options, DEPTH),
                        avif_format(image, dl2_subsampling_find(options->subsampling)));
    avifEncoder *encoder = avifEncoderCreate();
    avifRWData written = AVIF_DATA_EMPTY;
    int status;
    if (!yuv || !encoder) {
        status = dl2_error_memory(error, "libavif");
        goto done;
    }
    char cq_level[16];
    snprintf(cq_level, sizeof cq_level, "%d", avif_cq_level(options));
    const bool aom = avif_setting(options, ENCODER) == AOM;
    encoder->codecChoice = avif_choice(options);
    encoder->maxThreads = 1;
    encoder->speed = avif_speed(options);
    encoder->minQuantizer = aom ? AVIF_QUANTIZER_BEST_QUALITY : avif_cq_level(options);
    encoder->maxQuantizer = aom ? AVIF_QUANTIZER_WORST_QUALITY : avif_cq_level(options);
    if (aom) {
        avifEncoderSetCodecSpecificOption(encoder, "end-usage", "q");
        avifEncoderSetCodecSpecificOption(encoder, "cq-level", cq_level);
        avifEncoderSetCodecSpecificOption(encoder, "tune", avif_tunes[avif_setting(options, TUNE)]);
    }
    avifResult result = avif_fill_yuv(yuv, image, options->color);
    if (result == AVIF_RESULT_OK && options->metadata)
        result = avif_set_metadata(yuv, options->metadata);
    if (result == AVIF_RESULT_OK)
        result = avifEncoderWrite(encoder, yuv, &written);
    status = result == AVIF_RESULT_OK ? dl2_bytes_append(out, written.data, written.size, error)
                                      : avif_fail(result, &encoder->diag, error);
done:
    avifRWDataFree(&written);
    if (encoder)
        avifEncoderDestroy(encoder);
    if (yuv)
        avifImageDestroy(yuv);
    return status;
}

static json_t *avif_parameters(const struct dl2_encode_options *options)
{
    const bool aom = avif_setting(options, ENCODER) == AOM;
    const int cq_level = avif_cq_level(options);
    json_t *json = json_pack("{s:s, s:i, s:i, s:i, s:i, s:i, s:s, s:s}", "encoder",
                             avif_encoders[avif_setting(options, ENCODER)], "min_quantizer",
                             aom ? 0 : cq_level, "max_quantizer", aom ? WORST_CQ_LEVEL : cq_level,
                             "speed", avif_speed(options), "max_threads", 1, "depth",
                             8 + 2 * avif_setting(options, DEPTH), "subsampling",
                             dl2_subsampling_find(options->subsampling), "matrix", "bt601-full");
    if (aom) {
        json_object_set_new(json, "end-usage", json_string("q"));
        json_object_set_new(json, "cq-level", json_integer(cq_level));
        json_object_set_new(json, "tune", json_string(avif_tunes[avif_setting(options, TUNE)]));
    }
    return json;
}

static void avif_version(char out[DL2_CODEC_VERSION_SIZE])
{
    char codecs[256];
    avifCodecVersions(codecs);
    snprintf(out, DL2_CODEC_VERSION_SIZE, "libavif %s (%s)", avifVersion(), codecs);
}

const struct dl2_codec dl2_codec_avif = {
    .name = "avif",
    .metadata = avif_metadata,
    .metadata_bytes = INT32_MAX,
    .extension = "avif",
    .extensions = {"avif"},
    .lossy = true,
    .max_side = 32768,
    .has_subsampling = true,
    .colors = DL2_COLOR_SPACE_ICC | DL2_COLOR_SPACE_CICP,
    .max_effort = MAX_EFFORT,
    .usual_effort = DEFAULT_EFFORT,
    .effort_help = "10 less the speed, higher is smaller and slower",
    .settings = avif_settings,
    .pixel_bytes = 40,
    .find_version = avif_version,
    .sniff = avif_sniff,
    .color = avif_color,
    .coded_bytes = avif_coded_bytes,
    .state_size = sizeof(struct avif_state),
    .open = avif_open,
    .read = avif_read,
    .read_deep = avif_read_deep,
    .close = avif_close,
    .encode = avif_encode,
    .encoder_parameters = avif_parameters,
};
