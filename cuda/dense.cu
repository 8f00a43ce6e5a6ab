/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Labels of pixels and voxels: a thread a row of logits, of which there are many and of a few
 * classes each. Sums over rows have a fixed number of parts, which are added in order.
 */
#include "cuda/kernels.h"
#include "cuda/tensor.cuh"

namespace
{

enum { PARTS = DL2_GPU_PIXEL_PARTS, SUM_THREADS = 128 };

/* -- cross-entropy -- */

/* Labels that count, in each part. */
__global__ void __launch_bounds__(SUM_THREADS)
    count_labels(const int32_t *__restrict__ labels, size_t rows, struct dl2_gpu_pixel_sums *parts)
{
    __shared__ unsigned whole[SUM_THREADS];
    unsigned counted = 0;
    for (size_t n = (size_t)blockIdx.x * SUM_THREADS + threadIdx.x; n < rows;
         n += (size_t)PARTS * SUM_THREADS)
        counted += labels[n] >= 0;
    counted = block_sum(counted, whole);
    if (!threadIdx.x)
        parts[blockIdx.x].counted = counted;
}

/* `counts`: count_labels()'s; `parts`: what this comes to. */
template <class T>
__global__ void __launch_bounds__(SUM_THREADS)
    pixel_losses(size_t rows, unsigned classes, float smoothing, const T *__restrict__ all_logits,
                 const int32_t *__restrict__ labels, float *__restrict__ losses,
                 T *__restrict__ all_dlogits, const struct dl2_gpu_pixel_sums *__restrict__ counts,
                 struct dl2_gpu_pixel_sums *__restrict__ parts, const struct dl2_gpu_state *state)
{
    __shared__ double doubles[SUM_THREADS];
    __shared__ unsigned whole[SUM_THREADS];
    unsigned all = 0;
    for (unsigned p = threadIdx.x; p < PARTS; p += SUM_THREADS)
        all += counts[p].counted;
    all = block_sum(all, whole);
    const float factor = (float)(state->params.scale * state->loss_scale.scale / (double)all);
    double loss = 0;
    unsigned counted = 0, top1 = 0, top5 = 0;
    for (size_t n = (size_t)blockIdx.x * SUM_THREADS + threadIdx.x; n < rows;
         n += (size_t)PARTS * SUM_THREADS) {
        const T *logits = all_logits + n * classes;
        T *dlogits = all_dlogits ? all_dlogits + n * classes : 0;
        if (labels[n] < 0) {
            for (unsigned k = 0; dlogits && k < classes; k++)
                narrow(0, dlogits + k);
            if (losses)
                losses[n] = 0;
            continue;
        }
        const unsigned label = (unsigned)labels[n];
        const float mine = widened(logits[label]);
        float highest = widened(logits[0]);
        double sum = 0, plain = 0;
        unsigned rank = 0, unordered = 0;
        for (unsigned k = 0; k < classes; k++) {
            const float v = widened(logits[k]);
            highest = v > highest ? v : highest;
            rank += v > mine || (v == mine && k < label);
            unordered += v != v;
        }
        for (unsigned k = 0; k < classes; k++) {
            const float v = widened(logits[k]);
            sum += expf(v - highest);
            plain += v - highest;
        }
        const double log_sum = log(sum);
        const double value = (1 - smoothing) * (log_sum - (mine - highest)) +
                             smoothing * (log_sum - plain / classes);
        loss += value;
        counted++;
        top1 += !unordered && rank < 1;
        top5 += !unordered && rank < 5;
        if (losses)
            losses[n] = (float)value;
        const float share = (float)(1 / sum), even = (float)(smoothing / classes);
        for (unsigned k = 0; dlogits && k < classes; k++) {
            const float target = even + (k == label ? 1 - smoothing : 0);
            narrow(factor * (expf(widened(logits[k]) - highest) * share - target), dlogits + k);
        }
    }
    loss = block_sum(loss, doubles);
    counted = block_sum(counted, whole);
    top1 = block_sum(top1, whole);
    top5 = block_sum(top5, whole);
    if (!threadIdx.x)
        parts[blockIdx.x] = dl2_gpu_pixel_sums{loss, counted, top1, top5};
}

/* One block. */
__global__ void __launch_bounds__(SUM_THREADS)
    add_pixel_losses(const struct dl2_gpu_pixel_sums *__restrict__ parts,
                     struct dl2_loss_sums *sums)
{
    __shared__ double doubles[SUM_THREADS];
    __shared__ unsigned whole[SUM_THREADS];
    double loss = 0;
    unsigned counted = 0, top1 = 0, top5 = 0;
    for (unsigned p = threadIdx.x; p < PARTS; p += SUM_THREADS) {
        loss += parts[p].loss;
        counted += parts[p].counted;
        top1 += parts[p].top1;
        top5 += parts[p].top5;
    }
    loss = block_sum(loss, doubles);
    counted = block_sum(counted, whole);
    top1 = block_sum(top1, whole);
    top5 = block_sum(top5, whole);
    if (!threadIdx.x) {
        sums->loss += loss;
        sums->counted += counted;
        sums->top1 += top1;
        sums->top5 += top5;
    }
}

/* -- Dice loss -- */

/* The softmax of a row is exp(logit - this). */
template <class T> __device__ float normalizer(const T *__restrict__ logits, unsigned classes)
{
    float highest = widened(logits[0]), sum = 0;
    for (unsigned k = 1; k < classes; k++) {
        const float v = widened(logits[k]);
        highest = v > highest ? v : highest;
    }
    for (unsigned k = 0; k < classes; k++)
        sum += expf(widened(logits[k]) - highest);
    return highest + logf(sum);
}

template <class T> struct normalize_rows {
    const T *logits;
    unsigned classes;
    float *normalizers;
    template <int N> __device__ void run(size_t i) const
    {
        normalizers[i] = normalizer(logits + i * classes, classes);
    }
};

/* A block a part of a class of a sample, from class 1 on. */
template <class T>
__global__ void __launch_bounds__(SUM_THREADS)
    dice_sums(struct dl2_dice_shape s, const T *__restrict__ logits,
              const int32_t *__restrict__ labels, const float *__restrict__ normalizers,
              struct dl2_gpu_dice_sums *parts)
{
    __shared__ double doubles[SUM_THREADS];
    const unsigned part = blockIdx.x % DL2_GPU_DICE_PARTS, which = blockIdx.x / DL2_GPU_DICE_PARTS;
    const unsigned k = which % (s.classes - 1) + 1;
    const size_t first = which / (s.classes - 1) * s.rows;
    double both = 0, target = 0, predicted = 0;
    for (size_t n = (size_t)part * SUM_THREADS + threadIdx.x; n < s.rows;
         n += (size_t)DL2_GPU_DICE_PARTS * SUM_THREADS) {
        const int32_t label = labels[first + n];
        if (label < 0)
            continue;
        const float p = expf(widened(logits[(first + n) * s.classes + k]) - normalizers[first + n]);
        predicted += p;
        both += label == (int32_t)k ? p : 0;
        target += label == (int32_t)k;
    }
    both = block_sum(both, doubles);
    target = block_sum(target, doubles);
    predicted = block_sum(predicted, doubles);
    if (!threadIdx.x)
        parts[blockIdx.x] = dl2_gpu_dice_sums{both, target, predicted};
}

/* One block: scores and slopes (device/dense.h), and the whole loss. */
__global__ void __launch_bounds__(SUM_THREADS)
    dice_scores(struct dl2_dice_shape s, const struct dl2_gpu_dice_sums *__restrict__ parts,
                struct dl2_dice_slope *__restrict__ slopes,
                const struct dl2_loss_sums *__restrict__ entropy, struct dl2_loss_sums *sums)
{
    __shared__ double doubles[SUM_THREADS];
    const unsigned terms = s.samples * (s.classes - 1);
    double lost = 0;
    for (unsigned i = threadIdx.x; i < terms; i += SUM_THREADS) {
        double both = 0, target = 0, predicted = 0;
        for (unsigned p = 0; p < DL2_GPU_DICE_PARTS; p++) {
            both += parts[i * DL2_GPU_DICE_PARTS + p].both;
            target += parts[i * DL2_GPU_DICE_PARTS + p].target;
            predicted += parts[i * DL2_GPU_DICE_PARTS + p].predicted;
        }
        const double all = target + predicted + DL2_DICE_EPSILON;
        const double score = (2 * both + DL2_DICE_EPSILON) / all;
        slopes[i] = dl2_dice_slope{-1 / (terms * all), score / (2 * terms * all)};
        lost += 1 - score;
    }
    lost = block_sum(lost, doubles) / terms;
    if (!threadIdx.x) {
        sums->loss += (entropy->loss + (double)entropy->counted * lost) / 2;
        sums->counted += entropy->counted;
        sums->top1 += entropy->top1;
        sums->top5 += entropy->top5;
    }
}

template <class T> struct dice_gradient {
    struct dl2_dice_shape s;
    const T *logits;
    const int32_t *labels;
    const float *normalizers;
    const struct dl2_dice_slope *slopes;
    T *dlogits;
    const struct dl2_gpu_state *state;
    __device__ float slope(const struct dl2_dice_slope *own, unsigned k, int32_t label) const
    {
        return k ? (float)(own[k - 1].all + ((int32_t)k == label ? own[k - 1].own : 0)) : 0;
    }
    template <int N> __device__ void run(size_t i) const
    {
        const T *row = logits + i * s.classes;
        const struct dl2_dice_slope *own = slopes + i / s.rows * (s.classes - 1);
        const float scale = (float)(state->params.scale * state->loss_scale.scale);
        float mean = 0;
        if (labels[i] < 0)
            return;
        for (unsigned k = 1; k < s.classes; k++)
            mean += expf(widened(row[k]) - normalizers[i]) * slope(own, k, labels[i]);
        for (unsigned k = 0; k < s.classes; k++) {
            const float p = expf(widened(row[k]) - normalizers[i]);
            T *to = dlogits + i * s.classes + k;
            narrow(widened(*to) / 2 + scale * p * (slope(own, k, labels[i]) - mean), to);
        }
    }
};

/* -- confusion -- */

/* Each row's cell of the matrix, -1 for none. */
template <class T> struct find_cells {
    const T *logits;
    const int32_t *labels;
    unsigned classes;
    int32_t *cells;
    template <int N> __device__ void run(size_t i) const
    {
        const T *row = logits + i * classes;
        const int32_t label = labels[i];
        unsigned best = 0;
        float highest = widened(row[0]);
        bool unordered = highest != highest;
        for (unsigned k = 1; k < classes; k++) {
            const float v = widened(row[k]);
            unordered |= v != v;
            if (v > highest) {
                highest = v;
                best = k;
            }
        }
        if (unordered)
            best = ((unsigned)label + 1) % classes;
        cells[i] = label < 0 ? -1 : (int32_t)((unsigned)label * classes + best);
    }
};

/* A block a cell. */
__global__ void __launch_bounds__(THREADS)
    count_cells(const int32_t *__restrict__ cells, size_t rows, uint64_t *matrix)
{
    __shared__ unsigned whole[THREADS];
    unsigned count = 0;
    for (size_t n = threadIdx.x; n < rows; n += THREADS)
        count += cells[n] == (int32_t)blockIdx.x;
    count = block_sum(count, whole);
    if (!threadIdx.x)
        matrix[blockIdx.x] += count;
}

/* -- columns -- */

template <class W> struct copy_units {
    W *to;
    const W *from;
    size_t to_step, from_step, columns;
    template <int N> __device__ void run(size_t i) const
    {
        const size_t row = i / columns, column = i % columns;
        to[row * to_step + column] = from[row * from_step + column];
    }
};

template <class W>
int copy_by(void *to, size_t to_bytes, const void *from, size_t from_bytes, size_t bytes,
            size_t rows, cudaStream_t stream)
{
    const copy_units<W> f = {(W *)to, (const W *)from, to_bytes / sizeof(W), from_bytes / sizeof(W),
                             bytes / sizeof(W)};
    return run_each(f, aligner<1>(), rows * (bytes / sizeof(W)), stream);
}

template <class T>
int run_pixel_loss(const struct dl2_loss_shape *s, const void *logits, const int32_t *labels,
                   float *losses, void *dlogits, struct dl2_loss_sums *sums,
                   struct dl2_gpu_pixel_sums *parts, const struct dl2_gpu_state *state,
                   cudaStream_t stream)
{
    int status =
        DL2_LAUNCH(count_labels, PARTS, SUM_THREADS, stream, labels, (size_t)s->batch, parts);
    if (status == cudaSuccess)
        status = DL2_LAUNCH((pixel_losses<T>), PARTS, SUM_THREADS, stream, (size_t)s->batch,
                            s->classes, s->smoothing, (const T *)logits, labels, losses,
                            (T *)dlogits, parts, parts + PARTS, state);
    if (status == cudaSuccess)
        status = DL2_LAUNCH(add_pixel_losses, 1, SUM_THREADS, stream, parts + PARTS, sums);
    return status;
}

template <class T>
int run_dice(const struct dl2_gpu_dice *d, const void *logits, const int32_t *labels, void *dlogits,
             const struct dl2_loss_sums *entropy, struct dl2_loss_sums *sums,
             const struct dl2_gpu_state *state, cudaStream_t stream)
{
    const struct dl2_dice_shape s = d->shape;
    const size_t rows = s.samples * s.rows;
    int status = run_each(normalize_rows<T>{(const T *)logits, s.classes, d->normalizers},
                          aligner<1>(), rows, stream);
    if (status == cudaSuccess)
        status =
            DL2_LAUNCH((dice_sums<T>), s.samples * (s.classes - 1) * DL2_GPU_DICE_PARTS,
                       SUM_THREADS, stream, s, (const T *)logits, labels, d->normalizers, d->parts);
    if (status == cudaSuccess)
        status =
            DL2_LAUNCH(dice_scores, 1, SUM_THREADS, stream, s, d->parts, d->slopes, entropy, sums);
    if (status == cudaSuccess && dlogits)
        status = run_each(dice_gradient<T>{s, (const T *)logits, labels, d->normalizers, d->slopes,
                                           (T *)dlogits, state},
                          aligner<1>(), rows, stream);
    return status;
}

} // namespace

