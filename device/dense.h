/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Layers of networks that label each pixel or voxel, made of the seam's methods, so that every
 * device has them: a transposed convolution is a convolution whose passes have changed places, and
 * instance norm is a batch norm of each sample alone.
 *
 * Plans and calls as in device.h; dl2_device_plan_free() frees these plans, too.
 *
 * Threads: the device's.
 */
#ifndef DL2_DEVICE_DENSE_H
#define DL2_DEVICE_DENSE_H

#include "device/device.h"

/*
 * Transposed convolution (Zeiler et al. 2010; Dumoulin, Visin 2016) from `x` to `y`: the gradient
 * of a convolution from y to x. Its shape is that convolution's: what `in` is there is the result
 * here. So the weights are [channels of x][kernel depth, height, width][channels of y]; PyTorch's
 * ConvTranspose has the same order. `bias` is that of y, [shape->in_channels]; no activation.
 */
struct dl2_transposed;
int dl2_transposed_create(struct dl2_device *device, const struct dl2_conv_shape *shape,
                          struct dl2_transposed **out, struct dl2_error *error);
void dl2_transposed_forward(struct dl2_transposed *plan, const void *x, const void *weights,
                            const float *bias, void *y);
void dl2_transposed_backward_data(struct dl2_transposed *plan, const void *dy, const void *weights,
                                  void *dx);
void dl2_transposed_backward_weights(struct dl2_transposed *plan, const void *x, const void *dy,
                                     float *dweights, float *dbias, bool accumulate);
/* As the method conv_check. */
int dl2_transposed_check(struct dl2_transposed *plan, unsigned *checked, struct dl2_error *error);

/*
 * Instance norm (Ulyanov, Vedaldi, Lempitsky 2016) with affine parameters, and an activation: each
 * channel of each sample is normalized by its own mean and variance, in evaluation, too. `shape` is
 * a batch norm's for one of `samples` samples; it has no residual and is not synchronized. Backward
 * as the method norm_backward.
 */
struct dl2_instance_norm;
int dl2_instance_norm_create(struct dl2_device *device, const struct dl2_norm_shape *shape,
                             unsigned samples, struct dl2_instance_norm **out,
                             struct dl2_error *error);
void dl2_instance_norm_forward(struct dl2_instance_norm *norm, const void *x, const float *gamma,
                               const float *beta, void *y);
void dl2_instance_norm_backward(struct dl2_instance_norm *norm, const void *x, const void *y,
                                const void *dy, const void *dy2, const float *gamma,
                                const float *beta, void *dx, float *dgamma, float *dbeta,
                                bool accumulate);

/* D of a class of a sample, by the sums of t * p, t and p; `terms` is samples times classes. */
double dl2_dice_score(double both, double target, double predicted, double terms,
                      struct dl2_dice_slope *slope);

/* The methods of devices whose memory is the host's, for elements of any type. */
void dl2_host_confusion(struct dl2_device *device, const void *logits, const int32_t *labels,
                        size_t rows, unsigned classes, uint64_t *matrix);

#endif
