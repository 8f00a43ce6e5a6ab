/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Convolutions and linear layers on the cpu device. Both are products of activations and weights
 * to oneDNN, with the same three primitives.
 *
 * oneDNN gets activations as they are (NHWC) and may choose the layout of weights; a weight's
 * packed copy is made anew when weights have changed, which the device's `version` tells.
 */
#include "common/memory.h"
#include "device/cpu.h"

#include <stdlib.h>

/* A primitive's copy of the weights in the layout that it wants, or of their gradient. */
struct packing {
    dnnl_memory_t memory; /* what the primitive gets */
    float *block;         /* NULL where it wants them as they are */
    dnnl_primitive_t reorder;
    const float *from; /* what was packed, and when */
    uint64_t version;
};

struct product {
    struct dl2_device_plan plan;
    struct dl2_cpu *cpu;
    dnnl_primitive_t forward, backward_data, backward_weights;
    struct packing forward_pack, data_pack, weights_pack;
    dnnl_memory_t in, out, weights, bias; /* their addresses are set at each call */
    size_t weight_count, outs;
};

/* The descriptions of the three primitives are made of this. */
struct product_shape {
    struct dl2_operands ours;
    dl2_layout wanted; /* of the weights: any allowed; NULL: ours */
    bool conv, has_bias;
    size_t weight_count, outs;
    struct dl2_window window; /* of a convolution */
};

static void cpu_free_shape(struct product_shape *s)
{
    dl2_layout layouts[] = {s->ours.in, s->ours.out, s->ours.weights, s->ours.bias, s->wanted};
    for (int i = 0; i < 5; i++)
        dl2_layout_free(layouts[i]);
}

static void cpu_free_packing(struct packing *pack)
{
    if (pack->memory)
        dnnl_memory_destroy(pack->memory);
    if (pack->reorder)
        dnnl_primitive_destroy(pack->reorder);
    free(pack->block);
}

static void cpu_free_product(void *plan)
{
    struct product *p = plan;
    dnnl_primitive_t primitives[] = {p->forward, p->backward_data, p->backward_weights};
    dnnl_memory_t memories[] = {p->in, p->out, p->weights, p->bias};
    for (int i = 0; i < 3; i++)
        if (primitives[i])
            dnnl_primitive_destroy(primitives[i]);
    for (int i = 0; i < 4; i++)
        if (memories[i])
            dnnl_memory_destroy(memories[i]);
    cpu_free_packing(&p->forward_pack);
    cpu_free_packing(&p->data_pack);
    cpu_free_packing(&p->weights_pack);
    free(p);
}

/* A memory of the layout that the primitive wants, and the reorder between it and ours. */
static int cpu_make_packing(struct product *p, dl2_const_layout ours, dl2_const_layout wanted,
                            bool unpacks, struct packing *pack, struct dl2_error *error)
{
    dnnl_engine_t engine = p->cpu->engine;
    if (dnnl_memory_desc_equal(ours, wanted))
        return dl2_cpu_check(dnnl_memory_create(&pack->memory, ours, engine, DNNL_MEMORY_NONE),
                             "describe weights", error);
    pack->block = dl2_alloc_aligned(dnnl_memory_desc_get_size(wanted), 1);
    if (!pack->block)
        return dl2_cpu_out_of_memory(error, "packed weights");
    DL2_TRY(dl2_cpu_check(dnnl_memory_create(&pack->memory, wanted, engine, pack->block),
                          "describe packed weights", error));
    dnnl_primitive_desc_t desc;
    DL2_TRY(dl2_cpu_check(dnnl_reorder_primitive_desc_create(&desc, unpacks ? wanted : ours, engine,
                                                             unpacks ? ours : wanted, engine, NULL),
                          "pack weights", error));
    dnnl_status_t status = dnnl_primitive_create(&pack->reorder, desc);
    dnnl_primitive_desc_destroy(desc);
    return dl2_cpu_check(status, "pack weights", error);
}

/* The primitive of a pass, and the packing of its weights argument. *hint is the description of the
 * forward pass: made by that, asked for by the others, the caller's. */
