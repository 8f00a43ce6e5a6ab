/* SPDX-License-Identifier: BSD-2-Clause */
#include "network/arch.h"
#include "common/quote.h"
#include "network/graph.h"

#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

/* -- plain -- */

static int convnet(struct dl2_graph *g, int v, unsigned classes)
{
    char name[64];
    for (unsigned stage = 0; stage < 3; stage++) {
        for (unsigned i = 0; i < 2; i++) {
            snprintf(name, sizeof name, "stage%u.conv%u", stage + 1, i + 1);
            v = dl2_graph_conv(g, name, v, 32u << stage, 3, 1, 1, DL2_INIT_HE_FAN_OUT);
            snprintf(name, sizeof name, "stage%u.bn%u", stage + 1, i + 1);
            v = dl2_graph_norm(g, name, v, DL2_RELU);
        }
        v = dl2_graph_max_pool(g, v, 2, 2, 0);
    }
    v = dl2_graph_average_pool(g, v, 1, 1);
    return dl2_graph_linear(g, "fc", v, classes, DL2_INIT_UNIFORM_FAN_IN);
}

/* Krizhevsky 2014, "One weird trick", as in torchvision. */
static int alexnet(struct dl2_graph *g, int v, unsigned classes)
{
    const enum dl2_init init = DL2_INIT_UNIFORM_FAN_IN;
    v = dl2_graph_relu(g, dl2_graph_conv_bias(g, "features.0", v, 64, 11, 4, 2, init));
    v = dl2_graph_max_pool(g, v, 3, 2, 0);
    v = dl2_graph_relu(g, dl2_graph_conv_bias(g, "features.3", v, 192, 5, 1, 2, init));
    v = dl2_graph_max_pool(g, v, 3, 2, 0);
    v = dl2_graph_relu(g, dl2_graph_conv_bias(g, "features.6", v, 384, 3, 1, 1, init));
    v = dl2_graph_relu(g, dl2_graph_conv_bias(g, "features.8", v, 256, 3, 1, 1, init));
    v = dl2_graph_relu(g, dl2_graph_conv_bias(g, "features.10", v, 256, 3, 1, 1, init));
    v = dl2_graph_max_pool(g, v, 3, 2, 0);
    v = dl2_graph_average_pool(g, v, 6, 6);
    v = dl2_graph_dropout(g, v, 0.5f);
    v = dl2_graph_relu(g, dl2_graph_linear(g, "classifier.1", v, 4096, init));
    v = dl2_graph_dropout(g, v, 0.5f);
    v = dl2_graph_relu(g, dl2_graph_linear(g, "classifier.4", v, 4096, init));
    return dl2_graph_linear(g, "classifier.6", v, classes, init);
}

/* Simonyan, Zisserman 2014, configuration D, as in torchvision, where each layer counts. */
static int vgg(struct dl2_graph *g, int v, unsigned classes, bool norm)
{
    unsigned number = 0;
    for (unsigned stage = 0; stage < 5; stage++) {
        for (unsigned i = 0; i < (stage < 2 ? 2 : 3); i++) {
            char name[32];
            unsigned channels = stage < 3 ? 64u << stage : 512;
            snprintf(name, sizeof name, "features.%u", number);
            v = dl2_graph_conv_bias(g, name, v, channels, 3, 1, 1, DL2_INIT_HE_FAN_OUT);
            snprintf(name, sizeof name, "features.%u", number + 1);
            v = norm ? dl2_graph_norm(g, name, v, DL2_RELU) : dl2_graph_relu(g, v);
            number += norm ? 3 : 2;
        }
        v = dl2_graph_max_pool(g, v, 2, 2, 0);
        number++;
    }
    v = dl2_graph_average_pool(g, v, 7, 7);
    v = dl2_graph_relu(g, dl2_graph_linear(g, "classifier.0", v, 4096, DL2_INIT_NORMAL));
    v = dl2_graph_dropout(g, v, 0.5f);
    v = dl2_graph_relu(g, dl2_graph_linear(g, "classifier.3", v, 4096, DL2_INIT_NORMAL));
    v = dl2_graph_dropout(g, v, 0.5f);
    return dl2_graph_linear(g, "classifier.6", v, classes, DL2_INIT_NORMAL);
}

static int vgg16(struct dl2_graph *g, int v, unsigned classes)
{
    return vgg(g, v, classes, false);
}

static int vgg16_bn(struct dl2_graph *g, int v, unsigned classes)
{
    return vgg(g, v, classes, true);
}

/* -- residual: He, Zhang, Ren, Sun 2015; its bottlenecks in groups: Xie, Girshick, Dollar, Tu, He
 * 2017; with gates: Hu, Shen, Sun 2018 -- */

struct resnet {
    unsigned stem_kernel, stem_stride;
    bool stem_pool;
    unsigned width; /* of the first stage; doubles with each */
    unsigned stages, blocks[4];
    bool bottleneck;
    unsigned groups, group_width; /* of ResNeXt: channels of a group in the first stage; or 0 */
    unsigned squeeze;             /* by which gates have fewer channels inside; 0: no gates */
};

