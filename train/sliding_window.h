/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Sliding-window inference: a network that sees patches labels the voxels of a whole volume.
 *
 * Windows of a patch's size lie evenly over the volume, along each axis at most half a window
 * apart. A voxel's logits are the mean of those of all windows that show it, weighted by a Gaussian
 * around the window's middle whose deviation is an eighth of the window's side, because a network
 * knows less about voxels near a window's edge. The overlap, the places and the deviation are those
 * of nnU-Net (Isensee et al., "nnU-Net", Nature Methods 18, 2021; sliding_window_prediction.py);
 * MLPerf Training's unet3d has the same overlap and a Gaussian, too.
 *
 * Each window is normalized by itself, as the loader normalizes a patch, and so as in training.
 * Along an axis where the volume is smaller than the window, it lies in the middle of one window,
 * among zeros, as in the loader.
 *
 * Memory: of the volume as many planes as a window is deep, and their logits; and a batch of
 * windows. A compressed volume (.nii.gz) is decompressed once for each depth that windows lie at.
 *
 * Threads: one.
 */
#ifndef DL2_TRAIN_SLIDING_WINDOW_H
#define DL2_TRAIN_SLIDING_WINDOW_H

#include "loader/loader.h"
#include "volumes/volume.h"

/* The windows along an axis of `size` voxels, both at least 1. */
size_t dl2_window_count(size_t size, size_t window);
/* Where window number `index` begins; 0 of a single one. */
size_t dl2_window_first(size_t size, size_t window, size_t index);
/* The Gaussian along an axis, [window]: symmetric, above 0, and 1 in the middle of an odd number.
 */
void dl2_window_weights(float *weights, size_t window);

struct dl2_sliding_window {
    /* The loader's settings for the patch's size, channels, batch and normalization; dtype is
     * DL2_FLOAT32, layout DL2_NHWC. */
    const struct dl2_loader_config *loader;
    unsigned classes;
    /* Labels 1 to loader->batch windows [count][depth][height][width][channels], and writes logits
     * [count][depth][height][width][classes]. */
    int (*predict)(void *context, const float *windows, unsigned count, float *logits,
                   struct dl2_error *error);
    /* Takes the logits [planes][height][width][classes] of so many planes of the volume, from
     * `first` on: all planes, each once, in order. */
    int (*take)(void *context, size_t first, size_t planes, const float *logits,
                struct dl2_error *error);
    void *context;
};

/* Labels a volume. DL2_ERR_FORMAT for one of other channels than the loader's, or that cannot be
 * read; DL2_ERR_LIMIT or DL2_ERR_MEMORY for one whose planes are too large. The functions' errors
 * end it. */
int dl2_sliding_window_run(const struct dl2_sliding_window *how, struct dl2_volume *volume,
                           struct dl2_error *error);

#endif
