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

template <class T> struct gelu {
    const T *x;
    T *y;
    template <int N> __device__ void run(size_t i) const
    {
        float v[N];
        load<N>(x + i, v);
#pragma unroll
        for (int k = 0; k < N; k++)
            v[k] *= 0.5f + 0.5f * erff(v[k] * ROOT_HALF);
        store<N>(y + i, v);
    }
};

/* Times the normal distribution's cumulative function plus x times its density. */
template <class T> struct gelu_backward {
    const T *x, *dy;
    T *dx;
    template <int N> __device__ void run(size_t i) const
    {
        const float per_unit = 0.3989422804f; /* 1 / sqrt(2 pi) */
        float v[N], g[N];
        load<N>(x + i, v);
        load<N>(dy + i, g);
#pragma unroll
        for (int k = 0; k < N; k++)
            g[k] *=
                0.5f + 0.5f * erff(v[k] * ROOT_HALF) + v[k] * per_unit * expf(-0.5f * v[k] * v[k]);
        store<N>(dx + i, g);
    }
};

template <class T> struct add {
    const T *a, *b;
    T *y;
    template <int N> __device__ void run(size_t i) const
    {
        float v[N], w[N];
        load<N>(a + i, v);
        load<N>(b + i, w);
#pragma unroll
        for (int k = 0; k < N; k++)
            v[k] += w[k];
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

int dl2_gpu_gelu(enum dl2_element element, const void *x, void *y, size_t count,
                 struct CUstream_st *stream)
{
#define CALL(T)                                                                                    \
    run_each(gelu<T>{(const T *)x, (T *)y}, aligner_of<wide<T>::N>((const T *)x, (T *)y), count,   \
             stream)
    return BY_ELEMENT(element, CALL);
#undef CALL
}

int dl2_gpu_gelu_backward(enum dl2_element element, const void *x, const void *dy, void *dx,
                          size_t count, struct CUstream_st *stream)
{
#define CALL(T)                                                                                    \
    run_each(gelu_backward<T>{(const T *)x, (const T *)dy, (T *)dx},                               \
             aligner_of<wide<T>::N>((const T *)x, (const T *)dy, (T *)dx), count, stream)
    return BY_ELEMENT(element, CALL);
#undef CALL
}

int dl2_gpu_add(enum dl2_element element, const void *a, const void *b, void *y, size_t count,
                struct CUstream_st *stream)
{
#define CALL(T)                                                                                    \
    run_each(add<T>{(const T *)a, (const T *)b, (T *)y},                                           \
             aligner_of<wide<T>::N>((const T *)a, (const T *)b, (T *)y), count, stream)
    return BY_ELEMENT(element, CALL);
#undef CALL
}

template <class T>
static int set_up_dropout(const void *x, void *y, size_t count, float rate, uint64_t seed,
                          uint64_t layer, const struct dl2_gpu_state *state, cudaStream_t stream)
{
    aligner<wide<T>::N> a = aligner_of<wide<T>::N>((const T *)x, (T *)y);
    if (a.head > 0) /* numbers come by fours from element 0 on */
        a.head = a.DIFFERENT;
    uint64_t least = (uint64_t)ceil(rate * 4294967296.0);
    return run_each(dropout<T>{(const T *)x, (T *)y, least, seed, layer, 1 / (1 - rate), state}, a,
                    count, stream);
}

int dl2_gpu_dropout(enum dl2_element element, const void *x, void *y, size_t count, float rate,
                    uint64_t seed, uint64_t layer, const struct dl2_gpu_state *state,
                    struct CUstream_st *stream)
{
#define CALL(T) set_up_dropout<T>(x, y, count, rate, seed, layer, state, stream)
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
