/* SPDX-License-Identifier: BSD-2-Clause */
/* What every scan must end in, whatever was scanned: an index that passes its own checks, or an
 * error. */
#ifndef DL2_TESTS_DATASET_FUZZ_PACKED_H
#define DL2_TESTS_DATASET_FUZZ_PACKED_H

#include "dataset/packed/packed.h"

#include <stdlib.h>
#include <string.h>

static inline void check_scan(struct dl2_scan *scan, int status, const struct dl2_error *error)
{
    struct dl2_bytes block = DL2_BYTES_INIT;
    struct dl2_index index;
    struct dl2_error own = DL2_ERROR_INIT;
    if (status < 0) {
        if (!error->message[0])
            abort();
    } else if (dl2_scan_finish(scan, &own) == DL2_OK &&
               dl2_index_draft_finish(&scan->draft, &block, &own) == DL2_OK) {
        if (dl2_index_open(block.data, block.size, &index, &own) < 0)
            abort();
        for (size_t i = 0; i < index.count; i++)
            if (dl2_index_find(&index, dl2_index_entry(&index, i).key) != i)
                abort();
    } else if (!own.message[0]) {
        abort();
    }
    dl2_bytes_free(&block);
    dl2_scan_free(scan);
}

#endif
