/*
 * The pipeline. Workers claim an epoch's positions strictly in order, work on them in any order,
 * and put each where it belongs:
 *
 *     position p  ->  step p / batch, place p % batch  ->  slot step % depth
 *
 *     slot:  FREE --first claim--> FILLING --last sample--> READY --next()--> TAKEN --release()-->
 * FREE
 *
 * A position can be claimed only while its slot is FREE or already FILLING for its step, which
 * bounds the ring. One mutex guards all that is shared; samples are worked on outside it.
 *
 * The first error in the epoch's order wins, whoever meets it first: claiming stops behind it, all
 * before it were claimed already and are finished, so the batches before it still come out.
 */
#include "loader/loader.h"

#include "codec/codec.h"
#include "common/clock.h"
#include "common/thread.h"
#include "loader/sampler.h"
#include "loader/transform.h"

#include <inttypes.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#define MAX_IMAGE_SIZE 65536
#define NOWHERE        UINT64_MAX

enum slot_state { SLOT_FREE, SLOT_FILLING, SLOT_READY, SLOT_TAKEN };

struct slot {
    struct dl2_batch batch; /* first, so that a batch given back leads to its slot */
    enum slot_state state;
    unsigned missing; /* samples that are not there yet */
};

struct worker {
    struct dl2_loader *loader;
    pthread_t thread;
    struct dl2_bytes encoded;
    struct dl2_image image, turned;
    struct dl2_resizer resizer;
    struct dl2_loader_stats stats; /* of one sample, added to the loader's when it is put */
};

struct bad_sample {
    uint32_t index;
    char *text;
};

struct dl2_loader {
    const struct dl2_dataset *dataset;
    struct dl2_loader_config config;
    struct dl2_sampler sampler; /* changes only while no worker is busy */
    uint64_t steps, positions;  /* of an epoch */
    size_t sample_bytes;

    pthread_mutex_t mutex;
    pthread_cond_t work, progress; /* for workers, for the consumer */
    struct slot *slots;
    struct worker *workers;
    unsigned worker_count; /* whose threads run */
    unsigned busy;
    bool started, closing;
    uint64_t epoch, next_step;
    uint64_t next_position, end_position;
    uint64_t fail_position; /* NOWHERE, or what `error` is about */
    struct dl2_error error;
    struct dl2_loader_stats stats;

    atomic_bool canceled;    /* what is being worked on is no longer wanted */
    atomic_uchar *known_bad; /* per sample, so that it is tried once */
    struct bad_sample *bad;  /* in the order they were met */
    const char **bad_texts;  /* the consumer's view: by sample number */
    size_t bad_count, bad_capacity;
};

struct task {
    uint64_t position;
    struct slot *slot;
};

/* ---- one sample ---- */

/* The upright size, from the header. */
static int read_size(const struct dl2_loader *loader, const uint8_t *data, size_t size,
                     struct dl2_image_info *info, uint32_t *width, uint32_t *height,
                     struct dl2_error *error)
{
    const uint64_t limit =
        loader->config.max_pixels ? loader->config.max_pixels : DL2_DEFAULT_MAX_PIXELS;
    DL2_TRY(dl2_image_read_info(data, size, info, error));
    DL2_TRY(dl2_image_check_size(info->width, info->height, limit, error));
    const bool turned = info->orientation >= 5;
    *width = turned ? info->height : info->width;
    *height = turned ? info->width : info->height;
    return DL2_OK;
}

static void choose_view(const struct dl2_loader *loader, uint32_t index, uint32_t width,
                        uint32_t height, struct dl2_view *view)
{
    const struct dl2_loader_config *config = &loader->config;
    if (config->train) {
        struct dl2_random random;
        dl2_random_init(&random, config->seed, DL2_RANDOM_AUGMENT, loader->epoch, index);
        dl2_view_for_training(config, &random, width, height, view);
    } else {
        dl2_view_for_validation(config, width, height, view);
    }
}

