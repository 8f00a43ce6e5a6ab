/*
 * The cuda device. cuDNN does convolutions, cublasLt linear layers, and our own kernels what is
 * bound by memory. Everything is queued on one stream, in order; uploads go on a second one beside
 * it, tied to the first by events (see upload()). A recording is a CUDA graph of the first stream.
 *
 * How to do a convolution is measured once for each shape and pass, with the batch that comes
 * first; for other batches cuDNN's first choice that runs is taken. So it is where bits must repeat
 * from run to run: then the first that is deterministic. Our own kernels always give the same bits.
 *
 * DL2_CUDA_GRAPHS=off does without recordings. DL2_CUDA_PROFILE=N leaves N batches out and shows a
 * profiler that waits for it (ncu --profile-from-start off) what is done for the one after them,
 * and so none of what was measured to choose convolutions.
 *
 * Scratch (a workspace for libraries, partial sums, gradients of weights before they are widened)
 * belongs to the device and is shared by all its plans, since one call runs after the other.
 */
#include "common/memory.h"
#include "cuda/conv_plan.h"
#include "cuda/gpu.h"
#include "cuda/kernels.h"
#include "cuda/product.h"
#include "cuda/reducer.h"
#include "train/element.h"

#include <cuda_profiler_api.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Memory of the card that grows. */
struct area {
    void *memory;
    size_t size;
};

/* What alloc() gave out. */
struct block {
    void *memory;
    size_t size;
    struct block *next;
};

/* What was chosen for a shape and pass. */
struct choice {
    struct dl2_conv_request request;
    struct dl2_conv_plan plan;
    struct choice *next;
};

/* Scratch that was outgrown, but that recordings still write to. */
struct retired {
    void *memory;
    struct retired *next;
};

struct cuda {
    struct dl2_device base;
    unsigned number, ranks;
    enum dl2_precision precision;
    bool deterministic, graphs;
    cudaStream_t stream, uploads;
    cudaEvent_t uploaded, ingested[2];
    uint64_t ingests; /* the last but one's event is ingested[ingests % 2] */
    uint64_t
        profiled; /* a profiler sees what follows this many ingests, and ends before the next */
    cudnnHandle_t cudnn;
    cublasLtHandle_t blas;
    struct dl2_gpu_reducer *reducer;
    struct dl2_gpu_state *state;
    size_t workspace_limit;
    struct area workspace, partials, gradient;
    struct choice *choices;
    struct retired *retired;
    struct dl2_recording *recording; /* being made */
    unsigned recordings;             /* there are */
    struct block *blocks;
    size_t allocated; /* bytes of the blocks */
};

struct dl2_conv {
    struct cuda *cuda;
    struct dl2_conv_shape s;
    size_t out_pixels, weights;
    bool depthwise;                  /* by our own kernels */
    const struct choice *choices[3]; /* by pass */
};

struct dl2_linear {
    struct cuda *cuda;
    struct dl2_linear_shape s;
    struct dl2_product *forward, *data, *weights;
    void *bias; /* as an element; NULL where the caller's will do */
};

struct dl2_pool {
    struct cuda *cuda;
    struct dl2_pool_shape s;
    uint8_t *winner;
};

struct dl2_norm {
    struct cuda *cuda;
    struct dl2_norm_shape s;
    float *moments, *kept, *sums, *shared; /* [2][channels] each */
};

struct dl2_ingest {
    struct cuda *cuda;
    struct dl2_ingest_shape s;
};

struct dl2_loss {
    struct cuda *cuda;
    struct dl2_loss_shape s;
    struct dl2_gpu_sample_loss *each;
};

struct dl2_recording {
    struct cuda *cuda;
    cudaGraphExec_t graph;
    unsigned ingests;
};

/* -- errors -- */

/* Did all go well so far? Calls that compute ask first. */
static bool well(const struct cuda *cuda)
{
    return !cuda->base.failure.status;
}

/* Keeps the first failure. `what` says for which layer, and may be NULL. */
static void note(struct cuda *cuda, cudaError_t status, const char *call, const char *what)
{
    if (status == cudaSuccess || !well(cuda))
        return;
    cudaGetLastError(); /* else the next call that looks would report it again */
    dl2_gpu_check(status, call, &cuda->base.failure);
    if (what)
        dl2_error_prefix(&cuda->base.failure, "%s", what);
    dl2_error_prefix(&cuda->base.failure, "device cuda");
}

/* One of kernels.h's. */
static void launched(struct cuda *cuda, int status, const char *what)
{
    note(cuda, (cudaError_t)status, "kernel launch", what);
}

/* A library's call that left its message in the failure. */
static void library(struct cuda *cuda, int status)
{
    if (status < 0)
        dl2_error_prefix(&cuda->base.failure, "device cuda");
}

static int out_of_memory(struct dl2_error *error, const char *what)
{
    return dl2_error_set(error, DL2_ERR_MEMORY, "device cuda: out of memory for %s", what);
}

/* -- memory of the card -- */

/* Activations, which grow with the batch, are nearly all there is. */
static int card_is_full(struct cuda *cuda, size_t bytes, const char *what, struct dl2_error *error)
{
    size_t available = 0, total = 0;
    if (cudaMemGetInfo(&available, &total) != cudaSuccess)
        cudaGetLastError();
    double share =
        (double)(cuda->allocated + available) / ((double)cuda->allocated + (double)bytes);
    char advice[96] = "choose a smaller batch";
    if (share > 0.01 && share < 1)
        snprintf(advice, sizeof advice, "a batch of %.0f%% of this one would fit at most",
                 100 * share);
    return dl2_error_set(error, DL2_ERR_MEMORY,
                         "device cuda: cudaMalloc: no %zu MiB of the card's memory for %s, beside "
                         "%zu MiB in use by this network; %zu of %zu MiB are free; %s",
                         bytes >> 20, what, cuda->allocated >> 20, available >> 20, total >> 20,
                         advice);
}

static int take(struct cuda *cuda, size_t bytes, const char *what, void *out,
                struct dl2_error *error)
{
    void *memory = NULL;
    cudaError_t status = cudaMalloc(&memory, bytes ? bytes : 1);
    if (status == cudaErrorMemoryAllocation) {
        cudaGetLastError();
        return card_is_full(cuda, bytes, what, error);
    }
    DL2_TRY(dl2_gpu_check(status, "device cuda: cudaMalloc", error));
    memcpy(out, &memory, sizeof memory);
    return DL2_OK;
}

/* Once all is done that was queued, where it may be in use. */
static void give(struct cuda *cuda, void *memory)
{
    if (memory)
        note(cuda, cudaFree(memory), "cudaFree", NULL);
}

static int grow(struct cuda *cuda, struct area *area, size_t bytes, const char *what,
                struct dl2_error *error)
{
    if (bytes <= area->size)
        return DL2_OK;
    void *memory;
    if (cuda->recordings) {
        struct retired *old = dl2_calloc(1, sizeof *old);
        if (!old)
            return out_of_memory(error, what);
        *old = (struct retired){area->memory, cuda->retired};
        cuda->retired = old;
    } else {
        give(cuda, area->memory); /* waits for what still uses it */
    }
    *area = (struct area){0};
    DL2_TRY(take(cuda, bytes, what, &memory, error));
    *area = (struct area){memory, bytes};
    return DL2_OK;
}

