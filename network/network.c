/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A network on a device: the graph's memory, the device's plans for it (kept per batch size), and
 * the calls that run it.
 *
 * What runs between two looks at the numbers is a straight row of calls that is the same each time
 * for one batch size and kind of call. A device that can record gets it recorded the second time
 * and replayed from then on.
 */
#include "network/network.h"
#include "common/memory.h"
#include "device/element.h"
#include "network/arch.h"
#include "network/graph.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    VIEWS = 2,       /* image sizes: its own, and another one */
    PLAN_SETS = 4,   /* batch sizes that plans are kept for */
    MOST_STAGED = 4, /* batches on the device at once */
    BUCKETS = 32,    /* of gradients, see network_plan_buckets() */
};

/* Elements in a bucket: a few of them in a small network, 16 MiB each in a large one. */
#define BUCKET_LEAST ((size_t)1 << 14)
#define BUCKET_MOST  ((size_t)1 << 22)

#define NORM_EPSILON  1e-5f
#define NORM_MOMENTUM 0.1f

union plan {
    struct dl2_conv *conv;
    struct dl2_norm *norm;
    struct dl2_pool *pool;
    struct dl2_linear *linear;
    struct dl2_layer_norm *layer_norm;
    struct dl2_attention *attention;
};

/* Kinds of runs: with the batch size, the kind decides the calls of a run. */
enum {
    RUN_TRAIN = 1,
    RUN_MIXED = 2,
    RUN_ACCUMULATE = 4,
    RUN_MORE = 8, /* gradients are not reduced yet */
    RUN_FROZEN = 16,
    RUN_KINDS = 32,
};

struct plan_set {
    unsigned count; /* batch size; 0: free */
    uint64_t used;  /* when last */
    struct dl2_ingest *ingest;
    struct dl2_loss *loss_train, *loss_eval;
    union plan *layers;
    struct {
        unsigned runs;
        struct dl2_recording *recording;
    } kinds[RUN_KINDS];
};

/* A run of gradients that are all there once layer `layer` has gone backward. */
struct bucket {
    size_t begin, count;
    size_t layer;
};

/* A batch's place on the device, beside that of its images. */
struct staged {
    int32_t *labels;
    uint32_t *partner;
};

/* The network for images of one size. All share the tensors, which are those of its own size. */
struct view {
    unsigned height, width; /* 0: free */
    struct dl2_graph graph;
    uint8_t *arena;               /* activations and their gradients */
    uint8_t *images[MOST_STAGED]; /* of batches, on the device */
    struct plan_set sets[PLAN_SETS];
};

struct dl2_network {
    struct dl2_device *device;
    struct dl2_network_config config;
    uint64_t bytes;                  /* of the device's memory */
    bool planned_only;               /* the bytes are counted and not taken */
    struct view views[VIEWS], *view; /* the first is of config's size; the one in use */

    float *weights;   /* of all tensors */
    uint8_t *lowered; /* the parameters as the device's elements; NULL where these are float32 */
    float *gradient, *momentum, *second_moment;
    float *average, *kept; /* of all tensors; `kept` has the weights while the averages are in their
                              place */
    bool averaged;         /* they are */
    bool frozen;           /* only the last layer is trained */
    struct bucket buckets[BUCKETS];
    size_t bucket_count;

    struct staged staged[MOST_STAGED];
    unsigned staging, next_staged;
    int32_t *labels; /* of the batch that runs: staged ones move, and the loss is recorded */
    uint32_t *partner;
    float *losses;
    struct dl2_loss_sums *sums;
    struct dl2_step_numbers numbers;

    uint64_t clock;
    unsigned last_count; /* of the last batch */
    bool last_train;
};

/* -- plans for a batch size -- */

static void network_free_plans(struct dl2_network *net, const struct view *view,
                               struct plan_set *set)
{
    const struct dl2_device_class *ops = net->device->ops;
    for (size_t i = 0; set->layers && i < view->graph.layer_count; i++)
        switch (view->graph.layers[i].kind) {
        case DL2_LAYER_CONV:
            ops->conv_free(set->layers[i].conv);
            break;
        case DL2_LAYER_NORM:
            ops->norm_free(set->layers[i].norm);
            break;
        case DL2_LAYER_MAX_POOL:
        case DL2_LAYER_AVERAGE_POOL:
            ops->pool_free(set->layers[i].pool);
            break;
        case DL2_LAYER_LINEAR:
            ops->linear_free(set->layers[i].linear);
            break;
        case DL2_LAYER_LAYER_NORM:
            ops->layer_norm_free(set->layers[i].layer_norm);
            break;
        case DL2_LAYER_ATTENTION:
            ops->attention_free(set->layers[i].attention);
            break;
        case DL2_LAYER_DROPOUT:
        case DL2_LAYER_ADD:
        case DL2_LAYER_GELU:
        case DL2_LAYER_TOKENS:
            break;
        }
    for (int kind = 0; kind < RUN_KINDS; kind++)
        if (set->kinds[kind].recording)
            ops->recording_free(set->kinds[kind].recording);
    ops->ingest_free(set->ingest);
    ops->loss_free(set->loss_train);
    ops->loss_free(set->loss_eval);
    free(set->layers);
    *set = (struct plan_set){0};
}

