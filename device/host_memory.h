/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What the devices share whose memory is the host's: methods for their tables (device/device.h).
 * Only a layer that talks to other ranks or to a library can fail on them.
 */
#ifndef DL2_DEVICE_HOST_MEMORY_H
#define DL2_DEVICE_HOST_MEMORY_H

#include "device/device.h"

int dl2_host_alloc(struct dl2_device *device, size_t bytes, void **out, struct dl2_error *error);
void dl2_host_free(struct dl2_device *device, void *memory);
void dl2_host_wait_uploads(struct dl2_device *device);
int dl2_host_download(struct dl2_device *device, void *to, const void *from, size_t bytes,
                      struct dl2_error *error);
int dl2_host_sync(struct dl2_device *device, struct dl2_error *error);
void dl2_host_set_step_params(struct dl2_device *device, const struct dl2_step_params *params);

#endif
