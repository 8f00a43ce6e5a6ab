/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The positions of the order, of clips those of their frames. A window of them is planned, being
 * read or waiting to be taken:
 *
 *     0 ...... oldest ............ high ............... next ......... high + window
 *       over     taken, or late      read ahead          is planned next
 *
 * `high` follows the last position that was taken. Each planned position has an entry in a ring. An
 * entry that is still there SLACK positions behind `high` won't be taken any more and is dropped.
 *
 * Planning goes in batches of at least a quarter of the window. Samples of one batch that lie near
 * each other in one file are read by one request. In a quasi-random order (loader/sampler.h)
 * neighbors are shuffled among each other, but they are in the same batch. Requests read into an
 * arena that is mapped once; a sample that finds no room there is left to its taker. So is a sample
 * that is being planned when its taker comes; a request that waits in the queue is read by the
 * taker itself. Hence nobody waits for anything but a read.
 *
 * One mutex guards everything; reads go on outside it.
 */
#include "loader/read_ahead.h"

#include "config.h"
#include "loader/engine.h"
#include "remote/remote.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#define NOWHERE       SIZE_MAX
#define DEFAULT_AHEAD 256
#define MAX_AHEAD     65536
#define DEFAULT_BYTES ((size_t)64 << 20)
#define REMOTE_BYTES  ((size_t)256 << 20) /* the same from a server, whose latency is longer */
#define SLACK         256 /* positions that are under way in the pipeline at once, and more */

#define PAGE        ((size_t)4096) /* of the arena */
#define MAX_REQUEST ((size_t)1 << 20)
#define MAX_GAP     ((uint64_t)32 << 10) /* bytes that are read and thrown away to save a request */
#define WORD_BITS   64

/*
 * DL2_IO_AUTO. A read from the page cache takes a few microseconds, and handing its bytes to
 * another thread costs as much again, so the worker that needs them reads best itself. A read is
 * late by the time that it took beyond what the page cache would have taken, at most LATE_MAX, so
 * that one read that lost the processor for a while changes nothing. Read-ahead goes on when the
 * mean over PERIOD_ON reads passes LATE_ON, and off when the mean over PERIOD_OFF reads falls below
 * LATE_OFF. Only direct reads count: how long a read ahead took says more about the queue than
 * about the disk. So while read-ahead is on, one position in PROBE is left to its taker.
 */
#define WARM_SECONDS          40e-6
#define WARM_BYTES_PER_SECOND 2e9
#define LATE_MAX              1e-3
#define LATE_ON               20e-6
#define LATE_OFF              10e-6
#define PERIOD_ON             64
#define PERIOD_OFF            16
#define PROBE                 32

/* Ways to read ahead, the best first. */
static const struct dl2_read_engine *const engines[] = {
#ifdef HAVE_LIBURING
    &dl2_read_engine_uring,
#endif
    &dl2_read_engine_threads,
};

#define ENGINE_COUNT (sizeof engines / sizeof engines[0])

/* What is known of a position from when it is planned until it is taken or dropped. */
struct entry {
    size_t position;                  /* NOWHERE: the entry is not in use */
    struct dl2_read_request *request; /* NULL: the taker reads the sample itself */
    struct dl2_location at;           /* of the bytes that are needed */
    const char *shard; /* at.path, the same pointer for all of a shard; NULL: a file of its own */
    struct dl2_sample_plan plan;
};

struct dl2_read_ahead {
    const struct dl2_planner *planner;
    const struct dl2_cache *cached;
    bool drop_behind;
    bool own_files;            /* each sample is a file: not a packed dataset */
    bool batches;              /* samples do not lie in files, and are read in batches */
    bool joined;               /* several datasets, perhaps of several containers */
    struct dl2_remote *remote; /* where samples lie; NULL: on this machine */
    bool all_remote;           /* all of them */
    const struct dl2_read_engine *engine;
    void *engine_state;

    pthread_mutex_t mutex;
    pthread_cond_t work; /* for engines that wait in dl2_read_ahead_next() */
    bool sleeping;       /* the engine waits to be woken */
    bool closing;