static int grow_partials(struct cuda *cuda, unsigned channels, struct dl2_error *error)
{
    return grow(cuda, &cuda->partials, dl2_gpu_partials(channels) * sizeof(float), "partial sums",
                error);
}

static int cuda_alloc(struct dl2_device *device, size_t bytes, void **out, struct dl2_error *error)
{
    struct cuda *cuda = (struct cuda *)device;
    void *memory;
    struct block *block = dl2_calloc(1, sizeof *block);
    if (!block)
        return out_of_memory(error, "tensors");
    int taken = take(cuda, bytes, "tensors", &memory, error);
    if (taken < 0) {
        free(block);
        return taken;
    }
    cudaError_t status = cudaMemsetAsync(memory, 0, bytes, cuda->stream);
    if (status == cudaSuccess) /* uploads may come before what the stream is at */
        status = cudaStreamSynchronize(cuda->stream);
    if (status != cudaSuccess) {
        cudaFree(memory);
        free(block);
        cudaGetLastError();
        return dl2_gpu_check(status, "device cuda: cudaMemsetAsync", error);
    }
    *block = (struct block){memory, bytes, cuda->blocks};
    cuda->blocks = block;
    cuda->allocated += bytes;
    *out = memory;
    return DL2_OK;
}

static void cuda_free(struct dl2_device *device, void *memory)
{
    struct cuda *cuda = (struct cuda *)device;
    for (struct block **b = &cuda->blocks; *b; b = &(*b)->next)
        if ((*b)->memory == memory) {
            struct block *gone = *b;
            *b = gone->next;
            cuda->allocated -= gone->size;
            free(gone);
            break;
        }
    give(cuda, memory);
}

static void *cuda_host_alloc(struct dl2_device *device, size_t bytes)
{
    void *memory = NULL;
    if (dl2_gpu_use(((struct cuda *)device)->number, NULL) < 0 || /* any thread may be this one */
        cudaHostAlloc(&memory, bytes ? bytes : 1, cudaHostAllocPortable) != cudaSuccess) {
        cudaGetLastError();
        return NULL;
    }
    return memory;
}

static void cuda_host_free(struct dl2_device *device, void *memory)
{
    if (memory && dl2_gpu_use(((struct cuda *)device)->number, NULL) == DL2_OK)
        cudaFreeHost(memory);
}

static void cuda_upload(struct dl2_device *device, void *to, const void *from, size_t bytes)
{
    struct cuda *cuda = (struct cuda *)device;
    if (!well(cuda))
        return;
    if (cuda->ingests > 1)
        note(cuda, cudaStreamWaitEvent(cuda->uploads, cuda->ingested[cuda->ingests % 2], 0),
             "cudaStreamWaitEvent", "upload");
    /* cudaMemcpyDefault: batches that were decoded on the card are there already. */
    note(cuda, cudaMemcpyAsync(to, from, bytes, cudaMemcpyDefault, cuda->uploads),
         "cudaMemcpyAsync", "upload");
    note(cuda, cudaEventRecord(cuda->uploaded, cuda->uploads), "cudaEventRecord", "upload");
    note(cuda, cudaStreamWaitEvent(cuda->stream, cuda->uploaded, 0), "cudaStreamWaitEvent",
         "upload");
}

static void cuda_wait_uploads(struct dl2_device *device)
{
    struct cuda *cuda = (struct cuda *)device;
    /* Asleep, most of a step long: the loader needs the processor. */
    note(cuda, cudaEventSynchronize(cuda->uploaded), "cudaEventSynchronize", "upload");
}

static int cuda_sync(struct dl2_device *device, struct dl2_error *error)
{
    struct cuda *cuda = (struct cuda *)device;
    note(cuda, cudaStreamSynchronize(cuda->uploads), "cudaStreamSynchronize", "upload");
    note(cuda, cudaStreamSynchronize(cuda->stream), "cudaStreamSynchronize", NULL);
    if (well(cuda))
        dl2_gpu_reducer_check(cuda->reducer, &device->failure);
    int status = device->failure.status;
    if (status)
        dl2_error_set(error, device->failure.status, "%s", device->failure.message);
    dl2_error_clear(&device->failure);
    return status;
}

static int cuda_download(struct dl2_device *device, void *to, const void *from, size_t bytes,
                         struct dl2_error *error)
{
    struct cuda *cuda = (struct cuda *)device;
    if (well(cuda))
        note(cuda, cudaMemcpyAsync(to, from, bytes, cudaMemcpyDeviceToHost, cuda->stream),
             "cudaMemcpyAsync", "download");
    return cuda_sync(device, error);
}

static void cuda_copy(struct dl2_device *device, void *to, const void *from, size_t bytes)
{
    struct cuda *cuda = (struct cuda *)device;
    if (well(cuda) && bytes)
        note(cuda, cudaMemcpyAsync(to, from, bytes, cudaMemcpyDeviceToDevice, cuda->stream),
             "cudaMemcpyAsync", "copy");
}

static void cuda_zero(struct dl2_device *device, void *memory, size_t bytes)
{
    struct cuda *cuda = (struct cuda *)device;
    if (well(cuda) && bytes)
        note(cuda, cudaMemsetAsync(memory, 0, bytes, cuda->stream), "cudaMemsetAsync", "zero");
}

static void cuda_set_numbers(struct dl2_device *device, const struct dl2_step_numbers *numbers)
{
    struct cuda *cuda = (struct cuda *)device;
    device->numbers = *numbers;
    if (well(cuda))
        launched(cuda, dl2_gpu_set_numbers(cuda->state, numbers, cuda->stream), "set_numbers");
}

/* -- the device itself -- */

static const char *cuda_version(void)
{
    static char text[96];
    if (!text[0]) {
        size_t cudnn = cudnnGetVersion(), blas = cublasLtGetVersion();
        const char *nccl = dl2_gpu_reducer_version();
        snprintf(text, sizeof text, "%s, cuDNN %zu.%zu.%zu, cublasLt %zu.%zu.%zu%s%s",
                 dl2_gpu_version(), cudnn / 10000, cudnn / 100 % 100, cudnn % 100, blas / 10000,
                 blas / 100 % 100, blas % 100, nccl[0] ? ", " : "", nccl);
    }
    return text;
}

static json_t *cuda_describe(struct dl2_device *device)
{
    struct cuda *cuda = (struct cuda *)device;
    struct cudaDeviceProp card;
    char pci[32] = "";
    int driver = 0;
    if (cudaGetDeviceProperties(&card, (int)cuda->number) != cudaSuccess ||
        cudaDeviceGetPCIBusId(pci, sizeof pci, (int)cuda->number) != cudaSuccess ||
        cudaDriverGetVersion(&driver) != cudaSuccess) {
        cudaGetLastError();
        return json_object();
    }
    return json_pack("{s:s, s:s, s:I, s:i, s:f, s:f, s:s, s:b}", "name", card.name, "pci", pci,
                     "memory_bytes", (json_int_t)card.totalGlobalMem, "multiprocessors",
                     card.multiProcessorCount, "compute_capability", card.major + 0.1 * card.minor,
                     "driver_cuda", driver / 1000 + 0.1 * (driver % 1000 / 10), "precision",
                     dl2_precision_name(cuda->precision), "deterministic", cuda->deterministic);
}

