/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Pooling: a thread makes N channels of one output. No tensor has 2^31 elements, and 32 bits are
 * quicker to divide. DEEP: of clips; images have a depth of 1, which the compiler knows then. Why
 * not cuDNN's: docs/measurements/cuda.md.
 */
#include "cuda/kernels.h"
#include "cuda/tensor.cuh"

namespace
{

/* The place of the i-th group of N channels of a tensor. */
struct place {
    unsigned c, w, h, d;
    size_t n;
};

template <int N, bool DEEP>
__device__ __forceinline__ place place_of(unsigned i, unsigned depth, unsigned height,
                                          unsigned width, unsigned channels)
{
    unsigned across = channels / N, frame = i / across / width / height;
    return {i % across * N, i / across % width, i / across / width % height,
            DEEP ? frame % depth : 0, DEEP ? frame / depth : frame};
}

/* The first element of a place of a tensor. */
template <bool DEEP>
__device__ __forceinline__ size_t at_place(size_t n, unsigned d, unsigned h, unsigned w,
                                           unsigned depth, unsigned height, unsigned width,
                                           unsigned channels)
{
    size_t frame = DEEP ? n * depth + d : n;
    return ((frame * height + h) * width + w) * channels;
}

struct window {
    unsigned d0, d1, h0, h1, w0, w1;
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

__device__ __forceinline__ unsigned adaptive_size(unsigned i, unsigned in, unsigned out)
{
    return adaptive_end(i, in, out) - adaptive_begin(i, in, out);
}

/* First and last output o with floor(o * in / out) <= i < ceil((o + 1) * in / out). */
__device__ __forceinline__ void averaged_into(unsigned i, unsigned in, unsigned out,
                                              unsigned *first, unsigned *last)
{
    *first = (unsigned)((uint64_t)i * out / in);
    *last = (unsigned)(((uint64_t)(i + 1) * out - 1) / in);
}

template <class T, int N, bool DEEP>
__global__ void __launch_bounds__(THREADS, 4)
    max_pool(struct dl2_pool_shape s, const T *__restrict__ x, T *__restrict__ y,
             uint8_t *__restrict__ winner)
{
    unsigned count = s.batch * s.out.depth * s.out.height * s.out.width * (s.channels / N);
    for (unsigned i = blockIdx.x * THREADS + threadIdx.x; i < count; i += gridDim.x * THREADS) {
        const place to = place_of<N, DEEP>(i, s.out.depth, s.out.height, s.out.width, s.channels);
        struct window v = {0, 1, 0, 0, 0, 0};
        if (DEEP)
            clip(to.d, s.kernel.depth, s.stride.depth, s.pad.depth, s.in.depth, &v.d0, &v.d1);
        clip(to.h, s.kernel.height, s.stride.height, s.pad.height, s.in.height, &v.h0, &v.h1);
        clip(to.w, s.kernel.width, s.stride.width, s.pad.width, s.in.width, &v.w0, &v.w1);
        float best[N] = {}, taken[N] = {}, here[N];
        bool first = true;
        for (unsigned d = v.d0; d < v.d1; d++)
            for (unsigned h = v.h0; h < v.h1; h++)
                for (unsigned w = v.w0; w < v.w1; w++) {
                    load<N>(x +
                                at_place<DEEP>(to.n, d, h, w, s.in.depth, s.in.height, s.in.width,
                                               s.channels) +
                                to.c,
                            here);
                    unsigned row = h + s.pad.height - to.h * s.stride.height;
                    if (DEEP)
                        row += (d + s.pad.depth - to.d * s.stride.depth) * s.kernel.height;
                    unsigned tap = row * s.kernel.width + (w + s.pad.width - to.w * s.stride.width);
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

template <class T, int N, bool DEEP>
__global__ void __launch_bounds__(THREADS)
    max_pool_backward(struct dl2_pool_shape s, const T *__restrict__ dy,
                      const uint8_t *__restrict__ winner, T *__restrict__ dx)
{
    unsigned count = s.batch * s.in.depth * s.in.height * s.in.width * (s.channels / N);
    for (unsigned i = blockIdx.x * THREADS + threadIdx.x; i < count; i += gridDim.x * THREADS) {
        const place at = place_of<N, DEEP>(i, s.in.depth, s.in.height, s.in.width, s.channels);
        unsigned od0 = 0, od1 = 1, oh0, oh1, ow0, ow1;
        if (DEEP)
            seen_by(at.d, s.kernel.depth, s.stride.depth, s.pad.depth, s.out.depth, &od0, &od1);
        seen_by(at.h, s.kernel.height, s.stride.height, s.pad.height, s.out.height, &oh0, &oh1);
        seen_by(at.w, s.kernel.width, s.stride.width, s.pad.width, s.out.width, &ow0, &ow1);
        float sum[N] = {}, here[N], taps[N];
        for (unsigned od = od0; od < od1; od++)
            for (unsigned oh = oh0; oh < oh1; oh++)
                for (unsigned ow = ow0; ow < ow1; ow++) {
                    size_t o = at_place<DEEP>(at.n, od, oh, ow, s.out.depth, s.out.height,
                                              s.out.width, s.channels) +
                               at.c;
                    unsigned row = at.h + s.pad.height - oh * s.stride.height;
                    if (DEEP)
                        row += (at.d + s.pad.depth - od * s.stride.depth) * s.kernel.height;
                    unsigned tap =
                        row * s.kernel.width + (at.w + s.pad.width - ow * s.stride.width);
                    load<N>(dy + o, here);
                    load<N>(winner + o, taps);
#pragma unroll
                    for (int k = 0; k < N; k++)
                        sum[k] += taps[k] == (float)tap ? here[k] : 0;
                }
        store<N>(dx + (size_t)i * N, sum);
    }
}

template <class T, int N, bool DEEP>
__global__ void __launch_bounds__(THREADS, 4)
    average_pool(struct dl2_pool_shape s, const T *__restrict__ x, T *__restrict__ y)
{
    unsigned count = s.batch * s.out.depth * s.out.height * s.out.width * (s.channels / N);
    for (unsigned i = blockIdx.x * THREADS + threadIdx.x; i < count; i += gridDim.x * THREADS) {
        const place to = place_of<N, DEEP>(i, s.out.depth, s.out.height, s.out.width, s.channels);
        unsigned d0 = DEEP ? adaptive_begin(to.d, s.in.depth, s.out.depth) : 0;
        unsigned d1 = DEEP ? adaptive_end(to.d, s.in.depth, s.out.depth) : 1;
        unsigned h0 = adaptive_begin(to.h, s.in.height, s.out.height);
        unsigned h1 = adaptive_end(to.h, s.in.height, s.out.height);
        unsigned w0 = adaptive_begin(to.w, s.in.width, s.out.width);
        unsigned w1 = adaptive_end(to.w, s.in.width, s.out.width);
        float sum[N] = {}, here[N];
        for (unsigned d = d0; d < d1; d++)
            for (unsigned h = h0; h < h1; h++)
                for (unsigned w = w0; w < w1; w++) {
                    load<N>(x +
                                at_place<DEEP>(to.n, d, h, w, s.in.depth, s.in.height, s.in.width,
                                               s.channels) +
                                to.c,
                            here);
#pragma unroll
                    for (int k = 0; k < N; k++)
                        sum[k] += here[k];
                }
        float area = (float)((d1 - d0) * (h1 - h0) * (w1 - w0));
#pragma unroll
        for (int k = 0; k < N; k++)
            sum[k] /= area;
        store<N>(y + (size_t)i * N, sum);
    }
}

template <class T, int N, bool DEEP>
__global__ void __launch_bounds__(THREADS)
    average_pool_backward(struct dl2_pool_shape s, const T *__restrict__ dy, T *__restrict__ dx)
{
    unsigned count = s.batch * s.in.depth * s.in.height * s.in.width * (s.channels / N);
    for (unsigned i = blockIdx.x * THREADS + threadIdx.x; i < count; i += gridDim.x * THREADS) {
        const place at = place_of<N, DEEP>(i, s.in.depth, s.in.height, s.in.width, s.channels);
        unsigned od0 = 0, od1 = 0, oh0, oh1, ow0, ow1;
        if (DEEP)
            averaged_into(at.d, s.in.depth, s.out.depth, &od0, &od1);
        averaged_into(at.h, s.in.height, s.out.height, &oh0, &oh1);
        averaged_into(at.w, s.in.width, s.out.width, &ow0, &ow1);
        float sum[N] = {}, here[N];
        for (unsigned od = od0; od <= od1; od++)
            for (unsigned oh = oh0; oh <= oh1; oh++)
                for (unsigned ow = ow0; ow <= ow1; ow++) {
                    unsigned area = adaptive_size(oh, s.in.height, s.out.height) *
                                    adaptive_size(ow, s.in.width, s.out.width);
                    if (DEEP)
                        area *= adaptive_size(od, s.in.depth, s.out.depth);
                    load<N>(dy +
                                at_place<DEEP>(at.n, od, oh, ow, s.out.depth, s.out.height,
                                               s.out.width, s.channels) +
                                at.c,
                            here);
#pragma unroll
                    for (int k = 0; k < N; k++)
                        sum[k] += here[k] / (float)area;
                }
        store<N>(dx + (size_t)i * N, sum);
    }
}

} // namespace

static bool is_deep(const struct dl2_pool_shape *s)
{
    return s->in.depth > 1 || s->kernel.depth > 1 || s->out.depth > 1;
}

template <class T, int N, bool DEEP>
static int set_up_pool(const struct dl2_pool_shape *shape, const void *x, void *y, uint8_t *winner,
                       cudaStream_t stream)
{
    struct dl2_pool_shape s = *shape;
    unsigned blocks =
        flat_blocks((size_t)s.batch * s.out.depth * s.out.height * s.out.width * (s.channels / N));
    if (s.kind == DL2_POOL_MAX)
        return DL2_LAUNCH((max_pool<T, N, DEEP>), blocks, THREADS, stream, s, (const T *)x, (T *)y,
                          winner);
    return DL2_LAUNCH((average_pool<T, N, DEEP>), blocks, THREADS, stream, s, (const T *)x, (T *)y);
}

int dl2_gpu_pool(enum dl2_element element, const struct dl2_pool_shape *shape, const void *x,
                 void *y, uint8_t *winner, struct CUstream_st *stream)
{
    bool whole = aligned(x) && aligned(y) && aligned(winner);
#define CALL(T, N)                                                                                 \
    (is_deep(shape) ? set_up_pool<T, N, true>(shape, x, y, winner, stream)                         \
                    : set_up_pool<T, N, false>(shape, x, y, winner, stream))
    return BY_VECTOR(element, whole, shape->channels, CALL);
#undef CALL
}

template <class T, int N, bool DEEP>
static int set_up_pool_backward(const struct dl2_pool_shape *shape, const void *dy,
                                const uint8_t *winner, void *dx, cudaStream_t stream)
{
    struct dl2_pool_shape s = *shape;
    unsigned blocks =
        flat_blocks((size_t)s.batch * s.in.depth * s.in.height * s.in.width * (s.channels / N));
    if (s.kind == DL2_POOL_MAX)
        return DL2_LAUNCH((max_pool_backward<T, N, DEEP>), blocks, THREADS, stream, s,
                          (const T *)dy, winner, (T *)dx);
    return DL2_LAUNCH((average_pool_backward<T, N, DEEP>), blocks, THREADS, stream, s,
                      (const T *)dy, (T *)dx);
}

int dl2_gpu_pool_backward(enum dl2_element element, const struct dl2_pool_shape *shape,
                          const void *dy, const uint8_t *winner, void *dx,
                          struct CUstream_st *stream)
{
    bool whole = aligned(dy) && aligned(dx) && aligned(winner);
#define CALL(T, N)                                                                                 \
    (is_deep(shape) ? set_up_pool_backward<T, N, true>(shape, dy, winner, dx, stream)              \
                    : set_up_pool_backward<T, N, false>(shape, dy, winner, dx, stream))
    return BY_VECTOR(element, whole, shape->channels, CALL);
#undef CALL
}
