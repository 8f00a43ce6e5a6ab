/* SPDX-License-Identifier: BSD-2-Clause */
/* Convolutions and their gradients as graphs of cuDNN: one operation between three tensors, which
 * the bias and ReLU may follow. */
#include "cuda/cudnn_plan.h"

void dl2_conv_counts(const struct dl2_conv_shape *s, size_t counts[3])
{
    counts[0] = s->batch * dl2_sides_count(s->in) * s->in_channels;
    counts[1] = s->out_channels * dl2_sides_count(s->kernel) * (s->in_channels / s->groups);
    counts[2] = s->batch * dl2_sides_count(dl2_conv_out(s)) * s->out_channels;
}

/* Images and their kernels are tensors without a depth, which cuDNN knows more plans for. The plans
 * for clips are found in tests with a description of a card; they are untested on hardware. */
static bool is_deep(const struct dl2_conv_shape *s)
{
    return s->in.depth > 1 || s->kernel.depth > 1;
}

/* A dense tensor whose second dimension lies innermost: NDHWC, ODHWI. `tensor`: the caller's, or
 * DL2_CUDNN_VIRTUAL. */
static cudnnBackendDescriptor_t make_tensor(struct dl2_cudnn_graph *graph, int tensor,
                                            cudnnDataType_t type, bool deep, unsigned n, unsigned c,
                                            struct dl2_sides sides)
{
    const int64_t d = sides.depth, h = sides.height, w = sides.width;
    struct dl2_cudnn_tensor t = {.type = type,
                                 .rank = 4,
                                 .dims = {n, c, h, w},
                                 .strides = {d * h * w * c, 1, w * c, c},
                                 .tensor = tensor};
    if (deep)
        t = (struct dl2_cudnn_tensor){.type = type,
                                      .rank = 5,
                                      .dims = {n, c, d, h, w},
                                      .strides = {d * h * w * c, 1, h * w * c, w * c, c},
                                      .tensor = tensor};
    return dl2_cudnn_tensor(graph, &t);
}

static cudnnBackendDescriptor_t make_convolution(struct dl2_cudnn_graph *graph,
                                                 const struct dl2_conv_shape *s)
{
    const cudnnDataType_t sums = CUDNN_DATA_FLOAT;
    const cudnnConvolutionMode_t mode = CUDNN_CROSS_CORRELATION;
    const int64_t dilations[] = {1, 1, 1};
    const int64_t strides[] = {s->stride.depth, s->stride.height, s->stride.width};
    const int64_t pads[] = {s->pad.depth, s->pad.height, s->pad.width};
    const int flat = !is_deep(s);
    const int64_t count = 3 - flat;
    const cudnnBackendDescriptor_t made =
        dl2_cudnn_make(graph, CUDNN_BACKEND_CONVOLUTION_DESCRIPTOR);
    dl2_cudnn_set(graph, made, CUDNN_ATTR_CONVOLUTION_COMP_TYPE, CUDNN_TYPE_DATA_TYPE, 1, &sums);
    dl2_cudnn_set(graph, made, CUDNN_ATTR_CONVOLUTION_CONV_MODE, CUDNN_TYPE_CONVOLUTION_MODE, 1,
                  &mode);
    dl2_cudnn_set(graph, made, CUDNN_ATTR_CONVOLUTION_SPATIAL_DIMS, CUDNN_TYPE_INT64, 1, &count);
    dl2_cudnn_set(graph, made, CUDNN_ATTR_CONVOLUTION_DILATIONS, CUDNN_TYPE_INT64, count,
                  dilations);
    dl2_cudnn_set(graph, made, CUDNN_ATTR_CONVOLUTION_FILTER_STRIDES, CUDNN_TYPE_INT64, count,
                  strides + flat);
    dl2_cudnn_set(graph, made, CUDNN_ATTR_CONVOLUTION_PRE_PADDINGS, CUDNN_TYPE_INT64, count,
                  pads + flat);
    dl2_cudnn_set(graph, made, CUDNN_ATTR_CONVOLUTION_POST_PADDINGS, CUDNN_TYPE_INT64, count,
                  pads + flat);
    dl2_cudnn_finalize(graph, made);
    return made;
}

