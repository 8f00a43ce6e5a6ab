/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The fake CUDA (fake_cuda.h) for programs with threads that use it: its functions one at a time.
 * A capture hinders the memory calls of the thread that began it alone
 * (cudaStreamCaptureModeThreadLocal).
 */
#define DL2_FAKE_THREADS
#define cudaStreamCreateWithFlags    unlocked_cudaStreamCreateWithFlags
#define cudaStreamCreateWithPriority unlocked_cudaStreamCreateWithPriority
#define cudaStreamDestroy            unlocked_cudaStreamDestroy
#define cudaStreamSynchronize        unlocked_cudaStreamSynchronize
#define cudaStreamWaitEvent          unlocked_cudaStreamWaitEvent
#define cudaStreamBeginCapture       unlocked_cudaStreamBeginCapture
#define cudaStreamEndCapture         unlocked_cudaStreamEndCapture
#define cudaEventCreate              unlocked_cudaEventCreate
#define cudaEventCreateWithFlags     unlocked_cudaEventCreateWithFlags
#define cudaEventDestroy             unlocked_cudaEventDestroy
#define cudaEventRecord              unlocked_cudaEventRecord
#define cudaEventSynchronize         unlocked_cudaEventSynchronize
#define cudaEventElapsedTime         unlocked_cudaEventElapsedTime
#define cudaGraphInstantiate         unlocked_cudaGraphInstantiate
#define cudaGraphDestroy             unlocked_cudaGraphDestroy
#define cudaGraphExecDestroy         unlocked_cudaGraphExecDestroy
#define cudaGraphLaunch              unlocked_cudaGraphLaunch
#undef cudaMalloc
#define cudaMalloc       unlocked_cudaMalloc
#define cudaFree         unlocked_cudaFree
#define cudaMallocAsync  unlocked_cudaMallocAsync
#define cudaFreeAsync    unlocked_cudaFreeAsync
#define cudaHostAlloc    unlocked_cudaHostAlloc
#define cudaFreeHost     unlocked_cudaFreeHost
#define cudaMemcpyAsync  unlocked_cudaMemcpyAsync
#define cudaMemsetAsync  unlocked_cudaMemsetAsync
#define cudaMemcpy       unlocked_cudaMemcpy
#define cudaGetLastError unlocked_cudaGetLastError
#define dl2_fake_queue   unlocked_dl2_fake_queue
#include "tests/cuda/fake_threads.h"
#include "tests/cuda/fake_cuda.c"
#undef cudaStreamCreateWithFlags
#undef cudaStreamCreateWithPriority
#undef cudaStreamDestroy
#undef cudaStreamSynchronize
#undef cudaStreamWaitEvent
#undef cudaStreamBeginCapture
#undef cudaStreamEndCapture
#undef cudaEventCreate
#undef cudaEventCreateWithFlags
#undef cudaEventDestroy
#undef cudaEventRecord
#undef cudaEventSynchronize
#undef cudaEventElapsedTime
#undef cudaGraphInstantiate
#undef cudaGraphDestroy
#undef cudaGraphExecDestroy
#undef cudaGraphLaunch
#undef cudaMalloc
#undef cudaFree
#undef cudaMallocAsync
#undef cudaFreeAsync
#undef cudaHostAlloc
#undef cudaFreeHost
#undef cudaMemcpyAsync
#undef cudaMemsetAsync
#undef cudaMemcpy
#undef cudaGetLastError
#undef dl2_fake_queue

#include <pthread.h>

static pthread_mutex_t one = PTHREAD_MUTEX_INITIALIZER;
static _Thread_local bool captures; /* this thread does */

void dl2_fake_queue(struct CUstream_st *stream, void (*run)(void *call), void *call, size_t size);
void dl2_fake_queue(struct CUstream_st *stream, void (*run)(void *call), void *call, size_t size)
{
    pthread_mutex_lock(&one);
    unlocked_dl2_fake_queue(stream, run, call, size);
    pthread_mutex_unlock(&one);
}

void dl2_fake_at_once(void (*run)(void *call), void *call)
{
    pthread_mutex_lock(&one);
    run(call);
    pthread_mutex_unlock(&one);
}

#define LOCKED(name, parameters, arguments)                                                        \
    cudaError_t name parameters;                                                                   \
    cudaError_t name parameters                                                                    \
    {                                                                                              \
        pthread_mutex_lock(&one);                                                                  \
        const cudaError_t status = unlocked_##name arguments;                                      \
        if (dl2_emulate_queue)                                                                     \
            dl2_emulate_queue = dl2_fake_queue;                                                    \
        pthread_mutex_unlock(&one);                                                                \
        return status;                                                                             \
    }