    const uint32_t *order;
    size_t count, oldest, high, next;
    struct entry *entries;
    unsigned frames;            /* of each sample: positions are of frames; of a video 1 */
    size_t window, ring, slack; /* positions ahead; entries; SLACK, of frames */
    void **sorted;              /* [window] pointers to entries */

    struct dl2_read_request *requests;
    uint32_t *samples;   /* of the requests, DL2_DATASET_BATCH each; NULL: no batches */
    void **new_requests; /* pointers to requests */
    size_t request_count;
    struct dl2_read_request *free_requests, *first, *last; /* the queue */

    uint8_t *arena;
    uint64_t *used; /* a bit per page */
    size_t pages, pages_free, pages_touched;

    bool is_auto;  /* DL2_IO_AUTO: the next three change as LATE_ON says */
    bool wanted;   /* read ahead now */
    double late;   /* seconds, summed over the period's direct reads */
    unsigned seen; /* direct reads in this period */

    struct dl2_fetch_stats stats; /* bytes_read and requests */
};

/* ---- the arena: first fit, which reuses memory that is still in the processor's caches ---- */

static bool is_used(const struct dl2_read_ahead *ahead, size_t page)
{
    return ahead->used[page / WORD_BITS] >> page % WORD_BITS & 1;
}

static void set_used(struct dl2_read_ahead *ahead, size_t page, size_t count, bool used)
{
    for (size_t i = page; i < page + count; i++) {
        const uint64_t bit = (uint64_t)1 << i % WORD_BITS;
        if (used)
            ahead->used[i / WORD_BITS] |= bit;
        else
            ahead->used[i / WORD_BITS] &= ~bit;
    }
}

static bool arena_acquire(struct dl2_read_ahead *ahead, size_t bytes,
                          struct dl2_read_request *request)
{
    const size_t pages = (bytes + PAGE - 1) / PAGE;
    size_t start = 0;
    if (pages > ahead->pages_free)
        return false;
    for (size_t page = 0; page < ahead->pages;) {
        if (page % WORD_BITS == 0 && ahead->used[page / WORD_BITS] == UINT64_MAX) {
            start = page += WORD_BITS;
        } else if (is_used(ahead, page)) {
            start = ++page;
        } else if (++page - start == pages) {
            set_used(ahead, start, pages, true);
            ahead->pages_free -= pages;
            if (page > ahead->pages_touched)
                ahead->pages_touched = page;
            request->page = start;
            request->pages = pages;
            request->buffer = ahead->arena + start * PAGE;
            return true;
        }
    }
    return false;
}

/* ---- requests; all with the mutex held ---- */

static void queue_append(struct dl2_read_ahead *ahead, struct dl2_read_request *request)
{
    request->state = DL2_REQUEST_QUEUED;
    request->after = NULL;
    request->before = ahead->last;
    *(ahead->last ? &ahead->last->after : &ahead->first) = request;
    ahead->last = request;
}

static void queue_remove(struct dl2_read_ahead *ahead, struct dl2_read_request *request)
{
    *(request->before ? &request->before->after : &ahead->first) = request->after;
    *(request->after ? &request->after->before : &ahead->last) = request->before;
    request->before = request->after = NULL;
}

static void release_request(struct dl2_read_ahead *ahead, struct dl2_read_request *request)
{
    if (--request->users)
        return;
    if (request->state == DL2_REQUEST_QUEUED)
        queue_remove(ahead, request);
    set_used(ahead, request->page, request->pages, false);
    ahead->pages_free += request->pages;
    request->state = DL2_REQUEST_FREE;
    request->after = ahead->free_requests;
    ahead->free_requests = request;
}

static void begin_read(struct dl2_read_ahead *ahead, struct dl2_read_request *request)
{
    queue_remove(ahead, request);
    request->state = DL2_REQUEST_UNDER_WAY;
    request->users++;
    ahead->stats.requests++;
}

