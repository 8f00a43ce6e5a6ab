/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Any bytes as settings that are JSON. The first byte says whether the rest is the space of a
 * search (train/several/search_space.h), a file of configurations (train/several/configs.h) or, as from an SQL
 * user, the settings of a model (train/fit.h), which then trains on two images if they are
 * accepted.
 */
#include "train/fit.h"
#include "train/several/configs.h"
#include "train/several/search_space.h"
#include "train/train_options.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const struct dl2_fit_limits limits = {.memory = 9 << 20, .max_pixels = 1 << 12};

static void must(bool well)
{
    if (!well)
        abort();
}

/* The bytes as a file: its path. */
static const char *as_file(const uint8_t *data, size_t size)
{
    static char path[32];
    static int fd = -1;
    if (fd < 0)
        fd = memfd_create("fuzz_settings", MFD_CLOEXEC);
    must(fd >= 0 && ftruncate(fd, 0) == 0 && pwrite(fd, data, size, 0) == (ssize_t)size);
    snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
    return path;
}

/* Every trial has a name and a value for every setting, and is the same when it is asked again. */
static void search_space(const uint8_t *data, size_t size, enum dl2_search_algorithm algorithm)
{
    struct dl2_error refusal = DL2_ERROR_INIT;
    struct dl2_program program = {
        .name = "fuzz", .options = dl2_train_options, .refusal = &refusal};
    struct dl2_search_options options = DL2_SEARCH_DEFAULTS;
    struct dl2_search_space *space;
    options.space = as_file(data, size);
    options.algorithm = algorithm;
    if (dl2_search_space_open(&program, &options, 7, &space) == 0) {
        const size_t trials = dl2_search_space_trials(space);
        must(trials >= 1);
        for (size_t i = 0; i < trials && i < 20; i++) {
            json_t *settings = dl2_search_space_settings(space, i);
            json_t *again = dl2_search_space_settings(space, i);
            const char *key;
            json_t *value;
            must(json_is_string(json_object_get(settings, "name")) && json_equal(settings, again));
            json_object_foreach(dl2_search_space_json(space), key, value)
            {
                const double number = json_number_value(json_object_get(settings, key));
                must(json_object_get(settings, key) != NULL);
                must(!json_is_object(value) ||
                     (number >= json_number_value(json_object_get(value, "min")) &&
                      number <= json_number_value(json_object_get(value, "max"))));
            }
            json_decref(settings);
            json_decref(again);
        }
    }
    dl2_search_space_close(space);
}

static void configurations(const uint8_t *data, size_t size)
{
    struct dl2_error refusal = DL2_ERROR_INIT;
    struct dl2_train_settings settings = dl2_train_defaults();
    struct dl2_program program = {
        .name = "fuzz", .options = dl2_train_options, .values = &settings, .refusal = &refusal};
    struct dl2_common_options common = {.jobs = 1};
    const struct dl2_configs_base base = {&settings, &program, &common, size % 2 == 1};
    struct dl2_configs configs = {.count = 0};
    settings.config.data.synthetic_images = 16;
    settings.config.data.synthetic_classes = 3;
    if (dl2_configs_read(&configs, &base, as_file(data, size)) == 0) {
        must(configs.count >= 1);
        for (size_t i = 0; i < configs.count; i++)
            must(configs.models[i].config.run.name[0] &&
                 !strchr(configs.models[i].config.run.name, '/'));
    }
    dl2_configs_free(&configs);
    dl2_train_options_free(&settings.config);
}

/* A model that was accepted trains. */
static void model(const uint8_t *data, size_t size)
{
    static const char image[] = "P6\n3 2\n255\nabcdefghijklmnopqr";
    struct dl2_error error = DL2_ERROR_INIT;
    struct dl2_bytes made = DL2_BYTES_INIT, trained = DL2_BYTES_INIT;
    struct dl2_fit_figures figures;
    struct dl2_fit *fit;
    char *text = strndup((const char *)data, size);
    must(text != NULL);
    if (dl2_fit_make(text, &limits, &made, &error) < 0) {
        must(error.message[0]);
    } else {
        /* The bytes of a model that is there count three times. */
        const struct dl2_fit_limits more = {.memory = limits.memory + 3 * (uint64_t)made.size,
                                            .max_pixels = limits.max_pixels};
        must(dl2_fit_open(DL2_FIT_TRAIN, made.data, made.size, "{\"device\": \"ref\"}", &more, &fit,
                          &error) == DL2_OK);
        for (int i = 0; i < 2; i++)
            must(dl2_fit_add(fit, image, sizeof image - 1, 0, (uint32_t)i, &error) == 0);
        if (dl2_fit_end(fit, &figures, &error) == DL2_OK)
            must(dl2_fit_save(fit, &trained, &error) == DL2_OK);
        else
            must(error.message[0]);
        dl2_fit_close(fit);
    }
    dl2_bytes_free(&made);
    dl2_bytes_free(&trained);
    free(text);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size == 0)
        return 0;
    switch (data[0]) {
    case 'g':
    case 'r':
    case 'h':
        search_space(data + 1, size - 1,
                     data[0] == 'g'   ? DL2_SEARCH_GRID
                     : data[0] == 'r' ? DL2_SEARCH_RANDOM
                                      : DL2_SEARCH_HALVING);
        break;
    case 'c':
        configurations(data + 1, size - 1);
        break;
    case 'm':
        model(data + 1, size - 1);
        break;
    default:
        break;
    }
    return 0;
}
