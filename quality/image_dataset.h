/* SPDX-License-Identifier: BSD-2-Clause */
/* How programs that work on single images open datasets. */
#ifndef DL2_QUALITY_IMAGE_DATASET_H
#define DL2_QUALITY_IMAGE_DATASET_H

#include "codec/codec.h"
#include "dataset/dataset.h"

/* All images that the codecs may read, the frames of clips one by one. */
static inline struct dl2_dataset_options
dl2_image_dataset_options(enum dl2_samples samples, const struct dl2_member_choice *members)
{
    struct dl2_dataset_options options = DL2_DATASET_DEFAULTS;
    options.keep = dl2_codec_is_image_file;
    options.reads = dl2_codec_reads;
    options.by_frame = true;
    options.samples = samples;
    options.members = *members;
    return options;
}

#endif
