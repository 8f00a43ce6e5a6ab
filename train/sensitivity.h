/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * How much the loss of a trained network depends on its input: the autocovariance of the loss's
 * gradient with respect to the input's gray levels, in luma and in both chroma (JFIF's YCbCr), at
 * all shifts of up to DL2_SENSITIVITY_LAGS pixels.
 *
 * A change d of the input, small and independent of the network, changes the loss by <g, d> to the
 * first order, whose mean square is the sum of d(p) d(q) C(p - q) over all pixels p and q: so C
 * tells what any coefficient of a compressed image is worth, whatever crop and resize lie between
 * (transcode/tables/fit_sensitivity.h). Labels are drawn from the network's own predictions, so
 * that C is of the Fisher information and not of the errors on these images (Martens 2020, section
 * 5).
 */
#ifndef DL2_TRAIN_SENSITIVITY_H
#define DL2_TRAIN_SENSITIVITY_H

#include "common/error.h"

struct dl2_run;

enum { DL2_SENSITIVITY_LAGS = 16, DL2_SENSITIVITY_IMAGES = 1024 };
#define DL2_SENSITIVITY_SCHEMA "dl2-sensitivity/1"

/* Writes the file (docs/formats/train.md), from random crops of up to DL2_SENSITIVITY_IMAGES images
 * of the first validation set. The run's network has its weights, images_gradient, and float32; its
 * running statistics change. */
int dl2_sensitivity_measure(struct dl2_run *run, const char *path, struct dl2_error *error);

#endif