static void cuda_close(struct dl2_device *device)
{
    struct cuda *cuda = (struct cuda *)device;
    if (!cuda)
        return;
    if (cuda->stream)
        cudaStreamSynchronize(cuda->stream);
    dl2_gpu_reducer_close(cuda->reducer);
    while (cuda->choices) {
        struct choice *next = cuda->choices->next;
        dl2_conv_plan_free(&cuda->choices->plan);
        free(cuda->choices);
        cuda->choices = next;
    }
    while (cuda->retired) {
        struct retired *next = cuda->retired->next;
        cudaFree(cuda->retired->memory);
        free(cuda->retired);
        cuda->retired = next;
    }
    while (cuda->blocks) {
        struct block *next = cuda->blocks->next;
        free(cuda->blocks);
        cuda->blocks = next;
    }
    cudaFree(cuda->workspace.memory);
    cudaFree(cuda->partials.memory);
    cudaFree(cuda->gradient.memory);
    cudaFree(cuda->state);
    if (cuda->cudnn)
        cudnnDestroy(cuda->cudnn);
    if (cuda->blas)
        cublasLtDestroy(cuda->blas);
    cudaEvent_t events[] = {cuda->uploaded, cuda->ingested[0], cuda->ingested[1]};
    for (int i = 0; i < 3; i++)
        if (events[i])
            cudaEventDestroy(events[i]);
    if (cuda->uploads)
        cudaStreamDestroy(cuda->uploads);
    if (cuda->stream)
        cudaStreamDestroy(cuda->stream);
    cudaGetLastError();
    free(cuda);
}

/* PyTorch's GradScaler begins there, too. */
#define FIRST_DYNAMIC_SCALE 65536.0

static int start_state(struct cuda *cuda, double loss_scale, struct dl2_error *error)
{
    bool scales = cuda->precision == DL2_PRECISION_FP16;
    struct dl2_gpu_state state = {.dynamic = scales && !(loss_scale > 0)};
    state.loss_scale.scale = !scales ? 1 : state.dynamic ? FIRST_DYNAMIC_SCALE : loss_scale;
    DL2_TRY(take(cuda, sizeof *cuda->state, "its state", &cuda->state, error));
    DL2_TRY(dl2_gpu_check(
        cudaMemcpyAsync(cuda->state, &state, sizeof state, cudaMemcpyHostToDevice, cuda->stream),
        "cudaMemcpyAsync", error));
    return dl2_gpu_check(cudaStreamSynchronize(cuda->stream), "cudaStreamSynchronize", error);
}

static int start(struct cuda *cuda, const struct dl2_device_options *options,
                 struct dl2_error *error)
{
    DL2_TRY(dl2_gpu_use(cuda->number, error));
    struct cudaDeviceProp card;
    DL2_TRY(dl2_gpu_check(cudaGetDeviceProperties(&card, (int)cuda->number),
                          "cudaGetDeviceProperties", error));
    if (card.major < 8 &&
        (cuda->precision == DL2_PRECISION_BF16 || cuda->precision == DL2_PRECISION_TF32))
        return dl2_error_set(error, DL2_ERR_UNSUPPORTED,
                             "%s (compute capability %d.%d) has no %s, which began with 8.0: use "
                             "--amp fp16 or off",
                             card.name, card.major, card.minor,
                             dl2_precision_name(cuda->precision));
    cuda->workspace_limit =
        card.totalGlobalMem / 32 < (size_t)1 << 30 ? card.totalGlobalMem / 32 : (size_t)1 << 30;
    DL2_TRY(dl2_gpu_check(cudaStreamCreateWithFlags(&cuda->stream, cudaStreamNonBlocking),
                          "cudaStreamCreateWithFlags", error));
    DL2_TRY(dl2_gpu_check(cudaStreamCreateWithFlags(&cuda->uploads, cudaStreamNonBlocking),
                          "cudaStreamCreateWithFlags", error));
    cudaEvent_t *const events[] = {&cuda->uploaded, &cuda->ingested[0], &cuda->ingested[1]};
    for (int i = 0; i < 3; i++)
        DL2_TRY(dl2_gpu_check(
            cudaEventCreateWithFlags(events[i], cudaEventDisableTiming | cudaEventBlockingSync),
            "cudaEventCreateWithFlags", error));
    DL2_TRY(dl2_cudnn_check(cudnnCreate(&cuda->cudnn), "cudnnCreate", NULL, error));
    DL2_TRY(
        dl2_cudnn_check(cudnnSetStream(cuda->cudnn, cuda->stream), "cudnnSetStream", NULL, error));
    DL2_TRY(dl2_cublas_check(cublasLtCreate(&cuda->blas), "cublasLtCreate", NULL, error));
    if (cuda->base.world)
        DL2_TRY(dl2_gpu_reducer_open(cuda->base.world, &cuda->reducer, error));
    return start_state(cuda, options ? options->loss_scale : 0, error);
}

extern const struct dl2_device_class dl2_device_cuda;

static int cuda_open(const struct dl2_device_options *options, struct dl2_device **out,
                     struct dl2_error *error)
{
    struct cuda *cuda = dl2_calloc(1, sizeof *cuda);
    if (!cuda)
        return out_of_memory(error, "itself");
    cuda->base.ops = &dl2_device_cuda;
    cuda->base.staging = 2;
    cuda->ranks = 1;
    const char *graphs = getenv("DL2_CUDA_GRAPHS");
    cuda->graphs = !graphs || strcmp(graphs, "off") != 0;
    const char *profiled = getenv("DL2_CUDA_PROFILE");
    cuda->profiled = profiled ? strtoull(profiled, NULL, 10) : 0;
    if (options) {
        cuda->number = options->number;
        cuda->precision = options->precision;
        cuda->deterministic = options->deterministic;
        cuda->base.world = options->world;
        cuda->ranks = options->world ? options->world->size : 1;
    }
    cuda->base.element = cuda->precision == DL2_PRECISION_BF16   ? DL2_ELEMENT_BF16
                         : cuda->precision == DL2_PRECISION_FP16 ? DL2_ELEMENT_F16
                                                                 : DL2_ELEMENT_F32;
    int status = start(cuda, options, error);
    if (status < 0) {
        dl2_error_prefix(error, "device cuda:%u", cuda->number);
        cuda_close(&cuda->base);
        return status;
    }
    *out = &cuda->base;
    return DL2_OK;
}

/*
 * -- recording --
 * While a stream is captured nothing runs; the graph does it all once record_end() launches it.
 */

