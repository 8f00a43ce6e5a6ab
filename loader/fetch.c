#include "loader/fetch.h"

#include "common/clock.h"
#include "loader/cache.h"

#include <fcntl.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct dl2_fetch {
    const struct dl2_dataset *dataset;
    struct dl2_fetch_config config;
    struct dl2_cache *cache; /* of encoded bytes; NULL: none */
    atomic_uint_fast64_t bytes_read, requests, cache_hits, wait_ns;
};

static void count(atomic_uint_fast64_t *counter, uint64_t amount)
{
    atomic_fetch_add_explicit(counter, amount, memory_order_relaxed);
}

/* Whole pages, those shared with neighbours too: each epoch is to find none of its own. */
static void evict_behind(const struct dl2_fetch *fetch, size_t index)
{
    struct dl2_location location;
    if (!dl2_dataset_locate(fetch->dataset, index, &location))
        return;
    const uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE);
    const uint64_t start = location.offset / page * page;
    const uint64_t end = (location.offset + location.bytes + page - 1) / page * page;
    const int own = location.fd >= 0 ? -1 : open(location.path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    const int fd = location.fd >= 0 ? location.fd : own;
    if (fd >= 0)
        posix_fadvise(fd, (off_t)start, (off_t)(end - start), POSIX_FADV_DONTNEED);
    if (own >= 0)
        close(own);
}

static int read_now(struct dl2_fetch *fetch, uint32_t index, struct dl2_fetched *fetched,
                    struct dl2_error *error)
{
    const double start = dl2_clock_wall();
    const int status = dl2_dataset_read(fetch->dataset, index, &fetched->scratch, &fetched->data,
                                        &fetched->size, error);
    const double took = dl2_clock_wall() - start;
    count(&fetch->requests, 1);
    count(&fetch->wait_ns, (uint64_t)(took * 1e9));
    if (status == DL2_OK)
        count(&fetch->bytes_read, fetched->size);
    if (fetch->config.drop_behind)
        evict_behind(fetch, index);
    return status;
}

/* Keeps a copy of what was read, where there is still room for it. */
static void keep(struct dl2_fetch *fetch, uint32_t index, const struct dl2_fetched *fetched)
{
    struct dl2_cache_block *block =
        fetch->cache ? dl2_cache_offer(fetch->cache, index, fetched->size) : NULL;
    if (!block)
        return;
    if (fetched->size)
        memcpy(block->data, fetched->data, fetched->size);
    dl2_cache_publish(fetch->cache, index, block);
}

static bool take_cached(struct dl2_fetch *fetch, uint32_t index, struct dl2_fetched *fetched)
{
    const struct dl2_cache_block *block = fetch->cache ? dl2_cache_find(fetch->cache, index) : NULL;
    if (!block)
        return false;
    fetched->data = block->data;
    fetched->size = block->size;
    count(&fetch->cache_hits, 1);
    return true;
}

int dl2_fetch_take(struct dl2_fetch *fetch, size_t position, uint32_t index,
                   struct dl2_fetched *fetched, struct dl2_error *error)
{
    (void)position;
    fetched->data = NULL;
    fetched->size = 0;
    fetched->slot = NULL;
    if (index >= dl2_dataset_count(fetch->dataset))
        return dl2_error_set(error, DL2_ERR_ARGUMENT, "there is no sample number %u", index);
    if (take_cached(fetch, index, fetched))
        return DL2_OK;
    DL2_TRY(read_now(fetch, index, fetched, error));
    keep(fetch, index, fetched);
    return DL2_OK;
}

void dl2_fetch_give(struct dl2_fetch *fetch, struct dl2_fetched *fetched)
{
    (void)fetch;
    fetched->data = NULL;
    fetched->size = 0;
}

void dl2_fetch_start(struct dl2_fetch *fetch, const uint32_t *order, size_t order_count)
{
    (void)fetch;
    (void)order;
    (void)order_count;
}

int dl2_fetch_create(const struct dl2_dataset *dataset, const struct dl2_fetch_config *config,
                     struct dl2_fetch **out, struct dl2_error *error)
{
    *out = NULL;
    if (config->io == DL2_IO_THREADS || config->io == DL2_IO_URING)
        return dl2_error_set(error, DL2_ERR_UNSUPPORTED, "this build can't read ahead");
    struct dl2_fetch *fetch = dl2_calloc(1, sizeof *fetch);
    if (!fetch)
        return dl2_error_set(error, DL2_ERR_MEMORY, "out of memory to read samples");
    fetch->dataset = dataset;
    fetch->config = *config;
    int status = DL2_OK;
    if (config->cache_bytes)
        status =
            dl2_cache_create(dl2_dataset_count(dataset), config->cache_bytes, &fetch->cache, error);
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
    dl2_cache_destroy(fetch->cache);
    free(fetch);
}

void dl2_fetch_get_stats(struct dl2_fetch *fetch, struct dl2_fetch_stats *stats)
{
    struct dl2_cache_stats cache = {0};
    if (fetch->cache)
        dl2_cache_get_stats(fetch->cache, &cache);
    *stats = (struct dl2_fetch_stats){
        .bytes_read = atomic_load(&fetch->bytes_read),
        .requests = atomic_load(&fetch->requests),
        .cache_hits = atomic_load(&fetch->cache_hits),
        .cached = cache.count,
        .cached_bytes = cache.bytes,
        .memory = sizeof *fetch + cache.bytes,
        .wait = (double)atomic_load(&fetch->wait_ns) * 1e-9,
    };
}
