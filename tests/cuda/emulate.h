/*
 * What a .cu file needs to compile as C++ for this machine, and to run here: a block's threads are
 * fibres that hand over to each other at barriers, blocks run one after the other, launches finish
 * before they return. So the kernels' indexing, bounds, barriers and arithmetic are tested where
 * there is no card; the sanitizers see every access.
 *
 * dl2_emulate_backwards runs blocks and threads from the last to the first: a kernel whose result
 * changes has a race.
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
int dl2_emulate(dim3 grid, dim3 block, void (*work)(void *), void *context);

template <class F> int dl2_emulate_launch(dim3 grid, dim3 block, F body)
{
    return dl2_emulate(
        grid, block, [](void *context) { (*(F *)context)(); }, &body);
}
#define DL2_LAUNCH(kernel, grid, block, stream, ...)                                               \
    ((void)(stream), dl2_emulate_launch(grid, block, [=]() { kernel(__VA_ARGS__); }))

#endif
