/* SPDX-License-Identifier: BSD-2-Clause */
/* Depthwise convolutions: a thread makes N channels of an output, the weights in registers. */
#include "cuda/kernels.h"
#include "cuda/rows.cuh"

namespace
{

/* The 3x3 weights of N channels, tap by tap; in memory it is channel by channel. */
template <int N, class T>
__device__ __forceinline__ void load_taps(const T *weights, unsigned column, float (&taps)[9][N])
{
#pragma unroll
    for (int k = 0; k < N; k++)
#pragma unroll
        for (int t = 0; t < 9; t++)
            taps[t][k] = widened(weights[(size_t)(column + k) * 9 + t]);
}

template <class T, int M> struct depthwise_forward {
    const T *x, *weights;
    T *y;
    struct dl2_conv_shape s;
    unsigned out_height, out_width;
    float taps[9][M];
    template <int N> __device__ void begin(unsigned column)
    {
        static_assert(N == M, "");
        load_taps<N>(weights, column, taps);
    }
    template <int N> __device__ void run(size_t row, unsigned column) const
    {
        unsigned pixel = (unsigned)row, ow = pixel % out_width, oh = pixel / out_width % out_height;
        size_t n = pixel / out_width / out_height;
        float sum[N] = {}, v[N];
#pragma unroll
        for (int t = 0; t < 9; t++) {
            unsigned h = oh * s.stride.height + t / 3 - s.pad.height; /* wraps below 0 */
            unsigned w = ow * s.stride.width + t % 3 - s.pad.width;
            if (h < s.in.height && w < s.in.width) {
                load<N>(x + ((n * s.in.height + h) * s.in.width + w) * s.in_channels + column, v);
#pragma unroll
                for (int k = 0; k < N; k++)
                    sum[k] = fmaf(v[k], taps[t][k], sum[k]);
            }
        }
        store<N>(y + row * s.in_channels + column, sum);
    }
};

template <class T, int M> struct depthwise_backward_data {
    const T *dy, *weights;
    T *dx;
    struct dl2_conv_shape s;
    unsigned out_height, out_width;
    float taps[9][M];
    template <int N> __device__ void begin(unsigned column)
    {
        static_assert(N == M, "");
        load_taps<N>(weights, column, taps);
    }
    template <int N> __device__ void run(size_t row, unsigned column) const
    {
        unsigned pixel = (unsigned)row, w = pixel % s.in.width,
                 h = pixel / s.in.width % s.in.height;
        size_t n = pixel / s.in.width / s.in.height;
        float sum[N] = {}, v[N];
#pragma unroll
        for (int t = 0; t < 9; t++) {
            unsigned up = h + s.pad.height - t / 3, left = w + s.pad.width - t % 3;
            unsigned oh = up / s.stride.height, ow = left / s.stride.width;
            /* A value that wrapped below 0 is far outside. */
            if (oh < out_height && ow < out_width && oh * s.stride.height == up &&
                ow * s.stride.width == left) {
                load<N>(dy + ((n * out_height + oh) * out_width + ow) * s.in_channels + column, v);
#pragma unroll
                for (int k = 0; k < N; k++)
                    sum[k] = fmaf(v[k], taps[t][k], sum[k]);
            }
        }
        store<N>(dx + row * s.in_channels + column, sum);
    }
};

template <class T> struct depthwise_backward_weights {
    const T *x, *dy;
    struct dl2_conv_shape s;
    unsigned out_height, out_width;
    template <int N> __device__ void begin(unsigned)
    {
    }
    template <int N> __device__ void add(size_t row, unsigned column, float (&sums)[9][N]) const
    {
        unsigned pixel = (unsigned)row, ow = pixel % out_width, oh = pixel / out_width % out_height;
        size_t n = pixel / out_width / out_height;
        float g[N], v[N];
        load<N>(dy + row * s.in_channels + column, g);
#pragma unroll
        for (int t = 0; t < 9; t++) {
            unsigned h = oh * s.stride.height + t / 3 - s.pad.height;
            unsigned w = ow * s.stride.width + t % 3 - s.pad.width;
            if (h < s.in.height && w < s.in.width) {
                load<N>(x + ((n * s.in.height + h) * s.in.width + w) * s.in_channels + column, v);
#pragma unroll
                for (int k = 0; k < N; k++)
                    sums[t][k] = fmaf(v[k], g[k], sums[t][k]);
            }
        }
    }
};

struct keep_taps {
    float *dweights;
    bool accumulate;
    __device__ void finish(unsigned column, const double (&sums)[9]) const
    {
        float *to = dweights + (size_t)column * 9;
#pragma unroll
        for (int t = 0; t < 9; t++)
            to[t] = (float)(sums[t] + (accumulate ? to[t] : 0));
    }
};

} // namespace

