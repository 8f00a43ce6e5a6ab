/* SPDX-License-Identifier: BSD-2-Clause */
/* Batch norm, and the sums and biases of channels. Why not cuDNN's: docs/measurements/cuda.md. */
#include "cuda/kernels.h"
#include "cuda/rows.cuh"

namespace
{

template <class T> struct column_sum {
    const T *x;
    unsigned channels;
    template <int N> __device__ void begin(unsigned)
    {
    }
    template <int N> __device__ void add(size_t row, unsigned column, float (&sums)[1][N]) const
    {
        float v[N];
        load<N>(x + row * channels + column, v);
#pragma unroll
        for (int k = 0; k < N; k++)
            sums[0][k] += v[k];
    }
};

struct keep_column {
    float *out;
    bool accumulate;
    __device__ void finish(unsigned column, const double (&sums)[1]) const
    {
        out[column] = (float)(sums[0] + (accumulate ? out[column] : 0));
    }
};

template <class T, int M> struct add_bias {
    const float *bias;
    T *y;
    unsigned channels;
    enum dl2_activation activation;
    float b[M];
    template <int N> __device__ void begin(unsigned column)
    {
        static_assert(N == M, "");
        load<N>(bias + column, b);
    }
    template <int N> __device__ void run(size_t row, unsigned column) const
    {
        float v[N];
        load<N>(y + row * channels + column, v);
#pragma unroll
        for (int k = 0; k < N; k++)
            v[k] = activated(v[k] + b[k], activation);
        store<N>(y + row * channels + column, v);
    }
};

/* Sums of x and its square, less the first row's x, so that a mean far from 0 costs no digits. */
template <class T, int M> struct norm_sums {
    const T *x;
    unsigned channels;
    float shift[M];
    template <int N> __device__ void begin(unsigned column)
    {
        static_assert(N == M, "");
        load<N>(x + column, shift);
    }
    template <int N> __device__ void add(size_t row, unsigned column, float (&sums)[2][N]) const
    {
        float v[N];
        load<N>(x + row * channels + column, v);
#pragma unroll
        for (int k = 0; k < N; k++) {
            float d = v[k] - shift[k];
            sums[0][k] += d;
            sums[1][k] += d * d;
        }
    }
};

template <class T> struct norm_moments {
    const T *x;
    float *moments;
    size_t rows;
    unsigned channels;
    __device__ void finish(unsigned column, const double (&sums)[2]) const
    {
        double shifted = sums[0] / (double)rows;
        double squares = sums[1] - shifted * sums[0];
        moments[column] = (float)(shifted + widened(x[column]));
        moments[channels + column] = (float)(squares > 0 ? squares : 0);
    }
};

struct norm_recenter {
    float *moments;
    const float *mean;
    size_t rows;
    unsigned channels;
    template <int N> __device__ void run(size_t c) const
    {
        double d = (double)moments[c] - mean[c];
        moments[channels + c] = (float)(moments[channels + c] + (double)rows * d * d);
        moments[c] = mean[c];
    }
};

struct norm_keep {
    const float *moments;
    size_t rows;
    struct dl2_norm_shape s;
    float *running_mean, *running_var, *kept;
    template <int N> __device__ void run(size_t c) const
    {
        double mean = moments[c], squares = moments[s.channels + c];
        double unbiased = rows > 1 ? squares / (double)(rows - 1) : squares;
        kept[c] = (float)mean;
        kept[s.channels + c] = (float)(1 / sqrt(squares / (double)rows + (double)s.epsilon));
        running_mean[c] = (float)((1 - (double)s.momentum) * running_mean[c] + s.momentum * mean);
        running_var[c] = (float)((1 - (double)s.momentum) * running_var[c] + s.momentum * unbiased);
    }
};

/* Both in one, of one card's batch. */
template <class T> struct norm_statistics {
    norm_moments<T> moments;
    norm_keep keep; /* of the same moments */
    __device__ void finish(unsigned column, const double (&sums)[2]) const
    {
        moments.finish(column, sums);
        keep.template run<1>(column);
    }
};

struct norm_keep_running {
    const float *running_mean, *running_var;
    struct dl2_norm_shape s;
    float *kept;
    template <int N> __device__ void run(size_t c) const
    {
        kept[c] = running_mean[c];
        kept[s.channels + c] = (float)(1 / sqrt((double)running_var[c] + (double)s.epsilon));
    }
};

/* Batch norm of M channels, before residual and activation. Forward and backward both compute it
 * here, so that they see the same bits. */
template <int M> struct normal {
    float mean[M], slope[M], offset[M];
    /* `kept` has means, then scales: see norm_keep. */
    __device__ void begin(const float *gamma, const float *beta, const float *kept,
                          unsigned channels, unsigned column)
    {
        float g[M];
        load<M>(kept + column, mean);
        load<M>(kept + channels + column, slope);
        load<M>(gamma + column, g);
        load<M>(beta + column, offset);
#pragma unroll
        for (int k = 0; k < M; k++)
            slope[k] *= g[k];
    }
    __device__ float of(float x, int k) const
    {
        return fmaf(x - mean[k], slope[k], offset[k]);
    }
};

template <class T, int M> struct norm_apply {
    const T *x, *residual;
    const float *gamma, *beta, *kept;
    T *y;
    uint8_t *mask; /* may be NULL; see dl2_gpu_norm_masks() */
    unsigned channels;
    enum dl2_activation activation;
    normal<M> norm;
    template <int N> __device__ void begin(unsigned column)
    {
        static_assert(N == M, "");
        norm.begin(gamma, beta, kept, channels, column);
    }
    template <int N> __device__ void run(size_t row, unsigned column) const
    {
        size_t i = row * channels + column;
        float v[N], r[N] = {};
        load<N>(x + i, v);
        if (residual)
            load<N>(residual + i, r);
#pragma unroll
        for (int k = 0; k < N; k++)
            v[k] = activated(norm.of(v[k], k) + r[k], activation);
        store<N>(y + i, v);
        if (N > 1 && mask) {
            unsigned bits = 0;
#pragma unroll
            for (int k = 0; k < N; k++)
                bits |= (open(rounded<T>(v[k]), activation) ? 1u : 0u) << k;
            mask[i / N] = (uint8_t)bits;
        }
    }
};

/* The gradient that reaches a batch norm: dy, or dy + dy2, where its activation was open. That is
 * seen from a mask or y, or, where nothing was added to it, computed anew from x. ELU's slope is
 * seen from y. */
template <class T, int M, bool BY_X> struct norm_gradient {
    const T *x, *y, *dy, *dy2;
    const uint8_t *mask; /* NULL: by y */
    const float *gamma, *beta, *kept;
    unsigned channels;
    enum dl2_activation activation;
    normal<M> norm;
    __device__ void begin_gradient(unsigned column)
    {
        norm.begin(gamma, beta, kept, channels, column);
    }
    /* g, and x less its mean */
    __device__ void read(size_t i, float (&g)[M], float (&centered)[M]) const
    {
        float v[M];
        load<M>(x + i, centered);
        load<M>(dy + i, g);
        if (dy2) {
            load<M>(dy2 + i, v);
#pragma unroll
            for (int k = 0; k < M; k++)
                g[k] += v[k];
        }
        if (activation != DL2_IDENTITY) {
            unsigned bits = 0;
            if (BY_X) {
#pragma unroll
                for (int k = 0; k < M; k++)
                    v[k] = rounded<T>(norm.of(centered[k], k));
            } else if (mask) {
                bits = (unsigned)mask[i / wide<T>::N] >> i % wide<T>::N;
            } else {
                load<M>(y + i, v);
            }
#pragma unroll
            for (int k = 0; k < M; k++)
                g[k] = BY_X || !mask ? passed(v[k], g[k], activation) : bits >> k & 1 ? g[k] : 0;
        }
#pragma unroll
        for (int k = 0; k < M; k++)
            centered[k] -= norm.mean[k];
    }
};

template <class T, int M, bool BY_X> struct norm_backward_sums {
    norm_gradient<T, M, BY_X> gradient;
    T *dresidual;
    template <int N> __device__ void begin(unsigned column)
    {
        gradient.begin_gradient(column);
    }
    template <int N> __device__ void add(size_t row, unsigned column, float (&sums)[2][N]) const
    {
        size_t i = row * gradient.channels + column;
        float g[N], centered[N];
        gradient.read(i, g, centered);
        if (dresidual)
            store<N>(dresidual + i, g);
#pragma unroll
        for (int k = 0; k < N; k++) {
            sums[0][k] += g[k];
            sums[1][k] += g[k] * centered[k];
        }
    }
};

struct norm_backward_finish {
    const float *kept;
    float *sums, *dgamma, *dbeta;
    unsigned channels;
    bool accumulate;
    __device__ void finish(unsigned column, const double (&found)[2]) const
    {
        double product = found[1] * kept[channels + column];
        sums[column] = (float)found[0];
        sums[channels + column] = (float)product;
        dgamma[column] = (float)(product + (accumulate ? dgamma[column] : 0));
        dbeta[column] = (float)(found[0] + (accumulate ? dbeta[column] : 0));
    }
};

/* dx = gamma * scale * (g - sum / rows - normal * product / rows) = slope * (g + q * (x - mean) +
 * r) */
template <class T, int M, bool BY_X> struct norm_backward_data {
    norm_gradient<T, M, BY_X> gradient;
    const float *sums;
    const T *dresidual; /* where the gradient lies already, or NULL */
    T *dx;
    float rows;
    float q[M], r[M];
    template <int N> __device__ void begin(unsigned column)
    {
        static_assert(N == M, "");
        unsigned channels = gradient.channels;
        float scale[N];
        gradient.begin_gradient(column);
        load<N>(gradient.kept + channels + column, scale);
        load<N>(sums + column, r);
        load<N>(sums + channels + column, q);
#pragma unroll
        for (int k = 0; k < N; k++) {
            q[k] *= -scale[k] / rows;
            r[k] /= -rows;
        }
    }
    template <int N> __device__ void run(size_t row, unsigned column) const
    {
        size_t i = row * gradient.channels + column;
        float g[N], centered[N];
        if (!BY_X && dresidual) {
            load<N>(gradient.x + i, centered);
            load<N>(dresidual + i, g);
#pragma unroll
            for (int k = 0; k < N; k++)
                centered[k] -= gradient.norm.mean[k];
        } else {
            gradient.read(i, g, centered);
        }
#pragma unroll
        for (int k = 0; k < N; k++)
            g[k] = gradient.norm.slope[k] * fmaf(q[k], centered[k], g[k] + r[k]);
        store<N>(dx + i, g);
    }
};

} // namespace