static void end_read(struct dl2_read_ahead *ahead, struct dl2_read_request *request, bool read)
{
    request->state = read ? DL2_REQUEST_READ : DL2_REQUEST_FAILED;
    if (read)
        ahead->stats.bytes_read += request->bytes;
    if (request->users > 1)
        pthread_cond_broadcast(&request->done);
    release_request(ahead, request);
}

/* ---- planning; all with the mutex held ---- */

static void drop_entry(struct dl2_read_ahead *ahead, struct entry *entry)
{
    entry->position = NOWHERE;
    if (entry->request)
        release_request(ahead, entry->request);
}

/* Moves `oldest` past positions that were taken, and past those that won't be any more. */
static void forget_old(struct dl2_read_ahead *ahead)
{
    for (; ahead->oldest < ahead->next; ahead->oldest++) {
        struct entry *entry = &ahead->entries[ahead->oldest % ahead->ring];
        if (entry->position != ahead->oldest)
            continue;
        if (ahead->oldest + ahead->slack >= ahead->high)
            break;
        drop_entry(ahead, entry);
    }
    if (ahead->next < ahead->high) { /* takers were faster */
        if (ahead->oldest == ahead->next)
            ahead->oldest = ahead->high;
        ahead->next = ahead->high;
    }
}

/* Positions that may be planned now; 0 where it is better to wait for a larger batch. */
static size_t room_to_plan(const struct dl2_read_ahead *ahead)
{
    const size_t left = ahead->count - (ahead->high < ahead->count ? ahead->high : ahead->count);
    const size_t end = ahead->high + (left < ahead->window ? left : ahead->window);
    const size_t next = ahead->next > ahead->high ? ahead->next : ahead->high;
    const size_t room = end > next ? end - next : 0;
    if (!ahead->wanted || ahead->closing)
        return 0;
    const bool last = end == ahead->count;
    if ((room < ahead->window / 4 && !last) || ahead->pages_free < ahead->pages / 4)
        return 0;
    return room;
}

/* Is a position left to its taker, whatever its plan? */
static bool is_left(const struct dl2_read_ahead *ahead, size_t position)
{
    return (ahead->is_auto && position % PROBE == PROBE - 1) ||
           (ahead->cached && ahead->frames == 1 &&
            dl2_cache_find(ahead->cached, ahead->order[position]));
}

/* Is a frame of a clip in the cache, or the same as the frame before? */
static bool needs_no_read(const struct dl2_read_ahead *ahead, const struct dl2_sample_plan *plan)
{
    return ahead->planner->config->frames &&
           ((ahead->cached && dl2_cache_find(ahead->cached, plan->image)) ||
            dl2_plan_repeats(ahead->planner, plan, plan->frame));
}

/* The entry of a position, with the sample's plan, which may have been made in an earlier batch. */
static struct entry *plan_entry(struct dl2_read_ahead *ahead, size_t position)
{
    struct entry *entry = &ahead->entries[position % ahead->ring];
    if (entry->position != position) {
        entry->position = position;
        entry->request = NULL;
        entry->plan.index = ahead->order[position / ahead->frames];
        entry->plan.frame = (unsigned)(position % ahead->frames);
        entry->plan.epoch_position =
            dl2_plan_epoch_position(ahead->planner->epoch_positions, position / ahead->frames);
        dl2_plan_sample(ahead->planner, &entry->plan);
    } else {
        dl2_plan_find_decoded(ahead->planner, &entry->plan);
    }
    return entry;
}

static bool locate_entry(const struct dl2_read_ahead *ahead, struct entry *entry)
{
    const struct dl2_dataset *dataset = ahead->planner->dataset;
    const struct dl2_sample_plan *plan = &entry->plan;
    if (ahead->batches) {
        entry->at = (struct dl2_location){.fd = -1};
        return dl2_dataset_in_batches(dataset, plan->image, &entry->at.bytes);
    }
    return plan->slices.count
               ? dl2_dataset_locate_slices(dataset, plan->image, plan->slices, &entry->at)
               : dl2_dataset_locate(dataset, plan->image, &entry->at);
}

/* Does each sample have a request of its own? A cache in a folder keeps samples, not neighbors. */
static bool reads_alone(const struct dl2_read_ahead *ahead)
{
    return ahead->own_files || ahead->batches ||
           (ahead->remote && dl2_remote_has_cache(ahead->remote));
}

