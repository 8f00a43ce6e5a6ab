/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Batches decoded by nvJPEG, then cropped and resized by transform.cu.
 *
 * nvJPEG returns the planes of luma and chroma as they are coded (NVJPEG_OUTPUT_YUV, or Y
 * for gray): half of RGB's bytes, and the loader's own definition, which resizes planes before it
 * converts colours; nvJPEG's upsampling of chroma, another one than libjpeg's, has no part in it.
 * With regions it is interleaved RGB, of which alone nvJPEG promises to decode a rectangle; and
 * only by the engines, since the cores take rectangles one image at a time, each awaited by the
 * host.
 *
 * Engines (NVJPEG_BACKEND_HARDWARE: A100, H100, H200...) take whole lists of baseline images. What
 * they don't know, and all on cards without them, goes to the cores (NVJPEG_BACKEND_GPU_HYBRID),
 * whose lists of more than 50 images are decoded without the host. A list that fails is tried again
 * in halves, down to the image that is to blame, which is refused.
 *
 * Each slot is a lane of its own: a stream, decoder states, and memory that is kept from batch to
 * batch and grows when a batch needs more. Encoded bytes and tables lie in pinned memory. Within a
 * slot all is in the order of its stream; finish() waits for it, so no lane sees another. Engines
 * of an H100 were seen to write as soon as they are called, whatever their stream is still at
 * (meta-pytorch/torchcodec, number 1634): planes are given to them only when nothing reads them.
 *
 * Never yet run on a card: docs/performance.md says how to.
 */
#include "cuda/decode.h"

#include "common/clock.h"
#include "common/memory.h"
#include "cuda/gpu.h"
#include "cuda/transform.h"

#include <math.h>
#include <nvjpeg.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

enum { ROW = 128, PLANE = 256 };         /* what rows and planes are aligned to */
#define MOST_PLANES   ((size_t)1 << 30)  /* bytes of decoded planes at once, or one image */
#define FIRST_ENCODED ((size_t)96 << 10) /* bytes an image that a slot begins with room for */
#define MOST_SIDE     16384              /* larger images stay with the processors */

enum engine { ENGINES, CORES, ENGINE_COUNT };
enum format { COLOR, GRAY, FORMAT_COUNT }; /* of a list's output */

struct decoder {
    struct dl2_batch_decoder base;
    struct dl2_batch_decoder_options options;
    nvjpegHandle_t handles[ENGINE_COUNT]; /* NULL: not there */
    unsigned engines, cores_per_engine;   /* what nvJPEG says of them; 0: nothing */
    pthread_mutex_t mutex;                /* for what follows */
    struct dl2_batch_decoder_stats stats;
    struct dl2_decode_slot *slots;
};

enum kind { EMPTY, PIXELS, ENCODED };

struct place {
    atomic_uchar kind;
    struct dl2_encoded image; /* data and shift lie in the slot's memory, or `spill` */
    struct dl2_bytes spill;
    /* While its group is decoded. */
    uint32_t x, y, width, height; /* what of it is decoded */
    nvjpegImage_t planes;
    bool failed;
};

/* A state decodes lists of one length and format. */
struct state {
    nvjpegJpegState_t state;
    int length, format;
};

struct dl2_decode_slot {
    struct decoder *decoder;
    unsigned samples, side, channels;
    size_t sample_bytes;
    cudaStream_t stream;
    cudaEvent_t decoded, done;
    cudaEvent_t read; /* the last that write_after() was asked to wait for */
    struct dl2_decode_slot *next;

    uint8_t *images; /* the card's, [samples] */
    uint8_t *pixels; /* pinned, [samples] */
    struct place *places;

    /* Encoded bytes: pinned, handed out from the front. */
    uint8_t *encoded;
    size_t encoded_room;
    atomic_size_t encoded_used; /* may pass the room: then places spill */

    /* Tables of a plan, and shifts behind them. */
    uint8_t *table, *table_card; /* pinned; the card's */
    size_t table_room;
    uint8_t *planes; /* the card's */
    size_t planes_room;
    uint8_t *padding; /* in `planes`: room for an image that nobody reads */
    uint8_t *scratch; /* the card's */
    size_t scratch_room;

    nvjpegJpegStream_t parser;
    struct state states[ENGINE_COUNT][FORMAT_COUNT];
    nvjpegDecodeParams_t *params; /* [samples], made when first needed */

