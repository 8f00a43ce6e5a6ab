/*
 * The cpu device. oneDNN does what is bound by arithmetic (convolutions, linear layers) and max
 * pooling; kernels.c does what is bound by memory, fused so that each tensor is touched as seldom
 * as can be. Threads are OpenMP's, for oneDNN and for our own loops.
 *
 * oneDNN gets activations as they are (NHWC) and may choose the layout of weights; a weight's
 * packed copy is made anew when weights have changed, which the device's `version` tells.
 *
 * Sums are cut into the same parts whenever the number of threads is the same, and added in order.
 */
#include "common/memory.h"
#include "common/random.h"
#include "common/thread.h"
#include "train/device.h"
#include "train/kernels.h"
#include "train/onednn.h"
#include "train/reducer.h"
#include "train/sync_norm.h"

#include <math.h>
#include <oneapi/dnnl/dnnl_debug.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Of the OpenMP runtime that oneDNN uses; <omp.h> comes with some compilers only. */
void omp_set_num_threads(int threads);
int omp_get_max_threads(void);

struct cpu {
    struct dl2_device base;
    unsigned threads;
    const struct dl2_kernels *kernels;
    dnnl_engine_t engine;
    dnnl_stream_t stream;
    uint64_t version; /* of all that is in device memory but was not computed by a layer */
    double *partials; /* [threads][2 * partial_period]: sums of a norm's parts */
    size_t partial_period;
    float *gradient; /* of a layer's weight and bias, before it is added to another */
    size_t gradient_size;
    struct dl2_reducer *reducer; /* NULL: alone */
};

/* -- threads -- */

/* Smallest share worth a thread, in elements of a float tensor. */
#define GRAIN ((size_t)8192)

typedef void work_fn(void *context, unsigned part, size_t begin, size_t end);

/*
 * Calls work() on consecutive shares of 0 .. items-1. The cut depends on `items`, `grain` and the
 * number of threads only; returns the number of parts.
 */
static unsigned share_out(const struct cpu *cpu, size_t items, size_t grain, work_fn *work,
                          void *context)
{
    size_t most = items / (grain ? grain : 1);
    unsigned parts = most < 1 ? 1 : most < cpu->threads ? (unsigned)most : cpu->threads;
    if (parts == 1) {
        work(context, 0, 0, items);
        return 1;
    }
#pragma omp parallel for num_threads(parts) schedule(static, 1)
    for (unsigned p = 0; p < parts; p++)
        work(context, p, items * p / parts, items * (p + 1) / parts);
    return parts;
}

/* Rows of `channels` that make a grain. */
static size_t row_grain(size_t channels)
{
    return GRAIN / channels + 1;
}

/* -- errors -- */

static int check(dnnl_status_t status, const char *what, struct dl2_error *error)
{
    if (status == dnnl_success)
        return DL2_OK;
    return dl2_error_set(error, status == dnnl_out_of_memory ? DL2_ERR_MEMORY : DL2_ERR_UNSUPPORTED,
                         "oneDNN cannot %s: %s", what, dnnl_status2str(status));
}

static int out_of_memory(struct dl2_error *error, const char *what)
{
    return dl2_error_set(error, DL2_ERR_MEMORY, "device cpu: out of memory for %s", what);
}

static void execute(struct cpu *cpu, const_dnnl_primitive_t primitive, int count,
                    const dnnl_exec_arg_t *args, const char *what)
{
    if (cpu->base.failure.status)
        return;
    /* The setting belongs to the calling thread, and others may have changed it. */
    if (omp_get_max_threads() != (int)cpu->threads)
        omp_set_num_threads((int)cpu->threads);
    check(dnnl_primitive_execute(primitive, cpu->stream, count, args), what, &cpu->base.failure);
}

/* -- the device itself and its memory -- */

static const char *cpu_version(void)
{
    static char text[64];
    const dnnl_version_t *v = dnnl_version();
    snprintf(text, sizeof text, "oneDNN %d.%d.%d", v->major, v->minor, v->patch);
    return text;
}

static void cpu_close(struct dl2_device *device)
{
    struct cpu *cpu = (struct cpu *)device;
    if (!cpu)
        return;
    dl2_reducer_stop(cpu->reducer);
    if (cpu->stream)
        dnnl_stream_destroy(cpu->stream);
    if (cpu->engine)
        dnnl_engine_destroy(cpu->engine);
    free(cpu->partials);
    free(cpu->gradient);
    free(cpu);
}

extern const struct dl2_device_class dl2_device_cpu;

static int cpu_open(const struct dl2_device_options *options, struct dl2_device **out,
                    struct dl2_error *error)
{
    DL2_TRY(dl2_device_check_plain(&dl2_device_cpu, options, error));
    struct cpu *cpu = dl2_calloc(1, sizeof *cpu);
    if (!cpu)
        return out_of_memory(error, "itself");
    cpu->base.ops = &dl2_device_cpu;
    cpu->base.staging = 1;
    cpu->base.world = options ? options->world : NULL;
    cpu->threads = options && options->threads ? options->threads : dl2_cpu_count();
    cpu->kernels = dl2_kernels_best();
    cpu->version = 1;
    /* Primitives are made for the number of threads there is when they are made. */
    omp_set_num_threads((int)cpu->threads);
    int status = check(dnnl_engine_create(&cpu->engine, dnnl_cpu, 0), "make an engine", error);
    if (status == DL2_OK)
        status = check(dnnl_stream_create(&cpu->stream, cpu->engine, dnnl_stream_in_order),
                       "make a stream", error);
    if (status == DL2_OK && cpu->base.world)
        status = dl2_reducer_start(cpu->base.world, &cpu->reducer, error);
    if (status < 0) {
        cpu_close(&cpu->base);
        return status;
    }
    *out = &cpu->base;
    return DL2_OK;
}

static int cpu_alloc(struct dl2_device *device, size_t bytes, void **out, struct dl2_error *error)
{
    (void)device;
    *out = dl2_alloc_aligned(bytes, 1);
    if (!*out)
        return dl2_error_set(error, DL2_ERR_MEMORY, "device cpu: out of memory for %zu bytes",
                             bytes);
    memset(*out, 0, bytes);
    return DL2_OK;
}

static void cpu_free(struct dl2_device *device, void *memory)
{
    (void)device;
    free(memory);
}

static void *cpu_host_alloc(struct dl2_device *device, size_t bytes)
{
    (void)device;
    return dl2_alloc_aligned(bytes, 1);
}

static void cpu_copy(struct dl2_device *device, void *to, const void *from, size_t bytes)
{
    ((struct cpu *)device)->version++;
    memcpy(to, from, bytes);
}

static void cpu_wait_uploads(struct dl2_device *device)
{
    (void)device;
}

static int cpu_sync(struct dl2_device *device, struct dl2_error *error)
{
    int status = device->failure.status;
    if (status)
        dl2_error_set(error, device->failure.status, "%s", device->failure.message);
    dl2_error_clear(&device->failure);
    return status;
}

static int cpu_download(struct dl2_device *device, void *to, const void *from, size_t bytes,
                        struct dl2_error *error)
{
    DL2_TRY(cpu_sync(device, error));
    memcpy(to, from, bytes);
    return DL2_OK;
}