/* Collects the next samples that must be read, as long as there is room; moves `next` past them. */
static size_t gather_entries(struct dl2_read_ahead *ahead, size_t positions)
{
    size_t count = 0, pages = 0;
    for (; positions; positions--, ahead->next++) {
        if (is_left(ahead, ahead->next))
            continue;
        struct entry *entry = plan_entry(ahead, ahead->next);
        if (entry->plan.decoded || needs_no_read(ahead, &entry->plan) ||
            !locate_entry(ahead, entry) || entry->at.bytes > ahead->pages * PAGE / 4)
            continue;
        pages += (size_t)entry->at.bytes / PAGE + 1;
        if (pages > ahead->pages_free)
            break;
        entry->shard = reads_alone(ahead) ? NULL : entry->at.path;
        ahead->sorted[count++] = entry;
    }
    return count;
}

/* qsort() would allocate. */
static void heap_sort(void **items, size_t count, bool (*is_before)(const void *, const void *))
{
    for (size_t heaped = count / 2, end = count; end > 1;) {
        void *item;
        if (heaped) {
            item = items[--heaped];
        } else {
            item = items[--end];
            items[end] = items[0];
        }
        size_t at = heaped;
        for (size_t child; (child = 2 * at + 1) < end; at = child) {
            if (child + 1 < end && is_before(items[child], items[child + 1]))
                child++;
            if (!is_before(item, items[child]))
                break;
            items[at] = items[child];
        }
        items[at] = item;
    }
}

/* Sorts by offset within a shard. Files of their own stay in the order of their positions: where
 * they lie on the disk is not known. */
static bool entry_is_before(const void *left, const void *right)
{
    const struct entry *a = left, *b = right;
    if (a->shard != b->shard)
        return (uintptr_t)a->shard < (uintptr_t)b->shard;
    if (a->shard && a->at.offset != b->at.offset)
        return a->at.offset < b->at.offset;
    return a->position < b->position;
}

static bool request_is_before(const void *left, const void *right)
{
    return ((const struct dl2_read_request *)left)->first <
           ((const struct dl2_read_request *)right)->first;
}

/* How many of `count` sorted entries one request reads; *bytes is the request's length. */
static size_t count_joined(void *const *entries, size_t count, uint64_t *bytes)
{
    const struct entry *first = entries[0];
    const uint64_t start = first->at.offset;
    uint64_t end = start + first->at.bytes;
    size_t joined = 1;
    for (; first->shard && joined < count; joined++) {
        const struct entry *entry = entries[joined];
        const uint64_t its_end = entry->at.offset + entry->at.bytes;
        if (entry->shard != first->shard || entry->at.offset > end + MAX_GAP ||
            its_end > start + MAX_REQUEST)
            break;
        if (its_end > end)
            end = its_end;
    }
    *bytes = end - start;
    return joined;
}

/* The same for a batch, in which each sample's bytes follow the others'. */
static size_t count_batch(void *const *entries, size_t count, uint64_t *bytes)
{
    size_t joined = 0;
    for (*bytes = 0; joined < count && joined < DL2_DATASET_BATCH; joined++) {
        struct entry *entry = entries[joined];
        if (joined && *bytes + entry->at.bytes > MAX_REQUEST)
            break;
        entry->at.offset = *bytes;
        *bytes += entry->at.bytes;
    }
    return joined;
}

static struct dl2_read_request *make_request(struct dl2_read_ahead *ahead, void *const *entries,
                                             size_t count, uint64_t bytes)
{
    struct dl2_read_request *request = ahead->free_requests;
    if (!request || !arena_acquire(ahead, (size_t)bytes + 1, request))
        return NULL;
    ahead->free_requests = request->after;
    const struct dl2_location *at = &((const struct entry *)entries[0])->at;
    request->path = at->path;
    request->fd = at->fd;
    request->remote = at->remote;
    request->start = at->start;
    request->offset = at->offset;
    request->bytes = (size_t)bytes;
    /* What begins a shard that is not open looks like a file, and is read again by its taker. */
    request->whole = ahead->own_files || (ahead->joined && at->fd < 0 && !at->offset);
    request->evict = ahead->drop_behind;
    request->users = (unsigned)count;
    request->count = count;
    request->first = NOWHERE;
    for (size_t i = 0; i < count; i++) {
        struct entry *entry = entries[i];
        entry->request = request;
        if (request->samples)
            request->samples[i] = entry->plan.image;
        if (entry->position < request->first)
            request->first = entry->position;
    }
    return request;
}

