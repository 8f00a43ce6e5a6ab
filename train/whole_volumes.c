/* SPDX-License-Identifier: BSD-2-Clause */
/* Validation on volumes: each is labeled as a whole, by a sliding window. */
#include "common/json.h"
#include "common/memory.h"
#include "device/dense.h"
#include "loader/volume_sample.h"
#include "network/arch.h"
#include "train/run.h"
#include "train/sliding_window.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* What was found in volumes, over classes; sums, which are added up over the ranks. */
struct dl2_volume_figures {
    double *dice, *volumes; /* of the Dice of each volume that has a class or was found to */
    double *mlperf;         /* of the Dice of every volume, as MLPerf has it */
    double *matrix;         /* [label][found]: voxels, exact up to 2^53 */
    double *seen;           /* volumes */
    double *all;            /* all of these: one allocation */
    size_t count;           /* of these */
    struct dl2_loss_sums sums;
};

int dl2_volume_figures_create(unsigned classes, struct dl2_volume_figures **out,
                              struct dl2_error *error)
{
    struct dl2_volume_figures *figures = dl2_calloc(1, sizeof *figures);
    *out = figures;
    if (!figures)
        return dl2_error_memory(error, "figures of volumes");
    figures->count = (size_t)classes * (classes + 3) + 1;
    DL2_TRY(DL2_NEW(&figures->all, figures->count, "figures of volumes", error));
    figures->dice = figures->all;
    figures->volumes = figures->dice + classes;
    figures->mlperf = figures->volumes + classes;
    figures->matrix = figures->mlperf + classes;
    figures->seen = figures->matrix + (size_t)classes * classes;
    return DL2_OK;
}

void dl2_volume_figures_free(struct dl2_volume_figures *figures)
{
    if (figures)
        free(figures->all);
    free(figures);
}

/* -- a volume -- */

struct volume {
    struct dl2_run *run;
    struct dl2_volume *labels;
    const int32_t *unknown; /* [batch of windows]: -1 */
    const char *path;
    uint8_t *mask; /* of some planes */
    size_t mask_size, classes;
    double *softmax, *both, *target, *predicted; /* [classes] each: of a voxel, and sums */
    double *matrix;                              /* [label][found] */
    double entropy;
    uint64_t counted, top1, top5;
};

static int predict(void *context, const float *windows, unsigned count, float *logits,
                   struct dl2_error *error)
{
    const struct volume *volume = context;
    struct dl2_network *network = volume->run->network;
    const struct dl2_network_input input = {windows, volume->unknown, count, NULL, 1};
    DL2_TRY(dl2_network_evaluate(network, &input, error));
    dl2_network_wait_input(network);
    return dl2_network_last(network, NULL, logits, error);
}

/* Adds a voxel. Ranks are those of devices (device.h, struct dl2_loss_sums). */
static void see_voxel(struct volume *volume, const float *logits, unsigned label)
{
    const size_t classes = volume->classes;
    size_t best = 0, above = 0;
    double sum = 0;
    bool numbers = true;
    for (size_t k = 0; k < classes; k++) {
        best = logits[k] > logits[best] ? k : best;
        above += logits[k] > logits[label] || (logits[k] == logits[label] && k < label);
        numbers &= !isnan(logits[k]);
    }
    if (!numbers) {
        best = (label + 1) % classes;
        above = DL2_RANK_NAN;
    }
    for (size_t k = 0; k < classes; k++)
        sum += volume->softmax[k] = exp((double)logits[k] - (double)logits[best]);
    for (size_t k = 0; k < classes; k++)
        volume->predicted[k] += volume->softmax[k] / sum;
    volume->both[label] += volume->softmax[label] / sum;
    volume->target[label]++;
    volume->entropy += log(sum) - ((double)logits[label] - (double)logits[best]);
    volume->matrix[label * classes + best]++;
    volume->counted++;
    volume->top1 += best == label;
    volume->top5 += above < 5;
}

static int take(void *context, size_t first, size_t planes, const float *logits,
                struct dl2_error *error)
{
    struct volume *volume = context;
    const size_t *size = dl2_volume_info(volume->labels)->size;
    const struct dl2_volume_part part = {.first = {first, 0, 0},
                                         .size = {planes, size[1], size[2]},
                                         .out = {planes, size[1], size[2]}};
    const size_t count = planes * size[1] * size[2]; /* which the logits have, too */
    if (count > volume->mask_size) {
        uint8_t *grown = dl2_realloc(volume->mask, count, 1);
        if (!grown)
            return dl2_error_memory(error, "the labels of %zu planes", planes);
        volume->mask = grown;
        volume->mask_size = count;
    }
    DL2_TRY(dl2_volume_read_labels(volume->labels, &part, volume->mask, error));
    for (size_t i = 0; i < count; i++) {
        const unsigned label = volume->mask[i];
        if (label == DL2_MASK_IGNORED)
            continue;
        if (label >= volume->classes)
            return dl2_run_refuse_label(volume->run, volume->path, label, error);
        see_voxel(volume, logits + i * volume->classes, label);
    }
    return DL2_OK;
}

