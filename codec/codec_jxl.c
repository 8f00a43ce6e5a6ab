/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * JPEG XL through libjxl: containers and bare codestreams in; bare codestreams out, or a container
 * where a JPEG file is recompressed. One thread.
 *
 * Quality becomes libjxl's distance (in units of just noticeable differences) by its own mapping,
 * JxlEncoderDistanceFromQuality(): 90 is distance 1, so figures compare with `cjxl -q`, below 30
 * with that of libjxl 0.9 and later alone. Quality 100 is lossless. Gray stays gray. Effort is
 * libjxl's, 1 to 9, 7 by default; 0 means 1, and images of less than 1,024 pixels have at most 7.
 *
 * The second codec, jxl_lossless, recompresses a JPEG file so that its very bytes can be
 * reconstructed (`djxl FILE.jxl FILE.jpg`), and keeps every pixel of other images. It reconstructs
 * and compares them at once: libjxl 0.7 writes what nothing can decode of a JPEG that stores RGB
 * with subsampling, and refuses some other kinds. Of those the pixels are kept.
 *
 * Decoding goes through the reconstructed JPEG (unwrap() below). libjxl's own pixels of it differ
 * from libjpeg's: 49 dB, at worst 44.
 *
 * libjxl computes in floating point: processors with other vector instructions may give other bytes
 * and pixels that differ by one. It decodes whole images only: reduced ones (progressive passes)
 * depend on how the file was written. The first frame of an animation is read. Debian 12's libjxl
 * also prints on stderr what is wrong with a damaged file: its build has these messages compiled
 * in, straight to stderr, and no call or variable turns them off.
 *
 * Color: lossless files store numbers of the image's own color space. Lossy ones store colors as
 * XYB, from which libjxl makes numbers of the original color space where that is known by
 * primaries and a curve, or by a profile that comes to these; of others it makes sRGB. So lossy
 * files are written by primaries and a curve alone.
 */
#include "codec/codecs.h"
#include "common/scope.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include <jxl/decode.h>
#include <jxl/encode.h>

/* From 0.9 on there is no argument for a format, which was never used. */
#if JPEGXL_NUMERIC_VERSION >= JPEGXL_COMPUTE_NUMERIC_VERSION(0, 9, 0)
#define JXL_ORIGINAL_COLOR(decoder) decoder, JXL_COLOR_PROFILE_TARGET_ORIGINAL
#else
#define JXL_ORIGINAL_COLOR(decoder) decoder, NULL, JXL_COLOR_PROFILE_TARGET_ORIGINAL
#endif

enum {
    DEFAULT_EFFORT = 7,
    MAX_EFFORT = 9,
    /* libjxl 0.7 ends the process on losslessly coded images of some hundred pixels with more. */
    SMALL_EFFORT = 7,
    SMALL_PIXELS = 1024,
    BLOCK = 16384,
    BOX_HEADER = 8, /* size and type, or a large size */
    MIB = 1 << 20,
    JPEG_PIXEL_BYTES = 24, /* three components of 32 bits, each byte of which may need a zero */
    JPEG_HEADER_FACTOR = 64,
    MAX_TAIL = 4260096 /* bytes behind a JPEG's image that libjxl stores */
};

static bool jxl_sniff(const uint8_t *data, size_t size)
{
    const JxlSignature found = JxlSignatureCheck(data, size);
    return found == JXL_SIG_CODESTREAM || found == JXL_SIG_CONTAINER;
}

struct jxl_state {
    struct dl2_codec_state base; /* block: the JPEG that it was made of, or pixels with alpha */
    JxlDecoder *decoder;
    JxlBasicInfo info;
};

/* One that decoder.c does not have. */
static void jxl_free(struct jxl_state *jxl)
{
    JxlDecoderDestroy(jxl->decoder);
    dl2_bytes_free(&jxl->base.block);
}

static int jxl_fail(struct dl2_error *error)
{
    return dl2_error_set(error, DL2_ERR_FORMAT, "JPEG XL: the file is damaged or cut short");
}

/* The number of channels of a kind beside the colors. */
static uint32_t jxl_count_extra(const struct jxl_state *jxl, JxlExtraChannelType type)
{
    JxlExtraChannelInfo extra;
    uint32_t count = 0;
    for (uint32_t i = 0; i < jxl->info.num_extra_channels; i++)
        count += JxlDecoderGetExtraChannelInfo(jxl->decoder, i, &extra) == JXL_DEC_SUCCESS &&
                 extra.type == type;
    return count;
}

struct jxl_box {
    const uint8_t *type;
    size_t begin, end; /* of its contents */
};

/* The box behind `box`, which comes as zeros for the first; false: there is no other whole one. */
static bool jxl_next_box(const uint8_t *data, size_t size, struct jxl_box *box)
{
    const size_t at = box->end, left = size - at;
    if (left < BOX_HEADER)
        return false;
    uint64_t bytes = dl2_read_u32(data + at);
    const size_t header = bytes == 1 ? 2 * BOX_HEADER : BOX_HEADER;
    if (bytes == 1 && left >= header)
        bytes = (uint64_t)dl2_read_u32(data + at + 8) << 32 | dl2_read_u32(data + at + 12);
    if (!bytes) /* to the end */
        bytes = left;
    if (bytes < header || bytes > left)
        return false;
    *box = (struct jxl_box){data + at + 4, at + header, at + (size_t)bytes};
    return true;
}

