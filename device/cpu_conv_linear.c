/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Convolutions and linear layers on the cpu device. Both are products of activations and weights
 * to oneDNN, with the same three primitives.
 *
 * oneDNN gets activations as they are (NHWC) and may choose the layout of weights; a weight's
 * packed copy is made anew when weights have changed, which the device's `version` tells. With bf16
 * it gets copies of activations and weights, and gives float32.
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

/* A tensor's copy in bf16; its memory is the device's. */
struct narrowing {
    dnnl_memory_t memory; /* NULL: there is none */
    dnnl_primitive_t reorder;
};

struct product {
    struct dl2_device_plan plan;
    struct dl2_cpu *cpu;
    dnnl_primitive_t forward, backward_data, backward_weights;
    struct packing forward_pack, data_pack, weights_pack;
    dnnl_memory_t in, out, weights, bias; /* their addresses are set at each call */
    struct narrowing low_in, low_out;
    bool low_gradient; /* that of the weights is a product of the two, and the bias's is not */
    size_t weight_count, outs, rows;
};

/* The descriptions of the three primitives are made of this. */
struct product_shape {
    struct dl2_operands ours;
    dl2_layout wanted;       /* of the weights: any allowed; NULL: ours */
    struct dl2_operands low; /* in bf16, without a bias; NULLs: none */
    bool low_gradient;       /* of the weights */
    bool conv, has_bias;
    size_t weight_count, outs, rows; /* rows: of results */
    struct dl2_window window;        /* of a convolution */
};

static void cpu_free_shape(struct product_shape *s)
{
    dl2_layout layouts[] = {s->ours.in, s->ours.out, s->ours.weights, s->ours.bias,
                            s->low.in,  s->low.out,  s->low.weights,  s->wanted};
    for (int i = 0; i < 8; i++)
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
    dnnl_primitive_t primitives[] = {p->forward, p->backward_data, p->backward_weights,
                                     p->low_in.reorder, p->low_out.reorder};
    dnnl_memory_t memories[] = {p->in,   p->out,           p->weights,
                                p->bias, p->low_in.memory, p->low_out.memory};
    for (int i = 0; i < 5; i++)
        if (primitives[i])
            dnnl_primitive_destroy(primitives[i]);
    for (int i = 0; i < 6; i++)
        if (memories[i])
            dnnl_memory_destroy(memories[i]);
    cpu_free_packing(&p->forward_pack);
    cpu_free_packing(&p->data_pack);
    cpu_free_packing(&p->weights_pack);
    free(p);
}

static int cpu_make_reorder(const struct product *p, dl2_const_layout from, dl2_const_layout to,
                            dnnl_primitive_t *reorder, const char *what, struct dl2_error *error)
{
    dnnl_engine_t engine = p->cpu->engine;
    dnnl_primitive_desc_t desc;
    DL2_TRY(dl2_cpu_check(dnnl_reorder_primitive_desc_create(&desc, from, engine, to, engine, NULL),
                          what, error));
    dnnl_status_t status = dnnl_primitive_create(reorder, desc);
    dnnl_primitive_desc_destroy(desc);
    return dl2_cpu_check(status, what, error);
}

