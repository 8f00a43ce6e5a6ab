/* SPDX-License-Identifier: BSD-2-Clause */
/* Kernels over rows of [rows][channels]. Only .cu files include it. */
#ifndef DL2_CUDA_ROWS_CUH
#define DL2_CUDA_ROWS_CUH

#include "cuda/tensor.cuh"

namespace
{

/*
 * A block has `across` neighboring groups of N channels, and below each other as many rows as
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

/* Blocks of sums, and such as leave no multiprocessor idle: four and eight for each of the 132 that
 * an H100 and an H200 have. */
enum { SUM_BLOCKS = 528, BUSY_BLOCKS = 1056, FINISH = 32 };

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

} // namespace

#endif
