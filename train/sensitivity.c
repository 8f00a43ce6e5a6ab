/* SPDX-License-Identifier: BSD-2-Clause */
#include "train/sensitivity.h"

#include "common/json.h"
#include "common/random.h"
#include "common/scope.h"
#include "train/run.h"

#include <math.h>
#include <stdlib.h>

enum { LAGS = DL2_SENSITIVITY_LAGS, WIDTH = 2 * LAGS + 1, PLANES = 3 };

/* Sums of products of two pixels, the second `down` rows below and `across - LAGS` columns to the
 * right of the first; and how many there were. */
struct lags {
    double sums[PLANES][LAGS + 1][WIDTH];
    double pairs[LAGS + 1][WIDTH];
};

struct measuring {
    struct dl2_run *run;
    unsigned height, width, channels;
    float *gradient; /* of a batch */
    float *logits;   /* of a batch */
    float *planes;   /* luma, Cb and Cr of one image */
    int32_t *labels; /* drawn */
    struct lags *lags;
    struct dl2_feed *feed;
    uint64_t images;
};

/* Colors of a step of Y, Cb and Cr (JFIF 1.02). */
static const double steps[PLANES][3] = {{1, 1, 1}, {0, -0.344136, 1.772}, {1.402, -0.714136, 0}};

static unsigned plane_count(const struct measuring *m)
{
    return m->channels == 1 ? 1 : PLANES;
}

/* From the gradient of normalized colors to that of gray levels of each plane. */
static void take_planes(struct measuring *m, const float *image, float scale)
{
    const size_t pixels = (size_t)m->height * m->width;
    const double *std = m->run->config->data.std;
    for (unsigned p = 0; p < plane_count(m); p++)
        for (size_t i = 0; i < pixels; i++) {
            double sum = 0;
            for (unsigned c = 0; c < m->channels; c++)
                sum += steps[p][c] * image[i * m->channels + c] /
                       (m->channels == 1 ? (std[0] + std[1] + std[2]) / 3 : std[c]);
            m->planes[p * pixels + i] = (float)sum * scale;
        }
}

static double products(const float *a, const float *b, unsigned count)
{
    float sum = 0;
    for (unsigned i = 0; i < count; i++)
        sum += a[i] * b[i];
    return (double)sum;
}

static void add_lags(const struct measuring *m)
{
    struct lags *lags = m->lags;
    for (unsigned down = 0; down <= LAGS && down < m->height; down++)
        for (unsigned across = 0; across < WIDTH; across++) {
            const unsigned left = across < LAGS ? LAGS - across : 0;
            const unsigned right = across > LAGS ? across - LAGS : 0, shift = left + right;
            if (shift >= m->width)
                continue;
            for (unsigned p = 0; p < plane_count(m); p++)
                for (unsigned y = 0; y + down < m->height; y++) {
                    const float *row = m->planes + ((size_t)p * m->height + y) * m->width;
                    lags->sums[p][down][across] += products(
                        row + left, row + (size_t)down * m->width + right, m->width - shift);
                }
            lags->pairs[down][across] += (double)(m->width - shift) * (m->height - down);
        }
}

/* A class from the network's own prediction. */
static int32_t draw_label(const float *logits, unsigned classes, struct dl2_random *random)
{
    float most = logits[0];
    double all = 0;
    for (unsigned c = 1; c < classes; c++)
        most = logits[c] > most ? logits[c] : most;
    for (unsigned c = 0; c < classes; c++)
        all += exp((double)logits[c] - (double)most);
    double left = dl2_random_uniform(random) * all;
    for (unsigned c = 0; c < classes; c++) {
        left -= exp((double)logits[c] - (double)most);
        if (left < 0)
            return (int32_t)c;
    }
    return (int32_t)classes - 1;
}

/* Forward for the predictions, then again, and backward, with labels that are drawn from them. */
static int take_batch(struct measuring *m, const struct dl2_batch *batch, uint64_t number,
                      struct dl2_error *error)
{
    struct dl2_network *network = m->run->network;
    const unsigned classes = m->run->stream->classes;
    const struct dl2_network_step step = {number, 1, false, false};
    struct dl2_network_input input = {batch->images, batch->labels, batch->count, NULL, 1};
    struct dl2_random random;
    unsigned counted = 0;
    dl2_random_init(&random, m->run->config->seed, DL2_RANDOM_SENSITIVITY, number, 0);
    DL2_TRY(dl2_network_train(network, &input, &step, error));
    DL2_TRY(dl2_network_last(network, NULL, m->logits, error));
    for (unsigned i = 0; i < batch->count; i++) {
        const int32_t drawn = draw_label(m->logits + (size_t)i * classes, classes, &random);
        m->labels[i] = batch->labels[i] < 0 ? -1 : drawn;
        counted += m->labels[i] >= 0;
    }
    input.labels = m->labels;
    DL2_TRY(dl2_network_train(network, &input, &step, error));
    DL2_TRY(dl2_network_images_gradient(network, m->gradient, error));
    for (unsigned i = 0; i < batch->count; i++)
        if (m->labels[i] >= 0) {
            /* The loss is the mean over the batch. */
            take_planes(m, m->gradient + (size_t)i * m->height * m->width * m->channels,
                        (float)counted);
            add_lags(m);
            m->images++;
        }
    return DL2_OK;
}

