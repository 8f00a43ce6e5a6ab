/* SPDX-License-Identifier: BSD-2-Clause */
#include "device/onednn.h"

#include "common/memory.h"

#include <stdlib.h>

#if DNNL_VERSION_MAJOR == 2

dnnl_status_t dl2_layout_create(dl2_layout *layout, int dims, const dnnl_dims_t sizes,
                                dnnl_format_tag_t tag)
{
    *layout = dl2_calloc(1, sizeof **layout);
    if (!*layout)
        return dnnl_out_of_memory;
    return dnnl_memory_desc_init_by_tag(*layout, dims, sizes, dnnl_f32, tag);
}

void dl2_layout_free(dl2_layout layout)
{
    free(layout);
}

/* Describes the primitive of `op`, whose initialisation ended with `status`. */
static dnnl_status_t describe(dnnl_primitive_desc_t *desc, dnnl_engine_t engine,
                              dnnl_status_t status, const void *op,
                              const_dnnl_primitive_desc_t hint)
{
    if (status != dnnl_success)
        return status;
    return dnnl_primitive_desc_create(desc, op, NULL, engine, hint);
}

dnnl_status_t dl2_describe_conv(dnnl_primitive_desc_t *desc, dnnl_engine_t engine,
                                enum dl2_pass pass, const struct dl2_operands *o,
                                const struct dl2_window *w, const_dnnl_primitive_desc_t hint)
{
    dnnl_convolution_desc_t op;
    dnnl_status_t status = dnnl_invalid_arguments;
    switch (pass) {
    case DL2_FORWARD:
        status = dnnl_dilated_convolution_forward_desc_init(
            &op, dnnl_forward_training, dnnl_convolution_direct, o->in, o->weights, o->bias, o->out,
            w->strides, w->dilates, w->near_pad, w->far_pad);
        break;
    case DL2_BACKWARD_DATA:
        status = dnnl_dilated_convolution_backward_data_desc_init(
            &op, dnnl_convolution_direct, o->in, o->weights, o->out, w->strides, w->dilates,
            w->near_pad, w->far_pad);
        break;
    case DL2_BACKWARD_WEIGHTS:
        status = dnnl_dilated_convolution_backward_weights_desc_init(
            &op, dnnl_convolution_direct, o->in, o->weights, o->bias, o->out, w->strides,
            w->dilates, w->near_pad, w->far_pad);
        break;
    }
    return describe(desc, engine, status, &op, hint);
}

dnnl_status_t dl2_describe_linear(dnnl_primitive_desc_t *desc, dnnl_engine_t engine,
                                  enum dl2_pass pass, const struct dl2_operands *o,
                                  const_dnnl_primitive_desc_t hint)
{
    dnnl_inner_product_desc_t op;
    dnnl_status_t status = dnnl_invalid_arguments;
    switch (pass) {
    case DL2_FORWARD:
        status = dnnl_inner_product_forward_desc_init(&op, dnnl_forward_training, o->in, o->weights,
                                                      o->bias, o->out);
        break;
    case DL2_BACKWARD_DATA:
        status = dnnl_inner_product_backward_data_desc_init(&op, o->in, o->weights, o->out);
        break;
    case DL2_BACKWARD_WEIGHTS:
        status =
            dnnl_inner_product_backward_weights_desc_init(&op, o->in, o->weights, o->bias, o->out);
        break;
    }
    return describe(desc, engine, status, &op, hint);
}

dnnl_status_t dl2_describe_max_pool(dnnl_primitive_desc_t *desc, dnnl_engine_t engine,
                                    enum dl2_pass pass, const struct dl2_operands *o,
                                    const struct dl2_window *w, const_dnnl_primitive_desc_t hint)
{
    dnnl_pooling_v2_desc_t op;
    dnnl_status_t status =
        pass == DL2_FORWARD
            ? dnnl_pooling_v2_forward_desc_init(&op, dnnl_forward_training, dnnl_pooling_max, o->in,
                                                o->out, w->strides, w->kernel, w->dilates,
                                                w->near_pad, w->far_pad)
            : dnnl_pooling_v2_backward_desc_init(&op, dnnl_pooling_max, o->in, o->out, w->strides,
                                                 w->kernel, w->dilates, w->near_pad, w->far_pad);
    return describe(desc, engine, status, &op, hint);
}