static void plan_reads(struct dl2_read_ahead *ahead)
{
    forget_old(ahead);
    const size_t positions = room_to_plan(ahead);
    if (!positions)
        return;
    const size_t count = gather_entries(ahead, positions);
    heap_sort(ahead->sorted, count, entry_is_before);
    size_t requests = 0;
    for (size_t i = 0; i < count;) {
        uint64_t bytes;
        const size_t joined = ahead->batches ? count_batch(&ahead->sorted[i], count - i, &bytes)
                                             : count_joined(&ahead->sorted[i], count - i, &bytes);
        struct dl2_read_request *request = make_request(ahead, &ahead->sorted[i], joined, bytes);
        if (request)
            ahead->new_requests[requests++] = request;
        i += joined;
    }
    heap_sort(ahead->new_requests, requests, request_is_before);
    for (size_t i = 0; i < requests; i++)
        queue_append(ahead, ahead->new_requests[i]);
}

static void wake_engine(struct dl2_read_ahead *ahead)
{
    if (!ahead->sleeping)
        return;
    ahead->sleeping = false;
    if (ahead->engine->wake)
        ahead->engine->wake(ahead->engine_state);
    else
        pthread_cond_broadcast(&ahead->work);
}

static void wake_engine_if_due(struct dl2_read_ahead *ahead)
{
    if (ahead->sleeping && room_to_plan(ahead))
        wake_engine(ahead);
}

/* ---- for engines ---- */

struct dl2_read_request *dl2_read_ahead_next(struct dl2_read_ahead *ahead, bool wait, bool *over)
{
    pthread_mutex_lock(&ahead->mutex);
    for (;;) {
        if (!ahead->first)
            plan_reads(ahead);
        if (ahead->first || ahead->closing)
            break;
        ahead->sleeping = true;
        if (!wait)
            break;
        pthread_cond_wait(&ahead->work, &ahead->mutex);
    }
    *over = ahead->closing;
    struct dl2_read_request *request = ahead->closing ? NULL : ahead->first;
    if (request) {
        begin_read(ahead, request);
        if (ahead->first && !ahead->engine->wake)
            wake_engine(ahead); /* there is more for the others */
    }
    pthread_mutex_unlock(&ahead->mutex);
    return request;
}

void dl2_read_ahead_done(struct dl2_read_ahead *ahead, struct dl2_read_request *request, bool read)
{
    pthread_mutex_lock(&ahead->mutex);
    end_read(ahead, request, read);
    pthread_mutex_unlock(&ahead->mutex);
}

void dl2_read_ahead_hold(struct dl2_read_ahead *ahead, struct dl2_read_request *request)
{
    pthread_mutex_lock(&ahead->mutex);
    request->users++;
    pthread_mutex_unlock(&ahead->mutex);
}

unsigned dl2_read_ahead_requests(const struct dl2_read_ahead *ahead)
{
    return dl2_remote_requests(ahead->remote);
}

/* ---- for loader/fetch.c ---- */

