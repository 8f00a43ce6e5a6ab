/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Elements of tensors on a device, and float32 beside them: half precision (IEEE 754 binary16) and
 * bfloat16 (the upper half of a float32).
 *
 * Threads: any.
 */
#ifndef DL2_DEVICE_ELEMENT_H
#define DL2_DEVICE_ELEMENT_H

#include "device/device.h"

#include <stddef.h>

size_t dl2_element_size(enum dl2_element element);

/* Exact. `from` needs no alignment. */
void dl2_elements_to_floats(enum dl2_element element, const void *from, float *to, size_t count);
/* To the nearest, ties to even; too large for binary16: infinite. NaN stays one. */
void dl2_elements_from_floats(enum dl2_element element, const float *from, void *to, size_t count);

#endif
