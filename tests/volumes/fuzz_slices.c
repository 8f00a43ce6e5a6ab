/* SPDX-License-Identifier: BSD-2-Clause */
/* The parser of volume.json on any bytes: an error, or a volume within the limits, all of whose
 * slices lie in the file. */
#include "volumes/volume_slices.h"

#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    enum { START = 1024, END = 100000 };
    struct dl2_volume_info info;
    struct dl2_volume_slices slices;
    struct dl2_error error = DL2_ERROR_INIT;
    uint64_t bytes;
    const int status =
        dl2_volume_slices_parse((const char *)data, size, START, END, &info, &slices, &error);
    if (status < 0) {
        if (!error.message[0])
            abort();
        dl2_volume_slices_free(&slices);
        return 0;
    }
    if (slices.bits < DL2_GRAY_MIN_BITS || slices.bits > DL2_GRAY_MAX_BITS ||
        slices.count != info.channels * info.size[0])
        abort();
    for (size_t i = 0; i < slices.count; i++)
        if (slices.table[i].offset < START || slices.table[i].offset > END ||
            !slices.table[i].bytes || slices.table[i].bytes > END - slices.table[i].offset)
            abort();
    if (dl2_volume_check(&info, &bytes, &error) < 0 && !error.message[0])
        abort();
    dl2_volume_slices_free(&slices);
    return 0;
}
