/*
 * The order's positions, of which a window is planned, being read or waiting to be taken:
 *
 *     0 ...... oldest ............ high ............... next ......... high + window
 *       over     taken, or late      read ahead          is planned next
 *
 * `high` is behind the last position that was taken. Each planned position has a place in a ring;
 * what is still there SLACK positions behind `high` won't be taken any more and is dropped.
 *
 * Planning goes in batches of at least a quarter of the window: of such a batch, samples that lie
 * near each other in one file are read as one run. In a quasi-random order (loader/sampler.h)
 * neighbours are shuffled among each other, but they are there. Runs lie in an arena that is mapped
 * once; what finds no room there is left to its taker. So is what is being planned when its taker
 * comes; a run that waits in the queue is read by the taker itself. Hence nobody waits for anything
 * but a read.
 *
 * One mutex guards all; reads go on outside it.
 */
#include "loader/ahead.h"

#include "config.h"
#include "loader/engine.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#define NOWHERE       SIZE_MAX
#define DEFAULT_AHEAD 256
#define MAX_AHEAD     65536
#define DEFAULT_BYTES ((size_t)64 << 20)
#define SLACK         256 /* positions that are under way in the pipeline at once, and more */

#define PAGE      ((size_t)4096) /* of the arena */
#define MAX_RUN   ((size_t)1 << 20)
#define MAX_GAP   ((uint64_t)32 << 10) /* bytes that are read and thrown away to save a request */
#define WORD_BITS 64

/*
 * DL2_IO_AUTO. A read from the page cache takes some microseconds and is done best by who needs the
 * bytes; handing them over costs as much again. So workers read themselves until, over PERIOD_ON
 * reads, the mean of what each took beyond what the page cache would have taken passes LATE_ON; and
 * do so again when it falls below LATE_OFF over PERIOD_OFF reads. What one read counts is cut off
 * at LATE_MOST, so that a few of them that lost the processor for a while change nothing. What is
 * read ahead can't tell: how long it took says more of the queue than of the disk. So while that is
 * on, one position in PROBE is left to its taker.
 */
#define WARM_SECONDS          40e-6
#define WARM_BYTES_PER_SECOND 2e9
#define LATE_MOST             1e-3
#define LATE_ON               20e-6
#define LATE_OFF              10e-6
#define PERIOD_ON             64
#define PERIOD_OFF            16
#define PROBE                 32

/* Ways to read ahead, the best first. */
static const struct dl2_engine *const engines[] = {
#ifdef HAVE_LIBURING
    &dl2_engine_uring,
#endif
    &dl2_engine_threads,
};

#define ENGINE_COUNT (sizeof engines / sizeof engines[0])

struct place {
    size_t position; /* NOWHERE: nothing is here */
    struct dl2_read_run *run;
    size_t offset, size; /* in the run */
    uint32_t index;
};

/* A sample that is being planned. */
struct plan {
    size_t position;
    uint32_t index;
    struct dl2_location at;
    const char *shard; /* its path, one string for all in it; NULL: a file of its own */
};

struct dl2_ahead {
    const struct dl2_dataset *dataset;
    const struct dl2_cache *cached, *decoded;
    bool (*slices)(const void *context, uint32_t index, struct dl2_slice_range *range);
    const void *context; /* for slices() */
    bool drop_behind;
    bool own_files; /* each sample is a file: not a packed dataset */
    const struct dl2_engine *engine;
    void *engine_state;

    pthread_mutex_t mutex;
    pthread_cond_t work; /* for engines that wait in dl2_ahead_next() */
    bool sleeping;       /* the engine waits to be woken */
    bool closing;

    const uint32_t *order;
    size_t count, oldest, high, next;
    struct place *places;
    size_t window, ring; /* samples ahead; places */
    struct plan *plans;  /* window of them */
    void **sorted;       /* pointers to plans */

    struct dl2_read_run *runs;
    void **planned; /* pointers to runs */
    size_t run_count;
    struct dl2_read_run *free_runs, *first, *last; /* the queue */

    uint8_t *arena;
    uint64_t *used; /* a bit per page */
    size_t pages, pages_free, pages_touched;

    bool is_auto, wanted;
    double late;
    unsigned seen;

    struct dl2_ahead_stats stats;
};

/* ---- the arena: first fit, so that the same memory is used again while it is in the caches ----
 */

static bool is_used(const struct dl2_ahead *ahead, size_t page)
{
    return ahead->used[page / WORD_BITS] >> page % WORD_BITS & 1;
}

