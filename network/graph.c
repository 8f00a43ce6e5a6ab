/* SPDX-License-Identifier: BSD-2-Clause */
#include "network/graph.h"
#include "common/memory.h"
#include "common/random.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* -- the builder -- */

/* Room for one more item in a list; NULL, and the builder fails, when there is none. */
static void *graph_grow(struct dl2_graph *g, void *list, size_t *count, size_t size)
{
    char **items = list;
    void *grown = g->status ? NULL : dl2_realloc(*items, *count + 1, size);
    if (!grown) {
        if (!g->status)
            g->status = dl2_error_memory(g->error, "a network");
        return NULL;
    }
    *items = grown;
    char *item = *items + size * (*count)++;
    memset(item, 0, size);
    return item;
}

/* "images of 64x64" or "clips of 16 frames of 112x112". */
static const char *graph_input(const struct dl2_graph *g, char *text, size_t size)
{
    const struct dl2_value *v = &g->values[0];
    if (g->volumes)
        snprintf(text, size, "volumes of %ux%ux%u", v->sides.depth, v->sides.height,
                 v->sides.width);
    else if (g->clips)
        snprintf(text, size, "clips of %u frames of %ux%u", v->sides.depth, v->sides.width,
                 v->sides.height);
    else
        snprintf(text, size, "images of %ux%u", v->sides.width, v->sides.height);
    return text;
}

static int graph_add_value(struct dl2_graph *g, struct dl2_sides sides, unsigned channels)
{
    struct dl2_value *v = graph_grow(g, &g->values, &g->value_count, sizeof *v);
    if (!v)
        return -1;
    *v = (struct dl2_value){.sides = sides, .channels = channels, .buffer = {-1, -1}};
    for (int i = 0; i < DL2_GRAPH_USES; i++)
        v->gradient[i] = -1;
    if (!dl2_size_mul((size_t)sides.height * sides.width, channels, &v->size) ||
        !dl2_size_mul(v->size, sides.depth, &v->size) || v->size > 0x7fffffff) {
        char input[96];
        g->status = dl2_error_set(g->error, DL2_ERR_LIMIT, "%s: %s are too large", g->arch,
                                  graph_input(g, input, sizeof input));
        return -1;
    }
    return (int)g->value_count - 1;
}

static int graph_use(struct dl2_graph *g, int value)
{
    struct dl2_value *v = &g->values[value];
    if (v->uses == DL2_GRAPH_USES)
        g->status = dl2_error_set(g->error, DL2_ERR_UNSUPPORTED, "%s: a value is used %d times",
                                  g->arch, DL2_GRAPH_USES + 1);
    return g->status ? 0 : (int)v->uses++;
}

/* A layer from `in` to a new value of that size; *out is the value, -1 on failure. */
static struct dl2_layer *graph_add_layer(struct dl2_graph *g, enum dl2_layer_kind kind, int in,
                                         struct dl2_sides sides, unsigned channels, int *out)
{
    *out = -1;
    if (g->status)
        return NULL;
    struct dl2_layer *layer = graph_grow(g, &g->layers, &g->layer_count, sizeof *layer);
    if (!layer)
        return NULL;
    layer->kind = kind;
    layer->in = in;
    layer->in_use = graph_use(g, in);
    layer->residual = -1;
    layer->tensor = -1;
    layer->out = *out = graph_add_value(g, sides, channels);
    return g->status ? NULL : layer;
}

/* A layer whose output has its input's shape. */
static struct dl2_layer *graph_add_alike(struct dl2_graph *g, enum dl2_layer_kind kind, int in,
                                         int *out)
{
    *out = -1;
    if (g->status)
        return NULL;
    const struct dl2_value v = g->values[in];
    return graph_add_layer(g, kind, in, v.sides, v.channels, out);
}

static int graph_add_tensor(struct dl2_graph *g, const char *layer, const char *part,
                            const struct dl2_tensor *model)
{
    struct dl2_tensor *t = graph_grow(g, &g->tensors, &g->tensor_count, sizeof *t);
    if (!t)
        return -1;
    *t = *model;
    const char *dot = layer[strlen(layer) - 1] == '_' || !part[0] ? "" : ".";
    size_t length = strlen(layer) + strlen(part) + 2;
    t->name = malloc(length);
    if (!t->name) {
        g->status = dl2_error_memory(g->error, "a network");
        return -1;
    }
    snprintf(t->name, length, "%s%s%s", layer, dot, part);
    t->count = (size_t)t->out * dl2_sides_count(t->sides) * t->in;
    if (g->norm_decay)
        t->decays = t->parameter;
    return (int)g->tensor_count - 1;
}

