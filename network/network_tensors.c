/* SPDX-License-Identifier: BSD-2-Clause */
/* A network's tensors by index: names, shapes, and copies of their values. */
#include "device/element.h"
#include "network/network_state.h"

#include <stdlib.h>
#include <string.h>

void *dl2_network_low_precision_at(const struct dl2_network *net, size_t offset)
{
    return net->low_precision ? net->low_precision + offset * dl2_element_size(net->device->element)
                              : NULL;
}

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

/* ODHWI <-> OIDHW. */
static void network_permute(const struct dl2_tensor *t, const float *from, float *to,
                            bool to_pytorch)
{
    size_t taps = dl2_sides_count(t->sides);
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
        if (part == DL2_NETWORK_VALUE && t->parameter && net->low_precision)
            ops->convert_weights(net->device, to, dl2_network_low_precision_at(net, t->offset),
                                 t->count);
        ops->wait_uploads(net->device);
    }
    free(kept);
    return status;
}