/* Has the container a box with what a JPEG is reconstructed from, beside the coefficients? */
static bool jxl_has_jpeg(const uint8_t *data, size_t size)
{
    struct jxl_box box = {0};
    if (JxlSignatureCheck(data, size) != JXL_SIG_CONTAINER)
        return false;
    while (jxl_next_box(data, size, &box))
        if (!memcmp(box.type, "jbrd", 4))
            return true;
    return false;
}

/* Up to the basic facts. */
static int jxl_begin(struct jxl_state *jxl, struct dl2_error *error)
{
    if (jxl->decoder)
        JxlDecoderReset(jxl->decoder);
    else
        jxl->decoder = JxlDecoderCreate(NULL);
    if (!jxl->decoder ||
        JxlDecoderSubscribeEvents(jxl->decoder, JXL_DEC_JPEG_RECONSTRUCTION | JXL_DEC_BASIC_INFO |
                                                    JXL_DEC_COLOR_ENCODING | JXL_DEC_FULL_IMAGE) !=
            JXL_DEC_SUCCESS ||
        JxlDecoderSetKeepOrientation(jxl->decoder, JXL_TRUE) != JXL_DEC_SUCCESS ||
        JxlDecoderSetUnpremultiplyAlpha(jxl->decoder, JXL_TRUE) != JXL_DEC_SUCCESS ||
        JxlDecoderSetInput(jxl->decoder, jxl->base.data, jxl->base.size) != JXL_DEC_SUCCESS)
        return dl2_error_memory(error, "libjxl");
    if (JxlDecoderProcessInput(jxl->decoder) != JXL_DEC_BASIC_INFO ||
        JxlDecoderGetBasicInfo(jxl->decoder, &jxl->info) != JXL_DEC_SUCCESS)
        return jxl_fail(error);
    return DL2_OK;
}

static int jxl_open(void *state, struct dl2_image_info *info, struct dl2_error *error)
{
    struct jxl_state *jxl = state;
    DL2_TRY(jxl_begin(jxl, error));
    if (jxl_count_extra(jxl, JXL_CHANNEL_BLACK)) /* libjxl leaves inks as they are */
        return dl2_error_set(error, DL2_ERR_UNSUPPORTED, "JPEG XL: CMYK is not supported");
    info->width = jxl->info.xsize;
    info->height = jxl->info.ysize;
    info->channels = jxl->info.num_color_channels;
    info->bits = jxl->info.bits_per_sample;
    info->alpha = jxl->info.alpha_bits > 0;
    /* libjxl draws spot colors into the image. */
    info->left_out =
        jxl->info.num_extra_channels - info->alpha - jxl_count_extra(jxl, JXL_CHANNEL_SPOT_COLOR);
    info->has_more = jxl->info.have_animation;
    info->orientation = (int)jxl->info.orientation;
    return DL2_OK;
}

/* The bytes of a JPEG file of the open image are at most this many: no coefficient has more than 32
 * bits, and the rest is in libjxl's memory already, by the file's size. */
static uint64_t jxl_most_jpeg_bytes(const struct jxl_state *jxl)
{
    return (uint64_t)JPEG_PIXEL_BYTES * jxl->info.xsize * jxl->info.ysize +
           (uint64_t)JPEG_HEADER_FACTOR * jxl->base.size + MIB;
}

/* dl2_bytes_resize() that keeps the first `used` bytes. */
static int jxl_grow(struct dl2_bytes *bytes, size_t used, size_t size, struct dl2_error *error)
{
    struct dl2_bytes grown = DL2_BYTES_INIT;
    if (!used)
        return dl2_bytes_resize(bytes, size, error);
    DL2_TRY(dl2_bytes_resize(&grown, size, error));
    memcpy(grown.data, bytes->data, used);
    dl2_bytes_free(bytes);
    *bytes = grown;
    return DL2_OK;
}

/* Rebuilds the JPEG file, behind jxl_begin(). */
static int jxl_rebuild(struct jxl_state *jxl, bool *rebuilt, struct dl2_error *error)
{
    bool room = false; /* libjxl has been given some */
    *rebuilt = false;
    jxl->base.block.size = 0;
    for (;;) {
        const JxlDecoderStatus status = JxlDecoderProcessInput(jxl->decoder);
        if (status == JXL_DEC_COLOR_ENCODING)
            continue;
        const size_t used =
            room ? jxl->base.block.size - JxlDecoderReleaseJPEGBuffer(jxl->decoder) : 0;
        const uint64_t bytes =
            room ? 2 * (uint64_t)jxl->base.block.size : 2 * (uint64_t)jxl->base.size + BLOCK;
        if ((status != JXL_DEC_JPEG_RECONSTRUCTION && status != JXL_DEC_JPEG_NEED_MORE_OUTPUT) ||
            bytes > jxl_most_jpeg_bytes(jxl)) {
            *rebuilt = status == JXL_DEC_FULL_IMAGE && used;
            jxl->base.block.size = used;
            return DL2_OK;
        }
        DL2_TRY(jxl_grow(&jxl->base.block, used, (size_t)bytes, error));
        room = JxlDecoderSetJPEGBuffer(jxl->decoder, jxl->base.block.data + used,
                                       jxl->base.block.size - used) == JXL_DEC_SUCCESS;
        if (!room)
            return DL2_OK;
    }
}

/* The pixels are read where libjxl can't rebuild the file's JPEG, as djxl does. */
static int jxl_unwrap(void *state, const uint8_t **data, size_t *size, struct dl2_error *error)
{
    struct jxl_state *jxl = state;
    bool rebuilt = false;
    if (!jxl_has_jpeg(jxl->base.data, jxl->base.size))
        return 0;
    DL2_TRY(jxl_rebuild(jxl, &rebuilt, error));
    *data = jxl->base.block.data;
    *size = jxl->base.block.size;
    DL2_TRY(jxl_begin(jxl, error)); /* frees what libjxl holds of the image */
    return rebuilt;
}