bool dl2_read_ahead_acquire(struct dl2_read_ahead *ahead, size_t position, uint32_t index,
                            struct dl2_sample_plan *plan, struct dl2_fetched *fetched)
{
    pthread_mutex_lock(&ahead->mutex);
    struct entry *entry = &ahead->entries[position % ahead->ring];
    struct dl2_read_request *request = NULL;
    if (position < ahead->count && position >= ahead->high)
        ahead->high = position + 1;
    const bool planned = entry->position == position && entry->plan.index == index;
    if (planned) {
        entry->position = NOWHERE;
        *plan = entry->plan;
        dl2_plan_find_decoded(ahead->planner, plan);
        request = entry->request; /* the entry's use of it is the taker's now */
    }
    if (request && plan->decoded) {
        release_request(ahead, request);
        request = NULL;
    }
    if (request) {
        fetched->data = request->buffer + (entry->at.offset - request->offset);
        fetched->size = (size_t)entry->at.bytes;
    }
    wake_engine_if_due(ahead);
    if (request && request->state == DL2_REQUEST_QUEUED) {
        begin_read(ahead, request);
        pthread_mutex_unlock(&ahead->mutex);
        const bool read = dl2_request_read(request);
        pthread_mutex_lock(&ahead->mutex);
        end_read(ahead, request, read);
    }
    while (request && request->state == DL2_REQUEST_UNDER_WAY)
        pthread_cond_wait(&request->done, &ahead->mutex);
    if (request && request->state == DL2_REQUEST_FAILED) {
        release_request(ahead, request);
        request = NULL;
    }
    pthread_mutex_unlock(&ahead->mutex);
    fetched->request = request;
    return planned;
}

void dl2_read_ahead_release(struct dl2_read_ahead *ahead, struct dl2_read_request *request)
{
    pthread_mutex_lock(&ahead->mutex);
    release_request(ahead, request);
    wake_engine_if_due(ahead);
    pthread_mutex_unlock(&ahead->mutex);
}

/* Turns read-ahead on or off; see LATE_ON. */
void dl2_read_ahead_observe(struct dl2_read_ahead *ahead, double seconds, size_t bytes)
{
    const double late = seconds - WARM_SECONDS - (double)bytes / WARM_BYTES_PER_SECOND;
    if (!ahead->is_auto)
        return;
    pthread_mutex_lock(&ahead->mutex);
    ahead->late += late < 0 ? 0 : late > LATE_MAX ? LATE_MAX : late;
    if (++ahead->seen >= (ahead->wanted ? PERIOD_OFF : PERIOD_ON)) {
        ahead->wanted = ahead->late > ahead->seen * (ahead->wanted ? LATE_OFF : LATE_ON);
        ahead->seen = 0;
        ahead->late = 0;
        wake_engine_if_due(ahead);
    }
    pthread_mutex_unlock(&ahead->mutex);
}

void dl2_read_ahead_start(struct dl2_read_ahead *ahead, const uint32_t *order, size_t count)
{
    pthread_mutex_lock(&ahead->mutex);
    for (size_t i = 0; i < ahead->ring; i++)
        if (ahead->entries[i].position != NOWHERE)
            drop_entry(ahead, &ahead->entries[i]);
    ahead->order = order;
    ahead->count = count * ahead->frames;
    ahead->oldest = ahead->high = ahead->next = 0;
    wake_engine_if_due(ahead);
    pthread_mutex_unlock(&ahead->mutex);
}

void dl2_read_ahead_get_stats(struct dl2_read_ahead *ahead, struct dl2_fetch_stats *stats)
{
    pthread_mutex_lock(&ahead->mutex);
    *stats = ahead->stats;
    stats->memory =
        sizeof *ahead + ahead->ring * sizeof *ahead->entries +
        ahead->window * sizeof *ahead->sorted +
        ahead->request_count * (sizeof *ahead->requests + sizeof *ahead->new_requests) +
        (ahead->batches ? DL2_DATASET_BATCH * sizeof *ahead->samples : 0) * ahead->request_count +
        ahead->pages / 8 + ahead->pages_touched * PAGE;
    pthread_mutex_unlock(&ahead->mutex);
}

/* ---- making and unmaking ---- */

static bool has_own_files(const struct dl2_dataset *dataset)
{
    struct dl2_location at;
    struct dl2_sample sample;
    if (!dl2_dataset_count(dataset) || !dl2_dataset_locate(dataset, 0, &at))
        return false;
    dl2_dataset_image(dataset, 0, &sample);
    return !strcmp(sample.path, at.path);
}

