/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Networks above the device seam: forward, backward, update, evaluation, and access to the weights.
 *
 * One step:
 *
 *     dl2_network_train(network, &input, &step, error);  one or, with accumulate, several
 *     dl2_network_update(network, &update, error);
 *     dl2_network_take_sums(network, &sums, error);      optional: it waits for the device
 *
 * A batch may be smaller than the network's. The first batch of a size makes plans for that size,
 * and a few sizes are kept; so batch norm sees real samples only. Samples with label -1 pass
 * through the network and count for nothing; networks with batch norm should not train on any.
 *
 * arch.h has the architectures.
 *
 * Threads: one at a time, the device's.
 */
#ifndef DL2_NETWORK_NETWORK_H
#define DL2_NETWORK_NETWORK_H

#include "common/error.h"
#include "device/device.h"
#include "device/optimizer.h"
#include "network/label_shape.h"

#include <stddef.h>
#include <stdint.h>

struct dl2_network_config {
    const char *arch;
    unsigned batch;                   /* the largest batch */
    unsigned frames;                  /* of the clips that it sees; 0: it sees images */
    unsigned height, width, channels; /* of the images or frames; 1 or 3 channels, of floats any */
    unsigned classes;
    bool floats;           /* images are float32, normalized already, and mean and std not used */
    float mean[3], std[3]; /* of the images' values, on the 0-255 scale; gray uses the first */
    float smoothing;       /* of labels, in training; evaluation has none */
    uint64_t seed;         /* of initial weights and dropout */
    bool train;            /* false: evaluation only, with less memory */
    enum dl2_optimizer optimizer;
    bool norm_decay;      /* weight decay on norms' parameters, biases and ViT's tokens too */
    bool average;         /* keep moving averages of weights and running statistics */
    bool images_gradient; /* networks that train: keep the loss's gradient of the images, too */
    bool sync_norm;       /* batch norm's statistics over all ranks of the device's world */
};

/* The mean and the standard deviation are ImageNet's, as in (DL)2. */
#define DL2_NETWORK_DEFAULTS                                                                       \
    {                                                                                              \
        .arch = "resnet10", .batch = 64, .height = 64, .width = 64, .channels = 3, .classes = 10,  \
        .mean = {122.655f, 116.535f, 104.04f}, .std = {59.415f, 58.395f, 58.65f}, .train = true    \
    }

struct dl2_network;

/*
 * Makes a network with fresh weights, drawn from the seed by PyTorch's and torchvision's rules;
 * they are the same on every device. The caller keeps the device, which must outlive the network.
 * DL2_ERR_ARGUMENT for an unknown architecture (the message lists them), for images too small for
 * it, and for images where it sees clips or the reverse; DL2_ERR_MEMORY where the batch does not
 * fit.
 */
int dl2_network_create(struct dl2_device *device, const struct dl2_network_config *config,
                       struct dl2_network **out, struct dl2_error *error);
void dl2_network_destroy(struct dl2_network *network);

/* Memory of the device that such a network takes, without what the device's library takes for
 * itself. Takes none of it. Errors as above, but DL2_ERR_MEMORY. */
int dl2_network_plan_bytes(struct dl2_device *device, const struct dl2_network_config *config,
                           uint64_t *bytes, struct dl2_error *error);

/* A batch as the loader makes it: in host memory, or in the device's where it was decoded there. */
struct dl2_network_input {
    /* [count][height][width][channels], of clips and volumes [count][frames]...: uint8_t, or float
     * where the network's config says so */
    const void *images;
    const int32_t *labels;   /* [count][dl2_network_labels()], -1 .. classes - 1 */
    unsigned count;          /* 1 .. batch */
    const uint32_t *partner; /* mixup: [count], each below count; NULL without */
    float lambda;            /* mixup's weight of the sample itself, 0 to 1 */
    bool pasted; /* the images are mixed already (CutMix): only labels are left to mix */
};

/* The labels of a sample, for images of the size in use. Where they are of pixels or voxels,
 * dl2_loss_sums counts these, and there is no mixup. */
struct dl2_label_shape dl2_network_labels(const struct dl2_network *network);

struct dl2_network_step {
    uint64_t step;   /* number of the batch; selects dropout's random numbers */
    float scale;     /* of the loss: 1, or 1 / batches of an update when accumulating */
    bool accumulate; /* add to the gradients of the previous call; false: replace them */
    bool more;       /* another call will add to them: ranks do not sum them up yet */
};

/* Forward and backward: computes the gradients. DL2_ERR_ARGUMENT for a count, label or partner out
 * of range. */
int dl2_network_train(struct dl2_network *network, const struct dl2_network_input *input,
                      const struct dl2_network_step *step, struct dl2_error *error);

/* Forward only, with running statistics, without dropout, smoothing and mixup. */
int dl2_network_evaluate(struct dl2_network *network, const struct dl2_network_input *input,
                         struct dl2_error *error);

/*
 * Waits until the input of the last call has been read; then the loader's slot can be released.
 * It waits for the upload, not for the computation.
 */
void dl2_network_wait_input(struct dl2_network *network);

/* Compares what the device computes for whole batches with float32 (device.h, conv_check). *checked
 * is the number of passes of layers that were compared: 0 where the device has nothing to compare.
 * The message of an error names the layer. */
int dl2_network_check_device(struct dl2_network *network, unsigned *checked,
                             struct dl2_error *error);

struct dl2_update {
    float rate;
    float momentum; /* AdamW's beta1, which is below 1 */
    float weight_decay;
    bool nesterov;        /* SGD */
    float average_decay;  /* where averages are kept; 0 makes them equal to the weights */
    float beta2, epsilon; /* adaptive optimizers; beta2 is below 1 */
    uint64_t number;      /* of this update of the run, from 1: AdamW's moments begin with 0 */
    float clip;           /* largest norm of all gradients together; 0: they are not clipped */
};

