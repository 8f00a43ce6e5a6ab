/*
 * The device seam: where tensors live and what computes on them. A device is a table of functions
 * (struct dl2_device_class) and a context that begins with struct dl2_device. What knows layers,
 * losses and schedules stands above this header; what knows a library (oneDNN, one day CUDA) stands
 * below it.
 *
 * Tensors. Activations are NHWC, weights OHWI (out, kernel height, kernel width, in), matrices of
 * linear layers [out][in]; all float32, dense, rows first. A tensor is a bare address in device
 * memory: the host may add to it, and must not read through it. Inputs and outputs of one call may
 * not overlap except where it says "may be".
 *
 * Plans. What depends on a shape (a library's primitives, packed weights, workspaces, statistics
 * that backward needs) is made once by NAME_create() and used for every step. A backward call
 * belongs to the last forward call of the same plan. NAME_free(NULL) is fine.
 *
 * Time. Calls that compute return at once and have no result: an asynchronous device queues them in
 * order. The first failure sticks to the device, later calls do nothing, and sync() (and
 * download(), which syncs) returns it. Numbers that change from step to step (rate, lambda) are
 * arguments, so that a device may record a step once and replay it.
 *
 * Determinism. The same calls with the same options on the same machine give the same bits.
 *
 * Threads: one at a time, the one that opened the device. Threads of its own are its own affair.
 */
#ifndef DL2_TRAIN_DEVICE_H
#define DL2_TRAIN_DEVICE_H

#include "common/error.h"

#include <stddef.h>
#include <stdint.h>

struct dl2_device_class;

/* First member of every device's context. */
struct dl2_device {
    const struct dl2_device_class *ops;
    struct dl2_error failure; /* the first, until sync() gives it out */
};

struct dl2_device_options {
    unsigned threads; /* 0: dl2_cpu_count(); ref has one whatever this says */
};

/*
 * 2-D convolution without groups; cross-correlation, as all deep-learning libraries have it.
 * out = (in + 2 * pad - kernel) / stride + 1, rounded down.
 */
struct dl2_conv_shape {
    unsigned batch, in_height, in_width, in_channels;
    unsigned out_channels, kernel_height, kernel_width;
    unsigned stride_height, stride_width, pad_height, pad_width;
    bool bias;
};

enum dl2_pool_kind {
    DL2_POOL_MAX, /* padding never wins; the first of equal values does */
    /* Mean over rows floor(i * in / out) .. ceil((i + 1) * in / out), columns alike; 1 x 1 is
       global. */
    DL2_POOL_ADAPTIVE_AVERAGE,
};

struct dl2_pool_shape {
    enum dl2_pool_kind kind;
    unsigned batch, in_height, in_width, channels;
    unsigned out_height, out_width;
    /* DL2_POOL_MAX only; out must be what these come to, as for a convolution. */
    unsigned kernel_height, kernel_width, stride_height, stride_width, pad_height, pad_width;
};

struct dl2_linear_shape {
    unsigned batch, in, out;
    bool bias;
};

/*
 * Batch normalisation (Ioffe, Szegedy 2015) with PyTorch's conventions, and what usually follows it
 * in the same pass: y = relu(gamma * (x - mean) / sqrt(var + epsilon) + beta + residual).
 */
struct dl2_norm_shape {
    size_t rows; /* batch * height * width */
    unsigned channels;
    float epsilon;
    float momentum; /* running = (1 - momentum) * running + momentum * batch's */
    bool relu;
    bool residual;
};

struct dl2_ingest_shape {
    unsigned batch, height, width, channels; /* 1 or 3 channels */
    float mean[3], std[3];                   /* on the 0-255 scale */
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

/* Sums since they were zeroed, in device memory; loss calls add to them. */
struct dl2_loss_sums {
    double loss;      /* over counted samples */
    uint64_t counted; /* samples with a label */
    uint64_t top1,
        top5; /* whose own label is (among) the highest; equal logits rank by class number */
};

/* Per call, so that a device may replay the rest. */
struct dl2_sgd {
    float rate, momentum, weight_decay;
    bool nesterov;
};

/* Plans: each device has its own struct behind these names. */
struct dl2_conv;
struct dl2_pool;
struct dl2_linear;
struct dl2_norm;
struct dl2_ingest;
struct dl2_loss;

struct dl2_device_class {
    const char *name;             /* "cpu": on command lines and in reports */
    const char *summary;          /* "oneDNN on this machine's processors" */
    const char *(*version)(void); /* "oneDNN 2.6.3"; for --version and reports */