    /* Lists of what is decoded together. */
    unsigned *list;
    const unsigned char **list_data;
    size_t *list_sizes;
    nvjpegImage_t *list_planes;
    nvjpegDecodeParams_t *list_params;
};

/* For what belongs to no engine: headers, parameters. */
static nvjpegHandle_t any_handle(const struct decoder *decoder)
{
    return decoder->handles[decoder->handles[ENGINES] ? ENGINES : CORES];
}

/* ---- errors ---- */

static const char *status_text(nvjpegStatus_t status)
{
    switch (status) {
    case NVJPEG_STATUS_SUCCESS:
        return "no error";
    case NVJPEG_STATUS_NOT_INITIALIZED:
        return "not initialized";
    case NVJPEG_STATUS_INVALID_PARAMETER:
        return "invalid parameter";
    case NVJPEG_STATUS_BAD_JPEG:
        return "bad JPEG";
    case NVJPEG_STATUS_JPEG_NOT_SUPPORTED:
        return "JPEG not supported";
    case NVJPEG_STATUS_ALLOCATOR_FAILURE:
        return "out of memory";
    case NVJPEG_STATUS_EXECUTION_FAILED:
        return "execution failed";
    case NVJPEG_STATUS_ARCH_MISMATCH:
        return "not on this card";
    case NVJPEG_STATUS_INTERNAL_ERROR:
        return "internal error";
    case NVJPEG_STATUS_IMPLEMENTATION_NOT_SUPPORTED:
        return "implementation not supported";
    case NVJPEG_STATUS_INCOMPLETE_BITSTREAM:
        return "incomplete bitstream";
    }
    return "unknown error";
}

static int check(nvjpegStatus_t status, const char *call, struct dl2_error *error)
{
    if (status == NVJPEG_STATUS_SUCCESS)
        return DL2_OK;
    const enum dl2_status kind = status == NVJPEG_STATUS_ALLOCATOR_FAILURE ? DL2_ERR_MEMORY
                                 : status == NVJPEG_STATUS_ARCH_MISMATCH   ? DL2_ERR_UNSUPPORTED
                                                                           : DL2_ERR_SYSTEM;
    return dl2_error_set(error, kind, "%s: %s (%d)%s", call, status_text(status), (int)status,
                         kind == DL2_ERR_MEMORY ? "; choose a smaller batch or --depth, or decode "
                                                  "on the processors (--decode cpu)"
                                                : "");
}

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

static unsigned mcu_rows(const struct dl2_jpeg_plain *jpeg)
{
    return (jpeg->height + 8 * jpeg->step_y - 1) / (8 * jpeg->step_y);
}

