/* SPDX-License-Identifier: BSD-2-Clause */
#include "train/clip_means.h"

#include "common/memory.h"
#include "train/predictions.h"

#include <math.h>
#include <stdlib.h>

struct dl2_clip_means {
    unsigned clips, batch, classes;
    size_t clip_bytes;
    int32_t *labels; /* [batch], all -1: the device is to count nothing */
    float *outputs;  /* [batch][classes], of clips */
    /* [classes], of a video's clips so far: the highest log probability, and the sum of the
     * probabilities as parts of that one, so that none underflows */
    double *highest, *sums;
    float *losses, *logits; /* of the batch's videos */
    struct dl2_loss_sums all;
};

int dl2_clip_means_create(const struct dl2_loader_config *loader, unsigned batch, unsigned classes,
                          struct dl2_clip_means **out, struct dl2_error *error)
{
    DL2_TRY(DL2_NEW(out, 1, "predictions", error));
    struct dl2_clip_means *means = *out;
    means->clips = dl2_loader_clips(loader);
    means->batch = batch;
    means->classes = classes;
    means->clip_bytes = (size_t)loader->height * dl2_loader_width(loader) * loader->channels *
                        loader->frames; /* dl2_recipe_init() has checked the product */
    DL2_TRY(DL2_NEW(&means->labels, batch, "predictions", error));
    DL2_TRY(DL2_NEW(&means->outputs, (size_t)batch * classes, "predictions", error));
    DL2_TRY(DL2_NEW(&means->highest, classes, "predictions", error));
    DL2_TRY(DL2_NEW(&means->sums, classes, "predictions", error));
    DL2_TRY(DL2_NEW(&means->losses, loader->batch, "predictions", error));
    DL2_TRY(DL2_NEW(&means->logits, (size_t)loader->batch * classes, "predictions", error));
    for (unsigned i = 0; i < batch; i++)
        means->labels[i] = -1;
    return DL2_OK;
}

void dl2_clip_means_free(struct dl2_clip_means *means)
{
    if (!means)
        return;
    free(means->labels);
    free(means->outputs);
    free(means->highest);
    free(means->sums);
    free(means->losses);
    free(means->logits);
    free(means);
}

struct dl2_loss_sums dl2_clip_means_sums(const struct dl2_clip_means *means)
{
    return means->all;
}

/* Adds a clip's probabilities to its video's. */
static void add_clip(struct dl2_clip_means *means, const float *outputs, bool first)
{
    double top = outputs[0], sum = 0;
    for (unsigned k = 0; k < means->classes; k++)
        top = outputs[k] > top ? outputs[k] : top;
    for (unsigned k = 0; k < means->classes; k++)
        sum += exp(outputs[k] - top);
    for (unsigned k = 0; k < means->classes; k++) {
        const double now = outputs[k] - top - log(sum), was = means->highest[k];
        const bool higher = first || now > was;
        means->sums[k] = first    ? 1
                         : higher ? means->sums[k] * exp(was - now) + 1
                                  : means->sums[k] + exp(now - was);
        means->highest[k] = higher ? now : was;
    }
}

/* All clips of a video are in. */
static void end_video(struct dl2_clip_means *means, size_t video, int32_t label)
{
    float *logits = means->logits + video * means->classes;
    for (unsigned k = 0; k < means->classes; k++)
        logits[k] = (float)(means->highest[k] + log(means->sums[k] / means->clips));
    means->losses[video] = 0;
    if (label < 0)
        return;
    const unsigned rank = dl2_rank_of(logits, means->classes, (unsigned)label);
    means->losses[video] = -logits[label];
    means->all.loss += means->losses[video];
    means->all.counted++;
    means->all.top1 += rank < 1;
    means->all.top5 += rank < 5;
}

int dl2_clip_means_evaluate(struct dl2_clip_means *means, struct dl2_network *network,
                            const struct dl2_batch *videos, const float **losses,
                            const float **logits, struct dl2_error *error)
{
    const size_t all = (size_t)videos->count * means->clips;
    for (size_t first = 0; first < all; first += means->batch) {
        const size_t left = all - first;
        const struct dl2_network_input input = {
            .images = videos->images + first * means->clip_bytes,
            .labels = means->labels,
            .count = left < means->batch ? (unsigned)left : means->batch,
            .lambda = 1,
        };
        DL2_TRY(dl2_network_evaluate(network, &input, error));
        DL2_TRY(dl2_network_last(network, NULL, means->outputs, error));
        for (size_t i = 0; i < input.count; i++) {
            const size_t video = (first + i) / means->clips, clip = (first + i) % means->clips;
            add_clip(means, means->outputs + i * means->classes, clip == 0);
            if (clip + 1 == means->clips)
                end_video(means, video, videos->labels[video]);
        }
    }
    *losses = means->losses;
    *logits = means->logits;
    return DL2_OK;
}
