/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Pooling: a thread makes N channels of one output. No tensor has 2^31 elements, and 32 bits are
 * quicker to divide. Why not cuDNN's: docs/performance.md.
 */
#include "cuda/kernels.h"
#include "cuda/tensor.cuh"

namespace
{

/* The place of the i-th group of N channels of a tensor. */
struct place {
    unsigned c, w, h;
    size_t n;
};

template <int N>
__device__ __forceinline__ place place_of(unsigned i, unsigned height, unsigned width,
                                          unsigned channels)
{
    unsigned across = channels / N;
    return {i % across * N, i / across % width, i / across / width % height,
            i / across / width / height};
}

struct window {
    unsigned h0, h1, w0, w1;
};

__device__ __forceinline__ void clip(unsigned o, unsigned kernel, unsigned stride, unsigned pad,
                                     unsigned in, unsigned *begin, unsigned *end)
{
    unsigned first = o * stride;
    *begin = first > pad ? first - pad : 0;
    *end = first + kernel - pad < in ? first + kernel - pad : in;
}

__device__ __forceinline__ unsigned adaptive_begin(unsigned i, unsigned in, unsigned out)
{
    return (unsigned)((uint64_t)i * in / out);
}

__device__ __forceinline__ unsigned adaptive_end(unsigned i, unsigned in, unsigned out)
{
    return (unsigned)(((uint64_t)(i + 1) * in + out - 1) / out);
}

template <class T, int N>
__global__ void __launch_bounds__(THREADS, 4)
    max_pool(struct dl2_pool_shape s, const T *__restrict__ x, T *__restrict__ y,
             uint8_t *__restrict__ winner)
{
    unsigned count = s.batch * s.out_height * s.out_width * (s.channels / N);
    for (unsigned i = blockIdx.x * THREADS + threadIdx.x; i < count; i += gridDim.x * THREADS) {
        const place to = place_of<N>(i, s.out_height, s.out_width, s.channels);
        struct window v;
        clip(to.h, s.kernel_height, s.stride_height, s.pad_height, s.in_height, &v.h0, &v.h1);
        clip(to.w, s.kernel_width, s.stride_width, s.pad_width, s.in_width, &v.w0, &v.w1);
        float best[N] = {}, taken[N] = {}, here[N];
        bool first = true;
        for (unsigned h = v.h0; h < v.h1; h++)
            for (unsigned w = v.w0; w < v.w1; w++) {
                load<N>(x + ((to.n * s.in_height + h) * s.in_width + w) * s.channels + to.c, here);
                unsigned tap = (h + s.pad_height - to.h * s.stride_height) * s.kernel_width +
                               (w + s.pad_width - to.w * s.stride_width);
#pragma unroll
                for (int k = 0; k < N; k++) {
                    bool better = first || here[k] > best[k];
                    best[k] = better ? here[k] : best[k];
                    taken[k] = better ? (float)tap : taken[k];
                }
                first = false;
            }
        store<N>(y + (size_t)i * N, best);
        uint8_t taps[N];
#pragma unroll
        for (int k = 0; k < N; k++)
            taps[k] = (uint8_t)taken[k];
        typename word<N>::type packed;
        memcpy(&packed, taps, sizeof packed);
        *(typename word<N>::type *)(winner + (size_t)i * N) = packed;
    }
}

/* First output whose window has input `i`, and one past the last. */
__device__ __forceinline__ void seen_by(unsigned i, unsigned kernel, unsigned stride, unsigned pad,
                                        unsigned out, unsigned *begin, unsigned *end)
{
    unsigned at = i + pad; /* o * stride <= at < o * stride + kernel */
    *begin = at < kernel ? 0 : (at - kernel) / stride + 1;
    unsigned last = at / stride + 1;
    *end = last < out ? last : out;
}

template <class T, int N>
__global__ void __launch_bounds__(THREADS)
    max_pool_backward(struct dl2_pool_shape s, const T *__restrict__ dy,
                      const uint8_t *__restrict__ winner, T *__restrict__ dx)
{
    unsigned count = s.batch * s.in_height * s.in_width * (s.channels / N);
    for (unsigned i = blockIdx.x * THREADS + threadIdx.x; i < count; i += gridDim.x * THREADS) {
        const place at = place_of<N>(i, s.in_height, s.in_width, s.channels);
        unsigned oh0, oh1, ow0, ow1;
        seen_by(at.h, s.kernel_height, s.stride_height, s.pad_height, s.out_height, &oh0, &oh1);
        seen_by(at.w, s.kernel_width, s.stride_width, s.pad_width, s.out_width, &ow0, &ow1);
        float sum[N] = {}, here[N], taps[N];
        for (unsigned oh = oh0; oh < oh1; oh++)
            for (unsigned ow = ow0; ow < ow1; ow++) {
                size_t o = ((at.n * s.out_height + oh) * s.out_width + ow) * s.channels + at.c;
                unsigned tap = (at.h + s.pad_height - oh * s.stride_height) * s.kernel_width +
                               (at.w + s.pad_width - ow * s.stride_width);
                load<N>(dy + o, here);
                load<N>(winner + o, taps);
#pragma unroll
                for (int k = 0; k < N; k++)
                    sum[k] += taps[k] == (float)tap ? here[k] : 0;
            }
        store<N>(dx + (size_t)i * N, sum);
    }
}

template <class T, int N>
__global__ void __launch_bounds__(THREADS)
    average_pool(struct dl2_pool_shape s, const T *__restrict__ x, T *__restrict__ y)
{
    unsigned count = s.batch * s.out_height * s.out_width * (s.channels / N);
    for (unsigned i = blockIdx.x * THREADS + threadIdx.x; i < count; i += gridDim.x * THREADS) {
        const place to = place_of<N>(i, s.out_height, s.out_width, s.channels);
        unsigned h0 = adaptive_begin(to.h, s.in_height, s.out_height);
        unsigned h1 = adaptive_end(to.h, s.in_height, s.out_height);
        unsigned w0 = adaptive_begin(to.w, s.in_width, s.out_width);
        unsigned w1 = adaptive_end(to.w, s.in_width, s.out_width);
        float sum[N] = {}, here[N];
        for (unsigned h = h0; h < h1; h++)
            for (unsigned w = w0; w < w1; w++) {
                load<N>(x + ((to.n * s.in_height + h) * s.in_width + w) * s.channels + to.c, here);
#pragma unroll
                for (int k = 0; k < N; k++)
                    sum[k] += here[k];
            }
        float area = (float)((h1 - h0) * (w1 - w0));
#pragma unroll
        for (int k = 0; k < N; k++)
            sum[k] /= area;
        store<N>(y + (size_t)i * N, sum);
    }
}

template <class T, int N>
__global__ void __launch_bounds__(THREADS)
    average_pool_backward(struct dl2_pool_shape s, const T *__restrict__ dy, T *__restrict__ dx)
{
    unsigned count = s.batch * s.in_height * s.in_width * (s.channels / N);
    for (unsigned i = blockIdx.x * THREADS + threadIdx.x; i < count; i += gridDim.x * THREADS) {
        const place at = place_of<N>(i, s.in_height, s.in_width, s.channels);
        /* The outputs o with floor(o * in / out) <= at.h < ceil((o + 1) * in / out). */
        unsigned oh0 = (unsigned)((uint64_t)at.h * s.out_height / s.in_height);
        unsigned oh1 = (unsigned)(((uint64_t)(at.h + 1) * s.out_height - 1) / s.in_height);
        unsigned ow0 = (unsigned)((uint64_t)at.w * s.out_width / s.in_width);
        unsigned ow1 = (unsigned)(((uint64_t)(at.w + 1) * s.out_width - 1) / s.in_width);
        float sum[N] = {}, here[N];
        for (unsigned oh = oh0; oh <= oh1; oh++)
            for (unsigned ow = ow0; ow <= ow1; ow++) {
                unsigned area = (adaptive_end(oh, s.in_height, s.out_height) -
                                 adaptive_begin(oh, s.in_height, s.out_height)) *
                                (adaptive_end(ow, s.in_width, s.out_width) -
                                 adaptive_begin(ow, s.in_width, s.out_width));
                load<N>(dy + ((at.n * s.out_height + oh) * s.out_width + ow) * s.channels + at.c,
                        here);
#pragma unroll
                for (int k = 0; k < N; k++)
                    sum[k] += here[k] / (float)area;
            }
        store<N>(dx + (size_t)i * N, sum);
    }
}

} // namespace