/* The first image says it of all, but for joined datasets. */
static void find_remote(struct dl2_read_ahead *ahead)
{
    const struct dl2_dataset *dataset = ahead->planner->dataset;
    struct dl2_location at;
    ahead->all_remote = true;
    for (size_t i = 0; i < (ahead->joined ? dl2_dataset_image_count(dataset) : 1); i++)
        if (dl2_dataset_count(dataset) && dl2_dataset_locate(dataset, i, &at) && at.remote)
            ahead->remote = at.remote->remote;
        else
            ahead->all_remote = false;
}

static bool reads_batches(const struct dl2_dataset *dataset)
{
    uint64_t bytes;
    for (size_t i = 0; i < dl2_dataset_image_count(dataset); i++)
        if (dl2_dataset_in_batches(dataset, i, &bytes))
            return true;
    return false;
}

/* Room for the numbers of each request's samples. */
static int prepare_batches(struct dl2_read_ahead *ahead, struct dl2_error *error)
{
    size_t numbers;
    ahead->batches = reads_batches(ahead->planner->dataset);
    if (!ahead->batches)
        return DL2_OK;
    if (!dl2_size_mul(ahead->request_count, DL2_DATASET_BATCH, &numbers) ||
        !(ahead->samples = dl2_calloc(numbers, sizeof *ahead->samples)))
        return dl2_error_memory(error, "reading %zu samples ahead", ahead->window);
    for (size_t i = 0; i < ahead->request_count; i++) {
        ahead->requests[i].samples = ahead->samples + i * DL2_DATASET_BATCH;
        ahead->requests[i].dataset = ahead->planner->dataset;
    }
    return DL2_OK;
}

/* Frames of so many clips, of whole clips at most MAX_AHEAD. */
static size_t frames_of(size_t clips, unsigned frames)
{
    const size_t most = MAX_AHEAD / frames;
    return (clips < most ? clips : most > 0 ? most : 1) * frames;
}

