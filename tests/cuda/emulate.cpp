/* SPDX-License-Identifier: BSD-2-Clause */
/* The fibres behind emulate.h, and the types that it names. */
#undef _FORTIFY_SOURCE /* it takes a jump to another stack for an attack */
#include "tests/cuda/emulate.h"

#include <stdio.h>
#include <stdlib.h>
#include <ucontext.h>

#ifdef __clang__
#pragma clang optimize off /* it moves accesses across jumps */
#endif

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
static const char *kernel;
static float exchanged[MOST]; /* by thread */
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

/* -- races -- */

/*
 * Kernels that are compiled with -fsanitize=thread call the functions below at each access; no
 * sanitizer's library is linked. Two accesses to a byte, of which one writes, are a race on a card
 * unless one thread makes both, or threads of one block make them with __syncthreads() between. An
 * exchange between the threads of a warp orders no memory. Races don't hang on the order in which
 * the emulation runs threads, so one order is watched. Nor does a card read or write words that
 * aren't aligned, as this machine does.
 */

/* From one barrier of a block to the next; each has a number of its own. */
static unsigned phase, launch_phase; /* now; the launch's first, 0 outside of launches */
static unsigned block_number;

/* The last accesses to a byte. */
struct accesses {
    unsigned written, read; /* phases */
    unsigned writing_block, reading_block;
    uint16_t writer, reader;
    bool readers, reading_blocks; /* others, too: in that phase; in that launch */
};

enum { PAGE = 4096, PAGES = 1 << 16 };
struct page {
    uintptr_t number;
    struct accesses bytes[PAGE];
};

static struct accesses *accesses_of(const void *address)
{
    static struct page *pages[PAGES];
    const uintptr_t number = (uintptr_t)address / PAGE;
    size_t i = (size_t)(number * 0x9E3779B97F4A7C15u >> 48);
    while (pages[i] && pages[i]->number != number)
        i = (i + 1) % PAGES;
    if (!pages[i]) {
        pages[i] = (struct page *)calloc(1, sizeof *pages[i]);
        if (!pages[i])
            abort();
        pages[i]->number = number;
    }
    return &pages[i]->bytes[(uintptr_t)address % PAGE];
}

/* Shared memory is static, without a beginning value, and each block has its own. */
extern "C" char __bss_start[], _end[];

static unsigned number_of(const uint3 &thread)
{
    return (thread.z * blockDim.y + thread.y) * blockDim.x + thread.x;
}

static void see(const void *address, size_t size, bool writes)
{
    const char *at = (const char *)address;
    if (!launch_phase || dl2_emulate_backwards ||
        (at >= running->stack && at < running->stack + STACK))
        return;
    const bool shared = at >= __bss_start && at < _end;
    const uint16_t self = (uint16_t)number_of(threadIdx);
    const unsigned now = phase, first = launch_phase, block = block_number;
    struct accesses *a = nullptr;
    for (size_t i = 0; i < size; i++) {
        a = !i || (uintptr_t)(at + i) % PAGE == 0 ? accesses_of(at + i) : a + 1;
        const bool written = a->written >= first, read = a->read >= first;
        const bool with_writer =
            written &&
            (a->written == now ? a->writer != self : !shared && a->writing_block != block);
        const bool with_reader = writes && read &&
                                 ((a->read == now && (a->readers || a->reader != self)) ||
                                  (!shared && (a->reading_blocks || a->reading_block != block)));
        if (with_writer || with_reader) {
            fprintf(
                stderr, "emulate: race in %s: thread %u of block %u %s what another thread %s\n",
                kernel, self, block, writes ? "writes" : "reads", with_writer ? "writes" : "reads");
            abort();
        }
        if (writes) {
            a->written = now;
            a->writing_block = block;
            a->writer = self;
        } else {
            a->readers = a->read == now && (a->readers || a->reader != self);
            a->reading_blocks = read && (a->reading_blocks || a->reading_block != block);
            a->read = now;
            a->reading_block = block;
            a->reader = self;
        }
    }
}

#ifdef __clang__ /* makes one access of two neighbors of eight bytes */
static const size_t widest = 8;
#else
static const size_t widest = 16;
#endif
static void see_word(const void *address, size_t size, bool writes)
{
    if (launch_phase && (uintptr_t)address % (size < widest ? size : widest)) {
        fprintf(stderr, "emulate: %s: %zu bytes at a misaligned address\n", kernel, size);
        abort();
    }
    see(address, size, writes);
}

#define SEEN(name, size, seen, writes)                                                             \
    extern "C" void __tsan_##name##size(void *address)                                             \
    {                                                                                              \
        seen(address, size, writes);                                                               \
    }
#define SEEN_OF(size)                                                                              \
    SEEN(read, size, see_word, false)                                                              \
    SEEN(write, size, see_word, true)                                                              \
    SEEN(unaligned_read, size, see, false)                                                         \
    SEEN(unaligned_write, size, see, true)
SEEN_OF(1)
SEEN_OF(2)
SEEN_OF(4)
SEEN_OF(8)
SEEN_OF(16)
extern "C" void __tsan_read_range(void *address, size_t size)
{
    see(address, size, false);
}
extern "C" void __tsan_write_range(void *address, size_t size)
{
    see(address, size, true);
}
extern "C" void __tsan_init(void)
{
}
extern "C" void __tsan_func_entry(void *)
{
}
extern "C" void __tsan_func_exit(void)
{
}

/* -- threads -- */

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
    phase += !in_warp;
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

int dl2_emulate(dim3 grid, dim3 block, const char *name, void (*body)(void *), void *context)
{
    uint64_t blocks = (uint64_t)grid.x * grid.y * grid.z;
    int status = dl2_emulate_check(grid, block);
    if (status != cudaSuccess)
        return status;
    threads = block.x * block.y * block.z;
    work = body;
    work_context = context;
    kernel = name;
    launch_phase = phase + 1;
    blockDim = block;
    gridDim = grid;
    for (uint64_t i = 0; i < blocks; i++) {
        uint64_t b = dl2_emulate_backwards ? blocks - 1 - i : i;
        phase++;
        block_number = (unsigned)b;
        blockIdx = uint3{(unsigned)(b % grid.x), (unsigned)(b / grid.x % grid.y),
                         (unsigned)(b / grid.x / grid.y)};
        run_block();
    }
    launch_phase = 0;
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
