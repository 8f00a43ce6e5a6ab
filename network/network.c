/* SPDX-License-Identifier: BSD-2-Clause */
/* Making, unmaking and resizing of networks. network_state.h has the map of these files. */
#include "common/memory.h"
#include "device/element.h"
#include "network/arch.h"
#include "network/network_state.h"

#include <stdlib.h>
#include <string.h>

static int network_alloc(struct dl2_network *net, size_t count, size_t size, void *out,
                         struct dl2_error *error)
{
    size_t bytes;
    void *memory;
    if (!dl2_size_mul(count, size, &bytes))
        return dl2_error_set(error, DL2_ERR_LIMIT, "a network passes the address space");
    net->bytes += bytes;
    if (net->planned_only)
        return DL2_OK;
    DL2_TRY(net->device->ops->alloc(net->device, bytes, &memory, error));
    memcpy(out, &memory, sizeof memory);
    return DL2_OK;
}

/* -- an image size -- */

/* Does a network that labels pixels give logits for each of them? */
static int network_check_labels(const struct dl2_graph *graph, const struct dl2_arch *arch,
                                struct dl2_error *error)
{
    if (graph->status || arch->labels == DL2_LABEL_CLASS)
        return graph->status;
    const struct dl2_sides in = graph->values[0].sides, out = graph->values[graph->logits].sides;
    if (in.depth != out.depth || in.height != out.height || in.width != out.width)
        return dl2_error_set(
            error, DL2_ERR_ARGUMENT,
            "%s labels %ux%ux%u pixels of %ux%ux%u: choose sides that it can halve "
            "as often as it does",
            arch->name, out.depth, out.height, out.width, in.depth, in.height, in.width);
    return DL2_OK;
}

/* The graph for images of that size. The caller frees it on failure, too. */
static int network_build_graph(const struct dl2_network *net, unsigned height, unsigned width,
                               struct dl2_graph *graph, struct dl2_error *error)
{
    const struct dl2_network_config *config = &net->config;
    const struct dl2_arch *arch = dl2_arch_find(config->arch, error);
    if (!arch)
        return DL2_ERR_ARGUMENT;
    *graph = (struct dl2_graph){.arch = arch->name,
                                .batch = config->batch,
                                .train = config->train,
                                .norm_decay = config->norm_decay,
                                .images_gradient = config->images_gradient,
                                .volumes = arch->labels == DL2_LABEL_VOLUME,
                                .error = error};
    DL2_TRY(dl2_arch_check_frames(arch, config->frames, error));
    const int images = dl2_graph_images(graph, config->frames, height, width, config->channels);
    graph->logits = arch->build(graph, images, config->classes);
    DL2_TRY(network_check_labels(graph, arch, error));
    const int status = dl2_graph_plan(graph, dl2_element_size(net->device->element));
    graph->error = NULL; /* the caller's */
    return status;
}

/* What of a view is on the device, without plans. */
static int network_place_view(struct dl2_network *net, struct dl2_network_view *view,
                              struct dl2_error *error)
{
    const size_t size = dl2_network_sample_bytes(net, view);
    const struct dl2_label_shape shape = dl2_network_view_labels(net, view);
    const size_t labels = net->config.batch * dl2_label_count(&shape); /* no more than logits */
    DL2_TRY(network_alloc(net, view->graph.arena, 1, &view->arena, error));
    for (unsigned i = 0; i < net->staging; i++) {
        DL2_TRY(network_alloc(net, net->config.batch, size, &view->images[i], error));
        DL2_TRY(network_alloc(net, labels, sizeof *view->current, &view->labels[i], error));
    }
    DL2_TRY(network_alloc(net, labels, sizeof *view->current, &view->current, error));
    return network_alloc(net, labels, sizeof *view->losses, &view->losses, error);
}

static void network_free_view(struct dl2_network *net, struct dl2_network_view *view)
{
    const struct dl2_device_class *ops = net->device->ops;
    for (int i = 0; i < DL2_PLAN_SETS; i++)
        if (view->sets[i].count)
            dl2_network_free_plans(net, view, &view->sets[i]);
    if (view->arena)
        ops->free(net->device, view->arena);
    void *const memory[] = {view->current, view->losses};
    for (int i = 0; i < 2; i++)
        if (memory[i])
            ops->free(net->device, memory[i]);
    for (int i = 0; i < DL2_MAX_STAGED; i++) {
        if (view->images[i])
            ops->free(net->device, view->images[i]);
        if (view->labels[i])
            ops->free(net->device, view->labels[i]);
    }
    dl2_graph_free(&view->graph);
    *view = (struct dl2_network_view){0};
}