/* A number for each channel. */
static struct dl2_tensor graph_channel_tensor(unsigned channels, bool parameter, enum dl2_init init,
                                              float limit)
{
    return (struct dl2_tensor){.dims = {channels},
                               .rank = 1,
                               .out = channels,
                               .sides = {1, 1, 1},
                               .in = 1,
                               .parameter = parameter,
                               .init = init,
                               .limit = limit};
}

/* The limit of a weight's initial values. */
static float graph_limit_of(const struct dl2_tensor *t)
{
    const double taps = (double)dl2_sides_count(t->sides);
    const double fan_in = t->in * taps, fan_out = t->out * taps;
    switch (t->init) {
    case DL2_INIT_HE_FAN_OUT:
        return (float)sqrt(2 / fan_out);
    case DL2_INIT_HE_FAN_IN:
        return (float)sqrt(2 / fan_in);
    case DL2_INIT_HE_UNIFORM:
        return (float)sqrt(6 / fan_in);
    case DL2_INIT_UNIFORM_OUT:
        return (float)(1 / sqrt(fan_out));
    case DL2_INIT_NORMAL:
        return 0.01f;
    case DL2_INIT_XAVIER_UNIFORM:
        return (float)sqrt(6 / (fan_in + fan_out));
    case DL2_INIT_UNIFORM_FAN_IN:
    case DL2_INIT_UNIFORM_WEIGHT:
    case DL2_INIT_LECUN:
        return (float)(1 / sqrt(fan_in));
    case DL2_INIT_CONSTANT:
        break;
    }
    return 0;
}

/* A weight and its bias where it has one, by the weight's dimensions as kept; the index of the
 * first. */
static int graph_add_weights(struct dl2_graph *g, const char *name, struct dl2_tensor t, bool flat,
                             bool bias)
{
    t.parameter = t.decays = true;
    t.rank = 0;
    t.dims[t.rank++] = t.out;
    t.dims[t.rank++] = flat ? dl2_sides_count(t.sides) * t.in : t.in;
    if (!flat && g->clips)
        t.dims[t.rank++] = t.sides.depth;
    if (!flat) {
        t.dims[t.rank++] = t.sides.height;
        t.dims[t.rank++] = t.sides.width;
    }
    t.limit = graph_limit_of(&t);
    int first = graph_add_tensor(g, name, "weight", &t);
    if (bias) {
        bool drawn = t.init == DL2_INIT_UNIFORM_FAN_IN;
        t = graph_channel_tensor(t.out, true, drawn ? t.init : DL2_INIT_CONSTANT,
                                 drawn ? t.limit : 0);
        graph_add_tensor(g, name, "bias", &t);
    }
    return first;
}

static void graph_too_small(struct dl2_graph *g, const char *layer)
{
    char input[96];
    g->status =
        dl2_error_set(g->error, DL2_ERR_ARGUMENT, "%s are too small for %s: nothing is left for %s",
                      graph_input(g, input, sizeof input), g->arch, layer);
}

void dl2_graph_need_patches(struct dl2_graph *g, int in, unsigned patch)
{
    char input[96];
    if (g->status ||
        (g->values[in].sides.height % patch == 0 && g->values[in].sides.width % patch == 0))
        return;
    g->status = dl2_error_set(g->error, DL2_ERR_ARGUMENT,
                              "%s do not fit %s, whose patches of %ux%u pixels would leave a part "
                              "of them out: choose sides that are multiples of %u",
                              graph_input(g, input, sizeof input), g->arch, patch, patch, patch);
}

/* A layer that moves a window over `in`. */
static struct dl2_layer *graph_add_window(struct dl2_graph *g, enum dl2_layer_kind kind,
                                          const char *name, int in, unsigned channels,
                                          const struct dl2_graph_window *w, int *out)
{
    const struct dl2_sides outs =
        dl2_window_outs(g->values[in].sides, w->kernel, w->stride, w->pad);
    *out = -1;
    if (!dl2_sides_count(outs)) {
        graph_too_small(g, name);
        return NULL;
    }
    struct dl2_layer *layer = graph_add_layer(g, kind, in, outs, channels, out);
    if (layer)
        layer->window = *w;
    return layer;
}

static int graph_add_conv(struct dl2_graph *g, const char *name, int in, unsigned channels,
                          const struct dl2_graph_window *w, unsigned groups, bool bias,
                          enum dl2_init init)
{
    if (g->status)
        return -1;
    int out;
    unsigned ins = g->values[in].channels / groups;
    struct dl2_layer *layer = graph_add_window(g, DL2_LAYER_CONV, name, in, channels, w, &out);
    if (layer) {
        const struct dl2_tensor t = {.out = channels, .sides = w->kernel, .in = ins, .init = init};
        layer->groups = groups;
        layer->bias = bias;
        layer->tensor = graph_add_weights(g, name, t, false, bias);
    }
    return out;
}

