/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A block takes a tile of 32 x 16 pixels and the windows whose first pixel lies in it. It puts the
 * luma of both images into shared memory as sum and difference, with ten more columns and rows, and
 * then works as quality/ssim.c does: moments about a value close by, down the columns, then along
 * the rows, in single precision. Sums of squares are whole numbers; SSIM is summed in double
 * precision, in a fixed order.
 */
#include "cuda/launch.h"

#include "cuda/score.h"
#include "quality/metric_kernels.h"

enum {
    TILE_X = 32,
    TILE_Y = 16,
    IN_X = TILE_X + DL2_SSIM_TAPS - 1,
    IN_Y = TILE_Y + DL2_SSIM_TAPS - 1,
    MIDDLE = DL2_SSIM_TAPS / 2,
    THREADS = 256,
};

static __device__ __forceinline__ float weight(int tap)
{
    const float weights[MIDDLE + 1] = DL2_SSIM_WEIGHTS;
    return weights[tap <= MIDDLE ? tap : DL2_SSIM_TAPS - 1 - tap];
}

static __device__ __forceinline__ int32_t luma_of(const uint8_t *pixel, uint32_t channels)
{
    return channels == 1 ? 1000 * pixel[0] : 299 * pixel[0] + 587 * pixel[1] + 114 * pixel[2];
}

/* The sum of (a - b)^2 over the samples of a pixel. */
static __device__ __forceinline__ uint32_t error_of(const uint8_t *a, uint32_t channels_a,
                                                    const uint8_t *b, uint32_t channels_b)
{
    uint32_t sum = 0;
    for (uint32_t c = 0; c < 3; c++) {
        const int32_t difference = a[channels_a == 1 ? 0 : c] - b[channels_b == 1 ? 0 : c];
        sum += (uint32_t)(difference * difference);
    }
    return channels_a == 1 && channels_b == 1 ? sum / 3 : sum;
}

struct score_moments {
    float mean, variance;
};

/* The weighted moments of eleven values, `step` apart, with variances of their own or none. */
static __device__ __forceinline__ struct score_moments moments_of(const float *values,
                                                                  const float *variances, int step)
{
    const float center = values[MIDDLE * step];
    float m = 0, q = 0;
#pragma unroll
    for (int tap = 0; tap < DL2_SSIM_TAPS; tap++) {
        const float w = weight(tap), t = values[tap * step] - center;
        m += w * t;
        q += w * (t * t + (variances ? variances[tap * step] : 0.0f));
    }
    return {center + m, q - m * m};
}

static __global__ void __launch_bounds__(THREADS)
    score_tile(struct dl2_gpu_pair pair, struct dl2_gpu_score *scores)
{
    __shared__ float sums[IN_Y][IN_X], differences[IN_Y][IN_X];
    __shared__ float sum_mean[TILE_Y][IN_X], sum_variance[TILE_Y][IN_X];
    __shared__ float difference_mean[TILE_Y][IN_X], difference_variance[TILE_Y][IN_X];
    __shared__ struct dl2_gpu_score parts[THREADS];
    const uint32_t thread = threadIdx.x, tiles = (pair.width + TILE_X - 1) / TILE_X;
    const uint32_t left = blockIdx.x % tiles * TILE_X, top = blockIdx.x / tiles * TILE_Y;
    struct dl2_gpu_score own = {0, 0, 0};

    for (uint32_t i = thread; i < IN_Y * IN_X; i += THREADS) {
        const uint32_t row = i / IN_X, column = i % IN_X, x = left + column, y = top + row;
        int32_t one = 0, other = 0;
        if (x < pair.width && y < pair.height) {
            const uint8_t *a = pair.a + y * pair.stride_a + (size_t)x * pair.channels_a;
            const uint8_t *b = pair.b + y * pair.stride_b + (size_t)x * pair.channels_b;
            one = luma_of(a, pair.channels_a);
            other = luma_of(b, pair.channels_b);
            if (row < TILE_Y && column < TILE_X) {
                const int64_t difference = one - other;
                own.luma += (uint64_t)(difference * difference);
                own.samples += error_of(a, pair.channels_a, b, pair.channels_b);
            }
        }
        sums[row][column] = (float)(one + other);
        differences[row][column] = (float)(one - other);
    }
    __syncthreads();
    for (uint32_t i = thread; i < TILE_Y * IN_X; i += THREADS) {
        const uint32_t row = i / IN_X, column = i % IN_X;
        const struct score_moments s = moments_of(&sums[row][column], nullptr, IN_X);
        const struct score_moments d = moments_of(&differences[row][column], nullptr, IN_X);
        sum_mean[row][column] = s.mean;
        sum_variance[row][column] = s.variance;
        difference_mean[row][column] = d.mean;
        difference_variance[row][column] = d.variance;
    }
    __syncthreads();
    for (uint32_t i = thread; i < TILE_Y * TILE_X; i += THREADS) {
        const uint32_t row = i / TILE_X, column = i % TILE_X;
        if (left + column + DL2_SSIM_TAPS > pair.width || top + row + DL2_SSIM_TAPS > pair.height)
            continue;
        const struct score_moments s =
            moments_of(&sum_mean[row][column], &sum_variance[row][column], 1);
        const struct score_moments d =
            moments_of(&difference_mean[row][column], &difference_variance[row][column], 1);
        const float ss = s.mean * s.mean + DL2_SSIM_2C1, dd = d.mean * d.mean;
        const float v = s.variance + DL2_SSIM_2C2;
        own.ssim += (double)((ss - dd) * (v - d.variance) / ((ss + dd) * (v + d.variance)));
    }
    parts[thread] = own;
    for (uint32_t half = THREADS / 2; half; half /= 2) {
        __syncthreads();
        if (thread < half) {
            parts[thread].samples += parts[thread + half].samples;
            parts[thread].luma += parts[thread + half].luma;
            parts[thread].ssim += parts[thread + half].ssim;
        }
    }
    if (thread == 0)
        scores[blockIdx.x] = parts[0];
}

extern "C" size_t dl2_gpu_score_blocks(uint32_t width, uint32_t height)
{
    return ((size_t)width + TILE_X - 1) / TILE_X * (((size_t)height + TILE_Y - 1) / TILE_Y);
}

extern "C" int dl2_gpu_score_pair(const struct dl2_gpu_pair *pair, struct dl2_gpu_score *scores,
                                  cudaStream_t stream)
{
    const size_t blocks = dl2_gpu_score_blocks(pair->width, pair->height);
    if (!blocks || blocks > 0x7fffffff)
        return cudaErrorInvalidValue;
    return DL2_LAUNCH(score_tile, dim3((unsigned)blocks), THREADS, stream, *pair, scores);
}
