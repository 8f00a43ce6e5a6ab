/*
 * Networks: layers written once above the device seam, planned once for a batch, and what a trainer
 * does with them: forward, backward, update, evaluate, look at the weights.
 *
 * A step's life:
 *
 *     dl2_network_train(network, &input, &step, error);  several, with accumulate, for one update
 *     dl2_network_update(network, &update, error);
 *     dl2_network_take_sums(network, &sums, error);      when wanted: it waits for the device
 *
 * A batch may be smaller than the network's: plans are made for that count at its first use and
 * kept (a few of them), so that batch norm sees real samples only. Samples with label -1 go
 * through the network but count for nothing; a training batch should have none where batch norm is.
 *
 * arch.h has the architectures.
 *
 * Threads: one at a time, the device's.
 */
#ifndef DL2_NETWORK_NETWORK_H
#define DL2_NETWORK_NETWORK_H

#include "common/error.h"
#include "device/device.h"

#include <stddef.h>
#include <stdint.h>

enum dl2_optimizer {
    DL2_SGD,   /* torch.optim.SGD */
    DL2_ADAMW, /* torch.optim.AdamW: Loshchilov, Hutter 2019 */
};
extern const char *const dl2_optimizer_words[]; /* "sgd"; NULL at the end */

struct dl2_network_config {
    const char *arch;
    unsigned batch;                   /* the largest that will come */
    unsigned height, width, channels; /* of the images; 1 or 3 channels */
    unsigned classes;
    float mean[3], std[3]; /* of the images' values, on the 0-255 scale; gray uses the first */
    float smoothing;       /* of labels, in training; evaluation has none */
    uint64_t seed;         /* of initial weights and dropout */
    bool train;            /* false: evaluation only, less memory */
    enum dl2_optimizer optimizer;
    bool norm_decay; /* weight decay on norms' parameters, biases and ViT's tokens too */
    bool average;    /* keep moving averages of weights and running statistics */
    bool sync_norm;  /* batch norm's statistics over all ranks of the device's world */
};

/* ImageNet's mean and standard deviation, as (DL)2 has them. */
#define DL2_NETWORK_DEFAULTS                                                                       \
    {                                                                                              \
        .arch = "resnet10", .batch = 64, .height = 64, .width = 64, .channels = 3, .classes = 10,  \
        .mean = {122.655f, 116.535f, 104.04f}, .std = {59.415f, 58.395f, 58.65f}, .train = true    \
    }

struct dl2_network;

/*
 * Makes the network with fresh weights (PyTorch's and torchvision's rules, drawn from the seed, the
 * same on every device). The device stays the caller's and must outlive it. DL2_ERR_ARGUMENT for an
 * unknown architecture (the message lists them), and for images too small for it; DL2_ERR_MEMORY
 * says which smaller batch fits.
 */
int dl2_network_create(struct dl2_device *device, const struct dl2_network_config *config,
                       struct dl2_network **out, struct dl2_error *error);
void dl2_network_destroy(struct dl2_network *network);

/* A batch in host memory, as the loader gives it. */
struct dl2_network_input {
    const uint8_t *images;   /* [count][height][width][channels] */
    const int32_t *labels;   /* [count], -1 .. classes - 1 */
    unsigned count;          /* 1 .. batch */
    const uint32_t *partner; /* mixup: [count], each below count; NULL without */
    float lambda;            /* share of the sample itself, 0 to 1 */
};

struct dl2_network_step {
    uint64_t step;   /* number of the update or micro-batch; names dropout's random numbers */
    float scale;     /* of the loss: 1, or 1 / micro-batches when accumulating */
    bool accumulate; /* add to the gradients of the call before; false: begin anew */
    bool more;       /* another call adds to them: with several ranks, don't add these up yet */
};

/* Forward and backward: leaves gradients. DL2_ERR_ARGUMENT for a count, label or partner out of
 * range. */
