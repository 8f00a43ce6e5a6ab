/* SPDX-License-Identifier: BSD-2-Clause */
#include "loader/fetch.h"

#include "common/clock.h"
#include "loader/cache.h"
#include "loader/engine.h"

#include <fcntl.h>
#include <inttypes.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct dl2_fetch {
    const struct dl2_planner *planner;
    struct dl2_fetch_config config;
    struct dl2_cache *cache;      /* of encoded bytes; NULL: none */
    struct dl2_read_ahead *ahead; /* NULL: nothing is read ahead */
    bool advised;
    int advice; /* of posix_fadvise(), if it was given */
    atomic_uint_fast64_t bytes_read, requests, taken_ahead, cache_hits;
};

static void add_to(atomic_uint_fast64_t *counter, uint64_t amount)
{
    atomic_fetch_add_explicit(counter, amount, memory_order_relaxed);
}

static void evict_behind(const struct dl2_fetch *fetch, size_t image)
{
    struct dl2_location at;
    if (!dl2_dataset_locate(fetch->planner->dataset, image, &at))
        return;
    const int own = at.fd >= 0 ? -1 : open(at.path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    const int fd = at.fd >= 0 ? at.fd : own;
    if (fd >= 0)
        dl2_evict_extent(fd, at.offset, at.bytes);
    if (own >= 0)
        close(own);
}

static int read_now(struct dl2_fetch *fetch, const struct dl2_sample_plan *plan,
                    struct dl2_fetched *fetched, struct dl2_error *error)
{
    const struct dl2_dataset *dataset = fetch->planner->dataset;
    const double start = dl2_clock_wall();
    const int status =
        plan->slices.count
            ? dl2_dataset_read_slices(dataset, plan->image, plan->slices, &fetched->scratch,
                                      &fetched->data, &fetched->size, error)
            : dl2_dataset_read(dataset, plan->image, &fetched->scratch, &fetched->data,
                               &fetched->size, error);
    const double took = dl2_clock_wall() - start;
    add_to(&fetch->requests, 1);
    if (status == DL2_OK) {
        add_to(&fetch->bytes_read, fetched->size);
        if (fetch->ahead)
            dl2_read_ahead_observe(fetch->ahead, took, fetched->size);
    }
    if (fetch->config.drop_behind)
        evict_behind(fetch, plan->image);
    return status;
}

void dl2_fetch_release(struct dl2_fetch *fetch, struct dl2_fetched *fetched)
{
    if (fetched->request)
        dl2_read_ahead_release(fetch->ahead, fetched->request);
    fetched->data = NULL;
    fetched->size = 0;
    fetched->request = NULL;
}

/* Are there bytes that were read ahead, and good ones? If not, reading them once more gives the
 * reason. */
static bool take_ahead(struct dl2_fetch *fetch, const struct dl2_sample_plan *plan,
                       struct dl2_fetched *fetched)
{
    const struct dl2_dataset *dataset = fetch->planner->dataset;
    if (!fetched->request)
        return false;
    const int status =
        plan->slices.count
            ? dl2_dataset_verify_slices(dataset, plan->image, plan->slices, fetched->data,
                                        fetched->size, NULL)
            : dl2_dataset_verify(dataset, plan->image, fetched->data, fetched->size, NULL);
    if (status < 0) {
        dl2_fetch_release(fetch, fetched);
        return false;
    }
    add_to(&fetch->taken_ahead, 1);
    return true;
}

/* Keeps a copy of what was read if the cache has room for it. */
static void keep_in_cache(struct dl2_fetch *fetch, uint32_t image,
                          const struct dl2_fetched *fetched)
{
    struct dl2_cache_block *block =
        fetch->cache ? dl2_cache_offer(fetch->cache, image, fetched->size) : NULL;
    if (!block)
        return;
    if (fetched->size)
        memcpy(block->data, fetched->data, fetched->size);
    dl2_cache_publish(fetch->cache, image, block);
}

int dl2_fetch_acquire(struct dl2_fetch *fetch, size_t position, uint32_t index,
                      struct dl2_sample_plan *plan, struct dl2_fetched *fetched,
                      struct dl2_error *error)
{
    fetched->data = NULL;
    fetched->size = 0;
    fetched->request = NULL;
    if (index >= dl2_dataset_count(fetch->planner->dataset))
        return dl2_error_set(error, DL2_ERR_ARGUMENT, "there is no sample number %" PRIu32, index);
    const bool of_clip = fetch->planner->config->frames;
    plan->index = plan->image = index;
    if (fetch->cache && of_clip) /* the plan says which of its images */
        dl2_plan_sample(fetch->planner, plan);
    const struct dl2_cache_block *kept =
        fetch->cache ? dl2_cache_find(fetch->cache, plan->image) : NULL;
    const bool ahead = !kept && fetch->ahead &&
                       dl2_read_ahead_acquire(fetch->ahead, position, index, plan, fetched);
    if (!ahead && !(fetch->cache && of_clip))
        dl2_plan_sample(fetch->planner, plan);
    if (plan->decoded)
        return DL2_OK;
    if (kept) {
        fetched->data = kept->data;
        fetched->size = kept->size;
        add_to(&fetch->cache_hits, 1);
        return DL2_OK;
    }
    if (!take_ahead(fetch, plan, fetched))
        DL2_TRY(read_now(fetch, plan, fetched, error));
    keep_in_cache(fetch, plan->image, fetched);
    return DL2_OK;
}

/*
 * Tells the kernel how shards are read. Samples are parts of a shard: unless they are read from
 * front to back, what the kernel would read beyond each is wasted, up to several times its size.
 */
static void advise_kernel(struct dl2_fetch *fetch, const uint32_t *order, size_t order_count)
{
    size_t forward = 0, looked_at = 0;
    for (; looked_at < 256 && looked_at + 1 < order_count; looked_at++)
        forward += order[looked_at + 1] == order[looked_at] + 1;
    const int advice = forward * 10 > looked_at * 9 ? POSIX_FADV_SEQUENTIAL : POSIX_FADV_RANDOM;
    if (fetch->advised && fetch->advice == advice)
        return;
    fetch->advised = true;
    fetch->advice = advice;
    int last = -1;
    for (size_t i = 0; i < dl2_dataset_image_count(fetch->planner->dataset); i++) {
        struct dl2_location at;
        const bool is_open = dl2_dataset_locate(fetch->planner->dataset, i, &at) && at.fd >= 0;
        if (!is_open && dl2_dataset_members(fetch->planner->dataset) == 1)
            return;
        if (is_open && at.fd != last)
            posix_fadvise(at.fd, 0, 0, advice);
        last = is_open ? at.fd : last;
    }
}

void dl2_fetch_start(struct dl2_fetch *fetch, const uint32_t *order, size_t order_count)
{
    if (order_count)
        advise_kernel(fetch, order, order_count);
    if (fetch->ahead)
        dl2_read_ahead_start(fetch->ahead, order, order_count);
}

int dl2_fetch_create(const struct dl2_planner *planner, const struct dl2_fetch_config *config,
                     struct dl2_fetch **out, struct dl2_error *error)
{
    *out = NULL;
    struct dl2_location at;
    if (config->drop_behind && dl2_dataset_count(planner->dataset) &&
        dl2_dataset_locate(planner->dataset, 0, &at) && at.remote)
        return dl2_error_set(error, DL2_ERR_ARGUMENT,
                             "drop_behind has no effect on a dataset behind a server, which is not "
                             "in the page cache");
    struct dl2_fetch *fetch = dl2_calloc(1, sizeof *fetch);
    if (!fetch)
        return dl2_error_set(error, DL2_ERR_MEMORY, "out of memory to read samples");
    fetch->planner = planner;
    fetch->config = *config;
    int status = DL2_OK;
    if (config->cache_bytes)
        status = dl2_cache_create(dl2_dataset_image_count(planner->dataset), config->cache_bytes,
                                  &fetch->cache, error);
    if (status == DL2_OK && config->io != DL2_IO_DIRECT)
        status = dl2_read_ahead_create(planner, config, fetch->cache, &fetch->ahead, error);
    if (status < 0) {
        dl2_fetch_destroy(fetch);
        return status;
    }
    *out = fetch;
    return DL2_OK;
}

void dl2_fetch_destroy(struct dl2_fetch *fetch)
{
    if (!fetch)
        return;
    dl2_read_ahead_destroy(fetch->ahead);
    dl2_cache_destroy(fetch->cache);
    free(fetch);
}

void dl2_fetch_count(struct dl2_fetch *fetch, uint64_t bytes, uint64_t requests)
{
    add_to(&fetch->bytes_read, bytes);
    add_to(&fetch->requests, requests);
}

void dl2_fetch_get_stats(struct dl2_fetch *fetch, struct dl2_fetch_stats *stats)
{
    struct dl2_cache_stats cache = {0};
    struct dl2_fetch_stats ahead = {0};
    if (fetch->cache)
        dl2_cache_get_stats(fetch->cache, &cache);
    if (fetch->ahead)
        dl2_read_ahead_get_stats(fetch->ahead, &ahead);
    *stats = (struct dl2_fetch_stats){
        .bytes_read = atomic_load(&fetch->bytes_read) + ahead.bytes_read,
        .requests = atomic_load(&fetch->requests) + ahead.requests,
        .ahead = atomic_load(&fetch->taken_ahead),
        .cache_hits = atomic_load(&fetch->cache_hits),
        .cached = cache.count,
        .cached_bytes = cache.bytes,
        .memory = sizeof *fetch + cache.bytes + ahead.memory,
    };
}