LOCKED(cudaStreamCreateWithFlags, (cudaStream_t * out, unsigned flags), (out, flags))
LOCKED(cudaStreamCreateWithPriority, (cudaStream_t * out, unsigned flags, int priority),
       (out, flags, priority))
LOCKED(cudaStreamDestroy, (cudaStream_t stream), (stream))
LOCKED(cudaStreamSynchronize, (cudaStream_t stream), (stream))
LOCKED(cudaStreamWaitEvent, (cudaStream_t stream, cudaEvent_t event, unsigned flags),
       (stream, event, flags))
LOCKED(cudaStreamBeginCapture, (cudaStream_t stream, enum cudaStreamCaptureMode mode),
       (stream, (captures = true, mode)))
LOCKED(cudaStreamEndCapture, (cudaStream_t stream, cudaGraph_t *out),
       (stream, (captures = false, out)))
LOCKED(cudaEventCreate, (cudaEvent_t * out), (out))
LOCKED(cudaEventCreateWithFlags, (cudaEvent_t * out, unsigned flags), (out, flags))
LOCKED(cudaEventDestroy, (cudaEvent_t event), (event))
LOCKED(cudaEventRecord, (cudaEvent_t event, cudaStream_t stream), (event, stream))
LOCKED(cudaEventSynchronize, (cudaEvent_t event), (event))
LOCKED(cudaEventElapsedTime, (float *ms, cudaEvent_t begin, cudaEvent_t end), (ms, begin, end))
LOCKED(cudaGraphInstantiate, (cudaGraphExec_t * out, cudaGraph_t graph, unsigned long long flags),
       (out, graph, flags))
LOCKED(cudaGraphDestroy, (cudaGraph_t graph), (graph))
LOCKED(cudaGraphExecDestroy, (cudaGraphExec_t graph), (graph))
LOCKED(cudaGraphLaunch, (cudaGraphExec_t graph, cudaStream_t stream), (graph, stream))
LOCKED(cudaMemcpyAsync,
       (void *to, const void *from, size_t size, enum cudaMemcpyKind kind, cudaStream_t stream),
       (to, from, size, kind, stream))
LOCKED(cudaMemsetAsync, (void *to, int value, size_t size, cudaStream_t stream),
       (to, value, size, stream))
LOCKED(cudaGetLastError, (void), ())

/* ---- memory ---- */

enum { MAX_STREAMS = 64 };

/* Others' captures, put away. */
static void hide(struct CUgraph_st **kept)
{
    unsigned n = 0;
    for (struct CUstream_st *s = streams; s; s = s->next) {
        if (n == MAX_STREAMS)
            give_up("too many streams");
        kept[n++] = s->capture;
        s->capture = captures ? s->capture : NULL;
    }
}

static void show(struct CUgraph_st *const *kept)
{
    for (struct CUstream_st *s = streams; s; s = s->next)
        s->capture = *kept++;
}

#define OF_MEMORY(name, parameters, arguments)                                                     \
    cudaError_t name parameters;                                                                   \
    cudaError_t name parameters                                                                    \
    {                                                                                              \
        struct CUgraph_st *kept[MAX_STREAMS];                                                      \
        pthread_mutex_lock(&one);                                                                  \
        hide(kept);                                                                                \
        const cudaError_t status = unlocked_##name arguments;                                      \
        show(kept);                                                                                \
        pthread_mutex_unlock(&one);                                                                \
        return status;                                                                             \
    }

OF_MEMORY(cudaMalloc, (void **out, size_t size), (out, size))
OF_MEMORY(cudaFree, (void *at), (at))
OF_MEMORY(cudaMallocAsync, (void **out, size_t size, cudaStream_t stream), (out, size, stream))
LOCKED(cudaFreeAsync, (void *at, cudaStream_t stream), (at, stream))
OF_MEMORY(cudaHostAlloc, (void **out, size_t size, unsigned flags), (out, size, flags))
OF_MEMORY(cudaFreeHost, (void *at), (at))

bool dl2_fake_on_card(const void *at, size_t size)
{
    const struct memory *memory = find(at, size);
    return memory && !memory->pinned;
}

/* Waits for no other stream, as those here are. */
cudaError_t cudaMemcpy(void *to, const void *from, size_t size, enum cudaMemcpyKind kind);
cudaError_t cudaMemcpy(void *to, const void *from, size_t size, enum cudaMemcpyKind kind)
{
    cudaError_t status = cudaErrorInvalidValue;
    pthread_mutex_lock(&one);
    if (kind == cudaMemcpyDeviceToHost && dl2_fake_on_card(from, size)) {
        memcpy(to, from, size);
        status = cudaSuccess;
    }
    pthread_mutex_unlock(&one);
    return status;
}
