/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What a network is and does, for a comparison with torchvision's:
 *
 *     show_network tensors ARCH CLASSES                         names and shapes, a line each
 *     show_network logits ARCH CLASSES SIZE BATCH FILE          of weights that FILE has
 *     show_network sgd ARCH CLASSES SIZE BATCH FILE OUT         ten steps from there: the losses;
 *                                                               weights to OUT, and their logits
 *     show_network adamw ...                                    the same
 *
 * SIZE is PIXELS, or FRAMESxPIXELS of clips. FILE may be "-": fresh weights. Images and labels are
 * compare_torchvision.py's. Dropout drops nothing in these steps: other programs draw otherwise.
 */
#include "common/memory.h"
#include "network/arch.h"
#include "network/graph.h"
#include "network/network_state.h"
#include "network/weights.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { STEPS = 10 };

static int show_tensors(const char *name, unsigned classes, struct dl2_error *error)
{
    struct dl2_graph graph = {.arch = name, .batch = 1, .train = true, .error = error};
    const struct dl2_arch *arch = dl2_arch_find(name, error);
    if (!arch)
        return error->status;
    int first = dl2_graph_images(&graph, arch->frames, 224, 224, 3);
    graph.logits = arch->build(&graph, first, classes);
    int status = dl2_graph_plan(&graph, sizeof(float));
    for (size_t i = 0; status == DL2_OK && i < graph.tensor_count; i++) {
        const struct dl2_tensor *t = &graph.tensors[i];
        printf("%s", t->name);
        for (unsigned d = 0; d < t->rank; d++)
            printf(" %zu", t->dims[d]);
        printf("\n");
    }
    dl2_graph_free(&graph);
    return status;
}

static int show_logits(struct dl2_network *network, const struct dl2_network_input *input,
                       unsigned classes, struct dl2_error *error)
{
    float *logits = dl2_calloc((size_t)input->count * classes, sizeof *logits);
    if (!logits)
        return dl2_error_set(error, DL2_ERR_MEMORY, "out of memory");
    int status = dl2_network_evaluate(network, input, error);
    if (status == DL2_OK)
        status = dl2_network_last(network, NULL, logits, error);
    for (size_t i = 0; status == DL2_OK && i < (size_t)input->count * classes; i++)
        printf("logit %.9g\n", (double)logits[i]);
    free(logits);
    return status;
}

static int train(struct dl2_network *network, const struct dl2_network_input *input,
                 struct dl2_error *error)
{
    struct dl2_update update = {
        .rate = 3e-5f, .momentum = 0.9f, .weight_decay = 1e-3f, .beta2 = 0.99f, .epsilon = 1e-8f};
    for (size_t i = 0; i < network->view->graph.layer_count; i++)
        network->view->graph.layers[i].rate = 0;
    for (uint64_t i = 0; i < STEPS; i++) {
        update.number = i + 1;
        const struct dl2_network_step step = {i, 1, false, false};
        struct dl2_loss_sums sums;
        DL2_TRY(dl2_network_train(network, input, &step, error));
        DL2_TRY(dl2_network_update(network, &update, error));
        DL2_TRY(dl2_network_take_sums(network, &sums, error));
        printf("loss %.9g\n", sums.loss / (double)sums.counted);
    }
    return DL2_OK;
}

static int show(int argc, char **argv, struct dl2_error *error)
{
    const char *out = argc > 7 ? argv[7] : NULL;
    unsigned classes = (unsigned)atoi(argv[3]), frames = 0, pixels = 0;
    if (sscanf(argv[4], "%ux%u", &frames, &pixels) == 1) {
        pixels = frames;
        frames = 0;
    }
    unsigned batch = (unsigned)atoi(argv[5]);
    const struct dl2_device_options options = {.threads = 1};
    const struct dl2_network_config config = {.arch = argv[2],
                                              .batch = batch,
                                              .frames = frames,
                                              .height = pixels,
                                              .width = pixels,
                                              .channels = 3,
                                              .classes = classes,
                                              .mean = {122.5f, 116.5f, 104},
                                              .std = {59.5f, 58.5f, 58},
                                              .smoothing = 0.1f,
                                              .seed = 1,
                                              .optimizer = strcmp(argv[1], "adamw") == 0 ? DL2_ADAMW
                                                                                         : DL2_SGD,
                                              .train = out != NULL};
    size_t bytes = (size_t)batch * (frames ? frames : 1) * pixels * pixels * 3;
    struct dl2_device *device = NULL;
    struct dl2_network *network = NULL;
    uint8_t *images = dl2_calloc(bytes, 1);
    int32_t *labels = dl2_calloc(batch, sizeof *labels);
    int status = images && labels ? dl2_device_open(NULL, &options, &device, error)
                                  : dl2_error_set(error, DL2_ERR_MEMORY, "out of memory");
    for (size_t i = 0; status == DL2_OK && i < bytes; i++)
        images[i] = (uint8_t)((i * 7919 + i / 977 * 104729) % 251);
    for (unsigned i = 0; status == DL2_OK && i < batch; i++)
        labels[i] = (int32_t)(i * 5 % classes);
    const struct dl2_network_input input = {images, labels, batch, NULL, 1};
    char note[256] = "";
    if (status == DL2_OK)
        status = dl2_network_create(device, &config, &network, error);
    if (status == DL2_OK && strcmp(argv[6], "-") != 0)
        status = dl2_weights_load(argv[6], network, false, note, sizeof note, error);
    if (note[0])
        printf("note %s\n", note);
    if (status == DL2_OK && out)
        status = train(network, &input, error);
    if (status == DL2_OK && out)
        status = dl2_weights_save(out, network, NULL, error);
    if (status == DL2_OK)
        status = show_logits(network, &input, classes, error);
    dl2_network_destroy(network);
    dl2_device_close(device);
    free(images);
    free(labels);
    return status;
}

int main(int argc, char **argv)
{
    struct dl2_error error = DL2_ERROR_INIT;
    int status = DL2_ERR_ARGUMENT;
    if (argc == 4 && strcmp(argv[1], "tensors") == 0)
        status = show_tensors(argv[2], (unsigned)atoi(argv[3]), &error);
    else if (argc == (strcmp(argv[1], "logits") ? 8 : 7))
        status = show(argc, argv, &error);
    if (status < 0)
        fprintf(stderr, "show_network: %s\n", error.message[0] ? error.message : "wrong usage");
    return status < 0;
}
