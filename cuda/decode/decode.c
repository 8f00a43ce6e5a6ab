/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Batches decoded by nvJPEG (jpeg_lists.h), then cropped and resized by transform.cu: from planes,
 * by the loader's own definition, which resizes them before it converts colors. nvJPEG's
 * upsampling of chroma, another one than libjpeg's, has no part in it but for regions.
 *
 * Each slot is a lane of its own: a stream, lists, and memory that is kept from batch to batch and
 * grows when a batch needs more. Encoded bytes and tables lie in pinned memory. Within a slot all
 * is in the order of its stream, but for engines, which write at once: planes are given to them
 * only when nothing reads them. finish() waits for all of it, so no lane sees another.
 *
 * Untested on hardware: no GPU was available (docs/gpu.md).
 */
#include "cuda/decode/decode.h"

#include "common/clock.h"
#include "common/memory.h"
#include "cuda/decode/jpeg_lists.h"
#include "cuda/decode/transform.h"
#include "cuda/gpu.h"

#include <math.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

enum { ROW = 128, PLANE = 256 };         /* what rows and planes are aligned to */
#define MAX_PLANES    ((size_t)1 << 30)  /* bytes of decoded planes at once, or one image */
#define FIRST_ENCODED ((size_t)96 << 10) /* bytes an image that a slot begins with room for */
#define MAX_SIDE      16384              /* larger images stay with the processors */

struct decoder {
    struct dl2_batch_decoder base;
    struct dl2_batch_decoder_options options;
    struct dl2_jpeg_backends *backends;
    pthread_mutex_t mutex; /* for what follows */
    struct dl2_batch_decoder_stats stats;
    struct dl2_decode_slot *slots;
};

enum kind { EMPTY, PIXELS, ENCODED };

struct place {
    atomic_uchar kind;
    struct dl2_encoded image; /* data and shift lie in the slot's memory, or `spill` */
    struct dl2_bytes spill;
    struct dl2_listed_jpeg jpeg; /* from when its group is decoded */
};

struct dl2_decode_slot {
    struct decoder *decoder;
    unsigned samples, side, channels;
    size_t sample_bytes;
    cudaStream_t stream;
    cudaEvent_t decoded, done;
    cudaEvent_t read; /* the last that write_after() was asked to wait for */
    struct dl2_jpeg_lists *lists;
    struct dl2_decode_slot *next;

    uint8_t *images; /* the card's, [samples] */
    uint8_t *pixels; /* pinned, [samples] */
    struct place *places;
    struct dl2_listed_jpeg **group; /* [samples]: of the images that are decoded together */

    /* Encoded bytes: pinned, handed out from the front. */
    uint8_t *encoded;
    size_t encoded_room;
    atomic_size_t encoded_used; /* may pass the room: then places spill */

    /* Tables of a plan, and shifts behind them. */
    uint8_t *table, *table_card; /* pinned; the card's */
    size_t table_room;
    uint8_t *planes; /* the card's */
    size_t planes_room;
    uint8_t *scratch; /* the card's */
    size_t scratch_room;
};

static int out_of_memory(struct dl2_error *error)
{
    return dl2_error_memory(error, "a batch to decode");
}

/* ---- memory ---- */

static size_t round_up(size_t value, size_t to)
{
    return (value + to - 1) / to * to;
}

/* With some to spare, so that a run of batches soon needs no more. What was there is gone. Only the
 * slot's stream waits: cudaFree() would wait for the whole card, which is training. */
static int reserve_card(const struct dl2_decode_slot *slot, uint8_t **memory, size_t *room,
                        size_t size, struct dl2_error *error)
{
    if (size <= *room)
        return DL2_OK;
    if (*memory)
        DL2_TRY(dl2_gpu_check(cudaFreeAsync(*memory, slot->stream), "cudaFreeAsync", error));
    *memory = NULL;
    *room = 0;
    const size_t wanted = round_up(size + size / 4, (size_t)1 << 20);
    DL2_TRY(dl2_gpu_check(cudaMallocAsync((void **)memory, wanted, slot->stream),
                          "cudaMallocAsync (decoded images)", error));
    *room = wanted;
    /* Engines may write before the stream has come to the allocation. */
    return dl2_gpu_check(cudaStreamSynchronize(slot->stream), "cudaStreamSynchronize", error);
}

static int make_pinned(uint8_t **memory, size_t size, struct dl2_error *error)
{
    return dl2_gpu_check(cudaHostAlloc((void **)memory, size, cudaHostAllocPortable),
                         "cudaHostAlloc (pinned memory of this machine)", error);
}