static struct dl2_graph_window graph_square(unsigned kernel, unsigned stride, unsigned pad)
{
    return (struct dl2_graph_window){{1, kernel, kernel}, {1, stride, stride}, {0, pad, pad}};
}

int dl2_graph_conv(struct dl2_graph *g, const char *name, int in, unsigned channels,
                   unsigned kernel, unsigned stride, unsigned pad, enum dl2_init init)
{
    const struct dl2_graph_window window = graph_square(kernel, stride, pad);
    return graph_add_conv(g, name, in, channels, &window, 1, false, init);
}

int dl2_graph_conv_bias(struct dl2_graph *g, const char *name, int in, unsigned channels,
                        unsigned kernel, unsigned stride, unsigned pad, enum dl2_init init)
{
    const struct dl2_graph_window window = graph_square(kernel, stride, pad);
    return graph_add_conv(g, name, in, channels, &window, 1, true, init);
}

int dl2_graph_clip_conv(struct dl2_graph *g, const char *name, int in, unsigned channels,
                        const struct dl2_graph_window *window, bool bias, enum dl2_init init)
{
    return graph_add_conv(g, name, in, channels, window, 1, bias, init);
}

int dl2_graph_grouped(struct dl2_graph *g, const char *name, int in, unsigned channels,
                      unsigned kernel, unsigned stride, unsigned pad, unsigned groups,
                      enum dl2_init init)
{
    const struct dl2_graph_window window = graph_square(kernel, stride, pad);
    return graph_add_conv(g, name, in, channels, &window, groups, false, init);
}

int dl2_graph_depthwise(struct dl2_graph *g, const char *name, int in, unsigned kernel,
                        unsigned stride, unsigned pad, enum dl2_init init)
{
    unsigned channels = dl2_graph_channels(g, in);
    return dl2_graph_grouped(g, name, in, channels, kernel, stride, pad, channels, init);
}

int dl2_graph_norm_parameters(struct dl2_graph *g, const char *name, unsigned channels)
{
    static const struct {
        const char *part;
        bool parameter;
        float start;
    } parts[] = {{"weight", true, 1},
                 {"bias", true, 0},
                 {"running_mean", false, 0},
                 {"running_var", false, 1}};
    int first = -1;
    for (int i = 0; i < 4; i++) {
        const struct dl2_tensor t =
            graph_channel_tensor(channels, parts[i].parameter, DL2_INIT_CONSTANT, parts[i].start);
        int index = graph_add_tensor(g, name, parts[i].part, &t);
        first = i ? first : index;
    }
    return first;
}

int dl2_graph_norm_layer(struct dl2_graph *g, int parameters, int in, int residual,
                         enum dl2_activation activation)
{
    int out;
    struct dl2_layer *layer = graph_add_alike(g, DL2_LAYER_NORM, in, &out);
    if (layer) {
        layer->tensor = parameters;
        layer->activation = activation;
        layer->residual = residual;
        layer->residual_use = residual < 0 ? 0 : graph_use(g, residual);
    }
    return out;
}

int dl2_graph_norm(struct dl2_graph *g, const char *name, int in, enum dl2_activation activation)
{
    if (g->status)
        return -1;
    int parameters = dl2_graph_norm_parameters(g, name, dl2_graph_channels(g, in));
    return dl2_graph_norm_layer(g, parameters, in, -1, activation);
}

static int graph_activate(struct dl2_graph *g, int in, enum dl2_activation activation)
{
    if (!g->status)
        g->layers[g->layer_count - 1].activation = activation;
    return in;
}

int dl2_graph_relu(struct dl2_graph *g, int in)
{
    return graph_activate(g, in, DL2_RELU);
}

int dl2_graph_elu(struct dl2_graph *g, int in)
{
    return graph_activate(g, in, DL2_ELU);
}

int dl2_graph_clip_max_pool(struct dl2_graph *g, int in, const struct dl2_graph_window *window)
{
    if (g->status)
        return -1;
    int out;
    graph_add_window(g, DL2_LAYER_MAX_POOL, "a max pooling", in, g->values[in].channels, window,
                     &out);
    return out;
}

int dl2_graph_max_pool(struct dl2_graph *g, int in, unsigned kernel, unsigned stride, unsigned pad)
{
    const struct dl2_graph_window window = graph_square(kernel, stride, pad);
    return dl2_graph_clip_max_pool(g, in, &window);
}

static unsigned graph_rounded_up(unsigned in, unsigned kernel, unsigned stride)
{
    return (in - kernel + stride - 1) / stride + 1;
}

