#include "cuda/kernels.h"
#include "cuda/launch.h"

#include <stdint.h>

#ifdef __CUDACC__
#include <math_constants.h>
#endif

namespace
{

enum { THREADS = 256 };

/* -- tensors: one 16-byte access moves N elements -- */

__device__ __forceinline__ float widened(float v)
{
    return v;
}
__device__ __forceinline__ float widened(uint8_t v)
{
    return (float)v;
}
__device__ __forceinline__ float widened(__nv_bfloat16 v)
{
    return __bfloat162float(v);
}
__device__ __forceinline__ float widened(__half v)
{
    return __half2float(v);
}
__device__ __forceinline__ void narrow(float v, float *to)
{
    *to = v;
}
__device__ __forceinline__ void narrow(float v, __nv_bfloat16 *to)
{
    *to = __float2bfloat16_rn(v);
}
__device__ __forceinline__ void narrow(float v, __half *to)
{
    *to = __float2half_rn(v);
}
/* As a tensor of T would keep it. */
template <class T> __device__ __forceinline__ float rounded(float v)
{
    T t;
    narrow(v, &t);
    return widened(t);
}

template <int BYTES> struct word {
    typedef uint4 type;
};
template <> struct word<1> {
    typedef uint8_t type;
};
template <> struct word<2> {
    typedef uint16_t type;
};
template <> struct word<4> {
    typedef uint32_t type;
};
template <> struct word<8> {
    typedef uint2 type;
};

template <int N, class T> __device__ __forceinline__ void load(const T *from, float (&to)[N])
{
    typedef typename word<N *(int)sizeof(T)>::type W;
    enum { COUNT = N * sizeof(T) / sizeof(W) };
    W words[COUNT];
#pragma unroll
    for (int i = 0; i < COUNT; i++)
        words[i] = ((const W *)from)[i];
    T elements[N];
    memcpy(elements, words, sizeof elements);
#pragma unroll
    for (int i = 0; i < N; i++)
        to[i] = widened(elements[i]);
}

/* The compiler likes to cut a plain assignment of 16 bytes into four. */
template <class W> __device__ __forceinline__ void put(W *to, W what)
{
    *to = what;
}
__device__ __forceinline__ void put(uint4 *to, uint4 what)
{
    __stwb(to, what);
}

template <int N, class T> __device__ __forceinline__ void store(T *to, const float (&from)[N])
{
    typedef typename word<N *(int)sizeof(T)>::type W;
    enum { COUNT = N * sizeof(T) / sizeof(W) };
    T elements[N];
#pragma unroll
    for (int i = 0; i < N; i++)
        narrow(from[i], elements + i);
    W words[COUNT];
    memcpy(words, elements, sizeof words);
#pragma unroll
    for (int i = 0; i < COUNT; i++)
        put((W *)to + i, words[i]);
}

/* Elements of T in 16 bytes. */
template <class T> struct wide {
    enum { N = 16 / sizeof(T) };
};

#define BY_ELEMENT(element, CALL)                                                                  \
    ((element) == DL2_ELEMENT_BF16  ? CALL(__nv_bfloat16)                                          \
     : (element) == DL2_ELEMENT_F16 ? CALL(__half)                                                 \
                                    : CALL(float))

/* -- elementwise: F has run<N>(i), which does elements i .. i + N - 1 -- */

/* `head` elements, then `vectors` of N, then what is left. */
template <int N, class F>
__global__ void __launch_bounds__(THREADS) each(F f, size_t head, size_t vectors, size_t count)
{
    size_t step = (size_t)gridDim.x * THREADS, i = (size_t)blockIdx.x * THREADS + threadIdx.x;
    for (size_t v = i; v < vectors; v += step)
        f.template run<N>(head + v * N);
    for (size_t s = i; s < count - vectors * N; s += step)
        f.template run<1>(s < head ? s : s + vectors * N);
}

/* Where N-element accesses may begin: the number of elements before that; -1 where tensors differ.
 */
template <int N> struct aligner {
    long head = -2;
    void see(const void *address, size_t size)
    {
        size_t misfit = (uintptr_t)address % size ? 1 : 0;
        long first = (long)((N - (uintptr_t)address / size % N) % N);
        head = misfit || (head != -2 && head != first) ? -1 : first;
        settled |= head == -1;
    }
    bool settled = false;
    size_t vectors(size_t count) const
    {
        return settled || head < 0 || (size_t)head > count ? 0 : (count - (size_t)head) / N;
    }
};

template <int N, class F>
int run_each(F f, const aligner<N> &alignment, size_t count, cudaStream_t stream)
{
    if (!count)
        return cudaSuccess;
    size_t vectors = alignment.vectors(count), head = vectors ? (size_t)alignment.head : 0;
    size_t most = vectors > count - vectors * N ? vectors : count - vectors * N;
    size_t blocks = (most + THREADS - 1) / THREADS;
    return DL2_LAUNCH((each<N, F>), (unsigned)(blocks < 8192 ? blocks : 8192), THREADS, stream, f,
                      head, vectors, count);
}

__device__ __forceinline__ float activated(float v, enum dl2_activation activation)
{
    /* So written that NaN stays one. */
    if (activation != DL2_IDENTITY && v <= 0)
        v = 0;
    if (activation == DL2_RELU6 && v >= 6)
        v = 6;
    return v;
}

__device__ __forceinline__ bool open(float y, enum dl2_activation activation)
{
    return activation == DL2_IDENTITY || (y > 0 && (activation == DL2_RELU || y < 6));
}

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

template <class T> struct lower {
    const float *from;
    T *to;
    template <int N> __device__ void run(size_t i) const
    {
        float v[N];
        load<N>(from + i, v);
        store<N>(to + i, v);
    }
};

template <class T> struct activate {
    const T *x;
    T *y;
    enum dl2_activation activation;
    template <int N> __device__ void run(size_t i) const
    {
        float v[N];
        load<N>(x + i, v);
#pragma unroll
        for (int k = 0; k < N; k++)
            v[k] = activated(v[k], activation);
        store<N>(y + i, v);
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
            g[k] = open(v[k], activation) ? g[k] : 0;
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
        uint64_t step = state->numbers.step;
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

/* -- optimiser -- */

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

template <class T> struct sgd {
    float *weights, *momentum;
    const float *gradient;
    T *lowered; /* may be NULL */
    bool decays, nesterov;
    unsigned ranks;
    const struct dl2_gpu_state *state;
    template <int N> __device__ void run(size_t i) const
    {
        if (state->overflow)
            return;
        float share = (float)(1 / (state->loss_scale.scale * ranks));
        float decay = decays ? state->numbers.weight_decay : 0, beta = state->numbers.momentum;
        float rate = state->numbers.rate;
        float w[N], g[N], m[N];
        load<N>(weights + i, w);
        load<N>(gradient + i, g);
        load<N>(momentum + i, m);
#pragma unroll
        for (int k = 0; k < N; k++) {
            g[k] = g[k] * share + decay * w[k];
            m[k] = beta * m[k] + g[k];
            w[k] -= rate * (nesterov ? g[k] + beta * m[k] : m[k]);
        }
        store<N>(weights + i, w);
        store<N>(momentum + i, m);
        if (lowered)
            store<N>(lowered + i, w);
    }
};

__global__ void set_numbers(struct dl2_gpu_state *state, struct dl2_step_numbers numbers)
{
    state->numbers = numbers;
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

/* -- sums over a block, in a fixed order; every thread gets the result -- */

template <class V> __device__ V block_sum(V value, V *shared)
{
    __syncthreads();
    shared[threadIdx.x] = value;
    __syncthreads();
    for (unsigned half = blockDim.x / 2; half; half /= 2) {
        if (threadIdx.x < half)
            shared[threadIdx.x] += shared[threadIdx.x + half];
        __syncthreads();
    }
    return shared[0];
}

__device__ float block_max(float value, float *shared)
{
    __syncthreads();
    shared[threadIdx.x] = value;
    __syncthreads();
    for (unsigned half = blockDim.x / 2; half; half /= 2) {
        if (threadIdx.x < half && shared[threadIdx.x + half] > shared[threadIdx.x])
            shared[threadIdx.x] = shared[threadIdx.x + half];
        __syncthreads();
    }
    return shared[0];
}

/* -- ingest -- */

/* blockIdx.y strides over samples, x over elements of one; N elements at once. */
template <class T, int N>
__global__ void __launch_bounds__(THREADS)
    ingest(struct dl2_ingest_shape s, const uint8_t *__restrict__ images,
           const uint32_t *__restrict__ partner, T *__restrict__ y,
           const struct dl2_gpu_state *state)
{
    size_t size = (size_t)s.height * s.width * s.channels;
    float own = partner ? state->numbers.lambda : 1, other = 1 - own;
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

/* -- loss -- */

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
    double own = partner ? (double)state->numbers.lambda : 1, smoothing = s.smoothing;

    float mine = widened(logits[label]), highest = widened(logits[0]);
    for (unsigned k = tid; k < classes; k += LOSS_THREADS) {
        float v = widened(logits[k]);
        highest = v > highest ? v : highest;
    }
    highest = block_max(highest, floats);
    double sum = 0, plain = 0;
    unsigned rank = 0;
    for (unsigned k = tid; k < classes; k += LOSS_THREADS) {
        float v = widened(logits[k]);
        sum += expf(v - highest);
        plain += v - highest;
        rank += v > mine || (v == mine && k < label);
    }
    sum = block_sum(sum, doubles);
    plain = block_sum(plain, doubles);
    rank = block_sum(rank, whole);
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
    float factor = (float)(state->numbers.scale * state->loss_scale.scale / (double)counted);
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

/* -- pooling: a thread makes N channels of one output; no tensor has 2^31 elements, and 32 bits are
 * quicker to divide -- */

struct window {
    unsigned h0, h1, w0, w1;
};

__device__ __forceinline__ void clip(unsigned o, unsigned kernel, unsigned stride, unsigned pad,
                                     unsigned in, unsigned *begin, unsigned *end)
{
    unsigned first = o * stride;
    *begin = first > pad ? first - pad : 0;
    *end = first + kernel - pad < in ? first + kernel - pad : in;
}

__device__ __forceinline__ unsigned adaptive_begin(unsigned i, unsigned in, unsigned out)
{
    return (unsigned)((uint64_t)i * in / out);
}

__device__ __forceinline__ unsigned adaptive_end(unsigned i, unsigned in, unsigned out)
{
    return (unsigned)(((uint64_t)(i + 1) * in + out - 1) / out);
}

template <class T, int N>
__global__ void __launch_bounds__(THREADS, 4)
    max_pool(struct dl2_pool_shape s, const T *__restrict__ x, T *__restrict__ y,
             uint8_t *__restrict__ winner)
{
    unsigned across = s.channels / N;
    unsigned count = s.batch * s.out_height * s.out_width * across;
    for (unsigned i = blockIdx.x * THREADS + threadIdx.x; i < count; i += gridDim.x * THREADS) {
        unsigned c = i % across * N, ow = i / across % s.out_width;
        unsigned oh = i / across / s.out_width % s.out_height;
        size_t n = i / across / s.out_width / s.out_height;
        struct window v;
        clip(oh, s.kernel_height, s.stride_height, s.pad_height, s.in_height, &v.h0, &v.h1);
        clip(ow, s.kernel_width, s.stride_width, s.pad_width, s.in_width, &v.w0, &v.w1);
        float best[N] = {}, taken[N] = {}, here[N];
        bool first = true;
        for (unsigned h = v.h0; h < v.h1; h++)
            for (unsigned w = v.w0; w < v.w1; w++) {
                load<N>(x + ((n * s.in_height + h) * s.in_width + w) * s.channels + c, here);
                unsigned tap = (h + s.pad_height - oh * s.stride_height) * s.kernel_width +
                               (w + s.pad_width - ow * s.stride_width);
#pragma unroll
                for (int k = 0; k < N; k++) {
                    bool better = first || here[k] > best[k];
                    best[k] = better ? here[k] : best[k];
                    taken[k] = better ? (float)tap : taken[k];
                }
                first = false;
            }
        store<N>(y + (size_t)i * N, best);
        uint8_t taps[N];
#pragma unroll
        for (int k = 0; k < N; k++)
            taps[k] = (uint8_t)taken[k];
        typename word<N>::type packed;
        memcpy(&packed, taps, sizeof packed);
        *(typename word<N>::type *)(winner + (size_t)i * N) = packed;
    }
}

/* First output whose window has input `i`, and one past the last. */
__device__ __forceinline__ void seen_by(unsigned i, unsigned kernel, unsigned stride, unsigned pad,
                                        unsigned out, unsigned *begin, unsigned *end)
{
    unsigned at = i + pad; /* o * stride <= at < o * stride + kernel */
    *begin = at < kernel ? 0 : (at - kernel) / stride + 1;
    unsigned last = at / stride + 1;
    *end = last < out ? last : out;
}

template <class T, int N>
__global__ void __launch_bounds__(THREADS)
    max_pool_backward(struct dl2_pool_shape s, const T *__restrict__ dy,
                      const uint8_t *__restrict__ winner, T *__restrict__ dx)
{
    unsigned across = s.channels / N;
    unsigned count = s.batch * s.in_height * s.in_width * across;
    for (unsigned i = blockIdx.x * THREADS + threadIdx.x; i < count; i += gridDim.x * THREADS) {
        unsigned c = i % across * N, w = i / across % s.in_width;
        unsigned h = i / across / s.in_width % s.in_height;
        size_t n = i / across / s.in_width / s.in_height;
        unsigned oh0, oh1, ow0, ow1;
        seen_by(h, s.kernel_height, s.stride_height, s.pad_height, s.out_height, &oh0, &oh1);
        seen_by(w, s.kernel_width, s.stride_width, s.pad_width, s.out_width, &ow0, &ow1);
        float sum[N] = {}, here[N], taps[N];
        for (unsigned oh = oh0; oh < oh1; oh++)
            for (unsigned ow = ow0; ow < ow1; ow++) {
                size_t o = ((n * s.out_height + oh) * s.out_width + ow) * s.channels + c;
                unsigned tap = (h + s.pad_height - oh * s.stride_height) * s.kernel_width +
                               (w + s.pad_width - ow * s.stride_width);
                load<N>(dy + o, here);
                load<N>(winner + o, taps);
#pragma unroll
                for (int k = 0; k < N; k++)
                    sum[k] += taps[k] == (float)tap ? here[k] : 0;
            }
        store<N>(dx + (size_t)i * N, sum);
    }
}

template <class T, int N>
__global__ void __launch_bounds__(THREADS)
    average_pool(struct dl2_pool_shape s, const T *__restrict__ x, T *__restrict__ y)
{
    unsigned across = s.channels / N;
    unsigned count = s.batch * s.out_height * s.out_width * across;
    for (unsigned i = blockIdx.x * THREADS + threadIdx.x; i < count; i += gridDim.x * THREADS) {
        unsigned c = i % across * N, ow = i / across % s.out_width;
        unsigned oh = i / across / s.out_width % s.out_height;
        size_t n = i / across / s.out_width / s.out_height;
        unsigned h0 = adaptive_begin(oh, s.in_height, s.out_height);
        unsigned h1 = adaptive_end(oh, s.in_height, s.out_height);
        unsigned w0 = adaptive_begin(ow, s.in_width, s.out_width);
        unsigned w1 = adaptive_end(ow, s.in_width, s.out_width);
        float sum[N] = {}, here[N];
        for (unsigned h = h0; h < h1; h++)
            for (unsigned w = w0; w < w1; w++) {
                load<N>(x + ((n * s.in_height + h) * s.in_width + w) * s.channels + c, here);
#pragma unroll
                for (int k = 0; k < N; k++)
                    sum[k] += here[k];
            }
        float area = (float)((h1 - h0) * (w1 - w0));
#pragma unroll
        for (int k = 0; k < N; k++)
            sum[k] /= area;
        store<N>(y + (size_t)i * N, sum);
    }
}

template <class T, int N>
__global__ void __launch_bounds__(THREADS)
    average_pool_backward(struct dl2_pool_shape s, const T *__restrict__ dy, T *__restrict__ dx)
{
    unsigned across = s.channels / N;
    unsigned count = s.batch * s.in_height * s.in_width * across;
    for (unsigned i = blockIdx.x * THREADS + threadIdx.x; i < count; i += gridDim.x * THREADS) {
        unsigned c = i % across * N, w = i / across % s.in_width;
        unsigned h = i / across / s.in_width % s.in_height;
        size_t n = i / across / s.in_width / s.in_height;
        /* The outputs o with floor(o * in / out) <= h < ceil((o + 1) * in / out). */
        unsigned oh0 = (unsigned)((uint64_t)h * s.out_height / s.in_height);
        unsigned oh1 = (unsigned)(((uint64_t)(h + 1) * s.out_height - 1) / s.in_height);
        unsigned ow0 = (unsigned)((uint64_t)w * s.out_width / s.in_width);
        unsigned ow1 = (unsigned)(((uint64_t)(w + 1) * s.out_width - 1) / s.in_width);
        float sum[N] = {}, here[N];
        for (unsigned oh = oh0; oh <= oh1; oh++)
            for (unsigned ow = ow0; ow <= ow1; ow++) {
                unsigned area = (adaptive_end(oh, s.in_height, s.out_height) -
                                 adaptive_begin(oh, s.in_height, s.out_height)) *
                                (adaptive_end(ow, s.in_width, s.out_width) -
                                 adaptive_begin(ow, s.in_width, s.out_width));
                load<N>(dy + ((n * s.out_height + oh) * s.out_width + ow) * s.channels + c, here);
#pragma unroll
                for (int k = 0; k < N; k++)
                    sum[k] += here[k] / (float)area;
            }
        store<N>(dx + (size_t)i * N, sum);
    }
}

/*
 * -- kernels over rows of [rows][channels] --
 * A block has `across` neighbouring groups of N channels, and below each other as many rows as
 * there are threads for; every thread keeps to its channels, so that what belongs to these is read
 * once. blockIdx.x strides over rows, blockIdx.y is a group of channels.
 */
struct rows_shape {
    size_t rows;
    unsigned channels, across;
};

struct place {
    unsigned column, at, row, high; /* first channel; thread across and down; rows a block has */
    bool idle;
};

template <int N> __device__ __forceinline__ struct place place_of(const struct rows_shape &s)
{
    struct place p;
    p.high = THREADS / s.across;
    p.at = threadIdx.x % s.across;
    p.row = threadIdx.x / s.across;
    p.column = (blockIdx.y * s.across + p.at) * N;
    p.idle = p.row >= p.high || p.column >= s.channels;
    return p;
}

enum { SUM_BLOCKS = 512, BUSY_BLOCKS = 1056, FINISH = 32 };

/* Adds up P planes of what F makes of each row, into partials[blockIdx.x][P][channels]. Rows are
 * taken from the last to the first: the last are likeliest to lie in the cache still, and the first
 * then do for what follows. */
template <class T, int N, int P, class F>
__global__ void __launch_bounds__(THREADS) sum_rows(F f, struct rows_shape s, float *partials)
{
    __shared__ float shared[THREADS * N];
    struct place p = place_of<N>(s);
    float sums[P][N] = {};
    if (!p.idle) {
        f.template begin<N>(p.column);
        size_t step = (size_t)gridDim.x * p.high;
#pragma unroll 2
        for (size_t r = (size_t)blockIdx.x * p.high + p.row; r < s.rows; r += step)
            f.template add<N>(s.rows - 1 - r, p.column, sums);
    }
    for (int plane = 0; plane < P; plane++) {
        __syncthreads();
#pragma unroll
        for (int k = 0; k < N; k++)
            shared[threadIdx.x * N + k] = sums[plane][k];
        __syncthreads();
        unsigned width = s.across * N;
        for (unsigned i = threadIdx.x; i < width; i += THREADS) {
            unsigned column = blockIdx.y * width + i;
            double sum = 0;
            for (unsigned row = 0; row < p.high; row++)
                sum += shared[row * width + i];
            if (column < s.channels)
                partials[((size_t)blockIdx.x * P + plane) * s.channels + column] = (float)sum;
        }
    }
}

/* Adds up the partials of 32 columns in double, and hands the sums to F. */
template <int P, class F>
__global__ void __launch_bounds__(FINISH *FINISH)
    finish_rows(F f, const float *__restrict__ partials, unsigned blocks, unsigned channels)
{
    __shared__ double shared[FINISH * FINISH];
    unsigned x = threadIdx.x % FINISH, y = threadIdx.x / FINISH, column = blockIdx.x * FINISH + x;
    double sums[P] = {};
    if (column < channels)
#pragma unroll 4
        for (unsigned b = y; b < blocks; b += FINISH)
#pragma unroll
            for (int plane = 0; plane < P; plane++)
                sums[plane] += partials[((size_t)b * P + plane) * channels + column];
#pragma unroll
    for (int plane = 0; plane < P; plane++) {
        __syncthreads();
        shared[threadIdx.x] = sums[plane];
        __syncthreads();
        for (unsigned half = FINISH / 2; half; half /= 2) {
            if (y < half)
                shared[threadIdx.x] += shared[threadIdx.x + half * FINISH];
            __syncthreads();
        }
        sums[plane] = shared[x];
    }
    if (!y && column < channels)
        f.finish(column, sums);
}

template <int N> struct rows_shape rows_of(size_t rows, unsigned channels, unsigned *groups)
{
    unsigned vectors = channels / N, parts = (vectors + 63) / 64;
    struct rows_shape s = {rows, channels, (vectors + parts - 1) / parts};
    *groups = (vectors + s.across - 1) / s.across;
    return s;
}

/* Blocks along the rows, where the sums are. */
template <int N> unsigned sum_blocks(const struct rows_shape &s, unsigned groups)
{
    unsigned high = THREADS / s.across;
    size_t useful = (s.rows + high * 8 - 1) / (high * 8); /* eight rows a thread at least */
    size_t most = SUM_BLOCKS / groups ? SUM_BLOCKS / groups : 1;
    return (unsigned)(useful < most ? useful : most);
}

template <class T, int N, int P, class F, class G>
int run_sums(F f, G g, size_t rows, unsigned channels, float *partials, cudaStream_t stream)
{
    unsigned groups;
    struct rows_shape s = rows_of<N>(rows, channels, &groups);
    unsigned blocks = sum_blocks<N>(s, groups);
    int status =
        DL2_LAUNCH((sum_rows<T, N, P, F>), dim3(blocks, groups), THREADS, stream, f, s, partials);
    if (status != cudaSuccess)
        return status;
    return DL2_LAUNCH((finish_rows<P, G>), (channels + FINISH - 1) / FINISH, FINISH * FINISH,
                      stream, g, partials, blocks, channels);
}

/* F has begin(column), once for a thread, and run(row, column). */
template <int N, class F>
__global__ void __launch_bounds__(THREADS) map_rows(F f, struct rows_shape s)
{
    struct place p = place_of<N>(s);
    if (p.idle)
        return;
    f.template begin<N>(p.column);
    for (size_t r = (size_t)blockIdx.x * p.high + p.row; r < s.rows;
         r += (size_t)gridDim.x * p.high)
        f.template run<N>(r, p.column);
}

template <int N, class F> int run_rows(F f, size_t rows, unsigned channels, cudaStream_t stream)
{
    unsigned groups;
    struct rows_shape s = rows_of<N>(rows, channels, &groups);
    unsigned high = THREADS / s.across;
    /* Sixteen rows a thread, so that what belongs to its channels, which is up to a hundred bytes
       and more, is read for something; fewer where large cards would run dry, four at least. */
    size_t few = (rows + high * 16 - 1) / (high * 16), many = (rows + high * 4 - 1) / (high * 4);
    size_t full = BUSY_BLOCKS / groups ? BUSY_BLOCKS / groups : 1;
    size_t blocks = few > full ? few : many < full ? many : full;
    size_t most = 4096 / groups ? 4096 / groups : 1;
    return DL2_LAUNCH((map_rows<N, F>), dim3((unsigned)(blocks < most ? blocks : most), groups),
                      THREADS, stream, f, s);
}

bool aligned(const void *address)
{
    return (uintptr_t)address % 16 == 0; /* NULL is */
}

/* -- what is summed and mapped -- */

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
            v[k] += b[k];
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

struct norm_recentre {
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

/* What batch norm makes of x, before residual and activation: one way to compute it, so that
 * backward sees the same bits as forward. */
__device__ __forceinline__ float normal(float x, float mean, float slope, float beta)
{
    return fmaf(x - mean, slope, beta);
}

template <class T, int M> struct norm_apply {
    const T *x, *residual;
    const float *gamma, *beta, *kept;
    T *y;
    unsigned channels;
    enum dl2_activation activation;
    float mean[M], slope[M], offset[M];
    template <int N> __device__ void begin(unsigned column)
    {
        static_assert(N == M, "");
        float g[N];
        load<N>(kept + column, mean);
        load<N>(kept + channels + column, slope);
        load<N>(gamma + column, g);
        load<N>(beta + column, offset);
#pragma unroll
        for (int k = 0; k < N; k++)
            slope[k] *= g[k];
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
            v[k] = activated(normal(v[k], mean[k], slope[k], offset[k]) + r[k], activation);
        store<N>(y + i, v);
    }
};

/* The gradient that reaches a batch norm: dy, or dy + dy2, where its activation was open. That is
 * seen from y, or, where nothing was added to it, computed anew from x, which saves reading y. */
template <class T, int M, bool BY_X> struct norm_gradient {
    const T *x, *y, *dy, *dy2;
    const float *gamma, *beta, *kept;
    unsigned channels;
    enum dl2_activation activation;
    float mean[M], slope[M], offset[M];
    __device__ void begin_gradient(unsigned column)
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
    /* g, and x less its mean */
    __device__ void read(size_t i, float (&g)[M], float (&centred)[M]) const
    {
        float v[M];
        load<M>(x + i, centred);
        load<M>(dy + i, g);
        if (dy2) {
            load<M>(dy2 + i, v);
#pragma unroll
            for (int k = 0; k < M; k++)
                g[k] += v[k];
        }
        if (activation != DL2_IDENTITY) {
            if (BY_X) {
#pragma unroll
                for (int k = 0; k < M; k++)
                    v[k] = rounded<T>(normal(centred[k], mean[k], slope[k], offset[k]));
            } else {
                load<M>(y + i, v);
            }
#pragma unroll
            for (int k = 0; k < M; k++)
                g[k] = open(v[k], activation) ? g[k] : 0;
        }
#pragma unroll
        for (int k = 0; k < M; k++)
            centred[k] -= mean[k];
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
        float g[N], centred[N];
        gradient.read(i, g, centred);
        if (dresidual)
            store<N>(dresidual + i, g);
#pragma unroll
        for (int k = 0; k < N; k++) {
            sums[0][k] += g[k];
            sums[1][k] += g[k] * centred[k];
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
        float g[N], centred[N];
        if (!BY_X && dresidual) {
            load<N>(gradient.x + i, centred);
            load<N>(dresidual + i, g);
#pragma unroll
            for (int k = 0; k < N; k++)
                centred[k] -= gradient.mean[k];
        } else {
            gradient.read(i, g, centred);
        }
#pragma unroll
        for (int k = 0; k < N; k++)
            g[k] = gradient.slope[k] * fmaf(q[k], centred[k], g[k] + r[k]);
        store<N>(dx + i, g);
    }
};

/* -- depthwise convolutions: a thread makes N channels of an output, the weights in registers -- */

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
            unsigned h = oh * s.stride_height + t / 3 - s.pad_height; /* wraps below 0 */
            unsigned w = ow * s.stride_width + t % 3 - s.pad_width;
            if (h < s.in_height && w < s.in_width) {
                load<N>(x + ((n * s.in_height + h) * s.in_width + w) * s.in_channels + column, v);
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
        unsigned pixel = (unsigned)row, w = pixel % s.in_width,
                 h = pixel / s.in_width % s.in_height;
        size_t n = pixel / s.in_width / s.in_height;
        float sum[N] = {}, v[N];
#pragma unroll
        for (int t = 0; t < 9; t++) {
            unsigned up = h + s.pad_height - t / 3, left = w + s.pad_width - t % 3;
            unsigned oh = up / s.stride_height, ow = left / s.stride_width;
            /* What wrapped below 0 is far outside. */
            if (oh < out_height && ow < out_width && oh * s.stride_height == up &&
                ow * s.stride_width == left) {
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
            unsigned h = oh * s.stride_height + t / 3 - s.pad_height;
            unsigned w = ow * s.stride_width + t % 3 - s.pad_width;
            if (h < s.in_height && w < s.in_width) {
                load<N>(x + ((n * s.in_height + h) * s.in_width + w) * s.in_channels + column, v);
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

unsigned flat_blocks(size_t items)
{
    size_t blocks = (items + THREADS - 1) / THREADS;
    return (unsigned)(blocks < 16384 ? blocks : 16384);
}

} // namespace

/* -- what C calls: each picks the element, and 16-byte accesses or single elements -- */

template <class T>
static int set_up_widen(const void *from, float *to, size_t count, bool accumulate,
                        cudaStream_t stream)
{
    aligner<wide<T>::N> a;
    a.see(from, sizeof(T));
    a.see(to, sizeof *to);
    return run_each(widen<T>{(const T *)from, to, accumulate}, a, count, stream);
}

int dl2_gpu_widen(enum dl2_element element, const void *from, float *to, size_t count,
                  bool accumulate, struct CUstream_st *stream)
{
#define CALL(T) set_up_widen<T>(from, to, count, accumulate, stream)
    return BY_ELEMENT(element, CALL);
#undef CALL
}

template <class T>
static int set_up_lower(const float *from, void *to, size_t count, cudaStream_t stream)
{
    aligner<wide<T>::N> a;
    a.see(from, sizeof *from);
    a.see(to, sizeof(T));
    return run_each(lower<T>{from, (T *)to}, a, count, stream);
}

int dl2_gpu_lower(enum dl2_element element, const float *from, void *to, size_t count,
                  struct CUstream_st *stream)
{
#define CALL(T) set_up_lower<T>(from, to, count, stream)
    return BY_ELEMENT(element, CALL);
#undef CALL
}

template <class T>
static int set_up_activate(enum dl2_activation activation, const void *x, void *y, size_t count,
                           cudaStream_t stream)
{
    aligner<wide<T>::N> a;
    a.see(x, sizeof(T));
    a.see(y, sizeof(T));
    return run_each(activate<T>{(const T *)x, (T *)y, activation}, a, count, stream);
}

int dl2_gpu_activate(enum dl2_element element, enum dl2_activation activation, const void *x,
                     void *y, size_t count, struct CUstream_st *stream)
{
#define CALL(T) set_up_activate<T>(activation, x, y, count, stream)
    return BY_ELEMENT(element, CALL);
#undef CALL
}

template <class T>
static int set_up_activate_backward(enum dl2_activation activation, const void *y, const void *dy,
                                    void *dx, size_t count, cudaStream_t stream)
{
    aligner<wide<T>::N> a;
    a.see(y, sizeof(T));
    a.see(dy, sizeof(T));
    a.see(dx, sizeof(T));
    return run_each(activate_backward<T>{(const T *)y, (const T *)dy, (T *)dx, activation}, a,
                    count, stream);
}

int dl2_gpu_activate_backward(enum dl2_element element, enum dl2_activation activation,
                              const void *y, const void *dy, void *dx, size_t count,
                              struct CUstream_st *stream)
{
#define CALL(T) set_up_activate_backward<T>(activation, y, dy, dx, count, stream)
    return BY_ELEMENT(element, CALL);
#undef CALL
}

template <class T>
static int set_up_add(const void *a, const void *b, void *y, size_t count, cudaStream_t stream)
{
    aligner<wide<T>::N> alignment;
    alignment.see(a, sizeof(T));
    alignment.see(b, sizeof(T));
    alignment.see(y, sizeof(T));
    return run_each(add<T>{(const T *)a, (const T *)b, (T *)y}, alignment, count, stream);
}

int dl2_gpu_add(enum dl2_element element, const void *a, const void *b, void *y, size_t count,
                struct CUstream_st *stream)
{
#define CALL(T) set_up_add<T>(a, b, y, count, stream)
    return BY_ELEMENT(element, CALL);
#undef CALL
}

template <class T>
static int set_up_dropout(const void *x, void *y, size_t count, float rate, uint64_t seed,
                          uint64_t layer, const struct dl2_gpu_state *state, cudaStream_t stream)
{
    aligner<wide<T>::N> a;
    a.see(x, sizeof(T));
    a.see(y, sizeof(T));
    if (a.head > 0) /* numbers come by fours from element 0 on */
        a.settled = true;
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
    aligner<4> a;
    a.see(x, sizeof *x);
    return run_each(scale{x, factor}, a, count, stream);
}

template <class T> static int set_up_noise(void *to, size_t count, cudaStream_t stream)
{
    aligner<wide<T>::N> a;
    a.see(to, sizeof(T));
    return run_each(noise<T>{(T *)to}, a, count, stream);
}

int dl2_gpu_noise(enum dl2_element element, void *to, size_t count, struct CUstream_st *stream)
{
#define CALL(T) set_up_noise<T>(to, count, stream)
    return BY_ELEMENT(element, CALL);
#undef CALL
}

int dl2_gpu_set_numbers(struct dl2_gpu_state *state, const struct dl2_step_numbers *numbers,
                        struct CUstream_st *stream)
{
    struct dl2_step_numbers copy = *numbers;
    return DL2_LAUNCH(set_numbers, 1, 1, stream, state, copy);
}

int dl2_gpu_check_gradients(const float *gradient, size_t count, struct dl2_gpu_state *state,
                            struct CUstream_st *stream)
{
    aligner<4> a;
    a.see(gradient, sizeof *gradient);
    return run_each(check_gradients{gradient, state}, a, count, stream);
}

template <class T>
static int set_up_sgd(float *weights, void *lowered, const float *gradient, float *momentum,
                      size_t count, bool decays, bool nesterov, unsigned ranks,
                      const struct dl2_gpu_state *state, cudaStream_t stream)
{
    aligner<wide<T>::N> a;
    a.see(weights, sizeof *weights);
    a.see(gradient, sizeof *gradient);
    a.see(momentum, sizeof *momentum);
    if (lowered)
        a.see(lowered, sizeof(T));
    return run_each(
        sgd<T>{weights, momentum, gradient, (T *)lowered, decays, nesterov, ranks, state}, a, count,
        stream);
}

int dl2_gpu_sgd(enum dl2_element element, float *weights, void *lowered, const float *gradient,
                float *momentum, size_t count, bool decays, bool nesterov, unsigned ranks,
                const struct dl2_gpu_state *state, struct CUstream_st *stream)
{
#define CALL(T)                                                                                    \
    set_up_sgd<T>(weights, lowered, gradient, momentum, count, decays, nesterov, ranks, state,     \
                  stream)
    return BY_ELEMENT(element, CALL);
#undef CALL
}

int dl2_gpu_end_update(struct dl2_gpu_state *state, struct CUstream_st *stream)
{
    return DL2_LAUNCH(end_update, 1, 1, stream, state);
}

template <class T, int N>
static int set_up_ingest(const struct dl2_ingest_shape *shape, const uint8_t *images,
                         const uint32_t *partner, void *y, const struct dl2_gpu_state *state,
                         cudaStream_t stream)
{
    struct dl2_ingest_shape s = *shape;
    size_t size = (size_t)s.height * s.width * s.channels;
    size_t across = (size / N + THREADS - 1) / THREADS;
    dim3 grid((unsigned)(across < 64 ? across : 64), s.batch < 65535 ? s.batch : 65535);
    return DL2_LAUNCH((ingest<T, N>), grid, THREADS, stream, s, images, partner, (T *)y, state);
}

int dl2_gpu_ingest(enum dl2_element element, const struct dl2_ingest_shape *shape,
                   const uint8_t *images, const uint32_t *partner, void *y,
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

template <class T, int N>
static int set_up_pool(const struct dl2_pool_shape *shape, const void *x, void *y, uint8_t *winner,
                       cudaStream_t stream)
{
    struct dl2_pool_shape s = *shape;
    unsigned blocks = flat_blocks((size_t)s.batch * s.out_height * s.out_width * (s.channels / N));
    if (s.kind == DL2_POOL_MAX)
        return DL2_LAUNCH((max_pool<T, N>), blocks, THREADS, stream, s, (const T *)x, (T *)y,
                          winner);
    return DL2_LAUNCH((average_pool<T, N>), blocks, THREADS, stream, s, (const T *)x, (T *)y);
}

int dl2_gpu_pool(enum dl2_element element, const struct dl2_pool_shape *shape, const void *x,
                 void *y, uint8_t *winner, struct CUstream_st *stream)
{
    bool whole = aligned(x) && aligned(y) && aligned(winner);
#define CALL(T)                                                                                    \
    (whole && shape->channels % wide<T>::N == 0                                                    \
         ? set_up_pool<T, wide<T>::N>(shape, x, y, winner, stream)                                 \
         : set_up_pool<T, 1>(shape, x, y, winner, stream))
    return BY_ELEMENT(element, CALL);
#undef CALL
}

template <class T, int N>
static int set_up_pool_backward(const struct dl2_pool_shape *shape, const void *dy,
                                const uint8_t *winner, void *dx, cudaStream_t stream)
{
    struct dl2_pool_shape s = *shape;
    unsigned blocks = flat_blocks((size_t)s.batch * s.in_height * s.in_width * (s.channels / N));
    if (s.kind == DL2_POOL_MAX)
        return DL2_LAUNCH((max_pool_backward<T, N>), blocks, THREADS, stream, s, (const T *)dy,
                          winner, (T *)dx);
    return DL2_LAUNCH((average_pool_backward<T, N>), blocks, THREADS, stream, s, (const T *)dy,
                      (T *)dx);
}

int dl2_gpu_pool_backward(enum dl2_element element, const struct dl2_pool_shape *shape,
                          const void *dy, const uint8_t *winner, void *dx,
                          struct CUstream_st *stream)
{
    bool whole = aligned(dy) && aligned(dx) && aligned(winner);
#define CALL(T)                                                                                    \
    (whole && shape->channels % wide<T>::N == 0                                                    \
         ? set_up_pool_backward<T, wide<T>::N>(shape, dy, winner, dx, stream)                      \
         : set_up_pool_backward<T, 1>(shape, dy, winner, dx, stream))
    return BY_ELEMENT(element, CALL);
#undef CALL
}

size_t dl2_gpu_partials(unsigned channels)
{
    return (size_t)SUM_BLOCKS * 9 * channels;
}

template <class T, int N>
static int set_up_column_sums(const void *x, size_t rows, unsigned channels, float *partials,
                              float *out, bool accumulate, cudaStream_t stream)
{
    return run_sums<T, N, 1>(column_sum<T>{(const T *)x, channels}, keep_column{out, accumulate},
                             rows, channels, partials, stream);
}

int dl2_gpu_column_sums(enum dl2_element element, const void *x, size_t rows, unsigned channels,
                        float *partials, float *out, bool accumulate, struct CUstream_st *stream)
{
#define CALL(T)                                                                                    \
    (aligned(x) && channels % wide<T>::N == 0                                                      \
         ? set_up_column_sums<T, wide<T>::N>(x, rows, channels, partials, out, accumulate, stream) \
         : set_up_column_sums<T, 1>(x, rows, channels, partials, out, accumulate, stream))
    return BY_ELEMENT(element, CALL);
#undef CALL
}

template <class T, int N>
static int set_up_add_bias(const float *bias, void *y, size_t rows, unsigned channels,
                           cudaStream_t stream)
{
    return run_rows<N>(add_bias<T, N>{bias, (T *)y, channels, {}}, rows, channels, stream);
}

int dl2_gpu_add_bias(enum dl2_element element, const float *bias, void *y, size_t rows,
                     unsigned channels, struct CUstream_st *stream)
{
#define CALL(T)                                                                                    \
    (aligned(bias) && aligned(y) && channels % wide<T>::N == 0                                     \
         ? set_up_add_bias<T, wide<T>::N>(bias, y, rows, channels, stream)                         \
         : set_up_add_bias<T, 1>(bias, y, rows, channels, stream))
    return BY_ELEMENT(element, CALL);
#undef CALL
}

template <class T, int N>
static int set_up_norm_moments(const void *x, size_t rows, unsigned channels, float *partials,
                               float *moments, cudaStream_t stream)
{
    return run_sums<T, N, 2>(norm_sums<T, N>{(const T *)x, channels, {}},
                             norm_moments<T>{(const T *)x, moments, rows, channels}, rows, channels,
                             partials, stream);
}

int dl2_gpu_norm_moments(enum dl2_element element, const void *x, size_t rows, unsigned channels,
                         float *partials, float *moments, struct CUstream_st *stream)
{
#define CALL(T)                                                                                    \
    (aligned(x) && channels % wide<T>::N == 0                                                      \
         ? set_up_norm_moments<T, wide<T>::N>(x, rows, channels, partials, moments, stream)        \
         : set_up_norm_moments<T, 1>(x, rows, channels, partials, moments, stream))
    return BY_ELEMENT(element, CALL);
#undef CALL
}

/* A thread a channel: these are short. */
template <class F> static int run_channels(F f, unsigned channels, cudaStream_t stream)
{
    return run_each(f, aligner<1>(), channels, stream);
}

int dl2_gpu_norm_recentre(float *moments, const float *mean, size_t rows, unsigned channels,
                          struct CUstream_st *stream)
{
    return run_channels(norm_recentre{moments, mean, rows, channels}, channels, stream);
}

int dl2_gpu_norm_keep(const float *moments, size_t rows, const struct dl2_norm_shape *shape,
                      float *running_mean, float *running_var, float *kept,
                      struct CUstream_st *stream)
{
    return run_channels(norm_keep{moments, rows, *shape, running_mean, running_var, kept},
                        shape->channels, stream);
}

int dl2_gpu_norm_keep_running(const float *running_mean, const float *running_var,
                              const struct dl2_norm_shape *shape, float *kept,
                              struct CUstream_st *stream)
{
    return run_channels(norm_keep_running{running_mean, running_var, *shape, kept}, shape->channels,
                        stream);
}

template <class T, int N>
static int set_up_norm_apply(const struct dl2_norm_shape *shape, const void *x,
                             const void *residual, const float *gamma, const float *beta,
                             const float *kept, void *y, cudaStream_t stream)
{
    norm_apply<T, N> f = {(const T *)x,    (const T *)residual, gamma, beta, kept, (T *)y,
                          shape->channels, shape->activation,   {},    {},   {}};
    return run_rows<N>(f, shape->rows, shape->channels, stream);
}

int dl2_gpu_norm_apply(enum dl2_element element, const struct dl2_norm_shape *shape, const void *x,
                       const void *residual, const float *gamma, const float *beta,
                       const float *kept, void *y, struct CUstream_st *stream)
{
    bool whole = aligned(x) && aligned(residual) && aligned(gamma) && aligned(beta) &&
                 aligned(kept) && aligned(y);
#define CALL(T)                                                                                    \
    (whole && shape->channels % wide<T>::N == 0                                                    \
         ? set_up_norm_apply<T, wide<T>::N>(shape, x, residual, gamma, beta, kept, y, stream)      \
         : set_up_norm_apply<T, 1>(shape, x, residual, gamma, beta, kept, y, stream))
    return BY_ELEMENT(element, CALL);
#undef CALL
}

/* See norm_gradient. */
static bool by_x(const struct dl2_norm_shape *shape)
{
    return shape->activation != DL2_IDENTITY && !shape->residual;
}

template <class T, int N, bool BY_X>
static norm_gradient<T, N, BY_X>
gradient_of(const struct dl2_norm_shape *shape, const void *x, const void *y, const void *dy,
            const void *dy2, const float *gamma, const float *beta, const float *kept)
{
    norm_gradient<T, N, BY_X> g = {};
    g.x = (const T *)x;
    g.y = (const T *)y;
    g.dy = (const T *)dy;
    g.dy2 = (const T *)dy2;
    g.gamma = gamma;
    g.beta = beta;
    g.kept = kept;
    g.channels = shape->channels;
    g.activation = shape->activation;
    return g;
}

template <class T, int N, bool BY_X>
static int sum_norm_backward(const struct dl2_norm_shape *shape, const void *x, const void *y,
                             const void *dy, const void *dy2, const float *gamma, const float *beta,
                             const float *kept, float *partials, float *sums, void *dresidual,
                             float *dgamma, float *dbeta, bool accumulate, cudaStream_t stream)
{
    norm_backward_sums<T, N, BY_X> f = {
        gradient_of<T, N, BY_X>(shape, x, y, dy, dy2, gamma, beta, kept), (T *)dresidual};
    return run_sums<T, N, 2>(
        f, norm_backward_finish{kept, sums, dgamma, dbeta, shape->channels, accumulate},
        shape->rows, shape->channels, partials, stream);
}

template <class T, int N>
static int set_up_norm_backward_sums(const struct dl2_norm_shape *shape, const void *x,
                                     const void *y, const void *dy, const void *dy2,
                                     const float *gamma, const float *beta, const float *kept,
                                     float *partials, float *sums, void *dresidual, float *dgamma,
                                     float *dbeta, bool accumulate, cudaStream_t stream)
{
    return by_x(shape)
               ? sum_norm_backward<T, N, true>(shape, x, y, dy, dy2, gamma, beta, kept, partials,
                                               sums, dresidual, dgamma, dbeta, accumulate, stream)
               : sum_norm_backward<T, N, false>(shape, x, y, dy, dy2, gamma, beta, kept, partials,
                                                sums, dresidual, dgamma, dbeta, accumulate, stream);
}

int dl2_gpu_norm_backward_sums(enum dl2_element element, const struct dl2_norm_shape *shape,
                               const void *x, const void *y, const void *dy, const void *dy2,
                               const float *gamma, const float *beta, const float *kept,
                               float *partials, float *sums, void *dresidual, float *dgamma,
                               float *dbeta, bool accumulate, struct CUstream_st *stream)
{
    bool whole = aligned(x) && aligned(y) && aligned(dy) && aligned(dy2) && aligned(gamma) &&
                 aligned(beta) && aligned(kept) && aligned(dresidual);
#define CALL(T)                                                                                    \
    (whole && shape->channels % wide<T>::N == 0                                                    \
         ? set_up_norm_backward_sums<T, wide<T>::N>(shape, x, y, dy, dy2, gamma, beta, kept,       \
                                                    partials, sums, dresidual, dgamma, dbeta,      \
                                                    accumulate, stream)                            \
         : set_up_norm_backward_sums<T, 1>(shape, x, y, dy, dy2, gamma, beta, kept, partials,      \
                                           sums, dresidual, dgamma, dbeta, accumulate, stream))
    return BY_ELEMENT(element, CALL);
#undef CALL
}

template <class T, int N, bool BY_X>
static int map_norm_backward(const struct dl2_norm_shape *shape, const void *x, const void *y,
                             const void *dy, const void *dy2, const float *gamma, const float *beta,
                             const float *kept, const float *sums, size_t rows,
                             const void *dresidual, void *dx, cudaStream_t stream)
{
    norm_backward_data<T, N, BY_X> f = {};
    f.gradient = gradient_of<T, N, BY_X>(shape, x, y, dy, dy2, gamma, beta, kept);
    f.sums = sums;
    f.dresidual = (const T *)dresidual;
    f.dx = (T *)dx;
    f.rows = (float)rows;
    return run_rows<N>(f, shape->rows, shape->channels, stream);
}

template <class T, int N>
static int set_up_norm_backward_data(const struct dl2_norm_shape *shape, const void *x,
                                     const void *y, const void *dy, const void *dy2,
                                     const float *gamma, const float *beta, const float *kept,
                                     const float *sums, size_t rows, const void *dresidual,
                                     void *dx, cudaStream_t stream)
{
    return by_x(shape) ? map_norm_backward<T, N, true>(shape, x, y, dy, dy2, gamma, beta, kept,
                                                       sums, rows, dresidual, dx, stream)
                       : map_norm_backward<T, N, false>(shape, x, y, dy, dy2, gamma, beta, kept,
                                                        sums, rows, dresidual, dx, stream);
}

int dl2_gpu_norm_backward_data(enum dl2_element element, const struct dl2_norm_shape *shape,
                               const void *x, const void *y, const void *dy, const void *dy2,
                               const float *gamma, const float *beta, const float *kept,
                               const float *sums, size_t rows, const void *dresidual, void *dx,
                               struct CUstream_st *stream)
{
    bool whole = aligned(x) && aligned(y) && aligned(dy) && aligned(dy2) && aligned(gamma) &&
                 aligned(beta) && aligned(kept) && aligned(sums) && aligned(dresidual) &&
                 aligned(dx);
#define CALL(T)                                                                                    \
    (whole && shape->channels % wide<T>::N == 0                                                    \
         ? set_up_norm_backward_data<T, wide<T>::N>(shape, x, y, dy, dy2, gamma, beta, kept, sums, \
                                                    rows, dresidual, dx, stream)                   \
         : set_up_norm_backward_data<T, 1>(shape, x, y, dy, dy2, gamma, beta, kept, sums, rows,    \
                                           dresidual, dx, stream))
    return BY_ELEMENT(element, CALL);
#undef CALL
}

bool dl2_gpu_depthwise(const struct dl2_conv_shape *s)
{
    return s->groups > 1 && s->groups == s->in_channels && s->groups == s->out_channels &&
           s->kernel_height == 3 && s->kernel_width == 3;
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
    unsigned out_height = conv_out(s->in_height, s->stride_height, s->pad_height);
    unsigned out_width = conv_out(s->in_width, s->stride_width, s->pad_width);
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
    unsigned out_height = conv_out(s->in_height, s->stride_height, s->pad_height);
    unsigned out_width = conv_out(s->in_width, s->stride_width, s->pad_width);
    depthwise_backward_data<T, N> f = {(const T *)dy, (const T *)weights, (T *)dx, *s,
                                       out_height,    out_width,          {}};
    return run_rows<N>(f, (size_t)s->batch * s->in_height * s->in_width, s->in_channels, stream);
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
    unsigned out_height = conv_out(s->in_height, s->stride_height, s->pad_height);
    unsigned out_width = conv_out(s->in_width, s->stride_width, s->pad_width);
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
