/* SPDX-License-Identifier: BSD-2-Clause */
#include "tests/loader/pictures.h"

#include "codec/codec.h"
#include "common/file.h"
#include "common/random.h"

#include <unistd.h>

char root[256];
struct dl2_dataset *samples;

void put(const char *name, const void *data, size_t size)
{
    struct dl2_error error = DL2_ERROR_INIT;
    char *path = dl2_path_join(root, name);
    char *slash = strrchr(path, '/');
    *slash = '\0';
    expect_ok(dl2_make_folders(path, &error), &error);
    *slash = '/';
    expect_ok(dl2_file_write(path, data, size, &error), &error);
    free(path);
}

bool has_encoder(const char *codec)
{
    const bool has = dl2_codec_find(codec) && dl2_codec_find(codec)->encode;
    if (!has)
        printf("SKIP: this build can't write %s\n", codec);
    return has;
}

static void put_jpeg(const char *name, const uint8_t *pixels, unsigned width, unsigned height,
                     unsigned channels)
{
    struct dl2_image image = DL2_IMAGE_INIT;
    struct dl2_bytes file = DL2_BYTES_INIT;
    struct dl2_error error = DL2_ERROR_INIT;
    struct dl2_encode_options options = DL2_ENCODE_DEFAULTS;
    expect_ok(dl2_image_reshape(&image, width, height, channels, &error), &error);
    memcpy(image.data, pixels, (size_t)width * height * channels);
    expect_ok(dl2_image_encode(dl2_codec_find("jpeg"), &image, &options, &file, &error), &error);
    put(name, file.data, file.size);
    dl2_image_free(&image);
    dl2_bytes_free(&file);
}

void put_picture(const char *name, unsigned number)
{
    struct dl2_random random;
    dl2_random_init(&random, number, DL2_RANDOM_TEST, 0, 0);
    const unsigned width = 3 + dl2_random_below(&random, 60);
    const unsigned height = 3 + dl2_random_below(&random, 60);
    const unsigned channels = number % 7 == 3 ? 1 : 3;
    static uint8_t data[64 + 64 * 64 * 3];
    size_t size = (size_t)snprintf((char *)data, 64, "P%c\n%u %u\n255\n", channels == 3 ? '6' : '5',
                                   width, height);
    for (unsigned i = 0; i < width * height * channels; i++)
        data[size++] = (uint8_t)dl2_random_u32(&random);
    if (number % 5 == 1)
        put_jpeg(name, data + size - width * height * channels, width, height, channels);
    else
        put(name, data, size);
}

static void name_of(unsigned number, char *name)
{
    sprintf(name, "class%u/%03u.ppm", number % 3, number);
}

int make_root(void **state)
{
    const char *base = getenv("TMPDIR");
    snprintf(root, sizeof root, "%s/dl2-loader.XXXXXX", base ? base : "/tmp");
    return mkdtemp(root) ? 0 : -1;
}

void reopen(void)
{
    dl2_dataset_close(samples);
    samples = open_all();
}

int make_pictures(void **state)
{
    if (make_root(state) != 0)
        return -1;
    for (unsigned i = 0; i < COUNT; i++) {
        char name[32];
        name_of(i, name);
        put_picture(name, i);
    }
    reopen();
    return 0;
}

int remove_root(void **state)
{
    dl2_dataset_close(samples);
    samples = NULL;
    char command[320];
    snprintf(command, sizeof command, "rm -rf '%s'", root);
    return system(command);
}

void spoil(unsigned number)
{
    char name[32];
    name_of(number, name);
    put(name, "P6\n40 40\n255\nshort", 18);
}

struct dl2_dataset *open_all(void)
{
    struct dl2_dataset_options options = DL2_DATASET_DEFAULTS;
    struct dl2_dataset *dataset;
    struct dl2_error error = DL2_ERROR_INIT;
    expect_ok(dl2_dataset_open(root, &options, &dataset, &error), &error);
    return dataset;
}

struct dl2_loader_config config_for(bool train, unsigned workers)
{
    struct dl2_loader_config config = DL2_LOADER_DEFAULTS;
    config.batch = 8;
    config.height = SIZE;
    config.train = train;
    config.workers = workers;
    config.depth = 2;
    config.seed = 5;
    return config;
}