/* ---- a place ---- */

/* Room for `size` bytes: of the slot's memory, or the place's own. */
static uint8_t *take(struct dl2_decode_slot *slot, struct place *place, size_t size,
                     struct dl2_error *error)
{
    const size_t at = atomic_fetch_add(&slot->encoded_used, round_up(size, 64));
    if (at <= slot->encoded_room && size <= slot->encoded_room - at)
        return slot->encoded + at;
    return dl2_bytes_resize(&place->spill, size, error) < 0 ? NULL : place->spill.data;
}

static unsigned mcu_rows(const struct dl2_coded_frame *frame)
{
    return (frame->height + 8 * frame->step_y - 1) / (8 * frame->step_y);
}

/* The shifts behind the bytes, both in one piece. */
static int nvjpeg_add(struct dl2_decode_slot *slot, unsigned n, const struct dl2_encoded *image,
                      struct dl2_error *error)
{
    struct place *place = &slot->places[n];
    const size_t shifts =
        image->file.shift ? mcu_rows(&image->file.frame) * sizeof *image->file.shift : 0;
    const size_t bytes = round_up(image->file.size, sizeof *image->file.shift);
    uint8_t *memory = take(slot, place, bytes + shifts, error);
    if (!memory)
        return DL2_ERR_MEMORY;
    memcpy(memory, image->file.data, image->file.size);
    place->image = *image;
    place->image.file.data = memory;
    if (shifts)
        memcpy(memory + bytes, image->file.shift, shifts);
    place->image.file.shift = shifts ? (const uint32_t *)(const void *)(memory + bytes) : NULL;
    atomic_store(&place->kind, ENCODED);
    return DL2_OK;
}

static uint8_t *nvjpeg_pixels(struct dl2_decode_slot *slot, unsigned n)
{
    atomic_store(&slot->places[n].kind, PIXELS);
    return slot->pixels + n * slot->sample_bytes;
}

static void nvjpeg_begin(struct dl2_decode_slot *slot)
{
    for (unsigned i = 0; i < slot->samples; i++)
        atomic_store_explicit(&slot->places[i].kind, EMPTY, memory_order_relaxed);
    atomic_store(&slot->encoded_used, 0);
}

static uint8_t *nvjpeg_images(struct dl2_decode_slot *slot)
{
    return slot->images;
}

static bool nvjpeg_takes(const struct dl2_batch_decoder *base, const struct dl2_coded_frame *frame)
{
    (void)base;
    return frame->width <= MAX_SIDE && frame->height <= MAX_SIDE;
}

/* ---- a group: images whose planes fit into memory together ---- */

/* The first of a chroma sample's pixels: what nvJPEG wants a rectangle to begin at. */
static uint32_t first_pixel(double at, uint32_t step)
{
    return at > 0 ? (uint32_t)at / step * step : 0;
}

static uint32_t last_pixel(double at, uint32_t size)
{
    return ceil(at) < size ? (uint32_t)ceil(at) : size;
}

/* The part of an image that is decoded, and its format. Returns the bytes of its planes. */
static size_t lay_out(const struct dl2_decode_slot *slot, struct place *place)
{
    const struct dl2_encoded *image = &place->image;
    const struct dl2_coded_frame *plain = &image->file.frame;
    const bool regions = slot->decoder->options.regions;
    struct dl2_raster *raster = &place->jpeg.raster;
    place->jpeg =
        (struct dl2_listed_jpeg){image->file.data, image->file.size, plain, .refusal = NULL};
    raster->color = regions                                         ? DL2_COLOR_RGB
                    : slot->channels == 1 || plain->components == 1 ? DL2_COLOR_GRAY
                                                                    : DL2_COLOR_YCBCR;
    size_t bytes = 0;
    for (unsigned p = 0; p < dl2_raster_planes(raster); p++) {
        struct dl2_plane *plane = &raster->planes[p];
        plane->step_x = p ? plain->step_x : 1;
        plane->step_y = p ? plain->step_y : 1;
        plane->width = (plain->width + plane->step_x - 1) / plane->step_x;
        plane->height = (plain->height + plane->step_y - 1) / plane->step_y;
        if (regions && !image->file.shift) {
            plane->x = first_pixel(image->limit.left, plain->step_x);
            plane->y = first_pixel(image->limit.top, plain->step_y);
            plane->width = last_pixel(image->limit.right, plain->width) - plane->x;
            plane->height = last_pixel(image->limit.bottom, plain->height) - plane->y;
        }
        plane->stride = round_up((size_t)plane->width * (regions ? 3 : 1), ROW);
        bytes += round_up(plane->stride * plane->height, PLANE);
    }
    return bytes;
}

