/* Reading samples: the right bytes in every mode, bounded caches, named errors, no leaks. */
#include "common/file.h"
#include "common/random.h"
#include "loader/cache.h"
#include "loader/fetch.h"

#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

enum { COUNT = 200, THREADS = 4 };

static char root[256];

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

static void put(unsigned number, size_t size)
{
    char name[320];
    struct dl2_error error = DL2_ERROR_INIT;
    uint8_t *data = malloc(size + 1);
    fill(number, data, size);
    name_of(number, name);
    *strrchr(name, '/') = '\0';
    assert_int_equal(dl2_make_folders(name, &error), 0);
    name_of(number, name);
    if (dl2_file_write(name, data, size, &error) < 0)
        fail_msg("%s", error.message);
    free(data);
}

static int make_samples(void **state)
{
    (void)state;
    const char *base = getenv("TMPDIR");
    snprintf(root, sizeof root, "%s/dl2-fetch.XXXXXX", base ? base : "/tmp");
    if (!mkdtemp(root))
        return -1;
    for (unsigned i = 0; i < COUNT; i++)
        put(i, size_of(i));
    return 0;
}

static int remove_samples(void **state)
{
    (void)state;
    char command[320];
    snprintf(command, sizeof command, "rm -rf '%s'", root);
    return system(command);
}

static struct dl2_dataset *open_all(void)
{
    struct dl2_dataset_options options = DL2_DATASET_DEFAULTS;
    struct dl2_dataset *dataset;
    struct dl2_error error = DL2_ERROR_INIT;
    if (dl2_dataset_open(root, &options, &dataset, &error) < 0)
        fail_msg("%s", error.message);
    assert_int_equal(dl2_dataset_count(dataset), COUNT);
    return dataset;
}

