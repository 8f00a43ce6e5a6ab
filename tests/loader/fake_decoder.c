/* SPDX-License-Identifier: BSD-2-Clause */
#include "tests/loader/fake_decoder.h"

#include "codec/decoder.h"
#include "pixels/crop.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <zlib.h>

#define must(condition) ((condition) ? (void)0 : give_up(#condition))
static void give_up(const char *what)
{
    fprintf(stderr, "fake decoder: not so: %s\n", what);
    abort();
}

struct dl2_decode_slot {
    struct fake_decoder *fake;
    unsigned samples, side, channels;
    size_t sample_bytes;
    uint8_t *device, *host;
    struct {
        enum { NOTHING, PIXELS, ENCODED } kind;
        struct dl2_encoded image;
        uint8_t *data;
        uint32_t *shift;
    } * places;
};

static bool fake_takes(const struct dl2_batch_decoder *decoder, const struct dl2_coded_frame *frame)
{
    (void)decoder;
    return frame->width != 33; /* some it doesn't */
}

static int fake_slot_create(struct dl2_batch_decoder *decoder, unsigned count, unsigned side,
                            unsigned channels, struct dl2_decode_slot **out,
                            struct dl2_error *error)
{
    struct dl2_decode_slot *slot = calloc(1, sizeof *slot);
    (void)error;
    slot->fake = (struct fake_decoder *)decoder;
    slot->samples = count;
    slot->side = side;
    slot->channels = channels;
    slot->sample_bytes = (size_t)side * side * channels;
    slot->device = malloc(count * slot->sample_bytes);
    slot->host = malloc(count * slot->sample_bytes);
    slot->places = calloc(count, sizeof *slot->places);
    *out = slot;
    return DL2_OK;
}

static void empty(struct dl2_decode_slot *slot, unsigned n)
{
    free(slot->places[n].data);
    free(slot->places[n].shift);
    slot->places[n].data = NULL;
    slot->places[n].shift = NULL;
    slot->places[n].kind = NOTHING;
}

static void fake_begin(struct dl2_decode_slot *slot)
{
    for (unsigned i = 0; i < slot->samples; i++) {
        empty(slot, i);
    }
    /* What nobody writes must not look right. */
    memset(slot->device, 0xa5, slot->samples * slot->sample_bytes);
    memset(slot->host, 0x5a, slot->samples * slot->sample_bytes);
}

static void fake_slot_free(struct dl2_decode_slot *slot)
{
    if (!slot)
        return;
    fake_begin(slot);
    free(slot->device);
    free(slot->host);
    free(slot->places);
    free(slot);
}

static uint8_t *fake_images(struct dl2_decode_slot *slot)
{
    return slot->device;
}

static int fake_add(struct dl2_decode_slot *slot, unsigned n, const struct dl2_encoded *image,
                    struct dl2_error *error)
{
    (void)error;
    slot->places[n].kind = ENCODED;
    slot->places[n].image = *image;
    slot->places[n].data = malloc(image->file.size);
    memcpy(slot->places[n].data, image->file.data, image->file.size);
    slot->places[n].image.file.data = slot->places[n].data;
    if (image->file.shift) {
        const unsigned side = 8 * image->file.frame.step_y;
        const size_t size =
            (image->file.frame.height + side - 1) / side * sizeof *image->file.shift;
        slot->places[n].shift = malloc(size);
        memcpy(slot->places[n].shift, image->file.shift, size);
        slot->places[n].image.file.shift = slot->places[n].shift;
    }
    return DL2_OK;
}

static uint8_t *fake_pixels(struct dl2_decode_slot *slot, unsigned n)
{
    slot->places[n].kind = PIXELS;
    return slot->host + n * slot->sample_bytes;
}

/* Moves rows to where they belong, in copies that the caller frees. */
static void straighten(const struct dl2_encoded *image, struct dl2_raster *raster,
                       uint8_t *copies[3])
{
    for (unsigned p = 0; p < dl2_raster_planes(raster); p++) {
        struct dl2_plane *plane = &raster->planes[p];
        copies[p] = calloc(plane->height, plane->stride);
        for (uint32_t y = 0; y < plane->height; y++) {
            const size_t by =
                (size_t)image->file.shift[y * plane->step_y / (8 * image->file.frame.step_y)] * 8 *
                image->file.frame.step_x / plane->step_x;
            memcpy(copies[p] + y * plane->stride, plane->data + y * plane->stride + by,
                   plane->width - by);
        }
        plane->data = copies[p];
    }
}