/* Header, crop, pixels. Gray stays gray until it is resized: that is a third of the work. */
static int decode(struct worker *worker, uint32_t index, const uint8_t *data, size_t size,
                  struct dl2_view *view, struct dl2_error *error)
{
    const struct dl2_loader *loader = worker->loader;
    struct dl2_image_info info;
    uint32_t width, height;
    DL2_TRY(read_size(loader, data, size, &info, &width, &height, error));
    choose_view(loader, index, width, height, view);
    struct dl2_decode_options options = DL2_DECODE_DEFAULTS;
    options.max_pixels = loader->config.max_pixels;
    options.channels = loader->config.channels == 1 ? 1 : 0;
    DL2_TRY(dl2_image_decode(data, size, &options, &worker->image, &worker->turned, error));
    if (worker->image.width != width || worker->image.height != height)
        return dl2_error_set(error, DL2_ERR_FORMAT,
                             "%" PRIu32 "x%" PRIu32 " pixels where the header speaks of %" PRIu32
                             "x%" PRIu32,
                             worker->image.width, worker->image.height, width, height);
    return DL2_OK;
}

static int load_sample(struct worker *worker, uint32_t index, uint8_t *out, struct dl2_error *error)
{
    const struct dl2_loader *loader = worker->loader;
    const uint8_t *data;
    size_t size;
    struct dl2_view view;
    const char *stage = NULL;
    const double start = dl2_clock_wall();
    int status = dl2_dataset_read(loader->dataset, index, &worker->encoded, &data, &size, error);
    const double was_read = dl2_clock_wall();
    worker->stats.read += was_read - start;
    if (status == DL2_OK) {
        worker->stats.bytes += size;
        stage = "decode";
        status = decode(worker, index, data, size, &view, error);
        const double decoded = dl2_clock_wall();
        worker->stats.decode += decoded - was_read;
        if (status == DL2_OK) {
            stage = "resize";
            status =
                dl2_transform(&worker->resizer, &worker->image, &view, &loader->config, out, error);
            worker->stats.transform += dl2_clock_wall() - decoded;
        }
    }
    if (status < 0 && stage) { /* what reads already names the file */
        struct dl2_sample sample;
        dl2_dataset_sample(loader->dataset, index, &sample);
        dl2_error_prefix(error, "%s: %s", sample.path, stage);
    }
    return status;
}

/* ---- bad samples ---- */

static bool is_known_bad(struct dl2_loader *loader, uint32_t index)
{
    return atomic_load_explicit(&loader->known_bad[index], memory_order_relaxed);
}

/* Counts and names a sample unless another worker just did. Copies the text. */
static int note_bad(struct dl2_loader *loader, uint32_t index, const char *text,
                    struct dl2_error *error)
{
    int status = DL2_OK;
    pthread_mutex_lock(&loader->mutex);
    if (!is_known_bad(loader, index)) {
        if (loader->bad_count == loader->bad_capacity) {
            const size_t capacity = loader->bad_capacity ? 2 * loader->bad_capacity : 16;
            struct bad_sample *grown = dl2_realloc(loader->bad, capacity, sizeof *grown);
            if (grown) {
                loader->bad = grown;
                loader->bad_capacity = capacity;
            }
        }
        char *copy = strdup(text);
        if (copy && loader->bad_count < loader->bad_capacity) {
            loader->bad[loader->bad_count++] = (struct bad_sample){index, copy};
            loader->stats.bad++;
            atomic_store_explicit(&loader->known_bad[index], 1, memory_order_relaxed);
        } else {
            free(copy);
            status = dl2_error_set(error, DL2_ERR_MEMORY, "out of memory to name a bad sample");
        }
    }
    pthread_mutex_unlock(&loader->mutex);
    return status;
}

static int compare_bad(const void *left, const void *right)
{
    const struct bad_sample *a = left, *b = right;
    return (a->index > b->index) - (a->index < b->index);
}

static int nothing_can_be_read(struct dl2_loader *loader, struct dl2_error *error)
{
    pthread_mutex_lock(&loader->mutex);
    qsort(loader->bad, loader->bad_count, sizeof *loader->bad, compare_bad);
    int status = dl2_error_set(
        error, DL2_ERR_FORMAT, "none of the %" PRIu32 " samples can be read; the first: %s",
        loader->sampler.count, loader->bad_count ? loader->bad[0].text : "?");
    pthread_mutex_unlock(&loader->mutex);
    return status;
}

/* Is this the fault of the sample, rather than of the machine or of whoever stopped us? */
static bool is_samples_fault(int status)
{
    return status != DL2_ERR_MEMORY && status != DL2_ERR_CANCELED;
}

