/*
 * Architectures as recipes: arch.c says which layers, network.c plans and runs them. Internal to
 * train/.
 *
 * A recipe is a straight C function that calls the builder below. Values are what flows between
 * layers, by number; a value may be used at most twice. The first error sticks and makes the rest
 * do nothing, so recipes need no checks.
 */
#ifndef DL2_TRAIN_ARCH_H
#define DL2_TRAIN_ARCH_H

#include <stdbool.h>
#include <stddef.h>

struct dl2_builder;

struct dl2_arch {
    const char *name, *summary;
    /* From `value` (the images) to the value of the logits. */
    int (*build)(struct dl2_builder *builder, int value, unsigned classes);
};

/* NULL at the end. */
const struct dl2_arch *dl2_arch_at(size_t index);

/* How fresh weights are drawn; the limits depend on the layer's fan. */
enum dl2_init {
    DL2_INIT_UNIFORM_FAN_IN, /* U(-1, 1) / sqrt(fan_in), biases too: PyTorch's default */
    DL2_INIT_HE_FAN_OUT, /* N(0, 2 / fan_out), no bias: torchvision's ResNets (He et al. 2015) */
};

/* Square kernels; `name` as in a state_dict, without ".weight". */
int dl2_build_conv(struct dl2_builder *builder, const char *name, int in, unsigned channels,
                   unsigned kernel, unsigned stride, unsigned pad, enum dl2_init init);

/*
 * Batch norm in two parts, because its parameters' place in the state_dict and its place in the
 * computation differ in residual blocks. `residual` is a value that is added before the ReLU, or
 * -1.
 */
int dl2_build_norm_parameters(struct dl2_builder *builder, const char *name, unsigned channels);
int dl2_build_norm_layer(struct dl2_builder *builder, int parameters, int in, int residual,
                         bool relu);
/* Both, with ReLU. */
int dl2_build_norm_relu(struct dl2_builder *builder, const char *name, int in);

int dl2_build_relu(struct dl2_builder *builder, int in);
int dl2_build_max_pool(struct dl2_builder *builder, int in, unsigned kernel, unsigned stride,
                       unsigned pad);
int dl2_build_average_pool(struct dl2_builder *builder, int in, unsigned height, unsigned width);
int dl2_build_dropout(struct dl2_builder *builder, int in, float rate);
/* Flattens what it is given. */
int dl2_build_linear(struct dl2_builder *builder, const char *name, int in, unsigned out);

unsigned dl2_build_channels(const struct dl2_builder *builder, int value);

#endif
