/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What cuda/decode/decode.c uses of nvJPEG, by this machine's libjpeg-turbo, in the order of the fake
 * CUDA's streams (fake_cuda.h): encoded bytes are read and planes written when the stream comes to
 * it, so both must last until then. It knows no more than nvJPEG promises: a list decodes only in
 * the length and format that it was initialized with, and fails as a whole where one of its images
 * does. nvJPEG has an error for rectangles that begin within a sample of chroma, but says of no
 * format which it holds for: here they are wrong for all.
 *
 * DL2_FAKE_JPEG: "engines" (they know 4:2:0 and gray alone), "none" (the default: no engines).
 */
#include "codec/decoder.h"
#include "codec/jpeg/jpeg_plain.h"
#include "tests/cuda/fake_cuda.h"
#include "tests/cuda/fake_threads.h"

#include <nvjpeg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void give_up(const char *why)
{
    fprintf(stderr, "fake nvJPEG: %s\n", why);
    abort();
}

struct nvjpegHandle {
    nvjpegBackend_t backend;
};
struct nvjpegJpegState {
    struct nvjpegHandle *handle;
    int length;
    nvjpegOutputFormat_t format;
    atomic_uint queued; /* decodings that streams have not come to */
};
struct nvjpegJpegStream {
    struct dl2_coded_frame jpeg;
};
struct nvjpegDecodeParams {
    nvjpegOutputFormat_t format;
    int x, y, width, height; /* width -1: all */
};

static void *fresh(size_t size)
{
    void *memory = calloc(1, size);
    if (!memory)
        give_up("out of memory");
    return memory;
}

/* ---- one image ---- */

/* Where `planes` is NULL: could it be decoded? */
static bool decode(const unsigned char *data, size_t size, nvjpegOutputFormat_t format,
                   const struct nvjpegDecodeParams *params, const nvjpegImage_t *planes)
{
    struct dl2_decoder *decoder;
    struct dl2_image_info info;
    struct dl2_raster raster;
    struct dl2_decode_request request = DL2_DECODE_REQUEST_DEFAULTS;
    if (dl2_decoder_create(&decoder, NULL) < 0)
        give_up("no decoder");
    bool good = dl2_decoder_open(decoder, data, size, 0, &info, NULL) == DL2_OK;
    if (good) {
        request.width = info.width;
        request.height = info.height;
        request.channels = format == NVJPEG_OUTPUT_Y ? 1 : 0;
        request.planes = format != NVJPEG_OUTPUT_RGBI;
        good = dl2_decoder_decode(decoder, &request, &raster, NULL) == DL2_OK;
    }
    if (good && planes) {
        const bool part = params && params->width > 0;
        const size_t x = part ? (size_t)params->x : 0, y = part ? (size_t)params->y : 0;
        const size_t width = part ? (size_t)params->width : info.width;
        const size_t height = part ? (size_t)params->height : info.height;
        if (x + width > info.width || y + height > info.height)
            give_up("a rectangle beyond its image");
        if (format == NVJPEG_OUTPUT_YUV && raster.color != DL2_COLOR_YCBCR)
            give_up("planes of an image that has none");
        for (unsigned p = 0; p < (format == NVJPEG_OUTPUT_YUV ? 3 : 1); p++) {
            const struct dl2_plane *plane = &raster.planes[p];
            const size_t wide = (info.width + plane->step_x - 1) / plane->step_x;
            const size_t high = (info.height + plane->step_y - 1) / plane->step_y;
            const size_t bytes = format == NVJPEG_OUTPUT_RGBI ? 3 * width : wide;
            const size_t rows = format == NVJPEG_OUTPUT_RGBI ? height : high;
            if (planes->pitch[p] < bytes ||
                !dl2_fake_on_card(planes->channel[p], planes->pitch[p] * (rows - 1) + bytes))
                give_up("planes that don't fit");
            for (size_t row = 0; row < rows; row++) {
                unsigned char *out = planes->channel[p] + row * planes->pitch[p];
                if (format != NVJPEG_OUTPUT_RGBI) {
                    memcpy(out, plane->data + row * plane->stride, wide);
                    continue;
                }
                const unsigned channels = dl2_raster_channels(&raster);
                const uint8_t *in = plane->data + (y + row) * plane->stride + x * channels;
                for (size_t i = 0; i < 3 * width; i++)
                    out[i] = in[channels == 3 ? i : i / 3];
            }
        }
    }
    dl2_decoder_destroy(decoder);
    return good;
}

struct decoding {
    const unsigned char *data;
    size_t size;
    nvjpegOutputFormat_t format;
    struct nvjpegDecodeParams params;
    bool has_params;
    nvjpegImage_t planes;
    atomic_uint *queued;
};

static void decode_now(void *call)
{
    const struct decoding *d = call;
    if (!decode(d->data, d->size, d->format, d->has_params ? &d->params : NULL, &d->planes))
        give_up("an image can no longer be decoded: did its bytes change?");
    atomic_fetch_sub(d->queued, 1);
}

