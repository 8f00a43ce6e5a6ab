/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The pixels of a batch. A block makes a tile of 32 x 8 outputs, a warp a row of it: first down,
 * four columns a thread from words of four samples, into shared memory, then across. The samples
 * under a tile are taken in runs of what fits there, so no image is too large.
 *
 * Every sum and rounding is pixels/resize_kernels.c's, and every weight pixels/resize.c's: the
 * _rn operations keep the compiler from making one operation of two.
 */
#include "cuda/launch.h"

#include "cuda/decode/transform.h"
#include "pixels/resize_kernels.h"

enum { TILE_X = 32, TILE_Y = 8, THREADS = TILE_X * TILE_Y };
#define RUN 768u        /* bytes of a row that are taken at once; whole pixels of three bytes */
enum { FILTERS = 128 }; /* threads of a block that makes windows */
#define IMAGES 16000u   /* of a launch at most: a grid's second side is below 65536 */

/* The start of an output's filter and its number of taps. */
struct window {
    uint32_t first, taps;
};

static __device__ __forceinline__ float positive(float value)
{
    return value > 0 ? value : 0;
}

/* Weights stand tap by tap: those of neighboring outputs lie together. */
static __global__ void make_windows(const struct dl2_gpu_axis *axes, uint32_t side,
                                    struct window *windows, int16_t *weights)
{
    const struct dl2_gpu_axis *axis = &axes[blockIdx.y];
    const uint32_t i = blockIdx.x * FILTERS + threadIdx.x;
    if (i >= side)
        return;
    const double middle =
        __dadd_rn(axis->start, __dmul_rn((axis->flip ? side - 1 - i : i) + 0.5, axis->scale));
    const double begin = __dadd_rn(__dadd_rn(middle, -(double)axis->width), 0.5);
    const double finish = __dadd_rn(__dadd_rn(middle, (double)axis->width), 0.5);
    const uint32_t first = begin > 0 ? (uint32_t)begin : 0;
    uint32_t end = finish < axis->size ? (uint32_t)finish : axis->size;
    if (end - first > axis->most)
        end = first + axis->most;
    const uint32_t taps = end - first;
    const float inverse = axis->inverse;
    const float offset = __fmul_rn((float)__dadd_rn(first + 0.5, -middle), inverse);
    float sum = 0;
    for (uint32_t k = 0; k < taps; k++)
        sum = __fadd_rn(
            sum, positive(__fadd_rn(1, -fabsf(__fadd_rn(offset, __fmul_rn((float)k, inverse))))));
    const float one = (float)(1 << DL2_RESIZE_WEIGHT_BITS);
    const float scale = __fdiv_rn(one, sum);
    float partial = 0.5f;
    int32_t before = 0;
    for (uint32_t k = 0; k < taps; k++) {
        const float weight =
            positive(__fadd_rn(1, -fabsf(__fadd_rn(offset, __fmul_rn((float)k, inverse)))));
        partial = __fadd_rn(partial, __fmul_rn(weight, scale));
        const int32_t now = k + 1 == taps ? (int32_t)one : (int32_t)partial;
        weights[axis->weight + (size_t)k * side + i] = (int16_t)(now - before);
        before = now;
    }
    windows[axis->window + i].first = axis->low + first;
    windows[axis->window + i].taps = taps;
}

/* Shared by all threads of a block. */
struct tile {
    const struct dl2_gpu_resize *resize;
    const struct dl2_gpu_axis *axes;
    const struct window *windows;
    const int16_t *weights;
    uint32_t side, left, top; /* outputs */
};

/*
 * One plane of one sample a position, or one of three interleaved: this thread's output, as words.
 * `between` has a run of the thread's row.
 */
