/* SPDX-License-Identifier: BSD-2-Clause */
#include "train/sliding_window.h"

#include "common/memory.h"
#include "loader/volume_sample.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* -- places and weights -- */

size_t dl2_window_count(size_t size, size_t window)
{
    const size_t rest = size > window ? size - window : 0;
    return (2 * rest + window - 1) / window + 1; /* rest by half a window, rounded up, and one */
}

size_t dl2_window_first(size_t size, size_t window, size_t index)
{
    const size_t gaps = dl2_window_count(size, window) - 1;
    return gaps ? (index * (size - window) + gaps / 2) / gaps : 0; /* rounded */
}

void dl2_window_weights(float *weights, size_t window)
{
    const double middle = ((double)window - 1) / 2, deviation = (double)window / 8;
    for (size_t i = 0; i < window; i++) {
        const double x = ((double)i - middle) / deviation;
        weights[i] = (float)exp(-x * x / 2);
    }
}

/* -- a volume -- */

struct axis {
    size_t size, window; /* voxels of the volume, and of a window */
    size_t part, at;     /* of the volume in a window, and where in it */
    size_t count;        /* windows */
    float *weights;      /* [window] */
    float *sums;         /* [size]: of the weights of all windows */
};

struct slide {
    const struct dl2_sliding_window *how;
    struct dl2_volume *volume;
    struct axis axes[3];             /* depth, height, width */
    float *voxels;                   /* [channels][axes[0].part][height][width]: planes */
    float *logits;                   /* [axes[0].part][height][width][classes]: weighted sums */
    size_t plane;                    /* voxels of a plane */
    struct dl2_volume_sample sample; /* a window, while it is filled */
    size_t window_voxels;
    float *windows, *found; /* a batch, and what was found in it */
    size_t (*firsts)[2];    /* [batch]: rows and columns where its windows begin */
    unsigned filled;        /* windows of the batch */
};

static int init_axis(struct axis *axis, size_t size, size_t window, struct dl2_error *error)
{
    axis->size = size;
    axis->window = window;
    axis->part = size < window ? size : window;
    axis->at = (window - axis->part) / 2;
    axis->count = dl2_window_count(size, window);
    DL2_TRY(DL2_NEW(&axis->weights, window, "the weights of windows", error));
    DL2_TRY(DL2_NEW(&axis->sums, size, "the weights of windows", error));
    dl2_window_weights(axis->weights, window);
    for (size_t k = 0; k < axis->count; k++)
        for (size_t i = 0; i < axis->part; i++)
            axis->sums[dl2_window_first(size, window, k) + i] += axis->weights[axis->at + i];
    return DL2_OK;
}

/* dl2_calloc() of a * b * c floats. */
static float *floats(size_t a, size_t b, size_t c)
{
    return dl2_size_mul(a, b, &a) ? dl2_calloc(a, c * sizeof(float)) : NULL;
}

static int init(struct slide *slide, struct dl2_error *error)
{
    const struct dl2_loader_config *loader = slide->how->loader;
    const struct dl2_volume_info *info = dl2_volume_info(slide->volume);
    const size_t window[3] = {loader->volume_depth, loader->height, dl2_loader_width(loader)};
    const size_t classes = slide->how->classes, batch = loader->batch;
    if (info->channels != loader->channels)
        return dl2_error_set(error, DL2_ERR_FORMAT, "it has %zu channels, and %u are loaded",
                             info->channels, loader->channels);
    for (int i = 0; i < 3; i++)
        DL2_TRY(init_axis(&slide->axes[i], info->size[i], window[i], error));
    slide->window_voxels = window[0];
    if (!dl2_size_mul(slide->window_voxels, window[1], &slide->window_voxels) ||
        !dl2_size_mul(slide->window_voxels, window[2], &slide->window_voxels) ||
        !dl2_size_mul(info->size[1], info->size[2], &slide->plane))
        return dl2_error_set(error, DL2_ERR_LIMIT, "its planes pass the address space");
    slide->voxels = floats(slide->axes[0].part, slide->plane, info->channels);
    slide->logits = floats(slide->axes[0].part, slide->plane, classes);
    slide->windows = floats(batch, slide->window_voxels, info->channels);
    slide->found = floats(batch, slide->window_voxels, classes);
    slide->firsts = dl2_calloc(batch, sizeof *slide->firsts);
    if (!slide->voxels || !slide->logits || !slide->windows || !slide->found || !slide->firsts)
        return dl2_error_memory(error, "%zu planes of a volume, and their logits",
                                slide->axes[0].part);
    DL2_TRY(dl2_volume_sample_init(&slide->sample, loader, error));
    for (int i = 0; i < 3; i++) {
        slide->sample.at[i] = slide->axes[i].at;
        slide->sample.part[i] = slide->axes[i].part;
    }
    return DL2_OK;
}

static void free_all(struct slide *slide)
{
    for (int i = 0; i < 3; i++) {
        free(slide->axes[i].weights);
        free(slide->axes[i].sums);
    }
    free(slide->voxels);
    free(slide->logits);
    free(slide->windows);
    free(slide->found);
    free(slide->firsts);
    dl2_volume_sample_free(&slide->sample);
}

/* The rows of a window within the planes, one after the other. */
#define FOR_ROWS(slide, z, y)                                                                      \
    for (size_t z = 0; z < (slide)->axes[0].part; z++)                                             \
        for (size_t y = 0; y < (slide)->axes[1].part; y++)