bool dl2_gpu_depthwise(const struct dl2_conv_shape *s)
{
    return s->groups > 1 && s->groups == s->in_channels && s->groups == s->out_channels &&
           s->in.depth == 1 && s->kernel.depth == 1 && s->kernel.height == 3 &&
           s->kernel.width == 3;
}

static unsigned conv_out(unsigned in, unsigned stride, unsigned pad)
{
    return (in + 2 * pad - 3) / stride + 1;
}

/* Four channels a thread, whose weights then fit in registers. */
template <class T, int N>
static int set_up_depthwise_forward(const struct dl2_conv_shape *s, const void *x,
                                    const void *weights, void *y, cudaStream_t stream)
{
    unsigned out_height = conv_out(s->in.height, s->stride.height, s->pad.height);
    unsigned out_width = conv_out(s->in.width, s->stride.width, s->pad.width);
    depthwise_forward<T, N> f = {(const T *)x, (const T *)weights, (T *)y, *s,
                                 out_height,   out_width,          {}};
    return run_rows<N>(f, (size_t)s->batch * out_height * out_width, s->in_channels, stream);
}

int dl2_gpu_depthwise_forward(enum dl2_element element, const struct dl2_conv_shape *shape,
                              const void *x, const void *weights, void *y,
                              struct CUstream_st *stream)
{
    bool whole = aligned(x) && aligned(y) && shape->in_channels % 4 == 0;
#define CALL(T)                                                                                    \
    (whole ? set_up_depthwise_forward<T, 4>(shape, x, weights, y, stream)                          \
           : set_up_depthwise_forward<T, 1>(shape, x, weights, y, stream))
    return BY_ELEMENT(element, CALL);
#undef CALL
}

template <class T, int N>
static int set_up_depthwise_backward_data(const struct dl2_conv_shape *s, const void *dy,
                                          const void *weights, void *dx, cudaStream_t stream)
{
    unsigned out_height = conv_out(s->in.height, s->stride.height, s->pad.height);
    unsigned out_width = conv_out(s->in.width, s->stride.width, s->pad.width);
    depthwise_backward_data<T, N> f = {(const T *)dy, (const T *)weights, (T *)dx, *s,
                                       out_height,    out_width,          {}};
    return run_rows<N>(f, (size_t)s->batch * s->in.height * s->in.width, s->in_channels, stream);
}

int dl2_gpu_depthwise_backward_data(enum dl2_element element, const struct dl2_conv_shape *shape,
                                    const void *dy, const void *weights, void *dx,
                                    struct CUstream_st *stream)
{
    bool whole = aligned(dy) && aligned(dx) && shape->in_channels % 4 == 0;
#define CALL(T)                                                                                    \
    (whole ? set_up_depthwise_backward_data<T, 4>(shape, dy, weights, dx, stream)                  \
           : set_up_depthwise_backward_data<T, 1>(shape, dy, weights, dx, stream))
    return BY_ELEMENT(element, CALL);
#undef CALL
}

template <class T, int N>
static int set_up_depthwise_backward_weights(const struct dl2_conv_shape *s, const void *x,
                                             const void *dy, float *partials, float *dweights,
                                             bool accumulate, cudaStream_t stream)
{
    unsigned out_height = conv_out(s->in.height, s->stride.height, s->pad.height);
    unsigned out_width = conv_out(s->in.width, s->stride.width, s->pad.width);
    depthwise_backward_weights<T> f = {(const T *)x, (const T *)dy, *s, out_height, out_width};
    return run_sums<T, N, 9>(f, keep_taps{dweights, accumulate},
                             (size_t)s->batch * out_height * out_width, s->in_channels, partials,
                             stream);
}

int dl2_gpu_depthwise_backward_weights(enum dl2_element element, const struct dl2_conv_shape *shape,
                                       const void *x, const void *dy, float *partials,
                                       float *dweights, bool accumulate, struct CUstream_st *stream)
{
    bool whole = aligned(x) && aligned(dy) && shape->in_channels % 4 == 0;
#define CALL(T)                                                                                    \
    (whole ? set_up_depthwise_backward_weights<T, 4>(shape, x, dy, partials, dweights, accumulate, \
                                                     stream)                                       \
           : set_up_depthwise_backward_weights<T, 1>(shape, x, dy, partials, dweights, accumulate, \
                                                     stream))
    return BY_ELEMENT(element, CALL);
#undef CALL
}
