/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A network as a graph, without a device: layers over numbered values, tensors with names, and a
 * plan of the memory. The functions of arch.c build it and network_run.c runs it. Internal to
 * network/.
 *
 * An architecture is a C function that calls the functions below. A value is the result of a layer,
 * or the images, which are value 0; at most two layers may use a value. The graph keeps the first
 * error and the calls after it do nothing, so architectures need no checks.
 *
 * Memory is planned once. Each buffer (a value, or the gradient of one use of it) has a lifetime in
 * steps, and buffers whose lifetimes do not overlap share memory. Layer i runs forward at step i
 * and backward at step 2L - i; the loss is step L:
 *
 *     step     0    1    2   ...  L-1   L   L+1  ...  2L
 *     layer    0    1    2   ...  L-1  loss L-1  ...   0
 *
 * Threads: one at a time.
 */
#ifndef DL2_NETWORK_GRAPH_H
#define DL2_NETWORK_GRAPH_H

#include "common/error.h"
#include "device/device.h"
#include "network/network.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define DL2_GRAPH_USES 2 /* layers that use a value, at most */

enum dl2_layer_kind {
    DL2_LAYER_CONV,
    DL2_LAYER_NORM,
    DL2_LAYER_MAX_POOL,
    DL2_LAYER_AVERAGE_POOL,
    DL2_LAYER_LINEAR,
    DL2_LAYER_DROPOUT,
    DL2_LAYER_ADD,
    DL2_LAYER_SMOOTH,
    DL2_LAYER_LAYER_NORM,
    DL2_LAYER_ATTENTION,
    DL2_LAYER_TOKENS,
    DL2_LAYER_TRANSPOSED,
    DL2_LAYER_INSTANCE_NORM,
    DL2_LAYER_CONCAT,
    DL2_LAYER_GATE, /* `residual`: the gates */
};

/* A window that moves over images, or over clips and their frames. */
struct dl2_graph_window {
    struct dl2_sides kernel, stride, pad; /* depths with images: 1, 1 and 0 */
};

struct dl2_layer {
    enum dl2_layer_kind kind;
    int in, residual, out;          /* values; residual -1: none */
    int in_use, residual_use;       /* which use of them this is */
    int tensor;                     /* the first of its tensors, or -1 */
    int class_token;                /* TOKENS: that tensor; `tensor` is the positions */
    bool bias;                      /* CONV, LINEAR, TRANSPOSED: the second tensor */
    enum dl2_activation activation; /* NORMs; of CONV and LINEAR: none, RELU or ELU; of ADD: RELU */
    enum dl2_smooth smooth;         /* SMOOTH */
    struct dl2_graph_window window;
    unsigned groups;
    unsigned rows;  /* LINEAR: a sample's, each multiplied by itself */
    unsigned heads; /* ATTENTION */
    float rate, epsilon;
    unsigned number; /* of dropout layers: names the random stream */
    bool samples;    /* DROPOUT: drops whole samples */
};

struct dl2_value {
    struct dl2_sides sides; /* depth: frames; 1: images */
    unsigned channels, uses;
    size_t size;                  /* elements of one sample */
    int buffer[2];                /* in evaluation [false] and in training [true] */
    int gradient[DL2_GRAPH_USES]; /* buffers, or -1 */
};

struct dl2_buffer {
    size_t size;     /* bytes, for the whole batch */
    int first, last; /* steps */
    size_t offset;   /* in the arena, bytes */
};

/* How fresh weights are drawn. */
enum dl2_init {
    DL2_INIT_UNIFORM_FAN_IN, /* U(-1, 1) / sqrt(fan_in), biases too: PyTorch's default */
    DL2_INIT_HE_FAN_OUT,     /* N(0, 2 / fan_out): He et al. 2015, as torchvision has it */
    DL2_INIT_NORMAL,         /* N(0, 0.01^2): torchvision's linear layers of VGG, MobileNet;
                                N(0, 0.02^2): its positions of ViT */
    DL2_INIT_HE_FAN_IN,      /* N(0, 2 / fan_in): torchvision's DenseNet */
    DL2_INIT_HE_UNIFORM,     /* U(-1, 1) * sqrt(6 / fan_in): torchvision's SqueezeNet */
    DL2_INIT_UNIFORM_WEIGHT, /* U(-1, 1) / sqrt(fan_in), biases 0 */
    DL2_INIT_UNIFORM_OUT, /* U(-1, 1) / sqrt(fan_out), biases 0: the last layer of EfficientNet */
    DL2_INIT_LECUN,       /* N(0, 1 / fan_in): torchvision's patches of ViT */
    DL2_INIT_XAVIER_UNIFORM, /* U(-1, 1) * sqrt(6 / (fan_in + fan_out)): Glorot, Bengio 2010 */
    DL2_INIT_CONSTANT,
};