static void cpu_zero(struct dl2_device *device, void *memory, size_t bytes)
{
    ((struct cpu *)device)->version++;
    memset(memory, 0, bytes);
}

static void cpu_set_numbers(struct dl2_device *device, const struct dl2_step_numbers *numbers)
{
    device->numbers = *numbers;
}

static void cpu_all_reduce(struct dl2_device *device, float *data, size_t count)
{
    dl2_reducer_add(((struct cpu *)device)->reducer, data, count);
}

static void cpu_all_reduce_wait(struct dl2_device *device)
{
    dl2_reducer_wait(((struct cpu *)device)->reducer, &device->failure);
}

/*
 * -- convolutions and linear layers --
 * Both are a product of activations and weights to oneDNN, with the same three primitives.
 */

/* A primitive's copy of the weights in the layout that it wants, or of their gradient. */
struct packing {
    dnnl_memory_t memory; /* what the primitive gets */
    float *block;         /* NULL where it wants them as they are */
    dnnl_primitive_t reorder;
    const float *from; /* what was packed, and when */
    uint64_t version;
};

struct product {
    struct cpu *cpu;
    dnnl_primitive_t forward, backward_data, backward_weights;
    struct packing forward_pack, data_pack, weights_pack;
    dnnl_memory_t in, out, weights, bias; /* their addresses are set at each call */
    size_t weight_count, outs;
};

/* What the descriptions of the three primitives are made from. */
struct product_shape {
    struct dl2_operands ours;
    dl2_layout wanted; /* of the weights: any allowed; NULL: ours */
    bool conv, has_bias;
    size_t weight_count, outs;
    struct dl2_window window; /* of a convolution */
};

static void free_shape(struct product_shape *s)
{
    dl2_layout layouts[] = {s->ours.in, s->ours.out, s->ours.weights, s->ours.bias, s->wanted};
    for (int i = 0; i < 5; i++)
        dl2_layout_free(layouts[i]);
}

static void free_packing(struct packing *pack)
{
    if (pack->memory)
        dnnl_memory_destroy(pack->memory);
    if (pack->reorder)
        dnnl_primitive_destroy(pack->reorder);
    free(pack->block);
}

static void free_product(struct product *p)
{
    if (!p)
        return;
    dnnl_primitive_t primitives[] = {p->forward, p->backward_data, p->backward_weights};
    dnnl_memory_t memories[] = {p->in, p->out, p->weights, p->bias};
    for (int i = 0; i < 3; i++)
        if (primitives[i])
            dnnl_primitive_destroy(primitives[i]);
    for (int i = 0; i < 4; i++)
        if (memories[i])
            dnnl_memory_destroy(memories[i]);
    free_packing(&p->forward_pack);
    free_packing(&p->data_pack);
    free_packing(&p->weights_pack);
    free(p);
}

/* A memory of the layout that the primitive wants, and the reorder between it and ours. */
static int make_packing(struct product *p, dl2_const_layout ours, dl2_const_layout wanted,
                        bool unpacks, struct packing *pack, struct dl2_error *error)
{
    dnnl_engine_t engine = p->cpu->engine;
    if (dnnl_memory_desc_equal(ours, wanted))
        return check(dnnl_memory_create(&pack->memory, ours, engine, DNNL_MEMORY_NONE),
                     "describe weights", error);
    pack->block = dl2_alloc_aligned(dnnl_memory_desc_get_size(wanted), 1);
    if (!pack->block)
        return out_of_memory(error, "packed weights");
    DL2_TRY(check(dnnl_memory_create(&pack->memory, wanted, engine, pack->block),
                  "describe packed weights", error));
    dnnl_primitive_desc_t desc;
    DL2_TRY(check(dnnl_reorder_primitive_desc_create(&desc, unpacks ? wanted : ours, engine,
                                                     unpacks ? ours : wanted, engine, NULL),
                  "pack weights", error));
    dnnl_status_t status = dnnl_primitive_create(&pack->reorder, desc);
    dnnl_primitive_desc_destroy(desc);
    return check(status, "pack weights", error);
}

/* The primitive of a pass, and the packing of its weights argument. *hint is the description of the
 * forward pass: made by that, asked for by the others, the caller's. */
static int make_primitive(struct product *p, const struct product_shape *s, enum dl2_pass pass,
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
    DL2_TRY(check(s->conv ? dl2_describe_conv(&desc, engine, pass, &operands, &s->window, *hint)
                          : dl2_describe_linear(&desc, engine, pass, &operands, *hint),
                  what, error));
    int status = check(dnnl_primitive_create(primitive, desc), what, error);
    if (status == DL2_OK)
        status = make_packing(p, s->ours.weights, dnnl_primitive_desc_query_md(desc, query, 0),
                              pass == DL2_BACKWARD_WEIGHTS, pack, error);
    if (pass == DL2_FORWARD)
        *hint = desc;
    else
        dnnl_primitive_desc_destroy(desc);
    return status;
}

static int fill_product(struct product *p, const struct product_shape *s, struct dl2_error *error)
{
    struct cpu *cpu = p->cpu;
    const struct {
        dnnl_memory_t *memory;
        dl2_const_layout layout;
    } plain[] = {{&p->in, s->ours.in},
                 {&p->out, s->ours.out},
                 {&p->weights, s->ours.weights},
                 {&p->bias, s->ours.bias}};
    for (int i = 0; i < 4; i++)
        DL2_TRY(check(
            dnnl_memory_create(plain[i].memory, plain[i].layout, cpu->engine, DNNL_MEMORY_NONE),
            "describe a tensor", error));
    omp_set_num_threads((int)cpu->threads);
    dnnl_primitive_desc_t hint = NULL;
    int status = make_primitive(p, s, DL2_FORWARD, &hint, &p->forward, &p->forward_pack, error);
    if (status == DL2_OK)
        status =
            make_primitive(p, s, DL2_BACKWARD_DATA, &hint, &p->backward_data, &p->data_pack, error);
    if (status == DL2_OK)
        status = make_primitive(p, s, DL2_BACKWARD_WEIGHTS, &hint, &p->backward_weights,
                                &p->weights_pack, error);
    if (hint)
        dnnl_primitive_desc_destroy(hint);
    DL2_TRY(status);
    size_t size = p->weight_count + p->outs;
    if (cpu->gradient_size < size) {
        float *gradient = dl2_alloc_aligned(size, sizeof *gradient);
        if (!gradient)
            return out_of_memory(error, "a gradient");
        free(cpu->gradient);
        cpu->gradient = gradient;
        cpu->gradient_size = size;
    }
    return DL2_OK;
}

static int make_layout(dl2_layout *layout, int dims, const dnnl_dims_t sizes, dnnl_format_tag_t tag,
                       struct dl2_error *error)
{
    return check(dl2_layout_create(layout, dims, sizes, tag), "describe a tensor", error);
}

