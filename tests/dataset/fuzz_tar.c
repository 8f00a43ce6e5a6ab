/* SPDX-License-Identifier: BSD-2-Clause */
/* Tar files of any bytes. */
#include "tests/dataset/fuzz_packed.h"

#include <sys/mman.h>
#include <unistd.h>

extern const struct dl2_container dl2_container_tar;

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void scan_tar(int fd, size_t size, const struct dl2_member_choice *members)
{
    struct dl2_scan scan = {.draft = {.container = &dl2_container_tar}};
    const struct dl2_shard_input input = {.source = {.fd = fd}, .bytes = size, .key_start = ""};
    struct dl2_error error = DL2_ERROR_INIT;
    if (dl2_index_draft_add_shard(&scan.draft, "a.tar", size, 0, NULL) < 0 ||
        dl2_index_draft_set_members(&scan.draft, members, NULL) < 0)
        abort();
    const int status = dl2_container_tar.shards->scan(&scan, &input, &error);
    check_scan(&scan, status, &error);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static int fd = -1;
    if (fd < 0)
        fd = memfd_create("fuzz_tar", MFD_CLOEXEC);
    if (fd < 0 || ftruncate(fd, 0) != 0 || pwrite(fd, data, size, 0) != (ssize_t)size)
        abort();
    scan_tar(fd, size, &(struct dl2_member_choice){NULL, NULL});
    scan_tar(fd, size, &(struct dl2_member_choice){"label.0", NULL});
    scan_tar(fd, size, &(struct dl2_member_choice){NULL, "jpg,a.png"});
    return 0;
}