static int cpu_make_primitive(struct product *p, const struct product_shape *s, enum dl2_pass pass,
                              dnnl_primitive_desc_t *hint, dnnl_primitive_t *primitive,
                              struct packing *pack, struct dl2_error *error)
{
    const char *what = s->conv ? "plan a convolution" : "plan a linear layer";
    dnnl_query_t query =
        pass == DL2_BACKWARD_WEIGHTS ? dnnl_query_diff_weights_md : dnnl_query_weights_md;
    dnnl_engine_t engine = p->cpu->engine;
    dnnl_primitive_desc_t desc;
    struct dl2_operands operands = s->ours;
    if (s->wanted)
        operands.weights = s->wanted;
    if (!s->has_bias)
        operands.bias = NULL;
    DL2_TRY(dl2_cpu_check(s->conv
                              ? dl2_describe_conv(&desc, engine, pass, &operands, &s->window, *hint)
                              : dl2_describe_linear(&desc, engine, pass, &operands, *hint),
                          what, error));
    int status = dl2_cpu_check(dnnl_primitive_create(primitive, desc), what, error);
    if (status == DL2_OK)
        status = cpu_make_packing(p, s->ours.weights, dnnl_primitive_desc_query_md(desc, query, 0),
                                  pass == DL2_BACKWARD_WEIGHTS, pack, error);
    if (pass == DL2_FORWARD)
        *hint = desc;
    else
        dnnl_primitive_desc_destroy(desc);
    return status;
}

static int cpu_fill_product(struct product *p, const struct product_shape *s,
                            struct dl2_error *error)
{
    struct dl2_cpu *cpu = p->cpu;
    const struct {
        dnnl_memory_t *memory;
        dl2_const_layout layout;
    } plain[] = {{&p->in, s->ours.in},
                 {&p->out, s->ours.out},
                 {&p->weights, s->ours.weights},
                 {&p->bias, s->ours.bias}};
    for (int i = 0; i < 4; i++)
        DL2_TRY(dl2_cpu_check(
            dnnl_memory_create(plain[i].memory, plain[i].layout, cpu->engine, DNNL_MEMORY_NONE),
            "describe a tensor", error));
    dl2_cpu_claim_threads(cpu);
    dnnl_primitive_desc_t hint = NULL;
    int status = cpu_make_primitive(p, s, DL2_FORWARD, &hint, &p->forward, &p->forward_pack, error);
    if (status == DL2_OK)
        status = cpu_make_primitive(p, s, DL2_BACKWARD_DATA, &hint, &p->backward_data,
                                    &p->data_pack, error);
    if (status == DL2_OK)
        status = cpu_make_primitive(p, s, DL2_BACKWARD_WEIGHTS, &hint, &p->backward_weights,
                                    &p->weights_pack, error);
    if (hint)
        dnnl_primitive_desc_destroy(hint);
    DL2_TRY(status);
    size_t size = p->weight_count + p->outs;
    if (cpu->gradient_size < size) {
        float *gradient = dl2_alloc_aligned(size, sizeof *gradient);
        if (!gradient)
            return dl2_cpu_out_of_memory(error, "a gradient");
        free(cpu->gradient);
        cpu->gradient = gradient;
        cpu->gradient_size = size;
    }
    return DL2_OK;
}

static int cpu_make_product(struct dl2_device *device, const struct product_shape *shape,
                            struct product **out, struct dl2_error *error)
{
    struct product *p = dl2_calloc(1, sizeof *p);
    if (!p)
        return dl2_cpu_out_of_memory(error, "a layer");
    p->plan.free = cpu_free_product;
    p->cpu = (struct dl2_cpu *)device;
    p->weight_count = shape->weight_count;
    p->outs = shape->outs;
    int status = cpu_fill_product(p, shape, error);
    if (status < 0) {
        cpu_free_product(p);
        return status;
    }
    *out = p;
    return DL2_OK;
}

/* The weights as the primitive wants them. */
static dnnl_memory_t cpu_packed(struct product *p, struct packing *pack, const float *weights)
{
    if (!pack->block) {
        dl2_cpu_point(pack->memory, weights);
    } else if (pack->from != weights || pack->version != p->cpu->version) {
        dl2_cpu_point(p->weights, weights);
        const dnnl_exec_arg_t args[] = {{DNNL_ARG_FROM, p->weights}, {DNNL_ARG_TO, pack->memory}};
        dl2_cpu_execute(p->cpu, pack->reorder, 2, args, "pack weights");
        pack->from = weights;
        pack->version = p->cpu->version;
    }
    return pack->memory;
}

