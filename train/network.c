/*
 * A network is a list of layers over numbered values. It is planned once: every buffer (a value, or
 * the gradient of one use of it) gets a lifetime in layer steps, and buffers whose lifetimes do
 * not meet share memory. What depends on the batch's size (the device's plans) is kept per size.
 *
 * Steps run 0 .. L-1 forward, L for the loss, then layer i goes backward at step 2L - i:
 *
 *     step     0    1    2   ...  L-1   L   L+1  ...  2L
 *     layer    0    1    2   ...  L-1  loss L-1  ...   0
 */
#include "train/network.h"
#include "common/memory.h"
#include "common/random.h"
#include "train/arch.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    PLAN_SETS = 4,             /* batch sizes that plans are kept for */
    ALIGN = DL2_ALIGNMENT / 4, /* floats */
    USES = 2,                  /* of a value */
};

#define NORM_EPSILON  1e-5f
#define NORM_MOMENTUM 0.1f

enum layer_kind { CONV, NORM, RELU, MAX_POOL, AVERAGE_POOL, LINEAR, DROPOUT };

struct layer {
    enum layer_kind kind;
    int in, residual, out;    /* values */
    int in_use, residual_use; /* which use of them this is */
    int tensor;               /* the first of its tensors, or -1 */
    bool bias;                /* CONV, LINEAR: the second tensor */
    bool relu;                /* NORM */
    unsigned kernel, stride, pad;
    float rate;
    unsigned number; /* of dropout layers: names the random stream */
};

struct value {
    unsigned height, width, channels;
    unsigned uses;
    size_t size; /* of one sample */
    int buffer_train, buffer_eval;
    int gradient[USES]; /* buffers, or -1 */
};

struct buffer {
    size_t size;     /* floats, for the whole batch */
    int first, last; /* steps */
    size_t offset;   /* in the arena */
};

struct tensor {
    struct dl2_network_tensor info;
    char *name;
    unsigned out, height, width, in; /* OHWI as kept */
    enum dl2_init init;
    bool constant; /* batch norm: starts as `start` */
    float start;
    float limit;   /* bound or standard deviation of fresh values */
    size_t offset; /* in weights (and gradient and momentum, where it is a parameter) */
};

union plan {
    struct dl2_conv *conv;
    struct dl2_norm *norm;
    struct dl2_pool *pool;
    struct dl2_linear *linear;
};

struct plan_set {
    unsigned count; /* batch size; 0: free */
    uint64_t used;  /* when last */
    struct dl2_ingest *ingest;
    struct dl2_loss *loss_train, *loss_eval;
    union plan *layers;
};

struct dl2_network {
    struct dl2_device *device;
    struct dl2_network_config config;

    struct layer *layers;
    struct value *values;
    struct tensor *tensors;
    struct buffer *buffers;
    size_t layer_count, value_count, tensor_count, buffer_count;
    int logits; /* value */

    float *arena;   /* activations and their gradients */
    float *weights; /* decayed parameters, other parameters, buffers */
    float *gradient, *momentum;
    size_t decayed, parameters; /* floats in weights up to there */

    uint8_t *images;
    int32_t *labels;
    uint32_t *partner;
    float *losses;
    struct dl2_loss_sums *sums;

    struct plan_set sets[PLAN_SETS];
    uint64_t clock;
    unsigned last_count; /* of the last batch */
    bool last_train;
};

/* -- the builder that recipes call -- */

struct dl2_builder {
    struct dl2_network *network;
    const char *arch;
    struct dl2_error *error;
    unsigned dropouts;
    int status;
};

/* Room for one more item in a list; NULL, and the builder fails, when there is none. */
static void *grow(struct dl2_builder *b, void *list, size_t *count, size_t size)
{
    char **items = list;
    void *grown = b->status ? NULL : dl2_realloc(*items, *count + 1, size);
    if (!grown) {
        if (!b->status)
            b->status = dl2_error_set(b->error, DL2_ERR_MEMORY, "out of memory for a network");
        return NULL;
    }
    *items = grown;
    char *item = *items + size * (*count)++;
    memset(item, 0, size);
    return item;
}

static int add_value(struct dl2_builder *b, unsigned height, unsigned width, unsigned channels)
{
    struct dl2_network *net = b->network;
    struct value *v = grow(b, &net->values, &net->value_count, sizeof *v);
    if (!v)
        return -1;
    *v = (struct value){.height = height, .width = width, .channels = channels};
    v->buffer_train = v->buffer_eval = -1;
    for (int i = 0; i < USES; i++)
        v->gradient[i] = -1;
    if (!dl2_size_mul((size_t)height * width, channels, &v->size) || v->size > 0x7fffffff) {
        b->status = dl2_error_set(b->error, DL2_ERR_LIMIT, "%s: images of %ux%u are too large",
                                  b->arch, net->config.width, net->config.height);
        return -1;
    }
    return (int)net->value_count - 1;
}

