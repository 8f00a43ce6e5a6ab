/* GulpIO's meta files on any bytes: the first says how large the data file is, the rest is JSON. */
#include "tests/dataset/fuzz_packed.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size < 1)
        return 0;
    struct dl2_scan scan = {.draft = {.kind = DL2_INDEX_GULP}};
    struct dl2_error error = DL2_ERROR_INIT;
    if (dl2_index_draft_add_shard(&scan.draft, "data_0.gulp", data[0], 0, NULL) < 0)
        abort();
    int status = dl2_gulp_parse(&scan, data + 1, size - 1, data[0], "train/", &error);
    check_scan(&scan, status, &error);
    return 0;
}