static int network_plan_layer(struct dl2_network *net, const struct dl2_layer *layer,
                              unsigned count, union plan *plan, struct dl2_error *error)
{
    struct dl2_device *device = net->device;
    const struct dl2_value *in = &net->view->graph.values[layer->in],
                           *out = &net->view->graph.values[layer->out];
    switch (layer->kind) {
    case DL2_LAYER_CONV: {
        struct dl2_conv_shape shape = {
            .batch = count,
            .in_height = in->height,
            .in_width = in->width,
            .in_channels = in->channels,
            .out_channels = out->channels,
            .kernel_height = layer->kernel,
            .kernel_width = layer->kernel,
            .stride_height = layer->stride,
            .stride_width = layer->stride,
            .pad_height = layer->pad,
            .pad_width = layer->pad,
            .groups = layer->groups,
            .bias = layer->bias,
            .relu = layer->activation == DL2_RELU,
        };
        return device->ops->conv_create(device, &shape, &plan->conv, error);
    }
    case DL2_LAYER_NORM: {
        struct dl2_norm_shape shape = {
            .rows = (size_t)count * in->height * in->width,
            .channels = in->channels,
            .epsilon = NORM_EPSILON,
            .momentum = NORM_MOMENTUM,
            .activation = layer->activation,
            .residual = layer->residual >= 0,
            .synchronized = net->config.sync_norm && net->device->world,
        };
        return device->ops->norm_create(device, &shape, &plan->norm, error);
    }
    case DL2_LAYER_MAX_POOL:
    case DL2_LAYER_AVERAGE_POOL: {
        struct dl2_pool_shape shape = {
            .kind = layer->kind == DL2_LAYER_MAX_POOL ? DL2_POOL_MAX : DL2_POOL_ADAPTIVE_AVERAGE,
            .batch = count,
            .in_height = in->height,
            .in_width = in->width,
            .channels = in->channels,
            .out_height = out->height,
            .out_width = out->width,
            .kernel_height = layer->kernel,
            .kernel_width = layer->kernel,
            .stride_height = layer->stride,
            .stride_width = layer->stride,
            .pad_height = layer->pad,
            .pad_width = layer->pad,
        };
        return device->ops->pool_create(device, &shape, &plan->pool, error);
    }
    case DL2_LAYER_LINEAR: {
        struct dl2_linear_shape shape = {count * layer->rows, (unsigned)in->size / layer->rows,
                                         out->channels, true, layer->activation == DL2_RELU};
        return device->ops->linear_create(device, &shape, &plan->linear, error);
    }
    case DL2_LAYER_LAYER_NORM: {
        struct dl2_layer_norm_shape shape = {(size_t)count * in->height, in->channels,
                                             layer->epsilon};
        return device->ops->layer_norm_create(device, &shape, &plan->layer_norm, error);
    }
    case DL2_LAYER_ATTENTION: {
        struct dl2_attention_shape shape = {count, in->height, out->channels, layer->heads};
        return device->ops->attention_create(device, &shape, &plan->attention, error);
    }
    case DL2_LAYER_DROPOUT:
    case DL2_LAYER_ADD:
    case DL2_LAYER_GELU:
    case DL2_LAYER_TOKENS:
        break;
    }
    return DL2_OK;
}

static int network_fill_plans(struct dl2_network *net, struct plan_set *set, unsigned count,
                              struct dl2_error *error)
{
    struct dl2_device *device = net->device;
    const struct dl2_network_config *config = &net->config;
    set->layers = dl2_calloc(net->view->graph.layer_count, sizeof *set->layers);
    if (!set->layers)
        return dl2_error_memory(error, "a network");
    struct dl2_ingest_shape ingest = {
        count, net->view->height, net->view->width, config->channels, {0}, {0}};
    memcpy(ingest.mean, config->mean, sizeof ingest.mean);
    memcpy(ingest.std, config->std, sizeof ingest.std);
    struct dl2_loss_shape loss = {count, config->classes, config->smoothing};
    DL2_TRY(device->ops->ingest_create(device, &ingest, &set->ingest, error));
    DL2_TRY(device->ops->loss_create(device, &loss, &set->loss_train, error));
    loss.smoothing = 0;
    DL2_TRY(device->ops->loss_create(device, &loss, &set->loss_eval, error));
    for (size_t i = 0; i < net->view->graph.layer_count; i++) {
        const struct dl2_layer *layer = &net->view->graph.layers[i];
        int status = network_plan_layer(net, layer, count, &set->layers[i], error);
        if (status < 0) {
            const char *name = layer->tensor < 0 ? "a pooling layer"
                                                 : net->view->graph.tensors[layer->tensor].name;
            dl2_error_prefix(error, "%s", name);
            return status;
        }
    }
    set->count = count;
    return DL2_OK;
}

/* The plans for `count` samples, made if need be in the place of those unused for longest. */
static int network_find_plans(struct dl2_network *net, unsigned count, struct plan_set **out,
                              struct dl2_error *error)
{
    struct plan_set *oldest = &net->view->sets[0];
    for (int i = 0; i < PLAN_SETS; i++) {
        struct plan_set *set = &net->view->sets[i];
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
        network_free_plans(net, net->view, oldest);
    }
    int status = network_fill_plans(net, oldest, count, error);
    if (status < 0) {
        network_free_plans(net, net->view, oldest);
        return status;
    }
    oldest->used = ++net->clock;
    *out = oldest;
    return DL2_OK;
}

/* -- running -- */

static void *network_buffer_at(const struct dl2_network *net, int buffer)
{
    return net->view->arena + net->view->graph.buffers[buffer].offset;
}

static void *network_value_at(const struct dl2_network *net, int value, bool train)
{
    const struct dl2_value *v = &net->view->graph.values[value];
    return network_buffer_at(net, train ? v->buffer_train : v->buffer_eval);
}

static float *network_tensor_at(const struct dl2_network *net, int index)
{
    return net->weights + net->view->graph.tensors[index].offset;
}

static float *network_gradient_at(const struct dl2_network *net, int index)
{
    return net->gradient + net->view->graph.tensors[index].offset;
}

static void *network_lowered_at(const struct dl2_network *net, size_t offset)
{
    return net->lowered ? net->lowered + offset * dl2_element_size(net->device->element) : NULL;
}

/* Weights as convolutions and linear layers read them. */
static const void *network_weights_at(const struct dl2_network *net, int index)
{
    void *lowered = network_lowered_at(net, net->view->graph.tensors[index].offset);
    return lowered ? lowered : network_tensor_at(net, index);
}