/* The end of the group that begins at `from`: lays out its planes and lists its images. */
static int make_group(struct dl2_decode_slot *slot, unsigned from, unsigned count, unsigned *end,
                      unsigned *listed, struct dl2_error *error)
{
    const size_t most = slot->decoder->options.memory ? slot->decoder->options.memory : MAX_PLANES;
    size_t bytes = 0;
    unsigned i = from;
    *listed = 0;
    for (; i < count; i++) {
        struct place *place = &slot->places[i];
        if (atomic_load(&place->kind) != ENCODED)
            continue;
        const size_t more = lay_out(slot, place);
        if (bytes && bytes + more > most)
            break;
        bytes += more;
        slot->group[(*listed)++] = &place->jpeg;
    }
    *end = i;
    DL2_TRY(reserve_card(slot, &slot->planes, &slot->planes_room, bytes, error));
    uint8_t *at = slot->planes;
    for (unsigned n = 0; n < *listed; n++) {
        struct dl2_raster *raster = &slot->group[n]->raster;
        for (unsigned p = 0; p < dl2_raster_planes(raster); p++) {
            raster->planes[p].data = at;
            at += round_up(raster->planes[p].stride * raster->planes[p].height, PLANE);
        }
    }
    return DL2_OK;
}

/* Crop, resize, colors and flip of all that was decoded. */
static int transform_group(struct dl2_decode_slot *slot, unsigned from, unsigned end,
                           struct dl2_error *error)
{
    struct dl2_gpu_plan plan;
    size_t used = round_up(dl2_gpu_plan_bytes(slot->samples), 64);
    dl2_gpu_plan_begin(&plan, slot->table, slot->samples, slot->side, slot->channels);
    for (unsigned i = from; i < end; i++) {
        struct place *place = &slot->places[i];
        const struct dl2_encoded *encoded = &place->image;
        if (atomic_load(&place->kind) != ENCODED || place->jpeg.refusal)
            continue;
        const uint32_t *shift = NULL;
        if (encoded->file.shift) {
            const size_t bytes = mcu_rows(&encoded->file.frame) * sizeof *shift;
            if (used + bytes > slot->table_room) {
                place->jpeg.refusal = "too high"; /* there is room for heights up to MAX_SIDE */
                continue;
            }
            memcpy(slot->table + used, encoded->file.shift, bytes);
            shift = (const uint32_t *)(const void *)(slot->table_card + used);
            used += bytes;
        }
        const struct dl2_gpu_image image = {.raster = place->jpeg.raster,
                                            .limit = encoded->limit,
                                            .box = encoded->box,
                                            .flip = encoded->flip,
                                            .shift = shift,
                                            .mcu_x = encoded->file.frame.step_x,
                                            .mcu_y = encoded->file.frame.step_y,
                                            .out = slot->images + i * slot->sample_bytes};
        if (!dl2_gpu_plan_add(&plan, &image))
            place->jpeg.refusal = "a crop beyond the image";
    }
    if (!plan.images)
        return DL2_OK;
    DL2_TRY(reserve_card(slot, &slot->scratch, &slot->scratch_room, dl2_gpu_plan_scratch(&plan),
                         error));
    DL2_TRY(dl2_gpu_check(
        cudaMemcpyAsync(slot->table_card, slot->table, used, cudaMemcpyHostToDevice, slot->stream),
        "cudaMemcpyAsync (tables of a batch)", error));
    return dl2_gpu_check(
        (cudaError_t)dl2_gpu_transform(&plan, slot->table_card, slot->scratch, slot->stream),
        "the transform of a batch", error);
}

/* ---- a batch ---- */

/* Adds up what became of images [from, end). */
static void count(struct dl2_decode_slot *slot, unsigned from, unsigned end,
                  struct dl2_batch_decoder_stats *stats)
{
    for (unsigned i = from; i < end; i++) {
        const struct place *place = &slot->places[i];
        const struct dl2_plane *plane = &place->jpeg.raster.planes[0];
        if (atomic_load(&place->kind) != ENCODED)
            continue;
        if (place->jpeg.refusal) {
            stats->refused++;
            stats->refusal = stats->refusal ? stats->refusal : place->jpeg.refusal;
            continue;
        }
        stats->images++;
        stats->by_engines += place->jpeg.by_engines;
        stats->bytes += place->image.file.size;
        stats->pixels += (uint64_t)plane->width * plane->height;
    }
}

