/* Scoring on a card (quality/score_device.h), opened from its registry. */
#ifndef DL2_CUDA_SCORE_DEVICE_CUDA_H
#define DL2_CUDA_SCORE_DEVICE_CUDA_H

#include "quality/score_device.h"

int dl2_score_cuda_open(unsigned card, struct dl2_score_device **out, struct dl2_error *error);

#endif
