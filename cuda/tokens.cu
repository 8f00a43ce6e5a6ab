/* SPDX-License-Identifier: BSD-2-Clause */
/* Patches to tokens, and back. */
#include "cuda/kernels.h"
#include "cuda/rows.cuh"

namespace
{

/* Row `row` is token row % tokens of sample row / tokens. */
template <class T> struct add_positions {
    const T *x;
    const float *class_token, *positions;
    T *y;
    struct dl2_tokens_shape s;
    template <int N> __device__ void begin(unsigned)
    {
    }
    template <int N> __device__ void run(size_t row, unsigned column) const
    {
        const size_t sample = row / s.tokens, token = row % s.tokens;
        float v[N], p[N];
        if (token)
            load<N>(x + (row - sample - 1) * s.channels + column, v);
        else
            load<N>(class_token + column, v);
        load<N>(positions + token * s.channels + column, p);
#pragma unroll
        for (int k = 0; k < N; k++)
            v[k] += p[k];
        store<N>(y + row * s.channels + column, v);
    }
};

enum { PARTS = 8, ACROSS = THREADS / PARTS };

/* A block has ACROSS groups of N of a sample's elements; each of its PARTS rows of threads takes
 * every PARTS-th sample, and the first adds up what they came to. */
template <class T, int N>
__global__ void __launch_bounds__(THREADS)
    tokens_backward(struct dl2_tokens_shape s, const T *__restrict__ dy, T *__restrict__ dx,
                    float *dclass_token, float *dpositions, bool accumulate)
{
    __shared__ float shared[THREADS * N];
    const size_t size = (size_t)s.tokens * s.channels;
    const size_t i = ((size_t)blockIdx.x * ACROSS + threadIdx.x % ACROSS) * N;
    const unsigned part = threadIdx.x / ACROSS;
    float sums[N] = {};
    if (i < size)
#pragma unroll 4
        for (unsigned b = part; b < s.batch; b += PARTS) {
            float v[N];
            load<N>(dy + b * size + i, v);
            if (i >= s.channels)
                store<N>(dx + b * (size - s.channels) + i - s.channels, v);
#pragma unroll
            for (int k = 0; k < N; k++)
                sums[k] += v[k];
        }
#pragma unroll
    for (int k = 0; k < N; k++)
        shared[threadIdx.x * N + k] = sums[k];
    __syncthreads();
    if (part || i >= size)
        return;
    for (int k = 0; k < N; k++) {
        double sum = 0;
        for (unsigned p = 0; p < PARTS; p++)
            sum += shared[(p * ACROSS + threadIdx.x) * N + k];
        dpositions[i + k] = (float)(sum + (accumulate ? dpositions[i + k] : 0));
        if (i < s.channels)
            dclass_token[i + k] = (float)(sum + (accumulate ? dclass_token[i + k] : 0));
    }
}

} // namespace

int dl2_gpu_tokens(enum dl2_element element, const struct dl2_tokens_shape *s, const void *x,
                   const float *class_token, const float *positions, void *y,
                   struct CUstream_st *stream)
{
    bool whole = aligned(x) && aligned(class_token) && aligned(positions) && aligned(y);
#define CALL(T, N)                                                                                 \
    run_rows<N>(add_positions<T>{(const T *)x, class_token, positions, (T *)y, *s},                \
                (size_t)s->batch * s->tokens, s->channels, stream)
    return BY_VECTOR(element, whole, s->channels, CALL);
#undef CALL
}

int dl2_gpu_tokens_backward(enum dl2_element element, const struct dl2_tokens_shape *s,
                            const void *dy, void *dx, float *dclass_token, float *dpositions,
                            bool accumulate, struct CUstream_st *stream)
{
    const size_t elements = (size_t)s->tokens * s->channels;
#define CALL(T, N)                                                                                 \
    DL2_LAUNCH((tokens_backward<T, N>), (unsigned)((elements / N + ACROSS - 1) / ACROSS), THREADS, \
               stream, *s, (const T *)dy, (T *)dx, dclass_token, dpositions, accumulate)
    return BY_VECTOR(element, aligned(dy) && aligned(dx), s->channels, CALL);
#undef CALL
}
