/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * fit_rows order DATASET SEED BATCH EPOCH: the order of an epoch of dl2-train, "PLACE NUMBER KEY".
 * fit_rows train SETTINGS DATASET OUT ROWS: trains a new model for all of its epochs in that order,
 * ROWS images at a time, and writes it.
 * fit_rows evaluate MODEL DATASET: prints the images, the loss and the top-1 of the validation
 * images.
 * fit_rows damage MODEL DATASET CHANGES: opens the model with each of so many changes.
 */
#include "common/file.h"
#include "common/random.h"
#include "dataset/dataset.h"
#include "loader/sampler.h"
#include "network/safetensors.h"
#include "train/fit.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>

static const struct dl2_fit_limits limits = {(uint64_t)1 << 28, 1 << 26};

static void check(int status, const struct dl2_error *error)
{
    if (status >= 0)
        return;
    fprintf(stderr, "fit_rows: %s\n", error->message);
    exit(1);
}

static struct dl2_dataset *open_data(const char *path, const char *split)
{
    struct dl2_error error = DL2_ERROR_INIT;
    struct dl2_dataset_options options = DL2_DATASET_DEFAULTS;
    struct dl2_dataset *dataset;
    options.split = split;
    check(dl2_dataset_open(path, &options, &dataset, &error), &error);
    return dataset;
}

static void make_order(struct dl2_sampler *sampler, const struct dl2_dataset *dataset,
                       const char *seed, const char *batch)
{
    struct dl2_error error = DL2_ERROR_INIT;
    struct dl2_loader_config config = DL2_LOADER_DEFAULTS;
    config.drop_last = true;
    config.seed = strtoull(seed, NULL, 10);
    config.batch = (unsigned)atoi(batch);
    check(dl2_sampler_init(sampler, &config, (uint32_t)dl2_dataset_count(dataset), &error), &error);
}

static void print_order(char **arguments)
{
    struct dl2_sampler sampler;
    struct dl2_dataset *dataset = open_data(arguments[0], "train");
    make_order(&sampler, dataset, arguments[1], arguments[2]);
    dl2_sampler_set_epoch(&sampler, strtoull(arguments[3], NULL, 10));
    for (uint32_t i = 0; i < sampler.size; i++) {
        struct dl2_sample sample;
        dl2_dataset_sample(dataset, sampler.order[i], &sample);
        printf("%u %u %s\n", i, sampler.order[i], sample.path);
    }
    dl2_sampler_free(&sampler);
    dl2_dataset_close(dataset);
}

/* Returns what dl2_fit_add() does. */
static int add(struct dl2_fit *fit, const struct dl2_dataset *dataset, uint32_t number,
               struct dl2_error *error)
{
    struct dl2_bytes scratch = DL2_BYTES_INIT;
    struct dl2_sample sample;
    const uint8_t *data;
    size_t size;
    dl2_dataset_sample(dataset, number, &sample);
    check(dl2_dataset_read(dataset, number, &scratch, &data, &size, error), error);
    const int status = dl2_fit_add(fit, data, size, sample.label, number, error);
    dl2_bytes_free(&scratch);
    return status;
}

static void end_call(struct dl2_fit *fit, struct dl2_bytes *model)
{
    struct dl2_error error = DL2_ERROR_INIT;
    struct dl2_fit_figures figures;
    check(dl2_fit_end(fit, &figures, &error), &error);
    dl2_bytes_free(model);
    check(dl2_fit_save(fit, model, &error), &error);
    dl2_fit_close(fit);
}

/* The value of a setting that is a whole number. */
static const char *number_of(const char *settings, const char *name, char *text)
{
    json_t *json = json_loads(settings, 0, NULL);
    sprintf(text, "%lld", (long long)json_integer_value(json_object_get(json, name)));
    json_decref(json);
    return text;
}

static void train(char **arguments)
{
    struct dl2_error error = DL2_ERROR_INIT;
    struct dl2_bytes model = DL2_BYTES_INIT;
    struct dl2_sampler sampler;
    char epochs[32], seed[32], batch[32];
    struct dl2_dataset *dataset = open_data(arguments[1], "train");
    const uint32_t rows = (uint32_t)atoi(arguments[3]);
    check(dl2_fit_make(arguments[0], &limits, &model, &error), &error);
    make_order(&sampler, dataset, number_of(arguments[0], "seed", seed),
               number_of(arguments[0], "batch", batch));
    for (int epoch = 0; epoch < atoi(number_of(arguments[0], "epochs", epochs)); epoch++) {
        struct dl2_fit *fit = NULL;
        dl2_sampler_set_epoch(&sampler, (uint64_t)epoch);
        for (uint32_t i = 0; i < sampler.size; i++) {
            if (i % rows == 0 && fit)
                end_call(fit, &model);
            if (i % rows == 0)
                check(dl2_fit_open(DL2_FIT_TRAIN, model.data, model.size, "{\"device\": \"ref\"}",
                                   &limits, &fit, &error),
                      &error);
            check(add(fit, dataset, sampler.order[i], &error), &error);
            dl2_error_clear(&error);
        }
        end_call(fit, &model);
    }
    check(dl2_file_write(arguments[2], model.data, model.size, &error), &error);
    dl2_bytes_free(&model);
    dl2_sampler_free(&sampler);
    dl2_dataset_close(dataset);
}