int dl2_graph_max_pool_up(struct dl2_graph *g, int in, unsigned kernel, unsigned stride)
{
    const int out = dl2_graph_max_pool(g, in, kernel, stride, 0);
    if (g->status)
        return -1;
    struct dl2_value *v = &g->values[out];
    const struct dl2_sides sides = g->values[in].sides;
    v->sides.height = graph_rounded_up(sides.height, kernel, stride);
    v->sides.width = graph_rounded_up(sides.width, kernel, stride);
    v->size = dl2_sides_count(v->sides) * v->channels; /* smaller than that of `in` */
    return out;
}

int dl2_graph_halve(struct dl2_graph *g, int in)
{
    char input[96];
    if (g->status)
        return -1;
    const struct dl2_sides sides = g->values[in].sides;
    if (sides.height % 2 == 0 && sides.width % 2 == 0)
        return dl2_graph_average_pool(g, in, sides.height / 2, sides.width / 2);
    g->status =
        dl2_error_set(g->error, DL2_ERR_ARGUMENT,
                      "%s do not fit %s, which halves them often: at %ux%u a side was odd; "
                      "choose sides that are multiples of 32",
                      graph_input(g, input, sizeof input), g->arch, sides.width, sides.height);
    return -1;
}

int dl2_graph_average_pool(struct dl2_graph *g, int in, unsigned height, unsigned width)
{
    if (g->status)
        return -1;
    int out;
    graph_add_layer(g, DL2_LAYER_AVERAGE_POOL, in, (struct dl2_sides){1, height, width},
                    g->values[in].channels, &out);
    return out;
}

int dl2_graph_dropout(struct dl2_graph *g, int in, float rate)
{
    int out;
    struct dl2_layer *layer = graph_add_alike(g, DL2_LAYER_DROPOUT, in, &out);
    if (layer) {
        layer->rate = rate;
        layer->number = g->dropouts++;
    }
    return out;
}

int dl2_graph_drop_samples(struct dl2_graph *g, int in, float rate)
{
    const int out = dl2_graph_dropout(g, in, rate);
    if (!g->status)
        g->layers[g->layer_count - 1].samples = true;
    return out;
}

int dl2_graph_gate(struct dl2_graph *g, int in, int gates)
{
    int out;
    struct dl2_layer *layer = graph_add_alike(g, DL2_LAYER_GATE, in, &out);
    if (layer) {
        layer->residual = gates;
        layer->residual_use = graph_use(g, gates);
    }
    return out;
}

/* A linear layer on each of `rows` equal parts of a sample. */
static int graph_add_linear(struct dl2_graph *g, const char *name, int in, unsigned rows,
                            unsigned out_features, enum dl2_init init)
{
    if (g->status)
        return -1;
    struct dl2_value v = g->values[in];
    int out;
    struct dl2_layer *layer = graph_add_layer(g, DL2_LAYER_LINEAR, in,
                                              (struct dl2_sides){1, rows, 1}, out_features, &out);
    if (layer) {
        const struct dl2_tensor t = {.out = out_features,
                                     .sides = {v.sides.depth, v.sides.height / rows, v.sides.width},
                                     .in = v.channels,
                                     .init = init};
        layer->rows = rows;
        layer->bias = true;
        layer->tensor = graph_add_weights(g, name, t, true, true);
    }
    return out;
}

int dl2_graph_linear(struct dl2_graph *g, const char *name, int in, unsigned out_features,
                     enum dl2_init init)
{
    return graph_add_linear(g, name, in, 1, out_features, init);
}

/* -- tokens -- */

static struct dl2_tensor graph_plain_tensor(unsigned rows, unsigned channels, enum dl2_init init,
                                            float limit)
{
    return (struct dl2_tensor){.dims = {1, rows, channels},
                               .rank = 3,
                               .out = rows,
                               .sides = {1, 1, 1},
                               .in = channels,
                               .parameter = true,
                               .init = init,
                               .limit = limit};
}

int dl2_graph_class_token(struct dl2_graph *g, const char *name, unsigned channels)
{
    const struct dl2_tensor t = graph_plain_tensor(1, channels, DL2_INIT_CONSTANT, 0);
    return graph_add_tensor(g, name, "", &t);
}

int dl2_graph_tokens(struct dl2_graph *g, const char *name, int in, int class_token)
{
    if (g->status)
        return -1;
    struct dl2_value v = g->values[in];
    int out;
    const unsigned tokens = v.sides.height * v.sides.width + 1;
    struct dl2_layer *layer = graph_add_layer(g, DL2_LAYER_TOKENS, in,
                                              (struct dl2_sides){1, tokens, 1}, v.channels, &out);
    if (layer) {
        struct dl2_tensor t = graph_plain_tensor(tokens, v.channels, DL2_INIT_NORMAL, 0.02f);
        layer->class_token = class_token;
        layer->tensor = graph_add_tensor(g, name, "", &t);
    }
    return out;
}