/* False where libjxl has no such curve. */
static bool jxl_encoding_of(const struct dl2_color_space *color, bool gray, JxlColorEncoding *out)
{
    static const double d65[2] = {0.3127, 0.3290};
    struct dl2_color_parameters parameters;
    *out = (JxlColorEncoding){.color_space = gray ? JXL_COLOR_SPACE_GRAY : JXL_COLOR_SPACE_RGB,
                              .primaries = JXL_PRIMARIES_CUSTOM,
                              .white_point = JXL_WHITE_POINT_CUSTOM,
                              .rendering_intent = JXL_RENDERING_INTENT_RELATIVE};
    if (!dl2_color_parameters(color, &parameters))
        return false;
    memcpy(out->primaries_red_xy, parameters.xy, sizeof out->primaries_red_xy);
    memcpy(out->primaries_green_xy, parameters.xy + 2, sizeof out->primaries_green_xy);
    memcpy(out->primaries_blue_xy, parameters.xy + 4, sizeof out->primaries_blue_xy);
    memcpy(out->white_point_xy, parameters.xy + 6, sizeof out->white_point_xy);
    if (gray || !memcmp(out->white_point_xy, d65, sizeof d65))
        out->white_point = JXL_WHITE_POINT_D65;
    switch (parameters.curve) {
    case DL2_CURVE_SRGB:
        out->transfer_function = JXL_TRANSFER_FUNCTION_SRGB;
        return true;
    case DL2_CURVE_709:
        out->transfer_function = JXL_TRANSFER_FUNCTION_709;
        return true;
    case DL2_CURVE_PQ:
        out->transfer_function = JXL_TRANSFER_FUNCTION_PQ;
        return true;
    case DL2_CURVE_HLG:
        out->transfer_function = JXL_TRANSFER_FUNCTION_HLG;
        return true;
    default:
        out->gamma = 1 / parameters.gamma;
        out->transfer_function = fabs(out->gamma - 1) < 1e-6 ? JXL_TRANSFER_FUNCTION_LINEAR
                                                             : JXL_TRANSFER_FUNCTION_GAMMA;
        return out->gamma > 0 && out->gamma <= 1;
    }
}

/* By H.273's numbers where libjxl's are those; false: by other numbers. */
static bool jxl_set_numbers(const JxlColorEncoding *encoding, struct dl2_color_space *color)
{
    const bool gray = encoding->color_space == JXL_COLOR_SPACE_GRAY;
    const unsigned primaries = gray ? JXL_PRIMARIES_SRGB : (unsigned)encoding->primaries;
    const unsigned transfer = (unsigned)encoding->transfer_function;
    if (encoding->white_point != JXL_WHITE_POINT_D65 || primaries == JXL_PRIMARIES_CUSTOM ||
        transfer == JXL_TRANSFER_FUNCTION_UNKNOWN || transfer == JXL_TRANSFER_FUNCTION_DCI ||
        transfer == JXL_TRANSFER_FUNCTION_GAMMA)
        return false;
    dl2_color_set_cicp(color, primaries == JXL_PRIMARIES_P3 ? 12 : primaries, transfer);
    return true;
}

static int jxl_read_profile(JxlDecoder *decoder, struct dl2_color_space *color,
                            struct dl2_error *error)
{
    size_t size;
    if (JxlDecoderGetICCProfileSize(JXL_ORIGINAL_COLOR(decoder), &size) != JXL_DEC_SUCCESS)
        return jxl_fail(error);
    DL2_TRY(dl2_bytes_resize(&color->icc, size, error));
    if (JxlDecoderGetColorAsICCProfile(JXL_ORIGINAL_COLOR(decoder), color->icc.data, size) !=
        JXL_DEC_SUCCESS)
        return jxl_fail(error);
    color->form = DL2_COLOR_SPACE_ICC;
    return DL2_OK;
}

/*
 * Once the decoder knows the colors: makes it give numbers of the original color space, or else
 * of sRGB, and says in `color`, which means sRGB so far, which those are.
 */
static int jxl_choose_color(JxlDecoder *decoder, const JxlBasicInfo *info,
                            struct dl2_color_space *color, struct dl2_error *error)
{
    const bool gray = info->num_color_channels == 1;
    JxlColorEncoding encoding;
    const bool by_numbers = JxlDecoderGetColorAsEncodedProfile(JXL_ORIGINAL_COLOR(decoder),
                                                               &encoding) == JXL_DEC_SUCCESS;
    if (!by_numbers || !jxl_set_numbers(&encoding, color))
        DL2_TRY(jxl_read_profile(decoder, color, error));
    if (info->uses_original_profile)
        return DL2_OK;
    if ((by_numbers || jxl_encoding_of(color, gray, &encoding)) &&
        JxlDecoderSetPreferredColorProfile(decoder, &encoding) == JXL_DEC_SUCCESS)
        return DL2_OK;
    color->form = DL2_COLOR_SPACE_SRGB;
    JxlColorEncodingSetToSRGB(&encoding, gray);
    return JxlDecoderSetPreferredColorProfile(decoder, &encoding) == JXL_DEC_SUCCESS
               ? DL2_OK
               : jxl_fail(error);
}