static int make_product(struct dl2_device *device, const struct product_shape *shape,
                        struct product **out, struct dl2_error *error)
{
    struct product *p = dl2_calloc(1, sizeof *p);
    if (!p)
        return out_of_memory(error, "a layer");
    p->cpu = (struct cpu *)device;
    p->weight_count = shape->weight_count;
    p->outs = shape->outs;
    int status = fill_product(p, shape, error);
    if (status < 0) {
        free_product(p);
        return status;
    }
    *out = p;
    return DL2_OK;
}

static void point(dnnl_memory_t memory, const void *address)
{
    dnnl_memory_set_data_handle(memory, (void *)address);
}

/* The weights as the primitive wants them. */
static dnnl_memory_t packed(struct product *p, struct packing *pack, const float *weights)
{
    if (!pack->block) {
        point(pack->memory, weights);
    } else if (pack->from != weights || pack->version != p->cpu->version) {
        point(p->weights, weights);
        const dnnl_exec_arg_t args[] = {{DNNL_ARG_FROM, p->weights}, {DNNL_ARG_TO, pack->memory}};
        execute(p->cpu, pack->reorder, 2, args, "pack weights");
        pack->from = weights;
        pack->version = p->cpu->version;
    }
    return pack->memory;
}

static void product_forward(struct product *p, const void *x, const void *weights,
                            const float *bias, void *y)
{
    point(p->in, x);
    point(p->out, y);
    point(p->bias, bias);
    const dnnl_exec_arg_t args[] = {{DNNL_ARG_SRC, p->in},
                                    {DNNL_ARG_WEIGHTS, packed(p, &p->forward_pack, weights)},
                                    {DNNL_ARG_DST, p->out},
                                    {DNNL_ARG_BIAS, p->bias}};
    execute(p->cpu, p->forward, bias ? 4 : 3, args, "run a layer");
}

static void product_backward_data(struct product *p, const void *dy, const void *weights, void *dx)
{
    point(p->in, dx);
    point(p->out, dy);
    const dnnl_exec_arg_t args[] = {{DNNL_ARG_DIFF_DST, p->out},
                                    {DNNL_ARG_WEIGHTS, packed(p, &p->data_pack, weights)},
                                    {DNNL_ARG_DIFF_SRC, p->in}};
    execute(p->cpu, p->backward_data, 3, args, "run a layer's backward pass");
}

static void cpu_add(struct dl2_device *device, const void *a, const void *b, void *y, size_t count);

static void product_backward_weights(struct product *p, const void *x, const void *dy,
                                     float *dweights, float *dbias, bool accumulate)
{
    struct cpu *cpu = p->cpu;
    struct packing *pack = &p->weights_pack;
    float *weights = accumulate ? cpu->gradient : dweights;
    float *bias = accumulate && dbias ? cpu->gradient + p->weight_count : dbias;
    if (!pack->block)
        point(pack->memory, weights);
    point(p->in, x);
    point(p->out, dy);
    point(p->bias, bias);
    const dnnl_exec_arg_t args[] = {{DNNL_ARG_SRC, p->in},
                                    {DNNL_ARG_DIFF_DST, p->out},
                                    {DNNL_ARG_DIFF_WEIGHTS, pack->memory},
                                    {DNNL_ARG_DIFF_BIAS, p->bias}};
    execute(cpu, p->backward_weights, bias ? 4 : 3, args, "run a layer's backward pass");
    if (pack->block) {
        point(p->weights, weights);
        const dnnl_exec_arg_t unpack[] = {{DNNL_ARG_FROM, pack->memory}, {DNNL_ARG_TO, p->weights}};
        execute(cpu, pack->reorder, 2, unpack, "unpack a gradient");
    }
    if (accumulate) {
        cpu_add(&cpu->base, dweights, weights, dweights, p->weight_count);
        if (bias)
            cpu_add(&cpu->base, dbias, bias, dbias, p->outs);
    }
}

/* What the seam calls a convolution and a linear layer is a product to this device. */
#define PRODUCT_METHODS(name)                                                                      \
    struct dl2_##name {                                                                            \
        struct product product;                                                                    \
    };                                                                                             \
    static void cpu_##name##_free(struct dl2_##name *layer)                                        \
    {                                                                                              \
        free_product((struct product *)layer);                                                     \
    }                                                                                              \
    static void cpu_##name##_forward(struct dl2_##name *layer, const void *x, const void *weights, \
                                     const float *bias, void *y)                                   \
    {                                                                                              \
        product_forward(&layer->product, x, weights, bias, y);                                     \
    }                                                                                              \
    static void cpu_##name##_backward_data(struct dl2_##name *layer, const void *dy,               \
                                           const void *weights, void *dx)                          \
    {                                                                                              \
        product_backward_data(&layer->product, dy, weights, dx);                                   \
    }                                                                                              \
    static void cpu_##name##_backward_weights(struct dl2_##name *layer, const void *x,             \
                                              const void *dy, float *dweights, float *dbias,       \
                                              bool accumulate)                                     \
    {                                                                                              \
        product_backward_weights(&layer->product, x, dy, dweights, dbias, accumulate);             \
    }
PRODUCT_METHODS(conv)
PRODUCT_METHODS(linear)

static int conv_layouts(const struct dl2_conv_shape *shape, struct product_shape *s,
                        struct dl2_error *error)
{
    unsigned height = dl2_window_out(shape->in_height, shape->kernel_height, shape->stride_height,
                                     shape->pad_height);
    unsigned width =
        dl2_window_out(shape->in_width, shape->kernel_width, shape->stride_width, shape->pad_width);
    dnnl_dim_t groups = shape->groups;
    /* oneDNN names dimensions in the order NCHW and OIHW whatever the layout; with groups, GOIHW.
     */
    dnnl_dims_t in = {shape->batch, shape->in_channels, shape->in_height, shape->in_width};
    dnnl_dims_t out = {shape->batch, shape->out_channels, height, width};
    dnnl_dims_t kernel = {groups, shape->out_channels / groups, shape->in_channels / groups,
                          shape->kernel_height, shape->kernel_width};
    dnnl_dims_t bias = {shape->out_channels};
    int grouped = groups > 1, dims = 4 + grouped;
    DL2_TRY(make_layout(&s->ours.in, 4, in, dnnl_nhwc, error));
    DL2_TRY(make_layout(&s->ours.out, 4, out, dnnl_nhwc, error));
    DL2_TRY(make_layout(&s->ours.weights, dims, kernel + !grouped, grouped ? dnnl_gohwi : dnnl_ohwi,
                        error));
    DL2_TRY(make_layout(&s->wanted, dims, kernel + !grouped, dnnl_format_tag_any, error));
    return make_layout(&s->ours.bias, 1, bias, dnnl_x, error);
}

static int cpu_conv_create(struct dl2_device *device, const struct dl2_conv_shape *shape,
                           struct dl2_conv **out, struct dl2_error *error)
{
    DL2_TRY(dl2_conv_shape_check(shape, error));
    struct product_shape s = {
        .conv = true,
        .has_bias = shape->bias,
        .outs = shape->out_channels,
        .weight_count = (size_t)shape->out_channels * shape->kernel_height * shape->kernel_width *
                        (shape->in_channels / shape->groups),
        .window = {.strides = {shape->stride_height, shape->stride_width},
                   .near_pad = {shape->pad_height, shape->pad_width},
                   .far_pad = {shape->pad_height, shape->pad_width}},
    };
    struct product *product;
    int status = conv_layouts(shape, &s, error);
    if (status == DL2_OK)
        status = make_product(device, &s, &product, error);
    free_shape(&s);
    if (status == DL2_OK)
        *out = (struct dl2_conv *)product;
    return status;
}