    int (*open)(const struct dl2_device_options *options, struct dl2_device **out,
                struct dl2_error *error);
    /* Everything made on it must be gone. NULL is fine. */
    void (*close)(struct dl2_device *device);

    /* -- memory -- */

    /* Zeroed, aligned to DL2_ALIGNMENT at least. */
    int (*alloc)(struct dl2_device *device, size_t bytes, void **out, struct dl2_error *error);
    void (*free)(struct dl2_device *device, void *memory);
    /* Host memory that uploads quickest (pinned, one day), for batch slots; NULL when there is
     * none. */
    void *(*host_alloc)(struct dl2_device *device, size_t bytes);
    void (*host_free)(struct dl2_device *device, void *memory);
    /* `from` must stay as it is until wait_uploads() or sync(). */
    void (*upload)(struct dl2_device *device, void *to, const void *from, size_t bytes);
    void (*wait_uploads)(struct dl2_device *device);
    /* Syncs: `to` is filled on return. */
    int (*download)(struct dl2_device *device, void *to, const void *from, size_t bytes,
                    struct dl2_error *error);
    void (*copy)(struct dl2_device *device, void *to, const void *from, size_t bytes);
    void (*zero)(struct dl2_device *device, void *memory, size_t bytes);
    /* Waits for everything; returns and clears the first failure since the last one. */
    int (*sync)(struct dl2_device *device, struct dl2_error *error);

    /*
     * -- convolution --
     * `bias` and `dbias` are [out_channels], and NULL where the shape has no bias. Where
     * `accumulate`, gradients of weights are added to what is there.
     */
    int (*conv_create)(struct dl2_device *device, const struct dl2_conv_shape *shape,
                       struct dl2_conv **out, struct dl2_error *error);
    void (*conv_free)(struct dl2_conv *conv);
    void (*conv_forward)(struct dl2_conv *conv, const float *x, const float *weights,
                         const float *bias, float *y);
    void (*conv_backward_data)(struct dl2_conv *conv, const float *dy, const float *weights,
                               float *dx);
    void (*conv_backward_weights)(struct dl2_conv *conv, const float *x, const float *dy,
                                  float *dweights, float *dbias, bool accumulate);

    /* -- linear: y = x * transposed(weights) + bias, which is as for convolutions -- */
    int (*linear_create)(struct dl2_device *device, const struct dl2_linear_shape *shape,
                         struct dl2_linear **out, struct dl2_error *error);
    void (*linear_free)(struct dl2_linear *linear);
    void (*linear_forward)(struct dl2_linear *linear, const float *x, const float *weights,
                           const float *bias, float *y);
    void (*linear_backward_data)(struct dl2_linear *linear, const float *dy, const float *weights,
                                 float *dx);
    void (*linear_backward_weights)(struct dl2_linear *linear, const float *x, const float *dy,
                                    float *dweights, float *dbias, bool accumulate);

    /* -- pooling -- */
    int (*pool_create)(struct dl2_device *device, const struct dl2_pool_shape *shape,
                       struct dl2_pool **out, struct dl2_error *error);
    void (*pool_free)(struct dl2_pool *pool);
    void (*pool_forward)(struct dl2_pool *pool, const float *x, float *y);
    void (*pool_backward)(struct dl2_pool *pool, const float *dy, float *dx);

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
    void (*norm_free)(struct dl2_norm *norm);
    void (*norm_train)(struct dl2_norm *norm, const float *x, const float *residual,
                       const float *gamma, const float *beta, float *running_mean,
                       float *running_var, float *y);
    void (*norm_eval)(struct dl2_norm *norm, const float *x, const float *residual,
                      const float *gamma, const float *beta, const float *running_mean,
                      const float *running_var, float *y);
    void (*norm_backward)(struct dl2_norm *norm, const float *x, const float *y, const float *dy,
                          const float *dy2, const float *gamma, const float *beta, float *dx,
                          float *dresidual, float *dgamma, float *dbeta, bool accumulate);