/* Uploads the samples that the processors decoded, neighbors in one copy. */
static int upload_pixels(struct dl2_decode_slot *slot, unsigned samples, struct dl2_error *error)
{
    for (unsigned i = 0, first = 0; i <= samples; i++) {
        if (i < samples && atomic_load(&slot->places[i].kind) == PIXELS)
            continue;
        if (i > first)
            DL2_TRY(dl2_gpu_check(cudaMemcpyAsync(slot->images + first * slot->sample_bytes,
                                                  slot->pixels + first * slot->sample_bytes,
                                                  (i - first) * slot->sample_bytes,
                                                  cudaMemcpyHostToDevice, slot->stream),
                                  "cudaMemcpyAsync (images)", error));
        first = i + 1;
    }
    return DL2_OK;
}

/* Room for all of such a batch next time. */
static int grow_encoded(struct dl2_decode_slot *slot, struct dl2_error *error)
{
    const size_t used = atomic_load(&slot->encoded_used);
    if (used <= slot->encoded_room)
        return DL2_OK;
    DL2_TRY(dl2_gpu_check(cudaFreeHost(slot->encoded), "cudaFreeHost", error));
    slot->encoded = NULL;
    slot->encoded_room = 0;
    DL2_TRY(make_pinned(&slot->encoded, used + used / 4, error));
    slot->encoded_room = used + used / 4;
    return DL2_OK;
}

/* Only the slot's stream writes images, so it is the one that waits. */
static bool wait_for_reader(struct dl2_decode_slot *slot, uintptr_t stream)
{
    return slot && cudaEventRecord(slot->read, (cudaStream_t)stream) == cudaSuccess &&
           cudaStreamWaitEvent(slot->stream, slot->read, 0) == cudaSuccess;
}

static void nvjpeg_write_after(struct dl2_batch_decoder *base, const uint8_t *images,
                               uintptr_t stream)
{
    struct decoder *decoder = (struct decoder *)base;
    int before;
    if (dl2_gpu_enter(decoder->options.card, &before, NULL) < 0)
        return; /* a card or a process at its end */
    pthread_mutex_lock(&decoder->mutex);
    struct dl2_decode_slot *slot = decoder->slots;
    while (slot && slot->images != images)
        slot = slot->next;
    if (!wait_for_reader(slot, stream)) {
        cudaDeviceSynchronize(); /* a stream that can't be asked */
        cudaGetLastError();
    }
    pthread_mutex_unlock(&decoder->mutex);
    dl2_gpu_leave(before);
}

static int nvjpeg_finish(struct dl2_decode_slot *slot, unsigned samples, bool *refused,
                         struct dl2_error *error)
{
    struct decoder *decoder = slot->decoder;
    DL2_TRY(dl2_gpu_check(cudaSetDevice((int)decoder->options.card), "cudaSetDevice", error));
    DL2_TRY(upload_pixels(slot, samples, error));
    for (unsigned from = 0, end = 0, listed; from < samples; from = end) {
        DL2_TRY(make_group(slot, from, samples, &end, &listed, error));
        const double began = dl2_clock_wall();
        DL2_TRY(dl2_jpeg_lists_decode(slot->lists, slot->group, listed, slot->stream, error));
        DL2_TRY(
            dl2_gpu_check(cudaEventRecord(slot->decoded, slot->stream), "cudaEventRecord", error));
        DL2_TRY(transform_group(slot, from, end, error));
        DL2_TRY(dl2_gpu_check(cudaEventRecord(slot->done, slot->stream), "cudaEventRecord", error));
        DL2_TRY(dl2_gpu_check(cudaEventSynchronize(slot->done),
                              "cudaEventSynchronize (a batch of images)", error));
        /* By the wall clock: engines keep to no stream, so events say nothing of them. */
        float milliseconds = 0;
        cudaEventElapsedTime(&milliseconds, slot->decoded, slot->done);
        const double transformed = (double)milliseconds / 1e3;
        const double decoded = fmax(0, dl2_clock_wall() - began - transformed);
        pthread_mutex_lock(&decoder->mutex);
        decoder->stats.decode += decoded;
        decoder->stats.transform += transformed;
        count(slot, from, end, &decoder->stats);
        pthread_mutex_unlock(&decoder->mutex);
    }
    for (unsigned i = 0; i < samples; i++) {
        if (atomic_load(&slot->places[i].kind) == ENCODED && slot->places[i].jpeg.refusal)
            refused[i] = true;
        atomic_store(&slot->places[i].kind, EMPTY);
    }
    return grow_encoded(slot, error);
}

