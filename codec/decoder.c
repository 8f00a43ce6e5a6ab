#include "codec/decoder.h"

#include "codec/codecs.h"

#include <stdlib.h>
#include <string.h>

/* More codecs than any build has; a decoder keeps one state for each that it meets. */
#define MAX_CODECS 16

struct dl2_decoder {
    void *states[MAX_CODECS];      /* by the codec's place in the registry; NULL until it is met */
    const struct dl2_codec *codec; /* of what is open; NULL: nothing is */
    void *state;                   /* the codec's; NULL where it decodes only as a whole */
    const uint8_t *data;
    size_t size;
    uint64_t max_pixels;
    struct dl2_image_info info;
    struct dl2_image image, scratch;
};

int dl2_decoder_create(struct dl2_decoder **out, struct dl2_error *error)
{
    *out = dl2_calloc(1, sizeof **out);
    return *out ? DL2_OK : dl2_error_set(error, DL2_ERR_MEMORY, "out of memory for a decoder");
}

void dl2_decoder_destroy(struct dl2_decoder *decoder)
{
    if (!decoder)
        return;
    for (size_t i = 0; i < MAX_CODECS; i++) {
        if (decoder->states[i])
            dl2_codec_at(i)->region->destroy(decoder->states[i]);
        free(decoder->states[i]);
    }
    dl2_image_free(&decoder->image);
    dl2_image_free(&decoder->scratch);
    free(decoder);
}

size_t dl2_decoder_memory(const struct dl2_decoder *decoder)
{
    size_t memory = sizeof *decoder + decoder->image.capacity + decoder->scratch.capacity;
    for (size_t i = 0; i < MAX_CODECS; i++)
        if (decoder->states[i])
            memory += dl2_codec_at(i)->region->memory(decoder->states[i]);
    return memory;
}

static int make_state(const struct dl2_region_codec *region, void **out, struct dl2_error *error)
{
    void *state = dl2_calloc(1, region->state_size);
    if (!state)
        return dl2_error_set(error, DL2_ERR_MEMORY, "out of memory for a decoder");
    const int status = region->init ? region->init(state, error) : DL2_OK;
    if (status < 0)
        free(state);
    else
        *out = state;
    return status;
}

/* The state that the open file's codec keeps in this decoder, made when it is first met. */
static int find_state(struct dl2_decoder *decoder, struct dl2_error *error)
{
    decoder->state = NULL;
    if (!decoder->codec->region)
        return DL2_OK;
    size_t i = 0;
    while (dl2_codec_at(i) != decoder->codec)
        i++;
    if (i >= MAX_CODECS)
        return DL2_OK;
    if (!decoder->states[i])
        DL2_TRY(make_state(decoder->codec->region, &decoder->states[i], error));
    decoder->state = decoder->states[i];
    return DL2_OK;
}

static int open_it(struct dl2_decoder *decoder, struct dl2_error *error)
{
    decoder->codec = dl2_codec_sniff(decoder->data, decoder->size);
    if (!decoder->codec) /* which says why */
        return dl2_image_read_info(decoder->data, decoder->size, &decoder->info, error);
    DL2_TRY(find_state(decoder, error));
    decoder->info = (struct dl2_image_info){.orientation = 1};
    if (decoder->state)
        DL2_TRY(decoder->codec->region->open(decoder->state, decoder->data, decoder->size,
                                             &decoder->info, error));
    else
        DL2_TRY(decoder->codec->read_info(decoder->data, decoder->size, &decoder->info, error));
    return dl2_image_check_size(decoder->info.width, decoder->info.height, decoder->max_pixels,
                                error);
}

int dl2_decoder_open(struct dl2_decoder *decoder, const uint8_t *data, size_t size,
                     uint64_t max_pixels, struct dl2_image_info *info, struct dl2_error *error)
{
    decoder->data = data;
    decoder->size = size;
    decoder->max_pixels = max_pixels ? max_pixels : DL2_DEFAULT_MAX_PIXELS;
    const int status = open_it(decoder, error);
    if (status < 0)
        decoder->codec = NULL;
    else
        *info = decoder->info;
    return status;
}