int dl2_network_train(struct dl2_network *network, const struct dl2_network_input *input,
                      const struct dl2_network_step *step, struct dl2_error *error);

/* Forward only, with running statistics, without dropout, smoothing and mixup. */
int dl2_network_evaluate(struct dl2_network *network, const struct dl2_network_input *input,
                         struct dl2_error *error);

/*
 * The input of the last call is read until this returns; give the loader's slot back after it.
 * Cheap: it waits for the upload, not for the computing.
 */
void dl2_network_wait_input(struct dl2_network *network);

struct dl2_update {
    float rate;
    float momentum; /* AdamW's beta1, which is below 1 */
    float weight_decay;
    bool nesterov;        /* SGD */
    float average_decay;  /* of a network that keeps averages; 0 makes them equal to the weights */
    float beta2, epsilon; /* AdamW; beta2 is below 1 */
    uint64_t number;      /* of this update of the run, from 1: AdamW's moments begin with 0 */
};

/* One step of the optimizer on all parameters; weight_decay leaves out norms' parameters, biases
 * and ViT's tokens. Then the averages move. */
int dl2_network_update(struct dl2_network *network, const struct dl2_update *update,
                       struct dl2_error *error);

/*
 * Puts the averages in the weights' place, and back: in between, DL2_NETWORK_VALUE and
 * dl2_network_evaluate() mean the averages, and training and updates are DL2_ERR_ARGUMENT. Nothing
 * happens where it is so already.
 */
int dl2_network_use_average(struct dl2_network *network, bool use, struct dl2_error *error);

/* Waits; loss, counted, top1, top5 of all calls since the last take; training's and evaluation's
 * alike. */
int dl2_network_take_sums(struct dl2_network *network, struct dl2_loss_sums *sums,
                          struct dl2_error *error);

/* Waits; of the last call: losses [count] (0 where not counted), logits [count][classes]. Either
 * NULL. */
int dl2_network_last(struct dl2_network *network, float *losses, float *logits,
                     struct dl2_error *error);

/* -- what is learned, by name -- */

struct dl2_network_tensor {
    const char *name; /* torchvision's: "layer1.0.conv1.weight"; lives as long as the network */
    /* PyTorch's shape: OIHW, [out][in], [1][tokens][channels] or [channels]. */
    size_t dims[4];
    unsigned rank;
    size_t count;   /* product of dims */
    bool parameter; /* learned; false: a running mean or variance */
    bool decays;    /* weight decay applies */
};

/* In the order of PyTorch's state_dict() (which has num_batches_tracked besides). */
size_t dl2_network_tensor_count(const struct dl2_network *network);
void dl2_network_tensor(const struct dl2_network *network, size_t index,
                        struct dl2_network_tensor *tensor);
/* The architecture's name. */
const char *dl2_network_arch(const struct dl2_network *network);
/* Learned numbers, buffers left out. */
size_t dl2_network_parameter_count(const struct dl2_network *network);

enum dl2_network_part {
    DL2_NETWORK_VALUE,
    DL2_NETWORK_GRADIENT, /* of parameters, in networks that train; read: since the last update */
    DL2_NETWORK_MOMENTUM, /* likewise; AdamW's first moment */
    DL2_NETWORK_SECOND_MOMENT, /* likewise, and of AdamW only */
    DL2_NETWORK_AVERAGE,       /* networks that keep them; of running statistics, too */
};

/* Has the tensor this part? */
bool dl2_network_has(const struct dl2_network *network, size_t index, enum dl2_network_part part);

/*
 * `values` has `count` floats in PyTorch's element order (contiguous), whatever the device keeps. A
 * checkpoint is the values, momenta and averages of all tensors: setting them gives back the same
 * state, bit for bit.
 */
int dl2_network_get(struct dl2_network *network, size_t index, enum dl2_network_part part,
                    float *values, struct dl2_error *error);
int dl2_network_set(struct dl2_network *network, size_t index, enum dl2_network_part part,
                    const float *values, struct dl2_error *error);

#endif
