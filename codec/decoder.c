/* SPDX-License-Identifier: BSD-2-Clause */
#include "codec/decoder.h"

#include "codec/codecs.h"
#include "codec/external_decoders.h"
#include "common/scope.h"

#include <stdlib.h>
#include <string.h>

struct dl2_decoder {
    const struct dl2_codec *codec; /* of the open image; NULL: none is open */
    struct dl2_codec_state *state; /* the codec's, one of `states` */
    bool unwrapped;                /* it lies in the file that was opened */
    struct dl2_image_info info;
    struct dl2_image image;
    struct dl2_bytes turned; /* planes of an image that lies on its side */
    /* By the codec's place in the registry; NULL until its first image. */
    struct dl2_codec_state *states[];
};

int dl2_decoder_create(struct dl2_decoder **out, struct dl2_error *error)
{
    size_t codecs = 0;
    while (dl2_codec_at(codecs))
        codecs++;
    *out = dl2_calloc(1, sizeof **out + codecs * sizeof *(*out)->states);
    return *out ? DL2_OK : dl2_error_memory(error, "a decoder");
}

void dl2_decoder_destroy(struct dl2_decoder *decoder)
{
    if (!decoder)
        return;
    for (size_t i = 0; dl2_codec_at(i); i++) {
        struct dl2_codec_state *const state = decoder->states[i];
        if (state && dl2_codec_at(i)->close)
            dl2_codec_at(i)->close(state);
        if (state)
            dl2_bytes_free(&state->block);
        free(state);
    }
    dl2_image_free(&decoder->image);
    dl2_bytes_free(&decoder->turned);
    free(decoder);
}

void dl2_decoder_drop(struct dl2_decoder **decoder)
{
    dl2_decoder_destroy(*decoder);
}

size_t dl2_decoder_memory(const struct dl2_decoder *decoder)
{
    size_t memory = sizeof *decoder + decoder->image.capacity + decoder->turned.capacity;
    for (size_t i = 0; dl2_codec_at(i); i++) {
        const struct dl2_codec *codec = dl2_codec_at(i);
        if (decoder->states[i])
            memory += codec->state_size + decoder->states[i]->block.capacity +
                      (codec->memory ? codec->memory(decoder->states[i]) : 0);
    }
    return memory;
}

/* Opens a file with the state that this decoder keeps for a codec since its first image. */
static int decoder_open_with(struct dl2_decoder *decoder, const struct dl2_codec *codec,
                             const uint8_t *data, size_t size, uint64_t limit,
                             struct dl2_image_info *info, struct dl2_error *error)
{
    size_t i = 0;
    while (dl2_codec_at(i) != codec)
        i++;
    if (!decoder->states[i])
        decoder->states[i] = dl2_calloc(1, codec->state_size);
    struct dl2_codec_state *const state = decoder->state = decoder->states[i];
    if (!state)
        return dl2_error_memory(error, "a decoder");
    state->data = data;
    state->size = size;
    state->at = 0;
    state->max_pixels = limit;
    *info = (struct dl2_image_info){.orientation = 1};
    return codec->open(state, info, error);
}

/* Goes on with the file that the open one was made of, if it shows the same image. */
static int decoder_unwrap(struct dl2_decoder *decoder, uint64_t limit, struct dl2_error *error)
{
    const struct dl2_codec *const outer = decoder->codec;
    const struct dl2_image_info *const shown = &decoder->info;
    struct dl2_image_info info;
    const uint8_t *data;
    size_t size;
    const int found = outer->unwrap ? outer->unwrap(decoder->state, &data, &size, error) : 0;
    if (found <= 0)
        return found;
    struct dl2_codec_state *const outer_state = decoder->state;
    const struct dl2_codec *const codec = dl2_codec_sniff(data, size);
    if (codec && !codec->unwrap) {
        const int status = decoder_open_with(decoder, codec, data, size, limit, &info, NULL);
        if (status == DL2_ERR_MEMORY)
            return dl2_error_memory(error, "a decoder");
        if (status == DL2_OK && info.width == shown->width && info.height == shown->height &&
            info.channels == shown->channels && info.orientation == shown->orientation) {
            decoder->codec = codec;
            decoder->unwrapped = true;
            return DL2_OK;
        }
    }
    decoder->state = outer_state;
    return DL2_OK;
}

