/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * As much of cuDNN's graph interface as convolutions and attention need: descriptors keep what is
 * set on them. The plan of a convolution runs the reference device's; that of any other graph runs
 * the graph's operations one by one, in float32, rounded to each tensor's type. What a real cuDNN
 * refuses is refused.
 */
#include "tests/cuda/fake_cuda.h"

#include "device/element.h"

#include <cudnn.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct cudnnContext {
    cudaStream_t stream;
};

enum { ATTRIBUTES = 12, VALUES = 24, WORKSPACE = 1000, LARGE_WORKSPACE = 5000, TENSORS = 32 };

struct attribute {
    cudnnBackendAttributeName_t name;
    int64_t count;
    int64_t values[VALUES]; /* numbers, addresses, enums */
};

/* What a graph comes to: found when a configuration is made of it, since the descriptors that say
 * so don't outlive the search for plans. */
struct convolution {
    struct dl2_conv_shape shape;
    int pass; /* 0 forward, 1 data, 2 weights */
    enum dl2_element element;
    int64_t names[4]; /* x, w, y; the bias where the shape has one */
};

struct tensor {
    int64_t name, dims[4], strides[4];
    enum dl2_element element;
    bool virtual, by_value;
};

struct operation {
    cudnnBackendDescriptorType_t type;
    int64_t mode;  /* of pointwise operations and reductions */
    int a, b, out; /* tensors; b: -1 where there is one operand */
};

/* Any other graph. */
struct graph {
    struct operation operations[VALUES];
    struct tensor tensors[TENSORS];
    int operation_count, tensor_count;
};

/* What a plan does. */
struct work {
    bool is_convolution;
    struct convolution convolution;
    struct graph graph;
    int64_t engine; /* see fake_cuda.h */
};

enum { NO_PLAN, FAST_IF_WARM = 2, FAILS = 4, LARGE };

struct descriptor {
    cudnnBackendDescriptorType_t type;
    bool final;
    struct attribute attributes[ATTRIBUTES];
    int count;
    struct work work; /* of a configuration, its engine and knobs, and a plan */
};

#define D(pointer) ((struct descriptor *)(pointer))

size_t cudnnGetVersion(void)
{
    return CUDNN_VERSION;
}

const char *cudnnGetErrorString(cudnnStatus_t status)
{
    (void)status;
    return "an error of the fake cuDNN";
}

void cudnnGetLastErrorString(char *message, size_t size)
{
    snprintf(message, size, "none");
}

cudnnStatus_t cudnnCreate(cudnnHandle_t *out)
{
    *out = calloc(1, sizeof **out);
    return *out ? CUDNN_STATUS_SUCCESS : CUDNN_STATUS_INTERNAL_ERROR_HOST_ALLOCATION_FAILED;
}