/* MLPerf Training's 3D U-Net adds this to both parts of the fraction, so that a class that a volume
 * lacks, and that was not found in it, counts as 1. */
static const double mlperf_smoothing = 1e-6;

/* The volume's loss is that of training, of all its voxels. */
static void add_figures(const struct volume *volume, struct dl2_volume_figures *figures)
{
    const size_t classes = volume->classes;
    double lost = 0;
    for (size_t k = 1; k < classes; k++) {
        struct dl2_dice_slope unused;
        lost += (1 - dl2_dice_score(volume->both[k], volume->target[k], volume->predicted[k], 1,
                                    &unused)) /
                (double)(classes - 1);
    }
    figures->sums.loss += (volume->entropy + (double)volume->counted * lost) / 2;
    figures->sums.counted += volume->counted;
    figures->sums.top1 += volume->top1;
    figures->sums.top5 += volume->top5;
    ++*figures->seen;
    for (size_t c = 0; c < classes; c++) {
        double found = 0, labeled = 0;
        for (size_t k = 0; k < classes; k++) {
            found += volume->matrix[k * classes + c];
            labeled += volume->matrix[c * classes + k];
            figures->matrix[c * classes + k] += volume->matrix[c * classes + k];
        }
        figures->mlperf[c] += (2 * volume->matrix[c * classes + c] + mlperf_smoothing) /
                              (found + labeled + mlperf_smoothing);
        if (found + labeled > 0) {
            figures->dice[c] += 2 * volume->matrix[c * classes + c] / (found + labeled);
            figures->volumes[c]++;
        }
    }
}

/* Labels a volume by a run's network. */
static int label(struct dl2_run *run, struct dl2_volume *voxels, struct dl2_volume *labels,
                 const char *path, const int32_t *unknown, struct dl2_volume_figures *figures,
                 struct dl2_error *error)
{
    const size_t classes = run->stream->classes;
    struct dl2_loader_config loader = run->config->loader;
    struct volume volume = {.run = run, .labels = labels, .unknown = unknown, .path = path};
    const struct dl2_sliding_window how = {.loader = &loader,
                                           .classes = (unsigned)classes,
                                           .predict = predict,
                                           .take = take,
                                           .context = &volume};
    loader.channels = run->stream->channels;
    volume.classes = classes;
    volume.softmax = dl2_calloc(classes, (classes + 4) * sizeof *volume.softmax);
    if (!volume.softmax)
        return dl2_error_memory(error, "figures of a volume");
    volume.both = volume.softmax + classes;
    volume.target = volume.both + classes;
    volume.predicted = volume.target + classes;
    volume.matrix = volume.predicted + classes;
    const int status = dl2_sliding_window_run(&how, voxels, error);
    if (status == DL2_OK)
        add_figures(&volume, figures);
    free(volume.mask);
    free(volume.softmax);
    return status;
}

/* -- a set -- */

struct dl2_whole_volumes {
    struct dl2_stream *stream;
    const struct dl2_run_data *data;
    int32_t *unknown;
    uint64_t steps, step;
    double seen[2]; /* volumes, and bad ones */
    json_t *bad;    /* their messages */
};

int dl2_whole_volumes_open(struct dl2_stream *stream, size_t set, struct dl2_whole_volumes **out,
                           struct dl2_error *error)
{
    const unsigned world = dl2_world_size(stream->config->world);
    struct dl2_whole_volumes *volumes = dl2_calloc(1, sizeof *volumes);
    *out = volumes;
    if (!volumes)
        return dl2_error_memory(error, "a validation of volumes");
    volumes->stream = stream;
    volumes->data = &stream->val[set];
    volumes->steps = (volumes->data->images + world - 1) / world; /* the same on all ranks */
    volumes->bad = json_array();
    const struct dl2_label_shape shape = dl2_network_labels(stream->runs[0].network);
    const size_t labels = dl2_label_count(&shape) * stream->config->loader.batch;
    DL2_TRY(DL2_NEW(&volumes->unknown, labels, "a validation of volumes", error));
    memset(volumes->unknown, -1, labels * sizeof *volumes->unknown);
    return DL2_OK;
}

void dl2_whole_volumes_close(struct dl2_whole_volumes *volumes)
{
    if (!volumes)
        return;
    json_decref(volumes->bad);
    free(volumes->unknown);
    free(volumes);
}

