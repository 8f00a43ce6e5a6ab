/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * JPEG 2000 through OpenJPEG: JP2 files and bare codestreams in, JP2 files out.
 *
 * Quality is a target: PSNR = 22 + quality / 5 dB for each image (OpenJPEG's tcp_distoratio), so 50
 * asks for 32 dB, about what JPEG gives at 50 on photographs, and 100 for 42. A target of quality
 * and not of size, since that is what a quality means with the other codecs: simple images come out
 * small, and hard ones aren't starved (a size target would give every image the same bits per
 * pixel). Of slices of volumes PSNR = 30 + 2 * quality / 5 dB, from 34 at 10 to 70 at 100, at the
 * peak of their bits: a scan's noise alone lies 40 to 60 dB below that. 9/7 wavelet, color
 * transform for RGB, one tile, one layer; gray stays gray. There is no effort to choose.
 *
 * Color: gray, sRGB, sYCC, CMYK and CIELab are converted, e-sRGB, ROMM RGB and what a profile says
 * of RGB or gray are left as their numbers, and every other color space is refused by its name.
 * Profiles that a JP2 file may hold have a matrix and curves, or are of gray.
 *
 * Rectangles: OpenJPEG (2.5.0 at least) decodes rectangles of high-throughput (HTJ2K) files
 * wrongly. It also reduces samples that aren't colors yet: numbers of a palette's entries, inks,
 * CIELab, and colors under an alpha of zero. More than the rectangle is decoded of such files, and
 * at full resolution.
 */
#include "codec/codecs.h"
#include "codec/jp2_boxes.h"
#include "common/scope.h"

#include <stdio.h>
#include <string.h>

#include <openjpeg.h>

enum {
    MAX_BITS = 31,
    MAX_RESOLUTIONS = 6,
    STREAM_BLOCK = 1 << 16,
};

static void jp2_on_error(const char *message, void *error)
{
    dl2_error_set(error, DL2_ERR_FORMAT, "JPEG 2000: %.*s", (int)strcspn(message, "\n"), message);
}

static void jp2_on_message(const char *message, void *error)
{
    (void)message, (void)error;
}

/* Errors go to `error`; nothing is printed. */
static void jp2_set_handlers(opj_codec_t *codec, struct dl2_error *error)
{
    opj_set_error_handler(codec, jp2_on_error, error);
    opj_set_warning_handler(codec, jp2_on_message, NULL);
    opj_set_info_handler(codec, jp2_on_message, NULL);
}

static OPJ_SIZE_T jp2_source_read(void *out, OPJ_SIZE_T count, void *user)
{
    const size_t taken = dl2_codec_take(user, out, count);
    return taken ? taken : (OPJ_SIZE_T)-1;
}

static OPJ_BOOL jp2_source_seek(OPJ_OFF_T position, void *user)
{
    struct dl2_codec_state *source = user;
    if (position < 0 || (uint64_t)position > source->size)
        return OPJ_FALSE;
    source->at = (size_t)position;
    return OPJ_TRUE;
}

static OPJ_OFF_T jp2_source_skip(OPJ_OFF_T count, void *user)
{
    struct dl2_codec_state *source = user;
    if (count < 0)
        return -1;
    if ((uint64_t)count > source->size - source->at)
        count = (OPJ_OFF_T)(source->size - source->at);
    source->at += (size_t)count;
    return count;
}

static uint8_t jp2_clamp(int value)
{
    return (uint8_t)(value < 0 ? 0 : value > 255 ? 255 : value);
}

static int64_t jp2_maximum(const opj_image_comp_t *component)
{
    return ((int64_t)1 << component->prec) - 1;
}

/* A sample as a level from 0 to the maximum. */
static inline int64_t jp2_level(const opj_image_comp_t *component, int64_t value)
{
    const int64_t maximum = jp2_maximum(component);
    value += component->sgnd ? (int64_t)1 << (component->prec - 1) : 0;
    return value < 0 ? 0 : value > maximum ? maximum : value;
}

