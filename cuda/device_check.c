/* SPDX-License-Identifier: BSD-2-Clause */
#include "cuda/device_check.h"

#include "common/memory.h"
#include "cuda/gpu.h"
#include "cuda/kernels.h"
#include "device/element.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static enum dl2_element element_of(const struct dl2_check *check, int tensor)
{
    return check->tensors[tensor].role == DL2_CHECK_FLOATS ? DL2_ELEMENT_F32
                                                           : check->cuda->base.element;
}

static bool check_take(struct dl2_check *check, int i)
{
    const enum dl2_element element = element_of(check, i);
    const cudaStream_t stream = check->cuda->stream;
    const size_t count = check->tensors[i].count;
    return cudaMalloc(&check->floats[i], count * sizeof(float)) == cudaSuccess &&
           cudaMalloc(&check->elements[i], count * dl2_element_size(element)) == cudaSuccess &&
           (check->tensors[i].role != DL2_CHECK_INPUT ||
            (dl2_gpu_noise(element, check->elements[i], count, stream) == cudaSuccess &&
             dl2_gpu_widen(element, check->elements[i], check->floats[i], count, false, stream) ==
                 cudaSuccess));
}

bool dl2_check_open(struct dl2_check *check, struct cuda *cuda,
                    const struct dl2_check_tensor tensors[DL2_CHECK_TENSORS], unsigned channels,
                    const char *what)
{
    *check = (struct dl2_check){.cuda = cuda};
    memcpy(check->tensors, tensors, sizeof check->tensors);
    bool good = cudaMalloc((void **)&check->moments, 2 * channels * sizeof(float)) == cudaSuccess;
    for (int i = 0; i < DL2_CHECK_TENSORS && good; i++)
        good = tensors[i].role == DL2_CHECK_NONE || check_take(check, i);
    cudaGetLastError();
    if (!good)
        dl2_cuda_tell(cuda, "no memory to check the %s: it is left out", what);
    return good;
}

int dl2_check_output(enum dl2_gpu_pass pass)
{
    return pass == DL2_PASS_FORWARD || pass == DL2_PASS_BIASED ? 2 : pass == DL2_PASS_DATA ? 0 : 1;
}

bool dl2_check_open_pass(struct dl2_check *check, struct cuda *cuda, enum dl2_gpu_pass pass,
                         const size_t counts[3], unsigned channels, const char *what)
{
    struct dl2_check_tensor tensors[DL2_CHECK_TENSORS] = {
        {counts[0], DL2_CHECK_INPUT}, {counts[1], DL2_CHECK_INPUT}, {counts[2], DL2_CHECK_INPUT}};
    tensors[dl2_check_output(pass)].role =
        pass == DL2_PASS_WEIGHTS ? DL2_CHECK_FLOATS : DL2_CHECK_OUTPUT;
    const bool good = dl2_check_open(check, cuda, tensors, channels, what);
    check->pass = pass;
    return good;
}

void dl2_check_close(struct dl2_check *check)
{
    cudaStreamSynchronize(check->cuda->stream);
    for (int i = 0; i < DL2_CHECK_TENSORS; i++) {
        cudaFree(check->elements[i]);
        cudaFree(check->floats[i]);
    }
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
    LAUNCH(cuda, "a check",
           dl2_gpu_norm_moments(DL2_ELEMENT_F32, x, rows, channels, cuda->partials.memory,
                                check->moments, cuda->stream));
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
static double check_bound(enum dl2_precision precision, double terms, unsigned roundings)
{
    const double rounding = precision == DL2_PRECISION_FP32   ? 0x1p-11
                            : precision == DL2_PRECISION_FP16 ? 0x1p-10
                                                              : 0x1.4p-8;
    return roundings * rounding + terms * 0x1p-28;
}

/* `squares` has room for 2 * channels. */
static int check_columns(struct dl2_check *check, int out, size_t rows, unsigned channels,
                         double terms, unsigned roundings, const char *what, const char *plan,
                         double *squares, struct dl2_error *error)
{
    struct cuda *cuda = check->cuda;
    float *reference = check->floats[out];
    double *differences = squares + channels, mean = 0, worst = 0;
    unsigned at = 0;
    DL2_TRY(check_mean_squares(check, reference, rows, channels, squares, error));
    for (unsigned c = 0; c < channels; c++)
        mean += squares[c] / channels;
    /* result - reference */
    LAUNCH(cuda, "a check", dl2_gpu_scale(reference, rows * channels, -1, cuda->stream));
    LAUNCH(cuda, "a check",
           dl2_gpu_widen(element_of(check, out), check->elements[out], reference, rows * channels,
                         true, cuda->stream));
    DL2_TRY(check_mean_squares(check, reference, rows, channels, differences, error));
    for (unsigned c = 0; c < channels; c++) {
        const double part = differences[c] / fmax(squares[c], mean);
        if (part > worst || !isfinite(part)) {
            worst = isfinite(part) ? part : INFINITY;
            at = c;
        }
    }
    const double off = sqrt(worst), bound = check_bound(cuda->precision, terms, roundings);
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

int dl2_check_compare(struct dl2_check *check, int out, size_t rows, unsigned channels,
                      double terms, unsigned roundings, const char *what, const char *plan,
                      struct dl2_error *error)
{
    DL2_TRY(dl2_cuda_grow_partials(check->cuda, channels, error));
    double *squares = dl2_calloc(channels, 2 * sizeof *squares);
    if (!squares)
        return dl2_cuda_out_of_memory(error, "a check");
    const int status =
        check_columns(check, out, rows, channels, terms, roundings, what, plan, squares, error);
    free(squares);
    return status;
}