/* Opens the file itself. */
static int decoder_open_outer(struct dl2_decoder *decoder, const uint8_t *data, size_t size,
                              uint64_t limit, struct dl2_image_info *info, struct dl2_error *error)
{
    const struct dl2_codec *codec;
    decoder->codec = NULL;
    decoder->unwrapped = false;
    DL2_TRY(dl2_codec_recognize(data, size, &codec, error));
    DL2_TRY(decoder_open_with(decoder, codec, data, size, limit, &decoder->info, error));
    DL2_TRY(dl2_image_check_size(decoder->info.width, decoder->info.height, limit, error));
    decoder->codec = codec;
    *info = decoder->info;
    return DL2_OK;
}

int dl2_decoder_open(struct dl2_decoder *decoder, const uint8_t *data, size_t size,
                     uint64_t max_pixels, struct dl2_image_info *info, struct dl2_error *error)
{
    const uint64_t limit = max_pixels ? max_pixels : DL2_DEFAULT_MAX_PIXELS;
    DL2_TRY(decoder_open_outer(decoder, data, size, limit, info, error));
    return decoder_unwrap(decoder, limit, error);
}

void dl2_decoder_turn(struct dl2_decoder *decoder, int orientation, struct dl2_image_info *info)
{
    decoder->info.orientation = info->orientation = orientation;
}

bool dl2_decoder_reduces(const struct dl2_decoder *decoder)
{
    return decoder->codec && decoder->codec->reduces;
}

bool dl2_decoder_crop_bytes(struct dl2_decoder *decoder, const struct dl2_decode_request *crop,
                            bool small, struct dl2_crop_bytes *out)
{
    return decoder->codec && decoder->codec->crop_bytes && !decoder->unwrapped &&
           decoder->info.orientation == 1 &&
           decoder->codec->crop_bytes(decoder->state, crop, small, out);
}

/* The start of [start, start + length) once an axis of `size` pixels runs backwards. */
static uint32_t decoder_mirror(uint32_t size, uint32_t start, uint32_t length)
{
    return size - start - length;
}

/* The rectangle in pixels as coded; dl2_image_orient() says which way they run. */
static struct dl2_decode_request decoder_unturn(const struct dl2_image_info *info,
                                                const struct dl2_decode_request *upright)
{
    const int orientation = info->orientation;
    struct dl2_decode_request coded = *upright;
    if (dl2_orientation_transposes(orientation)) {
        coded.x = upright->y;
        coded.width = upright->height;
        coded.y = upright->x;
        coded.height = upright->width;
    }
    if (dl2_orientation_flips_x(orientation))
        coded.x = decoder_mirror(info->width, coded.x, coded.width);
    if (dl2_orientation_flips_y(orientation))
        coded.y = decoder_mirror(info->height, coded.y, coded.height);
    return coded;
}

/* Leaves only the rectangle, of one interleaved plane at full resolution. */
static void decoder_narrow(struct dl2_raster *raster, const struct dl2_decode_request *request)
{
    struct dl2_plane *plane = &raster->planes[0];
    plane->data += (request->y - plane->y) * plane->stride +
                   (size_t)(request->x - plane->x) * dl2_raster_channels(raster);
    plane->x = request->x;
    plane->y = request->y;
    plane->width = request->width;
    plane->height = request->height;
}

/*
 * Moves one interleaved plane into `image`, without gaps; RGB becomes luma where `channels` is 1.
 * The plane may lie in `image` itself: a row never begins before the place that it is moved to.
 */
static int decoder_gather(struct dl2_plane *plane, uint32_t plane_channels, uint32_t channels,
                          struct dl2_image *image, struct dl2_error *error)
{
    const uint8_t *in = plane->data;
    DL2_TRY(dl2_image_reshape(image, plane->width, plane->height, channels, error));
    if (in == image->data && plane->stride == image->stride)
        return DL2_OK;
    uint8_t *out = image->data;
    for (uint32_t y = 0; y < plane->height; y++, in += plane->stride, out += image->stride) {
        if (plane_channels == channels)
            memmove(out, in, image->stride);
        else
            for (uint32_t x = 0; x < plane->width; x++)
                out[x] = dl2_luma(in[3 * x], in[3 * x + 1], in[3 * x + 2]);
    }
    plane->data = image->data;
    plane->stride = image->stride;
    return DL2_OK;
}