/* A component as 8-bit samples of the image's size, rows of `stride`, every `step` bytes. */
static int jp2_take_component(const opj_image_comp_t *component, uint32_t width, uint32_t height,
                              uint8_t *out, size_t step, struct dl2_error *error)
{
    if (!component->data || !component->w || !component->h || component->w > width ||
        component->h > height)
        return dl2_error_set(error, DL2_ERR_FORMAT,
                             "JPEG 2000: the components' sizes contradict each other");
    if (component->prec < 1 || component->prec > MAX_BITS)
        return dl2_error_set(error, DL2_ERR_UNSUPPORTED, "JPEG 2000: %u bits a sample",
                             (unsigned)component->prec);
    bool same = component->w == width && component->h == height;
    if (same && component->prec == 8 && !component->sgnd) {
        const OPJ_INT32 *in = component->data;
        for (size_t left = (size_t)width * height; left; left--, in++, out += step)
            *out = jp2_clamp(*in);
        return DL2_OK;
    }
    const int64_t maximum = jp2_maximum(component);
    for (uint32_t y = 0; y < height; y++) {
        uint32_t from_y = same ? y : (uint32_t)((uint64_t)y * component->h / height);
        const OPJ_INT32 *in = component->data + (size_t)from_y * component->w;
        for (uint32_t x = 0; x < width; x++, out += step) {
            const int64_t value =
                jp2_level(component, in[same ? x : (uint64_t)x * component->w / width]);
            *out = (uint8_t)(maximum == 255 ? value : (value * 255 + maximum / 2) / maximum);
        }
    }
    return DL2_OK;
}

/* BT.601, full range, in place. */
static void jp2_ycc_to_rgb(uint8_t *pixel, size_t pixels)
{
    for (; pixels; pixels--, pixel += 3) {
        int y = pixel[0] * 65536 + 32768, cb = pixel[1] - 128, cr = pixel[2] - 128;
        pixel[0] = jp2_clamp((y + 91881 * cr) >> 16);
        pixel[1] = jp2_clamp((y - 22554 * cb - 46802 * cr) >> 16);
        pixel[2] = jp2_clamp((y + 116130 * cb) >> 16);
    }
}

/* Lays what has the opacities, or inks of black, of `last` over the background, in place. */
static void jp2_apply_last_component(struct dl2_image *image, const uint8_t *last, bool cmyk,
                                     const uint8_t background[3])
{
    size_t pixels = (size_t)image->width * image->height;
    uint8_t *out = image->data;
    uint8_t gray = dl2_luma(background[0], background[1], background[2]);
    for (size_t i = 0; i < pixels; i++, out += image->channels) {
        for (uint32_t c = 0; c < image->channels; c++) {
            if (cmyk)
                out[c] = (uint8_t)(((255 - out[c]) * (255 - last[i]) + 127) / 255);
            else
                out[c] = dl2_blend(out[c], last[i], image->channels == 1 ? gray : background[c]);
        }
    }
}

/* CIELab to sRGB, in place. */
static void jp2_lab_to_rgb(const struct dl2_jp2_lab *lab, uint32_t bits, uint8_t *pixel,
                           size_t pixels)
{
    const double maximum = (double)(((uint64_t)1 << bits) - 1), half = (maximum + 1) / 2;
    const double standard[3] = {0, half, half / 2 + half / 4};
    for (; pixels; pixels--, pixel += 3) {
        double value[3];
        for (int c = 0; c < 3; c++)
            value[c] = lab->range[c] *
                       (pixel[c] / 255.0 - (lab->has_zero ? lab->zero[c] : standard[c]) / maximum);
        dl2_lab_to_srgb(value, lab->d65, pixel);
    }
}

