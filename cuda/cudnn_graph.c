/* SPDX-License-Identifier: BSD-2-Clause */
#include "cuda/cudnn_graph.h"

int dl2_cudnn_check(cudnnStatus_t status, const char *call, const char *what,
                    struct dl2_error *error)
{
    if (status == CUDNN_STATUS_SUCCESS)
        return DL2_OK;
    char reason[400] = "";
    cudnnGetLastErrorString(reason, sizeof reason);
    for (char *c = reason; *c; c++)
        if (*c == '\n')
            *c = ' ';
    enum dl2_status code = DL2_ERR_SYSTEM;
    if (status == CUDNN_STATUS_INTERNAL_ERROR_HOST_ALLOCATION_FAILED ||
        status == CUDNN_STATUS_INTERNAL_ERROR_DEVICE_ALLOCATION_FAILED)
        code = DL2_ERR_MEMORY;
    else if (status / 1000 == 3) /* CUDNN_STATUS_NOT_SUPPORTED and its kinds */
        code = DL2_ERR_UNSUPPORTED;
    return dl2_error_set(error, code, "%s%s%s: %s%s%s", call, what ? " for the " : "",
                         what ? what : "", cudnnGetErrorString(status), reason[0] ? ": " : "",
                         reason);
}

cudnnDataType_t dl2_cudnn_type(enum dl2_precision precision)
{
    return precision == DL2_PRECISION_BF16   ? CUDNN_DATA_BFLOAT16
           : precision == DL2_PRECISION_FP16 ? CUDNN_DATA_HALF
                                             : CUDNN_DATA_FLOAT;
}

static void keep(struct dl2_cudnn_graph *graph, cudnnStatus_t status, const char *call)
{
    graph->status = dl2_cudnn_check(status, call, graph->what, graph->error);
}

cudnnBackendDescriptor_t dl2_cudnn_make(struct dl2_cudnn_graph *graph,
                                        cudnnBackendDescriptorType_t type)
{
    cudnnBackendDescriptor_t made = NULL;
    if (!graph->status && graph->made_count == DL2_CUDNN_DESCRIPTORS)
        graph->status = dl2_error_set(graph->error, DL2_ERR_LIMIT,
                                      "the %s has too many descriptors", graph->what);
    if (graph->status)
        return NULL;
    keep(graph, cudnnBackendCreateDescriptor(type, &made), "cudnnBackendCreateDescriptor");
    if (!graph->status)
        graph->made[graph->made_count++] = made;
    return graph->status ? NULL : made;
}

void dl2_cudnn_set(struct dl2_cudnn_graph *graph, cudnnBackendDescriptor_t descriptor,
                   cudnnBackendAttributeName_t name, cudnnBackendAttributeType_t type,
                   int64_t count, const void *values)
{
    if (!graph->status)
        keep(graph, cudnnBackendSetAttribute(descriptor, name, type, count, values),
             "cudnnBackendSetAttribute");
}

void dl2_cudnn_link(struct dl2_cudnn_graph *graph, cudnnBackendDescriptor_t descriptor,
                    cudnnBackendAttributeName_t name, cudnnBackendDescriptor_t value)
{
    dl2_cudnn_set(graph, descriptor, name, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &value);
}

void dl2_cudnn_finalize(struct dl2_cudnn_graph *graph, cudnnBackendDescriptor_t descriptor)
{
    if (!graph->status)
        keep(graph, cudnnBackendFinalize(descriptor), "cudnnBackendFinalize");
}

cudnnBackendDescriptor_t dl2_cudnn_operation(struct dl2_cudnn_graph *graph,
                                             cudnnBackendDescriptorType_t type)
{
    const cudnnBackendDescriptor_t made = dl2_cudnn_make(graph, type);
    if (made && graph->operation_count < DL2_CUDNN_OPERATIONS)
        graph->operations[graph->operation_count++] = made;
    return made;
}