/* Do the weights of one size do for another? A transformer's positions do not. */
static int network_check_alike(const struct dl2_network *net, const struct dl2_network_view *view,
                               struct dl2_error *error)
{
    const struct dl2_network_view *own = &net->views[0];
    bool alike = view->graph.tensor_count == own->graph.tensor_count;
    for (size_t i = 0; alike && i < own->graph.tensor_count; i++)
        alike = memcmp(view->graph.tensors[i].dims, own->graph.tensors[i].dims,
                       sizeof own->graph.tensors[i].dims) == 0;
    if (!alike)
        return dl2_error_set(error, DL2_ERR_ARGUMENT,
                             "the weights of %s for images of %ux%u do not fit images of %ux%u: "
                             "train it at one size, or take a network whose weights are for any",
                             net->config.arch, own->width, own->height, view->width, view->height);
    return DL2_OK;
}

static int network_make_view(struct dl2_network *net, struct dl2_network_view *view,
                             struct dl2_error *error)
{
    struct dl2_plan_set *set;
    DL2_TRY(network_build_graph(net, view->height, view->width, &view->graph, error));
    DL2_TRY(network_check_alike(net, view, error));
    DL2_TRY(network_place_view(net, view, error));
    net->view = view;
    return dl2_network_find_plans(net, net->config.batch, &set, error);
}

int dl2_network_use_size(struct dl2_network *net, unsigned height, unsigned width,
                         struct dl2_error *error)
{
    struct dl2_network_view *view = &net->views[0];
    for (int i = 0; i < DL2_NETWORK_VIEWS; i++)
        if (net->views[i].height == height && net->views[i].width == width) {
            net->view = &net->views[i];
            return DL2_OK;
        }
    net->view = view++; /* its own stays, another goes */
    DL2_TRY(net->device->ops->sync(net->device, error));
    network_free_view(net, view);
    view->height = height;
    view->width = width;
    const int status = network_make_view(net, view, error);
    if (status < 0) {
        net->view = &net->views[0];
        network_free_view(net, view);
        if (status == DL2_ERR_MEMORY)
            dl2_error_prefix(error,
                             "a batch of %u images of %ux%u does not fit beside one of %ux%u, "
                             "choose a smaller one",
                             net->config.batch, width, height, net->config.width,
                             net->config.height);
    }
    return status;
}

/* -- the whole network -- */

static int network_fresh_weights(struct dl2_network *net, struct dl2_error *error)
{
    for (size_t i = 0; i < net->view->graph.tensor_count; i++) {
        const struct dl2_tensor *t = &net->view->graph.tensors[i];
        float *values = dl2_calloc(t->count, sizeof *values);
        if (!values)
            return dl2_error_memory(error, "%s", t->name);
        dl2_graph_fresh(&net->view->graph, i, net->config.seed, values);
        int status = dl2_network_set(net, i, DL2_NETWORK_VALUE, values, error);
        free(values);
        DL2_TRY(status);
    }
    return DL2_OK;
}