/* ---- making and unmaking ---- */

static void remove_slot(struct decoder *decoder, const struct dl2_decode_slot *slot)
{
    pthread_mutex_lock(&decoder->mutex);
    struct dl2_decode_slot **at = &decoder->slots;
    while (*at && *at != slot)
        at = &(*at)->next;
    if (*at)
        *at = slot->next;
    pthread_mutex_unlock(&decoder->mutex);
}

static void free_slot(struct dl2_decode_slot *slot)
{
    remove_slot(slot->decoder, slot);
    if (slot->stream)
        cudaStreamSynchronize(slot->stream);
    dl2_jpeg_lists_free(slot->lists);
    for (unsigned i = 0; slot->places && i < slot->samples; i++)
        dl2_bytes_free(&slot->places[i].spill);
    cudaFree(slot->images);
    cudaFree(slot->planes);
    cudaFree(slot->scratch);
    cudaFree(slot->table_card);
    cudaFreeHost(slot->table);
    cudaFreeHost(slot->pixels);
    cudaFreeHost(slot->encoded);
    if (slot->decoded)
        cudaEventDestroy(slot->decoded);
    if (slot->done)
        cudaEventDestroy(slot->done);
    if (slot->read)
        cudaEventDestroy(slot->read);
    if (slot->stream)
        cudaStreamDestroy(slot->stream);
    free(slot->places);
    free(slot->group);
    free(slot);
}

static void nvjpeg_slot_free(struct dl2_decode_slot *slot)
{
    int before;
    if (!slot)
        return;
    const bool entered = dl2_gpu_enter(slot->decoder->options.card, &before, NULL) == DL2_OK;
    free_slot(slot);
    if (entered)
        dl2_gpu_leave(before);
}

static int make_lane(struct dl2_decode_slot *slot, struct dl2_error *error)
{
    DL2_TRY(dl2_gpu_check(cudaStreamCreateWithFlags(&slot->stream, cudaStreamNonBlocking),
                          "cudaStreamCreateWithFlags", error));
    DL2_TRY(dl2_gpu_check(cudaEventCreate(&slot->decoded), "cudaEventCreate", error));
    /* Who waits for it sleeps: the workers need the processors. */
    DL2_TRY(dl2_gpu_check(cudaEventCreateWithFlags(&slot->done, cudaEventBlockingSync),
                          "cudaEventCreateWithFlags", error));
    DL2_TRY(dl2_gpu_check(cudaEventCreateWithFlags(&slot->read, cudaEventDisableTiming),
                          "cudaEventCreateWithFlags", error));
    return dl2_jpeg_lists_create(slot->decoder->backends, slot->samples, &slot->lists, error);
}

static int make_memory(struct dl2_decode_slot *slot, struct dl2_error *error)
{
    const size_t samples = slot->samples;
    size_t bytes, encoded, shifts;
    slot->places = dl2_calloc(samples, sizeof *slot->places);
    slot->group = dl2_calloc(samples, sizeof *slot->group);
    if (!slot->places || !slot->group)
        return out_of_memory(error);
    if (!dl2_size_mul(slot->sample_bytes, samples, &bytes) ||
        !dl2_size_mul(FIRST_ENCODED, samples, &encoded) ||
        !dl2_size_mul(MAX_SIDE / 8 * sizeof(uint32_t), samples, &shifts))
        return out_of_memory(error);
    DL2_TRY(dl2_gpu_check(cudaMalloc((void **)&slot->images, bytes),
                          "cudaMalloc (a batch of images)", error));
    DL2_TRY(make_pinned(&slot->pixels, bytes, error));
    DL2_TRY(make_pinned(&slot->encoded, encoded, error));
    slot->encoded_room = encoded;
    slot->table_room = round_up(dl2_gpu_plan_bytes(slot->samples), 64) + shifts;
    DL2_TRY(make_pinned(&slot->table, slot->table_room, error));
    return dl2_gpu_check(cudaMalloc((void **)&slot->table_card, slot->table_room),
                         "cudaMalloc (tables of a batch)", error);
}