int dl2_graph_token_linear(struct dl2_graph *g, const char *name, int in, unsigned out_features,
                           enum dl2_init init)
{
    return g->status
               ? -1
               : graph_add_linear(g, name, in, g->values[in].sides.height, out_features, init);
}

int dl2_graph_layer_norm(struct dl2_graph *g, const char *name, int in, float epsilon)
{
    int out;
    struct dl2_layer *layer = graph_add_alike(g, DL2_LAYER_LAYER_NORM, in, &out);
    if (layer) {
        layer->epsilon = epsilon;
        const unsigned channels = g->values[in].channels;
        const struct dl2_tensor gamma = graph_channel_tensor(channels, true, DL2_INIT_CONSTANT, 1);
        const struct dl2_tensor beta = graph_channel_tensor(channels, true, DL2_INIT_CONSTANT, 0);
        layer->tensor = graph_add_tensor(g, name, "weight", &gamma);
        graph_add_tensor(g, name, "bias", &beta);
    }
    return out;
}

int dl2_graph_attention(struct dl2_graph *g, int in, unsigned heads)
{
    if (g->status)
        return -1;
    struct dl2_value v = g->values[in];
    int out;
    struct dl2_layer *layer =
        graph_add_layer(g, DL2_LAYER_ATTENTION, in, v.sides, v.channels / 3, &out);
    if (layer)
        layer->heads = heads;
    return out;
}

int dl2_graph_smooth(struct dl2_graph *g, enum dl2_smooth kind, int in)
{
    int out;
    struct dl2_layer *layer = graph_add_alike(g, DL2_LAYER_SMOOTH, in, &out);
    if (layer)
        layer->smooth = kind;
    return out;
}

int dl2_graph_add(struct dl2_graph *g, int a, int b)
{
    int out;
    struct dl2_layer *layer = graph_add_alike(g, DL2_LAYER_ADD, a, &out);
    if (layer) {
        layer->residual = b;
        layer->residual_use = graph_use(g, b);
    }
    return out;
}

int dl2_graph_first_token(struct dl2_graph *g, int in)
{
    if (g->status)
        return -1;
    /* The one window of a token that a stride as long as all of them leaves. */
    return dl2_graph_max_pool(g, in, 1, g->values[in].sides.height, 0);
}

/* -- labels of pixels and voxels -- */

/* Length of a transposed convolution's output. */
static unsigned graph_transposed_out(unsigned in, unsigned kernel, unsigned stride, unsigned pad)
{
    const uint64_t out = (uint64_t)(in - 1) * stride + kernel;
    return out > 2 * (uint64_t)pad && out <= 0x7fffffff ? (unsigned)out - 2 * pad : 0;
}

int dl2_graph_transposed(struct dl2_graph *g, const char *name, int in, unsigned channels,
                         const struct dl2_graph_window *w)
{
    if (g->status)
        return -1;
    const struct dl2_value v = g->values[in];
    int out;
    const struct dl2_sides outs = {
        graph_transposed_out(v.sides.depth, w->kernel.depth, w->stride.depth, w->pad.depth),
        graph_transposed_out(v.sides.height, w->kernel.height, w->stride.height, w->pad.height),
        graph_transposed_out(v.sides.width, w->kernel.width, w->stride.width, w->pad.width)};
    struct dl2_layer *layer = graph_add_layer(g, DL2_LAYER_TRANSPOSED, in, outs, channels, &out);
    if (layer) {
        /* The weights of the convolution that it is the gradient of, as PyTorch has them. */
        const struct dl2_tensor t = {
            .out = v.channels, .sides = w->kernel, .in = channels, .init = DL2_INIT_UNIFORM_FAN_IN};
        layer->window = *w;
        layer->groups = 1;
        layer->bias = true;
        layer->tensor = graph_add_weights(g, name, t, false, false);
        const struct dl2_tensor bias = graph_channel_tensor(
            channels, true, t.init, g->status ? 0 : g->tensors[layer->tensor].limit);
        graph_add_tensor(g, name, "bias", &bias);
    }
    return out;
}

int dl2_graph_instance_norm(struct dl2_graph *g, const char *name, int in,
                            enum dl2_activation activation)
{
    int out;
    struct dl2_layer *layer = graph_add_alike(g, DL2_LAYER_INSTANCE_NORM, in, &out);
    if (layer) {
        const unsigned channels = g->values[in].channels;
        const struct dl2_tensor gamma = graph_channel_tensor(channels, true, DL2_INIT_CONSTANT, 1);
        const struct dl2_tensor beta = graph_channel_tensor(channels, true, DL2_INIT_CONSTANT, 0);
        layer->activation = activation;
        layer->tensor = graph_add_tensor(g, name, "weight", &gamma);
        graph_add_tensor(g, name, "bias", &beta);
    }
    return out;
}