/* As jxl_read() will give the numbers. */
static int jxl_color(const uint8_t *data, size_t size, struct dl2_color_space *color,
                     struct dl2_error *error)
{
    DL2_CLEANUP(jxl_free) struct jxl_state jxl = {.base = {.data = data, .size = size}};
    DL2_TRY(jxl_begin(&jxl, error));
    JxlDecoderStatus next = JxlDecoderProcessInput(jxl.decoder);
    if (next == JXL_DEC_JPEG_RECONSTRUCTION)
        next = JxlDecoderProcessInput(jxl.decoder);
    return next == JXL_DEC_COLOR_ENCODING ? jxl_choose_color(jxl.decoder, &jxl.info, color, error)
                                          : jxl_fail(error);
}

/* Frames with their headers: the codestream behind its size and colors, without the container's
 * other boxes. */
static size_t jxl_coded_bytes(const uint8_t *data, size_t size)
{
    DL2_CLEANUP(jxl_free) struct jxl_state jxl = {.base = {.data = data, .size = size}};
    struct jxl_box box = {0};
    size_t coded = 0;
    JxlDecoderStatus next = JXL_DEC_ERROR;
    if (jxl_begin(&jxl, NULL) == DL2_OK)
        next = JxlDecoderProcessInput(jxl.decoder);
    if (next == JXL_DEC_JPEG_RECONSTRUCTION)
        next = JxlDecoderProcessInput(jxl.decoder);
    if (next != JXL_DEC_COLOR_ENCODING)
        return 0;
    const size_t read = size - JxlDecoderReleaseInput(jxl.decoder);
    if (JxlSignatureCheck(data, size) != JXL_SIG_CONTAINER)
        return size - read;
    while (jxl_next_box(data, size, &box)) {
        const bool part = !memcmp(box.type, "jxlp", 4); /* begins with its number */
        if (part)
            box.begin = box.end - box.begin < 4 ? box.end : box.begin + 4;
        if ((part || !memcmp(box.type, "jxlc", 4)) && box.end > read)
            coded += box.end - (box.begin > read ? box.begin : read);
    }
    return coded;
}

/* Appends to `out` what the decoder gives of the box that has begun. */
static int jxl_read_box(JxlDecoder *decoder, struct dl2_bytes *out, JxlDecoderStatus *next,
                        struct dl2_error *error)
{
    size_t left = 0;
    out->size = 0;
    do {
        const size_t at = out->size - left;
        JxlDecoderReleaseBoxBuffer(decoder);
        DL2_TRY(dl2_bytes_resize(out, at + BLOCK, error));
        if (JxlDecoderSetBoxBuffer(decoder, out->data + at, BLOCK) != JXL_DEC_SUCCESS)
            return jxl_fail(error);
        *next = JxlDecoderProcessInput(decoder);
        left = JxlDecoderReleaseBoxBuffer(decoder);
    } while (*next == JXL_DEC_BOX_NEED_MORE_OUTPUT);
    out->size -= left;
    return DL2_OK;
}

static int jxl_read_boxes(JxlDecoder *decoder, struct dl2_bytes *box, struct dl2_metadata *metadata,
                          struct dl2_error *error)
{
    JxlDecoderStatus next = JxlDecoderProcessInput(decoder);
    while (next == JXL_DEC_BOX) {
        JxlBoxType type;
        if (JxlDecoderGetBoxType(decoder, type, JXL_TRUE) != JXL_DEC_SUCCESS)
            return jxl_fail(error);
        const bool exif = !memcmp(type, "Exif", 4), xmp = !memcmp(type, "xml ", 4);
        if (!exif && !xmp) {
            metadata->other = metadata->other || !memcmp(type, "jumb", 4);
            next = JxlDecoderProcessInput(decoder);
            continue;
        }
        DL2_TRY(jxl_read_box(decoder, box, &next, error));
        const size_t behind = exif && box->size >= 4 ? dl2_read_u32(box->data) + (size_t)4 : 0;
        if (behind > box->size)
            metadata->partial = true;
        else if (exif)
            DL2_TRY(dl2_metadata_set_exif(metadata, box->data + behind, box->size - behind, error));
        else
            DL2_TRY(dl2_metadata_set_xmp(metadata, box->data, box->size, error));
    }
    return next == JXL_DEC_SUCCESS ? DL2_OK : jxl_fail(error);
}

static int jxl_metadata(const uint8_t *data, size_t size, struct dl2_metadata *metadata,
                        struct dl2_error *error)
{
    if (JxlSignatureCheck(data, size) != JXL_SIG_CONTAINER)
        return DL2_OK;
    DL2_CLEANUP(jxl_free) struct jxl_state jxl = {.decoder = JxlDecoderCreate(NULL)};
    JxlDecoder *decoder = jxl.decoder;
    if (!decoder || JxlDecoderSubscribeEvents(decoder, JXL_DEC_BOX) != JXL_DEC_SUCCESS ||
        JxlDecoderSetInput(decoder, data, size) != JXL_DEC_SUCCESS)
        return dl2_error_memory(error, "libjxl");
    JxlDecoderSetDecompressBoxes(decoder, JXL_TRUE); /* where it can */
    JxlDecoderCloseInput(decoder);
    return jxl_read_boxes(decoder, &jxl.base.block, metadata, error);
}

