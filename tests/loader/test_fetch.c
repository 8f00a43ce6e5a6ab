/* SPDX-License-Identifier: BSD-2-Clause */
/* Reading samples: the right bytes in every mode, bounded caches, named errors, no leaks. */
#include "common/file.h"
#include "common/random.h"
#include "dataset/container.h"
#include "loader/cache.h"
#include "loader/decoded.h"
#include "loader/fetch.h"
#include "loader/read_ahead.h"
#include "tests/loader/pictures.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <pthread.h>
#include <stdatomic.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { SAMPLES = 200, THREADS = 4 };

static size_t size_of(unsigned number)
{
    return number % 17 == 5 ? 0 : 1 + number * 7919 % 9000;
}

/* Bytes that `number` decides; they need not be an image, nobody decodes here. */
static void fill(unsigned number, uint8_t *data, size_t size)
{
    struct dl2_random random;
    dl2_random_init(&random, number, DL2_RANDOM_TEST, 0, 0);
    for (size_t i = 0; i < size; i++)
        data[i] = (uint8_t)dl2_random_u32(&random);
}

static void name_of(unsigned number, char *name)
{
    sprintf(name, "%s/class%u/%03u.jpg", root, number / 50, number);
}

static void put_sample(unsigned number, size_t size)
{
    char name[320];
    uint8_t *data = malloc(size + 1);
    fill(number, data, size);
    name_of(number, name);
    put(name + strlen(root) + 1, data, size);
    free(data);
}

static int make_samples(void **state)
{
    if (make_root(state) != 0)
        return -1;
    for (unsigned i = 0; i < SAMPLES; i++)
        put_sample(i, size_of(i));
    reopen();
    assert_int_equal(dl2_dataset_count(samples), SAMPLES);
    return 0;
}

static const struct dl2_loader_config loader_config = DL2_LOADER_DEFAULTS;
static struct dl2_planner planner; /* of the fetch that a test made last; they live one at a time */

static struct dl2_fetch *new_fetch(const struct dl2_dataset *dataset,
                                   const struct dl2_fetch_config *config,
                                   struct dl2_decoded_cache *decoded)
{
    planner = dl2_planner_of(dataset, &loader_config);
    planner.decoded = decoded;
    struct dl2_fetch *fetch;
    struct dl2_error error = DL2_ERROR_INIT;
    expect_ok(dl2_fetch_create(&planner, config, &fetch, &error), &error);
    return fetch;
}

static bool is_right(unsigned number, const uint8_t *data, size_t size)
{
    if (size != size_of(number))
        return false;
    uint8_t expected[9001];
    fill(number, expected, size);
    return !size || !memcmp(data, expected, size);
}

/* Takes a sample with a plan of that sample. */
static int take(struct dl2_fetch *fetch, size_t position, uint32_t index,
                struct dl2_fetched *fetched, struct dl2_error *error)
{
    struct dl2_sample_plan plan = {.epoch_position = 0};
    const int status = dl2_fetch_acquire(fetch, position, index, &plan, fetched, error);
    return status == DL2_OK && plan.index != index ? DL2_ERR_ARGUMENT : status;
}

static void take_and_check(struct dl2_fetch *fetch, size_t position, uint32_t index,
                           struct dl2_fetched *fetched)
{
    struct dl2_error error = DL2_ERROR_INIT;
    expect_ok(take(fetch, position, index, fetched, &error), &error);
    assert_true(is_right(index, fetched->data, fetched->size));
    dl2_fetch_release(fetch, fetched);
}

static void shuffle(uint32_t *order, unsigned seed)
{
    struct dl2_random random;
    dl2_random_init(&random, seed, DL2_RANDOM_TEST, 1, 0);
    for (uint32_t i = 0; i < SAMPLES; i++)
        order[i] = i;
    for (uint32_t i = SAMPLES - 1; i > 0; i--) {
        const uint32_t j = dl2_random_below(&random, i + 1), kept = order[i];
        order[i] = order[j];
        order[j] = kept;
    }
}

/* ---- the cache ---- */