int dl2_gpu_pixel_loss(enum dl2_element element, const struct dl2_loss_shape *shape,
                       const void *logits, const int32_t *labels, float *losses, void *dlogits,
                       struct dl2_loss_sums *sums, struct dl2_gpu_pixel_sums *parts,
                       const struct dl2_gpu_state *state, struct CUstream_st *stream)
{
#define CALL(T)                                                                                    \
    run_pixel_loss<T>(shape, logits, labels, losses, dlogits, sums, parts, state, stream)
    return BY_ELEMENT(element, CALL);
#undef CALL
}

int dl2_gpu_dice(enum dl2_element element, const struct dl2_gpu_dice *dice, const void *logits,
                 const int32_t *labels, void *dlogits, const struct dl2_loss_sums *entropy,
                 struct dl2_loss_sums *sums, const struct dl2_gpu_state *state,
                 struct CUstream_st *stream)
{
#define CALL(T) run_dice<T>(dice, logits, labels, dlogits, entropy, sums, state, stream)
    return BY_ELEMENT(element, CALL);
#undef CALL
}

int dl2_gpu_confusion(enum dl2_element element, const void *logits, const int32_t *labels,
                      size_t rows, unsigned classes, int32_t *cells, uint64_t *matrix,
                      struct CUstream_st *stream)
{
#define CALL(T)                                                                                    \
    run_each(find_cells<T>{(const T *)logits, labels, classes, cells}, aligner<1>(), rows, stream)
    const int status = BY_ELEMENT(element, CALL);
#undef CALL
    if (status != cudaSuccess)
        return status;
    return DL2_LAUNCH(count_cells, classes * classes, THREADS, stream, cells, rows, matrix);
}

int dl2_gpu_copy_columns(void *to, size_t to_bytes, const void *from, size_t from_bytes,
                         size_t bytes, size_t rows, struct CUstream_st *stream)
{
    const size_t all = (uintptr_t)to | to_bytes | (uintptr_t)from | from_bytes | bytes;
    return all % 16 == 0  ? copy_by<uint4>(to, to_bytes, from, from_bytes, bytes, rows, stream)
           : all % 4 == 0 ? copy_by<uint32_t>(to, to_bytes, from, from_bytes, bytes, rows, stream)
                          : copy_by<uint16_t>(to, to_bytes, from, from_bytes, bytes, rows, stream);
}