/* Convolution `number` of a block and its batch norm's parameters. */
static int block_conv(struct dl2_graph *g, const char *block, unsigned number, int v,
                      unsigned channels, unsigned kernel, unsigned stride, unsigned groups,
                      int *norm)
{
    char name[64];
    snprintf(name, sizeof name, "%s.conv%u", block, number);
    v = dl2_graph_grouped(g, name, v, channels, kernel, stride, kernel / 2, groups,
                          DL2_INIT_HE_FAN_OUT);
    snprintf(name, sizeof name, "%s.bn%u", block, number);
    *norm = dl2_graph_norm_parameters(g, name, channels);
    return v;
}

/* Squeeze and excitation: a gate for each channel, of the means of all by NAME.fc1 with its
 * activation, SiLU or ReLU, and NAME.fc2. */
static int gated(struct dl2_graph *g, const char *name, int in, unsigned inside, bool silu,
                 enum dl2_init init)
{
    char part[64];
    int v = dl2_graph_average_pool(g, in, 1, 1);
    snprintf(part, sizeof part, "%s.fc1", name);
    v = dl2_graph_conv_bias(g, part, v, inside, 1, 1, 0, init);
    v = silu ? dl2_graph_smooth(g, DL2_SILU, v) : dl2_graph_relu(g, v);
    snprintf(part, sizeof part, "%s.fc2", name);
    v = dl2_graph_conv_bias(g, part, v, dl2_graph_channels(g, in), 1, 1, 0, init);
    return dl2_graph_gate(g, in, v);
}

/* Basic (two 3x3) or bottleneck (1x1, 3x3 with the stride, 1x1 to four times the channels). */
static int block(struct dl2_graph *g, const char *block_name, int in, unsigned channels,
                 unsigned stride, const struct resnet *r)
{
    char name[64];
    const bool bottleneck = r->bottleneck;
    const unsigned out = bottleneck ? 4 * channels : channels, groups = r->groups ? r->groups : 1;
    const unsigned inner = r->groups ? channels / r->width * r->group_width * groups : channels;
    int norm, norm2, shortcut = in, v = in;
    v = block_conv(g, block_name, 1, v, inner, bottleneck ? 1 : 3, bottleneck ? 1 : stride, 1,
                   &norm);
    v = dl2_graph_norm_layer(g, norm, v, -1, DL2_RELU);
    v = block_conv(g, block_name, 2, v, inner, 3, bottleneck ? stride : 1, groups, &norm);
    if (bottleneck) {
        v = dl2_graph_norm_layer(g, norm, v, -1, DL2_RELU);
        v = block_conv(g, block_name, 3, v, out, 1, 1, 1, &norm);
    }
    if (r->squeeze) {
        v = dl2_graph_norm_layer(g, norm, v, -1, DL2_IDENTITY);
        snprintf(name, sizeof name, "%s.se", block_name);
        v = gated(g, name, v, out / r->squeeze, false, DL2_INIT_HE_FAN_OUT);
    }
    if (stride == 1 && dl2_graph_channels(g, in) == out)
        return r->squeeze ? dl2_graph_relu(g, dl2_graph_add(g, in, v))
                          : dl2_graph_norm_layer(g, norm, v, in, DL2_RELU);
    snprintf(name, sizeof name, "%s.downsample.0", block_name);
    shortcut = dl2_graph_conv(g, name, in, out, 1, stride, 0, DL2_INIT_HE_FAN_OUT);
    snprintf(name, sizeof name, "%s.downsample.1", block_name);
    norm2 = dl2_graph_norm_parameters(g, name, out);
    if (r->squeeze)
        return dl2_graph_norm_layer(g, norm2, shortcut, v, DL2_RELU);
    shortcut = dl2_graph_norm_layer(g, norm2, shortcut, -1, DL2_IDENTITY);
    return dl2_graph_norm_layer(g, norm, v, shortcut, DL2_RELU);
}

static int resnet(struct dl2_graph *g, int v, unsigned classes, const struct resnet *r)
{
    v = dl2_graph_conv(g, "conv1", v, r->width, r->stem_kernel, r->stem_stride, r->stem_kernel / 2,
                       DL2_INIT_HE_FAN_OUT);
    v = dl2_graph_norm(g, "bn1", v, DL2_RELU);
    if (r->stem_pool)
        v = dl2_graph_max_pool(g, v, 3, 2, 1);
    for (unsigned stage = 0; stage < r->stages; stage++)
        for (unsigned i = 0; i < r->blocks[stage]; i++) {
            char name[32];
            snprintf(name, sizeof name, "layer%u.%u", stage + 1, i);
            v = block(g, name, v, r->width << stage, stage && !i ? 2 : 1, r);
        }
    v = dl2_graph_average_pool(g, v, 1, 1);
    return dl2_graph_linear(g, "fc", v, classes, DL2_INIT_UNIFORM_FAN_IN);
}

/* Stem, width, stages, blocks, whether they are bottlenecks; their groups; what gates divide by. */
#define RESNET(name, ...)                                                                          \
    static int name(struct dl2_graph *g, int v, unsigned classes)                                  \
    {                                                                                              \
        return resnet(g, v, classes, &(struct resnet){__VA_ARGS__});                               \
    }
