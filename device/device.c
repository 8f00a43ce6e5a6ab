/* SPDX-License-Identifier: BSD-2-Clause */
/* The registry of devices, and what all of them share. The only file here that asks HAVE_... */
#ifdef HAVE_CONFIG_H
#include "config.h"
#endif

#include "device/device.h"

#include "ranks/world.h"

#include <stdio.h>
#include <string.h>

extern const struct dl2_device_class dl2_device_ref;
#ifdef HAVE_ONEDNN
extern const struct dl2_device_class dl2_device_cpu;
#endif
#ifdef HAVE_CUDA
extern const struct dl2_device_class dl2_device_cuda;
#endif

static const struct dl2_device_class *const devices[] = {
    &dl2_device_ref,
#ifdef HAVE_ONEDNN
    &dl2_device_cpu,
#endif
#ifdef HAVE_CUDA
    &dl2_device_cuda,
#endif
};

enum { DEVICES = sizeof devices / sizeof devices[0] };

const struct dl2_device_class *dl2_device_at(size_t index)
{
    return index < DEVICES ? devices[index] : NULL;
}

const struct dl2_device_class *dl2_device_default(void)
{
    for (size_t i = DEVICES; i-- > 1;)
        if (!devices[i]->present || devices[i]->present())
            return devices[i];
    return devices[0];
}

const struct dl2_device_class *dl2_device_card(void)
{
    for (size_t i = DEVICES; i-- > 0;)
        if (devices[i]->is_card)
            return devices[i];
    return NULL;
}

static const char *device_name_at(size_t index)
{
    return index < DEVICES ? devices[index]->name : NULL;
}

int dl2_device_parse(const char *text, struct dl2_device_name *name, struct dl2_error *error)
{
    return dl2_device_name_parse(text, device_name_at, name, error);
}

const struct dl2_device_class *dl2_device_named(const struct dl2_device_name *name)
{
    return name->automatic ? dl2_device_default() : devices[name->kind];
}

/* Only opening a device tells whether it can be used. */
static void list_device(const char *name, const struct dl2_device_class *ops, unsigned number,
                        const struct dl2_device_options *options, FILE *out)
{
    struct dl2_device_options own = *options;
    struct dl2_device *device = NULL;
    struct dl2_error error = DL2_ERROR_INIT;
    own.number = number;
    const bool usable = ops->open(&own, &device, &error) == DL2_OK;
    dl2_device_close(device);
    fprintf(out, "%s\t%s\t%s\n", name, ops->version(), usable ? "usable" : error.message);
}

void dl2_device_list(const char *text, const struct dl2_device_options *options, FILE *out)
{
    struct dl2_device_name name;
    const bool one = dl2_device_parse(text, &name, NULL) == DL2_OK && !name.automatic;
    for (size_t i = 0; i < DEVICES; i++)
        if (!one || i == name.kind)
            list_device(one ? text : devices[i]->name, devices[i], one ? name.number : 0, options,
                        out);
}

const char *dl2_precision_name(enum dl2_precision precision)
{
    static const char *const names[] = {[DL2_PRECISION_FP32] = "fp32",
                                        [DL2_PRECISION_TF32] = "tf32",
                                        [DL2_PRECISION_BF16] = "bf16",
                                        [DL2_PRECISION_FP16] = "fp16"};
    return names[precision];
}

int dl2_device_check_plain(const struct dl2_device_class *ops,
                           const struct dl2_device_options *options, struct dl2_error *error)
{
    if (!options)
        return DL2_OK;
    if (options->precision != DL2_PRECISION_FP32)
        return dl2_error_set(error, DL2_ERR_UNSUPPORTED,
                             "device %s has no %s: a card has it (--device cuda%s)", ops->name,
                             dl2_precision_name(options->precision),
                             dl2_device_card() ? "" : ", which is not in this build");
    if (options->number)
        return dl2_error_set(error, DL2_ERR_ARGUMENT, "there is one device %s, no number %u",
                             ops->name, options->number);
    if (options->world && !ops->all_reduce)
        return dl2_error_set(error, DL2_ERR_UNSUPPORTED,
                             "device %s cannot train together with other processes", ops->name);
    return DL2_OK;
}