static struct dl2_tokens_shape network_tokens_shape(const struct dl2_network *net,
                                                    const struct plan_set *set,
                                                    const struct dl2_layer *layer)
{
    const struct dl2_value *out = &net->view->graph.values[layer->out];
    return (struct dl2_tokens_shape){set->count, out->height, out->channels};
}

/* The first layer that is trained; those after it are, too. */
static size_t network_first_trained(const struct dl2_network *net)
{
    return net->frozen ? net->view->graph.layer_count - 1 : 0;
}

/* Where the parameters that are trained begin, of those that decay and of the others. They are the
 * last ones of each: architectures end with their last layer. */
static size_t network_trained_from(const struct dl2_network *net, bool decays)
{
    const struct dl2_graph *graph = &net->view->graph;
    const size_t begin = decays ? 0 : graph->decayed;
    const size_t end = decays ? graph->decayed : graph->parameters;
    size_t from = net->frozen ? end : begin;
    for (int t = graph->layers[graph->layer_count - 1].tensor, last = t + 2; t < last; t++)
        if (graph->tensors[t].offset >= begin && graph->tensors[t].offset < from)
            from = graph->tensors[t].offset;
    return from;
}

static const char *network_layer_name(const struct dl2_network *net, const struct dl2_layer *layer)
{
    static const char *const kinds[] = {
        [DL2_LAYER_MAX_POOL] = "max pooling", [DL2_LAYER_AVERAGE_POOL] = "average pooling",
        [DL2_LAYER_ADD] = "addition",         [DL2_LAYER_GELU] = "GELU",
        [DL2_LAYER_ATTENTION] = "attention",  [DL2_LAYER_DROPOUT] = "dropout"};
    return layer->tensor >= 0 ? net->view->graph.tensors[layer->tensor].name : kinds[layer->kind];
}

/* Names what was called since the last mark. `layer`: NULL: of no layer. */
static void network_mark(const struct dl2_network *net, const struct dl2_layer *layer,
                         const char *what)
{
    if (net->device->ops->mark)
        net->device->ops->mark(net->device, layer ? network_layer_name(net, layer) : "", what);
}

static void network_forward(struct dl2_network *net, const struct plan_set *set, bool train)
{
    struct dl2_device *device = net->device;
    const struct dl2_device_class *ops = device->ops;
    for (size_t i = 0; i < net->view->graph.layer_count; i++) {
        const struct dl2_layer *layer = &net->view->graph.layers[i];
        const union plan *plan = &set->layers[i];
        const void *x = network_value_at(net, layer->in, train);
        void *y = network_value_at(net, layer->out, train);
        size_t count = net->view->graph.values[layer->out].size * set->count;
        int t = layer->tensor;
        switch (layer->kind) {
        case DL2_LAYER_CONV:
            ops->conv_forward(plan->conv, x, network_weights_at(net, t),
                              layer->bias ? network_tensor_at(net, t + 1) : NULL, y);
            break;
        case DL2_LAYER_LINEAR:
            ops->linear_forward(plan->linear, x, network_weights_at(net, t),
                                network_tensor_at(net, t + 1), y);
            break;
        case DL2_LAYER_NORM: {
            const void *residual =
                layer->residual >= 0 ? network_value_at(net, layer->residual, train) : NULL;
            float *gamma = network_tensor_at(net, t), *beta = network_tensor_at(net, t + 1);
            float *mean = network_tensor_at(net, t + 2), *var = network_tensor_at(net, t + 3);
            if (train && i >= network_first_trained(net))
                ops->norm_train(plan->norm, x, residual, gamma, beta, mean, var, y);
            else
                ops->norm_eval(plan->norm, x, residual, gamma, beta, mean, var, y);
            break;
        }
        case DL2_LAYER_MAX_POOL:
        case DL2_LAYER_AVERAGE_POOL:
            ops->pool_forward(plan->pool, x, y);
            break;
        case DL2_LAYER_ADD:
            ops->add(device, x, network_value_at(net, layer->residual, train), y, count);
            break;
        case DL2_LAYER_GELU:
            ops->gelu(device, x, y, count);
            break;
        case DL2_LAYER_LAYER_NORM:
            ops->layer_norm_forward(plan->layer_norm, x, network_tensor_at(net, t),
                                    network_tensor_at(net, t + 1), y);
            break;
        case DL2_LAYER_ATTENTION:
            ops->attention_forward(plan->attention, x, y);
            break;
        case DL2_LAYER_TOKENS: {
            const struct dl2_tokens_shape shape = network_tokens_shape(net, set, layer);
            ops->tokens_forward(device, &shape, x, network_tensor_at(net, layer->class_token),
                                network_tensor_at(net, t), y);
            break;
        }
        case DL2_LAYER_DROPOUT:
            if (train)
                ops->dropout(device, x, y, count, layer->rate, net->config.seed, layer->number);
            else
                ops->copy(device, y, x, count * dl2_element_size(device->element));
            break;
        }
        network_mark(net, layer, train ? "forward" : "evaluation");
    }
}

/* `reduce`: the gradients are this update's last, and go to the other ranks while the layers before
 * are still at work. */
