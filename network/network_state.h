/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A network on a device, private to the files that make one. Each calls only files below it:
 *
 *     network.c            makes, resizes and destroys networks
 *     network_run.c        one batch: upload, forward, loss, backward
 *     network_update.c     between batches: the optimizer's step, freezing, averages
 *     network_gradients.c  which layers are trained; gradients summed over the ranks
 *     network_tensors.c    names, shapes and values of weights
 *     network_plans.c      the device's plans for a batch size
 *     graph.c              layers, values and tensors, without a device
 */
#ifndef DL2_NETWORK_NETWORK_STATE_H
#define DL2_NETWORK_NETWORK_STATE_H

#include "device/dense.h"
#include "network/graph.h"
#include "network/network.h"

enum {
    DL2_NETWORK_VIEWS = 2,    /* image sizes: its own, and another one */
    DL2_PLAN_SETS = 4,        /* batch sizes that plans are kept for */
    DL2_MAX_STAGED = 4,       /* batches on the device at once */
    DL2_NETWORK_BUCKETS = 32, /* of gradients, see dl2_network_plan_buckets() */
};

union dl2_layer_plan {
    struct dl2_conv *conv;
    struct dl2_norm *norm;
    struct dl2_pool *pool;
    struct dl2_linear *linear;
    struct dl2_layer_norm *layer_norm;
    struct dl2_attention *attention;
    struct dl2_transposed *transposed;
    struct dl2_instance_norm *instance_norm;
    void *any; /* one of these; NULL: the layer has no plan */
};

/* Kinds of runs: with the batch size, the kind decides the calls of a run. */
enum {
    DL2_RUN_TRAIN = 1,
    DL2_RUN_MIXED = 2,
    DL2_RUN_ACCUMULATE = 4,
    DL2_RUN_MORE = 8, /* gradients are not reduced yet */
    DL2_RUN_FROZEN = 16,
    DL2_RUN_KINDS = 32,
};

/* The device's plans for a batch size. */
struct dl2_plan_set {
    unsigned count; /* batch size; 0: free */
    uint64_t used;  /* when last */
    struct dl2_ingest *ingest;
    struct dl2_loss *loss_train, *loss_eval;
    struct dl2_dice *dice; /* NULL: the graph has no Dice loss */
    union dl2_layer_plan *layers;
    struct {
        unsigned runs;
        struct dl2_recording *recording;
    } kinds[DL2_RUN_KINDS];
};

/* A run of gradients that are all there once layer `layer` has gone backward. */
struct dl2_bucket {
    size_t begin, count;
    size_t layer;
};

/* A batch's place on the device, beside that of its images and labels. */
struct dl2_staged {
    uint32_t *partner;
};

/* The network for images of one size. All share the tensors, which are those of its own size. */
struct dl2_network_view {
    unsigned height, width; /* 0: free */
    struct dl2_graph graph;
    uint8_t *arena;                  /* activations and their gradients */
    uint8_t *images[DL2_MAX_STAGED]; /* of batches, on the device */
    int32_t *labels[DL2_MAX_STAGED]; /* the same */
    int32_t *current; /* labels of the batch that runs: those move, and the loss is recorded */
    float *losses;    /* [batch][labels] */
    struct dl2_plan_set sets[DL2_PLAN_SETS];
};

struct dl2_network {
    struct dl2_device *device;
    struct dl2_network_config config;
    uint64_t bytes; /* of the device's memory */
    enum dl2_label_kind label_kind;
    bool planned_only;                                /* the bytes are counted and not taken */
    struct dl2_network_view views[DL2_NETWORK_VIEWS]; /* the first is of config's size */
    struct dl2_network_view *view;                    /* the one in use */

    float *weights; /* of all tensors */
    /* The parameters as the device's elements; NULL where these are float32. */
    uint8_t *low_precision;
    float *gradient, *momentum, *second_moment;
    float *average, *kept; /* of all tensors; `kept` has the weights while the averages are in their
                              place */
    bool averaged;         /* they are */
    bool frozen;           /* only the last layer is trained */
    struct dl2_bucket buckets[DL2_NETWORK_BUCKETS];
    size_t bucket_count;

    struct dl2_staged staged[DL2_MAX_STAGED];
    unsigned staging, next_staged;
    uint32_t *partner; /* of the batch that runs */
    struct dl2_loss_sums *sums;
    struct dl2_loss_sums *entropy; /* of a batch whose loss is more than cross-entropy */
    uint64_t *confusion;           /* [classes][classes]; NULL: labels are of samples */
    struct dl2_step_params params;

    uint64_t clock;
    unsigned last_count; /* of the last batch */
    bool last_train;
};

/* ---- network_plans.c ---- */

/* The plans for `count` samples, made if need be in the place of those unused for longest. */
int dl2_network_find_plans(struct dl2_network *net, unsigned count, struct dl2_plan_set **out,
                           struct dl2_error *error);
/* The labels of images of a view's size. */
struct dl2_label_shape dl2_network_view_labels(const struct dl2_network *net,
                                               const struct dl2_network_view *view);
/* The bytes of a sample as it comes in. */
size_t dl2_network_sample_bytes(const struct dl2_network *net, const struct dl2_network_view *view);
void dl2_network_free_plans(struct dl2_network *net, const struct dl2_network_view *view,
                            struct dl2_plan_set *set);

/* ---- network_tensors.c ---- */

/* The device's copy, in its own elements, of the weights from `offset` on; NULL where it computes
 * with float32. */
void *dl2_network_low_precision_at(const struct dl2_network *net, size_t offset);

/* ---- network_gradients.c ---- */

/* The first layer that is trained; those after it are, too. */
size_t dl2_network_first_trained(const struct dl2_network *net);
/* Where the parameters that are trained begin, among those that decay or among the others. They are
 * the last ones of each: architectures end with their last layer. */
size_t dl2_network_trained_from(const struct dl2_network *net, bool decays);
/* Cuts the gradients into buckets, once the graph is there. */
void dl2_network_plan_buckets(struct dl2_network *net);
/* Sends the buckets that are complete once `layer` has gone backward, from number `sent` on.
 * Returns the number of those that are sent then. Nothing waits. */
size_t dl2_network_reduce_layer(const struct dl2_network *net, size_t layer, size_t sent);
/* After the last layer: sends what is left, then makes the device wait for the sums. */
void dl2_network_reduce_rest(const struct dl2_network *net);

/* ---- network_update.c ---- */

/* DL2_ERR_ARGUMENT for networks that are for evaluation only, and while averages are in use. */
int dl2_network_check_trains(const struct dl2_network *net, struct dl2_error *error);

#endif
