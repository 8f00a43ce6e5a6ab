/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * One batch through a network: upload, forward, loss and, in training, backward.
 *
 * What runs after the upload is a straight row of calls that is the same each time for one batch
 * size and kind of run. A device that can record gets it recorded the second time and replayed from
 * then on.
 */
#include "device/element.h"
#include "network/network_state.h"

#include <stdlib.h>

/* -- addresses -- */

static void *network_buffer_at(const struct dl2_network *net, int buffer)
{
    return net->view->arena + net->view->graph.buffers[buffer].offset;
}

static void *network_value_at(const struct dl2_network *net, int value, bool train)
{
    const struct dl2_value *v = &net->view->graph.values[value];
    return network_buffer_at(net, v->buffer[train]);
}

static float *network_tensor_at(const struct dl2_network *net, int index)
{
    return net->weights + net->view->graph.tensors[index].offset;
}

static float *network_gradient_at(const struct dl2_network *net, int index)
{
    return net->gradient + net->view->graph.tensors[index].offset;
}

/* Weights as convolutions and linear layers read them. */
static const void *network_weights_at(const struct dl2_network *net, int index)
{
    void *low_precision = dl2_network_low_precision_at(net, net->view->graph.tensors[index].offset);
    return low_precision ? low_precision : network_tensor_at(net, index);
}

static struct dl2_tokens_shape network_tokens_shape(const struct dl2_network *net,
                                                    const struct dl2_plan_set *set,
                                                    const struct dl2_layer *layer)
{
    const struct dl2_value *out = &net->view->graph.values[layer->out];
    return (struct dl2_tokens_shape){set->count, out->sides.height, out->channels};
}

static struct dl2_gate_shape network_gate_shape(const struct dl2_network *net,
                                                const struct dl2_plan_set *set,
                                                const struct dl2_layer *layer)
{
    const struct dl2_value *out = &net->view->graph.values[layer->out];
    return (struct dl2_gate_shape){set->count, dl2_sides_count(out->sides), out->channels};
}

/* -- layers -- */

/* Forward, x to y; backward, dy to dx. */
static void network_dropout(const struct dl2_network *net, const struct dl2_layer *layer,
                            const void *from, void *to, size_t count)
{
    const size_t each = layer->samples ? net->view->graph.values[layer->out].size : 1;
    net->device->ops->dropout(net->device, from, to, count, each, layer->rate, net->config.seed,
                              layer->number);
}

/* Names what was called since the last mark. `layer`: NULL: of no layer. */
static void network_mark(const struct dl2_network *net, const struct dl2_layer *layer,
                         const char *what)
{
    if (net->device->ops->mark)
        net->device->ops->mark(net->device,
                               layer ? dl2_graph_layer_name(&net->view->graph, layer) : "", what);
}

/* The two parts of a concatenation's rows, as columns of the whole. */
struct network_columns {
    size_t rows, first, second, all, at; /* `at`: bytes to the second */
};

static struct network_columns network_columns_of(const struct dl2_network *net,
                                                 const struct dl2_plan_set *set,
                                                 const struct dl2_layer *layer)
{
    const struct dl2_value *values = net->view->graph.values, *out = &values[layer->out];
    const size_t first = values[layer->in].channels;
    return (struct network_columns){out->size / out->channels * set->count, first,
                                    out->channels - first, out->channels,
                                    first * dl2_element_size(net->device->element)};
}

static void network_concat(struct dl2_network *net, const struct dl2_plan_set *set,
                           const struct dl2_layer *layer, void *y, const void *a, const void *b)
{
    const struct network_columns c = network_columns_of(net, set, layer);
    void (*copy)(struct dl2_device *, void *, size_t, const void *, size_t, size_t, size_t) =
        net->device->ops->copy_columns;
    copy(net->device, y, c.all, a, c.first, c.first, c.rows);
    copy(net->device, (uint8_t *)y + c.at, c.all, b, c.second, c.second, c.rows);
}

/* The gradients of both parts, where they are wanted. */
static void network_split(struct dl2_network *net, const struct dl2_plan_set *set,
                          const struct dl2_layer *layer, const void *dy)
{
    const struct dl2_graph *graph = &net->view->graph;
    const struct network_columns c = network_columns_of(net, set, layer);
    const int a = graph->values[layer->in].gradient[layer->in_use];
    const int b = graph->values[layer->residual].gradient[layer->residual_use];
    if (a >= 0)
        net->device->ops->copy_columns(net->device, network_buffer_at(net, a), c.first, dy, c.all,
                                       c.first, c.rows);
    if (b >= 0)
        net->device->ops->copy_columns(net->device, network_buffer_at(net, b), c.second,
                                       (const uint8_t *)dy + c.at, c.all, c.second, c.rows);
}

