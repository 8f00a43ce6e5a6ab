/* SPDX-License-Identifier: BSD-2-Clause */
/* The fibres behind emulate.h, and the types that it names. */
#undef _FORTIFY_SOURCE /* it takes a jump to another stack for an attack */
#include "tests/cuda/emulate.h"

#include <stdio.h>
#include <stdlib.h>
#include <ucontext.h>

#if defined(__SANITIZE_ADDRESS__)
#define FIBRES_UNDER_ASAN 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define FIBRES_UNDER_ASAN 1
#endif
#endif
#ifdef FIBRES_UNDER_ASAN
extern "C" void __sanitizer_start_switch_fiber(void **save, const void *bottom, size_t size);
extern "C" void __sanitizer_finish_switch_fiber(void *save, const void **bottom, size_t *size);
#endif

uint3 threadIdx, blockIdx;
dim3 blockDim, gridDim;
bool dl2_emulate_backwards;

enum { MOST = 1024, STACK = 64 * 1024, WARP = 32 };

/*
 * The compiler's own jumps: swapcontext() would ask the kernel each time, and AddressSanitizer,
 * whose fibres are announced below, would clear its marks of a whole stack before longjmp().
 */
typedef void *jump_place[5];
#ifdef __clang__
#define UNWATCHED __attribute__((noinline, no_sanitize_address))
#else /* noipa: callers don't count on registers that it seems to leave alone */
#define UNWATCHED __attribute__((noipa, no_sanitize_address))
#endif
UNWATCHED static void jump(jump_place to)
{
    __builtin_longjmp(to, 1);
}

/* A stack that threads run on, one after the other as long as they don't wait: only those that do
 * keep one each. */
struct fibre {
    char *stack;
    bool begun;
    jump_place at;       /* where it goes on */
    uint3 index;         /* of the thread that waits on it */
    bool waits, in_warp; /* for the block, or for its warp */
    void *asan;
};

static struct fibre fibres[MOST];
static jump_place scheduler;
static struct fibre *running;
static void (*work)(void *);
static void *work_context;
static unsigned threads, started; /* of the block */
static float exchanged[MOST];     /* by thread */
#ifdef FIBRES_UNDER_ASAN
static const void *home; /* the scheduler's stack */
static size_t home_size;
static void *home_asan;
#endif

UNWATCHED static void to_scheduler(void)
{
#ifdef FIBRES_UNDER_ASAN
    __sanitizer_start_switch_fiber(&running->asan, home, home_size);
#endif
    if (!__builtin_setjmp(running->at))
        jump(scheduler);
#ifdef FIBRES_UNDER_ASAN
    __sanitizer_finish_switch_fiber(running->asan, &home, &home_size);
#endif
}

static void barrier(bool in_warp)
{
    struct fibre *self = running;
    self->index = threadIdx;
    self->waits = true;
    self->in_warp = in_warp;
    to_scheduler();
    threadIdx = self->index;
}

void __syncthreads()
{
    barrier(false);
}

static unsigned number_of(const uint3 &thread)
{
    return (thread.z * blockDim.y + thread.y) * blockDim.x + thread.x;
}

float __shfl_xor_sync(unsigned mask, float value, int lanes)
{
    const unsigned self = number_of(threadIdx);
    if (mask != 0xffffffff || lanes < 0 || lanes >= WARP)
        abort();
    exchanged[self] = value;
    barrier(true);
    const float other = exchanged[self ^ (unsigned)lanes];
    barrier(true); /* until all have read */
    return other;
}

static void run_fibre(void)
{
#ifdef FIBRES_UNDER_ASAN
    __sanitizer_finish_switch_fiber(nullptr, &home, &home_size);
#endif
    for (;;) {
        while (started < threads) {
            unsigned t = dl2_emulate_backwards ? threads - 1 - started : started;
            started++;
            threadIdx.x = t % blockDim.x;
            threadIdx.y = t / blockDim.x % blockDim.y;
            threadIdx.z = t / blockDim.x / blockDim.y;
            work(work_context);
        }
        to_scheduler();
    }
}

static void begin(void)
{
    static ucontext_t context;
    running->begun = true;
    getcontext(&context);
    context.uc_stack.ss_sp = running->stack;
    context.uc_stack.ss_size = STACK;
    context.uc_link = nullptr;
    makecontext(&context, run_fibre, 0);
    setcontext(&context);
}

