/* SPDX-License-Identifier: BSD-2-Clause */
/* Softmax cross-entropy: a block a sample. */
#include "cuda/kernels.h"
#include "cuda/tensor.cuh"

namespace
{

enum { LOSS_THREADS = 128 };

__device__ __forceinline__ bool counts(const int32_t *labels, const uint32_t *partner, size_t n)
{
    return labels[n] >= 0 && (!partner || labels[partner[n]] >= 0);
}

/* A block a sample. */
template <class T>
__global__ void __launch_bounds__(LOSS_THREADS)
    loss(struct dl2_loss_shape s, const T *__restrict__ all_logits,
         const int32_t *__restrict__ labels, const uint32_t *__restrict__ partner,
         float *__restrict__ losses, T *__restrict__ all_dlogits,
         struct dl2_gpu_sample_loss *__restrict__ each, const struct dl2_gpu_state *state)
{
    __shared__ double doubles[LOSS_THREADS];
    __shared__ float floats[LOSS_THREADS];
    __shared__ unsigned whole[LOSS_THREADS];
    unsigned tid = threadIdx.x, classes = s.classes;
    size_t n = blockIdx.x;
    const T *logits = all_logits + n * classes;
    T *dlogits = all_dlogits ? all_dlogits + n * classes : 0;

    unsigned counted = 0;
    for (unsigned i = tid; i < s.batch; i += LOSS_THREADS)
        counted += counts(labels, partner, i);
    counted = block_sum(counted, whole);
    if (!counts(labels, partner, n)) { /* alike for the whole block */
        for (unsigned k = tid; dlogits && k < classes; k += LOSS_THREADS)
            narrow(0, dlogits + k);
        if (!tid) {
            each[n].value = 0;
            each[n].rank = -1;
            if (losses)
                losses[n] = 0;
        }
        return;
    }
    unsigned label = (unsigned)labels[n];
    unsigned other = partner ? (unsigned)labels[partner[n]] : label;
    double own = partner ? (double)state->params.lambda : 1, smoothing = s.smoothing;

    float mine = widened(logits[label]), highest = widened(logits[0]);
    for (unsigned k = tid; k < classes; k += LOSS_THREADS) {
        float v = widened(logits[k]);
        highest = v > highest ? v : highest;
    }
    highest = block_max(highest, floats);
    double sum = 0, plain = 0;
    unsigned rank = 0, unordered = 0;
    for (unsigned k = tid; k < classes; k += LOSS_THREADS) {
        float v = widened(logits[k]);
        sum += expf(v - highest);
        plain += v - highest;
        rank += v > mine || (v == mine && k < label);
        unordered += v != v;
    }
    sum = block_sum(sum, doubles);
    plain = block_sum(plain, doubles);
    rank = block_sum(rank, whole);
    rank = block_sum(unordered, whole) ? DL2_RANK_NAN : rank;
    double log_sum = log(sum);
    if (!tid) {
        double value =
            log_sum - own * (mine - highest) - (1 - own) * (widened(logits[other]) - highest);
        value = (1 - smoothing) * value + smoothing * (log_sum - plain / classes);
        each[n].value = value;
        each[n].rank = (int32_t)rank;
        if (losses)
            losses[n] = (float)value;
    }
    float factor = (float)(state->params.scale * state->loss_scale.scale / (double)counted);
    float share = (float)(1 / sum), even = (float)(smoothing / classes);
    float first = (float)((1 - smoothing) * own), second = (float)((1 - smoothing) * (1 - own));
    for (unsigned k = tid; dlogits && k < classes; k += LOSS_THREADS) {
        float target = even + (k == label ? first : 0) + (k == other ? second : 0);
        narrow(factor * (expf(widened(logits[k]) - highest) * share - target), dlogits + k);
    }
}

/* One block adds what the samples came to. */
__global__ void __launch_bounds__(LOSS_THREADS)
    add_losses(unsigned batch, const struct dl2_gpu_sample_loss *__restrict__ each,
               struct dl2_loss_sums *sums)
{
    __shared__ double doubles[LOSS_THREADS];
    __shared__ unsigned whole[LOSS_THREADS];
    double value = 0;
    unsigned counted = 0, top1 = 0, top5 = 0;
    for (unsigned n = threadIdx.x; n < batch; n += LOSS_THREADS) {
        int rank = each[n].rank;
        value += each[n].value;
        counted += rank >= 0;
        top1 += rank == 0;
        top5 += rank >= 0 && rank < 5;
    }
    value = block_sum(value, doubles);
    counted = block_sum(counted, whole);
    top1 = block_sum(top1, whole);
    top5 = block_sum(top5, whole);
    if (!threadIdx.x) {
        sums->loss += value;
        sums->counted += counted;
        sums->top1 += top1;
        sums->top5 += top5;
    }
}

} // namespace

template <class T>
static int set_up_loss(const struct dl2_loss_shape *shape, const void *logits,
                       const int32_t *labels, const uint32_t *partner, float *losses, void *dlogits,
                       struct dl2_loss_sums *sums, struct dl2_gpu_sample_loss *each,
                       const struct dl2_gpu_state *state, cudaStream_t stream)
{
    struct dl2_loss_shape s = *shape;
    int status = DL2_LAUNCH((loss<T>), s.batch, LOSS_THREADS, stream, s, (const T *)logits, labels,
                            partner, losses, (T *)dlogits, each, state);
    if (status != cudaSuccess)
        return status;
    return DL2_LAUNCH(add_losses, 1, LOSS_THREADS, stream, s.batch, each, sums);
}

int dl2_gpu_loss(enum dl2_element element, const struct dl2_loss_shape *shape, const void *logits,
                 const int32_t *labels, const uint32_t *partner, float *losses, void *dlogits,
                 struct dl2_loss_sums *sums, struct dl2_gpu_sample_loss *each,
                 const struct dl2_gpu_state *state, struct CUstream_st *stream)
{
#define CALL(T)                                                                                    \
    set_up_loss<T>(shape, logits, labels, partner, losses, dlogits, sums, each, state, stream)
    return BY_ELEMENT(element, CALL);
#undef CALL
}