static int network_build(struct dl2_network *net, struct dl2_error *error)
{
    const struct dl2_network_config *config = &net->config;
    struct dl2_device *device = net->device;
    const size_t element_size = dl2_element_size(device->element);
    if (!config->batch || !config->classes || !config->height || !config->width ||
        !config->channels || (config->channels != 1 && config->channels != 3 && !config->floats))
        return dl2_error_set(
            error, DL2_ERR_ARGUMENT,
            "no network for batches of %u images of %ux%u with %u channels in %u classes",
            config->batch, config->width, config->height, config->channels, config->classes);
    const struct dl2_arch *arch = dl2_arch_find(config->arch, error);
    if (!arch)
        return DL2_ERR_ARGUMENT;
    net->label_kind = arch->labels;
    net->staging = device->staging < DL2_MAX_STAGED ? device->staging : DL2_MAX_STAGED;
    net->view->height = config->height;
    net->view->width = config->width;
    const struct dl2_graph *graph = &net->view->graph;
    DL2_TRY(network_build_graph(net, config->height, config->width, &net->view->graph, error));
    net->config.arch = graph->arch;
    dl2_network_plan_buckets(net);

    DL2_TRY(network_place_view(net, net->view, error));
    DL2_TRY(network_alloc(net, graph->elements, sizeof *net->weights, &net->weights, error));
    if (device->element != DL2_ELEMENT_F32)
        DL2_TRY(network_alloc(net, graph->parameters, element_size, &net->low_precision, error));
    if (config->train) {
        DL2_TRY(
            network_alloc(net, graph->parameters, sizeof *net->gradient, &net->gradient, error));
        DL2_TRY(
            network_alloc(net, graph->parameters, sizeof *net->momentum, &net->momentum, error));
    }
    if (config->train && dl2_optimizer_facts(config->optimizer)->adaptive)
        DL2_TRY(network_alloc(net, graph->parameters, sizeof *net->second_moment,
                              &net->second_moment, error));
    if (config->train && config->average) {
        DL2_TRY(network_alloc(net, graph->elements, sizeof *net->average, &net->average, error));
        DL2_TRY(network_alloc(net, graph->elements, sizeof *net->kept, &net->kept, error));
    }
    size_t batch = config->batch;
    for (unsigned i = 0; i < net->staging; i++) {
        struct dl2_staged *staged = &net->staged[i];
        DL2_TRY(network_alloc(net, batch, sizeof *staged->partner, &staged->partner, error));
    }
    DL2_TRY(network_alloc(net, batch, sizeof *net->partner, &net->partner, error));
    DL2_TRY(network_alloc(net, 1, sizeof *net->sums, &net->sums, error));
    DL2_TRY(network_alloc(net, 1, sizeof *net->entropy, &net->entropy, error));
    if (net->label_kind != DL2_LABEL_CLASS)
        DL2_TRY(network_alloc(net, config->classes, config->classes * sizeof *net->confusion,
                              &net->confusion, error));
    if (net->planned_only)
        return DL2_OK;
    DL2_TRY(network_fresh_weights(net, error));
    struct dl2_plan_set *set;
    return dl2_network_find_plans(net, config->batch, &set, error);
}

/* A network without layers; NULL: no memory. */
static struct dl2_network *begin_network(struct dl2_device *device,
                                         const struct dl2_network_config *config)
{
    struct dl2_network *net = dl2_calloc(1, sizeof *net);
    if (!net)
        return NULL;
    net->device = device;
    net->config = *config;
    net->view = net->views;
    return net;
}

int dl2_network_plan_bytes(struct dl2_device *device, const struct dl2_network_config *config,
                           uint64_t *bytes, struct dl2_error *error)
{
    struct dl2_network *net = begin_network(device, config);
    if (!net)
        return dl2_error_memory(error, "a network");
    net->planned_only = true;
    const int status = network_build(net, error);
    *bytes = net->bytes;
    dl2_network_destroy(net);
    return status;
}

int dl2_network_create(struct dl2_device *device, const struct dl2_network_config *config,
                       struct dl2_network **out, struct dl2_error *error)
{
    struct dl2_network *net = begin_network(device, config);
    if (!net)
        return dl2_error_memory(error, "a network");
    int status = network_build(net, error);
    if (status < 0) {
        if (status == DL2_ERR_MEMORY)
            dl2_error_prefix(error, "a batch of %u does not fit, choose a smaller one",
                             config->batch);
        dl2_network_destroy(net);
        return status;
    }
    *out = net;
    return DL2_OK;
}

void dl2_network_destroy(struct dl2_network *net)
{
    if (!net)
        return;
    struct dl2_device *device = net->device;
    device->ops->sync(device, NULL);
    for (int i = 0; i < DL2_NETWORK_VIEWS; i++)
        network_free_view(net, &net->views[i]);
    void *memory[] = {net->weights,       net->low_precision, net->gradient, net->momentum,
                      net->second_moment, net->average,       net->kept,     net->partner,
                      net->sums,          net->entropy,       net->confusion};
    for (size_t i = 0; i < sizeof memory / sizeof memory[0]; i++)
        if (memory[i])
            device->ops->free(device, memory[i]);
    for (unsigned i = 0; i < net->staging; i++) {
        if (net->staged[i].partner)
            device->ops->free(device, net->staged[i].partner);
    }
    free(net);
}

const char *dl2_network_arch(const struct dl2_network *net)
{
    return net->config.arch;
}