RESNET(resnet10, 3, 2, true, 32, 4, {1, 1, 1, 1})
RESNET(resnet20, 3, 1, false, 16, 3, {3, 3, 3})
RESNET(resnet18, 7, 2, true, 64, 4, {2, 2, 2, 2})
RESNET(resnet34, 7, 2, true, 64, 4, {3, 4, 6, 3})
RESNET(resnet50, 7, 2, true, 64, 4, {3, 4, 6, 3}, true)
RESNET(resnet101, 7, 2, true, 64, 4, {3, 4, 23, 3}, true)
RESNET(resnet152, 7, 2, true, 64, 4, {3, 8, 36, 3}, true)
RESNET(resnext50_32x4d, 7, 2, true, 64, 4, {3, 4, 6, 3}, true, 32, 4)
RESNET(resnext101_32x8d, 7, 2, true, 64, 4, {3, 4, 23, 3}, true, 32, 8)
RESNET(seresnext50_32x4d, 7, 2, true, 64, 4, {3, 4, 6, 3}, true, 32, 4, 16)
#undef RESNET

/* -- inverted residuals: Sandler, Howard, Zhu, Zhmoginov, Chen 2018, as in torchvision -- */

/* A convolution NAME.0 (depthwise where `channels` is 0) and batch norm NAME.1. */
static int conv_norm(struct dl2_graph *g, const char *name, int v, unsigned channels,
                     unsigned kernel, unsigned stride, enum dl2_activation activation)
{
    char part[48];
    snprintf(part, sizeof part, "%s.0", name);
    if (channels)
        v = dl2_graph_conv(g, part, v, channels, kernel, stride, kernel / 2, DL2_INIT_HE_FAN_OUT);
    else
        v = dl2_graph_depthwise(g, part, v, kernel, stride, kernel / 2, DL2_INIT_HE_FAN_OUT);
    snprintf(part, sizeof part, "%s.1", name);
    return dl2_graph_norm(g, part, v, activation);
}

static int inverted(struct dl2_graph *g, unsigned number, int in, unsigned expansion,
                    unsigned channels, unsigned stride)
{
    char name[32];
    unsigned part = 0, ins = dl2_graph_channels(g, in);
    int v = in;
    if (expansion > 1) {
        snprintf(name, sizeof name, "features.%u.conv.%u", number, part++);
        v = conv_norm(g, name, v, expansion * ins, 1, 1, DL2_RELU6);
    }
    snprintf(name, sizeof name, "features.%u.conv.%u", number, part++);
    v = conv_norm(g, name, v, 0, 3, stride, DL2_RELU6);
    snprintf(name, sizeof name, "features.%u.conv.%u", number, part++);
    v = dl2_graph_conv(g, name, v, channels, 1, 1, 0, DL2_INIT_HE_FAN_OUT);
    snprintf(name, sizeof name, "features.%u.conv.%u", number, part);
    int norm = dl2_graph_norm_parameters(g, name, channels);
    return dl2_graph_norm_layer(g, norm, v, stride == 1 && ins == channels ? in : -1, DL2_IDENTITY);
}

static int mobilenet_v2(struct dl2_graph *g, int v, unsigned classes)
{
    static const struct {
        unsigned expansion, channels, blocks, stride;
    } stages[] = {{1, 16, 1, 1}, {6, 24, 2, 2},  {6, 32, 3, 2}, {6, 64, 4, 2},
                  {6, 96, 3, 1}, {6, 160, 3, 2}, {6, 320, 1, 1}};
    unsigned number = 1;
    v = conv_norm(g, "features.0", v, 32, 3, 2, DL2_RELU6);
    for (size_t s = 0; s < sizeof stages / sizeof stages[0]; s++)
        for (unsigned i = 0; i < stages[s].blocks; i++)
            v = inverted(g, number++, v, stages[s].expansion, stages[s].channels,
                         i ? 1 : stages[s].stride);
    v = conv_norm(g, "features.18", v, 1280, 1, 1, DL2_RELU6);
    v = dl2_graph_average_pool(g, v, 1, 1);
    v = dl2_graph_dropout(g, v, 0.2f);
    return dl2_graph_linear(g, "classifier.1", v, classes, DL2_INIT_NORMAL);
}

/* -- EfficientNet: Tan, Le 2019, as in torchvision; Lite0 as in timm -- */

static int conv_silu(struct dl2_graph *g, const char *name, int v, unsigned channels,
                     unsigned kernel, unsigned stride)
{
    return dl2_graph_smooth(g, DL2_SILU,
                            conv_norm(g, name, v, channels, kernel, stride, DL2_IDENTITY));
}

static const struct {
    unsigned expansion, kernel, stride, channels, blocks;
} efficient_stages[] = {{1, 3, 1, 16, 1},  {6, 3, 2, 24, 2},  {6, 5, 2, 40, 2}, {6, 3, 2, 80, 3},
                        {6, 5, 1, 112, 3}, {6, 5, 2, 192, 4}, {6, 3, 1, 320, 1}};

/* `rate`: of samples that skip the block in training. */
static int mobile_block(struct dl2_graph *g, const char *name, int in, unsigned expansion,
                        unsigned kernel, unsigned stride, unsigned channels, float rate)
{
    char part[48];
    unsigned number = 0;
    const unsigned ins = dl2_graph_channels(g, in);
    int v = in;
    if (expansion > 1) {
        snprintf(part, sizeof part, "%s.block.%u", name, number++);
        v = conv_silu(g, part, v, expansion * ins, 1, 1);
    }
    snprintf(part, sizeof part, "%s.block.%u", name, number++);
    v = conv_silu(g, part, v, 0, kernel, stride);
    snprintf(part, sizeof part, "%s.block.%u", name, number++);
    v = gated(g, part, v, ins / 4, true, DL2_INIT_HE_FAN_OUT);
    snprintf(part, sizeof part, "%s.block.%u.0", name, number);
    v = dl2_graph_conv(g, part, v, channels, 1, 1, 0, DL2_INIT_HE_FAN_OUT);
    snprintf(part, sizeof part, "%s.block.%u.1", name, number);
    v = dl2_graph_norm(g, part, v, DL2_IDENTITY);
    if (stride != 1 || ins != channels)
        return v;
    return dl2_graph_add(g, in, dl2_graph_drop_samples(g, v, rate));
}

