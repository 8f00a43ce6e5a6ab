/* SPDX-License-Identifier: BSD-2-Clause */
/* The EXIF reader on any bytes. */
#include "codec/exif.h"

#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    int orientation = dl2_exif_orientation(data, size);
    if (orientation < 1 || orientation > 8)
        abort();
    return 0;
}