static bool jp2_is_ycc(const opj_image_t *decoded, const struct dl2_jp2_header *header)
{
    if (decoded->numcomps < 3 || header->color.space == DL2_JP2_CMYK ||
        header->color.space == DL2_JP2_LAB)
        return false;
    const opj_image_comp_t *components = decoded->comps;
    return header->color.space == DL2_JP2_SYCC || decoded->color_space == OPJ_CLRSPC_SYCC ||
           (components[1].dx > components[0].dx && components[2].dx > components[0].dx);
}

/* `last` is memory for opacities or black. */
static int jp2_take_image(const opj_image_t *decoded, const struct dl2_jp2_header *header,
                          uint32_t width, uint32_t height, const uint8_t background[3],
                          struct dl2_bytes *last, struct dl2_image *image, struct dl2_error *error)
{
    if (decoded->numcomps != header->components)
        return dl2_error_set(error, DL2_ERR_FORMAT,
                             "JPEG 2000: %u components where the header has %u",
                             (unsigned)decoded->numcomps, (unsigned)header->components);
    if (decoded->color_space == OPJ_CLRSPC_EYCC)
        return dl2_error_set(error, DL2_ERR_UNSUPPORTED, "JPEG 2000: e-YCC color is not supported");
    DL2_TRY(dl2_image_reshape(image, width, height, dl2_jp2_channels(header), error));
    for (uint32_t c = 0; c < image->channels; c++)
        DL2_TRY(jp2_take_component(&decoded->comps[c], width, height, image->data + c,
                                   image->channels, error));
    if (jp2_is_ycc(decoded, header))
        jp2_ycc_to_rgb(image->data, (size_t)width * height);
    else if (header->color.space == DL2_JP2_LAB)
        jp2_lab_to_rgb(&header->color.lab, decoded->comps[0].prec, image->data,
                       (size_t)width * height);
    if (!dl2_jp2_has_alpha(header) && header->color.space != DL2_JP2_CMYK)
        return DL2_OK;
    DL2_TRY(dl2_bytes_resize(last, (size_t)width * height, error));
    DL2_TRY(
        jp2_take_component(&decoded->comps[image->channels], width, height, last->data, 1, error));
    jp2_apply_last_component(image, last->data, header->color.space == DL2_JP2_CMYK, background);
    return DL2_OK;
}

/* Gray and RGB, with opacities or without, whose components all have the image's size. */
static bool jp2_is_plain_deep(const struct dl2_jp2_header *header)
{
    return header->plain && !header->palette &&
           header->components == dl2_jp2_channels(header) + dl2_jp2_has_alpha(header) &&
           header->color.space != DL2_JP2_LAB && header->color.space != DL2_JP2_SYCC;
}

static int jp2_take_deep(const opj_image_t *decoded, const struct dl2_jp2_header *header,
                         const uint8_t background[3], struct dl2_deep_image *image,
                         struct dl2_error *error)
{
    const uint32_t width = header->width, height = header->height, step = header->components;
    if (decoded->numcomps != step || decoded->color_space == OPJ_CLRSPC_EYCC ||
        jp2_is_ycc(decoded, header))
        return dl2_error_set(error, DL2_ERR_UNSUPPORTED, "JPEG 2000: not read at 16 bits");
    DL2_TRY(dl2_deep_reshape(image, width, height, step, error));
    for (uint32_t c = 0; c < step; c++) {
        const opj_image_comp_t *component = &decoded->comps[c];
        if (!component->data || component->w != width || component->h != height ||
            component->prec < 1 || component->prec > MAX_BITS)
            return dl2_error_set(error, DL2_ERR_FORMAT,
                                 "JPEG 2000: the components' sizes contradict each other");
        uint16_t *out = dl2_deep_row(image, 0) + c;
        for (size_t i = 0; i < (size_t)width * height; i++, out += step)
            *out = dl2_deep_sample((uint64_t)jp2_level(component, component->data[i]),
                                   (uint64_t)jp2_maximum(component));
    }
    dl2_flatten_deep(image, background, false);
    return DL2_OK;
}

