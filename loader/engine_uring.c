/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Reads with one thread and one io_uring. A file of its own is opened, read and closed by one chain
 * of operations. It uses a descriptor of the ring, one for each chain, so that no system call of
 * this thread ever waits for a disk's directory or inode.
 */
#include "loader/engine.h"

#include <errno.h>
#include <fcntl.h>
#include <liburing.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

enum {
    CHAINS = 128,       /* requests under way at once */
    MAX_OPERATIONS = 4, /* in one chain */
    ENTRIES = CHAINS * MAX_OPERATIONS
};

/* A completion's user data: WAKE, or 2 * the chain's number, plus 1 for the read. */
#define WAKE UINT64_MAX

struct chain {
    struct dl2_read_request *request; /* NULL: free */
    unsigned pending;                 /* completions to come */
    bool read;                        /* the read returned exactly the bytes that were wanted */
};

struct uring {
    struct dl2_read_ahead *ahead;
    struct io_uring ring;
    int event;
    uint64_t event_count; /* where its value goes */
    bool armed;           /* a read of it is under way */
    struct chain chains[CHAINS];
    unsigned free_chains[CHAINS], free_count;
    pthread_t thread;
};

static void uring_wake(void *state)
{
    const struct uring *uring = state;
    const uint64_t one = 1;
    /* The counter can't be full, so this neither blocks nor fails. */
    if (write(uring->event, &one, sizeof one) < 0)
        return;
}

/* Adds an operation to a chain. The operations after it run even if it fails or reads too little,
 * since files must be closed. */
static void add_operation(struct uring *uring, struct io_uring_sqe *entry, unsigned number,
                          bool read, bool last)
{
    io_uring_sqe_set_data64(entry, (uint64_t)number * 2 + read);
    entry->flags |= last ? 0 : IOSQE_IO_HARDLINK;
    uring->chains[number].pending++;
}

static void issue_request(struct uring *uring, struct dl2_read_request *request)
{
    const unsigned number = uring->free_chains[--uring->free_count];
    const bool opens = request->fd < 0;
    const int fd = opens ? (int)number : request->fd;
    const uint8_t flags = opens ? IOSQE_FIXED_FILE : 0;
    struct io_uring_sqe *entry;
    uring->chains[number] = (struct chain){.request = request};
    if (opens) {
        entry = io_uring_get_sqe(&uring->ring);
        io_uring_prep_openat_direct(entry, AT_FDCWD, request->path, O_RDONLY | O_NONBLOCK, 0,
                                    number);
        add_operation(uring, entry, number, false, false);
    }
    entry = io_uring_get_sqe(&uring->ring);
    io_uring_prep_read(entry, fd, request->buffer, (unsigned)(request->bytes + request->whole),
                       request->offset);
    entry->flags |= flags;
    add_operation(uring, entry, number, true, !opens && !request->evict);
    if (request->evict) {
        const struct dl2_extent pages = dl2_extent_of_pages(request->offset, request->bytes);
        entry = io_uring_get_sqe(&uring->ring);
        io_uring_prep_fadvise(entry, fd, pages.start, (off_t)pages.bytes, POSIX_FADV_DONTNEED);
        entry->flags |= flags;
        add_operation(uring, entry, number, false, !opens);
    }
    if (opens) {
        entry = io_uring_get_sqe(&uring->ring);
        io_uring_prep_close_direct(entry, number);
        add_operation(uring, entry, number, false, true);
    }
}

static void arm_wake_up(struct uring *uring)
{
    struct io_uring_sqe *entry = io_uring_get_sqe(&uring->ring);
    io_uring_prep_read(entry, uring->event, &uring->event_count, sizeof uring->event_count, 0);
    io_uring_sqe_set_data64(entry, WAKE);
    uring->armed = true;
}

/* Handles the completions that have come and returns their number. */
static unsigned reap_completions(struct uring *uring)
{
    struct io_uring_cqe *found;
    unsigned count = 0;
    for (; io_uring_peek_cqe(&uring->ring, &found) == 0; count++) {
        const uint64_t what = found->user_data;
        const int result = found->res;
        io_uring_cqe_seen(&uring->ring, found);
        if (what == WAKE) {
            uring->armed = false;
            continue;
        }
        struct chain *chain = &uring->chains[what / 2];
        struct dl2_read_request *request = chain->request;
        if (what & 1)
            chain->read = result >= 0 && (size_t)result == request->bytes;
        if (--chain->pending)
            continue;
        chain->request = NULL;
        uring->free_chains[uring->free_count++] = (unsigned)(what / 2);
        dl2_read_ahead_done(uring->ahead, request, chain->read);
    }
    return count;
}

/* Negative: the ring can't be used any more. */
static int submit_operations(struct uring *uring)
{
    const int status = io_uring_submit(&uring->ring);
    return status == -EINTR || status == -EAGAIN || status == -EBUSY ? 0 : status;
}

