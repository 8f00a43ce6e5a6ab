/* SPDX-License-Identifier: BSD-2-Clause */
/* The parser of .npy headers on any bytes: an error, or a volume within the limits. It asks for no
 * more bytes than it needs, and needs none beyond them. */
#include "volumes/volume.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct dl2_volume_info info, again;
    struct dl2_error error = DL2_ERROR_INIT;
    size_t need = 0;
    uint64_t bytes;
    const int status = dl2_npy_parse(data, size, &info, &need, &error);
    if (status < 0 && !error.message[0])
        abort();
    if (status == 0 && need <= size)
        abort();
    if (status != 1)
        return 0;
    if (need > size || info.offset != need)
        abort();
    /* A copy of just so many bytes lets a sanitizer see reads behind them. */
    uint8_t *copy = malloc(need);
    if (!copy)
        return 0;
    memcpy(copy, data, need);
    if (dl2_npy_parse(copy, need, &again, &need, &error) != 1 ||
        memcmp(info.size, again.size, sizeof info.size) != 0)
        abort();
    free(copy);
    if (dl2_volume_check(&info, &bytes, &error) == DL2_OK &&
        (!bytes || bytes >> 40 || !info.channels || info.channels > DL2_VOLUME_MAX_CHANNELS))
        abort();
    return 0;
}