static void network_forward_layer(struct dl2_network *net, const struct dl2_plan_set *set, size_t i,
                                  bool train)
{
    struct dl2_device *device = net->device;
    const struct dl2_device_class *ops = device->ops;
    const struct dl2_layer *layer = &net->view->graph.layers[i];
    const union dl2_layer_plan *plan = &set->layers[i];
    const void *x = network_value_at(net, layer->in, train);
    const void *residual =
        layer->residual >= 0 ? network_value_at(net, layer->residual, train) : NULL;
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
        float *gamma = network_tensor_at(net, t), *beta = network_tensor_at(net, t + 1);
        float *mean = network_tensor_at(net, t + 2), *var = network_tensor_at(net, t + 3);
        if (train && i >= dl2_network_first_trained(net))
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
        ops->add(device, x, residual, layer->activation, y, count);
        break;
    case DL2_LAYER_SMOOTH:
        ops->smooth(device, layer->smooth, x, y, count);
        break;
    case DL2_LAYER_GATE: {
        const struct dl2_gate_shape shape = network_gate_shape(net, set, layer);
        ops->gate(device, &shape, x, residual, y);
        break;
    }
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
    case DL2_LAYER_TRANSPOSED:
        dl2_transposed_forward(plan->transposed, x, network_weights_at(net, t),
                               network_tensor_at(net, t + 1), y);
        break;
    case DL2_LAYER_INSTANCE_NORM:
        dl2_instance_norm_forward(plan->instance_norm, x, network_tensor_at(net, t),
                                  network_tensor_at(net, t + 1), y);
        break;
    case DL2_LAYER_CONCAT:
        network_concat(net, set, layer, y, x, residual);
        break;
    case DL2_LAYER_DROPOUT:
        if (train)
            network_dropout(net, layer, x, y, count);
        else
            ops->copy(device, y, x, count * dl2_element_size(device->element));
        break;
    }
}

static void network_forward(struct dl2_network *net, const struct dl2_plan_set *set, bool train)
{
    for (size_t i = 0; i < net->view->graph.layer_count; i++) {
        network_forward_layer(net, set, i, train);
        network_mark(net, &net->view->graph.layers[i], train ? "forward" : "evaluation");
    }
}

/* The gradients of a layer's result: their sum in *dy, but for batch norm, which adds them up and
 * goes back through its activation itself: *dy2 is then the second, or NULL. */
static void network_gradients_of(struct dl2_network *net, const struct dl2_layer *layer,
                                 size_t count, void **dy, void **dy2)
{
    const struct dl2_device_class *ops = net->device->ops;
    const struct dl2_value *out = &net->view->graph.values[layer->out];
    const void *y = network_value_at(net, layer->out, true);
    *dy = network_buffer_at(net, out->gradient[0]);
    *dy2 = out->uses == 2 ? network_buffer_at(net, out->gradient[1]) : NULL;
    if (layer->kind == DL2_LAYER_NORM || layer->kind == DL2_LAYER_INSTANCE_NORM)
        return;
    if (*dy2)
        ops->add(net->device, *dy, *dy2, DL2_IDENTITY, *dy, count);
    if (layer->activation != DL2_IDENTITY)
        ops->activate_backward(net->device, layer->activation, y, *dy, *dy, count);
}

/* From the gradients of a layer's result to those of its weights and of its input. */
static void network_backward_layer(struct dl2_network *net, const struct dl2_plan_set *set,
                                   size_t i, bool accumulate)
{
    struct dl2_device *device = net->device;
    const struct dl2_device_class *ops = device->ops;
    const size_t first = dl2_network_first_trained(net);
    const struct dl2_layer *layer = &net->view->graph.layers[i];
    const union dl2_layer_plan *plan = &set->layers[i];
    const struct dl2_value *in = &net->view->graph.values[layer->in];
    const void *x = network_value_at(net, layer->in, true),
               *y = network_value_at(net, layer->out, true);
    void *dx = dl2_graph_wants_gradient(&net->view->graph, layer->in) && (i > first || !first)
                   ? network_buffer_at(net, in->gradient[layer->in_use])
                   : NULL;
    size_t count = net->view->graph.values[layer->out].size * set->count;
    int t = layer->tensor;
    void *dy, *dy2;
    network_gradients_of(net, layer, count, &dy, &dy2);
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
    case DL2_LAYER_SMOOTH:
        ops->smooth_backward(device, layer->smooth, x, dy, dx, count);
        break;
    case DL2_LAYER_GATE: {
        const struct dl2_gate_shape shape = network_gate_shape(net, set, layer);
        const int gates = layer->residual;
        ops->gate_backward(
            device, &shape, x, network_value_at(net, gates, true), dy, dx,
            network_buffer_at(net, net->view->graph.values[gates].gradient[layer->residual_use]));
        break;
    }
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
        ops->tokens_backward(device, &shape, dy, dx, network_gradient_at(net, layer->class_token),
                             network_gradient_at(net, t), accumulate);
        break;
    }
    case DL2_LAYER_TRANSPOSED:
        dl2_transposed_backward_weights(plan->transposed, x, dy, network_gradient_at(net, t),
                                        network_gradient_at(net, t + 1), accumulate);
        network_mark(net, layer, "gradient of weights");
        if (dx)
            dl2_transposed_backward_data(plan->transposed, dy, network_weights_at(net, t), dx);
        break;
    case DL2_LAYER_INSTANCE_NORM:
        dl2_instance_norm_backward(plan->instance_norm, x, y, dy, dy2, network_tensor_at(net, t),
                                   network_tensor_at(net, t + 1), dx, network_gradient_at(net, t),
                                   network_gradient_at(net, t + 1), accumulate);
        break;
    case DL2_LAYER_CONCAT:
        network_split(net, set, layer, dy);
        break;
    case DL2_LAYER_DROPOUT:
        network_dropout(net, layer, dy, dx, count);
        break;
    }
}

