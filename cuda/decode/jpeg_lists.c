/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Engines (NVJPEG_BACKEND_HARDWARE) take whole lists of baseline images. Cores
 * (NVJPEG_BACKEND_GPU_HYBRID) decode lists of more than 50 images without the host. They have no
 * part in regions: they take rectangles one image at a time, each awaited by the host.
 *
 * A list that fails is tried again in halves, down to the image that is to blame, which is refused.
 *
 * Engines of an H100 were seen to write as soon as they are called, whatever their stream is still
 * at (meta-pytorch/torchcodec, number 1634).
 */
#include "cuda/decode/jpeg_lists.h"

#include "common/memory.h"
#include "cuda/gpu.h"

#include <nvjpeg.h>
#include <stdio.h>
#include <stdlib.h>

enum engine { ENGINES, CORES, ENGINE_COUNT };
enum { PLANES, GRAY, FORMAT_COUNT }; /* of a list's output; PLANES are RGB with regions */

struct dl2_jpeg_backends {
    nvjpegHandle_t handles[ENGINE_COUNT]; /* NULL: not there */
    unsigned engines, cores_per_engine;   /* what nvJPEG says of them; 0: nothing */
    int threads;
    bool regions;
};

struct dl2_jpeg_lists {
    const struct dl2_jpeg_backends *backends;
    nvjpegJpegStream_t parser;
    nvjpegDecodeParams_t *params; /* [most] */
    unsigned params_made;
    nvjpegJpegState_t states[ENGINE_COUNT][FORMAT_COUNT]; /* made when first needed */
    /* [most] each: a list, and as nvJPEG takes it. */
    struct dl2_listed_jpeg **images;
    const unsigned char **data;
    size_t *sizes;
    nvjpegImage_t *planes;
};

/* For what belongs to no engine: headers, parameters. */
static nvjpegHandle_t any_handle(const struct dl2_jpeg_backends *backends)
{
    return backends->handles[backends->handles[ENGINES] ? ENGINES : CORES];
}

/* ---- errors ---- */

static const char *status_text(nvjpegStatus_t status)
{
    static const char *const texts[] = {
        [NVJPEG_STATUS_SUCCESS] = "no error",
        [NVJPEG_STATUS_NOT_INITIALIZED] = "not initialized",
        [NVJPEG_STATUS_INVALID_PARAMETER] = "invalid parameter",
        [NVJPEG_STATUS_BAD_JPEG] = "bad JPEG",
        [NVJPEG_STATUS_JPEG_NOT_SUPPORTED] = "JPEG not supported",
        [NVJPEG_STATUS_ALLOCATOR_FAILURE] = "out of memory",
        [NVJPEG_STATUS_EXECUTION_FAILED] = "execution failed",
        [NVJPEG_STATUS_ARCH_MISMATCH] = "not on this card",
        [NVJPEG_STATUS_INTERNAL_ERROR] = "internal error",
        [NVJPEG_STATUS_IMPLEMENTATION_NOT_SUPPORTED] = "implementation not supported",
        [NVJPEG_STATUS_INCOMPLETE_BITSTREAM] = "incomplete bitstream",
    };
    return status < sizeof texts / sizeof *texts ? texts[status] : "unknown error";
}

static int check(nvjpegStatus_t status, const char *call, struct dl2_error *error)
{
    if (status == NVJPEG_STATUS_SUCCESS)
        return DL2_OK;
    const bool memory = status == NVJPEG_STATUS_ALLOCATOR_FAILURE;
    return dl2_error_set(error, memory ? DL2_ERR_MEMORY : DL2_ERR_SYSTEM, "%s: %s (%d)%s", call,
                         status_text(status), (int)status,
                         memory ? "; choose a smaller batch or depth, or decode 'cpu', on the "
                                  "processors"
                                : "");
}

/* After a failed list: is the card itself well, so that the images are to blame? */
static int see_card(nvjpegStatus_t status, const char *call, cudaStream_t stream,
                    struct dl2_error *error)
{
    if (status == NVJPEG_STATUS_ALLOCATOR_FAILURE || status == NVJPEG_STATUS_NOT_INITIALIZED)
        return check(status, call, error);
    DL2_TRY(dl2_gpu_check(cudaStreamSynchronize(stream), call, error));
    cudaGetLastError(); /* what nvJPEG left there was its own */
    return DL2_OK;
}

/* ---- one image ---- */

static nvjpegOutputFormat_t output_of(const struct dl2_listed_jpeg *image)
{
    switch (image->raster.color) {
    case DL2_COLOR_RGB:
        return NVJPEG_OUTPUT_RGBI;
    case DL2_COLOR_GRAY:
        return NVJPEG_OUTPUT_Y;
    default:
        return NVJPEG_OUTPUT_YUV;
    }
}

