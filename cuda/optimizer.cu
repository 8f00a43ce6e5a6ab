/* SPDX-License-Identifier: BSD-2-Clause */
/* Kernels that update weights, and the state on the card that steps read. */
#include "cuda/kernels.h"
#include "cuda/tensor.cuh"

namespace
{

struct check_gradients {
    const float *gradient;
    struct dl2_gpu_state *state;
    template <int N> __device__ void run(size_t i) const
    {
        float g[N];
        bool finite = true;
        load<N>(gradient + i, g);
#pragma unroll
        for (int k = 0; k < N; k++)
            finite = finite && (__float_as_uint(g[k]) & 0x7f800000) != 0x7f800000;
        if (!finite)
            state->overflow = 1; /* whoever finds one writes the same */
    }
};

/* A step of the weights; T is the type of step.low_precision. */
template <class T, dl2_optimizer KIND> struct update {
    struct dl2_optimizer_step step;
    unsigned ranks;
    const struct dl2_gpu_state *state;
    template <int N> __device__ void run(size_t i) const
    {
        if (state->overflow)
            return;
        const float share = (float)(1 / (state->loss_scale.scale * ranks));
        const float decay = step.decays ? state->params.weight_decay : 0;
        const float rate = state->params.rate;
        const float beta1 = state->params.momentum, beta2 = state->params.beta2;
        const float grows1 = 1 / state->correction1, grows2 = 1 / state->correction2;
        const float epsilon = state->params.epsilon;
        float w[N], g[N], m[N], v[N];
        load<N>(step.weights + i, w);
        load<N>(step.gradient + i, g);
        load<N>(step.momentum + i, m);
        if (KIND != DL2_SGD)
            load<N>(step.second_moment + i, v);
#pragma unroll
        for (int k = 0; k < N; k++) {
            g[k] = KIND == DL2_ADAMW ? g[k] * share : g[k] * share + decay * w[k];
            if (KIND != DL2_SGD)
                v[k] = beta2 * v[k] + (1 - beta2) * g[k] * g[k];
            if (KIND == DL2_SGD) {
                m[k] = beta1 * m[k] + g[k];
                w[k] -= rate * (step.nesterov ? g[k] + beta1 * m[k] : m[k]);
            } else if (KIND == DL2_ADAMW) {
                m[k] += (1 - beta1) * (g[k] - m[k]);
                w[k] -= rate * (decay * w[k] + m[k] * grows1 / (sqrtf(v[k] * grows2) + epsilon));
            } else {
                m[k] = beta1 * m[k] + g[k] / (sqrtf(v[k]) + epsilon);
                w[k] -= rate * m[k];
            }
        }
        store<N>(step.weights + i, w);
        store<N>(step.momentum + i, m);
        if (KIND != DL2_SGD)
            store<N>(step.second_moment + i, v);
        if (step.low_precision)
            store<N>((T *)step.low_precision + i, w);
    }
};

/* One sum of squares a block. */
__global__ void __launch_bounds__(THREADS)
    sum_squares(const float *gradient, size_t count, float *partials)
{
    __shared__ double shared[THREADS];
    double sum = 0;
    for (size_t i = (size_t)blockIdx.x * THREADS + threadIdx.x; i < count;
         i += (size_t)gridDim.x * THREADS)
        sum += (double)gradient[i] * gradient[i];
    sum = block_sum(sum, shared);
    if (!threadIdx.x)
        partials[blockIdx.x] = (float)sum;
}

__global__ void __launch_bounds__(THREADS)
    find_clip(const float *partials, unsigned blocks, float limit, unsigned ranks,
              struct dl2_gpu_state *state)
{
    __shared__ double shared[THREADS];
    double sum = 0;
    for (unsigned b = threadIdx.x; b < blocks; b += THREADS)
        sum += partials[b];
    sum = block_sum(sum, shared);
    if (!threadIdx.x)
        state->clip = (float)(limit / (sqrt(sum) / (state->loss_scale.scale * ranks) + 1e-6));
}

struct clip {
    float *gradient;
    const struct dl2_gpu_state *state;
    template <int N> __device__ void run(size_t i) const
    {
        const float factor = state->clip;
        float g[N];
        if (factor >= 1)
            return;
        load<N>(gradient + i, g);
#pragma unroll
        for (int k = 0; k < N; k++)
            g[k] *= factor;
        store<N>(gradient + i, g);
    }
};

struct move_average {
    float *average;
    const float *values;
    const struct dl2_gpu_state *state;
    template <int N> __device__ void run(size_t i) const
    {
        float moves = 1 - state->params.average_decay;
        float a[N], v[N];
        load<N>(average + i, a);
        load<N>(values + i, v);
#pragma unroll
        for (int k = 0; k < N; k++)
            a[k] += moves * (v[k] - a[k]);
        store<N>(average + i, a);
    }
};

__global__ void set_step_params(struct dl2_gpu_state *state, struct dl2_step_params params)
{
    double t = (double)(params.update - state->loss_scale.skipped);
    state->params = params;
    state->correction1 = (float)(1 - pow((double)params.momentum, t));
    state->correction2 = (float)(1 - pow((double)params.beta2, t));
}

/* NVIDIA, "Training with mixed precision": halve on overflow, double after 2000 steps without. */
__global__ void end_update(struct dl2_gpu_state *state)
{
    if (state->overflow) {
        state->loss_scale.skipped++;
        state->loss_scale.good = 0;
        if (state->dynamic && state->loss_scale.scale > 1)
            state->loss_scale.scale /= 2;
    } else if (++state->loss_scale.good >= 2000 && state->dynamic) {
        state->loss_scale.good = 0;
        if (state->loss_scale.scale < 16777216)
            state->loss_scale.scale *= 2;
    }
    state->overflow = 0;
}

} // namespace