static void network_backward(struct dl2_network *net, const struct plan_set *set, bool accumulate,
                             bool reduce)
{
    struct dl2_device *device = net->device;
    const struct dl2_device_class *ops = device->ops;
    const size_t first = network_first_trained(net);
    size_t reduced = 0;
    for (size_t i = net->view->graph.layer_count; i-- > first;) {
        const struct dl2_layer *layer = &net->view->graph.layers[i];
        const union plan *plan = &set->layers[i];
        const struct dl2_value *in = &net->view->graph.values[layer->in];
        const struct dl2_value *out = &net->view->graph.values[layer->out];
        const void *x = network_value_at(net, layer->in, true),
                   *y = network_value_at(net, layer->out, true);
        void *dy = network_buffer_at(net, out->gradient[0]);
        void *dy2 = out->uses == 2 ? network_buffer_at(net, out->gradient[1]) : NULL;
        void *dx = dl2_graph_wants_gradient(layer->in) && (i > first || !first)
                       ? network_buffer_at(net, in->gradient[layer->in_use])
                       : NULL;
        size_t count = out->size * set->count;
        int t = layer->tensor;
        if (dy2 && layer->kind != DL2_LAYER_NORM)
            ops->add(device, dy, dy2, dy, count);
        if (layer->activation != DL2_IDENTITY && layer->kind != DL2_LAYER_NORM)
            ops->activate_backward(device, layer->activation, y, dy, dy, count);
        switch (layer->kind) {
        case DL2_LAYER_CONV:
            ops->conv_backward_weights(plan->conv, x, dy, network_gradient_at(net, t),
                                       layer->bias ? network_gradient_at(net, t + 1) : NULL,
                                       accumulate);
            network_mark(net, layer, "gradient of weights");
            if (dx)
                ops->conv_backward_data(plan->conv, dy, network_weights_at(net, t), dx);
            break;
        case DL2_LAYER_LINEAR:
            ops->linear_backward_weights(plan->linear, x, dy, network_gradient_at(net, t),
                                         network_gradient_at(net, t + 1), accumulate);
            network_mark(net, layer, "gradient of weights");
            if (dx)
                ops->linear_backward_data(plan->linear, dy, network_weights_at(net, t), dx);
            break;
        case DL2_LAYER_NORM:
            ops->norm_backward(plan->norm, x, y, dy, dy2, network_tensor_at(net, t),
                               network_tensor_at(net, t + 1), dx, layer->residual >= 0 ? dy : NULL,
                               network_gradient_at(net, t), network_gradient_at(net, t + 1),
                               accumulate);
            break;
        case DL2_LAYER_MAX_POOL:
        case DL2_LAYER_AVERAGE_POOL:
            ops->pool_backward(plan->pool, dy, dx);
            break;
        case DL2_LAYER_ADD: /* dy is the gradient of both */
            break;
        case DL2_LAYER_GELU:
            ops->gelu_backward(device, x, dy, dx, count);
            break;
        case DL2_LAYER_LAYER_NORM:
            ops->layer_norm_backward(plan->layer_norm, x, dy, network_tensor_at(net, t), dx,
                                     network_gradient_at(net, t), network_gradient_at(net, t + 1),
                                     accumulate);
            break;
        case DL2_LAYER_ATTENTION:
            ops->attention_backward(plan->attention, x, y, dy, dx);
            break;
        case DL2_LAYER_TOKENS: {
            const struct dl2_tokens_shape shape = network_tokens_shape(net, set, layer);
            ops->tokens_backward(device, &shape, dy, dx,
                                 network_gradient_at(net, layer->class_token),
                                 network_gradient_at(net, t), accumulate);
            break;
        }
        case DL2_LAYER_DROPOUT:
            ops->dropout(device, dy, dx, count, layer->rate, net->config.seed, layer->number);
            break;
        }
        network_mark(net, layer, "backward");
        for (; reduce && !net->frozen && reduced < net->bucket_count &&
               net->buckets[reduced].layer == i;
             reduced++)
            ops->all_reduce(device, net->gradient + net->buckets[reduced].begin,
                            net->buckets[reduced].count);
    }
    for (int decays = 0; reduce && net->frozen && decays < 2; decays++) {
        const struct dl2_graph *graph = &net->view->graph;
        const size_t from = network_trained_from(net, decays);
        const size_t end = decays ? graph->decayed : graph->parameters;
        if (end > from)
            ops->all_reduce(device, net->gradient + from, end - from);
    }
    if (reduce) {
        ops->all_reduce_wait(device);
        network_mark(net, NULL, "wait for other ranks");
    }
}

/* All of a run but its input. */
static void network_compute(struct dl2_network *net, const struct plan_set *set, unsigned kind)
{
    const struct dl2_device_class *ops = net->device->ops;
    bool train = kind & RUN_TRAIN;
    network_forward(net, set, train);
    ops->loss_run(
        train ? set->loss_train : set->loss_eval,
        network_value_at(net, net->view->graph.logits, train), net->labels,
        kind & RUN_MIXED ? net->partner : NULL, net->losses,
        train ? network_buffer_at(net, net->view->graph.values[net->view->graph.logits].gradient[0])
              : NULL,
        net->sums);
    network_mark(net, NULL, "loss");
    if (train)
        network_backward(net, set, kind & RUN_ACCUMULATE, net->device->world && !(kind & RUN_MORE));
}

/* The first time plainly, as libraries settle things then; then recorded, then replayed. */
static void network_compute_or_replay(struct dl2_network *net, struct plan_set *set, unsigned kind)
{
    const struct dl2_device_class *ops = net->device->ops;
    unsigned runs = set->kinds[kind].runs;
    set->kinds[kind].runs += runs < 2;
    if (set->kinds[kind].recording) {
        ops->replay(set->kinds[kind].recording);
    } else if (runs == 1 && ops->record_begin && ops->record_begin(net->device)) {
        network_compute(net, set, kind);
        set->kinds[kind].recording = ops->record_end(net->device);
        if (!set->kinds[kind].recording)
            network_compute(net, set, kind);
    } else {
        network_compute(net, set, kind);
    }
}