static void cuda_record_begin(struct dl2_device *device)
{
    struct cuda *cuda = (struct cuda *)device;
    if (!cuda->graphs || !well(cuda))
        return;
    struct dl2_recording *recording = dl2_calloc(1, sizeof *recording);
    if (!recording)
        return; /* then it is only done, not recorded */
    recording->cuda = cuda;
    /* Other threads may go on allocating pinned memory. */
    note(cuda, cudaStreamBeginCapture(cuda->stream, cudaStreamCaptureModeThreadLocal),
         "cudaStreamBeginCapture", NULL);
    if (well(cuda))
        cuda->recording = recording;
    else
        free(recording);
}

static void cuda_replay(struct dl2_recording *recording)
{
    struct cuda *cuda = recording->cuda;
    if (!well(cuda))
        return;
    note(cuda, cudaGraphLaunch(recording->graph, cuda->stream), "cudaGraphLaunch",
         "a recorded step");
    /* Events within a graph are of no use outside: its end will do for its ingests. */
    for (unsigned i = 0; i < recording->ingests; i++)
        note(cuda, cudaEventRecord(cuda->ingested[cuda->ingests++ % 2], cuda->stream),
             "cudaEventRecord", "a recorded step");
}

static struct dl2_recording *cuda_record_end(struct dl2_device *device)
{
    struct cuda *cuda = (struct cuda *)device;
    struct dl2_recording *recording = cuda->recording;
    if (!recording)
        return NULL;
    cuda->recording = NULL;
    cudaGraph_t graph = NULL;
    const char *what = "recording a step (DL2_CUDA_GRAPHS=off does without)";
    note(cuda, cudaStreamEndCapture(cuda->stream, &graph), "cudaStreamEndCapture", what);
    if (well(cuda))
        note(cuda, cudaGraphInstantiate(&recording->graph, graph, 0), "cudaGraphInstantiate", what);
    if (graph)
        cudaGraphDestroy(graph);
    if (!well(cuda)) {
        free(recording);
        return NULL;
    }
    cuda->recordings++;
    cuda_replay(recording);
    return recording;
}

static void cuda_recording_free(struct dl2_recording *recording)
{
    if (!recording)
        return;
    struct cuda *cuda = recording->cuda;
    note(cuda, cudaStreamSynchronize(cuda->stream), "cudaStreamSynchronize", NULL);
    note(cuda, cudaGraphExecDestroy(recording->graph), "cudaGraphExecDestroy", NULL);
    cuda->recordings--;
    free(recording);
}

/* -- several cards -- */

static void cuda_all_reduce(struct dl2_device *device, float *data, size_t count)
{
    struct cuda *cuda = (struct cuda *)device;
    if (well(cuda))
        library(cuda,
                dl2_gpu_reducer_add(cuda->reducer, data, count, cuda->stream, &device->failure));
}

static void cuda_all_reduce_wait(struct dl2_device *device)
{
    struct cuda *cuda = (struct cuda *)device;
    if (well(cuda))
        library(cuda, dl2_gpu_reducer_wait(cuda->reducer, cuda->stream, &device->failure));
}

/* -- convolution -- */

/* But for the batch. */
static bool alike(const struct dl2_conv_request *a, const struct dl2_conv_request *b)
{
    const struct dl2_conv_shape *s = &a->shape, *t = &b->shape;
    return a->pass == b->pass && s->in_height == t->in_height && s->in_width == t->in_width &&
           s->in_channels == t->in_channels && s->out_channels == t->out_channels &&
           s->kernel_height == t->kernel_height && s->kernel_width == t->kernel_width &&
           s->stride_height == t->stride_height && s->stride_width == t->stride_width &&
           s->pad_height == t->pad_height && s->pad_width == t->pad_width && s->groups == t->groups;
}

static size_t input_count(const struct dl2_conv_shape *s)
{
    return (size_t)s->batch * s->in_height * s->in_width * s->in_channels;
}

static size_t weight_count(const struct dl2_conv_shape *s)
{
    return (size_t)s->out_channels * s->kernel_height * s->kernel_width *
           (s->in_channels / s->groups);
}

static size_t output_pixels(const struct dl2_conv_shape *s)
{
    return (size_t)s->batch *
           dl2_window_out(s->in_height, s->kernel_height, s->stride_height, s->pad_height) *
           dl2_window_out(s->in_width, s->kernel_width, s->stride_width, s->pad_width);
}

/* Milliseconds of a few runs; infinite where it fails. */
static float time_plan(struct cuda *cuda, const struct dl2_conv_plan *plan, void *const memory[4],
                       cudaEvent_t begin, cudaEvent_t end)
{
    enum { RUNS = 3 };
    struct dl2_error ignored = DL2_ERROR_INIT;
    float time = 0;
    bool good = true;
    for (int i = 0; i <= RUNS && good; i++) { /* the first warms up */
        if (i == 1)
            good = cudaEventRecord(begin, cuda->stream) == cudaSuccess;
        good = good && dl2_conv_plan_run(plan, cuda->cudnn, memory[0], memory[1], memory[2],
                                         memory[3], &ignored) == DL2_OK;
    }
    good = good && cudaEventRecord(end, cuda->stream) == cudaSuccess &&
           cudaEventSynchronize(end) == cudaSuccess &&
           cudaEventElapsedTime(&time, begin, end) == cudaSuccess;
    if (!good)
        cudaGetLastError();
    return good ? time : 1e30f;
}

/* The fastest of the plans, or the first that runs, on tensors of their own full of noise; the
 * first of all where these can't be had. */
static unsigned measure(struct cuda *cuda, const struct dl2_conv_request *request,
                        const struct dl2_conv_plan *plans, unsigned count, bool fastest)
{
    size_t size = dl2_element_size(cuda->base.element), workspace = 0;
    size_t counts[3] = {input_count(&request->shape), weight_count(&request->shape),
                        output_pixels(&request->shape) * request->shape.out_channels};
    void *memory[4] = {NULL};
    cudaEvent_t begin = NULL, end = NULL;
    unsigned best = 0;
    for (unsigned i = 0; i < count; i++)
        workspace = plans[i].workspace > workspace ? plans[i].workspace : workspace;
    bool good = cudaEventCreate(&begin) == cudaSuccess && cudaEventCreate(&end) == cudaSuccess &&
                (!workspace || cudaMalloc(&memory[3], workspace) == cudaSuccess);
    for (int i = 0; i < 3 && good; i++)
        good = cudaMalloc(&memory[i], counts[i] * size) == cudaSuccess &&
               dl2_gpu_noise(cuda->base.element, memory[i], counts[i], cuda->stream) == cudaSuccess;
    float least = 1e30f;
    for (unsigned i = 0; i < count && good; i++) {
        float time = time_plan(cuda, &plans[i], memory, begin, end);
        if (time < least) {
            least = time;
            best = i;
            if (!fastest)
                break;
        }
    }
    cudaStreamSynchronize(cuda->stream);
    for (int i = 0; i < 4; i++)
        cudaFree(memory[i]);
    if (begin)
        cudaEventDestroy(begin);
    if (end)
        cudaEventDestroy(end);
    cudaGetLastError(); /* what matters comes up again when the plan runs */
    return best;
}