size_t dl2_gpu_partials(unsigned channels)
{
    return (size_t)SUM_BLOCKS * 9 * channels;
}

int dl2_gpu_column_sums(enum dl2_element element, const void *x, size_t rows, unsigned channels,
                        float *partials, float *out, bool accumulate, struct CUstream_st *stream)
{
#define CALL(T, N)                                                                                 \
    run_sums<T, N, 1>(column_sum<T>{(const T *)x, channels}, keep_column{out, accumulate}, rows,   \
                      channels, partials, stream)
    return BY_VECTOR(element, aligned(x), channels, CALL);
#undef CALL
}

int dl2_gpu_add_bias(enum dl2_element element, const float *bias, void *y, size_t rows,
                     unsigned channels, enum dl2_activation activation, struct CUstream_st *stream)
{
#define CALL(T, N)                                                                                 \
    run_rows<N>(add_bias<T, N>{bias, (T *)y, channels, activation, {}}, rows, channels, stream)
    return BY_VECTOR(element, aligned(bias) && aligned(y), channels, CALL);
#undef CALL
}

int dl2_gpu_norm_moments(enum dl2_element element, const void *x, size_t rows, unsigned channels,
                         float *partials, float *moments, struct CUstream_st *stream)
{
#define CALL(T, N)                                                                                 \
    run_sums<T, N, 2>(norm_sums<T, N>{(const T *)x, channels, {}},                                 \
                      norm_moments<T>{(const T *)x, moments, rows, channels}, rows, channels,      \
                      partials, stream)
    return BY_VECTOR(element, aligned(x), channels, CALL);
#undef CALL
}