static int efficientnet_b0(struct dl2_graph *g, int v, unsigned classes)
{
    enum { STAGES = sizeof efficient_stages / sizeof efficient_stages[0], BLOCKS = 16 };
    unsigned number = 0;
    v = conv_silu(g, "features.0", v, 32, 3, 2);
    for (unsigned s = 0; s < STAGES; s++)
        for (unsigned i = 0; i < efficient_stages[s].blocks; i++) {
            char name[32];
            snprintf(name, sizeof name, "features.%u.%u", s + 1, i);
            v = mobile_block(g, name, v, efficient_stages[s].expansion, efficient_stages[s].kernel,
                             i ? 1 : efficient_stages[s].stride, efficient_stages[s].channels,
                             0.2f * (float)number++ / BLOCKS);
        }
    v = dl2_graph_average_pool(g, conv_silu(g, "features.8", v, 1280, 1, 1), 1, 1);
    v = dl2_graph_dropout(g, v, 0.2f);
    return dl2_graph_linear(g, "classifier.1", v, classes, DL2_INIT_UNIFORM_OUT);
}

/* Convolution `conv` of a block, depthwise with `channels` 0, and its batch norm `number`. */
static int lite_conv(struct dl2_graph *g, const char *block, const char *conv, unsigned number,
                     int v, unsigned channels, unsigned kernel, unsigned stride, int residual,
                     enum dl2_activation activation)
{
    char name[48];
    snprintf(name, sizeof name, "%s%s", block, conv);
    if (channels)
        v = dl2_graph_conv(g, name, v, channels, kernel, stride, kernel / 2, DL2_INIT_HE_FAN_OUT);
    else
        v = dl2_graph_depthwise(g, name, v, kernel, stride, kernel / 2, DL2_INIT_HE_FAN_IN);
    snprintf(name, sizeof name, "%sbn%u", block, number);
    const int norm = dl2_graph_norm_parameters(g, name, dl2_graph_channels(g, v));
    return dl2_graph_norm_layer(g, norm, v, residual, activation);
}

static int efficientnet_lite0(struct dl2_graph *g, int v, unsigned classes)
{
    enum { STAGES = sizeof efficient_stages / sizeof efficient_stages[0] };
    v = lite_conv(g, "", "conv_stem", 1, v, 32, 3, 2, -1, DL2_RELU6);
    for (unsigned s = 0; s < STAGES; s++)
        for (unsigned i = 0; i < efficient_stages[s].blocks; i++) {
            const unsigned stride = i ? 1 : efficient_stages[s].stride;
            const unsigned ins = dl2_graph_channels(g, v), channels = efficient_stages[s].channels;
            const unsigned kernel = efficient_stages[s].kernel;
            const bool expands = efficient_stages[s].expansion > 1;
            const int residual = stride == 1 && ins == channels ? v : -1;
            char name[32];
            snprintf(name, sizeof name, "blocks.%u.%u.", s, i);
            if (expands)
                v = lite_conv(g, name, "conv_pw", 1, v, efficient_stages[s].expansion * ins, 1, 1,
                              -1, DL2_RELU6);
            v = lite_conv(g, name, "conv_dw", 1 + expands, v, 0, kernel, stride, -1, DL2_RELU6);
            v = lite_conv(g, name, expands ? "conv_pwl" : "conv_pw", 2 + expands, v, channels, 1, 1,
                          residual, DL2_IDENTITY);
        }
    v = lite_conv(g, "", "conv_head", 2, v, 1280, 1, 1, -1, DL2_RELU6);
    v = dl2_graph_average_pool(g, v, 1, 1);
    return dl2_graph_linear(g, "classifier", v, classes, DL2_INIT_UNIFORM_OUT);
}

/* -- joined channels: DenseNet (Huang, Liu, van der Maaten, Weinberger 2017) and SqueezeNet
 * (Iandola et al. 2016), as in torchvision -- */

/* Batch norm, ReLU and a convolution of what they give: NAME.norm<N> and NAME.conv<N>. */
static int norm_conv(struct dl2_graph *g, const char *name, const char *number, int v,
                     unsigned channels, unsigned kernel)
{
    char part[64];
    snprintf(part, sizeof part, "%s.norm%s", name, number);
    v = dl2_graph_norm(g, part, v, DL2_RELU);
    snprintf(part, sizeof part, "%s.conv%s", name, number);
    return dl2_graph_conv(g, part, v, channels, kernel, 1, kernel / 2, DL2_INIT_HE_FAN_IN);
}