/* The sample at a position, or in training the next good one in the epoch's order. */
static int fill(struct worker *worker, const struct task *task, struct dl2_error *error)
{
    struct dl2_loader *loader = worker->loader;
    const struct dl2_loader_config *config = &loader->config;
    struct dl2_batch *batch = &task->slot->batch;
    const unsigned place = (unsigned)(task->position % config->batch);
    const uint32_t count = loader->sampler.count;
    uint8_t *out = batch->images + place * loader->sample_bytes;
    const uint32_t tries = config->train ? count : 1;
    for (uint32_t i = 0; i < tries; i++) {
        const uint32_t index = loader->sampler.order[(task->position + i) % count];
        if (atomic_load_explicit(&loader->canceled, memory_order_relaxed))
            return DL2_ERR_CANCELED;
        if (!config->stop_on_bad && is_known_bad(loader, index))
            continue;
        struct dl2_error reason = DL2_ERROR_INIT;
        const int status = load_sample(worker, index, out, &reason);
        if (status == DL2_OK) {
            struct dl2_sample sample;
            dl2_dataset_sample(loader->dataset, index, &sample);
            batch->labels[place] = sample.label;
            batch->indices[place] = index;
            worker->stats.images++;
            return DL2_OK;
        }
        if (is_samples_fault(status))
            DL2_TRY(note_bad(loader, index, reason.message, error));
        if (!is_samples_fault(status) || config->stop_on_bad)
            return dl2_error_set(error, status, "%s", reason.message);
    }
    if (config->train)
        return nothing_can_be_read(loader, error);
    memset(out, 0, loader->sample_bytes);
    batch->labels[place] = -1;
    batch->indices[place] = loader->sampler.order[task->position];
    return DL2_OK;
}

/* ---- workers; those that say so are called with the mutex held ---- */

static void begin_slot(struct dl2_loader *loader, struct slot *slot, uint64_t step)
{
    const uint64_t left = loader->positions - step * loader->config.batch;
    slot->batch.count = left < loader->config.batch ? (unsigned)left : loader->config.batch;
    slot->batch.epoch = loader->epoch;
    slot->batch.step = step;
    slot->missing = slot->batch.count;
    slot->state = SLOT_FILLING;
}

/* Held. False when the loader closes. */
static bool claim(struct dl2_loader *loader, struct task *task)
{
    while (!loader->closing) {
        const uint64_t position = loader->next_position;
        bool wanted = position < loader->end_position && position < loader->fail_position;
        if (wanted) {
            const uint64_t step = position / loader->config.batch;
            struct slot *slot = &loader->slots[step % loader->config.depth];
            if (slot->state == SLOT_FREE)
                begin_slot(loader, slot, step);
            if (slot->state == SLOT_FILLING && slot->batch.step == step) {
                *task = (struct task){position, slot};
                loader->next_position++;
                loader->busy++;
                return true;
            }
        }
        const double start = dl2_clock_wall();
        pthread_cond_wait(&loader->work, &loader->mutex);
        if (wanted)
            loader->stats.worker_wait += dl2_clock_wall() - start;
    }
    return false;
}

/* Held. */
static void add_stats(struct dl2_loader_stats *sum, const struct dl2_loader_stats *part)
{
    sum->read += part->read;
    sum->decode += part->decode;
    sum->transform += part->transform;
    sum->images += part->images;
    sum->bytes += part->bytes;
}

/* Held. */
static void finish(struct worker *worker, const struct task *task, int status,
                   const struct dl2_error *error)
{
    struct dl2_loader *loader = worker->loader;
    add_stats(&loader->stats, &worker->stats);
    worker->stats = (struct dl2_loader_stats){0};
    loader->busy--;
    if (status == DL2_OK && --task->slot->missing == 0)
        task->slot->state = SLOT_READY;
    if (status < 0 && status != DL2_ERR_CANCELED && task->position < loader->fail_position) {
        loader->fail_position = task->position;
        loader->error = *error;
    }
    if (task->slot->state == SLOT_READY || loader->busy == 0)
        pthread_cond_signal(&loader->progress);
}

static void *run_worker(void *context)
{
    struct worker *worker = context;
    struct dl2_loader *loader = worker->loader;
    struct task task;
    pthread_mutex_lock(&loader->mutex);
    while (claim(loader, &task)) {
        pthread_mutex_unlock(&loader->mutex);
        struct dl2_error error = DL2_ERROR_INIT;
        const int status = fill(worker, &task, &error);
        pthread_mutex_lock(&loader->mutex);
        finish(worker, &task, status, &error);
    }
    pthread_mutex_unlock(&loader->mutex);
    return NULL;
}