static void set_used(struct dl2_ahead *ahead, size_t page, size_t count, bool used)
{
    for (size_t i = page; i < page + count; i++) {
        const uint64_t bit = (uint64_t)1 << i % WORD_BITS;
        if (used)
            ahead->used[i / WORD_BITS] |= bit;
        else
            ahead->used[i / WORD_BITS] &= ~bit;
    }
}

static bool arena_take(struct dl2_ahead *ahead, size_t bytes, struct dl2_read_run *run)
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
            run->page = start;
            run->pages = pages;
            run->buffer = ahead->arena + start * PAGE;
            return true;
        }
    }
    return false;
}

/* ---- runs; all with the mutex held ---- */

static void queue_append(struct dl2_ahead *ahead, struct dl2_read_run *run)
{
    run->state = DL2_RUN_QUEUED;
    run->after = NULL;
    run->before = ahead->last;
    *(ahead->last ? &ahead->last->after : &ahead->first) = run;
    ahead->last = run;
}

static void queue_remove(struct dl2_ahead *ahead, struct dl2_read_run *run)
{
    *(run->before ? &run->before->after : &ahead->first) = run->after;
    *(run->after ? &run->after->before : &ahead->last) = run->before;
    run->before = run->after = NULL;
}

static void release(struct dl2_ahead *ahead, struct dl2_read_run *run)
{
    if (--run->users)
        return;
    if (run->state == DL2_RUN_QUEUED)
        queue_remove(ahead, run);
    set_used(ahead, run->page, run->pages, false);
    ahead->pages_free += run->pages;
    run->state = DL2_RUN_FREE;
    run->after = ahead->free_runs;
    ahead->free_runs = run;
}

static void begin_read(struct dl2_ahead *ahead, struct dl2_read_run *run)
{
    queue_remove(ahead, run);
    run->state = DL2_RUN_READING;
    run->users++;
    ahead->stats.requests++;
}

static void end_read(struct dl2_ahead *ahead, struct dl2_read_run *run, bool read)
{
    run->state = read ? DL2_RUN_READ : DL2_RUN_FAILED;
    if (read)
        ahead->stats.bytes += run->bytes;
    if (run->users > 1)
        pthread_cond_broadcast(&run->done);
    release(ahead, run);
}

/* ---- planning; all with the mutex held ---- */

static void drop(struct dl2_ahead *ahead, struct place *place)
{
    place->position = NOWHERE;
    release(ahead, place->run);
}

/* Moves `oldest` on past what was taken, and past what won't be. */
static void forget(struct dl2_ahead *ahead)
{
    for (; ahead->oldest < ahead->next; ahead->oldest++) {
        struct place *place = &ahead->places[ahead->oldest % ahead->ring];
        if (place->position != ahead->oldest)
            continue;
        if (ahead->oldest + SLACK >= ahead->high)
            break;
        drop(ahead, place);
    }
    if (ahead->next < ahead->high) { /* takers were faster */
        if (ahead->oldest == ahead->next)
            ahead->oldest = ahead->high;
        ahead->next = ahead->high;
    }
}

/* Positions that may be planned now; 0 where it is better to wait for a larger batch. */
static size_t room(const struct dl2_ahead *ahead)
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

static bool is_kept(const struct dl2_cache *cache, uint32_t index)
{
    return cache && dl2_cache_find(cache, index);
}

/* Where what will be asked for of a sample lies. */
static bool locate(const struct dl2_ahead *ahead, struct plan *plan)
{
    struct dl2_slice_range range;
    if (ahead->slices && ahead->slices(ahead->context, plan->index, &range))
        return dl2_dataset_locate_slices(ahead->dataset, plan->index, range, &plan->at);
    return dl2_dataset_locate(ahead->dataset, plan->index, &plan->at);
}

/* The next samples that must be read. Moves `next` on; true as long as there is room for them. */
static size_t gather(struct dl2_ahead *ahead, size_t positions)
{
    size_t count = 0, pages = 0;
    for (; positions; positions--, ahead->next++) {
        struct plan *plan = &ahead->plans[count];
        plan->position = ahead->next;
        plan->index = ahead->order[ahead->next];
        if ((ahead->is_auto && plan->position % PROBE == PROBE - 1) ||
            is_kept(ahead->cached, plan->index) || is_kept(ahead->decoded, plan->index) ||
            !locate(ahead, plan) || plan->at.bytes > ahead->pages * PAGE / 4)
            continue;
        pages += (size_t)plan->at.bytes / PAGE + 1;
        if (pages > ahead->pages_free)
            break;
        plan->shard = ahead->own_files ? NULL : plan->at.path;
        ahead->sorted[count++] = plan;
    }
    return count;
}

