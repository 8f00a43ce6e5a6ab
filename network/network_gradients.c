/* SPDX-License-Identifier: BSD-2-Clause */
/* Which layers are trained, and the sums of their gradients over all ranks. */
#include "network/network_state.h"

#include <stdlib.h>

/* Elements in a bucket: a few of them in a small network, 16 MiB each in a large one. */
#define BUCKET_LEAST ((size_t)1 << 14)
#define BUCKET_MAX   ((size_t)1 << 22)

size_t dl2_network_first_trained(const struct dl2_network *net)
{
    return net->frozen ? dl2_graph_head(&net->view->graph) : 0;
}

size_t dl2_network_trained_from(const struct dl2_network *net, bool decays)
{
    const struct dl2_graph *graph = &net->view->graph;
    const size_t begin = decays ? 0 : graph->decayed;
    const size_t end = decays ? graph->decayed : graph->parameters;
    size_t from = net->frozen ? end : begin;
    for (int t = graph->layers[dl2_graph_head(graph)].tensor, last = t + 2; t < last; t++)
        if (graph->tensors[t].offset >= begin && graph->tensors[t].offset < from)
            from = graph->tensors[t].offset;
    return from;
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
    const struct dl2_bucket *a = left, *b = right;
    if (a->layer != b->layer)
        return a->layer < b->layer ? 1 : -1;
    return (a->begin < b->begin) - (a->begin > b->begin);
}

/*
 * Cuts the gradients into runs that go to the other ranks while backward is still at work. It
 * finishes them about from the end, in both groups (decayed and not), so runs are cut from the
 * ends; they are kept in the order in which they will be ready.
 */
void dl2_network_plan_buckets(struct dl2_network *net)
{
    const struct dl2_graph *g = &net->view->graph;
    const size_t ends[] = {g->decayed, g->parameters}, begins[] = {0, g->decayed};
    size_t size = g->parameters / 4;
    size = size < BUCKET_LEAST ? BUCKET_LEAST : size > BUCKET_MAX ? BUCKET_MAX : size;
    size = size < g->parameters / (DL2_NETWORK_BUCKETS - 2)
               ? g->parameters / (DL2_NETWORK_BUCKETS - 2) + 1
               : size;
    for (int group = 0; group < 2; group++) {
        struct dl2_bucket open = {ends[group], 0, g->layer_count};
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
            open = (struct dl2_bucket){open.begin, 0, g->layer_count};
        }
    }
    qsort(net->buckets, net->bucket_count, sizeof *net->buckets, network_by_layer);
}

size_t dl2_network_reduce_layer(const struct dl2_network *net, size_t layer, size_t sent)
{
    if (net->frozen)
        return sent; /* dl2_network_reduce_rest() sends the little that is trained */
    for (; sent < net->bucket_count && net->buckets[sent].layer == layer; sent++)
        net->device->ops->all_reduce(net->device, net->gradient + net->buckets[sent].begin,
                                     net->buckets[sent].count);
    return sent;
}

void dl2_network_reduce_rest(const struct dl2_network *net)
{
    const struct dl2_device_class *ops = net->device->ops;
    const struct dl2_graph *graph = &net->view->graph;
    for (int decays = 0; net->frozen && decays < 2; decays++) {
        const size_t from = dl2_network_trained_from(net, decays);
        const size_t end = decays ? graph->decayed : graph->parameters;
        if (end > from)
            ops->all_reduce(net->device, net->gradient + from, end - from);
    }
    ops->all_reduce_wait(net->device);
}
