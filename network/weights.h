/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A network's weights alone, as a safetensors file with torchvision's names: from PyTorch and to
 * it. Checkpoints, which hold more, can be read as weights too.
 *
 * Threads: the device's.
 */
#ifndef DL2_NETWORK_WEIGHTS_H
#define DL2_NETWORK_WEIGHTS_H

#include "network/network.h"
#include "network/safetensors.h"

#include <jansson.h>

/*
 * Sets all of the network's parameters and running statistics from the file; tensors of types F16,
 * BF16 and F64 are converted. Where the file's last layer is for another number of classes, that
 * layer is left as it is, and `note` (of `size` bytes, else empty) says so. PyTorch's counts of
 * batches and a checkpoint's momenta are passed over, and its moving averages too, unless
 * `averages` asks for them in place of the weights, where the file has them. DL2_ERR_FORMAT for a
 * file that lacks tensors, has others or has them in other shapes, naming them; the network is as
 * it was then.
 */
int dl2_weights_load(const char *path, struct dl2_network *network, bool averages, char *note,
                     size_t size, struct dl2_error *error);

/* Writes them (F32), with `texts`, an object of strings, as the file's metadata (may be NULL). */
int dl2_weights_save(const char *path, struct dl2_network *network, const json_t *texts,
                     struct dl2_error *error);

/* Adds a part of a tensor to a file that is to be written, under PREFIX and the tensor's name. */
int dl2_weights_add(struct dl2_safetensors *file, struct dl2_network *network, size_t index,
                    enum dl2_network_part part, const char *prefix, struct dl2_error *error);

#endif
