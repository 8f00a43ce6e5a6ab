/* SPDX-License-Identifier: BSD-2-Clause */
#include "cuda/device_check.h"

#include "common/memory.h"
#include "cuda/gpu.h"
#include "cuda/kernels.h"
#include "device/element.h"

#include <math.h>
#include <stdlib.h>

int dl2_check_output(enum dl2_conv_pass pass)
{
    return pass == DL2_CONV_FORWARD ? 2 : pass == DL2_CONV_DATA ? 0 : 1;
}

bool dl2_check_open(struct dl2_check *check, struct cuda *cuda, enum dl2_conv_pass pass,
                    const size_t counts[3], unsigned channels, const char *what)
{
    const enum dl2_element element = cuda->base.element;
    const int out = dl2_check_output(pass);
    const cudaStream_t stream = cuda->stream;
    *check = (struct dl2_check){.cuda = cuda, .pass = pass};
    bool good = cudaMalloc((void **)&check->moments, 2 * channels * sizeof(float)) == cudaSuccess;
    if (pass == DL2_CONV_WEIGHTS)
        good =
            good && cudaMalloc((void **)&check->result, counts[out] * sizeof(float)) == cudaSuccess;
    for (int i = 0; i < 3 && good; i++) {
        good = cudaMalloc((void **)&check->floats[i], counts[i] * sizeof(float)) == cudaSuccess;
        if (good && (i != out || pass != DL2_CONV_WEIGHTS))
            good = cudaMalloc(&check->elements[i], counts[i] * dl2_element_size(element)) ==
                   cudaSuccess;
        if (good && i != out)
            good = dl2_gpu_noise(element, check->elements[i], counts[i], stream) == cudaSuccess &&
                   dl2_gpu_widen(element, check->elements[i], check->floats[i], counts[i], false,
                                 stream) == cudaSuccess;
    }
    cudaGetLastError();
    if (!good)
        dl2_cuda_tell(cuda, "no memory to check the %s: it is left out", what);
    return good;
}

void dl2_check_close(struct dl2_check *check)
{
    cudaStreamSynchronize(check->cuda->stream);
    for (int i = 0; i < 3; i++) {
        cudaFree(check->elements[i]);
        cudaFree(check->floats[i]);
    }
    cudaFree(check->result);
    cudaFree(check->moments);
    cudaGetLastError();
}

/* Mean squares of the columns of `x`, from its moments. */
static int check_mean_squares(struct dl2_check *check, const float *x, size_t rows,
                              unsigned channels, double *squares, struct dl2_error *error)
{
    struct cuda *cuda = check->cuda;
    const size_t bytes = 2 * channels * sizeof(float);
    float *moments = dl2_calloc(channels, 2 * sizeof *moments);
    if (!moments)
        return dl2_cuda_out_of_memory(error, "a check");
    if (well(cuda))
        launched(cuda,
                 dl2_gpu_norm_moments(DL2_ELEMENT_F32, x, rows, channels, cuda->partials.memory,
                                      check->moments, cuda->stream),
                 "a check");
    const int status = dl2_cuda_download(&cuda->base, moments, check->moments, bytes, error);
    for (unsigned c = 0; c < channels && status == DL2_OK; c++)
        squares[c] = (double)moments[c] * moments[c] + (double)moments[channels + c] / (double)rows;
    free(moments);
    return status;
}

/*
 * By how much a result may differ, as a part of its size, the root mean square of a channel.
 * Rounding to the element makes 2^-8 (bf16) or 2^-11 (fp16) at most, inputs cut to TF32 up to 2^-9,
 * and Winograd's transforms in float32 some 2^-14. Tensor cores cut off what does not fit their
 * float32 sums, some 16 products at a time, which long sums feel.
 */
static double check_bound(enum dl2_precision precision, double terms)
{
    const double rounding = precision == DL2_PRECISION_FP32   ? 0x1p-11
                            : precision == DL2_PRECISION_FP16 ? 0x1p-10
                                                              : 0x1.4p-8;
    return rounding + terms * 0x1p-28;
}

/* `squares` has room for 2 * channels. */
static int check_columns(struct dl2_check *check, size_t rows, unsigned channels, double terms,
                         const char *what, const char *plan, double *squares,
                         struct dl2_error *error)
{
    struct cuda *cuda = check->cuda;
    const int out = dl2_check_output(check->pass);
    const bool weights = check->pass == DL2_CONV_WEIGHTS;
    const enum dl2_element element = weights ? DL2_ELEMENT_F32 : cuda->base.element;
    float *reference = check->floats[out];
    double *differences = squares + channels, mean = 0, worst = 0;
    unsigned at = 0;
    DL2_TRY(check_mean_squares(check, reference, rows, channels, squares, error));
    for (unsigned c = 0; c < channels; c++)
        mean += squares[c] / channels;
    /* result - reference */
    if (well(cuda))
        launched(cuda, dl2_gpu_scale(reference, rows * channels, -1, cuda->stream), "a check");
    if (well(cuda))
        launched(cuda,
                 dl2_gpu_widen(element, weights ? check->result : check->elements[out], reference,
                               rows * channels, true, cuda->stream),
                 "a check");
    DL2_TRY(check_mean_squares(check, reference, rows, channels, differences, error));
    for (unsigned c = 0; c < channels; c++) {
        const double part = differences[c] / fmax(squares[c], mean);
        if (part > worst || !isfinite(part)) {
            worst = isfinite(part) ? part : INFINITY;
            at = c;
        }
    }
    const double off = sqrt(worst), bound = check_bound(cuda->precision, terms);
    if (off <= bound)
        return DL2_OK;
    return dl2_error_set(
        error, DL2_ERR_SYSTEM,
        "device cuda: the %s by plan %s is wrong: in %s it differs from a result in float32 by "
        "%.3g "
        "of its size in channel %u, where rounding explains %.3g at most. Another cuDNN or driver "
        "may help, or --amp off",
        what, plan, dl2_precision_name(cuda->precision), off, at, bound);
}

int dl2_check_compare(struct dl2_check *check, size_t rows, unsigned channels, double terms,
                      const char *what, const char *plan, struct dl2_error *error)
{
    DL2_TRY(dl2_cuda_grow_partials(check->cuda, channels, error));
    double *squares = dl2_calloc(channels, 2 * sizeof *squares);
    if (!squares)
        return dl2_cuda_out_of_memory(error, "a check");
    const int status = check_columns(check, rows, channels, terms, what, plan, squares, error);
    free(squares);
    return status;
}