/* ---- making and unmaking ---- */

static int check_config(const struct dl2_loader_config *config, struct dl2_error *error)
{
    if (!config->batch || !config->image_size || config->image_size > MAX_IMAGE_SIZE)
        return dl2_error_set(error, DL2_ERR_ARGUMENT, "no batches of %u images of %u pixels a side",
                             config->batch, config->image_size);
    if (config->channels != 1 && config->channels != 3)
        return dl2_error_set(error, DL2_ERR_ARGUMENT, "images have 1 or 3 channels, not %u",
                             config->channels);
    if (config->depth < 2)
        return dl2_error_set(error, DL2_ERR_ARGUMENT, "at least 2 batch slots are needed, not %u",
                             config->depth);
    if (!config->train && config->resize < config->image_size)
        return dl2_error_set(error, DL2_ERR_ARGUMENT,
                             "a crop of %u pixels can't be cut from images resized to %u",
                             config->image_size, config->resize);
    if (!(config->area_min > 0 && config->area_min <= config->area_max && config->area_max <= 1))
        return dl2_error_set(error, DL2_ERR_ARGUMENT, "a crop's area can't be %g to %g of an image",
                             config->area_min, config->area_max);
    if (!(config->aspect_min > 0 && config->aspect_min <= config->aspect_max &&
          config->aspect_max < 1e6))
        return dl2_error_set(error, DL2_ERR_ARGUMENT, "a crop's aspect can't be %g to %g",
                             config->aspect_min, config->aspect_max);
    return DL2_OK;
}

static int count_steps(struct dl2_loader *loader, struct dl2_error *error)
{
    const unsigned batch = loader->config.batch;
    loader->positions = dl2_dataset_count(loader->dataset);
    loader->steps = (loader->positions + batch - 1) / batch;
    if (loader->config.drop_last) {
        loader->steps = loader->positions / batch;
        if (!loader->steps)
            return dl2_error_set(error, DL2_ERR_ARGUMENT,
                                 "%" PRIu64 " samples don't fill one batch of %u, and batches that "
                                 "are not full are left out",
                                 loader->positions, batch);
        loader->positions = loader->steps * batch;
    }
    return DL2_OK;
}

static int make_slots(struct dl2_loader *loader, struct dl2_error *error)
{
    const struct dl2_loader_config *config = &loader->config;
    size_t bytes = config->image_size;
    bool fits = dl2_size_mul(bytes, config->image_size, &bytes) &&
                dl2_size_mul(bytes, config->channels, &bytes);
    loader->sample_bytes = bytes;
    fits = fits && dl2_size_mul(bytes, config->batch, &bytes);
    loader->slots = dl2_calloc(config->depth, sizeof *loader->slots);
    fits = fits && loader->slots;
    for (unsigned i = 0; fits && i < config->depth; i++) {
        struct dl2_batch *batch = &loader->slots[i].batch;
        batch->images = config->slot_alloc ? config->slot_alloc(config->slot_context, bytes)
                                           : dl2_alloc_aligned(bytes, 1);
        batch->labels = dl2_calloc(config->batch, sizeof *batch->labels);
        batch->indices = dl2_calloc(config->batch, sizeof *batch->indices);
        fits = batch->images && batch->labels && batch->indices;
    }
    if (!fits)
        return dl2_error_set(
            error, DL2_ERR_MEMORY, "out of memory for %u batches of %u images of %ux%ux%u",
            config->depth, config->batch, config->image_size, config->image_size, config->channels);
    return DL2_OK;
}

static int start_workers(struct dl2_loader *loader, struct dl2_error *error)
{
    const unsigned count = loader->config.workers;
    loader->workers = dl2_calloc(count, sizeof *loader->workers);
    if (!loader->workers)
        return dl2_error_set(error, DL2_ERR_MEMORY, "out of memory for %u workers", count);
    for (unsigned i = 0; i < count; i++) {
        struct worker *worker = &loader->workers[i];
        worker->loader = loader;
        const int reason = pthread_create(&worker->thread, NULL, run_worker, worker);
        if (reason)
            return dl2_error_set(error, DL2_ERR_SYSTEM, "can't start worker %u of %u: %s", i + 1,
                                 count, strerror(reason));
        loader->worker_count++;
    }
    return DL2_OK;
}

