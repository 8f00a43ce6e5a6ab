/* Scoring on a card (quality/device.h), opened from its registry. */
#ifndef DL2_CUDA_SCORE_DEVICE_H
#define DL2_CUDA_SCORE_DEVICE_H

#include "quality/device.h"

int dl2_score_cuda_open(unsigned card, struct dl2_score_device **out, struct dl2_error *error);

#endif