static void cache_is_bounded_exactly(void **state)
{
    struct dl2_cache *cache;
    struct dl2_error error = DL2_ERROR_INIT;
    assert_int_equal(dl2_cache_create(100, 799, &cache, &error), DL2_ERR_ARGUMENT);
    assert_non_null(strstr(error.message, "100 samples"));
    dl2_error_clear(&error);

    /* The table takes 800 bytes, 832 with what aligns it; each block of 100 bytes 192. */
    const uint64_t limit = 832 + 3 * 192 + 128;
    assert_int_equal(dl2_cache_create(100, limit, &cache, &error), 0);
    for (unsigned i = 0; i < 3; i++) {
        assert_null(dl2_cache_find(cache, i));
        struct dl2_cache_block *block = dl2_cache_offer(cache, i, 100);
        assert_non_null(block);
        assert_int_equal((uintptr_t)block->data % DL2_ALIGNMENT, 0);
        fill(i, block->data, 100);
        assert_null(dl2_cache_find(cache, i));       /* not yet */
        assert_null(dl2_cache_offer(cache, i, 100)); /* somebody is at it */
        dl2_cache_publish(cache, i, block);
        assert_null(dl2_cache_offer(cache, i, 100)); /* it is there */
    }
    assert_null(dl2_cache_offer(cache, 50, 100)); /* full */
    assert_null(dl2_cache_offer(cache, 51, SIZE_MAX));
    assert_null(dl2_cache_offer(cache, 100, 1)); /* there is no such sample */
    assert_null(dl2_cache_find(cache, 100));
    struct dl2_cache_block *small = dl2_cache_offer(cache, 50, 64); /* but for this one */
    assert_non_null(small);
    struct dl2_cache_stats stats;
    dl2_cache_get_stats(cache, &stats);
    assert_int_equal(stats.count, 3);
    assert_int_equal(stats.bytes, limit);
    small->data[0] = 7;
    dl2_cache_publish(cache, 50, small);
    dl2_cache_publish(cache, 51, small); /* another sample has it, too */
    for (unsigned i = 0; i < 3; i++) {   /* nothing was evicted */
        const struct dl2_cache_block *block = dl2_cache_find(cache, i);
        uint8_t expected[100];
        fill(i, expected, 100);
        assert_int_equal(block->size, 100);
        assert_memory_equal(block->data, expected, 100);
    }
    assert_int_equal(dl2_cache_find(cache, 51)->data[0], 7);
    dl2_cache_destroy(cache);
}

struct cache_user {
    struct dl2_cache *cache;
    pthread_t thread;
    unsigned number, filled, wrong;
};

static void *use_cache(void *argument)
{
    struct cache_user *user = argument;
    for (unsigned round = 0; round < 20; round++)
        for (unsigned n = 0; n < SAMPLES; n++) {
            const unsigned i = (n * 7 + user->number * 50) % SAMPLES;
            const struct dl2_cache_block *found = dl2_cache_find(user->cache, i);
            if (found) {
                user->wrong += !is_right(i, found->data, found->size);
                continue;
            }
            if (i % 10 == 3 && round < 2) { /* claimed, and not filled after all */
                if (dl2_cache_claim(user->cache, i, size_of(i)))
                    dl2_cache_unclaim(user->cache, i);
                continue;
            }
            struct dl2_cache_block *block = dl2_cache_offer(user->cache, i, size_of(i));
            if (!block)
                continue;
            fill(i, block->data, block->size);
            dl2_cache_publish(user->cache, i, block);
            user->filled++;
        }
    return NULL;
}

static void cache_is_shared_by_threads(void **state)
{
    struct dl2_cache *cache;
    assert_int_equal(dl2_cache_create(SAMPLES, 500000, &cache, NULL), 0);
    struct cache_user users[THREADS] = {{0}};
    unsigned filled = 0;
    for (unsigned i = 0; i < THREADS; i++) {
        users[i].cache = cache;
        users[i].number = i;
        assert_int_equal(pthread_create(&users[i].thread, NULL, use_cache, &users[i]), 0);
    }
    for (unsigned i = 0; i < THREADS; i++) {
        pthread_join(users[i].thread, NULL);
        assert_int_equal(users[i].wrong, 0);
        filled += users[i].filled;
    }
    struct dl2_cache_stats stats;
    dl2_cache_get_stats(cache, &stats);
    assert_int_equal(stats.count, filled);
    assert_true(filled > 50 && filled < SAMPLES);
    assert_true(stats.bytes <= 500000);
    dl2_cache_destroy(cache);
}

/* ---- reading ---- */

static void direct_reads_and_caches(void **state)
{
    uint64_t all = 0;
    for (unsigned i = 0; i < SAMPLES; i++)
        all += size_of(i);
    struct dl2_fetch_config config = {.io = DL2_IO_DIRECT, .cache_bytes = 300000};
    struct dl2_fetch *fetch = new_fetch(samples, &config, NULL);
    struct dl2_fetched fetched = {0};
    struct dl2_fetch_stats first, second;
    uint32_t order[SAMPLES];
    shuffle(order, 1);
    dl2_fetch_start(fetch, order, SAMPLES);
    for (unsigned i = 0; i < SAMPLES; i++)
        take_and_check(fetch, i, order[i], &fetched);
    dl2_fetch_get_stats(fetch, &first);
    assert_int_equal(first.bytes_read, all);
    assert_int_equal(first.requests, SAMPLES);
    assert_int_equal(first.cache_hits, 0);
    assert_true(first.cached > 10 && first.cached < SAMPLES);
    assert_true(first.cached_bytes <= 300000 && first.cached_bytes > 290000);
    assert_true(first.memory >= first.cached_bytes);
    shuffle(order, 2);
    dl2_fetch_start(fetch, order, SAMPLES);
    for (unsigned i = 0; i < SAMPLES; i++)
        take_and_check(fetch, i, order[i], &fetched);
    dl2_fetch_get_stats(fetch, &second);
    assert_int_equal(second.cached, first.cached); /* it stays as it is */
    assert_int_equal(second.cache_hits, first.cached);
    assert_int_equal(second.requests, 2 * SAMPLES - first.cached);
    dl2_bytes_free(&fetched.scratch);
    dl2_fetch_destroy(fetch);
}

