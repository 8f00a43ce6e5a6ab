/* SPDX-License-Identifier: BSD-2-Clause */
/* The device's plans for the layers, one set a batch size. */
#include "common/memory.h"
#include "network/network_state.h"

#include <stdlib.h>
#include <string.h>

#define NORM_EPSILON  1e-5f
#define NORM_MOMENTUM 0.1f

void dl2_network_free_plans(struct dl2_network *net, const struct dl2_network_view *view,
                            struct dl2_plan_set *set)
{
    for (size_t i = 0; set->layers && i < view->graph.layer_count; i++)
        dl2_device_plan_free(set->layers[i].any);
    for (int kind = 0; kind < DL2_RUN_KINDS; kind++)
        if (set->kinds[kind].recording)
            net->device->ops->recording_free(set->kinds[kind].recording);
    dl2_device_plan_free(set->ingest);
    dl2_device_plan_free(set->loss_train);
    dl2_device_plan_free(set->loss_eval);
    dl2_device_plan_free(set->dice);
    free(set->layers);
    *set = (struct dl2_plan_set){0};
}

static int network_plan_layer(struct dl2_network *net, const struct dl2_layer *layer,
                              unsigned count, union dl2_layer_plan *plan, struct dl2_error *error)
{
    struct dl2_device *device = net->device;
    const struct dl2_graph *graph = &net->view->graph;
    const struct dl2_value *in = &graph->values[layer->in], *out = &graph->values[layer->out];
    switch (layer->kind) {
    case DL2_LAYER_CONV: {
        struct dl2_conv_shape shape = {.batch = count,
                                       .in = in->sides,
                                       .kernel = layer->window.kernel,
                                       .stride = layer->window.stride,
                                       .pad = layer->window.pad,
                                       .in_channels = in->channels,
                                       .out_channels = out->channels,
                                       .groups = layer->groups,
                                       .bias = layer->bias,
                                       .activation = layer->activation};
        return device->ops->conv_create(device, &shape, &plan->conv, error);
    }
    case DL2_LAYER_NORM: {
        struct dl2_norm_shape shape = {
            .rows = count * dl2_sides_count(in->sides),
            .channels = in->channels,
            .epsilon = NORM_EPSILON,
            .momentum = NORM_MOMENTUM,
            .activation = layer->activation,
            .residual = layer->residual >= 0,
            .synchronized = net->config.sync_norm && device->world,
        };
        return device->ops->norm_create(device, &shape, &plan->norm, error);
    }
    case DL2_LAYER_MAX_POOL:
    case DL2_LAYER_AVERAGE_POOL: {
        struct dl2_pool_shape shape = {
            .kind = layer->kind == DL2_LAYER_MAX_POOL ? DL2_POOL_MAX : DL2_POOL_ADAPTIVE_AVERAGE,
            .batch = count,
            .in = in->sides,
            .channels = in->channels,
            .out = out->sides,
            .kernel = layer->window.kernel,
            .stride = layer->window.stride,
            .pad = layer->window.pad};
        return device->ops->pool_create(device, &shape, &plan->pool, error);
    }
    case DL2_LAYER_LINEAR: {
        struct dl2_linear_shape shape = {count * layer->rows, (unsigned)in->size / layer->rows,
                                         out->channels, true, layer->activation};
        return device->ops->linear_create(device, &shape, &plan->linear, error);
    }
    case DL2_LAYER_LAYER_NORM: {
        struct dl2_layer_norm_shape shape = {(size_t)count * in->sides.height, in->channels,
                                             layer->epsilon};
        return device->ops->layer_norm_create(device, &shape, &plan->layer_norm, error);
    }
    case DL2_LAYER_ATTENTION: {
        struct dl2_attention_shape shape = {count, in->sides.height, out->channels, layer->heads};
        return device->ops->attention_create(device, &shape, &plan->attention, error);
    }
    case DL2_LAYER_TRANSPOSED: {
        /* The convolution back: from its result to its input. */
        struct dl2_conv_shape shape = {.batch = count,
                                       .in = out->sides,
                                       .kernel = layer->window.kernel,
                                       .stride = layer->window.stride,
                                       .pad = layer->window.pad,
                                       .in_channels = out->channels,
                                       .out_channels = in->channels,
                                       .groups = layer->groups,
                                       .bias = layer->bias};
        return dl2_transposed_create(device, &shape, &plan->transposed, error);
    }
    case DL2_LAYER_INSTANCE_NORM: {
        struct dl2_norm_shape shape = {
            .rows = dl2_sides_count(in->sides),
            .channels = in->channels,
            .epsilon = NORM_EPSILON,
            .momentum = NORM_MOMENTUM,
            .activation = layer->activation,
        };
        return dl2_instance_norm_create(device, &shape, count, &plan->instance_norm, error);
    }
    case DL2_LAYER_DROPOUT:
    case DL2_LAYER_ADD:
    case DL2_LAYER_SMOOTH:
    case DL2_LAYER_TOKENS:
    case DL2_LAYER_CONCAT:
    case DL2_LAYER_GATE:
        break;
    }
    return DL2_OK;
}