static int take_images(struct measuring *m, struct dl2_feed *feed, struct dl2_error *error)
{
    DL2_TRY(dl2_feed_start_epoch(feed, 0, 0, error));
    for (uint64_t number = 0; m->images < DL2_SENSITIVITY_IMAGES; number++) {
        struct dl2_batch *batch;
        const int got = dl2_feed_next(feed, &batch, error);
        if (got <= 0)
            return got;
        const int status = take_batch(m, batch, number, error);
        dl2_network_wait_input(m->run->network);
        dl2_feed_release(feed, batch);
        DL2_TRY(status);
        dl2_run_tell_step(m->run, "sensitivity", m->images, DL2_SENSITIVITY_IMAGES);
    }
    return DL2_OK;
}

/* [down][across] of a plane: means over all pairs of pixels. */
static json_t *plane_json(const struct lags *lags, unsigned plane)
{
    json_t *rows = json_array();
    for (unsigned down = 0; down <= LAGS; down++) {
        json_t *row = json_array();
        for (unsigned across = 0; across < WIDTH; across++) {
            const double pairs = lags->pairs[down][across];
            json_array_append_new(
                row, dl2_json_real(pairs > 0 ? lags->sums[plane][down][across] / pairs : 0));
        }
        json_array_append_new(rows, row);
    }
    return rows;
}

static int save(const struct measuring *m, const char *path, struct dl2_error *error)
{
    static const char *const names[PLANES] = {"luma", "cb", "cr"};
    const struct dl2_run *run = m->run;
    json_t *covariance = json_object();
    for (unsigned p = 0; p < plane_count(m); p++)
        json_object_set_new(covariance, names[p], plane_json(m->lags, p));
    json_t *json = json_pack("{s:s, s:s, s:o, s:o, s:[i,i], s:i, s:I, s:i, s:o}", "schema",
                             DL2_SENSITIVITY_SCHEMA, "arch", run->config->arch, "weights",
                             dl2_json_text(run->config->run.evaluate), "data",
                             dl2_json_text(run->stream->val[0].path), "input", (int)m->height,
                             (int)m->width, "channels", (int)m->channels, "images",
                             (json_int_t)m->images, "lags", (int)LAGS, "covariance", covariance);
    return dl2_json_save_new(path, json, error);
}

static void end_measuring(struct measuring *m)
{
    dl2_feed_destroy(m->feed);
    free(m->gradient);
    free(m->logits);
    free(m->planes);
    free(m->labels);
    free(m->lags);
}

int dl2_sensitivity_measure(struct dl2_run *run, const char *path, struct dl2_error *error)
{
    const struct dl2_loader_config *loader = &run->config->loader;
    DL2_CLEANUP(end_measuring)
    struct measuring m = {.run = run,
                          .height = loader->height,
                          .width = dl2_loader_width(loader),
                          .channels = run->stream->channels};
    const size_t pixels = (size_t)m.height * m.width;
    m.gradient = dl2_calloc(loader->batch, pixels * m.channels * sizeof *m.gradient);
    m.logits = dl2_calloc(loader->batch, run->stream->classes * sizeof *m.logits);
    m.planes = dl2_calloc(PLANES, pixels * sizeof *m.planes);
    m.labels = dl2_calloc(loader->batch, sizeof *m.labels);
    m.lags = dl2_calloc(1, sizeof *m.lags);
    if (!m.gradient || !m.logits || !m.planes || !m.labels || !m.lags)
        return dl2_error_memory(error, "a network's sensitivity");
    DL2_TRY(dl2_stream_open_crops(run->stream, 0, &m.feed, error));
    DL2_TRY(take_images(&m, m.feed, error));
    return m.images ? save(&m, path, error)
                    : dl2_error_set(error, DL2_ERR_FORMAT, "%s: no image could be read",
                                    run->stream->val[0].path);
}
