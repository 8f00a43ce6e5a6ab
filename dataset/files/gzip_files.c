/* SPDX-License-Identifier: BSD-2-Clause */
#include "dataset/files/gzip_files.h"

#include "common/memory.h"
#include "common/scope.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>

enum {
    MAX_OPEN = 3,             /* where one shard ends, what is beside its last samples may be read
                                 after the first bytes of the next */
    HISTORY_BYTES = 32 << 20, /* kept of what was read: of a sample, what is beside its image */
    STEP_BYTES = 256 << 10,
};

struct gzip_file {
    const char *path; /* NULL: none is open here */
    gzFile gzip;
    uint64_t position; /* decompressed bytes so far: history[position % HISTORY_BYTES] is next */
    uint8_t *history;
};

struct dl2_gzip_files {
    pthread_mutex_t mutex;
    struct gzip_file open[MAX_OPEN]; /* the one that was read last stands first */
};

struct dl2_gzip_files *dl2_gzip_files_new(struct dl2_error *error)
{
    struct dl2_gzip_files *files = dl2_calloc(1, sizeof *files);
    if (files)
        pthread_mutex_init(&files->mutex, NULL);
    else
        dl2_error_memory(error, "a dataset");
    return files;
}

static void close_file(struct gzip_file *file)
{
    if (file->gzip)
        gzclose(file->gzip);
    free(file->history);
    *file = (struct gzip_file){0};
}

void dl2_gzip_files_free(struct dl2_gzip_files *files)
{
    if (!files)
        return;
    for (size_t i = 0; i < MAX_OPEN; i++)
        close_file(&files->open[i]);
    pthread_mutex_destroy(&files->mutex);
    free(files);
}

/* gzread() passes files of other kinds through. */
static int open_gzip(const char *path, gzFile *gzip, struct dl2_error *error)
{
    *gzip = gzopen(path, "rbe");
    if (!*gzip)
        return dl2_error_system(error, "cannot be read");
    gzbuffer(*gzip, STEP_BYTES);
    return gzdirect(*gzip) ? dl2_error_set(error, DL2_ERR_FORMAT, "it is not compressed by gzip")
                           : DL2_OK;
}

/* Decompresses up to `size` bytes: how many there were, 0 at the end, or a negative status. */
static int64_t take(gzFile gzip, void *out, unsigned size, struct dl2_error *error)
{
    const int got = gzread(gzip, out, size);
    int code;
    const char *why = gzerror(gzip, &code);
    if (got >= 0 && (unsigned)got < size && code == Z_BUF_ERROR)
        return dl2_error_set(error, DL2_ERR_FORMAT, "the gzip data end too early: cut short");
    if (got < 0 && code == Z_ERRNO)
        return dl2_error_system(error, "cannot be read");
    if (got < 0)
        return dl2_error_set(error, DL2_ERR_FORMAT, "damaged gzip data: %s", why);
    return got;
}

int dl2_gzip_measure(const char *path, uint64_t *bytes, struct dl2_error *error)
{
    gzFile gzip = NULL;
    int64_t got = 0;
    DL2_AUTO_FREE uint8_t *step = NULL;
    DL2_TRY(DL2_NEW(&step, STEP_BYTES, "a dataset", error));
    const int status = open_gzip(path, &gzip, error);
    *bytes = 0;
    while (status == DL2_OK && (got = take(gzip, step, STEP_BYTES, error)) > 0)
        *bytes += (uint64_t)got;
    if (gzip)
        gzclose(gzip);
    return status < 0 ? status : (int)got;
}

/* Puts the file first, in place of the one that was not read for longest. */
static int find_file(struct dl2_gzip_files *files, const char *path, struct dl2_error *error)
{
    size_t i = 0;
    while (i < MAX_OPEN - 1 && files->open[i].path != path)
        i++;
    struct gzip_file file = files->open[i];
    int status = DL2_OK;
    if (file.path != path) {
        close_file(&file);
        file.path = path;
        file.history = dl2_realloc(NULL, HISTORY_BYTES, 1);
        status = file.history ? open_gzip(path, &file.gzip, error)
                              : dl2_error_memory(error, "a dataset");
    }
    memmove(files->open + 1, files->open, i * sizeof *files->open);
    files->open[0] = file;
    if (status < 0)
        close_file(&files->open[0]);
    return status;
}

/* Decompresses to `end`, or to the end of the file. */
static int read_on(struct gzip_file *file, uint64_t end, struct dl2_error *error)
{
    while (file->position < end) {
        const size_t at = (size_t)(file->position % HISTORY_BYTES);
        size_t wanted = HISTORY_BYTES - at;
        if (wanted > STEP_BYTES)
            wanted = STEP_BYTES;
        if (wanted > end - file->position)
            wanted = (size_t)(end - file->position);
        const int64_t got = take(file->gzip, file->history + at, (unsigned)wanted, error);
        if (got <= 0)
            return (int)got;
        file->position += (uint64_t)got;
    }
    return DL2_OK;
}

static int64_t read_file(struct gzip_file *file, uint64_t offset, uint8_t *out, size_t size,
                         struct dl2_error *error)
{
    size_t done = 0;
    if (offset + HISTORY_BYTES < file->position) { /* no longer in the history */
        if (gzrewind(file->gzip) != 0)
            return dl2_error_system(error, "cannot be read again");
        file->position = 0;
    }
    while (done < size) {
        const size_t at = (size_t)(offset % HISTORY_BYTES);
        size_t part = HISTORY_BYTES - at < STEP_BYTES ? HISTORY_BYTES - at : STEP_BYTES;
        if (part > size - done)
            part = size - done;
        DL2_TRY(read_on(file, offset + part, error));
        if (file->position < offset + part)
            part = file->position > offset ? (size_t)(file->position - offset) : 0;
        if (!part)
            break;
        memcpy(out + done, file->history + at, part);
        done += part;
        offset += part;
    }
    return (int64_t)done;
}

int64_t dl2_gzip_read(struct dl2_gzip_files *files, const char *path, uint64_t offset, void *out,
                      size_t size, struct dl2_error *error)
{
    pthread_mutex_lock(&files->mutex);
    int64_t got = find_file(files, path, error);
    if (got == DL2_OK)
        got = read_file(&files->open[0], offset, out, size, error);
    pthread_mutex_unlock(&files->mutex);
    return got;
}