/* qsort() would allocate. */
static void sort(void **items, size_t count, bool (*is_before)(const void *, const void *))
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

/* By place on the disk within the shards; nobody knows where files of their own lie: as they come.
 */
static bool plan_is_before(const void *left, const void *right)
{
    const struct plan *a = left, *b = right;
    if (a->shard != b->shard)
        return (uintptr_t)a->shard < (uintptr_t)b->shard;
    if (a->shard && a->at.offset != b->at.offset)
        return a->at.offset < b->at.offset;
    return a->position < b->position;
}

static bool run_is_before(const void *left, const void *right)
{
    return ((const struct dl2_read_run *)left)->first < ((const struct dl2_read_run *)right)->first;
}

/* How many of `count` plans, sorted, make one run; *bytes is its length. */
static size_t join(void *const *plans, size_t count, uint64_t *bytes)
{
    const struct plan *first = plans[0];
    const uint64_t start = first->at.offset;
    uint64_t end = start + first->at.bytes;
    size_t joined = 1;
    for (; first->shard && joined < count; joined++) {
        const struct plan *plan = plans[joined];
        const uint64_t its_end = plan->at.offset + plan->at.bytes;
        if (plan->shard != first->shard || plan->at.offset > end + MAX_GAP ||
            its_end > start + MAX_RUN)
            break;
        if (its_end > end)
            end = its_end;
    }
    *bytes = end - start;
    return joined;
}

static struct dl2_read_run *make_run(struct dl2_ahead *ahead, void *const *plans, size_t count,
                                     uint64_t bytes)
{
    struct dl2_read_run *run = ahead->free_runs;
    if (!run || !arena_take(ahead, (size_t)bytes + 1, run))
        return NULL;
    ahead->free_runs = run->after;
    const struct dl2_location *at = &((const struct plan *)plans[0])->at;
    run->path = at->path;
    run->fd = at->fd;
    run->offset = at->offset;
    run->bytes = (size_t)bytes;
    run->whole = ahead->own_files;
    run->evict = ahead->drop_behind;
    run->users = (unsigned)count;
    run->first = NOWHERE;
    for (size_t i = 0; i < count; i++) {
        const struct plan *plan = plans[i];
        ahead->places[plan->position % ahead->ring] =
            (struct place){plan->position, run, (size_t)(plan->at.offset - at->offset),
                           (size_t)plan->at.bytes, plan->index};
        if (plan->position < run->first)
            run->first = plan->position;
    }
    return run;
}

static void plan(struct dl2_ahead *ahead)
{
    forget(ahead);
    const size_t positions = room(ahead);
    if (!positions)
        return;
    const size_t count = gather(ahead, positions);
    sort(ahead->sorted, count, plan_is_before);
    size_t runs = 0;
    for (size_t i = 0; i < count;) {
        uint64_t bytes;
        const size_t joined = join(&ahead->sorted[i], count - i, &bytes);
        struct dl2_read_run *run = make_run(ahead, &ahead->sorted[i], joined, bytes);
        if (run)
            ahead->planned[runs++] = run;
        i += joined;
    }
    sort(ahead->planned, runs, run_is_before);
    for (size_t i = 0; i < runs; i++)
        queue_append(ahead, ahead->planned[i]);
}

static void wake(struct dl2_ahead *ahead)
{
    if (!ahead->sleeping)
        return;
    ahead->sleeping = false;
    if (ahead->engine->wake)
        ahead->engine->wake(ahead->engine_state);
    else
        pthread_cond_broadcast(&ahead->work);
}

static void wake_if_due(struct dl2_ahead *ahead)
{
    if (ahead->sleeping && room(ahead))
        wake(ahead);
}

/* See LATE_ON. */
static void judge(struct dl2_ahead *ahead, double seconds, size_t bytes)
{
    const double late = seconds - WARM_SECONDS - (double)bytes / WARM_BYTES_PER_SECOND;
    ahead->late += late < 0 ? 0 : late > LATE_MOST ? LATE_MOST : late;
    if (++ahead->seen < (ahead->wanted ? PERIOD_OFF : PERIOD_ON))
        return;
    ahead->wanted = ahead->late > ahead->seen * (ahead->wanted ? LATE_OFF : LATE_ON);
    ahead->seen = 0;
    ahead->late = 0;
    wake_if_due(ahead);
}

