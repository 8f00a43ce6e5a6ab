/* A few threads that read with plain system calls. */
#include "loader/engine.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

/* So many requests a disk has at once; its queue is what makes it fast. */
#define THREADS 8

struct threads {
    struct dl2_ahead *ahead;
    pthread_t threads[THREADS];
    unsigned count;
};

struct dl2_extent dl2_run_pages(uint64_t offset, uint64_t bytes)
{
    const uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE);
    const uint64_t start = offset / page * page;
    const uint64_t end = (offset + bytes + page - 1) / page * page;
    return (struct dl2_extent){start, end - start};
}

void dl2_run_evict(int fd, uint64_t offset, uint64_t bytes)
{
    const struct dl2_extent pages = dl2_run_pages(offset, bytes);
    posix_fadvise(fd, (off_t)pages.start, (off_t)pages.bytes, POSIX_FADV_DONTNEED);
}

bool dl2_run_read(const struct dl2_read_run *run)
{
    const int own = run->fd >= 0 ? -1 : open(run->path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    const int fd = run->fd >= 0 ? run->fd : own;
    if (fd < 0)
        return false;
    const size_t wanted = run->bytes + run->whole;
    size_t got = 0;
    while (got < wanted) {
        const ssize_t count =
            pread(fd, run->buffer + got, wanted - got, (off_t)(run->offset + got));
        if (count > 0)
            got += (size_t)count;
        else if (count == 0 || errno != EINTR)
            break;
        if (got == run->bytes)
            break; /* and no more, where one more was asked for */
    }
    if (run->evict)
        dl2_run_evict(fd, run->offset, run->bytes);
    if (own >= 0)
        close(own);
    return got == run->bytes;
}

static void *read_runs(void *context)
{
    struct threads *threads = context;
    struct dl2_read_run *run;
    bool over;
    while ((run = dl2_ahead_next(threads->ahead, true, &over)))
        dl2_ahead_done(threads->ahead, run, dl2_run_read(run));
    return NULL;
}

static void stop(void *state)
{
    struct threads *threads = state;
    for (unsigned i = 0; i < threads->count; i++)
        pthread_join(threads->threads[i], NULL);
    free(threads);
}

static int start(struct dl2_ahead *ahead, void **state, struct dl2_error *error)
{
    struct threads *threads = dl2_calloc(1, sizeof *threads);
    if (!threads)
        return dl2_error_set(error, DL2_ERR_MEMORY, "out of memory for threads that read ahead");
    threads->ahead = ahead;
    *state = threads;
    while (threads->count < THREADS &&
           pthread_create(&threads->threads[threads->count], NULL, read_runs, threads) == 0)
        threads->count++;
    if (threads->count)
        return DL2_OK; /* fewer are slower, no more */
    free(threads);
    return dl2_error_set(error, DL2_ERR_SYSTEM, "no thread to read ahead could be started");
}

const struct dl2_engine dl2_engine_threads = {DL2_IO_THREADS, start, NULL, stop};
