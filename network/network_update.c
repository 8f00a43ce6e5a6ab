/* SPDX-License-Identifier: BSD-2-Clause */
/* What changes weights between batches: the optimizer's step, freezing, and moving averages. */
#include "network/network_state.h"

int dl2_network_check_trains(const struct dl2_network *net, struct dl2_error *error)
{
    if (!net->config.train)
        return dl2_error_set(error, DL2_ERR_ARGUMENT,
                             "a network made for evaluation cannot be trained");
    if (net->averaged)
        return dl2_error_set(error, DL2_ERR_ARGUMENT, "averages of weights cannot be trained");
    return DL2_OK;
}

/* The optimizer's step over `count` parameters from `first` on. */
static void network_step(struct dl2_network *net, size_t first, size_t count, bool decays,
                         bool nesterov)
{
    const struct dl2_optimizer_step step = {
        .kind = net->config.optimizer,
        .decays = decays,
        .nesterov = nesterov,
        .count = count,
        .weights = net->weights + first,
        .low_precision = dl2_network_low_precision_at(net, first),
        .gradient = net->gradient + first,
        .momentum = net->momentum + first,
        .second_moment = net->second_moment ? net->second_moment + first : NULL,
    };
    net->device->ops->optimizer_step(net->device, &step);
}

int dl2_network_update(struct dl2_network *net, const struct dl2_update *update,
                       struct dl2_error *error)
{
    struct dl2_device *device = net->device;
    const struct dl2_device_class *ops = device->ops;
    const struct dl2_graph *graph = &net->view->graph;
    const size_t decaying = dl2_network_trained_from(net, true),
                 others = dl2_network_trained_from(net, false);
    DL2_TRY(dl2_network_check_trains(net, error));
    net->params.rate = update->rate;
    net->params.momentum = update->momentum;
    net->params.weight_decay = update->weight_decay;
    net->params.beta2 = update->beta2;
    net->params.epsilon = update->epsilon;
    net->params.update = update->number;
    net->params.average_decay = update->average_decay;
    ops->set_step_params(device, &net->params);
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
    if (ops->mark)
        ops->mark(device, "", "update");
    return DL2_OK;
}

int dl2_network_freeze(struct dl2_network *net, bool frozen, struct dl2_error *error)
{
    DL2_TRY(dl2_network_check_trains(net, error));
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
    DL2_TRY(dl2_network_check_trains(net, error));
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
    if (net->low_precision)
        ops->convert_weights(net->device, net->weights, net->low_precision,
                             net->view->graph.parameters);
    net->averaged = use;
    return DL2_OK;
}