static int set_up(struct dl2_loader *loader, struct dl2_error *error)
{
    const struct dl2_loader_config *config = &loader->config;
    DL2_TRY(check_config(config, error));
    DL2_TRY(count_steps(loader, error));
    const uint32_t count = (uint32_t)dl2_dataset_count(loader->dataset);
    DL2_TRY(dl2_sampler_init(&loader->sampler, count, config->train, config->seed, error));
    loader->known_bad = dl2_calloc(count, sizeof *loader->known_bad);
    if (!loader->known_bad)
        return dl2_error_set(error, DL2_ERR_MEMORY, "out of memory for %u samples", count);
    DL2_TRY(make_slots(loader, error));
    return start_workers(loader, error);
}

int dl2_loader_create(const struct dl2_dataset *dataset, const struct dl2_loader_config *config,
                      struct dl2_loader **out, struct dl2_error *error)
{
    *out = NULL;
    struct dl2_loader *loader = dl2_calloc(1, sizeof *loader);
    if (!loader)
        return dl2_error_set(error, DL2_ERR_MEMORY, "out of memory for a loader");
    loader->dataset = dataset;
    loader->config = *config;
    loader->fail_position = NOWHERE;
    if (!config->resize)
        loader->config.resize = (unsigned)(((uint64_t)config->image_size * 256 + 112) / 224);
    if (!config->workers)
        loader->config.workers = dl2_cpu_count();
    pthread_mutex_init(&loader->mutex, NULL);
    pthread_cond_init(&loader->work, NULL);
    pthread_cond_init(&loader->progress, NULL);
    const int status = set_up(loader, error);
    if (status < 0) {
        dl2_loader_destroy(loader);
        return status;
    }
    *out = loader;
    return DL2_OK;
}

static void free_worker(struct worker *worker)
{
    dl2_bytes_free(&worker->encoded);
    dl2_image_free(&worker->image);
    dl2_image_free(&worker->turned);
    dl2_resizer_free(&worker->resizer);
}

static void free_slot(const struct dl2_loader_config *config, struct slot *slot)
{
    if (config->slot_free && slot->batch.images)
        config->slot_free(config->slot_context, slot->batch.images);
    else if (!config->slot_free)
        free(slot->batch.images);
    free(slot->batch.labels);
    free(slot->batch.indices);
}

void dl2_loader_destroy(struct dl2_loader *loader)
{
    if (!loader)
        return;
    pthread_mutex_lock(&loader->mutex);
    loader->closing = true;
    atomic_store_explicit(&loader->canceled, true, memory_order_relaxed);
    pthread_cond_broadcast(&loader->work);
    pthread_mutex_unlock(&loader->mutex);
    for (unsigned i = 0; i < loader->worker_count; i++) {
        pthread_join(loader->workers[i].thread, NULL);
        free_worker(&loader->workers[i]);
    }
    for (unsigned i = 0; loader->slots && i < loader->config.depth; i++)
        free_slot(&loader->config, &loader->slots[i]);
    for (size_t i = 0; i < loader->bad_count; i++)
        free(loader->bad[i].text);
    pthread_cond_destroy(&loader->progress);
    pthread_cond_destroy(&loader->work);
    pthread_mutex_destroy(&loader->mutex);
    dl2_sampler_free(&loader->sampler);
    free(loader->known_bad);
    free(loader->bad);
    free(loader->bad_texts);
    free(loader->slots);
    free(loader->workers);
    free(loader);
}

/* ---- the consumer's side ---- */

uint64_t dl2_loader_steps(const struct dl2_loader *loader)
{
    return loader->steps;
}

/* Held. Drops what is left of an epoch; on return no worker is busy and all slots are free. */
static int stop_epoch(struct dl2_loader *loader, struct dl2_error *error)
{
    for (unsigned i = 0; i < loader->config.depth; i++)
        if (loader->slots[i].state == SLOT_TAKEN)
            return dl2_error_set(error, DL2_ERR_ARGUMENT,
                                 "a batch was not given back before the next epoch");
    atomic_store_explicit(&loader->canceled, true, memory_order_relaxed);
    loader->end_position = 0;
    while (loader->busy)
        pthread_cond_wait(&loader->progress, &loader->mutex);
    atomic_store_explicit(&loader->canceled, false, memory_order_relaxed);
    for (unsigned i = 0; i < loader->config.depth; i++)
        loader->slots[i].state = SLOT_FREE;
    return DL2_OK;
}