int dl2_device_open(const char *text, const struct dl2_device_options *options,
                    struct dl2_device **out, struct dl2_error *error)
{
    struct dl2_device_options own = options ? *options : (struct dl2_device_options){0};
    struct dl2_device_name name;
    DL2_TRY(dl2_device_parse(text, &name, error));
    const struct dl2_device_class *ops = dl2_device_named(&name);
    if (name.numbered)
        own.number = name.number;
    else if (ops->is_card && own.world)
        own.number = own.world->local_rank;
    return ops->open(&own, out, error);
}

void dl2_device_close(struct dl2_device *device)
{
    if (device)
        device->ops->close(device);
}

static unsigned window_out(unsigned in, unsigned kernel, unsigned stride, unsigned pad)
{
    unsigned long padded = (unsigned long)in + 2ul * pad;
    if (!kernel || !stride || padded < kernel)
        return 0;
    return (unsigned)((padded - kernel) / stride + 1);
}

/* The window of output o along one axis of maximum pooling. */
static void max_window(unsigned o, unsigned kernel, unsigned stride, unsigned pad, unsigned in,
                       unsigned *begin, unsigned *end)
{
    unsigned first = o * stride;
    *begin = first > pad ? first - pad : 0;
    *end = first + kernel - pad < in ? first + kernel - pad : in;
}

static void average_window(unsigned o, unsigned in, unsigned out, unsigned *begin, unsigned *end)
{
    *begin = (unsigned)((unsigned long)o * in / out);
    *end = (unsigned)(((unsigned long)(o + 1) * in + out - 1) / out);
}

struct dl2_pool_window dl2_pool_window(const struct dl2_pool_shape *s, unsigned od, unsigned oh,
                                       unsigned ow)
{
    struct dl2_pool_window v;
    if (s->kind == DL2_POOL_MAX) {
        max_window(od, s->kernel.depth, s->stride.depth, s->pad.depth, s->in.depth, &v.d0, &v.d1);
        max_window(oh, s->kernel.height, s->stride.height, s->pad.height, s->in.height, &v.h0,
                   &v.h1);
        max_window(ow, s->kernel.width, s->stride.width, s->pad.width, s->in.width, &v.w0, &v.w1);
    } else {
        average_window(od, s->in.depth, s->out.depth, &v.d0, &v.d1);
        average_window(oh, s->in.height, s->out.height, &v.h0, &v.h1);
        average_window(ow, s->in.width, s->out.width, &v.w0, &v.w1);
    }
    return v;
}

struct dl2_sides dl2_window_outs(struct dl2_sides in, struct dl2_sides kernel,
                                 struct dl2_sides stride, struct dl2_sides pad)
{
    return (struct dl2_sides){window_out(in.depth, kernel.depth, stride.depth, pad.depth),
                              window_out(in.height, kernel.height, stride.height, pad.height),
                              window_out(in.width, kernel.width, stride.width, pad.width)};
}

struct dl2_sides dl2_conv_out(const struct dl2_conv_shape *s)
{
    return dl2_window_outs(s->in, s->kernel, s->stride, s->pad);
}

/* Libraries count in int. */
static bool tensor_fits(unsigned a, struct dl2_sides sides, unsigned b)
{
    unsigned long long count = a;
    const unsigned more[] = {sides.depth, sides.height, sides.width, b};
    for (int i = 0; i < 4; i++)
        if (!count || !more[i] || (count *= more[i]) > 0x7fffffffull)
            return false;
    return count <= 0x7fffffffull;
}

void dl2_conv_shape_text(const struct dl2_conv_shape *s, char *text, size_t size)
{
    if (s->in.depth == 1 && s->kernel.depth == 1)
        snprintf(text, size,
                 "%ux%u convolution (stride %u, padding %u, groups %u) from %u to %u channels on "
                 "%u images of %ux%u",
                 s->kernel.width, s->kernel.height, s->stride.width, s->pad.width, s->groups,
                 s->in_channels, s->out_channels, s->batch, s->in.width, s->in.height);
    else
        snprintf(text, size,
                 "%ux%ux%u convolution (stride %ux%ux%u, padding %ux%ux%u, groups %u) from %u to "
                 "%u channels on %u clips of %u frames of %ux%u",
                 s->kernel.depth, s->kernel.width, s->kernel.height, s->stride.depth,
                 s->stride.width, s->stride.height, s->pad.depth, s->pad.width, s->pad.height,
                 s->groups, s->in_channels, s->out_channels, s->batch, s->in.depth, s->in.width,
                 s->in.height);
}