static int choose(struct cuda *cuda, const struct dl2_conv_shape *shape, enum dl2_conv_pass pass,
                  const struct choice **out, struct dl2_error *error)
{
    enum { TRIALS = 10 };
    struct dl2_conv_request request = {.shape = *shape,
                                       .pass = pass,
                                       .precision = cuda->precision,
                                       .deterministic = cuda->deterministic,
                                       .workspace = cuda->workspace_limit};
    bool fastest = !cuda->deterministic;
    for (const struct choice *c = cuda->choices; c; c = c->next)
        if (alike(&c->request, &request)) {
            *out = c;
            if (c->request.shape.batch == shape->batch)
                return DL2_OK;
            fastest = false; /* an epoch's last batch: not worth seconds */
        }
    struct choice *choice = dl2_calloc(1, sizeof *choice);
    if (!choice)
        return out_of_memory(error, "a convolution");
    struct dl2_conv_plan plans[TRIALS];
    unsigned count = 0, best = 0;
    int status = dl2_conv_plans_find(&request, cuda->cudnn, NULL, plans, TRIALS, &count, error);
    if (status == DL2_OK) {
        if (count > 1)
            best = measure(cuda, &request, plans, count, fastest);
        choice->plan = plans[best];
        for (unsigned i = 0; i < count; i++)
            if (i != best)
                dl2_conv_plan_free(&plans[i]);
        choice->request = request;
        choice->next = cuda->choices;
        cuda->choices = choice;
        status = grow(cuda, &cuda->workspace, choice->plan.workspace, "a workspace", error);
        *out = choice;
    } else {
        free(choice);
    }
    return status;
}

static void cuda_conv_free(struct dl2_conv *conv)
{
    free(conv); /* what was chosen stays for others of its shape */
}

static int plan_conv(struct cuda *cuda, struct dl2_conv *conv, struct dl2_error *error)
{
    size_t size = dl2_element_size(cuda->base.element);
    conv->depthwise = dl2_gpu_depthwise(&conv->s);
    if (!conv->depthwise) {
        for (int pass = DL2_CONV_FORWARD; pass <= DL2_CONV_WEIGHTS; pass++)
            DL2_TRY(choose(cuda, &conv->s, (enum dl2_conv_pass)pass, &conv->choices[pass], error));
        DL2_TRY(grow(cuda, &cuda->gradient, conv->weights * size, "gradients of weights", error));
    }
    return conv->depthwise || conv->s.bias ? grow_partials(cuda, conv->s.out_channels, error)
                                           : DL2_OK;
}

static int cuda_conv_create(struct dl2_device *device, const struct dl2_conv_shape *shape,
                            struct dl2_conv **out, struct dl2_error *error)
{
    struct cuda *cuda = (struct cuda *)device;
    DL2_TRY(dl2_conv_shape_check(shape, error));
    struct dl2_conv *conv = dl2_calloc(1, sizeof *conv);
    if (!conv)
        return out_of_memory(error, "a convolution");
    conv->cuda = cuda;
    conv->s = *shape;
    conv->out_pixels = output_pixels(shape);
    conv->weights = weight_count(shape);
    int status = plan_conv(cuda, conv, error);
    if (status < 0) {
        cuda_conv_free(conv);
        return status;
    }
    *out = conv;
    return DL2_OK;
}

/* Names the layer in a failure that has just come up. */
static void name_conv(struct dl2_conv *conv, enum dl2_conv_pass pass, bool was_well)
{
    if (!was_well || well(conv->cuda))
        return;
    char text[256];
    const struct dl2_conv_request request = {.shape = conv->s, .pass = pass};
    dl2_conv_request_text(&request, text, sizeof text);
    dl2_error_prefix(&conv->cuda->base.failure, "%s", text);
}

static void run_conv(struct dl2_conv *conv, enum dl2_conv_pass pass, const void *x, const void *w,
                     const void *y)
{
    struct cuda *cuda = conv->cuda;
    if (((uintptr_t)x | (uintptr_t)w | (uintptr_t)y) % 16 != 0)
        dl2_error_set(&cuda->base.failure, DL2_ERR_ARGUMENT,
                      "a tensor does not begin at a multiple of 16 bytes");
    else
        library(cuda, dl2_conv_plan_run(&conv->choices[pass]->plan, cuda->cudnn, x, w, y,
                                        cuda->workspace.memory, &cuda->base.failure));
}

static void cuda_conv_forward(struct dl2_conv *conv, const void *x, const void *weights,
                              const float *bias, void *y)
{
    struct cuda *cuda = conv->cuda;
    enum dl2_element element = cuda->base.element;
    bool was_well = well(cuda);
    if (!was_well)
        return;
    if (conv->depthwise)
        launched(cuda, dl2_gpu_depthwise_forward(element, &conv->s, x, weights, y, cuda->stream),
                 NULL);
    else
        run_conv(conv, DL2_CONV_FORWARD, x, weights, y);
    if (bias && well(cuda))
        launched(cuda,
                 dl2_gpu_add_bias(element, bias, y, conv->out_pixels, conv->s.out_channels,
                                  cuda->stream),
                 NULL);
    name_conv(conv, DL2_CONV_FORWARD, was_well);
}

static void cuda_conv_backward_data(struct dl2_conv *conv, const void *dy, const void *weights,
                                    void *dx)
{
    struct cuda *cuda = conv->cuda;
    bool was_well = well(cuda);
    if (!was_well)
        return;
    if (conv->depthwise)
        launched(cuda,
                 dl2_gpu_depthwise_backward_data(cuda->base.element, &conv->s, dy, weights, dx,
                                                 cuda->stream),
                 NULL);
    else
        run_conv(conv, DL2_CONV_DATA, dx, weights, dy);
    name_conv(conv, DL2_CONV_DATA, was_well);
}

static void cuda_conv_backward_weights(struct dl2_conv *conv, const void *x, const void *dy,
                                       float *dweights, float *dbias, bool accumulate)
{
    struct cuda *cuda = conv->cuda;
    enum dl2_element element = cuda->base.element;
    float *partials = cuda->partials.memory;
    bool was_well = well(cuda);
    if (!was_well)
        return;
    if (conv->depthwise) {
        launched(cuda,
                 dl2_gpu_depthwise_backward_weights(element, &conv->s, x, dy, partials, dweights,
                                                    accumulate, cuda->stream),
                 NULL);
    } else if (element == DL2_ELEMENT_F32 && !accumulate) {
        run_conv(conv, DL2_CONV_WEIGHTS, x, dweights, dy);
    } else { /* cuDNN makes gradients of the element that it is given */
        run_conv(conv, DL2_CONV_WEIGHTS, x, cuda->gradient.memory, dy);
        if (well(cuda))
            launched(cuda,
                     dl2_gpu_widen(element, cuda->gradient.memory, dweights, conv->weights,
                                   accumulate, cuda->stream),
                     NULL);
    }
    if (dbias && well(cuda))
        launched(cuda,
                 dl2_gpu_column_sums(element, dy, conv->out_pixels, conv->s.out_channels, partials,
                                     dbias, accumulate, cuda->stream),
                 NULL);
    name_conv(conv, DL2_CONV_WEIGHTS, was_well);
}

