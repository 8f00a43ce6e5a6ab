/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Shared by all kernels on tensors: access to elements of any type, 16 bytes at once where that
 * can be, a kernel over elements, and sums over a block. Only .cu files include it.
 */
#ifndef DL2_CUDA_TENSOR_CUH
#define DL2_CUDA_TENSOR_CUH

#include "cuda/launch.h"
#include "device/device.h"

#include <stdint.h>

#ifdef __CUDACC__
#include <math_constants.h>
#endif

namespace
{

enum { THREADS = 256 };

/* -- tensors: one 16-byte access moves N elements -- */

__device__ __forceinline__ float widened(float v)
{
    return v;
}
__device__ __forceinline__ float widened(uint8_t v)
{
    return (float)v;
}
__device__ __forceinline__ float widened(__nv_bfloat16 v)
{
    return __bfloat162float(v);
}
__device__ __forceinline__ float widened(__half v)
{
    return __half2float(v);
}
__device__ __forceinline__ void narrow(float v, float *to)
{
    *to = v;
}
__device__ __forceinline__ void narrow(float v, __nv_bfloat16 *to)
{
    *to = __float2bfloat16_rn(v);
}
__device__ __forceinline__ void narrow(float v, __half *to)
{
    *to = __float2half_rn(v);
}
/* Rounds as a tensor of T would. */
template <class T> __device__ __forceinline__ float rounded(float v)
{
    T t;
    narrow(v, &t);
    return widened(t);
}

template <int BYTES> struct word {
    typedef uint4 type;
};
template <> struct word<1> {
    typedef uint8_t type;
};
template <> struct word<2> {
    typedef uint16_t type;
};
template <> struct word<4> {
    typedef uint32_t type;
};
template <> struct word<8> {
    typedef uint2 type;
};

template <int N, class T> __device__ __forceinline__ void load(const T *from, float (&to)[N])
{
    typedef typename word<N *(int)sizeof(T)>::type W;
    enum { COUNT = N * sizeof(T) / sizeof(W) };
    W words[COUNT];
#pragma unroll
    for (int i = 0; i < COUNT; i++)
        words[i] = ((const W *)from)[i];
    T elements[N];
    memcpy(elements, words, sizeof elements);
#pragma unroll
    for (int i = 0; i < N; i++)
        to[i] = widened(elements[i]);
}

/* The compiler likes to cut a plain assignment of 16 bytes into four. */
template <class W> __device__ __forceinline__ void put(W *to, W what)
{
    *to = what;
}
__device__ __forceinline__ void put(uint4 *to, uint4 what)
{
    __stwb(to, what);
}

template <int N, class T> __device__ __forceinline__ void store(T *to, const float (&from)[N])
{
    typedef typename word<N *(int)sizeof(T)>::type W;
    enum { COUNT = N * sizeof(T) / sizeof(W) };
    T elements[N];
#pragma unroll
    for (int i = 0; i < N; i++)
        narrow(from[i], elements + i);
    W words[COUNT];
    memcpy(words, elements, sizeof words);
#pragma unroll
    for (int i = 0; i < COUNT; i++)
        put((W *)to + i, words[i]);
}

/* Elements of T in 16 bytes. */
template <class T> struct wide {
    enum { N = 16 / sizeof(T) };
};

#define BY_ELEMENT(element, CALL)                                                                  \
    ((element) == DL2_ELEMENT_BF16  ? CALL(__nv_bfloat16)                                          \
     : (element) == DL2_ELEMENT_F16 ? CALL(__half)                                                 \
                                    : CALL(float))

/* N elements at once: CALL(T, N), with those of 16 bytes where all is aligned and there are enough.
 */
#define BY_VECTOR(element, whole, channels, CALL)                                                  \
    ((element) == DL2_ELEMENT_BF16  ? BY_WIDTH(whole, channels, __nv_bfloat16, CALL)               \
     : (element) == DL2_ELEMENT_F16 ? BY_WIDTH(whole, channels, __half, CALL)                      \
                                    : BY_WIDTH(whole, channels, float, CALL))
#define BY_WIDTH(whole, channels, T, CALL)                                                         \
    ((whole) && (channels) % wide<T>::N == 0 ? CALL(T, wide<T>::N) : CALL(T, 1))

inline bool aligned(const void *address)
{
    return (uintptr_t)address % 16 == 0; /* NULL is */
}

inline unsigned flat_blocks(size_t items)
{
    size_t blocks = (items + THREADS - 1) / THREADS;
    return (unsigned)(blocks < 16384 ? blocks : 16384);
}

/* -- elementwise: F has run<N>(i), which does elements i .. i + N - 1 -- */

/* `head` elements, then `vectors` of N, then what is left. */
template <int N, class F>
__global__ void __launch_bounds__(THREADS) each(F f, size_t head, size_t vectors, size_t count)
{
    size_t step = (size_t)gridDim.x * THREADS, i = (size_t)blockIdx.x * THREADS + threadIdx.x;
    for (size_t v = i; v < vectors; v += step)
        f.template run<N>(head + v * N);
    for (size_t s = i; s < count - vectors * N; s += step)
        f.template run<1>(s < head ? s : s + vectors * N);
}

/* Where N-element accesses may begin: the number of elements before that. */
template <int N> struct aligner {
    enum { NONE = -2, DIFFERENT = -1 }; /* no tensor was seen yet; theirs differ */
    long head = NONE;
    void see(const void *address, size_t size)
    {
        const long first = (long)((N - (uintptr_t)address / size % N) % N);
        if ((uintptr_t)address % size || (head != NONE && head != first))
            head = DIFFERENT;
        else
            head = first;
    }
    size_t vectors(size_t count) const
    {
        return head < 0 || (size_t)head > count ? 0 : (count - (size_t)head) / N;
    }
};

/* The alignment of all tensors of a call; NULL is none. */
template <int N, class... P> aligner<N> aligner_of(const P *...addresses)
{
    aligner<N> a;
    ((addresses ? a.see(addresses, sizeof(P)) : (void)0), ...);
    return a;
}

template <int N, class F>
int run_each(F f, const aligner<N> &alignment, size_t count, cudaStream_t stream)
{
    if (!count)
        return cudaSuccess;
    size_t vectors = alignment.vectors(count), head = vectors ? (size_t)alignment.head : 0;
    size_t most = vectors > count - vectors * N ? vectors : count - vectors * N;
    return DL2_LAUNCH((each<N, F>), flat_blocks(most), THREADS, stream, f, head, vectors, count);
}

__device__ __forceinline__ float activated(float v, enum dl2_activation activation)
{
    /* So written that NaN stays NaN. */
    if (activation == DL2_ELU)
        return v <= 0 ? expm1f(v) : v;
    if (activation != DL2_IDENTITY && v <= 0)
        v = 0;
    if (activation == DL2_RELU6 && v >= 6)
        v = 6;
    return v;
}

/* Whether a gradient passes an activation that lets it through whole or not at all. */
__device__ __forceinline__ bool open(float y, enum dl2_activation activation)
{
    return activation == DL2_IDENTITY || (y > 0 && (activation == DL2_RELU || y < 6));
}

/* The gradient of an activation's output y, times its slope there. */
__device__ __forceinline__ float passed(float y, float g, enum dl2_activation activation)
{
    if (activation == DL2_ELU)
        return y > 0 ? g : g * (y + 1);
    return open(y, activation) ? g : 0;
}

/* -- sums over a block, in a fixed order; every thread gets the result -- */

template <class V> __device__ V block_sum(V value, V *shared)
{
    __syncthreads();
    shared[threadIdx.x] = value;
    __syncthreads();
    for (unsigned half = blockDim.x / 2; half; half /= 2) {
        if (threadIdx.x < half)
            shared[threadIdx.x] += shared[threadIdx.x + half];
        __syncthreads();
    }
    return shared[0];
}

__device__ inline float block_max(float value, float *shared)
{
    __syncthreads();
    shared[threadIdx.x] = value;
    __syncthreads();
    for (unsigned half = blockDim.x / 2; half; half /= 2) {
        if (threadIdx.x < half && shared[threadIdx.x + half] > shared[threadIdx.x])
            shared[threadIdx.x] = shared[threadIdx.x + half];
        __syncthreads();
    }
    return shared[0];
}

/* -- over a warp, whose threads are all there; every thread gets the same bits -- */

enum { WARP = 32, WARPS = THREADS / WARP };

/* The row of this warp, if a warp does a row. */
__device__ __forceinline__ size_t warp_row()
{
    return (size_t)blockIdx.x * WARPS + threadIdx.x / WARP;
}

inline unsigned warp_blocks(size_t rows)
{
    return (unsigned)((rows + WARPS - 1) / WARPS);
}

__device__ __forceinline__ float warp_sum(float value)
{
#pragma unroll
    for (int lanes = WARP / 2; lanes; lanes /= 2)
        value += __shfl_xor_sync(0xffffffff, value, lanes);
    return value;
}

__device__ __forceinline__ float warp_max(float value)
{
#pragma unroll
    for (int lanes = WARP / 2; lanes; lanes /= 2) {
        float other = __shfl_xor_sync(0xffffffff, value, lanes);
        value = other > value ? other : value;
    }
    return value;
}

} // namespace

#endif