/* The shifts behind the bytes, both in one piece. */
static int nvjpeg_add(struct dl2_decode_slot *slot, unsigned n, const struct dl2_encoded *image,
                      struct dl2_error *error)
{
    struct place *place = &slot->places[n];
    const size_t shifts = image->shift ? mcu_rows(&image->jpeg) * sizeof *image->shift : 0;
    const size_t bytes = round_up(image->size, sizeof *image->shift);
    uint8_t *memory = take(slot, place, bytes + shifts, error);
    if (!memory)
        return DL2_ERR_MEMORY;
    memcpy(memory, image->data, image->size);
    place->image = *image;
    place->image.data = memory;
    if (shifts)
        memcpy(memory + bytes, image->shift, shifts);
    place->image.shift = shifts ? (const uint32_t *)(const void *)(memory + bytes) : NULL;
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

static bool nvjpeg_takes(const struct dl2_batch_decoder *base, const struct dl2_jpeg_plain *jpeg)
{
    (void)base;
    return jpeg->width <= MOST_SIDE && jpeg->height <= MOST_SIDE;
}

/* ---- a group: images whose planes fit into memory together ---- */

static bool is_gray(const struct dl2_decode_slot *slot, const struct place *place)
{
    return slot->channels == 1 || place->image.jpeg.components == 1;
}

/* Chooses the part of an image that is decoded, and its format. Returns the bytes of its planes. */
static size_t lay_out(const struct dl2_decode_slot *slot, struct place *place)
{
    const struct dl2_encoded *image = &place->image;
    const struct dl2_jpeg_plain *jpeg = &image->jpeg;
    place->x = place->y = 0;
    place->width = jpeg->width;
    place->height = jpeg->height;
    memset(&place->planes, 0, sizeof place->planes);
    if (slot->decoder->options.regions && !image->shift) {
        const double right = ceil(image->limit.right), bottom = ceil(image->limit.bottom);
        place->x = image->limit.left > 0 ? (uint32_t)image->limit.left : 0;
        place->y = image->limit.top > 0 ? (uint32_t)image->limit.top : 0;
        place->width = (right < jpeg->width ? (uint32_t)right : jpeg->width) - place->x;
        place->height = (bottom < jpeg->height ? (uint32_t)bottom : jpeg->height) - place->y;
    }
    if (slot->decoder->options.regions) {
        place->planes.pitch[0] = round_up((size_t)place->width * 3, ROW);
        return round_up(place->planes.pitch[0] * place->height, PLANE);
    }
    size_t bytes = 0;
    for (unsigned p = 0; p < (is_gray(slot, place) ? 1 : 3); p++) {
        const uint32_t width = p ? (jpeg->width + jpeg->step_x - 1) / jpeg->step_x : jpeg->width;
        const uint32_t height = p ? (jpeg->height + jpeg->step_y - 1) / jpeg->step_y : jpeg->height;
        place->planes.pitch[p] = round_up(width, ROW);
        bytes += round_up(place->planes.pitch[p] * height, PLANE);
    }
    return bytes;
}

/* Sets the addresses of the planes from `at` on. Returns the end of them. */
static uint8_t *put_planes(const struct dl2_decode_slot *slot, struct place *place, uint8_t *at)
{
    const struct dl2_jpeg_plain *jpeg = &place->image.jpeg;
    const bool regions = slot->decoder->options.regions;
    for (unsigned p = 0; p < (regions || is_gray(slot, place) ? 1 : 3); p++) {
        const uint32_t height = regions ? place->height
                                : p     ? (jpeg->height + jpeg->step_y - 1) / jpeg->step_y
                                        : jpeg->height;
        place->planes.channel[p] = at;
        at += round_up(place->planes.pitch[p] * height, PLANE);
    }
    return at;
}

static nvjpegOutputFormat_t output_of(const struct dl2_decode_slot *slot, enum format format)
{
    return slot->decoder->options.regions ? NVJPEG_OUTPUT_RGBI
           : format == GRAY               ? NVJPEG_OUTPUT_Y
                                          : NVJPEG_OUTPUT_YUV;
}

/* Does nvJPEG see the image that our header speaks of? Memory was laid out by that. */
static bool agrees(struct dl2_decode_slot *slot, const struct place *place)
{
    const struct dl2_jpeg_plain *jpeg = &place->image.jpeg;
    unsigned width = 0, height = 0, components = 0;
    nvjpegChromaSubsampling_t subsampling = NVJPEG_CSS_UNKNOWN;
    const nvjpegChromaSubsampling_t expected = jpeg->components == 1 ? NVJPEG_CSS_GRAY
                                               : jpeg->step_x == 1 && jpeg->step_y == 1
                                                   ? NVJPEG_CSS_444
                                               : jpeg->step_y == 1 ? NVJPEG_CSS_422
                                               : jpeg->step_x == 1 ? NVJPEG_CSS_440
                                                                   : NVJPEG_CSS_420;
    return nvjpegJpegStreamParseHeader(any_handle(slot->decoder), place->image.data,
                                       place->image.size, slot->parser) == NVJPEG_STATUS_SUCCESS &&
           nvjpegJpegStreamGetFrameDimensions(slot->parser, &width, &height) ==
               NVJPEG_STATUS_SUCCESS &&
           nvjpegJpegStreamGetComponentsNum(slot->parser, &components) == NVJPEG_STATUS_SUCCESS &&
           nvjpegJpegStreamGetChromaSubsampling(slot->parser, &subsampling) ==
               NVJPEG_STATUS_SUCCESS &&
           width == jpeg->width && height == jpeg->height && components == jpeg->components &&
           subsampling == expected;
}

/* The place's parameters: output and rectangle. */
static int set_params(struct dl2_decode_slot *slot, unsigned n, enum format format,
                      struct dl2_error *error)
{
    const struct place *place = &slot->places[n];
    const struct decoder *decoder = slot->decoder;
    if (!slot->params[n])
        DL2_TRY(check(nvjpegDecodeParamsCreate(any_handle(decoder), &slot->params[n]),
                      "nvjpegDecodeParamsCreate", error));
    DL2_TRY(check(nvjpegDecodeParamsSetOutputFormat(slot->params[n], output_of(slot, format)),
                  "nvjpegDecodeParamsSetOutputFormat", error));
    if (!decoder->options.regions)
        return DL2_OK;
    return check(nvjpegDecodeParamsSetROI(slot->params[n], (int)place->x, (int)place->y,
                                          (int)place->width, (int)place->height),
                 "nvjpegDecodeParamsSetROI", error);
}

/* After a failure: is the card itself well, so that the images are to blame? */
static int see_card(struct dl2_decode_slot *slot, nvjpegStatus_t status, const char *call,
                    struct dl2_error *error)
{
    if (status == NVJPEG_STATUS_ALLOCATOR_FAILURE || status == NVJPEG_STATUS_NOT_INITIALIZED)
        return check(status, call, error);
    if (dl2_gpu_check(cudaStreamSynchronize(slot->stream), call, error) < 0)
        return DL2_ERR_SYSTEM;
    cudaGetLastError(); /* what nvJPEG left there was its own */
    return DL2_OK;
}

/* The length that a list is brought to. A state is for lists of one length, and costs much to make
 * anew, where batches differ by a few images: as long as it is an eighth too long at most, it
 * stays.
 */
static unsigned padded_length(const struct dl2_decode_slot *slot, const struct state *state,
                              unsigned count)
{
    const unsigned spare = count / 8 > 4 ? count / 8 : 4, wanted = count + spare / 2;
    if (state->length >= (int)count && state->length <= (int)(count + spare))
        return (unsigned)state->length;
    return wanted < slot->samples ? wanted : slot->samples;
}

/* Fills the list up with the image that takes the fewest bytes. */
static void pad_list(struct dl2_decode_slot *slot, const unsigned *list, unsigned count,
                     unsigned length)
{
    unsigned least = 0;
    for (unsigned i = 1; i < count; i++)
        if (slot->list_sizes[i] < slot->list_sizes[least])
            least = i;
    struct place *place = &slot->places[list[least]];
    const nvjpegImage_t own = place->planes;
    put_planes(slot, place, slot->padding);
    for (unsigned i = count; i < length; i++) {
        slot->list_data[i] = slot->list_data[least];
        slot->list_sizes[i] = slot->list_sizes[least];
        slot->list_params[i] = slot->list_params[least];
        slot->list_planes[i] = place->planes;
    }
    place->planes = own;
}

/* A list, filled up to `length`, or its halves where it fails. */
static int decode_list(struct dl2_decode_slot *slot, enum engine engine, enum format format,
                       const unsigned *list, unsigned count, unsigned length,
                       struct dl2_error *error)
{
    const bool regions = slot->decoder->options.regions;
    nvjpegHandle_t handle = slot->decoder->handles[engine];
    struct state *state = &slot->states[engine][format];
    const nvjpegOutputFormat_t output = output_of(slot, format);
    nvjpegStatus_t status = NVJPEG_STATUS_SUCCESS;
    if (!state->state)
        DL2_TRY(
            check(nvjpegJpegStateCreate(handle, &state->state), "nvjpegJpegStateCreate", error));
    for (unsigned i = 0; i < count; i++) {
        const struct place *place = &slot->places[list[i]];
        slot->list_data[i] = place->image.data;
        slot->list_sizes[i] = place->image.size;
        slot->list_planes[i] = place->planes;
        slot->list_params[i] = slot->params[list[i]];
    }
    pad_list(slot, list, count, length);
    if (state->length != (int)length || state->format != (int)output) {
        const unsigned threads = engine == CORES ? slot->decoder->options.threads : 1;
        status = nvjpegDecodeBatchedInitialize(handle, state->state, (int)length,
                                               threads ? (int)threads : 1, output);
        DL2_TRY(check(status, "nvjpegDecodeBatchedInitialize", error));
        state->length = (int)length;
        state->format = (int)output;
    }
    const char *call = regions ? "nvjpegDecodeBatchedEx" : "nvjpegDecodeBatched";
    if (regions)
        status = nvjpegDecodeBatchedEx(handle, state->state, slot->list_data, slot->list_sizes,
                                       slot->list_planes, slot->list_params, slot->stream);
    else
        status = nvjpegDecodeBatched(handle, state->state, slot->list_data, slot->list_sizes,
                                     slot->list_planes, slot->stream);
    if (status == NVJPEG_STATUS_SUCCESS)
        return DL2_OK;
    state->length = 0; /* "also use to reset failed batches" */
    DL2_TRY(see_card(slot, status, call, error));
    if (count == 1) {
        slot->places[list[0]].failed = true;
        return DL2_OK;
    }
    DL2_TRY(decode_list(slot, engine, format, list, count / 2, count / 2, error));
    /* Both halves have one state, which must not be initialized while it is at work. */
    DL2_TRY(dl2_gpu_check(cudaStreamSynchronize(slot->stream), call, error));
    return decode_list(slot, engine, format, list + count / 2, count - count / 2, count - count / 2,
                       error);
}

/* Do the engines know the image? Its header was parsed. */
static bool engines_know(struct dl2_decode_slot *slot, unsigned n)
{
    nvjpegHandle_t handle = slot->decoder->handles[ENGINES];
    int answer = 1; /* 0 is yes */
    return handle &&
           nvjpegDecodeBatchedSupportedEx(handle, slot->parser, slot->params[n], &answer) ==
               NVJPEG_STATUS_SUCCESS &&
           answer == 0;
}

/* All of places[from .. end-1] that are encoded: each to the list that it belongs to. */
static int decode_group(struct dl2_decode_slot *slot, unsigned from, unsigned end,
                        struct dl2_batch_decoder_stats *stats, struct dl2_error *error)
{
    const struct decoder *decoder = slot->decoder;
    unsigned counts[ENGINE_COUNT][FORMAT_COUNT] = {{0}};
    for (unsigned i = from; i < end; i++) {
        struct place *place = &slot->places[i];
        if (atomic_load(&place->kind) != ENCODED)
            continue;
        const enum format format = is_gray(slot, place) ? GRAY : COLOR;
        place->failed = !agrees(slot, place);
        if (place->failed)
            continue;
        DL2_TRY(set_params(slot, i, format, error));
        const enum engine engine = engines_know(slot, i) ? ENGINES : CORES;
        if (engine == CORES && !decoder->handles[CORES])
            place->failed = true;
        else
            slot->list[(engine * FORMAT_COUNT + format) * slot->samples +
                       counts[engine][format]++] = i;
    }
    for (unsigned e = 0; e < ENGINE_COUNT; e++)
        for (unsigned f = 0; f < FORMAT_COUNT; f++) {
            if (counts[e][f])
                DL2_TRY(decode_list(slot, (enum engine)e, (enum format)f,
                                    slot->list + (e * FORMAT_COUNT + f) * slot->samples,
                                    counts[e][f],
                                    padded_length(slot, &slot->states[e][f], counts[e][f]), error));
            stats->by_engines += e == ENGINES ? counts[e][f] : 0;
        }
    return DL2_OK;
}

/* The decoded image as the transform has it. */
static struct dl2_gpu_image image_of(const struct dl2_decode_slot *slot, unsigned n,
                                     const uint32_t *shift)
{
    const struct place *place = &slot->places[n];
    const struct dl2_encoded *encoded = &place->image;
    const struct dl2_jpeg_plain *jpeg = &encoded->jpeg;
    struct dl2_gpu_image image = {.limit = encoded->limit,
                                  .box = encoded->box,
                                  .flip = encoded->flip,
                                  .shift = shift,
                                  .mcu_x = jpeg->step_x,
                                  .mcu_y = jpeg->step_y,
                                  .out = slot->images + n * slot->sample_bytes};
    const bool regions = slot->decoder->options.regions;
    image.raster.color = regions                ? DL2_COLOR_RGB
                         : is_gray(slot, place) ? DL2_COLOR_GRAY
                                                : DL2_COLOR_YCBCR;
    for (unsigned p = 0; p < dl2_raster_planes(&image.raster); p++) {
        const uint32_t step_x = p ? jpeg->step_x : 1, step_y = p ? jpeg->step_y : 1;
        image.raster.planes[p] = (struct dl2_plane){.data = place->planes.channel[p],
                                                    .stride = place->planes.pitch[p],
                                                    .width = (place->width + step_x - 1) / step_x,
                                                    .height = (place->height + step_y - 1) / step_y,
                                                    .x = place->x,
                                                    .y = place->y,
                                                    .step_x = step_x,
                                                    .step_y = step_y};
    }
    return image;
}

/* Crop, resize, colours and flip of all that was decoded. */
static int transform_group(struct dl2_decode_slot *slot, unsigned from, unsigned end,
                           struct dl2_error *error)
{
    struct dl2_gpu_plan plan;
    size_t used = round_up(dl2_gpu_plan_bytes(slot->samples), 64);
    dl2_gpu_plan_begin(&plan, slot->table, slot->samples, slot->side, slot->channels);
    for (unsigned i = from; i < end; i++) {
        struct place *place = &slot->places[i];
        if (atomic_load(&place->kind) != ENCODED || place->failed)
            continue;
        const uint32_t *shift = NULL;
        if (place->image.shift) {
            const size_t bytes = mcu_rows(&place->image.jpeg) * sizeof *shift;
            if (used + bytes > slot->table_room) {
                place->failed = true; /* there is room for all that are at most MOST_SIDE high */
                continue;
            }
            memcpy(slot->table + used, place->image.shift, bytes);
            shift = (const uint32_t *)(const void *)(slot->table_card + used);
            used += bytes;
        }
        const struct dl2_gpu_image image = image_of(slot, i, shift);
        place->failed = !dl2_gpu_plan_add(&plan, &image);
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

/* The end of the group that begins at `from`; lays out its planes. */
static int make_group(struct dl2_decode_slot *slot, unsigned from, unsigned count, unsigned *end,
                      struct dl2_error *error)
{
    const size_t most = slot->decoder->options.memory ? slot->decoder->options.memory : MOST_PLANES;
    size_t bytes = 0, largest = 0;
    unsigned i = from;
    for (; i < count; i++) {
        if (atomic_load(&slot->places[i].kind) != ENCODED)
            continue;
        const size_t more = lay_out(slot, &slot->places[i]);
        if (bytes && bytes + more > most)
            break;
        bytes += more;
        largest = more > largest ? more : largest;
    }
    *end = i;
    DL2_TRY(reserve_card(slot, &slot->planes, &slot->planes_room, bytes + largest, error));
    uint8_t *at = slot->planes;
    for (i = from; i < *end; i++)
        if (atomic_load(&slot->places[i].kind) == ENCODED)
            at = put_planes(slot, &slot->places[i], at);
    slot->padding = at;
    return DL2_OK;
}

static double elapsed(cudaEvent_t from, cudaEvent_t to)
{
    float milliseconds = 0;
    return cudaEventElapsedTime(&milliseconds, from, to) == cudaSuccess ? (double)milliseconds / 1e3
                                                                        : 0;
}

static void count(struct dl2_decode_slot *slot, unsigned from, unsigned end,
                  struct dl2_batch_decoder_stats *stats)
{
    for (unsigned i = from; i < end; i++) {
        const struct place *place = &slot->places[i];
        if (atomic_load(&place->kind) != ENCODED)
            continue;
        stats->refused += place->failed;
        stats->images += !place->failed;
        stats->bytes += place->failed ? 0 : place->image.size;
        stats->pixels += place->failed ? 0 : (uint64_t)place->width * place->height;
    }
}

/* Uploads the samples that the processors decoded, neighbours in one copy. */
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
    struct dl2_batch_decoder_stats stats = {0};
    DL2_TRY(dl2_gpu_check(cudaSetDevice((int)decoder->options.card), "cudaSetDevice", error));
    DL2_TRY(upload_pixels(slot, samples, error));
    for (unsigned from = 0, end = 0; from < samples; from = end) {
        DL2_TRY(make_group(slot, from, samples, &end, error));
        const double began = dl2_clock_wall();
        DL2_TRY(decode_group(slot, from, end, &stats, error));
        DL2_TRY(
            dl2_gpu_check(cudaEventRecord(slot->decoded, slot->stream), "cudaEventRecord", error));
        DL2_TRY(transform_group(slot, from, end, error));
        DL2_TRY(dl2_gpu_check(cudaEventRecord(slot->done, slot->stream), "cudaEventRecord", error));
        DL2_TRY(dl2_gpu_check(cudaEventSynchronize(slot->done),
                              "cudaEventSynchronize (a batch of images)", error));
        /* By the wall clock: engines keep to no stream, so events say nothing of them. */
        const double transformed = elapsed(slot->decoded, slot->done);
        stats.decode += fmax(0, dl2_clock_wall() - began - transformed);
        stats.transform += transformed;
        count(slot, from, end, &stats);
    }
    for (unsigned i = 0; i < samples; i++) {
        if (atomic_load(&slot->places[i].kind) == ENCODED && slot->places[i].failed)
            refused[i] = true;
        atomic_store(&slot->places[i].kind, EMPTY);
    }
    pthread_mutex_lock(&decoder->mutex);
    decoder->stats.images += stats.images;
    decoder->stats.bytes += stats.bytes;
    decoder->stats.pixels += stats.pixels;
    decoder->stats.refused += stats.refused;
    decoder->stats.by_engines += stats.by_engines;
    decoder->stats.decode += stats.decode;
    decoder->stats.transform += stats.transform;
    pthread_mutex_unlock(&decoder->mutex);
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
    for (unsigned e = 0; e < ENGINE_COUNT; e++)
        for (unsigned f = 0; f < FORMAT_COUNT; f++)
            if (slot->states[e][f].state)
                nvjpegJpegStateDestroy(slot->states[e][f].state);
    for (unsigned i = 0; slot->params && i < slot->samples; i++)
        if (slot->params[i])
            nvjpegDecodeParamsDestroy(slot->params[i]);
    if (slot->parser)
        nvjpegJpegStreamDestroy(slot->parser);
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
    free(slot->params);
    free(slot->places);
    free(slot->list);
    free(slot->list_data);
    free(slot->list_sizes);
    free(slot->list_planes);
    free(slot->list_params);
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

static int make_lists(struct dl2_decode_slot *slot, struct dl2_error *error)
{
    const size_t samples = slot->samples;
    slot->places = dl2_calloc(samples, sizeof *slot->places);
    slot->params = dl2_calloc(samples, sizeof *slot->params);
    slot->list = dl2_calloc(samples, ENGINE_COUNT * FORMAT_COUNT * sizeof *slot->list);
    slot->list_data = dl2_calloc(samples, sizeof *slot->list_data);
    slot->list_sizes = dl2_calloc(samples, sizeof *slot->list_sizes);
    slot->list_planes = dl2_calloc(samples, sizeof *slot->list_planes);
    slot->list_params = dl2_calloc(samples, sizeof *slot->list_params);
    return slot->places && slot->params && slot->list && slot->list_data && slot->list_sizes &&
                   slot->list_planes && slot->list_params
               ? DL2_OK
               : out_of_memory(error);
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
    return check(nvjpegJpegStreamCreate(any_handle(slot->decoder), &slot->parser),
                 "nvjpegJpegStreamCreate", error);
}

static int make_memory(struct dl2_decode_slot *slot, struct dl2_error *error)
{
    const size_t samples = slot->samples;
    size_t bytes, encoded, shifts;
    if (!dl2_size_mul(slot->sample_bytes, samples, &bytes) ||
        !dl2_size_mul(FIRST_ENCODED, samples, &encoded) ||
        !dl2_size_mul(MOST_SIDE / 8 * sizeof(uint32_t), samples, &shifts))
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

static void add_slot(struct dl2_decode_slot *slot)
{
    struct decoder *decoder = slot->decoder;
    pthread_mutex_lock(&decoder->mutex);
    slot->next = decoder->slots;
    decoder->slots = slot;
    pthread_mutex_unlock(&decoder->mutex);
}

static int nvjpeg_slot_create(struct dl2_batch_decoder *base, unsigned samples, unsigned side,
                              unsigned channels, struct dl2_decode_slot **out,
                              struct dl2_error *error)
{
    struct dl2_decode_slot *slot = dl2_calloc(1, sizeof *slot);
    *out = slot;
    if (!slot)
        return out_of_memory(error);
    slot->decoder = (struct decoder *)base;
    slot->samples = samples;
    slot->side = side;
    slot->channels = channels;
    slot->sample_bytes = (size_t)side * side * channels;
    int before, status = dl2_gpu_enter(slot->decoder->options.card, &before, error);
    if (status < 0) {
        free(slot);
        *out = NULL;
        return status;
    }
    status = make_lists(slot, error);
    if (status == DL2_OK)
        status = make_lane(slot, error);
    if (status == DL2_OK)
        status = make_memory(slot, error);
    if (status == DL2_OK) {
        add_slot(slot);
    } else {
        free_slot(slot);
        *out = NULL;
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
    int version[3] = {0};
    nvjpegGetProperty(MAJOR_VERSION, &version[0]);
    nvjpegGetProperty(MINOR_VERSION, &version[1]);
    nvjpegGetProperty(PATCH_LEVEL, &version[2]);
    char text[48];
    snprintf(text, sizeof text, "%d.%d.%d", version[0], version[1], version[2]);
    return json_pack("{s:s, s:s, s:i, s:b, s:i, s:i, s:s}", "name", "nvjpeg", "version", text,
                     "card", (int)decoder->options.card, "hardware",
                     decoder->handles[ENGINES] != NULL, "engines", (int)decoder->engines,
                     "cores_per_engine", (int)decoder->cores_per_engine, "output",
                     decoder->options.regions ? "rgb" : "planes");
}

static void nvjpeg_close(struct dl2_batch_decoder *base)
{
    struct decoder *decoder = (struct decoder *)base;
    if (!decoder)
        return;
    int before;
    const bool entered = dl2_gpu_enter(decoder->options.card, &before, NULL) == DL2_OK;
    for (unsigned e = 0; e < ENGINE_COUNT; e++)
        if (decoder->handles[e])
            nvjpegDestroy(decoder->handles[e]);
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

static int make_handles(struct decoder *decoder, struct dl2_error *error)
{
    const enum dl2_decode_engine engine = decoder->options.engine;
    const bool regions = decoder->options.regions;
    if (regions && engine == DL2_DECODE_CORES)
        return dl2_error_set(error, DL2_ERR_UNSUPPORTED,
                             "a card's cores decode whole images: choose --gpu-engine auto or "
                             "engines, or --gpu-input plain or spliced");
    DL2_TRY(dl2_gpu_use(decoder->options.card, error));
    if (engine != DL2_DECODE_CORES) {
        const nvjpegStatus_t status = nvjpegCreateEx(
            NVJPEG_BACKEND_HARDWARE, NULL, NULL, NVJPEG_FLAGS_DEFAULT, &decoder->handles[ENGINES]);
        if (status != NVJPEG_STATUS_SUCCESS)
            decoder->handles[ENGINES] = NULL;
        if (status != NVJPEG_STATUS_SUCCESS && (regions || engine == DL2_DECODE_ENGINES))
            return dl2_error_set(error, DL2_ERR_UNSUPPORTED,
                                 "this card has no JPEG engines that can be had (nvjpegCreateEx: "
                                 "%s): choose %s. Where it has (A100, H100...), they are reached "
                                 "through the driver's libnvcuvid.so.1, which containers see with "
                                 "NVIDIA_DRIVER_CAPABILITIES=all",
                                 status_text(status),
                                 regions ? "--gpu-input plain or spliced"
                                         : "--gpu-engine auto or cores");
    }
    if (decoder->handles[ENGINES] &&
        nvjpegGetHardwareDecoderInfo(decoder->handles[ENGINES], &decoder->engines,
                                     &decoder->cores_per_engine) != NVJPEG_STATUS_SUCCESS)
        decoder->engines = decoder->cores_per_engine = 0;
    if (engine != DL2_DECODE_ENGINES && !regions)
        DL2_TRY(check(nvjpegCreateEx(NVJPEG_BACKEND_GPU_HYBRID, NULL, NULL, NVJPEG_FLAGS_DEFAULT,
                                     &decoder->handles[CORES]),
                      "nvjpegCreateEx", error));
    cudaGetLastError(); /* of a backend that isn't there */
    return DL2_OK;
}

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
    const int status = make_handles(decoder, error);
    if (had)
        dl2_gpu_leave(before);
    if (status < 0) {
        dl2_error_prefix(error, "decoding on the card (--decode cpu needs none)");
        nvjpeg_close(&decoder->base);
        return status;
    }
    *out = &decoder->base;
    return DL2_OK;
}
