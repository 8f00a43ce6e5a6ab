/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The cuda device. cuDNN does convolutions (device_conv.c) and attention of 16 bits, cublasLt
 * linear layers (device_linear.c) and other attention (device_attention.c), and our own kernels
 * what is bound by memory (device_norm.c, device_kernels.c). Everything is queued on one stream, in
 * order; uploads go on a second one beside it, tied to the first by events (see upload()). A
 * recording is a CUDA graph of the first stream.
 *
 * DL2_CUDA_GRAPHS=off does without recordings. DL2_CUDA_PLAN_CACHE and DL2_CUDA_PLANS name files:
 * plan_files.h. DL2_CUDA_TIMES names another, for the times of a step's parts, which then is not
 * recorded: step_times.h. DL2_CUDA_PROFILE=N leaves N batches out and shows a
 * profiler that waits for it (ncu --profile-from-start off) what is done for the one after them,
 * and so none of what was measured to choose convolutions.
 *
 * Scratch (a workspace for libraries, partial sums, gradients of weights before they are widened,
 * attention's scores) belongs to the device and is shared by all its plans, since one call runs
 * after the other.
 */
#include "cuda/device_cuda.h"

#include "common/memory.h"
#include "cuda/cudnn_choice.h"
#include "cuda/gpu.h"
#include "cuda/kernels.h"
#include "cuda/matmul.h"
#include "cuda/step_times.h"

#include <cuda_profiler_api.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Memory that alloc() returned. */
struct block {
    void *memory;
    size_t size;
    struct block *next;
};

struct dl2_ingest {
    struct dl2_device_plan plan;
    struct cuda *cuda;
    struct dl2_ingest_shape s;
};

struct dl2_recording {
    struct cuda *cuda;
    cudaGraphExec_t graph;
};

/* -- memory of the card -- */

static int cuda_alloc(struct dl2_device *device, size_t bytes, void **out, struct dl2_error *error)
{
    struct cuda *cuda = (struct cuda *)device;
    void *memory;
    struct block *block = dl2_calloc(1, sizeof *block);
    if (!block)
        return dl2_cuda_out_of_memory(error, "tensors");
    int taken = dl2_cuda_acquire(cuda, bytes, "tensors", &memory, error);
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
    dl2_cuda_release(cuda, memory);
}

static void *cuda_host_alloc(struct dl2_device *device, size_t bytes)
{
    void *memory = NULL;
    if (dl2_gpu_use(device->number, NULL) < 0 || /* any thread may be this one */
        cudaHostAlloc(&memory, bytes ? bytes : 1, cudaHostAllocPortable) != cudaSuccess) {
        cudaGetLastError();
        return NULL;
    }
    return memory;
}

static void cuda_host_free(struct dl2_device *device, void *memory)
{
    if (memory && dl2_gpu_use(device->number, NULL) == DL2_OK)
        cudaFreeHost(memory);
}

static void cuda_upload(struct dl2_device *device, void *to, const void *from, size_t bytes)
{
    struct cuda *cuda = (struct cuda *)device;
    if (!has_not_failed(cuda))
        return;
    if (cuda->ingests > 1)
        dl2_cuda_note(cuda,
                      cudaStreamWaitEvent(cuda->uploads, cuda->ingested[cuda->ingests % 2], 0),
                      "cudaStreamWaitEvent", "upload");
    /* cudaMemcpyDefault: batches that were decoded on the card are there already. */
    dl2_cuda_note(cuda, cudaMemcpyAsync(to, from, bytes, cudaMemcpyDefault, cuda->uploads),
                  "cudaMemcpyAsync", "upload");
    dl2_cuda_note(cuda, cudaEventRecord(cuda->uploaded, cuda->uploads), "cudaEventRecord",
                  "upload");
    dl2_cuda_note(cuda, cudaStreamWaitEvent(cuda->stream, cuda->uploaded, 0), "cudaStreamWaitEvent",
                  "upload");
}

static void cuda_wait_uploads(struct dl2_device *device)
{
    struct cuda *cuda = (struct cuda *)device;
    /* Asleep, most of a step long: the loader needs the processor. */
    dl2_cuda_note(cuda, cudaEventSynchronize(cuda->uploaded), "cudaEventSynchronize", "upload");
}

static void cuda_zero(struct dl2_device *device, void *memory, size_t bytes)
{
    struct cuda *cuda = (struct cuda *)device;
    if (has_not_failed(cuda) && bytes)
        dl2_cuda_note(cuda, cudaMemsetAsync(memory, 0, bytes, cuda->stream), "cudaMemsetAsync",
                      "zero");
}

static void cuda_set_step_params(struct dl2_device *device, const struct dl2_step_params *params)
{
    struct cuda *cuda = (struct cuda *)device;
    device->params = *params;
    LAUNCH(cuda, "set_step_params", dl2_gpu_set_step_params(cuda->state, params, cuda->stream));
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
    int driver = 0;
    if (cudaGetDeviceProperties(&card, (int)cuda->base.number) != cudaSuccess ||
        cudaDriverGetVersion(&driver) != cudaSuccess) {
        cudaGetLastError();
        return json_object();
    }
    return json_pack("{s:s, s:s, s:I, s:i, s:f, s:f, s:s, s:b}", "name", card.name, "pci",
                     cuda->base.pci, "memory_bytes", (json_int_t)card.totalGlobalMem,
                     "multiprocessors", card.multiProcessorCount, "compute_capability",
                     card.major + 0.1 * card.minor, "driver_cuda",
                     driver / 1000 + 0.1 * (driver % 1000 / 10), "precision",
                     dl2_precision_name(cuda->precision), "deterministic", cuda->deterministic);
}

static void cuda_save_times(struct cuda *cuda)
{
    struct dl2_error error = DL2_ERROR_INIT;
    if (cuda->times && dl2_world_rank(cuda->base.world) == 0 &&
        dl2_step_times_save(cuda->times, &error) < 0)
        dl2_cuda_tell(cuda, "no times of steps (DL2_CUDA_TIMES): %s", error.message);
    dl2_step_times_close(cuda->times);
}

static void cuda_mark(struct dl2_device *device, const char *layer, const char *what)
{
    struct cuda *cuda = (struct cuda *)device;
    if (cuda->times && has_not_failed(cuda))
        library(cuda,
                dl2_step_times_mark(cuda->times, cuda->stream, layer, what, &cuda->base.failure));
}

static void cuda_close(struct dl2_device *device)
{
    struct cuda *cuda = (struct cuda *)device;
    if (!cuda)
        return;
    if (cuda->stream)
        cudaStreamSynchronize(cuda->stream);
    dl2_gpu_reducer_close(cuda->reducer);
    dl2_cudnn_choices_forget(cuda);
    dl2_plan_files_close(&cuda->files);
    cuda_save_times(cuda);
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
    cudaFree(cuda->scores.memory);
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

static int cuda_start_state(struct cuda *cuda, double loss_scale, struct dl2_error *error)
{
    bool scales = cuda->precision == DL2_PRECISION_FP16;
    struct dl2_gpu_state state = {.dynamic = scales && !(loss_scale > 0)};
    state.loss_scale.scale = !scales ? 1 : state.dynamic ? FIRST_DYNAMIC_SCALE : loss_scale;
    DL2_TRY(dl2_cuda_acquire(cuda, sizeof *cuda->state, "its state", &cuda->state, error));
    DL2_TRY(dl2_gpu_check(
        cudaMemcpyAsync(cuda->state, &state, sizeof state, cudaMemcpyHostToDevice, cuda->stream),
        "cudaMemcpyAsync", error));
    return dl2_gpu_check(cudaStreamSynchronize(cuda->stream), "cudaStreamSynchronize", error);
}

static int cuda_start(struct cuda *cuda, const struct dl2_device_options *options,
                      struct dl2_error *error)
{
    DL2_TRY(dl2_gpu_use(cuda->base.number, error));
    struct cudaDeviceProp card;
    DL2_TRY(dl2_gpu_check(cudaGetDeviceProperties(&card, (int)cuda->base.number),
                          "cudaGetDeviceProperties", error));
    if (cudaDeviceGetPCIBusId(cuda->base.pci, sizeof cuda->base.pci, (int)cuda->base.number) !=
        cudaSuccess) {
        cuda->base.pci[0] = '\0';
        cudaGetLastError();
    }
    if (card.major < 8 &&
        (cuda->precision == DL2_PRECISION_BF16 || cuda->precision == DL2_PRECISION_TF32))
        return dl2_error_set(error, DL2_ERR_UNSUPPORTED,
                             "%s (compute capability %d.%d) has no %s, which began with 8.0: use "
                             "--amp fp16 or off",
                             card.name, card.major, card.minor,
                             dl2_precision_name(cuda->precision));
    cuda->workspace_limit =
        card.totalGlobalMem / 32 < (size_t)1 << 30 ? card.totalGlobalMem / 32 : (size_t)1 << 30;
    cuda->l2_bytes = card.l2CacheSize > 0 ? (size_t)card.l2CacheSize : 0;
    DL2_TRY(dl2_plan_files_open(card.name, &cuda->files, error));
    DL2_TRY(dl2_step_times_open(card.name, &cuda->times, error));
    cuda->graphs = cuda->graphs && !cuda->times;
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
    return cuda_start_state(cuda, options ? options->loss_scale : 0, error);
}

extern const struct dl2_device_class dl2_device_cuda;

static int cuda_open(const struct dl2_device_options *options, struct dl2_device **out,
                     struct dl2_error *error)
{
    struct cuda *cuda = dl2_calloc(1, sizeof *cuda);
    if (!cuda)
        return dl2_cuda_out_of_memory(error, "itself");
    cuda->base.ops = &dl2_device_cuda;
    cuda->base.staging = 2;
    const char *graphs = getenv("DL2_CUDA_GRAPHS");
    cuda->graphs = !graphs || strcmp(graphs, "off") != 0;
    const char *profiled = getenv("DL2_CUDA_PROFILE");
    cuda->profiled = profiled ? strtoull(profiled, NULL, 10) : 0;
    if (options) {
        cuda->base.number = options->number;
        cuda->precision = options->precision;
        cuda->deterministic = options->deterministic;
        cuda->note = options->note;
        cuda->note_context = options->note_context;
        cuda->base.world = options->world;
    }
    cuda->ranks = dl2_world_size(cuda->base.world);
    cuda->base.element = cuda->precision == DL2_PRECISION_BF16   ? DL2_ELEMENT_BF16
                         : cuda->precision == DL2_PRECISION_FP16 ? DL2_ELEMENT_F16
                                                                 : DL2_ELEMENT_F32;
    int status = cuda_start(cuda, options, error);
    if (status < 0) {
        dl2_error_prefix(error, "device cuda:%u", cuda->base.number);
        cuda_close(&cuda->base);
        return status;
    }
    *out = &cuda->base;
    return DL2_OK;
}

/*
 * -- recording --
 * While a stream is captured nothing runs; the graph does it all once record_end() launches it. So
 * where capture fails nothing is lost: the device stops recording, and the caller's calls run.
 */

static void cuda_stop_recording(struct cuda *cuda)
{
    const struct dl2_error reason = cuda->base.failure;
    dl2_error_clear(&cuda->base.failure);
    /* A card that faulted says so in whatever call comes next: recording is not to blame. */
    dl2_cuda_note(cuda, cudaStreamSynchronize(cuda->stream), "cudaStreamSynchronize",
                  "before a step was recorded");
    if (!has_not_failed(cuda))
        return;
    cuda->graphs = false;
    dl2_cuda_tell(cuda,
                  "steps cannot be recorded (%s) and run call by call: slower, with the same "
                  "results",
                  reason.message);
}

static bool cuda_record_begin(struct dl2_device *device)
{
    struct cuda *cuda = (struct cuda *)device;
    if (!cuda->graphs || !has_not_failed(cuda))
        return false;
    struct dl2_recording *recording = dl2_calloc(1, sizeof *recording);
    if (!recording)
        return false;
    recording->cuda = cuda;
    /* Other threads may go on allocating pinned memory. */
    dl2_cuda_note(cuda, cudaStreamBeginCapture(cuda->stream, cudaStreamCaptureModeThreadLocal),
                  "cudaStreamBeginCapture", NULL);
    if (!has_not_failed(cuda)) {
        cuda_stop_recording(cuda);
        free(recording);
        return false;
    }
    cuda->recording = recording;
    return true;
}

static void cuda_replay(struct dl2_recording *recording)
{
    struct cuda *cuda = recording->cuda;
    if (has_not_failed(cuda))
        dl2_cuda_note(cuda, cudaGraphLaunch(recording->graph, cuda->stream), "cudaGraphLaunch",
                      "a recorded step");
}

static struct dl2_recording *cuda_record_end(struct dl2_device *device)
{
    struct cuda *cuda = (struct cuda *)device;
    struct dl2_recording *recording = cuda->recording;
    if (!recording)
        return NULL;
    cuda->recording = NULL;
    cudaGraph_t graph = NULL;
    /* The capture ends also where a call in it has failed; that failure comes first. */
    dl2_cuda_note(cuda, cudaStreamEndCapture(cuda->stream, &graph), "cudaStreamEndCapture", NULL);
    cudaGetLastError();
    if (has_not_failed(cuda))
        dl2_cuda_note(cuda, cudaGraphInstantiate(&recording->graph, graph, 0),
                      "cudaGraphInstantiate", NULL);
    if (graph)
        cudaGraphDestroy(graph);
    cuda_replay(recording);
    if (!has_not_failed(cuda)) {
        cuda_stop_recording(cuda);
        if (recording->graph)
            cudaGraphExecDestroy(recording->graph);
        free(recording);
        return NULL;
    }
    cuda->recordings++;
    return recording;
}

static void cuda_recording_free(struct dl2_recording *recording)
{
    if (!recording)
        return;
    struct cuda *cuda = recording->cuda;
    dl2_cuda_note(cuda, cudaStreamSynchronize(cuda->stream), "cudaStreamSynchronize", NULL);
    dl2_cuda_note(cuda, cudaGraphExecDestroy(recording->graph), "cudaGraphExecDestroy", NULL);
    cuda->recordings--;
    free(recording);
}

/* -- ingest: uploads wait for its events, a profiler begins with it -- */

static int cuda_ingest_create(struct dl2_device *device, const struct dl2_ingest_shape *shape,
                              struct dl2_ingest **out, struct dl2_error *error)
{
    struct dl2_ingest *ingest = dl2_calloc(1, sizeof *ingest);
    if (!ingest)
        return dl2_cuda_out_of_memory(error, "ingest");
    ingest->plan.free = free;
    ingest->cuda = (struct cuda *)device;
    ingest->s = *shape;
    *out = ingest;
    return DL2_OK;
}

static void cuda_ingest_run(struct dl2_ingest *ingest, const void *images, const uint32_t *partner,
                            void *y)
{
    struct cuda *cuda = ingest->cuda;
    if (!has_not_failed(cuda))
        return;
    if (cuda->profiled && cuda->ingests == cuda->profiled)
        dl2_cuda_note(cuda, cudaProfilerStart(), "cudaProfilerStart", NULL);
    else if (cuda->profiled && cuda->ingests == cuda->profiled + 1)
        dl2_cuda_note(cuda, cudaProfilerStop(), "cudaProfilerStop", NULL);
    if (cuda->times)
        library(cuda, dl2_step_times_begin(cuda->times, cuda->stream, &cuda->base.failure));
    LAUNCH(cuda, "ingest",
           dl2_gpu_ingest(cuda->base.element, &ingest->s, images, partner, y, cuda->state,
                          cuda->stream));
    dl2_cuda_note(cuda, cudaEventRecord(cuda->ingested[cuda->ingests++ % 2], cuda->stream),
                  "cudaEventRecord", "ingest");
    cuda_mark(&cuda->base, "", "ingest");
}

/* clang-format off */
#define CUDA_ROW(name) .name = dl2_cuda_##name,
const struct dl2_device_class dl2_device_cuda = {
    .name = "cuda",
    .summary = "cuDNN, cuBLAS and kernels of our own on an NVIDIA card",
    .version = cuda_version,
    .is_card = true,
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
    .zero = cuda_zero,
    .set_step_params = cuda_set_step_params,
    .record_begin = cuda_record_begin,
    .record_end = cuda_record_end,
    .replay = cuda_replay,
    .recording_free = cuda_recording_free,
    .mark = cuda_mark,
    .ingest_create = cuda_ingest_create,
    .ingest_run = cuda_ingest_run,
    DL2_CUDA_METHODS(CUDA_ROW)
};
/* clang-format on */