/*
 * Until something has come, or shortly where the kernel didn't take all requests yet. By poll():
 * tools that request one thread at a time (valgrind) know that it blocks, and let others request,
 * but take io_uring_enter() for a call that doesn't.
 */
static void wait_for_completion(struct uring *uring)
{
    struct pollfd ring = {.fd = uring->ring.ring_fd, .events = POLLIN};
    const int timeout_ms = io_uring_sq_ready(&uring->ring) ? 1 : -1;
    while (poll(&ring, 1, timeout_ms) < 0 && errno == EINTR)
        ;
}

/*
 * No known kernel gets here with operations that it accepted before. If one does, the requests
 * under way count as failed and keep their memory, and the rest is read without the ring.
 */
static void go_on_without(struct uring *uring)
{
    for (unsigned i = 0; i < CHAINS; i++)
        if (uring->chains[i].request) {
            dl2_read_ahead_hold(uring->ahead, uring->chains[i].request);
            dl2_read_ahead_done(uring->ahead, uring->chains[i].request, false);
        }
    bool over = false;
    while (!over) {
        struct dl2_read_request *request = dl2_read_ahead_next(uring->ahead, false, &over);
        uint64_t ignored;
        if (request)
            dl2_read_ahead_done(uring->ahead, request, dl2_request_read(request));
        else if (!over && read(uring->event, &ignored, sizeof ignored) < 0 && errno != EINTR)
            break;
    }
}

static void *uring_serve(void *context)
{
    struct uring *uring = context;
    bool over = false;
    while (!over || uring->free_count < CHAINS || uring->armed) {
        struct dl2_read_request *request = NULL;
        if (!uring->armed && !over)
            arm_wake_up(uring);
        /* A chain must be submitted in one go. */
        while (!over && uring->free_count &&
               io_uring_sq_space_left(&uring->ring) >= MAX_OPERATIONS + 1 &&
               (request = dl2_read_ahead_next(uring->ahead, false, &over)))
            issue_request(uring, request);
        if (over && uring->armed)
            uring_wake(uring); /* so that it ends, too */
        const int status = submit_operations(uring);
        if (status >= 0 && !reap_completions(uring) && !request) {
            wait_for_completion(uring);
            reap_completions(uring);
        }
        if (status < 0) {
            go_on_without(uring);
            break;
        }
    }
    return NULL;
}

static void close_uring(struct uring *uring)
{
    if (uring->event >= 0)
        close(uring->event);
    free(uring);
}

static void uring_stop(void *state)
{
    struct uring *uring = state;
    pthread_join(uring->thread, NULL);
    io_uring_queue_exit(&uring->ring);
    close_uring(uring);
}

static int refused(int status, const char *what, struct dl2_error *error)
{
    return dl2_error_set(error, DL2_ERR_UNSUPPORTED,
                         "reading by io_uring: the kernel refuses %s: %s; --io=threads works "
                         "everywhere",
                         what, strerror(-status));
}

static int check_operations(struct io_uring *ring, struct dl2_error *error)
{
    static const int needed[] = {IORING_OP_OPENAT, IORING_OP_READ, IORING_OP_CLOSE,
                                 IORING_OP_FADVISE};
    struct io_uring_probe *probe = io_uring_get_probe_ring(ring);
    bool all = probe != NULL;
    for (size_t i = 0; all && i < sizeof needed / sizeof *needed; i++)
        all = io_uring_opcode_supported(probe, needed[i]);
    io_uring_free_probe(probe);
    return all ? DL2_OK : refused(-ENOSYS, "to open, read and close files", error);
}

static int uring_start(struct dl2_read_ahead *ahead, void **state, struct dl2_error *error)
{
    struct uring *uring;
    DL2_TRY(DL2_NEW(&uring, 1, "an io_uring", error));
    uring->ahead = ahead;
    uring->event = eventfd(0, EFD_CLOEXEC);
    if (uring->event < 0) {
        close_uring(uring);
        return dl2_error_system(error, "no eventfd for an io_uring");
    }
    while (uring->free_count < CHAINS) {
        uring->free_chains[uring->free_count] = uring->free_count;
        uring->free_count++;
    }
    int status = io_uring_queue_init(ENTRIES, &uring->ring, 0);
    if (status < 0) {
        close_uring(uring);
        return refused(status, "to make a ring", error);
    }
    status = io_uring_register_files_sparse(&uring->ring, CHAINS);
    status = status < 0 ? refused(status, "files of its own (Linux 5.19 has them)", error)
                        : check_operations(&uring->ring, error);
    *state = uring;
    if (status == DL2_OK && pthread_create(&uring->thread, NULL, uring_serve, uring) != 0)
        status = dl2_error_set(error, DL2_ERR_SYSTEM, "no thread to read ahead could be started");
    if (status < 0) {
        io_uring_queue_exit(&uring->ring);
        close_uring(uring);
    }
    return status;
}

const struct dl2_read_engine dl2_read_engine_uring = {DL2_IO_URING, uring_start, uring_wake,
                                                      uring_stop};