template <uint32_t PER>
static __device__ __forceinline__ void resize_plane(const struct tile *tile, uint32_t p,
                                                    int16_t (*between)[RUN], int32_t *words)
{
    enum {
        DOWN = DL2_RESIZE_WEIGHT_BITS - DL2_RESIZE_BETWEEN_BITS,
        ACROSS = DL2_RESIZE_WEIGHT_BITS + DL2_RESIZE_BETWEEN_BITS - DL2_RESIZE_WORD_BITS,
        WHOLE = PER == 3 ? 12 : 4, /* bytes: whole words of whole pixels */
    };
    const uint32_t side = tile->side, lane = threadIdx.x % TILE_X, row = threadIdx.x / TILE_X;
    const uint32_t x = tile->left + lane, y = tile->top + row;
    const uint32_t last_x = tile->left + TILE_X < side ? tile->left + TILE_X - 1 : side - 1;
    const struct dl2_gpu_axis *columns = &tile->axes[tile->resize->columns[p]];
    const struct dl2_gpu_axis *rows = &tile->axes[tile->resize->rows[p]];
    const struct window *across = tile->windows + columns->window;
    /* Mirrored, the tile's first output lies last. */
    const struct window one = across[tile->left], other = across[last_x];
    const uint32_t low = one.first < other.first ? one.first : other.first;
    const uint32_t one_end = one.first + one.taps, other_end = other.first + other.taps;
    const uint32_t end = (one_end > other_end ? one_end : other_end) * PER;

    const bool shown = x < side && y < side;
    const struct window mine = across[x < side ? x : last_x];
    const struct window down = tile->windows[rows->window + (y < side ? y : side - 1)];
    const int16_t *across_weights = tile->weights + columns->weight + x;
    const int16_t *down_weights = tile->weights + rows->weight + (y < side ? y : side - 1);
    const uint8_t *data = tile->resize->data[p];
    const size_t stride = tile->resize->stride[p];
    const uint32_t *shift = tile->resize->shift;
    const uint32_t shift_rows = tile->resize->shift_rows[p],
                   shift_bytes = tile->resize->shift_bytes[p];

    int32_t sums[PER];
    for (uint32_t c = 0; c < PER; c++)
        sums[c] = 1 << (ACROSS - 1);
    for (uint32_t start = low * PER / WHOLE * WHOLE; start < end; start += RUN) {
        const uint32_t bytes = end - start < RUN ? end - start : RUN;
        for (uint32_t at = 4 * lane; at < bytes; at += 4 * TILE_X) {
            int32_t a = 1 << (DOWN - 1), b = a, c = a, d = a;
            for (uint32_t k = 0; k < down.taps; k++) {
                const uint32_t from = down.first + k;
                const uint8_t *in = data + from * stride + start + at;
                if (shift)
                    in += (size_t)shift[from / shift_rows] * shift_bytes;
                const uint32_t word = *(const uint32_t *)in;
                const int32_t weight = down_weights[(size_t)k * side];
                a += (int32_t)(word & 255) * weight;
                b += (int32_t)(word >> 8 & 255) * weight;
                c += (int32_t)(word >> 16 & 255) * weight;
                d += (int32_t)(word >> 24) * weight;
            }
            between[row][at] = (int16_t)(a >> DOWN);
            between[row][at + 1] = (int16_t)(b >> DOWN);
            between[row][at + 2] = (int16_t)(c >> DOWN);
            between[row][at + 3] = (int16_t)(d >> DOWN);
        }
        __syncthreads();
        if (shown) {
            const uint32_t begin = mine.first * PER;
            uint32_t k = begin < start ? (start - begin) / PER : 0;
            for (; k < mine.taps && begin + k * PER < start + bytes; k++) {
                const int32_t weight = across_weights[(size_t)k * side];
                for (uint32_t c = 0; c < PER; c++)
                    sums[c] += between[row][begin + k * PER - start + c] * weight;
            }
        }
        __syncthreads();
    }
    for (uint32_t c = 0; c < PER; c++)
        words[c] = (int16_t)(sums[c] >> ACROSS);
}

static __device__ __forceinline__ int32_t times(int32_t a, int32_t b)
{
    return (a * b + (1 << 14)) >> 15;
}

static __device__ __forceinline__ int32_t saturate(int32_t value)
{
    return value < -32768 ? -32768 : value > 32767 ? 32767 : value;
}

static __device__ __forceinline__ uint8_t byte_of(int32_t word)
{
    const int32_t value = (word + (1 << (DL2_RESIZE_WORD_BITS - 1))) >> DL2_RESIZE_WORD_BITS;
    return (uint8_t)(value < 0 ? 0 : value > 255 ? 255 : value);
}

