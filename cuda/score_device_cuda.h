/* SPDX-License-Identifier: BSD-2-Clause */
/* Scoring on a card, for the registry of quality/score_device.h. */
#ifndef DL2_CUDA_SCORE_DEVICE_CUDA_H
#define DL2_CUDA_SCORE_DEVICE_CUDA_H

#include "quality/score_device.h"

extern const struct dl2_score_device_class dl2_score_cuda;

#endif
