/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Scores for codec-compare, a viewer in the browser that compares codecs image by image
 * (https://github.com/webmproject/codec-compare, "Plug data at serve time" in its README): a batch
 * for the variants of each codec, settings and resolution, with a row for each image at each
 * quality.
 */
#ifndef DL2_QUALITY_CODEC_COMPARE_H
#define DL2_QUALITY_CODEC_COMPARE_H

#include "common/error.h"
#include "quality/score.h"

#include <stddef.h>

struct dl2_codec_compare_counts {
    size_t batches, rows;
    size_t
        left_out; /* scored images without a value by one of the metrics: the viewer has no such */
};

/* Writes FOLDER/BATCH.json, where a batch is a variant's name without its quality, and
 * FOLDER/batches.json, the list of them that the viewer loads. A batch without rows is not written.
 * Call dl2_check_variant_names() first. */
int dl2_codec_compare_write(const struct dl2_scoring *scoring, const char *folder,
                            struct dl2_codec_compare_counts *counts, struct dl2_error *error);

#endif