static int network_check_input(const struct dl2_network *net, const struct dl2_network_input *input,
                               bool mixup, struct dl2_error *error)
{
    if (!input->count || input->count > net->config.batch)
        return dl2_error_set(error, DL2_ERR_ARGUMENT,
                             "a batch of %u samples for a network made for 1 to %u", input->count,
                             net->config.batch);
    for (unsigned i = 0; i < input->count; i++) {
        if (input->labels[i] < -1 || input->labels[i] >= (int64_t)net->config.classes)
            return dl2_error_set(error, DL2_ERR_ARGUMENT,
                                 "label %d of sample %u of a batch is not one of %u classes",
                                 (int)input->labels[i], i, net->config.classes);
        if (mixup && input->partner && input->partner[i] >= input->count)
            return dl2_error_set(error, DL2_ERR_ARGUMENT,
                                 "sample %u of a batch of %u is mixed with sample %u", i,
                                 input->count, (unsigned)input->partner[i]);
    }
    return DL2_OK;
}

static int network_run(struct dl2_network *net, const struct dl2_network_input *input,
                       unsigned kind, struct dl2_error *error)
{
    struct dl2_device *device = net->device;
    const struct dl2_device_class *ops = device->ops;
    const struct dl2_network_config *config = &net->config;
    bool train = kind & RUN_TRAIN;
    if (train && input->partner)
        kind |= RUN_MIXED;
    if (train && net->frozen)
        kind |= RUN_FROZEN;
    struct plan_set *set;
    DL2_TRY(network_check_input(net, input, train, error));
    DL2_TRY(network_find_plans(net, input->count, &set, error));
    size_t size = (size_t)net->view->height * net->view->width * config->channels;
    size_t labels = input->count * sizeof *net->labels, partners = input->count * sizeof(uint32_t);
    const unsigned place = net->next_staged++ % net->staging;
    const struct staged *staged = &net->staged[place];
    ops->upload(device, net->view->images[place], input->images, size * input->count);
    ops->upload(device, staged->labels, input->labels, labels);
    if (kind & RUN_MIXED)
        ops->upload(device, staged->partner, input->partner, partners);
    ops->set_numbers(device, &net->numbers);
    ops->copy(device, net->labels, staged->labels, labels);
    if (kind & RUN_MIXED)
        ops->copy(device, net->partner, staged->partner, partners);
    ops->ingest_run(set->ingest, net->view->images[place],
                    kind & RUN_MIXED && !input->pasted ? net->partner : NULL,
                    network_value_at(net, 0, train));
    network_compute_or_replay(net, set, kind);
    net->last_count = input->count;
    net->last_train = train;
    return DL2_OK;
}

static int network_check_trains(const struct dl2_network *net, struct dl2_error *error)
{
    if (!net->config.train)
        return dl2_error_set(error, DL2_ERR_ARGUMENT,
                             "a network made for evaluation cannot be trained");
    if (net->averaged)
        return dl2_error_set(error, DL2_ERR_ARGUMENT, "averages of weights cannot be trained");
    return DL2_OK;
}

int dl2_network_train(struct dl2_network *net, const struct dl2_network_input *input,
                      const struct dl2_network_step *step, struct dl2_error *error)
{
    DL2_TRY(network_check_trains(net, error));
    net->numbers.step = step->step;
    net->numbers.lambda = input->lambda;
    net->numbers.scale = step->scale;
    return network_run(
        net, input,
        RUN_TRAIN | (step->accumulate ? RUN_ACCUMULATE : 0) | (step->more ? RUN_MORE : 0), error);
}

int dl2_network_evaluate(struct dl2_network *net, const struct dl2_network_input *input,
                         struct dl2_error *error)
{
    net->numbers.step = 0;
    net->numbers.lambda = 1;
    net->numbers.scale = 1;
    return network_run(net, input, 0, error);
}

void dl2_network_wait_input(struct dl2_network *net)
{
    net->device->ops->wait_uploads(net->device);
}

int dl2_network_check_device(struct dl2_network *net, unsigned *checked, struct dl2_error *error)
{
    const struct dl2_device_class *ops = net->device->ops;
    struct plan_set *set;
    *checked = 0;
    DL2_TRY(network_find_plans(net, net->config.batch, &set, error));
    for (size_t i = 0; i < net->view->graph.layer_count; i++) {
        const struct dl2_layer *layer = &net->view->graph.layers[i];
        int status = DL2_OK;
        if (layer->kind == DL2_LAYER_CONV && ops->conv_check)
            status = ops->conv_check(set->layers[i].conv, checked, error);
        else if (layer->kind == DL2_LAYER_LINEAR && ops->linear_check)
            status = ops->linear_check(set->layers[i].linear, checked, error);
        else if (layer->kind == DL2_LAYER_ATTENTION && ops->attention_check)
            status = ops->attention_check(set->layers[i].attention, checked, error);
        if (status < 0) {
            dl2_error_prefix(error, "%s", network_layer_name(net, layer));
            return status;
        }
    }
    return DL2_OK;
}

const char *const dl2_optimizer_words[] = {
    [DL2_SGD] = "sgd", [DL2_ADAMW] = "adamw", [DL2_RMSPROP] = "rmsprop", NULL};

const struct dl2_optimizer_facts *dl2_optimizer_facts(enum dl2_optimizer optimizer)
{
    static const struct dl2_optimizer_facts facts[] = {
        [DL2_SGD] = {.rate = 0.05, .nesterov = true, .weight_decay = 0.0005},
        [DL2_ADAMW] = {.rate = 0.0005,
                       .adaptive = true,
                       .momentum_below = true,
                       .beta2 = 0.999,
                       .weight_decay = 0.05},
        [DL2_RMSPROP] = {.rate = 0.0005, .adaptive = true, .beta2 = 0.99, .weight_decay = 0.00001},
    };
    return &facts[optimizer];
}