static int densenet121(struct dl2_graph *g, int v, unsigned classes)
{
    enum { GROWTH = 32, STAGES = 4 };
    static const unsigned layers[STAGES] = {6, 12, 24, 16};
    char name[64];
    v = dl2_graph_conv(g, "features.conv0", v, 2 * GROWTH, 7, 2, 3, DL2_INIT_HE_FAN_IN);
    v = dl2_graph_norm(g, "features.norm0", v, DL2_RELU);
    v = dl2_graph_max_pool(g, v, 3, 2, 1);
    for (unsigned s = 0; s < STAGES; s++) {
        for (unsigned i = 0; i < layers[s]; i++) {
            snprintf(name, sizeof name, "features.denseblock%u.denselayer%u", s + 1, i + 1);
            const int inner = norm_conv(g, name, "1", v, 4 * GROWTH, 1);
            v = dl2_graph_concat(g, v, norm_conv(g, name, "2", inner, GROWTH, 3));
        }
        if (s + 1 == STAGES)
            break;
        snprintf(name, sizeof name, "features.transition%u", s + 1);
        v = dl2_graph_halve(g, norm_conv(g, name, "", v, dl2_graph_channels(g, v) / 2, 1));
    }
    v = dl2_graph_average_pool(g, dl2_graph_norm(g, "features.norm5", v, DL2_RELU), 1, 1);
    return dl2_graph_linear(g, "classifier", v, classes, DL2_INIT_UNIFORM_WEIGHT);
}

static int named_conv_relu(struct dl2_graph *g, const char *name, int v, unsigned channels,
                           unsigned kernel, unsigned stride, unsigned pad)
{
    return dl2_graph_relu(
        g, dl2_graph_conv_bias(g, name, v, channels, kernel, stride, pad, DL2_INIT_HE_UNIFORM));
}

/* `pooled`: the numbers of features before which a max pooling stands. */
static int squeezenet(struct dl2_graph *g, int v, unsigned classes, unsigned channels,
                      unsigned kernel, const unsigned pooled[3])
{
    static const unsigned squeezes[] = {16, 16, 32, 32, 48, 48, 64, 64};
    unsigned number = 2;
    v = named_conv_relu(g, "features.0", v, channels, kernel, 2, 0);
    for (unsigned i = 0; i < sizeof squeezes / sizeof squeezes[0]; i++) {
        char name[48];
        for (unsigned p = 0; p < 3; p++)
            if (pooled[p] == number) {
                v = dl2_graph_max_pool_up(g, v, 3, 2);
                number++;
            }
        snprintf(name, sizeof name, "features.%u.squeeze", number);
        v = named_conv_relu(g, name, v, squeezes[i], 1, 1, 0);
        snprintf(name, sizeof name, "features.%u.expand1x1", number);
        const int point = named_conv_relu(g, name, v, 4 * squeezes[i], 1, 1, 0);
        snprintf(name, sizeof name, "features.%u.expand3x3", number++);
        v = dl2_graph_concat(g, point, named_conv_relu(g, name, v, 4 * squeezes[i], 3, 1, 1));
    }
    v = dl2_graph_dropout(g, v, 0.5f);
    v = dl2_graph_relu(
        g, dl2_graph_conv_bias(g, "classifier.1", v, classes, 1, 1, 0, DL2_INIT_NORMAL));
    return dl2_graph_average_pool(g, v, 1, 1);
}

static int squeezenet1_0(struct dl2_graph *g, int v, unsigned classes)
{
    return squeezenet(g, v, classes, 96, 7, (const unsigned[]){2, 6, 11});
}

static int squeezenet1_1(struct dl2_graph *g, int v, unsigned classes)
{
    return squeezenet(g, v, classes, 64, 3, (const unsigned[]){2, 5, 8});
}

/* -- transformers: Dosovitskiy et al. 2021, as torchvision has them -- */

static int encoder_block(struct dl2_graph *g, const char *name, int in, unsigned heads,
                         unsigned mlp)
{
    char part[96];
    const unsigned channels = dl2_graph_channels(g, in);
    const enum dl2_init xavier = DL2_INIT_XAVIER_UNIFORM;
    snprintf(part, sizeof part, "%s.ln_1", name);
    int v = dl2_graph_layer_norm(g, part, in, 1e-6f);
    snprintf(part, sizeof part, "%s.self_attention.in_proj_", name);
    v = dl2_graph_token_linear(g, part, v, 3 * channels, xavier);
    v = dl2_graph_attention(g, v, heads);
    snprintf(part, sizeof part, "%s.self_attention.out_proj", name);
    v = dl2_graph_token_linear(g, part, v, channels, DL2_INIT_UNIFORM_WEIGHT);
    in = dl2_graph_add(g, in, v);
    snprintf(part, sizeof part, "%s.ln_2", name);
    v = dl2_graph_layer_norm(g, part, in, 1e-6f);
    snprintf(part, sizeof part, "%s.mlp.0", name);
    v = dl2_graph_smooth(g, DL2_GELU, dl2_graph_token_linear(g, part, v, mlp, xavier));
    snprintf(part, sizeof part, "%s.mlp.3", name);
    return dl2_graph_add(g, in, dl2_graph_token_linear(g, part, v, channels, xavier));
}

static int vit(struct dl2_graph *g, int v, unsigned classes, unsigned patch, unsigned channels,
               unsigned depth, unsigned heads, unsigned mlp)
{
    const int class_token = dl2_graph_class_token(g, "class_token", channels);
    dl2_graph_need_patches(g, v, patch);
    v = dl2_graph_conv_bias(g, "conv_proj", v, channels, patch, patch, 0, DL2_INIT_LECUN);
    v = dl2_graph_tokens(g, "encoder.pos_embedding", v, class_token);
    for (unsigned i = 0; i < depth; i++) {
        char name[64];
        snprintf(name, sizeof name, "encoder.layers.encoder_layer_%u", i);
        v = encoder_block(g, name, v, heads, mlp);
    }
    v = dl2_graph_first_token(g, dl2_graph_layer_norm(g, "encoder.ln", v, 1e-6f));
    return dl2_graph_linear(g, "heads.head", v, classes, DL2_INIT_CONSTANT);
}

