/*
 * One thread with an io_uring. Files of their own are opened, read and closed by one chain of
 * requests, as descriptors of the ring's own, one a slot, so that no call of ours ever waits for a
 * disk's directory or inode.
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
    SLOTS = 128,       /* runs under way at once */
    MOST_REQUESTS = 4, /* of one run */
    ENTRIES = SLOTS * MOST_REQUESTS
};

/* What a completion is of: the wake-up, or slot * 2 + is it the read? */
#define WAKE UINT64_MAX

struct slot {
    struct dl2_read_run *run; /* NULL: free */
    unsigned pending;         /* completions to come */
    bool read;                /* all that was wanted, and no more */
};

struct uring {
    struct dl2_ahead *ahead;
    struct io_uring ring;
    int event;
    uint64_t event_count; /* where its value goes */
    bool armed;           /* a read of it is under way */
    struct slot slots[SLOTS];
    unsigned free_slots[SLOTS], free_count;
    pthread_t thread;
};

static void wake(void *state)
{
    const struct uring *uring = state;
    const uint64_t one = 1;
    /* The counter can't be full, so this neither blocks nor fails. */
    if (write(uring->event, &one, sizeof one) < 0)
        return;
}

static struct io_uring_sqe *next_entry(struct uring *uring)
{
    return io_uring_get_sqe(&uring->ring);
}

/* Marks one of a chain. What is behind it runs even if it fails or falls short: files must be
 * closed. */
static void chain(struct uring *uring, struct io_uring_sqe *entry, unsigned slot, bool read,
                  bool last)
{
    io_uring_sqe_set_data64(entry, (uint64_t)slot * 2 + read);
    entry->flags |= last ? 0 : IOSQE_IO_HARDLINK;
    uring->slots[slot].pending++;
}

static void issue(struct uring *uring, struct dl2_read_run *run)
{
    const unsigned slot = uring->free_slots[--uring->free_count];
    const bool opens = run->fd < 0;
    const int fd = opens ? (int)slot : run->fd;
    const uint8_t flags = opens ? IOSQE_FIXED_FILE : 0;
    struct io_uring_sqe *entry;
    uring->slots[slot] = (struct slot){.run = run};
    if (opens) {
        entry = next_entry(uring);
        io_uring_prep_openat_direct(entry, AT_FDCWD, run->path, O_RDONLY | O_NONBLOCK, 0, slot);
        chain(uring, entry, slot, false, false);
    }
    entry = next_entry(uring);
    io_uring_prep_read(entry, fd, run->buffer, (unsigned)(run->bytes + run->whole), run->offset);
    entry->flags |= flags;
    chain(uring, entry, slot, true, !opens && !run->evict);
    if (run->evict) {
        const struct dl2_extent pages = dl2_run_pages(run->offset, run->bytes);
        entry = next_entry(uring);
        io_uring_prep_fadvise(entry, fd, pages.start, (off_t)pages.bytes, POSIX_FADV_DONTNEED);
        entry->flags |= flags;
        chain(uring, entry, slot, false, !opens);
    }
    if (opens) {
        entry = next_entry(uring);
        io_uring_prep_close_direct(entry, slot);
        chain(uring, entry, slot, false, true);
    }
}

static void arm(struct uring *uring)
{
    struct io_uring_sqe *entry = next_entry(uring);
    io_uring_prep_read(entry, uring->event, &uring->event_count, sizeof uring->event_count, 0);
    io_uring_sqe_set_data64(entry, WAKE);
    uring->armed = true;
}

/* Takes what has come. */
static unsigned reap(struct uring *uring)
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
        struct slot *slot = &uring->slots[what / 2];
        struct dl2_read_run *run = slot->run;
        if (what & 1)
            slot->read = result >= 0 && (size_t)result == run->bytes;
        if (--slot->pending)
            continue;
        slot->run = NULL;
        uring->free_slots[uring->free_count++] = (unsigned)(what / 2);
        dl2_ahead_done(uring->ahead, run, slot->read);
    }
    return count;
}

