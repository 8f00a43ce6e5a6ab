/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The softmax of attention: a warp a row, which it reads anew in each pass over it, from the cache
 * nearest to it.
 */
#include "cuda/kernels.h"
#include "cuda/tensor.cuh"

namespace
{

struct rows {
    size_t number;
    unsigned count, step; /* elements that are meant, and from row to row */
};

template <class T>
__global__ void __launch_bounds__(THREADS)
    softmax(struct rows s, const float *__restrict__ all_scores, T *__restrict__ all_p)
{
    enum { N = wide<T>::N };
    const size_t r = warp_row();
    if (r >= s.number)
        return; /* the whole warp */
    const unsigned first = threadIdx.x % WARP * N;
    const float *scores = all_scores + r * s.step;
    T *p = all_p + r * s.step;
    float highest = -INFINITY, sum = 0;
    for (unsigned c = first; c < s.count; c += WARP * N) {
        float v[N];
        load<N>(scores + c, v);
#pragma unroll
        for (int k = 0; k < N; k++)
            highest = c + k < s.count && v[k] > highest ? v[k] : highest;
    }
    highest = warp_max(highest);
    for (unsigned c = first; c < s.count; c += WARP * N) {
        float v[N];
        load<N>(scores + c, v);
#pragma unroll
        for (int k = 0; k < N; k++)
            sum += c + k < s.count ? expf(v[k] - highest) : 0;
    }
    const float share = 1 / warp_sum(sum);
    for (unsigned c = first; c < s.step; c += WARP * N) {
        float v[N];
        load<N>(scores + c, v);
#pragma unroll
        for (int k = 0; k < N; k++)
            v[k] = c + k < s.count ? expf(v[k] - highest) * share : 0;
        store<N>(p + c, v);
    }
}

/* The gradient of scores s, with p = softmax(s): ds = p * (dp - sum(p * dp)). */
template <class T>
__global__ void __launch_bounds__(THREADS)
    softmax_backward(struct rows s, float scale, const T *__restrict__ all_p, const float *all_dp,
                     T *all_ds)
{
    enum { N = wide<T>::N };
    const size_t r = warp_row();
    if (r >= s.number)
        return;
    const unsigned first = threadIdx.x % WARP * N;
    const T *p = all_p + r * s.step;
    const float *dp = all_dp + r * s.step;
    T *ds = all_ds + r * s.step;
    float sum = 0;
    for (unsigned c = first; c < s.count; c += WARP * N) {
        float v[N], d[N];
        load<N>(p + c, v);
        load<N>(dp + c, d);
#pragma unroll
        for (int k = 0; k < N; k++)
            sum += c + k < s.count ? v[k] * d[k] : 0;
    }
    sum = warp_sum(sum);
    for (unsigned c = first; c < s.step; c += WARP * N) {
        float v[N], d[N];
        load<N>(p + c, v);
        load<N>(dp + c, d);
#pragma unroll
        for (int k = 0; k < N; k++)
            d[k] = c + k < s.count ? v[k] * (d[k] - sum) * scale : 0;
        store<N>(ds + c, d);
    }
}

} // namespace

int dl2_gpu_softmax(enum dl2_element element, const float *scores, size_t rows, unsigned count,
                    unsigned step, void *p, struct CUstream_st *stream)
{
    struct rows s = {rows, count, step};
#define CALL(T) DL2_LAUNCH((softmax<T>), warp_blocks(rows), THREADS, stream, s, scores, (T *)p)
    return BY_ELEMENT(element, CALL);
#undef CALL
}

int dl2_gpu_softmax_backward(enum dl2_element element, const void *p, const float *dp, size_t rows,
                             unsigned count, unsigned step, float scale, void *ds,
                             struct CUstream_st *stream)
{
    struct rows s = {rows, count, step};
#define CALL(T)                                                                                    \
    DL2_LAUNCH((softmax_backward<T>), warp_blocks(rows), THREADS, stream, s, scale, (const T *)p,  \
               dp, (T *)ds)
    return BY_ELEMENT(element, CALL);
#undef CALL
}