static int use(struct dl2_builder *b, int value)
{
    struct value *v = &b->network->values[value];
    if (v->uses == USES)
        b->status = dl2_error_set(b->error, DL2_ERR_UNSUPPORTED, "%s: a value is used %d times",
                                  b->arch, USES + 1);
    return b->status ? 0 : (int)v->uses++;
}

/* A layer from `in` to a new value of that size; *out is the value, -1 on failure. */
static struct layer *add_layer(struct dl2_builder *b, enum layer_kind kind, int in, unsigned height,
                               unsigned width, unsigned channels, int *out)
{
    struct dl2_network *net = b->network;
    *out = -1;
    if (b->status)
        return NULL;
    struct layer *layer = grow(b, &net->layers, &net->layer_count, sizeof *layer);
    if (!layer)
        return NULL;
    layer->kind = kind;
    layer->in = in;
    layer->in_use = use(b, in);
    layer->residual = -1;
    layer->tensor = -1;
    layer->out = *out = add_value(b, height, width, channels);
    return b->status ? NULL : layer;
}

static int add_tensor(struct dl2_builder *b, const char *layer, const char *part,
                      const struct tensor *model)
{
    struct dl2_network *net = b->network;
    struct tensor *t = grow(b, &net->tensors, &net->tensor_count, sizeof *t);
    if (!t)
        return -1;
    *t = *model;
    size_t length = strlen(layer) + strlen(part) + 2;
    t->name = malloc(length);
    if (!t->name) {
        b->status = dl2_error_set(b->error, DL2_ERR_MEMORY, "out of memory for a network");
        return -1;
    }
    snprintf(t->name, length, "%s.%s", layer, part);
    t->info.name = t->name;
    t->info.count = (size_t)t->out * t->height * t->width * t->in;
    if (net->config.norm_decay)
        t->info.decays = t->info.parameter;
    return (int)net->tensor_count - 1;
}

/* A weight [out][height][width][in] and its bias where it has one; the index of the first. */
static int add_weights(struct dl2_builder *b, const char *name, unsigned out, unsigned height,
                       unsigned width, unsigned in, bool flat, bool bias, enum dl2_init init)
{
    double taps = (double)height * width;
    struct tensor t = {.out = out, .height = height, .width = width, .in = in, .init = init};
    t.info = (struct dl2_network_tensor){.parameter = true, .decays = true};
    t.limit = (float)(init == DL2_INIT_HE_FAN_OUT ? sqrt(2 / (out * taps)) : 1 / sqrt(in * taps));
    t.info.rank = flat ? 2 : 4;
    t.info.dims[0] = out;
    t.info.dims[1] = flat ? height * width * in : in;
    t.info.dims[2] = flat ? 0 : height;
    t.info.dims[3] = flat ? 0 : width;
    int first = add_tensor(b, name, "weight", &t);
    if (bias) {
        t.height = t.width = t.in = 1;
        t.info = (struct dl2_network_tensor){.dims = {out}, .rank = 1, .parameter = true};
        add_tensor(b, name, "bias", &t);
    }
    return first;
}

static void too_small(struct dl2_builder *b, const char *layer)
{
    b->status = dl2_error_set(b->error, DL2_ERR_ARGUMENT,
                              "images of %ux%u are too small for %s: nothing is left for %s",
                              b->network->config.width, b->network->config.height, b->arch, layer);
}

int dl2_build_conv(struct dl2_builder *b, const char *name, int in, unsigned channels,
                   unsigned kernel, unsigned stride, unsigned pad, enum dl2_init init)
{
    if (b->status)
        return -1;
    struct value v = b->network->values[in];
    unsigned height = dl2_window_out(v.height, kernel, stride, pad);
    unsigned width = dl2_window_out(v.width, kernel, stride, pad);
    if (!height || !width) {
        too_small(b, name);
        return -1;
    }
    bool bias = init == DL2_INIT_UNIFORM_FAN_IN;
    int tensor = add_weights(b, name, channels, kernel, kernel, v.channels, false, bias, init);
    int out;
    struct layer *layer = add_layer(b, CONV, in, height, width, channels, &out);
    if (layer) {
        layer->tensor = tensor;
        layer->bias = bias;
        layer->kernel = kernel;
        layer->stride = stride;
        layer->pad = pad;
    }
    return out;
}

int dl2_build_norm_parameters(struct dl2_builder *b, const char *name, unsigned channels)
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
        struct tensor t = {.out = channels, .height = 1, .width = 1, .in = 1, .constant = true};
        t.start = parts[i].start;
        t.info = (struct dl2_network_tensor){.dims = {channels}, .rank = 1};
        t.info.parameter = parts[i].parameter;
        int index = add_tensor(b, name, parts[i].part, &t);
        first = i ? first : index;
    }
    return first;
}

int dl2_build_norm_layer(struct dl2_builder *b, int parameters, int in, int residual, bool relu)
{
    if (b->status)
        return -1;
    struct value v = b->network->values[in];
    int out;
    struct layer *layer = add_layer(b, NORM, in, v.height, v.width, v.channels, &out);
    if (layer) {
        layer->tensor = parameters;
        layer->relu = relu;
        layer->residual = residual;
        layer->residual_use = residual < 0 ? 0 : use(b, residual);
    }
    return out;
}

