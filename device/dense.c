/* SPDX-License-Identifier: BSD-2-Clause */
#include "device/dense.h"
#include "common/memory.h"
#include "device/element.h"

#include <stdlib.h>

/* -- transposed convolution -- */

struct dl2_transposed {
    struct dl2_device_plan plan;
    struct dl2_device *device;
    struct dl2_conv *conv;
    size_t rows; /* of y */
    unsigned channels;
};

static void transposed_free(void *plan)
{
    dl2_device_plan_free(((struct dl2_transposed *)plan)->conv);
    free(plan);
}

int dl2_transposed_create(struct dl2_device *device, const struct dl2_conv_shape *shape,
                          struct dl2_transposed **out, struct dl2_error *error)
{
    struct dl2_conv_shape plain = *shape;
    if (shape->activation != DL2_IDENTITY)
        return dl2_error_set(error, DL2_ERR_UNSUPPORTED,
                             "a transposed convolution ends without an activation");
    plain.bias = false;
    struct dl2_transposed *plan = dl2_calloc(1, sizeof *plan);
    if (!plan)
        return dl2_error_memory(error, "a transposed convolution");
    plan->plan.free = transposed_free;
    plan->device = device;
    plan->rows = shape->batch * dl2_sides_count(shape->in);
    plan->channels = shape->in_channels;
    const int status = device->ops->conv_create(device, &plain, &plan->conv, error);
    if (status < 0) {
        free(plan);
        return status;
    }
    *out = plan;
    return DL2_OK;
}

void dl2_transposed_forward(struct dl2_transposed *plan, const void *x, const void *weights,
                            const float *bias, void *y)
{
    const struct dl2_device_class *ops = plan->device->ops;
    ops->conv_backward_data(plan->conv, x, weights, y);
    if (bias)
        ops->add_bias(plan->device, bias, y, plan->rows, plan->channels);
}

void dl2_transposed_backward_data(struct dl2_transposed *plan, const void *dy, const void *weights,
                                  void *dx)
{
    plan->device->ops->conv_forward(plan->conv, dy, weights, NULL, dx);
}

void dl2_transposed_backward_weights(struct dl2_transposed *plan, const void *x, const void *dy,
                                     float *dweights, float *dbias, bool accumulate)
{
    const struct dl2_device_class *ops = plan->device->ops;
    ops->conv_backward_weights(plan->conv, dy, x, dweights, NULL, accumulate);
    if (dbias)
        ops->sum_rows(plan->device, dy, plan->rows, plan->channels, dbias, accumulate);
}

int dl2_transposed_check(struct dl2_transposed *plan, unsigned *checked, struct dl2_error *error)
{
    const struct dl2_device_class *ops = plan->device->ops;
    return ops->conv_check ? ops->conv_check(plan->conv, checked, error) : DL2_OK;
}

/* -- instance norm -- */

struct dl2_instance_norm {
    struct dl2_device_plan plan;
    struct dl2_device *device;
    size_t bytes;   /* of a sample */
    float *running; /* mean and variance, which nobody reads */
    unsigned channels, samples;
    struct dl2_norm *each[]; /* each keeps its sample's statistics for backward */
};

static void instance_norm_free(void *plan)
{
    struct dl2_instance_norm *norm = plan;
    for (unsigned i = 0; i < norm->samples; i++)
        dl2_device_plan_free(norm->each[i]);
    if (norm->running)
        norm->device->ops->free(norm->device, norm->running);
    free(norm);
}

static int create_each(struct dl2_instance_norm *norm, const struct dl2_norm_shape *shape,
                       unsigned samples, struct dl2_error *error)
{
    struct dl2_device *device = norm->device;
    void *running;
    DL2_TRY(device->ops->alloc(device, 2 * shape->channels * sizeof(float), &running, error));
    norm->running = running;
    for (; norm->samples < samples; norm->samples++)
        DL2_TRY(device->ops->norm_create(device, shape, &norm->each[norm->samples], error));
    return DL2_OK;
}

