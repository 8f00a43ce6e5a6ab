#include "cuda/kernels.h"
#include "cuda/launch.h"

#include <stdint.h>

enum { THREADS = 256 };

static unsigned blocks_for(size_t items)
{
    size_t blocks = (items + THREADS - 1) / THREADS;
    return blocks < 1 ? 1 : blocks > 0x7fffffff ? 0x7fffffff : (unsigned)blocks;
}

static __global__ void __launch_bounds__(THREADS)
    add_floats(float *__restrict__ to, const float *__restrict__ from, size_t count)
{
    size_t step = (size_t)gridDim.x * THREADS;
    size_t i = (size_t)blockIdx.x * THREADS + threadIdx.x;
    for (size_t v = i; v < count / 4; v += step) {
        float4 a = ((float4 *)to)[v], b = ((const float4 *)from)[v];
        a.x += b.x;
        a.y += b.y;
        a.z += b.z;
        a.w += b.w;
        ((float4 *)to)[v] = a;
    }
    size_t tail = count / 4 * 4 + i;
    if (tail < count)
        to[tail] += from[tail];
}

int dl2_gpu_add_floats(float *to, const float *from, size_t count, struct CUstream_st *stream)
{
    return DL2_LAUNCH(add_floats, blocks_for(count / 4), THREADS, stream, to, from, count);
}