void dl2_conv_graph(struct dl2_cudnn_graph *graph, const struct dl2_cudnn_request *request)
{
    static const struct {
        cudnnBackendDescriptorType_t type;
        cudnnBackendAttributeName_t x, w, y, convolution, alpha, beta;
    } operations[] = {
        {CUDNN_BACKEND_OPERATION_CONVOLUTION_FORWARD_DESCRIPTOR,
         CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_X, CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_W,
         CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_Y,
         CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_CONV_DESC,
         CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_ALPHA,
         CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_BETA},
        {CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_DATA_DESCRIPTOR,
         CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_DX, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_W,
         CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_DY,
         CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_CONV_DESC,
         CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_ALPHA,
         CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_BETA},
        {CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_FILTER_DESCRIPTOR,
         CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_X,
         CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_DW,
         CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_DY,
         CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_CONV_DESC,
         CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_ALPHA,
         CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_BETA},
    };
    const struct dl2_conv_shape *s = &request->conv;
    const cudnnDataType_t type = dl2_cudnn_type(request->precision);
    const struct dl2_sides out = dl2_conv_out(s);
    const float alpha = 1, beta = 0;
    const bool biased = request->pass == DL2_PASS_BIASED, deep = is_deep(s);
    const cudnnBackendDescriptor_t x =
        make_tensor(graph, 0, type, deep, s->batch, s->in_channels, s->in);
    /* cuDNN takes the number of groups from the two numbers of channels. */
    const cudnnBackendDescriptor_t w =
        make_tensor(graph, 1, type, deep, s->out_channels, s->in_channels / s->groups, s->kernel);
    const cudnnBackendDescriptor_t y =
        make_tensor(graph, 2, type, deep, s->batch, s->out_channels, out);
    const cudnnBackendDescriptor_t sums =
        biased ? make_tensor(graph, DL2_CUDNN_VIRTUAL, CUDNN_DATA_FLOAT, deep, s->batch,
                             s->out_channels, out)
               : y;
    const cudnnBackendDescriptor_t convolution = make_convolution(graph, s);
    const int pass = biased ? DL2_PASS_FORWARD : request->pass;
    const cudnnBackendDescriptor_t operation = dl2_cudnn_operation(graph, operations[pass].type);
    dl2_cudnn_link(graph, operation, operations[pass].x, x);
    dl2_cudnn_link(graph, operation, operations[pass].w, w);
    dl2_cudnn_link(graph, operation, operations[pass].y, sums);
    dl2_cudnn_link(graph, operation, operations[pass].convolution, convolution);
    dl2_cudnn_set(graph, operation, operations[pass].alpha, CUDNN_TYPE_FLOAT, 1, &alpha);
    dl2_cudnn_set(graph, operation, operations[pass].beta, CUDNN_TYPE_FLOAT, 1, &beta);
    dl2_cudnn_finalize(graph, operation);
    if (!biased)
        return;
    const bool relu = s->activation == DL2_RELU;
    const cudnnBackendDescriptor_t bias = make_tensor(graph, DL2_CONV_BIAS, type, deep, 1,
                                                      s->out_channels, (struct dl2_sides){1, 1, 1});
    const cudnnBackendDescriptor_t shifted =
        relu ? make_tensor(graph, DL2_CUDNN_VIRTUAL, CUDNN_DATA_FLOAT, deep, s->batch,
                           s->out_channels, out)
             : y;
    dl2_cudnn_pointwise(graph, CUDNN_POINTWISE_ADD, sums, bias, shifted);
    if (relu)
        dl2_cudnn_pointwise(graph, CUDNN_POINTWISE_RELU_FWD, shifted, NULL, y);
}
