/* SPDX-License-Identifier: BSD-2-Clause */
/* Kernels that treat each element by itself. */
#include "cuda/kernels.h"
#include "cuda/tensor.cuh"

#define ROOT_HALF 0.7071067812f

namespace
{

template <class T> struct widen {
    const T *from;
    float *to;
    bool accumulate;
    template <int N> __device__ void run(size_t i) const
    {
        float v[N], old[N];
        load<N>(from + i, v);
        if (accumulate) {
            load<N>(to + i, old);
#pragma unroll
            for (int k = 0; k < N; k++)
                v[k] += old[k];
        }
        store<N>(to + i, v);
    }
};

template <class T> struct convert {
    const float *from;
    T *to;
    template <int N> __device__ void run(size_t i) const
    {
        float v[N];
        load<N>(from + i, v);
        store<N>(to + i, v);
    }
};

template <class T> struct activate_backward {
    const T *y, *dy;
    T *dx;
    enum dl2_activation activation;
    template <int N> __device__ void run(size_t i) const
    {
        float v[N], g[N];
        load<N>(y + i, v);
        load<N>(dy + i, g);
#pragma unroll
        for (int k = 0; k < N; k++)
            g[k] = passed(v[k], g[k], activation);
        store<N>(dx + i, g);
    }
};

/* 1 / (1 + exp(-v)), without an infinity on the way. */
__device__ __forceinline__ float sigmoid(float v)
{
    const float e = expf(-fabsf(v));
    return (v < 0 ? e : 1) / (1 + e);
}

/* A smooth activation over x: the normal distribution's cumulative function for GELU. */
template <dl2_smooth KIND> __device__ __forceinline__ float share(float x)
{
    return KIND == DL2_GELU ? 0.5f + 0.5f * erff(x * ROOT_HALF) : sigmoid(x);
}

template <class T, dl2_smooth KIND> struct smooth {
    const T *x;
    T *y;
    template <int N> __device__ void run(size_t i) const
    {
        float v[N];
        load<N>(x + i, v);
#pragma unroll
        for (int k = 0; k < N; k++)
            v[k] *= share<KIND>(v[k]);
        store<N>(y + i, v);
    }
};

/* The share plus x times its slope, for GELU the density. */
template <class T, dl2_smooth KIND> struct smooth_backward {
    const T *x, *dy;
    T *dx;
    template <int N> __device__ void run(size_t i) const
    {
        const float per_unit = 0.3989422804f; /* 1 / sqrt(2 pi) */
        float v[N], g[N];
        load<N>(x + i, v);
        load<N>(dy + i, g);
#pragma unroll
        for (int k = 0; k < N; k++) {
            const float s = share<KIND>(v[k]);
            g[k] *=
                s + v[k] * (KIND == DL2_GELU ? per_unit * expf(-0.5f * v[k] * v[k]) : s * (1 - s));
        }
        store<N>(dx + i, g);
    }
};

template <class T> struct add {
    const T *a, *b;
    T *y;
    enum dl2_activation activation;
    template <int N> __device__ void run(size_t i) const
    {
        float v[N], w[N];
        load<N>(a + i, v);
        load<N>(b + i, w);
#pragma unroll
        for (int k = 0; k < N; k++)
            v[k] = activated(v[k] + w[k], activation);
        store<N>(y + i, v);
    }
};

struct scale {
    float *x, factor;
    template <int N> __device__ void run(size_t i) const
    {
        float v[N];
        load<N>(x + i, v);
#pragma unroll
        for (int k = 0; k < N; k++)
            v[k] *= factor;
        store<N>(x + i, v);
    }
};

/* Philox4x32-10, as common/random.c has it. */
__device__ __forceinline__ uint4 philox(uint4 c, uint32_t k0, uint32_t k1)
{
#pragma unroll
    for (int round = 0; round < 10; round++) {
        uint4 n;
        n.x = __umulhi(0xCD9E8D57u, c.z) ^ c.y ^ k0;
        n.y = 0xCD9E8D57u * c.z;
        n.z = __umulhi(0xD2511F53u, c.x) ^ c.w ^ k1;
        n.w = 0xD2511F53u * c.x;
        c = n;
        k0 += 0x9E3779B9u;
        k1 += 0xBB67AE85u;
    }
    return c;
}

/* Block `i / 4` of the numbers that dropout takes: those of elements i .. i + 3, i a multiple of 4.
 * dl2_random_init() lays the counter out so. */
__device__ __forceinline__ uint4 dropout_numbers(size_t i, uint64_t seed, uint64_t step,
                                                 uint64_t layer)
{
    uint64_t b = (layer << 24) + i / 4096;
    uint4 counter;
    counter.x = (uint32_t)(i % 4096 / 4);
    counter.y = 4u << 24 /* DL2_RANDOM_DROPOUT */ | ((uint32_t)(b >> 32) & 0xff) << 16 |
                ((uint32_t)(step >> 32) & 0xffff);
    counter.z = (uint32_t)b;
    counter.w = (uint32_t)step;
    return philox(counter, (uint32_t)seed, (uint32_t)(seed >> 32));
}

template <class T> struct dropout {
    const T *x;
    T *y;
    uint64_t least, seed, layer;
    float factor;
    const struct dl2_gpu_state *state;
    template <int N> __device__ void run(size_t i) const
    {
        uint64_t step = state->params.step;
        float v[N];
        load<N>(x + i, v);
        if (N == 1) {
            uint4 r = dropout_numbers(i, seed, step, layer);
            uint32_t number = (i & 2) ? ((i & 1) ? r.w : r.z) : ((i & 1) ? r.y : r.x);
            v[0] = number >= least ? v[0] * factor : 0;
        } else {
#pragma unroll
            for (int k = 0; k < N; k += 4) {
                uint4 r = dropout_numbers(i + k, seed, step, layer);
                v[k] = r.x >= least ? v[k] * factor : 0;
                v[(k + 1) % N] = r.y >= least ? v[(k + 1) % N] * factor : 0;
                v[(k + 2) % N] = r.z >= least ? v[(k + 2) % N] * factor : 0;
                v[(k + 3) % N] = r.w >= least ? v[(k + 3) % N] * factor : 0;
            }
        }
        store<N>(y + i, v);
    }
};

/* Whole runs of `each` elements. */
template <class T> struct drop_runs {
    const T *x;
    T *y;
    uint64_t least, seed, layer;
    unsigned each;
    float factor;
    const struct dl2_gpu_state *state;
    template <int N> __device__ void run(size_t i) const
    {
        float v[N];
        load<N>(x + i, v);
        unsigned last = (unsigned)i / each;
        bool kept = keeps(last);
#pragma unroll
        for (int k = 0; k < N; k++) {
            const unsigned now = (unsigned)(i + k) / each;
            if (now != last)
                kept = keeps(last = now);
            v[k] = kept ? v[k] * factor : 0;
        }
        store<N>(y + i, v);
    }
    __device__ bool keeps(unsigned i) const
    {
        const uint4 r = dropout_numbers(i, seed, state->params.step, layer);
        return ((i & 2) ? ((i & 1) ? r.w : r.z) : ((i & 1) ? r.y : r.x)) >= least;
    }
};

template <class T, int N>
__global__ void __launch_bounds__(THREADS) gate(struct dl2_gate_shape s, const T *__restrict__ x,
                                                const T *__restrict__ gates, T *__restrict__ y)
{
    const unsigned across = s.channels / N, size = (unsigned)s.rows * across;
    for (unsigned i = blockIdx.x * THREADS + threadIdx.x; i < s.batch * size;
         i += gridDim.x * THREADS) {
        float v[N], g[N];
        load<N>(x + (size_t)i * N, v);
        load<N>(gates + (size_t)(i / size * across + i % across) * N, g);
#pragma unroll
        for (int k = 0; k < N; k++)
            v[k] *= sigmoid(g[k]);
        store<N>(y + (size_t)i * N, v);
    }
}

enum { GATES = 32 };

/* A block has GATES channels of a sample, and as many rows below each other as there are threads
 * for. */
template <class T>
__global__ void __launch_bounds__(THREADS)
    gate_backward(struct dl2_gate_shape s, const T *__restrict__ x, const T *__restrict__ gates,
                  const T *__restrict__ dy, T *__restrict__ dx, T *__restrict__ dgates)
{
    __shared__ float shared[THREADS];
    const unsigned c = blockIdx.y * GATES + threadIdx.x % GATES, down = threadIdx.x / GATES;
    const size_t at = (size_t)blockIdx.x * s.channels + c;
    float sum = 0, open = 0;
    if (c < s.channels) {
        open = sigmoid(widened(gates[at]));
        for (size_t r = down; r < s.rows; r += THREADS / GATES) {
            const size_t i = ((size_t)blockIdx.x * s.rows + r) * s.channels + c;
            const float g = widened(dy[i]);
            sum += g * widened(x[i]);
            narrow(g * open, dx + i);
        }
    }
    shared[threadIdx.x] = sum;
    __syncthreads();
    if (down || c >= s.channels)
        return;
    for (unsigned row = 1; row < THREADS / GATES; row++)
        sum += shared[row * GATES + threadIdx.x];
    narrow(sum * open * (1 - open), dgates + at);
}

template <class T> struct noise {
    T *to;
    template <int N> __device__ void run(size_t i) const
    {
        float v[N];
#pragma unroll
        for (int k = 0; k < N; k++) {
            uint32_t h = (uint32_t)(i + k) * 2654435761u;
            h ^= h >> 15;
            h *= 2246822519u;
            h ^= h >> 13;
            v[k] = (float)(h >> 8) * (2.0f / 16777216) - 1;
        }
        store<N>(to + i, v);
    }
};

} // namespace

