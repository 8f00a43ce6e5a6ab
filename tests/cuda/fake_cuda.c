/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A CUDA runtime of this machine's memory, for running the training device's host code where there
 * is no card: see fake_cuda.h. Streams are queues; what is queued runs at the first moment, at the
 * last, or at random in between, as events allow, so that code which leans on luck fails.
 */
#include "tests/cuda/fake_cuda.h"

#include "common/random.h"

#include <cuda_profiler_api.h>
#include <cuda_runtime_api.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static enum dl2_fake_pace { EAGER, LAZY, RANDOM } pace;
static size_t card_memory = (size_t)4 << 30;

static void give_up(const char *why)
{
    fprintf(stderr, "fake CUDA: %s\n", why);
    abort();
}

static void *zeroed(size_t size)
{
    void *memory = calloc(1, size);
    if (!memory)
        give_up("out of memory");
    return memory;
}

/* -- operations, streams, events, graphs -- */

struct op {
    void (*run)(void *call); /* NULL: of an event */
    void *call;
    struct CUevent_st *event;
    uint64_t version; /* of the event: this one is reached, or, where it waits, waited for */
    bool waits;
    bool meets; /* other processes: runs while this one waits for the card, as others may only then
                 */
    struct op *next;
};

struct CUevent_st {
    uint64_t issued, done; /* how often it was recorded, and has been reached */
    bool untimed;
    double at; /* on the card's clock */
    /* Where it was recorded last in a capture: the graph, the stream, and after how much of it. */
    const struct CUgraph_st *graph;
    struct CUstream_st *stream;
    uint64_t puts;
};

struct CUgraph_st {
    struct op *first, **end;
    bool spoilt;
};

struct CUgraphExec_st {
    struct op *first;
};

struct CUstream_st {
    struct op *first, **end;
    struct CUgraph_st *capture;
    bool guest;    /* of the capture that another stream began, by one of its events */
    bool loose;    /* the guest has done what the other has not waited for */
    uint64_t puts; /* in captures */
    struct CUstream_st *next;
};

static struct CUstream_st *streams;
static struct dl2_random dice;
static bool faulted; /* as after an illegal address: calls fail from then on */
static cudaError_t last_error;

static cudaError_t result(cudaError_t status)
{
    if (status != cudaSuccess)
        last_error = status;
    return status;
}

_Atomic unsigned dl2_fake_recorded_meetings;

static void forget_meetings(const struct op *op)
{
    for (; op; op = op->next)
        dl2_fake_recorded_meetings -= op->meets;
}

static void free_ops(struct op *op)
{
    while (op) {
        struct op *next = op->next;
        free(op->call);
        free(op);
        op = next;
    }
}

/* -- the card's clock -- */

enum { L2_BYTES = 1 << 20 };

static double now; /* ms */
static bool overwritten;

static void spend(double ms)
{
    now += now < 200 ? ms * (3 - now / 100) : ms;
}

void dl2_fake_spend(double warm, double cold)
{
    spend(overwritten ? cold : warm);
    overwritten = false;
}

/* Runs the first operation, if it can. */
static bool step(struct CUstream_st *stream)
{
    struct op *op = stream->first;
    if (!op || (op->waits && op->event->done < op->version))
        return false;
    stream->first = op->next;
    if (!stream->first)
        stream->end = &stream->first;
    if (op->run) {
        spend(0.001);
        op->run(op->call);
    } else if (!op->waits && op->event->done < op->version) {
        op->event->done = op->version;
        op->event->at = now;
    }
    op->next = NULL;
    free_ops(op);
    return true;
}

static bool step_any(void)
{
    for (struct CUstream_st *s = streams; s; s = s->next)
        if (step(s))
            return true;
    return false;
}

static void drain(struct CUstream_st *stream)
{
    while (stream->first)
        if (!step(stream) && !step_any())
            give_up("streams wait for each other");
}

static void drain_all(void)
{
    while (step_any())
        ;
    for (struct CUstream_st *s = streams; s; s = s->next)
        if (s->first)
            give_up("a stream waits for what never comes");
}

