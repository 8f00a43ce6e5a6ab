/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * WebP through libwebp: lossy, always 4:2:0.
 *
 * Quality is libwebp's own quality factor, method 4 its default (effort is the method), so figures
 * compare with cwebp's. There is no gray WebP: gray images are stored as color. Lossy and lossless
 * files are read. Of an animation the first frame is, as a file of its own; the canvas that it does
 * not cover is transparent, as of a GIF.
 */
#include "codec/codecs.h"
#include "codec/exif.h"

#include <stdio.h>
#include <string.h>

#include <webp/decode.h>
#include <webp/encode.h>

#define WEBP_TOO_OLD "WebP: libwebp is older than the one this was built with"

enum { DEFAULT_METHOD = 4, MAX_METHOD = 6, CHUNK_HEADER = 8, RIFF_HEADER = 12 };
/* libwebp takes the quality of lossless files for another effort. */
enum { LOSSLESS_QUALITY = 75 };

/* The first whole chunk of that name, or NULL. */
static const uint8_t *webp_find_chunk(const uint8_t *data, size_t size, const char *name,
                                      size_t *length)
{
    size_t at = RIFF_HEADER;
    while (size - at >= CHUNK_HEADER) {
        *length = dl2_read_le32(data + at + 4);
        at += CHUNK_HEADER;
        if (*length > size - at)
            return NULL;
        if (!memcmp(data + at - CHUNK_HEADER, name, 4))
            return data + at;
        at += *length;
        if (*length & 1 && at < size)
            at++;
    }
    return NULL;
}

static size_t webp_coded_bytes(const uint8_t *data, size_t size)
{
    static const char *const names[] = {"VP8 ", "VP8L", "ALPH", "ANMF"};
    size_t coded = 0, length;
    for (size_t i = 0; size >= RIFF_HEADER && i < sizeof names / sizeof *names; i++)
        if (webp_find_chunk(data, size, names[i], &length))
            coded += length;
    return coded;
}

/* Orientation from the EXIF chunk, which libwebp leaves to others. */
static int webp_orientation(const uint8_t *data, size_t size)
{
    size_t length;
    const uint8_t *exif = webp_find_chunk(data, size, "EXIF", &length);
    return exif ? dl2_exif_orientation(exif, length) : 1;
}

/* Are the opacities of a lossy file predicted from their neighbors? */
static bool webp_has_filtered_alpha(const uint8_t *data, size_t size)
{
    size_t length;
    const uint8_t *alpha = webp_find_chunk(data, size, "ALPH", &length);
    return alpha && length && (alpha[0] >> 2 & 3) != 0;
}