static int linear_layouts(const struct dl2_linear_shape *shape, struct product_shape *s,
                          struct dl2_error *error)
{
    dnnl_dims_t in = {shape->batch, shape->in}, out = {shape->batch, shape->out};
    dnnl_dims_t weights = {shape->out, shape->in}, bias = {shape->out};
    DL2_TRY(make_layout(&s->ours.in, 2, in, dnnl_nc, error));
    DL2_TRY(make_layout(&s->ours.out, 2, out, dnnl_nc, error));
    /* Linear weights are large and used once a step: packing them costs more than it gives. */
    DL2_TRY(make_layout(&s->ours.weights, 2, weights, dnnl_oi, error));
    return make_layout(&s->ours.bias, 1, bias, dnnl_x, error);
}

static int cpu_linear_create(struct dl2_device *device, const struct dl2_linear_shape *shape,
                             struct dl2_linear **out, struct dl2_error *error)
{
    struct product_shape s = {.has_bias = shape->bias,
                              .outs = shape->out,
                              .weight_count = (size_t)shape->out * shape->in};
    struct product *product;
    int status = linear_layouts(shape, &s, error);
    if (status == DL2_OK)
        status = make_product(device, &s, &product, error);
    free_shape(&s);
    if (status == DL2_OK)
        *out = (struct dl2_linear *)product;
    return status;
}

/* -- pooling -- */

struct dl2_pool {
    struct cpu *cpu;
    struct dl2_pool_shape s;
    dnnl_primitive_t forward, backward; /* DL2_POOL_MAX; the rest too */
    dnnl_memory_t in, out, winners;
    void *winners_block;
    const float *from; /* of the call that runs */
    float *to;
};

static void cpu_pool_free(struct dl2_pool *pool)
{
    if (!pool)
        return;
    if (pool->forward)
        dnnl_primitive_destroy(pool->forward);
    if (pool->backward)
        dnnl_primitive_destroy(pool->backward);
    dnnl_memory_t memories[] = {pool->in, pool->out, pool->winners};
    for (int i = 0; i < 3; i++)
        if (memories[i])
            dnnl_memory_destroy(memories[i]);
    free(pool->winners_block);
    free(pool);
}

/* Where each window's largest element was, which the forward pass tells the backward pass. */
static int make_winners(struct dl2_pool *pool, const_dnnl_primitive_desc_t forward,
                        const char *what, struct dl2_error *error)
{
    dl2_const_layout winners = dnnl_primitive_desc_query_md(forward, dnnl_query_workspace_md, 0);
    pool->winners_block = dl2_alloc_aligned(dnnl_memory_desc_get_size(winners), 1);
    if (!pool->winners_block)
        return out_of_memory(error, "max pooling");
    return check(
        dnnl_memory_create(&pool->winners, winners, pool->cpu->engine, pool->winners_block), what,
        error);
}

static int fill_max_pool(struct dl2_pool *pool, struct dl2_operands *ours, struct dl2_error *error)
{
    const struct dl2_pool_shape *s = &pool->s;
    dnnl_engine_t engine = pool->cpu->engine;
    const char *what = "plan max pooling";
    dnnl_dims_t in = {s->batch, s->channels, s->in_height, s->in_width};
    dnnl_dims_t out = {s->batch, s->channels, s->out_height, s->out_width};
    const struct dl2_window window = {
        .kernel = {s->kernel_height, s->kernel_width},
        .strides = {s->stride_height, s->stride_width},
        .near_pad = {s->pad_height, s->pad_width},
        /* So that windows end where the last one does. */
        .far_pad = {(dnnl_dim_t)(s->out_height - 1) * s->stride_height + s->kernel_height -
                        s->in_height - s->pad_height,
                    (dnnl_dim_t)(s->out_width - 1) * s->stride_width + s->kernel_width -
                        s->in_width - s->pad_width},
    };
    DL2_TRY(make_layout(&ours->in, 4, in, dnnl_nhwc, error));
    DL2_TRY(make_layout(&ours->out, 4, out, dnnl_nhwc, error));
    DL2_TRY(check(dnnl_memory_create(&pool->in, ours->in, engine, DNNL_MEMORY_NONE), what, error));
    DL2_TRY(
        check(dnnl_memory_create(&pool->out, ours->out, engine, DNNL_MEMORY_NONE), what, error));

    dnnl_primitive_desc_t forward, backward;
    DL2_TRY(check(dl2_describe_max_pool(&forward, engine, DL2_FORWARD, ours, &window, NULL), what,
                  error));
    int status = check(dnnl_primitive_create(&pool->forward, forward), what, error);
    if (status == DL2_OK)
        status = make_winners(pool, forward, what, error);
    if (status == DL2_OK)
        status = check(
            dl2_describe_max_pool(&backward, engine, DL2_BACKWARD_DATA, ours, &window, forward),
            what, error);
    if (status == DL2_OK) {
        status = check(dnnl_primitive_create(&pool->backward, backward), what, error);
        dnnl_primitive_desc_destroy(backward);
    }
    dnnl_primitive_desc_destroy(forward);
    return status;
}

static int make_max_pool(struct dl2_pool *pool, struct dl2_error *error)
{
    struct dl2_operands ours = {NULL};
    int status = fill_max_pool(pool, &ours, error);
    dl2_layout_free(ours.in);
    dl2_layout_free(ours.out);
    return status;
}

static int cpu_pool_create(struct dl2_device *device, const struct dl2_pool_shape *shape,
                           struct dl2_pool **out, struct dl2_error *error)
{
    DL2_TRY(dl2_pool_shape_check(shape, error));
    struct dl2_pool *pool = dl2_calloc(1, sizeof *pool);
    if (!pool)
        return out_of_memory(error, "pooling");
    pool->cpu = (struct cpu *)device;
    pool->s = *shape;
    int status = shape->kind == DL2_POOL_MAX ? make_max_pool(pool, error) : DL2_OK;
    if (status < 0) {
        cpu_pool_free(pool);
        return status;
    }
    *out = pool;
    return DL2_OK;
}

