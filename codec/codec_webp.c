/*
 * WebP through libwebp: lossy, always 4:2:0.
 *
 * Quality is libwebp's own quality factor, method 4 its default (effort is the method), so figures
 * compare with cwebp's. There is no gray WebP: gray images are stored as colour. Both lossy and
 * lossless files are read; of animations nothing is, since a first frame need not be a whole
 * picture.
 */
#include "codec/codecs.h"
#include "codec/exif.h"

#include <pthread.h>
#include <stdio.h>
#include <string.h>

#include <webp/decode.h>
#include <webp/encode.h>

enum { DEFAULT_METHOD = 4, MAX_METHOD = 6, CHUNK_HEADER = 8, RIFF_HEADER = 12 };

static bool sniff(const uint8_t *data, size_t size)
{
    return size >= RIFF_HEADER && !memcmp(data, "RIFF", 4) && !memcmp(data + 8, "WEBP", 4);
}

static uint32_t read_u32(const uint8_t *p)
{
    return (uint32_t)p[3] << 24 | (uint32_t)p[2] << 16 | (uint32_t)p[1] << 8 | p[0];
}

/* The first whole chunk of that name, or NULL. */
static const uint8_t *find_chunk(const uint8_t *data, size_t size, const char *name, size_t *length)
{
    size_t at = RIFF_HEADER;
    while (size - at >= CHUNK_HEADER) {
        *length = read_u32(data + at + 4);
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

/* Orientation from the EXIF chunk, which libwebp leaves to others. */
static int find_orientation(const uint8_t *data, size_t size)
{
    size_t length;
    const uint8_t *exif = find_chunk(data, size, "EXIF", &length);
    return exif ? dl2_exif_orientation(exif, length) : 1;
}

/* Are the opacities of a lossy file predicted from their neighbours? */
static bool has_filtered_alpha(const uint8_t *data, size_t size)
{
    size_t length;
    const uint8_t *alpha = find_chunk(data, size, "ALPH", &length);
    return alpha && length && (alpha[0] >> 2 & 3) != 0;
}

static const char *status_text(VP8StatusCode code)
{
    switch (code) {
    case VP8_STATUS_OUT_OF_MEMORY:
        return "out of memory";
    case VP8_STATUS_UNSUPPORTED_FEATURE:
        return "a feature that libwebp can't handle";
    case VP8_STATUS_SUSPENDED:
    case VP8_STATUS_NOT_ENOUGH_DATA:
        return "the file is cut short";
    case VP8_STATUS_BITSTREAM_ERROR:
        return "the data are corrupt";
    default:
        return "libwebp can't decode it";
    }
}

static int fail(VP8StatusCode code, struct dl2_error *error)
{
    int status = code == VP8_STATUS_OUT_OF_MEMORY         ? DL2_ERR_MEMORY
                 : code == VP8_STATUS_UNSUPPORTED_FEATURE ? DL2_ERR_UNSUPPORTED
                                                          : DL2_ERR_FORMAT;
    return dl2_error_set(error, status, "WebP: %s", status_text(code));
}

static int get_features(const uint8_t *data, size_t size, WebPBitstreamFeatures *features,
                        struct dl2_error *error)
{
    VP8StatusCode code = WebPGetFeatures(data, size, features);
    if (code != VP8_STATUS_OK)
        return fail(code, error);
    if (features->has_animation)
        return dl2_error_set(error, DL2_ERR_UNSUPPORTED, "WebP: animations are not supported");
    return DL2_OK;
}

static void fill_info(const WebPBitstreamFeatures *features, const uint8_t *data, size_t size,
                      struct dl2_image_info *info)
{
    *info = (struct dl2_image_info){.width = (uint32_t)features->width,
                                    .height = (uint32_t)features->height,
                                    .channels = 3,
                                    .bits = 8,
                                    .alpha = features->has_alpha,
                                    .orientation = find_orientation(data, size)};
}

static int read_info(const uint8_t *data, size_t size, struct dl2_image_info *info,
                     struct dl2_error *error)
{
    WebPBitstreamFeatures features;
    DL2_TRY(get_features(data, size, &features, error));
    fill_info(&features, data, size, info);
    return DL2_OK;
}

/* A part of an image, in pixels; left and top even, to which libwebp would snap them. */
struct window {
    uint32_t left, top, width, height;
};

static int run(const uint8_t *data, size_t size, const struct window *window,
               WebPDecoderConfig *config, struct dl2_error *error)
{
    config->options.use_cropping = 1;
    config->options.crop_left = (int)window->left;
    config->options.crop_top = (int)window->top;
    config->options.crop_width = (int)window->width;
    config->options.crop_height = (int)window->height;
    config->output.is_external_memory = 1;
    VP8StatusCode code = WebPDecode(data, size, config);
    WebPFreeDecBuffer(&config->output);
    return code == VP8_STATUS_OK ? DL2_OK : fail(code, error);
}

static int start(const uint8_t *data, size_t size, WebPDecoderConfig *config,
                 struct dl2_error *error)
{
    if (!WebPInitDecoderConfig(config))
        return dl2_error_set(error, DL2_ERR_UNSUPPORTED,
                             "WebP: libwebp is older than the one this was built with");
    return get_features(data, size, &config->input, error);
}

/* `block` is memory for pixels with alpha. */
static int decode_rgb(const uint8_t *data, size_t size, const struct window *window,
                      const uint8_t background[3], WebPDecoderConfig *config,
                      struct dl2_bytes *block, struct dl2_image *image, struct dl2_error *error)
{
    DL2_TRY(dl2_image_reshape(image, window->width, window->height, 3, error));
    const bool alpha = config->input.has_alpha;
    const size_t row = alpha ? (size_t)window->width * 4 : image->stride;
    if (alpha)
        DL2_TRY(dl2_bytes_resize(block, row * window->height, error));
    config->output.colorspace = alpha ? MODE_RGBA : MODE_RGB;
    config->output.u.RGBA.rgba = alpha ? block->data : image->data;
    config->output.u.RGBA.stride = (int)row;
    config->output.u.RGBA.size = row * window->height;
    DL2_TRY(run(data, size, window, config, error));
    if (alpha) {
        const uint8_t *in = block->data;
        uint8_t *out = image->data;
        for (size_t left = (size_t)window->width * window->height; left; left--, in += 4, out += 3)
            for (int c = 0; c < 3; c++)
                out[c] = dl2_blend(in[c], in[3], background[c]);
    }
    return DL2_OK;
}

static int decode(const uint8_t *data, size_t size, const struct dl2_decode_options *options,
                  struct dl2_image *image, struct dl2_error *error)
{
    uint64_t max_pixels = options->max_pixels ? options->max_pixels : DL2_DEFAULT_MAX_PIXELS;
    WebPDecoderConfig config;
    DL2_TRY(start(data, size, &config, error));
    const struct window all = {.width = (uint32_t)config.input.width,
                               .height = (uint32_t)config.input.height};
    DL2_TRY(dl2_image_check_size(all.width, all.height, max_pixels, error));
    struct dl2_bytes block = DL2_BYTES_INIT;
    int status = decode_rgb(data, size, &all, options->background, &config, &block, image, error);
    dl2_bytes_free(&block);
    return status;
}

/* ---- A part */

struct region {
    const uint8_t *data;
    size_t size;
    bool filtered_alpha;
    WebPDecoderConfig config;
    struct dl2_image image;
    struct dl2_bytes block; /* planes, or pixels with alpha */
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
    DL2_TRY(start(data, size, &region->config, error));
    fill_info(&region->config.input, data, size, info);
    region->filtered_alpha = info->alpha && has_filtered_alpha(data, size);
    return DL2_OK;
}

/* The even start of an axis' part that keeps `margin` pixels before `start`, where there are any.
 */
static uint32_t even_start(uint32_t start, uint32_t margin)
{
    return start > margin ? (start - margin) & ~1u : 0;
}

static uint32_t smaller(uint32_t a, uint32_t b)
{
    return a < b ? a : b;
}

/*
 * The rectangle and `margin` pixels around it. From the first row on where opacities are filtered:
 * libwebp (1.2.4 at least) takes those above the window for zero, although the first one of each
 * row is predicted from the row above.
 */
static struct window window_of(const struct region *region,
                               const struct dl2_decode_request *request, uint32_t margin)
{
    struct window window = {.left = even_start(request->x, margin),
                            .top = region->filtered_alpha ? 0 : even_start(request->y, margin)};
    const uint32_t width = (uint32_t)region->config.input.width,
                   height = (uint32_t)region->config.input.height;
    window.width = smaller(request->x + request->width + margin, width) - window.left;
    window.height = smaller(request->y + request->height + margin, height) - window.top;
    return window;
}

/* Luma and chroma as they lie in the file: they need neither a margin nor conversion. */
static int decode_planes(struct region *region, const struct dl2_decode_request *request,
                         struct dl2_raster *raster, struct dl2_error *error)
{
    const struct window window = window_of(region, request, 0);
    const uint32_t half_width = (window.width + 1) / 2, half_height = (window.height + 1) / 2;
    const size_t luma = (size_t)window.width * window.height,
                 chroma = (size_t)half_width * half_height;
    DL2_TRY(dl2_bytes_resize(&region->block, luma + 2 * chroma, error));
    WebPYUVABuffer *planes = &region->config.output.u.YUVA;
    region->config.output.colorspace = MODE_YUV;
    planes->y = region->block.data;
    planes->u = planes->y + luma;
    planes->v = planes->u + chroma;
    planes->y_stride = (int)window.width;
    planes->u_stride = planes->v_stride = (int)half_width;
    planes->y_size = luma;
    planes->u_size = planes->v_size = chroma;
    /* libwebp may change what it is told. */
    const struct dl2_plane y = {.data = planes->y,
                                .stride = window.width,
                                .width = window.width,
                                .height = window.height,
                                .x = window.left,
                                .y = window.top,
                                .step_x = 1,
                                .step_y = 1};
    const struct dl2_plane u = {.data = planes->u,
                                .stride = half_width,
                                .width = half_width,
                                .height = half_height,
                                .x = window.left,
                                .y = window.top,
                                .step_x = 2,
                                .step_y = 2};
    struct dl2_plane v = u;
    v.data = planes->v;
    *raster = (struct dl2_raster){.color = DL2_COLOR_YCBCR_LIMITED, .planes = {y, u, v}};
    return run(region->data, region->size, &window, &region->config, error);
}

/*
 * libwebp's chroma upsampling takes the window's edge for the image's: two pixels more on each
 * side, one sample of chroma, make what was asked for the same as in the whole image.
 */
enum { LOSSY = 1, MARGIN = 2 };

static int region_decode(void *state, const struct dl2_decode_request *request,
                         struct dl2_raster *raster, struct dl2_error *error)
{
    struct region *region = state;
    const bool lossy = region->config.input.format == LOSSY;
    if (lossy && request->planes && request->channels != 1 && !region->config.input.has_alpha)
        return decode_planes(region, request, raster, error);
    const struct window window = window_of(region, request, lossy ? MARGIN : 0);
    DL2_TRY(decode_rgb(region->data, region->size, &window, request->background, &region->config,
                       &region->block, &region->image, error));
    if (request->channels == 1)
        DL2_TRY(dl2_image_to_gray(&region->image, error));
    *raster = dl2_raster_of(&region->image, window.left, window.top);
    dl2_raster_narrow(raster, request);
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
    struct dl2_error *error;
    int status;
};

static int write_bytes(const uint8_t *data, size_t size, const WebPPicture *picture)
{
    struct sink *sink = picture->custom_ptr;
    sink->status = dl2_bytes_append(sink->out, data, size, sink->error);
    return sink->status == DL2_OK;
}

static int method_of(const struct dl2_encode_options *options)
{
    return options->effort < 0 ? DEFAULT_METHOD : options->effort;
}

static int import(WebPPicture *picture, const struct dl2_image *image, struct dl2_error *error)
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

static int encode(const struct dl2_image *image, const struct dl2_encode_options *options,
                  struct dl2_bytes *out, struct dl2_error *error)
{
    WebPConfig config;
    WebPPicture picture;
    if (!WebPConfigPreset(&config, WEBP_PRESET_DEFAULT, (float)options->quality) ||
        !WebPPictureInit(&picture))
        return dl2_error_set(error, DL2_ERR_UNSUPPORTED,
                             "WebP: libwebp is older than the one this was built with");
    struct sink sink = {out, error, DL2_OK};
    config.method = method_of(options);
    picture.width = (int)image->width;
    picture.height = (int)image->height;
    picture.writer = write_bytes;
    picture.custom_ptr = &sink;
    int status = import(&picture, image, error);
    if (status == DL2_OK && !WebPEncode(&config, &picture)) {
        status = sink.status < 0 ? sink.status
                                 : dl2_error_set(error, DL2_ERR_UNSUPPORTED,
                                                 "WebP: libwebp can't encode this (its error %d)",
                                                 (int)picture.error_code);
    }
    WebPPictureFree(&picture);
    return status;
}

static json_t *encoder_parameters(const struct dl2_encode_options *options)
{
    return json_pack("{s:i, s:i, s:s, s:s}", "quality", options->quality, "method",
                     method_of(options), "preset", "default", "subsampling", "420");
}

static char version_text[32];
static pthread_once_t version_once = PTHREAD_ONCE_INIT;

static void make_version(void)
{
    int number = WebPGetEncoderVersion();
    snprintf(version_text, sizeof version_text, "libwebp %d.%d.%d", number >> 16, number >> 8 & 255,
             number & 255);
}

static const char *version(void)
{
    pthread_once(&version_once, make_version);
    return version_text;
}

static const char *const extensions[] = {"webp", NULL};

const struct dl2_codec dl2_codec_webp = {
    .name = "webp",
    .extension = "webp",
    .extensions = extensions,
    .lossy = true,
    .max_side = WEBP_MAX_DIMENSION,
    .max_effort = MAX_METHOD,
    .effort_help = "the method, higher is smaller and slower, default 4",
    .pixel_bytes = 12,
    .version = version,
    .sniff = sniff,
    .read_info = read_info,
    .decode = decode,
    .region = &region_codec,
    .encode = encode,
    .encoder_parameters = encoder_parameters,
};
