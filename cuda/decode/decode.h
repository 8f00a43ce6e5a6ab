/* SPDX-License-Identifier: BSD-2-Clause */
/* Batches decoded by nvJPEG: a batch decoder (loader/batch_decoder.h), opened from its registry. */
#ifndef DL2_CUDA_DECODE_H
#define DL2_CUDA_DECODE_H

#include "loader/batch_decoder.h"

int dl2_nvjpeg_open(const struct dl2_batch_decoder_options *options, struct dl2_batch_decoder **out,
                    struct dl2_error *error);

#endif