int dl2_graph_concat(struct dl2_graph *g, int a, int b)
{
    if (g->status)
        return -1;
    const struct dl2_value v = g->values[a], w = g->values[b];
    char input[96];
    int out;
    if (v.sides.depth != w.sides.depth || v.sides.height != w.sides.height ||
        v.sides.width != w.sides.width) {
        g->status = dl2_error_set(
            g->error, DL2_ERR_ARGUMENT,
            "%s do not fit %s, which halves them and doubles them again: where %ux%ux%u meet "
            "%ux%ux%u a side was odd; choose sides that can be halved as often as it does",
            graph_input(g, input, sizeof input), g->arch, v.sides.depth, v.sides.height,
            v.sides.width, w.sides.depth, w.sides.height, w.sides.width);
        return -1;
    }
    struct dl2_layer *layer =
        graph_add_layer(g, DL2_LAYER_CONCAT, a, v.sides, v.channels + w.channels, &out);
    if (layer) {
        layer->residual = b;
        layer->residual_use = graph_use(g, b);
    }
    return out;
}

void dl2_graph_use_dice(struct dl2_graph *g)
{
    g->dice = true;
}

unsigned dl2_graph_channels(const struct dl2_graph *g, int value)
{
    return g->status ? 0 : g->values[value].channels;
}

/* -- memory, planned once -- */

static int graph_add_buffer(struct dl2_graph *g, size_t sample_size, size_t element_size, int step)
{
    struct dl2_buffer *buffer = graph_grow(g, &g->buffers, &g->buffer_count, sizeof *buffer);
    if (!buffer)
        return -1;
    size_t size;
    if (!dl2_size_mul(sample_size, g->batch, &size) || size > 0x7fffffff ||
        !dl2_size_mul(size, element_size, &size)) {
        char input[96];
        g->status = dl2_error_set(g->error, DL2_ERR_LIMIT,
                                  "%s: a batch of %u %s is too large: take a smaller one", g->arch,
                                  g->batch, graph_input(g, input, sizeof input));
        return -1;
    }
    size = (size + DL2_ALIGNMENT - 1) / DL2_ALIGNMENT * DL2_ALIGNMENT;
    *buffer = (struct dl2_buffer){.size = size, .first = step, .last = step};
    return (int)g->buffer_count - 1;
}

static void graph_live_until(struct dl2_graph *g, int buffer, int step)
{
    if (buffer >= 0 && g->buffers[buffer].last < step)
        g->buffers[buffer].last = step;
}

bool dl2_graph_wants_gradient(const struct dl2_graph *g, int value)
{
    return value > 0 || g->images_gradient;
}

static void graph_plan_forward(struct dl2_graph *g, size_t element_size, bool train)
{
    for (size_t v = 0; v < g->value_count && !g->status; v++) {
        const int buffer = graph_add_buffer(g, g->values[v].size, element_size, 0);
        g->values[v].buffer[train] = buffer;
    }
    for (size_t i = 0; i < g->layer_count && !g->status; i++) {
        const struct dl2_layer *layer = &g->layers[i];
        const struct dl2_value *values = g->values;
        int step = (int)i;
        struct dl2_buffer *out = &g->buffers[values[layer->out].buffer[train]];
        graph_live_until(g, values[layer->in].buffer[train], step);
        if (layer->residual >= 0)
            graph_live_until(g, values[layer->residual].buffer[train], step);
        out->first = out->last = step;
    }
    if (!g->status) /* logits can be asked for when all is done */
        graph_live_until(g, g->values[g->logits].buffer[train], 2 * (int)g->layer_count);
}