/* A thread a channel: these are short. */
template <class F> static int run_channels(F f, unsigned channels, cudaStream_t stream)
{
    return run_each(f, aligner<1>(), channels, stream);
}

int dl2_gpu_norm_recenter(float *moments, const float *mean, size_t rows, unsigned channels,
                          struct CUstream_st *stream)
{
    return run_channels(norm_recenter{moments, mean, rows, channels}, channels, stream);
}

int dl2_gpu_norm_keep(const float *moments, size_t rows, const struct dl2_norm_shape *shape,
                      float *running_mean, float *running_var, float *kept,
                      struct CUstream_st *stream)
{
    return run_channels(norm_keep{moments, rows, *shape, running_mean, running_var, kept},
                        shape->channels, stream);
}

int dl2_gpu_norm_statistics(enum dl2_element element, const struct dl2_norm_shape *shape,
                            const void *x, float *partials, float *moments, float *running_mean,
                            float *running_var, float *kept, struct CUstream_st *stream)
{
    const size_t rows = shape->rows;
    const unsigned channels = shape->channels;
    const norm_keep keep = {moments, rows, *shape, running_mean, running_var, kept};
#define CALL(T, N)                                                                                 \
    run_sums<T, N, 2>(norm_sums<T, N>{(const T *)x, channels, {}},                                 \
                      norm_statistics<T>{{(const T *)x, moments, rows, channels}, keep}, rows,     \
                      channels, partials, stream)
    return BY_VECTOR(element, aligned(x), channels, CALL);
#undef CALL
}

int dl2_gpu_norm_keep_running(const float *running_mean, const float *running_var,
                              const struct dl2_norm_shape *shape, float *kept,
                              struct CUstream_st *stream)
{
    return run_channels(norm_keep_running{running_mean, running_var, *shape, kept}, shape->channels,
                        stream);
}