int dl2_instance_norm_create(struct dl2_device *device, const struct dl2_norm_shape *shape,
                             unsigned samples, struct dl2_instance_norm **out,
                             struct dl2_error *error)
{
    if (shape->residual || shape->synchronized)
        return dl2_error_set(error, DL2_ERR_UNSUPPORTED,
                             "instance norm has no residual, and nothing to synchronize");
    struct dl2_instance_norm *norm =
        dl2_calloc(1, sizeof *norm + samples * sizeof(struct dl2_norm *));
    if (!norm)
        return dl2_error_memory(error, "instance norm");
    norm->plan.free = instance_norm_free;
    norm->device = device;
    norm->channels = shape->channels;
    norm->bytes = shape->rows * shape->channels * dl2_element_size(device->element);
    const int status = create_each(norm, shape, samples, error);
    if (status < 0) {
        instance_norm_free(norm);
        return status;
    }
    *out = norm;
    return DL2_OK;
}

/* A sample's part of a tensor; NULL of NULL. */
static void *part_of(const struct dl2_instance_norm *norm, const void *tensor, unsigned sample)
{
    return tensor ? (uint8_t *)(uintptr_t)tensor + sample * norm->bytes : NULL;
}

void dl2_instance_norm_forward(struct dl2_instance_norm *norm, const void *x, const float *gamma,
                               const float *beta, void *y)
{
    for (unsigned i = 0; i < norm->samples; i++)
        norm->device->ops->norm_train(norm->each[i], part_of(norm, x, i), NULL, gamma, beta,
                                      norm->running, norm->running + norm->channels,
                                      part_of(norm, y, i));
}

void dl2_instance_norm_backward(struct dl2_instance_norm *norm, const void *x, const void *y,
                                const void *dy, const void *dy2, const float *gamma,
                                const float *beta, void *dx, float *dgamma, float *dbeta,
                                bool accumulate)
{
    for (unsigned i = 0; i < norm->samples; i++)
        norm->device->ops->norm_backward(norm->each[i], part_of(norm, x, i), part_of(norm, y, i),
                                         part_of(norm, dy, i), part_of(norm, dy2, i), gamma, beta,
                                         part_of(norm, dx, i), NULL, dgamma, dbeta,
                                         accumulate || i > 0);
}

/* -- shared by devices -- */

int dl2_dice_shape_check(const struct dl2_dice_shape *shape, struct dl2_error *error)
{
    if (!shape->samples || !shape->rows || shape->classes < 2 || shape->rows > 0x7fffffff ||
        (double)shape->samples * (double)shape->rows * shape->classes > 0x7fffffff)
        return dl2_error_set(error, DL2_ERR_ARGUMENT,
                             "no Dice loss of %u samples of %zu pixels in %u classes",
                             shape->samples, shape->rows, shape->classes);
    return DL2_OK;
}

double dl2_dice_score(double both, double target, double predicted, double terms,
                      struct dl2_dice_slope *slope)
{
    const double all = target + predicted + DL2_DICE_EPSILON;
    const double score = (2 * both + DL2_DICE_EPSILON) / all;
    *slope = (struct dl2_dice_slope){-1 / (terms * all), score / (2 * terms * all)};
    return score;
}

void dl2_host_confusion(struct dl2_device *device, const void *logits, const int32_t *labels,
                        size_t rows, unsigned classes, uint64_t *matrix)
{
    const size_t size = dl2_element_size(device->element);
    for (size_t n = 0; n < rows; n++) {
        if (labels[n] < 0)
            continue;
        const size_t label = (size_t)labels[n];
        size_t best = 0;
        float highest = 0;
        for (size_t k = 0; k < classes; k++) {
            float value;
            dl2_elements_to_floats(device->element,
                                   (const uint8_t *)logits + (n * classes + k) * size, &value, 1);
            if (value != value) {
                best = (label + 1) % classes;
                break;
            }
            if (k == 0 || value > highest) {
                highest = value;
                best = k;
            }
        }
        matrix[label * classes + best]++;
    }
}