static void put(struct CUstream_st *stream, const struct op *what)
{
    if (!stream)
        give_up("the default stream is not for us");
    struct op *op = zeroed(sizeof *op);
    *op = *what;
    op->next = NULL;
    struct op ***end = stream->capture ? &stream->capture->end : &stream->end;
    **end = op;
    *end = &op->next;
    if (stream->capture) {
        stream->puts++;
        stream->loose = stream->guest;
        dl2_fake_recorded_meetings += op->meets;
        return;
    }
    if (pace == EAGER)
        while (step_any())
            ;
    if (pace == RANDOM)
        for (uint32_t n = dl2_random_below(&dice, 4); n-- > 0;) {
            struct CUstream_st *s = streams;
            for (uint32_t k = dl2_random_below(&dice, 3); k-- > 0 && s->next;)
                s = s->next;
            if (s->first && !s->first->meets)
                step(s);
        }
}

static void queue(struct CUstream_st *stream, void (*run)(void *call), void *call, size_t size,
                  bool meets)
{
    struct op op = {.run = run, .call = zeroed(size), .meets = meets};
    memcpy(op.call, call, size);
    put(stream, &op);
}

void dl2_fake_queue(struct CUstream_st *stream, void (*run)(void *call), void *call, size_t size)
{
    queue(stream, run, call, size, false);
}

void dl2_fake_queue_meeting(struct CUstream_st *stream, void (*run)(void *call), void *call,
                            size_t size)
{
    queue(stream, run, call, size, true);
}

static bool capturing(void)
{
    for (struct CUstream_st *s = streams; s; s = s->next)
        if (s->capture)
            return true;
    return false;
}

static void start(void)
{
    static const char *const paces[] = {"eager", "lazy", "random"};
    const char *wanted = getenv("DL2_FAKE_PACE"), *memory = getenv("DL2_FAKE_MEMORY");
    for (int i = 0; wanted && i < 3; i++)
        if (!strcmp(wanted, paces[i]))
            pace = (enum dl2_fake_pace)i;
    dl2_emulate_backwards = pace == LAZY;
    if (memory)
        card_memory = strtoul(memory, NULL, 10);
    dl2_random_init(&dice, 1, DL2_RANDOM_TEST, 0, 0);
}

cudaError_t cudaStreamCreateWithFlags(cudaStream_t *out, unsigned flags)
{
    if (flags != cudaStreamNonBlocking)
        return result(cudaErrorInvalidValue);
    if (!streams)
        start();
    struct CUstream_st *stream = zeroed(sizeof *stream);
    stream->end = &stream->first;
    stream->next = streams;
    streams = stream;
    dl2_emulate_queue = dl2_fake_queue;
    *out = stream;
    return cudaSuccess;
}

cudaError_t cudaStreamCreateWithPriority(cudaStream_t *out, unsigned flags, int priority)
{
    return priority < -5 || priority > 0 ? result(cudaErrorInvalidValue)
                                         : cudaStreamCreateWithFlags(out, flags);
}

cudaError_t cudaDeviceGetStreamPriorityRange(int *least, int *greatest)
{
    *least = 0;
    *greatest = -5;
    return cudaSuccess;
}

cudaError_t cudaStreamDestroy(cudaStream_t stream)
{
    drain(stream);
    for (struct CUstream_st **s = &streams; *s; s = &(*s)->next)
        if (*s == stream) {
            *s = stream->next;
            break;
        }
    free(stream);
    return cudaSuccess;
}

void dl2_fake_break(void *call)
{
    (void)call;
    faulted = true;
}

cudaError_t cudaStreamSynchronize(cudaStream_t stream)
{
    if (stream->capture)
        return result(cudaErrorStreamCaptureUnsupported);
    drain(stream);
    return result(faulted ? cudaErrorLaunchFailure : cudaSuccess);
}

cudaError_t cudaEventCreateWithFlags(cudaEvent_t *out, unsigned flags)
{
    *out = zeroed(sizeof **out);
    (*out)->untimed = flags & cudaEventDisableTiming;
    return cudaSuccess;
}

cudaError_t cudaEventCreate(cudaEvent_t *out)
{
    return cudaEventCreateWithFlags(out, 0);
}

cudaError_t cudaEventDestroy(cudaEvent_t event)
{
    drain_all();
    free(event);
    return cudaSuccess;
}

cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t stream)
{
    event->graph = stream->capture;
    event->stream = stream;
    event->puts = stream->puts;
    if (!stream->capture)
        put(stream, &(struct op){.event = event, .version = ++event->issued});
    return cudaSuccess;
}

/* Streams that a capture joins add to one list, in the order of the calls, which is one that their
 * events allow. What matters is that all come back to where it began. */