static void cpu_product_forward(struct product *p, const void *x, const void *weights,
                                const float *bias, void *y)
{
    dl2_cpu_point(p->in, x);
    dl2_cpu_point(p->out, y);
    dl2_cpu_point(p->bias, bias);
    const dnnl_exec_arg_t args[] = {{DNNL_ARG_SRC, p->in},
                                    {DNNL_ARG_WEIGHTS, cpu_packed(p, &p->forward_pack, weights)},
                                    {DNNL_ARG_DST, p->out},
                                    {DNNL_ARG_BIAS, p->bias}};
    dl2_cpu_execute(p->cpu, p->forward, bias ? 4 : 3, args, "run a layer");
}

static void cpu_product_backward_data(struct product *p, const void *dy, const void *weights,
                                      void *dx)
{
    dl2_cpu_point(p->in, dx);
    dl2_cpu_point(p->out, dy);
    const dnnl_exec_arg_t args[] = {{DNNL_ARG_DIFF_DST, p->out},
                                    {DNNL_ARG_WEIGHTS, cpu_packed(p, &p->data_pack, weights)},
                                    {DNNL_ARG_DIFF_SRC, p->in}};
    dl2_cpu_execute(p->cpu, p->backward_data, 3, args, "run a layer's backward pass");
}

static void cpu_product_backward_weights(struct product *p, const void *x, const void *dy,
                                         float *dweights, float *dbias, bool accumulate)
{
    struct dl2_cpu *cpu = p->cpu;
    struct packing *pack = &p->weights_pack;
    float *weights = accumulate ? cpu->gradient : dweights;
    float *bias = accumulate && dbias ? cpu->gradient + p->weight_count : dbias;
    if (!pack->block)
        dl2_cpu_point(pack->memory, weights);
    dl2_cpu_point(p->in, x);
    dl2_cpu_point(p->out, dy);
    dl2_cpu_point(p->bias, bias);
    const dnnl_exec_arg_t args[] = {{DNNL_ARG_SRC, p->in},
                                    {DNNL_ARG_DIFF_DST, p->out},
                                    {DNNL_ARG_DIFF_WEIGHTS, pack->memory},
                                    {DNNL_ARG_DIFF_BIAS, p->bias}};
    dl2_cpu_execute(cpu, p->backward_weights, bias ? 4 : 3, args, "run a layer's backward pass");
    if (pack->block) {
        dl2_cpu_point(p->weights, weights);
        const dnnl_exec_arg_t unpack[] = {{DNNL_ARG_FROM, pack->memory}, {DNNL_ARG_TO, p->weights}};
        dl2_cpu_execute(cpu, pack->reorder, 2, unpack, "unpack a gradient");
    }
    if (accumulate) {
        dl2_cpu_add(&cpu->base, dweights, weights, DL2_IDENTITY, dweights, p->weight_count);
        if (bias)
            dl2_cpu_add(&cpu->base, dbias, bias, DL2_IDENTITY, dbias, p->outs);
    }
}

/* A convolution and a linear layer of the seam are both a product on this device. */
#define PRODUCT_METHODS(name)                                                                      \
    struct dl2_##name {                                                                            \
        struct product product;                                                                    \
    };                                                                                             \
    void dl2_cpu_##name##_forward(struct dl2_##name *layer, const void *x, const void *weights,    \
                                  const float *bias, void *y)                                      \
    {                                                                                              \
        cpu_product_forward(&layer->product, x, weights, bias, y);                                 \
    }                                                                                              \
    void dl2_cpu_##name##_backward_data(struct dl2_##name *layer, const void *dy,                  \
                                        const void *weights, void *dx)                             \
    {                                                                                              \
        cpu_product_backward_data(&layer->product, dy, weights, dx);                               \
    }                                                                                              \
    void dl2_cpu_##name##_backward_weights(struct dl2_##name *layer, const void *x,                \
                                           const void *dy, float *dweights, float *dbias,          \
                                           bool accumulate)                                        \
    {                                                                                              \
        cpu_product_backward_weights(&layer->product, x, dy, dweights, dbias, accumulate);         \
    }
PRODUCT_METHODS(conv)
PRODUCT_METHODS(linear)

/* oneDNN names dimensions in the order NCDHW and OIDHW whatever the layout, with groups GOIDHW; of
 * images it gets no depth, and so has what is made for them. */
