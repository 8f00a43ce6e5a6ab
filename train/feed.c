/* SPDX-License-Identifier: BSD-2-Clause */
#include "train/feed.h"
#include "common/random.h"
#include "pixels/resize.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

struct dl2_feed {
    struct dl2_loader *loader; /* NULL: synthetic, which the rest is for */
    struct dl2_batch noise;
    void (*noise_free)(void *context, void *images); /* NULL: the heap's */
    void *noise_context;
    uint64_t images, steps, step;
    unsigned batch;
    bool drop_last;
    struct dl2_loader_stats stats;
};

static struct dl2_feed *feed_alloc(struct dl2_error *error)
{
    struct dl2_feed *feed = dl2_calloc(1, sizeof *feed);
    if (!feed)
        dl2_error_memory(error, "a feed");
    return feed;
}

int dl2_feed_create(const struct dl2_dataset *dataset, const struct dl2_loader_config *config,
                    struct dl2_feed **out, struct dl2_error *error)
{
    struct dl2_feed *feed = feed_alloc(error);
    if (!feed)
        return DL2_ERR_MEMORY;
    int status = dl2_loader_create(dataset, config, &feed->loader, error);
    if (status < 0) {
        free(feed);
        return status;
    }
    *out = feed;
    return DL2_OK;
}

static int make_noise(struct dl2_feed *feed, unsigned classes, bool pixels,
                      const struct dl2_loader_config *config, struct dl2_error *error)
{
    const bool floats = config->dtype == DL2_FLOAT32;
    size_t count = (size_t)config->height * dl2_loader_width(config), size;
    if (!dl2_size_mul(count, config->channels, &count) ||
        !dl2_size_mul(count, config->batch, &count) ||
        !dl2_size_mul(count, dl2_loader_planes(config), &count) ||
        !dl2_size_mul(count, dl2_dtype_size(config->dtype), &size))
        return dl2_error_set(error, DL2_ERR_LIMIT, "a batch of noise would be too large");
    struct dl2_batch *noise = &feed->noise;
    /* In the same kind of memory as the loader's batches, so that uploads take as long. */
    noise->images = config->slot_alloc ? config->slot_alloc(config->slot_context, size)
                                       : dl2_alloc_aligned(size, 1);
    feed->noise_free = config->slot_free;
    feed->noise_context = config->slot_context;
    noise->labels = dl2_calloc(config->batch, sizeof *noise->labels);
    noise->indices = dl2_calloc(config->batch, sizeof *noise->indices);
    if (pixels)
        noise->masks = dl2_calloc(count / config->channels, 1);
    if (!noise->images || !noise->labels || !noise->indices || (pixels && !noise->masks))
        return dl2_error_memory(error, "a batch of noise (%zu bytes)", size);
    struct dl2_random random;
    dl2_random_init(&random, config->seed, DL2_RANDOM_SYNTHETIC, config->rank, 0);
    for (size_t i = 0; i < count && !floats; i++)
        noise->images[i] = (uint8_t)(dl2_random_u32(&random) >> 24);
    for (size_t i = 0; i < count && floats; i++) /* the mean is 0, the deviation 1 */
        ((float *)noise->images)[i] = (float)(sqrt(12) * (dl2_random_uniform(&random) - 0.5));
    for (unsigned i = 0; i < config->batch; i++) {
        noise->labels[i] = (int32_t)dl2_random_below(&random, classes);
        noise->indices[i] = i;
    }
    for (size_t i = 0; pixels && i < count / config->channels; i++)
        noise->masks[i] = (uint8_t)dl2_random_below(&random, classes);
    return DL2_OK;
}

