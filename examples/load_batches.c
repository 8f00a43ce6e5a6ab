/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * load_batches FOLDER: loads two epochs of training batches, 224x224 RGB, and prints their check
 * sum, which equals that of `dl2-load bench --digest -i 224 -e 2 FOLDER`.
 *
 *     cc load_batches.c -o load_batches $(pkg-config --cflags --libs dl2 zlib)
 */
#include <codec/image_file.h>
#include <loader/loader.h>
#include <stdio.h>
#include <zlib.h>

/* Stands for training: adds the images' bytes and the labels to a check sum. */
static unsigned long use(const struct dl2_batch *batch, unsigned long digest)
{
    const size_t image = (size_t)224 * 224 * 3;
    digest = crc32_z(digest, batch->images, batch->count * image);
    return crc32_z(digest, (const unsigned char *)batch->labels,
                   batch->count * sizeof *batch->labels);
}

static int load(const struct dl2_dataset *dataset, struct dl2_error *error)
{
    struct dl2_loader_config config = DL2_LOADER_DEFAULTS;
    struct dl2_loader *loader;
    struct dl2_batch *batch;
    unsigned long digest = 0;
    config.height = 224;
    int status = dl2_loader_create(dataset, &config, &loader, error);
    for (unsigned epoch = 0; status >= 0 && epoch < 2; epoch++) {
        status = dl2_loader_start_epoch(loader, epoch, 0, error);
        while (status >= 0 && (status = dl2_loader_next(loader, &batch, error)) == 1) {
            digest = use(batch, digest);
            dl2_loader_release(loader, batch);
        }
    }
    if (status >= 0)
        printf("digest %08lx\n", digest);
    dl2_loader_destroy(loader);
    return status;
}

int main(int argc, char **argv)
{
    struct dl2_error error = DL2_ERROR_INIT;
    struct dl2_dataset_options options = DL2_DATASET_DEFAULTS;
    struct dl2_dataset *dataset;
    if (argc != 2)
        return 2;
    options.split = "train";
    options.keep = dl2_codec_is_image_file;
    if (dl2_dataset_open(argv[1], &options, &dataset, &error) == DL2_OK) {
        fprintf(stderr, "%s: %s\n", argv[1], dl2_dataset_layout(dataset));
        load(dataset, &error);
        dl2_dataset_close(dataset);
    }
    if (error.status < 0)
        fprintf(stderr, "load_batches: %s\n", error.message);
    return error.status < 0 || fflush(stdout) != 0;
}