static nvjpegImage_t planes_of(const struct dl2_listed_jpeg *image)
{
    nvjpegImage_t planes = {{NULL}, {0}};
    for (unsigned p = 0; p < dl2_raster_planes(&image->raster); p++) {
        planes.channel[p] = (unsigned char *)image->raster.planes[p].data;
        planes.pitch[p] = image->raster.planes[p].stride;
    }
    return planes;
}

/* Parses the header. Does nvJPEG see the image that memory was laid out for? */
static bool agrees(struct dl2_jpeg_lists *lists, const struct dl2_listed_jpeg *image)
{
    const struct dl2_coded_frame *plain = image->plain;
    unsigned width = 0, height = 0, components = 0;
    nvjpegChromaSubsampling_t subsampling = NVJPEG_CSS_UNKNOWN;
    static const nvjpegChromaSubsampling_t of_steps[2][2] = {{NVJPEG_CSS_444, NVJPEG_CSS_440},
                                                             {NVJPEG_CSS_422, NVJPEG_CSS_420}};
    const nvjpegChromaSubsampling_t expected =
        plain->components == 1 ? NVJPEG_CSS_GRAY : of_steps[plain->step_x - 1][plain->step_y - 1];
    return nvjpegJpegStreamParseHeader(any_handle(lists->backends), image->data, image->size,
                                       lists->parser) == NVJPEG_STATUS_SUCCESS &&
           nvjpegJpegStreamGetFrameDimensions(lists->parser, &width, &height) ==
               NVJPEG_STATUS_SUCCESS &&
           nvjpegJpegStreamGetComponentsNum(lists->parser, &components) == NVJPEG_STATUS_SUCCESS &&
           nvjpegJpegStreamGetChromaSubsampling(lists->parser, &subsampling) ==
               NVJPEG_STATUS_SUCCESS &&
           width == plain->width && height == plain->height && components == plain->components &&
           subsampling == expected;
}

static nvjpegStatus_t set_params(const struct dl2_jpeg_backends *backends,
                                 nvjpegDecodeParams_t params, const struct dl2_listed_jpeg *image)
{
    const struct dl2_plane *plane = &image->raster.planes[0];
    const nvjpegStatus_t status = nvjpegDecodeParamsSetOutputFormat(params, output_of(image));
    return status == NVJPEG_STATUS_SUCCESS && backends->regions
               ? nvjpegDecodeParamsSetROI(params, (int)plane->x, (int)plane->y, (int)plane->width,
                                          (int)plane->height)
               : status;
}

/* Do the engines know the image? Its header was parsed. */
static bool engines_know(struct dl2_jpeg_lists *lists, nvjpegDecodeParams_t params)
{
    nvjpegHandle_t handle = lists->backends->handles[ENGINES];
    int answer = 1; /* 0 is yes */
    return handle &&
           nvjpegDecodeBatchedSupportedEx(handle, lists->parser, params, &answer) ==
               NVJPEG_STATUS_SUCCESS &&
           answer == 0;
}

/* ---- lists ---- */

/* A state for lists of an engine. */
static int make_state(nvjpegHandle_t handle, enum engine engine, nvjpegOutputFormat_t output,
                      nvjpegJpegState_t *state, struct dl2_error *error)
{
    DL2_TRY(check(nvjpegJpegStateCreate(handle, state), "nvjpegJpegStateCreate", error));
    /* So that engines keep memory from list to list, whatever the size named here. nvImageCodec
     * does so, and says that it pays. Nothing is lost where it fails. */
    if (engine == ENGINES)
        nvjpegDecodeBatchedPreAllocate(handle, *state, 1, 1, 1, NVJPEG_CSS_444, output);
    return DL2_OK;
}

/*
 * A list, or its halves where it fails. The state is initialized before each list, as in NVIDIA's
 * nvImageCodec: nvJPEG keeps its memory, and after a list that failed it has to be.
 */