static void queue(nvjpegJpegState_t state, const unsigned char *data, size_t size,
                  nvjpegOutputFormat_t format, const struct nvjpegDecodeParams *params,
                  const nvjpegImage_t *planes, cudaStream_t stream)
{
    struct decoding d = {.data = data, .size = size, .format = format, .planes = *planes};
    d.has_params = params;
    if (params)
        d.params = *params;
    d.queued = &state->queued;
    atomic_fetch_add(d.queued, 1);
    if (state->handle->backend == NVJPEG_BACKEND_HARDWARE && state->length)
        dl2_fake_at_once(decode_now, &d);
    else
        dl2_fake_queue(stream, decode_now, &d, sizeof d);
}

/* ---- handles ---- */

static bool engines(void)
{
    const char *wanted = getenv("DL2_FAKE_JPEG");
    return wanted && !strcmp(wanted, "engines");
}

nvjpegStatus_t nvjpegCreateEx(nvjpegBackend_t backend, nvjpegDevAllocator_t *device,
                              nvjpegPinnedAllocator_t *pinned, unsigned flags,
                              nvjpegHandle_t *handle)
{
    (void)device, (void)pinned, (void)flags;
    if (backend == NVJPEG_BACKEND_HARDWARE && !engines())
        return NVJPEG_STATUS_ARCH_MISMATCH;
    *handle = fresh(sizeof **handle);
    (*handle)->backend = backend;
    return NVJPEG_STATUS_SUCCESS;
}

nvjpegStatus_t nvjpegDestroy(nvjpegHandle_t handle)
{
    free(handle);
    return NVJPEG_STATUS_SUCCESS;
}

nvjpegStatus_t nvjpegGetProperty(libraryPropertyType type, int *value)
{
    *value = type == MAJOR_VERSION ? 13 : 0;
    return NVJPEG_STATUS_SUCCESS;
}

nvjpegStatus_t nvjpegGetHardwareDecoderInfo(nvjpegHandle_t handle, unsigned *number,
                                            unsigned *cores)
{
    (void)handle;
    *number = *cores = 1;
    return NVJPEG_STATUS_SUCCESS;
}

nvjpegStatus_t nvjpegJpegStateCreate(nvjpegHandle_t handle, nvjpegJpegState_t *state)
{
    *state = fresh(sizeof **state);
    (*state)->handle = handle;
    return NVJPEG_STATUS_SUCCESS;
}

nvjpegStatus_t nvjpegJpegStateDestroy(nvjpegJpegState_t state)
{
    free(state);
    return NVJPEG_STATUS_SUCCESS;
}

nvjpegStatus_t nvjpegDecodeBatchedPreAllocate(nvjpegHandle_t handle, nvjpegJpegState_t state,
                                              int length, int width, int height,
                                              nvjpegChromaSubsampling_t subsampling,
                                              nvjpegOutputFormat_t format)
{
    (void)subsampling, (void)format;
    if (state->handle != handle || handle->backend != NVJPEG_BACKEND_HARDWARE || length <= 0 ||
        width <= 0 || height <= 0)
        return NVJPEG_STATUS_INVALID_PARAMETER;
    return NVJPEG_STATUS_SUCCESS;
}

/* ---- headers ---- */

nvjpegStatus_t nvjpegJpegStreamCreate(nvjpegHandle_t handle, nvjpegJpegStream_t *stream)
{
    (void)handle;
    *stream = fresh(sizeof **stream);
    return NVJPEG_STATUS_SUCCESS;
}

nvjpegStatus_t nvjpegJpegStreamDestroy(nvjpegJpegStream_t stream)
{
    free(stream);
    return NVJPEG_STATUS_SUCCESS;
}

nvjpegStatus_t nvjpegJpegStreamParseHeader(nvjpegHandle_t handle, const unsigned char *data,
                                           size_t length, nvjpegJpegStream_t stream)
{
    (void)handle;
    return dl2_jpeg_plain_read(&stream->jpeg, data, length) ? NVJPEG_STATUS_SUCCESS
                                                            : NVJPEG_STATUS_BAD_JPEG;
}

nvjpegStatus_t nvjpegJpegStreamGetFrameDimensions(nvjpegJpegStream_t stream, unsigned *width,
                                                  unsigned *height)
{
    *width = stream->jpeg.width;
    *height = stream->jpeg.height;
    return NVJPEG_STATUS_SUCCESS;
}

nvjpegStatus_t nvjpegJpegStreamGetComponentsNum(nvjpegJpegStream_t stream, unsigned *components)
{
    *components = stream->jpeg.components;
    return NVJPEG_STATUS_SUCCESS;
}