static cudaError_t wait_captured(struct CUstream_st *stream, const struct CUevent_st *event)
{
    bool alive = false;
    for (struct CUstream_st *s = streams; s; s = s->next)
        alive |= s->capture == event->graph;
    if (!alive)
        return result(cudaErrorCapturedEvent);
    if (!stream->capture) {
        stream->capture = event->stream->capture;
        stream->guest = true;
    }
    if (stream->capture != event->graph)
        return result(cudaErrorStreamCaptureMerge);
    if (!stream->guest && event->puts == event->stream->puts)
        event->stream->loose = false;
    return cudaSuccess;
}

cudaError_t cudaStreamWaitEvent(cudaStream_t stream, cudaEvent_t event, unsigned flags)
{
    if (flags)
        return result(cudaErrorInvalidValue);
    if (event->graph)
        return wait_captured(stream, event);
    if (stream->capture)
        return result(cudaErrorStreamCaptureIsolation);
    put(stream, &(struct op){.event = event, .version = event->issued, .waits = true});
    return cudaSuccess;
}

cudaError_t cudaEventSynchronize(cudaEvent_t event)
{
    if (event->graph)
        return result(cudaErrorCapturedEvent);
    while (event->done < event->issued)
        if (!step_any())
            give_up("an event never comes");
    return result(faulted ? cudaErrorLaunchFailure : cudaSuccess);
}

cudaError_t cudaEventElapsedTime(float *ms, cudaEvent_t begin, cudaEvent_t end)
{
    if (begin->untimed || end->untimed)
        return result(cudaErrorInvalidResourceHandle);
    if (begin->done < begin->issued || end->done < end->issued)
        return result(cudaErrorNotReady);
    *ms = (float)(end->at - begin->at);
    return cudaSuccess;
}

/* Is this what DL2_FAKE_RECORDING says fails? */
static bool recording_fails(const char *what)
{
    const char *wanted = getenv("DL2_FAKE_RECORDING");
    return wanted && !strcmp(wanted, what);
}

bool dl2_fake_call_fails(struct CUstream_st *stream)
{
    const bool fails = stream->capture && recording_fails("call");
    if (fails)
        stream->capture->spoilt = true;
    return fails;
}

cudaError_t cudaStreamBeginCapture(cudaStream_t stream, enum cudaStreamCaptureMode mode)
{
    (void)mode;
    if (recording_fails("begin"))
        return result(cudaErrorStreamCaptureUnsupported);
    if (stream->capture)
        return result(cudaErrorIllegalState);
    stream->capture = zeroed(sizeof *stream->capture);
    stream->capture->end = &stream->capture->first;
    return cudaSuccess;
}

cudaError_t cudaStreamEndCapture(cudaStream_t stream, cudaGraph_t *out)
{
    struct CUgraph_st *graph = stream->capture;
    bool loose = false;
    *out = NULL;
    if (!graph || stream->guest)
        return result(cudaErrorIllegalState);
    for (struct CUstream_st *s = streams; s; s = s->next)
        if (s->capture == graph) {
            loose |= s->loose;
            s->capture = NULL;
            s->guest = s->loose = false;
        }
    faulted |= recording_fails("fault");
    if (loose || graph->spoilt || faulted || recording_fails("end")) {
        cudaGraphDestroy(graph);
        return result(faulted ? cudaErrorLaunchFailure
                      : loose ? cudaErrorStreamCaptureUnjoined
                              : cudaErrorStreamCaptureInvalidated);
    }
    *out = graph;
    return cudaSuccess;
}

cudaError_t cudaGraphInstantiate(cudaGraphExec_t *out, cudaGraph_t graph, unsigned long long flags)
{
    (void)flags;
    if (recording_fails("instantiate"))
        return result(cudaErrorMemoryAllocation);
    struct CUgraphExec_st *exec = zeroed(sizeof *exec);
    exec->first = graph->first; /* moves there */
    graph->first = NULL;
    *out = exec;
    return cudaSuccess;
}

cudaError_t cudaGraphDestroy(cudaGraph_t graph)
{
    forget_meetings(graph->first);
    free_ops(graph->first);
    free(graph);
    return cudaSuccess;
}

cudaError_t cudaGraphExecDestroy(cudaGraphExec_t graph)
{
    drain_all();
    forget_meetings(graph->first);
    free_ops(graph->first);
    free(graph);
    return cudaSuccess;
}

struct again {
    const struct op *op;
};

static void run_again(void *call)
{
    const struct again *again = call;
    again->op->run(again->op->call);
}