/* The optimizer's step over `count` parameters from `first` on. */
static void network_step(struct dl2_network *net, size_t first, size_t count, bool decays,
                         bool nesterov)
{
    const struct dl2_device_class *ops = net->device->ops;
    float *weights = net->weights + first, *momentum = net->momentum + first;
    const float *gradient = net->gradient + first;
    void *lowered = network_lowered_at(net, first);
    switch (net->config.optimizer) {
    case DL2_SGD:
        ops->sgd_step(net->device, weights, lowered, gradient, momentum, count, decays, nesterov);
        break;
    case DL2_ADAMW:
        ops->adamw_step(net->device, weights, lowered, gradient, momentum,
                        net->second_moment + first, count, decays);
        break;
    case DL2_RMSPROP:
        ops->rmsprop_step(net->device, weights, lowered, gradient, momentum,
                          net->second_moment + first, count, decays);
        break;
    }
}

int dl2_network_update(struct dl2_network *net, const struct dl2_update *update,
                       struct dl2_error *error)
{
    struct dl2_device *device = net->device;
    const struct dl2_device_class *ops = device->ops;
    const struct dl2_graph *graph = &net->view->graph;
    const size_t decaying = network_trained_from(net, true),
                 others = network_trained_from(net, false);
    DL2_TRY(network_check_trains(net, error));
    net->numbers.rate = update->rate;
    net->numbers.momentum = update->momentum;
    net->numbers.weight_decay = update->weight_decay;
    net->numbers.beta2 = update->beta2;
    net->numbers.epsilon = update->epsilon;
    net->numbers.update = update->number;
    net->numbers.average_decay = update->average_decay;
    ops->set_numbers(device, &net->numbers);
    if (ops->check_gradients)
        ops->check_gradients(device, net->gradient, net->view->graph.parameters);
    if (update->clip > 0)
        ops->clip_gradients(device, net->gradient, net->view->graph.parameters, update->clip);
    network_step(net, decaying, graph->decayed - decaying, true, update->nesterov);
    if (graph->parameters > others)
        network_step(net, others, graph->parameters - others, false, update->nesterov);
    if (ops->end_update)
        ops->end_update(device);
    if (net->average)
        ops->move_average(device, net->average, net->weights, net->view->graph.elements);
    network_mark(net, NULL, "update");
    return DL2_OK;
}

int dl2_network_freeze(struct dl2_network *net, bool frozen, struct dl2_error *error)
{
    DL2_TRY(network_check_trains(net, error));
    if (frozen == net->frozen)
        return DL2_OK;
    /* Those of layers that are frozen are zero, so that norms over all of them are right. */
    net->device->ops->zero(net->device, net->gradient,
                           net->view->graph.parameters * sizeof *net->gradient);
    net->frozen = frozen;
    return DL2_OK;
}

int dl2_network_forget_moments(struct dl2_network *net, struct dl2_error *error)
{
    const size_t bytes = net->view->graph.parameters * sizeof *net->momentum;
    DL2_TRY(network_check_trains(net, error));
    net->device->ops->zero(net->device, net->momentum, bytes);
    if (net->second_moment)
        net->device->ops->zero(net->device, net->second_moment, bytes);
    return DL2_OK;
}

/* By copying, as recordings and plans know the weights by their place. */
int dl2_network_use_average(struct dl2_network *net, bool use, struct dl2_error *error)
{
    const struct dl2_device_class *ops = net->device->ops;
    size_t bytes = net->view->graph.elements * sizeof *net->weights;
    if (use == net->averaged)
        return DL2_OK;
    if (!net->average)
        return dl2_error_set(error, DL2_ERR_ARGUMENT, "a network that keeps no averages");
    if (use)
        ops->copy(net->device, net->kept, net->weights, bytes);
    ops->copy(net->device, net->weights, use ? net->average : net->kept, bytes);
    if (net->lowered)
        ops->lower(net->device, net->weights, net->lowered, net->view->graph.parameters);
    net->averaged = use;
    return DL2_OK;
}

int dl2_network_take_sums(struct dl2_network *net, struct dl2_loss_sums *sums,
                          struct dl2_error *error)
{
    struct dl2_device *device = net->device;
    DL2_TRY(device->ops->download(device, sums, net->sums, sizeof *sums, error));
    device->ops->zero(device, net->sums, sizeof *sums);
    return DL2_OK;
}

int dl2_network_last(struct dl2_network *net, float *losses, float *logits, struct dl2_error *error)
{
    struct dl2_device *device = net->device;
    size_t count = net->last_count, values = count * net->config.classes;
    size_t bytes = values * dl2_element_size(device->element);
    if (losses)
        DL2_TRY(device->ops->download(device, losses, net->losses, count * sizeof *losses, error));
    if (!logits || !count)
        return DL2_OK;
    void *kept = malloc(bytes);
    if (!kept)
        return dl2_error_memory(error, "logits");
    int status = device->ops->download(
        device, kept, network_value_at(net, net->view->graph.logits, net->last_train), bytes,
        error);
    if (status == DL2_OK)
        dl2_elements_to_floats(device->element, kept, logits, values);
    free(kept);
    return status;
}

/* -- tensors by name -- */

size_t dl2_network_tensor_count(const struct dl2_network *net)
{
    return net->view->graph.tensor_count;
}

void dl2_network_tensor(const struct dl2_network *net, size_t index,
                        struct dl2_network_tensor *tensor)
{
    const struct dl2_tensor *t = &net->view->graph.tensors[index];
    *tensor = (struct dl2_network_tensor){.name = t->name,
                                          .rank = t->rank,
                                          .count = t->count,
                                          .parameter = t->parameter,
                                          .decays = t->decays};
    memcpy(tensor->dims, t->dims, sizeof t->dims);
}

const char *dl2_network_arch(const struct dl2_network *net)
{
    return net->config.arch;
}

size_t dl2_network_parameter_count(const struct dl2_network *net)
{
    size_t count = 0;
    for (size_t i = 0; i < net->view->graph.tensor_count; i++)
        count += net->view->graph.tensors[i].parameter ? net->view->graph.tensors[i].count : 0;
    return count;
}