nvjpegStatus_t nvjpegJpegStreamGetChromaSubsampling(nvjpegJpegStream_t stream,
                                                    nvjpegChromaSubsampling_t *subsampling)
{
    const struct dl2_coded_frame *jpeg = &stream->jpeg;
    *subsampling = jpeg->components == 1                    ? NVJPEG_CSS_GRAY
                   : jpeg->step_x == 2 && jpeg->step_y == 2 ? NVJPEG_CSS_420
                   : jpeg->step_x == 2                      ? NVJPEG_CSS_422
                   : jpeg->step_y == 2                      ? NVJPEG_CSS_440
                                                            : NVJPEG_CSS_444;
    return NVJPEG_STATUS_SUCCESS;
}

/* ---- parameters ---- */

nvjpegStatus_t nvjpegDecodeParamsCreate(nvjpegHandle_t handle, nvjpegDecodeParams_t *params)
{
    (void)handle;
    *params = fresh(sizeof **params);
    (*params)->width = -1;
    return NVJPEG_STATUS_SUCCESS;
}

nvjpegStatus_t nvjpegDecodeParamsDestroy(nvjpegDecodeParams_t params)
{
    free(params);
    return NVJPEG_STATUS_SUCCESS;
}

nvjpegStatus_t nvjpegDecodeParamsSetOutputFormat(nvjpegDecodeParams_t params,
                                                 nvjpegOutputFormat_t format)
{
    params->format = format;
    return NVJPEG_STATUS_SUCCESS;
}

nvjpegStatus_t nvjpegDecodeParamsSetROI(nvjpegDecodeParams_t params, int x, int y, int width,
                                        int height)
{
    if (x < 0 || y < 0 || width <= 0 || height <= 0)
        return NVJPEG_STATUS_INVALID_PARAMETER;
    params->x = x;
    params->y = y;
    params->width = width;
    params->height = height;
    return NVJPEG_STATUS_SUCCESS;
}

nvjpegStatus_t nvjpegDecodeBatchedSupportedEx(nvjpegHandle_t handle, nvjpegJpegStream_t stream,
                                              nvjpegDecodeParams_t params, int *answer)
{
    const struct dl2_coded_frame *jpeg = &stream->jpeg;
    (void)params;
    if (handle->backend != NVJPEG_BACKEND_HARDWARE)
        return NVJPEG_STATUS_IMPLEMENTATION_NOT_SUPPORTED;
    *answer = jpeg->components == 1 || (jpeg->step_x == 2 && jpeg->step_y == 2) ? 0 : 1;
    return NVJPEG_STATUS_SUCCESS;
}

/* ---- lists ---- */

nvjpegStatus_t nvjpegDecodeBatchedInitialize(nvjpegHandle_t handle, nvjpegJpegState_t state,
                                             int length, int threads, nvjpegOutputFormat_t format)
{
    if (state->handle != handle || length <= 0 || threads <= 0)
        return NVJPEG_STATUS_INVALID_PARAMETER;
    if (atomic_load(&state->queued))
        give_up("a state is initialized while it is at work");
    state->length = length;
    state->format = format;
    return NVJPEG_STATUS_SUCCESS;
}

static nvjpegStatus_t decode_list(nvjpegJpegState_t state, const unsigned char *const *data,
                                  const size_t *lengths, nvjpegImage_t *planes,
                                  nvjpegDecodeParams_t *params, cudaStream_t stream)
{
    if (!state->length)
        give_up("a list that was not initialized");
    for (int i = 0; i < state->length; i++) {
        if (params && params[i]->format != state->format)
            return NVJPEG_STATUS_INVALID_PARAMETER;
        struct dl2_coded_frame plain;
        if (params && dl2_jpeg_plain_read(&plain, data[i], lengths[i]) &&
            (params[i]->x % (int)plain.step_x || params[i]->y % (int)plain.step_y))
            give_up("a rectangle that begins within a sample of chroma");
        if (!decode(data[i], lengths[i], state->format, NULL, NULL)) {
            state->length = 0; /* must be initialized again */
            return NVJPEG_STATUS_BAD_JPEG;
        }
        queue(state, data[i], lengths[i], state->format, params ? params[i] : NULL, &planes[i],
              stream);
    }
    return NVJPEG_STATUS_SUCCESS;
}

nvjpegStatus_t nvjpegDecodeBatched(nvjpegHandle_t handle, nvjpegJpegState_t state,
                                   const unsigned char *const *data, const size_t *lengths,
                                   nvjpegImage_t *planes, cudaStream_t stream)
{
    (void)handle;
    return decode_list(state, data, lengths, planes, NULL, stream);
}

nvjpegStatus_t nvjpegDecodeBatchedEx(nvjpegHandle_t handle, nvjpegJpegState_t state,
                                     const unsigned char *const *data, const size_t *lengths,
                                     nvjpegImage_t *planes, nvjpegDecodeParams_t *params,
                                     cudaStream_t stream)
{
    if (handle->backend != NVJPEG_BACKEND_HARDWARE)
        return NVJPEG_STATUS_IMPLEMENTATION_NOT_SUPPORTED;
    return decode_list(state, data, lengths, planes, params, stream);
}