int dl2_loader_start_epoch(struct dl2_loader *loader, uint64_t epoch, uint64_t first_step,
                           struct dl2_error *error)
{
    pthread_mutex_lock(&loader->mutex);
    const int status = stop_epoch(loader, error);
    if (status == DL2_OK) {
        dl2_sampler_set_epoch(&loader->sampler, epoch);
        loader->started = true;
        loader->epoch = epoch;
        loader->next_step = first_step < loader->steps ? first_step : loader->steps;
        loader->next_position = loader->next_step * loader->config.batch;
        loader->end_position = loader->positions;
        loader->fail_position = NOWHERE;
        dl2_error_clear(&loader->error);
        pthread_cond_broadcast(&loader->work);
    }
    pthread_mutex_unlock(&loader->mutex);
    return status;
}

/* Held. 1: the next batch is there; 0: not yet; or why it never will be. */
static int look_for_next(struct dl2_loader *loader, struct dl2_error *error)
{
    const struct slot *slot = &loader->slots[loader->next_step % loader->config.depth];
    if (slot->state == SLOT_TAKEN)
        return dl2_error_set(error, DL2_ERR_ARGUMENT,
                             "all %u batches are taken: give one back before the next",
                             loader->config.depth);
    if (slot->state == SLOT_READY && slot->batch.step == loader->next_step)
        return 1;
    if (loader->fail_position / loader->config.batch == loader->next_step && !loader->busy)
        return dl2_error_set(error, loader->error.status, "%s", loader->error.message);
    return 0;
}

int dl2_loader_next(struct dl2_loader *loader, struct dl2_batch **out, struct dl2_error *error)
{
    *out = NULL;
    pthread_mutex_lock(&loader->mutex);
    int status = 0;
    bool ended = loader->next_step >= loader->steps;
    if (!loader->started)
        status = dl2_error_set(error, DL2_ERR_ARGUMENT, "no epoch was started");
    while (status == 0 && !ended) {
        status = look_for_next(loader, error);
        if (status != 0)
            break;
        const double start = dl2_clock_wall();
        pthread_cond_wait(&loader->progress, &loader->mutex);
        loader->stats.consumer_wait += dl2_clock_wall() - start;
    }
    if (status == 1) {
        struct slot *slot = &loader->slots[loader->next_step++ % loader->config.depth];
        slot->state = SLOT_TAKEN;
        loader->stats.batches++;
        *out = &slot->batch;
    }
    const bool all_bad = loader->bad_count == loader->sampler.count;
    pthread_mutex_unlock(&loader->mutex);
    if (status == 0 && ended && all_bad)
        return nothing_can_be_read(loader, error);
    return status;
}

void dl2_loader_release(struct dl2_loader *loader, struct dl2_batch *batch)
{
    struct slot *slot = (struct slot *)batch;
    pthread_mutex_lock(&loader->mutex);
    slot->state = SLOT_FREE;
    pthread_cond_broadcast(&loader->work);
    pthread_mutex_unlock(&loader->mutex);
}

void dl2_loader_get_stats(const struct dl2_loader *loader, struct dl2_loader_stats *stats)
{
    struct dl2_loader *shared = (struct dl2_loader *)loader; /* to lock; nothing else changes */
    pthread_mutex_lock(&shared->mutex);
    *stats = shared->stats;
    pthread_mutex_unlock(&shared->mutex);
}

void dl2_loader_stats_reset(struct dl2_loader *loader)
{
    pthread_mutex_lock(&loader->mutex);
    loader->stats = (struct dl2_loader_stats){0};
    pthread_mutex_unlock(&loader->mutex);
}

const char *const *dl2_loader_bad(const struct dl2_loader *loader, size_t *count)
{
    struct dl2_loader *shared = (struct dl2_loader *)loader; /* sorted in place, under the lock */
    pthread_mutex_lock(&shared->mutex);
    const char **texts = dl2_realloc(shared->bad_texts, shared->bad_count, sizeof *texts);
    *count = texts ? shared->bad_count : 0;
    if (texts) {
        shared->bad_texts = texts;
        if (shared->bad_count)
            qsort(shared->bad, shared->bad_count, sizeof *shared->bad, compare_bad);
        for (size_t i = 0; i < shared->bad_count; i++)
            texts[i] = shared->bad[i].text;
    }
    pthread_mutex_unlock(&shared->mutex);
    return texts;
}