static void errors_name_the_file(void **state)
{
    struct dl2_fetch_config config = {.io = DL2_IO_DIRECT};
    struct dl2_fetch *fetch = new_fetch(samples, &config, NULL);
    struct dl2_fetched fetched = {0};
    struct dl2_error error = DL2_ERROR_INIT;
    char name[320];
    name_of(9, name);
    assert_int_equal(unlink(name), 0);
    assert_int_equal(take(fetch, 0, 9, &fetched, &error), DL2_ERR_SYSTEM);
    assert_non_null(strstr(error.message, name));
    dl2_fetch_release(fetch, &fetched);
    dl2_error_clear(&error);
    assert_int_equal(take(fetch, 0, SAMPLES, &fetched, &error), DL2_ERR_ARGUMENT);
    dl2_fetch_release(fetch, &fetched);
    put_sample(9, size_of(9));
    take_and_check(fetch, 0, 9, &fetched);
    dl2_bytes_free(&fetched.scratch);
    dl2_fetch_destroy(fetch);
}

static void eviction_is_measured(void **state)
{
    struct dl2_fetch_config config = {.io = DL2_IO_DIRECT, .drop_behind = true};
    struct dl2_fetch *fetch = new_fetch(samples, &config, NULL);
    struct dl2_fetched fetched = {0};
    struct dl2_error error = DL2_ERROR_INIT;
    double resident = -1;
    /* How many pages stay is the file system's affair (in a tmpfs all do): only a share is asked
     * for. */
    expect_ok(dl2_fetch_evict(samples, &resident, &error), &error);
    assert_true(resident >= 0 && resident <= 1);
    for (unsigned i = 0; i < SAMPLES; i++)
        take_and_check(fetch, i, i, &fetched);
    char name[320];
    name_of(3, name);
    assert_int_equal(unlink(name), 0);
    assert_int_equal(dl2_fetch_evict(samples, &resident, &error), DL2_ERR_SYSTEM);
    assert_non_null(strstr(error.message, name));
    put_sample(3, size_of(3));
    dl2_bytes_free(&fetched.scratch);
    dl2_fetch_destroy(fetch);
}

/* ---- a dataset in one file, with check sums of a kind, and as slow as one likes ---- */

enum { GAP = 100 };

struct pack {
    int fd;
    char path[320];
    uint64_t offsets[SAMPLES];
    atomic_uint read, verified, planned;
    bool to_be_opened; /* there is no descriptor to share */
    unsigned delay_us;
};

static bool locate_in_pack(const struct dl2_dataset *dataset, size_t index,
                           const struct dl2_slice_range *slices, struct dl2_location *location)
{
    const struct pack *pack = dataset->state;
    *location = (struct dl2_location){pack->path, pack->to_be_opened ? -1 : pack->fd,
                                      pack->offsets[index], size_of((unsigned)index)};
    return true;
}

/* The planner asks for the cuts of each sample that it plans; these samples have none. */
static bool cuts_of_pack(const struct dl2_dataset *dataset, size_t index, struct dl2_cuts *cuts)
{
    struct pack *pack = dataset->state;
    atomic_fetch_add(&pack->planned, 1);
    return false;
}

static int verify_pack(const struct dl2_dataset *dataset, size_t index,
                       const struct dl2_slice_range *slices, const uint8_t *data, size_t size,
                       struct dl2_error *error)
{
    struct pack *pack = dataset->state;
    atomic_fetch_add(&pack->verified, 1);
    return is_right((unsigned)index, data, size)
               ? DL2_OK
               : dl2_error_set(error, DL2_ERR_FORMAT, "%s[%zu]: another check sum", pack->path,
                               index);
}

static int read_pack(const struct dl2_dataset *dataset, size_t index,
                     const struct dl2_slice_range *slices, struct dl2_bytes *out,
                     struct dl2_error *error)
{
    struct pack *pack = dataset->state;
    atomic_fetch_add(&pack->read, 1);
    const struct timespec delay = {0, (long)pack->delay_us * 1000};
    if (pack->delay_us)
        nanosleep(&delay, NULL);
    DL2_TRY(dl2_bytes_resize(out, size_of((unsigned)index), error));
    if (pread(pack->fd, out->data, out->size, (off_t)pack->offsets[index]) != (ssize_t)out->size)
        return dl2_error_set(error, DL2_ERR_FORMAT, "%s[%zu]: cut short", pack->path, index);
    return verify_pack(dataset, index, slices, out->data, out->size, error);
}

