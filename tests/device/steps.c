/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Training steps from given weights on a given batch, for comparison with peer_steps.py:
 *
 *     steps DEVICE PRECISION ARCH OPTIMIZER PIXELS BATCH CLASSES STEPS RATE WEIGHTS IMAGES LABELS
 *
 * WEIGHTS has float32, all of the network's tensors in the order of PyTorch's state_dict() without
 * num_batches_tracked; IMAGES bytes [BATCH][PIXELS][PIXELS][3]; LABELS int32. Prints each step's
 * loss, before its update.
 */
#include "common/file.h"
#include "network/network.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int load(const char *path, size_t size, struct dl2_bytes *bytes, struct dl2_error *error)
{
    DL2_TRY(dl2_file_read(path, (size_t)1 << 32, bytes, error));
    return bytes->size == size ? DL2_OK
                               : dl2_error_set(error, DL2_ERR_FORMAT, "%s has %zu bytes, not %zu",
                                               path, bytes->size, size);
}

static int set_weights(struct dl2_network *network, const char *path, struct dl2_error *error)
{
    const size_t tensors = dl2_network_tensor_count(network);
    struct dl2_bytes bytes = DL2_BYTES_INIT;
    struct dl2_network_tensor tensor;
    size_t count = 0;
    for (size_t i = 0; i < tensors; i++) {
        dl2_network_tensor(network, i, &tensor);
        count += tensor.count;
    }
    int status = load(path, count * sizeof(float), &bytes, error);
    const uint8_t *at = bytes.data;
    for (size_t i = 0; status == DL2_OK && i < tensors; i++) {
        dl2_network_tensor(network, i, &tensor);
        float *values = dl2_calloc(tensor.count, sizeof *values);
        if (!values)
            status = dl2_error_set(error, DL2_ERR_MEMORY, "no memory for weights");
        else
            memcpy(values, at, tensor.count * sizeof *values);
        at += tensor.count * sizeof *values;
        if (status == DL2_OK)
            status = dl2_network_set(network, i, DL2_NETWORK_VALUE, values, error);
        free(values);
    }
    dl2_bytes_free(&bytes);
    return status;
}

static int train(struct dl2_network *network, const struct dl2_network_input *input, unsigned steps,
                 float rate, struct dl2_error *error)
{
    struct dl2_update update = {
        .rate = rate, .momentum = 0.9f, .weight_decay = 1e-4f, .beta2 = 0.999f, .epsilon = 1e-8f};
    for (unsigned i = 0; i < steps; i++) {
        const struct dl2_network_step step = {.step = i, .scale = 1};
        struct dl2_loss_sums sums;
        DL2_TRY(dl2_network_train(network, input, &step, error));
        update.number = i + 1;
        DL2_TRY(dl2_network_update(network, &update, error));
        DL2_TRY(dl2_network_take_sums(network, &sums, error));
        printf("%.7f\n", sums.loss / (double)sums.counted);
    }
    return DL2_OK;
}

/* What the device did in another way: device.py looks for it. */
static void say_note(void *context, const char *text)
{
    (void)context;
    fprintf(stderr, "note: %s\n", text);
}

int main(int argc, char **argv)
{
    if (argc != 13) {
        fprintf(stderr, "usage: steps DEVICE PRECISION ARCH OPTIMIZER PIXELS BATCH CLASSES STEPS "
                        "RATE WEIGHTS IMAGES LABELS\n");
        return 2;
    }
    /* As dl2-train has it: with what was measured to be the fastest. test_device does without. */
    struct dl2_device_options options = {.deterministic = false, .note = say_note};
    while (strcmp(dl2_precision_name(options.precision), argv[2]) != 0)
        if (options.precision++ == DL2_PRECISION_FP16) {
            fprintf(stderr, "steps: no precision '%s'\n", argv[2]);
            return 2;
        }
    struct dl2_network_config config = DL2_NETWORK_DEFAULTS;
    config.arch = argv[3];
    config.optimizer = strcmp(argv[4], "adamw") == 0 ? DL2_ADAMW : DL2_SGD;
    config.height = config.width = (unsigned)atoi(argv[5]);
    config.batch = (unsigned)atoi(argv[6]);
    config.classes = (unsigned)atoi(argv[7]);
    struct dl2_error error = DL2_ERROR_INIT;
    struct dl2_device *device = NULL;
    struct dl2_network *network = NULL;
    struct dl2_bytes images = DL2_BYTES_INIT, labels = DL2_BYTES_INIT;
    int status = dl2_device_open(argv[1], &options, &device, &error);
    if (status == DL2_OK)
        status = dl2_network_create(device, &config, &network, &error);
    if (status == DL2_OK)
        status = set_weights(network, argv[10], &error);
    if (status == DL2_OK)
        status = load(argv[11], (size_t)config.batch * config.height * config.width * 3, &images,
                      &error);
    if (status == DL2_OK)
        status = load(argv[12], config.batch * sizeof(int32_t), &labels, &error);
    const struct dl2_network_input input = {
        .images = images.data, .labels = (const int32_t *)labels.data, .count = config.batch};
    if (status == DL2_OK)
        status = train(network, &input, (unsigned)atoi(argv[8]), (float)atof(argv[9]), &error);
    if (status < 0)
        fprintf(stderr, "steps: %s\n", error.message);
    dl2_network_destroy(network);
    dl2_device_close(device);
    dl2_bytes_free(&images);
    dl2_bytes_free(&labels);
    return status < 0;
}
