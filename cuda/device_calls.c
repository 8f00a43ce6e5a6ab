/* SPDX-License-Identifier: BSD-2-Clause */
/* Functions that the layers of the cuda device call: errors, memory of the card, and methods of the
 * device. */
#include "cuda/device_cuda.h"

#include "common/memory.h"
#include "cuda/gpu.h"
#include "cuda/kernels.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* -- errors -- */

void dl2_cuda_note(struct cuda *cuda, cudaError_t status, const char *call, const char *what)
{
    if (status == cudaSuccess || !has_not_failed(cuda))
        return;
    cudaGetLastError(); /* else the next call that looks would report it again */
    dl2_gpu_check(status, call, &cuda->base.failure);
    if (what)
        dl2_error_prefix(&cuda->base.failure, "%s", what);
    dl2_error_prefix(&cuda->base.failure, "device cuda");
}

int dl2_cuda_out_of_memory(struct dl2_error *error, const char *what)
{
    return dl2_error_set(error, DL2_ERR_MEMORY, "device cuda: out of memory for %s", what);
}

void dl2_cuda_tell(const struct cuda *cuda, const char *format, ...)
{
    char text[1024];
    const int begin = snprintf(text, sizeof text, "device cuda: ");
    va_list args;
    if (!cuda->note)
        return;
    va_start(args, format);
    vsnprintf(text + begin, sizeof text - (size_t)begin, format, args);
    va_end(args);
    cuda->note(cuda->note_context, text);
}

/* -- memory of the card -- */

/* Activations, which grow with the batch, are nearly all there is. */
static int cuda_card_is_full(struct cuda *cuda, size_t bytes, const char *what,
                             struct dl2_error *error)
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

int dl2_cuda_acquire(struct cuda *cuda, size_t bytes, const char *what, void *out,
                     struct dl2_error *error)
{
    void *memory = NULL;
    cudaError_t status = cudaMalloc(&memory, bytes ? bytes : 1);
    if (status == cudaErrorMemoryAllocation) {
        cudaGetLastError();
        return cuda_card_is_full(cuda, bytes, what, error);
    }
    DL2_TRY(dl2_gpu_check(status, "device cuda: cudaMalloc", error));
    memcpy(out, &memory, sizeof memory);
    return DL2_OK;
}

void dl2_cuda_release(struct cuda *cuda, void *memory)
{
    if (memory)
        dl2_cuda_note(cuda, cudaFree(memory), "cudaFree", NULL);
}

int dl2_cuda_grow(struct cuda *cuda, struct area *area, size_t bytes, const char *what,
                  struct dl2_error *error)
{
    if (bytes <= area->size)
        return DL2_OK;
    void *memory;
    if (cuda->recordings) {
        struct retired *old = dl2_calloc(1, sizeof *old);
        if (!old)
            return dl2_cuda_out_of_memory(error, what);
        *old = (struct retired){area->memory, cuda->retired};
        cuda->retired = old;
    } else {
        dl2_cuda_release(cuda, area->memory); /* waits for what still uses it */
    }
    *area = (struct area){0};
    DL2_TRY(dl2_cuda_acquire(cuda, bytes, what, &memory, error));
    *area = (struct area){memory, bytes};
    return DL2_OK;
}

int dl2_cuda_grow_partials(struct cuda *cuda, unsigned channels, struct dl2_error *error)
{
    return dl2_cuda_grow(cuda, &cuda->partials, dl2_gpu_partials(channels) * sizeof(float),
                         "partial sums", error);
}

/* -- methods that layers use, too -- */

int dl2_cuda_sync(struct dl2_device *device, struct dl2_error *error)
{
    struct cuda *cuda = (struct cuda *)device;
    dl2_cuda_note(cuda, cudaStreamSynchronize(cuda->uploads), "cudaStreamSynchronize", "upload");
    dl2_cuda_note(cuda, cudaStreamSynchronize(cuda->stream), "cudaStreamSynchronize", NULL);
    if (has_not_failed(cuda))
        dl2_gpu_reducer_check(cuda->reducer, &device->failure);
    int status = device->failure.status;
    if (status)
        dl2_error_set(error, device->failure.status, "%s", device->failure.message);
    dl2_error_clear(&device->failure);
    return status;
}

int dl2_cuda_download(struct dl2_device *device, void *to, const void *from, size_t bytes,
                      struct dl2_error *error)
{
    struct cuda *cuda = (struct cuda *)device;
    if (has_not_failed(cuda))
        dl2_cuda_note(cuda, cudaMemcpyAsync(to, from, bytes, cudaMemcpyDeviceToHost, cuda->stream),
                      "cudaMemcpyAsync", "download");
    return dl2_cuda_sync(device, error);
}

void dl2_cuda_copy(struct dl2_device *device, void *to, const void *from, size_t bytes)
{
    struct cuda *cuda = (struct cuda *)device;
    if (has_not_failed(cuda) && bytes)
        dl2_cuda_note(cuda,
                      cudaMemcpyAsync(to, from, bytes, cudaMemcpyDeviceToDevice, cuda->stream),
                      "cudaMemcpyAsync", "copy");
}

void dl2_cuda_all_reduce(struct dl2_device *device, float *data, size_t count)
{
    struct cuda *cuda = (struct cuda *)device;
    if (has_not_failed(cuda))
        library(cuda,
                dl2_gpu_reducer_add(cuda->reducer, data, count, cuda->stream, &device->failure));
}

void dl2_cuda_all_reduce_wait(struct dl2_device *device)
{
    struct cuda *cuda = (struct cuda *)device;
    if (has_not_failed(cuda))
        library(cuda, dl2_gpu_reducer_wait(cuda->reducer, cuda->stream, &device->failure));
}
