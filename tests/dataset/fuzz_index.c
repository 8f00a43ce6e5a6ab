/* SPDX-License-Identifier: BSD-2-Clause */
/* The index on any bytes, with the check sum put right, which would keep everything else out. */
#include "dataset/packed/index.h"

#include <stdlib.h>
#include <string.h>
#include <xxhash.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { SUM_OFFSET = 56 };

static volatile size_t touched;

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct dl2_bytes block = DL2_BYTES_INIT;
    struct dl2_index index;
    struct dl2_error error = DL2_ERROR_INIT;
    if (size < SUM_OFFSET + 8 || dl2_bytes_append(&block, data, size, NULL) < 0)
        return 0;
    /* What lies behind must not be touched: as many bytes as there are, and no more. */
    uint8_t *exact = realloc(block.data, size);
    memset(exact + SUM_OFFSET, 0, 8);
    const uint64_t sum = XXH3_64bits(exact, size);
    for (int i = 0; i < 8; i++)
        exact[SUM_OFFSET + i] = (uint8_t)(sum >> 8 * i);
    if (dl2_index_open(exact, size, &index, &error) == DL2_OK) {
        for (size_t i = 0; i < index.count; i++) {
            const struct dl2_index_entry entry = dl2_index_entry(&index, i);
            const struct dl2_index_shard shard = dl2_index_shard(&index, entry.shard);
            if (entry.offset + entry.bytes > shard.bytes || !dl2_index_is_key(entry.key))
                abort();
            touched += strlen(entry.extension) + strlen(shard.name);
            touched += dl2_index_find(&index, entry.key);
            struct dl2_index_slicing cuts;
            if (!dl2_index_slicing(&index, i, &cuts))
                continue;
            for (uint32_t n = 0; n < cuts.head_size; n++)
                touched += cuts.head[n];
            for (uint32_t n = 0; n < 4 * cuts.count; n++)
                touched += cuts.offsets[4 + n] + cuts.sums[n];
        }
        for (uint32_t i = 0; i < index.class_count; i++)
            touched += strlen(dl2_index_class(&index, i));
    } else if (!error.message[0]) {
        abort();
    }
    free(exact);
    return 0;
}