struct dl2_tensor {
    char *name; /* as in torchvision's state_dict */
    /* PyTorch's shape: OIHW, of clips OIDHW, [out][in], [1][tokens][channels] or [channels]. */
    size_t dims[DL2_NETWORK_DIMS];
    unsigned rank;
    unsigned out, in;
    struct dl2_sides sides; /* kept as ODHWI */
    size_t count;
    bool parameter, decays;
    enum dl2_init init;
    float limit;   /* bound, standard deviation or constant of fresh weights */
    size_t offset; /* elements, among all tensors */
};

struct dl2_graph {
    const char *arch;
    unsigned batch;
    bool train, norm_decay;
    bool images_gradient;    /* backward goes on to the images */
    bool clips;              /* the network sees clips or volumes: its kernels have a depth */
    bool volumes;            /* for messages */
    struct dl2_error *error; /* receives the first error */
    int status;

    struct dl2_layer *layers;
    struct dl2_value *values;
    struct dl2_tensor *tensors;
    struct dl2_buffer *buffers;
    size_t layer_count, value_count, tensor_count, buffer_count;
    int logits; /* value; of more than one pixel: each has a label */
    bool dice;  /* the loss is struct dl2_dice_shape's */
    unsigned dropouts;

    /* dl2_graph_plan(): */
    size_t arena; /* bytes of activations and their gradients */
    /* Elements: tensors are in the order decayed parameters, other
     * parameters, running statistics. */
    size_t decayed;    /* the first group */
    size_t parameters; /* the first two */
    size_t elements;   /* all */
};

/* -- for architectures; kernels are square; `name` is the state_dict's, without ".weight" -- */

/* Without a bias. */
int dl2_graph_conv(struct dl2_graph *graph, const char *name, int in, unsigned channels,
                   unsigned kernel, unsigned stride, unsigned pad, enum dl2_init init);
int dl2_graph_conv_bias(struct dl2_graph *graph, const char *name, int in, unsigned channels,
                        unsigned kernel, unsigned stride, unsigned pad, enum dl2_init init);
/* Over clips. */
int dl2_graph_clip_conv(struct dl2_graph *graph, const char *name, int in, unsigned channels,
                        const struct dl2_graph_window *window, bool bias, enum dl2_init init);
/* In groups, without a bias. */
int dl2_graph_grouped(struct dl2_graph *graph, const char *name, int in, unsigned channels,
                      unsigned kernel, unsigned stride, unsigned pad, unsigned groups,
                      enum dl2_init init);
/* A depthwise convolution, without a bias. */
int dl2_graph_depthwise(struct dl2_graph *graph, const char *name, int in, unsigned kernel,
                        unsigned stride, unsigned pad, enum dl2_init init);

/*
 * Batch norm in two parts: in residual blocks its parameters and its layer come at different places
 * of the state_dict and of the computation. `residual` is a value to add before the activation, or
 * -1.
 */
int dl2_graph_norm_parameters(struct dl2_graph *graph, const char *name, unsigned channels);
int dl2_graph_norm_layer(struct dl2_graph *graph, int parameters, int in, int residual,
                         enum dl2_activation activation);
/* Both, without a residual. */
int dl2_graph_norm(struct dl2_graph *graph, const char *name, int in,
                   enum dl2_activation activation);

/* Ends the layer of `in`, a convolution or a linear layer with a bias, or with ReLU an addition,
 * that nothing has used yet, with ReLU or ELU. Returns `in`. */
int dl2_graph_relu(struct dl2_graph *graph, int in);
int dl2_graph_elu(struct dl2_graph *graph, int in);
int dl2_graph_max_pool(struct dl2_graph *graph, int in, unsigned kernel, unsigned stride,
                       unsigned pad);
/* Rounds the number of windows up, without padding: PyTorch's ceil_mode. No stride beyond the
 * kernel. */