/* Each layer backward: what it reads must live, and where it leaves its input's gradient. */
static void graph_plan_backward(struct dl2_graph *g, size_t element_size)
{
    int layers = (int)g->layer_count;
    if (g->status)
        return;
    g->values[g->logits].gradient[0] =
        graph_add_buffer(g, g->values[g->logits].size, element_size, layers);
    for (int i = layers - 1; i >= 0 && !g->status; i--) {
        struct dl2_layer *layer = &g->layers[i];
        struct dl2_value *in = &g->values[layer->in], *out = &g->values[layer->out];
        int step = 2 * layers - i;
        for (unsigned u = 0; u < out->uses || !u; u++)
            graph_live_until(g, out->gradient[u], step);

        switch (layer->kind) {
        case DL2_LAYER_CONV:
        case DL2_LAYER_LINEAR:
        case DL2_LAYER_TRANSPOSED:
            graph_live_until(g, in->buffer[true], step);
            if (layer->activation != DL2_IDENTITY)
                graph_live_until(g, out->buffer[true], step);
            break;
        case DL2_LAYER_NORM:
        case DL2_LAYER_INSTANCE_NORM:
        case DL2_LAYER_ATTENTION:
            graph_live_until(g, in->buffer[true], step);
            graph_live_until(g, out->buffer[true], step);
            break;
        case DL2_LAYER_SMOOTH:
        case DL2_LAYER_LAYER_NORM:
            graph_live_until(g, in->buffer[true], step);
            break;
        case DL2_LAYER_GATE:
            graph_live_until(g, in->buffer[true], step);
            graph_live_until(g, g->values[layer->residual].buffer[true], step);
            break;
        case DL2_LAYER_ADD:
            if (layer->activation != DL2_IDENTITY)
                graph_live_until(g, out->buffer[true], step);
            break;
        case DL2_LAYER_MAX_POOL:
        case DL2_LAYER_AVERAGE_POOL:
        case DL2_LAYER_DROPOUT:
        case DL2_LAYER_TOKENS:
        case DL2_LAYER_CONCAT:
            break;
        }

        if (layer->kind == DL2_LAYER_CONCAT || layer->kind == DL2_LAYER_GATE) {
            struct dl2_value *other = &g->values[layer->residual];
            const size_t sizes[] = {in->size, other->size};
            if (dl2_graph_wants_gradient(g, layer->residual))
                other->gradient[layer->residual_use] =
                    graph_add_buffer(g, sizes[1], element_size, step);
            if (dl2_graph_wants_gradient(g, layer->in))
                in->gradient[layer->in_use] = graph_add_buffer(g, sizes[0], element_size, step);
            continue;
        }
        if (!dl2_graph_wants_gradient(g, layer->in))
            continue;
        int *dx = &in->gradient[layer->in_use];
        if (layer->kind == DL2_LAYER_ADD) {
            /* The gradient of both; dl2_graph_add() says who may change it. */
            g->values[layer->residual].gradient[layer->residual_use] = out->gradient[0];
            *dx = out->gradient[0];
        } else if (layer->residual >= 0) {
            /* The residual's gradient takes dy's place, dx that of dy2. */
            g->values[layer->residual].gradient[layer->residual_use] = out->gradient[0];
            *dx = out->uses == 2 ? out->gradient[1]
                                 : graph_add_buffer(g, in->size, element_size, step);
        } else if (layer->kind == DL2_LAYER_NORM || layer->kind == DL2_LAYER_INSTANCE_NORM ||
                   (layer->kind == DL2_LAYER_DROPOUT && !layer->samples) ||
                   layer->kind == DL2_LAYER_SMOOTH || layer->kind == DL2_LAYER_LAYER_NORM) {
            *dx = out->gradient[0];
        } else {
            *dx = graph_add_buffer(g, in->size, element_size, step);
        }
    }
}

static int graph_by_size(const void *left, const void *right)
{
    const struct dl2_buffer *a = *(struct dl2_buffer *const *)left;
    const struct dl2_buffer *b = *(struct dl2_buffer *const *)right;
    if (a->size != b->size)
        return a->size < b->size ? 1 : -1;
    return (a > b) - (a < b);
}

/* Largest first, each at the lowest place that is free for its lifetime.
 * Returns the bytes in all. */
static size_t graph_place_buffers(struct dl2_graph *g, size_t from, size_t to)
{
    size_t count = to - from, total = 0;
    struct dl2_buffer **order = dl2_calloc(count, sizeof *order);
    if (!order) {
        g->status = dl2_error_memory(g->error, "a network");
        return 0;
    }
    for (size_t i = 0; i < count; i++)
        order[i] = &g->buffers[from + i];
    qsort(order, count, sizeof *order, graph_by_size);
    for (size_t i = 0; i < count; i++) {
        struct dl2_buffer *buffer = order[i];
        buffer->offset = 0;
        for (bool moved = true; moved;) {
            moved = false;
            for (size_t j = 0; j < i; j++) {
                const struct dl2_buffer *other = order[j];
                bool together = buffer->first <= other->last && other->first <= buffer->last;
                if (together && buffer->offset < other->offset + other->size &&
                    other->offset < buffer->offset + buffer->size) {
                    buffer->offset = other->offset + other->size;
                    moved = true;
                }
            }
        }
        if (buffer->offset + buffer->size > total)
            total = buffer->offset + buffer->size;
    }
    free(order);
    return total;
}