/* The area that OpenJPEG decodes: pixels [left, right) x [top, bottom),
 * 2^reduction times coarser. */
struct jp2_area {
    uint32_t left, top, right, bottom, reduction;
    bool whole; /* no area is set, and OpenJPEG reads the file to its end */
};

struct jp2_state {
    struct dl2_codec_state base; /* block: opacities or black */
    struct dl2_jp2_header header;
};

/* The part of what was decoded of `area`. */
static int jp2_take_gray(const opj_image_t *decoded, const struct jp2_area *area,
                         const struct dl2_gray_part *part, uint16_t *out, struct dl2_error *error)
{
    const opj_image_comp_t *component = decoded->comps;
    if (decoded->numcomps != 1 || !component->data || component->prec != part->bits ||
        component->w != area->right - area->left || component->h != area->bottom - area->top)
        return dl2_error_set(error, DL2_ERR_FORMAT,
                             "JPEG 2000: the components' sizes contradict each other");
    for (uint32_t y = 0; y < part->rows; y++, out += part->columns) {
        const OPJ_INT32 *in = component->data + (size_t)(part->y - area->top + y) * component->w +
                              (part->x - area->left);
        for (uint32_t x = 0; x < part->columns; x++)
            out[x] = (uint16_t)jp2_level(component, in[x]);
    }
    return DL2_OK;
}

/* Where samples go: one of these. */
struct jp2_output {
    struct dl2_image *image;
    struct dl2_deep_image *deep; /* all of them */
    const struct dl2_gray_part *part;
    uint16_t *gray;
};

/* The levels of resolution that every component has. */
static uint32_t jp2_resolutions(opj_codec_t *codec, uint32_t components)
{
    opj_codestream_info_v2_t *info = opj_get_cstr_info(codec);
    uint32_t least = info && info->m_default_tile_info.tccp_info ? UINT32_MAX : 1;
    for (uint32_t c = 0; least > 1 && c < components && c < info->nbcomps; c++) {
        uint32_t levels = info->m_default_tile_info.tccp_info[c].numresolutions;
        least = levels < least ? levels : least;
    }
    if (info)
        opj_destroy_cstr_info(&info);
    return least;
}

/* Tells OpenJPEG what is wanted; lowers the reduction to what the file has. */
static bool jp2_choose_area(opj_codec_t *codec, opj_image_t *image,
                            const struct dl2_jp2_header *header, struct jp2_area *area)
{
    const uint32_t levels = jp2_resolutions(codec, header->components);
    if (area->reduction >= levels)
        area->reduction = levels ? levels - 1 : 0;
    if (area->reduction && !opj_set_decoded_resolution_factor(codec, area->reduction))
        return false;
    return opj_set_decode_area(codec, image, (OPJ_INT32)area->left, (OPJ_INT32)area->top,
                               (OPJ_INT32)area->right, (OPJ_INT32)area->bottom);
}