/* Negative: the ring is of no use any more. */
static int submit(struct uring *uring)
{
    const int status = io_uring_submit(&uring->ring);
    return status == -EINTR || status == -EAGAIN || status == -EBUSY ? 0 : status;
}

/*
 * Until something has come, or shortly where the kernel didn't take all requests yet. By poll():
 * tools that run one thread at a time (valgrind) know that it blocks, and let others run, but take
 * io_uring_enter() for a call that doesn't.
 */
static void wait_for_completion(struct uring *uring)
{
    struct pollfd ring = {.fd = uring->ring.ring_fd, .events = POLLIN};
    const int timeout_ms = io_uring_sq_ready(&uring->ring) ? 1 : -1;
    while (poll(&ring, 1, timeout_ms) < 0 && errno == EINTR)
        ;
}

/*
 * No known kernel gets here with requests that were accepted before. If one does: what was under
 * way is left to its takers, in memory that stays out of use, and the rest is read without the
 * ring.
 */
static void go_on_without(struct uring *uring)
{
    for (unsigned i = 0; i < SLOTS; i++)
        if (uring->slots[i].run) {
            dl2_ahead_hold(uring->ahead, uring->slots[i].run);
            dl2_ahead_done(uring->ahead, uring->slots[i].run, false);
        }
    bool over = false;
    while (!over) {
        struct dl2_read_run *run = dl2_ahead_next(uring->ahead, false, &over);
        uint64_t ignored;
        if (run)
            dl2_ahead_done(uring->ahead, run, dl2_run_read(run));
        else if (!over && read(uring->event, &ignored, sizeof ignored) < 0 && errno != EINTR)
            break;
    }
}

static void *read_runs(void *context)
{
    struct uring *uring = context;
    bool over = false;
    while (!over || uring->free_count < SLOTS || uring->armed) {
        struct dl2_read_run *run = NULL;
        if (!uring->armed && !over)
            arm(uring);
        /* A chain must be submitted in one go. */
        while (!over && uring->free_count &&
               io_uring_sq_space_left(&uring->ring) >= MOST_REQUESTS + 1 &&
               (run = dl2_ahead_next(uring->ahead, false, &over)))
            issue(uring, run);
        if (over && uring->armed)
            wake(uring); /* so that it ends, too */
        const int status = submit(uring);
        if (status >= 0 && !reap(uring) && !run) {
            wait_for_completion(uring);
            reap(uring);
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

static void stop(void *state)
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

static int start(struct dl2_ahead *ahead, void **state, struct dl2_error *error)
{
    struct uring *uring = dl2_calloc(1, sizeof *uring);
    if (!uring)
        return dl2_error_set(error, DL2_ERR_MEMORY, "out of memory for an io_uring");
    uring->ahead = ahead;
    uring->event = eventfd(0, EFD_CLOEXEC);
    if (uring->event < 0) {
        close_uring(uring);
        return dl2_error_system(error, "no eventfd for an io_uring");
    }
    while (uring->free_count < SLOTS) {
        uring->free_slots[uring->free_count] = uring->free_count;
        uring->free_count++;
    }
    int status = io_uring_queue_init(ENTRIES, &uring->ring, 0);
    if (status < 0) {
        close_uring(uring);
        return refused(status, "to make a ring", error);
    }
    status = io_uring_register_files_sparse(&uring->ring, SLOTS);
    status = status < 0 ? refused(status, "files of its own (Linux 5.19 has them)", error)
                        : check_operations(&uring->ring, error);
    *state = uring;
    if (status == DL2_OK && pthread_create(&uring->thread, NULL, read_runs, uring) != 0)
        status = dl2_error_set(error, DL2_ERR_SYSTEM, "no thread to read ahead could be started");
    if (status < 0) {
        io_uring_queue_exit(&uring->ring);
        close_uring(uring);
    }
    return status;
}

const struct dl2_engine dl2_engine_uring = {DL2_IO_URING, start, wake, stop};
