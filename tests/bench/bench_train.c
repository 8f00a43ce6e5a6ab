/*
 * Training steps a second on synthetic data, for comparison with bench_train.py:
 *
 *     bench_train ARCH PIXELS BATCH THREADS STEPS [DEVICE]
 *
 * Prints images a second over STEPS steps (forward, backward, update) after three to warm up.
 */
#include "common/clock.h"
#include "common/memory.h"
#include "common/random.h"
#include "train/network.h"

#include <stdio.h>
#include <stdlib.h>

int main(int argc, char **argv)
{
    if (argc < 6) {
        fprintf(stderr, "usage: bench_train ARCH PIXELS BATCH THREADS STEPS [DEVICE]\n");
        return 2;
    }
    unsigned pixels = (unsigned)atoi(argv[2]), batch = (unsigned)atoi(argv[3]);
    unsigned threads = (unsigned)atoi(argv[4]), steps = (unsigned)atoi(argv[5]);
    struct dl2_error error = DL2_ERROR_INIT;
    struct dl2_device_options options = {.threads = threads};
    struct dl2_network_config config = DL2_NETWORK_DEFAULTS;
    struct dl2_device *device = NULL;
    struct dl2_network *network = NULL;
    config.arch = argv[1];
    config.batch = batch;
    config.height = config.width = pixels;
    size_t bytes = (size_t)batch * pixels * pixels * 3;
    uint8_t *images = dl2_calloc(bytes, 1);
    int32_t *labels = dl2_calloc(batch, sizeof *labels);
    int status = images && labels ? DL2_OK : DL2_ERR_MEMORY;
    struct dl2_random random;
    dl2_random_init(&random, 1, DL2_RANDOM_SYNTHETIC, 0, 0);
    for (size_t i = 0; !status && i < bytes; i++)
        images[i] = (uint8_t)dl2_random_u32(&random);
    for (unsigned i = 0; !status && i < batch; i++)
        labels[i] = (int32_t)dl2_random_below(&random, config.classes);
    if (!status)
        status = dl2_device_open(argc > 6 ? argv[6] : NULL, &options, &device, &error);
    if (!status)
        status = dl2_network_create(device, &config, &network, &error);

    const struct dl2_network_input input = {images, labels, batch, NULL, 1};
    const struct dl2_sgd sgd = {0.01f, 0.9f, 1e-4f, true};
    double started = 0;
    struct dl2_loss_sums sums = {0};
    for (unsigned i = 0; !status && i < steps + 3; i++) {
        const struct dl2_network_step step = {i, 1, false, false};
        if (i == 3)
            started = dl2_clock_wall();
        status = dl2_network_train(network, &input, &step, &error);
        if (!status)
            status = dl2_network_update(network, &sgd, &error);
        if (!status)
            status = dl2_network_take_sums(network, &sums, &error);
    }
    double seconds = dl2_clock_wall() - started;
    if (!status)
        printf("%.2f images/s, loss %.4f\n", steps * batch / seconds,
               sums.loss / (double)sums.counted);
    else
        fprintf(stderr, "bench_train: %s\n", error.message);
    dl2_network_destroy(network);
    dl2_device_close(device);
    free(images);
    free(labels);
    return status ? 1 : 0;
}