static bool applies_whole(const void *x, const void *residual, const float *gamma,
                          const float *beta, const float *kept, const void *y)
{
    return aligned(x) && aligned(residual) && aligned(gamma) && aligned(beta) && aligned(kept) &&
           aligned(y);
}

bool dl2_gpu_norm_masks(enum dl2_element element, const struct dl2_norm_shape *shape, const void *x,
                        const void *residual, const float *gamma, const float *beta,
                        const float *kept, const void *y)
{
    bool whole = applies_whole(x, residual, gamma, beta, kept, y);
#define CALL(T, N) (N > 1)
    return shape->residual && (shape->activation == DL2_RELU || shape->activation == DL2_RELU6) &&
           BY_VECTOR(element, whole, shape->channels, CALL);
#undef CALL
}

int dl2_gpu_norm_apply(enum dl2_element element, const struct dl2_norm_shape *shape, const void *x,
                       const void *residual, const float *gamma, const float *beta,
                       const float *kept, void *y, uint8_t *mask, struct CUstream_st *stream)
{
    bool whole = applies_whole(x, residual, gamma, beta, kept, y);
#define CALL(T, N)                                                                                 \
    run_rows<N>(norm_apply<T, N>{(const T *)x,                                                     \
                                 (const T *)residual,                                              \
                                 gamma,                                                            \
                                 beta,                                                             \
                                 kept,                                                             \
                                 (T *)y,                                                           \
                                 mask,                                                             \
                                 shape->channels,                                                  \
                                 shape->activation,                                                \
                                 {}},                                                              \
                shape->rows, shape->channels, stream)
    return BY_VECTOR(element, whole, shape->channels, CALL);
#undef CALL
}

/* See norm_gradient. */
static bool by_x(const struct dl2_norm_shape *shape)
{
    return !shape->residual && (shape->activation == DL2_RELU || shape->activation == DL2_RELU6);
}

template <class T, int N, bool BY_X>
static norm_gradient<T, N, BY_X> gradient_of(const struct dl2_gpu_norm_gradient *g)
{
    const struct dl2_norm_shape *s = g->shape;
    return {
        (const T *)g->x, (const T *)g->y, (const T *)g->dy, (const T *)g->dy2, g->mask, g->gamma,
        g->beta,         g->kept,         s->channels,      s->activation,     {}};
}

static bool gradient_is_whole(const struct dl2_gpu_norm_gradient *g)
{
    return aligned(g->x) && aligned(g->y) && aligned(g->dy) && aligned(g->dy2) &&
           aligned(g->gamma) && aligned(g->beta) && aligned(g->kept) && aligned(g->dresidual);
}

template <class T, int N, bool BY_X>
static int sum_backward(const struct dl2_gpu_norm_gradient *g, float *partials, float *dgamma,
                        float *dbeta, bool accumulate, cudaStream_t stream)
{
    const unsigned channels = g->shape->channels;
    return run_sums<T, N, 2>(
        norm_backward_sums<T, N, BY_X>{gradient_of<T, N, BY_X>(g), (T *)g->dresidual},
        norm_backward_finish{g->kept, g->sums, dgamma, dbeta, channels, accumulate}, g->shape->rows,
        channels, partials, stream);
}

int dl2_gpu_norm_backward_sums(enum dl2_element element, const struct dl2_gpu_norm_gradient *g,
                               float *partials, float *dgamma, float *dbeta, bool accumulate,
                               struct CUstream_st *stream)
{
#define CALL(T, N)                                                                                 \
    (by_x(g->shape) ? sum_backward<T, N, true>(g, partials, dgamma, dbeta, accumulate, stream)     \
                    : sum_backward<T, N, false>(g, partials, dgamma, dbeta, accumulate, stream))
    return BY_VECTOR(element, gradient_is_whole(g), g->shape->channels, CALL);
#undef CALL
}

template <class T, int N, bool BY_X>
static int map_backward(const struct dl2_gpu_norm_gradient *g, size_t rows, void *dx,
                        cudaStream_t stream)
{
    norm_backward_data<T, N, BY_X> f = {
        gradient_of<T, N, BY_X>(g), g->sums, (const T *)g->dresidual, (T *)dx, (float)rows, {}, {}};
    return run_rows<N>(f, g->shape->rows, g->shape->channels, stream);
}

int dl2_gpu_norm_backward_data(enum dl2_element element, const struct dl2_gpu_norm_gradient *g,
                               size_t rows, void *dx, struct CUstream_st *stream)
{
    bool whole = gradient_is_whole(g) && aligned(g->sums) && aligned(dx);
#define CALL(T, N)                                                                                 \
    (by_x(g->shape) ? map_backward<T, N, true>(g, rows, dx, stream)                                \
                    : map_backward<T, N, false>(g, rows, dx, stream))
    return BY_VECTOR(element, whole, g->shape->channels, CALL);
#undef CALL
}