static int decode_list(struct dl2_jpeg_lists *lists, enum engine engine, unsigned format,
                       struct dl2_listed_jpeg *const *images, unsigned count, cudaStream_t stream,
                       struct dl2_error *error)
{
    const struct dl2_jpeg_backends *backends = lists->backends;
    nvjpegHandle_t handle = backends->handles[engine];
    nvjpegJpegState_t *state = &lists->states[engine][format];
    const nvjpegOutputFormat_t output = output_of(images[0]);
    const char *call = backends->regions ? "nvjpegDecodeBatchedEx" : "nvjpegDecodeBatched";
    nvjpegStatus_t status;
    if (!*state)
        DL2_TRY(make_state(handle, engine, output, state, error));
    for (unsigned i = 0; i < count; i++) {
        lists->data[i] = images[i]->data;
        lists->sizes[i] = images[i]->size;
        lists->planes[i] = planes_of(images[i]);
        if (backends->regions)
            DL2_TRY(check(set_params(backends, lists->params[i], images[i]),
                          "nvjpegDecodeParamsSetROI", error));
    }
    DL2_TRY(check(nvjpegDecodeBatchedInitialize(handle, *state, (int)count,
                                                engine == CORES ? backends->threads : 1, output),
                  "nvjpegDecodeBatchedInitialize", error));
    if (backends->regions)
        status = nvjpegDecodeBatchedEx(handle, *state, lists->data, lists->sizes, lists->planes,
                                       lists->params, stream);
    else
        status =
            nvjpegDecodeBatched(handle, *state, lists->data, lists->sizes, lists->planes, stream);
    if (status == NVJPEG_STATUS_SUCCESS)
        return DL2_OK;
    DL2_TRY(see_card(status, call, stream, error));
    if (count == 1) {
        images[0]->refusal = status_text(status);
        return DL2_OK;
    }
    DL2_TRY(decode_list(lists, engine, format, images, count / 2, stream, error));
    /* Both halves have one state, which must not be initialized while it is at work. */
    DL2_TRY(dl2_gpu_check(cudaStreamSynchronize(stream), call, error));
    return decode_list(lists, engine, format, images + count / 2, count - count / 2, stream, error);
}

/* Chooses who decodes an image, or refuses it. */
static void choose_engine(struct dl2_jpeg_lists *lists, struct dl2_listed_jpeg *image)
{
    const struct dl2_jpeg_backends *backends = lists->backends;
    const nvjpegStatus_t status = set_params(backends, lists->params[0], image);
    image->by_engines = false;
    image->refusal = status == NVJPEG_STATUS_SUCCESS ? NULL : status_text(status);
    if (!image->refusal && !agrees(lists, image))
        image->refusal = "nvJPEG reads another header";
    if (image->refusal)
        return;
    image->by_engines = engines_know(lists, lists->params[0]);
    if (!image->by_engines && !backends->handles[CORES])
        image->refusal = "not for the engines";
}

int dl2_jpeg_lists_decode(struct dl2_jpeg_lists *lists, struct dl2_listed_jpeg *const *images,
                          unsigned count, cudaStream_t stream, struct dl2_error *error)
{
    for (unsigned i = 0; i < count; i++)
        choose_engine(lists, images[i]);
    for (unsigned e = 0; e < ENGINE_COUNT; e++)
        for (unsigned f = 0; f < FORMAT_COUNT; f++) {
            unsigned listed = 0;
            for (unsigned i = 0; i < count; i++)
                if (!images[i]->refusal && images[i]->by_engines == (e == ENGINES) &&
                    (images[i]->raster.color == DL2_COLOR_GRAY) == (f == GRAY))
                    lists->images[listed++] = images[i];
            if (listed)
                DL2_TRY(
                    decode_list(lists, (enum engine)e, f, lists->images, listed, stream, error));
        }
    return DL2_OK;
}

/* ---- making and unmaking ---- */

void dl2_jpeg_lists_free(struct dl2_jpeg_lists *lists)
{
    if (!lists)
        return;
    for (unsigned e = 0; e < ENGINE_COUNT; e++)
        for (unsigned f = 0; f < FORMAT_COUNT; f++)
            if (lists->states[e][f])
                nvjpegJpegStateDestroy(lists->states[e][f]);
    for (unsigned i = 0; i < lists->params_made; i++)
        nvjpegDecodeParamsDestroy(lists->params[i]);
    if (lists->parser)
        nvjpegJpegStreamDestroy(lists->parser);
    free(lists->params);
    free(lists->images);
    free(lists->data);
    free(lists->sizes);
    free(lists->planes);
    free(lists);
}

static int make_lists(struct dl2_jpeg_lists *lists, unsigned most, struct dl2_error *error)
{
    lists->params = dl2_calloc(most, sizeof *lists->params);
    lists->images = dl2_calloc(most, sizeof *lists->images);
    lists->data = dl2_calloc(most, sizeof *lists->data);
    lists->sizes = dl2_calloc(most, sizeof *lists->sizes);
    lists->planes = dl2_calloc(most, sizeof *lists->planes);
    if (!lists->params || !lists->images || !lists->data || !lists->sizes || !lists->planes)
        return dl2_error_memory(error, "lists of JPEGs");
    nvjpegHandle_t handle = any_handle(lists->backends);
    DL2_TRY(check(nvjpegJpegStreamCreate(handle, &lists->parser), "nvjpegJpegStreamCreate", error));
    for (; lists->params_made < (lists->backends->regions ? most : 1); lists->params_made++)
        DL2_TRY(check(nvjpegDecodeParamsCreate(handle, &lists->params[lists->params_made]),
                      "nvjpegDecodeParamsCreate", error));
    return DL2_OK;
}