/* -- linear -- */

static void cuda_linear_free(struct dl2_linear *linear)
{
    if (!linear)
        return;
    dl2_product_free(linear->forward);
    dl2_product_free(linear->data);
    dl2_product_free(linear->weights);
    give(linear->cuda, linear->bias);
    free(linear);
}

static int plan_linear(struct dl2_linear *linear, struct dl2_error *error)
{
    struct cuda *cuda = linear->cuda;
    const struct dl2_linear_shape *s = &linear->s;
    const struct dl2_product_shape forward = {.rows = s->batch,
                                              .columns = s->out,
                                              .inner = s->in,
                                              .b_transposed = true,
                                              .bias = s->bias,
                                              .precision = cuda->precision,
                                              .what = "forward pass"};
    const struct dl2_product_shape data = {.rows = s->batch,
                                           .columns = s->in,
                                           .inner = s->out,
                                           .precision = cuda->precision,
                                           .what = "gradient of the input"};
    const struct dl2_product_shape weights = {.rows = s->out,
                                              .columns = s->in,
                                              .inner = s->batch,
                                              .a_transposed = true,
                                              .float_result = true,
                                              .precision = cuda->precision,
                                              .what = "gradient of the weights"};
    const struct {
        const struct dl2_product_shape *shape;
        struct dl2_product **product;
    } products[] = {
        {&forward, &linear->forward}, {&data, &linear->data}, {&weights, &linear->weights}};
    for (int i = 0; i < 3; i++) {
        DL2_TRY(dl2_product_create(cuda->blas, products[i].shape, cuda->workspace_limit,
                                   products[i].product, error));
        DL2_TRY(grow(cuda, &cuda->workspace, dl2_product_workspace(*products[i].product),
                     "a workspace", error));
    }
    if (s->bias && cuda->base.element != DL2_ELEMENT_F32)
        DL2_TRY(take(cuda, s->out * dl2_element_size(cuda->base.element), "a bias", &linear->bias,
                     error));
    return s->bias ? grow_partials(cuda, s->out, error) : DL2_OK;
}

static int cuda_linear_create(struct dl2_device *device, const struct dl2_linear_shape *shape,
                              struct dl2_linear **out, struct dl2_error *error)
{
    struct dl2_linear *linear = dl2_calloc(1, sizeof *linear);
    if (!linear)
        return out_of_memory(error, "a linear layer");
    linear->cuda = (struct cuda *)device;
    linear->s = *shape;
    int status = plan_linear(linear, error);
    if (status < 0) {
        dl2_error_prefix(error, "device cuda");
        cuda_linear_free(linear);
        return status;
    }
    *out = linear;
    return DL2_OK;
}

static void cuda_linear_forward(struct dl2_linear *linear, const void *x, const void *weights,
                                const float *bias, void *y)
{
    struct cuda *cuda = linear->cuda;
    if (!well(cuda))
        return;
    if (linear->bias) {
        launched(cuda,
                 dl2_gpu_lower(cuda->base.element, bias, linear->bias, linear->s.out, cuda->stream),
                 "a linear layer's bias");
        bias = linear->bias;
    }
    if (well(cuda))
        library(cuda, dl2_product_run(linear->forward, cuda->blas, x, weights, bias, y, false,
                                      cuda->workspace.memory, cuda->stream, &cuda->base.failure));
}

static void cuda_linear_backward_data(struct dl2_linear *linear, const void *dy,
                                      const void *weights, void *dx)
{
    struct cuda *cuda = linear->cuda;
    if (well(cuda))
        library(cuda, dl2_product_run(linear->data, cuda->blas, dy, weights, NULL, dx, false,
                                      cuda->workspace.memory, cuda->stream, &cuda->base.failure));
}

static void cuda_linear_backward_weights(struct dl2_linear *linear, const void *x, const void *dy,
                                         float *dweights, float *dbias, bool accumulate)
{
    struct cuda *cuda = linear->cuda;
    if (!well(cuda))
        return;
    library(cuda, dl2_product_run(linear->weights, cuda->blas, dy, x, NULL, dweights, accumulate,
                                  cuda->workspace.memory, cuda->stream, &cuda->base.failure));
    if (dbias && well(cuda))
        launched(cuda,
                 dl2_gpu_column_sums(cuda->base.element, dy, linear->s.batch, linear->s.out,
                                     cuda->partials.memory, dbias, accumulate, cuda->stream),
                 "gradient of a linear layer's bias");
}

/* -- pooling -- */

static void cuda_pool_free(struct dl2_pool *pool)
{
    if (pool)
        give(pool->cuda, pool->winner);
    free(pool);
}

static int cuda_pool_create(struct dl2_device *device, const struct dl2_pool_shape *shape,
                            struct dl2_pool **out, struct dl2_error *error)
{
    DL2_TRY(dl2_pool_shape_check(shape, error));
    if (shape->kind == DL2_POOL_MAX && shape->kernel_height * shape->kernel_width > DL2_GPU_WINDOW)
        return dl2_error_set(error, DL2_ERR_UNSUPPORTED,
                             "device cuda: no max pooling over %ux%u, more than %d elements",
                             shape->kernel_width, shape->kernel_height, DL2_GPU_WINDOW);
    struct dl2_pool *pool = dl2_calloc(1, sizeof *pool);
    if (!pool)
        return out_of_memory(error, "pooling");
    pool->cuda = (struct cuda *)device;
    pool->s = *shape;
    if (shape->kind == DL2_POOL_MAX) {
        int status =
            take(pool->cuda,
                 (size_t)shape->batch * shape->out_height * shape->out_width * shape->channels,
                 "where maxima were", &pool->winner, error);
        if (status < 0) {
            free(pool);
            return status;
        }
    }
    *out = pool;
    return DL2_OK;
}

static void cuda_pool_forward(struct dl2_pool *pool, const void *x, void *y)
{
    struct cuda *cuda = pool->cuda;
    if (well(cuda))
        launched(cuda, dl2_gpu_pool(cuda->base.element, &pool->s, x, y, pool->winner, cuda->stream),
                 "pooling");
}

static void cuda_pool_backward(struct dl2_pool *pool, const void *dy, void *dx)
{
    struct cuda *cuda = pool->cuda;
    if (well(cuda))
        launched(
            cuda,
            dl2_gpu_pool_backward(cuda->base.element, &pool->s, dy, pool->winner, dx, cuda->stream),
            "gradient of pooling");
}

/* -- batch norm -- */

static void cuda_norm_free(struct dl2_norm *norm)
{
    if (norm)
        give(norm->cuda, norm->moments);
    free(norm);
}