int dl2_gpu_set_step_params(struct dl2_gpu_state *state, const struct dl2_step_params *params,
                            struct CUstream_st *stream)
{
    struct dl2_step_params copy = *params;
    return DL2_LAUNCH(set_step_params, 1, 1, stream, state, copy);
}

int dl2_gpu_check_gradients(const float *gradient, size_t count, struct dl2_gpu_state *state,
                            struct CUstream_st *stream)
{
    return run_each(check_gradients{gradient, state}, aligner_of<4>(gradient), count, stream);
}

template <class T, dl2_optimizer KIND>
static int run_update(const struct dl2_optimizer_step *step, unsigned ranks,
                      const struct dl2_gpu_state *state, cudaStream_t stream)
{
    return run_each(update<T, KIND>{*step, ranks, state},
                    aligner_of<wide<T>::N>(step->weights, step->gradient, step->momentum,
                                           step->second_moment, (T *)step->low_precision),
                    step->count, stream);
}

int dl2_gpu_update(enum dl2_element element, const struct dl2_optimizer_step *step, unsigned ranks,
                   const struct dl2_gpu_state *state, struct CUstream_st *stream)
{
    switch (step->kind) {
#define CALL(T) run_update<T, DL2_SGD>(step, ranks, state, stream)
    case DL2_SGD:
        return BY_ELEMENT(element, CALL);
#undef CALL
#define CALL(T) run_update<T, DL2_ADAMW>(step, ranks, state, stream)
    case DL2_ADAMW:
        return BY_ELEMENT(element, CALL);
#undef CALL
#define CALL(T) run_update<T, DL2_RMSPROP>(step, ranks, state, stream)
    case DL2_RMSPROP:
        return BY_ELEMENT(element, CALL);
#undef CALL
    }
    return cudaErrorInvalidValue;
}

int dl2_gpu_clip_gradients(float *gradient, size_t count, float limit, unsigned ranks,
                           float *partials, struct dl2_gpu_state *state, struct CUstream_st *stream)
{
    const size_t most = DL2_GPU_CLIP_PARTIALS, needed = (count + THREADS - 1) / THREADS;
    const unsigned blocks = (unsigned)(needed < most ? needed : most);
    if (!count)
        return cudaSuccess;
    int status = DL2_LAUNCH(sum_squares, blocks, THREADS, stream, gradient, count, partials);
    if (status == cudaSuccess)
        status = DL2_LAUNCH(find_clip, 1, THREADS, stream, partials, blocks, limit, ranks, state);
    return status == cudaSuccess
               ? run_each(clip{gradient, state}, aligner_of<4>(gradient), count, stream)
               : status;
}

int dl2_gpu_end_update(struct dl2_gpu_state *state, struct CUstream_st *stream)
{
    return DL2_LAUNCH(end_update, 1, 1, stream, state);
}

int dl2_gpu_move_average(float *average, const float *values, size_t count,
                         const struct dl2_gpu_state *state, struct CUstream_st *stream)
{
    return run_each(move_average{average, values, state}, aligner_of<4>(average, values), count,
                    stream);
}