static int jp2_run(struct jp2_state *jp2, struct jp2_area *area, const uint8_t background[3],
                   const struct jp2_output *output, struct dl2_error *error)
{
    struct dl2_error own =
        DL2_ERROR_INIT; /* so that a message of OpenJPEG's counts even if error is NULL */
    opj_dparameters_t parameters;
    opj_set_default_decoder_parameters(&parameters);
    opj_image_t *decoded = NULL;
    opj_codec_t *codec = opj_create_decompress(
        dl2_jp2_is_codestream(jp2->base.data, jp2->base.size) ? OPJ_CODEC_J2K : OPJ_CODEC_JP2);
    opj_stream_t *stream = opj_stream_create(STREAM_BLOCK, OPJ_TRUE);
    if (!codec || !stream) {
        dl2_error_memory(&own, "OpenJPEG");
        goto done;
    }
    jp2_set_handlers(codec, &own);
    jp2->base.at = 0;
    opj_stream_set_user_data(stream, &jp2->base, NULL);
    opj_stream_set_user_data_length(stream, jp2->base.size);
    opj_stream_set_read_function(stream, jp2_source_read);
    opj_stream_set_seek_function(stream, jp2_source_seek);
    opj_stream_set_skip_function(stream, jp2_source_skip);
    if (!opj_setup_decoder(codec, &parameters) || !opj_read_header(stream, codec, &decoded) ||
        (!area->whole && !jp2_choose_area(codec, decoded, &jp2->header, area)) ||
        !opj_decode(codec, stream, decoded) ||
        (area->whole && !opj_end_decompress(codec, stream))) {
        dl2_error_set(&own, DL2_ERR_FORMAT, "JPEG 2000: OpenJPEG can't decode it");
    } else if (output->gray) {
        jp2_take_gray(decoded, area, output->part, output->gray, &own);
    } else if (output->deep) {
        jp2_take_deep(decoded, &jp2->header, background, output->deep, &own);
    } else {
        const uint32_t up = (1u << area->reduction) - 1;
        jp2_take_image(decoded, &jp2->header,
                       ((area->right + up) >> area->reduction) - (area->left >> area->reduction),
                       ((area->bottom + up) >> area->reduction) - (area->top >> area->reduction),
                       background, &jp2->base.block, output->image, &own);
    }
done:
    opj_image_destroy(decoded);
    opj_stream_destroy(stream);
    if (codec)
        opj_destroy_codec(codec);
    return dl2_error_copy(error, &own);
}

static int jp2_open(void *state, struct dl2_image_info *info, struct dl2_error *error)
{
    struct jp2_state *jp2 = state;
    const struct dl2_jp2_header *header = &jp2->header;
    DL2_TRY(dl2_jp2_read_header(jp2->base.data, jp2->base.size, &jp2->header, error));
    info->width = header->width;
    info->height = header->height;
    info->channels = dl2_jp2_channels(header);
    info->bits = header->bits;
    info->alpha = dl2_jp2_has_alpha(header);
    info->left_out = dl2_jp2_extra(header) - info->alpha;
    info->cmyk = header->color.space == DL2_JP2_CMYK;
    return DL2_OK;
}

/* What decoding converts by itself (sYCC, CIELab) is sRGB afterwards. */
static int jp2_color(const uint8_t *data, size_t size, struct dl2_color_space *color,
                     struct dl2_error *error)
{
    enum { E_SRGB = 20, ROMM_RGB = 21 };
    static const double romm[8] = {0.7347, 0.2653, 0.1596, 0.8404, 0.0366, 0.0001, 0.3457, 0.3585};
    struct dl2_jp2_header header;
    DL2_TRY(dl2_jp2_read_header(data, size, &header, error));
    if (header.color.profile)
        return dl2_color_set_icc(color, header.color.profile, header.color.profile_size, error);
    if (header.color.enumerated == ROMM_RGB) {
        color->form = DL2_COLOR_SPACE_GAMMA;
        color->gamma = 1.8;
        memcpy(color->xy, romm, sizeof romm);
    } else if (header.color.enumerated == E_SRGB) {
        color->form = DL2_COLOR_SPACE_UNKNOWN;
        snprintf(color->name, sizeof color->name, "e-sRGB");
    }
    return DL2_OK;
}

/* See the top of the file. */
static bool jp2_may_reduce(const struct dl2_jp2_header *header)
{
    return !header->palette && !dl2_jp2_has_alpha(header) && header->color.space != DL2_JP2_CMYK &&
           header->color.space != DL2_JP2_LAB;
}

/* Samples at the edges of what OpenJPEG decodes may be rounded otherwise than in the whole. */
enum { MARGIN = 2 };