/* For 64 to 128 pixels. */
static int vit_tiny(struct dl2_graph *g, int v, unsigned classes)
{
    return vit(g, v, classes, 8, 192, 6, 3, 768);
}

/* DeiT's small one (Touvron et al. 2021), without its distillation. */
static int vit_s_16(struct dl2_graph *g, int v, unsigned classes)
{
    return vit(g, v, classes, 16, 384, 12, 6, 1536);
}

static int vit_b_16(struct dl2_graph *g, int v, unsigned classes)
{
    return vit(g, v, classes, 16, 768, 12, 12, 3072);
}

/* -- clips: 3-D kernels, over time, too -- */

/*
 * GulpIO-benchmarks' ConvColumn (TwentyBN 2017): each block convolves 3x3x3 and halves height and
 * width, and all but the first the time.
 */
static int convcolumn(struct dl2_graph *g, int v, unsigned classes)
{
    static const unsigned channels[] = {64, 128, 256, 256};
    const enum dl2_init init = DL2_INIT_UNIFORM_FAN_IN;
    const struct dl2_graph_window kernel = {{3, 3, 3}, {1, 1, 1}, {1, 1, 1}};
    for (unsigned i = 0; i < 4; i++) {
        const unsigned time = i ? 2 : 1;
        char name[32];
        snprintf(name, sizeof name, "conv_layer%u.0", i + 1);
        v = dl2_graph_clip_conv(g, name, v, channels[i], &kernel, true, init);
        snprintf(name, sizeof name, "conv_layer%u.1", i + 1);
        v = dl2_graph_norm(g, name, v, DL2_ELU);
        v = dl2_graph_clip_max_pool(g, v,
                                    &(struct dl2_graph_window){{time, 2, 2}, {time, 2, 2}, {0}});
    }
    v = dl2_graph_elu(g, dl2_graph_linear(g, "fc5", v, 512, init));
    return dl2_graph_linear(g, "fc6", v, classes, init);
}

/* A convolution NAME.0 over clips, without a bias, and the parameters of its batch norm, NAME.1. */
static int clip_conv(struct dl2_graph *g, const char *name, int v, unsigned channels,
                     const struct dl2_graph_window *window, int *norm)
{
    char part[64];
    snprintf(part, sizeof part, "%s.0", name);
    v = dl2_graph_clip_conv(g, part, v, channels, window, false, DL2_INIT_HE_FAN_OUT);
    snprintf(part, sizeof part, "%s.1", name);
    *norm = dl2_graph_norm_parameters(g, part, channels);
    return v;
}

/* Two 3x3x3 convolutions and a shortcut. */
static int clip_block(struct dl2_graph *g, const char *block_name, int in, unsigned channels,
                      unsigned stride)
{
    char name[48];
    int norm, last_norm, shortcut = in;
    snprintf(name, sizeof name, "%s.conv1", block_name);
    int v = clip_conv(g, name, in, channels,
                      &(struct dl2_graph_window){{3, 3, 3}, {stride, stride, stride}, {1, 1, 1}},
                      &norm);
    v = dl2_graph_norm_layer(g, norm, v, -1, DL2_RELU);
    snprintf(name, sizeof name, "%s.conv2", block_name);
    v = clip_conv(g, name, v, channels, &(struct dl2_graph_window){{3, 3, 3}, {1, 1, 1}, {1, 1, 1}},
                  &last_norm);
    if (stride != 1) {
        snprintf(name, sizeof name, "%s.downsample", block_name);
        shortcut =
            clip_conv(g, name, in, channels,
                      &(struct dl2_graph_window){{1, 1, 1}, {stride, stride, stride}, {0}}, &norm);
        shortcut = dl2_graph_norm_layer(g, norm, shortcut, -1, DL2_IDENTITY);
    }
    return dl2_graph_norm_layer(g, last_norm, v, shortcut, DL2_RELU);
}

/* Tran, Wang, Torresani, Ray, LeCun, Paluri 2018, as in torchvision. */
static int r3d_18(struct dl2_graph *g, int v, unsigned classes)
{
    int norm;
    v = clip_conv(g, "stem", v, 64, &(struct dl2_graph_window){{3, 7, 7}, {1, 2, 2}, {1, 3, 3}},
                  &norm);
    v = dl2_graph_norm_layer(g, norm, v, -1, DL2_RELU);
    for (unsigned stage = 0; stage < 4; stage++)
        for (unsigned i = 0; i < 2; i++) {
            char name[32];
            snprintf(name, sizeof name, "layer%u.%u", stage + 1, i);
            v = clip_block(g, name, v, 64u << stage, stage && !i ? 2 : 1);
        }
    v = dl2_graph_average_pool(g, v, 1, 1);
    return dl2_graph_linear(g, "fc", v, classes, DL2_INIT_NORMAL);
}

/* -- masks and volumes: encoder and decoder, with skip connections (Ronneberger, Fischer, Brox
 * 2015); a resolution's values are joined to those that come up from the one below -- */