static int allocate_buffers(struct dl2_read_ahead *ahead, const struct dl2_fetch_config *config,
                            struct dl2_error *error)
{
    const uint64_t bytes = config->ahead_bytes ? config->ahead_bytes
                           : ahead->remote     ? REMOTE_BYTES
                                               : DEFAULT_BYTES;
    ahead->window = config->ahead ? config->ahead : DEFAULT_AHEAD;
    if (ahead->window > MAX_AHEAD)
        return dl2_error_set(error, DL2_ERR_ARGUMENT,
                             "%zu samples can't be read ahead, %d at the most", ahead->window,
                             MAX_AHEAD);
    ahead->frames = dl2_plan_reads(ahead->planner);
    ahead->window = frames_of(ahead->window, ahead->frames);
    ahead->slack = frames_of(SLACK, ahead->frames);
    ahead->ring = ahead->window + ahead->slack + 1;
    ahead->request_count = ahead->ring;
    ahead->pages = ahead->pages_free =
        (size_t)(bytes < SIZE_MAX / 2 ? bytes : SIZE_MAX / 2) / PAGE + (bytes < PAGE);
    DL2_TRY(DL2_NEW(&ahead->entries, ahead->ring, "reading ahead", error));
    DL2_TRY(DL2_NEW(&ahead->sorted, ahead->window, "reading ahead", error));
    DL2_TRY(DL2_NEW(&ahead->requests, ahead->request_count, "reading ahead", error));
    DL2_TRY(DL2_NEW(&ahead->new_requests, ahead->request_count, "reading ahead", error));
    DL2_TRY(DL2_NEW(&ahead->used, ahead->pages / WORD_BITS + 1, "reading ahead", error));
    void *arena = mmap(NULL, ahead->pages * PAGE, PROT_READ | PROT_WRITE,
                       MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (arena == MAP_FAILED)
        return dl2_error_memory(error, "reading ahead");
    ahead->arena = arena;
    for (size_t i = 0; i < ahead->ring; i++)
        ahead->entries[i].position = NOWHERE;
    for (size_t i = ahead->request_count; i-- > 0;) {
        struct dl2_read_request *request = &ahead->requests[i];
        pthread_cond_init(&request->done, NULL);
        request->after = ahead->free_requests;
        ahead->free_requests = request;
    }
    return DL2_OK;
}

/* A server is always slower than the page cache, and io_uring reads files alone. */
static int start_for_server(struct dl2_read_ahead *ahead, enum dl2_io io, struct dl2_error *error)
{
    if (io == DL2_IO_URING)
        return dl2_error_set(error, DL2_ERR_UNSUPPORTED, "reading by io_uring: %s",
                             ahead->batches
                                 ? "a database is read by threads"
                                 : "what lies behind a server is read by requests; --io=auto has "
                                   "many under way at once");
    ahead->is_auto = false;
    ahead->wanted = true;
    ahead->engine = ahead->batches || !ahead->all_remote || io == DL2_IO_THREADS
                        ? &dl2_read_engine_threads
                        : &dl2_read_engine_remote;
    return ahead->engine->start(ahead, &ahead->engine_state, error);
}

static int start_engine(struct dl2_read_ahead *ahead, enum dl2_io io, struct dl2_error *error)
{
    if (ahead->batches || ahead->remote)
        return start_for_server(ahead, io, error);
    for (size_t i = 0; i < ENGINE_COUNT; i++) {
        const bool last = i + 1 == ENGINE_COUNT;
        if (io != DL2_IO_AUTO && engines[i]->io != io)
            continue;
        ahead->engine = engines[i];
        const int status = engines[i]->start(ahead, &ahead->engine_state,
                                             io == DL2_IO_AUTO && !last ? NULL : error);
        if (status == DL2_OK || io != DL2_IO_AUTO || last)
            return status;
    }
    return dl2_error_set(error, DL2_ERR_UNSUPPORTED,
                         "reading by io_uring: built without liburing (Debian: liburing-dev)");
}

static void free_ahead(struct dl2_read_ahead *ahead)
{
    for (size_t i = 0; ahead->requests && i < ahead->request_count; i++)
        pthread_cond_destroy(&ahead->requests[i].done);
    if (ahead->arena)
        munmap(ahead->arena, ahead->pages * PAGE);
    free(ahead->entries);
    free(ahead->sorted);
    free(ahead->requests);
    free(ahead->samples);
    free(ahead->new_requests);
    free(ahead->used);
    pthread_cond_destroy(&ahead->work);
    pthread_mutex_destroy(&ahead->mutex);
    free(ahead);
}

int dl2_read_ahead_create(const struct dl2_planner *planner, const struct dl2_fetch_config *config,
                          const struct dl2_cache *cached, struct dl2_read_ahead **out,
                          struct dl2_error *error)
{
    *out = NULL;
    struct dl2_read_ahead *ahead;
    DL2_TRY(DL2_NEW(&ahead, 1, "reading ahead", error));
    pthread_mutex_init(&ahead->mutex, NULL);
    pthread_cond_init(&ahead->work, NULL);
    ahead->planner = planner;
    ahead->cached = cached;
    ahead->joined = dl2_dataset_members(planner->dataset) > 1;
    ahead->own_files = !ahead->joined && has_own_files(planner->dataset);
    find_remote(ahead);
    ahead->drop_behind = config->drop_behind;
    ahead->is_auto = config->io == DL2_IO_AUTO;
    ahead->wanted = !ahead->is_auto;
    int status = allocate_buffers(ahead, config, error);
    if (status == DL2_OK)
        status = prepare_batches(ahead, error);
    if (status == DL2_OK)
        status = start_engine(ahead, config->io, error);
    if (status < 0) {
        free_ahead(ahead);
        return status;
    }
    *out = ahead;
    return DL2_OK;
}

void dl2_read_ahead_destroy(struct dl2_read_ahead *ahead)
{
    if (!ahead)
        return;
    pthread_mutex_lock(&ahead->mutex);
    ahead->closing = true;
    ahead->sleeping = true; /* whatever it does */
    wake_engine(ahead);
    pthread_mutex_unlock(&ahead->mutex);
    ahead->engine->stop(ahead->engine_state);
    free_ahead(ahead);
}
