/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * show_batches DIR SIZE RESIZE train|val CHANNELS SEED EPOCH: for comparing with other software.
 * Writes per sample one line "PATH<tab>x y width height flip" (the crop that was chosen; of no use
 * with val) and behind it the SIZE * SIZE * CHANNELS bytes that came out.
 */
#include "codec/codec.h"
#include "loader/loader.h"
#include "loader/sample.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int show_crop(const struct dl2_dataset *dataset, const struct dl2_loader_config *config,
                     uint64_t epoch, uint32_t index, struct dl2_error *error)
{
    struct dl2_bytes scratch = DL2_BYTES_INIT;
    struct dl2_image_info info;
    const uint8_t *data;
    size_t size;
    int status = dl2_dataset_read(dataset, index, &scratch, &data, &size, error);
    if (status == DL2_OK)
        status = dl2_image_read_info(data, size, &info, error);
    if (status == DL2_OK) {
        struct dl2_random random;
        struct dl2_crop crop;
        struct dl2_sample sample;
        dl2_random_init(&random, config->seed, DL2_RANDOM_AUGMENT, epoch, index);
        const struct dl2_crop_config crops = dl2_loader_crop_config(config);
        dl2_crop_for_training(&crops, &random, info.width, info.height, &crop);
        dl2_dataset_sample(dataset, index, &sample);
        printf("%s\t%u %u %u %u %d\n", sample.path, crop.x, crop.y, crop.width, crop.height,
               crop.flip);
    }
    dl2_bytes_free(&scratch);
    return status;
}

static int show(char **arguments, struct dl2_error *error)
{
    struct dl2_dataset_options options = DL2_DATASET_DEFAULTS;
    struct dl2_loader_config config = DL2_LOADER_DEFAULTS;
    config.height = (unsigned)atoi(arguments[2]);
    config.resize = (unsigned)atoi(arguments[3]);
    config.train = !strcmp(arguments[4], "train");
    config.channels = (unsigned)atoi(arguments[5]);
    config.seed = (uint64_t)atoi(arguments[6]);
    config.stop_on_bad = true;
    const uint64_t epoch = (uint64_t)atoi(arguments[7]);
    struct dl2_dataset *dataset;
    struct dl2_loader *loader = NULL;
    struct dl2_batch *batch;
    DL2_TRY(dl2_dataset_open(arguments[1], &options, &dataset, error));
    int status = dl2_loader_create(dataset, &config, &loader, error);
    if (status == DL2_OK)
        status = dl2_loader_start_epoch(loader, epoch, 0, error);
    while (status >= 0 && (status = dl2_loader_next(loader, &batch, error)) == 1) {
        const size_t size = (size_t)config.height * config.height * config.channels;
        for (unsigned i = 0; status >= 0 && i < batch->count; i++) {
            status = show_crop(dataset, &config, epoch, batch->indices[i], error);
            fwrite(batch->images + i * size, 1, size, stdout);
        }
        dl2_loader_release(loader, batch);
    }
    dl2_loader_destroy(loader);
    dl2_dataset_close(dataset);
    return status;
}

int main(int argc, char **argv)
{
    struct dl2_error error = DL2_ERROR_INIT;
    if (argc != 8)
        return 2;
    if (show(argv, &error) < 0) {
        fprintf(stderr, "%s\n", error.message);
        return 1;
    }
    return fflush(stdout) != 0;
}