static int cuda_norm_create(struct dl2_device *device, const struct dl2_norm_shape *shape,
                            struct dl2_norm **out, struct dl2_error *error)
{
    struct cuda *cuda = (struct cuda *)device;
    struct dl2_norm *norm = dl2_calloc(1, sizeof *norm);
    if (!norm)
        return out_of_memory(error, "batch norm");
    /* Each of the four begins at a multiple of 16 floats. */
    size_t each = (2 * (size_t)shape->channels + 15) / 16 * 16;
    norm->cuda = cuda;
    norm->s = *shape;
    int status = grow_partials(cuda, shape->channels, error);
    if (status == DL2_OK)
        status = take(cuda, 4 * each * sizeof(float), "batch norm", &norm->moments, error);
    if (status < 0) {
        free(norm);
        return status;
    }
    norm->kept = norm->moments + each;
    norm->sums = norm->kept + each;
    norm->shared = norm->sums + each;
    *out = norm;
    return DL2_OK;
}

static bool is_shared(const struct dl2_norm *norm)
{
    return norm->s.synchronized && norm->cuda->ranks > 1;
}

/* Rows of all that the statistics are of. */
static size_t all_rows(const struct dl2_norm *norm)
{
    return norm->s.rows * (is_shared(norm) ? norm->cuda->ranks : 1);
}

/* Moments of the world's batch from those of the ranks: the mean of the means, and squared
 * differences that were moved there before they are added up. */
static void share_moments(struct dl2_norm *norm)
{
    struct cuda *cuda = norm->cuda;
    struct dl2_device *device = &cuda->base;
    unsigned channels = norm->s.channels;
    cuda_copy(device, norm->shared, norm->moments, channels * sizeof(float));
    if (well(cuda))
        launched(cuda,
                 dl2_gpu_scale(norm->shared, channels, 1.0f / (float)cuda->ranks, cuda->stream),
                 "batch norm");
    cuda_all_reduce(device, norm->shared, channels);
    cuda_all_reduce_wait(device);
    if (well(cuda))
        launched(cuda,
                 dl2_gpu_norm_recentre(norm->moments, norm->shared, norm->s.rows, channels,
                                       cuda->stream),
                 "batch norm");
    cuda_all_reduce(device, norm->moments + channels, channels);
    cuda_all_reduce_wait(device);
}

static void apply_norm(struct dl2_norm *norm, const void *x, const void *residual,
                       const float *gamma, const float *beta, void *y)
{
    struct cuda *cuda = norm->cuda;
    if (well(cuda))
        launched(cuda,
                 dl2_gpu_norm_apply(cuda->base.element, &norm->s, x, residual, gamma, beta,
                                    norm->kept, y, cuda->stream),
                 "batch norm");
}

static void cuda_norm_train(struct dl2_norm *norm, const void *x, const void *residual,
                            const float *gamma, const float *beta, float *running_mean,
                            float *running_var, void *y)
{
    struct cuda *cuda = norm->cuda;
    if (!well(cuda))
        return;
    launched(cuda,
             dl2_gpu_norm_moments(cuda->base.element, x, norm->s.rows, norm->s.channels,
                                  cuda->partials.memory, norm->moments, cuda->stream),
             "batch norm");
    if (is_shared(norm))
        share_moments(norm);
    if (well(cuda))
        launched(cuda,
                 dl2_gpu_norm_keep(norm->moments, all_rows(norm), &norm->s, running_mean,
                                   running_var, norm->kept, cuda->stream),
                 "batch norm");
    apply_norm(norm, x, residual, gamma, beta, y);
}

static void cuda_norm_eval(struct dl2_norm *norm, const void *x, const void *residual,
                           const float *gamma, const float *beta, const float *running_mean,
                           const float *running_var, void *y)
{
    struct cuda *cuda = norm->cuda;
    if (well(cuda))
        launched(cuda,
                 dl2_gpu_norm_keep_running(running_mean, running_var, &norm->s, norm->kept,
                                           cuda->stream),
                 "batch norm");
    apply_norm(norm, x, residual, gamma, beta, y);
}

static void cuda_norm_backward(struct dl2_norm *norm, const void *x, const void *y, const void *dy,
                               const void *dy2, const float *gamma, const float *beta, void *dx,
                               void *dresidual, float *dgamma, float *dbeta, bool accumulate)
{
    struct cuda *cuda = norm->cuda;
    enum dl2_element element = cuda->base.element;
    if (!well(cuda))
        return;
    launched(cuda,
             dl2_gpu_norm_backward_sums(element, &norm->s, x, y, dy, dy2, gamma, beta, norm->kept,
                                        cuda->partials.memory, norm->sums, dresidual, dgamma, dbeta,
                                        accumulate, cuda->stream),
             "gradient of batch norm");
    if (is_shared(norm)) {
        cuda_all_reduce(&cuda->base, norm->sums, 2 * (size_t)norm->s.channels);
        cuda_all_reduce_wait(&cuda->base);
    }
    if (well(cuda))
        launched(cuda,
                 dl2_gpu_norm_backward_data(element, &norm->s, x, y, dy, dy2, gamma, beta,
                                            norm->kept, norm->sums, all_rows(norm), dresidual, dx,
                                            cuda->stream),
                 "gradient of batch norm");
}

/* -- elementwise -- */

static void cuda_activate(struct dl2_device *device, enum dl2_activation activation, const void *x,
                          void *y, size_t count)
{
    struct cuda *cuda = (struct cuda *)device;
    if (well(cuda))
        launched(cuda, dl2_gpu_activate(device->element, activation, x, y, count, cuda->stream),
                 "activation");
}

static void cuda_activate_backward(struct dl2_device *device, enum dl2_activation activation,
                                   const void *y, const void *dy, void *dx, size_t count)
{
    struct cuda *cuda = (struct cuda *)device;
    if (well(cuda))
        launched(
            cuda,
            dl2_gpu_activate_backward(device->element, activation, y, dy, dx, count, cuda->stream),
            "gradient of an activation");
}

static void cuda_add(struct dl2_device *device, const void *a, const void *b, void *y, size_t count)
{
    struct cuda *cuda = (struct cuda *)device;
    if (well(cuda))
        launched(cuda, dl2_gpu_add(device->element, a, b, y, count, cuda->stream), "addition");
}

static void cuda_dropout(struct dl2_device *device, const void *x, void *y, size_t count,
                         float rate, uint64_t seed, uint64_t layer)
{
    struct cuda *cuda = (struct cuda *)device;
    if (well(cuda))
        launched(cuda,
                 dl2_gpu_dropout(device->element, x, y, count, rate, seed, layer, cuda->state,
                                 cuda->stream),
                 "dropout");
}

/* -- ingest -- */

static int cuda_ingest_create(struct dl2_device *device, const struct dl2_ingest_shape *shape,
                              struct dl2_ingest **out, struct dl2_error *error)
{
    struct dl2_ingest *ingest = dl2_calloc(1, sizeof *ingest);
    if (!ingest)
        return out_of_memory(error, "ingest");
    ingest->cuda = (struct cuda *)device;
    ingest->s = *shape;
    *out = ingest;
    return DL2_OK;
}

static void cuda_ingest_free(struct dl2_ingest *ingest)
{
    free(ingest);
}