void dl2_cudnn_pointwise(struct dl2_cudnn_graph *graph, cudnnPointwiseMode_t mode,
                         cudnnBackendDescriptor_t a, cudnnBackendDescriptor_t b,
                         cudnnBackendDescriptor_t out)
{
    const cudnnDataType_t floats = CUDNN_DATA_FLOAT;
    const cudnnBackendDescriptor_t how = dl2_cudnn_make(graph, CUDNN_BACKEND_POINTWISE_DESCRIPTOR);
    dl2_cudnn_set(graph, how, CUDNN_ATTR_POINTWISE_MATH_PREC, CUDNN_TYPE_DATA_TYPE, 1, &floats);
    dl2_cudnn_set(graph, how, CUDNN_ATTR_POINTWISE_MODE, CUDNN_TYPE_POINTWISE_MODE, 1, &mode);
    dl2_cudnn_finalize(graph, how);
    const cudnnBackendDescriptor_t operation =
        dl2_cudnn_operation(graph, CUDNN_BACKEND_OPERATION_POINTWISE_DESCRIPTOR);
    dl2_cudnn_link(graph, operation, CUDNN_ATTR_OPERATION_POINTWISE_PW_DESCRIPTOR, how);
    dl2_cudnn_link(graph, operation, CUDNN_ATTR_OPERATION_POINTWISE_XDESC, a);
    if (b)
        dl2_cudnn_link(graph, operation, CUDNN_ATTR_OPERATION_POINTWISE_BDESC, b);
    dl2_cudnn_link(graph, operation, CUDNN_ATTR_OPERATION_POINTWISE_YDESC, out);
    dl2_cudnn_finalize(graph, operation);
}

cudnnBackendDescriptor_t dl2_cudnn_tensor(struct dl2_cudnn_graph *graph,
                                          const struct dl2_cudnn_tensor *t)
{
    const cudnnBackendDescriptor_t made = dl2_cudnn_make(graph, CUDNN_BACKEND_TENSOR_DESCRIPTOR);
    const int64_t name = graph->made_count, alignment = 16; /* any name but another's */
    const bool yes = true;
    dl2_cudnn_set(graph, made, CUDNN_ATTR_TENSOR_DATA_TYPE, CUDNN_TYPE_DATA_TYPE, 1, &t->type);
    dl2_cudnn_set(graph, made, CUDNN_ATTR_TENSOR_DIMENSIONS, CUDNN_TYPE_INT64, t->rank, t->dims);
    dl2_cudnn_set(graph, made, CUDNN_ATTR_TENSOR_STRIDES, CUDNN_TYPE_INT64, t->rank, t->strides);
    dl2_cudnn_set(graph, made, CUDNN_ATTR_TENSOR_UNIQUE_ID, CUDNN_TYPE_INT64, 1, &name);
    dl2_cudnn_set(graph, made, CUDNN_ATTR_TENSOR_BYTE_ALIGNMENT, CUDNN_TYPE_INT64, 1, &alignment);
    if (t->tensor == DL2_CUDNN_VIRTUAL)
        dl2_cudnn_set(graph, made, CUDNN_ATTR_TENSOR_IS_VIRTUAL, CUDNN_TYPE_BOOLEAN, 1, &yes);
    else if (graph->place_count < DL2_CUDNN_PLACES)
        graph->places[graph->place_count++] =
            (struct dl2_cudnn_place){name, t->tensor, t->offset, t->value};
    if (t->tensor == DL2_CUDNN_VALUE)
        dl2_cudnn_set(graph, made, CUDNN_ATTR_TENSOR_IS_BY_VALUE, CUDNN_TYPE_BOOLEAN, 1, &yes);
    dl2_cudnn_finalize(graph, made);
    return made;
}

cudnnBackendDescriptor_t dl2_cudnn_close(struct dl2_cudnn_graph *graph, cudnnHandle_t handle)
{
    const cudnnBackendDescriptor_t made =
        dl2_cudnn_make(graph, CUDNN_BACKEND_OPERATIONGRAPH_DESCRIPTOR);
    dl2_cudnn_set(graph, made, CUDNN_ATTR_OPERATIONGRAPH_OPS, CUDNN_TYPE_BACKEND_DESCRIPTOR,
                  graph->operation_count, graph->operations);
    if (handle)
        dl2_cudnn_set(graph, made, CUDNN_ATTR_OPERATIONGRAPH_HANDLE, CUDNN_TYPE_HANDLE, 1, &handle);
    dl2_cudnn_finalize(graph, made);
    return made;
}

void dl2_cudnn_graph_free(struct dl2_cudnn_graph *graph)
{
    while (graph->made_count)
        cudnnBackendDestroyDescriptor(graph->made[--graph->made_count]);
}