int dl2_conv_shape_check(const struct dl2_conv_shape *s, struct dl2_error *error)
{
    if (!s->groups || s->in_channels % s->groups || s->out_channels % s->groups)
        return dl2_error_set(error, DL2_ERR_ARGUMENT,
                             "no convolution from %u to %u channels in %u groups", s->in_channels,
                             s->out_channels, s->groups);
    if (!tensor_fits(s->batch, s->in, s->in_channels) ||
        !tensor_fits(s->batch, dl2_conv_out(s), s->out_channels) ||
        !tensor_fits(s->out_channels, s->kernel, s->in_channels / s->groups)) {
        char text[256];
        dl2_conv_shape_text(s, text, sizeof text);
        return dl2_error_set(error, DL2_ERR_ARGUMENT, "no %s", text);
    }
    if (s->activation == DL2_RELU6)
        return dl2_error_set(error, DL2_ERR_ARGUMENT, "no convolution with ReLU6");
    if (s->activation != DL2_IDENTITY && !s->bias)
        return dl2_error_set(error, DL2_ERR_ARGUMENT,
                             "a convolution with an activation, but without bias");
    return DL2_OK;
}

/* Is it the number of windows, or one more whose window begins on the image? */
static bool max_outs(unsigned outs, unsigned whole, unsigned in, unsigned stride, unsigned pad)
{
    return outs == whole || (outs == whole + 1 && whole && (uint64_t)whole * stride < in + pad);
}

int dl2_pool_shape_check(const struct dl2_pool_shape *s, struct dl2_error *error)
{
    const struct dl2_sides out = dl2_window_outs(s->in, s->kernel, s->stride, s->pad);
    bool good =
        tensor_fits(s->batch, s->in, s->channels) && tensor_fits(s->batch, s->out, s->channels);
    /* A window that lies wholly in the padding would have no maximum. */
    if (s->kind == DL2_POOL_MAX)
        good = good && 2 * s->pad.depth <= s->kernel.depth &&
               2 * s->pad.height <= s->kernel.height && 2 * s->pad.width <= s->kernel.width &&
               max_outs(s->out.depth, out.depth, s->in.depth, s->stride.depth, s->pad.depth) &&
               max_outs(s->out.height, out.height, s->in.height, s->stride.height, s->pad.height) &&
               max_outs(s->out.width, out.width, s->in.width, s->stride.width, s->pad.width);
    if (!good)
        return dl2_error_set(error, DL2_ERR_ARGUMENT,
                             "no pooling of %u samples of %ux%ux%u with %u channels to %ux%ux%u",
                             s->batch, s->in.depth, s->in.width, s->in.height, s->channels,
                             s->out.depth, s->out.width, s->out.height);
    return DL2_OK;
}

void dl2_device_plan_free(void *plan)
{
    if (plan)
        ((const struct dl2_device_plan *)plan)->free(plan);
}

int dl2_attention_shape_check(const struct dl2_attention_shape *s, size_t *scores,
                              struct dl2_error *error)
{
    bool good = tensor_fits(s->batch, (struct dl2_sides){1, s->tokens, 3}, s->channels) &&
                tensor_fits(s->batch, (struct dl2_sides){1, s->heads, s->tokens}, s->tokens) &&
                s->channels % s->heads == 0;
    if (!good)
        return dl2_error_set(
            error, DL2_ERR_ARGUMENT,
            "no attention of %u heads between %u tokens of %u channels, in batches "
            "of %u",
            s->heads, s->tokens, s->channels, s->batch);
    *scores = (size_t)s->batch * s->heads * s->tokens * s->tokens;
    return DL2_OK;
}
