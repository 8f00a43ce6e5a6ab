/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Sums over cards by NCCL.
 *
 * The communicator is joined at the first sum, not when the device is opened: then all ranks are
 * known to have come as far. That is never in a recording, as a network's first step isn't
 * recorded.
 *
 * In a recording (stream capture) NCCL wants that all ranks record the same calls and replay them
 * alike, which networks do: one that is the same, with batches of the same size, on every rank. The
 * streams fork and join by events, so that what is recorded has one end.
 *
 * When a rank is lost, the others' cards would wait in a kernel for ever, and with them whoever
 * waits for the card. So a thread looks twice a second at what NCCL and the world know, and aborts
 * the communicator: kernels end, calls fail from then on, and dl2_gpu_reducer_check() says why.
 * NCCL's abort returns only when the last recording with sums of the communicator is freed. So the
 * thread waits there without the mutex, while the main thread learns why and frees them.
 * If the main thread is inside NCCL at that moment, the launcher ends this process.
 */
#include "common/memory.h"
#include "cuda/gpu.h"
#include "cuda/reducer.h"

#include <nccl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define LOOK_NANOS 500000000

struct dl2_gpu_reducer {
    const struct dl2_world *world;
    cudaStream_t stream;
    cudaEvent_t ready, done;
    pthread_mutex_t mutex; /* for what follows, and for being inside NCCL */
    pthread_cond_t closing_changed;
    ncclComm_t comm; /* NULL before the first sum, and when it was aborted */
    pthread_t guard;
    bool guarded, closing;
    struct dl2_error failure;
};

const char *dl2_gpu_reducer_version(void)
{
    static char text[32];
    int version = 0;
    if (!text[0] && ncclGetVersion(&version) == ncclSuccess)
        snprintf(text, sizeof text, "NCCL %d.%d.%d", version / 10000, version / 100 % 100,
                 version % 100);
    return text;
}

/* `comm` may be NULL. */
static int check(ncclResult_t result, const char *call, ncclComm_t comm, struct dl2_error *error)
{
    if (result == ncclSuccess)
        return DL2_OK;
    const char *details = ncclGetLastError(comm);
    return dl2_error_set(
        error, DL2_ERR_SYSTEM,
        "%s: %s%s%s%s; each rank needs a card of its own, and NCCL_DEBUG=INFO says "
        "more",
        call, ncclGetErrorString(result), details && *details ? " (" : "", details ? details : "",
        details && *details ? ")" : "");
}

/* -- the guard -- */

/* Call with the mutex held. Looks for a failure that NCCL found asynchronously. */
static int look(const struct dl2_gpu_reducer *reducer, struct dl2_error *error)
{
    const struct dl2_world *world = reducer->world;
    ncclResult_t behind = ncclSuccess;
    DL2_TRY(check(ncclCommGetAsyncError(reducer->comm, &behind), "ncclCommGetAsyncError",
                  reducer->comm, error));
    if (behind != ncclInProgress)
        DL2_TRY(check(behind, "adding up gradients over cards", reducer->comm, error));
    if (world->ops->broken && world->ops->broken(world))
        return dl2_error_set(error, DL2_ERR_CANCELED, "another rank has ended before its time");
    return DL2_OK;
}

/* Call with the mutex held; the abort itself runs without it. */
static void give_up(struct dl2_gpu_reducer *reducer, const struct dl2_error *reason)
{
    const ncclComm_t comm = reducer->comm;
    if (!reducer->failure.status)
        reducer->failure = *reason;
    reducer->comm = NULL;
    pthread_mutex_unlock(&reducer->mutex);
    ncclCommAbort(comm);
    pthread_mutex_lock(&reducer->mutex);
}

/* Until when the guard sleeps. */
static struct timespec next_look(void)
{
    struct timespec at;
    clock_gettime(CLOCK_REALTIME, &at);
    at.tv_nsec += LOOK_NANOS;
    at.tv_sec += at.tv_nsec / 1000000000;
    at.tv_nsec %= 1000000000;
    return at;
}

/* It waits for nothing but its own condition: the mutex is free unless somebody is inside NCCL. */
static void *guard(void *context)
{
    struct dl2_gpu_reducer *reducer = context;
    pthread_mutex_lock(&reducer->mutex);
    while (!reducer->closing && reducer->comm) {
        const struct timespec at = next_look();
        struct dl2_error error = DL2_ERROR_INIT;
        pthread_cond_timedwait(&reducer->closing_changed, &reducer->mutex, &at);
        if (!reducer->closing && reducer->comm && look(reducer, &error) < 0)
            give_up(reducer, &error);
    }
    pthread_mutex_unlock(&reducer->mutex);
    return NULL;
}

/* -- joining -- */

/* Call with the mutex held. The world broadcasts rank 0's name for the communicator. */
static int join(struct dl2_gpu_reducer *reducer, struct dl2_error *error)
{
    const struct dl2_world *world = reducer->world;
    ncclUniqueId id;
    int status = DL2_OK;
    memset(&id, 0, sizeof id);
    if (world->rank == 0)
        status = check(ncclGetUniqueId(&id), "ncclGetUniqueId", NULL, error);
    DL2_TRY(dl2_world_agree(world, status, error));
    DL2_TRY(world->ops->broadcast(world, 0, &id, sizeof id, error));
    DL2_TRY(check(ncclCommInitRank(&reducer->comm, (int)world->size, id, (int)world->rank),
                  "ncclCommInitRank", NULL, error));
    const int reason = pthread_create(&reducer->guard, NULL, guard, reducer);
    if (reason)
        return dl2_error_set(error, DL2_ERR_SYSTEM, "can't start a thread beside NCCL: %s",
                             strerror(reason));
    reducer->guarded = true;
    return DL2_OK;
}