/* ---- for engines ---- */

struct dl2_read_run *dl2_ahead_next(struct dl2_ahead *ahead, bool wait, bool *over)
{
    pthread_mutex_lock(&ahead->mutex);
    for (;;) {
        if (!ahead->first)
            plan(ahead);
        if (ahead->first || ahead->closing)
            break;
        ahead->sleeping = true;
        if (!wait)
            break;
        pthread_cond_wait(&ahead->work, &ahead->mutex);
    }
    *over = ahead->closing;
    struct dl2_read_run *run = ahead->closing ? NULL : ahead->first;
    if (run) {
        begin_read(ahead, run);
        if (ahead->first && !ahead->engine->wake)
            wake(ahead); /* there is more for the others */
    }
    pthread_mutex_unlock(&ahead->mutex);
    return run;
}

void dl2_ahead_done(struct dl2_ahead *ahead, struct dl2_read_run *run, bool read)
{
    pthread_mutex_lock(&ahead->mutex);
    end_read(ahead, run, read);
    pthread_mutex_unlock(&ahead->mutex);
}

void dl2_ahead_hold(struct dl2_ahead *ahead, struct dl2_read_run *run)
{
    pthread_mutex_lock(&ahead->mutex);
    run->users++;
    pthread_mutex_unlock(&ahead->mutex);
}

/* ---- for loader/fetch.c ---- */

struct dl2_read_run *dl2_ahead_take(struct dl2_ahead *ahead, size_t position, uint32_t index,
                                    const uint8_t **data, size_t *size)
{
    pthread_mutex_lock(&ahead->mutex);
    struct place *place = &ahead->places[position % ahead->ring];
    struct dl2_read_run *run = NULL;
    if (position < ahead->count && position >= ahead->high)
        ahead->high = position + 1;
    if (place->position == position && place->index == index) {
        place->position = NOWHERE;
        run = place->run; /* the place's use of it is the taker's now */
        *data = run->buffer + place->offset;
        *size = place->size;
    }
    wake_if_due(ahead);
    if (run && run->state == DL2_RUN_QUEUED) {
        begin_read(ahead, run);
        pthread_mutex_unlock(&ahead->mutex);
        const bool read = dl2_run_read(run);
        pthread_mutex_lock(&ahead->mutex);
        end_read(ahead, run, read);
    }
    while (run && run->state == DL2_RUN_READING)
        pthread_cond_wait(&run->done, &ahead->mutex);
    if (run && run->state == DL2_RUN_FAILED) {
        release(ahead, run);
        run = NULL;
    }
    pthread_mutex_unlock(&ahead->mutex);
    return run;
}

void dl2_ahead_give(struct dl2_ahead *ahead, struct dl2_read_run *run)
{
    pthread_mutex_lock(&ahead->mutex);
    release(ahead, run);
    wake_if_due(ahead);
    pthread_mutex_unlock(&ahead->mutex);
}

void dl2_ahead_saw(struct dl2_ahead *ahead, double seconds, size_t bytes)
{
    if (!ahead->is_auto)
        return;
    pthread_mutex_lock(&ahead->mutex);
    judge(ahead, seconds, bytes);
    pthread_mutex_unlock(&ahead->mutex);
}

static void drop_all(struct dl2_ahead *ahead)
{
    for (size_t i = 0; i < ahead->ring; i++)
        if (ahead->places[i].position != NOWHERE)
            drop(ahead, &ahead->places[i]);
}

void dl2_ahead_start(struct dl2_ahead *ahead, const uint32_t *order, size_t count)
{
    pthread_mutex_lock(&ahead->mutex);
    drop_all(ahead);
    ahead->order = order;
    ahead->count = count;
    ahead->oldest = ahead->high = ahead->next = 0;
    wake_if_due(ahead);
    pthread_mutex_unlock(&ahead->mutex);
}

void dl2_ahead_get_stats(struct dl2_ahead *ahead, struct dl2_ahead_stats *stats)
{
    pthread_mutex_lock(&ahead->mutex);
    *stats = ahead->stats;
    stats->memory = sizeof *ahead + ahead->ring * sizeof *ahead->places +
                    ahead->window * (sizeof *ahead->plans + sizeof *ahead->sorted) +
                    ahead->run_count * (sizeof *ahead->runs + sizeof *ahead->planned) +
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
    dl2_dataset_sample(dataset, 0, &sample);
    return !strcmp(sample.path, at.path);
}