/* The mean of each window; images begin .. end-1. */
static void average_forward(void *context, unsigned part, size_t begin, size_t end)
{
    const struct dl2_pool *pool = context;
    const struct dl2_pool_shape *s = &pool->s;
    size_t channels = s->channels;
    (void)part;
    for (size_t n = begin; n < end; n++)
        for (unsigned oh = 0; oh < s->out_height; oh++)
            for (unsigned ow = 0; ow < s->out_width; ow++) {
                unsigned h0 = dl2_adaptive_begin(oh, s->in_height, s->out_height);
                unsigned h1 = dl2_adaptive_end(oh, s->in_height, s->out_height);
                unsigned w0 = dl2_adaptive_begin(ow, s->in_width, s->out_width);
                unsigned w1 = dl2_adaptive_end(ow, s->in_width, s->out_width);
                float share = 1 / ((float)(h1 - h0) * (float)(w1 - w0));
                float *y = pool->to + ((n * s->out_height + oh) * s->out_width + ow) * channels;
                memset(y, 0, channels * sizeof *y);
                for (unsigned h = h0; h < h1; h++)
                    for (unsigned w = w0; w < w1; w++) {
                        const float *x =
                            pool->from + ((n * s->in_height + h) * s->in_width + w) * channels;
                        for (size_t c = 0; c < channels; c++)
                            y[c] += x[c];
                    }
                for (size_t c = 0; c < channels; c++)
                    y[c] *= share;
            }
}

static void average_backward(void *context, unsigned part, size_t begin, size_t end)
{
    const struct dl2_pool *pool = context;
    const struct dl2_pool_shape *s = &pool->s;
    size_t channels = s->channels, size = channels * s->in_height * s->in_width;
    (void)part;
    for (size_t n = begin; n < end; n++) {
        memset(pool->to + n * size, 0, size * sizeof *pool->to);
        for (unsigned oh = 0; oh < s->out_height; oh++)
            for (unsigned ow = 0; ow < s->out_width; ow++) {
                unsigned h0 = dl2_adaptive_begin(oh, s->in_height, s->out_height);
                unsigned h1 = dl2_adaptive_end(oh, s->in_height, s->out_height);
                unsigned w0 = dl2_adaptive_begin(ow, s->in_width, s->out_width);
                unsigned w1 = dl2_adaptive_end(ow, s->in_width, s->out_width);
                float share = 1 / ((float)(h1 - h0) * (float)(w1 - w0));
                const float *dy =
                    pool->from + ((n * s->out_height + oh) * s->out_width + ow) * channels;
                for (unsigned h = h0; h < h1; h++)
                    for (unsigned w = w0; w < w1; w++) {
                        float *dx = pool->to + n * size + ((size_t)h * s->in_width + w) * channels;
                        for (size_t c = 0; c < channels; c++)
                            dx[c] += dy[c] * share;
                    }
            }
    }
}

static void cpu_pool_forward(struct dl2_pool *pool, const void *x, void *y)
{
    if (pool->s.kind == DL2_POOL_MAX) {
        point(pool->in, x);
        point(pool->out, y);
        const dnnl_exec_arg_t args[] = {{DNNL_ARG_SRC, pool->in},
                                        {DNNL_ARG_DST, pool->out},
                                        {DNNL_ARG_WORKSPACE, pool->winners}};
        execute(pool->cpu, pool->forward, 3, args, "run max pooling");
        return;
    }
    pool->from = x;
    pool->to = y;
    share_out(pool->cpu, pool->s.batch, 1, average_forward, pool);
}

static void cpu_pool_backward(struct dl2_pool *pool, const void *dy, void *dx)
{
    if (pool->s.kind == DL2_POOL_MAX) {
        point(pool->in, dx);
        point(pool->out, dy);
        const dnnl_exec_arg_t args[] = {{DNNL_ARG_DIFF_DST, pool->out},
                                        {DNNL_ARG_DIFF_SRC, pool->in},
                                        {DNNL_ARG_WORKSPACE, pool->winners}};
        execute(pool->cpu, pool->backward, 3, args, "run max pooling's backward pass");
        return;
    }
    pool->from = dy;
    pool->to = dx;
    share_out(pool->cpu, pool->s.batch, 1, average_backward, pool);
}

/* -- batch norm -- */

/* As kernels know activations. */
static float limit_of(enum dl2_activation activation)
{
    return activation == DL2_RELU ? INFINITY : activation == DL2_RELU6 ? 6 : 0;
}

struct dl2_norm {
    struct cpu *cpu;
    struct dl2_norm_shape s;
    float limit; /* of its activation */
    size_t period;
    /* [period] each: y = a * (x - mean) + b; dx = p * g + q * (x - mean) + r. */
    float *a, *b, *mean, *p, *q, *r;
    double *inverse; /* [channels] 1 / sqrt(var + epsilon) */
    double *sums;    /* [2][channels]: mean and variance, or backward's sums; see norm_train */
    /* Of the call that runs. */
    const float *x, *residual, *shift;
    struct dl2_masked gradient;
    float *y, *dx, *dresidual;
};

static void cpu_norm_free(struct dl2_norm *norm)
{
    if (norm) {
        free(norm->a);
        free(norm->inverse);
    }
    free(norm);
}

static int cpu_norm_create(struct dl2_device *device, const struct dl2_norm_shape *shape,
                           struct dl2_norm **out, struct dl2_error *error)
{
    struct cpu *cpu = (struct cpu *)device;
    size_t channels = shape->channels;
    if (!channels || !shape->rows)
        return dl2_error_set(error, DL2_ERR_ARGUMENT, "no batch norm over nothing");
    size_t period = channels * (channels < 256 ? 256 / channels : 1);
    struct dl2_norm *norm = dl2_calloc(1, sizeof *norm);
    float *vectors = dl2_alloc_aligned(6 * period, sizeof *vectors);
    double *inverse = dl2_calloc(channels, 3 * sizeof *inverse);
    bool good = norm && vectors && inverse;
    if (good && cpu->partial_period < period) {
        double *partials = dl2_alloc_aligned(2 * period * cpu->threads, sizeof *partials);
        good = partials != NULL;
        if (good) {
            free(cpu->partials);
            cpu->partials = partials;
            cpu->partial_period = period;
        }
    }
    if (!good) {
        free(norm);
        free(vectors);
        free(inverse);
        return out_of_memory(error, "batch norm");
    }
    norm->cpu = cpu;
    norm->s = *shape;
    norm->limit = limit_of(shape->activation);
    norm->period = period;
    norm->a = vectors;
    norm->b = vectors + period;
    norm->mean = vectors + 2 * period;
    norm->p = vectors + 3 * period;
    norm->q = vectors + 4 * period;
    norm->r = vectors + 5 * period;
    norm->inverse = inverse;
    norm->sums = inverse + channels;
    *out = norm;
    return DL2_OK;
}

/* Fills what per-channel vectors have beyond the channels. */
static void repeat(const struct dl2_norm *norm, float *vector)
{
    for (size_t i = norm->s.channels; i < norm->period; i++)
        vector[i] = vector[i - norm->s.channels];
}

/* A part's two lists of sums, zeroed. */
static double *part_sums(const struct dl2_norm *norm, unsigned part)
{
    double *sums = norm->cpu->partials + 2 * norm->cpu->partial_period * part;
    memset(sums, 0, 2 * norm->period * sizeof *sums);
    return sums;
}

/* Adds up the parts for channel `c`, always in the same order. */
static void total(const struct dl2_norm *norm, unsigned parts, size_t c, double *first,
                  double *second)
{
    *first = *second = 0;
    for (unsigned part = 0; part < parts; part++) {
        const double *sums = norm->cpu->partials + 2 * norm->cpu->partial_period * part;
        for (size_t i = c; i < norm->period; i += norm->s.channels) {
            *first += sums[i];
            *second += sums[norm->period + i];
        }
    }
}