static void cuda_ingest_run(struct dl2_ingest *ingest, const uint8_t *images,
                            const uint32_t *partner, void *y)
{
    struct cuda *cuda = ingest->cuda;
    if (!well(cuda))
        return;
    if (cuda->profiled && cuda->ingests == cuda->profiled)
        note(cuda, cudaProfilerStart(), "cudaProfilerStart", NULL);
    else if (cuda->profiled && cuda->ingests == cuda->profiled + 1)
        note(cuda, cudaProfilerStop(), "cudaProfilerStop", NULL);
    launched(cuda,
             dl2_gpu_ingest(cuda->base.element, &ingest->s, images, partner, y, cuda->state,
                            cuda->stream),
             "ingest");
    if (cuda->recording)
        cuda->recording->ingests++;
    else
        note(cuda, cudaEventRecord(cuda->ingested[cuda->ingests++ % 2], cuda->stream),
             "cudaEventRecord", "ingest");
}

/* -- loss -- */

static void cuda_loss_free(struct dl2_loss *loss)
{
    if (loss)
        give(loss->cuda, loss->each);
    free(loss);
}

static int cuda_loss_create(struct dl2_device *device, const struct dl2_loss_shape *shape,
                            struct dl2_loss **out, struct dl2_error *error)
{
    struct dl2_loss *loss = dl2_calloc(1, sizeof *loss);
    if (!loss)
        return out_of_memory(error, "the loss");
    loss->cuda = (struct cuda *)device;
    loss->s = *shape;
    int status =
        take(loss->cuda, shape->batch * sizeof *loss->each, "the loss", &loss->each, error);
    if (status < 0) {
        free(loss);
        return status;
    }
    *out = loss;
    return DL2_OK;
}

static void cuda_loss_run(struct dl2_loss *loss, const void *logits, const int32_t *labels,
                          const uint32_t *partner, float *losses, void *dlogits,
                          struct dl2_loss_sums *sums)
{
    struct cuda *cuda = loss->cuda;
    if (well(cuda))
        launched(cuda,
                 dl2_gpu_loss(cuda->base.element, &loss->s, logits, labels, partner, losses,
                              dlogits, sums, loss->each, cuda->state, cuda->stream),
                 "the loss");
}

/* -- optimiser -- */

static void cuda_check_gradients(struct dl2_device *device, const float *gradient, size_t count)
{
    struct cuda *cuda = (struct cuda *)device;
    if (cuda->precision == DL2_PRECISION_FP16 && well(cuda))
        launched(cuda, dl2_gpu_check_gradients(gradient, count, cuda->state, cuda->stream),
                 "the optimiser");
}

static void cuda_sgd_step(struct dl2_device *device, float *weights, void *lowered,
                          const float *gradient, float *momentum, size_t count, bool decays,
                          bool nesterov)
{
    struct cuda *cuda = (struct cuda *)device;
    if (well(cuda))
        launched(cuda,
                 dl2_gpu_sgd(device->element, weights, lowered, gradient, momentum, count, decays,
                             nesterov, cuda->ranks, cuda->state, cuda->stream),
                 "the optimiser");
}

static void cuda_end_update(struct dl2_device *device)
{
    struct cuda *cuda = (struct cuda *)device;
    if (cuda->precision == DL2_PRECISION_FP16 && well(cuda))
        launched(cuda, dl2_gpu_end_update(cuda->state, cuda->stream), "the optimiser");
}

static void cuda_move_average(struct dl2_device *device, float *average, const float *values,
                              size_t count)
{
    struct cuda *cuda = (struct cuda *)device;
    if (well(cuda))
        launched(cuda, dl2_gpu_move_average(average, values, count, cuda->state, cuda->stream),
                 "the optimiser");
}

static void cuda_lower(struct dl2_device *device, const float *weights, void *lowered, size_t count)
{
    struct cuda *cuda = (struct cuda *)device;
    if (well(cuda))
        launched(cuda, dl2_gpu_lower(device->element, weights, lowered, count, cuda->stream),
                 "lowered weights");
}

static int cuda_get_loss_scale(struct dl2_device *device, struct dl2_loss_scale *scale,
                               struct dl2_error *error)
{
    struct cuda *cuda = (struct cuda *)device;
    return cuda_download(device, scale, &cuda->state->loss_scale, sizeof *scale, error);
}

static int cuda_set_loss_scale(struct dl2_device *device, const struct dl2_loss_scale *scale,
                               struct dl2_error *error)
{
    struct cuda *cuda = (struct cuda *)device;
    if (well(cuda))
        note(cuda,
             cudaMemcpyAsync(&cuda->state->loss_scale, scale, sizeof *scale, cudaMemcpyHostToDevice,
                             cuda->stream),
             "cudaMemcpyAsync", "the loss scale");
    return cuda_sync(device, error);
}

const struct dl2_device_class dl2_device_cuda = {
    .name = "cuda",
    .summary = "cuDNN, cuBLAS and kernels of our own on an NVIDIA card",
    .version = cuda_version,
    .open = cuda_open,
    .close = cuda_close,
    .present = dl2_gpu_present,
    .describe = cuda_describe,
    .alloc = cuda_alloc,
    .free = cuda_free,
    .host_alloc = cuda_host_alloc,
    .host_free = cuda_host_free,
    .upload = cuda_upload,
    .wait_uploads = cuda_wait_uploads,
    .download = cuda_download,
    .copy = cuda_copy,
    .zero = cuda_zero,
    .sync = cuda_sync,
    .set_numbers = cuda_set_numbers,
    .record_begin = cuda_record_begin,
    .record_end = cuda_record_end,
    .replay = cuda_replay,
    .recording_free = cuda_recording_free,
    .all_reduce = cuda_all_reduce,
    .all_reduce_wait = cuda_all_reduce_wait,
    .conv_create = cuda_conv_create,
    .conv_free = cuda_conv_free,
    .conv_forward = cuda_conv_forward,
    .conv_backward_data = cuda_conv_backward_data,
    .conv_backward_weights = cuda_conv_backward_weights,
    .linear_create = cuda_linear_create,
    .linear_free = cuda_linear_free,
    .linear_forward = cuda_linear_forward,
    .linear_backward_data = cuda_linear_backward_data,
    .linear_backward_weights = cuda_linear_backward_weights,
    .pool_create = cuda_pool_create,
    .pool_free = cuda_pool_free,
    .pool_forward = cuda_pool_forward,
    .pool_backward = cuda_pool_backward,
    .norm_create = cuda_norm_create,
    .norm_free = cuda_norm_free,
    .norm_train = cuda_norm_train,
    .norm_eval = cuda_norm_eval,
    .norm_backward = cuda_norm_backward,
    .activate = cuda_activate,
    .activate_backward = cuda_activate_backward,
    .add = cuda_add,
    .dropout = cuda_dropout,
    .ingest_create = cuda_ingest_create,
    .ingest_free = cuda_ingest_free,
    .ingest_run = cuda_ingest_run,
    .loss_create = cuda_loss_create,
    .loss_free = cuda_loss_free,
    .loss_run = cuda_loss_run,
    .check_gradients = cuda_check_gradients,
    .sgd_step = cuda_sgd_step,
    .end_update = cuda_end_update,
    .move_average = cuda_move_average,
    .lower = cuda_lower,
    .get_loss_scale = cuda_get_loss_scale,
    .set_loss_scale = cuda_set_loss_scale,
};
