/* SPDX-License-Identifier: BSD-2-Clause */
/* Images on their way into a network. */
#include "cuda/kernels.h"
#include "cuda/tensor.cuh"

namespace
{

/* blockIdx.y strides over samples, x over elements of one; N elements at once. */
template <class T, int N>
__global__ void __launch_bounds__(THREADS)
    ingest(struct dl2_ingest_shape s, const uint8_t *__restrict__ images,
           const uint32_t *__restrict__ partner, T *__restrict__ y,
           const struct dl2_gpu_state *state)
{
    size_t size = (size_t)s.height * s.width * s.channels;
    float own = partner ? state->params.lambda : 1, other = 1 - own;
    for (size_t n = blockIdx.y; n < s.batch; n += gridDim.y) {
        const uint8_t *x = images + n * size;
        const uint8_t *mixed = partner ? images + partner[n] * size : x;
        for (size_t i = ((size_t)blockIdx.x * THREADS + threadIdx.x) * N; i < size;
             i += (size_t)gridDim.x * THREADS * N) {
            float v[N], w[N];
            load<N>(x + i, v);
            if (partner) {
                load<N>(mixed + i, w);
#pragma unroll
                for (int k = 0; k < N; k++)
                    v[k] = own * v[k] + other * w[k];
            }
            unsigned c = s.channels == 3 ? (unsigned)(i % 3) : 0;
#pragma unroll
            for (int k = 0; k < N; k++) {
                float mean = c == 0 ? s.mean[0] : c == 1 ? s.mean[1] : s.mean[2];
                float std = c == 0 ? s.std[0] : c == 1 ? s.std[1] : s.std[2];
                v[k] = (v[k] - mean) / std;
                c = s.channels == 3 && c < 2 ? c + 1 : 0;
            }
            store<N>(y + n * size + i, v);
        }
    }
}

/* Values that are normalized already. */
template <class T, int N>
__global__ void __launch_bounds__(THREADS)
    ingest_floats(const float *__restrict__ x, size_t count, T *__restrict__ y)
{
    for (size_t i = ((size_t)blockIdx.x * THREADS + threadIdx.x) * N; i < count;
         i += (size_t)gridDim.x * THREADS * N) {
        float v[N];
        load<N>(x + i, v);
        store<N>(y + i, v);
    }
}

} // namespace

template <class T, int N>
static int set_up_ingest(const struct dl2_ingest_shape *shape, const void *images,
                         const uint32_t *partner, void *y, const struct dl2_gpu_state *state,
                         cudaStream_t stream)
{
    struct dl2_ingest_shape s = *shape;
    size_t size = (size_t)s.height * s.width * s.channels;
    size_t across = (size / N + THREADS - 1) / THREADS;
    dim3 grid((unsigned)(across < 64 ? across : 64), s.batch < 65535 ? s.batch : 65535);
    if (s.floats) {
        across = (size * s.batch / N + THREADS - 1) / THREADS;
        return DL2_LAUNCH((ingest_floats<T, N>), dim3((unsigned)(across < 4096 ? across : 4096)),
                          THREADS, stream, (const float *)images, size * s.batch, (T *)y);
    }
    return DL2_LAUNCH((ingest<T, N>), grid, THREADS, stream, s, (const uint8_t *)images, partner,
                      (T *)y, state);
}

int dl2_gpu_ingest(enum dl2_element element, const struct dl2_ingest_shape *shape,
                   const void *images, const uint32_t *partner, void *y,
                   const struct dl2_gpu_state *state, struct CUstream_st *stream)
{
    bool whole = (size_t)shape->height * shape->width * shape->channels % 8 == 0 && aligned(y) &&
                 aligned(images);
#define CALL(T)                                                                                    \
    (whole ? set_up_ingest<T, wide<T>::N>(shape, images, partner, y, state, stream)                \
           : set_up_ingest<T, 1>(shape, images, partner, y, state, stream))
    return BY_ELEMENT(element, CALL);
#undef CALL
}