int dl2_gpu_widen(enum dl2_element element, const void *from, float *to, size_t count,
                  bool accumulate, struct CUstream_st *stream)
{
#define CALL(T)                                                                                    \
    run_each(widen<T>{(const T *)from, to, accumulate},                                            \
             aligner_of<wide<T>::N>((const T *)from, to), count, stream)
    return BY_ELEMENT(element, CALL);
#undef CALL
}

int dl2_gpu_convert_weights(enum dl2_element element, const float *from, void *to, size_t count,
                            struct CUstream_st *stream)
{
#define CALL(T)                                                                                    \
    run_each(convert<T>{from, (T *)to}, aligner_of<wide<T>::N>(from, (T *)to), count, stream)
    return BY_ELEMENT(element, CALL);
#undef CALL
}

int dl2_gpu_activate_backward(enum dl2_element element, enum dl2_activation activation,
                              const void *y, const void *dy, void *dx, size_t count,
                              struct CUstream_st *stream)
{
#define CALL(T)                                                                                    \
    run_each(activate_backward<T>{(const T *)y, (const T *)dy, (T *)dx, activation},               \
             aligner_of<wide<T>::N>((const T *)y, (const T *)dy, (T *)dx), count, stream)
    return BY_ELEMENT(element, CALL);
#undef CALL
}

