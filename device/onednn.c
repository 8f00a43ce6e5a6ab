/* SPDX-License-Identifier: BSD-2-Clause */
#include "device/onednn.h"

#include "common/memory.h"

#include <stdlib.h>

#if DNNL_VERSION_MAJOR == 2
#define APPEND(post_ops, kind, alpha) dnnl_post_ops_append_eltwise(post_ops, 1, kind, alpha, 0)
#else
#define APPEND(post_ops, kind, alpha) dnnl_post_ops_append_eltwise(post_ops, kind, alpha, 0)
#endif

/* Attributes that end a primitive with the activation; the caller destroys them. NULL: none are
 * needed. */
static dnnl_status_t make_attributes(dnnl_primitive_attr_t *attributes,
                                     enum dl2_activation activation)
{
    dnnl_post_ops_t post_ops;
    *attributes = NULL;
    if (activation == DL2_IDENTITY)
        return dnnl_success;
    if (activation != DL2_RELU && activation != DL2_ELU)
        return dnnl_unimplemented;
    dnnl_status_t status = dnnl_primitive_attr_create(attributes);
    if (status != dnnl_success)
        return status;
    status = dnnl_post_ops_create(&post_ops);
    if (status == dnnl_success) {
        status = activation == DL2_ELU ? APPEND(post_ops, dnnl_eltwise_elu, 1)
                                       : APPEND(post_ops, dnnl_eltwise_relu, 0);
        if (status == dnnl_success)
            status = dnnl_primitive_attr_set_post_ops(*attributes, post_ops);
        dnnl_post_ops_destroy(post_ops);
    }
    if (status != dnnl_success)
        dnnl_primitive_attr_destroy(*attributes);
    return status;
}

#if DNNL_VERSION_MAJOR == 2

dnnl_status_t dl2_layout_create(dl2_layout *layout, dnnl_data_type_t type, int dims,
                                const dnnl_dims_t sizes, dnnl_format_tag_t tag)
{
    *layout = dl2_calloc(1, sizeof **layout);
    if (!*layout)
        return dnnl_out_of_memory;
    return dnnl_memory_desc_init_by_tag(*layout, dims, sizes, type, tag);
}

void dl2_layout_free(dl2_layout layout)
{
    free(layout);
}

/* Describes the primitive of `op`, whose initialization ended with `status`. */
static dnnl_status_t describe(dnnl_primitive_desc_t *desc, dnnl_engine_t engine,
                              dnnl_status_t status, const void *op, enum dl2_activation activation,
                              const_dnnl_primitive_desc_t hint)
{
    dnnl_primitive_attr_t attributes;
    if (status == dnnl_success)
        status = make_attributes(&attributes, activation);
    if (status != dnnl_success)
        return status;
    status = dnnl_primitive_desc_create(desc, op, attributes, engine, hint);
    if (attributes)
        dnnl_primitive_attr_destroy(attributes);
    return status;
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
    return describe(desc, engine, status, &op, pass == DL2_FORWARD ? o->activation : DL2_IDENTITY,
                    hint);
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
    return describe(desc, engine, status, &op, pass == DL2_FORWARD ? o->activation : DL2_IDENTITY,
                    hint);
}

#else /* oneDNN 3 */

dnnl_status_t dl2_layout_create(dl2_layout *layout, dnnl_data_type_t type, int dims,
                                const dnnl_dims_t sizes, dnnl_format_tag_t tag)
{
    *layout = NULL;
    return dnnl_memory_desc_create_with_tag(layout, dims, sizes, type, tag);
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
    dnnl_primitive_attr_t attributes;
    dnnl_status_t status;
    switch (pass) {
    case DL2_FORWARD:
        status = make_attributes(&attributes, o->activation);
        if (status != dnnl_success)
            return status;
        status = dnnl_convolution_forward_primitive_desc_create(
            desc, engine, dnnl_forward_training, dnnl_convolution_direct, o->in, o->weights,
            o->bias, o->out, w->strides, w->dilates, w->near_pad, w->far_pad, attributes);
        if (attributes)
            dnnl_primitive_attr_destroy(attributes);
        return status;
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
    dnnl_primitive_attr_t attributes;
    dnnl_status_t status;
    switch (pass) {
    case DL2_FORWARD:
        status = make_attributes(&attributes, o->activation);
        if (status != dnnl_success)
            return status;
        status = dnnl_inner_product_forward_primitive_desc_create(
            desc, engine, dnnl_forward_training, o->in, o->weights, o->bias, o->out, attributes);
        if (attributes)
            dnnl_primitive_attr_destroy(attributes);
        return status;
    case DL2_BACKWARD_DATA:
        return dnnl_inner_product_backward_data_primitive_desc_create(
            desc, engine, o->in, o->weights, o->out, hint, NULL);
    case DL2_BACKWARD_WEIGHTS:
        return dnnl_inner_product_backward_weights_primitive_desc_create(
            desc, engine, o->in, o->weights, o->bias, o->out, hint, NULL);
    }
    return dnnl_invalid_arguments;
}

#endif