/* Reads pixels as coded; those that need memory lie in `image`. */
static int decoder_read_coded(struct dl2_decoder *decoder, const struct dl2_decode_request *request,
                              struct dl2_image *image, struct dl2_raster *raster,
                              struct dl2_error *error)
{
    DL2_TRY(decoder->codec->read(decoder->state, request, image, raster, error));
    struct dl2_plane *plane = &raster->planes[0];
    if (dl2_raster_planes(raster) == 1 && plane->step_x == 1 && plane->step_y == 1)
        decoder_narrow(raster, request);
    if (raster->color == DL2_COLOR_RGB && request->channels == 1) {
        DL2_TRY(decoder_gather(plane, 3, 1, image, error)); /* the codec had no luma */
        raster->color = DL2_COLOR_GRAY;
    }
    return DL2_OK;
}

/* Makes `image` the upright rectangle at full resolution. */
static int decoder_read_image(struct dl2_decoder *decoder, const struct dl2_decode_request *request,
                              struct dl2_image *image, struct dl2_image *scratch,
                              struct dl2_error *error)
{
    struct dl2_decode_request coded = decoder_unturn(&decoder->info, request);
    struct dl2_raster raster;
    coded.planes = false;
    coded.reduction = 1;
    DL2_TRY(decoder_read_coded(decoder, &coded, image, &raster, error));
    const uint32_t channels = dl2_raster_channels(&raster);
    DL2_TRY(decoder_gather(&raster.planes[0], channels, channels, image, error));
    return dl2_image_orient(image, decoder->info.orientation, scratch, error);
}

/* Samples along an axis of `size` pixels that runs backwards. */
static void decoder_reverse_axis(uint32_t size, uint32_t step, int64_t *start, uint32_t count,
                                 float *shift)
{
    *start = size - *start - (int64_t)count * step;
    *shift = -*shift;
}

/* How many of an axis' samples begin within the image. */
static uint32_t decoder_inside(uint32_t size, uint32_t step, uint32_t start, uint32_t count)
{
    const uint32_t most = (size - start + step - 1) / step;
    return count < most ? count : most;
}

/* The plane upright, in `out`. */
static void decoder_turn_plane(const struct dl2_image_info *info, size_t pixel,
                               struct dl2_plane *plane, uint8_t *out)
{
    plane->width = decoder_inside(info->width, plane->step_x, plane->x, plane->width);
    plane->height = decoder_inside(info->height, plane->step_y, plane->y, plane->height);
    const struct dl2_plane coded = *plane;
    if (dl2_orientation_flips_x(info->orientation))
        decoder_reverse_axis(info->width, coded.step_x, &plane->x, coded.width, &plane->shift_x);
    if (dl2_orientation_flips_y(info->orientation))
        decoder_reverse_axis(info->height, coded.step_y, &plane->y, coded.height, &plane->shift_y);
    if (dl2_orientation_transposes(info->orientation))
        *plane = (struct dl2_plane){NULL,           0,
                                    coded.height,   coded.width,
                                    plane->y,       plane->x,
                                    coded.step_y,   coded.step_x,
                                    plane->shift_y, plane->shift_x};
    plane->data = out;
    plane->stride = plane->width * pixel;
    dl2_orient_pixels(coded.data, coded.stride, coded.width, coded.height, pixel, info->orientation,
                      out, plane->stride);
}

/* Reads the upright rectangle. */
static int decoder_read_turned(struct dl2_decoder *decoder,
                               const struct dl2_decode_request *request, struct dl2_raster *raster,
                               struct dl2_error *error)
{
    const struct dl2_image_info *info = &decoder->info;
    const struct dl2_decode_request coded = decoder_unturn(info, request);
    DL2_TRY(decoder_read_coded(decoder, &coded, &decoder->image, raster, error));
    const unsigned planes = dl2_raster_planes(raster);
    const size_t pixel = planes > 1 ? 1 : dl2_raster_channels(raster);
    size_t size = 0, room[3];
    for (unsigned p = 0; p < planes; p++) {
        const struct dl2_plane *plane = &raster->planes[p];
        room[p] = (size_t)plane->width * plane->height * pixel;
        size += room[p];
    }
    DL2_TRY(dl2_bytes_resize(&decoder->turned, size, error));
    uint8_t *out = decoder->turned.data;
    for (unsigned p = 0; p < planes; out += room[p++])
        decoder_turn_plane(info, pixel, &raster->planes[p], out);
    return DL2_OK;
}

