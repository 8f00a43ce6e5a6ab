/* SPDX-License-Identifier: BSD-2-Clause */
#include "tests/loader/pictures.h"

#include "codec/codec.h"
#include "common/file.h"
#include "common/random.h"

#include <unistd.h>

char root[256];

void put(const char *name, const void *data, size_t size)
{
    struct dl2_error error = DL2_ERROR_INIT;
    char *path = dl2_path_join(root, name);
    char *slash = strrchr(path, '/');
    *slash = '\0';
    if (dl2_make_folders(path, &error) < 0)
        fail_msg("%s", error.message);
    *slash = '/';
    if (dl2_file_write(path, data, size, &error) < 0)
        fail_msg("%s", error.message);
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
    if (dl2_image_reshape(&image, width, height, channels, &error) < 0)
        fail_msg("%s", error.message);
    memcpy(image.data, pixels, (size_t)width * height * channels);
    if (dl2_image_encode(dl2_codec_find("jpeg"), &image, &options, &file, &error) < 0)
        fail_msg("%s", error.message);
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
    (void)state;
    const char *base = getenv("TMPDIR");
    snprintf(root, sizeof root, "%s/dl2-loader.XXXXXX", base ? base : "/tmp");
    return mkdtemp(root) ? 0 : -1;
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
    return 0;
}

int remove_root(void **state)
{
    (void)state;
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
    if (dl2_dataset_open(root, &options, &dataset, &error) < 0)
        fail_msg("%s", error.message);
    return dataset;
}

struct dl2_loader_config config_for(bool train, unsigned workers)
{
    struct dl2_loader_config config = DL2_LOADER_DEFAULTS;
    config.batch = 8;
    config.image_size = SIZE;
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
    if (dl2_loader_create(dataset, config, &loader, &error) < 0)
        fail_msg("%s", error.message);
    return loader;
}

void start(struct dl2_loader *loader, uint64_t epoch, uint64_t step)
{
    struct dl2_error error = DL2_ERROR_INIT;
    if (dl2_loader_start_epoch(loader, epoch, step, &error) < 0)
        fail_msg("%s", error.message);
}