/* Twice a 3x3 convolution, batch norm and ReLU: NAME.double_conv.0 to .4. */
static int double_conv(struct dl2_graph *g, const char *name, int v, unsigned channels)
{
    for (unsigned i = 0; i < 2; i++) {
        char part[64];
        snprintf(part, sizeof part, "%s.double_conv.%u", name, 3 * i);
        v = dl2_graph_conv(g, part, v, channels, 3, 1, 1, DL2_INIT_UNIFORM_FAN_IN);
        snprintf(part, sizeof part, "%s.double_conv.%u", name, 3 * i + 1);
        v = dl2_graph_norm(g, part, v, DL2_RELU);
    }
    return v;
}

/* With padding and batch norm, as github.com/milesial/Pytorch-UNet has it (not bilinear), and half
 * its channels: 32, doubled at each of four resolutions below. */
static int unet(struct dl2_graph *g, int v, unsigned classes)
{
    enum { LEVELS = 4, BASE = 32 };
    int skips[LEVELS];
    char name[48];
    v = double_conv(g, "inc", v, BASE);
    for (unsigned i = 0; i < LEVELS; i++) {
        skips[i] = v;
        snprintf(name, sizeof name, "down%u.maxpool_conv.1", i + 1);
        v = double_conv(g, name, dl2_graph_max_pool(g, v, 2, 2, 0), BASE << (i + 1));
    }
    for (unsigned i = 0; i < LEVELS; i++) {
        const unsigned channels = BASE << (LEVELS - 1 - i);
        snprintf(name, sizeof name, "up%u.up", i + 1);
        v = dl2_graph_transposed(g, name, v, channels,
                                 &(struct dl2_graph_window){{1, 2, 2}, {1, 2, 2}, {0}});
        snprintf(name, sizeof name, "up%u.conv", i + 1);
        v = double_conv(g, name, dl2_graph_concat(g, skips[LEVELS - 1 - i], v), channels);
    }
    return dl2_graph_conv_bias(g, "outc.conv", v, classes, 1, 1, 0, DL2_INIT_UNIFORM_FAN_IN);
}

/* Two 3x3x3 convolutions, each with instance norm and ReLU: NAME.conv1 and .conv2. */
static int volume_block(struct dl2_graph *g, const char *name, int v, unsigned channels,
                        unsigned stride)
{
    for (unsigned i = 0; i < 2; i++) {
        const unsigned step = i ? 1 : stride;
        char part[48];
        snprintf(part, sizeof part, "%s.conv%u.0", name, i + 1);
        v = dl2_graph_clip_conv(
            g, part, v, channels,
            &(struct dl2_graph_window){{3, 3, 3}, {step, step, step}, {1, 1, 1}}, false,
            DL2_INIT_UNIFORM_FAN_IN);
        snprintf(part, sizeof part, "%s.conv%u.1", name, i + 1);
        v = dl2_graph_instance_norm(g, part, v, DL2_RELU);
    }
    return v;
}

/* MLPerf Training's 3-D U-Net (image_segmentation, from nnU-Net's: Isensee et al. 2019), with a
 * part of its channels, and its loss. */
static int volume_unet(struct dl2_graph *g, int v, unsigned classes, unsigned divisor)
{
    enum { LEVELS = 5 };
    static const unsigned filters[LEVELS] = {32, 64, 128, 256, 320};
    int skips[LEVELS];
    char name[32];
    skips[0] = v = volume_block(g, "input_block", v, filters[0] / divisor, 1);
    for (unsigned i = 1; i < LEVELS; i++) {
        snprintf(name, sizeof name, "downsample.%u", i - 1);
        skips[i] = v = volume_block(g, name, v, filters[i] / divisor, 2);
    }
    v = volume_block(g, "bottleneck", v, filters[LEVELS - 1] / divisor, 2);
    for (unsigned i = 0; i < LEVELS; i++) {
        const unsigned level = LEVELS - 1 - i, channels = filters[level] / divisor;
        snprintf(name, sizeof name, "upsample.%u.upsample_conv.0", i);
        v = dl2_graph_transposed(g, name, v, channels,
                                 &(struct dl2_graph_window){{2, 2, 2}, {2, 2, 2}, {0}});
        snprintf(name, sizeof name, "upsample.%u", i);
        v = volume_block(g, name, dl2_graph_concat(g, v, skips[level]), channels, 1);
    }
    dl2_graph_use_dice(g);
    return dl2_graph_clip_conv(g, "output.conv.0", v, classes,
                               &(struct dl2_graph_window){{1, 1, 1}, {1, 1, 1}, {0}}, true,
                               DL2_INIT_UNIFORM_FAN_IN);
}

static int unet3d(struct dl2_graph *g, int v, unsigned classes)
{
    return volume_unet(g, v, classes, 1);
}

static int unet3d_small(struct dl2_graph *g, int v, unsigned classes)
{
    return volume_unet(g, v, classes, 4);
}