static void norm_sums_part(void *context, unsigned part, size_t begin, size_t end)
{
    const struct dl2_norm *norm = context;
    size_t channels = norm->s.channels;
    double *sums = part_sums(norm, part);
    norm->cpu->kernels->norm_sums(norm->x + begin * channels, (end - begin) * channels, norm->mean,
                                  norm->period, sums, sums + norm->period);
}

static void norm_apply_part(void *context, unsigned part, size_t begin, size_t end)
{
    const struct dl2_norm *norm = context;
    size_t at = begin * norm->s.channels;
    (void)part;
    norm->cpu->kernels->norm_apply(norm->x + at, norm->residual ? norm->residual + at : NULL,
                                   (end - begin) * norm->s.channels, norm->mean, norm->a, norm->b,
                                   norm->period, norm->limit, norm->y + at);
}

static void norm_apply(struct dl2_norm *norm, const float *x, const float *residual,
                       const float *gamma, const float *beta, float *y)
{
    for (size_t c = 0; c < norm->s.channels; c++) {
        norm->a[c] = (float)(gamma[c] * norm->inverse[c]);
        norm->b[c] = beta[c];
    }
    repeat(norm, norm->mean);
    repeat(norm, norm->a);
    repeat(norm, norm->b);
    norm->x = x;
    norm->residual = residual;
    norm->y = y;
    share_out(norm->cpu, norm->s.rows, row_grain(norm->s.channels), norm_apply_part, norm);
}

static void cpu_norm_train(struct dl2_norm *norm, const void *from, const void *residual,
                           const float *gamma, const float *beta, float *running_mean,
                           float *running_var, void *y)
{
    const struct dl2_norm_shape *s = &norm->s;
    const float *x = from;
    double rows = (double)s->rows, momentum = s->momentum;
    double *means = norm->sums, *variances = norm->sums + s->channels;
    /* One pass, with the first row taken off so that the squares do not cancel. */
    memcpy(norm->mean, x, s->channels * sizeof *x);
    repeat(norm, norm->mean);
    norm->x = x;
    unsigned parts = share_out(norm->cpu, s->rows, row_grain(s->channels), norm_sums_part, norm);
    for (size_t c = 0; c < s->channels; c++) {
        double sum, squares;
        total(norm, parts, c, &sum, &squares);
        double var = squares / rows - sum / rows * (sum / rows);
        means[c] = x[c] + sum / rows;
        variances[c] = var > 0 ? var : 0;
    }
    if (s->synchronized) {
        struct dl2_device *device = &norm->cpu->base;
        dl2_sync_moments(device->world, means, running_mean, s->channels, &device->failure);
        rows *= dl2_world_size(device->world);
    }
    for (size_t c = 0; c < s->channels; c++) {
        double unbiased = rows > 1 ? variances[c] * rows / (rows - 1) : variances[c];
        norm->mean[c] = (float)means[c];
        norm->inverse[c] = 1 / sqrt(variances[c] + s->epsilon);
        running_mean[c] = (float)((1 - momentum) * running_mean[c] + momentum * means[c]);
        running_var[c] = (float)((1 - momentum) * running_var[c] + momentum * unbiased);
    }
    norm_apply(norm, x, residual, gamma, beta, y);
}

static void cpu_norm_eval(struct dl2_norm *norm, const void *x, const void *residual,
                          const float *gamma, const float *beta, const float *running_mean,
                          const float *running_var, void *y)
{
    for (size_t c = 0; c < norm->s.channels; c++) {
        norm->mean[c] = running_mean[c];
        norm->inverse[c] = 1 / sqrt((double)running_var[c] + norm->s.epsilon);
    }
    norm_apply(norm, x, residual, gamma, beta, y);
}

/* The gradient from element `at` on. */
static struct dl2_masked masked_from(const struct dl2_masked *gradient, size_t at)
{
    struct dl2_masked g = *gradient;
    g.dy += at;
    g.dy2 = g.dy2 ? g.dy2 + at : NULL;
    g.x += at;
    g.y += at;
    return g;
}

static void norm_backward_sums_part(void *context, unsigned part, size_t begin, size_t end)
{
    const struct dl2_norm *norm = context;
    size_t channels = norm->s.channels, at = begin * channels;
    struct dl2_masked gradient = masked_from(&norm->gradient, at);
    double *sums = part_sums(norm, part);
    norm->cpu->kernels->norm_backward_sums(&gradient, (end - begin) * channels, norm->period, sums,
                                           sums + norm->period,
                                           norm->dresidual ? norm->dresidual + at : NULL);
}

static void norm_backward_data_part(void *context, unsigned part, size_t begin, size_t end)
{
    const struct dl2_norm *norm = context;
    size_t channels = norm->s.channels, at = begin * channels;
    struct dl2_masked gradient = masked_from(&norm->gradient, at);
    (void)part;
    norm->cpu->kernels->norm_backward_data(&gradient, (end - begin) * channels, norm->p, norm->q,
                                           norm->r, norm->period, norm->dx + at);
}

static void cpu_norm_backward(struct dl2_norm *norm, const void *x, const void *y, const void *dy,
                              const void *dy2, const float *gamma, const float *beta, void *dx,
                              void *dresidual, float *dgamma, float *dbeta, bool accumulate)
{
    const struct dl2_norm_shape *s = &norm->s;
    double rows = (double)s->rows, *sums = norm->sums, *products = norm->sums + s->channels;
    (void)beta;
    norm->dx = dx;
    norm->dresidual = dresidual;
    norm->gradient = (struct dl2_masked){
        .dy = dy,
        .dy2 = dy2,
        .x = x,
        .y = y,
        .mean = norm->mean,
        .a = norm->a,
        .b = norm->b,
        /* Without a residual, x tells the mask, and y need not be read. */
        .mask = s->activation == DL2_IDENTITY ? DL2_MASK_NONE
                : s->residual                 ? DL2_MASK_Y
                                              : DL2_MASK_X,
        .limit = norm->limit,
    };
    unsigned parts =
        share_out(norm->cpu, s->rows, row_grain(s->channels), norm_backward_sums_part, norm);
    for (size_t c = 0; c < s->channels; c++) {
        total(norm, parts, c, &sums[c], &products[c]);
        dgamma[c] = (float)(products[c] * norm->inverse[c] + (accumulate ? dgamma[c] : 0));
        dbeta[c] = (float)(sums[c] + (accumulate ? dbeta[c] : 0));
    }
    if (s->synchronized) {
        struct dl2_device *device = &norm->cpu->base;
        dl2_world_sum(device->world, sums, 2 * (size_t)s->channels, &device->failure);
        rows *= dl2_world_size(device->world);
    }
    for (size_t c = 0; c < s->channels; c++) {
        double inverse = norm->inverse[c];
        norm->p[c] = (float)(gamma[c] * inverse);
        norm->q[c] = (float)(-gamma[c] * inverse * inverse * inverse * products[c] / rows);
        norm->r[c] = (float)(-gamma[c] * inverse * sums[c] / rows);
    }
    repeat(norm, norm->p);
    repeat(norm, norm->q);
    repeat(norm, norm->r);
    if (dresidual) /* holds the masked gradient by now */
        norm->gradient = (struct dl2_masked){.dy = dresidual, .x = x, .y = y, .mean = norm->mean};
    share_out(norm->cpu, s->rows, row_grain(s->channels), norm_backward_data_part, norm);
}

