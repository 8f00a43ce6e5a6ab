/* SPDX-License-Identifier: BSD-2-Clause */
/* The cuda device's methods for labels of pixels and voxels. */
#include "cuda/device_cuda.h"

#include "common/memory.h"
#include "cuda/kernels.h"
#include "device/element.h"

#include <stdlib.h>

struct dl2_dice {
    struct dl2_device_plan plan;
    struct cuda *cuda;
    struct dl2_gpu_dice gpu;
};

static void cuda_dice_free(void *plan)
{
    struct dl2_dice *dice = plan;
    dl2_cuda_release(dice->cuda, dice->gpu.normalizers);
    dl2_cuda_release(dice->cuda, dice->gpu.parts);
    dl2_cuda_release(dice->cuda, dice->gpu.slopes);
    free(dice);
}

static int acquire_all(struct dl2_dice *dice, struct dl2_error *error)
{
    struct dl2_gpu_dice *gpu = &dice->gpu;
    const size_t terms = gpu->shape.samples * (size_t)(gpu->shape.classes - 1);
    const char *what = "the Dice loss";
    DL2_TRY(dl2_cuda_acquire(dice->cuda, gpu->shape.samples * gpu->shape.rows * sizeof(float), what,
                             &gpu->normalizers, error));
    DL2_TRY(dl2_cuda_acquire(dice->cuda, terms * DL2_GPU_DICE_PARTS * sizeof *gpu->parts, what,
                             &gpu->parts, error));
    return dl2_cuda_acquire(dice->cuda, terms * sizeof *gpu->slopes, what, &gpu->slopes, error);
}

int dl2_cuda_dice_create(struct dl2_device *device, const struct dl2_dice_shape *shape,
                         struct dl2_dice **out, struct dl2_error *error)
{
    DL2_TRY(dl2_dice_shape_check(shape, error));
    struct dl2_dice *dice = dl2_calloc(1, sizeof *dice);
    if (!dice)
        return dl2_cuda_out_of_memory(error, "the Dice loss");
    dice->plan.free = cuda_dice_free;
    dice->cuda = (struct cuda *)device;
    dice->gpu.shape = *shape;
    const int status = acquire_all(dice, error);
    if (status < 0) {
        cuda_dice_free(dice);
        return status;
    }
    *out = dice;
    return DL2_OK;
}

void dl2_cuda_dice_run(struct dl2_dice *dice, const void *logits, const int32_t *labels,
                       void *dlogits, const struct dl2_loss_sums *entropy,
                       struct dl2_loss_sums *sums)
{
    struct cuda *cuda = dice->cuda;
    LAUNCH(cuda, "the Dice loss",
           dl2_gpu_dice(cuda->base.element, &dice->gpu, logits, labels, dlogits, entropy, sums,
                        cuda->state, cuda->stream));
}

void dl2_cuda_confusion(struct dl2_device *device, const void *logits, const int32_t *labels,
                        size_t rows, unsigned classes, uint64_t *matrix)
{
    struct cuda *cuda = (struct cuda *)device;
    if (has_not_failed(cuda) && dl2_cuda_grow(cuda, &cuda->partials, rows * sizeof(int32_t),
                                              "a confusion of pixels", &device->failure) == DL2_OK)
        LAUNCH(cuda, "a confusion of pixels",
               dl2_gpu_confusion(device->element, logits, labels, rows, classes,
                                 cuda->partials.memory, matrix, cuda->stream));
}

void dl2_cuda_add_bias(struct dl2_device *device, const float *bias, void *y, size_t rows,
                       unsigned channels)
{
    struct cuda *cuda = (struct cuda *)device;
    LAUNCH(cuda, "a bias",
           dl2_gpu_add_bias(device->element, bias, y, rows, channels, DL2_IDENTITY, cuda->stream));
}

void dl2_cuda_sum_rows(struct dl2_device *device, const void *dy, size_t rows, unsigned channels,
                       float *dbias, bool accumulate)
{
    struct cuda *cuda = (struct cuda *)device;
    if (has_not_failed(cuda) && dl2_cuda_grow_partials(cuda, channels, &device->failure) == DL2_OK)
        LAUNCH(cuda, "the gradient of a bias",
               dl2_gpu_column_sums(device->element, dy, rows, channels, cuda->partials.memory,
                                   dbias, accumulate, cuda->stream));
}

void dl2_cuda_copy_columns(struct dl2_device *device, void *to, size_t to_step, const void *from,
                           size_t from_step, size_t columns, size_t rows)
{
    struct cuda *cuda = (struct cuda *)device;
    const size_t size = dl2_element_size(device->element);
    LAUNCH(cuda, "a concatenation",
           dl2_gpu_copy_columns(to, to_step * size, from, from_step * size, columns * size, rows,
                                cuda->stream));
}