cudnnStatus_t cudnnDestroy(cudnnHandle_t handle)
{
    free(handle);
    return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnSetStream(cudnnHandle_t handle, cudaStream_t stream)
{
    handle->stream = stream;
    return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnBackendCreateDescriptor(cudnnBackendDescriptorType_t type,
                                           cudnnBackendDescriptor_t *out)
{
    struct descriptor *d = calloc(1, sizeof *d);
    if (!d)
        return CUDNN_STATUS_INTERNAL_ERROR_HOST_ALLOCATION_FAILED;
    d->type = type;
    *out = d;
    return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnBackendDestroyDescriptor(cudnnBackendDescriptor_t descriptor)
{
    free(descriptor);
    return CUDNN_STATUS_SUCCESS;
}

static size_t size_of(cudnnBackendAttributeType_t type)
{
    switch (type) {
    case CUDNN_TYPE_INT64:
        return sizeof(int64_t);
    case CUDNN_TYPE_FLOAT:
        return sizeof(float);
    case CUDNN_TYPE_BOOLEAN:
        return sizeof(bool);
    case CUDNN_TYPE_BACKEND_DESCRIPTOR:
    case CUDNN_TYPE_HANDLE:
    case CUDNN_TYPE_VOID_PTR:
        return sizeof(void *);
    default:
        return sizeof(int); /* enums */
    }
}

cudnnStatus_t cudnnBackendSetAttribute(cudnnBackendDescriptor_t descriptor,
                                       cudnnBackendAttributeName_t name,
                                       cudnnBackendAttributeType_t type, int64_t count,
                                       const void *values)
{
    struct descriptor *d = D(descriptor);
    if (d->final || d->count == ATTRIBUTES || count < 1 || count > VALUES)
        return CUDNN_STATUS_BAD_PARAM;
    struct attribute *a = &d->attributes[d->count++];
    a->name = name;
    a->count = count;
    for (int64_t i = 0; i < count; i++) {
        if (type == CUDNN_TYPE_BACKEND_DESCRIPTOR &&
            !(*((struct descriptor *const *)values))->final)
            return CUDNN_STATUS_BAD_PARAM_NOT_FINALIZED;
        memcpy(&a->values[i], (const char *)values + (size_t)i * size_of(type), size_of(type));
    }
    return CUDNN_STATUS_SUCCESS;
}

static const struct attribute *find(const struct descriptor *d, cudnnBackendAttributeName_t name)
{
    for (int i = 0; d && i < d->count; i++)
        if (d->attributes[i].name == name)
            return &d->attributes[i];
    return NULL;
}

static const int64_t *value(const struct descriptor *d, cudnnBackendAttributeName_t name)
{
    const struct attribute *a = find(d, name);
    if (a)
        return a->values;
    fprintf(stderr, "fake cuDNN: attribute %d was never set\n", name);
    abort();
}

static const struct descriptor *child(const struct descriptor *d, cudnnBackendAttributeName_t name)
{
    return (const struct descriptor *)(uintptr_t)*value(d, name); /* NOLINT: it was one */
}

struct sizes {
    unsigned n, c, d, h, w;
};

/* Dimensions of a tensor, which must be dense with the second one innermost; without a depth it is
 * 1. */
static struct sizes dims_of(const struct descriptor *tensor)
{
    const struct attribute *all = find(tensor, CUDNN_ATTR_TENSOR_DIMENSIONS);
    const int64_t *d = value(tensor, CUDNN_ATTR_TENSOR_DIMENSIONS);
    const int64_t *s = value(tensor, CUDNN_ATTR_TENSOR_STRIDES);
    int64_t step = d[1];
    for (int64_t i = all->count - 1; i > 1; step *= d[i--])
        if (s[i] != step)
            abort();
    if (s[1] != 1 || s[0] != step || all->count < 4 || all->count > 5 ||
        *value(tensor, CUDNN_ATTR_TENSOR_BYTE_ALIGNMENT) != 16)
        abort();
    const int64_t *sides = d + all->count - 2;
    return (struct sizes){(unsigned)d[0], (unsigned)d[1], all->count == 5 ? (unsigned)d[2] : 1,
                          (unsigned)sides[0], (unsigned)sides[1]};
}

static enum dl2_element element_of(const struct descriptor *tensor)
{
    const int64_t type = *value(tensor, CUDNN_ATTR_TENSOR_DATA_TYPE);
    return type == CUDNN_DATA_BFLOAT16 ? DL2_ELEMENT_BF16
           : type == CUDNN_DATA_HALF   ? DL2_ELEMENT_F16
                                       : DL2_ELEMENT_F32;
}

/* What follows a convolution that makes `y`: nothing, or its bias, or that and ReLU. */
static void add_epilogue(struct convolution *c, const struct attribute *all,
                         const struct descriptor *y)
{
    static const int64_t modes[] = {0, CUDNN_POINTWISE_ADD, CUDNN_POINTWISE_RELU_FWD};
    if (all->count > 3 || (all->count > 1 && c->pass))
        abort();
    for (int64_t i = 1; i < all->count; i++) {
        const struct descriptor *op = (const struct descriptor *)(uintptr_t)all->values[i];
        if (op->type != CUDNN_BACKEND_OPERATION_POINTWISE_DESCRIPTOR ||
            *value(child(op, CUDNN_ATTR_OPERATION_POINTWISE_PW_DESCRIPTOR),
                   CUDNN_ATTR_POINTWISE_MODE) != modes[i] ||
            child(op, CUDNN_ATTR_OPERATION_POINTWISE_XDESC) != y ||
            !find(y, CUDNN_ATTR_TENSOR_IS_VIRTUAL) || element_of(y) != DL2_ELEMENT_F32)
            abort();
        if (i == 1) {
            const struct descriptor *bias = child(op, CUDNN_ATTR_OPERATION_POINTWISE_BDESC);
            if (element_of(bias) != c->element || dims_of(bias).c != c->shape.out_channels)
                abort();
            c->names[3] = *value(bias, CUDNN_ATTR_TENSOR_UNIQUE_ID);
            c->shape.bias = true;
        } else {
            c->shape.activation = DL2_RELU;
        }
        y = child(op, CUDNN_ATTR_OPERATION_POINTWISE_YDESC);
        c->names[2] = *value(y, CUDNN_ATTR_TENSOR_UNIQUE_ID);
    }
    if (find(y, CUDNN_ATTR_TENSOR_IS_VIRTUAL) || element_of(y) != c->element)
        abort();
}

static struct convolution convolution_of(const struct descriptor *graph)
{
    static const cudnnBackendAttributeName_t names[3][4] = {
        {CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_X, CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_W,
         CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_Y,
         CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_CONV_DESC},
        {CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_DX, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_W,
         CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_DY,
         CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_CONV_DESC},
        {CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_X,
         CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_DW,
         CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_DY,
         CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_CONV_DESC}};
    const struct descriptor *op = child(graph, CUDNN_ATTR_OPERATIONGRAPH_OPS), *tensors[3];
    struct convolution c = {
        .pass = op->type == CUDNN_BACKEND_OPERATION_CONVOLUTION_FORWARD_DESCRIPTOR         ? 0
                : op->type == CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_DATA_DESCRIPTOR ? 1
                                                                                           : 2};
    for (int i = 0; i < 3; i++) {
        tensors[i] = child(op, names[c.pass][i]);
        c.names[i] = *value(tensors[i], CUDNN_ATTR_TENSOR_UNIQUE_ID);
    }
    const struct sizes x = dims_of(tensors[0]), w = dims_of(tensors[1]), y = dims_of(tensors[2]);
    const struct descriptor *how = child(op, names[c.pass][3]);
    const int64_t *strides = value(how, CUDNN_ATTR_CONVOLUTION_FILTER_STRIDES);
    const int64_t *pads = value(how, CUDNN_ATTR_CONVOLUTION_PRE_PADDINGS);
    const int64_t sides = *value(how, CUDNN_ATTR_CONVOLUTION_SPATIAL_DIMS);
    const int deep = find(tensors[0], CUDNN_ATTR_TENSOR_DIMENSIONS)->count == 5;
    if (sides != 2 + deep || find(how, CUDNN_ATTR_CONVOLUTION_FILTER_STRIDES)->count != sides)
        abort();
    c.element = element_of(tensors[0]);
    c.shape = (struct dl2_conv_shape){.batch = x.n,
                                      .in.depth = x.d,
                                      .in.height = x.h,
                                      .in.width = x.w,
                                      .in_channels = x.c,
                                      .out_channels = w.n,
                                      .kernel.depth = w.d,
                                      .kernel.height = w.h,
                                      .kernel.width = w.w,
                                      .stride.depth = deep ? (unsigned)strides[0] : 1,
                                      .stride.height = (unsigned)strides[deep],
                                      .stride.width = (unsigned)strides[deep + 1],
                                      .pad.depth = deep ? (unsigned)pads[0] : 0,
                                      .pad.height = (unsigned)pads[deep],
                                      .pad.width = (unsigned)pads[deep + 1],
                                      .groups = x.c / w.c};
    const struct dl2_sides out = dl2_conv_out(&c.shape);
    if (y.n != x.n || y.c != w.n || y.d != out.depth || y.h != out.height || y.w != out.width)
        abort();
    add_epilogue(&c, find(graph, CUDNN_ATTR_OPERATIONGRAPH_OPS), tensors[2]);
    return c;
}

/* The graph's tensor that an attribute of an operation names; -1: it is not set. */
static int tensor_of(struct graph *g, const struct descriptor *operation,
                     cudnnBackendAttributeName_t name)
{
    if (!find(operation, name))
        return -1;
    const struct descriptor *d = child(operation, name);
    const int64_t unique = *value(d, CUDNN_ATTR_TENSOR_UNIQUE_ID);
    for (int i = 0; i < g->tensor_count; i++)
        if (g->tensors[i].name == unique)
            return i;
    if (g->tensor_count == TENSORS || *value(d, CUDNN_ATTR_TENSOR_BYTE_ALIGNMENT) != 16)
        abort();
    struct tensor *t = &g->tensors[g->tensor_count];
    *t = (struct tensor){.name = unique,
                         .element = element_of(d),
                         .virtual = find(d, CUDNN_ATTR_TENSOR_IS_VIRTUAL),
                         .by_value = find(d, CUDNN_ATTR_TENSOR_IS_BY_VALUE)};
    memcpy(t->dims, value(d, CUDNN_ATTR_TENSOR_DIMENSIONS), sizeof t->dims);
    memcpy(t->strides, value(d, CUDNN_ATTR_TENSOR_STRIDES), sizeof t->strides);
    return g->tensor_count++;
}

static struct operation operation_of(struct graph *g, const struct descriptor *d)
{
    struct operation o = {.type = d->type, .b = -1};
    switch (d->type) {
    case CUDNN_BACKEND_OPERATION_MATMUL_DESCRIPTOR:
        o.a = tensor_of(g, d, CUDNN_ATTR_OPERATION_MATMUL_ADESC);
        o.b = tensor_of(g, d, CUDNN_ATTR_OPERATION_MATMUL_BDESC);
        o.out = tensor_of(g, d, CUDNN_ATTR_OPERATION_MATMUL_CDESC);
        value(child(d, CUDNN_ATTR_OPERATION_MATMUL_DESC), CUDNN_ATTR_MATMUL_COMP_TYPE);
        break;
    case CUDNN_BACKEND_OPERATION_POINTWISE_DESCRIPTOR:
        o.a = tensor_of(g, d, CUDNN_ATTR_OPERATION_POINTWISE_XDESC);
        o.b = tensor_of(g, d, CUDNN_ATTR_OPERATION_POINTWISE_BDESC);
        o.out = tensor_of(g, d, CUDNN_ATTR_OPERATION_POINTWISE_YDESC);
        o.mode = *value(child(d, CUDNN_ATTR_OPERATION_POINTWISE_PW_DESCRIPTOR),
                        CUDNN_ATTR_POINTWISE_MODE);
        break;
    case CUDNN_BACKEND_OPERATION_REDUCTION_DESCRIPTOR:
        o.a = tensor_of(g, d, CUDNN_ATTR_OPERATION_REDUCTION_XDESC);
        o.out = tensor_of(g, d, CUDNN_ATTR_OPERATION_REDUCTION_YDESC);
        o.mode =
            *value(child(d, CUDNN_ATTR_OPERATION_REDUCTION_DESC), CUDNN_ATTR_REDUCTION_OPERATOR);
        break;
    case CUDNN_BACKEND_OPERATION_RESHAPE_DESCRIPTOR:
        o.a = tensor_of(g, d, CUDNN_ATTR_OPERATION_RESHAPE_XDESC);
        o.out = tensor_of(g, d, CUDNN_ATTR_OPERATION_RESHAPE_YDESC);
        break;
    default:
        abort();
    }
    if (o.a < 0 || o.out < 0)
        abort();
    return o;
}

static struct work work_of(const struct descriptor *graph)
{
    const struct attribute *all = find(graph, CUDNN_ATTR_OPERATIONGRAPH_OPS);
    const struct descriptor *first = child(graph, CUDNN_ATTR_OPERATIONGRAPH_OPS);
    struct work work = {
        .is_convolution =
            first->type == CUDNN_BACKEND_OPERATION_CONVOLUTION_FORWARD_DESCRIPTOR ||
            first->type == CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_DATA_DESCRIPTOR ||
            first->type == CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_FILTER_DESCRIPTOR};
    if (work.is_convolution) {
        work.convolution = convolution_of(graph);
        return work;
    }
    for (int64_t i = 0; i < all->count; i++)
        work.graph.operations[work.graph.operation_count++] =
            operation_of(&work.graph, (const struct descriptor *)(uintptr_t)all->values[i]);
    return work;
}

cudnnStatus_t cudnnBackendFinalize(cudnnBackendDescriptor_t descriptor)
{
    struct descriptor *d = D(descriptor);
    if (d->type == CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR)
        d->work = child(d, CUDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG)->work;
    if (d->type == CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR && d->work.engine == NO_PLAN)
        return CUDNN_STATUS_NOT_SUPPORTED;
    d->final = true;
    return CUDNN_STATUS_SUCCESS;
}

static bool says(const char *variable, const char *word)
{
    const char *text = getenv(variable);
    return text && !strcmp(text, word);
}

static int64_t number_of(const char *variable, int64_t otherwise)
{
    const char *text = getenv(variable);
    return text ? atoll(text) : otherwise;
}

/* What the heuristics list: all, or, as the last resort, the last of those again and one more. */
static cudnnStatus_t list_plans(const struct descriptor *d, int64_t room, int64_t *count,
                                struct descriptor **out)
{
    const int64_t plans = number_of("DL2_FAKE_PLANS", 4);
    const bool all = *value(d, CUDNN_ATTR_ENGINEHEUR_MODE) == CUDNN_HEUR_MODE_A;
    const int64_t first = all ? 0 : plans - 1;
    const struct work work = work_of(child(d, CUDNN_ATTR_ENGINEHEUR_OPERATION_GRAPH));
    *count = all ? plans : 2;
    if ((!work.is_convolution && says("DL2_FAKE_ATTENTION", "none")) ||
        (work.convolution.shape.bias && says("DL2_FAKE_BIAS", "none")))
        *count = 0;
    if (!room)
        return CUDNN_STATUS_SUCCESS;
    *count = *count < room ? *count : room;
    for (int64_t i = 0; i < *count; i++) {
        out[i]->work = work;
        out[i]->work.engine = first + i;
        out[i]->final = true;
    }
    return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnBackendGetAttribute(const cudnnBackendDescriptor_t descriptor,
                                       cudnnBackendAttributeName_t name,
                                       cudnnBackendAttributeType_t type, int64_t room,
                                       int64_t *count, void *out)
{
    const struct descriptor *d = D(descriptor);
    (void)type;
    *count = 1;
    switch (name) {
    case CUDNN_ATTR_ENGINEHEUR_RESULTS:
        return list_plans(d, room, count, out);
    case CUDNN_ATTR_ENGINECFG_ENGINE:
    case CUDNN_ATTR_ENGINECFG_KNOB_CHOICES:
        (*(struct descriptor **)out)->work = d->work;
        return CUDNN_STATUS_SUCCESS;
    case CUDNN_ATTR_ENGINE_GLOBAL_INDEX:
        *(int64_t *)out = 10; /* they differ by their knobs alone */
        return CUDNN_STATUS_SUCCESS;
    case CUDNN_ATTR_KNOB_CHOICE_KNOB_TYPE:
        *(cudnnBackendKnobType_t *)out = CUDNN_KNOB_TYPE_TILE_SIZE;
        return CUDNN_STATUS_SUCCESS;
    case CUDNN_ATTR_KNOB_CHOICE_KNOB_VALUE:
        *(int64_t *)out = d->work.engine;
        return CUDNN_STATUS_SUCCESS;
    case CUDNN_ATTR_ENGINE_NUMERICAL_NOTE:
        *count = 0;
        return CUDNN_STATUS_SUCCESS;
    case CUDNN_ATTR_EXECUTION_PLAN_WORKSPACE_SIZE:
        *(int64_t *)out = d->work.engine == LARGE ? LARGE_WORKSPACE : WORKSPACE;
        return CUDNN_STATUS_SUCCESS;
    default:
        return CUDNN_STATUS_BAD_PARAM;
    }
}

/* -- running -- */

struct call {
    struct work work;
    void *tensors[TENSORS], *workspace;
    float values[TENSORS];
};

/* Passes the time that an engine takes, and spoils its workspace. */
static void spend(const struct call *call)
{
    const int64_t engine = call->work.engine;
    const bool best = engine == number_of("DL2_FAKE_BEST", 3);
    const double warm = best ? 0.9 : engine == FAST_IF_WARM ? 0.5 : 1 + 0.01 * (double)engine;
    dl2_fake_spend(warm, engine == FAST_IF_WARM ? 3 : warm + 0.1);
    memset(call->workspace, 0xee, engine == LARGE ? LARGE_WORKSPACE : WORKSPACE);
}

/* Where an element lies; that of a dimension of one stands for all. */
static size_t place(const struct tensor *t, const int64_t i[4])
{
    int64_t at = 0;
    for (int k = 0; k < 4; k++)
        at += t->dims[k] > 1 ? i[k] * t->strides[k] : 0;
    return (size_t)at;
}

/* The next element; false after the last. */
static bool next(const int64_t dims[4], int64_t i[4])
{
    for (int k = 3; k >= 0; k--) {
        if (++i[k] < dims[k])
            return true;
        i[k] = 0;
    }
    return false;
}

static float pointwise(int64_t mode, float a, float b)
{
    switch (mode) {
    case CUDNN_POINTWISE_MUL:
        return a * b;
    case CUDNN_POINTWISE_SUB:
        return a - b;
    case CUDNN_POINTWISE_ADD:
        return a + b;
    case CUDNN_POINTWISE_DIV:
        return a / b;
    case CUDNN_POINTWISE_EXP:
        return expf(a);
    case CUDNN_POINTWISE_LOG:
        return logf(a);
    case CUDNN_POINTWISE_IDENTITY:
        return a;
    default:
        abort();
    }
}

/* One element of what an operation makes. */
static float element(const struct graph *g, const struct operation *o, float *const *data,
                     const int64_t i[4])
{
    const struct tensor *a = &g->tensors[o->a], *b = o->b < 0 ? NULL : &g->tensors[o->b];
    int64_t at[4] = {i[0], i[1], i[2], i[3]}, other[4] = {i[0], i[1], i[2], i[3]};
    float sum = 0;
    if (o->type == CUDNN_BACKEND_OPERATION_POINTWISE_DESCRIPTOR)
        return pointwise(o->mode, data[o->a][place(a, i)], b ? data[o->b][place(b, i)] : 0);
    const bool product = o->type == CUDNN_BACKEND_OPERATION_MATMUL_DESCRIPTOR;
    for (int64_t k = 0; k < a->dims[3]; k++) { /* reductions are over rows */
        at[3] = other[2] = k;
        const float v = data[o->a][place(a, at)];
        if (product)
            sum += v * data[o->b][place(b, other)];
        else if (o->mode == CUDNN_REDUCE_TENSOR_MAX)
            sum = k && sum > v ? sum : v;
        else
            sum += v;
    }
    return sum;
}

static size_t extent(const struct tensor *t)
{
    size_t last = 0;
    for (int k = 0; k < 4; k++)
        last += (size_t)((t->dims[k] - 1) * t->strides[k]);
    return last + 1;
}

static void operate(void *from)
{
    struct call *call = from;
    const struct graph *g = &call->work.graph;
    const bool gradient = g->operations[0].type != CUDNN_BACKEND_OPERATION_MATMUL_DESCRIPTOR;
    float *data[TENSORS];
    spend(call);
    for (int t = 0; t < g->tensor_count; t++) {
        const struct tensor *tensor = &g->tensors[t];
        const size_t size = dl2_element_size(tensor->element);
        int64_t i[4] = {0};
        if (!(data[t] = malloc(extent(tensor) * sizeof(float))))
            abort();
        memset(data[t], 0xff, extent(tensor) * sizeof(float));
        if (tensor->by_value)
            data[t][0] = call->values[t];
        else if (!tensor->virtual)
            do
                dl2_elements_to_floats(tensor->element,
                                       (char *)call->tensors[t] + place(tensor, i) * size,
                                       &data[t][place(tensor, i)], 1);
            while (next(tensor->dims, i));
    }
    for (int k = 0; k < g->operation_count; k++) {
        const struct operation *o = &g->operations[k];
        const struct tensor *out = &g->tensors[o->out];
        const size_t size = dl2_element_size(out->element);
        const bool last = k == g->operation_count - 1;
        int64_t i[4] = {0};
        do {
            unsigned char rounded[4];
            const size_t at = place(out, i);
            /* A reshape is another view of the same memory. */
            float v = o->type == CUDNN_BACKEND_OPERATION_RESHAPE_DESCRIPTOR
                          ? data[o->a][at]
                          : element(g, o, data, i);
            if (last && at + 1 == extent(out) &&
                says("DL2_FAKE_WRONG", gradient ? "attention's gradient" : "attention"))
                v += 1;
            dl2_elements_from_floats(out->element, &v, rounded, 1);
            dl2_elements_to_floats(out->element, rounded, &data[o->out][at], 1);
            if (!out->virtual)
                memcpy((char *)call->tensors[o->out] + at * size, rounded, size);
        } while (next(out->dims, i));
    }
    for (int t = 0; t < g->tensor_count; t++)
        free(data[t]);
}

static void convolve(void *from)
{
    static struct dl2_device *ref;
    struct call *call = from;
    const struct convolution *c = &call->work.convolution;
    const struct dl2_conv_shape *s = &c->shape;
    struct dl2_error error = DL2_ERROR_INIT;
    struct dl2_conv *conv = NULL;
    const struct dl2_device_options options = {0};
    const struct dl2_sides y = dl2_conv_out(s);
    size_t counts[3] = {(size_t)s->batch * s->in.depth * s->in.height * s->in.width *
                            s->in_channels,
                        (size_t)s->out_channels * s->kernel.depth * s->kernel.height *
                            s->kernel.width * s->in_channels / s->groups,
                        (size_t)s->batch * s->out_channels * y.depth * y.height * y.width};
    float *floats[3], *bias = NULL;
    if (!ref && dl2_device_open("ref", &options, &ref, &error))
        abort();
    spend(call);
    for (int i = 0; i < 3; i++) {
        if (!(floats[i] = malloc(counts[i] * sizeof(float))))
            abort();
        dl2_elements_to_floats(c->element, call->tensors[i], floats[i], counts[i]);
    }
    if (s->bias) {
        if (!(bias = malloc(s->out_channels * sizeof(float))))
            abort();
        dl2_elements_to_floats(c->element, call->tensors[3], bias, s->out_channels);
    }
    if (ref->ops->conv_create(ref, s, &conv, &error))
        abort();
    static const int written[] = {2, 0, 1};
    int out = written[c->pass];
    if (out == 2)
        ref->ops->conv_forward(conv, floats[0], floats[1], bias, floats[2]);
    else if (out == 0)
        ref->ops->conv_backward_data(conv, floats[2], floats[1], floats[0]);
    else
        ref->ops->conv_backward_weights(conv, floats[0], floats[2], floats[1], NULL, false);
    static int wrong;
    if (call->work.engine == number_of("DL2_FAKE_WRONG", -1))
        floats[out][counts[out] - 1] = (float)++wrong;
    dl2_elements_from_floats(c->element, floats[out], call->tensors[out], counts[out]);
    dl2_device_plan_free(conv);
    for (int i = 0; i < 3; i++)
        free(floats[i]);
    free(bias);
}

cudnnStatus_t cudnnBackendExecute(cudnnHandle_t handle, cudnnBackendDescriptor_t plan,
                                  cudnnBackendDescriptor_t pack)
{
    const struct attribute *names = find(D(pack), CUDNN_ATTR_VARIANT_PACK_UNIQUE_IDS);
    const int64_t *addresses = value(D(pack), CUDNN_ATTR_VARIANT_PACK_DATA_POINTERS);
    struct call call = {.work = D(plan)->work};
    const struct graph *g = &call.work.graph;
    const int count = !call.work.is_convolution          ? g->tensor_count
                      : call.work.convolution.shape.bias ? 4
                                                         : 3;
    if (call.work.engine == FAILS || dl2_fake_call_fails(handle->stream) ||
        (!call.work.is_convolution && says("DL2_FAKE_ATTENTION", "fail")) ||
        (call.work.convolution.shape.bias && says("DL2_FAKE_BIAS", "fail")))
        return CUDNN_STATUS_NOT_SUPPORTED;
    call.workspace = (void *)(uintptr_t)*value(D(pack), CUDNN_ATTR_VARIANT_PACK_WORKSPACE);
    for (int i = 0; i < count; i++) {
        for (int64_t k = 0; k < names->count; k++)
            if (names->values[k] ==
                (call.work.is_convolution ? call.work.convolution.names[i] : g->tensors[i].name))
                call.tensors[i] = (void *)(uintptr_t)addresses[k];
        if (!call.tensors[i] != (!call.work.is_convolution && g->tensors[i].virtual))
            return CUDNN_STATUS_BAD_PARAM_NULL_POINTER;
        if (!call.work.is_convolution && g->tensors[i].by_value) /* it is the host's */
            memcpy(&call.values[i], call.tensors[i], sizeof(float));
    }
    if (!call.workspace)
        return CUDNN_STATUS_BAD_PARAM_NULL_POINTER;
    const bool faulty = call.work.engine == number_of("DL2_FAKE_FAULTY", -1);
    dl2_fake_queue(handle->stream,
                   faulty                     ? dl2_fake_break
                   : call.work.is_convolution ? convolve
                                              : operate,
                   &call, sizeof call);
    return CUDNN_STATUS_SUCCESS;
}