int dl2_build_norm_relu(struct dl2_builder *b, const char *name, int in)
{
    if (b->status)
        return -1;
    int parameters = dl2_build_norm_parameters(b, name, dl2_build_channels(b, in));
    return dl2_build_norm_layer(b, parameters, in, -1, true);
}

int dl2_build_relu(struct dl2_builder *b, int in)
{
    if (b->status)
        return -1;
    struct value v = b->network->values[in];
    int out;
    add_layer(b, RELU, in, v.height, v.width, v.channels, &out);
    return out;
}

int dl2_build_max_pool(struct dl2_builder *b, int in, unsigned kernel, unsigned stride,
                       unsigned pad)
{
    if (b->status)
        return -1;
    struct value v = b->network->values[in];
    unsigned height = dl2_window_out(v.height, kernel, stride, pad);
    unsigned width = dl2_window_out(v.width, kernel, stride, pad);
    if (!height || !width) {
        too_small(b, "a max pooling");
        return -1;
    }
    int out;
    struct layer *layer = add_layer(b, MAX_POOL, in, height, width, v.channels, &out);
    if (layer) {
        layer->kernel = kernel;
        layer->stride = stride;
        layer->pad = pad;
    }
    return out;
}

int dl2_build_average_pool(struct dl2_builder *b, int in, unsigned height, unsigned width)
{
    if (b->status)
        return -1;
    int out;
    add_layer(b, AVERAGE_POOL, in, height, width, b->network->values[in].channels, &out);
    return out;
}

int dl2_build_dropout(struct dl2_builder *b, int in, float rate)
{
    if (b->status)
        return -1;
    struct value v = b->network->values[in];
    int out;
    struct layer *layer = add_layer(b, DROPOUT, in, v.height, v.width, v.channels, &out);
    if (layer) {
        layer->rate = rate;
        layer->number = b->dropouts++;
    }
    return out;
}

int dl2_build_linear(struct dl2_builder *b, const char *name, int in, unsigned out_features)
{
    if (b->status)
        return -1;
    struct value v = b->network->values[in];
    int tensor = add_weights(b, name, out_features, v.height, v.width, v.channels, true, true,
                             DL2_INIT_UNIFORM_FAN_IN);
    int out;
    struct layer *layer = add_layer(b, LINEAR, in, 1, 1, out_features, &out);
    if (layer) {
        layer->tensor = tensor;
        layer->bias = true;
    }
    return out;
}

unsigned dl2_build_channels(const struct dl2_builder *b, int value)
{
    return b->status ? 0 : b->network->values[value].channels;
}

/* -- memory, planned once -- */

static int add_buffer(struct dl2_builder *b, size_t sample_size, int step)
{
    struct dl2_network *net = b->network;
    struct buffer *buffer = grow(b, &net->buffers, &net->buffer_count, sizeof *buffer);
    if (!buffer)
        return -1;
    size_t size;
    if (!dl2_size_mul(sample_size, net->config.batch, &size) || size > 0x7fffffff) {
        b->status =
            dl2_error_set(b->error, DL2_ERR_LIMIT,
                          "%s: a batch of %u images of %ux%u is too large: take a smaller one",
                          b->arch, net->config.batch, net->config.width, net->config.height);
        return -1;
    }
    *buffer =
        (struct buffer){.size = (size + ALIGN - 1) / ALIGN * ALIGN, .first = step, .last = step};
    return (int)net->buffer_count - 1;
}

static void live_until(struct dl2_network *net, int buffer, int step)
{
    if (buffer >= 0 && net->buffers[buffer].last < step)
        net->buffers[buffer].last = step;
}

/* Is the gradient of a value wanted? All but the images'. */
static bool wants_gradient(int value)
{
    return value > 0;
}

static void plan_forward(struct dl2_builder *b, bool train)
{
    struct dl2_network *net = b->network;
    for (size_t v = 0; v < net->value_count && !b->status; v++) {
        int buffer = add_buffer(b, net->values[v].size, 0);
        *(train ? &net->values[v].buffer_train : &net->values[v].buffer_eval) = buffer;
    }
    for (size_t i = 0; i < net->layer_count && !b->status; i++) {
        const struct layer *layer = &net->layers[i];
        const struct value *values = net->values;
        int step = (int)i;
        int in = train ? values[layer->in].buffer_train : values[layer->in].buffer_eval;
        int out = train ? values[layer->out].buffer_train : values[layer->out].buffer_eval;
        live_until(net, in, step);
        if (layer->residual >= 0)
            live_until(net,
                       train ? values[layer->residual].buffer_train
                             : values[layer->residual].buffer_eval,
                       step);
        net->buffers[out].first = net->buffers[out].last = step;
    }
    if (!b->status) {
        const struct value *logits = &net->values[net->logits];
        /* Logits can be asked for when all is done. */
        live_until(net, train ? logits->buffer_train : logits->buffer_eval,
                   2 * (int)net->layer_count);
    }
}