/* The rectangle with its margin, or all of a high-throughput file. */
static struct jp2_area jp2_area_of(const struct dl2_jp2_header *header,
                                   const struct dl2_decode_request *request)
{
    struct jp2_area area = {.right = header->width, .bottom = header->height};
    const bool reduce = jp2_may_reduce(header);
    while (reduce && area.reduction < 3 && 2u << area.reduction <= request->reduction)
        area.reduction++;
    if (header->high_throughput)
        return area;
    const uint32_t step = 1u << area.reduction;
    uint32_t width = request->width, height = request->height;
    area.left = request->x;
    area.top = request->y;
    dl2_widen(&area.left, &width, MARGIN * step, step, header->width);
    dl2_widen(&area.top, &height, MARGIN * step, step, header->height);
    area.right = area.left + width;
    area.bottom = area.top + height;
    return area;
}

/* Decodes at least the requested rectangle; *area becomes what was. The library refuses some files
 * in part, such as those with a tile of fewer resolutions. It may decode them as a whole. */
static int jp2_run_request(struct jp2_state *jp2, const struct dl2_decode_request *request,
                           const struct jp2_output *output, struct jp2_area *area,
                           struct dl2_error *error)
{
    const struct dl2_jp2_header *header = &jp2->header;
    *area = jp2_area_of(header, request);
    area->whole = !header->plain || (!area->reduction && request->width == header->width &&
                                     request->height == header->height);
    if (!area->whole && jp2_run(jp2, area, request->background, output, NULL) == DL2_OK)
        return DL2_OK;
    *area = (struct jp2_area){.right = header->width, .bottom = header->height, .whole = true};
    return jp2_run(jp2, area, request->background, output, error);
}

static int jp2_read(void *state, const struct dl2_decode_request *request, struct dl2_image *image,
                    struct dl2_raster *raster, struct dl2_error *error)
{
    const struct jp2_output output = {.image = image};
    struct jp2_area area;
    DL2_TRY(jp2_run_request(state, request, &output, &area, error));
    *raster = dl2_raster_of(image, area.left, area.top);
    const uint32_t step = 1u << area.reduction;
    raster->planes[0].step_x = raster->planes[0].step_y = step;
    raster->planes[0].shift_x = raster->planes[0].shift_y = (1 - (float)step) / 2;
    return DL2_OK;
}

static int jp2_read_deep(void *state, const uint8_t background[3], struct dl2_deep_image *image,
                         struct dl2_error *error)
{
    struct jp2_state *jp2 = state;
    struct jp2_area area = {
        .right = jp2->header.width, .bottom = jp2->header.height, .whole = true};
    if (!jp2_is_plain_deep(&jp2->header))
        return dl2_error_set(error, DL2_ERR_UNSUPPORTED, "JPEG 2000: not read at 16 bits");
    const struct jp2_output output = {.deep = image};
    return jp2_run(jp2, &area, background, &output, error);
}

static int jp2_read_gray(void *state, const struct dl2_gray_part *part, uint16_t *out,
                         struct dl2_error *error)
{
    struct jp2_state *jp2 = state;
    const struct dl2_decode_request request = {
        .x = part->x, .y = part->y, .width = part->columns, .height = part->rows, .reduction = 1};
    const struct jp2_output output = {.part = part, .gray = out};
    struct jp2_area area;
    if (!jp2_is_plain_deep(&jp2->header) || jp2->header.is_signed)
        return dl2_error_set(error, DL2_ERR_UNSUPPORTED,
                             "JPEG 2000: not of one unsigned component at full resolution");
    return jp2_run_request(jp2, &request, &output, &area, error);
}

/* OpenJPEG goes back to fill in lengths, so it writes a file in memory. */
static OPJ_SIZE_T jp2_sink_write(void *data, OPJ_SIZE_T count, void *file)
{
    return fwrite(data, 1, count, file) == count ? count : (OPJ_SIZE_T)-1;
}

static OPJ_BOOL jp2_sink_seek(OPJ_OFF_T position, void *file)
{
    return fseeko(file, position, SEEK_SET) == 0;
}

