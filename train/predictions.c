/* SPDX-License-Identifier: BSD-2-Clause */
#include "train/predictions.h"

#include "common/file.h"
#include "common/scope.h"

#include <endian.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The figures of one image. All 0: not known, so that the ranks' sums are each image's own
 * figures. */
enum { CLASS, RANK, LOSS, FIGURES }; /* class + 1; rank of the target's logit, from 1 */

/* The file's columns after the key. */
enum { ROW_BYTES = 4 + 4 + 1 + 1 + 4 };

struct dl2_predictions {
    const struct dl2_dataset *dataset;
    unsigned classes;
    double *figures;        /* [images][FIGURES] */
    float *losses, *logits; /* of a batch */
};

const char *dl2_predictions_name(size_t set, char out[DL2_PREDICTIONS_NAME])
{
    snprintf(out, DL2_PREDICTIONS_NAME, "predictions-%zu.npy", set);
    return out;
}

int dl2_predictions_create(const struct dl2_dataset *dataset, unsigned classes, unsigned batch,
                           struct dl2_predictions **out, struct dl2_error *error)
{
    struct dl2_predictions *predictions = dl2_calloc(1, sizeof *predictions);
    *out = predictions;
    if (predictions) {
        predictions->dataset = dataset;
        predictions->classes = classes;
        predictions->figures =
            dl2_calloc(dl2_dataset_count(dataset), FIGURES * sizeof *predictions->figures);
        predictions->losses = dl2_calloc(batch, sizeof *predictions->losses);
        predictions->logits = dl2_calloc(batch, classes * sizeof *predictions->logits);
    }
    if (predictions && predictions->figures && predictions->losses && predictions->logits)
        return DL2_OK;
    dl2_predictions_free(predictions);
    *out = NULL;
    return dl2_error_memory(error, "predictions");
}

void dl2_predictions_free(struct dl2_predictions *predictions)
{
    if (!predictions)
        return;
    free(predictions->figures);
    free(predictions->losses);
    free(predictions->logits);
    free(predictions);
}

unsigned dl2_rank_of(const float *logits, unsigned classes, unsigned target)
{
    unsigned rank = 0;
    bool unordered = false;
    for (unsigned k = 0; k < classes; k++) {
        rank += logits[k] > logits[target] || (logits[k] == logits[target] && k < target);
        unordered |= isnan(logits[k]) != 0;
    }
    return unordered ? DL2_RANK_NAN : rank;
}

static unsigned best_of(const float *logits, unsigned classes)
{
    unsigned best = 0;
    for (unsigned k = 0; k < classes; k++)
        best = logits[k] > logits[best] ? k : best;
    return best;
}

void dl2_predictions_take(struct dl2_predictions *predictions, const struct dl2_batch *batch,
                          const float *losses, const float *logits)
{
    const unsigned classes = predictions->classes;
    for (unsigned i = 0; i < batch->count; i++, logits += classes) {
        double *figures = predictions->figures + (size_t)batch->indices[i] * FIGURES;
        if (batch->labels[i] < 0) /* could not be read */
            continue;
        figures[CLASS] = best_of(logits, classes) + 1.0;
        figures[RANK] = dl2_rank_of(logits, classes, (unsigned)batch->labels[i]) + 1.0;
        figures[LOSS] = (double)losses[i];
    }
}

int dl2_predictions_add(struct dl2_predictions *predictions, struct dl2_network *network,
                        const struct dl2_batch *batch, struct dl2_error *error)
{
    DL2_TRY(dl2_network_last(network, predictions->losses, predictions->logits, error));
    dl2_predictions_take(predictions, batch, predictions->losses, predictions->logits);
    return DL2_OK;
}

int dl2_predictions_gather(struct dl2_predictions *predictions, const struct dl2_world *world,
                           struct dl2_error *error)
{
    return dl2_world_sum(world, predictions->figures,
                         dl2_dataset_count(predictions->dataset) * FIGURES, error);
}

static size_t longest_key(const struct dl2_dataset *dataset)
{
    size_t longest = 1;
    for (size_t i = 0; i < dl2_dataset_count(dataset); i++) {
        struct dl2_sample sample;
        dl2_dataset_sample(dataset, i, &sample);
        longest = strlen(sample.key) > longest ? strlen(sample.key) : longest;
    }
    return longest;
}

/* NumPy's header (numpy.lib.format, version 1.0): its length makes the data begin at a multiple of
 * 64. Returns the bytes written. */
static size_t write_header(uint8_t *out, size_t room, size_t key, size_t rows)
{
    const int used =
        snprintf((char *)out + 10, room - 10,
                 "{'descr': [('key', '|S%zu'), ('target', '<i4'), ('predicted', '<i4'), "
                 "('top1', '|u1'), ('top5', '|u1'), ('loss', '<f4')], "
                 "'fortran_order': False, 'shape': (%zu,), }",
                 key, rows);
    const size_t size = (10 + (size_t)used + 1 + 63) / 64 * 64;
    const uint16_t length = htole16((uint16_t)(size - 10));
    memset(out + 10 + used, ' ', size - 10 - (size_t)used - 1);
    out[size - 1] = '\n';
    memcpy(out, "\x93NUMPY\x01\x00", 8);
    memcpy(out + 8, &length, 2);
    return size;
}

static uint8_t *put_u32(uint8_t *out, uint32_t value)
{
    value = htole32(value);
    memcpy(out, &value, sizeof value);
    return out + sizeof value;
}

static void write_row(const struct dl2_predictions *predictions, size_t index, size_t key,
                      uint8_t *out)
{
    const double *figures = predictions->figures + index * FIGURES;
    const bool known = figures[RANK] > 0;
    const float loss = known ? (float)figures[LOSS] : NAN;
    struct dl2_sample sample;
    uint32_t bits;
    dl2_dataset_sample(predictions->dataset, index, &sample);
    memcpy(out, sample.key, strlen(sample.key));
    out = put_u32(out + key, (uint32_t)sample.label);
    out = put_u32(out, (uint32_t)((int32_t)figures[CLASS] - 1));
    *out++ = known && figures[RANK] <= 1;
    *out++ = known && figures[RANK] <= 5;
    memcpy(&bits, &loss, sizeof bits);
    put_u32(out, bits);
}

int dl2_predictions_save(const struct dl2_predictions *predictions, const char *path,
                         struct dl2_error *error)
{
    const size_t rows = dl2_dataset_count(predictions->dataset);
    const size_t key = longest_key(predictions->dataset), row = key + ROW_BYTES;
    enum { HEADER_ROOM = 512 };
    size_t bytes;
    if (!dl2_size_mul(rows, row, &bytes) || bytes > SIZE_MAX - HEADER_ROOM)
        return dl2_error_set(error, DL2_ERR_LIMIT, "%s: too many predictions", path);
    DL2_AUTO_FREE uint8_t *file = NULL;
    DL2_TRY(DL2_NEW(&file, HEADER_ROOM + bytes, "predictions", error));
    const size_t header = write_header(file, HEADER_ROOM, key, rows);
    for (size_t i = 0; i < rows; i++)
        write_row(predictions, i, key, file + header + i * row);
    return dl2_file_write(path, file, header + bytes, error);
}
