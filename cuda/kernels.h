/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The training device's own kernels, for work that is bound by memory rather than by arithmetic,
 * fused so that each tensor is touched as seldom as can be.
 *
 * Each function queues its work on `stream` and returns a cudaError_t, cudaSuccess being 0.
 * Addresses are of the card's memory; `void` tensors are of the element that is given first;
 * 16-byte accesses are used where alignment and channels (a multiple of 8, or of 4 with float32)
 * allow. What they compute is said in device/device.h. Sums have a fixed order that depends on
 * shapes alone: no atomics, so the same input gives the same bits.
 */
#ifndef DL2_CUDA_KERNELS_H
#define DL2_CUDA_KERNELS_H

#include "device/device.h"

#ifdef __cplusplus
extern "C" {
#endif

struct CUstream_st; /* cudaStream_t is a pointer to it */

/* In the card's memory: what changes from step to step, so that recorded steps see it. */
struct dl2_gpu_state {
    struct dl2_step_params params;
    float correction1, correction2; /* of AdamW's moments; see dl2_gpu_set_step_params() */
    struct dl2_loss_scale loss_scale;
    float clip;        /* factor of this update's gradients, see dl2_gpu_clip_gradients() */
    uint32_t dynamic;  /* the loss scale moves */
    uint32_t overflow; /* a gradient of this update isn't finite */
};

/* Also the powers that AdamW needs, by the updates that were skipped until then. */
int dl2_gpu_set_step_params(struct dl2_gpu_state *state, const struct dl2_step_params *params,
                            struct CUstream_st *stream);

/* -- elementwise: outputs may be inputs -- */

/* to (+)= from. */
int dl2_gpu_widen(enum dl2_element element, const void *from, float *to, size_t count,
                  bool accumulate, struct CUstream_st *stream);
int dl2_gpu_convert_weights(enum dl2_element element, const float *from, void *to, size_t count,
                            struct CUstream_st *stream);
int dl2_gpu_activate_backward(enum dl2_element element, enum dl2_activation activation,
                              const void *y, const void *dy, void *dx, size_t count,
                              struct CUstream_st *stream);
int dl2_gpu_smooth(enum dl2_element element, enum dl2_smooth kind, const void *x, void *y,
                   size_t count, struct CUstream_st *stream);
int dl2_gpu_smooth_backward(enum dl2_element element, enum dl2_smooth kind, const void *x,
                            const void *dy, void *dx, size_t count, struct CUstream_st *stream);
int dl2_gpu_add(enum dl2_element element, const void *a, const void *b,
                enum dl2_activation activation, void *y, size_t count, struct CUstream_st *stream);
int dl2_gpu_dropout(enum dl2_element element, const void *x, void *y, size_t count, size_t each,
                    float rate, uint64_t seed, uint64_t layer, const struct dl2_gpu_state *state,
                    struct CUstream_st *stream);
/* Here outputs are not inputs. */
int dl2_gpu_gate(enum dl2_element element, const struct dl2_gate_shape *shape, const void *x,
                 const void *gates, void *y, struct CUstream_st *stream);
int dl2_gpu_gate_backward(enum dl2_element element, const struct dl2_gate_shape *shape,
                          const void *x, const void *gates, const void *dy, void *dx, void *dgates,
                          struct CUstream_st *stream);
/* x *= factor. */
int dl2_gpu_scale(float *x, size_t count, float factor, struct CUstream_st *stream);
/* Numbers between -1 and 1, to measure other calls on. */
int dl2_gpu_noise(enum dl2_element element, void *to, size_t count, struct CUstream_st *stream);

/* -- optimizer -- */

int dl2_gpu_check_gradients(const float *gradient, size_t count, struct dl2_gpu_state *state,
                            struct CUstream_st *stream);
/* `partials`: scratch of DL2_GPU_CLIP_PARTIALS numbers. */
enum { DL2_GPU_CLIP_PARTIALS = 512 };
int dl2_gpu_clip_gradients(float *gradient, size_t count, float limit, unsigned ranks,
                           float *partials, struct dl2_gpu_state *state,
                           struct CUstream_st *stream);
int dl2_gpu_update(enum dl2_element element, const struct dl2_optimizer_step *step, unsigned ranks,
                   const struct dl2_gpu_state *state, struct CUstream_st *stream);
int dl2_gpu_end_update(struct dl2_gpu_state *state, struct CUstream_st *stream);
int dl2_gpu_move_average(float *average, const float *values, size_t count,
                         const struct dl2_gpu_state *state, struct CUstream_st *stream);

/* -- ingest and loss -- */

int dl2_gpu_ingest(enum dl2_element element, const struct dl2_ingest_shape *shape,
                   const void *images, const uint32_t *partner, void *y,
                   const struct dl2_gpu_state *state, struct CUstream_st *stream);

struct dl2_gpu_sample_loss {
    double value;
    int32_t rank; /* of the own label; -1: not counted */
};
/* `each`: [batch], scratch that is the caller's. */
int dl2_gpu_loss(enum dl2_element element, const struct dl2_loss_shape *shape, const void *logits,
                 const int32_t *labels, const uint32_t *partner, float *losses, void *dlogits,
                 struct dl2_loss_sums *sums, struct dl2_gpu_sample_loss *each,
                 const struct dl2_gpu_state *state, struct CUstream_st *stream);

/* -- labels of pixels and voxels (dense.cu) -- */

/* Rows from which on a loss is one of pixels: dl2_gpu_loss() reads all labels for each sample. */
enum { DL2_GPU_PIXELS = 4096, DL2_GPU_PIXEL_PARTS = 512, DL2_GPU_DICE_PARTS = 32 };
struct dl2_gpu_pixel_sums {
    double loss;
    uint32_t counted, top1, top5;
};
/* As dl2_gpu_loss() without mixup. `parts`: scratch of 2 * DL2_GPU_PIXEL_PARTS. */
int dl2_gpu_pixel_loss(enum dl2_element element, const struct dl2_loss_shape *shape,
                       const void *logits, const int32_t *labels, float *losses, void *dlogits,
                       struct dl2_loss_sums *sums, struct dl2_gpu_pixel_sums *parts,
                       const struct dl2_gpu_state *state, struct CUstream_st *stream);
struct dl2_gpu_dice_sums {
    double both, target, predicted;
};
struct dl2_gpu_dice {
    struct dl2_dice_shape shape;
    float *normalizers;              /* [samples][rows] */
    struct dl2_gpu_dice_sums *parts; /* [samples][classes - 1][DL2_GPU_DICE_PARTS] */
    struct dl2_dice_slope *slopes;   /* [samples][classes - 1] */
};
int dl2_gpu_dice(enum dl2_element element, const struct dl2_gpu_dice *dice, const void *logits,
                 const int32_t *labels, void *dlogits, const struct dl2_loss_sums *entropy,
                 struct dl2_loss_sums *sums, const struct dl2_gpu_state *state,
                 struct CUstream_st *stream);
/* `cells`: [rows], scratch. */
int dl2_gpu_confusion(enum dl2_element element, const void *logits, const int32_t *labels,
                      size_t rows, unsigned classes, int32_t *cells, uint64_t *matrix,
                      struct CUstream_st *stream);
/* Steps and columns in bytes, which are even. */
int dl2_gpu_copy_columns(void *to, size_t to_bytes, const void *from, size_t from_bytes,
                         size_t bytes, size_t rows, struct CUstream_st *stream);

/* -- pooling -- */

enum { DL2_GPU_WINDOW = 256 }; /* elements of a max window at most */

/* `winner`: [outputs], DL2_POOL_MAX only: which tap of its window each output came from. */
int dl2_gpu_pool(enum dl2_element element, const struct dl2_pool_shape *shape, const void *x,
                 void *y, uint8_t *winner, struct CUstream_st *stream);
int dl2_gpu_pool_backward(enum dl2_element element, const struct dl2_pool_shape *shape,
                          const void *dy, const uint8_t *winner, void *dx,
                          struct CUstream_st *stream);

/*
 * -- sums over rows of [rows][channels] --
 * Floats of scratch that any call below with that many channels needs: partial sums of up to nine
 * planes.
 */
size_t dl2_gpu_partials(unsigned channels);

/* out (+)= the sum of each column. */
int dl2_gpu_column_sums(enum dl2_element element, const void *x, size_t rows, unsigned channels,
                        float *partials, float *out, bool accumulate, struct CUstream_st *stream);
/* y += bias, and then the activation. */
int dl2_gpu_add_bias(enum dl2_element element, const float *bias, void *y, size_t rows,
                     unsigned channels, enum dl2_activation activation, struct CUstream_st *stream);

/*
 * -- batch norm, in steps, between which sums of several cards may be put together --
 * moments: [2][channels], mean and sum of squared differences from it.
 * kept: [2][channels], mean and 1 / sqrt(variance + epsilon).
 */
int dl2_gpu_norm_moments(enum dl2_element element, const void *x, size_t rows, unsigned channels,
                         float *partials, float *moments, struct CUstream_st *stream);
/* Moves the squared differences of `rows` rows to another mean. */
int dl2_gpu_norm_recenter(float *moments, const float *mean, size_t rows, unsigned channels,
                          struct CUstream_st *stream);
/* `rows` are those of all moments. Moves the running statistics. */
int dl2_gpu_norm_keep(const float *moments, size_t rows, const struct dl2_norm_shape *shape,
                      float *running_mean, float *running_var, float *kept,
                      struct CUstream_st *stream);
/* The moments, and what dl2_gpu_norm_keep() makes of them, with a launch less. */
int dl2_gpu_norm_statistics(enum dl2_element element, const struct dl2_norm_shape *shape,
                            const void *x, float *partials, float *moments, float *running_mean,
                            float *running_var, float *kept, struct CUstream_st *stream);
int dl2_gpu_norm_keep_running(const float *running_mean, const float *running_var,
                              const struct dl2_norm_shape *shape, float *kept,
                              struct CUstream_st *stream);
int dl2_gpu_norm_apply(enum dl2_element element, const struct dl2_norm_shape *shape, const void *x,
                       const void *residual, const float *gamma, const float *beta,
                       const float *kept, void *y, uint8_t *mask, struct CUstream_st *stream);
/* Does norm_apply() with these arguments write a mask, where it is given one? A byte for each 16
 * bytes of y; bit k: the activation was open in element k. By it backward, which else would read y,
 * reads a sixteenth of that. Only behind a residual: without one backward needs no y. */
bool dl2_gpu_norm_masks(enum dl2_element element, const struct dl2_norm_shape *shape, const void *x,
                        const void *residual, const float *gamma, const float *beta,
                        const float *kept, const void *y);

/* What the gradient of batch norm is made of. sums: [2][channels], of the gradient that reaches it,
 * and of that times the normalized x. */
struct dl2_gpu_norm_gradient {
    const struct dl2_norm_shape *shape;
    const void *x, *y, *dy, *dy2;
    const uint8_t *mask; /* forward's; NULL: y says it */
    const float *gamma, *beta, *kept;
    float *sums;
    void *dresidual;
};
/* Makes the sums and the residual's gradient. */
int dl2_gpu_norm_backward_sums(enum dl2_element element, const struct dl2_gpu_norm_gradient *g,
                               float *partials, float *dgamma, float *dbeta, bool accumulate,
                               struct CUstream_st *stream);
/* `rows` are those of the sums. */
int dl2_gpu_norm_backward_data(enum dl2_element element, const struct dl2_gpu_norm_gradient *g,
                               size_t rows, void *dx, struct CUstream_st *stream);

/*
 * -- layer norm --
 * kept: [2][rows], mean and 1 / sqrt(variance + epsilon).
 */
int dl2_gpu_layer_norm(enum dl2_element element, const struct dl2_layer_norm_shape *shape,
                       const void *x, const float *gamma, const float *beta, float *kept, void *y,
                       struct CUstream_st *stream);
/* dgamma and dbeta; before dx, where that takes the place of dy. */
int dl2_gpu_layer_norm_backward_sums(enum dl2_element element,
                                     const struct dl2_layer_norm_shape *shape, const void *x,
                                     const void *dy, const float *kept, float *partials,
                                     float *dgamma, float *dbeta, bool accumulate,
                                     struct CUstream_st *stream);
int dl2_gpu_layer_norm_backward_data(enum dl2_element element,
                                     const struct dl2_layer_norm_shape *shape, const void *x,
                                     const void *dy, const float *gamma, const float *kept,
                                     void *dx, struct CUstream_st *stream);

/*
 * -- softmax of attention's scores, which are float32 --
 * For `rows` rows that lie `step` elements apart, a multiple of 8. The first `count` elements of
 * each row are computed; the others become 0. All addresses are 16-byte aligned.
 */
int dl2_gpu_softmax(enum dl2_element element, const float *scores, size_t rows, unsigned count,
                    unsigned step, void *softmax, struct CUstream_st *stream);
/* dscores = scale * the gradient of the scores; dscores may be dsoftmax where these are float32. */
int dl2_gpu_softmax_backward(enum dl2_element element, const void *softmax, const float *dsoftmax,
                             size_t rows, unsigned count, unsigned step, float scale, void *dscores,
                             struct CUstream_st *stream);

/* -- tokens -- */

int dl2_gpu_tokens(enum dl2_element element, const struct dl2_tokens_shape *shape, const void *x,
                   const float *class_token, const float *positions, void *y,
                   struct CUstream_st *stream);
int dl2_gpu_tokens_backward(enum dl2_element element, const struct dl2_tokens_shape *shape,
                            const void *dy, void *dx, float *dclass_token, float *dpositions,
                            bool accumulate, struct CUstream_st *stream);

/* -- depthwise 3x3 convolutions, which have too little arithmetic for tensor cores -- */

bool dl2_gpu_depthwise(const struct dl2_conv_shape *shape);
int dl2_gpu_depthwise_forward(enum dl2_element element, const struct dl2_conv_shape *shape,
                              const void *x, const void *weights, void *y,
                              struct CUstream_st *stream);
int dl2_gpu_depthwise_backward_data(enum dl2_element element, const struct dl2_conv_shape *shape,
                                    const void *dy, const void *weights, void *dx,
                                    struct CUstream_st *stream);
int dl2_gpu_depthwise_backward_weights(enum dl2_element element, const struct dl2_conv_shape *shape,
                                       const void *x, const void *dy, float *partials,
                                       float *dweights, bool accumulate,
                                       struct CUstream_st *stream);

#ifdef __cplusplus
}
#endif

#endif