    /* -- elementwise, without plans; y may be x, dx may be dy -- */
    void (*relu_forward)(struct dl2_device *device, const float *x, float *y, size_t count);
    /* Passes dy where y > 0. */
    void (*relu_backward)(struct dl2_device *device, const float *y, const float *dy, float *dx,
                          size_t count);
    /* y = a + b; y may be either. */
    void (*add)(struct dl2_device *device, const float *a, const float *b, float *y, size_t count);
    /*
     * Zeroes an element with probability `rate` (below 1) and scales the others by 1 / (1 - rate).
     * Element i uses number i % 4096 of the stream (seed, DL2_RANDOM_DROPOUT, step, layer * 2^24 +
     * i / 4096) and is kept where those 32 bits are >= rate * 2^32. Backward is the same call on
     * dy.
     */
    void (*dropout)(struct dl2_device *device, const float *x, float *y, size_t count, float rate,
                    uint64_t seed, uint64_t step, uint64_t layer);

    /*
     * -- ingest: bytes as the loader gives them to normalised floats --
     * y[i] = lambda * norm(x[i]) + (1 - lambda) * norm(x[partner[i]]), norm(v) = (v - mean) / std.
     * `partner` (device memory, [batch]) is NULL without mixup; lambda is not used then.
     */
    int (*ingest_create)(struct dl2_device *device, const struct dl2_ingest_shape *shape,
                         struct dl2_ingest **out, struct dl2_error *error);
    void (*ingest_free)(struct dl2_ingest *ingest);
    void (*ingest_run)(struct dl2_ingest *ingest, const uint8_t *images, const uint32_t *partner,
                       float lambda, float *y);

    /*
     * -- loss --
     * labels: [batch], -1 is not counted: no loss, no gradient. With mixup a sample counts when
     * both its labels do. losses: [batch], 0 where not counted, may be NULL. dlogits: the gradient
     * of scale * mean loss over counted samples; may be NULL. Adds to *sums, which is device
     * memory.
     */
    int (*loss_create)(struct dl2_device *device, const struct dl2_loss_shape *shape,
                       struct dl2_loss **out, struct dl2_error *error);
    void (*loss_free)(struct dl2_loss *loss);
    void (*loss_run)(struct dl2_loss *loss, const float *logits, const int32_t *labels,
                     const uint32_t *partner, float lambda, float scale, float *losses,
                     float *dlogits, struct dl2_loss_sums *sums);

    /*
     * -- optimiser: torch.optim.SGD with dampening 0 --
     * g = gradient + weight_decay * w; m = momentum * m + g; w -= rate * (nesterov ? g + momentum *
     * m : m). m starts as zero. Over any run of parameters that share their settings.
     */
    void (*sgd_step)(struct dl2_device *device, float *weights, const float *gradient,
                     float *momentum, size_t count, const struct dl2_sgd *sgd);
};

/* Outputs of a window along one axis, (in + 2 * pad - kernel) / stride + 1; 0 where it does not
 * fit. */
unsigned dl2_window_out(unsigned in, unsigned kernel, unsigned stride, unsigned pad);
/* What every device's create() asks first: no zero sizes, windows that fit, no tensor above 2^31 -
 * 1 elements. */
int dl2_conv_shape_check(const struct dl2_conv_shape *shape, struct dl2_error *error);
int dl2_pool_shape_check(const struct dl2_pool_shape *shape, struct dl2_error *error);
/* First and one past the last input of output `i` in adaptive pooling. */
unsigned dl2_adaptive_begin(unsigned i, unsigned in, unsigned out);
unsigned dl2_adaptive_end(unsigned i, unsigned in, unsigned out);

/* The registry, best last; NULL at the end, or for a name that is not there. */
const struct dl2_device_class *dl2_device_at(size_t index);
const struct dl2_device_class *dl2_device_find(const char *name);
/* The best there is. */
const struct dl2_device_class *dl2_device_default(void);
/* By name, NULL for the best; an unknown name's message lists those there are. */
int dl2_device_open(const char *name, const struct dl2_device_options *options,
                    struct dl2_device **out, struct dl2_error *error);
void dl2_device_close(struct dl2_device *device);

#endif