static int allocate(struct dl2_ahead *ahead, const struct dl2_fetch_config *config,
                    struct dl2_error *error)
{
    const uint64_t bytes = config->ahead_bytes ? config->ahead_bytes : DEFAULT_BYTES;
    ahead->window = config->ahead ? config->ahead : DEFAULT_AHEAD;
    if (ahead->window > MAX_AHEAD)
        return dl2_error_set(error, DL2_ERR_ARGUMENT,
                             "%zu samples can't be read ahead, %d at the most", ahead->window,
                             MAX_AHEAD);
    ahead->ring = ahead->window + SLACK + 1;
    ahead->run_count = ahead->ring;
    ahead->pages = ahead->pages_free =
        (size_t)(bytes < SIZE_MAX / 2 ? bytes : SIZE_MAX / 2) / PAGE + (bytes < PAGE);
    ahead->places = dl2_calloc(ahead->ring, sizeof *ahead->places);
    ahead->plans = dl2_calloc(ahead->window, sizeof *ahead->plans);
    ahead->sorted = dl2_calloc(ahead->window, sizeof *ahead->sorted);
    ahead->runs = dl2_calloc(ahead->run_count, sizeof *ahead->runs);
    ahead->planned = dl2_calloc(ahead->run_count, sizeof *ahead->planned);
    ahead->used = dl2_calloc(ahead->pages / WORD_BITS + 1, sizeof *ahead->used);
    ahead->arena = mmap(NULL, ahead->pages * PAGE, PROT_READ | PROT_WRITE,
                        MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (ahead->arena == MAP_FAILED)
        ahead->arena = NULL;
    if (!ahead->places || !ahead->plans || !ahead->sorted || !ahead->runs || !ahead->planned ||
        !ahead->used || !ahead->arena)
        return dl2_error_set(error, DL2_ERR_MEMORY, "out of memory to read %zu samples ahead",
                             ahead->window);
    for (size_t i = 0; i < ahead->ring; i++)
        ahead->places[i].position = NOWHERE;
    for (size_t i = ahead->run_count; i-- > 0;) {
        struct dl2_read_run *run = &ahead->runs[i];
        pthread_cond_init(&run->done, NULL);
        run->after = ahead->free_runs;
        ahead->free_runs = run;
    }
    return DL2_OK;
}

static int start_engine(struct dl2_ahead *ahead, enum dl2_io io, struct dl2_error *error)
{
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

static void free_ahead(struct dl2_ahead *ahead)
{
    for (size_t i = 0; ahead->runs && i < ahead->run_count; i++)
        pthread_cond_destroy(&ahead->runs[i].done);
    if (ahead->arena)
        munmap(ahead->arena, ahead->pages * PAGE);
    free(ahead->places);
    free(ahead->plans);
    free(ahead->sorted);
    free(ahead->runs);
    free(ahead->planned);
    free(ahead->used);
    pthread_cond_destroy(&ahead->work);
    pthread_mutex_destroy(&ahead->mutex);
    free(ahead);
}

int dl2_ahead_create(const struct dl2_dataset *dataset, const struct dl2_fetch_config *config,
                     const struct dl2_cache *cached, struct dl2_ahead **out,
                     struct dl2_error *error)
{
    *out = NULL;
    struct dl2_ahead *ahead = dl2_calloc(1, sizeof *ahead);
    if (!ahead)
        return dl2_error_set(error, DL2_ERR_MEMORY, "out of memory to read ahead");
    pthread_mutex_init(&ahead->mutex, NULL);
    pthread_cond_init(&ahead->work, NULL);
    ahead->dataset = dataset;
    ahead->cached = cached;
    ahead->decoded = config->decoded;
    ahead->slices = config->slices;
    ahead->context = config->context;
    ahead->own_files = has_own_files(dataset);
    ahead->drop_behind = config->drop_behind;
    ahead->is_auto = config->io == DL2_IO_AUTO;
    ahead->wanted = !ahead->is_auto;
    int status = allocate(ahead, config, error);
    if (status == DL2_OK)
        status = start_engine(ahead, config->io, error);
    if (status < 0) {
        free_ahead(ahead);
        return status;
    }
    *out = ahead;
    return DL2_OK;
}

void dl2_ahead_destroy(struct dl2_ahead *ahead)
{
    if (!ahead)
        return;
    pthread_mutex_lock(&ahead->mutex);
    ahead->closing = true;
    ahead->sleeping = true; /* whatever it does */
    wake(ahead);
    pthread_mutex_unlock(&ahead->mutex);
    ahead->engine->stop(ahead->engine_state);
    free_ahead(ahead);
}
