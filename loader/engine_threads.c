/* SPDX-License-Identifier: BSD-2-Clause */
/* Reads with a few threads and plain system calls. */
#include "loader/engine.h"

#include "remote/remote.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

/* Requests that the disk has at once: disks are fast only with a queue. */
#define THREADS 8

struct threads {
    struct dl2_read_ahead *ahead;
    pthread_t threads[THREADS];
    unsigned count;
};

bool dl2_request_read(const struct dl2_read_request *request)
{
    if (request->samples)
        return dl2_dataset_read_batch(request->dataset, request->samples, request->count,
                                      request->buffer);
    if (request->remote)
        return dl2_remote_read(request->remote, request->start, request->offset, request->buffer,
                               request->bytes, NULL) == DL2_OK;
    const int own = request->fd >= 0 ? -1 : open(request->path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    const int fd = request->fd >= 0 ? request->fd : own;
    if (fd < 0)
        return false;
    const size_t wanted = request->bytes + request->whole;
    size_t got = 0;
    while (got < wanted) {
        const ssize_t count =
            pread(fd, request->buffer + got, wanted - got, (off_t)(request->offset + got));
        if (count > 0)
            got += (size_t)count;
        else if (count == 0 || errno != EINTR)
            break;
        if (got == request->bytes)
            break; /* without the byte more that `whole` asks for */
    }
    if (request->evict)
        dl2_evict_extent(fd, request->offset, request->bytes);
    if (own >= 0)
        close(own);
    return got == request->bytes;
}

static void *threads_serve(void *context)
{
    struct threads *threads = context;
    struct dl2_read_request *request;
    bool over;
    while ((request = dl2_read_ahead_next(threads->ahead, true, &over)))
        dl2_read_ahead_done(threads->ahead, request, dl2_request_read(request));
    return NULL;
}

static void threads_stop(void *state)
{
    struct threads *threads = state;
    for (unsigned i = 0; i < threads->count; i++)
        pthread_join(threads->threads[i], NULL);
    free(threads);
}

static int threads_start(struct dl2_read_ahead *ahead, void **state, struct dl2_error *error)
{
    struct threads *threads;
    DL2_TRY(DL2_NEW(&threads, 1, "threads that read ahead", error));
    threads->ahead = ahead;
    *state = threads;
    while (threads->count < THREADS &&
           pthread_create(&threads->threads[threads->count], NULL, threads_serve, threads) == 0)
        threads->count++;
    if (threads->count)
        return DL2_OK; /* fewer are slower, no more */
    free(threads);
    return dl2_error_set(error, DL2_ERR_SYSTEM, "no thread to read ahead could be started");
}

const struct dl2_read_engine dl2_read_engine_threads = {DL2_IO_THREADS, threads_start, NULL,
                                                        threads_stop};
