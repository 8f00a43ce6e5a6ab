/* SPDX-License-Identifier: BSD-2-Clause */
#include "transcode/variant/staged.h"

#include "common/file.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <xxhash.h>

int dl2_staging_begin(struct dl2_staging *staging, char *path, struct dl2_error *error)
{
    staging->out_path = path;
    if (!path)
        return dl2_error_memory(error, "a path");
    staging->out = fopen(path, "ae");
    if (!staging->out || fseeko(staging->out, 0, SEEK_END) != 0)
        return dl2_error_system(error, "%s: can't be written", path);
    staging->end = (uint64_t)ftello(staging->out);
    return DL2_OK;
}

int dl2_staging_put(struct dl2_staging *staging, const void *data, size_t size,
                    struct dl2_staged_image *staged, struct dl2_error *error)
{
    if (fwrite(data, 1, size, staging->out) != size || fflush(staging->out) != 0)
        return dl2_error_system(error, "%s: can't be written", staging->out_path);
    *staged = (struct dl2_staged_image){.at = staging->end, .sum = XXH3_64bits(data, size)};
    staging->end += size;
    return DL2_OK;
}

int dl2_staging_end(struct dl2_staging *staging, struct dl2_error *error)
{
    const bool whole = !staging->out || fclose(staging->out) == 0;
    staging->out = NULL;
    return whole ? DL2_OK : dl2_error_system(error, "%s: can't be written", staging->out_path);
}

void dl2_staged_print(const struct dl2_staged_image *staged, FILE *out)
{
    fprintf(out, ",\"at\":%" PRIu64 ",\"sum\":\"%016" PRIx64 "\"", staged->at, staged->sum);
}

int dl2_staging_add_file(struct dl2_staging *staging, char *path, struct dl2_error *error)
{
    struct dl2_staged_file *grown =
        path ? dl2_realloc(staging->files, staging->count + 1, sizeof *grown) : NULL;
    struct stat info;
    if (!grown) {
        free(path);
        return dl2_error_memory(error, "images that wait to be packed");
    }
    staging->files = grown;
    grown[staging->count++] = (struct dl2_staged_file){
        .path = path, .bytes = stat(path, &info) == 0 ? (uint64_t)info.st_size : 0, .fd = -1};
    return DL2_OK;
}

bool dl2_staged_read_line(const struct dl2_staging *staging, const json_t *line, uint64_t size,
                          struct dl2_staged_image *staged)
{
    const struct dl2_staged_file *file = &staging->files[staging->count - 1];
    const long long at = dl2_json_get_integer(line, "at", -1);
    const char *sum = dl2_json_get_text(line, "sum", "");
    if (at < 0 || (uint64_t)at > file->bytes || size > file->bytes - (uint64_t)at ||
        strlen(sum) != 16)
        return false;
    *staged = (struct dl2_staged_image){
        .at = (uint64_t)at, .sum = strtoull(sum, NULL, 16), .file = staging->count - 1};
    return true;
}

static void close_files(struct dl2_staging *staging)
{
    for (uint32_t i = 0; i < staging->count; i++) {
        if (staging->files[i].fd >= 0)
            close(staging->files[i].fd);
        staging->files[i].fd = -1;
    }
}

int dl2_staging_get(struct dl2_staging *staging, const struct dl2_staged_image *staged,
                    uint64_t size, struct dl2_bytes *out, struct dl2_error *error)
{
    struct dl2_staged_file *file = &staging->files[staged->file];
    if (file->fd < 0)
        file->fd = open(file->path, O_RDONLY | O_CLOEXEC);
    if (file->fd < 0 && (errno == EMFILE || errno == ENFILE)) { /* there may be thousands */
        close_files(staging);
        file->fd = open(file->path, O_RDONLY | O_CLOEXEC);
    }
    if (file->fd < 0)
        return dl2_error_system(error, "%s: can't be read", file->path);
    DL2_TRY(dl2_bytes_resize(out, size, error));
    const int64_t got = dl2_read_at(file->fd, staged->at, out->data, size);
    if (got < 0)
        return dl2_error_system(error, "%s: can't be read", file->path);
    if ((uint64_t)got != size || XXH3_64bits(out->data, size) != staged->sum)
        return dl2_error_set(error, DL2_ERR_FORMAT,
                             "%s: the %" PRIu64 " bytes at %" PRIu64
                             " are not those that were written; remove the file and run again",
                             file->path, size, staged->at);
    return DL2_OK;
}

void dl2_staging_free(struct dl2_staging *staging)
{
    close_files(staging);
    for (uint32_t i = 0; i < staging->count; i++)
        free(staging->files[i].path);
    free(staging->files);
    if (staging->out)
        fclose(staging->out);
    free(staging->out_path);
    *staging = (struct dl2_staging){0};
}