int dl2_jpeg_lists_create(const struct dl2_jpeg_backends *backends, unsigned most,
                          struct dl2_jpeg_lists **out, struct dl2_error *error)
{
    struct dl2_jpeg_lists *lists = *out = dl2_calloc(1, sizeof *lists);
    if (!lists)
        return dl2_error_memory(error, "lists of JPEGs");
    lists->backends = backends;
    const int status = make_lists(lists, most, error);
    if (status < 0) {
        dl2_jpeg_lists_free(lists);
        *out = NULL;
    }
    return status;
}

void dl2_jpeg_backends_close(struct dl2_jpeg_backends *backends)
{
    for (unsigned e = 0; backends && e < ENGINE_COUNT; e++)
        if (backends->handles[e])
            nvjpegDestroy(backends->handles[e]);
    free(backends);
}

json_t *dl2_jpeg_backends_describe(const struct dl2_jpeg_backends *backends)
{
    int version[3] = {0};
    nvjpegGetProperty(MAJOR_VERSION, &version[0]);
    nvjpegGetProperty(MINOR_VERSION, &version[1]);
    nvjpegGetProperty(PATCH_LEVEL, &version[2]);
    char text[48];
    snprintf(text, sizeof text, "%d.%d.%d", version[0], version[1], version[2]);
    return json_pack("{s:s, s:s, s:b, s:i, s:i, s:s}", "name", "nvjpeg", "version", text,
                     "hardware", backends->handles[ENGINES] != NULL, "engines",
                     (int)backends->engines, "cores_per_engine", (int)backends->cores_per_engine,
                     "output", backends->regions ? "rgb" : "planes");
}

static int make_handles(struct dl2_jpeg_backends *backends, enum dl2_decode_engine wanted,
                        struct dl2_error *error)
{
    const bool regions = backends->regions;
    if (regions && wanted == DL2_DECODE_CORES)
        return dl2_error_set(error, DL2_ERR_UNSUPPORTED,
                             "a card's cores decode whole images: choose gpu_engine 'auto' or "
                             "'engines', or gpu_input 'plain' or 'spliced'");
    if (wanted != DL2_DECODE_CORES) {
        const nvjpegStatus_t status = nvjpegCreateEx(
            NVJPEG_BACKEND_HARDWARE, NULL, NULL, NVJPEG_FLAGS_DEFAULT, &backends->handles[ENGINES]);
        if (status != NVJPEG_STATUS_SUCCESS)
            backends->handles[ENGINES] = NULL;
        if (status != NVJPEG_STATUS_SUCCESS && (regions || wanted == DL2_DECODE_ENGINES))
            return dl2_error_set(error, DL2_ERR_UNSUPPORTED,
                                 "this card has no JPEG engines that can be had (nvjpegCreateEx: "
                                 "%s): choose %s. Where it has (A100, H100...), they are reached "
                                 "through the driver's libnvcuvid.so.1, which containers see with "
                                 "NVIDIA_DRIVER_CAPABILITIES=all",
                                 status_text(status),
                                 regions ? "gpu_input 'plain' or 'spliced'"
                                         : "gpu_engine 'auto' or 'cores'");
    }
    if (backends->handles[ENGINES])
        nvjpegGetHardwareDecoderInfo(backends->handles[ENGINES], &backends->engines,
                                     &backends->cores_per_engine);
    cudaGetLastError(); /* of a backend that isn't there */
    return wanted == DL2_DECODE_ENGINES || regions
               ? DL2_OK
               : check(nvjpegCreateEx(NVJPEG_BACKEND_GPU_HYBRID, NULL, NULL, NVJPEG_FLAGS_DEFAULT,
                                      &backends->handles[CORES]),
                       "nvjpegCreateEx", error);
}

int dl2_jpeg_backends_open(const struct dl2_batch_decoder_options *options,
                           struct dl2_jpeg_backends **out, struct dl2_error *error)
{
    struct dl2_jpeg_backends *backends = *out = dl2_calloc(1, sizeof *backends);
    if (!backends)
        return dl2_error_memory(error, "a decoder");
    backends->threads = options->threads ? (int)options->threads : 1;
    backends->regions = options->regions;
    const int status = make_handles(backends, options->engine, error);
    if (status < 0) {
        dl2_jpeg_backends_close(backends);
        *out = NULL;
    }
    return status;
}