/* Full-range YCbCr to RGB, in place; the numbers are pixels/resize.c's. */
static __device__ __forceinline__ void to_rgb(int32_t words[3])
{
    const int32_t y = words[0], cb = words[1] - (128 << DL2_RESIZE_WORD_BITS),
                  cr = words[2] - (128 << DL2_RESIZE_WORD_BITS);
    words[0] = saturate(y + cr + times(cr, 13173));
    words[1] = saturate(y - (times(cb, 11277) + times(cr, 23401)));
    words[2] = saturate(y + 2 * cb + times(cb, -7471));
}

static __global__ void __launch_bounds__(THREADS, 4)
    resize_images(const struct dl2_gpu_resize *resizes, const struct dl2_gpu_axis *axes,
                  const struct window *windows, const int16_t *weights, uint32_t side,
                  uint32_t channels)
{
    __shared__ int16_t between[TILE_Y][RUN];
    const uint32_t tiles = (side + TILE_X - 1) / TILE_X;
    const struct dl2_gpu_resize *resize = &resizes[blockIdx.y];
    const struct tile tile = {resize,
                              axes,
                              windows,
                              weights,
                              side,
                              blockIdx.x % tiles * TILE_X,
                              blockIdx.x / tiles * TILE_Y};
    int32_t words[3] = {0, 0, 0};
    if (resize->color == DL2_COLOR_RGB) {
        resize_plane<3>(&tile, 0, between, words);
        if (channels == 1)
            words[0] =
                (int16_t)((19595 * words[0] + 38470 * words[1] + 7471 * words[2] + 32768) >> 16);
    } else {
        resize_plane<1>(&tile, 0, between, &words[0]);
        if (resize->color == DL2_COLOR_YCBCR && channels == 3) {
            resize_plane<1>(&tile, 1, between, &words[1]);
            resize_plane<1>(&tile, 2, between, &words[2]);
            to_rgb(words);
        } else {
            words[1] = words[2] = words[0];
        }
    }
    const uint32_t x = tile.left + threadIdx.x % TILE_X, y = tile.top + threadIdx.x / TILE_X;
    if (x >= side || y >= side)
        return;
    uint8_t *out = resize->out + ((size_t)y * side + x) * channels;
    out[0] = byte_of(words[0]);
    if (channels == 3) {
        out[1] = byte_of(words[1]);
        out[2] = byte_of(words[2]);
    }
}

extern "C" int dl2_gpu_transform(const struct dl2_gpu_plan *plan, const void *table, void *scratch,
                                 cudaStream_t stream)
{
    const uint32_t side = plan->side;
    const size_t axes_at = (size_t)((const uint8_t *)plan->axes - (const uint8_t *)plan->resizes);
    const struct dl2_gpu_resize *resizes = (const struct dl2_gpu_resize *)table;
    const struct dl2_gpu_axis *axes =
        (const struct dl2_gpu_axis *)((const uint8_t *)table + axes_at);
    struct window *windows = (struct window *)scratch;
    int16_t *weights = (int16_t *)(windows + plan->windows);
    const uint32_t most = IMAGES * DL2_GPU_AXES;
    for (uint32_t from = 0; from < plan->axis_count; from += most) {
        const uint32_t count = plan->axis_count - from < most ? plan->axis_count - from : most;
        const int status = DL2_LAUNCH(make_windows, dim3((side + FILTERS - 1) / FILTERS, count),
                                      FILTERS, stream, axes + from, side, windows, weights);
        if (status)
            return status;
    }
    const uint32_t tiles = ((side + TILE_X - 1) / TILE_X) * ((side + TILE_Y - 1) / TILE_Y);
    for (uint32_t from = 0; from < plan->images; from += IMAGES) {
        const uint32_t count = plan->images - from < IMAGES ? plan->images - from : IMAGES;
        const int status = DL2_LAUNCH(resize_images, dim3(tiles, count), THREADS, stream,
                                      resizes + from, axes, windows, weights, side, plan->channels);
        if (status)
            return status;
    }
    return cudaSuccess;
}