/* Decodes the first frame into `out`, which has room for its samples. */
static bool jxl_decode_frame(struct jxl_state *jxl, const JxlPixelFormat *format, uint8_t *out,
                             size_t size)
{
    struct dl2_color_space color = {.form = DL2_COLOR_SPACE_SRGB};
    bool chosen;
    for (;;) {
        switch (JxlDecoderProcessInput(jxl->decoder)) {
        case JXL_DEC_JPEG_RECONSTRUCTION:
            break;
        case JXL_DEC_COLOR_ENCODING:
            chosen = jxl->info.uses_original_profile ||
                     jxl_choose_color(jxl->decoder, &jxl->info, &color, NULL) == DL2_OK;
            dl2_color_free(&color);
            if (!chosen)
                return false;
            break;
        case JXL_DEC_NEED_IMAGE_OUT_BUFFER:
            if (JxlDecoderSetImageOutBuffer(jxl->decoder, format, out, size) != JXL_DEC_SUCCESS)
                return false;
            break;
        case JXL_DEC_FULL_IMAGE:
            return true;
        default:
            return false;
        }
    }
}

static int jxl_read(void *state, const struct dl2_decode_request *request, struct dl2_image *image,
                    struct dl2_raster *raster, struct dl2_error *error)
{
    struct jxl_state *jxl = state;
    const uint32_t channels = jxl->info.num_color_channels;
    const bool alpha = jxl->info.alpha_bits > 0;
    DL2_TRY(dl2_image_reshape(image, jxl->info.xsize, jxl->info.ysize, channels, error));
    const size_t pixels = (size_t)image->width * image->height, size = pixels * (channels + alpha);
    if (alpha)
        DL2_TRY(dl2_bytes_resize(&jxl->base.block, size, error));
    const JxlPixelFormat format = {channels + alpha, JXL_TYPE_UINT8, JXL_NATIVE_ENDIAN, 0};
    if (!jxl_decode_frame(jxl, &format, alpha ? jxl->base.block.data : image->data, size))
        return jxl_fail(error);
    JxlDecoderReset(jxl->decoder); /* frees what libjxl holds of the image */
    if (alpha)
        dl2_flatten(jxl->base.block.data, image->data, pixels, channels, request->background);
    *raster = dl2_raster_of(image, 0, 0);
    return DL2_OK;
}

static int jxl_read_deep(void *state, const uint8_t background[3], struct dl2_deep_image *image,
                         struct dl2_error *error)
{
    struct jxl_state *jxl = state;
    const JxlBasicInfo *info = &jxl->info;
    const uint32_t channels = info->num_color_channels + (info->alpha_bits > 0);
    const JxlPixelFormat format = {channels, JXL_TYPE_UINT16, JXL_NATIVE_ENDIAN, 0};
    if (info->exponent_bits_per_sample || info->bits_per_sample > 16)
        return dl2_error_set(error, DL2_ERR_UNSUPPORTED, "JPEG XL: not read at 16 bits");
    DL2_TRY(dl2_deep_reshape(image, info->xsize, info->ysize, channels, error));
    if (!jxl_decode_frame(jxl, &format, image->bytes.data, image->bytes.size))
        return jxl_fail(error);
    JxlDecoderReset(jxl->decoder);
    dl2_flatten_deep(image, background, false);
    return DL2_OK;
}

/* libjxl takes and gives 65535 for white, whatever the bits. */
static int jxl_read_gray(void *state, const struct dl2_gray_part *part, uint16_t *out,
                         struct dl2_error *error)
{
    struct jxl_state *jxl = state;
    const uint32_t white = (1u << part->bits) - 1;
    const size_t size = (size_t)jxl->info.xsize * jxl->info.ysize * sizeof *out;
    const JxlPixelFormat format = {1, JXL_TYPE_UINT16, JXL_NATIVE_ENDIAN, 0};
    if (jxl->info.exponent_bits_per_sample)
        return dl2_error_set(error, DL2_ERR_UNSUPPORTED, "JPEG XL: not of integers");
    DL2_TRY(dl2_bytes_resize(&jxl->base.block, size, error));
    if (!jxl_decode_frame(jxl, &format, jxl->base.block.data, size))
        return jxl_fail(error);
    JxlDecoderReset(jxl->decoder);
    for (uint32_t y = 0; y < part->rows; y++, out += part->columns) {
        const uint16_t *in = (const uint16_t *)(const void *)jxl->base.block.data +
                             (size_t)(part->y + y) * part->width + part->x;
        for (uint32_t x = 0; x < part->columns; x++)
            out[x] = (uint16_t)((in[x] * white + UINT16_MAX / 2) / UINT16_MAX);
    }
    return DL2_OK;
}

static void jxl_close(void *state)
{
    struct jxl_state *jxl = state;
    JxlDecoderDestroy(jxl->decoder);
}

/* libjxl has this function from 0.9 on; earlier versions get its formula. */
static float jxl_distance(int quality)
{
#if JPEGXL_NUMERIC_VERSION >= JPEGXL_COMPUTE_NUMERIC_VERSION(0, 9, 0)
    return JxlEncoderDistanceFromQuality((float)quality);
#else
    if (quality >= 100)
        return 0;
    if (quality >= 30)
        return 0.1f + (float)(100 - quality) * 0.09f;
    return 53.0f / 3000 * (float)(quality * quality) - 23.0f / 20 * (float)quality + 25;
#endif
}

static int jxl_effort(const struct dl2_encode_options *options)
{
    return options->effort < 0 ? DEFAULT_EFFORT : options->effort < 1 ? 1 : options->effort;
}