static int decode_whole(struct dl2_decoder *decoder, const struct dl2_decode_request *request,
                        struct dl2_raster *raster, struct dl2_error *error)
{
    const struct dl2_image_info *info = &decoder->info;
    const struct dl2_decode_options options = {
        .max_pixels = decoder->max_pixels,
        .channels = request->channels == 1 ? 1 : 0,
        .background = {request->background[0], request->background[1], request->background[2]},
    };
    DL2_TRY(dl2_image_decode(decoder->data, decoder->size, &options, &decoder->image,
                             &decoder->scratch, error));
    const uint32_t width = dl2_upright_width(info), height = dl2_upright_height(info);
    if (decoder->image.width != width || decoder->image.height != height)
        return dl2_error_set(error, DL2_ERR_FORMAT, "%ux%u pixels where the header speaks of %ux%u",
                             (unsigned)decoder->image.width, (unsigned)decoder->image.height,
                             (unsigned)width, (unsigned)height);
    *raster = dl2_raster_of(&decoder->image, 0, 0);
    return DL2_OK;
}

/* The part of an axis of `size` pixels that [start, start + length) is once it runs backwards. */
static uint32_t mirrored(uint32_t size, uint32_t start, uint32_t length)
{
    return size - start - length;
}

/* The rectangle in pixels as coded; dl2_image_orient() says which way they run. */
static void unturn(const struct dl2_image_info *info, const struct dl2_decode_request *upright,
                   struct dl2_decode_request *coded)
{
    const int orientation = info->orientation;
    *coded = *upright;
    if (orientation >= 5) {
        coded->x = upright->y;
        coded->width = upright->height;
        coded->y = upright->x;
        coded->height = upright->width;
    }
    if (orientation == 2 || orientation == 3 || orientation == 7 || orientation == 8)
        coded->x = mirrored(info->width, coded->x, coded->width);
    if (orientation == 3 || orientation == 4 || orientation == 6 || orientation == 7)
        coded->y = mirrored(info->height, coded->y, coded->height);
}

/* Rare, so plain: interleaved pixels at full resolution, the rectangle copied out and turned. */
static int decode_turned(struct dl2_decoder *decoder, const struct dl2_decode_request *request,
                         struct dl2_raster *raster, struct dl2_error *error)
{
    struct dl2_decode_request coded;
    struct dl2_raster found;
    unturn(&decoder->info, request, &coded);
    coded.planes = false;
    coded.reduction = 1;
    DL2_TRY(decoder->codec->region->decode(decoder->state, &coded, &found, error));
    const struct dl2_plane *plane = &found.planes[0];
    const uint32_t channels = dl2_raster_channels(&found);
    DL2_TRY(dl2_image_reshape(&decoder->image, coded.width, coded.height, channels, error));
    for (uint32_t row = 0; row < coded.height; row++)
        memcpy(decoder->image.data + row * decoder->image.stride,
               plane->data + (coded.y - plane->y + row) * plane->stride +
                   (size_t)(coded.x - plane->x) * channels,
               (size_t)coded.width * channels);
    DL2_TRY(dl2_image_orient(&decoder->image, decoder->info.orientation, &decoder->scratch, error));
    *raster = dl2_raster_of(&decoder->image, request->x, request->y);
    return DL2_OK;
}

static int check_request(const struct dl2_image_info *info,
                         const struct dl2_decode_request *request, struct dl2_error *error)
{
    const uint32_t width = dl2_upright_width(info), height = dl2_upright_height(info);
    if (!request->width || !request->height || request->x >= width || request->y >= height ||
        request->width > width - request->x || request->height > height - request->y)
        return dl2_error_set(
            error, DL2_ERR_ARGUMENT, "a rectangle of %ux%u at %u,%u is not within %ux%u pixels",
            (unsigned)request->width, (unsigned)request->height, (unsigned)request->x,
            (unsigned)request->y, (unsigned)width, (unsigned)height);
    if (request->channels != 0 && request->channels != 1 && request->channels != 3)
        return dl2_error_set(error, DL2_ERR_ARGUMENT, "an image can't have %u channels",
                             (unsigned)request->channels);
    return DL2_OK;
}

int dl2_decoder_decode(struct dl2_decoder *decoder, const struct dl2_decode_request *request,
                       struct dl2_raster *raster, struct dl2_error *error)
{
    if (!decoder->codec)
        return dl2_error_set(error, DL2_ERR_ARGUMENT, "no image is open");
    DL2_TRY(check_request(&decoder->info, request, error));
    if (!decoder->state)
        return decode_whole(decoder, request, raster, error);
    if (decoder->info.orientation > 1 && decoder->info.orientation <= 8)
        return decode_turned(decoder, request, raster, error);
    return decoder->codec->region->decode(decoder->state, request, raster, error);
}