/* NULL where the network has none. */
static float *network_part_base(const struct dl2_network *net, enum dl2_network_part part)
{
    switch (part) {
    case DL2_NETWORK_GRADIENT:
        return net->gradient;
    case DL2_NETWORK_MOMENTUM:
        return net->momentum;
    case DL2_NETWORK_SECOND_MOMENT:
        return net->second_moment;
    case DL2_NETWORK_AVERAGE:
        return net->average;
    case DL2_NETWORK_VALUE:
        break;
    }
    return net->weights;
}

bool dl2_network_has(const struct dl2_network *net, size_t index, enum dl2_network_part part)
{
    bool learned = part == DL2_NETWORK_GRADIENT || part == DL2_NETWORK_MOMENTUM ||
                   part == DL2_NETWORK_SECOND_MOMENT;
    return network_part_base(net, part) && (net->view->graph.tensors[index].parameter || !learned);
}

static int network_part_at(struct dl2_network *net, size_t index, enum dl2_network_part part,
                           float **out, struct dl2_error *error)
{
    static const char *const names[] = {[DL2_NETWORK_VALUE] = "value",
                                        [DL2_NETWORK_GRADIENT] = "gradient",
                                        [DL2_NETWORK_MOMENTUM] = "momentum",
                                        [DL2_NETWORK_SECOND_MOMENT] = "second moment",
                                        [DL2_NETWORK_AVERAGE] = "average"};
    const struct dl2_tensor *t = &net->view->graph.tensors[index];
    if (!dl2_network_has(net, index, part))
        return dl2_error_set(error, DL2_ERR_ARGUMENT, "%s has no %s here", t->name, names[part]);
    *out = network_part_base(net, part) + t->offset;
    return DL2_OK;
}

/* OHWI <-> OIHW. */
static void network_permute(const struct dl2_tensor *t, const float *from, float *to,
                            bool to_pytorch)
{
    size_t taps = (size_t)t->height * t->width;
    for (size_t o = 0; o < t->out; o++, from += taps * t->in, to += taps * t->in)
        for (size_t k = 0; k < taps; k++)
            for (size_t i = 0; i < t->in; i++)
                if (to_pytorch)
                    to[i * taps + k] = from[k * t->in + i];
                else
                    to[k * t->in + i] = from[i * taps + k];
}

int dl2_network_get(struct dl2_network *net, size_t index, enum dl2_network_part part,
                    float *values, struct dl2_error *error)
{
    const struct dl2_tensor *t = &net->view->graph.tensors[index];
    size_t bytes = t->count * sizeof(float);
    float *from;
    DL2_TRY(network_part_at(net, index, part, &from, error));
    float *kept = malloc(bytes);
    if (!kept)
        return dl2_error_memory(error, "%s", t->name);
    int status = net->device->ops->download(net->device, kept, from, bytes, error);
    if (status == DL2_OK)
        network_permute(t, kept, values, true);
    free(kept);
    return status;
}

int dl2_network_set(struct dl2_network *net, size_t index, enum dl2_network_part part,
                    const float *values, struct dl2_error *error)
{
    const struct dl2_tensor *t = &net->view->graph.tensors[index];
    size_t bytes = t->count * sizeof(float);
    float *to;
    DL2_TRY(network_part_at(net, index, part, &to, error));
    float *kept = malloc(bytes);
    if (!kept)
        return dl2_error_memory(error, "%s", t->name);
    network_permute(t, values, kept, false);
    const struct dl2_device_class *ops = net->device->ops;
    int status = ops->sync(net->device, error); /* an upload may overtake what reads the place */
    if (status == DL2_OK) {
        ops->upload(net->device, to, kept, bytes);
        if (part == DL2_NETWORK_VALUE && t->parameter && net->lowered)
            ops->lower(net->device, to, network_lowered_at(net, t->offset), t->count);
        ops->wait_uploads(net->device);
    }
    free(kept);
    return status;
}

/* -- making and unmaking -- */

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

/* The layer that a tensor belongs to. */
static size_t network_layer_of(const struct dl2_graph *g, size_t tensor)
{
    size_t layer = 0;
    int nearest = -1;
    for (size_t i = 0; i < g->layer_count; i++)
        if (g->layers[i].tensor > nearest && g->layers[i].tensor <= (int)tensor) {
            nearest = g->layers[i].tensor;
            layer = i;
        }
    return layer;
}

static int network_by_layer(const void *left, const void *right)
{
    const struct bucket *a = left, *b = right;
    if (a->layer != b->layer)
        return a->layer < b->layer ? 1 : -1;
    return (a->begin < b->begin) - (a->begin > b->begin);
}

/*
 * Cuts the gradients into runs that go to the other ranks while backward is still at work. It
 * finishes them about from the end, in both groups (decayed and not), so runs are cut from the
 * ends; they are kept in the order in which they will be ready.
 */
static void network_plan_buckets(struct dl2_network *net)
{
    const struct dl2_graph *g = &net->view->graph;
    const size_t ends[] = {g->decayed, g->parameters}, begins[] = {0, g->decayed};
    size_t size = g->parameters / 4;
    size = size < BUCKET_LEAST ? BUCKET_LEAST : size > BUCKET_MOST ? BUCKET_MOST : size;
    size = size < g->parameters / (BUCKETS - 2) ? g->parameters / (BUCKETS - 2) + 1 : size;
    for (int group = 0; group < 2; group++) {
        struct bucket open = {ends[group], 0, g->layer_count};
        for (size_t i = g->tensor_count; i-- > 0;) {
            const struct dl2_tensor *t = &g->tensors[i];
            if (t->offset < begins[group] || t->offset >= ends[group])
                continue;
            size_t layer = network_layer_of(g, i);
            open.count += open.begin - t->offset;
            open.begin = t->offset;
            open.layer = layer < open.layer ? layer : open.layer;
            if (open.count < size && open.begin > begins[group])
                continue;
            net->buckets[net->bucket_count++] = open;
            open = (struct bucket){open.begin, 0, g->layer_count};
        }
    }
    qsort(net->buckets, net->bucket_count, sizeof *net->buckets, network_by_layer);
}

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
                                .error = error};
    const int images = dl2_graph_images(graph, height, width, config->channels);
    graph->logits = arch->build(graph, images, config->classes);
    const int status = dl2_graph_plan(graph, dl2_element_size(net->device->element));
    graph->error = NULL; /* the caller's */
    return status;
}