cudaError_t cudaGraphLaunch(cudaGraphExec_t graph, cudaStream_t stream)
{
    if (recording_fails("launch"))
        return result(cudaErrorMemoryAllocation);
    for (const struct op *op = graph->first; op; op = op->next) {
        struct again again = {op};
        queue(stream, run_again, &again, sizeof again, op->meets);
    }
    return cudaSuccess;
}

/* -- memory -- */

struct memory {
    char *at;
    size_t size;
    bool pinned;
    struct memory *next;
};

static unsigned current; /* card */
static struct memory *memories;
static size_t used;

static struct memory *find(const void *at, size_t size)
{
    for (struct memory *m = memories; m; m = m->next)
        if ((const char *)at >= m->at && (const char *)at + size <= m->at + m->size)
            return m;
    return NULL;
}

static cudaError_t allocate(void **out, size_t size, bool pinned)
{
    void *at = NULL;
    if (capturing())
        return result(cudaErrorStreamCaptureUnsupported);
    const char *refused = getenv("DL2_FAKE_REFUSED");
    if (faulted)
        return result(cudaErrorLaunchFailure);
    if (!pinned && (used + size > card_memory || (refused && size == strtoul(refused, NULL, 10))))
        return result(cudaErrorMemoryAllocation);
    if (posix_memalign(&at, 256, size))
        give_up("out of memory");
    memset(at, 0xff, size);
    struct memory *m = zeroed(sizeof *m);
    *m = (struct memory){at, size, pinned, memories};
    memories = m;
    used += pinned ? 0 : size;
    *out = at;
    return cudaSuccess;
}

static cudaError_t release(void *at, bool pinned)
{
    if (!at)
        return cudaSuccess;
    if (capturing())
        return result(cudaErrorStreamCaptureUnsupported);
    drain_all();
    for (struct memory **m = &memories; *m; m = &(*m)->next)
        if ((*m)->at == at && (*m)->pinned == pinned) {
            struct memory *gone = *m;
            *m = gone->next;
            used -= pinned ? 0 : gone->size;
            free(gone->at);
            free(gone);
            return cudaSuccess;
        }
    return result(cudaErrorInvalidValue);
}

#ifndef DL2_FAKE_THREADS /* which has its own name for it */
#undef cudaMalloc
#endif
cudaError_t cudaMalloc(void **out, size_t size)
{
    return allocate(out, size, false);
}

cudaError_t cudaFree(void *at)
{
    return release(at, false);
}

cudaError_t cudaMallocAsync(void **out, size_t size, cudaStream_t stream)
{
    return stream ? allocate(out, size, false) : result(cudaErrorInvalidValue);
}

static void free_now(void *call)
{
    for (struct memory **m = &memories; *m; m = &(*m)->next)
        if ((*m)->at == *(char **)call) {
            struct memory *gone = *m;
            *m = gone->next;
            used -= gone->size;
            free(gone->at);
            free(gone);
            return;
        }
    give_up("memory is freed that is not there");
}

cudaError_t cudaFreeAsync(void *at, cudaStream_t stream)
{
    dl2_fake_queue(stream, free_now, &at, sizeof at);
    return cudaSuccess;
}

cudaError_t cudaHostAlloc(void **out, size_t size, unsigned flags)
{
    return flags == cudaHostAllocPortable ? allocate(out, size, true)
                                          : result(cudaErrorInvalidValue);
}

cudaError_t cudaFreeHost(void *at)
{
    return release(at, true);
}

cudaError_t cudaMemGetInfo(size_t *available, size_t *total)
{
    *available = card_memory > used ? card_memory - used : 0;
    *total = card_memory;
    return cudaSuccess;
}

struct copying {
    void *to;
    const void *from; /* or, where NULL, `size` bytes of `value`, or what lies behind */
    size_t size;
    int value;
    bool behind;
};

static void copy_now(void *call)
{
    const struct copying *c = call;
    if (c->behind)
        memcpy(c->to, c + 1, c->size);
    else if (c->from)
        memmove(c->to, c->from, c->size);
    else
        memset(c->to, c->value, c->size);
    overwritten |= !c->behind && !c->from && c->size > L2_BYTES;
}

static unsigned copies;

/* DL2_FAKE_FAULT="CARD COPIES": from then on that card is no good. */
static bool faulty(void)
{
    unsigned number, limit;
    const char *fault = getenv("DL2_FAKE_FAULT");
    faulted |= fault && sscanf(fault, "%u %u", &number, &limit) == 2 && number == current &&
               copies > limit;
    return faulted;
}