static OPJ_OFF_T jp2_sink_skip(OPJ_OFF_T count, void *file)
{
    return fseeko(file, count, SEEK_CUR) == 0 ? count : -1;
}

static double jp2_psnr(const struct dl2_encode_options *options)
{
    return options->gray ? 30 + 2 * options->quality / 5.0 : 22 + options->quality / 5.0;
}

/* Planes without samples; NULL: no memory. */
static opj_image_t *jp2_new_planes(uint32_t width, uint32_t height, uint32_t channels,
                                   unsigned bits)
{
    opj_image_cmptparm_t planes[3];
    memset(planes, 0, sizeof planes);
    for (uint32_t c = 0; c < channels; c++) {
        planes[c].dx = planes[c].dy = 1;
        planes[c].w = width;
        planes[c].h = height;
        planes[c].prec = bits;
    }
    opj_image_t *made =
        opj_image_create(channels, planes, channels == 1 ? OPJ_CLRSPC_GRAY : OPJ_CLRSPC_SRGB);
    if (made) {
        made->x1 = width;
        made->y1 = height;
    }
    return made;
}

static opj_image_t *jp2_make_planes(const struct dl2_image *image)
{
    opj_image_t *made = jp2_new_planes(image->width, image->height, image->channels, 8);
    if (!made)
        return NULL;
    size_t pixels = (size_t)image->width * image->height;
    for (uint32_t c = 0; c < image->channels; c++) {
        const uint8_t *in = image->data + c;
        for (size_t i = 0; i < pixels; i++, in += image->channels)
            made->comps[c].data[i] = *in;
    }
    return made;
}

enum { RATE };
static const struct dl2_setting jp2_settings[] = {
    [RATE] =
        {.name = "rate",
         .min = 1,
         .max = 1000,
         .usual = 0,
         .replaces_quality = true,
         .help =
             "compression ratio to samples of the bits that they have, the same for all images"},
    {.name = NULL}};

/* 0: by quality. */
static double jp2_rate(const struct dl2_encode_options *options)
{
    return dl2_setting_value(jp2_settings, options, RATE);
}

static void jp2_set_parameters(const opj_image_t *image, const struct dl2_encode_options *options,
                               opj_cparameters_t *parameters)
{
    const uint32_t side = dl2_smaller(image->x1, image->y1);
    opj_set_default_encoder_parameters(parameters);
    parameters->tcp_numlayers = 1;
    parameters->cp_fixed_quality = !(jp2_rate(options) > 0);
    parameters->cp_disto_alloc = jp2_rate(options) > 0;
    if (jp2_rate(options) > 0)
        parameters->tcp_rates[0] = (float)jp2_rate(options);
    else
        parameters->tcp_distoratio[0] = (float)jp2_psnr(options);
    parameters->irreversible = 1;
    parameters->tcp_mct = image->numcomps == 3;
    parameters->numresolution = 1;
    while (parameters->numresolution < MAX_RESOLUTIONS && side >> parameters->numresolution)
        parameters->numresolution++;
}

