/*
 * What a network is, before any device: layers over numbered values, tensors with names, and a plan
 * of the memory. arch.c's recipes build it, network.c runs it. Internal to train/.
 *
 * A recipe is a straight C function that calls the builder below. Values are what flows between
 * layers, by number, the images 0; a value may be used at most twice. The first error sticks in the
 * graph and makes the rest do nothing, so recipes need no checks.
 *
 * Memory is planned once: every buffer (a value, or the gradient of one use of it) gets a lifetime
 * in layer steps, and buffers whose lifetimes do not meet share memory. Steps run 0 .. L-1 forward,
 * L for the loss, then layer i goes backward at step 2L - i:
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

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define DL2_GRAPH_USES 2 /* of a value, at most */

enum dl2_layer_kind {
    DL2_LAYER_CONV,
    DL2_LAYER_NORM,
    DL2_LAYER_ACTIVATION,
    DL2_LAYER_MAX_POOL,
    DL2_LAYER_AVERAGE_POOL,
    DL2_LAYER_LINEAR,
    DL2_LAYER_DROPOUT,
    DL2_LAYER_ADD,
    DL2_LAYER_GELU,
    DL2_LAYER_LAYER_NORM,
    DL2_LAYER_ATTENTION,
    DL2_LAYER_TOKENS,
};

struct dl2_layer {
    enum dl2_layer_kind kind;
    int in, residual, out;          /* values; residual -1: none */
    int in_use, residual_use;       /* which use of them this is */
    int tensor;                     /* the first of its tensors, or -1 */
    int class_token;                /* TOKENS: that tensor; `tensor` is the positions */
    bool bias;                      /* CONV, LINEAR: the second tensor */
    enum dl2_activation activation; /* NORM, ACTIVATION */
    unsigned kernel, stride, pad, groups;
    unsigned rows;  /* LINEAR: a sample's, each multiplied by itself */
    unsigned heads; /* ATTENTION */
    float rate, epsilon;
    unsigned number; /* of dropout layers: names the random stream */
};

struct dl2_value {
    unsigned height, width, channels;
    unsigned uses;
    size_t size; /* elements of one sample */
    int buffer_train, buffer_eval;
    int gradient[DL2_GRAPH_USES]; /* buffers, or -1 */
};

struct dl2_buffer {
    size_t size;     /* bytes, for the whole batch */
    int first, last; /* steps */
    size_t offset;   /* in the arena, bytes */
};

/* How fresh values are drawn. */
enum dl2_init {
    DL2_INIT_UNIFORM_FAN_IN, /* U(-1, 1) / sqrt(fan_in), biases too: PyTorch's default */
    DL2_INIT_HE_FAN_OUT,     /* N(0, 2 / fan_out): He et al. 2015, as torchvision has it */
    DL2_INIT_NORMAL,         /* N(0, 0.01^2): torchvision's linear layers of VGG, MobileNet;
                                N(0, 0.02^2): its positions of ViT */
    DL2_INIT_UNIFORM_WEIGHT, /* U(-1, 1) / sqrt(fan_in), biases 0 */
    DL2_INIT_LECUN,          /* N(0, 1 / fan_in): torchvision's patches of ViT */
    DL2_INIT_XAVIER_UNIFORM, /* U(-1, 1) * sqrt(6 / (fan_in + fan_out)): Glorot, Bengio 2010 */
    DL2_INIT_CONSTANT,
};

struct dl2_tensor {
    char *name; /* as in torchvision's state_dict */
    /* PyTorch's shape: OIHW, [out][in], [1][tokens][channels] or [channels]. */
    size_t dims[4];
    unsigned rank;
    unsigned out, height, width, in; /* OHWI, as kept */
    size_t count;
    bool parameter, decays;
    enum dl2_init init;
    float limit;   /* bound, standard deviation or constant of fresh values */
    size_t offset; /* elements, among all tensors */
};

struct dl2_graph {
    const char *arch;
    unsigned batch;
    bool train, norm_decay;
    struct dl2_error *error; /* the first goes there */
    int status;

    struct dl2_layer *layers;
    struct dl2_value *values;
    struct dl2_tensor *tensors;
    struct dl2_buffer *buffers;
    size_t layer_count, value_count, tensor_count, buffer_count;
    int logits; /* value */
    unsigned dropouts;

