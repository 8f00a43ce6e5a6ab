/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Layer norm: a warp a row. A row is read anew in each pass over it: after the first it lies in the
 * cache nearest to the warp.
 */
#include "cuda/kernels.h"
#include "cuda/rows.cuh"

namespace
{

template <class T, int N>
__global__ void __launch_bounds__(THREADS)
    layer_norm(struct dl2_layer_norm_shape s, const T *all_x, const float *__restrict__ gamma,
               const float *__restrict__ beta, float *__restrict__ kept, T *all_y)
{
    const size_t r = warp_row();
    if (r >= s.rows)
        return; /* the whole warp */
    const unsigned first = threadIdx.x % WARP * N, step = WARP * N;
    const T *x = all_x + r * s.channels;
    T *y = all_y + r * s.channels;
    float sum = 0, squares = 0;
#pragma unroll 4
    for (unsigned c = first; c < s.channels; c += step) {
        float v[N];
        load<N>(x + c, v);
#pragma unroll
        for (int k = 0; k < N; k++)
            sum += v[k];
    }
    const float mean = warp_sum(sum) / (float)s.channels;
#pragma unroll 4
    for (unsigned c = first; c < s.channels; c += step) {
        float v[N];
        load<N>(x + c, v);
#pragma unroll
        for (int k = 0; k < N; k++)
            squares += (v[k] - mean) * (v[k] - mean);
    }
    const float scale = 1 / sqrtf(warp_sum(squares) / (float)s.channels + s.epsilon);
    if (!first) {
        kept[r] = mean;
        kept[s.rows + r] = scale;
    }
#pragma unroll 2
    for (unsigned c = first; c < s.channels; c += step) {
        float v[N], g[N], b[N];
        load<N>(x + c, v);
        load<N>(gamma + c, g);
        load<N>(beta + c, b);
#pragma unroll
        for (int k = 0; k < N; k++)
            v[k] = fmaf((v[k] - mean) * scale, g[k], b[k]);
        store<N>(y + c, v);
    }
}

/* With n the normalized x and g = gamma * dy: dx = scale * (g - mean(g) - n * mean(g * n)). */
template <class T, int N>
__global__ void __launch_bounds__(THREADS)
    layer_norm_backward_data(struct dl2_layer_norm_shape s, const T *all_x, const T *all_dy,
                             const float *__restrict__ gamma, const float *__restrict__ kept,
                             T *all_dx)
{
    const size_t r = warp_row();
    if (r >= s.rows)
        return;
    const unsigned first = threadIdx.x % WARP * N, step = WARP * N;
    const T *x = all_x + r * s.channels, *dy = all_dy + r * s.channels;
    T *dx = all_dx + r * s.channels;
    const float mean = kept[r], scale = kept[s.rows + r];
    float sum = 0, product = 0;
#pragma unroll 2
    for (unsigned c = first; c < s.channels; c += step) {
        float v[N], d[N], g[N];
        load<N>(x + c, v);
        load<N>(dy + c, d);
        load<N>(gamma + c, g);
#pragma unroll
        for (int k = 0; k < N; k++) {
            sum += g[k] * d[k];
            product += g[k] * d[k] * ((v[k] - mean) * scale);
        }
    }
    sum = warp_sum(sum) / (float)s.channels;
    product = warp_sum(product) / (float)s.channels;
    for (unsigned c = first; c < s.channels; c += step) {
        float v[N], d[N], g[N];
        load<N>(x + c, v);
        load<N>(dy + c, d);
        load<N>(gamma + c, g);
#pragma unroll
        for (int k = 0; k < N; k++)
            d[k] = scale * (g[k] * d[k] - sum - (v[k] - mean) * scale * product);
        store<N>(dx + c, d);
    }
}

template <class T> struct layer_norm_sums {
    const T *x, *dy;
    const float *kept;
    size_t rows;
    unsigned channels;
    template <int N> __device__ void begin(unsigned)
    {
    }
    template <int N> __device__ void add(size_t row, unsigned column, float (&sums)[2][N]) const
    {
        const float mean = kept[row], scale = kept[rows + row];
        float v[N], d[N];
        load<N>(x + row * channels + column, v);
        load<N>(dy + row * channels + column, d);
#pragma unroll
        for (int k = 0; k < N; k++) {
            sums[0][k] += d[k] * ((v[k] - mean) * scale);
            sums[1][k] += d[k];
        }
    }
};

struct layer_norm_finish {
    float *dgamma, *dbeta;
    bool accumulate;
    __device__ void finish(unsigned column, const double (&sums)[2]) const
    {
        dgamma[column] = (float)(sums[0] + (accumulate ? dgamma[column] : 0));
        dbeta[column] = (float)(sums[1] + (accumulate ? dbeta[column] : 0));
    }
};

} // namespace

int dl2_gpu_layer_norm(enum dl2_element element, const struct dl2_layer_norm_shape *shape,
                       const void *x, const float *gamma, const float *beta, float *kept, void *y,
                       struct CUstream_st *stream)
{
    bool whole = aligned(x) && aligned(gamma) && aligned(beta) && aligned(y);
#define CALL(T, N)                                                                                 \
    DL2_LAUNCH((layer_norm<T, N>), warp_blocks(shape->rows), THREADS, stream, *shape,              \
               (const T *)x, gamma, beta, kept, (T *)y)
    return BY_VECTOR(element, whole, shape->channels, CALL);
#undef CALL
}

int dl2_gpu_layer_norm_backward_sums(enum dl2_element element,
                                     const struct dl2_layer_norm_shape *shape, const void *x,
                                     const void *dy, const float *kept, float *partials,
                                     float *dgamma, float *dbeta, bool accumulate,
                                     struct CUstream_st *stream)
{
#define CALL(T, N)                                                                                 \
    run_sums<T, N, 2>(                                                                             \
        layer_norm_sums<T>{(const T *)x, (const T *)dy, kept, shape->rows, shape->channels},       \
        layer_norm_finish{dgamma, dbeta, accumulate}, shape->rows, shape->channels, partials,      \
        stream)
    return BY_VECTOR(element, aligned(x) && aligned(dy), shape->channels, CALL);
#undef CALL
}

int dl2_gpu_layer_norm_backward_data(enum dl2_element element,
                                     const struct dl2_layer_norm_shape *shape, const void *x,
                                     const void *dy, const float *gamma, const float *kept,
                                     void *dx, struct CUstream_st *stream)
{
    bool whole = aligned(x) && aligned(dy) && aligned(gamma) && aligned(dx);
#define CALL(T, N)                                                                                 \
    DL2_LAUNCH((layer_norm_backward_data<T, N>), warp_blocks(shape->rows), THREADS, stream,        \
               *shape, (const T *)x, (const T *)dy, gamma, kept, (T *)dx)
    return BY_VECTOR(element, whole, shape->channels, CALL);
#undef CALL
}