/* Clips the gradients as torch.nn.utils.clip_grad_norm_ does, in place; then one step of the
 * optimizer on all parameters, then one of the averages. Unless config.norm_decay, weight decay
 * leaves out norms' parameters, biases and ViT's tokens. */
int dl2_network_update(struct dl2_network *network, const struct dl2_update *update,
                       struct dl2_error *error);

/*
 * Freezes all but the last layer, or trains all of them again, from the next batch on. Of frozen
 * layers neither weights nor batch norm's statistics nor moments change: batch norm uses its
 * running statistics, as in evaluation; dropout stays as it is. Backward ends with the last layer's
 * weights. Gradients that have not been used in an update are lost. DL2_ERR_ARGUMENT for networks
 * that do not train.
 */
int dl2_network_freeze(struct dl2_network *network, bool frozen, struct dl2_error *error);

/* All moments become zero, as they are at the beginning; dl2_update.number then begins with 1. */
int dl2_network_forget_moments(struct dl2_network *network, struct dl2_error *error);

/*
 * From here on batches have images of that size, with the same weights. The size that the network
 * was made for and the last other one are kept; any further one is made anew. DL2_ERR_ARGUMENT
 * where images are too small, and for transformers, whose positions are for one size;
 * DL2_ERR_MEMORY where a batch does not fit beside those of the other sizes. On an error the
 * network is at the size that it was made for.
 */
int dl2_network_use_size(struct dl2_network *network, unsigned height, unsigned width,
                         struct dl2_error *error);

/*
 * Puts the averages in the weights' place (`use`), or the weights back. While the averages are in
 * use, DL2_NETWORK_VALUE and dl2_network_evaluate() refer to them, and training and updates return
 * DL2_ERR_ARGUMENT. Does nothing if that is the state already.
 */
int dl2_network_use_average(struct dl2_network *network, bool use, struct dl2_error *error);

/* Waits for the device, then moves out the sums over all training and evaluation calls since the
 * last time. */
int dl2_network_take_sums(struct dl2_network *network, struct dl2_loss_sums *sums,
                          struct dl2_error *error);
/* The same, but the sums stay; and sums to go on from. */
int dl2_network_get_sums(struct dl2_network *network, struct dl2_loss_sums *sums,
                         struct dl2_error *error);
int dl2_network_set_sums(struct dl2_network *network, const struct dl2_loss_sums *sums,
                         struct dl2_error *error);

/* Waits for the device, then moves out the numbers of pixels or voxels that a network labeled,
 * [label][class that the network gave it], over all evaluations since the last time.
 * `matrix` is [classes * classes]. */
int dl2_network_take_confusion(struct dl2_network *network, uint64_t *matrix,
                               struct dl2_error *error);

/* Waits for the device, then copies the last call's losses [count] (0 where not counted) and logits
 * [count][classes]; of networks that label pixels, those of each pixel. Either may be NULL. */
int dl2_network_last(struct dl2_network *network, float *losses, float *logits,
                     struct dl2_error *error);

/*
 * Waits for the device, then copies, with images_gradient, the gradient of the last
 * batch's loss with respect to its normalized images, (value - mean) / std, in the order of its
 * images, as dl2_network_train() computed it. The loss is the mean over the batch's samples
 * that have a label, times the step's scale. DL2_ERR_ARGUMENT where the last call did not train,
 * the network has no images_gradient, or the device does not compute with float32.
 */
int dl2_network_images_gradient(struct dl2_network *network, float *out, struct dl2_error *error);

/* -- weights by name -- */

enum { DL2_NETWORK_DIMS = 5 }; /* of a tensor, at most */

struct dl2_network_tensor {
    const char *name; /* torchvision's, "layer1.0.conv1.weight"; valid as long as the network */
    /* PyTorch's shape: OIHW, of clips OIDHW (IOHW of transposed convolutions), [out][in],
     * [1][tokens][channels] or [channels]. */
    size_t dims[DL2_NETWORK_DIMS];
    unsigned rank;
    size_t count;   /* product of dims */
    bool parameter; /* learned; false: a running mean or variance */
    bool decays;    /* weight decay applies */
};

/* The tensors are in the order of PyTorch's state_dict(), without its num_batches_tracked. */
size_t dl2_network_tensor_count(const struct dl2_network *network);
void dl2_network_tensor(const struct dl2_network *network, size_t index,
                        struct dl2_network_tensor *tensor);
/* The architecture's name. */
const char *dl2_network_arch(const struct dl2_network *network);
/* The number of learned weights, without running statistics. */
size_t dl2_network_parameter_count(const struct dl2_network *network);

enum dl2_network_part {
    DL2_NETWORK_VALUE,
    DL2_NETWORK_GRADIENT,      /* parameters of networks that train: since the last update */
    DL2_NETWORK_MOMENTUM,      /* the same; AdamW's first moment */
    DL2_NETWORK_SECOND_MOMENT, /* the same, of adaptive optimizers */
    DL2_NETWORK_AVERAGE,       /* all tensors of networks that keep averages */
};

/* Does the tensor have this part? */
bool dl2_network_has(const struct dl2_network *network, size_t index, enum dl2_network_part part);

/*
 * `values` has `count` floats in PyTorch's contiguous order, whatever the device's own order is. A
 * checkpoint holds the values, moments and averages of all tensors; setting them restores the same
 * state, bit for bit.
 */
int dl2_network_get(struct dl2_network *network, size_t index, enum dl2_network_part part,
                    float *values, struct dl2_error *error);
int dl2_network_set(struct dl2_network *network, size_t index, enum dl2_network_part part,
                    const float *values, struct dl2_error *error);

#endif