/* Decayed parameters first, so that an update is two runs over memory. */
static void graph_place_tensors(struct dl2_graph *g)
{
    const size_t align = DL2_ALIGNMENT / sizeof(float);
    size_t *const ends[] = {&g->decayed, &g->parameters, &g->elements};
    size_t at = 0;
    for (int group = 0; group < 3; group++) {
        for (size_t i = 0; i < g->tensor_count; i++) {
            struct dl2_tensor *t = &g->tensors[i];
            if ((t->parameter ? t->decays ? 0 : 1 : 2) != group)
                continue;
            t->offset = at;
            at += (t->count + align - 1) / align * align;
        }
        *ends[group] = at;
    }
}

int dl2_graph_plan(struct dl2_graph *g, size_t element_size)
{
    if (g->status)
        return g->status;
    if (g->train) {
        graph_plan_forward(g, element_size, true);
        graph_plan_backward(g, element_size);
        g->arena = g->status ? 0 : graph_place_buffers(g, 0, g->buffer_count);
    }
    size_t from = g->buffer_count;
    graph_plan_forward(g, element_size, false);
    size_t evaluated = g->status ? 0 : graph_place_buffers(g, from, g->buffer_count);
    g->arena = g->arena > evaluated ? g->arena : evaluated;
    graph_place_tensors(g);
    return g->status;
}

double dl2_graph_multiply_adds(const struct dl2_graph *g)
{
    double sum = 0;
    for (size_t i = 0; i < g->layer_count; i++) {
        const struct dl2_layer *layer = &g->layers[i];
        const struct dl2_value *in = &g->values[layer->in], *out = &g->values[layer->out];
        if (layer->kind == DL2_LAYER_CONV)
            sum += (double)g->tensors[layer->tensor].count * (double)dl2_sides_count(out->sides);
        else if (layer->kind == DL2_LAYER_TRANSPOSED)
            sum += (double)g->tensors[layer->tensor].count * (double)dl2_sides_count(in->sides);
        else if (layer->kind == DL2_LAYER_LINEAR)
            sum += (double)g->tensors[layer->tensor].count * layer->rows;
        else if (layer->kind == DL2_LAYER_ATTENTION) /* scores, and sums of values */
            sum += 2.0 * in->sides.height * in->sides.height * out->channels;
    }
    return sum;
}

int dl2_graph_images(struct dl2_graph *g, unsigned frames, unsigned height, unsigned width,
                     unsigned channels)
{
    g->clips = frames > 0;
    return graph_add_value(g, (struct dl2_sides){frames ? frames : 1, height, width}, channels);
}

void dl2_graph_free(struct dl2_graph *g)
{
    for (size_t i = 0; i < g->tensor_count; i++)
        free(g->tensors[i].name);
    free(g->layers);
    free(g->values);
    free(g->tensors);
    free(g->buffers);
}

size_t dl2_graph_head(const struct dl2_graph *g)
{
    size_t layer = g->layer_count - 1;
    while (g->layers[layer].tensor < 0)
        layer--;
    return layer;
}

const char *dl2_graph_layer_name(const struct dl2_graph *g, const struct dl2_layer *layer)
{
    static const char *const kinds[] = {
        [DL2_LAYER_MAX_POOL] = "max pooling", [DL2_LAYER_AVERAGE_POOL] = "average pooling",
        [DL2_LAYER_ADD] = "addition",         [DL2_LAYER_SMOOTH] = "GELU or SiLU",
        [DL2_LAYER_ATTENTION] = "attention",  [DL2_LAYER_DROPOUT] = "dropout",
        [DL2_LAYER_CONCAT] = "concatenation", [DL2_LAYER_GATE] = "gate"};
    return layer->tensor >= 0 ? g->tensors[layer->tensor].name : kinds[layer->kind];
}

void dl2_graph_fresh(const struct dl2_graph *g, size_t tensor, uint64_t seed, float *values)
{
    const struct dl2_tensor *t = &g->tensors[tensor];
    uint64_t number = 0; /* among the parameters */
    struct dl2_random random;
    for (size_t i = 0; i < tensor; i++)
        number += g->tensors[i].parameter;
    dl2_random_init(&random, seed, DL2_RANDOM_INIT, number, 0);
    for (size_t k = 0; k < t->count; k++)
        switch (t->init) {
        case DL2_INIT_CONSTANT:
            values[k] = t->limit;
            break;
        case DL2_INIT_HE_FAN_OUT:
        case DL2_INIT_HE_FAN_IN:
        case DL2_INIT_NORMAL:
        case DL2_INIT_LECUN:
            values[k] = (float)(t->limit * dl2_random_normal(&random));
            break;
        case DL2_INIT_UNIFORM_FAN_IN:
        case DL2_INIT_HE_UNIFORM:
        case DL2_INIT_UNIFORM_WEIGHT:
        case DL2_INIT_UNIFORM_OUT:
        case DL2_INIT_XAVIER_UNIFORM:
            values[k] = (float)(t->limit * (2 * dl2_random_uniform(&random) - 1));
            break;
        }
}