static void read_model(const char *path, struct dl2_bytes *model)
{
    struct dl2_error error = DL2_ERROR_INIT;
    check(dl2_file_read(path, 1 << 26, model, &error), &error);
}

static void evaluate(char **arguments)
{
    struct dl2_error error = DL2_ERROR_INIT;
    struct dl2_bytes model = DL2_BYTES_INIT;
    struct dl2_fit_figures figures;
    struct dl2_fit *fit;
    struct dl2_dataset *dataset = open_data(arguments[1], "val");
    read_model(arguments[0], &model);
    check(dl2_fit_open(DL2_FIT_EVALUATE, model.data, model.size, "{\"device\": \"ref\"}", &limits,
                       &fit, &error),
          &error);
    for (uint32_t i = 0; i < dl2_dataset_count(dataset); i++)
        check(add(fit, dataset, i, &error), &error);
    check(dl2_fit_end(fit, &figures, &error), &error);
    printf("%llu %.6f %.6f\n", (unsigned long long)figures.images, figures.loss, figures.top1);
    dl2_fit_close(fit);
    dl2_bytes_free(&model);
    dl2_dataset_close(dataset);
}

/* Gives a changed model its checksum, so that what is behind that sees the change. */
static void seal(struct dl2_bytes *model)
{
    static const char key[] = "\"crc32\":\"";
    uint8_t *at = memmem(model->data, model->size, key, sizeof key - 1);
    char digits[9];
    if (!at || at + sizeof key + 8 > model->data + model->size)
        return;
    at += sizeof key - 1;
    memset(at, '0', 8);
    snprintf(digits, sizeof digits, "%08lx", crc32(0, model->data, (uInt)model->size));
    memcpy(at, digits, 8);
}

static void damage(char **arguments)
{
    enum { HEAD = 4096 };
    const unsigned changes = (unsigned)atoi(arguments[2]);
    struct dl2_bytes model = DL2_BYTES_INIT, changed = DL2_BYTES_INIT;
    struct dl2_dataset *dataset = open_data(arguments[1], "train");
    unsigned opened = 0, refused = 0;
    read_model(arguments[0], &model);
    for (unsigned i = 0; i < changes; i++) {
        struct dl2_error error = DL2_ERROR_INIT;
        struct dl2_fit_figures figures;
        struct dl2_random random;
        struct dl2_fit *fit;
        dl2_random_init(&random, 1, 2, i, 0);
        changed.size = 0;
        check(dl2_bytes_append(&changed, model.data, model.size, &error), &error);
        const uint32_t head = model.size < HEAD ? (uint32_t)model.size : HEAD;
        for (unsigned k = 0; k <= i % 3; k++) {
            uint8_t *at = &changed.data[dl2_random_below(&random, head)];
            /* Another digit, where it is one: numbers that are wrong, and no mere broken text. */
            *at = *at >= '0' && *at <= '9' ? (uint8_t)('0' + dl2_random_below(&random, 10))
                                           : (uint8_t)dl2_random_below(&random, 256);
        }
        if (i % 7 == 0)
            changed.size = dl2_random_below(&random, (uint32_t)model.size);
        seal(&changed);
        if (dl2_fit_open(DL2_FIT_TRAIN, changed.data, changed.size, "{\"device\": \"ref\"}",
                         &limits, &fit, &error) < 0) {
            refused++;
            continue;
        }
        opened++;
        for (uint32_t n = 0; n < 9 && add(fit, dataset, n, &error) >= 0; n++)
            dl2_error_clear(&error);
        dl2_error_clear(&error);
        (void)dl2_fit_end(fit, &figures, &error);
        dl2_fit_close(fit);
    }
    printf("%u opened, %u refused\n", opened, refused);
    if (opened < changes / 20 || refused < changes / 20)
        exit(1);
    dl2_bytes_free(&model);
    dl2_bytes_free(&changed);
    dl2_dataset_close(dataset);
}

int main(int argc, char **argv)
{
    static const struct {
        const char *name;
        int arguments;
        void (*run)(char **arguments);
    } commands[] = {
        {"order", 4, print_order},
        {"train", 4, train},
        {"evaluate", 2, evaluate},
        {"damage", 3, damage},
    };
    for (size_t i = 0; i < sizeof commands / sizeof *commands; i++)
        if (argc == commands[i].arguments + 2 && !strcmp(argv[1], commands[i].name)) {
            commands[i].run(argv + 2);
            return 0;
        }
    return 2;
}
