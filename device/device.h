/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The device seam: where tensors live and what computes on them. A device is a table of functions
 * (struct dl2_device_class) and a context that begins with struct dl2_device. Code that knows
 * layers, losses and schedules stands above this header; code that knows a library (oneDNN, CUDA's)
 * stands below it.
 *
 * Tensors. Activations are NDHWC, weights ODHWI (out, kernel depth, height, width, in of the
 * group), matrices of linear layers [out][in]; all are dense and row-major. The depth is that of a
 * clip's frames; with images it is 1, which leaves NHWC and OHWI. A tensor is a bare address in
 * device memory: the host may do arithmetic on the address, but must not dereference it. Inputs and
 * outputs of a call must not overlap, except where its comment says that one "may be" the other.
 *
 * Types. `float` is float32: weights, their gradients and momenta, batch norm's parameters and
 * statistics, losses. `void` has the type dl2_device.element: activations, their gradients, and the
 * copy of the weights that layers read (low-precision weights). It is float32 unless the device was
 * opened with another precision. Devices form sums and products of such elements in float32.
 *
 * Plans. NAME_create() makes once what depends on a shape (a library's primitives, packed weights,
 * workspaces, statistics for backward); all steps use it. A backward call belongs to the last
 * forward call of the same plan. NAME_free(NULL) is allowed.
 *
 * Time. Calls that compute return nothing and may return early: an asynchronous device queues them
 * in order. The device keeps its first failure; later calls do nothing, and sync() and download(),
 * which syncs, return it. The numbers that change from step to step (rate, lambda) are one struct,
 * set before the calls of a step, so that a device can record these calls once and replay them.
 *
 * Determinism. The same calls with the same options on the same machine give the same bits. On
 * cards this holds only with options.deterministic.
 *
 * Threads: only the thread that opened a device may use it. A device may have threads of its own.
 */
#ifndef DL2_DEVICE_DEVICE_H
#define DL2_DEVICE_DEVICE_H

#include "common/device_name.h"
#include "common/error.h"
#include "device/optimizer.h"

#include <jansson.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

struct dl2_device_class;

enum dl2_element { DL2_ELEMENT_F32, DL2_ELEMENT_BF16, DL2_ELEMENT_F16 };

/* The numbers that change from step to step. */
struct dl2_step_params {
    uint64_t step; /* selects dropout's random numbers */
    float lambda;  /* mixup's weight of the sample itself, 0 to 1 */
    float scale;   /* factor of the loss */
    float rate, momentum, weight_decay;
    float beta2, epsilon; /* of adaptive optimizers */
    uint64_t update;      /* number of this update, from 1 */
    float average_decay;  /* the part of a moving average that an update keeps */
};

struct dl2_world; /* ranks/world.h */

/* First member of every device's context. */
struct dl2_device {
    const struct dl2_device_class *ops;
    enum dl2_element element;
    /* Number of batches to keep on the device: 2 where uploads overlap with computing. */
    unsigned staging;
    unsigned number;               /* which of its kind: 1 for "cuda:1" */
    char pci[32];                  /* the address of its card; "": it is not on one */
    const struct dl2_world *world; /* NULL: alone */
    struct dl2_step_params params;
    struct dl2_error failure; /* the first one, until sync() returns it */
};

enum dl2_precision {
    DL2_PRECISION_FP32,
    DL2_PRECISION_TF32, /* float32 in memory, tensor cores' 10 bits of mantissa in products */
    DL2_PRECISION_BF16, /* on the cpu device: float32 in memory, bf16 in products */
    DL2_PRECISION_FP16, /* with a loss scale, see check_gradients() */
};

const char *dl2_precision_name(enum dl2_precision precision); /* "bf16" */

struct dl2_device_options {
    unsigned threads;             /* 0: dl2_cpu_count(); ref always has one */
    unsigned number;              /* which device of the kind: 1 for "cuda:1" */
    enum dl2_precision precision; /* DL2_ERR_UNSUPPORTED where the device lacks it */
    double loss_scale;            /* with FP16; 0: dynamic */
    bool deterministic;
    /* The processes that train together; NULL: this one alone. Must outlive the device. */
    const struct dl2_world *world;
    /* Called, by the thread that uses the device, with a line for the user where the device does
     * something in another way than it should: a step that cannot be recorded. May be NULL. */
    void (*note)(void *context, const char *text);
    void *note_context;
};

/* RELU6 is min(max(x, 0), 6); its gradient is 0 where y is 0 or 6, as in PyTorch. ELU is x above 0,
 * else exp(x) - 1 (Clevert, Unterthiner, Hochreiter 2016, with alpha 1). */
enum dl2_activation { DL2_IDENTITY, DL2_RELU, DL2_RELU6, DL2_ELU };

/* Activations whose slope only their input tells. GELU is x / 2 * (1 + erf(x / sqrt(2)))
 * (Hendrycks, Gimpel 2016), SiLU x / (1 + exp(-x)) (Elfwing, Uchibe, Doya 2017). */
enum dl2_smooth { DL2_GELU, DL2_SILU };

/* What images, clips, kernels and windows have along each axis. */
struct dl2_sides {
    unsigned depth, height, width;
};

static inline size_t dl2_sides_count(struct dl2_sides sides)
{
    return (size_t)sides.depth * sides.height * sides.width;
}

/*
 * Convolution (cross-correlation, as in all deep-learning libraries) over images or, with depth,
 * over clips. Output sides are (in + 2 * pad - kernel) / stride + 1, rounded down. Images have a
 * depth of 1, and their kernels a depth and a stride of 1 and no padding. Group g maps the input
 * channels from g * in / groups to the output channels from g * out / groups; groups == in == out
 * is a depthwise convolution.
 */
struct dl2_conv_shape {
    unsigned batch;
    struct dl2_sides in;
    unsigned in_channels, out_channels;
    struct dl2_sides kernel, stride, pad;
    unsigned groups; /* at least 1; divides the numbers of input and of output channels */
    bool bias;
    enum dl2_activation activation; /* at the end: none or, with a bias, RELU or ELU */
};

enum dl2_pool_kind {
    DL2_POOL_MAX, /* never takes padding; takes the first of equal values */
    /* Mean over rows floor(i * in / out) .. ceil((i + 1) * in / out), columns and depth alike;
       1 x 1 x 1 is global. */
    DL2_POOL_ADAPTIVE_AVERAGE,
};

struct dl2_pool_shape {
    enum dl2_pool_kind kind;
    unsigned batch;
    struct dl2_sides in; /* depth 1: images */
    unsigned channels;
    struct dl2_sides out;
    struct dl2_sides kernel, stride, pad; /* DL2_POOL_MAX only; `out` must match them, as for a
                                             convolution, or rounded up */
};

struct dl2_linear_shape {
    unsigned batch, in, out;
    bool bias;
    enum dl2_activation activation; /* as of a convolution */
};

/*
 * Batch normalization (Ioffe, Szegedy 2015) with PyTorch's conventions, fused with a residual and
 * an activation: y = activation(gamma * (x - mean) / sqrt(var + epsilon) + beta + residual).
 */
struct dl2_norm_shape {
    size_t rows; /* batch * depth * height * width */
    unsigned channels;
    float epsilon;
    float momentum; /* running = (1 - momentum) * running + momentum * batch's */
    enum dl2_activation activation;
    bool residual;
    /* Statistics cover the batches of all ranks together, each sample with the same weight. */
    bool synchronized;
};

/* Layer norm (Ba, Kiros, Hinton 2016): each row is normalized by itself. */
struct dl2_layer_norm_shape {
    size_t rows;
    unsigned channels;
    float epsilon;
};

/*
 * Multi-head self-attention (Vaswani et al. 2017, section 3.2) between the tokens of a sample. A
 * row of its input holds queries, keys and values, [3][heads][channels / heads], the order of a
 * product with PyTorch's in_proj_weight.
 */
struct dl2_attention_shape {
    unsigned batch, tokens;
    unsigned channels, heads; /* channels is a multiple of heads */
};

/* Turns patches of images into tokens (Dosovitskiy et al. 2021, section 3.1): puts the class token
 * before them and adds the positions. */
struct dl2_tokens_shape {
    unsigned batch, tokens; /* the class token included */
    unsigned channels;
};

/* Channels weighted by a gate of each sample (squeeze and excitation: Hu, Shen, Sun 2018). */
struct dl2_gate_shape {
    unsigned batch;
    size_t rows; /* of a sample */
    unsigned channels;
};

struct dl2_ingest_shape {
    unsigned batch, height, width, channels; /* 1 or 3 channels; with `floats` any number */
    float mean[3], std[3];                   /* on the 0-255 scale */
    bool floats;                             /* the values are float32, normalized already */
};

/*
 * Softmax cross-entropy. With p = softmax(logits) and smoothing s, a sample's loss is
 * (1 - s) * -log p[label] + s * mean over classes of -log p (PyTorch's label_smoothing); with
 * mixup, lambda * that of its own label + (1 - lambda) * that of its partner's.
 */
struct dl2_loss_shape {
    unsigned batch, classes;
    float smoothing;
};

/* Sums in device memory; loss calls add to them. */
struct dl2_loss_sums {
    double loss;      /* over counted samples */
    uint64_t counted; /* samples with a label */
    uint64_t top1,
        top5; /* whose own label is (among) the highest; equal logits rank by class number */
};

/* Where a logit of the sample is NAN, its label ranks behind all others: it counts neither in top1
 * nor in top5, however few classes there are. */
#define DL2_RANK_NAN 0x7fffffff

/*
 * Dice loss with cross-entropy, of classes from 1 on: class 0 is the background. With p the softmax
 * of the logits and t 1 where a row's label is the class, else 0, the Dice score of a class in a
 * sample is D = (2 * sum(t * p) + e) / (sum(t) + sum(p) + e), e = 1e-6, over the sample's rows that
 * have a label. The loss is (mean of 1 - D over samples and classes + cross-entropy) / 2: MLPerf's
 * DiceCELoss for its 3-D U-Net (Milletari, Navab, Ahmadi 2016 have the score).
 */
struct dl2_dice_shape {
    unsigned samples;
    size_t rows;      /* pixels or voxels of a sample */
    unsigned classes; /* at least 2 */
};
#define DL2_DICE_EPSILON 1e-6 /* e */
/* The gradient, by p, of (mean of 1 - D) / 2, for a class of a sample: `all`, and `own` beside
 * where t is 1. */
struct dl2_dice_slope {
    double own, all;
};

struct dl2_loss_scale {
    double scale;     /* 1 unless the precision is FP16 */
    uint64_t good;    /* updates since the scale last changed */
    uint64_t skipped; /* updates that were left out so far */
};

/* Plans. Each device defines these structs for itself. */
struct dl2_conv;
struct dl2_pool;
struct dl2_linear;
struct dl2_norm;
struct dl2_layer_norm;
struct dl2_attention;
struct dl2_ingest;
struct dl2_loss;
struct dl2_dice;
struct dl2_recording;

/* Methods that say "optional" may be NULL. */
struct dl2_device_class {
    const char *name;             /* "cpu": on command lines and in reports */
    const char *summary;          /* "oneDNN on this machine's processors" */
    const char *(*version)(void); /* "oneDNN 2.6.3"; for --version and reports */
    bool is_card;                 /* on a graphics card: one per rank, with memory of its own */
    bool rounds_by_threads;       /* results depend, in their last bits, on options.threads */

    int (*open)(const struct dl2_device_options *options, struct dl2_device **out,
                struct dl2_error *error);
    /* All plans and memory must have been freed. NULL is allowed. */
    void (*close)(struct dl2_device *device);
    /* False where the driver or the card is missing. Optional: NULL means always true. */
    bool (*present)(void);
    /* Describes the card for reports; the caller frees the object. Optional. */
    json_t *(*describe)(struct dl2_device *device);

    /* -- memory -- */

    /* Zeroed, aligned to DL2_ALIGNMENT at least. */
    int (*alloc)(struct dl2_device *device, size_t bytes, void **out, struct dl2_error *error);
    void (*free)(struct dl2_device *device, void *memory);
    /* Host memory for batch slots that uploads fastest (pinned); NULL when there is none left. Any
     * thread may call these two. Both are optional. */
    void *(*host_alloc)(struct dl2_device *device, size_t bytes);
    void (*host_free)(struct dl2_device *device, void *memory);
    /*
     * `from` is host memory, or memory of this device (a batch that was decoded on it). It must not
     * change until wait_uploads() or sync(). An upload runs before all later calls. It may overtake
     * earlier ones, but none up to the ingest_run() that is the dl2_device.staging-th last one. So
     * a caller that uploads batches into `staging` places in turn, and reads each only in its
     * ingest_run(), needs no further order; other callers sync() first.
     */
    void (*upload)(struct dl2_device *device, void *to, const void *from, size_t bytes);
    void (*wait_uploads)(struct dl2_device *device);
    /* Syncs: `to` is filled on return. */
    int (*download)(struct dl2_device *device, void *to, const void *from, size_t bytes,
                    struct dl2_error *error);
    void (*copy)(struct dl2_device *device, void *to, const void *from, size_t bytes);
    void (*zero)(struct dl2_device *device, void *memory, size_t bytes);
    /* Waits for everything; returns and clears the first failure since the last one. */
    int (*sync)(struct dl2_device *device, struct dl2_error *error);
    /* The numbers for the calls from here on. */
    void (*set_step_params)(struct dl2_device *device, const struct dl2_step_params *params);

    /*
     * -- recording; optional, all four --
     * The calls between record_begin() and record_end() run, and replay() runs them again with the
     * numbers that are set then, as long as their tensors and plans exist. Between the two there is
     * no upload, download, sync, alloc, create, set_step_params or ingest_run. record_begin()
     * returns false where the device does not record: calls run as ever, and no record_end()
     * follows. record_end() returns NULL where recording failed: none of the calls has run.
     */
    bool (*record_begin)(struct dl2_device *device);
    struct dl2_recording *(*record_end)(struct dl2_device *device);
    void (*replay)(struct dl2_recording *recording);
    void (*recording_free)(struct dl2_recording *recording);

    /* Ends a part of a step, all that was called since the last mark or ingest_run(), and names it:
     * "layer1.0.conv1.weight", "forward". For devices that measure how long parts take. Optional.
     */
    void (*mark)(struct dl2_device *device, const char *layer, const char *what);

    /*
     * -- several devices --
     * all_reduce adds up `data` over the ranks of the device's world, in place. It may run beside
     * the calls that follow, which must not touch `data` before all_reduce_wait(). All ranks make
     * these calls in the same order, and get sums with the same bits. They are never called without
     * a world. Both are optional: a device without them cannot be opened with a world.
     */
    void (*all_reduce)(struct dl2_device *device, float *data, size_t count);
    void (*all_reduce_wait)(struct dl2_device *device);

    /*
     * -- convolution --
     * `bias` and `dbias` are [out_channels], and NULL where the shape has no bias. With
     * `accumulate`, gradients of weights are added to the previous ones. Where the shape has an
     * activation, backward takes the gradient of what enters it, activate_backward()'s.
     */
    int (*conv_create)(struct dl2_device *device, const struct dl2_conv_shape *shape,
                       struct dl2_conv **out, struct dl2_error *error);
    void (*conv_forward)(struct dl2_conv *conv, const void *x, const void *weights,
                         const float *bias, void *y);
    void (*conv_backward_data)(struct dl2_conv *conv, const void *dy, const void *weights,
                               void *dx);
    void (*conv_backward_weights)(struct dl2_conv *conv, const void *x, const void *dy,
                                  float *dweights, float *dbias, bool accumulate);
    /* Computes noise, and compares each pass with float32, unless that was done for another plan of
     * this shape; adds the number of passes that were compared to *checked. DL2_ERR_SYSTEM where
     * one is wrong: the message names the way of computing that the device has chosen, and by how
     * much it differs. Optional: NULL where the device does not choose. */
    int (*conv_check)(struct dl2_conv *conv, unsigned *checked, struct dl2_error *error);

    /* -- linear: y = x * transposed(weights) + bias; that and the activation as for convolutions --
     */
    int (*linear_create)(struct dl2_device *device, const struct dl2_linear_shape *shape,
                         struct dl2_linear **out, struct dl2_error *error);
    void (*linear_forward)(struct dl2_linear *linear, const void *x, const void *weights,
                           const float *bias, void *y);
    void (*linear_backward_data)(struct dl2_linear *linear, const void *dy, const void *weights,
                                 void *dx);
    void (*linear_backward_weights)(struct dl2_linear *linear, const void *x, const void *dy,
                                    float *dweights, float *dbias, bool accumulate);
    int (*linear_check)(struct dl2_linear *linear, unsigned *checked, struct dl2_error *error);

    /* -- pooling -- */
    int (*pool_create)(struct dl2_device *device, const struct dl2_pool_shape *shape,
                       struct dl2_pool **out, struct dl2_error *error);
    void (*pool_forward)(struct dl2_pool *pool, const void *x, void *y);
    void (*pool_backward)(struct dl2_pool *pool, const void *dy, void *dx);

    /*
     * -- batch norm --
     * norm_train takes mean and (biased) variance from the batch, keeps them for backward, and
     * moves the running ones (the variance unbiased, as PyTorch; biased where rows is 1). norm_eval
     * uses the running ones. `residual` is NULL unless the shape has one.
     *
     * norm_backward: x and y are forward's. The gradient of y is dy, or dy + dy2 where dy2 is not
     * NULL (y went two ways). `dresidual` receives the residual's gradient. dx may be dy, dy2 or x;
     * dresidual may be dy or dy2, but not dx.
     */
    int (*norm_create)(struct dl2_device *device, const struct dl2_norm_shape *shape,
                       struct dl2_norm **out, struct dl2_error *error);
    void (*norm_train)(struct dl2_norm *norm, const void *x, const void *residual,
                       const float *gamma, const float *beta, float *running_mean,
                       float *running_var, void *y);
    void (*norm_eval)(struct dl2_norm *norm, const void *x, const void *residual,
                      const float *gamma, const float *beta, const float *running_mean,
                      const float *running_var, void *y);
    void (*norm_backward)(struct dl2_norm *norm, const void *x, const void *y, const void *dy,
                          const void *dy2, const float *gamma, const float *beta, void *dx,
                          void *dresidual, float *dgamma, float *dbeta, bool accumulate);

    /*
     * -- layer norm: y = gamma * (x - mean) / sqrt(var + epsilon) + beta --
     * with the row's mean and biased variance, which forward keeps for backward. dx may be dy.
     */
    int (*layer_norm_create)(struct dl2_device *device, const struct dl2_layer_norm_shape *shape,
                             struct dl2_layer_norm **out, struct dl2_error *error);
    void (*layer_norm_forward)(struct dl2_layer_norm *norm, const void *x, const float *gamma,
                               const float *beta, void *y);
    void (*layer_norm_backward)(struct dl2_layer_norm *norm, const void *x, const void *dy,
                                const float *gamma, void *dx, float *dgamma, float *dbeta,
                                bool accumulate);

    /*
     * -- attention: of each head, y = softmax(q * transposed(k) / sqrt(channels / heads)) * v --
     * qkv is [batch][tokens][3 * channels], y [batch][tokens][channels] with the heads side by
     * side. Forward keeps for backward what that needs of the softmax; backward takes forward's y.
     */
    int (*attention_create)(struct dl2_device *device, const struct dl2_attention_shape *shape,
                            struct dl2_attention **out, struct dl2_error *error);
    void (*attention_forward)(struct dl2_attention *attention, const void *qkv, void *y);
    void (*attention_backward)(struct dl2_attention *attention, const void *qkv, const void *y,
                               const void *dy, void *dqkv);
    int (*attention_check)(struct dl2_attention *attention, unsigned *checked,
                           struct dl2_error *error);

    /*
     * -- tokens, without a plan --
     * y[b][0] = class_token + positions[0], y[b][1 + i] = x[b][i] + positions[1 + i]; class_token
     * is [channels], positions [tokens][channels], x [batch][tokens - 1][channels].
     */
    void (*tokens_forward)(struct dl2_device *device, const struct dl2_tokens_shape *shape,
                           const void *x, const float *class_token, const float *positions,
                           void *y);
    void (*tokens_backward)(struct dl2_device *device, const struct dl2_tokens_shape *shape,
                            const void *dy, void *dx, float *dclass_token, float *dpositions,
                            bool accumulate);

    /* -- elementwise, without plans; y may be x, dx may be dy -- */
    /* dx = dy times the slope of the activation whose output is y. */
    void (*activate_backward)(struct dl2_device *device, enum dl2_activation activation,
                              const void *y, const void *dy, void *dx, size_t count);
    /* Backward is by forward's x. */
    void (*smooth)(struct dl2_device *device, enum dl2_smooth kind, const void *x, void *y,
                   size_t count);
    void (*smooth_backward)(struct dl2_device *device, enum dl2_smooth kind, const void *x,
                            const void *dy, void *dx, size_t count);
    /* y = activation(a + b), none or RELU; y may be either. */
    void (*add)(struct dl2_device *device, const void *a, const void *b,
                enum dl2_activation activation, void *y, size_t count);
    /*
     * Zeroes a run of `each` elements with probability `rate` (below 1) and scales the others by
     * 1 / (1 - rate). Run i uses number i % 4096 of the stream (seed, DL2_RANDOM_DROPOUT,
     * params.step, layer * 2^24 + i / 4096) and is kept where those 32 bits are >= rate * 2^32.
     * Backward is the same call on dy.
     */
    void (*dropout)(struct dl2_device *device, const void *x, void *y, size_t count, size_t each,
                    float rate, uint64_t seed, uint64_t layer);
    /* y = x / (1 + exp(-gate)); x is [batch][rows][channels], gate [batch][channels]. */
    void (*gate)(struct dl2_device *device, const struct dl2_gate_shape *shape, const void *x,
                 const void *gate, void *y);
    void (*gate_backward)(struct dl2_device *device, const struct dl2_gate_shape *shape,
                          const void *x, const void *gate, const void *dy, void *dx, void *dgate);

    /*
     * -- ingest: turns the loader's bytes into normalized elements --
     * y[i] = lambda * norm(x[i]) + (1 - lambda) * norm(x[partner[i]]), norm(v) = (v - mean) / std,
     * with params.lambda. `partner` (device memory, [batch]) is NULL without mixup. With
     * shape->floats `images` are float32 and y = images; there is no mixup.
     */
    int (*ingest_create)(struct dl2_device *device, const struct dl2_ingest_shape *shape,
                         struct dl2_ingest **out, struct dl2_error *error);
    void (*ingest_run)(struct dl2_ingest *ingest, const void *images, const uint32_t *partner,
                       void *y);

    /*
     * -- loss --
     * labels: [batch], -1 is not counted: no loss, no gradient. With mixup a sample counts when
     * both its labels do. losses: [batch], 0 where not counted, may be NULL. dlogits: the gradient
     * of params.scale * mean loss over counted samples (times the loss scale, where there is one);
     * may be NULL. Adds to *sums, which is device memory. `partner` goes with params.lambda.
     */
    int (*loss_create)(struct dl2_device *device, const struct dl2_loss_shape *shape,
                       struct dl2_loss **out, struct dl2_error *error);
    void (*loss_run)(struct dl2_loss *loss, const void *logits, const int32_t *labels,
                     const uint32_t *partner, float *losses, void *dlogits,
                     struct dl2_loss_sums *sums);

    /*
     * -- labels of pixels and voxels: what such networks need beside (device/dense.h) --
     * Their cross-entropy is loss_run() with a row for each pixel. dice_run() turns it into that of
     * struct dl2_dice_shape: `dlogits` has the gradient of the cross-entropy, as loss_run() left
     * it, and gets that of the whole loss; it may be NULL. `entropy` has the sums of loss_run() of
     * this batch alone; with the whole loss, for each row that counted, they are added to *sums.
     */
    int (*dice_create)(struct dl2_device *device, const struct dl2_dice_shape *shape,
                       struct dl2_dice **out, struct dl2_error *error);
    void (*dice_run)(struct dl2_dice *dice, const void *logits, const int32_t *labels,
                     void *dlogits, const struct dl2_loss_sums *entropy,
                     struct dl2_loss_sums *sums);
    /* matrix[label * classes + k] += the rows with that label whose highest logit is that of class
     * k, the first of equal ones; without those whose label is -1. Where a logit is NAN, the row
     * counts for the class after its label (class 0 after the last): it is wrong. */
    void (*confusion)(struct dl2_device *device, const void *logits, const int32_t *labels,
                      size_t rows, unsigned classes, uint64_t *matrix);
    /* y += bias in each of `rows` rows of `channels`; dbias = the sum of the rows of dy, or is
     * added to it. */
    void (*add_bias)(struct dl2_device *device, const float *bias, void *y, size_t rows,
                     unsigned channels);
    void (*sum_rows)(struct dl2_device *device, const void *dy, size_t rows, unsigned channels,
                     float *dbias, bool accumulate);
    /* Copies the first `columns` elements of each of `rows` rows; `to_step` and `from_step` are the
     * elements from one row to the next. */
    void (*copy_columns)(struct dl2_device *device, void *to, size_t to_step, const void *from,
                         size_t from_step, size_t columns, size_t rows);

    /*
     * -- optimizers --
     * optimizer_step() updates weights and moments by the formula of its kind
     * (device/optimizer.h), whose g is gradient / (loss scale * ranks). AdamW's t is the update's
     * number less the updates that a loss scale has skipped.
     *
     * An update is check_gradients() over all gradients, clip_gradients() over all where they are
     * clipped, a step over all of them in parts, end_update(). With a loss scale, gradients that
     * aren't finite make the steps do nothing, and a dynamic scale moves: halved then, doubled
     * after 2000 updates without. check_gradients() and end_update() are optional: NULL on devices
     * without loss scales.
     */
    void (*check_gradients)(struct dl2_device *device, const float *gradient, size_t count);
    /* torch.nn.utils.clip_grad_norm_: multiplies the gradients by min(1, limit / (n + 1e-6)), in
     * place, where n is the 2-norm of gradient / (loss scale * ranks). limit > 0. */
    void (*clip_gradients)(struct dl2_device *device, float *gradient, size_t count, float limit);
    void (*optimizer_step)(struct dl2_device *device, const struct dl2_optimizer_step *step);
    void (*end_update)(struct dl2_device *device);
    /* average += (1 - params.average_decay) * (values - average): torch.lerp's form, by which
     * averages of what stays the same do so too. */
    void (*move_average)(struct dl2_device *device, float *average, const float *values,
                         size_t count);
    /* Weights that were set from outside, for layers to read. Optional: NULL where elements are
     * float32 alone. */
    void (*convert_weights)(struct dl2_device *device, const float *weights, void *low_precision,
                            size_t count);
    /* Get and set the loss scale, which a checkpoint keeps. Both sync. Optional,
     * both: NULL on devices without loss scales. */
    int (*get_loss_scale)(struct dl2_device *device, struct dl2_loss_scale *scale,
                          struct dl2_error *error);
    int (*set_loss_scale)(struct dl2_device *device, const struct dl2_loss_scale *scale,
                          struct dl2_error *error);
};

/* What each plan begins with, so that all are freed alike. */
struct dl2_device_plan {
    void (*free)(void *plan);
};
/* Frees a plan that one of the create() functions has made. NULL is allowed. */
void dl2_device_plan_free(void *plan);

/* The sides of a window's output, (in + 2 * pad - kernel) / stride + 1 along each axis; 0 where the
 * window does not fit. */
struct dl2_sides dl2_window_outs(struct dl2_sides in, struct dl2_sides kernel,
                                 struct dl2_sides stride, struct dl2_sides pad);
/* Checks for every device's create(): no size is zero, windows fit, and no tensor has more than
 * 2^31 - 1 elements. */
int dl2_conv_shape_check(const struct dl2_conv_shape *shape, struct dl2_error *error);
int dl2_pool_shape_check(const struct dl2_pool_shape *shape, struct dl2_error *error);
int dl2_dice_shape_check(const struct dl2_dice_shape *shape, struct dl2_error *error);
/* Also sets *scores, the number of elements of the softmax: batch * heads * tokens * tokens. */
int dl2_attention_shape_check(const struct dl2_attention_shape *shape, size_t *scores,
                              struct dl2_error *error);
/* The sides of a convolution's output. */
struct dl2_sides dl2_conv_out(const struct dl2_conv_shape *shape);
/* The inputs that output (od, oh, ow) of a pooling sees: frames d0 .. d1-1, rows h0 .. h1-1,
 * columns w0 .. w1-1. */
struct dl2_pool_window {
    unsigned d0, d1, h0, h1, w0, w1;
};
struct dl2_pool_window dl2_pool_window(const struct dl2_pool_shape *shape, unsigned od, unsigned oh,
                                       unsigned ow);
/* Number of inputs that a window has. */
static inline size_t dl2_pool_window_size(const struct dl2_pool_window *v)
{
    return (size_t)(v->d1 - v->d0) * (v->h1 - v->h0) * (v->w1 - v->w0);
}
/* "3x3 convolution (stride 2, padding 1, groups 1) from 64 to 128 channels on 256 images of 56x56",
 * for messages. */
void dl2_conv_shape_text(const struct dl2_conv_shape *shape, char *text, size_t size);

/* For open() of a device that has one number and float32 only: fails where the options ask for
 * more. */
int dl2_device_check_plain(const struct dl2_device_class *ops,
                           const struct dl2_device_options *options, struct dl2_error *error);

/* The registry: ref first, the best last, then NULL. */
const struct dl2_device_class *dl2_device_at(size_t index);
/* The best device that is present. */
const struct dl2_device_class *dl2_device_default(void);
/* The device that is a graphics card; NULL: this build has none. */
const struct dl2_device_class *dl2_device_card(void);
/* Parses a name (common/device_name.h) of a device of this build. Asks no driver: after a process
 * has asked CUDA, its forks cannot. DL2_ERR_ARGUMENT for an unknown name. */
int dl2_device_parse(const char *text, struct dl2_device_name *name, struct dl2_error *error);
/* The device of a parsed name; for "auto", the best one that is present. */
const struct dl2_device_class *dl2_device_named(const struct dl2_device_name *name);
/* Opens the device that `text` names. A number in the name overrides options->number; without one,
 * each rank of a world has the card of its number on the machine. */
int dl2_device_open(const char *text, const struct dl2_device_options *options,
                    struct dl2_device **out, struct dl2_error *error);
/* Prints a line for the device that `text` names, or for each where that is "auto": its name, its
 * version, and "usable" or why it cannot be opened with these options, separated by tabs. */
void dl2_device_list(const char *text, const struct dl2_device_options *options, FILE *out);
void dl2_device_close(struct dl2_device *device);

#endif
