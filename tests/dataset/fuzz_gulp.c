/* SPDX-License-Identifier: BSD-2-Clause */
/* GulpIO's meta files on any bytes: the first says how large the data file is, the rest is JSON. */
#include "tests/dataset/fuzz_packed.h"

extern const struct dl2_container dl2_container_gulp;

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size < 1)
        return 0;
    struct dl2_scan scan = {.draft = {.container = &dl2_container_gulp}};
    struct dl2_shard_input input = {.source = {.fd = -1}, .bytes = data[0], .key_start = "train/"};
    struct dl2_error error = DL2_ERROR_INIT;
    if (dl2_index_draft_add_shard(&scan.draft, "data_0.gulp", data[0], 0, NULL) < 0)
        abort();
    if (dl2_bytes_append(&input.companion, data + 1, size - 1, NULL) < 0)
        abort();
    int status = dl2_container_gulp.shards->scan(&scan, &input, &error);
    dl2_bytes_free(&input.companion);
    check_scan(&scan, status, &error);
    return 0;
}