/* A profile itself is only for lossless files: see the top of the file. */
static bool jxl_set_color(JxlEncoder *encoder, const struct dl2_color_space *color, bool gray,
                          bool lossless)
{
    JxlColorEncoding encoding;
    const enum dl2_color_form form = color ? color->form : DL2_COLOR_SPACE_SRGB;
    if (form == DL2_COLOR_SPACE_ICC && lossless)
        return JxlEncoderSetICCProfile(encoder, color->icc.data, color->icc.size) ==
               JXL_ENC_SUCCESS;
    if (form == DL2_COLOR_SPACE_SRGB || form == DL2_COLOR_SPACE_UNKNOWN)
        JxlColorEncodingSetToSRGB(&encoding, gray);
    else if (!jxl_encoding_of(color, gray, &encoding))
        return false;
    return JxlEncoderSetColorEncoding(encoder, &encoding) == JXL_ENC_SUCCESS;
}

/* What is encoded: samples of 8 bits, or of 16 that stand for `bits`. */
struct jxl_pixels {
    const void *data;
    size_t size;
    uint32_t width, height, channels;
    unsigned bits;
};

/* Distance 0 is lossless. */
static bool jxl_add_pixels(JxlEncoder *encoder, JxlEncoderFrameSettings *settings,
                           const struct jxl_pixels *image, const struct dl2_color_space *color,
                           float distance)
{
    JxlBasicInfo info;
    JxlEncoderInitBasicInfo(&info);
    info.xsize = image->width;
    info.ysize = image->height;
    info.bits_per_sample = image->bits;
    info.num_color_channels = image->channels;
    info.uses_original_profile = distance == 0;
    const bool wide = image->size > (size_t)image->width * image->height * image->channels;
    const JxlPixelFormat format = {image->channels, wide ? JXL_TYPE_UINT16 : JXL_TYPE_UINT8,
                                   JXL_NATIVE_ENDIAN, 0};
    return JxlEncoderSetBasicInfo(encoder, &info) == JXL_ENC_SUCCESS &&
           jxl_set_color(encoder, color, image->channels == 1, distance == 0) &&
           (distance == 0 ? JxlEncoderSetFrameLossless(settings, JXL_TRUE)
                          : JxlEncoderSetFrameDistance(settings, distance)) == JXL_ENC_SUCCESS &&
           JxlEncoderAddImageFrame(settings, &format, image->data, image->size) == JXL_ENC_SUCCESS;
}

/* EXIF's box begins with how far its TIFF header is behind. */
static bool jxl_add_metadata(JxlEncoder *encoder, const struct dl2_metadata *metadata,
                             struct dl2_error *error)
{
    DL2_CLEANUP(dl2_bytes_free) struct dl2_bytes exif = DL2_BYTES_INIT;
    if (!metadata || (!metadata->exif.size && !metadata->xmp.size))
        return true;
    if (JxlEncoderUseBoxes(encoder) != JXL_ENC_SUCCESS)
        return false;
    if (metadata->exif.size &&
        (dl2_bytes_append(&exif, "\0\0\0", 4, error) < 0 ||
         dl2_bytes_append(&exif, metadata->exif.data, metadata->exif.size, error) < 0 ||
         JxlEncoderAddBox(encoder, "Exif", exif.data, exif.size, JXL_FALSE) != JXL_ENC_SUCCESS))
        return false;
    return !metadata->xmp.size ||
           JxlEncoderAddBox(encoder, "xml ", metadata->xmp.data, metadata->xmp.size, JXL_FALSE) ==
               JXL_ENC_SUCCESS;
}

/* The container has boxes for what the file's bytes are reconstructed from. */
static bool jxl_add_jpeg(JxlEncoder *encoder, JxlEncoderFrameSettings *settings,
                         const uint8_t *data, size_t size)
{
    return JxlEncoderUseContainer(encoder, JXL_TRUE) == JXL_ENC_SUCCESS &&
           JxlEncoderStoreJPEGMetadata(encoder, JXL_TRUE) == JXL_ENC_SUCCESS &&
           JxlEncoderAddJPEGFrame(settings, data, size) == JXL_ENC_SUCCESS;
}

static int jxl_write(JxlEncoder *encoder, struct dl2_bytes *out, struct dl2_error *error)
{
    uint8_t block[BLOCK];
    JxlEncoderStatus status = JXL_ENC_NEED_MORE_OUTPUT;
    while (status == JXL_ENC_NEED_MORE_OUTPUT) {
        uint8_t *next = block;
        size_t left = sizeof block;
        status = JxlEncoderProcessOutput(encoder, &next, &left);
        DL2_TRY(dl2_bytes_append(out, block, (size_t)(next - block), error));
    }
    if (status == JXL_ENC_SUCCESS)
        return DL2_OK;
    return dl2_error_set(error, DL2_ERR_UNSUPPORTED, "JPEG XL: libjxl can't encode this");
}

static void jxl_drop(JxlEncoder **encoder)
{
    JxlEncoderDestroy(*encoder);
}

enum { DISTANCE, EPF };
static const struct dl2_setting jxl_settings[] = {
    [DISTANCE] = {.name = "distance",
                  .min = 0.01,
                  .max = 25,
                  .usual = 0,
                  .replaces_quality = true,
                  .help = "Butteraugli distance, 1 is visually lossless, higher is smaller"},
    [EPF] = {.name = "epf",
             .min = -1,
             .max = 3,
             .usual = -1,
             .whole = true,
             .help =
                 "passes of the edge-preserving filter that each decoder runs; 0 decodes fastest"},
    {.name = NULL}};

static int jxl_epf(const struct dl2_encode_options *options)
{
    return (int)dl2_setting_value(jxl_settings, options, EPF);
}