/* Reduced by the limit alone, as far as the loader itself would. */
static bool fake_decode(struct dl2_decode_slot *slot, const struct dl2_encoded *image, uint8_t *out)
{
    struct dl2_resizer resizer = {.kernels = NULL};
    struct dl2_decoder *decoder;
    struct dl2_image_info info;
    struct dl2_raster raster;
    struct dl2_decode_request request = DL2_DECODE_REQUEST_DEFAULTS;
    const struct dl2_crop crop = {.box = image->box};
    request.x = (uint32_t)image->limit.left;
    request.y = (uint32_t)image->limit.top;
    request.width = (uint32_t)(image->limit.right - image->limit.left);
    request.height = (uint32_t)(image->limit.bottom - image->limit.top);
    if (image->file.shift) {
        request.x = request.y = 0;
        request.width = image->file.frame.width;
        request.height = image->file.frame.height;
    }
    request.channels = slot->channels == 1 ? 1 : 0;
    request.reduction = dl2_crop_reduction(&crop, slot->side, slot->side);
    const struct dl2_resize_output output = {.data = out,
                                             .width = slot->side,
                                             .height = slot->side,
                                             .channels = slot->channels,
                                             .flip = image->flip};
    must(dl2_decoder_create(&decoder, NULL) == DL2_OK);
    bool good =
        dl2_decoder_open(decoder, image->file.data, image->file.size, 0, &info, NULL) == DL2_OK;
    if (good) {
        must(info.width == image->file.frame.width && info.height == image->file.frame.height);
        good = dl2_decoder_decode(decoder, &request, &raster, NULL) == DL2_OK;
    }
    uint8_t *copies[3] = {NULL};
    if (good && image->file.shift)
        straighten(image, &raster, copies);
    if (good)
        must(dl2_resize_raster(&resizer, &raster, &image->limit, &image->box, &output, NULL) ==
             DL2_OK);
    for (unsigned p = 0; p < 3; p++)
        free(copies[p]);
    dl2_resizer_free(&resizer);
    dl2_decoder_destroy(decoder);
    return good;
}

static int fake_finish(struct dl2_decode_slot *slot, unsigned count, bool *refused,
                       struct dl2_error *error)
{
    struct fake_decoder *fake = slot->fake;
    if (atomic_fetch_add(&fake->finishes, 1) + 1 == fake->fails_at)
        return dl2_error_set(error, DL2_ERR_SYSTEM, "the card fell out");
    if (fake->micros)
        usleep(fake->micros);
    for (unsigned i = 0; i < count; i++) {
        uint8_t *out = slot->device + i * slot->sample_bytes;
        struct dl2_encoded *image = &slot->places[i].image;
        if (slot->places[i].kind == PIXELS)
            memcpy(out, slot->host + i * slot->sample_bytes, slot->sample_bytes);
        if (slot->places[i].kind == ENCODED) {
            atomic_fetch_add(&fake->images, 1);
            atomic_fetch_add(&fake->bytes, image->file.size);
            atomic_fetch_add(&fake->pixels,
                             (uint64_t)image->file.frame.width * image->file.frame.height);
            if (image->file.shift)
                atomic_fetch_add(&fake->shifted, 1);
            const uLong sum = crc32_z(0, image->file.data, image->file.size);
            if ((fake->refuses && sum % fake->refuses == 0) || !fake_decode(slot, image, out)) {
                refused[i] = true;
                atomic_fetch_add(&fake->refused, 1);
            }
        }
        empty(slot, i);
    }
    return DL2_OK;
}

static void fake_write_after(struct dl2_batch_decoder *decoder, const uint8_t *images,
                             uintptr_t stream)
{
    struct fake_decoder *fake = (struct fake_decoder *)decoder;
    atomic_store(&fake->read, (uintptr_t)images);
    atomic_store(&fake->reader, stream);
    atomic_fetch_add(&fake->reads, 1);
}

static int fake_download(struct dl2_batch_decoder *decoder, void *to, const uint8_t *images,
                         size_t bytes, struct dl2_error *error)
{
    (void)decoder, (void)error;
    memcpy(to, images, bytes);
    return DL2_OK;
}

static void fake_get_stats(const struct dl2_batch_decoder *decoder,
                           struct dl2_batch_decoder_stats *stats)
{
    const struct fake_decoder *fake = (const struct fake_decoder *)decoder;
    const uint64_t refused = atomic_load(&fake->refused);
    *stats = (struct dl2_batch_decoder_stats){.images = atomic_load(&fake->images) - refused,
                                              .bytes = atomic_load(&fake->bytes),
                                              .pixels = atomic_load(&fake->pixels),
                                              .refused = refused,
                                              .refusal = refused ? "an image for a test" : NULL};
}

static void fake_close(struct dl2_batch_decoder *decoder)
{
    free(decoder);
}

const struct dl2_batch_decoder_class fake_decoder_class = {
    .name = "fake",
    .close = fake_close,
    .takes = fake_takes,
    .slot_create = fake_slot_create,
    .slot_free = fake_slot_free,
    .images = fake_images,
    .begin = fake_begin,
    .add = fake_add,
    .pixels = fake_pixels,
    .finish = fake_finish,
    .write_after = fake_write_after,
    .download = fake_download,
    .get_stats = fake_get_stats,
};