/* `reduce`: the gradients are this update's last, and go to the other ranks while the layers before
 * are still at work. */
static void network_backward(struct dl2_network *net, const struct dl2_plan_set *set,
                             bool accumulate, bool reduce)
{
    size_t sent = 0;
    for (size_t i = net->view->graph.layer_count; i-- > dl2_network_first_trained(net);) {
        network_backward_layer(net, set, i, accumulate);
        network_mark(net, &net->view->graph.layers[i], "backward");
        if (reduce)
            sent = dl2_network_reduce_layer(net, i, sent);
    }
    if (reduce) {
        dl2_network_reduce_rest(net);
        network_mark(net, NULL, "wait for other ranks");
    }
}

/* -- a batch -- */

/* The loss; in an evaluation of pixels their confusion, too. */
static void network_lose(struct dl2_network *net, const struct dl2_plan_set *set, unsigned kind)
{
    struct dl2_device *device = net->device;
    const struct dl2_device_class *ops = device->ops;
    const struct dl2_network_view *view = net->view;
    const bool train = kind & DL2_RUN_TRAIN;
    const struct dl2_value *value = &view->graph.values[view->graph.logits];
    const void *logits = network_value_at(net, view->graph.logits, train);
    void *dlogits = train ? network_buffer_at(net, value->gradient[0]) : NULL;
    struct dl2_loss_sums *sums = set->dice ? net->entropy : net->sums;
    if (set->dice)
        ops->zero(device, sums, sizeof *sums);
    ops->loss_run(train ? set->loss_train : set->loss_eval, logits, view->current,
                  kind & DL2_RUN_MIXED ? net->partner : NULL, view->losses, dlogits, sums);
    if (set->dice)
        ops->dice_run(set->dice, logits, view->current, dlogits, sums, net->sums);
    if (net->confusion && !train)
        ops->confusion(device, logits, view->current, value->size / value->channels * set->count,
                       net->config.classes, net->confusion);
    network_mark(net, NULL, "loss");
}

/* All of a run but its input. */
static void network_compute(struct dl2_network *net, const struct dl2_plan_set *set, unsigned kind)
{
    bool train = kind & DL2_RUN_TRAIN;
    network_forward(net, set, train);
    network_lose(net, set, kind);
    if (train)
        network_backward(net, set, kind & DL2_RUN_ACCUMULATE,
                         net->device->world && !(kind & DL2_RUN_MORE));
}

/* The first time plainly, as libraries settle things then; then recorded, then replayed. */
static void network_compute_or_replay(struct dl2_network *net, struct dl2_plan_set *set,
                                      unsigned kind)
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
    const struct dl2_label_shape shape = dl2_network_labels(net);
    const size_t labels = dl2_label_count(&shape);
    if (mixup && input->partner && shape.kind != DL2_LABEL_CLASS)
        return dl2_error_set(error, DL2_ERR_ARGUMENT, "labels of pixels cannot be mixed");
    for (size_t i = 0; i < input->count * labels; i++)
        if (input->labels[i] < -1 || input->labels[i] >= (int64_t)net->config.classes)
            return dl2_error_set(error, DL2_ERR_ARGUMENT,
                                 "label %d of sample %zu of a batch is not one of %u classes",
                                 (int)input->labels[i], i / labels, net->config.classes);
    for (unsigned i = 0; i < input->count; i++) {
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
    bool train = kind & DL2_RUN_TRAIN;
    if (train && input->partner)
        kind |= DL2_RUN_MIXED;
    if (train && net->frozen)
        kind |= DL2_RUN_FROZEN;
    struct dl2_plan_set *set;
    DL2_TRY(network_check_input(net, input, train, error));
    DL2_TRY(dl2_network_find_plans(net, input->count, &set, error));
    const struct dl2_label_shape shape = dl2_network_labels(net);
    struct dl2_network_view *view = net->view;
    const size_t size = dl2_network_sample_bytes(net, view);
    size_t labels = input->count * dl2_label_count(&shape) * sizeof *view->current;
    size_t partners = input->count * sizeof(uint32_t);
    const unsigned place = net->next_staged++ % net->staging;
    const struct dl2_staged *staged = &net->staged[place];
    ops->upload(device, view->images[place], input->images, size * input->count);
    ops->upload(device, view->labels[place], input->labels, labels);
    if (kind & DL2_RUN_MIXED)
        ops->upload(device, staged->partner, input->partner, partners);
    ops->set_step_params(device, &net->params);
    ops->copy(device, view->current, view->labels[place], labels);
    if (kind & DL2_RUN_MIXED)
        ops->copy(device, net->partner, staged->partner, partners);
    ops->ingest_run(set->ingest, view->images[place],
                    kind & DL2_RUN_MIXED && !input->pasted ? net->partner : NULL,
                    network_value_at(net, 0, train));
    network_compute_or_replay(net, set, kind);
    net->last_count = input->count;
    net->last_train = train;
    return DL2_OK;
}