int dl2_graph_max_pool_up(struct dl2_graph *graph, int in, unsigned kernel, unsigned stride);
int dl2_graph_clip_max_pool(struct dl2_graph *graph, int in, const struct dl2_graph_window *window);
/* Over all frames of a clip. */
int dl2_graph_average_pool(struct dl2_graph *graph, int in, unsigned height, unsigned width);
/* Fails where halving `in` would leave a row or a column out. */
int dl2_graph_halve(struct dl2_graph *graph, int in);
int dl2_graph_dropout(struct dl2_graph *graph, int in, float rate);
/* Drops whole samples (stochastic depth: Huang et al. 2016). */
int dl2_graph_drop_samples(struct dl2_graph *graph, int in, float rate);
/* Multiplies each channel of a sample by 1 / (1 + exp(-gates)). */
int dl2_graph_gate(struct dl2_graph *graph, int in, int gates);
/* Flattens its input; has a bias. */
int dl2_graph_linear(struct dl2_graph *graph, const char *name, int in, unsigned out,
                     enum dl2_init init);

/* -- for tokens: values of width 1 with a row for each token -- */

/* Fails where patches of that size leave a part of `in` out. */
void dl2_graph_need_patches(struct dl2_graph *g, int in, unsigned patch);
/* Turns the patches of `in` into tokens after the class token; `name` names the positions. The
 * class token comes from dl2_graph_class_token(), as it has another place in the state_dict. */
int dl2_graph_class_token(struct dl2_graph *graph, const char *name, unsigned channels);
int dl2_graph_tokens(struct dl2_graph *graph, const char *name, int in, int class_token);
/* Multiplies each token by the same weights; has a bias. A name that ends in '_' gets no dot before
 * "weight". */
int dl2_graph_token_linear(struct dl2_graph *graph, const char *name, int in, unsigned out,
                           enum dl2_init init);
int dl2_graph_layer_norm(struct dl2_graph *graph, const char *name, int in, float epsilon);
/* `in` has queries, keys and values side by side: 3 * channels. */
int dl2_graph_attention(struct dl2_graph *graph, int in, unsigned heads);
int dl2_graph_smooth(struct dl2_graph *graph, enum dl2_smooth kind, int in);
/*
 * a + b. The gradients of both share memory, which the layer that runs backward first must not
 * change: so `b` must be the result of a convolution, a linear layer, a gate or dropped samples,
 * and `a` must have been used before.
 */
int dl2_graph_add(struct dl2_graph *graph, int a, int b);
/* Only the first token. */
int dl2_graph_first_token(struct dl2_graph *graph, int in);

/* -- for networks that label each pixel or voxel: their logits have the images' size -- */

/* Transposed convolution; has a bias. */
int dl2_graph_transposed(struct dl2_graph *graph, const char *name, int in, unsigned channels,
                         const struct dl2_graph_window *window);
int dl2_graph_instance_norm(struct dl2_graph *graph, const char *name, int in,
                            enum dl2_activation activation);
/* The channels of a, then those of b, of values of the same size. They are copied. */
int dl2_graph_concat(struct dl2_graph *graph, int a, int b);
/* Trains by the Dice loss with cross-entropy instead of cross-entropy alone. */
void dl2_graph_use_dice(struct dl2_graph *graph);

unsigned dl2_graph_channels(const struct dl2_graph *graph, int value);

/* -- for networks -- */

/* Begins a graph that is zero but for its first five members. Returns the value of the images, or
 * of clips of so many frames; 0: images. */
int dl2_graph_images(struct dl2_graph *graph, unsigned frames, unsigned height, unsigned width,
                     unsigned channels);
/* Places buffers and tensors, after `logits` was set. Returns graph->status. */
int dl2_graph_plan(struct dl2_graph *graph, size_t element_size);
void dl2_graph_free(struct dl2_graph *graph);

/* The work of convolutions, linear layers and attention, for one image or clip, forward: nearly
 * all there is. */
double dl2_graph_multiply_adds(const struct dl2_graph *graph);

/* The last layer that has tensors: the one that knows the classes. */
size_t dl2_graph_head(const struct dl2_graph *graph);

/* For messages: the name of its first tensor, or else its kind. */
const char *dl2_graph_layer_name(const struct dl2_graph *graph, const struct dl2_layer *layer);

/* Does backward need the gradient of the value? True for all but the images. */
/* Is the gradient of a value wanted? Unless images_gradient is set, all but the images'. */
bool dl2_graph_wants_gradient(const struct dl2_graph *graph, int value);
/* Draws fresh weights in PyTorch's element order; they are the same for every device. */
void dl2_graph_fresh(const struct dl2_graph *graph, size_t tensor, uint64_t seed, float *values);

#endif
