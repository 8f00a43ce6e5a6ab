/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Elements of tensors on a device, and float32 beside them: half precision and bfloat16
 * (common/half.h).
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
/* Rounded as common/half.h says. */
void dl2_elements_from_floats(enum dl2_element element, const float *from, void *to, size_t count);

#endif