/* -- elementwise -- */

struct elementwise {
    const struct cpu *cpu;
    const float *a, *b;
    float *y, *z;
    float rate, limit;
    uint64_t seed, layer;
    size_t count;
    bool decays, nesterov;
};

static void activate_part(void *context, unsigned part, size_t begin, size_t end)
{
    const struct elementwise *e = context;
    (void)part;
    e->cpu->kernels->activate(e->a + begin, e->y + begin, end - begin, e->limit);
}

static void cpu_activate(struct dl2_device *device, enum dl2_activation activation, const void *x,
                         void *y, size_t count)
{
    struct elementwise e = {
        .cpu = (struct cpu *)device, .a = x, .y = y, .limit = limit_of(activation)};
    if (activation != DL2_IDENTITY)
        share_out(e.cpu, count, GRAIN, activate_part, &e);
    else if (x != y)
        memcpy(y, x, count * sizeof(float));
}

static void activate_backward_part(void *context, unsigned part, size_t begin, size_t end)
{
    const struct elementwise *e = context;
    (void)part;
    e->cpu->kernels->activate_backward(e->a + begin, e->b + begin, e->y + begin, end - begin,
                                       e->limit);
}

static void cpu_activate_backward(struct dl2_device *device, enum dl2_activation activation,
                                  const void *y, const void *dy, void *dx, size_t count)
{
    struct elementwise e = {
        .cpu = (struct cpu *)device, .a = y, .b = dy, .y = dx, .limit = limit_of(activation)};
    if (activation != DL2_IDENTITY)
        share_out(e.cpu, count, GRAIN, activate_backward_part, &e);
    else if (dx != dy)
        memcpy(dx, dy, count * sizeof(float));
}

static void add_part(void *context, unsigned part, size_t begin, size_t end)
{
    const struct elementwise *e = context;
    (void)part;
    e->cpu->kernels->add(e->a + begin, e->b + begin, e->y + begin, end - begin);
}

static void cpu_add(struct dl2_device *device, const void *a, const void *b, void *y, size_t count)
{
    struct elementwise e = {.cpu = (struct cpu *)device, .a = a, .b = b, .y = y};
    share_out(e.cpu, count, GRAIN, add_part, &e);
}

/* Numbers begin .. end-1 of the blocks of 4096 that streams are made for. */
static void dropout_part(void *context, unsigned part, size_t begin, size_t end)
{
    const struct elementwise *e = context;
    float scale = 1 / (1 - e->rate);
    (void)part;
    for (size_t block = begin; block < end; block++) {
        struct dl2_random random;
        dl2_random_init(&random, e->seed, DL2_RANDOM_DROPOUT, e->cpu->base.numbers.step,
                        (e->layer << 24) + block);
        size_t last = (block + 1) * 4096 < e->count ? (block + 1) * 4096 : e->count;
        for (size_t i = block * 4096; i < last; i++)
            e->y[i] = dl2_random_u32(&random) >= e->rate * 4294967296.0 ? e->a[i] * scale : 0;
    }
}

static void cpu_dropout(struct dl2_device *device, const void *x, void *y, size_t count, float rate,
                        uint64_t seed, uint64_t layer)
{
    struct elementwise e = {.cpu = (struct cpu *)device,
                            .a = x,
                            .y = y,
                            .rate = rate,
                            .seed = seed,
                            .layer = layer,
                            .count = count};
    share_out(e.cpu, (count + 4095) / 4096, 2, dropout_part, &e);
}

static void sgd_part(void *context, unsigned part, size_t begin, size_t end)
{
    const struct elementwise *e = context;
    const struct dl2_step_numbers *numbers = &e->cpu->base.numbers;
    (void)part;
    e->cpu->kernels->sgd(e->y + begin, e->a + begin, e->z + begin, end - begin,
                         1 / (float)dl2_world_size(e->cpu->base.world), numbers->rate,
                         numbers->momentum, e->decays ? numbers->weight_decay : 0, e->nesterov);
}

static void cpu_sgd_step(struct dl2_device *device, float *weights, void *lowered,
                         const float *gradient, float *momentum, size_t count, bool decays,
                         bool nesterov)
{
    struct cpu *cpu = (struct cpu *)device;
    struct elementwise e = {.cpu = cpu,
                            .a = gradient,
                            .y = weights,
                            .z = momentum,
                            .decays = decays,
                            .nesterov = nesterov};
    (void)lowered;
    cpu->version++;
    share_out(cpu, count, GRAIN, sgd_part, &e);
}

static void move_average_part(void *context, unsigned part, size_t begin, size_t end)
{
    const struct elementwise *e = context;
    (void)part;
    e->cpu->kernels->move_average(e->y + begin, e->a + begin, end - begin,
                                  1 - e->cpu->base.numbers.average_decay);
}

static void cpu_move_average(struct dl2_device *device, float *average, const float *values,
                             size_t count)
{
    struct elementwise e = {.cpu = (struct cpu *)device, .a = values, .y = average};
    share_out(e.cpu, count, GRAIN, move_average_part, &e);
}

/* -- ingest -- */

enum { INGEST_PERIOD = 192 }; /* a multiple of 1 and 3, and of the vectors */

struct dl2_ingest {
    struct cpu *cpu;
    struct dl2_ingest_shape s;
    float a[INGEST_PERIOD], b[INGEST_PERIOD]; /* y = a * x + b */
    /* Of the call that runs. */
    const uint8_t *images;
    const uint32_t *partner;
    float *y;
};

static int cpu_ingest_create(struct dl2_device *device, const struct dl2_ingest_shape *shape,
                             struct dl2_ingest **out, struct dl2_error *error)
{
    struct dl2_ingest *ingest = dl2_calloc(1, sizeof *ingest);
    if (!ingest)
        return out_of_memory(error, "ingest");
    ingest->cpu = (struct cpu *)device;
    ingest->s = *shape;
    for (int i = 0; i < INGEST_PERIOD; i++) {
        unsigned c = (unsigned)i % shape->channels;
        ingest->a[i] = 1 / shape->std[c];
        ingest->b[i] = -shape->mean[c] / shape->std[c];
    }
    *out = ingest;
    return DL2_OK;
}

static void cpu_ingest_free(struct dl2_ingest *ingest)
{
    free(ingest);
}

static void ingest_part(void *context, unsigned part, size_t begin, size_t end)
{
    const struct dl2_ingest *in = context;
    const struct dl2_kernels *kernels = in->cpu->kernels;
    size_t size = (size_t)in->s.height * in->s.width * in->s.channels;
    float lambda = in->cpu->base.numbers.lambda;
    (void)part;
    for (size_t n = begin; n < end; n++) {
        const uint8_t *x = in->images + n * size;
        if (in->partner)
            kernels->ingest_mixed(x, in->images + in->partner[n] * size, lambda, 1 - lambda, size,
                                  in->a, in->b, INGEST_PERIOD, in->y + n * size);
        else
            kernels->ingest(x, size, in->a, in->b, INGEST_PERIOD, in->y + n * size);
    }
}