static int nvjpeg_slot_create(struct dl2_batch_decoder *base, unsigned samples, unsigned side,
                              unsigned channels, struct dl2_decode_slot **out,
                              struct dl2_error *error)
{
    struct decoder *decoder = (struct decoder *)base;
    int before;
    *out = NULL;
    DL2_TRY(dl2_gpu_enter(decoder->options.card, &before, error));
    struct dl2_decode_slot *slot = dl2_calloc(1, sizeof *slot);
    int status = slot ? DL2_OK : out_of_memory(error);
    if (slot) {
        slot->decoder = decoder;
        slot->samples = samples;
        slot->side = side;
        slot->channels = channels;
        slot->sample_bytes = (size_t)side * side * channels;
        status = make_lane(slot, error);
    }
    if (status == DL2_OK)
        status = make_memory(slot, error);
    if (status == DL2_OK) {
        pthread_mutex_lock(&decoder->mutex);
        slot->next = decoder->slots;
        decoder->slots = *out = slot;
        pthread_mutex_unlock(&decoder->mutex);
    } else if (slot) {
        free_slot(slot);
    }
    dl2_gpu_leave(before);
    return status;
}

static int nvjpeg_download(struct dl2_batch_decoder *base, void *to, const uint8_t *images,
                           size_t bytes, struct dl2_error *error)
{
    const struct decoder *decoder = (const struct decoder *)base;
    int before;
    DL2_TRY(dl2_gpu_enter(decoder->options.card, &before, error));
    const int status = dl2_gpu_check(cudaMemcpy(to, images, bytes, cudaMemcpyDeviceToHost),
                                     "cudaMemcpy (images)", error);
    dl2_gpu_leave(before);
    return status;
}

static void nvjpeg_get_stats(const struct dl2_batch_decoder *base,
                             struct dl2_batch_decoder_stats *stats)
{
    struct decoder *decoder = (struct decoder *)base; /* to lock; nothing else changes */
    pthread_mutex_lock(&decoder->mutex);
    *stats = decoder->stats;
    pthread_mutex_unlock(&decoder->mutex);
}

static json_t *nvjpeg_describe(const struct dl2_batch_decoder *base)
{
    const struct decoder *decoder = (const struct decoder *)base;
    json_t *text = dl2_jpeg_backends_describe(decoder->backends);
    if (text)
        json_object_set_new(text, "card", json_integer(decoder->options.card));
    return text;
}

static void nvjpeg_close(struct dl2_batch_decoder *base)
{
    struct decoder *decoder = (struct decoder *)base;
    if (!decoder)
        return;
    int before;
    const bool entered = dl2_gpu_enter(decoder->options.card, &before, NULL) == DL2_OK;
    dl2_jpeg_backends_close(decoder->backends);
    if (entered)
        dl2_gpu_leave(before);
    pthread_mutex_destroy(&decoder->mutex);
    free(decoder);
}

static const struct dl2_batch_decoder_class nvjpeg_class = {
    .name = "nvjpeg",
    .close = nvjpeg_close,
    .describe = nvjpeg_describe,
    .takes = nvjpeg_takes,
    .slot_create = nvjpeg_slot_create,
    .slot_free = nvjpeg_slot_free,
    .images = nvjpeg_images,
    .begin = nvjpeg_begin,
    .add = nvjpeg_add,
    .pixels = nvjpeg_pixels,
    .finish = nvjpeg_finish,
    .write_after = nvjpeg_write_after,
    .download = nvjpeg_download,
    .get_stats = nvjpeg_get_stats,
};

int dl2_nvjpeg_open(const struct dl2_batch_decoder_options *options, struct dl2_batch_decoder **out,
                    struct dl2_error *error)
{
    *out = NULL;
    struct decoder *decoder = dl2_calloc(1, sizeof *decoder);
    if (!decoder)
        return out_of_memory(error);
    decoder->base.ops = &nvjpeg_class;
    decoder->options = *options;
    pthread_mutex_init(&decoder->mutex, NULL);
    int before;
    const bool had = cudaGetDevice(&before) == cudaSuccess; /* else dl2_gpu_use() says what it is */
    int status = dl2_gpu_use(options->card, error);
    if (status == DL2_OK)
        status = dl2_jpeg_backends_open(options, &decoder->backends, error);
    if (had)
        dl2_gpu_leave(before);
    if (status < 0) {
        dl2_error_prefix(error, "decoding on the card (decode 'cpu' needs none)");
        nvjpeg_close(&decoder->base);
        return status;
    }
    *out = &decoder->base;
    return DL2_OK;
}