template <dl2_smooth KIND>
static int smooth_of(enum dl2_element element, const void *x, void *y, size_t count,
                     cudaStream_t stream)
{
#define CALL(T)                                                                                    \
    run_each(smooth<T, KIND>{(const T *)x, (T *)y}, aligner_of<wide<T>::N>((const T *)x, (T *)y),  \
             count, stream)
    return BY_ELEMENT(element, CALL);
#undef CALL
}

int dl2_gpu_smooth(enum dl2_element element, enum dl2_smooth kind, const void *x, void *y,
                   size_t count, struct CUstream_st *stream)
{
    return kind == DL2_GELU ? smooth_of<DL2_GELU>(element, x, y, count, stream)
                            : smooth_of<DL2_SILU>(element, x, y, count, stream);
}

template <dl2_smooth KIND>
static int smooth_backward_of(enum dl2_element element, const void *x, const void *dy, void *dx,
                              size_t count, cudaStream_t stream)
{
#define CALL(T)                                                                                    \
    run_each(smooth_backward<T, KIND>{(const T *)x, (const T *)dy, (T *)dx},                       \
             aligner_of<wide<T>::N>((const T *)x, (const T *)dy, (T *)dx), count, stream)
    return BY_ELEMENT(element, CALL);
#undef CALL
}