/* Each layer backward: what it reads must live, and where it leaves its input's gradient. */
static void plan_backward(struct dl2_builder *b)
{
    struct dl2_network *net = b->network;
    int layers = (int)net->layer_count;
    if (b->status)
        return;
    net->values[net->logits].gradient[0] = add_buffer(b, net->values[net->logits].size, layers);
    for (int i = layers - 1; i >= 0 && !b->status; i--) {
        struct layer *layer = &net->layers[i];
        struct value *in = &net->values[layer->in], *out = &net->values[layer->out];
        int step = 2 * layers - i;
        for (unsigned u = 0; u < out->uses || !u; u++)
            live_until(net, out->gradient[u], step);

        switch (layer->kind) {
        case CONV:
        case LINEAR:
            live_until(net, in->buffer_train, step);
            break;
        case NORM:
            live_until(net, in->buffer_train, step);
            live_until(net, out->buffer_train, step);
            break;
        case RELU:
            live_until(net, out->buffer_train, step);
            break;
        case MAX_POOL:
        case AVERAGE_POOL:
        case DROPOUT:
            break;
        }

        if (!wants_gradient(layer->in))
            continue;
        int *dx = &in->gradient[layer->in_use];
        if (layer->residual >= 0) {
            /* The residual's gradient takes dy's place, dx that of dy2. */
            net->values[layer->residual].gradient[layer->residual_use] = out->gradient[0];
            *dx = out->uses == 2 ? out->gradient[1] : add_buffer(b, in->size, step);
        } else if (layer->kind == NORM || layer->kind == RELU || layer->kind == DROPOUT) {
            *dx = out->gradient[0];
        } else {
            *dx = add_buffer(b, in->size, step);
        }
    }
}

static int by_size(const void *left, const void *right)
{
    const struct buffer *a = *(struct buffer *const *)left, *b = *(struct buffer *const *)right;
    if (a->size != b->size)
        return a->size < b->size ? 1 : -1;
    return (a > b) - (a < b);
}

/* Largest first, each at the lowest place that is free for its lifetime. Returns the floats in all.
 */
