/* SPDX-License-Identifier: BSD-2-Clause */
#include "device/host_memory.h"

#include "common/memory.h"

#include <stdlib.h>
#include <string.h>

int dl2_host_alloc(struct dl2_device *device, size_t bytes, void **out, struct dl2_error *error)
{
    *out = dl2_alloc_aligned(bytes, 1);
    if (!*out)
        return dl2_error_set(error, DL2_ERR_MEMORY, "device %s: out of memory for %zu bytes",
                             device->ops->name, bytes);
    memset(*out, 0, bytes);
    return DL2_OK;
}

void dl2_host_free(struct dl2_device *device, void *memory)
{
    (void)device;
    free(memory);
}

void dl2_host_wait_uploads(struct dl2_device *device)
{
    (void)device;
}

int dl2_host_download(struct dl2_device *device, void *to, const void *from, size_t bytes,
                      struct dl2_error *error)
{
    DL2_TRY(dl2_host_sync(device, error));
    memcpy(to, from, bytes);
    return DL2_OK;
}

int dl2_host_sync(struct dl2_device *device, struct dl2_error *error)
{
    const int status = dl2_error_copy(error, &device->failure);
    dl2_error_clear(&device->failure);
    return status;
}

void dl2_host_set_step_params(struct dl2_device *device, const struct dl2_step_params *params)
{
    device->params = *params;
}