int dl2_gpu_smooth_backward(enum dl2_element element, enum dl2_smooth kind, const void *x,
                            const void *dy, void *dx, size_t count, struct CUstream_st *stream)
{
    return kind == DL2_GELU ? smooth_backward_of<DL2_GELU>(element, x, dy, dx, count, stream)
                            : smooth_backward_of<DL2_SILU>(element, x, dy, dx, count, stream);
}

template <class T, int N>
static int set_up_gate(const struct dl2_gate_shape *s, const void *x, const void *gates, void *y,
                       cudaStream_t stream)
{
    return DL2_LAUNCH((gate<T, N>), flat_blocks(s->batch * s->rows * (s->channels / N)), THREADS,
                      stream, *s, (const T *)x, (const T *)gates, (T *)y);
}

int dl2_gpu_gate(enum dl2_element element, const struct dl2_gate_shape *shape, const void *x,
                 const void *gates, void *y, struct CUstream_st *stream)
{
    const bool whole = aligned(x) && aligned(gates) && aligned(y);
#define CALL(T, N) set_up_gate<T, N>(shape, x, gates, y, stream)
    return BY_VECTOR(element, whole, shape->channels, CALL);
#undef CALL
}

int dl2_gpu_gate_backward(enum dl2_element element, const struct dl2_gate_shape *s, const void *x,
                          const void *gates, const void *dy, void *dx, void *dgates,
                          struct CUstream_st *stream)
{
    const dim3 blocks(s->batch, (s->channels + GATES - 1) / GATES);
#define CALL(T)                                                                                    \
    DL2_LAUNCH((gate_backward<T>), blocks, THREADS, stream, *s, (const T *)x, (const T *)gates,    \
               (const T *)dy, (T *)dx, (T *)dgates)
    return BY_ELEMENT(element, CALL);
#undef CALL
}

int dl2_gpu_add(enum dl2_element element, const void *a, const void *b,
                enum dl2_activation activation, void *y, size_t count, struct CUstream_st *stream)
{
#define CALL(T)                                                                                    \
    run_each(add<T>{(const T *)a, (const T *)b, (T *)y, activation},                               \
             aligner_of<wide<T>::N>((const T *)a, (const T *)b, (T *)y), count, stream)
    return BY_ELEMENT(element, CALL);
#undef CALL
}

template <class T>
static int set_up_dropout(const void *x, void *y, size_t count, size_t each, float rate,
                          uint64_t seed, uint64_t layer, const struct dl2_gpu_state *state,
                          cudaStream_t stream)
{
    aligner<wide<T>::N> a = aligner_of<wide<T>::N>((const T *)x, (T *)y);
    uint64_t least = (uint64_t)ceil(rate * 4294967296.0);
    if (each > 1)
        return run_each(drop_runs<T>{(const T *)x, (T *)y, least, seed, layer, (unsigned)each,
                                     1 / (1 - rate), state},
                        a, count, stream);
    if (a.head > 0) /* numbers come by fours from element 0 on */
        a.head = a.DIFFERENT;
    return run_each(dropout<T>{(const T *)x, (T *)y, least, seed, layer, 1 / (1 - rate), state}, a,
                    count, stream);
}

int dl2_gpu_dropout(enum dl2_element element, const void *x, void *y, size_t count, size_t each,
                    float rate, uint64_t seed, uint64_t layer, const struct dl2_gpu_state *state,
                    struct CUstream_st *stream)
{
#define CALL(T) set_up_dropout<T>(x, y, count, each, rate, seed, layer, state, stream)
    return BY_ELEMENT(element, CALL);
#undef CALL
}

int dl2_gpu_scale(float *x, size_t count, float factor, struct CUstream_st *stream)
{
    return run_each(scale{x, factor}, aligner_of<4>(x), count, stream);
}

int dl2_gpu_noise(enum dl2_element element, void *to, size_t count, struct CUstream_st *stream)
{
#define CALL(T) run_each(noise<T>{(T *)to}, aligner_of<wide<T>::N>((T *)to), count, stream)
    return BY_ELEMENT(element, CALL);
#undef CALL
}
