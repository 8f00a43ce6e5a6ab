/* SPDX-License-Identifier: BSD-2-Clause */
/* The IDX parser on any bytes; the first byte chooses between labels and images. */
#include "dataset/files/idx.h"

#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size < 1)
        return 0;
    static int fd = -1;
    if (fd < 0)
        fd = memfd_create("fuzz_idx", MFD_CLOEXEC);
    if (fd < 0 || ftruncate(fd, 0) != 0 || pwrite(fd, data + 1, size - 1, 0) != (ssize_t)size - 1 ||
        lseek(fd, 0, SEEK_SET) != 0)
        abort();
    struct dl2_idx idx;
    struct dl2_error error = DL2_ERROR_INIT;
    if (dl2_idx_read(fd, data[0] & 1 ? 3 : 1, &idx, &error) < 0) {
        if (!error.message[0] || idx.items)
            abort();
        return 0;
    }
    /* What was accepted must be there to the last byte. */
    volatile uint8_t last = idx.items[(size_t)idx.dims[0] * idx.dims[1] * idx.dims[2] - 1];
    (void)last;
    dl2_idx_free(&idx);
    return 0;
}