cudaError_t cudaMemcpyAsync(void *to, const void *from, size_t size, enum cudaMemcpyKind kind,
                            cudaStream_t stream)
{
    copies++;
    if (faulty())
        return result(cudaErrorLaunchFailure);
    const struct memory *a = find(to, size), *b = find(from, size);
    bool to_card = a && !a->pinned, from_card = b && !b->pinned;
    if ((kind == cudaMemcpyHostToDevice && (!to_card || from_card)) ||
        (kind == cudaMemcpyDeviceToHost && (to_card || !from_card)) ||
        (kind == cudaMemcpyDeviceToDevice && (!to_card || !from_card)))
        return result(cudaErrorInvalidValue);
    const bool from_host = kind == cudaMemcpyHostToDevice || kind == cudaMemcpyDefault;
    struct copying c = {to, from, size, 0, from_host && !b};
    if (!c.behind) {
        dl2_fake_queue(stream, copy_now, &c, sizeof c);
        return cudaSuccess;
    }
    /* Memory that isn't pinned is read before the call returns. */
    struct copying *whole = zeroed(sizeof c + size);
    *whole = c;
    memcpy(whole + 1, from, size);
    dl2_fake_queue(stream, copy_now, whole, sizeof c + size);
    free(whole);
    return cudaSuccess;
}

cudaError_t cudaMemsetAsync(void *to, int value, size_t size, cudaStream_t stream)
{
    struct copying c = {to, NULL, size, value, false};
    if (!find(to, size))
        return result(cudaErrorInvalidValue);
    dl2_fake_queue(stream, copy_now, &c, sizeof c);
    return cudaSuccess;
}

/* -- the card -- */

static int cards(void)
{
    const char *count = getenv("DL2_FAKE_CARDS");
    return count ? atoi(count) : 1;
}

/* As the driver's: what was begun in a process is of no use to its forks. */
static cudaError_t begin_driver(void)
{
    static pid_t process;
    if (!process)
        process = getpid();
    return result(process == getpid() ? cudaSuccess : cudaErrorInitializationError);
}

cudaError_t cudaGetDeviceCount(int *count)
{
    const cudaError_t status = begin_driver();
    *count = status == cudaSuccess ? cards() : 0;
    return status;
}

cudaError_t cudaSetDevice(int number)
{
    const cudaError_t status = begin_driver();
    if (status != cudaSuccess)
        return status;
    if (number < 0 || number >= cards())
        return result(cudaErrorInvalidDevice);
    current = (unsigned)number;
    return cudaSuccess;
}

cudaError_t cudaGetDevice(int *number)
{
    *number = (int)current;
    return begin_driver();
}

cudaError_t cudaGetDeviceProperties(struct cudaDeviceProp *out, int number)
{
    (void)number;
    memset(out, 0, sizeof *out);
    strcpy(out->name, "Fake card");
    out->major = 9;
    out->totalGlobalMem = card_memory;
    out->multiProcessorCount = 4;
    out->l2CacheSize = L2_BYTES;
    return cudaSuccess;
}

cudaError_t cudaDeviceGetPCIBusId(char *out, int size, int number)
{
    snprintf(out, (size_t)size, "0000:00:%02x.0", (unsigned)number);
    return cudaSuccess;
}

cudaError_t cudaDriverGetVersion(int *version)
{
    *version = 13000;
    return cudaSuccess;
}

/* When a profiler would look, in copies until then: to the file that DL2_FAKE_PROFILE names. */
static cudaError_t tell_profiler(const char *what)
{
    const char *path = getenv("DL2_FAKE_PROFILE");
    FILE *file = path ? fopen(path, "a") : NULL;
    if (file) {
        fprintf(file, "%s %u\n", what, copies);
        fclose(file);
    }
    return cudaSuccess;
}

cudaError_t cudaProfilerStart(void)
{
    return tell_profiler("start");
}

cudaError_t cudaProfilerStop(void)
{
    return tell_profiler("stop");
}

cudaError_t cudaGetLastError(void)
{
    cudaError_t status = last_error;
    last_error = cudaSuccess;
    return status;
}

const char *cudaGetErrorString(cudaError_t status)
{
    return status == cudaErrorMemoryAllocation ? "out of memory" : "an error of the fake CUDA";
}

const char *cudaGetErrorName(cudaError_t status)
{
    static char text[32];
    snprintf(text, sizeof text, "cudaError %d", status);
    return text;
}
