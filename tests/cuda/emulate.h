/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What a .cu file needs to compile as C++ for this machine, and to run here: a block's threads are
 * fibres that hand over to each other at barriers, of the block or of a warp, blocks run one after
 * the other, launches run before they return, or when dl2_emulate_queue's owner lets them. So the
 * kernels' indexing, bounds, barriers and arithmetic are tested where there is no card; the
 * sanitizers see every access.
 *
 * dl2_emulate_backwards runs blocks and threads from the last to the first, which must change no
 * result. Compiled with -fsanitize=thread, a kernel that races ends the test and is named.
 */
#ifndef DL2_TESTS_CUDA_EMULATE_H
#define DL2_TESTS_CUDA_EMULATE_H

#include <math.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#define __global__
#define __device__
#define __host__
#define __forceinline__ inline
#define __launch_bounds__(...)
#define __shared__ static

typedef int cudaError_t;
typedef struct CUstream_st *cudaStream_t;
enum { cudaSuccess = 0, cudaErrorInvalidValue = 1, cudaErrorInvalidConfiguration = 9 };

struct uint3 {
    unsigned x, y, z;
};
struct dim3 {
    unsigned x, y, z;
    dim3(unsigned x_ = 1, unsigned y_ = 1, unsigned z_ = 1) : x(x_), y(y_), z(z_)
    {
    }
};
struct alignas(8) uint2 {
    unsigned x, y;
};
struct alignas(16) uint4 {
    unsigned x, y, z, w;
};

extern uint3 threadIdx, blockIdx;
extern dim3 blockDim, gridDim;
extern bool dl2_emulate_backwards;

void __syncthreads();
/* Only for whole warps: `mask` has all 32 threads. */
float __shfl_xor_sync(unsigned mask, float value, int lanes);

static inline unsigned __float_as_uint(float f)
{
    unsigned u;
    memcpy(&u, &f, sizeof u);
    return u;
}
static inline float __uint_as_float(unsigned u)
{
    float f;
    memcpy(&f, &u, sizeof f);
    return f;
}
static inline void __stwb(uint4 *to, uint4 what)
{
    *to = what;
}
static inline unsigned __umulhi(unsigned a, unsigned b)
{
    return (unsigned)((uint64_t)a * b >> 32);
}

/* Operations that a compiler may not make one of. Here it makes none: x86-64 has no such by
 * default. */
static inline float __fadd_rn(float a, float b)
{
    return a + b;
}
static inline float __fmul_rn(float a, float b)
{
    return a * b;
}
static inline float __fdiv_rn(float a, float b)
{
    return a / b;
}
static inline double __dadd_rn(double a, double b)
{
    return a + b;
}
static inline double __dmul_rn(double a, double b)
{
    return a * b;
}

/* bfloat16 and IEEE half precision, rounded to nearest even. */
struct __nv_bfloat16 {
    uint16_t bits;
};
struct __half {
    uint16_t bits;
};
static inline float __bfloat162float(__nv_bfloat16 h)
{
    return __uint_as_float((unsigned)h.bits << 16);
}
static inline __nv_bfloat16 __float2bfloat16_rn(float f)
{
    unsigned u = __float_as_uint(f);
    if (f != f)
        return __nv_bfloat16{0x7fff};
    return __nv_bfloat16{(uint16_t)((u + 0x7fff + (u >> 16 & 1)) >> 16)};
}
float __half2float(__half h);
__half __float2half_rn(float f);

/* Runs work(context) once for each thread of each block. */
int dl2_emulate(dim3 grid, dim3 block, const char *kernel, void (*work)(void *), void *context);
/* Would a card take this launch? */
int dl2_emulate_check(dim3 grid, dim3 block);

/* Where set, launches go there instead, to run later: `call`, of `size` bytes, is copied. */
extern "C" void (*dl2_emulate_queue)(cudaStream_t stream, void (*run)(void *call), void *call,
                                     size_t size);

template <class F> struct dl2_emulated {
    dim3 grid, block;
    const char *kernel;
    F body;
    static void thread(void *body)
    {
        (*(F *)body)();
    }
    static void run(void *call)
    {
        struct dl2_emulated *c = (struct dl2_emulated *)call;
        dl2_emulate(c->grid, c->block, c->kernel, thread, &c->body);
    }
};

template <class F>
int dl2_emulate_launch(const char *kernel, dim3 grid, dim3 block, cudaStream_t stream, F body)
{
    struct dl2_emulated<F> call = {
        grid, block, kernel, body
    };
    int status = dl2_emulate_check(grid, block);
    if (status != cudaSuccess)
        return status;
    if (dl2_emulate_queue)
        dl2_emulate_queue(stream, call.run, &call, sizeof call);
    else
        call.run(&call);
    return cudaSuccess;
}
/* Arguments are those of the moment of the launch, as on a card. */
#define DL2_LAUNCH(kernel, grid, block, stream, ...)                                               \
    [=](auto... arguments) {                                                                       \
        return dl2_emulate_launch(#kernel, grid, block, stream, [=]() { kernel(arguments...); });  \
    }(__VA_ARGS__)

#endif