static int cpu_conv_layouts(const struct dl2_conv_shape *shape, bool deep, struct product_shape *s,
                            struct dl2_error *error)
{
    dnnl_dim_t groups = shape->groups;
    dnnl_dims_t in = {shape->batch, shape->in_channels};
    dnnl_dims_t out = {shape->batch, shape->out_channels};
    dnnl_dims_t kernel = {groups, shape->out_channels / groups, shape->in_channels / groups};
    dnnl_dims_t bias = {shape->out_channels};
    int grouped = groups > 1, dims = 4 + deep;
    dl2_cpu_put_sides(in + 2, deep, shape->in);
    dl2_cpu_put_sides(out + 2, deep, dl2_conv_out(shape));
    dl2_cpu_put_sides(kernel + 3, deep, shape->kernel);
    const dnnl_format_tag_t tensor = deep ? dnnl_ndhwc : dnnl_nhwc;
    const dnnl_format_tag_t image_weights = grouped ? dnnl_gohwi : dnnl_ohwi;
    const dnnl_format_tag_t clip_weights = grouped ? dnnl_godhwi : dnnl_odhwi;
    DL2_TRY(dl2_cpu_make_layout(&s->ours.in, dims, in, tensor, error));
    DL2_TRY(dl2_cpu_make_layout(&s->ours.out, dims, out, tensor, error));
    DL2_TRY(dl2_cpu_make_layout(&s->ours.weights, dims + grouped, kernel + !grouped,
                                deep ? clip_weights : image_weights, error));
    DL2_TRY(dl2_cpu_make_layout(&s->wanted, dims + grouped, kernel + !grouped, dnnl_format_tag_any,
                                error));
    dl2_cpu_put_sides(s->window.strides, deep, shape->stride);
    dl2_cpu_put_sides(s->window.near_pad, deep, shape->pad);
    dl2_cpu_put_sides(s->window.far_pad, deep, shape->pad);
    return dl2_cpu_make_layout(&s->ours.bias, 1, bias, dnnl_x, error);
}

int dl2_cpu_conv_create(struct dl2_device *device, const struct dl2_conv_shape *shape,
                        struct dl2_conv **out, struct dl2_error *error)
{
    DL2_TRY(dl2_conv_shape_check(shape, error));
    const bool deep = shape->in.depth > 1 || shape->kernel.depth > 1;
    struct product_shape s = {
        .conv = true,
        .has_bias = shape->bias,
        .ours = {.activation = shape->activation},
        .outs = shape->out_channels,
        .weight_count = shape->out_channels * dl2_sides_count(shape->kernel) *
                        (shape->in_channels / shape->groups),
    };
    struct product *product;
    int status = cpu_conv_layouts(shape, deep, &s, error);
    if (status == DL2_OK)
        status = cpu_make_product(device, &s, &product, error);
    cpu_free_shape(&s);
    if (status == DL2_OK)
        *out = (struct dl2_conv *)product;
    return status;
}

static int cpu_linear_layouts(const struct dl2_linear_shape *shape, struct product_shape *s,
                              struct dl2_error *error)
{
    dnnl_dims_t in = {shape->batch, shape->in}, out = {shape->batch, shape->out};
    dnnl_dims_t weights = {shape->out, shape->in}, bias = {shape->out};
    DL2_TRY(dl2_cpu_make_layout(&s->ours.in, 2, in, dnnl_nc, error));
    DL2_TRY(dl2_cpu_make_layout(&s->ours.out, 2, out, dnnl_nc, error));
    /* Linear weights are large and used once a step: packing them costs more than it gives. */
    DL2_TRY(dl2_cpu_make_layout(&s->ours.weights, 2, weights, dnnl_oi, error));
    return dl2_cpu_make_layout(&s->ours.bias, 1, bias, dnnl_x, error);
}

int dl2_cpu_linear_create(struct dl2_device *device, const struct dl2_linear_shape *shape,
                          struct dl2_linear **out, struct dl2_error *error)
{
    struct product_shape s = {.has_bias = shape->bias,
                              .ours = {.activation = shape->activation},
                              .outs = shape->out,
                              .weight_count = (size_t)shape->out * shape->in};
    struct product *product;
    int status = cpu_linear_layouts(shape, &s, error);
    if (status == DL2_OK)
        status = cpu_make_product(device, &s, &product, error);
    cpu_free_shape(&s);
    if (status == DL2_OK)
        *out = (struct dl2_linear *)product;
    return status;
}
