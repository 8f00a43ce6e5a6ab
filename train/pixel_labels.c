/* SPDX-License-Identifier: BSD-2-Clause */
/* Labels of pixels and voxels: from the masks of a batch to what networks take, and the figures of
 * a validation. */
#include "common/quote.h"
#include "common/scope.h"
#include "dataset/dataset.h"
#include "network/arch.h"
#include "train/run.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { NAMED = 5 }; /* classes in a message */

const struct dl2_accuracy_kind *const dl2_val_accuracies[] = {
    [DL2_LABEL_CLASS] = &dl2_accuracy_top1,
    [DL2_LABEL_MASK] = &dl2_accuracy_miou,
    [DL2_LABEL_VOLUME] = &dl2_accuracy_dice,
};

bool dl2_run_labels_pixels(const struct dl2_run *run)
{
    return dl2_network_labels(run->network).kind != DL2_LABEL_CLASS;
}

int dl2_run_refuse_label(const struct dl2_run *run, const char *path, unsigned value,
                         struct dl2_error *error)
{
    return dl2_error_set(error, DL2_ERR_FORMAT,
                         "%s: its mask has the value %u, and with --classes %u they are 0 to %u, "
                         "or %d for what has no label",
                         path, value, run->stream->classes, run->stream->classes - 1,
                         DL2_MASK_IGNORED);
}

int dl2_run_labels(struct dl2_run *run, const struct dl2_dataset *dataset,
                   const struct dl2_batch *batch, const int32_t **labels, struct dl2_error *error)
{
    const struct dl2_label_shape shape = dl2_network_labels(run->network);
    const size_t each = dl2_label_count(&shape), count = batch->count * each;
    *labels = batch->labels;
    if (shape.kind == DL2_LABEL_CLASS)
        return DL2_OK;
    if (!batch->masks)
        return dl2_error_set(error, DL2_ERR_ARGUMENT, "%s learns from masks, and there are none",
                             run->config->arch);
    if (count > run->label_room) {
        int32_t *grown = dl2_realloc(run->labels, count, sizeof *grown);
        if (!grown)
            return dl2_error_memory(error, "the labels of a batch");
        run->labels = grown;
        run->label_room = count;
    }
    for (size_t i = 0; i < count; i++) {
        const unsigned value = batch->masks[i];
        if (value >= run->stream->classes && value != DL2_MASK_IGNORED) {
            struct dl2_sample sample = {.path = "noise"};
            if (dataset)
                dl2_dataset_sample(dataset, batch->indices[i / each], &sample);
            return dl2_run_refuse_label(run, sample.path, value, error);
        }
        run->labels[i] = value == DL2_MASK_IGNORED ? -1 : (int32_t)value;
    }
    *labels = run->labels;
    return DL2_OK;
}

bool dl2_run_has_lost(const struct dl2_run *run, const struct dl2_batch *batch, unsigned sample)
{
    const struct dl2_label_shape shape = dl2_network_labels(run->network);
    const size_t each = dl2_label_count(&shape);
    if (shape.kind == DL2_LABEL_CLASS)
        return batch->labels[sample] < 0;
    const uint8_t *mask = batch->masks + sample * each;
    size_t i = 0;
    while (i < each && mask[i] == DL2_MASK_IGNORED)
        i++;
    return i == each;
}

int dl2_run_drop_pixels(const struct dl2_run *run, struct dl2_error *error)
{
    const size_t classes = run->stream->classes;
    if (!dl2_run_labels_pixels(run))
        return DL2_OK;
    uint64_t *unused = dl2_calloc(classes, classes * sizeof *unused);
    const int status = unused ? dl2_network_take_confusion(run->network, unused, error)
                              : dl2_error_memory(error, "a confusion of classes");
    free(unused);
    return status;
}

/* `matrix` is [label][found]. Classes that no pixel has, and that were found in none, have no
 * figures and are not in the mean. */
static json_t *figures_of(const double *matrix, size_t classes, double *miou)
{
    json_t *ious = json_array(), *dices = json_array();
    double sum = 0, all = 0;
    size_t present = 0;
    for (size_t c = 0; c < classes; c++) {
        const double both = matrix[c * classes + c];
        double labeled = 0, found = 0;
        for (size_t k = 0; k < classes; k++) {
            labeled += matrix[c * classes + k];
            found += matrix[k * classes + c];
        }
        const double any = labeled + found - both;
        all += labeled;
        present += any > 0;
        sum += any > 0 ? both / any : 0;
        json_array_append_new(ious, any > 0 ? json_real(both / any) : json_null());
        json_array_append_new(dices,
                              any > 0 ? json_real(2 * both / (labeled + found)) : json_null());
    }
    *miou = present ? sum / (double)present : NAN;
    return json_pack("{s:I, s:o, s:o, s:o}", "pixels", (json_int_t)all, "miou",
                     present ? json_real(*miou) : json_null(), "iou", ious, "dice", dices);
}

/* Says which classes none of the set has: they may have been forgotten, or be 255, which many
 * masks of two classes have. */
static void note_absent(struct dl2_run *run, size_t set, const double *matrix)
{
    const size_t classes = run->stream->classes;
    const char *what = run->config->loader.volume_depth ? "voxel" : "pixel";
    char names[160] = "", number[24];
    size_t count = 0;
    for (size_t c = 0; c < classes; c++) {
        double labeled = 0;
        for (size_t k = 0; k < classes; k++)
            labeled += matrix[c * classes + k];
        if (labeled > 0 || count++ >= NAMED)
            continue;
        snprintf(number, sizeof number, "%zu", c);
        dl2_list_name(names, sizeof names, number);
    }
    if (count)
        dl2_run_note(run,
                     "%s: no %s of its validation masks has class %s%s: %zu of %zu classes are "
                     "missing (%d is no class, but stands for %ss without a label)",
                     run->stream->val[set].path, what, names, count > NAMED ? " and others" : "",
                     count, classes, DL2_MASK_IGNORED, what);
}

void dl2_run_note_pixels(struct dl2_run *run, size_t set, const double *matrix, json_t *figures)
{
    if (!run->pixels)
        run->pixels = json_array();
    if (json_array_size(run->pixels) <= set) /* once */
        note_absent(run, set, matrix);
    while (json_array_size(run->pixels) <= set)
        json_array_append_new(run->pixels, json_null());
    json_array_set_new(run->pixels, set, figures);
}

int dl2_run_take_pixels(struct dl2_run *run, size_t set, double *miou, struct dl2_error *error)
{
    const size_t classes = run->stream->classes, cells = classes * classes;
    DL2_AUTO_FREE uint64_t *own = NULL;
    DL2_AUTO_FREE double *all = NULL; /* exact up to 2^53 */
    DL2_TRY(DL2_NEW(&own, cells, "a confusion of classes", error));
    DL2_TRY(DL2_NEW(&all, cells, "a confusion of classes", error));
    DL2_TRY(dl2_network_take_confusion(run->network, own, error));
    for (size_t i = 0; i < cells; i++)
        all[i] = (double)own[i];
    DL2_TRY(dl2_world_sum(run->config->world, all, cells, error));
    dl2_run_note_pixels(run, set, all, figures_of(all, classes, miou));
    return DL2_OK;
}