#else /* oneDNN 3 */

dnnl_status_t dl2_layout_create(dl2_layout *layout, int dims, const dnnl_dims_t sizes,
                                dnnl_format_tag_t tag)
{
    *layout = NULL;
    return dnnl_memory_desc_create_with_tag(layout, dims, sizes, dnnl_f32, tag);
}

void dl2_layout_free(dl2_layout layout)
{
    if (layout)
        dnnl_memory_desc_destroy(layout);
}

dnnl_status_t dl2_describe_conv(dnnl_primitive_desc_t *desc, dnnl_engine_t engine,
                                enum dl2_pass pass, const struct dl2_operands *o,
                                const struct dl2_window *w, const_dnnl_primitive_desc_t hint)
{
    switch (pass) {
    case DL2_FORWARD:
        return dnnl_convolution_forward_primitive_desc_create(
            desc, engine, dnnl_forward_training, dnnl_convolution_direct, o->in, o->weights,
            o->bias, o->out, w->strides, w->dilates, w->near_pad, w->far_pad, NULL);
    case DL2_BACKWARD_DATA:
        return dnnl_convolution_backward_data_primitive_desc_create(
            desc, engine, dnnl_convolution_direct, o->in, o->weights, o->out, w->strides,
            w->dilates, w->near_pad, w->far_pad, hint, NULL);
    case DL2_BACKWARD_WEIGHTS:
        return dnnl_convolution_backward_weights_primitive_desc_create(
            desc, engine, dnnl_convolution_direct, o->in, o->weights, o->bias, o->out, w->strides,
            w->dilates, w->near_pad, w->far_pad, hint, NULL);
    }
    return dnnl_invalid_arguments;
}

dnnl_status_t dl2_describe_linear(dnnl_primitive_desc_t *desc, dnnl_engine_t engine,
                                  enum dl2_pass pass, const struct dl2_operands *o,
                                  const_dnnl_primitive_desc_t hint)
{
    switch (pass) {
    case DL2_FORWARD:
        return dnnl_inner_product_forward_primitive_desc_create(
            desc, engine, dnnl_forward_training, o->in, o->weights, o->bias, o->out, NULL);
    case DL2_BACKWARD_DATA:
        return dnnl_inner_product_backward_data_primitive_desc_create(
            desc, engine, o->in, o->weights, o->out, hint, NULL);
    case DL2_BACKWARD_WEIGHTS:
        return dnnl_inner_product_backward_weights_primitive_desc_create(
            desc, engine, o->in, o->weights, o->bias, o->out, hint, NULL);
    }
    return dnnl_invalid_arguments;
}

dnnl_status_t dl2_describe_max_pool(dnnl_primitive_desc_t *desc, dnnl_engine_t engine,
                                    enum dl2_pass pass, const struct dl2_operands *o,
                                    const struct dl2_window *w, const_dnnl_primitive_desc_t hint)
{
    if (pass == DL2_FORWARD)
        return dnnl_pooling_forward_primitive_desc_create(
            desc, engine, dnnl_forward_training, dnnl_pooling_max, o->in, o->out, w->strides,
            w->kernel, w->dilates, w->near_pad, w->far_pad, NULL);
    return dnnl_pooling_backward_primitive_desc_create(desc, engine, dnnl_pooling_max, o->in,
                                                       o->out, w->strides, w->kernel, w->dilates,
                                                       w->near_pad, w->far_pad, hint, NULL);
}

#endif