static int decoder_check_channels(uint32_t channels, struct dl2_error *error)
{
    if (channels == 0 || channels == 1 || channels == 3)
        return DL2_OK;
    return dl2_error_set(error, DL2_ERR_ARGUMENT, "an image can't have %u channels",
                         (unsigned)channels);
}

static int decoder_check_request(const struct dl2_image_info *info,
                                 const struct dl2_decode_request *request, struct dl2_error *error)
{
    const uint32_t width = dl2_upright_width(info), height = dl2_upright_height(info);
    if (!request->width || !request->height || request->x >= width || request->y >= height ||
        request->width > width - request->x || request->height > height - request->y)
        return dl2_error_set(
            error, DL2_ERR_ARGUMENT, "a rectangle of %ux%u at %u,%u is not within %ux%u pixels",
            (unsigned)request->width, (unsigned)request->height, (unsigned)request->x,
            (unsigned)request->y, (unsigned)width, (unsigned)height);
    return decoder_check_channels(request->channels, error);
}

/* A part of the bands is another image than the user has, so it is taken only if it is wanted. */
static int decoder_check_bands(const struct dl2_image_info *info, bool drop,
                               struct dl2_error *error)
{
    if (!info->left_out || drop)
        return DL2_OK;
    const unsigned shown = info->channels + info->alpha;
    return dl2_error_set(
        error, DL2_ERR_UNSUPPORTED,
        "it has %u bands, of which only %s: make files of the bands that you want, or pass "
        "--drop-bands (drop_bands=True in Python) to leave the others out",
        shown + (unsigned)info->left_out,
        info->channels == 1 ? "one can be loaded, as gray" : "three can be loaded, as RGB");
}

int dl2_decoder_decode(struct dl2_decoder *decoder, const struct dl2_decode_request *request,
                       struct dl2_raster *raster, struct dl2_error *error)
{
    if (!decoder->codec)
        return dl2_error_set(error, DL2_ERR_ARGUMENT, "no image is open");
    DL2_TRY(decoder_check_request(&decoder->info, request, error));
    DL2_TRY(decoder_check_bands(&decoder->info, request->drop_bands, error));
    return decoder->info.orientation == 1
               ? decoder_read_coded(decoder, request, &decoder->image, raster, error)
               : decoder_read_turned(decoder, request, raster, error);
}

int dl2_image_read_info(const uint8_t *data, size_t size, struct dl2_image_info *info,
                        struct dl2_error *error)
{
    DL2_CLEANUP(dl2_decoder_drop) struct dl2_decoder *decoder = NULL;
    DL2_TRY(dl2_decoder_create(&decoder, error));
    return decoder_open_outer(decoder, data, size, UINT64_MAX, info, error);
}

/* Luma decides where planes are asked for. */
bool dl2_image_is_nearly_black(const struct dl2_image_info *info, const struct dl2_raster *raster)
{
    enum { DATA_BITS = 12, DARK = 16 }; /* 4095 of 65535 is 16 of 255 */
    const struct dl2_plane *plane = &raster->planes[0];
    const size_t samples = dl2_raster_planes(raster) > 1 ? 1 : dl2_raster_channels(raster);
    if (info->bits <= DATA_BITS)
        return false;
    for (uint32_t y = 0; y < plane->height; y++)
        for (size_t x = 0; x < plane->width * samples; x++)
            if (plane->data[y * plane->stride + x] > DARK)
                return false;
    return true;
}

static int gray_to_rgb(struct dl2_image *image, struct dl2_image *scratch, struct dl2_error *error)
{
    DL2_TRY(dl2_image_reshape(scratch, image->width, image->height, 3, error));
    size_t pixels = (size_t)image->width * image->height;
    const uint8_t *in = image->data;
    uint8_t *out = scratch->data;
    for (size_t i = 0; i < pixels; i++, out += 3)
        out[0] = out[1] = out[2] = in[i];
    struct dl2_image swapped = *scratch;
    *scratch = *image;
    *image = swapped;
    return DL2_OK;
}

