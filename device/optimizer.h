/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The optimizers: their names, formulas and settings. Each device computes the formulas for itself,
 * by kind, in its one optimizer_step() (device/device.h).
 *
 * In the formulas, g is the mean gradient over the ranks, w a weight, m and v its moments, which
 * begin as zero, t the number of the update. rate, beta1 (momentum), beta2, epsilon and decay are
 * struct dl2_step_params'; decay is 0 for weights that do not decay.
 */
#ifndef DL2_DEVICE_OPTIMIZER_H
#define DL2_DEVICE_OPTIMIZER_H

#include <stdbool.h>
#include <stddef.h>

enum dl2_optimizer {
    /* torch.optim.SGD with dampening 0: g += decay * w; m = beta1 * m + g;
     * w -= rate * (nesterov ? g + beta1 * m : m). */
    DL2_SGD,
    /* torch.optim.AdamW (Loshchilov, Hutter 2019): w *= 1 - rate * decay;
     * m = beta1 * m + (1 - beta1) * g; v = beta2 * v + (1 - beta2) * g^2;
     * w -= rate * (m / (1 - beta1^t)) / (sqrt(v / (1 - beta2^t)) + epsilon). */
    DL2_ADAMW,
    /* torch.optim.RMSprop (Tieleman, Hinton 2012), not centered: g += decay * w;
     * v = beta2 * v + (1 - beta2) * g^2; m = beta1 * m + g / (sqrt(v) + epsilon);
     * w -= rate * m. */
    DL2_RMSPROP,
};
extern const char *const dl2_optimizer_words[]; /* "sgd"; NULL at the end */

/* What an optimizer has, and the settings that training begins with unless others are given. */
struct dl2_optimizer_facts {
    const char *summary; /* for --help */
    double rate;         /* peak learning rate for a step of 64 images */
    bool adaptive;       /* keeps a mean of squared gradients, the second moment; its rate grows
                            with the square root of the images a step, the others' with the images */
    bool nesterov;       /* can look ahead */
    bool momentum_below; /* its momentum is below 1 */
    double beta2;        /* decay of the mean of squares; 0: it has none */
    double weight_decay;
};
const struct dl2_optimizer_facts *dl2_optimizer_facts(enum dl2_optimizer optimizer);

/* One step over a run of parameters that share their settings. The arrays are device memory,
 * [count] each. */
struct dl2_optimizer_step {
    enum dl2_optimizer kind;
    bool decays;
    bool nesterov; /* SGD */
    size_t count;
    float *weights;
    /* Receives the new weights, for layers to read; NULL: elements are float32. */
    void *low_precision;
    const float *gradient;
    float *momentum;
    float *second_moment; /* NULL unless the optimizer is adaptive */
};

#endif
