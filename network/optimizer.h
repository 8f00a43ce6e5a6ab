/* SPDX-License-Identifier: BSD-2-Clause */
/* The optimizers: their names, what each has, and what training begins with. */
#ifndef DL2_NETWORK_OPTIMIZER_H
#define DL2_NETWORK_OPTIMIZER_H

#include <stdbool.h>

enum dl2_optimizer {
    DL2_SGD,     /* torch.optim.SGD */
    DL2_ADAMW,   /* torch.optim.AdamW: Loshchilov, Hutter 2019 */
    DL2_RMSPROP, /* torch.optim.RMSprop, not centred: Tieleman, Hinton 2012 */
};
extern const char *const dl2_optimizer_words[]; /* "sgd"; NULL at the end */

/* What an optimizer has, and the numbers that training begins with unless others are given. */
struct dl2_optimizer_facts {
    double rate;         /* peak learning rate for a step of 64 images */
    bool adaptive;       /* keeps a mean of squared gradients, the second moment; its rate grows
                            with the square root of the images a step, the others' with the images */
    bool nesterov;       /* can look ahead */
    bool momentum_below; /* its momentum is below 1 */
    double beta2;        /* decay of the mean of squares; 0: it has none */
    double weight_decay;
};
const struct dl2_optimizer_facts *dl2_optimizer_facts(enum dl2_optimizer optimizer);

#endif