/* The copy of a tensor in bf16, in the device's room number `place`. */
static int cpu_make_narrowing(const struct product *p, dl2_const_layout ours, dl2_const_layout low,
                              int place, struct narrowing *out, struct dl2_error *error)
{
    struct dl2_cpu *cpu = p->cpu;
    const size_t size = dnnl_memory_desc_get_size(low);
    if (cpu->narrow_size[place] < size) {
        void *room = dl2_alloc_aligned(size, 1);
        if (!room)
            return dl2_cpu_out_of_memory(error, "a copy in bf16");
        free(cpu->narrow[place]);
        cpu->narrow[place] = room;
        cpu->narrow_size[place] = size;
    }
    DL2_TRY(dl2_cpu_check(dnnl_memory_create(&out->memory, low, cpu->engine, DNNL_MEMORY_NONE),
                          "describe a copy", error));
    return cpu_make_reorder(p, ours, low, &out->reorder, "copy to bf16", error);
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
    return cpu_make_reorder(p, unpacks ? wanted : ours, unpacks ? ours : wanted, &pack->reorder,
                            "pack weights", error);
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
    if (s->low.in && (pass != DL2_BACKWARD_WEIGHTS || s->low_gradient)) {
        operands.in = pass == DL2_BACKWARD_DATA ? operands.in : s->low.in;
        operands.out = pass == DL2_FORWARD ? operands.out : s->low.out;
        operands.weights = pass == DL2_BACKWARD_WEIGHTS ? operands.weights : s->low.weights;
    }
    if (!s->has_bias || (pass == DL2_BACKWARD_WEIGHTS && s->low_gradient))
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
    if (s->low.in) {
        DL2_TRY(cpu_make_narrowing(p, s->ours.in, s->low.in, 0, &p->low_in, error));
        DL2_TRY(cpu_make_narrowing(p, s->ours.out, s->low.out, 1, &p->low_out, error));
    }
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
    p->rows = shape->rows;
    p->low_gradient = shape->low_gradient;
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

/* `wide`, whose address is set, as the primitive wants it. */
static dnnl_memory_t cpu_narrowed(struct product *p, const struct narrowing *low, int place,
                                  dnnl_memory_t wide)
{
    if (!low->memory)
        return wide;
    dl2_cpu_point(low->memory, p->cpu->narrow[place]);
    const dnnl_exec_arg_t args[] = {{DNNL_ARG_FROM, wide}, {DNNL_ARG_TO, low->memory}};
    dl2_cpu_execute(p->cpu, low->reorder, 2, args, "copy to bf16");
    return low->memory;
}

static void cpu_product_forward(struct product *p, const void *x, const void *weights,
                                const float *bias, void *y)
{
    dl2_cpu_point(p->in, x);
    dl2_cpu_point(p->out, y);
    dl2_cpu_point(p->bias, bias);
    const dnnl_exec_arg_t args[] = {{DNNL_ARG_SRC, cpu_narrowed(p, &p->low_in, 0, p->in)},
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
    const dnnl_exec_arg_t args[] = {{DNNL_ARG_DIFF_DST, cpu_narrowed(p, &p->low_out, 1, p->out)},
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
    if (p->low_gradient && dbias) {
        dl2_cpu_sum_rows(&cpu->base, dy, p->rows, (unsigned)p->outs, dbias, accumulate);
        bias = NULL;
    }
    if (!pack->block)
        dl2_cpu_point(pack->memory, weights);
    dl2_cpu_point(p->in, x);
    dl2_cpu_point(p->out, dy);
    dl2_cpu_point(p->bias, bias);
    const bool low = p->low_gradient;
    dnnl_memory_t in = low ? cpu_narrowed(p, &p->low_in, 0, p->in) : p->in;
    dnnl_memory_t out = low ? cpu_narrowed(p, &p->low_out, 1, p->out) : p->out;
    const dnnl_exec_arg_t args[] = {{DNNL_ARG_SRC, in},
                                    {DNNL_ARG_DIFF_DST, out},
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
static int cpu_conv_layouts(const struct dl2_conv_shape *shape, bool deep, bool bf16,
                            struct product_shape *s, struct dl2_error *error)
{
    dnnl_dim_t groups = shape->groups;
    dnnl_dims_t in = {shape->batch, shape->in_channels};
    dnnl_dims_t out = {shape->batch, shape->out_channels};
    dnnl_dim_t kernel[DNNL_MAX_NDIMS + 1] = {groups, shape->out_channels / groups,
                                             shape->in_channels / groups};
    dnnl_dims_t bias = {shape->out_channels};
    int grouped = groups > 1, dims = 4 + deep;
    dl2_cpu_put_sides(in + 2, deep, shape->in);
    dl2_cpu_put_sides(out + 2, deep, dl2_conv_out(shape));
    dl2_cpu_put_sides(kernel + 3, deep, shape->kernel);
    const dnnl_format_tag_t tensor = deep ? dnnl_ndhwc : dnnl_nhwc;
    const dnnl_format_tag_t image_weights = grouped ? dnnl_gohwi : dnnl_ohwi;
    const dnnl_format_tag_t clip_weights = grouped ? dnnl_godhwi : dnnl_odhwi;
    DL2_TRY(dl2_cpu_make_layout(&s->ours.in, dnnl_f32, dims, in, tensor, error));
    DL2_TRY(dl2_cpu_make_layout(&s->ours.out, dnnl_f32, dims, out, tensor, error));
    DL2_TRY(dl2_cpu_make_layout(&s->ours.weights, dnnl_f32, dims + grouped, kernel + !grouped,
                                deep ? clip_weights : image_weights, error));
    DL2_TRY(dl2_cpu_make_layout(&s->wanted, dnnl_f32, dims + grouped, kernel + !grouped,
                                dnnl_format_tag_any, error));
    /* In groups, bf16 is slower; and so are the gradients of 1x1 weights. */
    if (bf16 && !grouped) {
        DL2_TRY(dl2_cpu_make_layout(&s->low.in, dnnl_bf16, dims, in, tensor, error));
        DL2_TRY(dl2_cpu_make_layout(&s->low.out, dnnl_bf16, dims, out, tensor, error));
        DL2_TRY(dl2_cpu_make_layout(&s->low.weights, dnnl_bf16, dims, kernel + !grouped,
                                    dnnl_format_tag_any, error));
        s->low_gradient = dl2_sides_count(shape->kernel) > 1;
    }
    dl2_cpu_put_sides(s->window.strides, deep, shape->stride);
    dl2_cpu_put_sides(s->window.near_pad, deep, shape->pad);
    dl2_cpu_put_sides(s->window.far_pad, deep, shape->pad);
    return dl2_cpu_make_layout(&s->ours.bias, dnnl_f32, 1, bias, dnnl_x, error);
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
        .rows = shape->batch * dl2_sides_count(dl2_conv_out(shape)),
        .weight_count = shape->out_channels * dl2_sides_count(shape->kernel) *
                        (shape->in_channels / shape->groups),
    };
    struct product *product;
    int status = cpu_conv_layouts(shape, deep, ((struct dl2_cpu *)device)->bf16, &s, error);
    if (status == DL2_OK)
        status = cpu_make_product(device, &s, &product, error);
    cpu_free_shape(&s);
    if (status == DL2_OK)
        *out = (struct dl2_conv *)product;
    return status;
}

static int cpu_linear_layouts(const struct dl2_linear_shape *shape, bool bf16,
                              struct product_shape *s, struct dl2_error *error)
{
    dnnl_dims_t in = {shape->batch, shape->in}, out = {shape->batch, shape->out};
    dnnl_dims_t weights = {shape->out, shape->in}, bias = {shape->out};
    DL2_TRY(dl2_cpu_make_layout(&s->ours.in, dnnl_f32, 2, in, dnnl_nc, error));
    DL2_TRY(dl2_cpu_make_layout(&s->ours.out, dnnl_f32, 2, out, dnnl_nc, error));
    if (bf16) {
        DL2_TRY(dl2_cpu_make_layout(&s->low.in, dnnl_bf16, 2, in, dnnl_nc, error));
        DL2_TRY(dl2_cpu_make_layout(&s->low.out, dnnl_bf16, 2, out, dnnl_nc, error));
        DL2_TRY(dl2_cpu_make_layout(&s->low.weights, dnnl_bf16, 2, weights, dnnl_format_tag_any,
                                    error));
        s->low_gradient = true;
    }
    /* Linear weights are large and used once a step: packing them costs more than it gives. */
    DL2_TRY(dl2_cpu_make_layout(&s->ours.weights, dnnl_f32, 2, weights, dnnl_oi, error));
    return dl2_cpu_make_layout(&s->ours.bias, dnnl_f32, 1, bias, dnnl_x, error);
}

int dl2_cpu_linear_create(struct dl2_device *device, const struct dl2_linear_shape *shape,
                          struct dl2_linear **out, struct dl2_error *error)
{
    struct product_shape s = {.has_bias = shape->bias,
                              .ours = {.activation = shape->activation},
                              .outs = shape->out,
                              .rows = shape->batch,
                              .weight_count = (size_t)shape->out * shape->in};
    struct product *product;
    int status = cpu_linear_layouts(shape, ((struct dl2_cpu *)device)->bf16, &s, error);
    if (status == DL2_OK)
        status = cpu_make_product(device, &s, &product, error);
    cpu_free_shape(&s);
    if (status == DL2_OK)
        *out = (struct dl2_linear *)product;
    return status;
}
