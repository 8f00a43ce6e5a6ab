/* SPDX-License-Identifier: BSD-2-Clause */
/* The checkpoint reader on any bytes: what it accepts must be wholly readable. */
#include "network/safetensors.h"

#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct dl2_bytes file = DL2_BYTES_INIT;
    struct dl2_safetensors checkpoint;
    if (dl2_bytes_append(&file, data, size, NULL) < 0)
        return 0;
    if (dl2_safetensors_parse(&file, &checkpoint, NULL) < 0)
        return 0;
    unsigned sum = 0;
    for (size_t i = 0; i < checkpoint.count; i++) {
        const struct dl2_safetensors_tensor *tensor = &checkpoint.tensors[i];
        for (size_t k = 0; k < tensor->bytes; k++)
            sum += tensor->data[k];
        if (dl2_safetensors_find(&checkpoint, tensor->name) != tensor)
            abort();
        float *values = dl2_calloc(tensor->bytes + 1, sizeof *values);
        if (values && dl2_safetensors_copy_floats(&checkpoint, tensor->name, tensor->dims,
                                                  tensor->shape, values, NULL) == DL2_OK)
            sum += values[0] > 0;
        free(values);
    }
    dl2_safetensors_free(&checkpoint);
    return sum == 0xdeadbeef; /* uses the sum, so that the bytes are really read */
}