static int fill_window(struct slide *slide, size_t row, size_t column, struct dl2_error *error)
{
    const struct axis *axes = slide->axes;
    struct dl2_voxels *voxels = &slide->sample.voxels;
    memset(voxels->data, 0, slide->window_voxels * voxels->channels * sizeof *voxels->data);
    for (size_t c = 0; c < voxels->channels; c++)
        FOR_ROWS(slide, z, y)
    memcpy(voxels->data +
               ((c * axes[0].window + axes[0].at + z) * axes[1].window + axes[1].at + y) *
                   axes[2].window +
               axes[2].at,
           slide->voxels + (c * axes[0].part + z) * slide->plane + (row + y) * axes[2].size +
               column,
           axes[2].part * sizeof *voxels->data);
    dl2_volume_sample_normalize(&slide->sample, slide->how->loader);
    slide->firsts[slide->filled][0] = row;
    slide->firsts[slide->filled][1] = column;
    return dl2_volume_sample_store(
        &slide->sample, slide->how->loader,
        slide->windows + slide->filled++ * slide->window_voxels * voxels->channels, error);
}

static void add_window(struct slide *slide, unsigned number)
{
    const struct axis *axes = slide->axes;
    const size_t classes = slide->how->classes;
    const size_t row = slide->firsts[number][0], column = slide->firsts[number][1];
    FOR_ROWS(slide, z, y)
    {
        const float *from =
            slide->found +
            (number * slide->window_voxels +
             ((axes[0].at + z) * axes[1].window + axes[1].at + y) * axes[2].window + axes[2].at) *
                classes;
        float *to =
            slide->logits + (z * slide->plane + (row + y) * axes[2].size + column) * classes;
        const float across = axes[0].weights[axes[0].at + z] * axes[1].weights[axes[1].at + y];
        for (size_t x = 0; x < axes[2].part; x++) {
            const float weight = across * axes[2].weights[axes[2].at + x];
            for (size_t c = 0; c < classes; c++)
                to[x * classes + c] += weight * from[x * classes + c];
        }
    }
}

/* Predicts the windows of the batch. */
static int end_batch(struct slide *slide, struct dl2_error *error)
{
    if (!slide->filled)
        return DL2_OK;
    DL2_TRY(slide->how->predict(slide->how->context, slide->windows, slide->filled, slide->found,
                                error));
    for (unsigned i = 0; i < slide->filled; i++)
        add_window(slide, i);
    slide->filled = 0;
    return DL2_OK;
}

/* Predicts all windows that begin at a plane. */
static int predict_planes(struct slide *slide, size_t first, struct dl2_error *error)
{
    const struct axis *axes = slide->axes;
    struct dl2_volume_part part = {.first = {first, 0, 0}};
    for (int i = 0; i < 3; i++)
        part.size[i] = part.out[i] = i ? axes[i].size : axes[i].part;
    DL2_TRY(dl2_volume_read(slide->volume, &part, slide->voxels, error));
    for (size_t i = 0; i < axes[1].count; i++)
        for (size_t k = 0; k < axes[2].count; k++) {
            DL2_TRY(fill_window(slide, dl2_window_first(axes[1].size, axes[1].window, i),
                                dl2_window_first(axes[2].size, axes[2].window, k), error));
            if (slide->filled == slide->how->loader->batch)
                DL2_TRY(end_batch(slide, error));
        }
    return end_batch(slide, error);
}

/* Hands out the planes up to `next`, which no further window shows, and moves up the others. */
static int hand_out(struct slide *slide, size_t first, size_t next, struct dl2_error *error)
{
    const struct axis *axes = slide->axes;
    const size_t classes = slide->how->classes, planes = next - first;
    const size_t each = slide->plane * classes, rest = axes[0].part - planes;
    for (size_t z = 0; z < planes; z++)
        for (size_t y = 0; y < axes[1].size; y++)
            for (size_t x = 0; x < axes[2].size; x++) {
                const float sum = axes[0].sums[first + z] * axes[1].sums[y] * axes[2].sums[x];
                float *voxel = slide->logits + z * each + (y * axes[2].size + x) * classes;
                for (size_t c = 0; c < classes; c++)
                    voxel[c] /= sum;
            }
    DL2_TRY(slide->how->take(slide->how->context, first, planes, slide->logits, error));
    memmove(slide->logits, slide->logits + planes * each, rest * each * sizeof *slide->logits);
    memset(slide->logits + rest * each, 0, planes * each * sizeof *slide->logits);
    return DL2_OK;
}

static int slide_over(struct slide *slide, struct dl2_error *error)
{
    const struct axis *depth = &slide->axes[0];
    DL2_TRY(init(slide, error));
    for (size_t i = 0; i < depth->count; i++) {
        const size_t first = dl2_window_first(depth->size, depth->window, i);
        const size_t next = i + 1 < depth->count
                                ? dl2_window_first(depth->size, depth->window, i + 1)
                                : depth->size;
        DL2_TRY(predict_planes(slide, first, error));
        DL2_TRY(hand_out(slide, first, next, error));
    }
    return DL2_OK;
}

int dl2_sliding_window_run(const struct dl2_sliding_window *how, struct dl2_volume *volume,
                           struct dl2_error *error)
{
    struct slide slide = {.how = how, .volume = volume};
    const int status = slide_over(&slide, error);
    free_all(&slide);
    return status;
}