static struct dl2_entry describe_pack(const struct dl2_dataset *dataset, size_t index)
{
    return (struct dl2_entry){.sample = {.key = "x",
                                         .path = "pack[x]",
                                         .name = "x",
                                         .label = -1,
                                         .bytes = size_of((unsigned)index)}};
}

static const struct dl2_reader pack_reader = {.describe = describe_pack,
                                              .read = read_pack,
                                              .locate = locate_in_pack,
                                              .verify = verify_pack,
                                              .cuts = cuts_of_pack};
static const struct dl2_container pack_container = {.name = "pack", .reader = &pack_reader};

static struct dl2_dataset open_pack(struct pack *pack, unsigned spoiled)
{
    static const uint8_t zeros[GAP];
    memset(pack, 0, sizeof *pack);
    snprintf(pack->path, sizeof pack->path, "%s/pack", root);
    pack->fd = open(pack->path, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    assert_true(pack->fd >= 0);
    uint64_t at = 0;
    for (unsigned i = 0; i < SAMPLES; i++) {
        uint8_t data[9001];
        const size_t size = size_of(i);
        fill(i, data, size);
        if (i == spoiled)
            data[0] ^= 1;
        pack->offsets[i] = at;
        assert_int_equal(write(pack->fd, data, size), size);
        assert_int_equal(write(pack->fd, zeros, GAP), GAP);
        at += size + GAP;
    }
    return (struct dl2_dataset){.container = &pack_container, .state = pack, .count = SAMPLES};
}

static void close_pack(struct pack *pack)
{
    close(pack->fd);
    unlink(pack->path);
}

/* ---- read-ahead ---- */

static const enum dl2_io modes[] = {DL2_IO_AUTO, DL2_IO_DIRECT, DL2_IO_THREADS, DL2_IO_URING};

/* NULL where the kernel or the build has no io_uring. */
static struct dl2_fetch *try_fetch(const struct dl2_dataset *dataset,
                                   const struct dl2_fetch_config *config)
{
    struct dl2_fetch *fetch = NULL;
    struct dl2_error error = DL2_ERROR_INIT;
    planner = dl2_planner_of(dataset, &loader_config);
    const int status = dl2_fetch_create(&planner, config, &fetch, &error);
    if (status == DL2_ERR_UNSUPPORTED && config->io == DL2_IO_URING) {
        assert_non_null(strstr(error.message, "io_uring"));
        print_message("%s\n", error.message);
        return NULL;
    }
    expect_ok(status, &error);
    return fetch;
}

struct taker {
    struct dl2_fetch *fetch;
    const uint32_t *order;
    atomic_size_t *next;
    size_t end;
    unsigned wrong;
    pthread_t thread;
};

/* Like a worker: claims positions one by one, holds two samples at a time. */
static void *take_all(void *argument)
{
    struct taker *taker = argument;
    struct dl2_fetched held[2] = {{0}};
    size_t position;
    for (unsigned n = 0; (position = atomic_fetch_add(taker->next, 1)) < taker->end; n++) {
        struct dl2_fetched *fetched = &held[n % 2];
        const uint32_t index = taker->order[position];
        struct dl2_error error = DL2_ERROR_INIT;
        dl2_fetch_release(taker->fetch, fetched);
        if (take(taker->fetch, position, index, fetched, &error) < 0) {
            print_message("%s\n", error.message);
            taker->wrong++;
        } else {
            taker->wrong += !is_right(index, fetched->data, fetched->size);
        }
    }
    for (unsigned i = 0; i < 2; i++) {
        dl2_fetch_release(taker->fetch, &held[i]);
        dl2_bytes_free(&held[i].scratch);
    }
    return NULL;
}

static void take_part(struct dl2_fetch *fetch, const uint32_t *order, size_t first, size_t end)
{
    atomic_size_t next = first;
    struct taker takers[THREADS];
    for (unsigned i = 0; i < THREADS; i++) {
        takers[i] = (struct taker){.fetch = fetch, .order = order, .next = &next, .end = end};
        assert_int_equal(pthread_create(&takers[i].thread, NULL, take_all, &takers[i]), 0);
    }
    for (unsigned i = 0; i < THREADS; i++) {
        pthread_join(takers[i].thread, NULL);
        assert_int_equal(takers[i].wrong, 0);
    }
}

/* Whole epochs, one that is left in the middle, one that begins there, and an end with reads under
 * way. */
static void use(struct dl2_fetch *fetch)
{
    static uint32_t order[SAMPLES]; /* outlives what is under way at the end */
    for (unsigned epoch = 0; epoch < 6; epoch++) {
        dl2_fetch_start(fetch, NULL, 0);
        shuffle(order, epoch);
        dl2_fetch_start(fetch, order, SAMPLES);
        take_part(fetch, order, epoch == 4 ? SAMPLES / 2 : 0, epoch % 2 ? SAMPLES / 3 : SAMPLES);
    }
    dl2_fetch_start(fetch, NULL, 0);
    shuffle(order, 9);
    dl2_fetch_start(fetch, order, SAMPLES);
    dl2_fetch_start(fetch, order, SAMPLES);
}

static unsigned count_descriptors(void)
{
    DIR *folder = opendir("/proc/self/fd");
    unsigned count = 0;
    while (folder && readdir(folder))
        count++;
    closedir(folder);
    return count;
}

static void every_mode_gives_the_same_bytes(void **state)
{
    static const struct dl2_fetch_config shapes[] = {
        {.ahead = 0},
        {.ahead = 1},
        {.ahead = 7, .ahead_bytes = 30000},
        {.ahead = 64, .cache_bytes = 200000},
        {.ahead_bytes = 1, .drop_behind = true}, /* in which nothing fits */
        {.ahead = 300, .cache_bytes = 4000000, .drop_behind = true},
    };
    struct pack pack;
    struct dl2_dataset packed = open_pack(&pack, SAMPLES);
    const unsigned descriptors = count_descriptors();
    for (unsigned m = 0; m < sizeof modes / sizeof *modes; m++)
        for (unsigned i = 0; i < 2 * sizeof shapes / sizeof *shapes; i++) {
            struct dl2_fetch_config config = shapes[i / 2];
            config.io = modes[m];
            struct dl2_fetch *fetch = try_fetch(i % 2 ? &packed : samples, &config);
            if (!fetch)
                break;
            use(fetch);
            struct dl2_fetch_stats stats;
            dl2_fetch_get_stats(fetch, &stats);
            assert_true(stats.cached_bytes <= config.cache_bytes);
            dl2_fetch_destroy(fetch);
        }
    assert_int_equal(count_descriptors(), descriptors);
    close_pack(&pack);
}

/* Waits until something was read ahead: who comes before it is planned reads himself. */
static void wait_for_requests(struct dl2_fetch *fetch, uint64_t count)
{
    struct dl2_fetch_stats stats;
    const struct timespec pause = {0, 1000000};
    for (unsigned i = 0; i < 30000; i++) {
        dl2_fetch_get_stats(fetch, &stats);
        if (stats.requests >= count)
            return;
        nanosleep(&pause, NULL);
    }
    fail_msg("nothing was read ahead for half a minute");
}

static void neighbors_are_read_together(void **state)
{
    struct pack pack;
    struct dl2_dataset packed = open_pack(&pack, SAMPLES);
    for (unsigned m = 0; m < 2 * sizeof modes / sizeof *modes; m++) {
        struct dl2_fetch_config config = {.io = modes[m / 2]};
        pack.to_be_opened = m % 2;
        if (config.io == DL2_IO_AUTO || config.io == DL2_IO_DIRECT)
            continue;
        struct dl2_fetch *fetch = try_fetch(&packed, &config);
        if (!fetch)
            continue;
        uint32_t order[SAMPLES];
        shuffle(order, m);
        atomic_store(&pack.read, 0);
        atomic_store(&pack.verified, 0);
        atomic_store(&pack.planned, 0);
        dl2_fetch_start(fetch, order, SAMPLES);
        wait_for_requests(fetch, 1);
        take_part(fetch, order, 0, SAMPLES);
        struct dl2_fetch_stats stats;
        dl2_fetch_get_stats(fetch, &stats);
        assert_int_equal(stats.requests, 1); /* all of the window lies within 1 MiB */
        assert_int_equal(stats.ahead, SAMPLES);
        assert_int_equal(stats.bytes_read,
                         pack.offsets[SAMPLES - 1] + size_of(SAMPLES - 1) - pack.offsets[0]);
        assert_int_equal(pack.read, 0);
        assert_int_equal(pack.verified, SAMPLES);
        assert_int_equal(pack.planned, SAMPLES); /* once, by who came first */
        dl2_fetch_destroy(fetch);
    }
    close_pack(&pack);
}

static void what_is_wrong_is_named(void **state)
{
    for (unsigned m = 0; m < sizeof modes / sizeof *modes; m++) {
        struct dl2_fetch_config config = {.io = modes[m]};
        struct pack pack;
        struct dl2_dataset packed = open_pack(&pack, 77);
        uint32_t order[SAMPLES];
        struct dl2_fetched fetched = {0};
        struct dl2_error error = DL2_ERROR_INIT;
        struct dl2_fetch *fetch = try_fetch(&packed, &config);
        if (fetch) { /* a check sum that differs, and a shard cut short */
            shuffle(order, 3);
            dl2_fetch_start(fetch, order, SAMPLES);
            for (unsigned i = 0; i < SAMPLES; i++) {
                const int expected = order[i] == 77 ? DL2_ERR_FORMAT : DL2_OK;
                assert_int_equal(take(fetch, i, order[i], &fetched, &error), expected);
                dl2_fetch_release(fetch, &fetched);
            }
            assert_non_null(strstr(error.message, "[77]: another check sum"));
            dl2_error_clear(&error);
            assert_int_equal(ftruncate(pack.fd, (off_t)pack.offsets[150]), 0);
            dl2_fetch_start(fetch, order, SAMPLES);
            for (unsigned i = 0; i < SAMPLES; i++) {
                const uint32_t index = order[i];
                const bool bad = index == 77 || (index >= 150 && size_of(index));
                assert_int_equal(take(fetch, i, index, &fetched, &error) < 0, bad);
                assert_true(bad || is_right(index, fetched.data, fetched.size));
                dl2_fetch_release(fetch, &fetched);
            }
            dl2_fetch_destroy(fetch);
            dl2_error_clear(&error);
        }
        fetch = try_fetch(samples, &config);
        if (fetch) { /* files that went, shrank and grew since the dataset was opened */
            char name[320];
            name_of(20, name);
            assert_int_equal(unlink(name), 0);
            name_of(21, name);
            assert_int_equal(truncate(name, 10), 0);
            uint8_t more[12000], expected[12000];
            fill(22, more, sizeof more);
            name_of(22, name);
            assert_int_equal(dl2_file_write(name, more, sizeof more, &error), 0);
            shuffle(order, 4);
            dl2_fetch_start(fetch, order, SAMPLES);
            for (unsigned i = 0; i < SAMPLES; i++) {
                const uint32_t index = order[i];
                const int status = take(fetch, i, index, &fetched, &error);
                if (index == 20) {
                    assert_int_equal(status, DL2_ERR_SYSTEM);
                } else { /* what is there now */
                    const size_t size = index == 21 ? 10 : index == 22 ? 12000 : size_of(index);
                    assert_int_equal(status, 0);
                    assert_int_equal(fetched.size, size);
                    fill(index, expected, size);
                    assert_true(!size || !memcmp(fetched.data, expected, size));
                }
                dl2_fetch_release(fetch, &fetched);
            }
            name_of(20, name);
            assert_non_null(strstr(error.message, name));
            dl2_fetch_destroy(fetch);
            for (unsigned i = 20; i < 23; i++)
                put_sample(i, size_of(i));
        }
        dl2_bytes_free(&fetched.scratch);
        close_pack(&pack);
    }
}

/* What is not asked for in its turn: samples from elsewhere, twice, and
 * positions that are skipped. */
static void positions_may_be_skipped(void **state)
{
    for (unsigned m = 0; m < sizeof modes / sizeof *modes; m++) {
        /* So small that what is skipped would fill it. */
        struct dl2_fetch_config config = {.io = modes[m], .ahead = 16, .ahead_bytes = 100000};
        struct dl2_fetch *fetch = try_fetch(samples, &config);
        if (!fetch)
            continue;
        struct dl2_fetched a = {0}, b = {0};
        uint32_t order[20 * SAMPLES];
        for (unsigned i = 0; i < 20; i++)
            shuffle(order + (size_t)i * SAMPLES, i);
        dl2_fetch_start(fetch, order, 20 * SAMPLES);
        wait_for_requests(fetch, config.io >= DL2_IO_THREADS);
        for (unsigned i = 0; i < 20 * SAMPLES; i += 1 + i % 3) {
            take_and_check(fetch, i, order[i], &a);
            if (i % 5 == 0)
                take_and_check(fetch, i, order[i], &b);
            if (i % 7 == 0 && i + 40 < 20 * SAMPLES)
                take_and_check(fetch, i, order[i + 40], &b);
            if (i % 11 == 0)
                take_and_check(fetch, SIZE_MAX, order[i], &b);
        }
        struct dl2_fetch_stats stats;
        dl2_fetch_get_stats(fetch, &stats);
        if (config.io >= DL2_IO_THREADS)
            assert_true(stats.ahead > 0);
        dl2_bytes_free(&a.scratch);
        dl2_bytes_free(&b.scratch);
        dl2_fetch_destroy(fetch);
    }
}

/* Held samples keep their bytes whatever is read meanwhile, across a start too. */
static void held_samples_stay(void **state)
{
    for (unsigned m = 0; m < sizeof modes / sizeof *modes; m++) {
        struct dl2_fetch_config config = {.io = modes[m], .ahead = 32, .ahead_bytes = 400000};
        struct dl2_fetch *fetch = try_fetch(samples, &config);
        if (!fetch)
            continue;
        struct dl2_fetched held[20] = {{0}}, other = {0};
        struct dl2_error error = DL2_ERROR_INIT;
        uint32_t order[SAMPLES];
        shuffle(order, 5);
        dl2_fetch_start(fetch, order, SAMPLES);
        wait_for_requests(fetch, config.io >= DL2_IO_THREADS);
        for (unsigned i = 0; i < 20; i++)
            assert_int_equal(take(fetch, i, order[i], &held[i], &error), 0);
        for (unsigned i = 20; i < SAMPLES; i++)
            take_and_check(fetch, i, order[i], &other);
        dl2_fetch_start(fetch, order, SAMPLES);
        for (unsigned i = 0; i < SAMPLES; i++)
            take_and_check(fetch, i, order[i], &other);
        for (unsigned i = 0; i < 20; i++) {
            assert_true(is_right(order[i], held[i].data, held[i].size));
            dl2_fetch_release(fetch, &held[i]);
            dl2_bytes_free(&held[i].scratch);
        }
        dl2_bytes_free(&other.scratch);
        dl2_fetch_destroy(fetch);
    }
}

static void decoded_samples_are_not_read_ahead(void **state)
{
    const uint8_t pixels[4] = {1, 2, 3, 4};
    const struct dl2_decoded_image image = {
        2, 2, {DL2_COLOR_GRAY, {{pixels, 2, 2, 2, 0, 0, 1, 1, 0, 0}}}};
    struct dl2_decoded_cache *decoded;
    assert_int_equal(dl2_decoded_create(SAMPLES, 1000000, &decoded, NULL), 0);
    for (unsigned i = 0; i < SAMPLES; i++) {
        if (i == 7)
            continue;
        assert_true(dl2_decoded_claim(decoded, i, 1, 2, 2, 1));
        dl2_decoded_keep(decoded, i, 1, true, &image);
    }
    struct dl2_fetch_config config = {.io = DL2_IO_THREADS};
    struct dl2_fetch *fetch = new_fetch(samples, &config, decoded);
    struct dl2_fetched fetched = {0};
    struct dl2_fetch_stats stats;
    uint32_t order[SAMPLES];
    shuffle(order, 6);
    dl2_fetch_start(fetch, order, SAMPLES);
    wait_for_requests(fetch, 1);
    for (unsigned i = 0; i < SAMPLES; i++)
        if (order[i] == 7)
            take_and_check(fetch, i, 7, &fetched);
    dl2_fetch_get_stats(fetch, &stats);
    assert_int_equal(stats.requests, 1);
    assert_int_equal(stats.ahead, 1);
    dl2_bytes_free(&fetched.scratch);
    dl2_fetch_destroy(fetch);
    dl2_decoded_destroy(decoded);
}

/* One crop is drawn, whoever knows the size first, also if the cache has another reduction only. */
static void crops_are_drawn_once(void **state)
{
    const uint8_t pixels[4] = {1, 2, 3, 4};
    const struct dl2_decoded_image image = {
        3000, 2000, {DL2_COLOR_GRAY, {{pixels, 2, 2, 2, 0, 0, 1, 1, 0, 0}}}};
    struct dl2_planner with = dl2_planner_of(samples, &loader_config), without = with;
    struct dl2_sample_plan plan = {.index = 7}, expected = plan;
    struct dl2_error error = DL2_ERROR_INIT;
    assert_int_equal(dl2_decoded_create(SAMPLES, 1000000, &with.decoded, NULL), 0);
    assert_true(dl2_decoded_claim(with.decoded, 7, 1, 2, 2, 1));
    dl2_decoded_keep(with.decoded, 7, 1, true, &image); /* which no crop here asks for */
    dl2_plan_sample(&without, &expected);
    assert_int_equal(expected.width, 0);
    expect_ok(dl2_plan_set_size(&without, 3000, 2000, &expected, &error), &error);
    dl2_plan_sample(&with, &plan);
    assert_int_equal(plan.width, 3000);
    assert_null(plan.decoded);
    dl2_plan_find_decoded(&with, &plan);
    expect_ok(dl2_plan_set_size(&with, 3000, 2000, &plan, &error), &error);
    assert_memory_equal(&plan.random, &expected.random, sizeof plan.random);
    assert_int_equal(plan.crop.x, expected.crop.x);
    assert_int_equal(plan.crop.y, expected.crop.y);
    assert_int_equal(plan.crop.width, expected.crop.width);
    assert_int_equal(plan.crop.height, expected.crop.height);
    assert_int_equal(dl2_plan_set_size(&with, 2000, 3000, &plan, &error), DL2_ERR_FORMAT);
    dl2_error_clear(&error);
    for (uint32_t reduction = 2; reduction <= 8; reduction *= 2)
        if (dl2_decoded_claim(with.decoded, 7, reduction, 2, 2, 1))
            dl2_decoded_keep(with.decoded, 7, reduction, false, &image);
    dl2_plan_find_decoded(&with, &plan);
    assert_non_null(plan.decoded);
    assert_memory_equal(&plan.random, &expected.random, sizeof plan.random);
    dl2_decoded_destroy(with.decoded);
}

/* Goes on when reads are slow, and off again when they are fast. */
static void auto_follows_the_storage(void **state)
{
    struct pack pack;
    struct dl2_dataset packed = open_pack(&pack, SAMPLES);
    struct dl2_fetch_config config = {.io = DL2_IO_AUTO};
    struct dl2_fetch *fetch = new_fetch(&packed, &config, NULL);
    uint32_t order[SAMPLES];
    struct dl2_fetch_stats stats = {0};
    pack.delay_us = 2000;
    for (unsigned i = 0; i < 50 && !stats.ahead; i++) {
        dl2_fetch_start(fetch, NULL, 0);
        shuffle(order, i);
        dl2_fetch_start(fetch, order, SAMPLES);
        take_part(fetch, order, 0, SAMPLES);
        dl2_fetch_get_stats(fetch, &stats);
    }
    assert_true(stats.ahead > 0);
    dl2_fetch_destroy(fetch);

    /* The other way, where the clock is ours: on by 64 slow ones, off by 16 fast ones. */
    struct dl2_read_ahead *ahead;
    struct dl2_fetch_stats before, after;
    const struct timespec pause = {0, 1000000};
    assert_int_equal(dl2_read_ahead_create(&planner, &config, NULL, &ahead, NULL), 0);
    shuffle(order, 0);
    dl2_read_ahead_start(ahead, order, SAMPLES);
    for (unsigned i = 0; i < 63; i++)
        dl2_read_ahead_observe(ahead, i ? 20e-6 : 10e-3, 50000); /* one that was just unlucky */
    dl2_read_ahead_observe(ahead, 20e-6, 50000);
    for (unsigned i = 0; i < 20; i++, nanosleep(&pause, NULL))
        dl2_read_ahead_get_stats(ahead, &before);
    assert_int_equal(before.requests, 0);
    for (unsigned i = 0; i < 64; i++)
        dl2_read_ahead_observe(ahead, 200e-6, 50000);
    for (unsigned i = 0; i < 30000 && !before.requests; i++, nanosleep(&pause, NULL))
        dl2_read_ahead_get_stats(ahead, &before);
    assert_true(before.requests > 0);
    for (unsigned i = 0; i < 16; i++)
        dl2_read_ahead_observe(ahead, 20e-6, 50000);
    dl2_read_ahead_start(ahead, order, SAMPLES);
    nanosleep(&pause, NULL);
    dl2_read_ahead_get_stats(ahead, &before);
    dl2_read_ahead_start(ahead, order, SAMPLES);
    nanosleep(&pause, NULL);
    dl2_read_ahead_get_stats(ahead, &after);
    assert_int_equal(after.requests, before.requests);
    dl2_read_ahead_destroy(ahead);
    close_pack(&pack);
}

/* A kernel that refuses, as containers often have it: asked for, it is an error; AUTO goes on. */
static void without_io_uring(void **state)
{
    const pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        struct sock_filter code[] = {
            BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
            BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, __NR_io_uring_setup, 0, 1),
            BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM),
            BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
        };
        const struct sock_fprog program = {sizeof code / sizeof *code, code};
        struct dl2_fetch_config config = {.io = DL2_IO_URING};
        struct dl2_fetch *fetch;
        struct dl2_error error = DL2_ERROR_INIT;
        if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0 ||
            prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) != 0)
            _exit(77);
        planner = dl2_planner_of(samples, &loader_config);
        if (dl2_fetch_create(&planner, &config, &fetch, &error) != DL2_ERR_UNSUPPORTED ||
            !strstr(error.message, "io_uring"))
            _exit(1);
        config.io = DL2_IO_AUTO;
        if (dl2_fetch_create(&planner, &config, &fetch, NULL) != DL2_OK)
            _exit(2);
        use(fetch);
        dl2_fetch_destroy(fetch);
        _exit(0);
    }
    int status;
    assert_int_equal(waitpid(child, &status, 0), child);
    if (WIFEXITED(status) && WEXITSTATUS(status) == 77)
        skip(); /* no seccomp here */
    assert_true(WIFEXITED(status));
    assert_int_equal(WEXITSTATUS(status), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(cache_is_bounded_exactly),
        cmocka_unit_test(cache_is_shared_by_threads),
        cmocka_unit_test(direct_reads_and_caches),
        cmocka_unit_test(errors_name_the_file),
        cmocka_unit_test(eviction_is_measured),
        cmocka_unit_test(every_mode_gives_the_same_bytes),
        cmocka_unit_test(neighbors_are_read_together),
        cmocka_unit_test(what_is_wrong_is_named),
        cmocka_unit_test(positions_may_be_skipped),
        cmocka_unit_test(held_samples_stay),
        cmocka_unit_test(decoded_samples_are_not_read_ahead),
        cmocka_unit_test(crops_are_drawn_once),
        cmocka_unit_test(auto_follows_the_storage),
        cmocka_unit_test(without_io_uring),
    };
    return cmocka_run_group_tests(tests, make_samples, remove_root);
}