struct dl2_label_shape dl2_network_view_labels(const struct dl2_network *net,
                                               const struct dl2_network_view *view)
{
    const struct dl2_value *v = &view->graph.values[view->graph.logits];
    if (net->label_kind == DL2_LABEL_CLASS)
        return (struct dl2_label_shape){DL2_LABEL_CLASS, {1, 1, 1}};
    return (struct dl2_label_shape){net->label_kind, v->sides};
}

size_t dl2_network_sample_bytes(const struct dl2_network *net, const struct dl2_network_view *view)
{
    return view->graph.values[0].size * (net->config.floats ? sizeof(float) : 1);
}

struct dl2_label_shape dl2_network_labels(const struct dl2_network *net)
{
    return dl2_network_view_labels(net, net->view);
}

/* The loss, which is over each label of each sample. */
static int network_plan_loss(struct dl2_network *net, struct dl2_plan_set *set, unsigned count,
                             struct dl2_error *error)
{
    struct dl2_device *device = net->device;
    const struct dl2_label_shape labels = dl2_network_labels(net);
    const size_t each = dl2_label_count(&labels);
    const struct dl2_dice_shape dice = {count, each, net->config.classes};
    /* Fits: logits, which are no fewer, are below 2^31. */
    struct dl2_loss_shape loss = {(unsigned)(count * each), net->config.classes,
                                  net->config.smoothing};
    DL2_TRY(device->ops->loss_create(device, &loss, &set->loss_train, error));
    loss.smoothing = 0;
    DL2_TRY(device->ops->loss_create(device, &loss, &set->loss_eval, error));
    return net->view->graph.dice ? device->ops->dice_create(device, &dice, &set->dice, error)
                                 : DL2_OK;
}

static int network_fill_plans(struct dl2_network *net, struct dl2_plan_set *set, unsigned count,
                              struct dl2_error *error)
{
    struct dl2_device *device = net->device;
    const struct dl2_network_config *config = &net->config;
    set->layers = dl2_calloc(net->view->graph.layer_count, sizeof *set->layers);
    if (!set->layers)
        return dl2_error_memory(error, "a network");
    /* The frames of a clip, one below the other. */
    const struct dl2_value *images = &net->view->graph.values[0];
    struct dl2_ingest_shape ingest = {.batch = count,
                                      .height = images->sides.depth * images->sides.height,
                                      .width = images->sides.width,
                                      .channels = images->channels,
                                      .floats = config->floats};
    memcpy(ingest.mean, config->mean, sizeof ingest.mean);
    memcpy(ingest.std, config->std, sizeof ingest.std);
    DL2_TRY(device->ops->ingest_create(device, &ingest, &set->ingest, error));
    DL2_TRY(network_plan_loss(net, set, count, error));
    for (size_t i = 0; i < net->view->graph.layer_count; i++) {
        const struct dl2_layer *layer = &net->view->graph.layers[i];
        int status = network_plan_layer(net, layer, count, &set->layers[i], error);
        if (status < 0) {
            dl2_error_prefix(error, "%s", dl2_graph_layer_name(&net->view->graph, layer));
            return status;
        }
    }
    set->count = count;
    return DL2_OK;
}

int dl2_network_find_plans(struct dl2_network *net, unsigned count, struct dl2_plan_set **out,
                           struct dl2_error *error)
{
    struct dl2_plan_set *oldest = &net->view->sets[0];
    for (int i = 0; i < DL2_PLAN_SETS; i++) {
        struct dl2_plan_set *set = &net->view->sets[i];
        if (set->count == count) {
            set->used = ++net->clock;
            *out = set;
            return DL2_OK;
        }
        if (set->used < oldest->used)
            oldest = set;
    }
    if (oldest->count) {
        DL2_TRY(net->device->ops->sync(net->device, error));
        dl2_network_free_plans(net, net->view, oldest);
    }
    int status = network_fill_plans(net, oldest, count, error);
    if (status < 0) {
        dl2_network_free_plans(net, net->view, oldest);
        return status;
    }
    oldest->used = ++net->clock;
    *out = oldest;
    return DL2_OK;
}

int dl2_network_check_device(struct dl2_network *net, unsigned *checked, struct dl2_error *error)
{
    const struct dl2_device_class *ops = net->device->ops;
    struct dl2_plan_set *set;
    *checked = 0;
    DL2_TRY(dl2_network_find_plans(net, net->config.batch, &set, error));
    for (size_t i = 0; i < net->view->graph.layer_count; i++) {
        const struct dl2_layer *layer = &net->view->graph.layers[i];
        int status = DL2_OK;
        if (layer->kind == DL2_LAYER_CONV && ops->conv_check)
            status = ops->conv_check(set->layers[i].conv, checked, error);
        else if (layer->kind == DL2_LAYER_TRANSPOSED)
            status = dl2_transposed_check(set->layers[i].transposed, checked, error);
        else if (layer->kind == DL2_LAYER_LINEAR && ops->linear_check)
            status = ops->linear_check(set->layers[i].linear, checked, error);
        else if (layer->kind == DL2_LAYER_ATTENTION && ops->attention_check)
            status = ops->attention_check(set->layers[i].attention, checked, error);
        if (status < 0) {
            dl2_error_prefix(error, "%s", dl2_graph_layer_name(&net->view->graph, layer));
            return status;
        }
    }
    return DL2_OK;
}