/* Runs it until it waits, or no thread is left to start. */
UNWATCHED static void resume(struct fibre *f)
{
    if (!f->stack && !(f->stack = (char *)malloc(STACK)))
        abort();
    f->waits = false;
    running = f;
#ifdef FIBRES_UNDER_ASAN
    __sanitizer_start_switch_fiber(&home_asan, f->stack, STACK);
#endif
    if (!__builtin_setjmp(scheduler)) {
        if (running->begun)
            jump(running->at);
        begin();
    }
#ifdef FIBRES_UNDER_ASAN
    __sanitizer_finish_switch_fiber(home_asan, nullptr, nullptr);
#endif
}

/* Runs all that wait at a barrier of their kind, which must be complete: else a card would hang. */
static void run_waiting(unsigned used, bool in_warp)
{
    static unsigned there[MOST / WARP];
    static bool chosen[MOST];
    unsigned all = 0;
    memset(there, 0, sizeof there);
    for (unsigned i = 0; i < used; i++) {
        chosen[i] = fibres[i].waits && fibres[i].in_warp == in_warp;
        all += chosen[i];
        if (chosen[i])
            there[number_of(fibres[i].index) / WARP]++;
    }
    for (unsigned i = 0; i < used; i++) {
        const unsigned warp = chosen[i] ? there[number_of(fibres[i].index) / WARP] : 0;
        if (chosen[i] && (in_warp ? warp != WARP : all != threads)) {
            fprintf(stderr, "emulate: %u threads of a %s are at a barrier, others are not\n",
                    in_warp ? warp : all, in_warp ? "warp" : "block");
            abort();
        }
    }
    for (unsigned i = 0; i < used; i++)
        if (chosen[i])
            resume(&fibres[i]);
}

static void run_block(void)
{
    unsigned used = 0;
    for (started = 0; started < threads;)
        resume(&fibres[used++]);
    for (;;) {
        bool waiting = false, in_warp = false;
        for (unsigned i = 0; i < used; i++) {
            waiting |= fibres[i].waits;
            in_warp |= fibres[i].waits && fibres[i].in_warp;
        }
        if (!waiting)
            return;
        run_waiting(used, in_warp);
    }
}

void (*dl2_emulate_queue)(cudaStream_t, void (*)(void *), void *, size_t);

int dl2_emulate_check(dim3 grid, dim3 block)
{
    uint64_t wide = (uint64_t)block.x * block.y * block.z;
    uint64_t blocks = (uint64_t)grid.x * grid.y * grid.z;
    bool good = wide && wide <= MOST && block.z <= 64 && blocks && grid.x <= 0x7fffffff &&
                grid.y <= 65535 && grid.z <= 65535;
    return good ? cudaSuccess : cudaErrorInvalidConfiguration;
}

int dl2_emulate(dim3 grid, dim3 block, void (*body)(void *), void *context)
{
    uint64_t blocks = (uint64_t)grid.x * grid.y * grid.z;
    int status = dl2_emulate_check(grid, block);
    if (status != cudaSuccess)
        return status;
    threads = block.x * block.y * block.z;
    work = body;
    work_context = context;
    blockDim = block;
    gridDim = grid;
    for (uint64_t i = 0; i < blocks; i++) {
        uint64_t b = dl2_emulate_backwards ? blocks - 1 - i : i;
        blockIdx = uint3{(unsigned)(b % grid.x), (unsigned)(b / grid.x % grid.y),
                         (unsigned)(b / grid.x / grid.y)};
        run_block();
    }
    return cudaSuccess;
}

float __half2float(__half h)
{
    unsigned sign = (unsigned)(h.bits & 0x8000) << 16, exponent = h.bits >> 10 & 31,
             fraction = h.bits & 1023;
    if (exponent == 31)
        return __uint_as_float(sign | 0x7f800000 | fraction << 13);
    float value = exponent ? ldexpf((float)(1024 + fraction), (int)exponent - 25)
                           : ldexpf((float)fraction, -24);
    return sign ? -value : value;
}

__half __float2half_rn(float f)
{
    uint16_t sign = (uint16_t)(__float_as_uint(f) >> 16 & 0x8000);
    float a = fabsf(f);
    if (f != f)
        return __half{0x7fff};
    if (a >= 65520)
        return __half{(uint16_t)(sign | 0x7c00)};
    int exponent;
    frexpf(a, &exponent);                                    /* a < 2^exponent */
    int step = a < 6.103515625e-5f ? -24 : exponent - 11;    /* subnormal below 2^-14 */
    unsigned units = (unsigned)nearbyintf(ldexpf(a, -step)); /* 0 .. 2048 */
    if (step == -24)
        return __half{(uint16_t)(sign | units)};
    unsigned bits = (unsigned)(step + 24 + 1) << 10;
    return __half{(uint16_t)(sign | (bits + (units - 1024)))};
}