/* -- the interface -- */

int dl2_network_train(struct dl2_network *net, const struct dl2_network_input *input,
                      const struct dl2_network_step *step, struct dl2_error *error)
{
    DL2_TRY(dl2_network_check_trains(net, error));
    net->params.step = step->step;
    net->params.lambda = input->lambda;
    net->params.scale = step->scale;
    return network_run(net, input,
                       DL2_RUN_TRAIN | (step->accumulate ? DL2_RUN_ACCUMULATE : 0) |
                           (step->more ? DL2_RUN_MORE : 0),
                       error);
}

int dl2_network_evaluate(struct dl2_network *net, const struct dl2_network_input *input,
                         struct dl2_error *error)
{
    net->params.step = 0;
    net->params.lambda = 1;
    net->params.scale = 1;
    return network_run(net, input, 0, error);
}

void dl2_network_wait_input(struct dl2_network *net)
{
    net->device->ops->wait_uploads(net->device);
}

int dl2_network_take_sums(struct dl2_network *net, struct dl2_loss_sums *sums,
                          struct dl2_error *error)
{
    DL2_TRY(dl2_network_get_sums(net, sums, error));
    net->device->ops->zero(net->device, net->sums, sizeof *sums);
    return DL2_OK;
}

int dl2_network_get_sums(struct dl2_network *net, struct dl2_loss_sums *sums,
                         struct dl2_error *error)
{
    return net->device->ops->download(net->device, sums, net->sums, sizeof *sums, error);
}

int dl2_network_set_sums(struct dl2_network *net, const struct dl2_loss_sums *sums,
                         struct dl2_error *error)
{
    const struct dl2_device_class *ops = net->device->ops;
    DL2_TRY(ops->sync(net->device, error)); /* an upload may overtake what adds to them */
    ops->upload(net->device, net->sums, sums, sizeof *sums);
    ops->wait_uploads(net->device);
    return DL2_OK;
}

int dl2_network_take_confusion(struct dl2_network *net, uint64_t *matrix, struct dl2_error *error)
{
    const struct dl2_device_class *ops = net->device->ops;
    const size_t bytes = (size_t)net->config.classes * net->config.classes * sizeof *matrix;
    if (!net->confusion)
        return dl2_error_set(error, DL2_ERR_ARGUMENT, "%s labels samples, not their pixels",
                             net->config.arch);
    DL2_TRY(ops->download(net->device, matrix, net->confusion, bytes, error));
    ops->zero(net->device, net->confusion, bytes);
    return DL2_OK;
}

int dl2_network_last(struct dl2_network *net, float *losses, float *logits, struct dl2_error *error)
{
    struct dl2_device *device = net->device;
    const struct dl2_label_shape shape = dl2_network_labels(net);
    size_t count = net->last_count * dl2_label_count(&shape);
    size_t values = count * net->config.classes;
    size_t bytes = values * dl2_element_size(device->element);
    if (losses)
        DL2_TRY(device->ops->download(device, losses, net->view->losses, count * sizeof *losses,
                                      error));
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

int dl2_network_images_gradient(struct dl2_network *net, float *out, struct dl2_error *error)
{
    const struct dl2_value *images = &net->view->graph.values[0];
    if (!net->config.images_gradient || !net->last_train ||
        net->device->element != DL2_ELEMENT_F32 || images->uses != 1)
        return dl2_error_set(error, DL2_ERR_ARGUMENT,
                             "the gradient of the images is known after training a batch with "
                             "float32, by a network that keeps it");
    return net->device->ops->download(net->device, out, network_buffer_at(net, images->gradient[0]),
                                      images->size * net->last_count * sizeof *out, error);
}
