/*
 * The fake CUDA (fake_cuda.c) for threads: its functions that cuda/decode.c uses, one at a time.
 */
#define DL2_FAKE_THREADS
#define cudaStreamCreateWithFlags unlocked_stream_create
#define cudaStreamDestroy         unlocked_stream_destroy
#define cudaStreamSynchronize     unlocked_stream_synchronize
#define cudaEventCreate           unlocked_event_create
#define cudaEventDestroy          unlocked_event_destroy
#define cudaEventRecord           unlocked_event_record
#define cudaEventElapsedTime      unlocked_event_elapsed
#undef cudaMalloc
#define cudaMalloc       unlocked_malloc
#define cudaFree         unlocked_free
#define cudaHostAlloc    unlocked_host_alloc
#define cudaFreeHost     unlocked_free_host
#define cudaMemcpyAsync  unlocked_memcpy_async
#define cudaMemcpy       unlocked_memcpy
#define cudaGetLastError unlocked_get_last_error
#define dl2_fake_queue   unlocked_fake_queue
#include "tests/cuda/fake_threads.h"
#include "tests/cuda/fake_cuda.c"
#undef cudaStreamCreateWithFlags
#undef cudaStreamDestroy
#undef cudaStreamSynchronize
#undef cudaEventCreate
#undef cudaEventDestroy
#undef cudaEventRecord
#undef cudaEventElapsedTime
#undef cudaMalloc
#undef cudaFree
#undef cudaHostAlloc
#undef cudaFreeHost
#undef cudaMemcpyAsync
#undef cudaMemcpy
#undef cudaGetLastError
#undef dl2_fake_queue

#include <pthread.h>

static pthread_mutex_t one = PTHREAD_MUTEX_INITIALIZER;

#define LOCKED(type, call)                                                                         \
    pthread_mutex_lock(&one);                                                                      \
    type status = call;                                                                            \
    pthread_mutex_unlock(&one);                                                                    \
    return status

void dl2_fake_queue(struct CUstream_st *stream, void (*run)(void *call), void *call, size_t size);
cudaError_t cudaStreamCreateWithFlags(cudaStream_t *out, unsigned flags);
cudaError_t cudaStreamDestroy(cudaStream_t stream);
cudaError_t cudaStreamSynchronize(cudaStream_t stream);
cudaError_t cudaEventCreate(cudaEvent_t *out);
cudaError_t cudaEventDestroy(cudaEvent_t event);
cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t stream);
cudaError_t cudaEventElapsedTime(float *ms, cudaEvent_t begin, cudaEvent_t end);
cudaError_t cudaMalloc(void **out, size_t size);
cudaError_t cudaFree(void *at);
cudaError_t cudaHostAlloc(void **out, size_t size, unsigned flags);
cudaError_t cudaFreeHost(void *at);
cudaError_t cudaMemcpyAsync(void *to, const void *from, size_t size, enum cudaMemcpyKind kind,
                            cudaStream_t stream);
cudaError_t cudaMemcpy(void *to, const void *from, size_t size, enum cudaMemcpyKind kind);
cudaError_t cudaGetLastError(void);

bool dl2_fake_on_card(const void *at, size_t size)
{
    const struct memory *memory = find(at, size); /* called from within a stream, so locked */
    return memory && !memory->pinned;
}

void dl2_fake_queue(struct CUstream_st *stream, void (*run)(void *call), void *call, size_t size)
{
    pthread_mutex_lock(&one);
    unlocked_fake_queue(stream, run, call, size);
    pthread_mutex_unlock(&one);
}

cudaError_t cudaStreamCreateWithFlags(cudaStream_t *out, unsigned flags)
{
    pthread_mutex_lock(&one);
    const cudaError_t status = unlocked_stream_create(out, flags);
    dl2_emulate_queue = dl2_fake_queue;
    pthread_mutex_unlock(&one);
    return status;
}

cudaError_t cudaStreamDestroy(cudaStream_t stream)
{
    LOCKED(cudaError_t, unlocked_stream_destroy(stream));
}

cudaError_t cudaStreamSynchronize(cudaStream_t stream)
{
    LOCKED(cudaError_t, unlocked_stream_synchronize(stream));
}

cudaError_t cudaEventCreate(cudaEvent_t *out)
{
    LOCKED(cudaError_t, unlocked_event_create(out));
}

cudaError_t cudaEventDestroy(cudaEvent_t event)
{
    LOCKED(cudaError_t, unlocked_event_destroy(event));
}

cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t stream)
{
    LOCKED(cudaError_t, unlocked_event_record(event, stream));
}

cudaError_t cudaEventElapsedTime(float *ms, cudaEvent_t begin, cudaEvent_t end)
{
    LOCKED(cudaError_t, unlocked_event_elapsed(ms, begin, end));
}

cudaError_t cudaMalloc(void **out, size_t size)
{
    LOCKED(cudaError_t, unlocked_malloc(out, size));
}

cudaError_t cudaFree(void *at)
{
    LOCKED(cudaError_t, unlocked_free(at));
}

cudaError_t cudaHostAlloc(void **out, size_t size, unsigned flags)
{
    LOCKED(cudaError_t, unlocked_host_alloc(out, size, flags));
}

cudaError_t cudaFreeHost(void *at)
{
    LOCKED(cudaError_t, unlocked_free_host(at));
}

cudaError_t cudaMemcpyAsync(void *to, const void *from, size_t size, enum cudaMemcpyKind kind,
                            cudaStream_t stream)
{
    LOCKED(cudaError_t, unlocked_memcpy_async(to, from, size, kind, stream));
}

/* Waits for no other stream, as those here are. */
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

cudaError_t cudaGetLastError(void)
{
    LOCKED(cudaError_t, unlocked_get_last_error());
}