static int webp_fail(VP8StatusCode code, struct dl2_error *error)
{
    static const struct {
        VP8StatusCode code;
        enum dl2_status status;
        const char *text;
    } rows[] = {
        {VP8_STATUS_OUT_OF_MEMORY, DL2_ERR_MEMORY, "out of memory"},
        {VP8_STATUS_UNSUPPORTED_FEATURE, DL2_ERR_UNSUPPORTED,
         "a feature that libwebp can't handle"},
        {VP8_STATUS_SUSPENDED, DL2_ERR_FORMAT, "the file is cut short"},
        {VP8_STATUS_NOT_ENOUGH_DATA, DL2_ERR_FORMAT, "the file is cut short"},
        {VP8_STATUS_BITSTREAM_ERROR, DL2_ERR_FORMAT, "the data are corrupt"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        if (rows[i].code == code)
            return dl2_error_set(error, rows[i].status, "WebP: %s", rows[i].text);
    return dl2_error_set(error, DL2_ERR_FORMAT, "WebP: libwebp can't decode it");
}

struct webp_state {
    struct dl2_codec_state base; /* block: planes, or pixels with alpha */
    const uint8_t *data;         /* the file, or that of the first frame, which is `frame` */
    size_t size;
    struct dl2_bytes frame;
    uint32_t width, height; /* of the canvas */
    uint32_t left, top;     /* of the first frame */
    bool covers;            /* it is all of the canvas */
    bool filtered_alpha;
    WebPDecoderConfig config;
};

static uint32_t webp_read_u24(const uint8_t *p)
{
    return dl2_read_le16(p) | (uint32_t)p[2] << 16;
}

/* Makes a file of the first frame of an animation, which lies within the canvas. */
static int webp_take_frame(struct webp_state *webp, struct dl2_error *error)
{
    enum { FRAME_HEADER = 16, EXTENDED = 18, ALPHA = 0x10 };
    uint8_t head[RIFF_HEADER + EXTENDED] = "RIFF\0\0\0\0WEBPVP8X\12";
    size_t length;
    const uint8_t *const chunk = webp_find_chunk(webp->data, webp->size, "ANMF", &length);
    if (!chunk || length <= FRAME_HEADER + CHUNK_HEADER)
        return dl2_error_set(error, DL2_ERR_FORMAT, "WebP: the first frame is cut short");
    const uint32_t width = webp_read_u24(chunk + 6) + 1, height = webp_read_u24(chunk + 9) + 1;
    webp->left = 2 * webp_read_u24(chunk);
    webp->top = 2 * webp_read_u24(chunk + 3);
    if (webp->left >= webp->width || webp->top >= webp->height ||
        width > webp->width - webp->left || height > webp->height - webp->top)
        return dl2_error_set(error, DL2_ERR_FORMAT, "WebP: the first frame is not in the image");
    const uint8_t *const data = chunk + FRAME_HEADER;
    const size_t size = length - FRAME_HEADER;
    const bool alpha = !memcmp(data, "ALPH", 4);
    const size_t head_size = alpha ? sizeof head : RIFF_HEADER;
    head[RIFF_HEADER + CHUNK_HEADER] = ALPHA;
    dl2_write_le(head + RIFF_HEADER + CHUNK_HEADER + 4, width - 1, 3);
    dl2_write_le(head + RIFF_HEADER + CHUNK_HEADER + 7, height - 1, 3);
    dl2_write_le(head + 4, head_size + size - CHUNK_HEADER, 4);
    DL2_TRY(dl2_bytes_resize(&webp->frame, head_size + size, error));
    memcpy(webp->frame.data, head, head_size);
    memcpy(webp->frame.data + head_size, data, size);
    webp->data = webp->frame.data;
    webp->size = webp->frame.size;
    webp->covers = width == webp->width && height == webp->height;
    const VP8StatusCode code = WebPGetFeatures(webp->data, webp->size, &webp->config.input);
    if (code != VP8_STATUS_OK)
        return webp_fail(code, error);
    if (webp->config.input.width != (int)width || webp->config.input.height != (int)height)
        return dl2_error_set(error, DL2_ERR_FORMAT,
                             "WebP: the first frame has another size than its header says");
    return DL2_OK;
}

/* Is there a frame behind the first? */
static bool webp_has_more(const uint8_t *data, size_t size)
{
    size_t length;
    const uint8_t *const first = webp_find_chunk(data, size, "ANMF", &length);
    const size_t behind = first ? (size_t)(first - data) + length + (length & 1) : size;
    /* webp_find_chunk() begins behind what it takes for the head of a file. */
    return behind < size && webp_find_chunk(data + behind - RIFF_HEADER,
                                            size - behind + RIFF_HEADER, "ANMF", &length);
}

static int webp_open(void *state, struct dl2_image_info *info, struct dl2_error *error)
{
    struct webp_state *webp = state;
    WebPBitstreamFeatures *features = &webp->config.input;
    const uint8_t *const data = webp->base.data;
    const size_t size = webp->base.size;
    if (!WebPInitDecoderConfig(&webp->config))
        return dl2_error_set(error, DL2_ERR_UNSUPPORTED, WEBP_TOO_OLD);
    VP8StatusCode code = WebPGetFeatures(data, size, features);
    if (code != VP8_STATUS_OK)
        return webp_fail(code, error);
    webp->data = data;
    webp->size = size;
    webp->width = info->width = (uint32_t)features->width;
    webp->height = info->height = (uint32_t)features->height;
    webp->left = webp->top = 0;
    webp->covers = true;
    if (features->has_animation) {
        info->has_more = webp_has_more(data, size);
        DL2_TRY(dl2_image_check_size(info->width, info->height, webp->base.max_pixels, error));
        DL2_TRY(webp_take_frame(webp, error));
    }
    info->channels = 3;
    info->bits = 8;
    info->alpha = features->has_alpha || !webp->covers;
    info->orientation = webp_orientation(data, size);
    webp->filtered_alpha = features->has_alpha && webp_has_filtered_alpha(webp->data, webp->size);
    return DL2_OK;
}

/* A rectangle in pixels; x and y are even, as libwebp would round them. */
struct webp_window {
    uint32_t x, y, width, height;
};

static int webp_run(struct webp_state *webp, const struct webp_window *window,
                    struct dl2_error *error)
{
    WebPDecoderConfig *config = &webp->config;
    config->options.use_cropping = 1;
    config->options.crop_left = (int)window->x;
    config->options.crop_top = (int)window->y;
    config->options.crop_width = (int)window->width;
    config->options.crop_height = (int)window->height;
    config->output.is_external_memory = 1;
    VP8StatusCode code = WebPDecode(webp->data, webp->size, config);
    WebPFreeDecBuffer(&config->output);
    return code == VP8_STATUS_OK ? DL2_OK : webp_fail(code, error);
}

static int webp_read_rgb(struct webp_state *webp, const struct webp_window *window,
                         const uint8_t background[3], struct dl2_image *image,
                         struct dl2_error *error)
{
    DL2_TRY(dl2_image_reshape(image, window->width, window->height, 3, error));
    const bool alpha = webp->config.input.has_alpha;
    const size_t row = alpha ? (size_t)window->width * 4 : image->stride;
    if (alpha)
        DL2_TRY(dl2_bytes_resize(&webp->base.block, row * window->height, error));
    WebPDecBuffer *output = &webp->config.output;
    output->colorspace = alpha ? MODE_RGBA : MODE_RGB;
    output->u.RGBA.rgba = alpha ? webp->base.block.data : image->data;
    output->u.RGBA.stride = (int)row;
    output->u.RGBA.size = row * window->height;
    DL2_TRY(webp_run(webp, window, error));
    if (alpha)
        dl2_flatten(webp->base.block.data, image->data, (size_t)window->width * window->height, 3,
                    background);
    return DL2_OK;
}

/*
 * The rectangle and `margin` pixels around it. It begins at the first row where opacities are
 * filtered: libwebp (1.2.4 at least) takes those above the window for zero, although the first one
 * of each row is predicted from the row above.
 */
static struct webp_window webp_window_of(const struct webp_state *webp,
                                         const struct dl2_decode_request *request, uint32_t margin)
{
    struct webp_window window = {request->x, request->y, request->width, request->height};
    dl2_widen(&window.x, &window.width, margin, 2, (uint32_t)webp->config.input.width);
    dl2_widen(&window.y, &window.height, margin, 2, (uint32_t)webp->config.input.height);
    if (webp->filtered_alpha) {
        window.height += window.y;
        window.y = 0;
    }
    return window;
}

/* Luma and chroma as they lie in the file: they need neither a margin nor conversion. */
static int webp_read_planes(struct webp_state *webp, const struct dl2_decode_request *request,
                            struct dl2_raster *raster, struct dl2_error *error)
{
    const struct webp_window window = webp_window_of(webp, request, 0);
    const uint32_t half_width = (window.width + 1) / 2, half_height = (window.height + 1) / 2;
    const size_t luma = (size_t)window.width * window.height,
                 chroma = (size_t)half_width * half_height;
    DL2_TRY(dl2_bytes_resize(&webp->base.block, luma + 2 * chroma, error));
    WebPYUVABuffer *planes = &webp->config.output.u.YUVA;
    webp->config.output.colorspace = MODE_YUV;
    planes->y = webp->base.block.data;
    planes->u = planes->y + luma;
    planes->v = planes->u + chroma;
    planes->y_stride = (int)window.width;
    planes->u_stride = planes->v_stride = (int)half_width;
    planes->y_size = luma;
    planes->u_size = planes->v_size = chroma;
    /* Made before decoding: libwebp may change `planes`. */
    *raster = (struct dl2_raster){
        .color = DL2_COLOR_YCBCR_LIMITED,
        .planes = {dl2_plane_of(planes->y, window.width, window.width, window.height, 0, 0),
                   dl2_plane_of(planes->u, half_width, window.width, window.height, 1, 1),
                   dl2_plane_of(planes->v, half_width, window.width, window.height, 1, 1)}};
    for (int i = 0; i < 3; i++) {
        raster->planes[i].x = window.x;
        raster->planes[i].y = window.y;
    }
    return webp_run(webp, &window, error);
}

/*
 * libwebp's chroma upsampling takes the window's edge for the image's: two pixels more on each
 * side, one sample of chroma, make the rectangle the same as in the whole image.
 */
enum { LOSSY = 1, MARGIN = 2 };

/* A frame on its canvas, all of it. */
static int webp_read_canvas(struct webp_state *webp, const uint8_t background[3],
                            struct dl2_image *image, struct dl2_error *error)
{
    const struct webp_window frame = {0, 0, (uint32_t)webp->config.input.width,
                                      (uint32_t)webp->config.input.height};
    const size_t row = (size_t)frame.width * 4;
    DL2_TRY(dl2_bytes_resize(&webp->base.block, row * frame.height, error));
    DL2_TRY(dl2_image_reshape(image, webp->width, webp->height, 3, error));
    WebPDecBuffer *output = &webp->config.output;
    output->colorspace = MODE_RGBA;
    output->u.RGBA.rgba = webp->base.block.data;
    output->u.RGBA.stride = (int)row;
    output->u.RGBA.size = row * frame.height;
    DL2_TRY(webp_run(webp, &frame, error));
    for (size_t i = 0; i < (size_t)webp->width * webp->height; i++)
        memcpy(image->data + 3 * i, background, 3);
    for (uint32_t y = 0; y < frame.height; y++)
        dl2_flatten(webp->base.block.data + y * row,
                    image->data + (webp->top + y) * image->stride + 3 * (size_t)webp->left,
                    frame.width, 3, background);
    return DL2_OK;
}

static int webp_read(void *state, const struct dl2_decode_request *request, struct dl2_image *image,
                     struct dl2_raster *raster, struct dl2_error *error)
{
    struct webp_state *webp = state;
    const bool lossy = webp->config.input.format == LOSSY;
    if (!webp->covers) {
        DL2_TRY(webp_read_canvas(webp, request->background, image, error));
        *raster = dl2_raster_of(image, 0, 0);
        return DL2_OK;
    }
    if (lossy && request->planes && request->channels != 1 && !webp->config.input.has_alpha)
        return webp_read_planes(webp, request, raster, error);
    const struct webp_window window = webp_window_of(webp, request, lossy ? MARGIN : 0);
    DL2_TRY(webp_read_rgb(webp, &window, request->background, image, error));
    *raster = dl2_raster_of(image, window.x, window.y);
    return DL2_OK;
}

static void webp_close(void *state)
{
    struct webp_state *webp = state;
    dl2_bytes_free(&webp->frame);
}

static size_t webp_memory(const void *state)
{
    const struct webp_state *webp = state;
    return webp->frame.capacity;
}

static int webp_color(const uint8_t *data, size_t size, struct dl2_color_space *color,
                      struct dl2_error *error)
{
    size_t length;
    const uint8_t *profile = webp_find_chunk(data, size, "ICCP", &length);
    return profile ? dl2_color_set_icc(color, profile, length, error) : DL2_OK;
}

static int webp_method(const struct dl2_encode_options *options)
{
    return options->effort < 0 ? DEFAULT_METHOD : options->effort;
}

static int webp_import(WebPPicture *picture, const struct dl2_image *image, struct dl2_error *error)
{
    int imported;
    if (image->channels == 3) {
        imported = WebPPictureImportRGB(picture, image->data, (int)image->stride);
    } else {
        struct dl2_bytes rgb = DL2_BYTES_INIT;
        size_t pixels = (size_t)image->width * image->height;
        DL2_TRY(dl2_bytes_resize(&rgb, pixels * 3, error));
        for (size_t i = 0; i < pixels; i++)
            memset(rgb.data + 3 * i, image->data[i], 3);
        imported = WebPPictureImportRGB(picture, rgb.data, (int)image->width * 3);
        dl2_bytes_free(&rgb);
    }
    if (!imported)
        return dl2_error_set(error, DL2_ERR_MEMORY, "WebP: out of memory for an image of %ux%u",
                             (unsigned)image->width, (unsigned)image->height);
    return DL2_OK;
}

/* Puts a chunk at a place of the file; none if it is empty. */
static int webp_put_chunk(struct dl2_bytes *out, size_t at, const char *name,
                          const struct dl2_bytes *content, struct dl2_error *error)
{
    uint8_t head[CHUNK_HEADER];
    if (!content->size)
        return DL2_OK;
    memcpy(head, name, 4);
    dl2_write_le(head + 4, content->size, 4);
    DL2_TRY(dl2_bytes_insert(out, at, "", content->size & 1, error));
    DL2_TRY(dl2_bytes_insert(out, at, content->data, content->size, error));
    return dl2_bytes_insert(out, at, head, sizeof head, error);
}

/* Makes a simple file an extended one if it is to hold a profile or metadata: VP8X, ICCP, the
 * image, EXIF, XMP. */
static int webp_extend(struct dl2_bytes *out, const struct dl2_image *image,
                       const struct dl2_encode_options *options, struct dl2_error *error)
{
    enum { FLAGS = 8, CANVAS = 12, EXTENDED = 18, XMP = 4, EXIF = 8, PROFILE = 0x20 };
    static const struct dl2_metadata no_metadata;
    static const struct dl2_bytes no_profile;
    const struct dl2_metadata *metadata = options->metadata ? options->metadata : &no_metadata;
    const struct dl2_color_space *color = options->color;
    const struct dl2_bytes *profile =
        color && color->form == DL2_COLOR_SPACE_ICC ? &color->icc : &no_profile;
    uint8_t head[EXTENDED] = "VP8X\12"; /* ten bytes: flags, width, height less 1 */
    if (!profile->size && !metadata->exif.size && !metadata->xmp.size)
        return DL2_OK;
    head[FLAGS] = (uint8_t)((profile->size ? PROFILE : 0) | (metadata->exif.size ? EXIF : 0) |
                            (metadata->xmp.size ? XMP : 0));
    dl2_write_le(head + CANVAS, image->width - 1, 3);
    dl2_write_le(head + CANVAS + 3, image->height - 1, 3);
    DL2_TRY(webp_put_chunk(out, out->size, "EXIF", &metadata->exif, error));
    DL2_TRY(webp_put_chunk(out, out->size, "XMP ", &metadata->xmp, error));
    DL2_TRY(webp_put_chunk(out, RIFF_HEADER, "ICCP", profile, error));
    DL2_TRY(dl2_bytes_insert(out, RIFF_HEADER, head, sizeof head, error));
    dl2_write_le(out->data + 4, out->size - CHUNK_HEADER, 4);
    return DL2_OK;
}

static int webp_metadata(const uint8_t *data, size_t size, struct dl2_metadata *metadata,
                         struct dl2_error *error)
{
    size_t length;
    const uint8_t *chunk = webp_find_chunk(data, size, "EXIF", &length);
    if (chunk)
        DL2_TRY(dl2_metadata_set_exif(metadata, chunk, length, error));
    chunk = webp_find_chunk(data, size, "XMP ", &length);
    return chunk ? dl2_metadata_set_xmp(metadata, chunk, length, error) : DL2_OK;
}

enum { LOSSLESS, NEAR_LOSSLESS, SHARP_YUV, FILTER, AUTOFILTER };
static const struct dl2_setting webp_settings[] = {
    [LOSSLESS] = {.name = "lossless",
                  .words = dl2_setting_no_yes,
                  .replaces_quality = true,
                  .help = "keep every pixel"},
    [NEAR_LOSSLESS] = {.name = "near_lossless",
                       .max = 100,
                       .usual = 100,
                       .whole = true,
                       .replaces_quality = true,
                       .help = "lossless, after pixels were changed a little, the more the lower"},
    [SHARP_YUV] = {.name = "sharp_yuv",
                   .words = dl2_setting_no_yes,
                   .help = "slower, sharper conversion to 4:2:0"},
    [FILTER] = {.name = "filter",
                .max = 100,
                .usual = 60,
                .whole = true,
                .help = "strength of the deblocking filter"},
    [AUTOFILTER] = {.name = "autofilter",
                    .words = dl2_setting_no_yes,
                    .help = "choose the filter's strength for each image"},
    {.name = NULL}};

static double webp_setting(const struct dl2_encode_options *options, unsigned row)
{
    return dl2_setting_value(webp_settings, options, row);
}

/* A setting that another one leaves without effect is refused. */
static int webp_check(const struct dl2_encode_options *options, struct dl2_error *error)
{
    const bool lossless = webp_setting(options, LOSSLESS) > 0;
    const bool near = webp_setting(options, NEAR_LOSSLESS) < 100;
    const bool filter = webp_setting(options, FILTER) < 60 || webp_setting(options, FILTER) > 60;
    const bool autofilter = webp_setting(options, AUTOFILTER) > 0;
    if (lossless && near)
        return dl2_error_set(error, DL2_ERR_ARGUMENT,
                             "webp: near_lossless files are lossless ones: leave out lossless");
    if ((lossless || near) && (filter || autofilter || webp_setting(options, SHARP_YUV) > 0))
        return dl2_error_set(error, DL2_ERR_ARGUMENT,
                             "webp: sharp_yuv, filter and autofilter have no effect on lossless "
                             "files");
    if (filter && autofilter)
        return dl2_error_set(error, DL2_ERR_ARGUMENT,
                             "webp: filter has no effect: autofilter chooses the strength");
    return DL2_OK;
}

static void webp_configure(WebPConfig *config, const struct dl2_encode_options *options)
{
    const bool near = webp_setting(options, NEAR_LOSSLESS) < 100;
    config->method = webp_method(options);
    config->use_sharp_yuv = (int)webp_setting(options, SHARP_YUV);
    config->filter_strength = (int)webp_setting(options, FILTER);
    config->autofilter = (int)webp_setting(options, AUTOFILTER);
    if (!near && !(webp_setting(options, LOSSLESS) > 0))
        return;
    config->lossless = 1;
    config->near_lossless = (int)webp_setting(options, NEAR_LOSSLESS);
    config->quality = LOSSLESS_QUALITY;
}

static int webp_encode(const struct dl2_image *image, const struct dl2_encode_options *options,
                       struct dl2_bytes *out, struct dl2_error *error)
{
    WebPConfig config;
    WebPPicture picture;
    if (!WebPConfigPreset(&config, WEBP_PRESET_DEFAULT, (float)options->quality) ||
        !WebPPictureInit(&picture))
        return dl2_error_set(error, DL2_ERR_UNSUPPORTED, WEBP_TOO_OLD);
    WebPMemoryWriter file;
    DL2_TRY(webp_check(options, error));
    webp_configure(&config, options);
    picture.width = (int)image->width;
    picture.height = (int)image->height;
    /* Otherwise importing converts to 4:2:0, softly, before the encoder sees the pixels. */
    picture.use_argb = config.lossless || config.use_sharp_yuv;
    WebPMemoryWriterInit(&file);
    picture.writer = WebPMemoryWrite;
    picture.custom_ptr = &file;
    int status = webp_import(&picture, image, error);
    if (status == DL2_OK)
        status = WebPEncode(&config, &picture) ? dl2_bytes_append(out, file.mem, file.size, error)
                 : picture.error_code == VP8_ENC_ERROR_BAD_WRITE
                     ? dl2_error_memory(error, "a WebP image")
                     : dl2_error_set(error, DL2_ERR_UNSUPPORTED,
                                     "WebP: libwebp can't encode this (its error %d)",
                                     (int)picture.error_code);
    WebPMemoryWriterClear(&file);
    WebPPictureFree(&picture);
    return status == DL2_OK ? webp_extend(out, image, options, error) : status;
}

static json_t *webp_parameters(const struct dl2_encode_options *options)
{
    WebPConfig config = {.quality = (float)options->quality};
    webp_configure(&config, options);
    json_t *json =
        json_pack("{s:i, s:i, s:s, s:s}", "quality", (int)config.quality, "method", config.method,
                  "preset", "default", "subsampling", config.lossless ? "444" : "420");
    if (config.lossless)
        json_object_set_new(json, "near_lossless", json_integer(config.near_lossless));
    if (config.use_sharp_yuv)
        json_object_set_new(json, "use_sharp_yuv", json_true());
    if (webp_setting(options, FILTER) < 60 || webp_setting(options, FILTER) > 60)
        json_object_set_new(json, "filter_strength", json_integer(config.filter_strength));
    if (config.autofilter)
        json_object_set_new(json, "autofilter", json_true());
    return json;
}

static void webp_version(char out[DL2_CODEC_VERSION_SIZE])
{
    const int number = WebPGetEncoderVersion();
    snprintf(out, DL2_CODEC_VERSION_SIZE, "libwebp %d.%d.%d", number >> 16, number >> 8 & 255,
             number & 255);
}

const struct dl2_codec dl2_codec_webp = {
    .name = "webp",
    .metadata = webp_metadata,
    .metadata_bytes = INT32_MAX,
    .extension = "webp",
    .extensions = {"webp"},
    .lossy = true,
    .max_side = WEBP_MAX_DIMENSION,
    .colors = DL2_COLOR_SPACE_ICC,
    .no_gray = true,
    .max_effort = MAX_METHOD,
    .usual_effort = DEFAULT_METHOD,
    .effort_help = "the method, higher is smaller and slower",
    .settings = webp_settings,
    .pixel_bytes = 12,
    .find_version = webp_version,
    .signatures = {{12, "RIFF????WEBP"}},
    .color = webp_color,
    .coded_bytes = webp_coded_bytes,
    .state_size = sizeof(struct webp_state),
    .open = webp_open,
    .read = webp_read,
    .close = webp_close,
    .memory = webp_memory,
    .encode = webp_encode,
    .encoder_parameters = webp_parameters,
};