static void cpu_ingest_run(struct dl2_ingest *ingest, const uint8_t *images,
                           const uint32_t *partner, void *y)
{
    ingest->images = images;
    ingest->partner = partner;
    ingest->y = y;
    share_out(ingest->cpu, ingest->s.batch, 1, ingest_part, ingest);
}

/* -- loss -- */

struct dl2_loss {
    struct cpu *cpu;
    struct dl2_loss_shape s;
    double *values;  /* [batch] */
    uint32_t *ranks; /* [batch] classes above the label */
    size_t counted;
    /* Of the call that runs. */
    const float *logits;
    const int32_t *labels;
    const uint32_t *partner;
    float *dlogits;
};

static void cpu_loss_free(struct dl2_loss *loss)
{
    if (loss) {
        free(loss->values);
        free(loss->ranks);
    }
    free(loss);
}

static int cpu_loss_create(struct dl2_device *device, const struct dl2_loss_shape *shape,
                           struct dl2_loss **out, struct dl2_error *error)
{
    struct dl2_loss *loss = dl2_calloc(1, sizeof *loss);
    if (!loss)
        return out_of_memory(error, "the loss");
    loss->cpu = (struct cpu *)device;
    loss->s = *shape;
    loss->values = dl2_calloc(shape->batch, sizeof *loss->values);
    loss->ranks = dl2_calloc(shape->batch, sizeof *loss->ranks);
    if (!loss->values || !loss->ranks) {
        cpu_loss_free(loss);
        return out_of_memory(error, "the loss");
    }
    *out = loss;
    return DL2_OK;
}

static bool counts(const struct dl2_loss *loss, size_t n)
{
    return loss->labels[n] >= 0 && (!loss->partner || loss->labels[loss->partner[n]] >= 0);
}

/* Samples begin .. end-1; in double, as classes are few and losses are added up. */
static void loss_part(void *context, unsigned part, size_t begin, size_t end)
{
    struct dl2_loss *loss = context;
    size_t classes = loss->s.classes;
    const struct dl2_step_numbers *numbers = &loss->cpu->base.numbers;
    double smoothing = loss->s.smoothing, own = loss->partner ? numbers->lambda : 1;
    (void)part;
    for (size_t n = begin; n < end; n++) {
        const float *logits = loss->logits + n * classes;
        float *dlogits = loss->dlogits ? loss->dlogits + n * classes : NULL;
        loss->values[n] = 0;
        if (!counts(loss, n)) {
            if (dlogits)
                memset(dlogits, 0, classes * sizeof *dlogits);
            continue;
        }
        size_t label = (size_t)loss->labels[n];
        size_t other = loss->partner ? (size_t)loss->labels[loss->partner[n]] : label;
        double highest = logits[0], sum = 0, plain = 0;
        uint32_t rank = 0;
        for (size_t k = 0; k < classes; k++) {
            highest = logits[k] > highest ? logits[k] : highest;
            rank += logits[k] > logits[label] || (logits[k] == logits[label] && k < label);
        }
        for (size_t k = 0; k < classes; k++) {
            sum += exp(logits[k] - highest);
            plain += logits[k] - highest;
        }
        double log_sum = log(sum), even = smoothing / (double)classes;
        double nll =
            log_sum - own * (logits[label] - highest) - (1 - own) * (logits[other] - highest);
        loss->values[n] = (1 - smoothing) * nll + smoothing * (log_sum - plain / (double)classes);
        loss->ranks[n] = rank;
        double scale = numbers->scale / (double)loss->counted;
        for (size_t k = 0; dlogits && k < classes; k++) {
            double target =
                even + (1 - smoothing) * (own * (k == label) + (1 - own) * (k == other));
            dlogits[k] = (float)(scale * (exp(logits[k] - highest) / sum - target));
        }
    }
}

static void cpu_loss_run(struct dl2_loss *loss, const void *logits, const int32_t *labels,
                         const uint32_t *partner, float *losses, void *dlogits,
                         struct dl2_loss_sums *sums)
{
    loss->logits = logits;
    loss->labels = labels;
    loss->partner = partner;
    loss->dlogits = dlogits;
    loss->counted = 0;
    for (size_t n = 0; n < loss->s.batch; n++)
        loss->counted += counts(loss, n);
    share_out(loss->cpu, loss->s.batch, 256 / loss->s.classes + 1, loss_part, loss);
    for (size_t n = 0; n < loss->s.batch; n++) {
        if (losses)
            losses[n] = (float)loss->values[n];
        if (!counts(loss, n))
            continue;
        sums->loss += loss->values[n];
        sums->counted++;
        sums->top1 += loss->ranks[n] < 1;
        sums->top5 += loss->ranks[n] < 5;
    }
}

const struct dl2_device_class dl2_device_cpu = {
    .name = "cpu",
    .summary = "oneDNN on this machine's processors",
    .version = cpu_version,
    .open = cpu_open,
    .close = cpu_close,
    .alloc = cpu_alloc,
    .free = cpu_free,
    .host_alloc = cpu_host_alloc,
    .host_free = cpu_free,
    .upload = cpu_copy,
    .wait_uploads = cpu_wait_uploads,
    .download = cpu_download,
    .copy = cpu_copy,
    .zero = cpu_zero,
    .sync = cpu_sync,
    .set_numbers = cpu_set_numbers,
    .all_reduce = cpu_all_reduce,
    .all_reduce_wait = cpu_all_reduce_wait,
    .conv_create = cpu_conv_create,
    .conv_free = cpu_conv_free,
    .conv_forward = cpu_conv_forward,
    .conv_backward_data = cpu_conv_backward_data,
    .conv_backward_weights = cpu_conv_backward_weights,
    .linear_create = cpu_linear_create,
    .linear_free = cpu_linear_free,
    .linear_forward = cpu_linear_forward,
    .linear_backward_data = cpu_linear_backward_data,
    .linear_backward_weights = cpu_linear_backward_weights,
    .pool_create = cpu_pool_create,
    .pool_free = cpu_pool_free,
    .pool_forward = cpu_pool_forward,
    .pool_backward = cpu_pool_backward,
    .norm_create = cpu_norm_create,
    .norm_free = cpu_norm_free,
    .norm_train = cpu_norm_train,
    .norm_eval = cpu_norm_eval,
    .norm_backward = cpu_norm_backward,
    .activate = cpu_activate,
    .activate_backward = cpu_activate_backward,
    .add = cpu_add,
    .dropout = cpu_dropout,
    .ingest_create = cpu_ingest_create,
    .ingest_free = cpu_ingest_free,
    .ingest_run = cpu_ingest_run,
    .loss_create = cpu_loss_create,
    .loss_free = cpu_loss_free,
    .loss_run = cpu_loss_run,
    .sgd_step = cpu_sgd_step,
    .move_average = cpu_move_average,
};