/* Encodes a JPEG file, or where `jpeg` is NULL the pixels. */
static int jxl_encode_either(const uint8_t *jpeg, size_t size, const struct jxl_pixels *image,
                             float distance, const struct dl2_encode_options *options,
                             struct dl2_bytes *out, struct dl2_error *error)
{
    DL2_CLEANUP(jxl_drop) JxlEncoder *encoder = JxlEncoderCreate(NULL);
    JxlEncoderFrameSettings *settings =
        encoder ? JxlEncoderFrameSettingsCreate(encoder, NULL) : NULL;
    const bool small = (uint64_t)image->width * image->height < SMALL_PIXELS;
    const int wanted = jxl_effort(options);
    const int effort = small && wanted > SMALL_EFFORT ? SMALL_EFFORT : wanted;
    if (!settings || JxlEncoderFrameSettingsSetOption(settings, JXL_ENC_FRAME_SETTING_EFFORT,
                                                      effort) != JXL_ENC_SUCCESS)
        return dl2_error_memory(error, "libjxl");
    if (distance > 0 && JxlEncoderFrameSettingsSetOption(settings, JXL_ENC_FRAME_SETTING_EPF,
                                                         jxl_epf(options)) != JXL_ENC_SUCCESS)
        return dl2_error_memory(error, "libjxl");
    if (jpeg && !jxl_add_jpeg(encoder, settings, jpeg, size))
        return dl2_error_set(error, DL2_ERR_UNSUPPORTED,
                             "JPEG XL: libjxl can't recompress this kind of JPEG");
    if (!jpeg && (!jxl_add_metadata(encoder, options->metadata, error) ||
                  !jxl_add_pixels(encoder, settings, image, options->color, distance)))
        return dl2_error_set(error, DL2_ERR_UNSUPPORTED, "JPEG XL: libjxl can't encode this");
    JxlEncoderCloseInput(encoder);
    return jxl_write(encoder, out, error);
}

static struct jxl_pixels jxl_pixels_of(const struct dl2_image *image)
{
    return (struct jxl_pixels){image->data,     image->stride * image->height,
                               image->width,    image->height,
                               image->channels, 8};
}

/* By the setting, or the quality. */
static float jxl_distance_of(const struct dl2_encode_options *options)
{
    const double distance = dl2_setting_value(jxl_settings, options, DISTANCE);
    return distance > 0 ? (float)distance : jxl_distance(options->quality);
}

static int jxl_encode(const struct dl2_image *image, const struct dl2_encode_options *options,
                      struct dl2_bytes *out, struct dl2_error *error)
{
    const struct jxl_pixels pixels = jxl_pixels_of(image);
    return jxl_encode_either(NULL, 0, &pixels, jxl_distance_of(options), options, out, error);
}

static int jxl_encode_wide(const struct dl2_gray *image, float distance,
                           const struct dl2_encode_options *options, struct dl2_bytes *out,
                           struct dl2_error *error)
{
    const size_t count = (size_t)image->width * image->height;
    const uint32_t white = (1u << image->bits) - 1;
    DL2_CLEANUP(dl2_bytes_free) struct dl2_bytes wide = DL2_BYTES_INIT;
    DL2_TRY(dl2_bytes_resize(&wide, count * sizeof *image->samples, error));
    uint16_t *samples = (uint16_t *)(void *)wide.data;
    for (size_t i = 0; i < count; i++)
        samples[i] = dl2_deep_sample(image->samples[i], white);
    const struct jxl_pixels pixels = {samples,       wide.size, image->width,
                                      image->height, 1,         image->bits};
    return jxl_encode_either(NULL, 0, &pixels, distance, options, out, error);
}

static int jxl_encode_gray(const struct dl2_gray *image, const struct dl2_encode_options *options,
                           struct dl2_bytes *out, struct dl2_error *error)
{
    return jxl_encode_wide(image, jxl_distance_of(options), options, out, error);
}

static int jxl_encode_gray_lossless(const struct dl2_gray *image,
                                    const struct dl2_encode_options *options, struct dl2_bytes *out,
                                    struct dl2_error *error)
{
    return jxl_encode_wide(image, 0, options, out, error);
}

/* Kinds of JPEG that libjxl is not tried on: version 0.7 prints a line on stderr about each. */
static enum dl2_pixels_only jxl_refuses(const uint8_t *data, size_t size)
{
    const struct dl2_codec *const codec = dl2_codec_sniff(data, size);
    struct dl2_coding coding;
    if (!codec || !codec->coding)
        return DL2_PIXELS_NOT_ONLY;
    if (!codec->coding(data, size, &coding))
        return DL2_PIXELS_OF_OTHERS;
    const bool rgb = !strcmp(coding.color, "RGB");
    return !strcmp(coding.color, "inks")              ? DL2_PIXELS_OF_CMYK
           : coding.arithmetic                        ? DL2_PIXELS_OF_ARITHMETIC
           : rgb && strcmp(coding.subsampling, "444") ? DL2_PIXELS_OF_RGB
           : !rgb && !coding.common                   ? DL2_PIXELS_OF_OTHERS
           : coding.tail > MAX_TAIL                   ? DL2_PIXELS_OF_TAIL
                                                      : DL2_PIXELS_NOT_ONLY;
}

/* Does the encoded file give back the JPEG that it was made of, also to our decoder? */
static int jxl_gives_back(const struct dl2_bytes *file, const uint8_t *jpeg, size_t size,
                          bool *same, struct dl2_error *error)
{
    DL2_CLEANUP(jxl_free) struct jxl_state jxl = {.base = {.data = file->data, .size = file->size}};
    struct dl2_image_info shown, wanted;
    const uint8_t *data;
    size_t bytes;
    int status = jxl_begin(&jxl, error);
    *same = false;
    if (status == DL2_OK)
        status = jxl_unwrap(&jxl, &data, &bytes, error);
    if (status == 1)
        *same = bytes == size && !memcmp(data, jpeg, size) &&
                (dl2_image_read_info(jpeg, size, &wanted, NULL) < 0 ||
                 (dl2_image_read_info(file->data, file->size, &shown, NULL) == DL2_OK &&
                  shown.orientation == wanted.orientation && shown.channels == wanted.channels));
    return status == DL2_ERR_MEMORY ? status : DL2_OK;
}