/* Takes over the planes; NULL: there was no memory for them. */
static int jp2_encode_planes(opj_image_t *planes, const struct dl2_encode_options *options,
                             struct dl2_bytes *out, struct dl2_error *error)
{
    struct dl2_error own = DL2_ERROR_INIT;
    DL2_AUTO_FREE char *written = NULL;
    size_t size = 0;
    FILE *file = open_memstream(&written, &size);
    opj_cparameters_t parameters;
    opj_codec_t *codec = opj_create_compress(OPJ_CODEC_JP2);
    opj_stream_t *stream = opj_stream_create(STREAM_BLOCK, OPJ_FALSE);
    if (!file || !planes || !codec || !stream) {
        dl2_error_memory(&own, "a JPEG 2000 image");
        goto done;
    }
    jp2_set_parameters(planes, options, &parameters);
    jp2_set_handlers(codec, &own);
    opj_stream_set_user_data(stream, file, NULL);
    opj_stream_set_write_function(stream, jp2_sink_write);
    opj_stream_set_seek_function(stream, jp2_sink_seek);
    opj_stream_set_skip_function(stream, jp2_sink_skip);
    if (!opj_setup_encoder(codec, &parameters, planes) ||
        !opj_start_compress(codec, planes, stream) || !opj_encode(codec, stream) ||
        !opj_end_compress(codec, stream))
        dl2_error_set(&own, DL2_ERR_UNSUPPORTED, "JPEG 2000: OpenJPEG can't encode this");
done:
    opj_stream_destroy(stream);
    if (codec)
        opj_destroy_codec(codec);
    opj_image_destroy(planes);
    const bool ended = file && fseeko(file, 0, SEEK_END) == 0;
    if (file && (fclose(file) != 0 || !ended))
        dl2_error_memory(&own, "a JPEG 2000 image");
    if (own.status == DL2_OK)
        dl2_bytes_append(out, written, size, &own);
    if (own.status == DL2_OK && options->color && options->color->form == DL2_COLOR_SPACE_ICC)
        dl2_jp2_put_profile(out, &options->color->icc, &own);
    if (own.status == DL2_OK && options->metadata)
        dl2_jp2_put_metadata(out, options->metadata, &own);
    return dl2_error_copy(error, &own);
}

static int jp2_encode(const struct dl2_image *image, const struct dl2_encode_options *options,
                      struct dl2_bytes *out, struct dl2_error *error)
{
    return jp2_encode_planes(jp2_make_planes(image), options, out, error);
}

static int jp2_encode_gray(const struct dl2_gray *image, const struct dl2_encode_options *options,
                           struct dl2_bytes *out, struct dl2_error *error)
{
    opj_image_t *planes = jp2_new_planes(image->width, image->height, 1, image->bits);
    for (size_t i = 0; planes && i < (size_t)image->width * image->height; i++)
        planes->comps[0].data[i] = image->samples[i];
    return jp2_encode_planes(planes, options, out, error);
}

static json_t *jp2_parameters(const struct dl2_encode_options *options)
{
    const bool by_rate = jp2_rate(options) > 0;
    return json_pack("{s:f, s:b, s:s, s:i, s:s, s:s}", by_rate ? "tcp_rates" : "tcp_distoratio",
                     by_rate ? jp2_rate(options) : jp2_psnr(options), "irreversible", 1, "wavelet",
                     "9/7", "tcp_numlayers", 1, "tcp_mct", "1 for color, 0 for gray",
                     "numresolution", "6, or as many as the shorter side has bits");
}

static void jp2_version(char out[DL2_CODEC_VERSION_SIZE])
{
    snprintf(out, DL2_CODEC_VERSION_SIZE, "OpenJPEG %s", opj_version());
}

const struct dl2_codec dl2_codec_jp2 = {
    .name = "jp2",
    .metadata = dl2_jp2_read_metadata,
    .metadata_bytes = INT32_MAX,
    .extension = "jp2",
    .extensions = {"jp2", "j2k", "jpf", "jpx", "j2c", "jpc"},
    .lossy = true,
    .max_side = 65535,
    .colors = DL2_COLOR_SPACE_MATRIX,
    .always_tagged = true,
    .reduces = true,
    .max_effort = -1,
    .settings = jp2_settings,
    .pixel_bytes = 40,
    .find_version = jp2_version,
    .signatures = {{4, DL2_JP2_CODESTREAM}, {12, "\0\0\0\14jP  \r\n\x87\n"}},
    .color = jp2_color,
    .coded_bytes = dl2_jp2_coded_bytes,
    .state_size = sizeof(struct jp2_state),
    .open = jp2_open,
    .read = jp2_read,
    .read_deep = jp2_read_deep,
    .read_gray = jp2_read_gray,
    .encode = jp2_encode,
    .encode_gray = jp2_encode_gray,
    .encoder_parameters = jp2_parameters,
};