static struct dl2_fetch *create(const struct dl2_dataset *dataset,
                                const struct dl2_fetch_config *config)
{
    struct dl2_fetch *fetch;
    struct dl2_error error = DL2_ERROR_INIT;
    if (dl2_fetch_create(dataset, config, &fetch, &error) < 0)
        fail_msg("%s", error.message);
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

static void take_and_check(struct dl2_fetch *fetch, size_t position, uint32_t index,
                           struct dl2_fetched *fetched)
{
    struct dl2_error error = DL2_ERROR_INIT;
    if (dl2_fetch_take(fetch, position, index, fetched, &error) < 0)
        fail_msg("%s", error.message);
    assert_true(is_right(index, fetched->data, fetched->size));
    dl2_fetch_give(fetch, fetched);
}

static void shuffle(uint32_t *order, unsigned seed)
{
    struct dl2_random random;
    dl2_random_init(&random, seed, DL2_RANDOM_TEST, 1, 0);
    for (uint32_t i = 0; i < COUNT; i++)
        order[i] = i;
    for (uint32_t i = COUNT - 1; i > 0; i--) {
        const uint32_t j = dl2_random_below(&random, i + 1), kept = order[i];
        order[i] = order[j];
        order[j] = kept;
    }
}

/* ---- the cache ---- */

static void cache_is_bounded_exactly(void **state)
{
    (void)state;
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
    dl2_cache_withdraw(cache, 50, small);
    assert_null(dl2_cache_find(cache, 50));
    small = dl2_cache_offer(cache, 51, 10); /* the room of the one that failed */
    assert_non_null(small);
    small->width = small->height = 2;
    small->channels = 1;
    dl2_cache_publish(cache, 51, small);
    for (unsigned i = 0; i < 3; i++) { /* nothing was evicted */
        const struct dl2_cache_block *block = dl2_cache_find(cache, i);
        uint8_t expected[100];
        fill(i, expected, 100);
        assert_int_equal(block->size, 100);
        assert_memory_equal(block->data, expected, 100);
    }
    assert_int_equal(dl2_cache_find(cache, 51)->channels, 1);
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
        for (unsigned n = 0; n < COUNT; n++) {
            const unsigned i = (n * 7 + user->number * 50) % COUNT;
            const struct dl2_cache_block *found = dl2_cache_find(user->cache, i);
            if (found) {
                user->wrong += !is_right(i, found->data, found->size);
                continue;
            }
            struct dl2_cache_block *block = dl2_cache_offer(user->cache, i, size_of(i));
            if (!block)
                continue;
            fill(i, block->data, block->size);
            if (i % 10 == 3 && round < 2) {
                dl2_cache_withdraw(user->cache, i, block);
            } else {
                dl2_cache_publish(user->cache, i, block);
                user->filled++;
            }
        }
    return NULL;
}

static void cache_is_shared_by_threads(void **state)
{
    (void)state;
    struct dl2_cache *cache;
    assert_int_equal(dl2_cache_create(COUNT, 500000, &cache, NULL), 0);
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
    assert_true(filled > 50 && filled < COUNT);
    assert_true(stats.bytes <= 500000);
    dl2_cache_destroy(cache);
}

/* ---- reading ---- */

static void direct_reads_and_caches(void **state)
{
    (void)state;
    struct dl2_dataset *dataset = open_all();
    uint64_t all = 0;
    for (unsigned i = 0; i < COUNT; i++)
        all += size_of(i);
    struct dl2_fetch_config config = {.io = DL2_IO_DIRECT, .cache_bytes = 300000};
    struct dl2_fetch *fetch = create(dataset, &config);
    struct dl2_fetched fetched = {0};
    struct dl2_fetch_stats first, second;
    uint32_t order[COUNT];
    shuffle(order, 1);
    dl2_fetch_start(fetch, order, COUNT);
    for (unsigned i = 0; i < COUNT; i++)
        take_and_check(fetch, i, order[i], &fetched);
    dl2_fetch_get_stats(fetch, &first);
    assert_int_equal(first.bytes_read, all);
    assert_int_equal(first.requests, COUNT);
    assert_int_equal(first.cache_hits, 0);
    assert_true(first.cached > 10 && first.cached < COUNT);
    assert_true(first.cached_bytes <= 300000 && first.cached_bytes > 290000);
    assert_true(first.memory >= first.cached_bytes);
    shuffle(order, 2);
    dl2_fetch_start(fetch, order, COUNT);
    for (unsigned i = 0; i < COUNT; i++)
        take_and_check(fetch, i, order[i], &fetched);
    dl2_fetch_get_stats(fetch, &second);
    assert_int_equal(second.cached, first.cached); /* it stays as it is */
    assert_int_equal(second.cache_hits, first.cached);
    assert_int_equal(second.requests, 2 * COUNT - first.cached);
    dl2_bytes_free(&fetched.scratch);
    dl2_fetch_destroy(fetch);
    dl2_dataset_close(dataset);
}

static void errors_name_the_file(void **state)
{
    (void)state;
    struct dl2_dataset *dataset = open_all();
    struct dl2_fetch_config config = {.io = DL2_IO_DIRECT};
    struct dl2_fetch *fetch = create(dataset, &config);
    struct dl2_fetched fetched = {0};
    struct dl2_error error = DL2_ERROR_INIT;
    char name[320];
    name_of(9, name);
    assert_int_equal(unlink(name), 0);
    assert_int_equal(dl2_fetch_take(fetch, 0, 9, &fetched, &error), DL2_ERR_SYSTEM);
    assert_non_null(strstr(error.message, name));
    dl2_fetch_give(fetch, &fetched);
    dl2_error_clear(&error);
    assert_int_equal(dl2_fetch_take(fetch, 0, COUNT, &fetched, &error), DL2_ERR_ARGUMENT);
    dl2_fetch_give(fetch, &fetched);
    put(9, size_of(9));
    take_and_check(fetch, 0, 9, &fetched);
    dl2_bytes_free(&fetched.scratch);
    dl2_fetch_destroy(fetch);
    dl2_dataset_close(dataset);
}

static void eviction_is_measured(void **state)
{
    (void)state;
    struct dl2_dataset *dataset = open_all();
    struct dl2_fetch_config config = {.io = DL2_IO_DIRECT, .drop_behind = true};
    struct dl2_fetch *fetch = create(dataset, &config);
    struct dl2_fetched fetched = {0};
    struct dl2_error error = DL2_ERROR_INIT;
    double resident = -1;
    /* How many pages stay is the file system's affair (in a tmpfs all do): only a share is asked
     * for. */
    if (dl2_fetch_evict(dataset, &resident, &error) < 0)
        fail_msg("%s", error.message);
    assert_true(resident >= 0 && resident <= 1);
    for (unsigned i = 0; i < COUNT; i++)
        take_and_check(fetch, i, i, &fetched);
    char name[320];
    name_of(3, name);
    assert_int_equal(unlink(name), 0);
    assert_int_equal(dl2_fetch_evict(dataset, &resident, &error), DL2_ERR_SYSTEM);
    assert_non_null(strstr(error.message, name));
    put(3, size_of(3));
    dl2_bytes_free(&fetched.scratch);
    dl2_fetch_destroy(fetch);
    dl2_dataset_close(dataset);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(cache_is_bounded_exactly), cmocka_unit_test(cache_is_shared_by_threads),
        cmocka_unit_test(direct_reads_and_caches),  cmocka_unit_test(errors_name_the_file),
        cmocka_unit_test(eviction_is_measured),
    };
    return cmocka_run_group_tests(tests, make_samples, remove_samples);
}