int dl2_image_decode(const uint8_t *data, size_t size, const struct dl2_decode_options *options,
                     struct dl2_image *image, struct dl2_image *scratch, struct dl2_error *error)
{
    DL2_CLEANUP(dl2_decoder_drop) struct dl2_decoder *own = NULL;
    const bool keeps = options->keep && options->external && options->external->commands[0];
    struct dl2_decoder **place = keeps ? options->keep : &own;
    struct dl2_image_info info;
    DL2_TRY(decoder_check_channels(options->channels, error));
    if (!*place)
        DL2_TRY(dl2_decoder_create(place, error));
    struct dl2_decoder *const decoder = *place;
    DL2_TRY(dl2_decoder_open(decoder, data, size, options->max_pixels, &info, error));
    if (options->info)
        *options->info = info;
    DL2_TRY(decoder_check_bands(&info, options->drop_bands, error));
    if (options->keep_orientation)
        decoder->info.orientation = 1;
    const struct dl2_decode_request request = {
        .width = dl2_upright_width(&decoder->info),
        .height = dl2_upright_height(&decoder->info),
        .channels = options->channels,
        .background = {options->background[0], options->background[1], options->background[2]},
        .external = options->external,
    };
    DL2_TRY(decoder_read_image(decoder, &request, image, scratch, error));
    if (options->channels == 3 && image->channels == 1)
        DL2_TRY(gray_to_rgb(image, scratch, error));
    return DL2_OK;
}

int dl2_image_decode_deep(const uint8_t *data, size_t size,
                          const struct dl2_decode_options *options, struct dl2_deep_image *image,
                          struct dl2_error *error)
{
    DL2_CLEANUP(dl2_decoder_drop) struct dl2_decoder *decoder = NULL;
    struct dl2_error why = DL2_ERROR_INIT;
    struct dl2_image_info info;
    DL2_TRY(dl2_decoder_create(&decoder, error));
    DL2_TRY(dl2_decoder_open(decoder, data, size, options->max_pixels, &info, error));
    DL2_TRY(decoder_check_bands(&info, options->drop_bands, error));
    if (info.bits <= 8 || info.cmyk || decoder->unwrapped || !decoder->codec->read_deep)
        return 0;
    const int status = decoder->codec->read_deep(decoder->state, options->background, image, &why);
    if (status == DL2_ERR_UNSUPPORTED)
        return 0;
    if (status < 0)
        return dl2_error_copy(error, &why);
    if (!options->keep_orientation)
        DL2_TRY(dl2_deep_orient(image, info.orientation, error));
    return 1;
}

int dl2_gray_decode(const uint8_t *data, size_t size, const struct dl2_gray_part *part,
                    uint16_t *out, struct dl2_error *error)
{
    DL2_CLEANUP(dl2_decoder_drop) struct dl2_decoder *decoder = NULL;
    struct dl2_image_info info;
    DL2_TRY(dl2_decoder_create(&decoder, error));
    DL2_TRY(decoder_open_outer(decoder, data, size, UINT64_MAX, &info, error));
    if (!decoder->codec->read_gray)
        return dl2_error_set(error, DL2_ERR_UNSUPPORTED, "%s is not read as a slice of a volume",
                             decoder->codec->name);
    if (info.width != part->width || info.height != part->height || info.bits != part->bits ||
        info.channels != 1 || info.left_out || info.alpha || info.orientation != 1)
        return dl2_error_set(
            error, DL2_ERR_FORMAT,
            "it has %ux%u pixels of %u channel%s and %u bits%s, where %ux%u of one "
            "and %u bits belong",
            (unsigned)info.width, (unsigned)info.height, (unsigned)info.channels,
            info.channels == 1 ? "" : "s", (unsigned)info.bits,
            info.alpha              ? " with alpha"
            : info.orientation != 1 ? ", turned"
                                    : "",
            (unsigned)part->width, (unsigned)part->height, part->bits);
    return decoder->codec->read_gray(decoder->state, part, out, error);
}