/* Sets *same if the file's bytes come back from `out`. */
static int jxl_keep_jpeg(const uint8_t *data, size_t size, const struct jxl_pixels *pixels,
                         const struct dl2_encode_options *options, struct dl2_bytes *out,
                         bool *same, struct dl2_error *error)
{
    *same = false;
    out->size = 0;
    return jxl_encode_either(data, size, pixels, 0, options, out, NULL) < 0
               ? DL2_OK
               : jxl_gives_back(out, data, size, same, error);
}

/* Finds out whether libjxl would give the file back without what lies behind the image. */
static int jxl_find_reason(const struct jxl_pixels *pixels,
                           const struct dl2_encode_options *options, struct dl2_bytes *out,
                           enum dl2_pixels_only *reason, struct dl2_error *error)
{
    const struct dl2_codec *const codec = dl2_codec_sniff(options->source, options->source_size);
    struct dl2_coding coding;
    bool same = false;
    if (codec && codec->coding && codec->coding(options->source, options->source_size, &coding) &&
        coding.tail)
        DL2_TRY(jxl_keep_jpeg(options->source, options->source_size - coding.tail, pixels, options,
                              out, &same, error));
    *reason = same ? DL2_PIXELS_OF_TAIL : DL2_PIXELS_OF_OTHERS;
    return DL2_OK;
}

static int jxl_encode_lossless(const struct dl2_image *image,
                               const struct dl2_encode_options *options, struct dl2_bytes *out,
                               struct dl2_error *error)
{
    static const uint8_t start[] = {0xff, 0xd8, 0xff};
    const struct jxl_pixels pixels = jxl_pixels_of(image);
    if (options->source_size >= sizeof start && !memcmp(options->source, start, sizeof start)) {
        enum dl2_pixels_only reason = jxl_refuses(options->source, options->source_size);
        bool same = false;
        if (!reason)
            DL2_TRY(jxl_keep_jpeg(options->source, options->source_size, &pixels, options, out,
                                  &same, error));
        if (same)
            return DL2_OK;
        if (!reason)
            DL2_TRY(jxl_find_reason(&pixels, options, out, &reason, error));
        if (options->pixels_only)
            *options->pixels_only = reason;
    }
    out->size = 0;
    return jxl_encode_either(NULL, 0, &pixels, 0, options, out, error);
}

static json_t *jxl_parameters(const struct dl2_encode_options *options)
{
    return json_pack("{s:f, s:i, s:i}", "distance", (double)jxl_distance_of(options), "effort",
                     jxl_effort(options), "threads", 1);
}

static json_t *jxl_lossless_parameters(const struct dl2_encode_options *options)
{
    return json_pack("{s:s, s:i, s:i}", "jpeg", "recompressed, compared", "effort",
                     jxl_effort(options), "threads", 1);
}

static void jxl_version(char out[DL2_CODEC_VERSION_SIZE])
{
    const uint32_t number = JxlEncoderVersion();
    snprintf(out, DL2_CODEC_VERSION_SIZE, "libjxl %u.%u.%u", (unsigned)(number / 1000000),
             (unsigned)(number / 1000 % 1000), (unsigned)(number % 1000));
}

const struct dl2_codec dl2_codec_jxl = {
    .name = "jxl",
    .metadata = jxl_metadata,
    .metadata_bytes = INT32_MAX,
    .extension = "jxl",
    .extensions = {"jxl"},
    .lossy = true,
    .max_side = 1 << 18,
    .colors = DL2_COLOR_SPACE_PARAMETERS,
    .always_tagged = true,
    .max_effort = MAX_EFFORT,
    .usual_effort = DEFAULT_EFFORT,
    .effort_help = "higher is smaller and slower",
    .settings = jxl_settings,
    .pixel_bytes = 100,
    .find_version = jxl_version,
    .sniff = jxl_sniff,
    .color = jxl_color,
    .coded_bytes = jxl_coded_bytes,
    .state_size = sizeof(struct jxl_state),
    .open = jxl_open,
    .read = jxl_read,
    .read_deep = jxl_read_deep,
    .read_gray = jxl_read_gray,
    .unwrap = jxl_unwrap,
    .close = jxl_close,
    .encode = jxl_encode,
    .encode_gray = jxl_encode_gray,
    .encoder_parameters = jxl_parameters,
};

/* Encodes only: the files are those of the codec above. */
const struct dl2_codec dl2_codec_jxl_lossless = {
    .name = "jxl_lossless",
    .metadata_bytes = INT32_MAX,
    .extension = "jxl",
    .extensions = {"jxl"},
    .max_side = 1 << 18,
    .colors = DL2_COLOR_SPACE_ICC | DL2_COLOR_SPACE_PARAMETERS,
    .always_tagged = true,
    .max_effort = MAX_EFFORT,
    .usual_effort = DEFAULT_EFFORT,
    .effort_help = "higher is smaller and slower",
    .pixel_bytes = 100,
    .find_version = jxl_version,
    .encode = jxl_encode_lossless,
    .encode_gray = jxl_encode_gray_lossless,
    .encoder_parameters = jxl_lossless_parameters,
};