uint64_t dl2_whole_volumes_steps(const struct dl2_whole_volumes *volumes)
{
    return volumes->steps;
}

/* Is the failure the volume's? Then it is bad, for all runs. */
static bool is_bad(const struct dl2_stream *stream, int status)
{
    return (status == DL2_ERR_FORMAT || status == DL2_ERR_SYSTEM ||
            status == DL2_ERR_UNSUPPORTED) &&
           !stream->runs[0].device->failure.status;
}

static int label_by_all(struct dl2_validation *due, size_t count,
                        const struct dl2_whole_volumes *volumes, uint64_t index,
                        struct dl2_error *error)
{
    const struct dl2_stream *stream = volumes->stream;
    struct dl2_loader_config loader = stream->config->loader;
    struct dl2_volume *voxels, *labels;
    struct dl2_sample sample;
    loader.channels = stream->channels;
    dl2_dataset_sample(volumes->data->dataset, index, &sample);
    int status =
        dl2_volume_open_labeled(volumes->data->dataset, index, &loader, &voxels, &labels, error);
    for (size_t i = 0; i < count && status == DL2_OK; i++) {
        status =
            label(due[i].run, voxels, labels, sample.path, volumes->unknown, due[i].volumes, error);
        if (status < 0 && !strstr(error->message, sample.path))
            dl2_error_prefix(error, "%s", sample.path);
    }
    dl2_volume_close(voxels);
    dl2_volume_close(labels);
    return status;
}

int dl2_whole_volumes_next(struct dl2_whole_volumes *volumes, struct dl2_validation *due,
                           size_t count, struct dl2_error *error)
{
    struct dl2_stream *stream = volumes->stream;
    const struct dl2_world *world = stream->config->world;
    const uint64_t index = volumes->step * dl2_world_size(world) + dl2_world_rank(world);
    if (volumes->step == volumes->steps)
        return 0;
    volumes->step++;
    if (index >= volumes->data->images) /* other ranks have one more */
        return 1;
    struct dl2_error reason = DL2_ERROR_INIT;
    const int status = label_by_all(due, count, volumes, index, &reason);
    const bool bad = is_bad(stream, status);
    if (status < 0 && (!bad || stream->config->loader.stop_on_bad)) {
        stream->data_failed = bad;
        return dl2_error_copy(error, &reason);
    }
    volumes->seen[0]++;
    if (status < 0) {
        volumes->seen[1]++;
        json_array_append_new(volumes->bad, dl2_json_text(reason.message));
        due[0].lost_sum += dl2_validation_lost(index);
    }
    return 1;
}

int dl2_whole_volumes_end(struct dl2_whole_volumes *volumes, struct dl2_validation *due,
                          size_t count, struct dl2_error *error)
{
    double seen[2] = {volumes->seen[0], volumes->seen[1]};
    for (size_t i = 0; i < count; i++) { /* nothing that had a label */
        struct dl2_loss_sums unused;
        DL2_TRY(dl2_network_take_sums(due[i].run->network, &unused, error));
    }
    DL2_TRY(dl2_stream_add_up_bad(volumes->stream, volumes->bad, seen, volumes->data,
                                  "and do not count", error));
    for (size_t i = 0; i < count; i++)
        due[i].images = seen[0] - seen[1];
    return DL2_OK;
}

/* -- figures -- */

int dl2_run_take_volumes(struct dl2_run *run, size_t set, struct dl2_volume_figures *figures,
                         struct dl2_loss_sums *sums, double *dice, struct dl2_error *error)
{
    const size_t classes = run->stream->classes;
    json_t *dices = json_array();
    double sum = 0, mlperf = 0, voxels = 0;
    size_t present = 0;
    *sums = figures->sums;
    int status = dl2_run_add_up(run, sums, error);
    if (status == DL2_OK)
        status = dl2_world_sum(run->config->world, figures->all, figures->count, error);
    for (size_t c = 0; c < classes; c++) {
        const double mean = figures->dice[c] / figures->volumes[c];
        const bool any = figures->volumes[c] > 0;
        json_array_append_new(dices, any ? json_real(mean) : json_null());
        sum += c && any ? mean : 0;
        present += c && any;
        mlperf += c ? figures->mlperf[c] / *figures->seen / (double)(classes - 1) : 0;
    }
    for (size_t i = 0; i < classes * classes; i++)
        voxels += figures->matrix[i];
    *dice = present ? sum / (double)present : NAN;
    dl2_run_note_pixels(run, set, figures->matrix,
                        json_pack("{s:I, s:o, s:o, s:o}", "voxels", (json_int_t)voxels, "mean_dice",
                                  dl2_json_real(*dice), "mean_dice_mlperf", dl2_json_real(mlperf),
                                  "dice", dices));
    return status;
}
