/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The parts of oneDNN's C interface that differ between versions 2 and 3, in one form, that of
 * version 3: layouts are handles, and a primitive is described in one call. All else is the same
 * in both, and the cpu device calls it itself.
 *
 * A layout is what oneDNN calls a memory descriptor: the sizes of a tensor and its order in memory.
 * oneDNN's own functions take it as it is. Any thread may call any function here. Source: dnnl.h of
 * oneDNN 2.6 and 3.7.
 */
#ifndef DL2_DEVICE_ONEDNN_H
#define DL2_DEVICE_ONEDNN_H

#include "device/device.h"

#include <oneapi/dnnl/dnnl.h>
#include <oneapi/dnnl/dnnl_debug.h>
#include <stdbool.h>

#if DNNL_VERSION_MAJOR == 2
typedef dnnl_memory_desc_t *dl2_layout;
typedef const dnnl_memory_desc_t *dl2_const_layout;
#elif DNNL_VERSION_MAJOR == 3
typedef dnnl_memory_desc_t dl2_layout;
typedef const_dnnl_memory_desc_t dl2_const_layout;
#else
#error "oneDNN 2 or 3 is needed; configure should not have chosen this one"
#endif

/*
 * Makes the layout of a tensor of `dims` dimensions in the order of `tag`. The caller frees it,
 * whether or not this succeeds. Freeing NULL does nothing.
 */
dnnl_status_t dl2_layout_create(dl2_layout *layout, dnnl_data_type_t type, int dims,
                                const dnnl_dims_t sizes, dnnl_format_tag_t tag);
void dl2_layout_free(dl2_layout layout);

enum dl2_pass { DL2_FORWARD, DL2_BACKWARD_DATA, DL2_BACKWARD_WEIGHTS };

/* The operands of a convolution or a linear layer; in a backward pass, some are gradients. */
struct dl2_operands {
    dl2_layout in, out, weights, bias; /* bias NULL: none */
    enum dl2_activation activation;    /* ends the forward pass: none, RELU or ELU */
};

/* How windows lie on an image, by height and width, or on a clip, whose depth comes first. */
struct dl2_window {
    dnnl_dims_t kernel; /* a convolution's weights tell it, so there it is not read */
    dnnl_dims_t strides;
    dnnl_dims_t dilates;           /* 0: none */
    dnnl_dims_t near_pad, far_pad; /* before the first; behind the last */
};

/*
 * Each describes a primitive for a pass of training; the caller destroys *desc. `hint` is what
 * describing the forward pass gave, and NULL for that pass itself. *desc is only set on success.
 */
dnnl_status_t dl2_describe_conv(dnnl_primitive_desc_t *desc, dnnl_engine_t engine,
                                enum dl2_pass pass, const struct dl2_operands *operands,
                                const struct dl2_window *window, const_dnnl_primitive_desc_t hint);
dnnl_status_t dl2_describe_linear(dnnl_primitive_desc_t *desc, dnnl_engine_t engine,
                                  enum dl2_pass pass, const struct dl2_operands *operands,
                                  const_dnnl_primitive_desc_t hint);
#endif