static const struct dl2_arch archs[] = {
    {"convnet", 0, 64, DL2_SGD, convnet, "six 3x3 convolutions, two at full resolution"},
    {"resnet10", 0, 64, DL2_SGD, resnet10, "small ResNet for 64 to 128 pixels: 4 blocks"},
    {"resnet20", 0, 64, DL2_SGD, resnet20, "the CIFAR ResNet, made for 32 pixels: 9 blocks"},
    {"alexnet", 0, 224, DL2_SGD, alexnet, "as in torchvision; at least 63 pixels"},
    {"resnet18", 0, 224, DL2_SGD, resnet18, "as in torchvision"},
    {"resnet34", 0, 224, DL2_SGD, resnet34, "as in torchvision"},
    {"resnet50", 0, 224, DL2_SGD, resnet50, "as in torchvision"},
    {"resnet101", 0, 224, DL2_SGD, resnet101, "as in torchvision"},
    {"resnet152", 0, 224, DL2_SGD, resnet152, "as in torchvision"},
    {"resnext50_32x4d", 0, 224, DL2_SGD, resnext50_32x4d, "as in torchvision"},
    {"resnext101_32x8d", 0, 224, DL2_SGD, resnext101_32x8d, "as in torchvision"},
    {"seresnext50_32x4d", 0, 224, DL2_SGD, seresnext50_32x4d, "SE-ResNeXt, as in timm"},
    {"vgg16", 0, 224, DL2_SGD, vgg16, "as in torchvision; at least 32 pixels"},
    {"vgg16_bn", 0, 224, DL2_SGD, vgg16_bn, "as in torchvision; at least 32 pixels"},
    {"mobilenet_v2", 0, 224, DL2_SGD, mobilenet_v2, "as in torchvision"},
    {"efficientnet_b0", 0, 224, DL2_SGD, efficientnet_b0, "as in torchvision"},
    {"efficientnet_lite0", 0, 224, DL2_SGD, efficientnet_lite0, "as in timm"},
    {"densenet121", 0, 224, DL2_SGD, densenet121, "as in torchvision; sides are multiples of 32"},
    {"squeezenet1_0", 0, 224, DL2_SGD, squeezenet1_0, "as in torchvision"},
    {"squeezenet1_1", 0, 224, DL2_SGD, squeezenet1_1, "as in torchvision; less work"},
    {"vit_tiny", 0, 64, DL2_ADAMW, vit_tiny,
     "vision transformer for 64 to 128 pixels: patches of 8"},
    {"vit_s_16", 0, 224, DL2_ADAMW, vit_s_16, "DeiT's small vision transformer: patches of 16"},
    {"vit_b_16", 0, 224, DL2_ADAMW, vit_b_16,
     "vision transformer as in torchvision: patches of 16"},
    {"convcolumn", 18, 84, DL2_SGD, convcolumn, "GulpIO's 3-D network for clips"},
    {"r3d_18", 16, 112, DL2_SGD, r3d_18, "3-D ResNet for clips, as in torchvision"},
    {"unet", 0, 256, DL2_ADAMW, unet, "U-Net for masks of images; sides are multiples of 16",
     DL2_LABEL_MASK},
    {"unet3d", 128, 128, DL2_SGD, unet3d,
     "MLPerf's 3-D U-Net for volumes; sides are multiples of 32", DL2_LABEL_VOLUME},
    {"unet3d_small", 64, 64, DL2_SGD, unet3d_small, "unet3d with a quarter of the channels",
     DL2_LABEL_VOLUME},
};

const char *const dl2_label_words[] = {
    [DL2_LABEL_CLASS] = "class", [DL2_LABEL_MASK] = "mask", [DL2_LABEL_VOLUME] = "volume", NULL};

const struct dl2_arch *dl2_arch_at(size_t index)
{
    return index < sizeof archs / sizeof archs[0] ? &archs[index] : NULL;
}

const struct dl2_arch *dl2_arch_find(const char *name, struct dl2_error *error)
{
    char known[512] = "";
    const struct dl2_arch *arch;
    for (size_t i = 0; (arch = dl2_arch_at(i)); i++) {
        if (strcmp(arch->name, name) == 0)
            return arch;
        dl2_list_name(known, sizeof known, arch->name);
    }
    dl2_error_set(error, DL2_ERR_ARGUMENT, "there is no architecture '%s'; there are: %s", name,
                  known);
    return NULL;
}

int dl2_arch_check_frames(const struct dl2_arch *arch, unsigned frames, struct dl2_error *error)
{
    if (!arch->frames == !frames)
        return DL2_OK;
    return dl2_error_set(error, DL2_ERR_ARGUMENT,
                         arch->frames
                             ? "%s sees clips: choose a network for images, such as resnet10; "
                               "--samples clips takes the images of a folder for a clip"
                             : "%s sees single images: choose a network for clips, such as "
                               "convcolumn; --frames 1 trains on one frame of each clip, "
                               "--samples images on every frame as an image",
                         arch->name);
}

double dl2_arch_multiply_adds(const struct dl2_arch *arch, unsigned pixels)
{
    struct dl2_graph graph = {.arch = arch->name, .batch = 1};
    graph.logits = arch->build(&graph, dl2_graph_images(&graph, arch->frames, pixels, pixels, 3),
                               arch->labels == DL2_LABEL_CLASS ? 1000 : 21);
    const double sum = graph.status ? NAN : dl2_graph_multiply_adds(&graph);
    dl2_graph_free(&graph);
    return sum;
}

void dl2_arch_list(FILE *out)
{
    const struct dl2_arch *arch;
    for (size_t i = 0; (arch = dl2_arch_at(i)); i++)
        fprintf(out, "%s\t%u\t%s\t%.0f\t%u\t%s\t%s\n", arch->name, arch->image_size,
                dl2_optimizer_words[arch->optimizer],
                1e-6 * dl2_arch_multiply_adds(arch, arch->image_size), arch->frames,
                dl2_label_words[arch->labels], arch->summary);
}