template <class T, int N>
static int set_up_pool(const struct dl2_pool_shape *shape, const void *x, void *y, uint8_t *winner,
                       cudaStream_t stream)
{
    struct dl2_pool_shape s = *shape;
    unsigned blocks = flat_blocks((size_t)s.batch * s.out_height * s.out_width * (s.channels / N));
    if (s.kind == DL2_POOL_MAX)
        return DL2_LAUNCH((max_pool<T, N>), blocks, THREADS, stream, s, (const T *)x, (T *)y,
                          winner);
    return DL2_LAUNCH((average_pool<T, N>), blocks, THREADS, stream, s, (const T *)x, (T *)y);
}

int dl2_gpu_pool(enum dl2_element element, const struct dl2_pool_shape *shape, const void *x,
                 void *y, uint8_t *winner, struct CUstream_st *stream)
{
    bool whole = aligned(x) && aligned(y) && aligned(winner);
#define CALL(T, N) set_up_pool<T, N>(shape, x, y, winner, stream)
    return BY_VECTOR(element, whole, shape->channels, CALL);
#undef CALL
}

template <class T, int N>
static int set_up_pool_backward(const struct dl2_pool_shape *shape, const void *dy,
                                const uint8_t *winner, void *dx, cudaStream_t stream)
{
    struct dl2_pool_shape s = *shape;
    unsigned blocks = flat_blocks((size_t)s.batch * s.in_height * s.in_width * (s.channels / N));
    if (s.kind == DL2_POOL_MAX)
        return DL2_LAUNCH((max_pool_backward<T, N>), blocks, THREADS, stream, s, (const T *)dy,
                          winner, (T *)dx);
    return DL2_LAUNCH((average_pool_backward<T, N>), blocks, THREADS, stream, s, (const T *)dy,
                      (T *)dx);
}

int dl2_gpu_pool_backward(enum dl2_element element, const struct dl2_pool_shape *shape,
                          const void *dy, const uint8_t *winner, void *dx,
                          struct CUstream_st *stream)
{
    bool whole = aligned(dy) && aligned(dx) && aligned(winner);
#define CALL(T, N) set_up_pool_backward<T, N>(shape, dy, winner, dx, stream)
    return BY_VECTOR(element, whole, shape->channels, CALL);
#undef CALL
}
