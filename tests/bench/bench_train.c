/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Training steps a second on synthetic data, for comparison with bench_train.py:
 *
 *     bench_train ARCH SIZE BATCH THREADS STEPS [DEVICE [PRECISION]]     "cuda bf16"
 *
 * SIZE is PIXELS, or FRAMESxPIXELS of clips and volumes. Networks that label pixels have 3 classes.
 * Prints images a second over STEPS steps (upload,
 * forward, backward, update) after a few to warm up, and processor time. As in training, nothing
 * waits for the device but the upload, until the last step is done.
 */
#include "common/clock.h"
#include "common/memory.h"
#include "common/random.h"
#include "network/arch.h"
#include "network/network.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { WARM_UP = 5 };

static int find_precision(const char *name, enum dl2_precision *precision, struct dl2_error *error)
{
    for (int p = DL2_PRECISION_FP32; p <= DL2_PRECISION_FP16; p++)
        if (!strcmp(name, dl2_precision_name((enum dl2_precision)p))) {
            *precision = (enum dl2_precision)p;
            return DL2_OK;
        }
    return dl2_error_set(error, DL2_ERR_ARGUMENT, "there is no precision %s", name);
}

int main(int argc, char **argv)
{
    if (argc < 6) {
        fprintf(stderr, "usage: bench_train ARCH SIZE BATCH THREADS STEPS [DEVICE [PRECISION]]\n");
        return 2;
    }
    unsigned frames = 0, pixels = 0, batch = (unsigned)atoi(argv[3]);
    if (sscanf(argv[2], "%ux%u", &frames, &pixels) == 1) {
        pixels = frames;
        frames = 0;
    }
    unsigned threads = (unsigned)atoi(argv[4]), steps = (unsigned)atoi(argv[5]);
    struct dl2_error error = DL2_ERROR_INIT;
    struct dl2_device_options options = {.threads = threads};
    struct dl2_network_config config = DL2_NETWORK_DEFAULTS;
    struct dl2_device *device = NULL;
    struct dl2_network *network = NULL;
    config.arch = argv[1];
    config.batch = batch;
    config.frames = frames;
    config.height = config.width = pixels;
    size_t bytes = (size_t)batch * (frames ? frames : 1) * pixels * pixels * 3;
    uint8_t *images = NULL;
    int32_t *labels = NULL;
    int status = DL2_OK;
    const struct dl2_arch *arch = dl2_arch_find(config.arch, NULL);
    if (arch && arch->labels != DL2_LABEL_CLASS)
        config.classes = 3;
    if (!status && argc > 7)
        status = find_precision(argv[7], &options.precision, &error);
    if (!status)
        status = dl2_device_open(argc > 6 ? argv[6] : NULL, &options, &device, &error);
    if (!status) {
        images = device->ops->host_alloc ? device->ops->host_alloc(device, bytes)
                                         : dl2_alloc_aligned(bytes, 1);
        status = images ? DL2_OK : DL2_ERR_MEMORY;
    }
    struct dl2_random random;
    dl2_random_init(&random, 1, DL2_RANDOM_SYNTHETIC, 0, 0);
    for (size_t i = 0; !status && i < bytes; i++)
        images[i] = (uint8_t)dl2_random_u32(&random);
    if (!status)
        status = dl2_network_create(device, &config, &network, &error);
    const struct dl2_label_shape shape =
        network ? dl2_network_labels(network) : (struct dl2_label_shape){.sides = {1, 1, 1}};
    const size_t count = batch * dl2_label_count(&shape);
    if (!status && !(labels = dl2_calloc(count, sizeof *labels)))
        status = DL2_ERR_MEMORY;
    for (size_t i = 0; !status && i < count; i++)
        labels[i] = (int32_t)dl2_random_below(&random, config.classes);

    const struct dl2_network_input input = {images, labels, batch, NULL, 1};
    const struct dl2_update update = {0.01f, 0.9f, 1e-4f, true};
    double started = 0;
    clock_t processor = 0;
    struct dl2_loss_sums sums = {0};
    for (unsigned i = 0; !status && i < steps + WARM_UP; i++) {
        const struct dl2_network_step step = {i, 1, false, false};
        if (i == WARM_UP) {
            status = dl2_network_take_sums(network, &sums, &error);
            started = dl2_clock_wall();
            processor = clock();
        }
        if (!status)
            status = dl2_network_train(network, &input, &step, &error);
        if (!status)
            status = dl2_network_update(network, &update, &error);
        if (!status)
            dl2_network_wait_input(network);
    }
    if (!status)
        status = dl2_network_take_sums(network, &sums, &error);
    double seconds = dl2_clock_wall() - started;
    if (!status)
        printf("%.2f images/s, %.1f ms of processor time each, loss %.4f\n",
               steps * batch / seconds,
               1e3 * (double)(clock() - processor) / CLOCKS_PER_SEC / (steps * batch),
               sums.loss / (double)sums.counted);
    else
        fprintf(stderr, "bench_train: %s\n",
                error.message[0] ? error.message : "out of memory for a batch");
    dl2_network_destroy(network);
    if (images && device->ops->host_alloc)
        device->ops->host_free(device, images);
    else
        free(images);
    dl2_device_close(device);
    free(labels);
    return status ? 1 : 0;
}