struct dl2_loader *create(const struct dl2_dataset *dataset, const struct dl2_loader_config *config)
{
    struct dl2_loader *loader;
    struct dl2_error error = DL2_ERROR_INIT;
    expect_ok(dl2_loader_create(dataset, config, &loader, &error), &error);
    return loader;
}

void start(struct dl2_loader *loader, uint64_t epoch, uint64_t step)
{
    struct dl2_error error = DL2_ERROR_INIT;
    expect_ok(dl2_loader_start_epoch(loader, epoch, step, &error), &error);
}

struct dl2_loader_stats stats_of(const struct dl2_loader *loader)
{
    struct dl2_loader_stats stats;
    dl2_loader_get_stats(loader, &stats);
    return stats;
}

int drain(struct dl2_loader *loader, unsigned *batches, struct dl2_error *error)
{
    struct dl2_batch *batch;
    int status;
    unsigned count = 0;
    while ((status = dl2_loader_next(loader, &batch, error)) == 1) {
        count++;
        dl2_loader_release(loader, batch);
    }
    if (batches)
        *batches = count;
    return status;
}

struct loaded *load_epoch(struct dl2_loader *loader, unsigned channels, uint64_t epoch,
                          uint64_t step)
{
    struct loaded *all = calloc(1, sizeof *all);
    struct dl2_error error = DL2_ERROR_INIT;
    struct dl2_batch *batch;
    const size_t bytes = (size_t)SIZE * SIZE * channels;
    start(loader, epoch, step);
    int status;
    while ((status = dl2_loader_next(loader, &batch, &error)) == 1) {
        assert_int_equal(batch->epoch, epoch);
        assert_int_equal(batch->step, step + all->steps);
        assert_true(all->count + batch->count <= COUNT);
        memcpy(all->images + all->count * bytes, batch->images, batch->count * bytes);
        memcpy(all->labels + all->count, batch->labels, batch->count * sizeof *batch->labels);
        memcpy(all->indices + all->count, batch->indices, batch->count * sizeof *batch->indices);
        all->count += batch->count;
        all->steps++;
        dl2_loader_release(loader, batch);
    }
    expect_ok(status, &error);
    return all;
}

void expect_same(const struct loaded *a, const struct loaded *b)
{
    assert_int_equal(a->count, b->count);
    assert_int_equal(a->steps, b->steps);
    assert_memory_equal(a->indices, b->indices, sizeof a->indices);
    assert_memory_equal(a->labels, b->labels, sizeof a->labels);
    assert_memory_equal(a->images, b->images, sizeof a->images);
}

static int compare_u32(const void *left, const void *right)
{
    const uint32_t *a = left, *b = right;
    return (*a > *b) - (*a < *b);
}

void expect_every_sample(struct loaded *loaded, uint32_t count)
{
    assert_int_equal(loaded->count, count);
    qsort(loaded->indices, count, sizeof *loaded->indices, compare_u32);
    for (uint32_t i = 0; i < count; i++)
        assert_int_equal(loaded->indices[i], i);
}

void expect_exact_restarts(struct dl2_loader *loader, size_t count)
{
    struct loaded *whole = load_epoch(loader, 3, 7, 0);
    const size_t bytes = (size_t)SIZE * SIZE * 3;
    assert_int_equal(whole->count, count);
    for (uint64_t step = 0; step <= whole->steps; step++) {
        struct dl2_batch *batch;
        start(loader, step, step % 3);
        for (uint64_t i = 0; i < step % 4; i++) {
            assert_int_equal(dl2_loader_next(loader, &batch, NULL), 1);
            dl2_loader_release(loader, batch);
        }
        struct loaded *rest = load_epoch(loader, 3, 7, step);
        const size_t skipped = step < whole->steps ? (size_t)step * 8 : count;
        assert_int_equal(rest->count, count - skipped);
        assert_memory_equal(rest->indices, whole->indices + skipped,
                            rest->count * sizeof(uint32_t));
        assert_memory_equal(rest->images, whole->images + skipped * bytes, rest->count * bytes);
        free(rest);
    }
    free(whole);
}