static size_t place_buffers(struct dl2_builder *b, size_t from, size_t to)
{
    struct dl2_network *net = b->network;
    size_t count = to - from, total = 0;
    struct buffer **order = dl2_calloc(count, sizeof *order);
    if (!order) {
        b->status = dl2_error_set(b->error, DL2_ERR_MEMORY, "out of memory for a network");
        return 0;
    }
    for (size_t i = 0; i < count; i++)
        order[i] = &net->buffers[from + i];
    qsort(order, count, sizeof *order, by_size);
    for (size_t i = 0; i < count; i++) {
        struct buffer *buffer = order[i];
        buffer->offset = 0;
        for (bool moved = true; moved;) {
            moved = false;
            for (size_t j = 0; j < i; j++) {
                const struct buffer *other = order[j];
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

static size_t plan_memory(struct dl2_builder *b)
{
    struct dl2_network *net = b->network;
    size_t trained = 0;
    if (net->config.train) {
        plan_forward(b, true);
        plan_backward(b);
        trained = b->status ? 0 : place_buffers(b, 0, net->buffer_count);
    }
    size_t from = net->buffer_count;
    plan_forward(b, false);
    size_t evaluated = b->status ? 0 : place_buffers(b, from, net->buffer_count);
    return trained > evaluated ? trained : evaluated;
}

/* Decayed parameters first, so that an update is two runs over memory. Returns the floats in all.
 */
static size_t place_tensors(struct dl2_network *net)
{
    size_t at = 0;
    for (int group = 0; group < 3; group++) {
        for (size_t i = 0; i < net->tensor_count; i++) {
            struct tensor *t = &net->tensors[i];
            if ((t->info.parameter ? t->info.decays ? 0 : 1 : 2) != group)
                continue;
            t->offset = at;
            at += (t->info.count + ALIGN - 1) / ALIGN * ALIGN;
        }
        if (group == 0)
            net->decayed = at;
        if (group == 1)
            net->parameters = at;
    }
    return at;
}

/* -- plans for a batch size -- */

static void free_plans(struct dl2_network *net, struct plan_set *set)
{
    const struct dl2_device_class *ops = net->device->ops;
    for (size_t i = 0; set->layers && i < net->layer_count; i++)
        switch (net->layers[i].kind) {
        case CONV:
            ops->conv_free(set->layers[i].conv);
            break;
        case NORM:
            ops->norm_free(set->layers[i].norm);
            break;
        case MAX_POOL:
        case AVERAGE_POOL:
            ops->pool_free(set->layers[i].pool);
            break;
        case LINEAR:
            ops->linear_free(set->layers[i].linear);
            break;
        case RELU:
        case DROPOUT:
            break;
        }
    ops->ingest_free(set->ingest);
    ops->loss_free(set->loss_train);
    ops->loss_free(set->loss_eval);
    free(set->layers);
    *set = (struct plan_set){0};
}

static int plan_layer(struct dl2_network *net, const struct layer *layer, unsigned count,
                      union plan *plan, struct dl2_error *error)
{
    struct dl2_device *device = net->device;
    const struct value *in = &net->values[layer->in], *out = &net->values[layer->out];
    switch (layer->kind) {
    case CONV: {
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
            .bias = layer->bias,
        };
        return device->ops->conv_create(device, &shape, &plan->conv, error);
    }
    case NORM: {
        struct dl2_norm_shape shape = {
            .rows = (size_t)count * in->height * in->width,
            .channels = in->channels,
            .epsilon = NORM_EPSILON,
            .momentum = NORM_MOMENTUM,
            .relu = layer->relu,
            .residual = layer->residual >= 0,
        };
        return device->ops->norm_create(device, &shape, &plan->norm, error);
    }
    case MAX_POOL:
    case AVERAGE_POOL: {
        struct dl2_pool_shape shape = {
            .kind = layer->kind == MAX_POOL ? DL2_POOL_MAX : DL2_POOL_ADAPTIVE_AVERAGE,
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
    case LINEAR: {
        struct dl2_linear_shape shape = {count, (unsigned)in->size, out->channels, true};
        return device->ops->linear_create(device, &shape, &plan->linear, error);
    }
    case RELU:
    case DROPOUT:
        break;
    }
    return DL2_OK;
}

static int fill_plans(struct dl2_network *net, struct plan_set *set, unsigned count,
                      struct dl2_error *error)
{
    struct dl2_device *device = net->device;
    const struct dl2_network_config *config = &net->config;
    set->layers = dl2_calloc(net->layer_count, sizeof *set->layers);
    if (!set->layers)
        return dl2_error_set(error, DL2_ERR_MEMORY, "out of memory for a network");
    struct dl2_ingest_shape ingest = {count, config->height, config->width, config->channels, {0},
                                      {0}};
    memcpy(ingest.mean, config->mean, sizeof ingest.mean);
    memcpy(ingest.std, config->std, sizeof ingest.std);
    struct dl2_loss_shape loss = {count, config->classes, config->smoothing};
    DL2_TRY(device->ops->ingest_create(device, &ingest, &set->ingest, error));
    DL2_TRY(device->ops->loss_create(device, &loss, &set->loss_train, error));
    loss.smoothing = 0;
    DL2_TRY(device->ops->loss_create(device, &loss, &set->loss_eval, error));
    for (size_t i = 0; i < net->layer_count; i++)
        DL2_TRY(plan_layer(net, &net->layers[i], count, &set->layers[i], error));
    set->count = count;
    return DL2_OK;
}

/* The plans for `count` samples, made if need be in the place of those unused for longest. */
static int find_plans(struct dl2_network *net, unsigned count, struct plan_set **out,
                      struct dl2_error *error)
{
    struct plan_set *oldest = &net->sets[0];
    for (int i = 0; i < PLAN_SETS; i++) {
        struct plan_set *set = &net->sets[i];
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
        free_plans(net, oldest);
    }
    int status = fill_plans(net, oldest, count, error);
    if (status < 0) {
        free_plans(net, oldest);
        return status;
    }
    oldest->used = ++net->clock;
    *out = oldest;
    return DL2_OK;
}

/* -- running -- */

static float *at(const struct dl2_network *net, int buffer)
{
    return net->arena + net->buffers[buffer].offset;
}

static float *value_at(const struct dl2_network *net, int value, bool train)
{
    const struct value *v = &net->values[value];
    return at(net, train ? v->buffer_train : v->buffer_eval);
}

static float *tensor_at(const struct dl2_network *net, int index)
{
    return net->weights + net->tensors[index].offset;
}

static float *gradient_at(const struct dl2_network *net, int index)
{
    return net->gradient + net->tensors[index].offset;
}

static void forward(struct dl2_network *net, const struct plan_set *set, bool train, uint64_t step)
{
    struct dl2_device *device = net->device;
    const struct dl2_device_class *ops = device->ops;
    for (size_t i = 0; i < net->layer_count; i++) {
        const struct layer *layer = &net->layers[i];
        const union plan *plan = &set->layers[i];
        const float *x = value_at(net, layer->in, train);
        float *y = value_at(net, layer->out, train);
        size_t count = net->values[layer->out].size * set->count;
        int t = layer->tensor;
        switch (layer->kind) {
        case CONV:
            ops->conv_forward(plan->conv, x, tensor_at(net, t),
                              layer->bias ? tensor_at(net, t + 1) : NULL, y);
            break;
        case LINEAR:
            ops->linear_forward(plan->linear, x, tensor_at(net, t), tensor_at(net, t + 1), y);
            break;
        case NORM: {
            const float *residual =
                layer->residual >= 0 ? value_at(net, layer->residual, train) : NULL;
            float *gamma = tensor_at(net, t), *beta = tensor_at(net, t + 1);
            float *mean = tensor_at(net, t + 2), *var = tensor_at(net, t + 3);
            if (train)
                ops->norm_train(plan->norm, x, residual, gamma, beta, mean, var, y);
            else
                ops->norm_eval(plan->norm, x, residual, gamma, beta, mean, var, y);
            break;
        }
        case RELU:
            ops->relu_forward(device, x, y, count);
            break;
        case MAX_POOL:
        case AVERAGE_POOL:
            ops->pool_forward(plan->pool, x, y);
            break;
        case DROPOUT:
            if (train)
                ops->dropout(device, x, y, count, layer->rate, net->config.seed, step,
                             layer->number);
            else
                ops->copy(device, y, x, count * sizeof *y);
            break;
        }
    }
}

static void backward(struct dl2_network *net, const struct plan_set *set, uint64_t step,
                     bool accumulate)
{
    struct dl2_device *device = net->device;
    const struct dl2_device_class *ops = device->ops;
    for (size_t i = net->layer_count; i-- > 0;) {
        const struct layer *layer = &net->layers[i];
        const union plan *plan = &set->layers[i];
        const struct value *in = &net->values[layer->in], *out = &net->values[layer->out];
        const float *x = value_at(net, layer->in, true), *y = value_at(net, layer->out, true);
        float *dy = at(net, out->gradient[0]);
        float *dy2 = out->uses == 2 ? at(net, out->gradient[1]) : NULL;
        float *dx = wants_gradient(layer->in) ? at(net, in->gradient[layer->in_use]) : NULL;
        size_t count = out->size * set->count;
        int t = layer->tensor;
        if (dy2 && layer->kind != NORM)
            ops->add(device, dy, dy2, dy, count);
        switch (layer->kind) {
        case CONV:
            ops->conv_backward_weights(plan->conv, x, dy, gradient_at(net, t),
                                       layer->bias ? gradient_at(net, t + 1) : NULL, accumulate);
            if (dx)
                ops->conv_backward_data(plan->conv, dy, tensor_at(net, t), dx);
            break;
        case LINEAR:
            ops->linear_backward_weights(plan->linear, x, dy, gradient_at(net, t),
                                         gradient_at(net, t + 1), accumulate);
            if (dx)
                ops->linear_backward_data(plan->linear, dy, tensor_at(net, t), dx);
            break;
        case NORM:
            ops->norm_backward(plan->norm, x, y, dy, dy2, tensor_at(net, t), tensor_at(net, t + 1),
                               dx, layer->residual >= 0 ? dy : NULL, gradient_at(net, t),
                               gradient_at(net, t + 1), accumulate);
            break;
        case RELU:
            ops->relu_backward(device, y, dy, dx, count);
            break;
        case MAX_POOL:
        case AVERAGE_POOL:
            ops->pool_backward(plan->pool, dy, dx);
            break;
        case DROPOUT:
            ops->dropout(device, dy, dx, count, layer->rate, net->config.seed, step, layer->number);
            break;
        }
    }
}

static int check_input(const struct dl2_network *net, const struct dl2_network_input *input,
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

/* What both kinds of call begin with. */
static int take_input(struct dl2_network *net, const struct dl2_network_input *input, bool train,
                      struct plan_set **set, struct dl2_error *error)
{
    struct dl2_device *device = net->device;
    const struct dl2_device_class *ops = device->ops;
    DL2_TRY(check_input(net, input, train, error));
    DL2_TRY(find_plans(net, input->count, set, error));
    const struct dl2_network_config *config = &net->config;
    size_t size = (size_t)config->height * config->width * config->channels;
    const uint32_t *partner = train && input->partner ? net->partner : NULL;
    ops->upload(device, net->images, input->images, size * input->count);
    ops->upload(device, net->labels, input->labels, input->count * sizeof *net->labels);
    if (partner)
        ops->upload(device, net->partner, input->partner, input->count * sizeof *net->partner);
    ops->ingest_run((*set)->ingest, net->images, partner, input->lambda, value_at(net, 0, train));
    net->last_count = input->count;
    net->last_train = train;
    return DL2_OK;
}

int dl2_network_train(struct dl2_network *net, const struct dl2_network_input *input,
                      const struct dl2_network_step *step, struct dl2_error *error)
{
    if (!net->config.train)
        return dl2_error_set(error, DL2_ERR_ARGUMENT,
                             "a network made for evaluation cannot be trained");
    struct plan_set *set;
    DL2_TRY(take_input(net, input, true, &set, error));
    forward(net, set, true, step->step);
    net->device->ops->loss_run(set->loss_train, value_at(net, net->logits, true), net->labels,
                               input->partner ? net->partner : NULL, input->lambda, step->scale,
                               net->losses, at(net, net->values[net->logits].gradient[0]),
                               net->sums);
    backward(net, set, step->step, step->accumulate);
    return DL2_OK;
}

int dl2_network_evaluate(struct dl2_network *net, const struct dl2_network_input *input,
                         struct dl2_error *error)
{
    struct plan_set *set;
    DL2_TRY(take_input(net, input, false, &set, error));
    forward(net, set, false, 0);
    net->device->ops->loss_run(set->loss_eval, value_at(net, net->logits, false), net->labels, NULL,
                               1, 1, net->losses, NULL, net->sums);
    return DL2_OK;
}

void dl2_network_wait_input(struct dl2_network *net)
{
    net->device->ops->wait_uploads(net->device);
}

int dl2_network_update(struct dl2_network *net, const struct dl2_sgd *sgd, struct dl2_error *error)
{
    if (!net->config.train)
        return dl2_error_set(error, DL2_ERR_ARGUMENT,
                             "a network made for evaluation cannot be trained");
    struct dl2_sgd without = *sgd;
    without.weight_decay = 0;
    size_t rest = net->decayed;
    net->device->ops->sgd_step(net->device, net->weights, net->gradient, net->momentum, rest, sgd);
    net->device->ops->sgd_step(net->device, net->weights + rest, net->gradient + rest,
                               net->momentum + rest, net->parameters - rest, &without);
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
    size_t count = net->last_count;
    if (losses)
        DL2_TRY(device->ops->download(device, losses, net->losses, count * sizeof *losses, error));
    if (logits && count)
        DL2_TRY(device->ops->download(device, logits, value_at(net, net->logits, net->last_train),
                                      count * net->config.classes * sizeof *logits, error));
    return DL2_OK;
}

/* -- tensors by name -- */

size_t dl2_network_tensor_count(const struct dl2_network *net)
{
    return net->tensor_count;
}

void dl2_network_tensor(const struct dl2_network *net, size_t index,
                        struct dl2_network_tensor *tensor)
{
    *tensor = net->tensors[index].info;
}

size_t dl2_network_parameter_count(const struct dl2_network *net)
{
    size_t count = 0;
    for (size_t i = 0; i < net->tensor_count; i++)
        count += net->tensors[i].info.parameter ? net->tensors[i].info.count : 0;
    return count;
}

static int part_at(struct dl2_network *net, size_t index, enum dl2_network_part part, float **out,
                   struct dl2_error *error)
{
    const struct tensor *t = &net->tensors[index];
    float *base = part == DL2_NETWORK_VALUE      ? net->weights
                  : part == DL2_NETWORK_GRADIENT ? net->gradient
                                                 : net->momentum;
    if (!base || (part != DL2_NETWORK_VALUE && !t->info.parameter))
        return dl2_error_set(error, DL2_ERR_ARGUMENT, "%s has no gradient and no momentum here",
                             t->name);
    *out = base + t->offset;
    return DL2_OK;
}

/* OHWI <-> OIHW. */
static void permute(const struct tensor *t, const float *from, float *to, bool to_pytorch)
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
    const struct tensor *t = &net->tensors[index];
    size_t bytes = t->info.count * sizeof(float);
    float *from;
    DL2_TRY(part_at(net, index, part, &from, error));
    float *kept = malloc(bytes);
    if (!kept)
        return dl2_error_set(error, DL2_ERR_MEMORY, "out of memory for %s", t->name);
    int status = net->device->ops->download(net->device, kept, from, bytes, error);
    if (status == DL2_OK)
        permute(t, kept, values, true);
    free(kept);
    return status;
}

int dl2_network_set(struct dl2_network *net, size_t index, enum dl2_network_part part,
                    const float *values, struct dl2_error *error)
{
    const struct tensor *t = &net->tensors[index];
    size_t bytes = t->info.count * sizeof(float);
    float *to;
    DL2_TRY(part_at(net, index, part, &to, error));
    float *kept = malloc(bytes);
    if (!kept)
        return dl2_error_set(error, DL2_ERR_MEMORY, "out of memory for %s", t->name);
    permute(t, values, kept, false);
    net->device->ops->upload(net->device, to, kept, bytes);
    net->device->ops->wait_uploads(net->device);
    free(kept);
    return DL2_OK;
}

/* -- making and unmaking -- */

const char *dl2_network_arch_at(size_t index, const char **summary)
{
    const struct dl2_arch *arch = dl2_arch_at(index);
    if (arch && summary)
        *summary = arch->summary;
    return arch ? arch->name : NULL;
}

static const struct dl2_arch *find_arch(const char *name, struct dl2_error *error)
{
    char known[256] = "";
    const struct dl2_arch *arch;
    for (size_t i = 0; (arch = dl2_arch_at(i)); i++) {
        if (!strcmp(arch->name, name))
            return arch;
        size_t used = strlen(known);
        snprintf(known + used, sizeof known - used, "%s%s", i ? ", " : "", arch->name);
    }
    dl2_error_set(error, DL2_ERR_ARGUMENT, "there is no architecture '%s'; there are: %s", name,
                  known);
    return NULL;
}

/* Drawn in PyTorch's element order, so that a seed means the same for every device. */
static int fresh_weights(struct dl2_network *net, struct dl2_error *error)
{
    size_t parameter = 0;
    for (size_t i = 0; i < net->tensor_count; i++) {
        const struct tensor *t = &net->tensors[i];
        float *values = dl2_calloc(t->info.count, sizeof *values);
        if (!values)
            return dl2_error_set(error, DL2_ERR_MEMORY, "out of memory for %s", t->name);
        struct dl2_random random;
        dl2_random_init(&random, net->config.seed, DL2_RANDOM_INIT, parameter, 0);
        parameter += t->info.parameter;
        for (size_t k = 0; k < t->info.count; k++)
            if (t->constant)
                values[k] = t->start;
            else if (t->init == DL2_INIT_HE_FAN_OUT)
                values[k] = (float)(t->limit * dl2_random_normal(&random));
            else
                values[k] = (float)(t->limit * (2 * dl2_random_uniform(&random) - 1));
        int status = dl2_network_set(net, i, DL2_NETWORK_VALUE, values, error);
        free(values);
        DL2_TRY(status);
    }
    return DL2_OK;
}

static int alloc_floats(struct dl2_network *net, size_t count, float **out, struct dl2_error *error)
{
    size_t bytes;
    if (!dl2_size_mul(count, sizeof **out, &bytes))
        return dl2_error_set(error, DL2_ERR_LIMIT, "a network passes the address space");
    void *memory;
    DL2_TRY(net->device->ops->alloc(net->device, bytes, &memory, error));
    *out = memory;
    return DL2_OK;
}

static int alloc_bytes(struct dl2_network *net, size_t count, size_t size, void **out,
                       struct dl2_error *error)
{
    size_t bytes;
    if (!dl2_size_mul(count, size, &bytes))
        return dl2_error_set(error, DL2_ERR_LIMIT, "a network passes the address space");
    return net->device->ops->alloc(net->device, bytes, out, error);
}

static int build(struct dl2_network *net, struct dl2_error *error)
{
    const struct dl2_network_config *config = &net->config;
    const struct dl2_arch *arch = find_arch(config->arch, error);
    if (!arch)
        return DL2_ERR_ARGUMENT;
    net->config.arch = arch->name;
    if (!config->batch || !config->classes || !config->height || !config->width ||
        (config->channels != 1 && config->channels != 3))
        return dl2_error_set(
            error, DL2_ERR_ARGUMENT,
            "no network for batches of %u images of %ux%u with %u channels in %u classes",
            config->batch, config->width, config->height, config->channels, config->classes);
    struct dl2_builder builder = {.network = net, .arch = arch->name, .error = error};
    int images = add_value(&builder, config->height, config->width, config->channels);
    net->logits = arch->build(&builder, images, config->classes);
    size_t floats = builder.status ? 0 : plan_memory(&builder);
    DL2_TRY(builder.status);

    size_t images_bytes = net->values[0].size;
    DL2_TRY(alloc_floats(net, floats, &net->arena, error));
    DL2_TRY(alloc_floats(net, place_tensors(net), &net->weights, error));
    if (config->train) {
        DL2_TRY(alloc_floats(net, net->parameters, &net->gradient, error));
        DL2_TRY(alloc_floats(net, net->parameters, &net->momentum, error));
    }
    void *memory;
    DL2_TRY(alloc_bytes(net, config->batch, images_bytes, &memory, error));
    net->images = memory;
    DL2_TRY(alloc_bytes(net, config->batch, sizeof *net->labels, &memory, error));
    net->labels = memory;
    DL2_TRY(alloc_bytes(net, config->batch, sizeof *net->partner, &memory, error));
    net->partner = memory;
    DL2_TRY(alloc_bytes(net, 1, sizeof *net->sums, &memory, error));
    net->sums = memory;
    DL2_TRY(alloc_floats(net, config->batch, &net->losses, error));
    DL2_TRY(fresh_weights(net, error));
    struct plan_set *set;
    return find_plans(net, config->batch, &set, error);
}

int dl2_network_create(struct dl2_device *device, const struct dl2_network_config *config,
                       struct dl2_network **out, struct dl2_error *error)
{
    struct dl2_network *net = dl2_calloc(1, sizeof *net);
    if (!net)
        return dl2_error_set(error, DL2_ERR_MEMORY, "out of memory for a network");
    net->device = device;
    net->config = *config;
    int status = build(net, error);
    if (status < 0) {
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
    for (int i = 0; i < PLAN_SETS; i++)
        if (net->sets[i].count)
            free_plans(net, &net->sets[i]);
    void *memory[] = {net->arena,  net->weights, net->gradient, net->momentum, net->images,
                      net->labels, net->partner, net->losses,   net->sums};
    for (size_t i = 0; i < sizeof memory / sizeof memory[0]; i++)
        if (memory[i])
            device->ops->free(device, memory[i]);
    for (size_t i = 0; i < net->tensor_count; i++)
        free(net->tensors[i].name);
    free(net->layers);
    free(net->values);
    free(net->tensors);
    free(net->buffers);
    free(net);
}