/* What of a view is on the device, without plans. */
static int network_place_view(struct dl2_network *net, struct view *view, struct dl2_error *error)
{
    const size_t size = (size_t)view->height * view->width * net->config.channels;
    DL2_TRY(network_alloc(net, view->graph.arena, 1, &view->arena, error));
    for (unsigned i = 0; i < net->staging; i++)
        DL2_TRY(network_alloc(net, net->config.batch, size, &view->images[i], error));
    return DL2_OK;
}

static void network_free_view(struct dl2_network *net, struct view *view)
{
    const struct dl2_device_class *ops = net->device->ops;
    for (int i = 0; i < PLAN_SETS; i++)
        if (view->sets[i].count)
            network_free_plans(net, view, &view->sets[i]);
    if (view->arena)
        ops->free(net->device, view->arena);
    for (int i = 0; i < MOST_STAGED; i++)
        if (view->images[i])
            ops->free(net->device, view->images[i]);
    dl2_graph_free(&view->graph);
    *view = (struct view){0};
}

static int network_build(struct dl2_network *net, struct dl2_error *error)
{
    const struct dl2_network_config *config = &net->config;
    struct dl2_device *device = net->device;
    const size_t element_size = dl2_element_size(device->element);
    if (!config->batch || !config->classes || !config->height || !config->width ||
        (config->channels != 1 && config->channels != 3))
        return dl2_error_set(
            error, DL2_ERR_ARGUMENT,
            "no network for batches of %u images of %ux%u with %u channels in %u classes",
            config->batch, config->width, config->height, config->channels, config->classes);
    net->staging = device->staging < MOST_STAGED ? device->staging : MOST_STAGED;
    net->view->height = config->height;
    net->view->width = config->width;
    const struct dl2_graph *graph = &net->view->graph;
    DL2_TRY(network_build_graph(net, config->height, config->width, &net->view->graph, error));
    net->config.arch = graph->arch;
    network_plan_buckets(net);

    DL2_TRY(network_place_view(net, net->view, error));
    DL2_TRY(network_alloc(net, graph->elements, sizeof *net->weights, &net->weights, error));
    if (device->element != DL2_ELEMENT_F32)
        DL2_TRY(network_alloc(net, graph->parameters, element_size, &net->lowered, error));
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
        struct staged *staged = &net->staged[i];
        DL2_TRY(network_alloc(net, batch, sizeof *staged->labels, &staged->labels, error));
        DL2_TRY(network_alloc(net, batch, sizeof *staged->partner, &staged->partner, error));
    }
    DL2_TRY(network_alloc(net, batch, sizeof *net->labels, &net->labels, error));
    DL2_TRY(network_alloc(net, batch, sizeof *net->partner, &net->partner, error));
    DL2_TRY(network_alloc(net, batch, sizeof *net->losses, &net->losses, error));
    DL2_TRY(network_alloc(net, 1, sizeof *net->sums, &net->sums, error));
    if (net->planned_only)
        return DL2_OK;
    DL2_TRY(network_fresh_weights(net, error));
    struct plan_set *set;
    return network_find_plans(net, config->batch, &set, error);
}

/* Do the weights of one size do for another? A transformer's positions do not. */
static int network_check_alike(const struct dl2_network *net, const struct view *view,
                               struct dl2_error *error)
{
    const struct view *own = &net->views[0];
    bool alike = view->graph.tensor_count == own->graph.tensor_count;
    for (size_t i = 0; alike && i < own->graph.tensor_count; i++)
        alike = memcmp(view->graph.tensors[i].dims, own->graph.tensors[i].dims,
                       sizeof own->graph.tensors[i].dims) == 0;
    if (!alike)
        return dl2_error_set(error, DL2_ERR_ARGUMENT,
                             "the weights of %s for images of %ux%u do not fit images of %ux%u: "
                             "train it at one size, or take a network without positions",
                             net->config.arch, own->width, own->height, view->width, view->height);
    return DL2_OK;
}

static int network_make_view(struct dl2_network *net, struct view *view, struct dl2_error *error)
{
    struct plan_set *set;
    DL2_TRY(network_build_graph(net, view->height, view->width, &view->graph, error));
    DL2_TRY(network_check_alike(net, view, error));
    DL2_TRY(network_place_view(net, view, error));
    net->view = view;
    return network_find_plans(net, net->config.batch, &set, error);
}

int dl2_network_use_size(struct dl2_network *net, unsigned height, unsigned width,
                         struct dl2_error *error)
{
    struct view *view = &net->views[0];
    for (int i = 0; i < VIEWS; i++)
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
    for (int i = 0; i < VIEWS; i++)
        network_free_view(net, &net->views[i]);
    void *memory[] = {net->weights,       net->lowered, net->gradient, net->momentum,
                      net->second_moment, net->average, net->kept,     net->labels,
                      net->partner,       net->losses,  net->sums};
    for (size_t i = 0; i < sizeof memory / sizeof memory[0]; i++)
        if (memory[i])
            device->ops->free(device, memory[i]);
    for (unsigned i = 0; i < net->staging; i++) {
        if (net->staged[i].labels)
            device->ops->free(device, net->staged[i].labels);
        if (net->staged[i].partner)
            device->ops->free(device, net->staged[i].partner);
    }
    free(net);
}
