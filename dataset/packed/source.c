/* SPDX-License-Identifier: BSD-2-Clause */
#include "dataset/packed/source.h"

#include "common/file.h"

int64_t dl2_source_read(const struct dl2_shard_source *source, uint64_t offset, void *out,
                        size_t size, struct dl2_error *error)
{
    struct dl2_remote_file *remote = source->remote;
    if (source->gzip)
        return dl2_gzip_read(source->gzip, source->path, offset, out, size, error);
    if (!remote) {
        const int64_t got = dl2_read_at(source->fd, offset, out, size);
        return got < 0 ? dl2_error_system(error, "cannot be read") : got;
    }
    const uint64_t left = offset < remote->bytes ? remote->bytes - offset : 0;
    if (size > left)
        size = (size_t)left;
    const int status = dl2_remote_read(remote, offset, offset, out, size, error);
    return status < 0 ? status : (int64_t)size;
}