int dl2_feed_create_synthetic(uint64_t images, unsigned classes, bool pixels,
                              const struct dl2_loader_config *config, struct dl2_feed **out,
                              struct dl2_error *error)
{
    struct dl2_feed *feed = feed_alloc(error);
    if (!feed)
        return DL2_ERR_MEMORY;
    /* Each rank's part, as the loader's: see loader/sampler.h. */
    const uint64_t ranks = config->world ? config->world : 1;
    feed->images =
        images / (config->batch * ranks) * config->batch + images % (config->batch * ranks) / ranks;
    feed->batch = config->batch;
    feed->drop_last = config->drop_last;
    feed->steps = config->drop_last ? feed->images / config->batch
                                    : (feed->images + config->batch - 1) / config->batch;
    int status = make_noise(feed, classes, pixels, config, error);
    if (status < 0) {
        dl2_feed_destroy(feed);
        return status;
    }
    *out = feed;
    return DL2_OK;
}

void dl2_feed_destroy(struct dl2_feed *feed)
{
    if (!feed)
        return;
    if (feed->loader)
        dl2_loader_destroy(feed->loader);
    if (feed->noise_free && feed->noise.images)
        feed->noise_free(feed->noise_context, feed->noise.images);
    else if (!feed->noise_free)
        free(feed->noise.images);
    free(feed->noise.labels);
    free(feed->noise.indices);
    free(feed->noise.masks);
    free(feed);
}

uint64_t dl2_feed_steps(const struct dl2_feed *feed)
{
    return feed->loader ? dl2_loader_steps(feed->loader) : feed->steps;
}

int dl2_feed_start_epoch(struct dl2_feed *feed, uint64_t epoch, uint64_t first_step,
                         struct dl2_error *error)
{
    if (feed->loader)
        return dl2_loader_start_epoch(feed->loader, epoch, first_step, error);
    feed->noise.epoch = epoch;
    feed->step = first_step;
    return DL2_OK;
}

int dl2_feed_get_position(struct dl2_feed *feed, struct dl2_loader_position *position,
                          struct dl2_error *error)
{
    if (feed->loader)
        return dl2_loader_get_position(feed->loader, position, error);
    *position = (struct dl2_loader_position){.epoch = feed->noise.epoch, .step = feed->step};
    return DL2_OK;
}

int dl2_feed_resume(struct dl2_feed *feed, const struct dl2_loader_position *position,
                    struct dl2_error *error)
{
    if (feed->loader)
        return dl2_loader_resume(feed->loader, position, error);
    return dl2_feed_start_epoch(feed, position->epoch, position->step, error);
}

int dl2_feed_next(struct dl2_feed *feed, struct dl2_batch **out, struct dl2_error *error)
{
    if (feed->loader)
        return dl2_loader_next(feed->loader, out, error);
    if (feed->step >= feed->steps)
        return 0;
    uint64_t left = feed->images - feed->step * feed->batch;
    feed->noise.count = left < feed->batch ? (unsigned)left : feed->batch;
    feed->noise.step = feed->step++;
    feed->stats.images += feed->noise.count;
    *out = &feed->noise;
    return 1;
}

void dl2_feed_release(struct dl2_feed *feed, struct dl2_batch *batch)
{
    if (feed->loader)
        dl2_loader_release(feed->loader, batch);
}

void dl2_feed_get_stats(const struct dl2_feed *feed, struct dl2_loader_stats *stats)
{
    if (feed->loader)
        dl2_loader_get_stats(feed->loader, stats);
    else
        *stats = feed->stats;
}

void dl2_feed_stats_reset(struct dl2_feed *feed)
{
    if (feed->loader)
        dl2_loader_stats_reset(feed->loader);
    else
        memset(&feed->stats, 0, sizeof feed->stats);
}

const char *const *dl2_feed_bad(const struct dl2_feed *feed, size_t *count)
{
    *count = 0;
    return feed->loader ? dl2_loader_bad(feed->loader, count) : NULL;
}

void dl2_feed_epoch_bad(const struct dl2_feed *feed, double out[2])
{
    uint64_t samples = 0, bad = 0;
    if (feed->loader)
        dl2_loader_epoch_bad(feed->loader, &samples, &bad);
    out[0] = (double)samples;
    out[1] = (double)bad;
}

const char *dl2_feed_shares_note(const struct dl2_feed *feed)
{
    return feed->loader ? dl2_loader_shares_note(feed->loader) : NULL;
}