int dl2_gpu_reducer_open(const struct dl2_world *world, struct dl2_gpu_reducer **out,
                         struct dl2_error *error)
{
    struct dl2_gpu_reducer *reducer = dl2_calloc(1, sizeof *reducer);
    *out = NULL;
    if (!reducer)
        return dl2_error_set(error, DL2_ERR_MEMORY, "no memory to add up gradients");
    reducer->world = world;
    pthread_mutex_init(&reducer->mutex, NULL);
    pthread_cond_init(&reducer->closing_changed, NULL);
    int least, greatest;
    int status = dl2_gpu_check(cudaDeviceGetStreamPriorityRange(&least, &greatest),
                               "cudaDeviceGetStreamPriorityRange", error);
    /* Sums go before what computes meanwhile: others wait for them. */
    if (status == DL2_OK)
        status = dl2_gpu_check(
            cudaStreamCreateWithPriority(&reducer->stream, cudaStreamNonBlocking, greatest),
            "cudaStreamCreateWithPriority", error);
    if (status == DL2_OK)
        status = dl2_gpu_check(cudaEventCreateWithFlags(&reducer->ready, cudaEventDisableTiming),
                               "cudaEventCreateWithFlags", error);
    if (status == DL2_OK)
        status = dl2_gpu_check(cudaEventCreateWithFlags(&reducer->done, cudaEventDisableTiming),
                               "cudaEventCreateWithFlags", error);
    if (status < 0) {
        dl2_gpu_reducer_close(reducer);
        return status;
    }
    *out = reducer;
    return DL2_OK;
}

void dl2_gpu_reducer_close(struct dl2_gpu_reducer *reducer)
{
    if (!reducer)
        return;
    pthread_mutex_lock(&reducer->mutex);
    reducer->closing = true;
    pthread_cond_signal(&reducer->closing_changed);
    pthread_mutex_unlock(&reducer->mutex);
    if (reducer->guarded)
        pthread_join(reducer->guard, NULL);
    if (reducer->comm && reducer->failure.status)
        ncclCommAbort(reducer->comm); /* the others may not come to destroy theirs */
    else if (reducer->comm)
        ncclCommDestroy(reducer->comm);
    if (reducer->done)
        cudaEventDestroy(reducer->done);
    if (reducer->ready)
        cudaEventDestroy(reducer->ready);
    if (reducer->stream)
        cudaStreamDestroy(reducer->stream);
    pthread_cond_destroy(&reducer->closing_changed);
    pthread_mutex_destroy(&reducer->mutex);
    free(reducer);
}

/* -- sums -- */

/* Call with the mutex held. */
static int failed(const struct dl2_gpu_reducer *reducer, struct dl2_error *error)
{
    const struct dl2_error *failure = &reducer->failure;
    return failure->status ? dl2_error_set(error, failure->status, "%s", failure->message) : DL2_OK;
}

/* Call with the mutex held. */
static int add(struct dl2_gpu_reducer *reducer, float *data, size_t count, cudaStream_t stream,
               struct dl2_error *error)
{
    DL2_TRY(failed(reducer, error));
    if (!reducer->comm)
        DL2_TRY(join(reducer, error));
    DL2_TRY(dl2_gpu_check(cudaEventRecord(reducer->ready, stream), "cudaEventRecord", error));
    DL2_TRY(dl2_gpu_check(cudaStreamWaitEvent(reducer->stream, reducer->ready, 0),
                          "cudaStreamWaitEvent", error));
    return check(
        ncclAllReduce(data, data, count, ncclFloat, ncclSum, reducer->comm, reducer->stream),
        "ncclAllReduce", reducer->comm, error);
}

int dl2_gpu_reducer_add(struct dl2_gpu_reducer *reducer, float *data, size_t count,
                        cudaStream_t stream, struct dl2_error *error)
{
    struct dl2_error own = DL2_ERROR_INIT;
    pthread_mutex_lock(&reducer->mutex);
    int status = add(reducer, data, count, stream, &own);
    if (status < 0 && !reducer->failure.status)
        reducer->failure = own;
    pthread_mutex_unlock(&reducer->mutex);
    return status < 0 ? dl2_error_set(error, own.status, "%s", own.message) : DL2_OK;
}

int dl2_gpu_reducer_wait(struct dl2_gpu_reducer *reducer, cudaStream_t stream,
                         struct dl2_error *error)
{
    DL2_TRY(
        dl2_gpu_check(cudaEventRecord(reducer->done, reducer->stream), "cudaEventRecord", error));
    return dl2_gpu_check(cudaStreamWaitEvent(stream, reducer->done, 0), "cudaStreamWaitEvent",
                         error);
}

int dl2_gpu_reducer_check(struct dl2_gpu_reducer *reducer, struct dl2_error *error)
{
    if (!reducer)
        return DL2_OK;
    pthread_mutex_lock(&reducer->mutex);
    int status = failed(reducer, error);
    pthread_mutex_unlock(&reducer->mutex);
    return status;
}
