/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * As much of cuDNN's graph interface as convolutions need: descriptors keep what is set on them, an
 * execution plan runs the reference device's convolution. What a real cuDNN refuses is refused.
 */
#include "tests/cuda/fake_cuda.h"

#include "device/element.h"

#include <cudnn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct cudnnContext {
    cudaStream_t stream;
};

enum { ATTRIBUTES = 12, VALUES = 4, WORKSPACE = 1000, LARGE_WORKSPACE = 5000 };

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
    int64_t names[3]; /* x, w, y */
    int64_t engine;   /* see fake_cuda.h */
};

enum { NO_PLAN, FAST_IF_WARM = 2, FAILS = 4, LARGE };

struct descriptor {
    cudnnBackendDescriptorType_t type;
    bool final;
    struct attribute attributes[ATTRIBUTES];
    int count;
    struct convolution convolution; /* of a configuration, its engine and knobs, and a plan */
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

static const int64_t *value(const struct descriptor *d, cudnnBackendAttributeName_t name)
{
    for (int i = 0; d && i < d->count; i++)
        if (d->attributes[i].name == name)
            return d->attributes[i].values;
    fprintf(stderr, "fake cuDNN: attribute %d was never set\n", name);
    abort();
}

static const struct descriptor *child(const struct descriptor *d, cudnnBackendAttributeName_t name)
{
    return (const struct descriptor *)(uintptr_t)*value(d, name); /* NOLINT: it was one */
}

/* Dimensions of a tensor, which must be dense with the second one innermost. */
static const int64_t *dims_of(const struct descriptor *tensor)
{
    const int64_t *d = value(tensor, CUDNN_ATTR_TENSOR_DIMENSIONS);
    const int64_t *s = value(tensor, CUDNN_ATTR_TENSOR_STRIDES);
    if (s[1] != 1 || s[3] != d[1] || s[2] != d[1] * d[3] || s[0] != d[1] * d[3] * d[2] ||
        *value(tensor, CUDNN_ATTR_TENSOR_BYTE_ALIGNMENT) != 16)
        abort();
    return d;
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
    const int64_t *x = dims_of(tensors[0]), *w = dims_of(tensors[1]), *y = dims_of(tensors[2]);
    const struct descriptor *how = child(op, names[c.pass][3]);
    const int64_t *strides = value(how, CUDNN_ATTR_CONVOLUTION_FILTER_STRIDES);
    const int64_t *pads = value(how, CUDNN_ATTR_CONVOLUTION_PRE_PADDINGS);
    int64_t type = *value(tensors[0], CUDNN_ATTR_TENSOR_DATA_TYPE);
    c.element = type == CUDNN_DATA_BFLOAT16 ? DL2_ELEMENT_BF16
                : type == CUDNN_DATA_HALF   ? DL2_ELEMENT_F16
                                            : DL2_ELEMENT_F32;
    c.shape = (struct dl2_conv_shape){.batch = (unsigned)x[0],
                                      .in_height = (unsigned)x[2],
                                      .in_width = (unsigned)x[3],
                                      .in_channels = (unsigned)x[1],
                                      .out_channels = (unsigned)w[0],
                                      .kernel_height = (unsigned)w[2],
                                      .kernel_width = (unsigned)w[3],
                                      .stride_height = (unsigned)strides[0],
                                      .stride_width = (unsigned)strides[1],
                                      .pad_height = (unsigned)pads[0],
                                      .pad_width = (unsigned)pads[1],
                                      .groups = (unsigned)(x[1] / w[1])};
    if (y[0] != x[0] || y[1] != w[0] ||
        y[2] != dl2_window_out(c.shape.in_height, c.shape.kernel_height, c.shape.stride_height,
                               c.shape.pad_height))
        abort();
    return c;
}

cudnnStatus_t cudnnBackendFinalize(cudnnBackendDescriptor_t descriptor)
{
    struct descriptor *d = D(descriptor);
    if (d->type == CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR)
        d->convolution = child(d, CUDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG)->convolution;
    if (d->type == CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR && d->convolution.engine == NO_PLAN)
        return CUDNN_STATUS_NOT_SUPPORTED;
    d->final = true;
    return CUDNN_STATUS_SUCCESS;
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
    *count = all ? plans : 2;
    if (!room)
        return CUDNN_STATUS_SUCCESS;
    *count = *count < room ? *count : room;
    for (int64_t i = 0; i < *count; i++) {
        out[i]->convolution = convolution_of(child(d, CUDNN_ATTR_ENGINEHEUR_OPERATION_GRAPH));
        out[i]->convolution.engine = first + i;
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
        (*(struct descriptor **)out)->convolution = d->convolution;
        return CUDNN_STATUS_SUCCESS;
    case CUDNN_ATTR_ENGINE_GLOBAL_INDEX:
        *(int64_t *)out = 10; /* they differ by their knobs alone */
        return CUDNN_STATUS_SUCCESS;
    case CUDNN_ATTR_KNOB_CHOICE_KNOB_TYPE:
        *(cudnnBackendKnobType_t *)out = CUDNN_KNOB_TYPE_TILE_SIZE;
        return CUDNN_STATUS_SUCCESS;
    case CUDNN_ATTR_KNOB_CHOICE_KNOB_VALUE:
        *(int64_t *)out = d->convolution.engine;
        return CUDNN_STATUS_SUCCESS;
    case CUDNN_ATTR_ENGINE_NUMERICAL_NOTE:
        *count = 0;
        return CUDNN_STATUS_SUCCESS;
    case CUDNN_ATTR_EXECUTION_PLAN_WORKSPACE_SIZE:
        *(int64_t *)out = d->convolution.engine == LARGE ? LARGE_WORKSPACE : WORKSPACE;
        return CUDNN_STATUS_SUCCESS;
    default:
        return CUDNN_STATUS_BAD_PARAM;
    }
}

struct call {
    struct convolution convolution;
    void *tensors[3], *workspace;
};

static void convolve(void *from)
{
    static struct dl2_device *ref;
    struct call *call = from;
    const struct dl2_conv_shape *s = &call->convolution.shape;
    struct dl2_error error = DL2_ERROR_INIT;
    struct dl2_conv *conv = NULL;
    const struct dl2_device_options options = {0};
    size_t counts[3] = {
        (size_t)s->batch * s->in_height * s->in_width * s->in_channels,
        (size_t)s->out_channels * s->kernel_height * s->kernel_width * s->in_channels / s->groups,
        (size_t)s->batch * s->out_channels *
            dl2_window_out(s->in_height, s->kernel_height, s->stride_height, s->pad_height) *
            dl2_window_out(s->in_width, s->kernel_width, s->stride_width, s->pad_width)};
    float *floats[3];
    if (!ref && dl2_device_open("ref", &options, &ref, &error))
        abort();
    const int64_t engine = call->convolution.engine;
    const bool best = engine == number_of("DL2_FAKE_BEST", 3);
    const double warm = best ? 0.9 : engine == FAST_IF_WARM ? 0.5 : 1 + 0.01 * (double)engine;
    dl2_fake_spend(warm, engine == FAST_IF_WARM ? 3 : warm + 0.1);
    memset(call->workspace, 0xee, engine == LARGE ? LARGE_WORKSPACE : WORKSPACE);
    for (int i = 0; i < 3; i++) {
        if (!(floats[i] = malloc(counts[i] * sizeof(float))))
            abort();
        dl2_elements_to_floats(call->convolution.element, call->tensors[i], floats[i], counts[i]);
    }
    if (ref->ops->conv_create(ref, s, &conv, &error))
        abort();
    static const int written[] = {2, 0, 1};
    int out = written[call->convolution.pass];
    if (out == 2)
        ref->ops->conv_forward(conv, floats[0], floats[1], NULL, floats[2]);
    else if (out == 0)
        ref->ops->conv_backward_data(conv, floats[2], floats[1], floats[0]);
    else
        ref->ops->conv_backward_weights(conv, floats[0], floats[2], floats[1], NULL, false);
    static int wrong;
    if (engine == number_of("DL2_FAKE_WRONG", -1))
        floats[out][counts[out] - 1] = (float)++wrong;
    dl2_elements_from_floats(call->convolution.element, floats[out], call->tensors[out],
                             counts[out]);
    ref->ops->conv_free(conv);
    for (int i = 0; i < 3; i++)
        free(floats[i]);
}

cudnnStatus_t cudnnBackendExecute(cudnnHandle_t handle, cudnnBackendDescriptor_t plan,
                                  cudnnBackendDescriptor_t pack)
{
    const int64_t *names = value(D(pack), CUDNN_ATTR_VARIANT_PACK_UNIQUE_IDS);
    const int64_t *addresses = value(D(pack), CUDNN_ATTR_VARIANT_PACK_DATA_POINTERS);
    struct call call = {.convolution = D(plan)->convolution};
    if (call.convolution.engine == FAILS || dl2_fake_call_fails(handle->stream))
        return CUDNN_STATUS_NOT_SUPPORTED;
    call.workspace = (void *)(uintptr_t)*value(D(pack), CUDNN_ATTR_VARIANT_PACK_WORKSPACE);
    for (int i = 0; i < 3; i++)
        for (int k = 0; k < 3; k++)
            if (names[k] == call.convolution.names[i])
                call.tensors[i] = (void *)(uintptr_t)addresses[k];
    if (!call.tensors[0] || !call.tensors[1] || !call.tensors[2] || !call.workspace)
        return CUDNN_STATUS_BAD_PARAM_NULL_POINTER;
    dl2_fake_queue(handle->stream, convolve, &call, sizeof call);
    return CUDNN_STATUS_SUCCESS;
}
