/* SPDX-License-Identifier: BSD-2-Clause */
#include "device/optimizer.h"

const char *const dl2_optimizer_words[] = {
    [DL2_SGD] = "sgd", [DL2_ADAMW] = "adamw", [DL2_RMSPROP] = "rmsprop", NULL};

const struct dl2_optimizer_facts *dl2_optimizer_facts(enum dl2_optimizer optimizer)
{
    static const struct dl2_optimizer_facts facts[] = {
        [DL2_SGD] = {.summary = "with momentum; can look ahead (--nesterov)",
                     .rate = 0.05,
                     .nesterov = true,
                     .weight_decay = 0.0005},
        [DL2_ADAMW] = {.summary =
                           "adaptive; weight decay beside the gradient (Loshchilov, Hutter 2019)",
                       .rate = 0.0005,
                       .adaptive = true,
                       .momentum_below = true,
                       .beta2 = 0.999,
                       .weight_decay = 0.05},
        [DL2_RMSPROP] =
            {.summary =
                 "adaptive, not centered; --beta2 is PyTorch's alpha (Tieleman, Hinton 2012)",
             .rate = 0.0005,
             .adaptive = true,
             .beta2 = 0.99,
             .weight_decay = 0.00001},
    };
    return &facts[optimizer];
}