    /* dl2_graph_plan(): */
    size_t arena;               /* bytes of activations and their gradients */
    size_t decayed, parameters; /* elements of tensors up to there: decayed parameters, all
                                   parameters, */
    size_t elements;            /* and buffers */
};

/* -- for recipes; square kernels; `name` as in a state_dict, without ".weight" -- */

/* Without a bias. */
int dl2_graph_conv(struct dl2_graph *graph, const char *name, int in, unsigned channels,
                   unsigned kernel, unsigned stride, unsigned pad, enum dl2_init init);
int dl2_graph_conv_bias(struct dl2_graph *graph, const char *name, int in, unsigned channels,
                        unsigned kernel, unsigned stride, unsigned pad, enum dl2_init init);
/* A channel of its own for each channel, without a bias. */
int dl2_graph_depthwise(struct dl2_graph *graph, const char *name, int in, unsigned kernel,
                        unsigned stride, unsigned pad, enum dl2_init init);

/*
 * Batch norm in two parts, because its parameters' place in the state_dict and its place in the
 * computation differ in residual blocks. `residual` is a value that is added before the activation,
 * or -1.
 */
int dl2_graph_norm_parameters(struct dl2_graph *graph, const char *name, unsigned channels);
int dl2_graph_norm_layer(struct dl2_graph *graph, int parameters, int in, int residual,
                         enum dl2_activation activation);
/* Both, without a residual. */
int dl2_graph_norm(struct dl2_graph *graph, const char *name, int in,
                   enum dl2_activation activation);

int dl2_graph_activation(struct dl2_graph *graph, int in, enum dl2_activation activation);
int dl2_graph_max_pool(struct dl2_graph *graph, int in, unsigned kernel, unsigned stride,
                       unsigned pad);
int dl2_graph_average_pool(struct dl2_graph *graph, int in, unsigned height, unsigned width);
int dl2_graph_dropout(struct dl2_graph *graph, int in, float rate);
/* Flattens what it is given; has a bias. */
int dl2_graph_linear(struct dl2_graph *graph, const char *name, int in, unsigned out,
                     enum dl2_init init);

/* -- of tokens: values of one column, a row a token -- */

/* The patches of `in` as tokens, after the class token; `name` is that of the positions. The class
 * token is a tensor of dl2_graph_class_token(), whose place in the state_dict is another. */
int dl2_graph_class_token(struct dl2_graph *graph, const char *name, unsigned channels);
int dl2_graph_tokens(struct dl2_graph *graph, const char *name, int in, int class_token);
/* Each token by itself; has a bias. A name that ends in '_' gets no dot before "weight". */
int dl2_graph_token_linear(struct dl2_graph *graph, const char *name, int in, unsigned out,
                           enum dl2_init init);
int dl2_graph_layer_norm(struct dl2_graph *graph, const char *name, int in, float epsilon);
/* `in` has queries, keys and values side by side. */
int dl2_graph_attention(struct dl2_graph *graph, int in, unsigned heads);
int dl2_graph_gelu(struct dl2_graph *graph, int in);
/*
 * a + b. Their gradients are one and the same memory, so nobody may change it who comes first:
 * `b` has to come straight from a convolution or a linear layer, and `a` to have been used before.
 */
int dl2_graph_add(struct dl2_graph *graph, int a, int b);
/* The first token alone. */
int dl2_graph_first_token(struct dl2_graph *graph, int in);

unsigned dl2_graph_channels(const struct dl2_graph *graph, int value);

/* -- for network.c -- */

/* Begins a zeroed graph, whose first five members are set; the value of the images. */
int dl2_graph_images(struct dl2_graph *graph, unsigned height, unsigned width, unsigned channels);
/* When the recipe is done and `logits` set: places buffers and tensors. Returns graph->status. */
int dl2_graph_plan(struct dl2_graph *graph, size_t element_size);
void dl2_graph_free(struct dl2_graph *graph);

/* Is the gradient of a value wanted? All but the images'. */
bool dl2_graph_wants_gradient(int value);
/* Fresh values in PyTorch's element order; the same for every device. */
void dl2_graph_fresh(const struct dl2_graph *graph, size_t tensor, uint64_t seed, float *values);

#endif
